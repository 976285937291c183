/* Maps elements of any dtype to unsigned numbers in the same order, so that sorting is written once. */
#ifndef CLEAVE_OPERATORS_COMMON_ORDER_H
#define CLEAVE_OPERATORS_COMMON_ORDER_H

#include "base/tensor/tensor.h"

static inline uint64_t clv__order_float(uint64_t bits, int width) {
  uint64_t sign = (uint64_t)1 << (width - 1);
  if (bits == sign) bits = 0; /* -0 equals 0 */
  return bits & sign ? (sign << 1) - 1 - bits : bits | sign;
}

/* A key for element `index`: keys compare like the elements. Equal elements have equal keys. The key of a NaN is above all
 * others. */
static inline uint64_t clv__order_key(const clv_tensor *tensor, size_t index) {
  const char *at = (const char *)tensor->data + index * clv_dtype_size_bytes(tensor->dtype);
  uint64_t bits = 0;
  switch (tensor->dtype) {
    case CLV_F32: {
      float value;
      memcpy(&value, at, sizeof value);
      memcpy(&bits, at, sizeof value);
      return value != value ? UINT64_MAX : clv__order_float(bits, 32);
    }
    case CLV_F64: {
      double value;
      memcpy(&value, at, sizeof value);
      memcpy(&bits, at, sizeof value);
      if (value != value) return UINT64_MAX;
      if (bits == (uint64_t)1 << 63) bits = 0;
      return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    }
    case CLV_F16:
    case CLV_BF16: {
      memcpy(&bits, at, 2);
      uint64_t infinity = tensor->dtype == CLV_F16 ? 0x7c00u : 0x7f80u;
      return (bits & 0x7fffu) > infinity ? UINT64_MAX : clv__order_float(bits, 16);
    }
    case CLV_U64:
      memcpy(&bits, at, sizeof bits);
      return bits;
    default:
      return (uint64_t)clv__tensor_get_int(tensor, index) ^ (uint64_t)1 << 63;
  }
}

#endif
