/* NumPy's .npz: named tensors in a zip file, stored or deflated. */
#ifndef CLEAVE_FORMATS_ARRAYS_NPZ_H
#define CLEAVE_FORMATS_ARRAYS_NPZ_H

#include "base/error.h"
#include "formats/arrays/npy.h"

typedef struct clv__npz clv__npz;

/* Opens a file, which stays mapped until it is closed. Only the directory is read here. Errors as in npy.h. */
CLV_MUST_USE clv_status clv__npz_open(const clv_allocator *allocator, const char *path, clv__npz **npz, clv_error *error);
/* The same over bytes that stay the caller's and outlive it. */
CLV_MUST_USE clv_status clv__npz_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, clv__npz **npz,
                                             clv_error *error);
void clv__npz_close(clv__npz *npz); /* accepts NULL */

size_t clv__npz_count(const clv__npz *npz);
/* The name of an array: its entry's, without `.npy`. Lives as long as `npz`. */
const char *clv__npz_name(const clv__npz *npz, size_t index);
/* Reads an array by name: CLV_NOT_FOUND, with the names there are, when it is absent. `tensor->data` is one block from the
 * allocator, the caller's to release. */
CLV_MUST_USE clv_status clv__npz_read(const clv__npz *npz, const char *name, clv_tensor *tensor, clv_error *error);

/* ---- Arrays larger than memory should hold: piece by piece ---- */

typedef struct clv__npz_stream clv__npz_stream;

/* Begins to read an array, which may be read by several streams at once; `npz` outlives them. Errors as above. */
CLV_MUST_USE clv_status clv__npz_stream_open(const clv__npz *npz, const char *name, clv__npz_stream **stream, clv_error *error);
void clv__npz_stream_close(clv__npz_stream *stream); /* accepts NULL */
const clv__npy_header *clv__npz_stream_header(const clv__npz_stream *stream);
/* The next `count` elements in the order of the file (which for is_fortran is not the tensor's), in the byte order of this
 * machine; strings as they are. With the last element the checksum is compared: what came before may have been damaged. */
CLV_MUST_USE clv_status clv__npz_stream_read(clv__npz_stream *stream, void *to, size_t count, clv_error *error);
/* Passes over elements. `jump`: without looking at them where that is possible; the checksum is then not compared. */
CLV_MUST_USE clv_status clv__npz_stream_skip(clv__npz_stream *stream, size_t count, bool jump, clv_error *error);

/* ---- Writing ---- */

typedef struct clv__npz_writer clv__npz_writer;

/* The file appears when it is committed, whole or not at all; `path` outlives the writer. */
CLV_MUST_USE clv_status clv__npz_writer_open(const clv_allocator *allocator, const char *path, bool deflate,
                                             clv__npz_writer **writer, clv_error *error);
/* One array, whole. */
CLV_MUST_USE clv_status clv__npz_writer_put(clv__npz_writer *writer, const char *name, const clv_tensor *tensor,
                                            clv_error *error);
/* One array piece by piece: its type (static, no strings), then all of its bytes in as many pieces as one likes, then its end. */
CLV_MUST_USE clv_status clv__npz_writer_begin(clv__npz_writer *writer, const char *name, const clv_tensor *type,
                                              clv_error *error);
CLV_MUST_USE clv_status clv__npz_writer_append(clv__npz_writer *writer, const void *data, size_t size_bytes, clv_error *error);
CLV_MUST_USE clv_status clv__npz_writer_end(clv__npz_writer *writer, clv_error *error);
CLV_MUST_USE clv_status clv__npz_writer_commit(clv__npz_writer *writer, clv_error *error);
void clv__npz_writer_close(clv__npz_writer *writer); /* accepts NULL; what is not committed is gone */

/* Writes all arrays, stored or deflated, whole or not at all; the same arrays give the same bytes. */
CLV_MUST_USE clv_status clv__npz_write(const clv_allocator *allocator, const char *path, const char *const *names,
                                       const clv_tensor *tensors, size_t count, bool deflate, clv_error *error);

#endif
