/* Converts runs of elements between a tensor's dtype and the type that kernels compute in: f32, or f64 for f64 tensors. */
#ifndef CLEAVE_OPERATORS_COMMON_ROWS_H
#define CLEAVE_OPERATORS_COMMON_ROWS_H

#include "base/tensor/tensor.h"

/* Converts elements [first, first + count) of `data`; does nothing for strings. Small dtypes are converted one at a time
 * (base/tensor/small.h). */
void clv__row_to_f32(clv_dtype dtype, const void *data, int64_t first, int64_t count, float *row);
void clv__row_to_f64(clv_dtype dtype, const void *data, int64_t first, int64_t count, double *row);
/* Like clv__row_to_f64(), but rounds 64-bit integers to odd: if bits are lost, the last bit that stays is set. Rounding such a
 * double again, to a dtype with at most 51 bits of mantissa, rounds the integer once (Boldo and Melquiond, "Emulation of FMA and
 * correctly rounded sums: proved algorithms using rounding to odd", 2008). */
void clv__row_to_f64_odd(clv_dtype dtype, const void *data, int64_t first, int64_t count, double *row);
/* Convert `row` to elements [first, first + count) of `data`. Values for integer dtypes are truncated and saturate (those of less
 * than a byte keep the low bits). Small floats saturate. A NaN becomes 0 in an integer. */
void clv__row_from_f32(clv_dtype dtype, void *data, int64_t first, int64_t count, const float *row);
void clv__row_from_f64(clv_dtype dtype, void *data, int64_t first, int64_t count, const double *row);
/* Convert in either direction, for integer dtypes and bool only. A u64 keeps its bits. A smaller integer receives the low bits.
 */
void clv__row_to_i64(clv_dtype dtype, const void *data, int64_t first, int64_t count, int64_t *row);
void clv__row_from_i64(clv_dtype dtype, void *data, int64_t first, int64_t count, const int64_t *row);

/* The product of dims [from, to). If one of them is 0 the product is 0, however large the others are. */
static inline int64_t clv__dims_count(const clv_tensor *tensor, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; ++i) {
    if (tensor->dims[i] == 0) return 0;
  }
  return clv__dims_product(tensor, from, to);
}

static inline bool clv__tensor_is_empty(const clv_tensor *tensor) {
  return clv__dims_count(tensor, 0, tensor->rank) == 0;
}

/* Converts an f16 exactly, without branches, so that loops over it vectorise. */
static inline float clv__f16_widen(uint16_t bits) {
  uint32_t magnitude = (uint32_t)(bits & 0x7fffu) << 13;
  float value;
  memcpy(&value, &magnitude, sizeof value);
  value *= 0x1p112f;
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  wide |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  wide |= (uint32_t)(bits & 0x8000u) << 16;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Converts to f16, rounded to nearest even. Gives the same bits as clv__f32_to_f16(), but without branches. */
static inline uint16_t clv__f16_narrow(float value) {
  uint32_t wide, bits;
  memcpy(&wide, &value, sizeof wide);
  uint32_t sign = wide >> 16 & 0x8000u;
  wide &= 0x7fffffffu;
  /* Normal numbers: moves the exponent and rounds 13 bits away. A number that is too large carries into the exponent of infinity,
   * or beyond. */
  uint32_t normal = wide - 0x38000000u + 0xfffu + (wide >> 13 & 1u);
  normal = (int32_t)wide >= 0x47800000 ? 0x7c00u : normal >> 13;
  /* Subnormal numbers: adding a half makes the float unit round to a multiple of 2^-24. */
  float magnitude;
  memcpy(&magnitude, &wide, sizeof magnitude);
  magnitude += 0.5f;
  memcpy(&bits, &magnitude, sizeof bits);
  uint32_t half = (int32_t)wide < 0x38800000 ? bits - 0x3f000000u : normal;
  uint32_t quiet = 0x7e00u | (wide >> 13 & 0x1ffu);
  return (uint16_t)(sign | ((int32_t)wide > 0x7f800000 ? quiet : half));
}

#endif
