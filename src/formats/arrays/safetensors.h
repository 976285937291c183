/* safetensors: named tensors behind a JSON header, in a file that is mapped and never copied. */
#ifndef CLEAVE_FORMATS_ARRAYS_SAFETENSORS_H
#define CLEAVE_FORMATS_ARRAYS_SAFETENSORS_H

#include "base/error.h"
#include "base/files/file.h"

typedef struct clv__safetensors clv__safetensors;

/* Opens a file, which stays mapped until it is closed. The whole header is checked here: sizes, places (they tile the file,
 * without gap or overlap), names. Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL, CLV_OUT_OF_MEMORY; the text begins with
 * the path. */
CLV_MUST_USE clv_status clv__safetensors_open(const clv_allocator *allocator, const char *path, clv__safetensors **file,
                                              clv_error *error);
/* The same over bytes that stay the caller's and outlive it. */
CLV_MUST_USE clv_status clv__safetensors_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                                     clv__safetensors **file, clv_error *error);
void clv__safetensors_close(clv__safetensors *file); /* accepts NULL */

/* The mapping passes to the caller, who closes it: what was read lives as long as that. Empty where there is none (any more). */
clv__file_map clv__safetensors_take_map(clv__safetensors *file);

size_t clv__safetensors_count(const clv__safetensors *file);
/* Lives as long as `file`. */
const char *clv__safetensors_name(const clv__safetensors *file, size_t index);
bool clv__safetensors_has(const clv__safetensors *file, const char *name);
/* A tensor by name: `tensor->data` points into the file, where it may lie unaligned; nobody may write to it. CLV_NOT_FOUND, with
 * names there are, when it is absent; CLV_NOT_SUPPORTED for a dtype or rank that Cleave has not; CLV_INVALID_MODEL for bools that
 * are none. */
CLV_MUST_USE clv_status clv__safetensors_read(const clv__safetensors *file, const char *name, clv_tensor *tensor,
                                              clv_error *error);

#endif
