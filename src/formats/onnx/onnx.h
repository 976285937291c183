/* Reads and writes ONNX models and tensors. */
#ifndef CLEAVE_FORMATS_ONNX_ONNX_H
#define CLEAVE_FORMATS_ONNX_ONNX_H

#include "graph/graph.h"
#include "graph/view.h"

/* The newest supported versions (a newer IR version or opset is CLV_NOT_SUPPORTED), and the maximum nesting depth of bodies and
 * function calls. */
enum { CLV__ONNX_IR_VERSION = 14, CLV__ONNX_NEWEST_OPSET = 28, CLV__ONNX_MAX_DEPTH = 64 };

/* Loads the model at `path`. The file is mapped: initializers point into it or into the files of its external data, which must
 * be in the model's folder. The graph owns the mappings.
 *
 * Model functions are inlined: their values get unique names, and their nodes get the name of the call as a prefix. Data of an
 * unsupported element type is CLV_NOT_SUPPORTED; a declaration of such a type has dtype none. Errors: CLV_NOT_FOUND and
 * CLV_IO_ERROR for the files, CLV_INVALID_MODEL for damaged or non-conforming models, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY;
 * the text begins with the path and names the node. */
CLV_MUST_USE clv_status clv__onnx_load_file(const clv_allocator *allocator, const char *path, clv_graph **graph,
                                            clv_error *error);

/* Loads a model from memory. The model must not have external data. With `copy`, the bytes are not needed after the call;
 * otherwise they must live as long as the graph. */
CLV_MUST_USE clv_status clv__onnx_load_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, bool copy,
                                              clv_graph **graph, clv_error *error);

/* Adds an opset import. Returns CLV_INVALID_MODEL for a version that cannot exist (less than 1, or more than 2^31 - 1), and
 * CLV_NOT_SUPPORTED for an opset of ONNX above the newest supported one. */
CLV_MUST_USE clv_status clv__onnx_import(clv__builder *builder, const char *domain, int64_t version, clv_error *error);

/* Writes a view as a model into memory from `allocator`; the caller releases the memory. Values have the types of the view.
 * Constants become initializers. Operators of Cleave's own (operators/body.h) become calls of functions, which the model
 * contains. The loader reads such a call as the operator.
 *
 * Constants of more than `inline_limit_bytes`, or without data, are omitted and become inputs after the view's own inputs, in
 * the order of their value ids. Constants of bodies and string tensors are never omitted. If the view is a body, its captures
 * become inputs before the omitted constants. */
CLV_MUST_USE clv_status clv__onnx_write(const clv_graph_view *view, size_t inline_limit_bytes, const clv_allocator *allocator,
                                        void **data, size_t *size_bytes, clv_error *error);

/* Writes a view like clv__onnx_write(), but with the standard operators from the bodies of Cleave's own operators instead of
 * calls of functions: for runtimes that do not support functions. */
CLV_MUST_USE clv_status clv__onnx_write_standard(const clv_graph_view *view, size_t inline_limit_bytes,
                                                 const clv_allocator *allocator, void **data, size_t *size_bytes,
                                                 clv_error *error);

/* Describes constants whose bytes are stored outside the model, in a file next to it that several models may share. `place` is
 * called for every constant that would become an initializer of the view itself (not of its bodies), with the graph's value
 * id. If the file contains the bytes, in the layout that they have in memory, `place` sets `is_outside` and their `offset`. */
typedef struct clv__onnx_outside {
  const char *file; /* the name in the model: "weights.data" */
  void *self;
  clv_status (*place)(void *self, clv_value_id value, const clv_tensor *data, bool *is_outside, uint64_t *offset,
                      clv_error *error);
} clv__onnx_outside;

/* Writes a view like clv__onnx_write(), with all constants. The data of constants that outside->place() finds in the file is not
 * written into the model. */
CLV_MUST_USE clv_status clv__onnx_write_beside(const clv_graph_view *view, const clv__onnx_outside *outside,
                                               const clv_allocator *allocator, void **data, size_t *size_bytes, clv_error *error);

/* Reads a TensorProto, such as `input_0.pb` of the ONNX test directories. `tensor->data` is one block from `allocator`, including
 * the text of strings; the caller releases it. Unless `name` is NULL, sets `*name` to the tensor's name or "", which the caller
 * releases. */
CLV_MUST_USE clv_status clv__onnx_tensor_read(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                              clv_tensor *tensor, char **name, clv_error *error);
CLV_MUST_USE clv_status clv__onnx_tensor_read_file(const clv_allocator *allocator, const char *path, clv_tensor *tensor,
                                                   char **name, clv_error *error);
/* Writes a TensorProto into memory from `allocator`. The tensor must have a static shape and data. */
CLV_MUST_USE clv_status clv__onnx_tensor_write(const clv_tensor *tensor, const char *name, const clv_allocator *allocator,
                                               void **data, size_t *size_bytes, clv_error *error);

#endif
