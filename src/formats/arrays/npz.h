/* Reads and writes NumPy's .npz files: named tensors in a zip file, either uncompressed (stored) or deflated. */
#ifndef CLEAVE_FORMATS_ARRAYS_NPZ_H
#define CLEAVE_FORMATS_ARRAYS_NPZ_H

#include "base/error.h"
#include "formats/arrays/npy.h"

typedef struct clv__npz clv__npz;

/* Opens a file, which stays mapped until clv__npz_close(). Reads only the zip directory. Errors as in npy.h. */
CLV_MUST_USE clv_status clv__npz_open(const clv_allocator *allocator, const char *path, clv__npz **npz, clv_error *error);
/* Opens an npz file in memory. The caller keeps the bytes, which must outlive `npz`. */
CLV_MUST_USE clv_status clv__npz_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, clv__npz **npz,
                                             clv_error *error);
void clv__npz_close(clv__npz *npz); /* accepts NULL */

size_t clv__npz_count(const clv__npz *npz);
/* Returns the name of an array: the name of its zip entry without `.npy`. The string lives as long as `npz`. */
const char *clv__npz_name(const clv__npz *npz, size_t index);
/* Reads an array by name. `tensor->data` is one block from the allocator; the caller releases it. If the array is absent, the
 * error is CLV_NOT_FOUND and lists the available names. */
CLV_MUST_USE clv_status clv__npz_read(const clv__npz *npz, const char *name, clv_tensor *tensor, clv_error *error);

/* ---- Arrays too large for memory: read piece by piece ---- */

typedef struct clv__npz_stream clv__npz_stream;

/* Opens an array for reading. Several streams may read the same array at once; `npz` must outlive them. Errors as in
 * clv__npz_read(). */
CLV_MUST_USE clv_status clv__npz_stream_open(const clv__npz *npz, const char *name, clv__npz_stream **stream, clv_error *error);
void clv__npz_stream_close(clv__npz_stream *stream); /* accepts NULL */
const clv__npy_header *clv__npz_stream_header(const clv__npz_stream *stream);
/* Reads the next `count` elements, in the order of the file and in the byte order of this machine. With header.is_fortran, the
 * file's order is not the tensor's. Strings are not converted. The checksum is compared only after the last element, so damaged
 * elements may have been returned by then. */
CLV_MUST_USE clv_status clv__npz_stream_read(clv__npz_stream *stream, void *to, size_t count, clv_error *error);
/* Skips elements. `jump`: if possible, does not read the skipped bytes, and then never compares the checksum. */
CLV_MUST_USE clv_status clv__npz_stream_skip(clv__npz_stream *stream, size_t count, bool jump, clv_error *error);

/* ---- Writing ---- */

typedef struct clv__npz_writer clv__npz_writer;

/* Starts writing a file, which appears at `path` only on commit, completely or not at all. `path` must outlive the writer. */
CLV_MUST_USE clv_status clv__npz_writer_open(const clv_allocator *allocator, const char *path, bool deflate,
                                             clv__npz_writer **writer, clv_error *error);
/* Writes one complete array. */
CLV_MUST_USE clv_status clv__npz_writer_put(clv__npz_writer *writer, const char *name, const clv_tensor *tensor,
                                            clv_error *error);
/* Writes one array piece by piece: begin with its type (static, no strings), append all of its bytes in any number of pieces,
 * then end it. */
CLV_MUST_USE clv_status clv__npz_writer_begin(clv__npz_writer *writer, const char *name, const clv_tensor *type,
                                              clv_error *error);
CLV_MUST_USE clv_status clv__npz_writer_append(clv__npz_writer *writer, const void *data, size_t size_bytes, clv_error *error);
CLV_MUST_USE clv_status clv__npz_writer_end(clv__npz_writer *writer, clv_error *error);
CLV_MUST_USE clv_status clv__npz_writer_commit(clv__npz_writer *writer, clv_error *error);
void clv__npz_writer_close(clv__npz_writer *writer); /* accepts NULL; discards uncommitted data */

/* Writes all arrays, stored or deflated, completely or not at all. Equal arrays give equal bytes. */
CLV_MUST_USE clv_status clv__npz_write(const clv_allocator *allocator, const char *path, const char *const *names,
                                       const clv_tensor *tensors, size_t count, bool deflate, clv_error *error);

#endif
