/* Tests Winograd's algorithm over parts of the input channels. The results must match those of the direct algorithm, with every
 * kind of function, bias and folded factor. The parts must need less scratch than the whole convolution. Failing allocations must
 * not leak. */
#include "backends/cpu/run/executable.h"
#include "cpu_host.h"

enum { LARGE = 20 << 20 /* convolutions that need more scratch are divided into parts */ };

typedef struct layer {
  int64_t images, inputs, outputs, extent;
  bool bias, scaled, adds;
  const char *function;
} layer;

static clv_graph *build(const layer *l, const clv_allocator *allocator) {
  test_graph t;
  const int64_t dims[4] = {l->images, l->inputs, l->extent, l->extent}, weights[4] = {l->outputs, l->inputs, 3, 3};
  const int64_t other[4] = {l->images, l->outputs, l->extent, l->extent}, factors[4] = {1, l->outputs, 1, 1};
  const int64_t pads[4] = {1, 1, 1, 1};
  const char *last = "a";
  test_graph_begin(&t, allocator, 5);
  test_graph_input(&t, "x", CLV_F32, 4, dims);
  if (l->adds) test_graph_input(&t, "z", CLV_F32, 4, other);
  test_graph_weight(&t, "w", 4, weights);
  test_graph_weight(&t, "b", 1, &l->outputs);
  test_graph_weight(&t, "f", 4, factors);
  test_graph_node_ints(&t, "conv", "Conv", l->bias ? "x,w,b" : "x,w", "a", "pads", true, 4, pads);
  if (l->scaled) test_graph_node(&t, "scale", "Mul", "a,f", "m"), last = "m";
  if (l->adds) test_graph_node(&t, "sum", "Add", l->scaled ? "m,z" : "a,z", "s"), last = "s";
  test_graph_node(&t, "function", l->function, last, "y");
  return test_graph_end(&t, "y");
}

/* The result of a compiled layer, and figures of its variant. */
typedef struct outcome {
  clv_tensor y;
  int winograd_steps;
  size_t scratch_bytes;
} outcome;

static outcome run(clv_graph *graph, const clv_tensor *inputs, const char *winograd) {
  const clv_allocator *allocator = graph->allocator;
  cpu_host cpu;
  cpu_program program;
  clv_error error = {0};
  outcome made = {.y = {.rank = CLV_RANK_UNKNOWN}};
  assert_ok(cpu_host_open(&cpu, allocator, "winograd", winograd, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  const clv__cpu_variant *variant = program.executable->variant;
  for (size_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    if (step->primitive == NULL || strstr(step->primitive->implementation, "wino") == NULL) continue;
    made.winograd_steps++;
    if (step->scratch_bytes > made.scratch_bytes) made.scratch_bytes = step->scratch_bytes;
  }
  assert_ok(cpu_program_run(&program, inputs, &made.y, &error), error);
  assert_int_equal(cpu.retreats, 0);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  return made;
}

/* The scratch of the layer's convolution if it is not divided; 0 if oneDNN does not support Winograd's algorithm for it. */
static size_t whole_scratch(const layer *l) {
  clv__arena arena;
  cpu_host cpu;
  clv__dnn_primitive *primitive = NULL;
  clv_error error = {0};
  clv__dnn_convolution spec = {.winograd = true, .bias_count = l->bias ? l->outputs : 0, .window = {.count = 2}};
  for (int i = 0; i < 2; ++i) {
    spec.window.kernel[i] = 3;
    spec.window.stride[i] = spec.window.dilation[i] = spec.window.begin[i] = spec.window.end[i] = 1;
  }
  spec.source = (clv_tensor){.dtype = CLV_F32, .rank = 4, .dims = {l->images, l->inputs, l->extent, l->extent}};
  spec.weights = (clv_tensor){.dtype = CLV_F32, .rank = 4, .dims = {l->outputs, l->inputs, 3, 3}};
  spec.destination = (clv_tensor){.dtype = CLV_F32, .rank = 4, .dims = {l->images, l->outputs, l->extent, l->extent}};
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(cpu_host_open(&cpu, clv__allocator_default(), NULL, NULL, &error), error);
  const int threads = clv__cpu_threads_enter_compiling(cpu.device);
  const clv_status status = clv__dnn_convolution_create(cpu.device->dnn, &spec, &arena, &primitive, &error);
  clv__cpu_threads_leave(threads);
  const size_t scratch_bytes = status == CLV_OK ? primitive->scratch_bytes : 0;
  clv__dnn_primitive_release(primitive);
  cpu_host_close(&cpu);
  clv__arena_finish(&arena);
  return scratch_bytes;
}

/* Compares Winograd's algorithm with the direct one. Returns whether the layer was divided into parts. */
static bool check(const layer *l, uint64_t seed) {
  clv_graph *graph = build(l, clv__allocator_default());
  char what[96];
  const int64_t other[4] = {l->images, l->outputs, l->extent, l->extent}, dims[4] = {l->images, l->inputs, l->extent, l->extent};
  clv_tensor inputs[2] = {random_tensor(graph->allocator, &seed, 4, dims), {0}};
  if (l->adds) inputs[1] = random_tensor(graph->allocator, &seed, 4, other);
  outcome direct = run(graph, inputs, "0"), made = run(graph, inputs, "1");
  snprintf(what, sizeof what, "%d to %d channels at %d, then %s", (int)l->inputs, (int)l->outputs, (int)l->extent, l->function);
  assert_tensor(&made.y, &direct.y, what);
  assert_int_equal(direct.winograd_steps, 0);
  const bool may = l->images == 1 && l->inputs % 32 == 0 && !l->adds && whole_scratch(l) > LARGE;
  if (made.winograd_steps > 0 && may) {
    assert_true(made.winograd_steps > 1);
    assert_true(made.scratch_bytes <= whole_scratch(l) / 4 * 3);
  } else {
    assert_true(made.winograd_steps <= 1);
  }
  clv__release(graph->allocator, inputs[0].data);
  clv__release(graph->allocator, inputs[1].data);
  clv__release(graph->allocator, made.y.data);
  clv__release(graph->allocator, direct.y.data);
  clv__graph_destroy(graph);
  return made.winograd_steps > 1;
}

static void test_equal(void **state) {
  (void)state;
  static const layer layers[] = {
      {1, 128, 64, 128, true, false, false, "Relu"},       /* a bias, and a function that the last part can fuse */
      {1, 128, 64, 127, false, false, false, "LeakyRelu"}, /* a function that no part can fuse; partial tiles */
      {1, 128, 70, 128, true, true, false,
       "Tanh"}, /* factors folded into the weights; output channels that do not fill the last block */
      {1, 256, 64, 128, false, true, false, "Relu"}, /* divided into two parts, or into four if two need too much scratch */
      {1, 128, 64, 128, true, false, true, "Relu"},  /* a sum with another value: not divided */
      {2, 128, 64, 90, true, false, false, "Relu"},  /* two images, so the channels of a part are not contiguous: not divided */
      {1, 120, 64, 128, true, false, false, "Relu"}, /* half of 120 channels is not a multiple of 16: not divided */
  };
  int parted = 0;
  const int count = (int)(sizeof layers / sizeof *layers);
  for (int i = 0; i < count; ++i) parted += check(&layers[i], 41 + (uint64_t)i);
  print_message("%d of %d convolutions were divided into parts\n", parted, count);
  if (parted == 0)
    skip(); /* on this CPU, oneDNN does not support the algorithm, or needs less scratch because of the cache sizes */
}

static void test_failing_memory(void **state) {
  (void)state;
  static const layer l = {1, 128, 32, 128, true, true, false, "LeakyRelu"};
  const int64_t dims[4] = {1, l.inputs, l.extent, l.extent};
  test_allocator failing;
  uint64_t seed = 3;
  test_allocator_init(&failing);
  clv_graph *graph = build(&l, &failing.allocator);
  clv_tensor x = random_tensor(&failing.allocator, &seed, 4, dims);
  check_failing_memory(&failing, graph, &x);
  clv__release(&failing.allocator, x.data);
  clv__graph_destroy(graph);
}

int main(void) {
  cpu_host_threads = 1; /* the scratch depends on the number of threads */
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal), cmocka_unit_test(test_failing_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
