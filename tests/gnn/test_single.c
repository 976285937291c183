/* Tests runs of a whole graph on one device, the reference for other runs, against sums in double: random graphs, three
 * types of models, one to four layers. Also tests what such a run rejects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn.h"
#include "gnn/run/single.h"
#include "gnn/run/sweep.h"
#include "machines.h"
#include "support.h"

static float *run(machine *m, const clv__gnn_model *model, const test_gnn *gnn, uint32_t device) {
  const clv__gnn_layer *last = &model->layers[model->layer_count - 1];
  const int64_t dims[] = {gnn->vertex_count, clv__gnn_layer_width(last)};
  clv__gnn_single *single;
  clv_error error = {0};
  clv_tensor out = clv__tensor_make(CLV_F32, 2, dims, malloc((size_t)(dims[0] * dims[1]) * sizeof(float)));
  assert_non_null(out.data);
  assert_ok(clv__gnn_single_create(m->devices, device, model, gnn->graph, &single, &error), error);
  for (int i = 0; i < 2; ++i)
    assert_ok(clv__gnn_single_run(single, NULL, &out, &error), error); /* the second run may replay what the first one captured */
  clv__gnn_single_destroy(single);
  return out.data;
}

static void test_random_graphs(void **state) {
  (void)state;
  static const struct {
    uint32_t vertices;
    uint64_t edges;
  } sizes[] = {{1, 0}, {1, 3}, {2, 1}, {7, 0}, {23, 61}, {64, 128}, {300, 2500}};
  machine m = open_machine("cpu");
  uint64_t seed = 7;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    for (int type = 0; type < 3; ++type) {
      for (uint32_t layers = 1; layers <= 4; ++layers) {
        uint32_t features = 1 + (uint32_t)(test_random(&seed) % 20);
        test_gnn gnn;
        char what[96];
        test_gnn_make(&gnn, clv__allocator_default(), sizes[s].vertices, sizes[s].edges, features, test_random(&seed));
        clv__gnn_model *model =
            test_gnn_model(clv__allocator_default(), (clv__gnn_type)type, layers, features, test_random(&seed));
        double *expected = test_gnn_expected(&gnn, model);
        float *actual = run(&m, model, &gnn, layers % 2 == 0 ? 0 : CLV__NO_ID);
        snprintf(what, sizeof what, "type %d, %u layers, %u vertices", type, layers, sizes[s].vertices);
        test_gnn_compare(expected, actual, sizes[s].vertices, clv__gnn_layer_width(&model->layers[layers - 1]), what);
        free(expected), free(actual);
        clv__gnn_model_destroy(model);
        test_gnn_finish(&gnn);
      }
    }
  }
  close_machine(&m);
}

/* Graphs that are so large that layers run in pieces. The last pieces overlap. Layers become wider or narrower. */
static void test_large(void **state) {
  (void)state;
  enum { VERTICES = 36001, EDGES = 80000, FEATURES = 60 };
  machine m = open_machine("cpu");
  bool seen[3][2] = {0};
  for (uint64_t seed = 1; seed <= 9; ++seed) {
    clv__gnn_type type = (clv__gnn_type)(seed % 3);
    uint32_t layers = type == CLV__GNN_SAGE ? 3 : 1; /* with three layers, a layer reads what the previous one has just written */
    test_gnn gnn;
    clv__stages stages;
    char what[48];
    clv__gnn_model *model = test_gnn_model(clv__allocator_default(), type, layers, FEATURES, seed);
    clv__stages_of(type, model->layers, CLV_F32, &stages);
    if (!seen[type][stages.transform_first]) {
      seen[type][stages.transform_first] = true;
      test_gnn_make(&gnn, clv__allocator_default(), VERTICES, EDGES, FEATURES, seed);
      assert_int_equal(clv__sweep_find(&stages, clv__stages_sweep_from(&stages), stages.count, &gnn.graph->csr).piece > 0,
                       type != CLV__GNN_GCN);
      double *expected = test_gnn_expected(&gnn, model);
      float *actual = run(&m, model, &gnn, 0);
      snprintf(what, sizeof what, "large, type %d, seed %d", (int)type, (int)seed);
      test_gnn_compare(expected, actual, VERTICES, clv__gnn_layer_width(&model->layers[layers - 1]), what);
      free(expected), free(actual);
      test_gnn_finish(&gnn);
    }
    clv__gnn_model_destroy(model);
  }
  assert_true(seen[CLV__GNN_SAGE][0] && seen[CLV__GNN_SAGE][1] && seen[CLV__GNN_GAT][1]);
  close_machine(&m);
}

static void test_refusals(void **state) {
  (void)state;
  machine m = open_machine("npu,cpu");
  const clv_allocator *allocator = clv__allocator_default();
  clv__gnn_model *model = test_gnn_model(allocator, CLV__GNN_GCN, 2, 9, 1);
  clv__gnn_single *single;
  clv__gnn_graph *bare;
  clv_error error = {0};
  test_gnn gnn;
  test_gnn_make(&gnn, allocator, 20, 50, 8, 3);
  assert_int_equal(clv__gnn_single_create(m.devices, CLV__NO_ID, model, gnn.graph, &single, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "the graph has 8 features per vertex, but layer 0 of the model reads 9");
  assert_null(single);
  assert_ok(clv__gnn_graph_make(allocator, 20, 50, gnn.sources, gnn.destinations, NULL, NULL, &bare, &error), error);
  assert_int_equal(clv__gnn_single_create(m.devices, CLV__NO_ID, model, bare, &single, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "no features"));
  test_gnn_finish(&gnn);
  test_gnn_make(&gnn, allocator, 20, 50, 9, 3);
  assert_int_equal(clv__gnn_single_create(m.devices, 0, model, gnn.graph, &single, &error),
                   CLV_NOT_SUPPORTED); /* the NPU alone does not support the layer */
  assert_non_null(strstr(error.message, "layer 0: block "));
  assert_non_null(strstr(error.message, "SparseAggregate"));
  clv__gnn_graph_destroy(bare);
  clv__gnn_model_destroy(model);
  test_gnn_finish(&gnn);
  close_machine(&m);
}

/* Planning may divide the model between two devices, as it does for any model: products run on the virtual NPU, the rest on the
 * CPU. */
static void test_two_devices(void **state) {
  (void)state;
  machine m = open_machine("npu,cpu");
  for (int type = 0; type < 3; ++type) {
    test_gnn gnn;
    test_gnn_make(&gnn, clv__allocator_default(), 60, 300, 9, (uint64_t)type);
    clv__gnn_model *model = test_gnn_model(clv__allocator_default(), (clv__gnn_type)type, 2, 9, 17);
    double *expected = test_gnn_expected(&gnn, model);
    float *actual = run(&m, model, &gnn, CLV__NO_ID);
    test_gnn_compare(expected, actual, 60, clv__gnn_layer_width(&model->layers[1]), "npu,cpu");
    free(expected), free(actual);
    clv__gnn_model_destroy(model);
    test_gnn_finish(&gnn);
  }
  close_machine(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_graphs),
      cmocka_unit_test(test_large),
      cmocka_unit_test(test_two_devices),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
