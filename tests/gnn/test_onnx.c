/* Tests models of PyTorch Geometric, exported by both ONNX exporters of PyTorch (models/make.py). The recognised model has the
 * weights of the state_dict and gives PyTorch Geometric's results. Other models are rejected, and the error names the node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "formats/arrays/npz.h"
#include "gnn.h"
#include "gnn/run/single.h"
#include "machines.h"
#include "support.h"

#define MODELS CLEAVE_SOURCE_DIR "/tests/gnn/models/"

static clv__gnn_model *read_model(const char *name, const char *suffix) {
  char path[512];
  clv_error error = {0};
  clv__gnn_model *model;
  snprintf(path, sizeof path, MODELS "%s%s", name, suffix);
  assert_ok(clv__gnn_model_read(clv__allocator_default(), path, &model, &error), error);
  return model;
}

static void same_tensor(const clv_tensor *a, const clv_tensor *b, const char *what) {
  size_t size_bytes;
  assert_int_equal(a->dtype, b->dtype);
  if (a->dtype == CLV_DTYPE_NONE) return;
  if (!clv__tensor_same_type(a, b) || !clv__tensor_size_bytes(a, &size_bytes) || memcmp(a->data, b->data, size_bytes) != 0)
    fail_msg("%s: the weights read from ONNX differ from the expected ones", what);
}

static void same_model(const clv__gnn_model *a, const clv__gnn_model *b, const char *what) {
  assert_int_equal(a->type, b->type);
  assert_int_equal(a->layer_count, b->layer_count);
  for (uint32_t i = 0; i < a->layer_count; ++i) {
    const clv__gnn_layer *x = &a->layers[i], *y = &b->layers[i];
    assert_int_equal(x->in, y->in);
    assert_int_equal(x->out, y->out);
    assert_int_equal(x->heads, y->heads);
    assert_int_equal(x->concat, y->concat);
    assert_int_equal(x->activation, y->activation);
    same_tensor(&x->neighbour, &y->neighbour, what);
    same_tensor(&x->self, &y->self, what);
    same_tensor(&x->bias, &y->bias, what);
    same_tensor(&x->att_src, &y->att_src, what);
    same_tensor(&x->att_dst, &y->att_dst, what);
  }
}

static clv_tensor read_expected(const char *name) {
  char path[512];
  clv_error error = {0};
  clv__npz *npz;
  clv_tensor tensor;
  snprintf(path, sizeof path, MODELS "%s_expected.npz", name);
  assert_ok(clv__npz_open(clv__allocator_default(), path, &npz, &error), error);
  assert_ok(clv__npz_read(npz, "out", &tensor, &error), error);
  clv__npz_close(npz);
  return tensor;
}

static void check_result(machine *m, const clv__gnn_model *model, const char *name, const char *what) {
  char path[512];
  clv_error error = {0};
  clv__gnn_graph *graph;
  clv__gnn_single *single;
  clv_tensor expected = read_expected(name), out = expected;
  size_t count = (size_t)(expected.dims[0] * expected.dims[1]);
  double *wide = malloc(count * sizeof *wide);
  out.data = malloc(count * sizeof(float));
  assert_true(wide != NULL && out.data != NULL);
  for (size_t i = 0; i < count; ++i) wide[i] = (double)((const float *)expected.data)[i];
  snprintf(path, sizeof path, MODELS "%s_graph.npz", name);
  assert_ok(clv__gnn_graph_read(clv__allocator_default(), path, &graph, &error), error);
  assert_ok(clv__gnn_single_create(m->devices, CLV__NO_ID, model, graph, &single, &error), error);
  assert_ok(clv__gnn_single_run(single, NULL, &out, &error), error);
  test_gnn_compare(wide, out.data, (size_t)expected.dims[0], (size_t)expected.dims[1], what);
  clv__gnn_single_destroy(single);
  clv__gnn_graph_destroy(graph);
  clv__release(clv__allocator_default(), expected.data);
  free(out.data), free(wide);
}

static void test_exported(void **state) {
  (void)state;
  static const char *const names[] = {"graphsage", "gcn", "gat"};
  machine m = open_machine("cpu");
  for (size_t i = 0; i < 3; ++i) {
    clv__gnn_model *json = read_model(names[i], ".json");
    check_result(&m, json, names[i], names[i]);
    for (int script = 0; script < 2; ++script) {
      clv__gnn_model *model = read_model(names[i], script ? "_script.onnx" : "_dynamo.onnx");
      same_model(json, model, names[i]);
      clv__gnn_model_destroy(model);
    }
    clv__gnn_model_destroy(json);
  }
  close_machine(&m);
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *part;
  } models[] = {
      {"sum", "on a random graph: it may lack self loops"},
      {"max", "node '"},
      {"without_loops", "on a random graph: it may lack self loops"},
      {"gatv2", "node '"},
      {"gin", "node '"},
      {"log_softmax", "(LogSoftmax)"},
      {"linear", "has no sum over edges"},
      {"slope", "on a random graph: it may lack self loops"},
      {"weighted", "input 'edge_weight'"},
  };
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
    char path[512];
    clv_error error = {0};
    clv__gnn_model *model;
    snprintf(path, sizeof path, MODELS "refused_%s.onnx", models[i].name);
    if (clv__gnn_model_read(clv__allocator_default(), path, &model, &error) != CLV_NOT_SUPPORTED)
      fail_msg("refused_%s.onnx must be rejected with CLV_NOT_SUPPORTED: %s", models[i].name, error.message);
    assert_null(model);
    if (strstr(error.message, models[i].part) == NULL)
      fail_msg("%s: '%s' is not in the error message: %s", models[i].name, models[i].part, error.message);
  }
}

/* Each allocation fails in turn; nothing may leak. */
static void test_memory(void **state) {
  (void)state;
  size_t step = 1;
  for (size_t fail_at = 1;; fail_at += step) {
    test_allocator counting;
    clv__gnn_model *model;
    clv_error error = {0};
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv_status status = clv__gnn_model_read(&counting.allocator, MODELS "gat_dynamo.onnx", &model, &error);
    clv__gnn_model_destroy(model);
    assert_int_equal(counting.live, 0);
    if (status == CLV_OK) break;
    if (status != CLV_OUT_OF_MEMORY)
      fail_msg("after allocation %zu failed, the status is not CLV_OUT_OF_MEMORY: %s", fail_at, error.message);
    step = 1 + fail_at / 100;
  }
}

/* An allocator that refuses to allocate more than 16 MiB at once, because damaged models may request any size. */
static void *allocate_some(void *user_data, size_t size_bytes, size_t alignment) {
  (void)user_data;
  return size_bytes > ((size_t)16 << 20) ? NULL : aligned_alloc(alignment, clv__align_up(size_bytes + 1, alignment));
}

static void release_some(void *user_data, void *pointer) {
  (void)user_data;
  free(pointer);
}

/* Models with some random bytes changed are read as another model, or rejected with a message. */
static void test_damaged(void **state) {
  (void)state;
  static const char *const names[] = {"graphsage_dynamo", "gcn_script", "gat_dynamo", "gat_script"};
  const clv_allocator allocator = {NULL, allocate_some, release_some};
  char folder[] = "/tmp/cleave-gnn-XXXXXX", path[512], damaged[64];
  uint64_t seed = 99;
  clv_error error = {0};
  assert_non_null(mkdtemp(folder));
  snprintf(damaged, sizeof damaged, "%s/model.onnx", folder);
  for (size_t i = 0; i < 160; ++i) {
    clv__file_map map;
    clv__gnn_model *model;
    snprintf(path, sizeof path, MODELS "%s.onnx", names[i % 4]);
    assert_ok(clv__file_map_open(path, &map, &error), error);
    uint8_t *bytes = malloc(map.size_bytes);
    assert_non_null(bytes);
    memcpy(bytes, map.data, map.size_bytes);
    for (uint64_t c = 0; c <= i % 7; ++c) bytes[test_random(&seed) % map.size_bytes] = (uint8_t)test_random(&seed);
    assert_ok(clv__file_write(damaged, bytes, map.size_bytes, &error), error);
    error.message[0] = '\0';
    if (clv__gnn_model_read(&allocator, damaged, &model, &error) != CLV_OK) assert_true(error.message[0] != '\0');
    clv__gnn_model_destroy(model);
    clv__file_map_close(&map);
    free(bytes);
  }
  remove(damaged);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exported),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_damaged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
