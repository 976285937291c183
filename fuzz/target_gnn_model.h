/* Reads a GNN model in JSON as 'cleave gnn run' would. The model can refer to a file of weights, "w.npz", which is made once. */
#ifndef CLEAVE_FUZZ_TARGET_GNN_MODEL_H
#define CLEAVE_FUZZ_TARGET_GNN_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/arrays/npz.h"
#include "gnn/model/model_own.h"

static char fuzz_gnn_folder[] = "/tmp/cleave-fuzz-XXXXXX";

static inline void fuzz_gnn_weights_remove(void) {
  char path[64];
  snprintf(path, sizeof path, "%s/w.npz", fuzz_gnn_folder);
  unlink(path);
  rmdir(fuzz_gnn_folder);
}

static inline void fuzz_gnn_weights_make(void) {
  static const char *const names[] = {"convs.0.lin_l.weight", "convs.0.lin_l.bias", "convs.0.lin_r.weight", "convs.1.lin.weight",
                                      "convs.1.bias",         "gat.lin.weight",     "gat.att_src",          "gat.att_dst"};
  static const struct {
    int32_t rank;
    int64_t dims[3];
  } shapes[] = {{2, {2, 3}}, {1, {2}}, {2, {2, 3}}, {2, {2, 2}}, {1, {2}}, {2, {4, 3}}, {3, {1, 2, 2}}, {3, {1, 2, 2}}};
  static float numbers[16];
  clv_tensor tensors[sizeof shapes / sizeof *shapes];
  char path[64];
  clv_error error = {0};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
    tensors[i] = clv__tensor_make(CLV_F32, shapes[i].rank, shapes[i].dims, numbers);
  if (mkdtemp(fuzz_gnn_folder) == NULL) abort();
  snprintf(path, sizeof path, "%s/w.npz", fuzz_gnn_folder);
  if (clv__npz_write(clv__allocator_default(), path, names, tensors, sizeof shapes / sizeof *shapes, false, &error) != CLV_OK)
    abort();
  atexit(fuzz_gnn_weights_remove);
}

static inline clv_status fuzz_gnn_model_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  static bool is_made;
  static const uint8_t none;
  char path[64];
  clv__gnn_model *model;
  if (!is_made) fuzz_gnn_weights_make();
  is_made = true;
  snprintf(path, sizeof path, "%s/model.json", fuzz_gnn_folder);
  const char *text = (const char *)(data != NULL ? data : &none);
  clv_status status = clv__gnn_model_read_json(clv__allocator_default(), path, text, size_bytes, &model, error);
  if ((status == CLV_OK) != (model != NULL) || (status != CLV_OK && error->message[0] == '\0')) abort();
  for (uint32_t i = 0; status == CLV_OK && i < model->layer_count; ++i) {
    const clv__gnn_layer *layer = &model->layers[i];
    if (layer->neighbour.dims[1] != layer->in || layer->neighbour.data == NULL) abort();
    if (layer->bias.dtype != CLV_DTYPE_NONE && layer->bias.dims[0] != clv__gnn_layer_width(layer)) abort();
    if (i > 0 && clv__gnn_layer_width(layer - 1) != layer->in) abort();
  }
  clv__gnn_model_destroy(model);
  return status;
}

static inline void fuzz_gnn_model(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_gnn_model_status(data, size_bytes, &error);
}

#endif
