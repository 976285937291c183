/* NumPy's .npy: one tensor in a file, bit for bit. bf16 is descr '<V2', as ml_dtypes writes it. */
#ifndef CLEAVE_FORMATS_ARRAYS_NPY_H
#define CLEAVE_FORMATS_ARRAYS_NPY_H

#include "base/error.h"
#include "base/text.h"

/* Reads an array of versions 1 to 3, either byte order, C or Fortran order (which becomes row-major). Strings (U and S) become
 * UTF-8. `tensor->data` is one block from `allocator`, the text of strings included, the caller's to release. CLV_INVALID_MODEL
 * for what is damaged, CLV_NOT_SUPPORTED for element types and ranks that Cleave has not, CLV_NOT_FOUND, CLV_IO_ERROR,
 * CLV_OUT_OF_MEMORY. */
CLV_MUST_USE clv_status clv__npy_read(const clv_allocator *allocator, const char *path, clv_tensor *tensor, clv_error *error);
CLV_MUST_USE clv_status clv__npy_read_memory(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                             clv_tensor *tensor, clv_error *error);

/* Writes whole or not at all. The tensor is static and has data; strings must be UTF-8, and lose zero bytes at their end (as they
 * do in NumPy). */
CLV_MUST_USE clv_status clv__npy_write(const clv_allocator *allocator, const char *path, const clv_tensor *tensor,
                                       clv_error *error);
/* Appends the file's bytes; check `out->failed` at the end. */
CLV_MUST_USE clv_status clv__npy_append(clv__text *out, const clv_tensor *tensor, clv_error *error);

/* Appends what comes before the data of a static tensor that holds no strings. */
CLV_MUST_USE clv_status clv__npy_append_header(clv__text *out, const clv_tensor *type, clv_error *error);

/* ---- In two steps, for readers that get the bytes piece by piece (npz) ---- */

typedef struct clv__npy_header {
  clv_tensor type; /* data NULL */
  bool is_fortran;
  bool swap;            /* the bytes of an element are in the other order */
  char kind;            /* 'U' or 'S' for strings, 0 otherwise */
  size_t element_bytes; /* in the file */
  size_t count;
  size_t header_bytes; /* before the data */
  size_t data_bytes;   /* in the file */
} clv__npy_header;

/* The most bytes a header may take; with these (or all there are) given, it can be read. */
enum { CLV__NPY_HEADER_LIMIT = 65536 };
CLV_MUST_USE clv_status clv__npy_header_read(const void *data, size_t size_bytes, clv__npy_header *header, clv_error *error);
/* Whether the data in the file needs only an in-place touch to be the tensor's. */
bool clv__npy_header_is_plain(const clv__npy_header *header);
/* Swaps bytes and sets booleans to 0 or 1, in place, for plain ones. */
void clv__npy_fix_plain(const clv__npy_header *header, void *data);
/* The tensor's own block out of the file's data, whatever the header says. */
CLV_MUST_USE clv_status clv__npy_convert(const clv_allocator *allocator, const clv__npy_header *header, const void *data,
                                         clv_tensor *tensor, clv_error *error);

#endif
