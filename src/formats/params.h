/* The numbers of weights that a model's file names and does not hold: one or more files of named tensors, safetensors or npz. */
#ifndef CLEAVE_FORMATS_PARAMS_H
#define CLEAVE_FORMATS_PARAMS_H

#include "graph/graph.h"

typedef struct clv__params clv__params;

/* Opens the files, at most CLV__PARAMS_MAX_FILES; only their directories are read. Errors as in safetensors.h and npz.h. */
enum { CLV__PARAMS_MAX_FILES = 1024 };
CLV_MUST_USE clv_status clv__params_open(const clv_allocator *allocator, const char *const *paths, uint32_t count,
                                         clv__params **params, clv_error *error);
void clv__params_close(clv__params *params); /* accepts NULL */

/* Whether one of the files has a tensor of that name. */
bool clv__params_has(const clv__params *params, const char *name);
/* The tensor `name` of the first file that has it, which must be of `type`. Of safetensors the data lies in the mapped file,
 * which becomes the graph's; of npz it is copied into the graph's arena. 16 bits without a sign serve for bf16, bit for bit.
 * Errors: CLV_NOT_FOUND, CLV_INVALID_MODEL, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY. */
CLV_MUST_USE clv_status clv__params_bind(clv__params *params, clv__builder *builder, const char *name, const clv_tensor *type,
                                         clv_tensor *bound, clv_error *error);

#endif
