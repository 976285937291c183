/* safetensors: named tensors after a JSON header, in a file that is mapped and never copied. */
#ifndef CLEAVE_FORMATS_ARRAYS_SAFETENSORS_H
#define CLEAVE_FORMATS_ARRAYS_SAFETENSORS_H

#include "base/error.h"
#include "base/files/file.h"

typedef struct clv__safetensors clv__safetensors;

/* Opens a file and maps it until it is closed. Checks the whole header: sizes, offsets (the tensors tile the file without gaps
 * or overlaps) and names. Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL, CLV_OUT_OF_MEMORY; the text begins with the
 * path. */
CLV_MUST_USE clv_status clv__safetensors_open(const clv_allocator *allocator, const char *path, clv__safetensors **file,
                                              clv_error *error);
/* The same from memory. The bytes stay the caller's and must outlive `file`. */
CLV_MUST_USE clv_status clv__safetensors_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                                     clv__safetensors **file, clv_error *error);
void clv__safetensors_close(clv__safetensors *file); /* accepts NULL */

/* Moves the mapping to the caller, who closes it. Tensors read from it stay valid as long as the mapping. Empty if there is no
 * mapping (any more). */
clv__file_map clv__safetensors_take_map(clv__safetensors *file);

size_t clv__safetensors_count(const clv__safetensors *file);
/* Lives as long as `file`. */
const char *clv__safetensors_name(const clv__safetensors *file, size_t index);
bool clv__safetensors_has(const clv__safetensors *file, const char *name);
/* Reads a tensor by name. `tensor->data` points into the file, may be unaligned, and is read-only. CLV_NOT_FOUND, with
 * available names, if it is absent; CLV_NOT_SUPPORTED for an unsupported dtype or rank; CLV_INVALID_MODEL for bools other than
 * 0 and 1. */
CLV_MUST_USE clv_status clv__safetensors_read(const clv__safetensors *file, const char *name, clv_tensor *tensor,
                                              clv_error *error);

#endif
