/* Tests graphs at the limits of what the passes may fuse, each against the reference evaluator: near matches of patterns, sums in
 * memory that is read again later, more functions than a step can fuse. No simpler variant may be needed. */
#include "backends/cpu/run/executable.h"
#include "cpu_host.h"

/* A graph as text. The nodes are separated by ";". Each is "operator inputs output", and may end with the digits of a permutation
 * or of pads. */
typedef struct drawing {
  const char *what, *nodes, *outputs;
} drawing;

static const int64_t image[4] = {1, 16, 8, 8};

/* Builds the graph of a drawing. Its nodes can read the input x and these constants: w and v: 1x1 weights; u: 3x3 weights; k:
 * an image; c: one number per channel; s and n: the parameters of a normalisation (n is positive); r: a row of an image; p and
 * l: matrices; and the shapes below. */
static clv_graph *draw(const drawing *d) {
  test_graph t;
  const int64_t weights[4] = {16, 16, 1, 1}, channels[4] = {1, 16, 1, 1}, count = 16, row = 8;
  const int64_t matrix[2] = {16, 64}, square[2] = {64, 64};
  float positive[16];
  for (int i = 0; i < 16; ++i) positive[i] = 0.5f + (float)i / 8;
  const clv_tensor norm = clv__tensor_make(CLV_F32, 1, &count, positive);
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F32, 4, image);
  test_graph_weight(&t, "w", 4, weights);
  test_graph_weight(&t, "v", 4, weights);
  test_graph_weight(&t, "u", 4, (const int64_t[]){16, 16, 3, 3});
  test_graph_weight(&t, "l", 2, matrix);
  test_graph_weight(&t, "k", 4, image);
  test_graph_weight(&t, "c", 4, channels);
  test_graph_weight(&t, "s", 1, &count);
  test_graph_weight(&t, "r", 1, &row);
  test_graph_weight(&t, "p", 2, square);
  test_graph_constant(&t, "n", &norm);
  test_graph_ints(&t, "apart", 5, (const int64_t[]){1, 2, 8, 8, 8});
  test_graph_ints(&t, "back", 4, image);
  test_graph_ints(&t, "mat", 2, matrix);
  test_graph_ints(&t, "flat", 2, (const int64_t[]){32, 32});
  int length;
  char op[32], inputs[32], output[8], digits[8];
  for (const char *at = d->nodes; *at != '\0'; at += length) {
    int64_t perm[8];
    digits[0] = '\0';
    assert_true(sscanf(at, " %31s %31s %7[^ ;] %7[0-9]", op, inputs, output, digits) >= 3);
    length = (int)strcspn(at, ";") + (strchr(at, ';') != NULL);
    for (size_t i = 0; i < strlen(digits); ++i) perm[i] = digits[i] - '0';
    if (digits[0] != '\0')
      test_graph_node_ints(&t, output, op, inputs, output, strcmp(op, "Conv") == 0 ? "pads" : "perm", true, strlen(digits), perm);
    else
      test_graph_node(&t, output, op, inputs, output);
  }
  return test_graph_end(&t, d->outputs);
}

static const drawing drawings[] = {
    {"a channel shuffle", "Conv x,w a; Reshape a,apart b; Transpose b d 02134; Reshape d,back e; Conv e,v y", "y"},
    {"a shuffle that also transposes the image",
     "Conv x,w a; Reshape a,apart b; Transpose b d 02143; Reshape d,back e; Conv e,v y", "y"},
    {"a shuffle into another shape", "Conv x,w a; Reshape a,apart b; Transpose b d 02134; Reshape d,flat y", "y"},
    {"Relu after a normalisation", "Sigmoid x a; BatchNormalization a,s,s,s,n b; Relu b y", "y"},
    {"LeakyRelu after a normalisation", "Sigmoid x a; BatchNormalization a,s,s,s,n b; LeakyRelu b y", "y"},
    {"LeakyRelu after an instance's normalisation", "InstanceNormalization x,s,s b; LeakyRelu b y", "y"},
    {"a function after a sum that broadcasts", "Abs x a; Sub a,r b; Tanh b y", "y"},
    {"a convolution plus a broadcast value", "Conv x,w a; Sigmoid c b; GlobalAveragePool x d; Add a,d y", "y"},
    {"a small convolution's sum with an image", "GlobalAveragePool x a; Conv a,w b; Add b,x y", "y"},
    {"ten functions",
     "Conv x,w a; Relu a b; Sigmoid b d; Tanh d e; Abs e f; Sqrt f g; Exp g h; Elu h i; HardSwish i j; Softplus j m; LeakyRelu m "
     "y",
     "y"},
    {"a sum with the input of a 3x3 convolution", "Conv x,w a; Conv a,u b 1111; Add b,a d; Conv d,v y", "y"},
    {"a function of a broadcast operand minus a larger one", "Abs x a; Sub r,a b; Tanh b y", "y"},
    {"another function of a broadcast operand minus a larger one", "Abs x a; Sub r,a b; HardSwish b y", "y"},
    {"a function of two operands that are both broadcast", "GlobalAveragePool x a; Sub a,r b; Tanh b y", "y"},
    {"a product's sum with a constant", "Reshape x,mat z; MatMul z,p a; Add a,l b; MatMul b,p y", "y"},
    {"a product's sum with an input", "Reshape x,mat z; Tanh z a; MatMul a,p b; Add b,z d; MatMul d,p y", "y"},
    {"a sum with the input of the convolution", "Sigmoid x a; Conv a,w b; Add b,a y0; Relu y0 y", "y"},
    {"two sums with one value", "Conv x,w a; Conv x,v b; Tanh x d; Conv d,v e; Add b,a f; Conv f,w g; Add e,a h; Sub g,h y", "y"},
    {"a sum with a value of which a view is an output",
     "Conv x,w a; Reshape a,flat o; Tanh x d; Conv d,v e; Add e,a f; Conv f,w y", "o,y"},
    {"a sum with a value whose view is read later",
     "Conv x,w a; Reshape a,flat b; Tanh x d; Conv d,v e; Add e,a f; Conv f,w y; Neg b o", "o,y"},
    {"a sum with a view whose source is read later",
     "Conv x,w a; Reshape a,back b; Tanh x d; Conv d,v e; Add e,b f; Conv f,w y; Neg a o", "o,y"},
    {"a product's sum with a value of which a view is an output",
     "Reshape x,mat z; MatMul z,p a; Reshape a,flat o; Tanh z d; MatMul d,p e; Add e,a f; MatMul f,p y", "o,y"},
    {"a product's sum with a value whose view is read later",
     "Reshape x,mat z; MatMul z,p a; Reshape a,flat b; Tanh z d; MatMul d,p e; Add e,a f; MatMul f,p y; Neg b o", "o,y"},
    {"a product's sum with a view whose source is read later",
     "Reshape x,mat z; MatMul z,p a; Reshape a,mat b; Tanh z d; MatMul d,p e; Add e,b f; MatMul f,p y; Neg a o", "o,y"},
    {"a sum with a value that is an output", "Conv x,w a; Tanh x d; Conv d,v e; Add e,a f; Conv f,w y", "a,y"},
    {"a sum with a constant", "Conv x,w a; Add a,k y", "y"},
    {"a sum with an input", "Sigmoid x a; Conv a,w b; Add b,x f; Conv f,v y", "y"},
    {"an output that another step reads", "Conv x,w a; Relu a y", "a,y"},
    {"a value added to itself", "Conv x,w a; Add a,a b; Mul b,b y", "y"},
};

/* Runs the graph twice in one instance, so that the second run detects anything that the first has overwritten. */
static void check(const drawing *d, const char *option, const char *value) {
  clv_graph *graph = draw(d);
  const clv_allocator *allocator = graph->allocator;
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  uint64_t seed = 3;
  size_t size_bytes;
  clv_tensor x = random_tensor(allocator, &seed, 4, image), wanted[4] = {{0}};
  assert_true(clv__tensor_size_bytes(&x, &size_bytes));
  void *kept = clv__allocate(allocator, size_bytes);
  memcpy(kept, x.data, size_bytes);
  assert_ok(cpu_host_open(&cpu, allocator, option, value, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
  assert_ok(clv__graph_evaluate(graph, &x, NULL, wanted, NULL, NULL, allocator, &error), error);
  for (int run = 0; run < 2; ++run) {
    clv_tensor made[4] = {{0}};
    for (uint32_t i = 0; i < graph->output_count; ++i) made[i].rank = CLV_RANK_UNKNOWN;
    assert_ok(cpu_program_run(&program, &x, made, &error), error);
    for (uint32_t i = 0; i < graph->output_count; ++i) {
      char text[160];
      snprintf(text, sizeof text, "%s, run %d: output '%s'", d->what, run, graph->values[graph->outputs[i]].name);
      assert_tensor(&made[i], &wanted[i], text);
      clv__release(allocator, made[i].data);
    }
  }
  assert_memory_equal(x.data, kept, size_bytes);
  if (cpu.retreats != 0) fail_msg("%s: the variant could not be compiled, and a simpler one was used", d->what);
  for (uint32_t i = 0; i < graph->output_count; ++i) clv__release(allocator, wanted[i].data);
  clv__release(allocator, kept);
  clv__release(allocator, x.data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

static void edges(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof drawings / sizeof *drawings; ++i) {
    check(&drawings[i], NULL, NULL);
    check(&drawings[i], "fuse", "0");
  }
}

/* Fails unless oneDNN runs all convolutions. A portable kernel runs those that oneDNN rejects, which the results do not show. */
static void assert_primitives(clv_graph *graph, const char *what) {
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  const clv__cpu_variant *variant = program.executable->variant;
  for (size_t s = 0; s < variant->step_count; ++s) {
    if (variant->steps[s].kind == CLV__CPU_STEP_KERNEL && strcmp(variant->steps[s].what, "Conv") == 0)
      fail_msg("%s: a portable kernel runs a convolution", what);
  }
  cpu_program_close(&program);
  cpu_host_close(&cpu);
}

/* Windows whose padding is determined by auto_pad: odd padding before or after, dilations, strides, and no padding at all. */
static void padded_by_rule(void **state) {
  (void)state;
  static const clv_string rules[] = {{"SAME_UPPER", 10}, {"SAME_LOWER", 10}, {"VALID", 5}};
  static const int64_t kernels[][2] = {{2, 2}, {3, 3}, {1, 1}, {4, 3}}, strides[][2] = {{1, 1}, {2, 2}, {3, 2}},
                       dilations[][2] = {{1, 1}, {2, 1}};
  const int64_t dims[4] = {1, 16, 11, 13};
  for (uint32_t i = 0; i < 3 * 4 * 3 * 2; ++i) {
    const int64_t *kernel = kernels[i / 3 % 4], *dilation = dilations[i / 36];
    const int64_t weights[4] = {16, 16, kernel[0], kernel[1]};
    const clv_attribute attributes[] = {
        {.name = "auto_pad", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &rules[i % 3]},
        {.name = "strides", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = strides[i / 12 % 3]},
        {.name = "dilations", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = dilation},
        {.name = "kernel_shape", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = kernel}};
    test_graph t;
    clv_error error = {0};
    char what[64];
    uint64_t seed = i;
    test_graph_begin(&t, clv__allocator_default(), 5);
    test_graph_input(&t, "x", CLV_F32, 4, dims);
    test_graph_weight(&t, "w", 4, weights);
    clv_value_id in[2] = {test_graph_value(&t, "x"), test_graph_value(&t, "w")}, y = test_graph_value(&t, "y"),
                 z = test_graph_value(&t, "z");
    assert_ok(clv__builder_node(t.builder, "conv", "", "Conv", in, 2, &y, 1, attributes, 4, &error), error);
    assert_ok(clv__builder_node(t.builder, "pool", "", "MaxPool", in, 1, &z, 1, attributes, 4, &error), error);
    clv_graph *graph = test_graph_end(&t, "y,z");
    clv_tensor x = random_tensor(graph->allocator, &seed, 4, dims);
    snprintf(what, sizeof what, "%s, kernel %dx%d, window %u", rules[i % 3].data, (int)kernel[0], (int)kernel[1], i);
    assert_int_equal(compare_with_reference(graph, &x, NULL, NULL, what), 0);
    assert_primitives(graph, what);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
}

/* An f16 value that the variant computes from shapes, and that a node reads as f16 bytes. */
static void folded_halves(void **state) {
  (void)state;
  test_graph t;
  const int64_t open[1] = {CLV_DIM_UNKNOWN}, count = 5, axis = 0, to = 10 /* FLOAT16 */;
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F16, 1, open);
  test_graph_node(&t, "shape", "Shape", "x", "a");
  test_graph_node_ints(&t, "cast", "Cast", "a", "b", "to", false, 1, &to);
  test_graph_node_ints(&t, "join", "Concat", "x,b", "y", "axis", false, 1, &axis);
  clv_graph *graph = test_graph_end(&t, "y");
  uint16_t halves[5];
  for (int i = 0; i < 5; ++i) halves[i] = clv__f32_to_f16((float)i / 4 - 0.5f);
  const clv_tensor x = clv__tensor_make(CLV_F16, 1, &count, halves);
  compare_with_reference(graph, &x, NULL, NULL, "a folded value of f16");
  clv__graph_destroy(graph);
}

/* A Cast to bf16 (if `is_like` is set, a CastLike) must round, although the variant presents its input and result as f32 and the
 * next node casts back to f32. */
static void check_rounds(bool is_like) {
  test_graph t;
  const int64_t count = 3, narrow = 16 /* BFLOAT16 */, wide = 1 /* FLOAT */;
  float values[3] = {1.0009765625f, -3.001953125f, 0.333251953125f}; /* exact in f16, but not in bf16 */
  uint16_t halves[3], zero[1] = {0};
  for (int i = 0; i < 3; ++i) halves[i] = clv__f32_to_f16(values[i]);
  const clv_tensor like = clv__tensor_make(CLV_BF16, 0, NULL, zero), x = clv__tensor_make(CLV_F16, 1, &count, halves);
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  clv_tensor made[1] = {{.rank = CLV_RANK_UNKNOWN}};
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F16, 1, &count);
  test_graph_constant(&t, "h", &like);
  if (is_like)
    test_graph_node(&t, "like", "CastLike", "x,h", "a");
  else
    test_graph_node_ints(&t, "narrow", "Cast", "x", "a", "to", false, 1, &narrow);
  test_graph_node_ints(&t, "wide", "Cast", "a", "y", "to", false, 1, &wide);
  clv_graph *graph = test_graph_end(&t, "y");
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(cpu_program_run(&program, &x, made, &error), error);
  for (int i = 0; i < 3; ++i) assert_true(((float *)made[0].data)[i] == clv__bf16_to_f32(clv__f32_to_bf16(values[i])));
  clv__release(graph->allocator, made[0].data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

static void casts_round(void **state) {
  (void)state;
  check_rounds(false);
  check_rounds(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(padded_by_rule), cmocka_unit_test(folded_halves),
                                     cmocka_unit_test(casts_round)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
