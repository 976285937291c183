/* Models for programs: see cleave/gnn.h. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "device/device.h"
#include "gnn/api/handles.h"
#include "gnn/model/model_own.h"

/* Makes the handle of `made`, and takes ownership of it, also on failure. */
static clv_status give_model(clv_context *context, clv__gnn_model *made, const char *name, uint64_t begin_ns, clv_gnn_model **out,
                             clv_error *error) {
  clv__hash hash;
  clv_gnn_model *model = clv__arena_allocate_zero(&made->arena, 1, sizeof *model);
  clv__stages *stages = clv__arena_allocate_zero(&made->arena, made->layer_count, sizeof *stages);
  char *own_name = clv__arena_string(&made->arena, name, strlen(name));
  if (model == NULL || stages == NULL || own_name == NULL) {
    clv__gnn_model_destroy(made);
    return clv__error_memory(error, sizeof *model);
  }
  for (uint32_t i = 0; i < made->layer_count; ++i) clv__stages_of(made->type, &made->layers[i], CLV_F32, &stages[i]);
  *model = (clv_gnn_model){.context = context, .model = made, .stages = stages, .name = own_name};
  clv__gnn_model_hash(made, &hash);
  clv__hash_text(&hash, model->hash);
  model->load_ns = (double)(clv__clock_ns() - begin_ns);
  *out = model;
  return CLV_OK;
}

clv_status clv_gnn_model_read(clv_context *context, const char *path, clv_gnn_model **model, clv_error *error) {
  clv__gnn_model *made;
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(clv__argument_check(model, "model", error));
  *model = NULL;
  CLV__TRY(clv__argument_check(context, "context", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  CLV__TRY(clv__gnn_model_read(clv__context_allocator(context), path, &made, error));
  return give_model(context, made, path, begin_ns, model, error);
}

clv_status clv_gnn_model_read_memory(clv_context *context, const void *data, size_t size_bytes, const char *name,
                                     clv_gnn_model **model, clv_error *error) {
  clv__gnn_model *made;
  uint64_t begin_ns = clv__clock_ns();
  if (name == NULL) name = "model";
  CLV__TRY(clv__argument_check(model, "model", error));
  *model = NULL;
  CLV__TRY(clv__argument_check(context, "context", error));
  CLV__TRY(clv__argument_check(data, "data", error));
  CLV__TRY(clv__gnn_model_read_onnx_memory(clv__context_allocator(context), data, size_bytes, name, &made, error));
  return give_model(context, made, name, begin_ns, model, error);
}

void clv_gnn_model_get_info(const clv_gnn_model *model, clv_gnn_model_info *info) {
  const clv__gnn_model *m = model->model;
  const clv_gnn_model_info filled = {.layer_count = m->layer_count,
                                     .feature_count = m->layers[0].in,
                                     .class_count = clv__gnn_layer_width(&m->layers[m->layer_count - 1]),
                                     .type = clv__gnn_type_name(m->type),
                                     .name = model->name,
                                     .hash = model->hash};
  clv__info_fill(info, &filled, sizeof filled);
}

static uint64_t weight_bytes(const clv__gnn_layer *layer) {
  const clv_tensor *weights[] = {&layer->neighbour, &layer->self, &layer->bias, &layer->att_src, &layer->att_dst};
  uint64_t sum = 0;
  for (size_t i = 0; i < sizeof weights / sizeof *weights; ++i) {
    size_t size_bytes;
    if (weights[i]->dtype != CLV_DTYPE_NONE && clv__tensor_size_bytes(weights[i], &size_bytes)) sum += size_bytes;
  }
  return sum;
}

bool clv_gnn_model_layer(const clv_gnn_model *model, uint32_t index, clv_gnn_layer_info *info) {
  clv_gnn_layer_info filled = {0};
  bool exists = index < model->model->layer_count;
  if (exists) {
    const clv__gnn_layer *layer = &model->model->layers[index];
    filled = (clv_gnn_layer_info){.in = layer->in,
                                  .out = clv__gnn_layer_width(layer),
                                  .heads = layer->heads > 0 ? layer->heads : 1,
                                  .is_averaged = layer->heads > 1 && !layer->concat,
                                  .activation = clv__gnn_activation_name(layer->activation),
                                  .stage_count = model->stages[index].count,
                                  .weight_bytes = weight_bytes(layer)};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

const char *clv_gnn_model_stage(const clv_gnn_model *model, uint32_t layer, uint32_t stage) {
  if (layer >= model->model->layer_count || stage >= model->stages[layer].count) return NULL;
  return clv__stage_name(model->stages[layer].items[stage]);
}

void clv_gnn_model_destroy(clv_gnn_model *model) {
  if (model != NULL) clv__gnn_model_destroy(model->model); /* its arena has the handle, too */
}
