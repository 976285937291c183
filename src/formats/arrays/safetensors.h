/* Reads safetensors files: named tensors after a JSON header. The file is mapped, and tensors are read in place. */
#ifndef CLEAVE_FORMATS_ARRAYS_SAFETENSORS_H
#define CLEAVE_FORMATS_ARRAYS_SAFETENSORS_H

#include "base/error.h"
#include "base/files/file.h"

typedef struct clv__safetensors clv__safetensors;

/* Opens a file, which stays mapped until clv__safetensors_close(). Checks the whole header: names, sizes and offsets. The tensors
 * must fill the data without gaps or overlaps. Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL, CLV_OUT_OF_MEMORY; the
 * text begins with the path. */
CLV_MUST_USE clv_status clv__safetensors_open(const clv_allocator *allocator, const char *path, clv__safetensors **file,
                                              clv_error *error);
/* Opens safetensors in memory. The caller keeps the bytes, which must outlive `file`. */
CLV_MUST_USE clv_status clv__safetensors_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                                     clv__safetensors **file, clv_error *error);
void clv__safetensors_close(clv__safetensors *file); /* accepts NULL */

/* Moves the mapping to the caller, who must close it. Tensors read from the file stay valid until then. Returns an empty mapping
 * if the file was opened from memory or the mapping was already taken. */
clv__file_map clv__safetensors_take_map(clv__safetensors *file);

size_t clv__safetensors_count(const clv__safetensors *file);
/* Returns the name of a tensor. The string lives as long as `file`. */
const char *clv__safetensors_name(const clv__safetensors *file, size_t index);
bool clv__safetensors_has(const clv__safetensors *file, const char *name);
/* Reads a tensor by name. `tensor->data` points into the file, may be unaligned, and is read-only. Errors: CLV_NOT_FOUND, with
 * the available names, if there is no such tensor; CLV_NOT_SUPPORTED for an unsupported dtype or rank; CLV_INVALID_MODEL for
 * bools other than 0 and 1. */
CLV_MUST_USE clv_status clv__safetensors_read(const clv__safetensors *file, const char *name, clv_tensor *tensor,
                                              clv_error *error);

#endif
