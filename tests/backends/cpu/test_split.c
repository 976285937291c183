/* Tests Split of values that are stored in a convolution's layout: pieces of equal and unequal extents, along channels and
 * pixels, read by nodes that accept that layout and by nodes that do not. Results are compared with the reference evaluator. */
#include "backends/cpu/run/executable.h"
#include "generator.h"

#define SEEDS 80

/* Splits x into `count` pieces. Returns the index of the first piece in g->values. */
static int split(generator *g, const made_value *x, int64_t axis, int count) {
  const int first = g->count;
  int64_t sizes[4], left = x->dims[axis];
  char name[16], outputs[64] = "";
  clv_error error = {0};
  clv_value_id in[2], out[4];
  for (int i = 0; i < count; ++i) {
    const int64_t even = left / (count - i);
    int64_t dims[4];
    sizes[i] = i + 1 == count ? left : even > 16 && pick(g, 2) == 0 ? even / 16 * 16 : 1 + pick(g, even);
    left -= sizes[i];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = sizes[i];
    const made_value *piece = add(g, dims);
    snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s ", piece->name);
    assert_ok(clv__builder_value(g->t.builder, piece->name, &out[i], &error), error);
  }
  snprintf(name, sizeof name, "s%d", g->weights++);
  test_graph_ints(&g->t, name, count, sizes);
  assert_ok(clv__builder_value(g->t.builder, x->name, &in[0], &error), error);
  assert_ok(clv__builder_value(g->t.builder, name, &in[1], &error), error);
  const int64_t given = pick(g, 2) == 0 ? axis : axis - 4;
  const clv_attribute attribute = ints(g, "axis", false, 1, &given);
  assert_ok(clv__builder_node(g->t.builder, outputs, "", "Split", in, 2, out, (uint32_t)count, &attribute, 1, &error), error);
  return first;
}

static clv_graph *make_graph(const clv_allocator *allocator, uint64_t seed) {
  static const int64_t channels[] = {32, 48, 64, 20, 33};
  generator g = {.seed = seed};
  const int64_t dims[4] = {1 + pick(&g, 2), 16, 6 + pick(&g, 8), 6 + pick(&g, 8)};
  clv_error error = {0};
  test_graph_begin(&g.t, allocator, seed);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  made_value *x = add(&g, dims);
  test_graph_input(&g.t, "v0", CLV_F32, 4, dims);
  x = convolve_same(&g, x, channels[pick(&g, 5)], pick(&g, 2) == 0 ? 3 : 1);
  const int64_t axis = pick(&g, 4) == 0 ? 2 + pick(&g, 2) : 1;
  const int count = 2 + (int)pick(&g, 3), first = split(&g, x, axis, count);
  char list[64] = "", outputs[64] = "";
  for (int i = 0; i < count; ++i) { /* concatenate the pieces in reverse order, some of them after another node */
    const int64_t kind = pick(&g, 4);
    made_value *piece = &g.values[first + count - 1 - i], *made = piece;
    if (kind == 0 && axis == 1) made = convolve_same(&g, piece, piece->dims[1], 1);
    if (kind == 1) node(&g, "Relu", piece->name, (made = add(&g, piece->dims))->name, NULL, 0);
    if (kind == 2) node(&g, "Erf", piece->name, (made = add(&g, piece->dims))->name, NULL, 0);
    snprintf(list + strlen(list), sizeof list - strlen(list), i > 0 ? ",%s" : "%s", made->name);
  }
  made_value *joined = add(&g, x->dims);
  const clv_attribute attribute = ints(&g, "axis", false, 1, &axis);
  node(&g, "Concat", list, joined->name, &attribute, 1);
  x = convolve_same(&g, joined, 24, 1);
  const bool leaves = pick(&g, 3) == 0; /* whether one piece is an output, too */
  snprintf(outputs, sizeof outputs, leaves ? "%s,%s" : "%s", x->name, g.values[first].name);
  return test_graph_end(&g.t, outputs);
}

/* Whether each piece begins at the start of a block. The block size depends on the CPU. */
static bool may_split(const clv__cpu_variant *variant, const clv__dnn_layout *whole) {
  const int64_t block = clv__dnn_layout_channels(whole);
  for (uint32_t n = 0; n < variant->node_count && block > 0; ++n) {
    const clv__cpu_variant_node *node = &variant->nodes[n];
    if (node->dead || strcmp(node->source->op, "Split") != 0) continue;
    const int64_t channels = variant->values[node->inputs[0]].type.dims[1];
    int64_t begin = 0;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      const int64_t here = variant->values[node->outputs[i]].type.dims[1];
      if (here == channels) break; /* the pieces have all channels, so Split divides a spatial axis */
      if (block != channels && begin % block != 0) return false;
      begin += here;
    }
    return true;
  }
  return false;
}

static void test_pieces(void **state) {
  (void)state;
  int taken = 0;
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    clv_graph *graph = make_graph(clv__allocator_default(), seed);
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
    const clv__cpu_variant *variant = program.executable->variant;
    const clv__dnn_layout *whole = NULL; /* of the first convolution's result, which is split */
    bool has_pieces = false;
    for (size_t s = 0; s < variant->step_count; ++s) {
      const clv__cpu_step *step = &variant->steps[s];
      if (step->node == NULL || step->kind != CLV__CPU_STEP_PRIMITIVE) continue;
      has_pieces |= strcmp(step->what, "Split") == 0;
      if (whole == NULL && strcmp(step->node->op, "Conv") == 0) whole = step->primitive->destination;
    }
    const bool wanted = whole != NULL && may_split(variant, whole);
    if (has_pieces != wanted)
      fail_msg("%s: the convolution's result is %s", what,
               wanted ? "not split in its own layout, but should be" : "split in its own layout, but should not be");
    taken += has_pieces;
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
  print_message("%d of %d results of convolutions were split in their own layout\n", taken, SEEDS);
  /* With blocked channels, fewer results can be split in their own layout than with channels last. */
  assert_true(taken >= SEEDS / 8);
}

static void test_failing_memory(void **state) {
  (void)state;
  test_allocator failing;
  test_allocator_init(&failing);
  clv_graph *graph = make_graph(&failing.allocator, 2);
  uint64_t seed = 9;
  clv_tensor x = random_tensor(&failing.allocator, &seed, 4, graph->values[graph->inputs[0]].type.dims);
  check_failing_memory(&failing, graph, &x);
  clv__release(&failing.allocator, x.data);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_failing_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
