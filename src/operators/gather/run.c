/* Gather and Scatter in all forms: read or write at positions given by indices. Every index is checked against its axis before it
 * is used. */
#include "operators/gather/run.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/move.h"
#include "operators/common/threads.h"
#include "operators/run.h"

/* Between two looks at the stop flag, PIECE indices are checked, or PIECE_BYTES are gathered. */
enum { PIECE = 1 << 16, PIECE_BYTES = 1 << 14 };

static clv_status out_of_range(const clv__kernel_call *call, int64_t index, int32_t axis, int64_t size) {
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "index %lld is out of range for axis %d of size %lld",
                        (long long)index, axis, (long long)size);
}

static int32_t read_axis(const clv__kernel_call *call, int32_t rank) {
  int64_t axis = clv__attribute_int(call->attributes, "axis", 0);
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

static inline int64_t read_index(const clv_tensor *indices, int64_t i) {
  return indices->dtype == CLV_I32 ? ((const int32_t *)indices->data)[i] : ((const int64_t *)indices->data)[i];
}

/* Finds the first index outside [-size, size) among `count` indices that start at element `begin`, `step` elements apart. Returns
 * its element number, or -1 if there is none. */
static int64_t find_bad(const clv_tensor *indices, int64_t begin, int64_t step, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = read_index(indices, begin + i * step);
    if (index < -size || index >= size) return begin + i * step;
  }
  return -1;
}

static clv_status check_indices(const clv__kernel_call *call, const clv_tensor *indices, int32_t axis, int64_t size) {
  const int64_t count = clv__dims_product(indices, 0, indices->rank);
  for (int64_t from = 0; from < count && !clv__is_stopped(call->stop); from += PIECE) {
    int64_t bad = find_bad(indices, from, 1, count - from < PIECE ? count - from : PIECE, size);
    if (bad >= 0) return out_of_range(call, read_index(indices, bad), axis, size);
  }
  return CLV_OK;
}

/* Copies one element of 1, 2, 4 or 8 bytes. */
static inline void copy_element(char *to, const char *from, size_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      break;
    case 2:
      memcpy(to, from, 2);
      break;
    case 4:
      memcpy(to, from, 4);
      break;
    default:
      memcpy(to, from, 8);
      break;
  }
}

/* ---- Gather, GatherElements, GatherND ------------------------------------------------------------------------------------ */

static clv_status run_gather(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *indices = &call->inputs[1];
  int32_t axis = read_axis(call, data->rank);
  size_t bytes = clv_dtype_size_bytes(data->dtype);
  int64_t size = data->dims[axis], count = clv__dims_product(indices, 0, indices->rank);
  int64_t outer = clv__dims_product(data, 0, axis);
  size_t inner = (size_t)clv__dims_product(data, axis + 1, data->rank) * bytes;
  CLV__TRY(check_indices(call, indices, axis, size));
  const char *from = data->data;
  char *to = call->outputs[0].data;
  if (inner == 0) return CLV_OK;
  const int64_t run = inner < PIECE_BYTES ? PIECE_BYTES / (int64_t)inner : 1, pieces = (count + run - 1) / run;
  int threads = clv__kernel_threads(outer * pieces, (double)outer * (double)count * ((double)inner / 8 + 2));
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t piece = 0; piece < outer * pieces; ++piece) {
    if (clv__is_stopped(call->stop)) continue;
    const int64_t o = piece / pieces, first = piece % pieces * run, last = count - first < run ? count : first + run;
    for (int64_t i = first; i < last; ++i) {
      int64_t index = read_index(indices, i);
      if (index < 0) index += size;
      const char *source = from + (size_t)(o * size + index) * inner;
      char *target = to + (size_t)(o * count + i) * inner;
      if (inner == bytes)
        copy_element(target, source, bytes);
      else
        memcpy(target, source, inner);
    }
  }
  return CLV_OK;
}

/* Converts `linear`, an element number in the shape `shape`, to coordinates, and these to an offset with `strides`. Axis `skip`
 * is left out. */
static int64_t project(const clv_tensor *shape, int64_t linear, const int64_t *strides, int32_t skip) {
  int64_t offset = 0;
  for (int32_t d = shape->rank - 1; d >= 0; --d) {
    if (d != skip) offset += linear % shape->dims[d] * strides[d];
    linear /= shape->dims[d];
  }
  return offset;
}

static clv_status run_gather_elements(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *indices = &call->inputs[1];
  int64_t strides[CLV_MAX_RANK], count = clv__dims_product(indices, 0, indices->rank);
  if (count == 0) return CLV_OK;
  int32_t axis = read_axis(call, data->rank), last = data->rank - 1;
  int64_t size = data->dims[axis], width = indices->dims[last], rows = count / width;
  size_t bytes = clv_dtype_size_bytes(data->dtype);
  clv__dense_strides(data, strides);
  CLV__TRY(check_indices(call, indices, axis, size));
  int64_t walk = axis == last ? 0 : 1; /* the step in `data`, in elements, per element of a row of indices */
  int threads = clv__kernel_threads(rows, (double)count * 2);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    int64_t base = project(indices, r * width, strides, axis);
    for (int64_t i = 0; i < width && !clv__is_stopped(call->stop); ++i) {
      int64_t index = read_index(indices, r * width + i);
      if (index < 0) index += size;
      int64_t at = base + index * strides[axis] + i * walk;
      copy_element((char *)call->outputs[0].data + (size_t)(r * width + i) * bytes, (const char *)data->data + (size_t)at * bytes,
                   bytes);
    }
  }
  return CLV_OK;
}

/* Checks rows of indices. Each row has `depth` indices, one for each of the data's axes [first, first + depth). */
static clv_status check_rows(const clv__kernel_call *call, const clv_tensor *indices, int64_t rows, int64_t depth,
                             int32_t first) {
  const clv_tensor *data = &call->inputs[0];
  for (int64_t row = 0; row < rows && !clv__is_stopped(call->stop); row += PIECE) {
    const int64_t count = rows - row < PIECE ? rows - row : PIECE;
    for (int64_t k = 0; k < depth; ++k) {
      int64_t size = data->dims[first + k], bad = find_bad(indices, row * depth + k, depth, count, size);
      if (bad >= 0) return out_of_range(call, read_index(indices, bad), first + (int32_t)k, size);
    }
  }
  return CLV_OK;
}

static int64_t row_offset(const clv_tensor *data, const clv_tensor *indices, int64_t row, int64_t depth, int32_t first,
                          const int64_t *strides) {
  int64_t offset = 0;
  for (int64_t k = 0; k < depth; ++k) {
    int64_t index = read_index(indices, row * depth + k);
    if (index < 0) index += data->dims[first + k];
    offset += index * strides[first + k];
  }
  return offset;
}

static clv_status run_gather_nd(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *indices = &call->inputs[1];
  int32_t batch = (int32_t)clv__attribute_int(call->attributes, "batch_dims", 0);
  int64_t depth = indices->dims[indices->rank - 1], strides[CLV_MAX_RANK];
  int64_t rows = clv__dims_product(indices, 0, indices->rank - 1), batches = clv__dims_product(indices, 0, batch);
  size_t bytes = clv_dtype_size_bytes(data->dtype);
  size_t inner = (size_t)clv__dims_product(data, batch + (int32_t)depth, data->rank) * bytes;
  if (rows == 0 || inner == 0) return CLV_OK;
  clv__dense_strides(data, strides);
  CLV__TRY(check_rows(call, indices, rows, depth, batch));
  int64_t each = rows / batches, batch_stride = clv__dims_product(data, batch, data->rank);
  int threads = clv__kernel_threads(rows, (double)rows * ((double)inner / 8 + 4));
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t at = r / each * batch_stride + row_offset(data, indices, r, depth, batch, strides);
    memcpy((char *)call->outputs[0].data + (size_t)r * inner, (const char *)data->data + (size_t)at * bytes, inner);
  }
  return CLV_OK;
}

/* ---- Scatter ------------------------------------------------------------------------------------------------------------- */

typedef enum reduction { REPLACE, ADD, MUL, MIN, MAX } reduction;

static reduction read_reduction(const clv__kernel_call *call) {
  static const char *const names[] = {"none", "add", "mul", "min", "max"};
  for (int i = ADD; i <= MAX; ++i) {
    if (clv__attribute_is(call->attributes, "reduction", names[i], false)) return (reduction)i;
  }
  return REPLACE;
}

/* Defines target[i] = target[i] (op) update[i] for a dtype. If either is a NaN, a minimum or maximum is NaN, as in numpy. Sums
 * and products are computed in type `wide`: an unsigned type for integers, so that they wrap, and 32 bits wide for 16-bit
 * integers. */
#define NEVER_NAN(x) false
#define DEFINE_REDUCE(name, type, wide, is_nan)                                              \
  static void reduce_##name(void *target, const void *update, size_t count, reduction how) { \
    type *to = target;                                                                       \
    const type *from = update;                                                               \
    for (size_t i = 0; i < count; ++i) {                                                     \
      type a = to[i], b = from[i];                                                           \
      switch (how) {                                                                         \
        case REPLACE:                                                                        \
          to[i] = b;                                                                         \
          break;                                                                             \
        case ADD:                                                                            \
          to[i] = (type)((wide)a + (wide)b);                                                 \
          break;                                                                             \
        case MUL:                                                                            \
          to[i] = (type)((wide)a * (wide)b);                                                 \
          break;                                                                             \
        case MIN:                                                                            \
          to[i] = is_nan(b) || b < a ? b : a;                                                \
          break;                                                                             \
        case MAX:                                                                            \
          to[i] = is_nan(b) || b > a ? b : a;                                                \
          break;                                                                             \
      }                                                                                      \
    }                                                                                        \
  }
DEFINE_REDUCE(f32, float, float, isnan)
DEFINE_REDUCE(f64, double, double, isnan)
DEFINE_REDUCE(i8, int8_t, uint32_t, NEVER_NAN)
DEFINE_REDUCE(i16, int16_t, uint32_t, NEVER_NAN)
DEFINE_REDUCE(i32, int32_t, uint32_t, NEVER_NAN)
DEFINE_REDUCE(i64, int64_t, uint64_t, NEVER_NAN)
DEFINE_REDUCE(u8, uint8_t, uint32_t, NEVER_NAN)
DEFINE_REDUCE(u16, uint16_t, uint32_t, NEVER_NAN)
DEFINE_REDUCE(u32, uint32_t, uint32_t, NEVER_NAN)
DEFINE_REDUCE(u64, uint64_t, uint64_t, NEVER_NAN)
#undef DEFINE_REDUCE
#undef NEVER_NAN

static void reduce_f16(void *target, const void *update, size_t count, reduction how) {
  for (size_t i = 0; i < count; ++i) {
    float a = clv__f16_to_f32(((uint16_t *)target)[i]), b = clv__f16_to_f32(((const uint16_t *)update)[i]);
    reduce_f32(&a, &b, 1, how);
    ((uint16_t *)target)[i] = clv__f32_to_f16(a);
  }
}

static void reduce_bf16(void *target, const void *update, size_t count, reduction how) {
  for (size_t i = 0; i < count; ++i) {
    float a = clv__bf16_to_f32(((uint16_t *)target)[i]), b = clv__bf16_to_f32(((const uint16_t *)update)[i]);
    reduce_f32(&a, &b, 1, how);
    ((uint16_t *)target)[i] = clv__f32_to_bf16(a);
  }
}

typedef void (*reduce_fn)(void *target, const void *update, size_t count, reduction how);

static reduce_fn find_reduce(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F32:
      return reduce_f32;
    case CLV_F64:
      return reduce_f64;
    case CLV_F16:
      return reduce_f16;
    case CLV_BF16:
      return reduce_bf16;
    case CLV_I8:
      return reduce_i8;
    case CLV_I16:
      return reduce_i16;
    case CLV_I32:
      return reduce_i32;
    case CLV_I64:
      return reduce_i64;
    case CLV_U16:
      return reduce_u16;
    case CLV_U32:
      return reduce_u32;
    case CLV_U64:
      return reduce_u64;
    default:
      return reduce_u8;
  }
}

static bool accepts_scatter(const clv__kernel_call *call, char reason[160]) {
  if (call->inputs[0].dtype != CLV_BOOL || read_reduction(call) == REPLACE) return true;
  snprintf(reason, 160, "attribute reduction is not supported for bool");
  return false;
}

static clv_status run_scatter_elements(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *indices = &call->inputs[1], *updates = &call->inputs[2];
  int64_t strides[CLV_MAX_RANK], count = clv__dims_product(indices, 0, indices->rank);
  size_t bytes = clv_dtype_size_bytes(data->dtype), size_bytes;
  char *out = call->outputs[0].data;
  if (clv__tensor_size_bytes(data, &size_bytes)) clv__copy_bytes(out, data->data, size_bytes, call->stop);
  if (count == 0 || data->rank == 0) return CLV_OK;
  int32_t axis = read_axis(call, data->rank), last = data->rank - 1;
  int64_t size = data->dims[axis], width = indices->dims[last], rows = count / width;
  reduction how = read_reduction(call);
  reduce_fn reduce = find_reduce(data->dtype);
  clv__dense_strides(data, strides);
  CLV__TRY(check_indices(call, indices, axis, size));
  int64_t walk = axis == last ? 0 : 1;
  for (int64_t r = 0; r < rows; ++r) { /* in order: if two updates have the same position, the later one wins */
    int64_t base = project(indices, r * width, strides, axis);
    for (int64_t i = 0; i < width && !clv__is_stopped(call->stop); ++i) {
      int64_t index = read_index(indices, r * width + i);
      if (index < 0) index += size;
      char *target = out + (size_t)(base + index * strides[axis] + i * walk) * bytes;
      const char *update = (const char *)updates->data + (size_t)(r * width + i) * bytes;
      if (how == REPLACE)
        copy_element(target, update, bytes);
      else
        reduce(target, update, 1, how);
    }
  }
  return CLV_OK;
}

static clv_status run_scatter_nd(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *indices = &call->inputs[1], *updates = &call->inputs[2];
  int64_t depth = indices->dims[indices->rank - 1], strides[CLV_MAX_RANK];
  int64_t rows = clv__dims_product(indices, 0, indices->rank - 1), inner = clv__dims_product(data, (int32_t)depth, data->rank);
  size_t bytes = clv_dtype_size_bytes(data->dtype), size_bytes;
  char *out = call->outputs[0].data;
  reduction how = read_reduction(call);
  reduce_fn reduce = find_reduce(data->dtype);
  if (clv__tensor_size_bytes(data, &size_bytes)) clv__copy_bytes(out, data->data, size_bytes, call->stop);
  if (rows == 0 || inner == 0) return CLV_OK;
  clv__dense_strides(data, strides);
  CLV__TRY(check_rows(call, indices, rows, depth, 0));
  for (int64_t r = 0; r < rows && !clv__is_stopped(call->stop); ++r) {
    char *target = out + (size_t)row_offset(data, indices, r, depth, 0, strides) * bytes;
    const char *update = (const char *)updates->data + (size_t)(r * inner) * bytes;
    if (how == REPLACE)
      memcpy(target, update, (size_t)inner * bytes);
    else
      reduce(target, update, (size_t)inner, how);
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_gather[] = {
    {"", "Gather", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_gather, NULL, NULL},
    {"", "GatherElements", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_gather_elements, NULL, NULL},
    {"", "GatherND", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_gather_nd, NULL, NULL},
    {"", "Scatter", CLV__DTYPES_ANY, run_scatter_elements, NULL, accepts_scatter},
    {"", "ScatterElements", CLV__DTYPES_ANY, run_scatter_elements, NULL, accepts_scatter},
    {"", "ScatterND", CLV__DTYPES_ANY, run_scatter_nd, NULL, accepts_scatter},
    {"", "TensorScatter", CLV__DTYPES_ANY | CLV__DTYPES_F8, clv__kernel_tensor_scatter, NULL, NULL},
    {.op = NULL},
};
