/* IR JSON: a model exported from PyTorch as a list of ATen operators with the types of all tensors, but without the bytes of
 * the weights. docs/ir-json.md describes the supported format and lists the operators. */
#ifndef CLEAVE_FORMATS_IRJSON_IRJSON_H
#define CLEAVE_FORMATS_IRJSON_IRJSON_H

#include "formats/params.h"

/* Returns whether the bytes are JSON: whether their first character other than white space is '{'. An ONNX model cannot begin
 * like this. */
bool clv__irjson_recognise(const void *data, size_t size_bytes);

/* Loads a model. ATen operators become ONNX operators if possible; the resulting nodes keep the name and operator of the ATen
 * node (see clv__node). An operator that cannot be converted stays in domain `aten`, with the output types declared in the file.
 *
 * Weights are values without data, except those whose numbers the file contains ("constants"). If `params` is not NULL, its files
 * must contain the data of all other weights. The graph owns the data read from them, so `params` may be closed. `path` (may be
 * NULL) is stored in the graph and used in errors. `data` is not needed after the call. Errors: CLV_INVALID_MODEL,
 * CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY; the text begins with the path and names the node and the position in the file. */
CLV_MUST_USE clv_status clv__irjson_load(const clv_allocator *allocator, const char *path, const void *data, size_t size_bytes,
                                         clv__params *params, clv_graph **graph, clv_error *error);

#endif
