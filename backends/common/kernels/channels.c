/* See channels.h. The channels are divided into runs, which end where a block of a piece or of the result ends. So the channels
 * of a run are contiguous in the piece and in the result. A few pixels are processed at a time, so that their part of the result
 * stays in the second-level cache until all runs have been written to it. */
#include "backends/common/kernels/channels.h"

#include <string.h>

#include "base/error.h"
#include "operators/common/threads.h"

#define TILE_FLOATS 8192 /* floats of the result per tile: a tile and its inputs fit in the second-level cache */
#define FILLING UINT32_MAX

struct clv__channels_run {
  uint32_t piece; /* index of the piece; FILLING: the run is padding and gets zeros */
  int64_t count, channel;
  int64_t from, from_step, to, to_step; /* in the piece and in the result: offset of the first pixel, and step to the next */
};

static int64_t blocks_of(clv__channels_form form) {
  return (form.channels + form.block - 1) / form.block;
}

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The offset of channel `c` of the first pixel in an image of `pixels` pixels, in elements. */
static int64_t place(clv__channels_form form, int64_t pixels, int64_t c) {
  return c / form.block * form.block * pixels + c % form.block;
}

static void cut(clv__channels *channels, const clv__channels_form *pieces, clv__channels_form result) {
  int64_t at = 0;
  for (uint32_t p = 0; p < channels->piece_count; ++p) {
    const clv__channels_form piece = pieces[p];
    for (int64_t c = 0, count; c < piece.channels; c += count, at += count) {
      count = least_of(piece.channels - c, least_of(piece.block - c % piece.block, result.block - at % result.block));
      channels->runs[channels->run_count++] = (clv__channels_run){.piece = p,
                                                                  .count = count,
                                                                  .channel = at,
                                                                  .from = place(piece, channels->pixels, c),
                                                                  .from_step = piece.block,
                                                                  .to = place(result, channels->pixels, at),
                                                                  .to_step = result.block};
    }
  }
  if (at % result.block == 0) return;
  channels->runs[channels->run_count++] = (clv__channels_run){.piece = FILLING,
                                                              .count = result.block - at % result.block,
                                                              .to = place(result, channels->pixels, at),
                                                              .to_step = result.block};
}

clv_status clv__channels_plan(clv__channels *channels, clv__arena *arena, int64_t images, int64_t pixels,
                              const clv__channels_form *pieces, uint32_t piece_count, clv__channels_form result,
                              clv_error *error) {
  size_t most = (size_t)blocks_of(result) + 1;
  for (uint32_t p = 0; p < piece_count; ++p) most += (size_t)blocks_of(pieces[p]);
  *channels = (clv__channels){.images = images, .pixels = pixels, .channels = result.channels, .piece_count = piece_count};
  channels->runs = clv__arena_allocate_zero(arena, most, sizeof *channels->runs);
  channels->piece_images = clv__arena_allocate_zero(arena, piece_count, sizeof *channels->piece_images);
  if (channels->runs == NULL || channels->piece_images == NULL) return clv__error_memory(error, most * sizeof *channels->runs);
  for (uint32_t p = 0; p < piece_count; ++p) channels->piece_images[p] = blocks_of(pieces[p]) * pieces[p].block * pixels;
  channels->result_image = blocks_of(result) * result.block * pixels;
  channels->tile = result.channels < TILE_FLOATS ? TILE_FLOATS / result.channels : 1;
  cut(channels, pieces, result);
  return CLV_OK;
}

static inline void copy(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t pixels, int64_t count) {
  for (int64_t i = 0; i < pixels; ++i) {
    const float *x = from + i * from_step;
    float *y = to + i * to_step;
#pragma omp simd
    for (int64_t c = 0; c < count; ++c) y[c] = x[c];
  }
}

static inline void scale(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t pixels, int64_t count,
                         const float *by, const float *shift, float least) {
  for (int64_t i = 0; i < pixels; ++i) {
    const float *x = from + i * from_step;
    float *y = to + i * to_step;
#pragma omp simd
    for (int64_t c = 0; c < count; ++c) {
      const float value = x[c] * by[c] + shift[c];
      y[c] = value < least ? least : value;
    }
  }
}

/* Writes pixels [first, first + pixels) of an image of the result: copies their channels from all pieces. */
static void join_tile(const clv__channels *channels, const clv_tensor *pieces, int64_t image, int64_t first, int64_t pixels,
                      float *result) {
  for (uint32_t r = 0; r < channels->run_count; ++r) {
    const clv__channels_run *run = &channels->runs[r];
    float *to = result + image * channels->result_image + run->to + first * run->to_step;
    if (run->piece == FILLING) {
      for (int64_t i = 0; i < pixels; ++i) memset(to + i * run->to_step, 0, (size_t)run->count * sizeof *to);
      continue;
    }
    const float *from =
        (const float *)pieces[run->piece].data + image * channels->piece_images[run->piece] + run->from + first * run->from_step;
    if (channels->scale == NULL) {
      if (run->count == 16)
        copy(from, run->from_step, to, run->to_step, pixels, 16);
      else
        copy(from, run->from_step, to, run->to_step, pixels, run->count);
      continue;
    }
    const float *by = channels->scale + run->channel, *shift = channels->shift + run->channel;
    if (run->count == 16)
      scale(from, run->from_step, to, run->to_step, pixels, 16, by, shift, channels->least);
    else
      scale(from, run->from_step, to, run->to_step, pixels, run->count, by, shift, channels->least);
  }
}

void clv__channels_join(const clv__channels *channels, const clv_tensor *pieces, float *result, const clv__stop *stop) {
  const int64_t tiles = (channels->pixels + channels->tile - 1) / channels->tile, count = channels->images * tiles;
  const int threads = clv__kernel_threads(count, (double)channels->images * (double)channels->result_image);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t t = 0; t < count; ++t) {
    if (clv__is_stopped(stop)) continue;
    const int64_t first = t % tiles * channels->tile;
    join_tile(channels, pieces, t / tiles, first, least_of(channels->tile, channels->pixels - first), result);
  }
  (void)threads;
}
