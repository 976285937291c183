/* Measures runs that take turns (turns.h). */
#define BENCH "turns"
#include "turns.h"

#include <stdlib.h>

#include "bench.h"

double read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double now_ns(void) {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static double issued_ns; /* the thread's clock at the last call of issued(); 0: none in this run */

void issued(void) {
  issued_ns = now_ns();
}

cost begin(void) {
  issued_ns = 0;
  double wall = read_clock(CLOCK_MONOTONIC);
  return (cost){.wall = wall, .cpu = now_ns()};
}

cost end(cost begun) {
  double cpu = now_ns();
  cost c = {.cpu = cpu - begun.cpu, .wall = read_clock(CLOCK_MONOTONIC) - begun.wall};
  c.issued = issued_ns > 0 ? issued_ns - begun.cpu : c.cpu;
  c.clocks = issued_ns > 0 ? 2 : 1;
  return c;
}

static double middle(double *taken, int samples) {
  qsort(taken, (size_t)samples, sizeof *taken, compare);
  return taken[samples / 2];
}

/* Returns how many ns it takes to read the thread's clock. */
static double clock_ns(void) {
  static double taken[MAX_SAMPLES];
  for (int i = 0; i < 101; ++i) {
    double at = now_ns();
    taken[i] = now_ns() - at;
  }
  return middle(taken, 101);
}

double without(double taken, double clock) {
  return taken > clock ? taken - clock : 0;
}

void measure(const subject *subjects, int count, int samples, cost *costs) {
  static double taken[MAX_SUBJECTS][3][MAX_SAMPLES];
  double clock = clock_ns();
  for (int i = -WARM_UP; i < samples; ++i) {
    for (int k = 0; k < count; ++k) {
      if (subjects[k].run == NULL) continue;
      cost c = subjects[k].run(subjects[k].cookie);
      if (i < 0) continue;
      taken[k][0][i] = without(c.cpu, c.clocks * clock);
      taken[k][1][i] = without(c.issued, clock);
      taken[k][2][i] = c.wall;
    }
  }
  for (int k = 0; k < count; ++k) {
    costs[k] = (cost){0};
    if (subjects[k].run == NULL) continue;
    costs[k] = (cost){middle(taken[k][0], samples), middle(taken[k][1], samples), middle(taken[k][2], samples), 0};
  }
}
