/* Tests models in JSON: reading them with weights from npz and safetensors, and the error for each mistake. */
#include "gnn/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "formats/arrays/npz.h"
#include "graphs.h"
#include "support.h"

enum { IN = 5, HIDDEN = 3, HEADS = 2, CLASSES = 4 };

static float numbers[64];

static clv_tensor tensor(int32_t rank, int64_t a, int64_t b, int64_t c) {
  return clv__tensor_make(CLV_F32, rank, (const int64_t[]){a, b, c}, numbers);
}

static void write_npz(const char *name, const char *const *names, const clv_tensor *tensors, size_t count) {
  clv_error error = {0};
  assert_ok(clv__npz_write(clv__allocator_default(), in_work(name), names, tensors, count, true, &error), error);
}

static void write_text(const char *name, const char *text) {
  clv_error error = {0};
  assert_ok(clv__file_write(in_work(name), text, strlen(text), &error), error);
}

static int begin(void **state) {
  if (make_work(state) != 0) return -1;
  for (int i = 0; i < 64; ++i) numbers[i] = (float)i / 8 - 3;
  const char *const sage[] = {"convs.0.lin_l.weight", "convs.0.lin_l.bias",   "convs.0.lin_r.weight",
                              "convs.1.lin_l.weight", "convs.1.lin_r.weight", "loose.lin_l.weight",
                              "loose.lin_l.bias",     "loose.lin_r.weight",   "loose.lin_edge.weight"};
  const clv_tensor sage_tensors[] = {tensor(2, HIDDEN, IN, 0),      tensor(1, HIDDEN, 0, 0),       tensor(2, HIDDEN, IN, 0),
                                     tensor(2, CLASSES, HIDDEN, 0), tensor(2, CLASSES, HIDDEN, 0), tensor(2, HIDDEN, IN, 0),
                                     tensor(1, HIDDEN, 0, 0),       tensor(2, HIDDEN, IN, 0),      tensor(2, HIDDEN, IN, 0)};
  const char *const gat[] = {"convs.0.lin.weight", "convs.0.att_src", "convs.0.att_dst", "convs.0.bias"};
  const clv_tensor gat_tensors[] = {tensor(2, HEADS * HIDDEN, IN, 0), tensor(3, 1, HEADS, HIDDEN), tensor(3, 1, HEADS, HIDDEN),
                                    tensor(1, HEADS * HIDDEN, 0, 0)};
  write_npz("sage.npz", sage, sage_tensors, 9);
  write_npz("gat.npz", gat, gat_tensors, 4);
  return 0;
}

static clv_status read_model(const char *json, clv__gnn_model **model, clv_error *error) {
  write_text("model.json", json);
  return clv__gnn_model_read(clv__allocator_default(), in_work("model.json"), model, error);
}

static void test_read(void **state) {
  (void)state;
  clv_error error = {0};
  clv__gnn_model *model;
  assert_ok(read_model("{\"type\": \"graphsage\", \"weights\": \"sage.npz\", \"layers\": ["
                       "{\"in\": 5, \"out\": 3, \"activation\": \"relu\", \"heads\": 1, \"concat\": true},"
                       "{\"in\": 3, \"out\": 4, \"bias\": false}]}",
                       &model, &error),
            error);
  assert_int_equal(model->type, CLV__GNN_SAGE);
  assert_int_equal(model->layer_count, 2);
  assert_int_equal(model->layers[0].activation, CLV__GNN_RELU);
  assert_int_equal(model->layers[1].activation, CLV__GNN_NONE);
  assert_int_equal(model->layers[1].bias.dtype, CLV_DTYPE_NONE);
  assert_int_equal(clv__gnn_layer_width(&model->layers[1]), CLASSES);
  assert_memory_equal(model->layers[0].neighbour.data, numbers, HIDDEN * IN * sizeof(float));
  clv__gnn_model_destroy(model);
  assert_ok(read_model(" {\"type\": \"gat\", \"weights\": \"gat.npz\", \"layers\": [{\"in\": 5, \"out\": 3, \"heads\": 2, "
                       "\"activation\": \"elu\"}]}",
                       &model, &error),
            error);
  assert_int_equal(model->layers[0].att_dst.rank, 2);
  assert_int_equal(model->layers[0].att_dst.dims[1], HIDDEN);
  assert_int_equal(clv__gnn_layer_width(&model->layers[0]), HEADS * HIDDEN);
  clv__gnn_model_destroy(model);
}

/* Reads 16-bit floats from a safetensors file: {"convs.0.lin.weight": f16 [2,1], "convs.0.bias": f32 [2]}. */
static void test_safetensors(void **state) {
  (void)state;
  static const char header[] =
      "{\"convs.0.lin.weight\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
      "\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}";
  static const uint16_t halves[] = {0x3c00, 0xc000}; /* 1, -2 */
  static const float bias[] = {0.5f, 0.25f};
  uint8_t file[512];
  uint64_t length = sizeof header - 1;
  clv_error error = {0};
  clv__gnn_model *model;
  memcpy(file, &length, 8);
  memcpy(file + 8, header, length);
  memcpy(file + 8 + length, halves, 4);
  memcpy(file + 12 + length, bias, 8);
  assert_ok(clv__file_write(in_work("gcn.safetensors"), file, 20 + length, &error), error);
  assert_ok(
      read_model("{\"type\": \"gcn\", \"weights\": \"gcn.safetensors\", \"layers\": [{\"in\": 1, \"out\": 2}]}", &model, &error),
      error);
  assert_true(((const float *)model->layers[0].neighbour.data)[1] == -2);
  assert_true(((const float *)model->layers[0].bias.data)[1] == 0.25f);
  clv__gnn_model_destroy(model);
}

typedef struct mistake {
  const char *json;
  const char *parts[3]; /* texts that the error message contains */
} mistake;

static void test_mistakes(void **state) {
  (void)state;
#define SAGE(layers) "{\"type\": \"graphsage\", \"weights\": \"sage.npz\", \"layers\": [" layers "]}"
#define LAYER "{\"in\": 5, \"out\": 3}"
  static const mistake mistakes[] = {
      {"{\"type\": \"graphsage\", ", {"model.json", "line 1"}},
      {"{}", {"'type' is missing", "graphsage, gcn, gat"}},
      {"{\"type\": \"gin\", \"weights\": \"sage.npz\", \"layers\": [" LAYER "]}", {"'gin'", "graphsage"}},
      {"{\"type\": \"gcn\", \"weights\": \"none.npz\", \"layers\": [" LAYER "]}", {"weights", "none.npz"}},
      {"{\"type\": \"gcn\", \"weights\": \"sage.npz\", \"layers\": []}", {"'layers'"}},
      {"{\"type\": \"gcn\", \"weights\": \"sage.npz\", \"layers\": [" LAYER "], \"extra\": 1}", {"unknown key 'extra'"}},
      {SAGE("{\"in\": 5}"), {"layer 0", "'out' is missing"}},
      {SAGE("{\"in\": 5, \"out\": -3}"), {"layer 0", "'out'", "from 1"}},
      {SAGE("{\"in\": 5, \"out\": 3.5}"), {"layer 0", "'out'", "whole"}},
      {SAGE("{\"in\": 5, \"out\": 3, \"activation\": \"gelu\"}"), {"layer 0", "'gelu'", "none, relu, elu"}},
      {SAGE("{\"in\": 5, \"out\": 3, \"heads\": 2}"), {"layer 0", "'heads'"}},
      {SAGE("{\"in\": 5, \"out\": 3, \"concat\": 1}"), {"layer 0", "'concat'"}},
      {SAGE("{\"in\": 6, \"out\": 3}"), {"layer 0: weight 'convs.0.lin_l.weight'", "f32[3,5]", "f32[3,6]"}},
      {SAGE(LAYER ", {\"in\": 3, \"out\": 4}"), {"layer 1", "'convs.1.lin_l.bias' [4]", "\"bias\": false"}},
      {SAGE(LAYER ", {\"in\": 3, \"out\": 4, \"bias\": false}, " LAYER), {"layer 2: weight 'convs.2.lin_l.weight'", "missing"}},
      {SAGE("{\"in\": 5, \"out\": 3, \"bias\": false}"), {"layer 0", "'convs.0.lin_l.bias' exists"}},
      {SAGE(LAYER ", {\"in\": 5, \"out\": 3, \"prefix\": \"convs.0\"}"), {"layer 1 reads 5", "layer 0 produces 3"}},
      {SAGE("{\"in\": 5, \"out\": 3, \"prefix\": \"loose\"}"), {"layer 0", "loose.lin_edge.weight"}},
      {"{\"type\": \"gat\", \"weights\": \"gat.npz\", \"layers\": [{\"in\": 5, \"out\": 6}]}",
       {"layer 0: weight", "att_src", "f32[1,6]"}},
      {"{\"type\": \"gat\", \"weights\": \"gat.npz\", \"layers\": [{\"in\": 5, \"out\": 3, \"heads\": 2, \"concat\": false}]}",
       {"layer 0: weight 'convs.0.bias'", "f32[6]", "f32[3]"}},
      {"{\"type\": \"gat\", \"weights\": \"gat.npz\", \"layers\": [{\"in\": 5, \"out\": 1048576, \"heads\": 1024}]}",
       {"layer 0", "1024 heads"}},
      {"hello", {"model.json"}},
      {"", {"model.json"}},
  };
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
    clv_error error = {0};
    clv__gnn_model *model = NULL;
    if (read_model(mistakes[i].json, &model, &error) == CLV_OK) fail_msg("%s was accepted", mistakes[i].json);
    assert_null(model);
    for (int p = 0; p < 3 && mistakes[i].parts[p] != NULL; ++p) {
      if (strstr(error.message, mistakes[i].parts[p]) == NULL)
        fail_msg("%s: '%s' is not in the error message: %s", mistakes[i].json, mistakes[i].parts[p], error.message);
    }
  }
}

static void test_numbers(void **state) {
  (void)state;
  static float bad[HIDDEN * IN];
  static int64_t whole[HIDDEN * IN];
  const char *const names[] = {"convs.0.lin.weight", "convs.0.bias"};
  clv_tensor tensors[] = {tensor(2, HIDDEN, IN, 0), tensor(1, HIDDEN, 0, 0)};
  clv_error error = {0};
  clv__gnn_model *model;
  tensors[0].data = bad;
  ((uint32_t *)(void *)bad)[7] = 0x7fc00000;
  write_npz("bad.npz", names, tensors, 2);
  assert_int_equal(read_model("{\"type\": \"gcn\", \"weights\": \"bad.npz\", \"layers\": [" LAYER "]}", &model, &error),
                   CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, "element 7 is"));
  tensors[0].dtype = CLV_I64;
  tensors[0].data = whole;
  write_npz("bad.npz", names, tensors, 2);
  assert_int_equal(read_model("{\"type\": \"gcn\", \"weights\": \"bad.npz\", \"layers\": [" LAYER "]}", &model, &error),
                   CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, "i64[3,5]"));
}

/* Each allocation fails in turn; nothing may leak. */
static void test_memory(void **state) {
  (void)state;
  write_text("model.json", SAGE(LAYER));
  for (size_t fail_at = 1;; ++fail_at) {
    test_allocator counting;
    clv__gnn_model *model;
    clv_error error = {0};
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv_status status = clv__gnn_model_read(&counting.allocator, in_work("model.json"), &model, &error);
    clv__gnn_model_destroy(model);
    assert_int_equal(counting.live, 0);
    if (status == CLV_OK) break;
    assert_int_equal(status, CLV_OUT_OF_MEMORY);
    assert_true(fail_at < 1000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_read),    cmocka_unit_test(test_safetensors), cmocka_unit_test(test_mistakes),
      cmocka_unit_test(test_numbers), cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, begin, remove_work);
}
