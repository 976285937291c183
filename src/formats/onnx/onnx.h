/* ONNX models and tensors, in and out. */
#ifndef CLEAVE_FORMATS_ONNX_ONNX_H
#define CLEAVE_FORMATS_ONNX_ONNX_H

#include "graph/graph.h"
#include "graph/view.h"

/* The newest versions read. A newer IR version or opset is CLV_NOT_SUPPORTED. */
enum { CLV__ONNX_IR_VERSION = 14, CLV__ONNX_NEWEST_OPSET = 28, CLV__ONNX_MAX_DEPTH = 64 };

/* Loads the model at `path`. The file is mapped: initializers point into it, or into the files of its external data, which must
 * lie in the model's folder. The graph owns the mappings. Model functions are inlined: the values they make get unique names,
 * their nodes the name of the call in front. An element type that Cleave has not is CLV_NOT_SUPPORTED where there is data of it,
 * and dtype none where it is only declared. Errors: CLV_NOT_FOUND and CLV_IO_ERROR for the files, CLV_INVALID_MODEL for what is
 * damaged or against the specification, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY; the text begins with the path, and names the node.
 */
CLV_MUST_USE clv_status clv__onnx_load_file(const clv_allocator *allocator, const char *path, clv_graph **graph,
                                            clv_error *error);

/* The same from memory, without external data. `copy`: the bytes may go when the call is over; otherwise they must stay as long
 * as the graph does. */
CLV_MUST_USE clv_status clv__onnx_load_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, bool copy,
                                              clv_graph **graph, clv_error *error);

/* Writes a view as a model into memory from `allocator`, the caller's to release. Types are the view's; what is constant becomes
 * an initializer. Constants of more than `inline_limit_bytes`, or without data, are left out and become inputs, after the view's
 * own, in the order of their value ids (constants of bodies and string tensors always stay). Where the view is a body, what it
 * captures becomes inputs before those. */
CLV_MUST_USE clv_status clv__onnx_write(const clv_graph_view *view, size_t inline_limit_bytes, const clv_allocator *allocator,
                                        void **data, size_t *size_bytes, clv_error *error);

/* Where constants lie whose bytes are no part of a model: in a file beside it, which several models may share. `place` is asked
 * about every constant that would become an initializer (of the view itself, not of its bodies), under the graph's value id; an
 * offset is where its bytes are, as they are in memory. */
typedef struct clv__onnx_outside {
  const char *file; /* as models name it: "weights.data" */
  void *self;
  clv_status (*place)(void *self, clv_value_id value, const clv_tensor *data, bool *is_outside, uint64_t *offset,
                      clv_error *error);
} clv__onnx_outside;

/* clv__onnx_write() of all constants, with the data of those that `outside` takes there. */
CLV_MUST_USE clv_status clv__onnx_write_beside(const clv_graph_view *view, const clv__onnx_outside *outside,
                                               const clv_allocator *allocator, void **data, size_t *size_bytes, clv_error *error);

/* A TensorProto, as in `input_0.pb` of the ONNX test directories. `tensor->data` is one block from `allocator` (the text of
 * strings included), the caller's to release; so is `*name` ("" where there is none; `name` may be NULL). */
CLV_MUST_USE clv_status clv__onnx_tensor_read(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                              clv_tensor *tensor, char **name, clv_error *error);
CLV_MUST_USE clv_status clv__onnx_tensor_read_file(const clv_allocator *allocator, const char *path, clv_tensor *tensor,
                                                   char **name, clv_error *error);
/* The reverse, into memory from `allocator`. The tensor is static and has data. */
CLV_MUST_USE clv_status clv__onnx_tensor_write(const clv_tensor *tensor, const char *name, const clv_allocator *allocator,
                                               void **data, size_t *size_bytes, clv_error *error);

#endif
