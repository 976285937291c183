/* Files of tensors: see cleave/tensors.h. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "cleave/tensors.h"
#include "device/device.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/npz.h"
#include "formats/onnx/onnx.h"

struct clv_arrays {
  const clv_allocator *allocator;
  clv__npz *npz; /* NULL: another format, with one tensor */
  char *name;    /* of that tensor; NULL: "" */
  uint32_t count;
  clv_tensor *tensors; /* dtype none: not read yet */
};

/* ---- Formats ---- */

static bool ends_with(const char *path, const char *ending) {
  const size_t length = strlen(path), of_ending = strlen(ending);
  return length > of_ending && strcmp(path + length - of_ending, ending) == 0;
}

/* The ending decides only if the first bytes do not: protobuf has no fixed first bytes, and a reader reports a wrong content. The
 * copy of a pipe (/proc/self/fd/N) has no ending: unless its first bytes are those of npy or npz, it counts as protobuf. */
clv_array_format clv_arrays_recognise(const char *path) {
  char head[6] = "";
  FILE *file = fopen(path, "rb");
  const size_t count = file != NULL ? fread(head, 1, sizeof head, file) : 0;
  if (file != NULL) fclose(file);
  if (count == sizeof head && memcmp(head, "\x93NUMPY", sizeof head) == 0) return CLV_ARRAYS_NPY;
  if (count >= 4 && memcmp(head, "PK", 2) == 0) return CLV_ARRAYS_NPZ;
  if (ends_with(path, ".npy")) return CLV_ARRAYS_NPY;
  if (ends_with(path, ".npz")) return CLV_ARRAYS_NPZ;
  if (ends_with(path, ".pb")) return CLV_ARRAYS_PB;
  return strncmp(path, "/proc/self/fd/", 14) == 0 ? CLV_ARRAYS_PB : CLV_ARRAYS_UNKNOWN;
}

/* ---- Reading ---- */

static clv_status open(clv_arrays *arrays, const char *path, clv_array_format format, clv_error *error) {
  if (format == CLV_ARRAYS_NPZ) CLV__TRY(clv__npz_open(arrays->allocator, path, &arrays->npz, error));
  const size_t count = arrays->npz != NULL ? clv__npz_count(arrays->npz) : 1;
  if (count > UINT32_MAX) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: has %zu arrays", path, count);
  arrays->tensors = clv__allocate_zero(arrays->allocator, (count + 1) * sizeof *arrays->tensors);
  if (arrays->tensors == NULL) return clv__error_memory(error, count * sizeof *arrays->tensors);
  arrays->count = (uint32_t)count;
  if (format == CLV_ARRAYS_NPY) return clv__npy_read(arrays->allocator, path, &arrays->tensors[0], error);
  if (format == CLV_ARRAYS_PB)
    return clv__onnx_tensor_read_file(arrays->allocator, path, &arrays->tensors[0], &arrays->name, error);
  return CLV_OK;
}

clv_status clv_arrays_open(clv_context *context, const char *path, clv_array_format format, clv_arrays **out, clv_error *error) {
  if (context == NULL || path == NULL || out == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, path and arrays must not be NULL");
  *out = NULL;
  if (format == CLV_ARRAYS_UNKNOWN) format = clv_arrays_recognise(path);
  if (format != CLV_ARRAYS_NPY && format != CLV_ARRAYS_NPZ && format != CLV_ARRAYS_PB)
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: not a .npy, .npz or .pb file", path);
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_arrays *arrays = clv__allocate_zero(allocator, sizeof *arrays);
  if (arrays == NULL) return clv__error_memory(error, sizeof *arrays);
  arrays->allocator = allocator;
  const clv_status status = open(arrays, path, format, error);
  if (status == CLV_OK)
    *out = arrays;
  else
    clv_arrays_close(arrays);
  return status;
}

void clv_arrays_close(clv_arrays *arrays) {
  if (arrays == NULL) return;
  for (uint32_t i = 0; i < arrays->count; ++i) clv__release(arrays->allocator, arrays->tensors[i].data);
  clv__release(arrays->allocator, arrays->tensors);
  clv__release(arrays->allocator, arrays->name);
  clv__npz_close(arrays->npz);
  clv__release(arrays->allocator, arrays);
}

uint32_t clv_arrays_count(const clv_arrays *arrays) {
  return arrays->count;
}

const char *clv_arrays_name(const clv_arrays *arrays, uint32_t index) {
  if (index >= arrays->count) return NULL;
  if (arrays->npz != NULL) return clv__npz_name(arrays->npz, index);
  return arrays->name != NULL ? arrays->name : "";
}

clv_status clv_arrays_tensor(clv_arrays *arrays, uint32_t index, clv_tensor *tensor, clv_error *error) {
  if (arrays == NULL || tensor == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "arrays and tensor must not be NULL");
  *tensor = (clv_tensor){0};
  if (index >= arrays->count) return clv__error_set(error, CLV_NOT_FOUND, "array %u of %u does not exist", index, arrays->count);
  clv_tensor *own = &arrays->tensors[index];
  if (arrays->npz != NULL && own->dtype == CLV_DTYPE_NONE)
    CLV__TRY(clv__npz_read(arrays->npz, clv__npz_name(arrays->npz, index), own, error));
  *tensor = *own;
  return CLV_OK;
}

/* ---- Writing ---- */

static clv_status check_names(const char *const *names, uint32_t count, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    if (names == NULL || names[i] == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "tensor %u has no name", i);
    for (uint32_t k = 0; k < i; ++k) {
      if (strcmp(names[i], names[k]) == 0)
        return clv__error_set(error, CLV_INVALID_ARGUMENT, "tensors %u and %u are both named '%s'", k, i, names[i]);
    }
  }
  return CLV_OK;
}

static clv_status check_tensors(const clv_tensor *tensors, uint32_t count, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    size_t size_bytes = 0;
    if (!clv__tensor_size_bytes(&tensors[i], &size_bytes) || (tensors[i].data == NULL && size_bytes > 0)) {
      char type[160];
      clv__tensor_text(&tensors[i], type, sizeof type);
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "tensor %u (%s) has no data, or its shape is not known", i, type);
    }
  }
  return CLV_OK;
}

static clv_status write_pb(const clv_allocator *allocator, const char *path, const char *name, const clv_tensor *tensor,
                           clv_error *error) {
  void *data;
  size_t size_bytes;
  CLV__TRY(clv__onnx_tensor_write(tensor, name, allocator, &data, &size_bytes, error));
  const clv_status status = clv__file_write(path, data, size_bytes, error);
  clv__release(allocator, data);
  return status;
}

clv_status clv_arrays_write(clv_context *context, const char *path, const char *const *names, const clv_tensor *tensors,
                            uint32_t count, clv_error *error) {
  if (context == NULL || path == NULL || (tensors == NULL && count > 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, path and tensors must not be NULL");
  const clv_allocator *allocator = clv__context_allocator(context);
  const bool is_npy = ends_with(path, ".npy"), is_pb = ends_with(path, ".pb");
  if (!is_npy && !is_pb && !ends_with(path, ".npz"))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: the name of the file must end with .npy, .npz or .pb", path);
  if ((is_npy || is_pb) && count != 1)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: a file of this kind has one tensor, not %u; write an .npz file", path,
                          count);
  CLV__TRY(check_tensors(tensors, count, error));
  if (is_npy) return clv__npy_write(allocator, path, &tensors[0], error);
  CLV__TRY(check_names(names, count, error));
  if (is_pb) return write_pb(allocator, path, names[0], &tensors[0], error);
  return clv__npz_write(allocator, path, names, tensors, count, false, error);
}
