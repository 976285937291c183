/* Measures runs that take turns, so that other activity of the machine affects all of them alike. Three times are measured: the
 * CPU time of the calling thread until the run is over, the part of it until all work was issued, and the wall time. */
#ifndef CLEAVE_BENCH_TURNS_H
#define CLEAVE_BENCH_TURNS_H

#include <time.h>

enum { MAX_SAMPLES = 1001, MAX_SUBJECTS = 5, WARM_UP = 5 };

typedef struct cost {
  double cpu, issued, wall; /* ns */
  int clocks;               /* how many readings of the thread's clock `cpu` includes */
} cost;

double read_clock(clockid_t clock); /* ns */

/* A run measures itself with these: cost c = begin(); ...; return end(c). */
cost begin(void);
cost end(cost begun);
/* Called by a run between begin() and end(), when the device has all of its work. */
void issued(void);

typedef struct subject {
  cost (*run)(void *cookie); /* NULL: skipped */
  void *cookie;
} subject;

/* Runs the subjects in turns. `costs` are the medians of each. */
void measure(const subject *subjects, int count, int samples, cost *costs);
double without(double taken, double clock); /* returns taken - clock, or 0 if that is negative */

#endif
