/* Reads the weights of a model whose own file contains none, from one or more files of named tensors (safetensors or npz), or
 * from tensors in memory. */
#ifndef CLEAVE_FORMATS_PARAMS_H
#define CLEAVE_FORMATS_PARAMS_H

#include "base/map.h"
#include "cleave/graph.h"
#include "graph/graph.h"

typedef struct clv__params clv__params;

/* Opens the files, at most CLV__PARAMS_MAX_FILES, and reads the list of tensors of each. Errors as in safetensors.h and npz.h. */
enum { CLV__PARAMS_MAX_FILES = 1024 };
CLV_MUST_USE clv_status clv__params_open(const clv_allocator *allocator, const char *const *paths, uint32_t count,
                                         clv__params **params, clv_error *error);
/* Instead of files: `count` tensors in the caller's memory, which `names` names. The arrays and names must outlive the params.
 * The graph copies the data, or borrows it, by `ownership`. `tensors` must not be NULL. */
CLV_MUST_USE clv_status clv__params_wrap(const clv_allocator *allocator, const char *const *names, const clv_tensor *tensors,
                                         uint32_t count, clv_ownership ownership, clv__params **params, clv_error *error);
void clv__params_close(clv__params *params); /* accepts NULL */

/* Returns whether one of the files, or the tensors in memory, has a tensor with this name. */
bool clv__params_has(const clv__params *params, const char *name);
/* Returns the tensor `name` of the first file that has it. Its type must be `type`, but a u16 tensor may contain the bits of bf16
 * numbers. Data of safetensors stays in the mapped file, which the graph then owns. Data of npz is copied into the graph's arena.
 * Errors: CLV_NOT_FOUND, CLV_INVALID_MODEL, CLV_NOT_SUPPORTED, CLV_OUT_OF_MEMORY. */
CLV_MUST_USE clv_status clv__params_bind(clv__params *params, clv__builder *builder, const char *name, const clv_tensor *type,
                                         clv_tensor *bound, clv_error *error);

#endif
