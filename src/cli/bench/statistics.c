/* See statistics.h. */
#include "cli/bench/statistics.h"

#include <math.h>
#include <stdlib.h>

bool bench_samples_add(bench_samples *samples, const clv_allocator *allocator, double sample) {
  if (!clv__array_reserve(allocator, (void **)&samples->items, &samples->capacity, samples->count + 1, sizeof sample,
                          samples->count)) {
    return false;
  }
  samples->items[samples->count++] = sample;
  return true;
}

void bench_samples_finish(bench_samples *samples, const clv_allocator *allocator) {
  clv__release(allocator, samples->items);
  *samples = (bench_samples){0};
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void bench_sort(double *numbers, size_t count) {
  if (count > 0) qsort(numbers, count, sizeof *numbers, compare);
}

double bench_median(const double *sorted, size_t count) {
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double bench_percentile(const double *sorted, size_t count, double percent) {
  if (percent == 50) return bench_median(sorted, count);
  /* 1e-9 absorbs rounding errors: as doubles, 2.2 * 1500 / 100 is above 33, and ceil() would return 34. */
  const double rank = ceil(percent * (double)count / 100 - 1e-9);
  if (rank < 1) return sorted[0];
  return sorted[rank <= (double)count ? (size_t)rank - 1 : count - 1];
}

double bench_mean(const double *numbers, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += numbers[i];
  return sum / (double)count;
}

double bench_deviation(const double *numbers, size_t count) {
  const double mean = bench_mean(numbers, count);
  double sum = 0;
  if (count < 2) return NAN;
  for (size_t i = 0; i < count; ++i) sum += (numbers[i] - mean) * (numbers[i] - mean);
  return sqrt(sum / (double)(count - 1));
}
