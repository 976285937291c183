/* Invalid graphs that are rejected, topological sorting, and accessors called with structs of other versions. */
#include "machine.h"

#include "graph/view.h"

static clv_status node(clv__builder *builder, const char *op, const char *in, const char *out, const char *out2,
                       clv_error *error) {
  clv_value_id inputs[1], outputs[2];
  CLV__TRY(clv__builder_value(builder, in, &inputs[0], error));
  CLV__TRY(clv__builder_value(builder, out, &outputs[0], error));
  if (out2 != NULL) CLV__TRY(clv__builder_value(builder, out2, &outputs[1], error));
  return clv__builder_node(builder, "", "", op, inputs, 1, outputs, out2 != NULL ? 2 : 1, NULL, 0, error);
}

static void outputs_have_one_maker(void **state) {
  (void)state;
  test_allocator counting;
  test_allocator_init(&counting);
  test_graph g;
  clv_error error = {0};
  test_graph_begin(&g, &counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2));
  assert_ok(node(g.builder, "Neg", "x", "a", NULL, &error), error);
  assert_int_equal(node(g.builder, "Split", "x", "b", "b", &error), CLV_INVALID_MODEL);
  assert_string_equal(error.message, "node 'Split' (Split): output 'b' is listed twice");
  clv__builder_destroy(g.builder);
  test_graph_begin(&g, &counting.allocator, 1);
  assert_ok(node(g.builder, "Neg", "x", "a", NULL, &error), error);
  assert_int_equal(node(g.builder, "Abs", "x", "a", NULL, &error), CLV_INVALID_MODEL);
  assert_string_equal(error.message, "node 'Abs' (Abs): output 'a' is already an output of another node");
  clv__builder_destroy(g.builder);
  assert_int_equal(counting.live, 0);
}

static void inputs_are_listed_once(void **state) {
  (void)state;
  test_graph g;
  clv_error error = {0};
  clv_value_id x;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2));
  assert_ok(clv__builder_value(g.builder, "x", &x, &error), error);
  assert_int_equal(clv__builder_input(g.builder, x, &error), CLV_INVALID_MODEL);
  assert_string_equal(error.message, "input 'x' is listed twice");
  clv__builder_destroy(g.builder);
}

static void refuse(void (*make)(test_graph *g), const char *text) {
  test_allocator counting;
  test_allocator_init(&counting);
  test_graph g;
  clv_error error = {0};
  clv_graph *graph;
  clv_value_id y;
  test_graph_begin(&g, &counting.allocator, 1);
  make(&g);
  assert_ok(clv__builder_value(g.builder, "y", &y, &error), error);
  assert_ok(clv__builder_output(g.builder, y, &error), error);
  assert_int_equal(clv__builder_finish(g.builder, &graph, &error), CLV_INVALID_MODEL);
  if (strstr(error.message, text) == NULL) fail_msg("the error message '%s' does not contain '%s'", error.message, text);
  assert_null(graph);
  assert_int_equal(counting.live, 0);
}

static void reads_itself(test_graph *g) {
  test_graph_node(g, "self", "Neg", "y", "y");
}
static void cycle(test_graph *g) {
  test_graph_input(g, "x", CLV_F32, 1, DIMS(2));
  test_graph_node(g, "a", "Add", "x,c", "b");
  test_graph_node(g, "b", "Neg", "b", "c");
  test_graph_node(g, "y", "Neg", "c", "y");
}
static void orphan(test_graph *g) {
  test_graph_node(g, "a", "Neg", "nobody", "y");
}
static void no_output(test_graph *g) {
  test_graph_input(g, "x", CLV_F32, 1, DIMS(2));
}
static void made_input(test_graph *g) {
  test_graph_input(g, "x", CLV_F32, 1, DIMS(2));
  test_graph_input(g, "y", CLV_F32, 1, DIMS(2));
  test_graph_node(g, "a", "Neg", "x", "y");
}

static void graphs_that_are_none(void **state) {
  (void)state;
  refuse(reads_itself, "has a cycle");
  refuse(cycle, "has a cycle");
  refuse(orphan, "reads 'nobody', which is not an input");
  refuse(no_output, "output 'y' is not produced by a node");
  refuse(made_input, "'y' is both an input and the output of node 'a'");
}

/* The builder must sort nodes that are added in reverse order. The chain is so long that a recursive sort would overflow the
 * stack. */
static void order_is_found(void **state) {
  (void)state;
  enum { LENGTH = 100000 };
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "v0", CLV_F32, 1, DIMS(2));
  for (int i = LENGTH; i-- > 0;) {
    char in[16], out[16];
    snprintf(in, sizeof in, "v%d", i);
    snprintf(out, sizeof out, "v%d", i + 1);
    test_graph_node(&g, i % 2 == 0 ? "same" : "", "Neg", in, out);
  }
  char last[16];
  snprintf(last, sizeof last, "v%d", LENGTH);
  clv_graph *graph = test_graph_end(&g, last);
  clv__map names;
  clv__map_init(&names, graph->allocator);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    char in[16];
    snprintf(in, sizeof in, "v%u", n);
    assert_string_equal(graph->values[graph->nodes[n].inputs[0]].name, in);
    assert_int_equal(clv__map_find(&names, graph->nodes[n].name), CLV__MAP_NONE); /* repeated and empty names are made unique */
    assert_true(clv__map_set(&names, graph->nodes[n].name, n));
  }
  clv__map_finish(&names);
  clv_graph_destroy(graph);
}

/* An accessor does not write beyond the caller's struct_size. */
static void answers_fit_the_asker(void **state) {
  (void)state;
  clv_host host = {0};
  clv__view_fill_host(&host);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_node_info info;
  memset(&info, 0xa5, sizeof info);
  info.struct_size = (uint32_t)offsetof(clv_node_info, inputs);
  host.graph_node(graph->whole, 0, &info);
  assert_string_equal(info.op, "Conv");
  assert_int_equal(info.input_count, 2);
  assert_int_equal((uintptr_t)info.attributes & 0xff, 0xa5);
  struct {
    clv_value_info known;
    uint64_t beyond;
  } later;
  memset(&later, 0xa5, sizeof later);
  later.known.struct_size = sizeof later;
  host.graph_value(graph->whole, host.graph_input(graph->whole, 0), &later.known);
  assert_string_equal(later.known.name, "x");
  assert_true(later.known.is_input);
  assert_int_equal(later.beyond & 0xff, 0xa5);
  clv_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(outputs_have_one_maker), cmocka_unit_test(inputs_are_listed_once), cmocka_unit_test(graphs_that_are_none),
      cmocka_unit_test(order_is_found),         cmocka_unit_test(answers_fit_the_asker),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
