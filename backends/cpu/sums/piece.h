/* What lies between a product's sums and its real result, for channels of one row: vectors stay in registers from the one to the
 * other. Each operation rounds by itself, as the nodes do that it stands for: piece.c is compiled without contraction. */
#ifndef CLEAVE_BACKENDS_CPU_SUMS_PIECE_H
#define CLEAVE_BACKENDS_CPU_SUMS_PIECE_H

#include "backends/cpu/passes/plan.h"

typedef struct clv__cpu_sums_piece {
  void *place;                   /* the sums, and the result */
  const int32_t *shifts, *zeros; /* NULL: none */
  uint32_t zero, window;         /* what `shifts` is taken off times, and `zeros` */
  const uint32_t *windows;       /* instead of `window`, one a channel; NULL: none */
  const float *scale;            /* NULL: the sums are the result */
  bool scale_is_line;            /* one a channel */
  uint32_t post_count;
  struct {
    enum { CLV__CPU_SUMS_ADD_ONE, CLV__CPU_SUMS_ADD_EACH, CLV__CPU_SUMS_SLOPE, CLV__CPU_SUMS_CLIP } kind;
    const float *other; /* of a sum */
    float low, high;    /* bounds; SLOPE: `low` times what is below 0 */
  } posts[CLV__CPU_MAX_POSTS];
} clv__cpu_sums_piece;

void clv__cpu_sums_piece_run(const clv__cpu_sums_piece *piece, int64_t channels);

#endif
