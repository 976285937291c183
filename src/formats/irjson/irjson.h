/* IR JSON: a model exported from PyTorch as a list of ATen operators with the types of all tensors, but without the bytes of
 * the weights. docs/ir-json.md describes the supported format and lists the operators. */
#ifndef CLEAVE_FORMATS_IRJSON_IRJSON_H
#define CLEAVE_FORMATS_IRJSON_IRJSON_H

#include "formats/params.h"

/* Whether the bytes are JSON and thus not an ONNX model: the first character that is not a space is a brace (an ONNX model
 * begins with a tag). */
bool clv__irjson_recognise(const void *data, size_t size_bytes);

/* Loads a model. ATen operators become ONNX operators if possible; the resulting nodes keep the name and operator of their
 * source (see clv__node). An operator that cannot be converted stays in domain `aten`, with the output types declared in the
 * file.
 *
 * Weights become unbound values, except those whose numbers the file contains ("constants"). If `params` is not NULL, all
 * weights must be in one of its files, and none stays unbound. The graph keeps the data it reads from there, so `params` may
 * be closed. `path` (may be NULL) is for errors and for the graph. The bytes are not needed after the call. Errors:
 * CLV_INVALID_MODEL, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY; the text begins with the path and names the node and the place. */
CLV_MUST_USE clv_status clv__irjson_load(const clv_allocator *allocator, const char *path, const void *data, size_t size_bytes,
                                         clv__params *params, clv_graph **graph, clv_error *error);

#endif
