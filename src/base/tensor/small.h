/* Elements of the small dtypes: floats of one byte or half a byte, and integers of four or two bits. Elements smaller than a
 * byte are packed as in ONNX: the first element is in the lowest bits, and unused bits of the last byte are zero. */
#ifndef CLEAVE_BASE_TENSOR_SMALL_H
#define CLEAVE_BASE_TENSOR_SMALL_H

#include "base/tensor/tensor.h"

/* How a number between two powers of two is rounded: see the attribute round_mode of ONNX's Cast. */
typedef enum clv__small_round { CLV__SMALL_UP, CLV__SMALL_DOWN, CLV__SMALL_NEAREST } clv__small_round;

/* The bits of element `index`, in the low end of a byte. */
static inline uint8_t clv__small_bits(clv_dtype dtype, const void *data, size_t index) {
  const uint8_t *bytes = (const uint8_t *)data;
  const uint32_t dtypes = CLV__DTYPE_BIT(dtype);
  if ((dtypes & (CLV__DTYPE_BIT(CLV_U2) | CLV__DTYPE_BIT(CLV_I2))) != 0) return bytes[index / 4] >> index % 4 * 2 & 3u;
  if ((dtypes & CLV__DTYPES_PACKED) != 0) return bytes[index / 2] >> index % 2 * 4 & 15u;
  return bytes[index];
}

/* Stores the bits of element `index` and keeps its neighbours in the same byte. Drops bits beyond the element's width. Two
 * threads must not write to the same byte. */
static inline void clv__small_store(clv_dtype dtype, void *data, size_t index, uint8_t bits) {
  uint8_t *bytes = (uint8_t *)data;
  const uint32_t dtypes = CLV__DTYPE_BIT(dtype);
  if ((dtypes & (CLV__DTYPE_BIT(CLV_U2) | CLV__DTYPE_BIT(CLV_I2))) != 0) {
    const unsigned shift = (unsigned)(index % 4 * 2);
    bytes[index / 4] = (uint8_t)((bytes[index / 4] & ~(3u << shift)) | (bits & 3u) << shift);
  } else if ((dtypes & CLV__DTYPES_PACKED) != 0) {
    const unsigned shift = (unsigned)(index % 2 * 4);
    bytes[index / 2] = (uint8_t)((bytes[index / 2] & ~(15u << shift)) | (bits & 15u) << shift);
  } else {
    bytes[index] = bits;
  }
}

/* Zeroes a packed tensor so that no bits stay undefined; does nothing for other dtypes. */
static inline void clv__small_clear(const clv_tensor *tensor) {
  size_t size_bytes;
  if (!clv__dtype_is_in(tensor->dtype, CLV__DTYPES_PACKED) || !clv__tensor_size_bytes(tensor, &size_bytes)) return;
  if (size_bytes > 0) memset(tensor->data, 0, size_bytes);
}

/* Reads an element of a packed integer dtype. */
static inline int64_t clv__packed_get(clv_dtype dtype, const void *data, size_t index) {
  const int bits = clv__small_bits(dtype, data, index);
  if (dtype == CLV_I4) return (bits ^ 8) - 8;
  return dtype == CLV_I2 ? (bits ^ 2) - 2 : bits;
}

/* The smallest and largest values of a packed integer dtype. */
void clv__packed_range(clv_dtype dtype, int *least, int *most);

/* The value of the bits of a small float; exact. */
float clv__small_to_f32(clv_dtype dtype, uint8_t bits);

/* The nearest number of a small float dtype: one rounding, ties to even; f8e8m0 rounds up. Values beyond the largest number,
 * infinities included, become the largest number with their sign if `saturate`. Otherwise they become the dtype's infinity or
 * NaN; f4e2m1 has neither and always saturates. NaN stays NaN, but becomes zero in f4e2m1. */
uint8_t clv__small_from_f64(clv_dtype dtype, double value, bool saturate);

/* Converts to f8e8m0, which has no sign: drops the sign. If `saturate`, magnitudes that are too small (zero included) become
 * 2^-127, and those that are too large (infinity included) become 2^127. Otherwise both become NaN. */
uint8_t clv__small_power_of(double value, bool saturate, clv__small_round round);

#endif
