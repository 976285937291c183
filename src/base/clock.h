/* The monotonic clock. */
#ifndef CLEAVE_BASE_CLOCK_H
#define CLEAVE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time of CLOCK_MONOTONIC, in nanoseconds. */
static inline uint64_t clv__clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The milliseconds between two times of this clock. */
static inline double clv__ms(uint64_t from_ns, uint64_t to_ns) {
  return (double)(to_ns - from_ns) / 1e6;
}

#endif
