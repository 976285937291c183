/* Reads a GNN from ONNX as 'cleave gnn' would: finds its layers and verifies them on a random graph. */
#ifndef CLEAVE_FUZZ_TARGET_GNN_ONNX_H
#define CLEAVE_FUZZ_TARGET_GNN_ONNX_H

#include <stdlib.h>

#include "gnn/model/model_own.h"
#include "in_memory.h"

static inline clv_status fuzz_gnn_onnx_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  fuzz_in_memory file;
  clv__gnn_model *model;
  fuzz_in_memory_open(data, size_bytes, &file);
  clv_status status = clv__gnn_model_read(clv__allocator_default(), file.path, &model, error);
  if ((status == CLV_OK) != (model != NULL) || (status != CLV_OK && error->message[0] == '\0')) abort();
  for (uint32_t i = 0; status == CLV_OK && i < model->layer_count; ++i) {
    const clv__gnn_layer *layer = &model->layers[i];
    if (layer->neighbour.dims[1] != layer->in || layer->neighbour.data == NULL) abort();
    if (layer->bias.dtype != CLV_DTYPE_NONE && layer->bias.dims[0] != clv__gnn_layer_width(layer)) abort();
    if (i > 0 && clv__gnn_layer_width(layer - 1) != layer->in) abort();
  }
  clv__gnn_model_destroy(model);
  fuzz_in_memory_close(&file);
  return status;
}

static inline void fuzz_gnn_onnx(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_gnn_onnx_status(data, size_bytes, &error);
}

#endif
