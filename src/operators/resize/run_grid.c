/* GridSample and AffineGrid. For each position of a grid, the input positions that it reads and their weights are computed per
 * axis. The products over the axes are used for all channels. */
#include "operators/resize/run.h"

#include "operators/resize/run_grid.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum {
  MAX_SPATIAL = CLV_MAX_RANK - 2,
  MAX_CORNERS = 4096, /* corners of one position: 4^MAX_SPATIAL */
  BLOCK = 64          /* number of positions whose corners are computed at a time, once for all channels */
};

typedef struct corner {
  int64_t offset; /* element within a channel; -1: outside, where the value is zero */
  double weight;
} corner;

typedef struct sampler {
  const clv_tensor *x, *grid, *y;
  clv__grid_mode mode;
  clv__grid_padding padding;
  bool align, wide; /* wide: coordinates are f64 */
  int32_t spatial;
  int64_t channels, plane, positions; /* plane: number of elements of an input channel; positions: of an output channel */
  int32_t taps, corners;              /* number of input positions per axis; number of input elements per output position */
} sampler;

clv_status clv__grid_read(clv__attributes attributes, clv__grid_mode *mode, clv__grid_padding *padding, clv_error *error) {
  static const char *const modes[] = {"nearest", "linear", "cubic"}, *const old[] = {"nearest", "bilinear", "bicubic"};
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  bool found = false, padded = false;
  for (int i = 0; i < 3; ++i) {
    bool is = clv__attribute_is(attributes, "mode", modes[i], i == CLV__GRID_LINEAR) ||
              clv__attribute_is(attributes, "mode", old[i], false);
    if (is) *mode = (clv__grid_mode)i;
    found = found || is;
    is = clv__attribute_is(attributes, "padding_mode", paddings[i], i == CLV__GRID_ZEROS);
    if (is) *padding = (clv__grid_padding)i;
    padded = padded || is;
  }
  if (!found) return clv__error_set(error, CLV_INVALID_MODEL, "mode is not one of linear, nearest, cubic");
  if (!padded) return clv__error_set(error, CLV_INVALID_MODEL, "padding_mode is not one of zeros, border, reflection");
  return CLV_OK;
}

/* ---- Coordinates ---------------------------------------------------------------------------------------------------------- */

/* Coordinates of dtypes other than f64 are computed in f32 with the operations in this order, because their last bit may
 * determine to which position they round, and whether that is inside the input. */
static double denormalize(const sampler *s, double n, int64_t size) {
  if (s->wide) return s->align ? (n + 1) / 2 * (double)(size - 1) : ((n + 1) * (double)size - 1) / 2;
  float narrow = (float)n;
  return s->align ? (narrow + 1) / 2 * (float)(size - 1) : ((narrow + 1) * (float)size - 1) / 2;
}

static double reflect(double x, double low, double high) {
  double range = high - low;
  if (x >= low && x <= high) return x;
  if (!(range > 0) || !isfinite(x)) return low;
  double beyond = x < low ? low - x : x - high, turns = trunc(beyond / range), rest = beyond - turns * range;
  bool from_low = (x < low) == (fmod(turns, 2) == 0);
  return from_low ? low + rest : high - rest;
}

/* The index of the element at position `at` of an axis, with the padding mode applied; -1 if the value is zero padding. */
static int64_t element_at(const sampler *s, double at, int64_t size) {
  if (size == 0) return -1;
  if (s->padding == CLV__GRID_ZEROS) return at >= 0 && at <= (double)(size - 1) ? (int64_t)at : -1;
  if (s->padding == CLV__GRID_REFLECTION) {
    at = s->align ? reflect(at, 0, (double)(size - 1)) : reflect(at, -0.5, (double)size - 0.5);
  }
  return at > 0 ? (at < (double)(size - 1) ? (int64_t)at : size - 1) : 0; /* a NaN gives 0 */
}

/* The weights of Keys' cubic kernel with a = -0.75, at distances 1 + t, t, 1 - t and 2 - t. */
static void cubic_weights(double t, double *weights) {
  const double a = -0.75;
  const double distance[4] = {1 + t, t, 1 - t, 2 - t};
  for (int i = 0; i < 4; ++i) {
    double d = distance[i];
    weights[i] = i == 1 || i == 2 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
}

/* Fills in the positions and weights that a coordinate reads along an axis. */
static void axis_taps(const sampler *s, double coordinate, int64_t size, int64_t *positions, double *weights) {
  double x = denormalize(s, coordinate, size), low = s->align ? 0 : -0.5,
         high = s->align ? (double)(size - 1) : (double)size - 0.5;
  if (s->mode == CLV__GRID_NEAREST) x = rint(x);
  /* Cubic taps are clamped to the border one by one, as in PyTorch, so that elements inside still influence a point just outside.
   */
  if (s->padding == CLV__GRID_BORDER && s->mode != CLV__GRID_CUBIC && (x < low || x > high)) {
    x = x < 0 ? 0 : (double)(size - 1);
  }
  if (s->padding == CLV__GRID_REFLECTION) x = reflect(x, low, high);
  if (!s->wide) x = (float)x;
  if (s->mode == CLV__GRID_NEAREST) {
    positions[0] = element_at(s, x, size);
    weights[0] = 1;
    return;
  }
  double first = floor(x);
  if (!isfinite(x)) x = first = s->padding == CLV__GRID_ZEROS ? -8 : 0; /* put all taps outside the input, or at its edge */
  if (s->mode == CLV__GRID_LINEAR) {
    weights[1] = x - first;
    weights[0] = 1 - weights[1];
  } else {
    cubic_weights(x - first, weights);
    first -= 1;
  }
  for (int32_t k = 0; k < s->taps; ++k) positions[k] = element_at(s, first + k, size);
}

/* Fills in all corners of one position: the products of its taps along every axis. The grid's coordinates are ordered from the
 * innermost axis to the outermost. */
static void corners_fill(const sampler *s, int64_t position, corner *corners) {
  double coordinates[MAX_SPATIAL];
  int64_t count = 1;
  clv__row_to_f64(s->grid->dtype, s->grid->data, position * s->spatial, s->spatial, coordinates);
  corners[0] = (corner){0, 1};
  for (int32_t axis = 0; axis < s->spatial; ++axis) {
    int64_t size = s->x->dims[axis + 2], positions[4];
    double weights[4];
    axis_taps(s, coordinates[s->spatial - 1 - axis], size, positions, weights);
    /* Starts at the last tap, because the corners of the previous axes are read for every tap and overwritten for tap 0. */
    for (int32_t k = s->taps - 1; k >= 0; --k) {
      for (int64_t i = 0; i < count; ++i) {
        bool outside = corners[i].offset < 0 || positions[k] < 0;
        corners[k * count + i] = (corner){outside ? -1 : corners[i].offset * size + positions[k], corners[i].weight * weights[k]};
      }
    }
    count *= s->taps;
  }
}

/* ---- Values --------------------------------------------------------------------------------------------------------------- */

static void copy_nearest(const sampler *s, int64_t channel, int64_t to, int64_t count, const corner *corners) {
  size_t size = clv_dtype_size_bytes(s->x->dtype);
  const char *in = (const char *)s->x->data + (size_t)(channel * s->plane) * size;
  char *out = (char *)s->y->data + (size_t)to * size;
  for (int64_t i = 0; i < count; ++i, out += size) {
    if (corners[i].offset < 0) {
      memset(out, 0, size);
    } else {
      memcpy(out, in + (size_t)corners[i].offset * size, size);
    }
  }
}

static void interpolate(const sampler *s, int64_t channel, int64_t to, int64_t count, const corner *corners) {
  double sums[BLOCK];
  const int64_t base = channel * s->plane;
  for (int64_t i = 0; i < count; ++i) {
    const corner *c = corners + i * s->corners;
    double sum = 0;
    for (int32_t k = 0; k < s->corners; ++k) {
      if (c[k].offset < 0) continue;
      size_t at = (size_t)(base + c[k].offset);
      sum += c[k].weight * (s->x->dtype == CLV_F32 ? (double)((const float *)s->x->data)[at] : clv__tensor_get(s->x, at));
    }
    sums[i] = sum;
  }
  clv__row_from_f64(s->y->dtype, s->y->data, to, count, sums);
}

static int64_t block_positions(const sampler *s) {
  return MAX_CORNERS / s->corners < BLOCK ? MAX_CORNERS / s->corners : BLOCK;
}

static void sampler_make(const clv__kernel_call *call, sampler *s) {
  const clv_tensor *x = &call->inputs[0];
  *s = (sampler){.x = x,
                 .grid = &call->inputs[1],
                 .y = &call->outputs[0],
                 .align = clv__attribute_int(call->attributes, "align_corners", 0) != 0,
                 .wide = call->inputs[1].dtype == CLV_F64,
                 .spatial = x->rank - 2,
                 .channels = x->dims[1],
                 .plane = clv__dims_count(x, 2, x->rank)};
  s->positions = clv__dims_count(s->y, 2, s->y->rank);
}

clv_status clv__kernel_grid_sample(const clv__kernel_call *call) {
  sampler s;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  sampler_make(call, &s);
  CLV__TRY(clv__grid_read(call->attributes, &s.mode, &s.padding, call->error));
  s.taps = s.mode == CLV__GRID_NEAREST ? 1 : s.mode == CLV__GRID_LINEAR ? 2 : 4;
  s.corners = 1;
  for (int32_t i = 0; i < s.spatial; ++i) s.corners *= s.taps;
  const int64_t block = block_positions(&s), blocks = (s.positions + block - 1) / block, tasks = s.x->dims[0] * blocks;
  const int threads =
      clv__kernel_threads(tasks, (double)s.x->dims[0] * (double)s.positions * s.corners * (double)(s.channels + 8));
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    corner corners[MAX_CORNERS];
    int64_t n = task / blocks, first = task % blocks * block;
    int64_t count = s.positions - first < block ? s.positions - first : block;
    for (int64_t i = 0; i < count; ++i) corners_fill(&s, n * s.positions + first + i, corners + i * s.corners);
    for (int64_t c = n * s.channels; c < (n + 1) * s.channels; ++c) {
      if (s.mode == CLV__GRID_NEAREST)
        copy_nearest(&s, c, c * s.positions + first, count, corners);
      else
        interpolate(&s, c, c * s.positions + first, count, corners);
    }
  }
  return CLV_OK;
}

bool clv__kernel_grid_sample_accepts(const clv__kernel_call *call, char reason[160]) {
  clv_dtype grid = call->inputs[1].dtype;
  if ((CLV__DTYPE_BIT(grid) & CLV__DTYPES_FLOAT) == 0) {
    snprintf(reason, 160, "a grid of dtype %s is not supported", clv_dtype_name(grid));
    return false;
  }
  if (call->inputs[0].dtype == CLV_BOOL && !clv__attribute_is(call->attributes, "mode", "nearest", false)) {
    snprintf(reason, 160, "bool can only be sampled with mode nearest");
    return false;
  }
  return true;
}

/* ---- AffineGrid ------------------------------------------------------------------------------------------------------------ */

/* The coordinate, in [-1, 1], of element `index` of `size`. If there is only one element, it is in the middle. */
static double coordinate_of(int64_t index, int64_t size, bool align) {
  if (align) return size > 1 ? 2.0 * (double)index / (double)(size - 1) - 1 : 0;
  return (2.0 * (double)index + 1) / (double)size - 1;
}

clv_status clv__kernel_affine_grid(const clv__kernel_call *call) {
  const clv_tensor *theta = &call->inputs[0], *y = &call->outputs[0];
  const int32_t spatial = y->rank - 2;
  const bool align = clv__attribute_int(call->attributes, "align_corners", 0) != 0;
  if (clv__tensor_is_empty(y)) return CLV_OK;
  const int64_t width = y->dims[spatial], rows = clv__dims_count(y, 0, spatial);
  const int threads = clv__kernel_threads(rows, 4.0 * (double)rows * (double)width * spatial * spatial);
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    double matrix[MAX_SPATIAL * (MAX_SPATIAL + 1)], at[MAX_SPATIAL]; /* `at`: innermost axis first, as in theta */
    int64_t rest = row;
    for (int32_t axis = spatial - 1; axis > 0; --axis) {
      at[spatial - axis] = coordinate_of(rest % y->dims[axis], y->dims[axis], align);
      rest /= y->dims[axis];
    }
    const int32_t columns = spatial + 1;
    clv__row_to_f64(theta->dtype, theta->data, rest * spatial * columns, spatial * columns, matrix);
    for (int64_t w = 0; w < width; ++w) {
      double point[MAX_SPATIAL];
      at[0] = coordinate_of(w, width, align);
      for (int32_t i = 0; i < spatial; ++i) {
        point[i] = matrix[i * columns + spatial];
        for (int32_t k = 0; k < spatial; ++k) point[i] += matrix[i * columns + k] * at[k];
      }
      clv__row_from_f64(y->dtype, y->data, (row * width + w) * spatial, spatial, point);
    }
  }
  return CLV_OK;
}
