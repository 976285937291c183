/* Samples of run times, and the statistics that are reported about them. */
#ifndef CLEAVE_BENCH_STATISTICS_H
#define CLEAVE_BENCH_STATISTICS_H

#include "base/memory.h"

typedef struct clv__samples {
  double *items; /* on the heap */
  size_t count, capacity;
} clv__samples;

/* Adds a sample. Returns false if memory runs out. */
bool clv__samples_add(clv__samples *samples, const clv_allocator *allocator, double sample);
void clv__samples_finish(clv__samples *samples, const clv_allocator *allocator);

void clv__sample_sort(double *numbers, size_t count);
double clv__sample_median(const double *sorted, size_t count);
/* The nearest-rank percentile: the smallest number such that at least `percent` % of all numbers are no larger. The 50th is the
 * median. */
double clv__sample_percentile(const double *sorted, size_t count, double percent);
double clv__sample_mean(const double *numbers, size_t count);
/* Estimates the standard deviation of the population that the numbers are a sample of; NaN if there are fewer than two. */
double clv__sample_deviation(const double *numbers, size_t count);

#endif
