/* Reads tensors by name from a weight file, npz or safetensors. */
#include <string.h>

#include "base/text.h"
#include "formats/arrays/npz.h"
#include "formats/arrays/safetensors.h"
#include "gnn/model/model_own.h"

struct clv__gnn_weights {
  const clv_allocator *allocator;
  clv__npz *npz; /* either `npz` or `safetensors` is set; the other is NULL */
  clv__safetensors *safetensors;
};

/* Detects a zip file by its first bytes, whatever its name. */
static clv_status is_zip(const char *path, bool *zip, clv_error *error) {
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  *zip = map.size_bytes >= 2 && map.data[0] == 'P' && map.data[1] == 'K';
  clv__file_map_close(&map);
  return CLV_OK;
}

clv_status clv__gnn_weights_open(const clv_allocator *allocator, const char *path, clv__gnn_weights **out, clv_error *error) {
  bool zip;
  *out = NULL;
  CLV__TRY(is_zip(path, &zip, error));
  clv__gnn_weights *weights = clv__allocate_zero(allocator, sizeof *weights);
  if (weights == NULL) return clv__error_memory(error, sizeof *weights);
  weights->allocator = allocator;
  clv_status status = zip ? clv__npz_open(allocator, path, &weights->npz, error)
                          : clv__safetensors_open(allocator, path, &weights->safetensors, error);
  if (status != CLV_OK) {
    clv__release(allocator, weights);
    return status;
  }
  *out = weights;
  return CLV_OK;
}

void clv__gnn_weights_close(clv__gnn_weights *weights) {
  if (weights == NULL) return;
  clv__npz_close(weights->npz);
  clv__safetensors_close(weights->safetensors);
  clv__release(weights->allocator, weights);
}

size_t clv__gnn_weights_count(const clv__gnn_weights *weights) {
  return weights->npz != NULL ? clv__npz_count(weights->npz) : clv__safetensors_count(weights->safetensors);
}

const char *clv__gnn_weights_name(const clv__gnn_weights *weights, size_t index) {
  return weights->npz != NULL ? clv__npz_name(weights->npz, index) : clv__safetensors_name(weights->safetensors, index);
}

bool clv__gnn_weights_has(const clv__gnn_weights *weights, const char *name) {
  for (size_t i = 0; i < clv__gnn_weights_count(weights); ++i) {
    if (strcmp(clv__gnn_weights_name(weights, i), name) == 0) return true;
  }
  return false;
}

clv_status clv__gnn_weights_read(const clv__gnn_weights *weights, clv__gnn_model *model, const char *name, int32_t rank,
                                 const int64_t *dims, clv_tensor *weight, clv_error *error) {
  clv_tensor from;
  if (weights->npz == NULL) {
    CLV__TRY(clv__safetensors_read(weights->safetensors, name, &from, error));
    return clv__gnn_weight_copy(model, name, &from, rank, dims, weight, error);
  }
  CLV__TRY(clv__npz_read(weights->npz, name, &from, error));
  clv_status status = clv__gnn_weight_copy(model, name, &from, rank, dims, weight, error);
  clv__release(weights->allocator, from.data);
  return status;
}
