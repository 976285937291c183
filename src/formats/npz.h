/* NumPy's .npz: named tensors in a zip file, stored or deflated. */
#ifndef CLEAVE_FORMATS_NPZ_H
#define CLEAVE_FORMATS_NPZ_H

#include "base/error.h"

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

/* Writes all arrays, stored or deflated, whole or not at all; the same arrays give the same bytes. */
CLV_MUST_USE clv_status clv__npz_write(const clv_allocator *allocator, const char *path, const char *const *names,
                                       const clv_tensor *tensors, size_t count, bool deflate, clv_error *error);

#endif
