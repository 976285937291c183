/* See rows.h. */
#include "operators/common/rows.h"

#include <math.h>

#include "base/tensor/small.h"

#define CONVERT(source_type, expression)                     \
  {                                                          \
    const source_type *source = data;                        \
    source += first;                                         \
    for (int64_t i = 0; i < count; ++i) row[i] = expression; \
    break;                                                   \
  }

/* Element `index` of a small dtype; 0 for a string. */
static float small_value(clv_dtype dtype, const void *data, size_t index) {
  if (clv__dtype_is_in(dtype, CLV__DTYPES_PACKED_INTEGER)) return (float)clv__packed_get(dtype, data, index);
  if (!clv__dtype_is_in(dtype, CLV__DTYPES_SMALL)) return 0;
  return clv__small_to_f32(dtype, clv__small_bits(dtype, data, index));
}

static void put_small(clv_dtype dtype, void *data, size_t index, double value) {
  if (clv__dtype_is_in(dtype, CLV__DTYPES_PACKED_INTEGER)) {
    const int64_t whole = isnan(value) || fabs(value) >= 0x1p62 ? 0 : (int64_t)value;
    clv__small_store(dtype, data, index, (uint8_t)whole);
  } else if (clv__dtype_is_in(dtype, CLV__DTYPES_SMALL)) {
    clv__small_store(dtype, data, index, clv__small_from_f64(dtype, value, true));
  }
}

void clv__row_to_f32(clv_dtype dtype, const void *data, int64_t first, int64_t count, float *row) {
  switch (dtype) {
    case CLV_F32:
      if (count > 0) memcpy(row, (const float *)data + first, (size_t)count * sizeof(float));
      break;
    case CLV_F16:
      CONVERT(uint16_t, clv__f16_widen(source[i]))
    case CLV_BF16:
      CONVERT(uint16_t, clv__bf16_to_f32(source[i]))
    case CLV_F64:
      CONVERT(double, (float)source[i])
    case CLV_BOOL:
    case CLV_U8:
      CONVERT(uint8_t, (float)source[i])
    case CLV_I8:
      CONVERT(int8_t, (float)source[i])
    case CLV_U16:
      CONVERT(uint16_t, (float)source[i])
    case CLV_I16:
      CONVERT(int16_t, (float)source[i])
    case CLV_U32:
      CONVERT(uint32_t, (float)source[i])
    case CLV_I32:
      CONVERT(int32_t, (float)source[i])
    case CLV_U64:
      CONVERT(uint64_t, (float)source[i])
    case CLV_I64:
      CONVERT(int64_t, (float)source[i])
    default:
      for (int64_t i = 0; i < count; ++i) row[i] = small_value(dtype, data, (size_t)(first + i));
      break;
  }
}

void clv__row_to_f64(clv_dtype dtype, const void *data, int64_t first, int64_t count, double *row) {
  switch (dtype) {
    case CLV_F64:
      if (count > 0) memcpy(row, (const double *)data + first, (size_t)count * sizeof(double));
      break;
    case CLV_F32:
      CONVERT(float, (double)source[i])
    case CLV_F16:
      CONVERT(uint16_t, (double)clv__f16_widen(source[i]))
    case CLV_BF16:
      CONVERT(uint16_t, (double)clv__bf16_to_f32(source[i]))
    case CLV_BOOL:
    case CLV_U8:
      CONVERT(uint8_t, (double)source[i])
    case CLV_I8:
      CONVERT(int8_t, (double)source[i])
    case CLV_U16:
      CONVERT(uint16_t, (double)source[i])
    case CLV_I16:
      CONVERT(int16_t, (double)source[i])
    case CLV_U32:
      CONVERT(uint32_t, (double)source[i])
    case CLV_I32:
      CONVERT(int32_t, (double)source[i])
    case CLV_U64:
      CONVERT(uint64_t, (double)source[i])
    case CLV_I64:
      CONVERT(int64_t, (double)source[i])
    default:
      for (int64_t i = 0; i < count; ++i) row[i] = (double)small_value(dtype, data, (size_t)(first + i));
      break;
  }
}

static double round_to_odd(uint64_t value) {
  const int lost = value >> 53 == 0 ? 0 : 11 - __builtin_clzll(value); /* a double has 53 bits of mantissa */
  const uint64_t rest = value & (((uint64_t)1 << lost) - 1);
  return (double)((value - rest) | (rest != 0 ? (uint64_t)1 << lost : 0));
}

void clv__row_to_f64_odd(clv_dtype dtype, const void *data, int64_t first, int64_t count, double *row) {
  switch (dtype) {
    case CLV_U64:
      CONVERT(uint64_t, round_to_odd(source[i]))
    case CLV_I64:
      CONVERT(int64_t, source[i] < 0 ? -round_to_odd(0 - (uint64_t)source[i]) : round_to_odd((uint64_t)source[i]))
    default:
      clv__row_to_f64(dtype, data, first, count, row);
      break;
  }
}

/* Values up to `low` become `minimum`, values from `high` on become `maximum`. Both bounds are exact in double. */
#define SATURATE(type, low, high, minimum, maximum) \
  (isnan(row[i]) ? (type)0 : (double)row[i] <= (low) ? (minimum) : (double)row[i] >= (high) ? (maximum) : (type)row[i])

#define STORE(target_type, expression)                          \
  {                                                             \
    target_type *target = data;                                 \
    target += first;                                            \
    for (int64_t i = 0; i < count; ++i) target[i] = expression; \
    break;                                                      \
  }

#define STORE_INTEGERS                                                             \
  case CLV_BOOL:                                                                   \
    STORE(uint8_t, row[i] != 0)                                                    \
  case CLV_U8:                                                                     \
    STORE(uint8_t, SATURATE(uint8_t, -1.0, 256.0, 0, UINT8_MAX))                   \
  case CLV_I8:                                                                     \
    STORE(int8_t, SATURATE(int8_t, -129.0, 128.0, INT8_MIN, INT8_MAX))             \
  case CLV_U16:                                                                    \
    STORE(uint16_t, SATURATE(uint16_t, -1.0, 65536.0, 0, UINT16_MAX))              \
  case CLV_I16:                                                                    \
    STORE(int16_t, SATURATE(int16_t, -32769.0, 32768.0, INT16_MIN, INT16_MAX))     \
  case CLV_U32:                                                                    \
    STORE(uint32_t, SATURATE(uint32_t, -1.0, 0x1p32, 0, UINT32_MAX))               \
  case CLV_I32:                                                                    \
    STORE(int32_t, SATURATE(int32_t, -2147483649.0, 0x1p31, INT32_MIN, INT32_MAX)) \
  case CLV_U64:                                                                    \
    STORE(uint64_t, SATURATE(uint64_t, -1.0, 0x1p64, 0, UINT64_MAX))               \
  case CLV_I64:                                                                    \
    STORE(int64_t, SATURATE(int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX))

void clv__row_from_f32(clv_dtype dtype, void *data, int64_t first, int64_t count, const float *row) {
  switch (dtype) {
    case CLV_F32:
      if (count > 0) memcpy((float *)data + first, row, (size_t)count * sizeof(float));
      break;
    case CLV_F16:
      STORE(uint16_t, clv__f16_narrow(row[i]))
    case CLV_BF16:
      STORE(uint16_t, clv__f32_to_bf16(row[i]))
    case CLV_F64:
      STORE(double, (double)row[i])
      STORE_INTEGERS
    default:
      for (int64_t i = 0; i < count; ++i) put_small(dtype, data, (size_t)(first + i), (double)row[i]);
      break;
  }
}

void clv__row_from_f64(clv_dtype dtype, void *data, int64_t first, int64_t count, const double *row) {
  switch (dtype) {
    case CLV_F64:
      if (count > 0) memcpy((double *)data + first, row, (size_t)count * sizeof(double));
      break;
    case CLV_F32:
      STORE(float, (float)row[i])
    case CLV_F16:
      STORE(uint16_t, clv__f64_to_f16(row[i]))
    case CLV_BF16:
      STORE(uint16_t, clv__f64_to_bf16(row[i]))
      STORE_INTEGERS
    default:
      for (int64_t i = 0; i < count; ++i) put_small(dtype, data, (size_t)(first + i), row[i]);
      break;
  }
}

void clv__row_to_i64(clv_dtype dtype, const void *data, int64_t first, int64_t count, int64_t *row) {
  switch (dtype) {
    case CLV_BOOL:
    case CLV_U8:
      CONVERT(uint8_t, source[i])
    case CLV_I8:
      CONVERT(int8_t, source[i])
    case CLV_U16:
      CONVERT(uint16_t, source[i])
    case CLV_I16:
      CONVERT(int16_t, source[i])
    case CLV_U32:
      CONVERT(uint32_t, source[i])
    case CLV_I32:
      CONVERT(int32_t, source[i])
    case CLV_U64:
    case CLV_I64:
      if (count > 0) memcpy(row, (const int64_t *)data + first, (size_t)count * sizeof(int64_t));
      break;
    case CLV_U4:
    case CLV_I4:
    case CLV_U2:
    case CLV_I2:
      for (int64_t i = 0; i < count; ++i) row[i] = clv__packed_get(dtype, data, (size_t)(first + i));
      break;
    default:
      break;
  }
}

void clv__row_from_i64(clv_dtype dtype, void *data, int64_t first, int64_t count, const int64_t *row) {
  switch (dtype) {
    case CLV_BOOL:
      STORE(uint8_t, row[i] != 0)
    case CLV_U8:
    case CLV_I8:
      STORE(uint8_t, (uint8_t)row[i])
    case CLV_U16:
    case CLV_I16:
      STORE(uint16_t, (uint16_t)row[i])
    case CLV_U32:
    case CLV_I32:
      STORE(uint32_t, (uint32_t)row[i])
    case CLV_U64:
    case CLV_I64:
      if (count > 0) memcpy((int64_t *)data + first, row, (size_t)count * sizeof(int64_t));
      break;
    case CLV_U4:
    case CLV_I4:
    case CLV_U2:
    case CLV_I2:
      for (int64_t i = 0; i < count; ++i) clv__small_store(dtype, data, (size_t)(first + i), (uint8_t)row[i]);
      break;
    default:
      break;
  }
}
