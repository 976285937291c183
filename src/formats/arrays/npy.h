/* NumPy's .npy: one tensor per file, bit for bit. bf16 has descr '<V2', as in ml_dtypes. */
#ifndef CLEAVE_FORMATS_ARRAYS_NPY_H
#define CLEAVE_FORMATS_ARRAYS_NPY_H

#include "base/error.h"
#include "base/text.h"

/* Reads an array of versions 1 to 3, in either byte order and in C or Fortran order (converted to row-major). Strings (U and
 * S) become UTF-8. `tensor->data` is one block from `allocator`, including the text of strings; the caller releases it.
 * CLV_INVALID_MODEL for a damaged file, CLV_NOT_SUPPORTED for unsupported element types and ranks, CLV_NOT_FOUND,
 * CLV_IO_ERROR, CLV_OUT_OF_MEMORY. */
CLV_MUST_USE clv_status clv__npy_read(const clv_allocator *allocator, const char *path, clv_tensor *tensor, clv_error *error);
CLV_MUST_USE clv_status clv__npy_read_memory(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                             clv_tensor *tensor, clv_error *error);

/* Writes the file completely or not at all. The tensor is static and has data. Strings must be UTF-8 and lose trailing zero
 * bytes, as in NumPy. */
CLV_MUST_USE clv_status clv__npy_write(const clv_allocator *allocator, const char *path, const clv_tensor *tensor,
                                       clv_error *error);
/* Appends the bytes of a whole .npy file. The caller checks `out->failed` at the end. */
CLV_MUST_USE clv_status clv__npy_append(clv__text *out, const clv_tensor *tensor, clv_error *error);

/* Appends the header for a static tensor without strings. */
CLV_MUST_USE clv_status clv__npy_append_header(clv__text *out, const clv_tensor *type, clv_error *error);

/* ---- Reading header and data separately, for npz, which reads piece by piece ---- */

typedef struct clv__npy_header {
  clv_tensor type; /* without data */
  bool is_fortran;
  bool swap;            /* elements are big-endian, so their bytes must be swapped */
  char kind;            /* 'U' or 'S' for strings, 0 otherwise */
  size_t element_bytes; /* of one element in the file */
  size_t count;
  size_t header_bytes; /* bytes from the start of the file to the data */
  size_t data_bytes;   /* size of the data in the file */
} clv__npy_header;

/* The maximum size of a header. clv__npy_header_read() needs at most this many bytes of the file. */
enum { CLV__NPY_HEADER_LIMIT = 65536 };
CLV_MUST_USE clv_status clv__npy_header_read(const void *data, size_t size_bytes, clv__npy_header *header, clv_error *error);
/* Returns whether the file's data can be converted to the tensor's data in place, by clv__npy_fix_plain(). */
bool clv__npy_header_is_plain(const clv__npy_header *header);
/* Converts the file's data to the tensor's data in place: swaps the bytes of elements, and replaces booleans by 0 or 1. Only
 * for a header for which clv__npy_header_is_plain() returns true. */
void clv__npy_fix_plain(const clv__npy_header *header, void *data);
/* Converts the file's data, whatever the header, into a new block for the tensor. */
CLV_MUST_USE clv_status clv__npy_convert(const clv_allocator *allocator, const clv__npy_header *header, const void *data,
                                         clv_tensor *tensor, clv_error *error);

#endif
