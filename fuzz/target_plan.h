/* A fuzz target for plan files: see targets.h. It needs the whole library, because a plan is checked against its model and the
 * devices. */
#ifndef CLEAVE_FUZZ_TARGET_PLAN_H
#define CLEAVE_FUZZ_TARGET_PLAN_H

#include <stdlib.h>
#include <string.h>

#include "../tests/formats/onnx_models.h"
#include "cleave/cleave.h"
#include "formats/onnx/onnx.h"
#include "plan/plan.h"

/* A placeholder for the model's hash in seeds and in the corpus, so that they stay valid if the hash changes. */
#define FUZZ_PLAN_HASH "$MODEL"

typedef struct fuzz_plan_setting {
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  char hash[2 * CLV__HASH_BYTES + 1];
} fuzz_plan_setting;

/* A model with two branches, a view, weights, a constant node, and an operator that the second device does not support. */
static inline void fuzz_plan_model(clv__text *text) {
  static const int64_t dims[] = {-1, 4}, shape[] = {2}, to[] = {-1, 2}, weight[] = {4};
  static const float numbers[4] = {1, 2, 3, 4};
  size_t graph = model_open(text, 8);
  model_plain_node(text, "Add", "X,w", "a");
  model_plain_node(text, "Relu", "a", "b");
  model_plain_node(text, "Erf", "a", "c");
  model_plain_node(text, "Neg", "w", "known");
  model_plain_node(text, "Mul", "b,c", "d");
  model_plain_node(text, "Reshape", "d,to", "e");
  model_plain_node(text, "Tanh", "e", "Y");
  model_tensor(text, GRAPH_INITIALIZER, "w", CLV_F32, weight, 1, numbers, sizeof numbers);
  model_tensor(text, GRAPH_INITIALIZER, "to", CLV_I64, shape, 1, to, sizeof to);
  model_value(text, GRAPH_INPUT, "X", CLV_F32, dims, 2);
  model_value(text, GRAPH_OUTPUT, "Y", CLV_F32, to, 2);
  model_value(text, GRAPH_OUTPUT, "c", CLV_F32, dims, 2);
  model_close(text, graph);
}

/* Returns the model and devices to read plans for. They are created once and never destroyed, because reading a plan does not
 * change them. NULL on failure. */
static inline const fuzz_plan_setting *fuzz_plan_open(void) {
  static fuzz_plan_setting setting;
  static const char *const specs[] = {
      "{\"name\": \"one\", \"operators\": \"all\"}",
      "{\"name\": \"two\", \"operators\": {\"Add\": {}, \"Relu\": {}, \"Mul\": {}, \"Reshape\": {}}}"};
  if (setting.graph != NULL) return &setting;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = "one,two,cpu";
  options.npu_spec_count = 2;
  options.npu_specs = specs;
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  fuzz_plan_model(&text);
  bool opened = clv_context_create(NULL, &setting.context, NULL) == CLV_OK &&
                clv_devices_open(setting.context, &options, &setting.devices, NULL) == CLV_OK &&
                clv__onnx_load_memory(clv__allocator_default(), text.data, text.size_bytes, true, &setting.graph, NULL) == CLV_OK;
  clv__text_finish(&text);
  if (!opened) return NULL;
  clv__hash hash;
  clv__graph_hash(setting.graph, &hash);
  clv__hash_text(&hash, setting.hash);
  return &setting;
}

/* The offset of the placeholder; `size_bytes` if there is none. */
static inline size_t fuzz_plan_mark(const uint8_t *data, size_t size_bytes) {
  const size_t length = sizeof FUZZ_PLAN_HASH - 1;
  for (size_t i = 0; i + length <= size_bytes; ++i) {
    if (memcmp(data + i, FUZZ_PLAN_HASH, length) == 0) return i;
  }
  return size_bytes;
}

/* Reads a plan, writes it, and reads the result, which must succeed. Returns the status of the first reading. */
static inline clv_status fuzz_plan_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  const fuzz_plan_setting *setting = fuzz_plan_open();
  if (setting == NULL) abort();
  const size_t length = sizeof FUZZ_PLAN_HASH - 1, before = fuzz_plan_mark(data, size_bytes);
  clv__text text;
  clv_plan *plan, *again;
  char *written;
  clv__text_init(&text, clv__allocator_default());
  clv__text_append_bytes(&text, data, before);
  if (before < size_bytes) {
    clv__text_append(&text, "%s", setting->hash);
    clv__text_append_bytes(&text, data + before + length, size_bytes - before - length);
  }
  clv_status status = clv__plan_parse(setting->graph, setting->devices, text.data, text.size_bytes, NULL, &plan, error);
  clv__text_finish(&text);
  if (status != CLV_OK) return status;
  if (clv__plan_to_json(plan, false, &written, error) != CLV_OK) abort();
  clv_plan_destroy(plan);
  if (clv__plan_parse(setting->graph, setting->devices, written, strlen(written), NULL, &again, error) != CLV_OK) abort();
  clv_plan_destroy(again);
  clv__release(clv__allocator_default(), written);
  return CLV_OK;
}

static inline void fuzz_plan(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_plan_status(data, size_bytes, &error);
}

#endif
