/* Pieces of f32 side by side along the channels, each lying as it does: as one tensor, whose channels may be scaled, shifted and
 * kept above a bound on the way. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_CHANNELS_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_CHANNELS_H

#include "base/memory.h"
#include "cleave/types.h"

/* How a tensor [images, channels, pixels] lies: [images, channels / block, pixels, block], the last block filled up with zeros.
 * `block` is 8 or 16, or all the channels where those of a pixel lie side by side. */
typedef struct clv__channels_form {
  int64_t channels, block;
} clv__channels_form;

typedef struct clv__channels_run clv__channels_run;

typedef struct clv__channels {
  int64_t images, pixels, channels;
  int64_t tile; /* pixels that are made together */
  uint32_t piece_count;
  int64_t *piece_images; /* elements of each piece's image */
  int64_t result_image;
  uint32_t run_count;
  clv__channels_run *runs;
  const float *scale, *shift; /* one a channel; both NULL: the bits are copied */
  float least;                /* below which nothing is, -INFINITY for no such bound; a NaN stays one */
} clv__channels;

/* The walk in `arena`; scale, shift and least are the caller's to set. The channels of the pieces add up to the result's. */
clv_status clv__channels_plan(clv__channels *channels, clv__arena *arena, int64_t images, int64_t pixels,
                              const clv__channels_form *pieces, uint32_t piece_count, clv__channels_form result,
                              clv_error *error);
/* The result may be piece 0 in place where it is the only one and lies as the result does. */
void clv__channels_join(const clv__channels *channels, const clv_tensor *pieces, float *result);

#endif
