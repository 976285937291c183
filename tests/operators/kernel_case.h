/* Helpers for tests of kernels: tensors on the heap without spare bytes (so that a sanitizer detects every access outside),
 * random contents, and the call of a kernel. */
#ifndef CLEAVE_TESTS_KERNEL_CASE_H
#define CLEAVE_TESTS_KERNEL_CASE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "both_kernels.h"

static inline size_t case_count(const clv_tensor *tensor) {
  return (size_t)clv__dims_product(tensor, 0, tensor->rank);
}

static inline clv_tensor case_tensor(clv_dtype dtype, int32_t rank, const int64_t *dims) {
  clv_tensor tensor = clv__tensor_make(dtype, rank, dims, NULL);
  size_t size_bytes = case_count(&tensor) * clv_dtype_size_bytes(dtype);
  tensor.data = malloc(size_bytes > 0 ? size_bytes : 1);
  assert_non_null(tensor.data);
  memset(tensor.data, 0x5a, size_bytes);
  return tensor;
}

/* Stores `value` in the tensor's dtype: rounded for floats, truncated to an integer whose low bits are stored for integers, true
 * or false for bool. */
static inline void case_set(const clv_tensor *tensor, size_t index, double value) {
  char *at = (char *)tensor->data + index * clv_dtype_size_bytes(tensor->dtype);
  float narrow = (float)value;
  uint16_t half;
  int64_t whole = (CLV__DTYPE_BIT(tensor->dtype) & CLV__DTYPES_FLOAT) != 0 ? 0 : (int64_t)value;
  switch (tensor->dtype) {
    case CLV_F32:
      memcpy(at, &narrow, sizeof narrow);
      break;
    case CLV_F64:
      memcpy(at, &value, sizeof value);
      break;
    case CLV_F16:
      half = clv__f64_to_f16(value), memcpy(at, &half, sizeof half);
      break;
    case CLV_BF16:
      half = clv__f64_to_bf16(value), memcpy(at, &half, sizeof half);
      break;
    case CLV_BOOL:
      *at = whole != 0;
      break;
    default:
      memcpy(at, &whole, clv_dtype_size_bytes(tensor->dtype));
      break; /* little-endian: the low bytes */
  }
}

/* Fills a tensor at random: floats in [low, high); integers in that range or, for one in eight, the lowest signed number or
 * random bits; bools true or false. */
static inline void case_fill(const clv_tensor *tensor, double low, double high, uint64_t *seed) {
  for (size_t i = 0; i < case_count(tensor); ++i) {
    double unit = (double)(test_random(seed) >> 11) * 0x1p-53;
    bool is_float = (CLV__DTYPE_BIT(tensor->dtype) & CLV__DTYPES_FLOAT) != 0;
    if (tensor->dtype == CLV_BOOL) {
      case_set(tensor, i, unit < 0.5 ? 0 : 1);
    } else if (is_float || test_random(seed) % 8 != 0) {
      case_set(tensor, i, is_float ? low + (high - low) * unit : floor(low + (high - low) * unit));
    } else {
      uint64_t bits =
          test_random(seed) % 4 == 0 ? (uint64_t)1 << (8 * clv_dtype_size_bytes(tensor->dtype) - 1) : test_random(seed);
      memcpy((char *)tensor->data + i * clv_dtype_size_bytes(tensor->dtype), &bits, clv_dtype_size_bytes(tensor->dtype));
    }
  }
}

static inline clv_attribute case_int(const char *name, const int64_t *value) {
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = value};
}
static inline clv_attribute case_ints(const char *name, const int64_t *values, size_t count) {
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = count, .ints = values};
}
static inline clv_attribute case_float(const char *name, const float *value) {
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = value};
}

static inline clv_status case_try(const char *op, int32_t opset, const clv_attribute *attributes, uint32_t attribute_count,
                                  const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs, uint32_t output_count,
                                  clv_error *error) {
  const clv__kernel *kernel = find_kernel("", op);
  assert_non_null(kernel);
  clv__kernel_call call = {.op = op,
                           .opset = opset,
                           .attributes = {attributes, attribute_count},
                           .inputs = inputs,
                           .input_count = input_count,
                           .outputs = outputs,
                           .output_count = output_count,
                           .error = error};
  char reason[160];
  if (!clv__kernel_accepts(kernel, &call, reason)) fail_msg("%s: the kernel rejects the call: %s", op, reason);
  return clv__kernel_run(kernel, &call, clv__allocator_default());
}

static inline void case_run(const char *op, int32_t opset, const clv_attribute *attributes, uint32_t attribute_count,
                            const clv_tensor *inputs, uint32_t input_count, clv_tensor *output) {
  clv_error error = {0};
  assert_ok(case_try(op, opset, attributes, attribute_count, inputs, input_count, output, 1, &error), error);
}

/* The relative error that a dtype's rounding may cause. */
static inline double case_tolerance(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F64:
      return 1e-13;
    case CLV_F16:
      return 0x1p-10;
    case CLV_BF16:
      return 0x1p-7;
    default:
      return 2e-6;
  }
}

/* Compares an element with `wanted`, which was computed in double. The tolerance is relative to the magnitude of `wanted` plus
 * `scale`, the magnitude of the operands. */
static inline void case_expect(const char *op, const clv_tensor *tensor, size_t index, double wanted, double scale) {
  double got = clv__tensor_get(tensor, index);
  if ((CLV__DTYPE_BIT(tensor->dtype) & CLV__DTYPES_FLOAT) != 0) {
    clv_tensor rounded = *tensor;
    uint64_t bits = 0;
    rounded.data = &bits;
    case_set(&rounded, 0, wanted);
    wanted = clv__tensor_get(&rounded, 0); /* infinite if it overflows the dtype */
  }
  if ((isnan(got) && isnan(wanted)) || got == wanted) return;
  if (!(fabs(got - wanted) <= case_tolerance(tensor->dtype) * (fabs(wanted) + scale) + 1e-30)) {
    fail_msg("%s %s: element %zu is %.17g, expected %.17g", op, clv_dtype_name(tensor->dtype), index, got, wanted);
  }
}

#endif
