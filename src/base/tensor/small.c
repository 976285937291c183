/* See small.h. The formats: https://onnx.ai/onnx/technical/float8.html, and the OCP Microscaling Formats (MX) specification. */
#include "base/tensor/small.h"

#include <math.h>

typedef struct format {
  int mantissa_bits, bias;
  uint8_t sign;     /* the sign bit */
  uint8_t largest;  /* the bits of the largest number */
  uint8_t overflow; /* the bits for values beyond the largest number, if they are not saturated; combined with the sign bit if
                       has_negative_zero */
  uint8_t nan;
  bool has_negative_zero; /* false: the bits of negative zero are the only NaN */
} format;

static const format *format_of(clv_dtype dtype) {
  static const format e4m3fn = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, true}, e4m3fnuz = {3, 8, 0x80, 0x7f, 0x80, 0x80, false},
                      e5m2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, true}, e5m2fnuz = {2, 16, 0x80, 0x7f, 0x80, 0x80, false},
                      e2m1 = {1, 1, 0x08, 0x07, 0x07, 0x00, true};
  switch (dtype) {
    case CLV_F8E4M3FN:
      return &e4m3fn;
    case CLV_F8E4M3FNUZ:
      return &e4m3fnuz;
    case CLV_F8E5M2:
      return &e5m2;
    case CLV_F8E5M2FNUZ:
      return &e5m2fnuz;
    default:
      return &e2m1;
  }
}

void clv__packed_range(clv_dtype dtype, int *least, int *most) {
  *least = dtype == CLV_I4 ? -8 : dtype == CLV_I2 ? -2 : 0;
  *most = dtype == CLV_U4 ? 15 : dtype == CLV_I4 ? 7 : dtype == CLV_U2 ? 3 : 1;
}

static float f32_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float clv__small_to_f32(clv_dtype dtype, uint8_t bits) {
  if (dtype == CLV_F8E8M0) return bits == 0xff ? NAN : bits == 0 ? 0x1p-127f : f32_of((uint32_t)bits << 23);
  const format *f = format_of(dtype);
  const uint8_t magnitude = bits & (uint8_t)(f->sign - 1);
  const bool negative = (bits & f->sign) != 0;
  if (negative && magnitude == 0 && !f->has_negative_zero) return NAN;
  if (magnitude > f->largest) {
    if (dtype == CLV_F8E5M2 && magnitude == f->overflow) return negative ? -INFINITY : INFINITY;
    return negative ? -NAN : NAN;
  }
  /* The bits are put into the fields of an f32, whose exponent has another bias. The multiplication corrects this, also for
   * subnormals. */
  const float value = f32_of((uint32_t)magnitude << (23 - f->mantissa_bits)) * f32_of((uint32_t)(254 - f->bias) << 23);
  return negative ? -value : value;
}

uint8_t clv__small_from_f64(clv_dtype dtype, double value, bool saturate) {
  if (dtype == CLV_F8E8M0) return clv__small_power_of(value, saturate, CLV__SMALL_UP);
  const format *f = format_of(dtype);
  const uint8_t sign = signbit(value) ? f->sign : 0;
  if (isnan(value)) return f->has_negative_zero ? f->nan | sign : f->nan;
  const double magnitude = fabs(value);
  int exponent, code = f->largest + 1;
  if (magnitude < 0x1p17) { /* larger numbers are beyond every format */
    (void)frexp(magnitude, &exponent);
    if (--exponent < 1 - f->bias || magnitude == 0) exponent = 1 - f->bias; /* subnormal: the smallest normal exponent */
    const int steps = (int)nearbyint(ldexp(magnitude, f->mantissa_bits - exponent));
    /* `steps` of a normal number includes its leading one, which adds 1 to the exponent field. The exponent in the second term
     * is therefore 1 too small. For a subnormal, which has no leading one, that term is 0. If `steps` was rounded up to the
     * next power of two, the sum carries into the exponent field, as it must. */
    code = steps + (exponent + f->bias - 1) * (1 << f->mantissa_bits);
  }
  if (code > f->largest) {
    if (!saturate && dtype != CLV_F4E2M1) return f->has_negative_zero ? f->overflow | sign : f->overflow;
    code = f->largest;
  }
  return code == 0 && !f->has_negative_zero ? 0 : (uint8_t)(code | sign);
}

uint8_t clv__small_power_of(double value, bool saturate, clv__small_round round) {
  enum { NOT_A_NUMBER = 255, LARGEST = 254, BIAS = 127 };
  if (isnan(value)) return NOT_A_NUMBER;
  if (isinf(value)) return saturate ? LARGEST : NOT_A_NUMBER;
  int exponent;
  const double fraction = frexp(fabs(value), &exponent); /* in [0.5, 1), or 0 */
  if (fraction == 0) return saturate ? 0 : NOT_A_NUMBER;
  const bool up = round == CLV__SMALL_UP ? fraction > 0.5 : round == CLV__SMALL_NEAREST && fraction >= 0.75;
  const int code = exponent - 1 + BIAS + up;
  if (code < 0) return saturate ? 0 : NOT_A_NUMBER;
  return code <= LARGEST ? (uint8_t)code : saturate ? LARGEST : NOT_A_NUMBER;
}
