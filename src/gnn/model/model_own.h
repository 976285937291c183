/* Functions shared by the model readers. */
#ifndef CLEAVE_GNN_MODEL_MODEL_OWN_H
#define CLEAVE_GNN_MODEL_MODEL_OWN_H

#include "gnn/model/model.h"

enum { CLV__MOST_LAYERS = 1024, CLV__MOST_WIDTH = 1 << 20, CLV__MOST_HEADS = 1024 };

/* Creates an empty model of the given type. */
clv_status clv__gnn_model_create(const clv_allocator *allocator, clv__gnn_type type, uint32_t layer_count, clv__gnn_model **model,
                                 clv_error *error);
/* Checks a tensor against the dims that the layer expects (leading dims of 1 do not matter) and copies its numbers as f32 into
 * the model's arena. `name` is the tensor's name in the file. `from->data` may be unaligned. Returns CLV_INVALID_MODEL, with
 * the name and both shapes, for other shapes, for dtypes that are not floats, and for values that are not finite. */
clv_status clv__gnn_weight_copy(clv__gnn_model *model, const char *name, const clv_tensor *from, int32_t rank,
                                const int64_t *dims, clv_tensor *weight, clv_error *error);
/* Checks that each layer reads as many columns as the previous layer computes. */
clv_status clv__gnn_model_check_chain(const clv__gnn_model *model, clv_error *error);

clv_status clv__gnn_model_read_onnx(const clv_allocator *allocator, const char *path, clv__gnn_model **model, clv_error *error);
/* Like clv__gnn_model_read_onnx(), but from memory, and without external data. `name` replaces the path in messages. */
clv_status clv__gnn_model_read_onnx_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, const char *name,
                                           clv__gnn_model **model, clv_error *error);
/* `text` is the content of `path`. */
clv_status clv__gnn_model_read_json(const clv_allocator *allocator, const char *path, const char *text, size_t size_bytes,
                                    clv__gnn_model **model, clv_error *error);

/* The tensors of an npz or safetensors file. */
typedef struct clv__gnn_weights clv__gnn_weights;
clv_status clv__gnn_weights_open(const clv_allocator *allocator, const char *path, clv__gnn_weights **weights, clv_error *error);
void clv__gnn_weights_close(clv__gnn_weights *weights); /* accepts NULL */
bool clv__gnn_weights_has(const clv__gnn_weights *weights, const char *name);
size_t clv__gnn_weights_count(const clv__gnn_weights *weights);
const char *clv__gnn_weights_name(const clv__gnn_weights *weights, size_t index);
/* Applies clv__gnn_weight_copy() to the tensor `name`. Returns CLV_NOT_FOUND, listing the available names, if it is missing. */
clv_status clv__gnn_weights_read(const clv__gnn_weights *weights, clv__gnn_model *model, const char *name, int32_t rank,
                                 const int64_t *dims, clv_tensor *weight, clv_error *error);

#endif
