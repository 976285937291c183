/* For each value of a partition: how many roundings to integers are on the way to it, and the step of the quantisation grid on
 * which its numbers lie. Verification needs both, because two correct results may differ by a few steps. */
#include "models.h"
#include "support.h"

#include "cleave/graph.h"

#include "analysis/rounding.h"
#include "analysis/shapes.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static void expect(const clv_graph_view *view, const clv__rounding *roundings, const char *name, uint32_t times, double step) {
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (strcmp(view->graph->values[view->values[v]].name, name) != 0) continue;
    if (roundings[v].times != times) fail_msg("%s: rounded %u times, not %u", name, roundings[v].times, times);
    assert_float_equal(roundings[v].step, step, 1e-7);
    return;
  }
  fail_msg("the graph has no value %s", name);
}

static void steps_follow_the_grid(void **state) {
  (void)state;
  clv_error error = {0};
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  float fine = 0.02f, coarse = -0.5f;
  int8_t zero = 0;
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 4));
  test_graph_input(&g, "given", CLV_F32, 2, DIMS(8, 4));
  test_graph_constant(&g, "fine", &(clv_tensor){CLV_F32, 0, {0}, &fine});
  test_graph_constant(&g, "coarse", &(clv_tensor){CLV_F32, 0, {0}, &coarse});
  test_graph_constant(&g, "zero", &(clv_tensor){CLV_I8, 0, {0}, &zero});
  test_graph_node(&g, "1", "QuantizeLinear", "x,fine,zero", "q");
  test_graph_node(&g, "2", "DequantizeLinear", "q,fine,zero", "d");
  test_graph_node(&g, "3", "Relu", "d", "r");
  test_graph_node(&g, "4", "Sigmoid", "r", "s");
  test_graph_node(&g, "5", "QuantizeLinear", "s,coarse,zero", "q2");
  test_graph_node(&g, "6", "Transpose", "q2", "t");
  test_graph_node(&g, "7", "DequantizeLinear", "t,coarse,zero", "d2");
  test_graph_node(&g, "8", "Concat", "d2,d", "c");
  test_graph_node(&g, "9", "MatMul", "c,given", "m");
  test_graph_node(&g, "10", "Sigmoid", "given", "exact");
  test_graph_node(&g, "11", "DynamicQuantizeLinear", "s", "q3,scale,middle");
  test_graph_node(&g, "12", "DequantizeLinear", "q3,scale,middle", "d3");
  clv_graph *graph = test_graph_end(&g, "m,exact,d3");
  clv__shapes *shapes;
  assert_ok(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), error);
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv_graph_view *view;
  assert_ok(clv__view_create_whole(graph, shapes->types, &arena, &view, &error), error);
  clv__rounding *roundings = clv__arena_allocate_zero(&arena, view->value_count, sizeof *roundings);
  clv__view_roundings(view, roundings);
  expect(view, roundings, "x", 0, 0);
  expect(view, roundings, "q", 1, 1);
  expect(view, roundings, "d", 1, 0.02);
  expect(view, roundings, "r", 1, 0.02);
  expect(view, roundings, "s", 1, 0);
  expect(view, roundings, "q2", 2, 1);
  expect(view, roundings, "t", 2, 1);
  expect(view, roundings, "d2", 2, 0.5);
  expect(view, roundings, "c", 2, 0.5);
  expect(view, roundings, "m", 2, 0);
  expect(view, roundings, "exact", 0, 0);
  expect(view, roundings, "q3", 2, 1);
  expect(view, roundings, "scale", 1, 0);
  expect(view, roundings, "middle", 2, 1);
  expect(view, roundings, "d3", 2, 0);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  clv_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_follow_the_grid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
