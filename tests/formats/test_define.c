/* Tests the definitions of Cleave's own operators in ONNX files, on the conformance cases of these operators: a written model
 * is read back with the operators, and the standard operators of the definitions give the same results. */
#include <math.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "check/check.h"
#include "check/run.h"
#include "formats/onnx/onnx.h"
#include "operators/body.h"
#include "support.h"

enum { SEEDS = 5, LEAST_CASES = 20 };

typedef clv_status (*writer)(const clv_graph_view *view, size_t inline_limit_bytes, const clv_allocator *allocator, void **data,
                             size_t *size_bytes, clv_error *error);

/* Writes the graph, with the bytes of all its constants, and reads the result. `data` gets the written bytes, which the new
 * graph uses. */
static clv_graph *rewritten(const clv_graph *graph, writer write, void **data) {
  clv_error error = {0};
  clv_graph *again;
  size_t size_bytes;
  assert_ok(write(graph->whole, SIZE_MAX, clv__allocator_default(), data, &size_bytes, &error), error);
  assert_ok(clv__onnx_load_memory(clv__allocator_default(), *data, size_bytes, false, &again, &error), error);
  return again;
}

static uint32_t count_own(const clv_graph *graph) {
  uint32_t count = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) count += strcmp(graph->nodes[n].domain, "ai.cleave") == 0;
  return count;
}

static void check_same_nodes(const clv_graph *graph, const char *what) {
  void *data;
  clv_graph *again = rewritten(graph, clv__onnx_write, &data);
  if (again->node_count != graph->node_count)
    fail_msg("%s: %u nodes were read, expected %u", what, again->node_count, graph->node_count);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    assert_string_equal(again->nodes[n].op, graph->nodes[n].op);
    assert_string_equal(again->nodes[n].domain, graph->nodes[n].domain);
    assert_true(again->nodes[n].attributes.count >= graph->nodes[n].attributes.count); /* defaults are written */
  }
  clv__graph_destroy(again);
  clv__release(clv__allocator_default(), data);
}

static void check_same_results(const clv__check_case *made, const char *what) {
  clv_tensor expected = {.data = NULL}, actual = {.data = NULL};
  clv_error error = {0};
  char text[300];
  void *data;
  clv_graph *standard = rewritten(made->graph, clv__onnx_write_standard, &data);
  if (count_own(standard) > 0) fail_msg("%s: operators of ai.cleave are left", what);
  assert_int_equal(made->graph->output_count, 1);
  assert_ok(clv__graph_evaluate(made->graph, made->inputs, NULL, &expected, NULL, NULL, clv__allocator_default(), &error), error);
  if (clv__graph_evaluate(standard, made->inputs, NULL, &actual, NULL, NULL, clv__allocator_default(), &error) != CLV_OK)
    fail_msg("%s: %s", what, error.message);
  if (!clv__check_same(&expected, &actual, "y", text, sizeof text)) fail_msg("%s: %s", what, text);
  clv__release(clv__allocator_default(), expected.data);
  clv__release(clv__allocator_default(), actual.data);
  clv__graph_destroy(standard);
  clv__release(clv__allocator_default(), data);
}

static void definitions_are_the_operators(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    uint32_t cases = 0;
    for (uint32_t i = 0; i < clv__check_case_count(); ++i) {
      clv__check_case made;
      clv_error error = {0};
      assert_ok(clv__check_case_make(clv__allocator_default(), i, seed, &made, &error), error);
      if (count_own(made.graph) > 0) {
        check_same_nodes(made.graph, made.what);
        check_same_results(&made, made.what);
        ++cases;
      }
      clv__check_case_finish(&made);
    }
    assert_true(cases >= LEAST_CASES);
  }
}

/* If a term is NaN, the result is NaN; rows without edges are 0. */
static void nans_stay(void **state) {
  (void)state;
  static const char *const hows[] = {"sum", "mean", "max"};
  for (size_t h = 0; h < sizeof hows / sizeof *hows; ++h) {
    const clv_string text = {hows[h], strlen(hows[h])};
    const clv_attribute reduce = {.name = "reduce", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &text};
    float x[] = {1, NAN, -INFINITY, 3};
    int64_t offsets[] = {0, 2, 2, 3}, sources[] = {0, 1, 2, 9};
    clv_tensor inputs[] = {clv__tensor_make(CLV_F32, 2, (const int64_t[]){4, 1}, x),
                           clv__tensor_make(CLV_I64, 1, (const int64_t[]){4}, offsets),
                           clv__tensor_make(CLV_I64, 1, (const int64_t[]){4}, sources)};
    clv_tensor actual = {.data = NULL};
    clv__builder *builder;
    clv_value_id in[3], out;
    clv_graph *graph;
    clv_error error = {0};
    void *data;
    assert_ok(clv__builder_create(clv__allocator_default(), &builder, &error), error);
    assert_ok(clv__builder_import(builder, "", 20, &error), error);
    assert_ok(clv__builder_import(builder, "ai.cleave", 1, &error), error);
    for (int i = 0; i < 3; ++i) {
      const clv_tensor type = clv__tensor_make(inputs[i].dtype, inputs[i].rank, inputs[i].dims, NULL);
      assert_ok(clv__builder_value(builder, (const char *[]){"x", "o", "s"}[i], &in[i], &error), error);
      clv__builder_type(builder, in[i], &type);
      assert_ok(clv__builder_input(builder, in[i], &error), error);
    }
    assert_ok(clv__builder_value(builder, "y", &out, &error), error);
    assert_ok(clv__builder_node(builder, "node", "ai.cleave", "SparseAggregate", in, 3, &out, 1, &reduce, 1, &error), error);
    assert_ok(clv__builder_output(builder, out, &error), error);
    assert_ok(clv__builder_finish(builder, &graph, &error), error);
    clv_graph *standard = rewritten(graph, clv__onnx_write_standard, &data);
    assert_ok(clv__graph_evaluate(standard, inputs, NULL, &actual, NULL, NULL, clv__allocator_default(), &error), error);
    const float *y = actual.data;
    assert_true(isnan(y[0]) && y[1] == 0 && y[2] == -INFINITY);
    clv__release(clv__allocator_default(), actual.data);
    clv__graph_destroy(standard);
    clv__release(clv__allocator_default(), data);
    clv__graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(definitions_are_the_operators),
      cmocka_unit_test(nans_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
