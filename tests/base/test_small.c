/* The small dtypes: the value of every code against the definition of the format, rounding against a search through all codes,
 * packed elements next to each other, and sizes. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor/compare.h"
#include "base/tensor/small.h"

typedef struct kind {
  clv_dtype dtype;
  int exponent_bits, mantissa_bits, bias;
  bool is_fnuz, has_infinity, has_nan;
} kind;

static const kind kinds[] = {
    {CLV_F8E4M3FN, 4, 3, 7, false, false, true}, {CLV_F8E4M3FNUZ, 4, 3, 8, true, false, true},
    {CLV_F8E5M2, 5, 2, 15, false, true, true},   {CLV_F8E5M2FNUZ, 5, 2, 16, true, false, true},
    {CLV_F4E2M1, 2, 1, 1, false, false, false},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The value of a code by the definition of its format: sign, exponent, mantissa. */
static double meaning(const kind *k, int code) {
  const int bits = k->exponent_bits + k->mantissa_bits, magnitude = code & ((1 << bits) - 1);
  const int exponent = magnitude >> k->mantissa_bits, mantissa = magnitude & ((1 << k->mantissa_bits) - 1);
  const double sign = code >> bits & 1 ? -1 : 1;
  if (k->is_fnuz && code == 1 << bits) return NAN;
  if (k->has_infinity && exponent == (1 << k->exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
  if (k->has_nan && !k->is_fnuz && !k->has_infinity && magnitude == (1 << bits) - 1) return NAN;
  if (exponent == 0) return sign * ldexp(mantissa, 1 - k->bias - k->mantissa_bits);
  return sign * ldexp((1 << k->mantissa_bits) + mantissa, exponent - k->bias - k->mantissa_bits);
}

static int codes_of(const kind *k) {
  return 2 << (k->exponent_bits + k->mantissa_bits);
}

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void every_code(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(kinds); ++i) {
    for (int code = 0; code < codes_of(&kinds[i]); ++code) {
      const double should = meaning(&kinds[i], code), is = (double)clv__small_to_f32(kinds[i].dtype, (uint8_t)code);
      if (!same(should, is)) fail_msg("%s: %#x is %g, expected %g", clv_dtype_name(kinds[i].dtype), code, is, should);
      const uint8_t back = clv__small_from_f64(kinds[i].dtype, should, false);
      if (isnan(should))
        assert_true(isnan(clv__small_to_f32(kinds[i].dtype, back)));
      else
        assert_int_equal(back, code);
    }
  }
  for (int code = 0; code < 255; ++code) {
    assert_true((double)clv__small_to_f32(CLV_F8E8M0, (uint8_t)code) == ldexp(1, code - 127));
    for (int round = CLV__SMALL_UP; round <= CLV__SMALL_NEAREST; ++round) {
      assert_int_equal(clv__small_power_of(ldexp(1, code - 127), true, (clv__small_round)round), code);
    }
  }
  assert_true(isnan(clv__small_to_f32(CLV_F8E8M0, 255)));
}

/* Returns the code nearest to `magnitude`. Sets *largest to the format's largest number, and *beyond to whether a number above
 * the largest would be nearer, if the format had one. */
static int nearest(const kind *k, double magnitude, double *largest, bool *beyond) {
  int best = 0, last = 0;
  for (int code = 0; code < codes_of(k) / 2 && isfinite(meaning(k, code)); ++code) {
    const double far = fabs(meaning(k, code) - magnitude), least = fabs(meaning(k, best) - magnitude);
    if (far < least || (far == least && code % 2 == 0)) best = code;
    last = code;
  }
  *largest = meaning(k, last);
  /* The number after the largest would be one step further. A tie between the two goes to the even code. */
  const double step = *largest - meaning(k, last - 1), half = *largest + step / 2;
  *beyond = magnitude > half || (magnitude == half && last % 2 == 1);
  return best;
}

static void rounding(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (size_t i = 0; i < COUNT(kinds); ++i) {
    const kind *k = &kinds[i];
    for (int repeat = 0; repeat < 20000; ++repeat) {
      double value = ldexp((double)(test_random(&seed) % 4096), (int)(test_random(&seed) % 40) - 30);
      if (repeat % 4 == 0) { /* a value at the middle between two neighbours, or just beside it */
        const int code = (int)(test_random(&seed) % (uint64_t)(codes_of(k) / 2 - 1));
        const double a = meaning(k, code), b = meaning(k, code + 1);
        if (!isfinite(a) || !isfinite(b)) continue;
        value = (a + b) / 2;
        const uint64_t where = test_random(&seed) % 3;
        if (where > 0) value = nextafter(value, where == 1 ? 0 : INFINITY);
      }
      double largest;
      bool beyond;
      const int code = nearest(k, value, &largest, &beyond);
      const bool negative = test_random(&seed) % 2 == 0, saturate = test_random(&seed) % 2 == 0 || k->dtype == CLV_F4E2M1;
      double should = beyond ? saturate ? largest : k->has_infinity ? INFINITY : NAN : meaning(k, code);
      if (negative) should = k->is_fnuz && should == 0 ? 0 : -should;
      const uint8_t bits = clv__small_from_f64(k->dtype, negative ? -value : value, saturate);
      const double is = (double)clv__small_to_f32(k->dtype, bits);
      if (!same(should, is)) {
        fail_msg("%s: %.17g becomes %g, expected %g (saturate %d)", clv_dtype_name(k->dtype), negative ? -value : value, is,
                 should, saturate);
      }
    }
    assert_true((double)clv__small_to_f32(k->dtype, clv__small_from_f64(k->dtype, -INFINITY, true)) <= -6);
    const float endless = clv__small_to_f32(k->dtype, clv__small_from_f64(k->dtype, INFINITY, false));
    assert_true(k->has_infinity ? isinf(endless) : k->has_nan ? isnan(endless) : endless == 6);
  }
}

static void powers(void **state) {
  (void)state;
  static const struct {
    double value;
    int up, down, nearest;
  } cases[] = {{1, 127, 127, 127},         {1.25, 128, 127, 127},
               {1.5, 128, 127, 128},       {0x1.7fffffp0, 128, 127, 127},
               {-3, 129, 128, 129},        {0, 0, 0, 0},
               {0x1p-140, 0, 0, 0},        {0x1p200, 254, 254, 254},
               {0x1.1p127, 254, 254, 254}, {INFINITY, 254, 254, 254},
               {NAN, 255, 255, 255}};
  for (size_t i = 0; i < COUNT(cases); ++i) {
    assert_int_equal(clv__small_power_of(cases[i].value, true, CLV__SMALL_UP), cases[i].up);
    assert_int_equal(clv__small_power_of(cases[i].value, true, CLV__SMALL_DOWN), cases[i].down);
    assert_int_equal(clv__small_power_of(cases[i].value, true, CLV__SMALL_NEAREST), cases[i].nearest);
  }
  static const double outside[] = {0, 0x1p-140, 0x1p128, INFINITY};
  for (size_t i = 0; i < COUNT(outside); ++i) {
    assert_int_equal(clv__small_power_of(outside[i], false, CLV__SMALL_NEAREST), 255);
  }
  assert_int_equal(clv__small_power_of(0x1.1p127, false, CLV__SMALL_UP), 255);
  assert_int_equal(clv__small_power_of(0x1.1p127, false, CLV__SMALL_DOWN), 254);
}

/* Packed elements are stored in any order without changing their neighbours, and lie where ONNX puts them. */
static void packing(void **state) {
  (void)state;
  static const clv_dtype dtypes[] = {CLV_U4, CLV_I4, CLV_U2, CLV_I2, CLV_F4E2M1};
  uint64_t seed = 3;
  for (size_t d = 0; d < COUNT(dtypes); ++d) {
    const size_t bits = clv_dtype_size_bits(dtypes[d]);
    assert_int_equal(clv_dtype_size_bytes(dtypes[d]), 0);
    for (int64_t count = 0; count < 20; ++count) {
      size_t size_bytes;
      clv_tensor tensor = clv__tensor_make(dtypes[d], 1, &count, NULL), other = tensor;
      assert_true(clv__tensor_size_bytes(&tensor, &size_bytes));
      assert_int_equal(size_bytes, ((size_t)count * bits + 7) / 8);
      uint8_t *data = tensor.data = malloc(size_bytes + 1), *again = other.data = malloc(size_bytes + 1), should[20];
      memset(data, 0xa5, size_bytes + 1);
      clv__small_clear(&tensor);
      for (int64_t i = 0; i < count; ++i) clv__small_store(dtypes[d], data, (size_t)i, (uint8_t)test_random(&seed));
      for (int64_t n = 0; n < count; ++n) {
        const size_t i = (size_t)(n * 7 % count);
        should[i] = (uint8_t)(test_random(&seed) & ((1u << bits) - 1));
        clv__small_store(dtypes[d], data, i, should[i]);
      }
      for (int64_t n = 0; n < count && count % 7 == 0; ++n) {
        should[n] =
            (uint8_t)(test_random(&seed) & ((1u << bits) - 1)); /* the loop above misses elements if count is a multiple of 7 */
        clv__small_store(dtypes[d], data, (size_t)n, should[n]);
      }
      assert_int_equal(data[size_bytes], 0xa5);
      for (int64_t i = 0; i < count; ++i) {
        assert_int_equal(data[(size_t)i * bits / 8] >> (size_t)i * bits % 8 & ((1u << bits) - 1), should[i]);
        const int least_sign = 1 << (bits - 1), value = should[i];
        const bool is_signed = dtypes[d] == CLV_I4 || dtypes[d] == CLV_I2;
        const double wanted = dtypes[d] == CLV_F4E2M1 ? meaning(&kinds[4], value)
                              : is_signed             ? (value & (least_sign - 1)) - (value & least_sign)
                                                      : value;
        assert_true(clv__tensor_get(&tensor, (size_t)i) == wanted);
      }
      if (size_bytes > 0 && (size_t)count * bits % 8 != 0) assert_int_equal(data[size_bytes - 1] >> (size_t)count * bits % 8, 0);
      memcpy(again, data, size_bytes + 1);
      clv__difference worst;
      assert_true(clv__tensor_agrees(&tensor, &other, &worst));
      if (count > 0) {
        const size_t last = (size_t)count - 1;
        clv__small_store(dtypes[d], again, last, (uint8_t)(should[last] ^ 1));
        assert_false(clv__tensor_agrees(&tensor, &other, &worst));
        assert_int_equal(worst.element, last);
      }
      free(data);
      free(again);
    }
  }
}

static void names(void **state) {
  (void)state;
  assert_string_equal(clv_dtype_name(CLV_F8E4M3FNUZ), "f8e4m3fnuz");
  assert_string_equal(clv_dtype_name(CLV_I2), "i2");
  for (int number = -2; number < 40; ++number) {
    const bool known = clv__dtype_is_known(number);
    assert_int_equal(known, (number >= CLV_F32 && number <= CLV_U64) || (number >= CLV_BF16 && number <= CLV_I2));
    assert_int_equal(known, strcmp(clv_dtype_name((clv_dtype)number), "none") != 0);
  }
  assert_false(clv__dtype_is_known(INT64_MAX) || clv__dtype_is_known(((int64_t)1 << 32) + 1));
}

static void every_status_has_a_name(void **state) {
  (void)state;
  for (int a = CLV_OK; a <= CLV_TIMED_OUT; ++a) {
    assert_string_not_equal(clv_status_name((clv_status)a), "unknown status");
    for (int b = CLV_OK; b < a; ++b) assert_string_not_equal(clv_status_name((clv_status)a), clv_status_name((clv_status)b));
  }
  assert_string_equal(clv_status_name((clv_status)(CLV_TIMED_OUT + 1)), "unknown status");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_status_has_a_name),
      cmocka_unit_test(every_code),
      cmocka_unit_test(rounding),
      cmocka_unit_test(powers),
      cmocka_unit_test(packing),
      cmocka_unit_test(names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
