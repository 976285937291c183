/* A loaded model. It is immutable. Plans, sessions and threads may share it. */
#ifndef CLEAVE_GRAPH_H
#define CLEAVE_GRAPH_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_graph clv_graph;

typedef enum clv_ownership {
  CLV_COPY = 0,  /* the caller may free the bytes when the call returns */
  CLV_BORROW = 1 /* the bytes must outlive the graph */
} clv_ownership;

/* Loads an ONNX file or an IR JSON file. The first character that is not white space tells them apart. Weights stay in the mapped
 * file and its external data, which must not be written to while the graph exists. To replace such a file, rename a new one over
 * it. If a file was written to, every later call that reads weights fails with CLV_IO_ERROR: plans, new sessions, and runs of
 * sessions that stream weights or return them. docs/runtime.md ("The model's files") has the limits of this check.
 * IR JSON holds no weights: such a graph can be planned, but a session cannot be created from it. clv_graph_load_params() adds
 * the weights. Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY. Any thread may call
 * it. */
CLV_API CLV_MUST_USE clv_status clv_graph_load(clv_context *context, const char *path, clv_graph **graph, clv_error *error);

/* Loads an IR JSON file together with its weights. `params` are safetensors files, which stay mapped, or npz files. Each weight
 * comes from the first file that has a tensor of its name. The files must not be written to while the graph exists, as above. If
 * `param_count` is 0, this is clv_graph_load().
 * Errors: those of clv_graph_load(); CLV_INVALID_ARGUMENT if the model is ONNX, which contains its own weights.
 * Any thread may call it. */
CLV_API CLV_MUST_USE clv_status clv_graph_load_params(clv_context *context, const char *path, const char *const *params,
                                                      uint32_t param_count, clv_graph **graph, clv_error *error);

/* Like clv_graph_load(), but from memory. The model cannot refer to external data. */
CLV_API CLV_MUST_USE clv_status clv_graph_load_memory(clv_context *context, const void *data, size_t size_bytes,
                                                      clv_ownership ownership, clv_graph **graph, clv_error *error);

/* Loads IR JSON from memory, which may be freed when the call returns, together with its weights: names[i] is the name of
 * tensors[i], of `tensor_count`. Each weight of the model whose numbers the JSON does not contain must be among them, with its
 * type. If two tensors have one name, the first one is used. Other tensors are ignored. `ownership` says whether the graph copies
 * the data of the tensors, or borrows it. Borrowed data must not change while the graph exists: plans contain numbers computed
 * from it. The arrays and names are not kept. Errors: those of clv_graph_load_memory(); CLV_NOT_FOUND if there is no tensor for a
 * weight; CLV_INVALID_ARGUMENT if one has another type or no data, or if the model is not IR JSON. Any thread may call it. */
CLV_API CLV_MUST_USE clv_status clv_graph_load_memory_params(clv_context *context, const void *data, size_t size_bytes,
                                                             const char *const *names, const clv_tensor *tensors,
                                                             uint32_t tensor_count, clv_ownership ownership, clv_graph **graph,
                                                             clv_error *error);

/* Destroy all plans and sessions of the graph first. Accepts NULL. */
CLV_API void clv_graph_destroy(clv_graph *graph);

CLV_API uint32_t clv_graph_input_count(const clv_graph *graph);
CLV_API uint32_t clv_graph_output_count(const clv_graph *graph);
/* The name and the declared type. Unknown dims are negative. `data` is the default value, or NULL if there is none. The results
 * are valid as long as the graph, and NULL for an index beyond the count. */
CLV_API const char *clv_graph_input_name(const clv_graph *graph, uint32_t index);
CLV_API const char *clv_graph_output_name(const clv_graph *graph, uint32_t index);
CLV_API const clv_tensor *clv_graph_input_type(const clv_graph *graph, uint32_t index);
CLV_API const clv_tensor *clv_graph_output_type(const clv_graph *graph, uint32_t index);
/* The name of a symbolic dimension, which a tensor has as CLV_DIM_SYMBOL(symbol). Valid as long as the graph, and NULL for an
 * index that is not one of the graph's symbols. */
CLV_API const char *clv_graph_symbol_name(const clv_graph *graph, uint32_t symbol);

#ifdef __cplusplus
}
#endif
#endif
