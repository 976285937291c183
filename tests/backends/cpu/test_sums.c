/* Tests MatMulInteger and ConvInteger on integer kernels, alone and with the nodes that convert their sums back to real numbers.
 * Random graphs contain the complete pattern, or a pattern that is broken somewhere. Results must have the same bits as those of
 * the reference evaluator, which runs the nodes one by one. */
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/run/executable.h"
#include "cpu_host.h"
#include "operators/common/exponential.h"

#define SEEDS 160
#define GELU_TOLERANCE 3e-6 /* allowed error of results with GELU: absolute for numbers up to 1, relative above */

typedef struct generator {
  test_graph t;
  uint64_t seed;
  bool is_matrix, is_wide; /* is_wide: too many products per sum for exact sums in f32 */
  bool symbolic;           /* the leading extent is symbolic */
  int64_t channels;
  clv_tensor out; /* the product's shape */
  bool has_gelu;  /* if set, the result is close to that of the separate nodes, but need not have the same bits */
  char outputs[64];
} generator;

static int64_t pick(generator *g, int64_t limit) {
  return (int64_t)(test_random(&g->seed) % (uint64_t)limit);
}

static bool chance(generator *g, int64_t in) {
  return pick(g, in) == 0;
}

/* Adds a constant of random bytes. If is_wide is set, most are near the upper end of their range, so that sums are large. */
static void bytes(generator *g, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  clv_tensor tensor = clv__tensor_make(dtype, rank, dims, NULL);
  const int64_t count = clv__dims_product(&tensor, 0, rank);
  uint8_t *data = malloc((size_t)count + 1);
  assert_non_null(data);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t edge = dtype == CLV_U8 ? 255 - pick(g, 3) : 127 - pick(g, 3);
    data[i] = (uint8_t)(g->is_wide && !chance(g, 8) ? edge : pick(g, 256));
  }
  tensor.data = data;
  test_graph_constant(&g->t, name, &tensor);
  free(data);
}

static void floats(generator *g, const char *name, int32_t rank, const int64_t *dims, float scale) {
  clv_tensor tensor = clv__tensor_make(CLV_F32, rank, dims, NULL);
  const int64_t count = clv__dims_product(&tensor, 0, rank);
  float *data = malloc((size_t)count * sizeof *data);
  assert_non_null(data);
  for (int64_t i = 0; i < count; ++i) data[i] = scale * (1.5f + test_random_float(&g->seed));
  tensor.data = data;
  test_graph_constant(&g->t, name, &tensor);
  free(data);
}

static void node(generator *g, const char *op, const char *inputs, const char *outputs) {
  test_graph_node(&g->t, outputs, op, inputs, outputs);
}

/* Fills the dims of a tensor that has one number per channel of the result, or one number for all. Returns its rank. */
static int32_t line(generator *g, int64_t *dims) {
  const int32_t rank = g->is_matrix ? 1 + (int32_t)pick(g, 2) : g->out.rank - 1;
  for (int32_t i = 0; i < rank; ++i) dims[i] = 1;
  if (chance(g, 3)) return (int32_t)pick(g, 2);
  dims[g->is_matrix ? rank - 1 : 0] = g->channels;
  return rank;
}

static void zeros(generator *g, const char *name, clv_dtype dtype) {
  const int64_t dims[1] = {chance(g, 2) ? g->channels : 1};
  const bool middle = dtype == CLV_U8 && chance(g, 2), none = dtype == CLV_I8 && chance(g, 2);
  uint8_t data[512];
  assert_true(dims[0] <= (int64_t)sizeof data);
  for (int64_t i = 0; i < dims[0]; ++i) data[i] = none ? 0 : middle ? 128 : (uint8_t)pick(g, 256);
  const clv_tensor tensor = clv__tensor_make(dtype, dims[0] == 1 ? 0 : 1, dims, data);
  test_graph_constant(&g->t, name, &tensor);
}

/* Adds the input. It is "x", which is quantised to bytes "q" with the zero point "z" and the scale "s", or it is "q" itself. */
static void source(generator *g, const int64_t *dims, int32_t rank) {
  const int64_t real = CLV_F32, no = 0;
  int64_t given[CLV_MAX_RANK];
  memcpy(given, dims, (size_t)rank * sizeof *dims);
  if (g->symbolic) given[0] = test_graph_symbol(&g->t, "n");
  g->out = clv__tensor_make(CLV_F32, rank, dims, NULL);
  if (chance(g, 3)) {
    const uint8_t zero = (uint8_t)pick(g, 256);
    g->out.dtype = chance(g, 2) ? CLV_I8 : CLV_U8;
    test_graph_input(&g->t, "q", g->out.dtype, rank, given);
    const clv_tensor tensor = clv__tensor_make(g->out.dtype, 0, NULL, (void *)&zero);
    test_graph_constant(&g->t, "z", &tensor);
    test_graph_node_ints(&g->t, "real", "Cast", "q", "qf", "to", false, 1, &real);
    /* The scale is known only at run time. */
    test_graph_node_ints(&g->t, "most", "ReduceMax", "qf", "s", "keepdims", false, 1, &no);
    return;
  }
  test_graph_input(&g->t, "x", CLV_F32, rank, given);
  node(g, "DynamicQuantizeLinear", "x", "q,s,z");
}

static const char *weights(generator *g, const char *rest, int32_t rank, const int64_t *dims, char inputs[32]) {
  const clv_dtype dtype = chance(g, 2) ? CLV_I8 : CLV_U8;
  bytes(g, "w", dtype, rank, dims);
  if (strcmp(rest, "zw") == 0) zeros(g, "zw", dtype);
  snprintf(inputs, 32, "q,w%s",
           strcmp(rest, "") == 0     ? ""
           : strcmp(rest, "z") == 0  ? ",z"
           : strcmp(rest, "zw") == 0 ? ",z,zw"
                                     : "");
  return inputs;
}

static const char *some_zeros(generator *g) {
  static const char *const rests[] = {"", "z", "zw", "zw"};
  return rests[pick(g, 4)];
}

static void matrix(generator *g, clv_tensor *x) {
  static const int64_t depths[] = {1, 3, 4, 64, 65, 130};
  const int64_t depth = g->is_wide ? 1500 + pick(g, 600) : depths[pick(g, 6)], lead = 1 + pick(g, 3), rows = 1 + pick(g, 9);
  const int64_t from[3] = {lead, rows, depth};
  char inputs[32];
  const bool flat = chance(g, 2);
  g->channels = chance(g, 6) ? 1 : 1 + pick(g, 140);
  const int64_t dims[2] = {depth, g->channels};
  source(g, flat ? from + 1 : from, flat ? 2 : 3);
  *x = g->out;
  node(g, "MatMulInteger", weights(g, some_zeros(g), 2, dims, inputs), "i");
  g->out.dims[g->out.rank - 1] = g->channels;
}

static void convolution(generator *g, clv_tensor *x) {
  const int64_t groups = chance(g, 4) ? 2 : 1, each = g->is_wide ? 180 + pick(g, 40) : 1 + pick(g, 20);
  const int64_t kernel = g->is_wide ? 3 : 1 + pick(g, 3),
                pads[4] = {pick(g, kernel), pick(g, kernel), pick(g, kernel), pick(g, kernel)};
  const int64_t strides[2] = {1 + pick(g, 2), 1 + pick(g, 2)};
  const int64_t from[4] = {1 + pick(g, 2), each * groups, kernel + pick(g, 18), kernel + pick(g, 18)};
  char inputs[32];
  clv_error error = {0};
  clv_value_id in[4], out;
  g->channels = groups * (1 + pick(g, 20));
  const int64_t dims[4] = {g->channels, each, kernel, kernel};
  source(g, from, 4);
  *x = g->out;
  const clv_attribute attributes[3] = {{.name = "pads",
                                        .kind = CLV_ATTRIBUTE_INTS,
                                        .is_list = true,
                                        .count = 4,
                                        .ints = clv__arena_copy(clv__builder_arena(g->t.builder), pads, sizeof pads)},
                                       {.name = "strides",
                                        .kind = CLV_ATTRIBUTE_INTS,
                                        .is_list = true,
                                        .count = 2,
                                        .ints = clv__arena_copy(clv__builder_arena(g->t.builder), strides, sizeof strides)},
                                       {.name = "group",
                                        .kind = CLV_ATTRIBUTE_INTS,
                                        .is_list = false,
                                        .count = 1,
                                        .ints = clv__arena_copy(clv__builder_arena(g->t.builder), &groups, sizeof groups)}};
  (void)weights(g, some_zeros(g), 4, dims, inputs);
  uint32_t count = 0;
  char *rest = NULL;
  for (char *name = strtok_r(inputs, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
    assert_ok(clv__builder_value(g->t.builder, name, &in[count++], &error), error);
  }
  assert_ok(clv__builder_value(g->t.builder, "i", &out, &error), error);
  assert_ok(clv__builder_node(g->t.builder, "i", "", "ConvInteger", in, count, &out, 1, attributes, 3, &error), error);
  g->out.dims[1] = g->channels;
  for (int i = 0; i < 2; ++i) g->out.dims[i + 2] = (from[i + 2] + pads[i] + pads[i + 2] - kernel) / strides[i] + 1;
}

/* Makes `name` an output, too, so that the value between two nodes of the pattern has another reader. */
static void show(generator *g, const char *name) {
  const size_t length = strlen(g->outputs);
  snprintf(g->outputs + length, sizeof g->outputs - length, ",%s", name);
}

static void number(generator *g, const char *name, float value) {
  const clv_tensor tensor = clv__tensor_make(CLV_F32, 0, NULL, &value);
  test_graph_constant(&g->t, name, &tensor);
}

/* Adds five nodes that compute GELU of `from` as "rg". Sometimes, an inner value is an output, too, or a Relu follows. */
static void gelu(generator *g, const char *from) {
  char inputs[16];
  g->has_gelu = true;
  number(g, "half", 0.5f);
  number(g, "one", 1.0f);
  number(g, "root", 1.41421354f);
  snprintf(inputs, sizeof inputs, "%s,root", from);
  node(g, "Div", inputs, "gd");
  node(g, "Erf", "gd", "ge");
  node(g, "Add", "ge,one", "ga");
  snprintf(inputs, sizeof inputs, "%s,ga", from);
  node(g, "Mul", inputs, "gm");
  const bool goes_on = chance(g, 3);
  node(g, "Mul", "gm,half", goes_on ? "gh" : "rg");
  if (goes_on) node(g, "Relu", "gh", "rg");
  if (chance(g, 6)) show(g, from);
  if (chance(g, 6)) show(g, "ge");
}

/* Adds the conversion to real numbers: Cast, Mul, sums and functions. At random, parts are left out, and inner values are
 * outputs, too. */
static void back_to_real(generator *g) {
  int64_t dims[CLV_MAX_RANK];
  const int64_t real = CLV_F32;
  const char *last = "r";
  if (chance(g, 6)) {
    show(g, "i");
    if (chance(g, 2)) return;
  }
  test_graph_node_ints(&g->t, "f", "Cast", "i", "f", "to", false, 1, &real);
  if (chance(g, 10)) show(g, "f");
  floats(g, "sw", line(g, dims), dims, 1e-3f);
  node(g, "Mul", "s,sw", "ss");
  node(g, "Mul", chance(g, 2) ? "f,ss" : "ss,f", "r");
  if (chance(g, 10)) show(g, "r");
  if (!chance(g, 4)) {
    floats(g, "b", line(g, dims), dims, 0.3f);
    node(g, "Add", chance(g, 2) ? "r,b" : "b,r", "rb");
    last = "rb";
    if (chance(g, 10)) show(g, "rb");
  }
  if (!g->symbolic && chance(g, 3)) {
    char inputs[16];
    floats(g, "o", g->out.rank, g->out.dims, 0.3f);
    node(g, "Neg", "o", "n"); /* the addend may be a constant or a computed value */
    snprintf(inputs, sizeof inputs, "%s,%s", last, chance(g, 2) ? "o" : "n");
    node(g, "Add", inputs, "ro");
    last = "ro";
  }
  if (chance(g, 3)) {
    node(g, chance(g, 2) ? "Relu" : "LeakyRelu", last, "rr");
    last = "rr";
  }
  if (chance(g, 4)) {
    gelu(g, last);
    last = "rg";
  }
  show(g, last);
}

/* Makes a graph. *x receives the type of its input. */
static clv_graph *make(generator *g, const clv_allocator *allocator, uint64_t seed, bool symbolic, clv_tensor *x) {
  *g = (generator){.seed = seed * 77 + 5, .symbolic = symbolic};
  test_graph_begin(&g->t, allocator, seed);
  g->is_matrix = !chance(g, 3);
  g->is_wide = chance(g, 6);
  (g->is_matrix ? matrix : convolution)(g, x);
  g->out.dtype = CLV_I32;
  back_to_real(g);
  return test_graph_end(&g->t, g->outputs + 1);
}

/* Fills the input with random numbers of one kind: of both signs or one, all equal, all 0, or with NaN. */
static void fill(generator *g, clv_tensor *x) {
  const int64_t count = clv__dims_product(x, 0, x->rank), kind = pick(g, 8);
  const float shift = kind == 1 ? 1.0f : kind == 2 ? -1.0f : 0.0f;
  float *data = malloc((size_t)count * sizeof *data);
  assert_non_null(data);
  x->data = data;
  for (int64_t i = 0; i < count && x->dtype != CLV_F32; ++i) {
    ((uint8_t *)x->data)[i] = (uint8_t)(g->is_wide && !chance(g, 8) ? 127 + 128 * (x->dtype == CLV_U8) : pick(g, 256));
  }
  for (int64_t i = 0; i < count && x->dtype == CLV_F32; ++i) {
    data[i] = kind == 3 ? 0.0f : kind == 4 ? 0.7f : shift + test_random_float(&g->seed);
    if (g->is_wide && !chance(g, 8)) data[i] = 1.0f;
    if (kind == 5 && chance(g, 9)) data[i] = NAN;
  }
}

static void assert_same(const clv_tensor *made, const clv_tensor *wanted, double tolerance, uint64_t seed, uint32_t output) {
  size_t size_bytes;
  if (!clv__tensor_same_type(made, wanted)) fail_msg("seed %llu: output %u has a wrong type", (unsigned long long)seed, output);
  assert_true(clv__tensor_size_bytes(wanted, &size_bytes));
  for (size_t i = 0; i < size_bytes; i += 4) {
    if (memcmp((const char *)made->data + i, (const char *)wanted->data + i, 4) == 0) continue;
    const char *a = (const char *)made->data + i, *b = (const char *)wanted->data + i;
    const float *real = (const float *)(const void *)a, *wanted_real = (const float *)(const void *)b;
    if (made->dtype == CLV_F32 && isnan(*real) && isnan(*wanted_real)) continue;
    if (made->dtype == CLV_F32 && fabs((double)*real - (double)*wanted_real) <= tolerance * fmax(1, fabs((double)*real)))
      continue;
    if (made->dtype == CLV_F32)
      fail_msg("seed %llu, output %u, element %zu is %.9g, expected %.9g", (unsigned long long)seed, output, i / 4,
               (double)*(const float *)(const void *)a, (double)*(const float *)(const void *)b);
    fail_msg("seed %llu, output %u, element %zu is %d, expected %d", (unsigned long long)seed, output, i / 4,
             *(const int32_t *)(const void *)a, *(const int32_t *)(const void *)b);
  }
}

/* Runs the program and compares its outputs with those of the reference evaluator. */
static void run_and_compare(cpu_program *program, clv_graph *graph, const clv_tensor *x, double tolerance, uint64_t seed) {
  clv_tensor made[8] = {{0}}, wanted[8] = {{0}};
  clv_error error = {0};
  for (uint32_t i = 0; i < graph->output_count; ++i) made[i].rank = CLV_RANK_UNKNOWN;
  assert_ok(cpu_program_run(program, x, made, &error), error);
  assert_ok(clv__graph_evaluate(graph, x, NULL, wanted, NULL, NULL, graph->allocator, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    assert_same(&made[i], &wanted[i], tolerance, seed, i);
    clv__release(program->cpu->allocator, made[i].data);
    clv__release(graph->allocator, wanted[i].data);
  }
}

/* Counts the products of bytes that run as portable kernels and those that run as oneDNN primitives. */
static void count_products(const clv_instance *instance, int *kernels, int *primitives) {
  const clv__cpu_variant *variant = instance->run->variant;
  for (size_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    if (step->node == NULL || strstr(step->node->op, "Integer") == NULL) continue;
    *kernels += step->kind == CLV__CPU_STEP_KERNEL;
    *primitives += step->kind == CLV__CPU_STEP_PRIMITIVE;
  }
}

/* The number of passes over sums that end in GELU. */
static int count_gelus(const clv_instance *instance) {
  const clv__cpu_variant *variant = instance->run->variant;
  int count = 0;
  for (size_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    if (step->kind != CLV__CPU_STEP_OWN || step->own->run != clv__cpu_kernels()->sums_pass_run) continue;
    count += ((const clv__cpu_sums_pass *)(const void *)step->own)->has_gelu;
  }
  return count;
}

/* Compares clv__gelu_f32() with GELU in f64 between -8 and 8. Checks very large numbers, infinity and NaN. */
static void test_gelu(void **state) {
  (void)state;
  for (int i = -80000; i <= 80000; ++i) {
    const float x = (float)i * 1e-4f, made = clv__gelu_f32(x);
    const double wanted = 0.5 * (double)x * erfc(-(double)x / sqrt(2.0));
    if (!(fabs((double)made - wanted) <= 1e-6 * fmax(1, wanted)))
      fail_msg("gelu(%.9g) is %.9g, expected %.9g", (double)x, (double)made, wanted);
  }
  assert_true(clv__gelu_f32(0.0f) == 0.0f && clv__gelu_f32(1e30f) > 0.999999e30f && clv__gelu_f32(INFINITY) == INFINITY);
  assert_true(clv__gelu_f32(-1e30f) == 0.0f && isnan(clv__gelu_f32(NAN)));
}

static void test_random_graphs(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  int kernels = 0, primitives = 0, gelus = 0;
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    clv_error error = {0};
    generator g;
    clv_tensor x;
    cpu_host cpu;
    cpu_program program;
    const bool unfused = seed % 5 == 4;
    clv_graph *graph = make(&g, allocator, seed, false, &x);
    fill(&g, &x);
    assert_ok(cpu_host_open(&cpu, allocator, unfused ? "fuse" : NULL, "0", &error), error);
    assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    run_and_compare(&program, graph, &x, g.has_gelu ? GELU_TOLERANCE : 0, seed);
    assert_int_equal(cpu.retreats, 0);
    count_products(program.instance, &kernels, &primitives);
    gelus += count_gelus(program.instance);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    free(x.data);
    clv__graph_destroy(graph);
  }
  /* Portable kernels run only long products with an i8 source. */
  if (clv__dnn_sums_integers()) assert_true(primitives > 10 * kernels && primitives >= SEEDS - kernels);
  if (clv__dnn_sums_integers()) assert_true(gelus >= SEEDS / 16);
}

/* Runs one executable with shapes other than those of compile(). */
static void test_other_shapes(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    clv_error error = {0};
    generator g;
    clv_tensor x;
    cpu_host cpu;
    cpu_program program;
    clv_graph *graph = make(&g, allocator, seed, true, &x);
    assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
    fill(&g, &x);
    assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    run_and_compare(&program, graph, &x, g.has_gelu ? GELU_TOLERANCE : 0, seed);
    free(x.data);
    x.dims[0] = 5;
    fill(&g, &x);
    clv_tensor type = x;
    type.data = NULL;
    const clv_status status = cpu.backend->instance_resize(cpu.device, program.instance, &type, 1, &error);
    if (status == CLV_OK) run_and_compare(&program, graph, &x, g.has_gelu ? GELU_TOLERANCE : 0, seed);
    /* Without the raw bytes of large weights, the resize may fail. A host would then compile again. */
    assert_true(status == CLV_OK || status == CLV_NOT_SUPPORTED);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    free(x.data);
    clv__graph_destroy(graph);
  }
}

static void test_failing_memory(void **state) {
  (void)state;
  static const uint64_t seeds[] = {3, 4, 11};
  for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; ++i) {
    test_allocator failing;
    generator g;
    clv_tensor x;
    test_allocator_init(&failing);
    clv_graph *graph = make(&g, &failing.allocator, seeds[i], false, &x);
    fill(&g, &x);
    check_failing_memory(&failing, graph, &x);
    free(x.data);
    clv__graph_destroy(graph);
    assert_int_equal(failing.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gelu),
      cmocka_unit_test(test_random_graphs),
      cmocka_unit_test(test_other_shapes),
      cmocka_unit_test(test_failing_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
