/* Tests steps with little work: small products and elementwise functions of random shapes, against the reference. None of them
 * may run as a oneDNN primitive or as a portable kernel. */
#include "backends/cpu/run/executable.h"
#include "cpu_host.h"
#include "fast_evaluate.h"

static int64_t pick(uint64_t *seed, int64_t limit) {
  return (int64_t)(test_random(seed) % (uint64_t)limit);
}

static clv_tensor random_of(const clv_allocator *allocator, uint64_t *seed, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  clv_tensor tensor = clv__tensor_make(dtype, rank, dims, NULL);
  const size_t count = (size_t)clv__dims_product(&tensor, 0, rank);
  tensor.data = clv__allocate(allocator, count * clv_dtype_size_bytes(dtype));
  assert_non_null(tensor.data);
  for (size_t i = 0; i < count; ++i) {
    clv__tensor_put(&tensor, i, 2 * (double)test_random_float(seed), pick(seed, 200) - 100, pick(seed, 2) != 0);
  }
  return tensor;
}

/* The number of steps of `kind` in the graph's variant. */
static size_t steps_of(clv_graph *graph, clv__cpu_step_kind kind) {
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  size_t found = 0;
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  const clv__cpu_variant *variant = program.executable->variant;
  assert_non_null(variant);
  for (size_t i = 0; i < variant->step_count; ++i) found += variant->steps[i].kind == kind;
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  return found;
}

static void assert_direct(clv_graph *graph, const char *what) {
  if (steps_of(graph, CLV__CPU_STEP_PRIMITIVE) + steps_of(graph, CLV__CPU_STEP_KERNEL) > 0)
    fail_msg("%s: the program contains a oneDNN primitive or a portable kernel, but must not", what);
}

/* ---- Products. ---- */

static void number(test_graph *t, const char *op, const char *in, const char *out, const int64_t turned[2],
                   const float scales[2]) {
  clv_error error = {0};
  clv_value_id ids[3], made;
  char list[64];
  uint32_t count = 0;
  snprintf(list, sizeof list, "%s", in);
  char *rest = NULL;
  for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
    assert_ok(clv__builder_value(t->builder, name, &ids[count++], &error), error);
  }
  assert_ok(clv__builder_value(t->builder, out, &made, &error), error);
  clv__arena *arena = clv__builder_arena(t->builder);
  const int64_t *ints = clv__arena_copy(arena, turned, 2 * sizeof *turned);
  const float *floats = clv__arena_copy(arena, scales, 2 * sizeof *scales);
  const clv_attribute attributes[4] = {
      {.name = "transA", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = ints},
      {.name = "transB", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = ints + 1},
      {.name = "alpha", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = floats},
      {.name = "beta", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = floats + 1},
  };
  assert_ok(clv__builder_node(t->builder, out, "", op, ids, count, &made, 1, attributes, 4, &error), error);
}

static void random_product(uint64_t seed) {
  static const char *const after[] = {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "Gelu", "HardSwish", "Mish", "Abs", "Exp"};
  uint64_t state = seed * 977;
  const clv_allocator *allocator = clv__allocator_default();
  const bool gemm = pick(&state, 2) != 0, constant = pick(&state, 2) != 0, batched = !gemm && !constant && pick(&state, 2) != 0;
  const int64_t batch = 1 + pick(&state, 3), m = 1 + pick(&state, 9), k = 1 + pick(&state, 20), n = 1 + pick(&state, 20);
  const int64_t turned[2] = {gemm && pick(&state, 2), gemm && pick(&state, 2)};
  const float scales[2] = {constant && pick(&state, 2) != 0 ? 0.5f : 1.0f, 2.0f};
  const int64_t a[3] = {batch, m, k}, b[3] = {batch, k, n}, a_flat[2] = {turned[0] ? k : m, turned[0] ? m : k},
                b_flat[2] = {turned[1] ? n : k, turned[1] ? k : n};
  const bool leads = !gemm && (batched || pick(&state, 2) != 0); /* whether the left operand has a batch axis */
  const int64_t out[3] = {batch, m, n};
  test_graph t;
  test_graph_begin(&t, allocator, seed);
  test_graph_input(&t, "a", CLV_F32, leads ? 3 : 2, leads ? a : a_flat);
  test_graph_input(&t, "r", CLV_F32, leads ? 3 : 2, leads ? out : out + 1);
  if (constant)
    test_graph_weight(&t, "b", 2, b_flat);
  else
    test_graph_input(&t, "b", CLV_F32, batched ? 3 : 2, batched ? b : b_flat);
  test_graph_weight(&t, "bias", 1, &n);
  if (gemm)
    number(&t, "Gemm", pick(&state, 2) != 0 ? "a,b,bias" : "a,b", "c", turned, scales);
  else
    test_graph_node(&t, "product", "MatMul", "a,b", "c");
  const char *last = "c";
  const int64_t kind = pick(&state, 4);
  if (kind == 1 || kind == 3) {
    test_graph_node(&t, "sum", "Add", pick(&state, 2) != 0 ? "c,r" : "r,c", "d");
    last = "d";
  }
  if (kind >= 2) {
    test_graph_node(&t, "after", after[pick(&state, 10)], last, "e");
    last = "e";
  }
  clv_graph *graph = test_graph_end(&t, last);
  clv_tensor inputs[3];
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = &graph->values[graph->inputs[i]].type;
    inputs[i] = random_tensor(allocator, &state, type->rank, type->dims);
  }
  char what[32];
  snprintf(what, sizeof what, "seed %d", (int)seed);
  assert_int_equal(compare_with_reference(graph, inputs, NULL, NULL, what), 0);
  if ((leads && batched ? batch : 1) * (leads ? batch : 1) * m * k * n <= 4096) assert_direct(graph, what);
  for (uint32_t i = 0; i < graph->input_count; ++i) clv__release(allocator, inputs[i].data);
  clv__graph_destroy(graph);
}

static void test_products(void **state) {
  (void)state;
  cpu_host_threads = 1;
  for (uint64_t seed = 1; seed <= 300; ++seed) random_product(seed);
}

/* ---- Elementwise. ---- */

/* The steps call the row functions of the portable kernels, so the results must have the same bits as the kernels'. */
static void assert_same_bits(clv_graph *graph, const clv_tensor *inputs, const char *what) {
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  clv_tensor made = {.rank = CLV_RANK_UNKNOWN}, wanted = {0};
  size_t size_bytes;
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(cpu_program_run(&program, inputs, &made, &error), error);
  assert_ok(evaluate_fast(graph, inputs, &wanted, NULL, NULL, graph->allocator, &error), error);
  assert_true(clv__tensor_same_type(&made, &wanted) && clv__tensor_size_bytes(&wanted, &size_bytes));
  if (memcmp(made.data, wanted.data, size_bytes) != 0) fail_msg("%s: the bits differ from the portable kernel's", what);
  clv__release(graph->allocator, made.data);
  clv__release(graph->allocator, wanted.data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
}

static void random_elementwise(uint64_t seed) {
  static const struct {
    const char *op;
    int inputs;
    const char *dtypes; /* f: f32, d: f64, l: i64, i: i32, b: bool */
  } ops[] = {
      {"Add", 2, "fdli"},     {"Sub", 2, "fdli"},   {"Mul", 2, "fdl"},   {"Div", 2, "fdl"}, {"Max", 2, "fdl"},
      {"Min", 2, "fli"},      {"Pow", 2, "fd"},     {"Mod", 2, "li"},    {"PRelu", 2, "f"}, {"Equal", 2, "flb"},
      {"Less", 2, "fdl"},     {"Greater", 2, "fi"}, {"And", 2, "b"},     {"Xor", 2, "b"},   {"Where", 3, "fdlib"},
      {"BitwiseAnd", 2, "l"}, {"Relu", 1, "fdl"},   {"Neg", 1, "fdl"},   {"Abs", 1, "fl"},  {"Tanh", 1, "fd"},
      {"Sigmoid", 1, "f"},    {"Exp", 1, "fd"},     {"Sign", 1, "fl"},   {"Not", 1, "b"},   {"IsNaN", 1, "fd"},
      {"IsInf", 1, "f"},      {"Gelu", 1, "fd"},    {"Shrink", 1, "fl"}, {"Erf", 1, "f"},   {"Sum", 2, "fd"},
      {"Clip", 1, "fl"},      {"Floor", 1, "fd"},   {"Cos", 1, "f"},     {"Mish", 1, "f"},  {"Softplus", 1, "f"},
  };
  uint64_t state = seed * 331;
  const clv_allocator *allocator = clv__allocator_default();
  const size_t which = (size_t)pick(&state, sizeof ops / sizeof ops[0]);
  const char letter = ops[which].dtypes[pick(&state, (int64_t)strlen(ops[which].dtypes))];
  const clv_dtype dtype = letter == 'f'   ? CLV_F32
                          : letter == 'd' ? CLV_F64
                          : letter == 'l' ? CLV_I64
                          : letter == 'i' ? CLV_I32
                                          : CLV_BOOL;
  int64_t dims[5];
  const int32_t rank = (int32_t)pick(&state, 5);
  for (int32_t i = 0; i < rank; ++i) dims[i] = 1 + pick(&state, 4);
  clv_tensor inputs[3];
  test_graph t;
  char list[32] = "";
  bool same[3] = {false};
  test_graph_begin(&t, allocator, seed);
  for (int i = 0; i < ops[which].inputs; ++i) {
    int64_t own[5];
    const bool slope = strcmp(ops[which].op, "PRelu") == 0 && i == 0; /* only the slope is broadcast */
    const int32_t skip = !slope && pick(&state, 3) == 0 && rank > 0 ? (int32_t)pick(&state, rank + 1) : 0;
    same[i] = ops[which].inputs == 1 || slope || pick(&state, 2) != 0;
    for (int32_t d = skip; d < rank; ++d) own[d - skip] = same[i] || pick(&state, 2) != 0 ? dims[d] : 1;
    const int32_t own_rank = ops[which].inputs == 1 ? rank : rank - skip;
    const clv_dtype given = i == 0 && strcmp(ops[which].op, "Where") == 0 ? CLV_BOOL : dtype;
    const char name[2] = {(char)('a' + i), 0};
    const int64_t *shape = ops[which].inputs == 1 ? dims : own;
    test_graph_input(&t, name, given, own_rank, shape);
    inputs[i] = random_of(allocator, &state, given, own_rank, shape);
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? "," : "", name);
  }
  test_graph_node(&t, "one", ops[which].op, list, "y");
  test_graph_node(&t, "pass", "Identity", "y", "z");
  clv_graph *graph = test_graph_end(&t, "z");
  char what[64];
  snprintf(what, sizeof what, "seed %d, %s %c", (int)seed, ops[which].op, letter);
  assert_same_bits(graph, inputs, what);
  assert_direct(graph, what);
  for (int i = 0; i < ops[which].inputs; ++i) clv__release(allocator, inputs[i].data);
  clv__graph_destroy(graph);
}

static void test_elementwise(void **state) {
  (void)state;
  cpu_host_threads = 1;
  for (uint64_t seed = 1; seed <= 600; ++seed) random_elementwise(seed);
}

/* A graph of tiny operators must be compiled without oneDNN primitives and portable kernels. */
static void test_tiny_graph_is_direct(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed < 5; ++seed) {
    clv_graph *graph = test_random_graph(clv__allocator_default(), seed, 150);
    assert_direct(graph, "tiny graph");
    assert_true(steps_of(graph, CLV__CPU_STEP_SMALL) > 0 && steps_of(graph, CLV__CPU_STEP_ELEMENTWISE) > 10);
    clv__graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_tiny_graph_is_direct),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
