/* Tensors outside sessions: their elements, random contents, comparisons, files, and a report of their values. Unstable: may
 * change until 1.0. */
#ifndef CLEAVE_TENSORS_H
#define CLEAVE_TENSORS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Elements. Any thread may call these functions. ---- */

/* Computes the number of elements, or the size of the data in bytes (for CLV_STRING, that of the clv_strings). Returns false, and
 * leaves the result as it is, if a dimension or the rank is unknown, or if the number does not fit. */
CLV_API bool clv_tensor_count(const clv_tensor *tensor, size_t *count);
CLV_API bool clv_tensor_size_bytes(const clv_tensor *tensor, size_t *size_bytes);
/* Returns whether dtype, rank and dims are equal. */
CLV_API bool clv_tensor_same_type(const clv_tensor *a, const clv_tensor *b);
/* An element as a number, by its flat index, which must be below the count; booleans are 0 or 1. 64-bit integers are rounded. Not
 * for strings. */
CLV_API double clv_tensor_element(const clv_tensor *tensor, size_t index);

/* Fills `tensor`, whose data must have room, with pseudo-random numbers that depend only on the dtype, the count and the seed:
 * floats in [-1, 1), integers from 0 to 9, booleans. Two-bit and four-bit types are cut to their range.
 * Errors: CLV_INVALID_ARGUMENT for strings, unknown shapes, or without data. */
CLV_API CLV_MUST_USE clv_status clv_tensor_fill_random(clv_tensor *tensor, uint64_t seed, clv_error *error);

typedef struct clv_tensor_difference {
  uint32_t struct_size;
  bool same_type;  /* false: dtype or shape differ, and all that follows is 0 */
  uint64_t count;  /* elements */
  uint64_t beyond; /* elements that do not agree */
  uint64_t worst;  /* the flat index of the element that disagrees most; 0 if all agree */
  double expected; /* its values; 0 for strings */
  double actual;
} clv_tensor_difference;
/* Compares two tensors with known shapes and data. Floats agree within absolute + relative * |expected|, a NaN with a NaN, an
 * infinity with itself. All else must be equal. Returns whether all elements agree. `difference` may be NULL; otherwise as many
 * bytes are filled as its struct_size says. */
CLV_API bool clv_tensor_compare(const clv_tensor *expected, const clv_tensor *actual, double relative, double absolute,
                                clv_tensor_difference *difference);

/* ---- Files ---- */

typedef enum clv_array_format {
  CLV_ARRAYS_UNKNOWN = 0,
  CLV_ARRAYS_NPY = 1, /* NumPy: one tensor */
  CLV_ARRAYS_NPZ = 2, /* NumPy: named tensors in a zip file */
  CLV_ARRAYS_PB = 3   /* ONNX: a TensorProto */
} clv_array_format;
/* Recognises a file by its first bytes or, if these do not tell, by the ending of its name. A file that does not exist is
 * recognised by its name. */
CLV_API clv_array_format clv_arrays_recognise(const char *path);

/* The named tensors of a file. */
typedef struct clv_arrays clv_arrays;

/* Opens a file of the given format, or of the format that clv_arrays_recognise() finds for CLV_ARRAYS_UNKNOWN. The tensor of a
 * .npy or .pb file is read at once. Those of an .npz file are read by clv_arrays_tensor(); the file must not be written to until
 * clv_arrays_close().
 * Errors: CLV_NOT_FOUND, CLV_IO_ERROR; CLV_INVALID_MODEL for a damaged file; CLV_NOT_SUPPORTED for element types and ranks that
 * Cleave does not have, and for a file of no known format; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_arrays_open(clv_context *context, const char *path, clv_array_format format,
                                                clv_arrays **arrays, clv_error *error);
/* Releases the tensors, too. Accepts NULL. */
CLV_API void clv_arrays_close(clv_arrays *arrays);
CLV_API uint32_t clv_arrays_count(const clv_arrays *arrays);
/* The name of a tensor: that of the .npz entry without ".npy", that of the TensorProto, or "" for .npy. NULL for an index beyond
 * the count. Valid as long as `arrays`. */
CLV_API const char *clv_arrays_name(const clv_arrays *arrays, uint32_t index);
/* Sets `tensor` to a tensor, whose data is valid as long as `arrays`. An .npz file's tensor is read at the first call. A
 * `clv_arrays` must not be used by two threads at a time. Errors: CLV_NOT_FOUND for an index beyond the count; those of reading,
 * as above. */
CLV_API CLV_MUST_USE clv_status clv_arrays_tensor(clv_arrays *arrays, uint32_t index, clv_tensor *tensor, clv_error *error);

/* Writes tensors to a file, completely or not at all, in the format that the ending of the path names: .npy and .pb take one
 * tensor. `names` has a name for each tensor; it may be NULL for .npy, which has no names. Any thread may call it.
 * Errors: CLV_INVALID_ARGUMENT for another ending, a wrong count, a tensor without data or with an unknown shape, or a name that
 * is missing or repeated; CLV_NOT_SUPPORTED for a dtype that the format does not have; CLV_IO_ERROR; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_arrays_write(clv_context *context, const char *path, const char *const *names,
                                                 const clv_tensor *tensors, uint32_t count, clv_error *error);

/* ---- A report ---- */

/* A tensor to report. This struct does not grow. */
typedef struct clv_named_tensor {
  const char *name;
  clv_tensor tensor;
  const char *file; /* the file that it was written to; NULL: none */
} clv_named_tensor;
/* Makes a document of the tensors, as `cleave run` prints its outputs: for each, its type, the least, largest and mean of its
 * finite elements, and, only as text, its first elements. JSON is an array. `graph` gives the names of symbolic sizes, and the
 * allocator. Free it with clv_text_free(). Errors: CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_tensors_report(const clv_graph *graph, const clv_named_tensor *tensors, uint32_t count,
                                                   clv_form form, char **text, clv_error *error);
/* Writes a type such as "f32[1,3,N,?]" to `text`, with the names of the graph's symbols; characters that control terminals are
 * escaped. `graph` may be NULL: symbols are then "?". Cuts the text if it needs more than `size_bytes` with its terminator.
 * Returns the bytes that it needs without the terminator. */
CLV_API size_t clv_tensor_type_text(const clv_graph *graph, const clv_tensor *type, char *text, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
