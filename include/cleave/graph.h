/* A loaded model. Immutable; may be shared by plans, sessions and threads. */
#ifndef CLEAVE_GRAPH_H
#define CLEAVE_GRAPH_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_graph clv_graph;

typedef enum clv_ownership {
  CLV_COPY = 0,  /* the bytes may be freed when the call returns */
  CLV_BORROW = 1 /* the bytes must outlive the graph */
} clv_ownership;

/* Loads an ONNX file, or an IR JSON file (the first character that is no space tells them apart). Weights stay in the mapped file
 * and its external data: neither may change while the graph lives. IR JSON holds no weights: such a graph can be planned, and a
 * session of it is refused (but see clv_graph_load_params()).
 * Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY. Any thread. */
CLV_API CLV_MUST_USE clv_status clv_graph_load(clv_context *context, const char *path, clv_graph **graph, clv_error *error);

/* The same, with the numbers of all weights of an IR JSON file from files of named tensors (safetensors, which stay mapped, or
 * npz): the first that has the weight's name. None of them may change while the graph lives. With `param_count` 0 it is
 * clv_graph_load(). Errors: also CLV_INVALID_ARGUMENT, where the model is ONNX and has its weights itself. Any thread. */
CLV_API CLV_MUST_USE clv_status clv_graph_load_params(clv_context *context, const char *path, const char *const *params,
                                                      uint32_t param_count, clv_graph **graph, clv_error *error);

/* clv_graph_load() from memory; external data cannot be referred to. */
CLV_API CLV_MUST_USE clv_status clv_graph_load_memory(clv_context *context, const void *data, size_t size_bytes,
                                                      clv_ownership ownership, clv_graph **graph, clv_error *error);

/* Plans and sessions made from it must have been destroyed before. Accepts NULL. */
CLV_API void clv_graph_destroy(clv_graph *graph);

CLV_API uint32_t clv_graph_input_count(const clv_graph *graph);
CLV_API uint32_t clv_graph_output_count(const clv_graph *graph);
/* Name and declared type (unknown dims are negative, `data` is NULL, or a default value). Live as long as the graph.
 * NULL for an index beyond the count. */
CLV_API const char *clv_graph_input_name(const clv_graph *graph, uint32_t index);
CLV_API const char *clv_graph_output_name(const clv_graph *graph, uint32_t index);
CLV_API const clv_tensor *clv_graph_input_type(const clv_graph *graph, uint32_t index);
CLV_API const clv_tensor *clv_graph_output_type(const clv_graph *graph, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
