/* What the readers of models share. */
#ifndef CLEAVE_GNN_MODEL_MODEL_OWN_H
#define CLEAVE_GNN_MODEL_MODEL_OWN_H

#include "gnn/model/model.h"

enum { CLV__MOST_LAYERS = 1024, CLV__MOST_WIDTH = 1 << 20, CLV__MOST_HEADS = 1024 };

/* An empty model of a type. */
clv_status clv__gnn_model_create(const clv_allocator *allocator, clv__gnn_type type, uint32_t layer_count, clv__gnn_model **model,
                                 clv_error *error);
/* Checks a tensor that the file calls `name` against what a layer wants of it (dims of 1 in front do not matter), and keeps its
 * numbers as f32 in the model's arena. `from->data` may be unaligned. CLV_INVALID_MODEL, with the name and both shapes, for other
 * shapes, and for what is no number or not finite. */
clv_status clv__gnn_weight_copy(clv__gnn_model *model, const char *name, const clv_tensor *from, int32_t rank,
                                const int64_t *dims, clv_tensor *weight, clv_error *error);
/* That each layer reads as many columns as the one before gives. */
clv_status clv__gnn_model_check_chain(const clv__gnn_model *model, clv_error *error);

clv_status clv__gnn_model_read_onnx(const clv_allocator *allocator, const char *path, clv__gnn_model **model, clv_error *error);
/* `text` is what `path` holds. */
clv_status clv__gnn_model_read_json(const clv_allocator *allocator, const char *path, const char *text, size_t size_bytes,
                                    clv__gnn_model **model, clv_error *error);

/* The tensors of a file, npz or safetensors. */
typedef struct clv__gnn_weights clv__gnn_weights;
clv_status clv__gnn_weights_open(const clv_allocator *allocator, const char *path, clv__gnn_weights **weights, clv_error *error);
void clv__gnn_weights_close(clv__gnn_weights *weights); /* accepts NULL */
bool clv__gnn_weights_has(const clv__gnn_weights *weights, const char *name);
size_t clv__gnn_weights_count(const clv__gnn_weights *weights);
const char *clv__gnn_weights_name(const clv__gnn_weights *weights, size_t index);
/* clv__gnn_weight_copy() of the tensor `name`. CLV_NOT_FOUND, with the names there are. */
clv_status clv__gnn_weights_read(const clv__gnn_weights *weights, clv__gnn_model *model, const char *name, int32_t rank,
                                 const int64_t *dims, clv_tensor *weight, clv_error *error);

#endif
