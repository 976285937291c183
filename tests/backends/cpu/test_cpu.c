/* Tests the CPU backend through its function table: results against the reference evaluator, planned and node by node, with steps
 * in and out of place, and with failing allocations. */
#include "../../analysis/bodies.h"
#include "cpu_host.h"

static const int64_t image[4] = {1, 16, 13, 11};

static void weight4(test_graph *graph, const char *name, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t dims[4] = {a, b, c, d};
  test_graph_weight(graph, name, 4, dims);
}

static void ints_node(test_graph *graph, const char *op, const char *inputs, const char *outputs, const char *attribute,
                      int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t values[4] = {a, b, c, d};
  test_graph_node_ints(graph, outputs, op, inputs, outputs, attribute, true, 4, values);
}

/* A residual block whose sum is read twice. A view of an inner value and a copy of the input are outputs, too. */
static clv_graph *block(const clv_allocator *allocator, const int64_t dims[4]) {
  test_graph t;
  const int64_t channels = dims[1];
  test_graph_begin(&t, allocator, 5);
  test_graph_input(&t, "x", CLV_F32, 4, dims);
  weight4(&t, "w0", channels, channels, 3, 3);
  weight4(&t, "w1", channels, channels, 1, 1);
  const int64_t row[4] = {1, channels, 1, 1};
  test_graph_weight(&t, "m", 4, row);
  ints_node(&t, "Conv", "x,w0", "a", "pads", 1, 1, 1, 1);
  test_graph_node(&t, "mul", "Mul", "a,m", "b");
  test_graph_node(&t, "relu", "Relu", "b", "c");
  test_graph_node(&t, "conv1", "Conv", "c,w1", "d");
  test_graph_node(&t, "add", "Add", "x,d", "e");
  test_graph_node(&t, "twice", "Add", "e,e", "f");
  test_graph_node(&t, "relu2", "Relu", "f", "g");
  test_graph_node(&t, "flat", "Flatten", "c", "h");
  test_graph_node(&t, "same", "Identity", "x", "i");
  test_graph_node(&t, "sub", "Sub", "g,e", "j");
  return test_graph_end(&t, "g,h,i,j,e");
}

static void test_block(void **state) {
  (void)state;
  uint64_t seed = 3;
  static const int64_t shapes[][4] = {{1, 16, 13, 11}, {1, 64, 23, 21} /* uses Winograd's algorithm */, {1, 7, 13, 11}};
  for (int i = 0; i < 3; ++i) {
    const int64_t *dims = shapes[i];
    clv_graph *graph = block(clv__allocator_default(), dims);
    clv_tensor x = random_tensor(graph->allocator, &seed, 4, dims);
    assert_int_equal(compare_with_reference(graph, &x, NULL, NULL, "fused"), 0);
    compare_with_reference(graph, &x, "fuse", "0", "not fused");
    compare_with_reference(graph, &x, "winograd", "0", "direct");
    compare_with_reference(graph, &x, "onednn", "0", "portable");
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
}

static clv_graph *one_conv(const clv_allocator *allocator, const int64_t *dims) {
  test_graph t;
  test_graph_begin(&t, allocator, 5);
  test_graph_input(&t, "x", CLV_F32, 4, dims);
  weight4(&t, "w", 160, 16, 3, 3); /* larger than CLV__CPU_SMALL_BYTES, so not copied */
  test_graph_node(&t, "conv", "Conv", "x,w", "a");
  return test_graph_end(&t, "a");
}

static void test_other_shapes_and_resize(void **state) {
  (void)state;
  clv_error error = {0};
  uint64_t seed = 4;
  const clv_allocator *allocator = clv__allocator_default();
  test_graph t;
  const int64_t symbolic[4] = {CLV_DIM_UNKNOWN, 16, CLV_DIM_UNKNOWN, 11};
  test_graph_begin(&t, allocator, 5);
  test_graph_input(&t, "x", CLV_F32, 4, symbolic);
  weight4(&t, "w", 160, 16, 3, 3); /* larger than CLV__CPU_SMALL_BYTES, so not copied */
  test_graph_node(&t, "conv", "Conv", "x,w", "a");
  test_graph_node(&t, "relu", "Relu", "a", "b");
  clv_graph *graph = test_graph_end(&t, "b");
  cpu_host cpu;
  cpu_program program;
  const int64_t dims[3][4] = {{1, 16, 13, 11}, {2, 16, 5, 11}, {1, 16, 7, 11}};
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  for (int i = 0; i < 3; ++i) {
    clv_tensor x = random_tensor(allocator, &seed, 4, dims[i]);
    if (i == 0) assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    if (i > 0) assert_ok(cpu.backend->instance_resize(cpu.device, program.instance, &x, 1, &error), error);
    clv_tensor made = {.rank = CLV_RANK_UNKNOWN}, wanted;
    assert_ok(cpu_program_run(&program, &x, &made, &error), error);
    assert_ok(clv__graph_evaluate(graph, &x, NULL, &wanted, NULL, NULL, allocator, &error), error);
    assert_tensor(&made, &wanted, "resized");
    clv__release(allocator, made.data);
    clv__release(allocator, wanted.data);
    /* An input whose shape is not the instance's is rejected, and the message names the input. */
    clv_tensor other = x;
    other.dims[2]++;
    made = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    assert_int_equal(cpu_program_run(&program, &other, &made, &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "'x'"));
    clv__release(allocator, x.data);
  }
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

/* An executable with static shapes keeps only packed weights. An instance for other shapes must be made from these packed
 * weights. */
static void test_static_then_other(void **state) {
  (void)state;
  clv_error error = {0};
  uint64_t seed = 6;
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t dims[4] = {3, 16, 9, 9};
  clv_graph *graph = one_conv(allocator, image), *other = one_conv(allocator, dims);
  cpu_host cpu;
  cpu_program program;
  clv_tensor x = random_tensor(allocator, &seed, 4, dims);
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(cpu.backend->instance_resize(cpu.device, program.instance, &x, 1, &error), error);
  clv_tensor made = {.rank = CLV_RANK_UNKNOWN}, wanted;
  assert_ok(cpu_program_run(&program, &x, &made, &error), error);
  assert_ok(clv__graph_evaluate(other, &x, NULL, &wanted, NULL, NULL, allocator, &error), error);
  assert_tensor(&made, &wanted, "other shapes");
  clv__release(allocator, made.data);
  clv__release(allocator, wanted.data);
  clv__release(allocator, x.data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  clv__graph_destroy(other);
}

static void test_unaligned_and_no_allocation(void **state) {
  (void)state;
  clv_error error = {0};
  uint64_t seed = 8;
  test_allocator counting;
  test_allocator_init(&counting);
  const clv_allocator *allocator = &counting.allocator;
  clv_graph *graph = block(allocator, image);
  cpu_host cpu;
  cpu_program program;
  clv_tensor x = random_tensor(allocator, &seed, 4, image), wanted[5], made[5];
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(clv__graph_evaluate(graph, &x, NULL, wanted, NULL, NULL, allocator, &error), error);
  for (size_t shift = 0; shift < 8; ++shift) {
    size_t size_bytes;
    clv_tensor in = x;
    void *memory[6];
    assert_true(clv__tensor_size_bytes(&x, &size_bytes));
    memory[5] = malloc(size_bytes + 8);
    in.data = (char *)memory[5] + shift;
    memcpy(in.data, x.data, size_bytes);
    for (int i = 0; i < 5; ++i) {
      assert_true(clv__tensor_size_bytes(&wanted[i], &size_bytes));
      memory[i] = malloc(size_bytes + 8);
      made[i] = wanted[i];
      made[i].data = (char *)memory[i] + shift;
      memset(memory[i], 0x7f, size_bytes + 8);
    }
    for (int again = 0; again < 2; ++again) {
      const size_t calls = counting.calls;
      assert_ok(cpu_program_run(&program, &in, made, &error), error);
      if (again == 1) assert_int_equal(counting.calls, calls); /* only the first run allocates memory */
      for (int i = 0; i < 5; ++i) assert_tensor(&made[i], &wanted[i], "unaligned");
    }
    for (int i = 0; i < 6; ++i) free(memory[i]);
  }
  for (int i = 0; i < 5; ++i) clv__release(allocator, wanted[i].data);
  clv__release(allocator, x.data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

/* Sizes that depend on data: the graph runs node by node and allocates its outputs through the callback. */
static void test_dynamic(void **state) {
  (void)state;
  uint64_t seed = 9;
  test_graph t;
  const int64_t dims[2] = {6, 5};
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_node(&t, "relu", "Relu", "x", "a");
  test_graph_node(&t, "nonzero", "NonZero", "a", "b");
  test_graph_node(&t, "turn", "Transpose", "b", "c");
  test_graph_node(&t, "gather", "GatherND", "a,c", "d");
  test_graph_node(&t, "exp", "Exp", "d", "e");
  clv_graph *graph = test_graph_end(&t, "e,b,x");
  clv_tensor x = random_tensor(graph->allocator, &seed, 2, dims);
  compare_with_reference(graph, &x, NULL, NULL, "dynamic");
  clv__release(graph->allocator, x.data);
  clv__graph_destroy(graph);
}

static void test_if(void **state) {
  (void)state;
  uint64_t seed = 10;
  test_graph t, then_body, else_body;
  const int64_t dims[2] = {4, 3};
  const clv_allocator *allocator = clv__allocator_default();
  test_graph_begin(&t, allocator, 5);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_input(&t, "which", CLV_BOOL, 0, NULL);
  test_graph_node(&t, "relu", "Relu", "x", "a");
  test_graph_begin(&then_body, allocator, 6);
  test_graph_node(&then_body, "neg", "Neg", "a", "r");
  const clv_graph_view *then_view = body_end(&then_body, &t, "r");
  test_graph_begin(&else_body, allocator, 7);
  test_graph_node(&else_body, "sum", "Add", "a,x", "r");
  const clv_graph_view *else_view = body_end(&else_body, &t, "r");
  body_node(&t, "If", "which", "b", "then_branch", then_view, "else_branch", else_view, 0);
  test_graph_node(&t, "last", "Exp", "b", "c");
  clv_graph *graph = test_graph_end(&t, "c");
  for (int which = 0; which < 2; ++which) {
    bool flag = which != 0;
    clv_tensor inputs[2] = {random_tensor(allocator, &seed, 2, dims), clv__tensor_make(CLV_BOOL, 0, NULL, &flag)};
    compare_with_reference(graph, inputs, NULL, NULL, "if");
    clv__release(allocator, inputs[0].data);
  }
  clv__graph_destroy(graph);
}

static void test_verdicts(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host cpu;
  test_graph t;
  const int64_t dims[2] = {4, 3};
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_input(&t, "text", CLV_STRING, 2, dims);
  test_graph_node(&t, "relu", "Relu", "x", "a");
  test_graph_node(&t, "odd", "Frobnicate", "x", "b");
  test_graph_node(&t, "wordy", "Relu", "text", "c");
  clv_graph *graph = test_graph_end(&t, "a,b,c");
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  clv_verdict verdict;
  cpu.backend->supports(cpu.device, graph->whole, 0, &verdict);
  assert_true(verdict.supported);
  cpu.backend->supports(cpu.device, graph->whole, 1, &verdict);
  assert_false(verdict.supported);
  assert_string_equal(verdict.reason, "no kernel for operator Frobnicate");
  cpu.backend->supports(cpu.device, graph->whole, 2, &verdict);
  assert_false(verdict.supported);
  assert_non_null(strstr(verdict.reason, "dtype string"));
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

static void test_failing_memory(void **state) {
  (void)state;
  uint64_t seed = 12;
  test_allocator failing;
  test_allocator_init(&failing);
  clv_graph *graph = block(&failing.allocator, image); /* check_failing_memory() gives the host the same allocator */
  clv_tensor x = random_tensor(clv__allocator_default(), &seed, 4, image);
  check_failing_memory(&failing, graph, &x);
  clv__release(clv__allocator_default(), x.data);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_block),
      cmocka_unit_test(test_other_shapes_and_resize),
      cmocka_unit_test(test_static_then_other),
      cmocka_unit_test(test_unaligned_and_no_allocation),
      cmocka_unit_test(test_dynamic),
      cmocka_unit_test(test_if),
      cmocka_unit_test(test_verdicts),
      cmocka_unit_test(test_failing_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
