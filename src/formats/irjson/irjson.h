/* IR JSON: a model exported from PyTorch as a list of ATen operators with the types of all tensors, and without the weights'
 * bytes. docs/ir-json.md has the format as it is read and the list of operators. */
#ifndef CLEAVE_FORMATS_IRJSON_IRJSON_H
#define CLEAVE_FORMATS_IRJSON_IRJSON_H

#include "formats/params.h"

/* Whether the bytes are JSON, that is, no ONNX model: the first that is no space is a brace (an ONNX model begins with a tag). */
bool clv__irjson_recognise(const void *data, size_t size_bytes);

/* Loads a model. ATen operators become ONNX's where they can; the nodes that one becomes carry its name and operator (see
 * clv__node). One that cannot stays, in domain `aten`, with the output types that the file declares. Weights become unbound
 * values, but for those whose numbers the file holds ("constants"); with `params` (may be NULL) all must be in one of those
 * files, and none is unbound: what is read there lives with the graph, `params` need not. `path` (may be NULL) is for messages
 * and the graph. The bytes are not needed any more when the call is over. Errors: CLV_INVALID_MODEL, CLV_NOT_SUPPORTED,
 * CLV_OUT_OF_MEMORY; the text begins with the path, and names node and place. */
CLV_MUST_USE clv_status clv__irjson_load(const clv_allocator *allocator, const char *path, const void *data, size_t size_bytes,
                                         clv__params *params, clv_graph **graph, clv_error *error);

#endif
