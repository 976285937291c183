/* Constant, ConstantOfShape, Range, EyeLike, Trilu, OneHot: create tensors from attributes, sizes and positions. */
#include <stdio.h>

#include "operators/common/move.h"
#include "operators/common/threads.h"
#include "operators/run.h"

static clv_status run_constant(const clv__kernel_call *call) {
  clv_tensor *out = &call->outputs[0];
  size_t size_bytes, count;
  const clv_attribute *value = clv__attribute_find(call->attributes, "value");
  const void *source = NULL;
  if (!clv__tensor_size_bytes(out, &size_bytes) || size_bytes == 0) return CLV_OK;
  if (value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR)
    source = value->tensor->data;
  else if (out->dtype == CLV_I64)
    source = clv__attribute_ints(call->attributes, out->rank == 0 ? "value_int" : "value_ints", &count);
  else if (out->dtype == CLV_F32) {
    source = clv__attribute_floats(call->attributes, out->rank == 0 ? "value_float" : "value_floats", &count);
  }
  if (source == NULL) return clv__error_set(call->error, CLV_INVALID_MODEL, "the constant has no value");
  clv__copy_bytes(out->data, source, size_bytes, call->stop);
  return CLV_OK;
}

static clv_status run_constant_of_shape(const clv__kernel_call *call) {
  clv_tensor *out = &call->outputs[0];
  const clv_attribute *value = clv__attribute_find(call->attributes, "value");
  uint64_t element = 0;
  size_t count, bytes = clv_dtype_size_bytes(out->dtype);
  if (value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR) memcpy(&element, value->tensor->data, bytes);
  if (clv__tensor_count(out, &count)) clv__fill(out->data, &element, bytes, count, call->stop);
  return CLV_OK;
}

static bool accepts_constant_of_shape(const clv__kernel_call *call, char reason[160]) {
  const clv_attribute *value = clv__attribute_find(call->attributes, "value");
  clv_dtype dtype = value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR ? value->tensor->dtype : CLV_F32;
  if (call->inputs[0].dtype == CLV_I64 && clv__dtype_is_in(dtype, CLV__DTYPES_ANY | CLV__DTYPES_F8)) return true;
  snprintf(reason, 160, "a value of dtype %s for a shape of dtype %s is not supported", clv_dtype_name(dtype),
           clv_dtype_name(call->inputs[0].dtype));
  return false;
}

static clv_status run_range(const clv__kernel_call *call) {
  clv_tensor *out = &call->outputs[0];
  int64_t count = out->dims[0];
  const clv_tensor *start = &call->inputs[0], *delta = &call->inputs[2];
#define RANGE(type, wide, get)                                                  \
  {                                                                             \
    wide first = (wide)get(start, 0), step = (wide)get(delta, 0);               \
    type *to = out->data;                                                       \
    for (int64_t i = 0; i < count; ++i) to[i] = (type)(first + (wide)i * step); \
    return CLV_OK;                                                              \
  }
  switch (out->dtype) {
    case CLV_F32:
      RANGE(float, float, clv__tensor_get)
    case CLV_F64:
      RANGE(double, double, clv__tensor_get)
    case CLV_U8:
    case CLV_I8:
      RANGE(uint8_t, uint64_t, clv__tensor_get_int)
    case CLV_U16:
    case CLV_I16:
      RANGE(uint16_t, uint64_t, clv__tensor_get_int)
    case CLV_U32:
    case CLV_I32:
      RANGE(uint32_t, uint64_t, clv__tensor_get_int)
    case CLV_F16:
    case CLV_BF16: {
      float first = (float)clv__tensor_get(start, 0), step = (float)clv__tensor_get(delta, 0);
      uint16_t *to = out->data;
      for (int64_t i = 0; i < count; ++i) {
        float value = first + (float)i * step;
        to[i] = out->dtype == CLV_F16 ? clv__f32_to_f16(value) : clv__f32_to_bf16(value);
      }
      return CLV_OK;
    }
    default:
      RANGE(uint64_t, uint64_t, clv__tensor_get_int)
  }
#undef RANGE
}

/* The bits of the number 1 in a dtype. */
static uint64_t one_of(clv_dtype dtype) {
  const float one = 1;
  const double one_f64 = 1;
  uint64_t element = 1;
  if (dtype == CLV_F32)
    memcpy(&element, &one, sizeof one);
  else if (dtype == CLV_F64)
    memcpy(&element, &one_f64, sizeof one_f64);
  else if (dtype == CLV_F16)
    element = clv__f32_to_f16(one);
  else if (dtype == CLV_BF16)
    element = clv__f32_to_bf16(one);
  return element;
}

static clv_status run_eye_like(const clv__kernel_call *call) {
  clv_tensor *out = &call->outputs[0];
  const uint64_t zero = 0, one = one_of(out->dtype);
  size_t bytes = clv_dtype_size_bytes(out->dtype), count;
  int64_t k = clv__attribute_int(call->attributes, "k", 0), rows = out->dims[0], columns = out->dims[1];
  if (!clv__tensor_count(out, &count)) return CLV_OK;
  clv__fill(out->data, &zero, bytes, count, call->stop);
  if (k <= -rows || k >= columns) return CLV_OK;
  for (int64_t r = k < 0 ? -k : 0; r < rows && r + k < columns; ++r) {
    memcpy((char *)out->data + (size_t)(r * columns + r + k) * bytes, &one, bytes);
  }
  return CLV_OK;
}

static bool accepts_eye_like(const clv__kernel_call *call, char reason[160]) {
  clv_dtype dtype = (clv_dtype)clv__attribute_int(call->attributes, "dtype", call->inputs[0].dtype);
  if (clv_dtype_size_bytes(dtype) != 0 && dtype != CLV_STRING) return true;
  snprintf(reason, 160, "attribute dtype has the value %d, which is not supported", (int)dtype);
  return false;
}

static clv_status run_trilu(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0];
  const uint64_t zero = 0;
  size_t bytes = clv_dtype_size_bytes(in->dtype);
  int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1], k = 0;
  int64_t matrices = clv__dims_product(in, 0, in->rank - 2);
  bool upper = clv__attribute_int(call->attributes, "upper", 1) != 0;
  if (call->input_count > 1 && call->inputs[1].dtype != CLV_DTYPE_NONE) k = clv__tensor_get_int(&call->inputs[1], 0);
  if (columns == 0) return CLV_OK;
  if (k > columns) k = columns; /* any k beyond the edge of the matrix has the same effect */
  if (k < -rows) k = -rows;
  int64_t total = matrices * rows;
  int threads = clv__kernel_threads(total, (double)total * (double)columns / 4);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t r = 0; r < total; ++r) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t edge = r % rows + k + (upper ? 0 : 1); /* the first column that is kept (upper) or cleared (lower) */
    size_t cut = (size_t)(edge < 0 ? 0 : edge > columns ? columns : edge);
    const char *from = (const char *)in->data + (size_t)(r * columns) * bytes;
    char *to = (char *)call->outputs[0].data + (size_t)(r * columns) * bytes;
    size_t kept_from = upper ? cut : 0, kept = upper ? (size_t)columns - cut : cut, cleared_from = upper ? 0 : cut;
    memcpy(to + kept_from * bytes, from + kept_from * bytes, kept * bytes);
    clv__fill(to + cleared_from * bytes, &zero, bytes, (size_t)columns - kept, call->stop);
  }
  return CLV_OK;
}

static clv_status run_one_hot(const clv__kernel_call *call) {
  const clv_tensor *indices = &call->inputs[0], *values = &call->inputs[2];
  clv_tensor *out = &call->outputs[0];
  size_t bytes = clv_dtype_size_bytes(values->dtype), count;
  int64_t axis = clv__attribute_int(call->attributes, "axis", -1);
  if (axis < 0) axis += out->rank;
  int64_t depth = out->dims[axis], outer = clv__dims_product(out, 0, (int32_t)axis);
  int64_t inner = clv__dims_product(out, (int32_t)axis + 1, out->rank);
  const char *off = values->data, *on = off + bytes;
  if (!clv__tensor_count(out, &count) || count == 0) return CLV_OK;
  clv__fill(out->data, off, bytes, count, call->stop);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      int64_t index = clv__tensor_get_int(indices, (size_t)(o * inner + i));
      if (index < -depth || index >= depth) continue; /* the specification requires the off value everywhere */
      if (index < 0) index += depth;
      memcpy((char *)out->data + (size_t)((o * depth + index) * inner + i) * bytes, on, bytes);
    }
  }
  return CLV_OK;
}

static bool accepts_one_hot(const clv__kernel_call *call, char reason[160]) {
  clv_dtype dtype = call->input_count > 2 ? call->inputs[2].dtype : CLV_DTYPE_NONE;
  if ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_ANY) != 0) return true;
  snprintf(reason, 160, "values of dtype %s are not supported", clv_dtype_name(dtype));
  return false;
}

const clv__kernel clv__kernels_generate[] = {
    {"", "Constant", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_constant, NULL, NULL},
    {"", "ConstantOfShape", CLV__DTYPE_BIT(CLV_I64) | CLV__DTYPES_F8, run_constant_of_shape, NULL, accepts_constant_of_shape},
    {"", "Range", CLV__DTYPES_NUMBER, run_range, NULL, NULL},
    {"", "EyeLike", CLV__DTYPES_ANY, run_eye_like, NULL, accepts_eye_like},
    {"", "Trilu", CLV__DTYPES_ANY, run_trilu, NULL, NULL},
    {"", "OneHot", CLV__DTYPES_NUMBER, run_one_hot, NULL, accepts_one_hot},
    {.op = NULL},
};
