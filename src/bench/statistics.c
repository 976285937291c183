/* See statistics.h. */
#include "bench/statistics.h"

#include <math.h>
#include <stdlib.h>

bool clv__samples_add(clv__samples *samples, const clv_allocator *allocator, double sample) {
  if (!clv__array_reserve(allocator, (void **)&samples->items, &samples->capacity, samples->count + 1, sizeof sample,
                          samples->count)) {
    return false;
  }
  samples->items[samples->count++] = sample;
  return true;
}

void clv__samples_finish(clv__samples *samples, const clv_allocator *allocator) {
  clv__release(allocator, samples->items);
  *samples = (clv__samples){0};
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void clv__sample_sort(double *numbers, size_t count) {
  if (count > 0) qsort(numbers, count, sizeof *numbers, compare);
}

double clv__sample_median(const double *sorted, size_t count) {
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double clv__sample_percentile(const double *sorted, size_t count, double percent) {
  if (percent == 50) return clv__sample_median(sorted, count);
  /* 1e-9 absorbs rounding errors: as doubles, 2.2 * 1500 / 100 is above 33, and ceil() would return 34. */
  const double rank = ceil(percent * (double)count / 100 - 1e-9);
  if (rank < 1) return sorted[0];
  return sorted[rank <= (double)count ? (size_t)rank - 1 : count - 1];
}

double clv__sample_mean(const double *numbers, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += numbers[i];
  return sum / (double)count;
}

double clv__sample_deviation(const double *numbers, size_t count) {
  const double mean = clv__sample_mean(numbers, count);
  double sum = 0;
  if (count < 2) return NAN;
  for (size_t i = 0; i < count; ++i) sum += (numbers[i] - mean) * (numbers[i] - mean);
  return sqrt(sum / (double)(count - 1));
}
