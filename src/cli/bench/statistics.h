/* Samples of run times, and the statistics that are reported about them. */
#ifndef CLEAVE_CLI_BENCH_STATISTICS_H
#define CLEAVE_CLI_BENCH_STATISTICS_H

#include "base/memory.h"

typedef struct bench_samples {
  double *items; /* on the heap */
  size_t count, capacity;
} bench_samples;

/* Adds a sample. Returns false if memory runs out. */
bool bench_samples_add(bench_samples *samples, const clv_allocator *allocator, double sample);
void bench_samples_finish(bench_samples *samples, const clv_allocator *allocator);

void bench_sort(double *numbers, size_t count);
double bench_median(const double *sorted, size_t count);
/* The nearest-rank percentile: the smallest number such that at least `percent` % of all numbers are no larger. The 50th is the
 * median. */
double bench_percentile(const double *sorted, size_t count, double percent);
double bench_mean(const double *numbers, size_t count);
/* Estimates the standard deviation of the population that the numbers are a sample of; NaN if there are fewer than two. */
double bench_deviation(const double *numbers, size_t count);

#endif
