/* The exponential and related functions in f32, without branches, so that loops over them vectorise. A NaN gives a NaN. */
#ifndef CLEAVE_OPERATORS_COMMON_EXPONENTIAL_H
#define CLEAVE_OPERATORS_COMMON_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

/* Writes x as n ln 2 + r, where n is a whole number and |r| is at most half of ln 2. Returns r and sets *power to 2^n. Requires
 * |x| below 88. */
static inline float clv__reduce_exponent(float x, float *power) {
  const float shifted = x * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f; /* n is in the low bits of `shifted` */
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u;
  memcpy(power, &bits, sizeof *power);
  /* ln 2 is the sum of two constants. The first has so few bits that its product with n is exact. */
  return x - n * 0x1.62e4p-1f - n * 1.42860677e-6f;
}

/* (e^r - 1 - r) / r^2 for |r| up to half of ln 2, by the Taylor series. Its truncation error is below half an ulp of e^r. */
static inline float clv__exponent_series(float r) {
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  return sum * r + 0.5f;
}

/* e^x for x up to 88; 0 below -87. */
static inline float clv__exp_f32(float x) {
  float power;
  const float r = clv__reduce_exponent(x < -87.0f ? -87.0f : x, &power);
  const float value = ((clv__exponent_series(r) * r + 1.0f) * r + 1.0f) * power;
  return x < -87.0f ? 0.0f : value;
}

/* e^x for any x: infinity above 88.7, subnormal below -87.3, 0 below -104. 2^n is applied in two factors, because it may be
 * outside f32. */
static inline float clv__exp_whole_f32(float x) {
  const float low = x < -105.0f ? -105.0f : x, inside = low > 89.0f ? 89.0f : low;
  const float shifted = inside * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const float r = inside - n * 0x1.62e4p-1f - n * 1.42860677e-6f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const int32_t whole = (int32_t)(bits << 9) >> 9, half = whole >> 1; /* n, in 23 bits */
  const uint32_t first_bits = (uint32_t)(half + 127) << 23, second_bits = (uint32_t)(whole - half + 127) << 23;
  float first, second;
  memcpy(&first, &first_bits, sizeof first);
  memcpy(&second, &second_bits, sizeof second);
  return ((clv__exponent_series(r) * r + 1.0f) * r + 1.0f) * first * second;
}

/* The sigmoid; exactly 0 below -88. At minus infinity, x times the sigmoid is then NaN, like minus infinity times 0. */
static inline float clv__sigmoid_f32(float x) {
  const float low = x < -88.0f ? -88.0f : x, value = 1.0f / (1.0f + clv__exp_f32(-low));
  return x < -88.0f ? 0.0f : value;
}

/* e^(2x) - 1, accurate for small x. Beyond |x| = 10 it is the value at 10 or -10. */
static inline float clv__tanh_dividend_f32(float x) {
  const float low = x < -10.0f ? -10.0f : x, inside = low > 10.0f ? 10.0f : low;
  float power;
  const float r = clv__reduce_exponent(2.0f * inside, &power);
  return (clv__exponent_series(r) * r * r + r) * power + (power - 1.0f);
}

static inline float clv__tanh_f32(float x) {
  const float less_one = clv__tanh_dividend_f32(x);
  return less_one / (less_one + 2.0f);
}

/* 1 + e^-x, the divisor of clv__gate_f32(), which is the sigmoid for the gates of recurrences. Unlike clv__sigmoid_f32(), that
 * sigmoid does not reach 0: below -87 it stays at 1e-38. */
static inline float clv__gate_divisor_f32(float x) {
  const float low = x < -87.0f ? -87.0f : x, inside = low > 87.0f ? 87.0f : low;
  float power;
  const float r = clv__reduce_exponent(-inside, &power);
  return 1.0f + ((clv__exponent_series(r) * r + 1.0f) * r + 1.0f) * power;
}

static inline float clv__gate_f32(float x) {
  return 1.0f / clv__gate_divisor_f32(x);
}

/* tanh(x) * sigmoid(y), with one division. */
static inline float clv__gated_tanh_f32(float x, float y) {
  const float less_one = clv__tanh_dividend_f32(x);
  return less_one / ((less_one + 2.0f) * clv__gate_divisor_f32(y));
}

/* x times the cumulative normal distribution: 0.5 x (1 + erf(x / sqrt 2)), with an error of at most 1e-6 (relative for |x| above
 * 1). The distribution less a half is x times a function of x squared. That function is approximated by a minimax quotient of
 * polynomials (least maximum error of the distribution), up to the point where the distribution is 0 or 1. */
static inline float clv__gelu_f32(float x) {
  const float end = 5.2f, low = x < -end ? -end : x, inside = low > end ? end : low, square = inside * inside;
  float above = 2.47797036e-08f, below = 1.25993267e-06f;
  above = above * square + 6.40338703e-06f;
  above = above * square + 1.56244176e-04f;
  above = above * square + 4.60500363e-03f;
  above = above * square + 3.24844569e-02f;
  above = above * square + 3.98942262e-01f;
  below = below * square + 7.02948746e-05f;
  below = below * square + 1.81376806e-03f;
  below = below * square + 2.78923605e-02f;
  below = below * square + 2.48092890e-01f;
  below = below * square + 1.0f;
  const float share = inside * (above / below) + 0.5f;
  return x * (x < -end ? 0.0f : share);
}

#endif
