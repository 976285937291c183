/* Turns a product's integer sums into its real result, for channels of one row. Vectors stay in registers throughout. Each
 * operation rounds separately, like the node that it replaces: piece.c is compiled without contraction. */
#ifndef CLEAVE_BACKENDS_CPU_KERNELS_PIECE_H
#define CLEAVE_BACKENDS_CPU_KERNELS_PIECE_H

#include "backends/cpu/passes/variant.h"

typedef struct clv__cpu_sums_piece {
  void *place;                   /* at first the sums; the result overwrites them */
  const int32_t *shifts, *zeros; /* NULL: none */
  uint32_t zero, window;         /* from each sum, zero * shifts[channel] and window * zeros[channel] are subtracted */
  const uint32_t *windows;       /* if not NULL, one number per channel that is used instead of `window` */
  const float *scale;            /* NULL: the sums are the result */
  bool scale_is_line;            /* there is one scale per channel, not one for all */
  uint32_t post_count;
  struct {
    enum { CLV__CPU_SUMS_ADD_ONE, CLV__CPU_SUMS_ADD_EACH, CLV__CPU_SUMS_SLOPE, CLV__CPU_SUMS_CLIP } kind;
    const float *other; /* what is added to the values: one number (ADD_ONE), or one per channel (ADD_EACH) */
    float low, high;    /* CLIP: the bounds; SLOPE: `low` multiplies values below 0 */
  } posts[CLV__CPU_MAX_POSTS];
} clv__cpu_sums_piece;

void clv__cpu_sums_piece_run(const clv__cpu_sums_piece *piece, int64_t channels);

#endif
