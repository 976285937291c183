/* Reads and writes one element of a tensor of any dtype: see tensor.h. */
#include <math.h>

#include "base/tensor/small.h"

int64_t clv__tensor_get_int(const clv_tensor *tensor, size_t index) {
  const char *at = (const char *)tensor->data + index * clv_dtype_size_bytes(tensor->dtype);
#define LOAD(type)                    \
  {                                   \
    type value;                       \
    memcpy(&value, at, sizeof value); \
    return (int64_t)value;            \
  }
  switch (tensor->dtype) {
    case CLV_U8:
    case CLV_BOOL:
      LOAD(uint8_t)
    case CLV_I8:
      LOAD(int8_t)
    case CLV_U16:
      LOAD(uint16_t)
    case CLV_I16:
      LOAD(int16_t)
    case CLV_I32:
      LOAD(int32_t)
    case CLV_U32:
      LOAD(uint32_t)
    case CLV_I64:
      LOAD(int64_t)
    case CLV_U64:
      LOAD(uint64_t)
    case CLV_U4:
    case CLV_I4:
    case CLV_U2:
    case CLV_I2:
      return clv__packed_get(tensor->dtype, tensor->data, index);
    default: {
      double value = clv__tensor_get(tensor, index);
      if (isnan(value)) return 0;
      if (value >= 0x1p63) return INT64_MAX;
      return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
    }
  }
#undef LOAD
}

double clv__tensor_get(const clv_tensor *tensor, size_t index) {
  const char *at = (const char *)tensor->data + index * clv_dtype_size_bytes(tensor->dtype);
  uint16_t half = 0;
  switch (tensor->dtype) {
    case CLV_F32: {
      float value;
      memcpy(&value, at, sizeof value);
      return (double)value;
    }
    case CLV_F64: {
      double value;
      memcpy(&value, at, sizeof value);
      return value;
    }
    case CLV_F16:
      memcpy(&half, at, sizeof half);
      return (double)clv__f16_to_f32(half);
    case CLV_BF16:
      memcpy(&half, at, sizeof half);
      return (double)clv__bf16_to_f32(half);
    case CLV_U64: {
      uint64_t value;
      memcpy(&value, at, sizeof value);
      return (double)value;
    }
    case CLV_F8E4M3FN:
    case CLV_F8E4M3FNUZ:
    case CLV_F8E5M2:
    case CLV_F8E5M2FNUZ:
    case CLV_F8E8M0:
    case CLV_F4E2M1:
      return (double)clv__small_to_f32(tensor->dtype, clv__small_bits(tensor->dtype, tensor->data, index));
    case CLV_STRING:
    case CLV_DTYPE_NONE:
      return 0;
    default:
      return (double)clv__tensor_get_int(tensor, index);
  }
}

void clv__tensor_put(const clv_tensor *tensor, size_t index, double real, int64_t whole, bool truth) {
  switch (tensor->dtype) {
    case CLV_F32:
      ((float *)tensor->data)[index] = (float)real;
      break;
    case CLV_F64:
      ((double *)tensor->data)[index] = real;
      break;
    case CLV_F16:
      ((uint16_t *)tensor->data)[index] = clv__f32_to_f16((float)real);
      break;
    case CLV_BF16:
      ((uint16_t *)tensor->data)[index] = clv__f32_to_bf16((float)real);
      break;
    case CLV_BOOL:
      ((uint8_t *)tensor->data)[index] = truth;
      break;
    case CLV_I8:
    case CLV_U8:
      ((uint8_t *)tensor->data)[index] = (uint8_t)whole;
      break;
    case CLV_I16:
    case CLV_U16:
      ((uint16_t *)tensor->data)[index] = (uint16_t)whole;
      break;
    case CLV_I32:
    case CLV_U32:
      ((uint32_t *)tensor->data)[index] = (uint32_t)whole;
      break;
    case CLV_I64:
    case CLV_U64:
      ((uint64_t *)tensor->data)[index] = (uint64_t)whole;
      break;
    case CLV_F8E4M3FN:
    case CLV_F8E4M3FNUZ:
    case CLV_F8E5M2:
    case CLV_F8E5M2FNUZ:
    case CLV_F8E8M0:
    case CLV_F4E2M1:
      clv__small_store(tensor->dtype, tensor->data, index, clv__small_from_f64(tensor->dtype, real, true));
      break;
    case CLV_U4:
    case CLV_I4:
    case CLV_U2:
    case CLV_I2:
      clv__small_store(tensor->dtype, tensor->data, index, (uint8_t)whole);
      break;
    default:
      break;
  }
}
