/* See tensor.h. */
#include "base/tensor/tensor.h"

#include <math.h>
#include <stdio.h>

static const struct {
  uint8_t size_bits;
  const char *name;
} dtypes[] = {
    [CLV_DTYPE_NONE] = {0, "none"},
    [CLV_F32] = {32, "f32"},
    [CLV_U8] = {8, "u8"},
    [CLV_I8] = {8, "i8"},
    [CLV_U16] = {16, "u16"},
    [CLV_I16] = {16, "i16"},
    [CLV_I32] = {32, "i32"},
    [CLV_I64] = {64, "i64"},
    [CLV_STRING] = {8 * sizeof(clv_string), "string"},
    [CLV_BOOL] = {8, "bool"},
    [CLV_F16] = {16, "f16"},
    [CLV_F64] = {64, "f64"},
    [CLV_U32] = {32, "u32"},
    [CLV_U64] = {64, "u64"},
    [CLV_BF16] = {16, "bf16"},
    [CLV_F8E4M3FN] = {8, "f8e4m3fn"},
    [CLV_F8E4M3FNUZ] = {8, "f8e4m3fnuz"},
    [CLV_F8E5M2] = {8, "f8e5m2"},
    [CLV_F8E5M2FNUZ] = {8, "f8e5m2fnuz"},
    [CLV_U4] = {4, "u4"},
    [CLV_I4] = {4, "i4"},
    [CLV_F4E2M1] = {4, "f4e2m1"},
    [CLV_F8E8M0] = {8, "f8e8m0"},
    [CLV_U2] = {2, "u2"},
    [CLV_I2] = {2, "i2"},
};

static bool is_dtype(clv_dtype dtype) {
  return (size_t)dtype < sizeof dtypes / sizeof *dtypes && dtypes[dtype].name != NULL;
}

size_t clv_dtype_size_bits(clv_dtype dtype) {
  return is_dtype(dtype) ? dtypes[dtype].size_bits : 0;
}

size_t clv_dtype_size_bytes(clv_dtype dtype) {
  return clv_dtype_size_bits(dtype) / 8;
}

const char *clv_dtype_name(clv_dtype dtype) {
  return is_dtype(dtype) ? dtypes[dtype].name : "none";
}

const char *clv_status_name(clv_status status) {
  switch (status) { /* without a default, so that the compiler reports a missing status */
    case CLV_OK:
      return "ok";
    case CLV_INVALID_ARGUMENT:
      return "invalid argument";
    case CLV_INVALID_MODEL:
      return "invalid model";
    case CLV_NOT_SUPPORTED:
      return "not supported";
    case CLV_NOT_FOUND:
      return "not found";
    case CLV_OUT_OF_MEMORY:
      return "out of memory";
    case CLV_IO_ERROR:
      return "input/output error";
    case CLV_DEVICE_ERROR:
      return "device error";
    case CLV_TOO_LARGE:
      return "too large";
    case CLV_INTERNAL_ERROR:
      return "internal error";
    case CLV_CANCELLED:
      return "cancelled";
    case CLV_TIMED_OUT:
      return "timed out";
  }
  return "unknown status";
}

bool clv__tensor_is_static(const clv_tensor *tensor) {
  if (tensor->dtype == CLV_DTYPE_NONE || tensor->rank < 0) return false;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    if (tensor->dims[i] < 0) return false;
  }
  return true;
}

bool clv__tensor_count(const clv_tensor *tensor, size_t *count) {
  if (tensor->rank < 0 || tensor->rank > CLV_MAX_RANK) return false;
  size_t product = 1;
  bool overflow = false, zero = false;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    if (tensor->dims[i] < 0) return false;
    if (tensor->dims[i] == 0)
      zero = true;
    else if (__builtin_mul_overflow(product, (size_t)tensor->dims[i], &product))
      overflow = true;
  }
  if (!zero && (overflow || product > ((size_t)1 << 58))) return false;
  *count = zero ? 0 : product;
  return true;
}

bool clv__tensor_size_bytes(const clv_tensor *tensor, size_t *size_bytes) {
  size_t count;
  if (!clv__tensor_count(tensor, &count)) return false;
  size_t bits = clv_dtype_size_bits(tensor->dtype);
  *size_bytes = bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
  return tensor->dtype != CLV_DTYPE_NONE;
}

bool clv__tensor_same_type(const clv_tensor *a, const clv_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; ++i) {
    if (a->dims[i] != b->dims[i] || a->dims[i] == CLV_DIM_UNKNOWN) return false;
  }
  return true;
}

void clv__tensor_text_named(const clv_tensor *tensor, clv__symbol_name_fn name, const void *cookie, char *text,
                            size_t size_bytes) {
  if (size_bytes == 0) return;
  size_t used = 0;
#define APPEND(...)                                                      \
  do {                                                                   \
    int written = snprintf(text + used, size_bytes - used, __VA_ARGS__); \
    used += written < 0 ? 0 : (size_t)written;                           \
    if (used >= size_bytes) return;                                      \
  } while (0)
  APPEND("%s", clv_dtype_name(tensor->dtype));
  if (tensor->rank < 0) {
    APPEND("[...]");
    return;
  }
  if (tensor->rank > CLV_MAX_RANK) { /* a caller's invalid tensor, named in an error message */
    APPEND("[rank %d]", (int)tensor->rank);
    return;
  }
  APPEND("[");
  for (int32_t i = 0; i < tensor->rank; ++i) {
    const char *comma = i > 0 ? "," : "";
    int64_t dim = tensor->dims[i];
    const char *symbol =
        name != NULL && dim < CLV_DIM_UNKNOWN && -2 - dim <= UINT32_MAX ? name(cookie, (uint32_t)(-2 - dim)) : NULL;
    if (dim >= 0)
      APPEND("%s%lld", comma, (long long)dim);
    else if (dim == CLV_DIM_UNKNOWN || (name != NULL && symbol == NULL))
      APPEND("%s?", comma);
    else if (symbol != NULL)
      APPEND("%s%s", comma, symbol);
    else
      APPEND("%ss%lld", comma, (long long)(-2 - dim));
  }
  APPEND("]");
#undef APPEND
}

void clv__tensor_text(const clv_tensor *tensor, char *text, size_t size_bytes) {
  clv__tensor_text_named(tensor, NULL, NULL, text, size_bytes);
}

float clv__f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu, wide;
  if (exponent == 31) {
    wide = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent != 0) {
    wide = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else if (mantissa == 0) {
    wide = sign;
  } else { /* subnormal: shift the leading one into place */
    int shift = __builtin_clz(mantissa) - 21;
    wide = sign | ((uint32_t)(113 - shift) << 23) | ((mantissa << (shift + 13)) & 0x7fffffu);
  }
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t clv__f64_to_f16(double value) {
  uint64_t wide;
  memcpy(&wide, &value, sizeof wide);
  uint16_t sign = (uint16_t)((wide >> 48) & 0x8000u);
  if (isnan(value)) return (uint16_t)(sign | 0x7e00u | ((wide >> 42) & 0x1ffu));
  double magnitude = fabs(value);
  if (magnitude >= 65520.0) return (uint16_t)(sign | 0x7c00u);
  if (magnitude < 0x1p-14) { /* subnormal: a multiple of 2^-24; nearbyint rounds to even */
    return (uint16_t)(sign | (uint16_t)nearbyint(magnitude * 0x1p24));
  }
  uint64_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  bits += ((uint64_t)1 << 41) - 1 + ((bits >> 42) & 1u); /* ten bits of mantissa stay, ties to even */
  return (uint16_t)(sign | (uint16_t)((bits >> 42) - ((uint64_t)(1023 - 15) << 10)));
}

uint16_t clv__f32_to_f16(float value) {
  return clv__f64_to_f16((double)value);
}

uint16_t clv__f64_to_bf16(double value) {
  float narrow = (float)value;
  if (isnan(value) || isinf(narrow)) return clv__f32_to_bf16(narrow);
  /* Rounding twice is wrong only if the first rounding lands on a tie of the second. In that case, move the float off the tie
   * towards the double. */
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  if ((bits & 0xffffu) == 0x8000u && (double)narrow != value) {
    bool away = fabs(value) > fabs((double)narrow);
    bits += away ? 1u : 0xffffffffu;
    memcpy(&narrow, &bits, sizeof narrow);
  }
  return clv__f32_to_bf16(narrow);
}
