/* SplitMix64 (Steele, Lea, Flood 2014): pseudo-random numbers from a seed, identical on every machine. */
#ifndef CLEAVE_BASE_RANDOM_H
#define CLEAVE_BASE_RANDOM_H

#include <stdint.h>

/* A hash of one number. Hashes of positions are random numbers that can be computed in any order. */
static inline uint64_t clv__mix64(uint64_t number) {
  number += 0x9e3779b97f4a7c15u;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
  number = (number ^ number >> 27) * 0x94d049bb133111ebu;
  return number ^ number >> 31;
}

static inline uint64_t clv__random(uint64_t *state) {
  uint64_t number = clv__mix64(*state);
  *state += 0x9e3779b97f4a7c15u;
  return number;
}

/* Returns a random number in [0, count). */
static inline uint32_t clv__random_below(uint64_t *state, uint32_t count) {
  return (uint32_t)((clv__random(state) >> 32) * count >> 32);
}

/* Returns a random number in [0, 1). */
static inline double clv__random_real(uint64_t *state) {
  return (double)(clv__random(state) >> 11) / 9007199254740992.0;
}

#endif
