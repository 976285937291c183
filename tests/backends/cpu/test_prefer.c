/* Tests convolutions for which onednn/prefer.cpp selects another implementation than oneDNN's first: those with one channel per
 * group, and those whose output channels leave much of the last block of 16 empty. Functions and sums follow them. Results are
 * compared with the reference evaluator. */
#include "backends/cpu/run/executable.h"
#include "generator.h"

#define SEEDS 60

typedef struct counts {
  int depthwise, pointwise;
} counts;

static made_value *convolve(generator *g, made_value *x, int64_t channels, int64_t kernel, int64_t stride, bool is_depthwise) {
  const int64_t groups = is_depthwise ? channels : 1;
  const int64_t dims[4] = {channels, is_depthwise ? 1 : x->dims[1], kernel, kernel};
  const int64_t pads[4] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2}, strides[2] = {stride, stride};
  const int64_t out[4] = {x->dims[0], channels, (x->dims[2] - 1) / stride + 1, (x->dims[3] - 1) / stride + 1};
  char w[16], b[16], list[64];
  sprintf(w, "w%d", g->weights++);
  sprintf(b, "w%d", g->weights++);
  test_graph_weight(&g->t, w, 4, dims);
  test_graph_weight(&g->t, b, 1, &channels);
  snprintf(list, sizeof list, "%s,%s,%s", x->name, w, b);
  const clv_attribute attributes[3] = {ints(g, "pads", true, 4, pads), ints(g, "strides", true, 2, strides),
                                       ints(g, "group", false, 1, &groups)};
  made_value *made = add(g, out);
  node(g, "Conv", list, made->name, attributes, 3);
  return made;
}

static made_value *activate(generator *g, made_value *x) {
  static const char *const ops[] = {"Relu", "HardSwish", "Sigmoid", "Elu", "Tanh"};
  if (pick(g, 4) == 0) return x;
  made_value *made = add(g, x->dims);
  node(g, ops[pick(g, 5)], x->name, made->name, NULL, 0);
  return made;
}

/* Makes blocks as in MobileNet: a 1x1 convolution to more channels, a depthwise convolution, a 1x1 convolution back to fewer
 * channels, and a sum with the block's input. */
static clv_graph *make_graph(uint64_t seed) {
  static const int64_t narrow[] = {24, 16, 40, 20, 8, 12, 56, 72, 120}, wide[] = {32, 48, 64, 96, 20, 36};
  generator g = {.seed = seed};
  const int64_t channels = narrow[pick(&g, 9)], middle = wide[pick(&g, 6)];
  const int64_t dims[4] = {1 + pick(&g, 2), channels, 5 + pick(&g, 14), 5 + pick(&g, 14)};
  const int64_t kernel = 3 + 2 * pick(&g, 3), stride = 1 + pick(&g, 2);
  char list[64];
  clv_error error = {0};
  test_graph_begin(&g.t, clv__allocator_default(), seed);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  made_value *x = add(&g, dims);
  test_graph_input(&g.t, "v0", CLV_F32, 4, dims);
  x = convolve(&g, x, channels, 1, 1, false);
  for (int i = 0; i < 2; ++i) {
    made_value *first = x;
    x = activate(&g, convolve(&g, x, middle, 1, 1, false));
    x = activate(&g, convolve(&g, x, middle, kernel, i == 0 ? 1 : stride, true));
    x = convolve(&g, x, channels, 1, 1, false);
    if (memcmp(first->dims, x->dims, sizeof x->dims) != 0) continue;
    made_value *sum = add(&g, x->dims);
    snprintf(list, sizeof list, "%s,%s", x->name, first->name);
    node(&g, "Add", list, sum->name, NULL, 0);
    x = activate(&g, sum);
  }
  return test_graph_end(&g.t, x->name);
}

/* Counts the selected implementations in the variant. Fails if an implementation remains that should have been replaced. */
static void look(const clv__cpu_variant *variant, counts *found, const char *what) {
  for (size_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    if (step->kind != CLV__CPU_STEP_PRIMITIVE || step->node == NULL || strcmp(step->node->op, "Conv") != 0) continue;
    const clv__dnn_primitive *primitive = step->primitive;
    int64_t dims[CLV_MAX_RANK];
    clv__dnn_layout_dims(primitive->destination, dims);
    if (strncmp(primitive->implementation, "brdgmm_dw", 9) == 0 && dims[3] >= 8) {
      fail_msg("%s: oneDNN's %s computes rows of %d pixels, but should have been replaced from 8 pixels on", what,
               primitive->implementation, (int)dims[3]);
    }
    found->depthwise += strncmp(primitive->implementation, "jit_dw", 6) == 0;
    found->pointwise += strcmp(primitive->implementation, "jit_1x1:avx2") == 0;
  }
}

static void test_blocks(void **state) {
  (void)state;
  counts found = {0};
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    clv_graph *graph = make_graph(seed);
    uint64_t data_seed = seed * 31;
    clv_tensor x = random_tensor(graph->allocator, &data_seed, 4, graph->values[graph->inputs[0]].type.dims);
    clv_error error = {0};
    cpu_host cpu;
    cpu_program program;
    char what[32];
    snprintf(what, sizeof what, "seed %d", (int)seed);
    cpu_host_threads = seed % 8 == 0 ? 2 : 1;
    assert_int_equal(compare_with_reference(graph, &x, NULL, NULL, what), 0);
    assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
    assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
    look(program.executable->variant, &found, what);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
#if defined(__x86_64__)
  char library[64];
  clv__dnn_describe(library, sizeof library); /* names the instruction set of oneDNN, which CLEAVE_ISA may limit */
  if (strstr(library, "avx512") == NULL) return;
  assert_true(found.depthwise >= SEEDS / 2);
  if (__builtin_cpu_is("amdfam19h")) assert_true(found.pointwise >= SEEDS / 2);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
