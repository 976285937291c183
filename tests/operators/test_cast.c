/* Tests casts of 64-bit integers to floats with the integers for which a cast that rounds twice is wrong: those in the middle
 * between two neighbouring numbers of the dtype, and those one below and one above the middle. The expected result is the
 * nearer neighbour, which the test finds with integers. */
#include <stdio.h>

#include "base/tensor/small.h"
#include "kernel_case.h"

enum { MAX_VALUES = 1 << 16 };

/* Integers and the expected results of their casts to one dtype. Each integer is tested with either sign, so only magnitudes
 * are stored. */
typedef struct casts {
  clv_dtype to;
  const char *mode; /* round_mode of a cast to f8e8m0; NULL for other dtypes */
  size_t count;
  uint64_t magnitudes[MAX_VALUES];
  double wanted[MAX_VALUES];
} casts;

static bool is_small(clv_dtype dtype) {
  return clv__dtype_is_in(dtype, CLV__DTYPES_SMALL_FLOAT);
}

static double number_of(clv_dtype dtype, uint32_t bits) {
  if (is_small(dtype)) return (double)clv__small_to_f32(dtype, (uint8_t)bits);
  return (double)(dtype == CLV_F16 ? clv__f16_to_f32((uint16_t)bits) : clv__bf16_to_f32((uint16_t)bits));
}

/* Whether `value` must be rounded to `upper` instead of `lower`, its two neighbours in the dtype: to the nearer one or, halfway
 * between them, to the one with even bits. For f8e8m0, the mode decides. All numbers are in units of 2^-14. */
static bool rounds_up(const casts *c, __int128 lower, __int128 value, __int128 upper, uint32_t lower_bits) {
  if (value == lower || value == upper) return value == upper;
  if (c->mode != NULL && strcmp(c->mode, "nearest") != 0) return strcmp(c->mode, "up") == 0;
  if (2 * value == lower + upper) return c->mode != NULL || lower_bits % 2 == 1;
  return 2 * value > lower + upper;
}

/* Adds the integers near the middle between the number with these bits and the next number of the dtype, and those near the
 * first of the two. */
static void add_between(casts *c, uint32_t bits) {
  enum { UNITS = 1 << 14 };
  const double low = number_of(c->to, bits), high = number_of(c->to, bits + 1);
  if (!(low >= 0.25 && low < 0x1p64 && high > low && high <= 0x1p64)) return; /* skips NaN and infinity too */
  const __int128 lower = (__int128)(low * UNITS), upper = (__int128)(high * UNITS);
  const __int128 near[2] = {lower / UNITS, (lower + upper) / 2 / UNITS};
  for (size_t i = 0; i < 6; ++i) {
    const __int128 whole = near[i / 3] + (__int128)(i % 3) - 1, value = whole * UNITS;
    if (whole < 1 || value < lower || value > upper || whole > UINT64_MAX) continue;
    assert_true(c->count < MAX_VALUES);
    c->magnitudes[c->count] = (uint64_t)whole;
    c->wanted[c->count++] = rounds_up(c, lower, value, upper, bits) ? high : low;
  }
}

/* Casts all integers of `c` that fit the dtype `from` (i64 or u64), with a minus sign if `negative`. */
static void check_casts(const casts *c, clv_dtype from, bool negative) {
  int64_t count = 0, to = c->to;
  clv_tensor x = case_tensor(from, 1, (int64_t[]){(int64_t)c->count});
  const double **wanted = malloc(c->count * sizeof *wanted);
  assert_non_null(wanted);
  for (size_t i = 0; i < c->count; ++i) {
    if (from == CLV_I64 && c->magnitudes[i] > (uint64_t)INT64_MAX) continue;
    wanted[count] = &c->wanted[i];
    ((uint64_t *)x.data)[count++] = negative ? 0 - c->magnitudes[i] : c->magnitudes[i];
  }
  x.dims[0] = count;
  clv_tensor y = clv__tensor_make(c->to, 1, &count, malloc((size_t)count * 8));
  assert_non_null(y.data);
  clv_string mode = {c->mode, c->mode != NULL ? strlen(c->mode) : 0};
  clv_attribute attributes[2] = {case_int("to", &to),
                                 {.name = "round_mode", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &mode}};
  case_run("Cast", 25, attributes, c->mode != NULL ? 2 : 1, &x, 1, &y);
  for (int64_t i = 0; i < count; ++i) {
    const double expected = negative && c->mode == NULL ? -*wanted[i] : *wanted[i], got = clv__tensor_get(&y, (size_t)i);
    if (got != expected)
      fail_msg("cast of %s %s%llu to %s %s: %.17g, expected %.17g", clv_dtype_name(from), negative ? "-" : "",
               (unsigned long long)c->magnitudes[wanted[i] - c->wanted], clv_dtype_name(c->to), c->mode != NULL ? c->mode : "",
               got, expected);
  }
  free(wanted);
  free(x.data);
  free(y.data);
}

static void check_all(const casts *c) {
  assert_true(c->count > 10);
  check_casts(c, CLV_I64, false);
  check_casts(c, CLV_I64, true);
  check_casts(c, CLV_U64, false);
}

static void middles(void **state) {
  static const struct {
    clv_dtype to;
    const char *mode;
  } cases[] = {{CLV_BF16, NULL},       {CLV_F16, NULL},    {CLV_F8E4M3FN, NULL}, {CLV_F8E4M3FNUZ, NULL}, {CLV_F8E5M2, NULL},
               {CLV_F8E5M2FNUZ, NULL}, {CLV_F4E2M1, NULL}, {CLV_F8E8M0, "up"},   {CLV_F8E8M0, "down"},   {CLV_F8E8M0, "nearest"}};
  (void)state;
  casts *c = malloc(sizeof *c);
  assert_non_null(c);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    *c = (casts){.to = cases[i].to, .mode = cases[i].mode};
    const uint32_t numbers = c->to == CLV_F4E2M1 ? 7 : c->to == CLV_F8E8M0 ? 254 : is_small(c->to) ? 127 : 0x7fff;
    for (uint32_t bits = 0; bits < numbers; ++bits) add_between(c, bits);
    check_all(c);
  }
  free(c);
}

/* Casts to f32 and f64. The expected results are those of the compiler's conversions, which round once. */
static void wide_floats(void **state) {
  (void)state;
  casts *c = malloc(sizeof *c);
  assert_non_null(c);
  for (size_t i = 0; i < 2; ++i) {
    const uint32_t digits = i == 0 ? 24 : 53;
    *c = (casts){.to = i == 0 ? CLV_F32 : CLV_F64};
    uint64_t seed = 3;
    for (uint32_t lost = 1; lost <= 64 - digits; ++lost) {
      for (uint32_t k = 0; k < 32; ++k) {
        const uint64_t mantissa = (uint64_t)1 << (digits - 1) | (test_random(&seed) >> (65 - digits));
        const uint64_t middle = (mantissa << lost) + ((uint64_t)1 << (lost - 1));
        for (uint64_t value = middle - 1; value <= middle + 1; ++value) {
          c->magnitudes[c->count] = value;
          c->wanted[c->count++] = i == 0 ? (double)(float)value : (double)value;
        }
      }
    }
    check_all(c);
  }
  free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(middles), cmocka_unit_test(wide_floats)};
  return RUN_BOTH_KERNELS(tests);
}
