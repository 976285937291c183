/* Tests the elision of Concats over channels: which steps remain if norms, other Concats or other nodes read them, and if they
 * are outputs of the graph. Results are compared with the reference evaluator. For a long chain of Concats, the number of
 * inputs of all steps together must not grow with the square of the chain's length. */
#include "backends/cpu/run/executable.h"
#include "generator.h"

#define LONG_CHAIN 400

/* The epsilon of norms. It is so large that variance + epsilon is positive for every random variance. */
static const float two = 2.0f;

static made_value *join(generator *g, const made_value *a, const made_value *b, int64_t axis) {
  const int64_t out[4] = {a->dims[0], a->dims[1] + b->dims[1], a->dims[2], a->dims[3]};
  char list[64];
  snprintf(list, sizeof list, "%s,%s", a->name, b->name);
  const clv_attribute attribute = ints(g, "axis", false, 1, &axis);
  made_value *made = add(g, out);
  node(g, "Concat", list, made->name, &attribute, 1);
  return made;
}

static made_value *normalise(generator *g, const made_value *x, bool relu) {
  static const char *const roles[4] = {"scale", "shift", "mean", "variance"};
  clv_error error = {0};
  clv_value_id in[5], out;
  made_value *made = add(g, x->dims);
  assert_ok(clv__builder_value(g->t.builder, x->name, &in[0], &error), error);
  for (int i = 0; i < 4; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%s%d", roles[i], g->weights);
    test_graph_weight(&g->t, name, 1, &x->dims[1]);
    assert_ok(clv__builder_value(g->t.builder, name, &in[i + 1], &error), error);
  }
  g->weights++;
  assert_ok(clv__builder_value(g->t.builder, made->name, &out, &error), error);
  const clv_attribute epsilon = {.name = "epsilon", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = &two};
  assert_ok(clv__builder_node(g->t.builder, made->name, "", "BatchNormalization", in, 5, &out, 1, &epsilon, 1, &error), error);
  if (!relu) return made;
  made_value *positive = add(g, x->dims);
  node(g, "Relu", made->name, positive->name, NULL, 0);
  return positive;
}

/* Makes a graph of `layers` layers: a norm, a 1x1 and a 3x3 convolution, and a Concat of the layer's input and result. The Concat
 * of layer `seen` (counted from 1; 0: none) is also an output or, if `pooled` is set, read by a pool whose result is an output.
 */
static clv_graph *make_graph(const clv_allocator *allocator, uint64_t seed, int layers, int seen, bool pooled) {
  static const int64_t channels[] = {32, 16, 20, 8};
  generator g = {.seed = seed};
  const int64_t dims[4] = {1 + pick(&g, 2), 3, 6 + pick(&g, 8), 6 + pick(&g, 8)};
  clv_error error = {0};
  char outputs[64] = "";
  test_graph_begin(&g.t, allocator, seed);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  made_value *x = add(&g, dims);
  test_graph_input(&g.t, "v0", CLV_F32, 4, dims);
  x = convolve_same(&g, x, 64, 3);
  for (int i = 1; i <= layers; ++i) {
    made_value *made = convolve_same(&g, convolve_same(&g, normalise(&g, x, i % 3 != 0), 32, 1), channels[pick(&g, 4)], 3);
    x = pick(&g, 3) == 0 ? join(&g, made, x, 1) : join(&g, x, made, -3);
    if (i != seen) continue;
    const made_value *end = x;
    if (pooled) {
      const int64_t out[4] = {x->dims[0], x->dims[1], 1, 1};
      made_value *least = add(&g, out);
      node(&g, "GlobalMaxPool", x->name, least->name, NULL, 0);
      end = least;
    }
    snprintf(outputs, sizeof outputs, "%s,", end->name);
  }
  x = convolve_same(&g, normalise(&g, x, true), 16, 1);
  snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s", x->name);
  return test_graph_end(&g.t, outputs);
}

static int count_steps(const clv_graph *graph, const char *what) {
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  int count = 0;
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, (clv_graph *)graph, NULL, &error), error);
  const clv__cpu_variant *variant = program.executable->variant;
  for (size_t s = 0; s < variant->step_count; ++s) count += strcmp(variant->steps[s].what, what) == 0;
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  return count;
}

static void test_layers(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const int layers = 1 + (int)(seed % 5), seen = (int)(seed % 3 == 0) * layers;
    clv_graph *graph = make_graph(clv__allocator_default(), seed, layers, seen, seed % 2 == 0);
    uint64_t data_seed = seed * 31;
    clv_tensor x = random_tensor(graph->allocator, &data_seed, 4, graph->values[graph->inputs[0]].type.dims);
    char what[32];
    snprintf(what, sizeof what, "seed %d", (int)seed);
    cpu_host_threads = seed % 4 == 0 ? 2 : 1;
    assert_int_equal(compare_with_reference(graph, &x, NULL, NULL, what), 0);
    assert_int_equal(count_steps(graph, "Concat"), seen > 0); /* only the Concat of layer `seen` remains */
    assert_int_equal(count_steps(graph, "BatchNormalization"), layers + 1);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
}

/* Each Concat joins the result of the previous one with the input x. If every Concat became a step that joins copies of x, the
 * steps together would have 80,000 inputs. */
static void test_long_chain(void **state) {
  (void)state;
  test_graph t;
  clv_error error = {0};
  const clv_allocator *allocator = clv__allocator_default();
  test_graph_begin(&t, allocator, 5);
  assert_ok(clv__builder_import(t.builder, "", 17, &error), error);
  test_graph_input(&t, "x", CLV_F32, 4, (int64_t[]){1, 1, 2, 2});
  char last[16] = "x", name[16], list[64];
  const int64_t axis = 1;
  for (int i = 1; i <= LONG_CHAIN; ++i) {
    snprintf(name, sizeof name, "c%d", i);
    snprintf(list, sizeof list, "%s,x", last);
    test_graph_node_ints(&t, name, "Concat", list, name, "axis", false, 1, &axis);
    snprintf(last, sizeof last, "%s", name);
  }
  clv_graph *graph = test_graph_end(&t, last);
  cpu_host cpu;
  cpu_program program;
  uint64_t seed = 3;
  clv_tensor x = random_tensor(allocator, &seed, 4, graph->values[graph->inputs[0]].type.dims);
  cpu_host_threads = 1;
  assert_int_equal(compare_with_reference(graph, &x, NULL, NULL, "chain"), 0);
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  const clv__cpu_variant *variant = program.executable->variant;
  size_t pieces = 0;
  for (size_t s = 0; s < variant->step_count; ++s) {
    assert_true(variant->steps[s].input_count <= 128);
    pieces += variant->steps[s].input_count;
  }
  assert_true(variant->step_count < LONG_CHAIN / 50);
  assert_in_range(pieces, LONG_CHAIN + 1, LONG_CHAIN + LONG_CHAIN / 50);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__release(allocator, x.data);
  clv__graph_destroy(graph);
}

static void test_failing_memory(void **state) {
  (void)state;
  test_allocator failing;
  test_allocator_init(&failing);
  clv_graph *graph = make_graph(&failing.allocator, 2, 2, 0, false);
  uint64_t seed = 9;
  clv_tensor x = random_tensor(&failing.allocator, &seed, 4, graph->values[graph->inputs[0]].type.dims);
  check_failing_memory(&failing, graph, &x);
  clv__release(&failing.allocator, x.data);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_long_chain),
                                     cmocka_unit_test(test_failing_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
