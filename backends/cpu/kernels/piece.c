/* See piece.h. */
#include "piece.h"
#include "backends/common/kernels/vector.h"

enum {
  LANES = CLV__VECTOR_BYTES / sizeof(float),
  AT_A_TIME = 4 /* vectors processed at a time */
};

typedef uint32_t words __attribute__((vector_size(LANES * sizeof(uint32_t)), aligned(sizeof(uint32_t)), may_alias));
typedef int32_t bits __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(sizeof(int32_t)), may_alias));
typedef float reals __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* Reads the vector that begins at channel first + index * LANES. If `left` is less than LANES, reads only `left` numbers and
 * sets the other lanes to 0. */
static inline __attribute__((always_inline)) void read_vector(const void *numbers, int64_t first, int index, int64_t left,
                                                              words *vector) {
  const char *from = (const char *)numbers + (size_t)(first + index * LANES) * sizeof(uint32_t);
  if (left == LANES) {
    *vector = *(const words *)(const void *)from;
    return;
  }
  *vector = (words){0};
  memcpy(vector, from, (size_t)left * sizeof(uint32_t));
}

/* Sets `real` to `number` where the mask `where` is set. */
static inline __attribute__((always_inline)) void replace(const bits *where, float number, reals *real) {
  const reals numbers = number - (reals){0};
  *real = (reals)((*where & (bits)numbers) | (~*where & (bits)*real));
}

static inline __attribute__((always_inline)) void run_posts(const clv__cpu_sums_piece *p, int64_t first, const int count,
                                                            int64_t left, reals *real) {
  for (uint32_t i = 0; i < p->post_count; ++i) {
    const float low = p->posts[i].low, high = p->posts[i].high;
    switch (p->posts[i].kind) {
      case CLV__CPU_SUMS_ADD_ONE:
#pragma GCC unroll 4
        for (int v = 0; v < count; ++v) real[v] += *p->posts[i].other;
        break;
      case CLV__CPU_SUMS_ADD_EACH:
#pragma GCC unroll 4
        for (int v = 0; v < count; ++v) {
          words other;
          read_vector(p->posts[i].other, first, v, left, &other);
          real[v] += (reals)other;
        }
        break;
      case CLV__CPU_SUMS_SLOPE:
#pragma GCC unroll 4
        for (int v = 0; v < count; ++v) {
          const bits below = real[v] < 0.0f;
          const reals product = real[v] * low;
          real[v] = (reals)((below & (bits)product) | (~below & (bits)real[v]));
        }
        break;
      case CLV__CPU_SUMS_CLIP:
#pragma GCC unroll 4
        for (int v = 0; v < count; ++v) {
          const bits below = real[v] < low;
          replace(&below, low, &real[v]);
          const bits above = real[v] > high;
          replace(&above, high, &real[v]);
        }
        break;
    }
  }
}

/* Processes `count` vectors of channels from `first` on. `left` is LANES, or the number of channels in a last, partial vector;
 * `count` is then 1. */
static inline __attribute__((always_inline)) void run_vectors(const clv__cpu_sums_piece *p, int64_t first, const int count,
                                                              int64_t left) {
  words sums[AT_A_TIME], numbers, factors;
  reals real[AT_A_TIME];
#pragma GCC unroll 4
  for (int v = 0; v < count; ++v) read_vector(p->place, first, v, left, &sums[v]);
  if (p->shifts != NULL) {
#pragma GCC unroll 4
    for (int v = 0; v < count; ++v) {
      read_vector(p->shifts, first, v, left, &numbers);
      sums[v] -= numbers * p->zero;
    }
  }
  if (p->zeros != NULL) {
#pragma GCC unroll 4
    for (int v = 0; v < count; ++v) {
      read_vector(p->zeros, first, v, left, &numbers);
      factors = p->window - (words){0};
      if (p->windows != NULL) read_vector(p->windows, first, v, left, &factors);
      sums[v] -= numbers * factors;
    }
  }
  if (p->scale != NULL) {
#pragma GCC unroll 4
    for (int v = 0; v < count; ++v) {
      factors = (words)(*p->scale - (reals){0});
      if (p->scale_is_line) read_vector(p->scale, first, v, left, &factors);
      real[v] = __builtin_convertvector((bits)sums[v], reals) * (reals)factors;
    }
    run_posts(p, first, count, left, real);
#pragma GCC unroll 4
    for (int v = 0; v < count; ++v) sums[v] = (words)real[v];
  }
#pragma GCC unroll 4
  for (int v = 0; v < count; ++v) {
    uint8_t *place = (uint8_t *)p->place + (size_t)(first + v * LANES) * sizeof(uint32_t);
    if (left == LANES)
      *(words *)(void *)place = sums[v];
    else
      memcpy(place, &sums[v], (size_t)left * sizeof(uint32_t));
  }
}

void clv__cpu_sums_piece_run(const clv__cpu_sums_piece *p, int64_t count) {
  int64_t first = 0;
  for (; first + AT_A_TIME * LANES <= count; first += AT_A_TIME * LANES) run_vectors(p, first, AT_A_TIME, LANES);
  for (; first + LANES <= count; first += LANES) run_vectors(p, first, 1, LANES);
  if (first < count) run_vectors(p, first, 1, count - first);
}
