/* Tests the discrete Fourier transform, for lengths of every kind, against direct summation in extended precision. The inverse
 * must restore the data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "operators/signal/fourier.h"
#include "support.h"

static const int64_t lengths[] = {1,  2,  3,  4,   5,   7,   8,   16,  31,  32,  33,  60,  63,
                                  64, 65, 97, 100, 127, 128, 255, 257, 360, 509, 512, 1000};

/* Element k of the transform of `data`, by direct summation. */
static clv__complex plain(const clv__complex *data, int64_t length, int64_t k) {
  const long double turn = -2 * acosl(-1.0L) / (long double)length;
  long double re = 0, im = 0;
  for (int64_t i = 0; i < length; ++i) {
    long double angle = turn * (long double)(i * k % length), c = cosl(angle), s = sinl(angle);
    re += data[i].re * c - data[i].im * s;
    im += data[i].re * s + data[i].im * c;
  }
  return (clv__complex){(double)re, (double)im};
}

static double distance(clv__complex a, clv__complex b) {
  return hypot(a.re - b.re, a.im - b.im);
}

static void transforms_are_the_sum(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (size_t n = 0; n < sizeof lengths / sizeof *lengths; ++n) {
    const int64_t length = lengths[n];
    const size_t tables = clv__fourier_table_count(length), work = clv__fourier_work_count(length), size = (size_t)length;
    clv__complex *memory = malloc((tables > 0 ? tables : 1) * sizeof *memory), *room = malloc((work + 1) * sizeof *room);
    clv__complex *data = malloc(size * sizeof *data), *before = malloc(size * sizeof *before);
    clv__fourier fourier;
    assert_true(memory != NULL && room != NULL && data != NULL && before != NULL);
    for (size_t i = 0; i < size; ++i) {
      data[i] = (clv__complex){(double)test_random_float(&seed), (double)test_random_float(&seed)};
    }
    memcpy(before, data, size * sizeof *data);
    clv__fourier_init(&fourier, length, NULL, memory);
    clv__fourier_run(&fourier, data, false, room);
    const double allowed = 1e-14 * sqrt((double)length) * (1 + log2((double)length));
    for (int64_t k = 0; k < length; ++k) {
      double off = distance(data[k], plain(before, length, k));
      if (!(off <= allowed))
        fail_msg("length %lld, element %lld has an error of %g; the limit is %g", (long long)length, (long long)k, off, allowed);
    }
    clv__fourier_run(&fourier, data, true, room);
    for (size_t i = 0; i < size; ++i) assert_true(distance(data[i], before[i]) <= 1e-14 * (1 + log2((double)length)));
    free(before);
    free(data);
    free(room);
    free(memory);
  }
}

static void lengths_beyond_memory_are_told(void **state) {
  (void)state;
  assert_true(clv__fourier_table_count(0) == SIZE_MAX);
  assert_true(clv__fourier_table_count(INT64_MIN) == SIZE_MAX);
  assert_true(clv__fourier_table_count(INT64_MAX) == SIZE_MAX);
  assert_true(clv__fourier_work_count(INT64_MAX) == SIZE_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(transforms_are_the_sum), cmocka_unit_test(lengths_beyond_memory_are_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
