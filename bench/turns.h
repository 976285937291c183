/* Times of runs that take turns, so that what else the machine does meets all of them: CPU time of the calling thread until a run
 * is over, of that until all was issued, and wall time. */
#ifndef CLEAVE_BENCH_TURNS_H
#define CLEAVE_BENCH_TURNS_H

#include <stdbool.h>
#include <time.h>

enum { MAX_SAMPLES = 1001, MAX_SUBJECTS = 5, WARM_UP = 5 };

typedef struct cost {
  double cpu, issued, wall; /* ns */
  int clocks;               /* how often `cpu` has the thread's clock in it */
} cost;

double read_clock(clockid_t clock); /* ns */

/* A run measures itself: cost c = begin(); ...; return end(c). */
cost begin(void);
cost end(cost begun);
/* Said by a run, between the two: the device has all it is to do. */
void issued(void);

typedef struct subject {
  cost (*run)(void *cookie); /* NULL: none */
  void *cookie;
} subject;

/* Runs them in turns; the medians of each. */
void measure(const subject *subjects, int count, int samples, cost *costs);
double without(double taken, double clock); /* no less than 0 */

#endif
