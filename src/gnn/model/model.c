/* Selects the reader for a file and holds the checks that all readers share. See model.h. */
#include "gnn/model/model.h"

#include <math.h>
#include <stdio.h>

#include "base/files/file.h"
#include "gnn/model/model_own.h"

const char *clv__gnn_type_name(clv__gnn_type type) {
  static const char *const names[] = {[CLV__GNN_SAGE] = "graphsage", [CLV__GNN_GCN] = "gcn", [CLV__GNN_GAT] = "gat"};
  return names[type];
}

const char *clv__gnn_activation_name(clv__gnn_activation activation) {
  static const char *const names[] = {[CLV__GNN_NONE] = "none", [CLV__GNN_RELU] = "relu", [CLV__GNN_ELU] = "elu"};
  return names[activation];
}

clv_status clv__gnn_model_create(const clv_allocator *allocator, clv__gnn_type type, uint32_t layer_count, clv__gnn_model **out,
                                 clv_error *error) {
  *out = NULL;
  clv__gnn_model *model = clv__allocate_zero(allocator, sizeof *model);
  if (model == NULL) return clv__error_memory(error, sizeof *model);
  clv__arena_init(&model->arena, allocator);
  model->type = type;
  model->layer_count = layer_count;
  model->layers = clv__arena_allocate_zero(&model->arena, layer_count, sizeof *model->layers);
  if (model->layers == NULL) {
    clv__gnn_model_destroy(model);
    return clv__error_memory(error, layer_count * sizeof(clv__gnn_layer));
  }
  *out = model;
  return CLV_OK;
}

void clv__gnn_model_destroy(clv__gnn_model *model) {
  if (model == NULL) return;
  const clv_allocator *allocator = model->arena.allocator;
  clv__arena_finish(&model->arena);
  clv__release(allocator, model);
}

/* ---- Weights ---- */

/* Returns whether the tensor has these dims. Ignores leading dims of 1. */
static bool same_dims(const clv_tensor *from, int32_t rank, const int64_t *dims) {
  int32_t skip = from->rank - rank;
  for (int32_t i = 0; i < skip; ++i) {
    if (from->dims[i] != 1) return false;
  }
  if (skip < 0) return false;
  for (int32_t i = 0; i < rank; ++i) {
    if (from->dims[skip + i] != dims[i]) return false;
  }
  return true;
}

clv_status clv__gnn_weight_copy(clv__gnn_model *model, const char *name, const clv_tensor *from, int32_t rank,
                                const int64_t *dims, clv_tensor *weight, clv_error *error) {
  clv_tensor wanted = clv__tensor_make(CLV_F32, rank, dims, NULL);
  char is[96], should[96];
  size_t count, size_bytes;
  clv__tensor_text(from, is, sizeof is);
  clv__tensor_text(&wanted, should, sizeof should);
  if ((CLV__DTYPE_BIT(from->dtype) & CLV__DTYPES_FLOAT) == 0 || !same_dims(from, rank, dims))
    return clv__error_set(error, CLV_INVALID_MODEL, "weight '%.200s' is %s, but the layer needs %s", name, is, should);
  if (!clv__tensor_count(&wanted, &count) || !clv__tensor_size_bytes(from, &size_bytes))
    return clv__error_set(error, CLV_INVALID_MODEL, "weight '%.200s' is %s, which is too large", name, is);
  float *kept = clv__arena_allocate_data(&model->arena, count * sizeof *kept);
  clv_tensor aligned = *from;
  aligned.data = from->dtype == CLV_F32 ? kept : clv__allocate(model->arena.allocator, size_bytes);
  if (kept == NULL || aligned.data == NULL) {
    if (aligned.data != kept) clv__release(model->arena.allocator, aligned.data);
    return clv__error_memory(error, size_bytes);
  }
  memcpy(aligned.data, from->data, size_bytes);
  size_t bad = SIZE_MAX;
  for (size_t i = 0; i < count; ++i) {
    if (from->dtype != CLV_F32) kept[i] = (float)clv__tensor_get(&aligned, i);
    if (!isfinite(kept[i]) && bad == SIZE_MAX) bad = i;
  }
  if (aligned.data != kept) clv__release(model->arena.allocator, aligned.data);
  if (bad != SIZE_MAX)
    return clv__error_set(error, CLV_INVALID_MODEL, "weight '%.200s': element %zu is %g, which is not finite", name, bad,
                          (double)kept[bad]);
  wanted.data = kept;
  *weight = wanted;
  return CLV_OK;
}

clv_status clv__gnn_model_check_chain(const clv__gnn_model *model, clv_error *error) {
  for (uint32_t i = 1; i < model->layer_count; ++i) {
    const clv__gnn_layer *before = &model->layers[i - 1];
    uint32_t given = clv__gnn_layer_width(before);
    char heads[48] = "";
    if (before->heads > 1 && before->concat) snprintf(heads, sizeof heads, " (%u heads of %u)", before->heads, before->out);
    if (given != model->layers[i].in)
      return clv__error_set(error, CLV_INVALID_MODEL, "layer %u reads %u columns per vertex, but layer %u produces %u%s", i,
                            model->layers[i].in, i - 1, given, heads);
  }
  return CLV_OK;
}

/* ---- Reading ---- */

clv_status clv__gnn_model_read(const clv_allocator *allocator, const char *path, clv__gnn_model **model, clv_error *error) {
  clv__file_map map;
  *model = NULL;
  CLV__TRY(clv__file_map_open(path, &map, error));
  size_t at = 0;
  while (at < map.size_bytes && strchr(" \t\r\n", map.data[at]) != NULL && map.data[at] != '\0') ++at;
  clv_status status;
  if (at < map.size_bytes && map.data[at] == '{') {
    status = clv__gnn_model_read_json(allocator, path, (const char *)map.data, map.size_bytes, model, error);
  } else {
    status = clv__gnn_model_read_onnx(allocator, path, model, error);
  }
  clv__file_map_close(&map);
  return status;
}

/* ---- The hash ---- */

void clv__hasher_tensor(clv__hasher *hasher, const clv_tensor *tensor) {
  clv__hash hash;
  size_t size_bytes = 0;
  bool is_there = tensor->dtype != CLV_DTYPE_NONE && clv__tensor_size_bytes(tensor, &size_bytes);
  clv__hasher_u64(hasher, is_there ? (uint64_t)tensor->dtype : 0);
  if (!is_there) return;
  for (int32_t i = 0; i < tensor->rank; ++i) clv__hasher_u64(hasher, (uint64_t)tensor->dims[i]);
  clv__hash_bytes(tensor->data, size_bytes, &hash);
  clv__hasher_update(hasher, &hash, sizeof hash);
}

void clv__gnn_model_hash(const clv__gnn_model *model, clv__hash *hash) {
  clv__hasher whole, *hasher = &whole;
  clv__hasher_init(hasher);
  clv__hasher_u64(hasher, (uint64_t)model->type);
  clv__hasher_u64(hasher, model->layer_count);
  for (uint32_t i = 0; i < model->layer_count; ++i) {
    const clv__gnn_layer *layer = &model->layers[i];
    const uint64_t numbers[] = {layer->in, layer->out, layer->heads, layer->concat, (uint64_t)layer->activation};
    clv__hasher_update(hasher, numbers, sizeof numbers);
    clv__hasher_tensor(hasher, &layer->neighbour);
    clv__hasher_tensor(hasher, &layer->self);
    clv__hasher_tensor(hasher, &layer->bias);
    clv__hasher_tensor(hasher, &layer->att_src);
    clv__hasher_tensor(hasher, &layer->att_dst);
  }
  clv__hasher_finish(hasher, hash);
}
