/* Joins f32 pieces along the channels into one tensor. Each piece keeps its own layout. The channels may be scaled, shifted and
 * clamped to a lower bound on the way. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_CHANNELS_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_CHANNELS_H

#include "base/memory.h"
#include "base/stop.h"
#include "cleave/types.h"

/* The layout of a tensor [images, channels, pixels]: [images, channels / block, pixels, block], the last block padded with zeros.
 * `block` is 8 or 16, or the number of channels if all channels of a pixel are adjacent. */
typedef struct clv__channels_form {
  int64_t channels, block;
} clv__channels_form;

typedef struct clv__channels_run clv__channels_run;

typedef struct clv__channels {
  int64_t images, pixels, channels;
  int64_t tile; /* pixels processed together */
  uint32_t piece_count;
  int64_t *piece_images; /* for each piece: its number of elements per image */
  int64_t result_image;
  uint32_t run_count;
  clv__channels_run *runs;
  const float *scale, *shift; /* one per channel; if NULL, values are only copied */
  float least;                /* lower bound, -INFINITY for none; a NaN stays NaN */
} clv__channels;

/* Fills *channels, with arrays from `arena`; returns CLV_OUT_OF_MEMORY if memory runs out. result.channels must be the sum of
 * the channels of the pieces. The caller must then set scale, shift and least before clv__channels_join(). */
clv_status clv__channels_plan(clv__channels *channels, clv__arena *arena, int64_t images, int64_t pixels,
                              const clv__channels_form *pieces, uint32_t piece_count, clv__channels_form result,
                              clv_error *error);
/* Writes the joined pieces to `result`. `result` may be the memory of piece 0 if that is the only piece and has the layout of
 * the result. Once `stop` (may be NULL) is set, skips the rest of the work. */
void clv__channels_join(const clv__channels *channels, const clv_tensor *pieces, float *result, const clv__stop *stop);

#endif
