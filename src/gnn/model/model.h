/* GNN models: layers and their weights. A model comes from JSON with npz or safetensors weights, named as in PyTorch
 * Geometric's state_dict, or is recognised in an ONNX graph. */
#ifndef CLEAVE_GNN_MODEL_MODEL_H
#define CLEAVE_GNN_MODEL_MODEL_H

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"

typedef enum clv__gnn_type { CLV__GNN_SAGE, CLV__GNN_GCN, CLV__GNN_GAT } clv__gnn_type;
typedef enum clv__gnn_activation { CLV__GNN_NONE, CLV__GNN_RELU, CLV__GNN_ELU } clv__gnn_activation;

/* "graphsage", "gcn", "gat"; "none", "relu", "elu": as in the JSON of models. */
const char *clv__gnn_type_name(clv__gnn_type type);
const char *clv__gnn_activation_name(clv__gnn_activation activation);

/* The meaning of the weights, by type:
 *   SAGE  mean of in-neighbours (0 if there are none) times `neighbour` + bias, plus the vertex itself times `self`
 *   GCN   with self loops, each edge u -> v weighing 1 / sqrt(d(u) d(v)), d counting in-edges: sum times `neighbour`, + bias
 *   GAT   with self loops, h = x times `neighbour`, [heads, out] per row;
 *         score(u -> v) = leaky_relu(a_dst h(v) + a_src h(u), 0.2), softmax over the in-edges of v;
 *         heads are concatenated, or averaged; + bias */
typedef struct clv__gnn_layer {
  uint32_t in, out; /* numbers of columns; `out` is that of one head */
  uint32_t heads;
  bool concat;
  clv__gnn_activation activation;
  clv_tensor neighbour;        /* f32 [columns of the product, in], as in state_dict: lin_l.weight (SAGE), lin.weight */
  clv_tensor self;             /* SAGE: lin_r.weight */
  clv_tensor bias;             /* in state_dict: lin_l.bias (SAGE), bias (GCN, GAT); dtype none: no bias */
  clv_tensor att_src, att_dst; /* GAT: f32 [heads, out] */
} clv__gnn_layer;

/* The width of a layer's result. */
static inline uint32_t clv__gnn_layer_width(const clv__gnn_layer *layer) {
  return layer->concat ? layer->heads * layer->out : layer->out;
}

typedef struct clv__gnn_model {
  clv__arena arena;
  clv__gnn_type type;
  uint32_t layer_count;
  clv__gnn_layer *layers;
} clv__gnn_model;

/* Reads a model. `path` is a JSON or ONNX file. The path of the weights in the JSON is relative to the JSON file's folder.
 * Errors about a weight name the layer, the weight and both shapes. */
clv_status clv__gnn_model_read(const clv_allocator *allocator, const char *path, clv__gnn_model **model, clv_error *error);
void clv__gnn_model_destroy(clv__gnn_model *model); /* accepts NULL */

/* Hashes the model's type, widths, activations and weights. */
void clv__gnn_model_hash(const clv__gnn_model *model, clv__hash *hash);
/* Hashes the tensor's dtype, dims and data. The hash of a tensor without a dtype, which is absent, differs from that of any other
 * tensor. */
void clv__hasher_tensor(clv__hasher *hasher, const clv_tensor *tensor);

#endif
