/* Zero points, and the rounding of i32 sums to 8 bits, for products and convolutions of 8-bit integers. Sums are kept modulo
 * 2^32 as unsigned numbers: an i32 that overflows wraps, as on every device that has i32. */
#ifndef CLEAVE_OPERATORS_COMMON_REQUANTIZE_H
#define CLEAVE_OPERATORS_COMMON_REQUANTIZE_H

#include <math.h>

#include "operators/common/element.h"

#define CLV__BYTES (CLV__DTYPE_BIT(CLV_U8) | CLV__DTYPE_BIT(CLV_I8))

static inline int32_t clv__byte_at(clv_dtype dtype, const void *data, int64_t index) {
  return dtype == CLV_I8 ? ((const int8_t *)data)[index] : ((const uint8_t *)data)[index];
}

/* Element `index` of the zero points, or 0 if `zero` is NULL. */
static inline int32_t clv__zero_at(const clv_tensor *zero, int64_t index) {
  return zero != NULL ? clv__byte_at(zero->dtype, zero->data, index) : 0;
}

static inline float clv__scale_at(const clv_tensor *scale, int64_t index) {
  float value;
  clv__row_to_f32(scale->dtype, scale->data, index, 1, &value);
  return value;
}

/* Requantizes one element: y[index] = saturate(round(sum * factor) + zero). Halves are rounded to even. */
static inline void clv__requantize_element(const clv_tensor *y, int64_t index, int32_t sum, float factor, int64_t zero) {
  const float value = (float)sum * factor;
  clv__element_store(y, index, (value == value ? (double)rintf(value) : 0) + (double)zero);
}

/* Requantizes elements [first, first + count): y = saturate(round(sum * factor) + zero), halves to even. The sum and the factor
 * of element first + i are sums[i] and factors[i * factor_step]. */
static inline void clv__requantize(clv_dtype dtype, void *data, int64_t first, int64_t count, const uint32_t *sums,
                                   const float *factors, int64_t factor_step, int32_t zero) {
  const float round = 0x1.8p23f; /* adding and then subtracting it rounds a number below 2^22 to a whole number */
  const float least = (float)((dtype == CLV_I8 ? INT8_MIN : 0) - zero);
  const float most = (float)((dtype == CLV_I8 ? INT8_MAX : UINT8_MAX) - zero);
  uint8_t *y = (uint8_t *)data + first;
  for (int64_t i = 0; i < count; ++i) {
    float value = (float)(int32_t)sums[i] * factors[i * factor_step];
    value = value != value ? 0 : value;
    value = value < least ? least : value; /* the bounds are whole numbers, so the value may be rounded afterwards */
    value = value > most ? most : value;
    y[i] = (uint8_t)((int32_t)(value + round - round) + zero);
  }
}

#endif
