/* RoiAlign: divides each region of a feature map into bins and pools samples of each bin. */
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/region/run_suppress.h"
#include "operators/run.h"

typedef struct regions {
  const clv_tensor *x, *rois, *y;
  bool average, half_pixel, wide; /* wide: coordinates are f64 */
  int64_t height, width, rows, columns, ratio;
  double scale;
} regions;

/* One axis of a region: the start and size of its bins, and the samples in each. */
typedef struct span {
  double start, bin;
  double samples; /* samples per bin; for a region that is large enough this exceeds 64-bit integers */
} span;

/* The two elements of an axis that a sample lies between. */
typedef struct sample {
  int64_t low, high;
  double low_weight, high_weight;
} sample;

/* Coordinates of dtypes other than f64 are computed in f32, rounded after every operation, because their last bits determine how
 * many samples a bin has and which of them are inside the map. */
static double rounded(const regions *r, double value) {
  return r->wide ? value : (double)(float)value;
}

static span span_make(const regions *r, double from, double to, int64_t bins) {
  const double shift = r->half_pixel ? 0.5 : 0;
  span s = {.start = rounded(r, rounded(r, from * r->scale) - shift)};
  double extent = rounded(r, rounded(r, rounded(r, to * r->scale) - shift) - s.start);
  /* In mode output_half_pixel, and before opset 16, a region has at least the size of one element. */
  if (!r->half_pixel && extent < 1) extent = 1;
  s.bin = rounded(r, extent / (double)bins);
  s.samples = r->ratio > 0 ? (double)r->ratio : fmax(ceil(s.bin), 0);
  if (!isfinite(s.start) || !isfinite(s.bin)) s = (span){0, 0, 0};
  return s;
}

/* Finds sample `index` of bin `bin` along one axis. False if it is outside the map, which has `size` elements. */
static bool sample_make(const regions *r, const span *s, int64_t bin, double index, int64_t size, sample *out) {
  double within = rounded(r, rounded(r, (index + 0.5) * s->bin) / s->samples);
  double at = rounded(r, rounded(r, s->start + rounded(r, (double)bin * s->bin)) + within);
  if (!(at >= -1 && at <= (double)size)) return false;
  if (at < 0) at = 0;
  int64_t low = (int64_t)at;
  if (low >= size - 1) {
    *out = (sample){size - 1, size - 1, 1, 0};
    return true;
  }
  out->low = low;
  out->high = low + 1;
  out->high_weight = rounded(r, at - (double)low);
  out->low_weight = rounded(r, 1 - out->high_weight);
  return true;
}

/* Returns the number of a bin's samples that may be inside the map, starting at *first. The size of the map limits this number,
 * however large the region is. */
static int64_t samples_inside(const span *s, int64_t bin, int64_t size, double *first) {
  const double step = s->bin / s->samples, base = s->start + (double)bin * s->bin;
  *first = 0;
  if (!(step > 0)) return (int64_t)s->samples; /* all samples are at the same point: as many as the attribute requests, or none */
  const double slack = fmin(1e-6 * fabs(base), 64) + 2 * step; /* the distance by which rounding may move a sample */
  *first = fmin(fmax(floor((-1 - slack - base) / step - 0.5), 0), s->samples);
  return (int64_t)fmin(s->samples - *first, ((double)size + 1 + 2 * slack) / step + 2);
}

static double element(const clv_tensor *x, int64_t at) {
  return x->dtype == CLV_F32 ? (double)((const float *)x->data)[at] : clv__tensor_get(x, (size_t)at);
}

/* Adds one sample to `sums`, for all channels. */
static void sample_add(const regions *r, int64_t map, const sample *v, const sample *h, bool first, double *sums) {
  const int64_t plane = r->height * r->width;
  const int64_t at[4] = {v->low * r->width + h->low, v->low * r->width + h->high, v->high * r->width + h->low,
                         v->high * r->width + h->high};
  const double weights[4] = {v->low_weight * h->low_weight, v->low_weight * h->high_weight, v->high_weight * h->low_weight,
                             v->high_weight * h->high_weight};
  for (int64_t c = 0; c < r->x->dims[1]; ++c) {
    const int64_t base = (map * r->x->dims[1] + c) * plane;
    double values[4], best;
    for (int i = 0; i < 4; ++i) values[i] = weights[i] * element(r->x, base + at[i]);
    if (r->average) {
      sums[c] += values[0] + values[1] + values[2] + values[3];
      continue;
    }
    best = fmax(fmax(values[0], values[1]), fmax(values[2], values[3])); /* the maximum of the weighted elements, not of their
                                                                          * sum */
    sums[c] = first ? best : fmax(sums[c], best);
  }
}

static void bin_run(const regions *r, int64_t map, const span *vertical, const span *horizontal, int64_t row, int64_t column,
                    double *sums) {
  double top, left, inside = 0;
  const double all = vertical->samples * horizontal->samples;
  const int64_t high = samples_inside(vertical, row, r->height, &top), wide = samples_inside(horizontal, column, r->width, &left);
  for (int64_t c = 0; c < r->x->dims[1]; ++c) sums[c] = 0;
  for (int64_t y = 0; y < high; ++y) {
    sample v, h;
    if (!sample_make(r, vertical, row, top + (double)y, r->height, &v)) continue;
    for (int64_t x = 0; x < wide; ++x) {
      if (sample_make(r, horizontal, column, left + (double)x, r->width, &h)) sample_add(r, map, &v, &h, inside++ == 0, sums);
    }
  }
  for (int64_t c = 0; c < r->x->dims[1]; ++c) {
    if (r->average && all > 0) sums[c] /= all;
    /* Samples outside the map are zeros, so a maximum that includes some is at least 0. */
    if (!r->average && inside < all && inside > 0) sums[c] = fmax(sums[c], 0);
  }
}

static void region_run(const regions *r, int64_t region, int64_t map, double *sums) {
  const clv_tensor *rois = r->rois;
  double corners[4];
  clv__row_to_f64(rois->dtype, rois->data, region * 4, 4, corners);
  const span horizontal = span_make(r, corners[0], corners[2], r->columns),
             vertical = span_make(r, corners[1], corners[3], r->rows);
  for (int64_t row = 0; row < r->rows; ++row) {
    for (int64_t column = 0; column < r->columns; ++column) {
      bin_run(r, map, &vertical, &horizontal, row, column, sums);
      for (int64_t c = 0; c < r->x->dims[1]; ++c) {
        int64_t at = ((region * r->x->dims[1] + c) * r->rows + row) * r->columns + column;
        clv__row_from_f64(r->y->dtype, r->y->data, at, 1, sums + c);
      }
    }
  }
}

static clv_status check_regions(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *rois = &call->inputs[1], *maps = &call->inputs[2];
  for (int64_t i = 0; i < rois->dims[0]; ++i) {
    int64_t map = clv__tensor_get_int(maps, (size_t)i);
    if (map < 0 || map >= x->dims[0]) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                            "batch index %lld of region %lld is out of range for a batch of %lld", (long long)map, (long long)i,
                            (long long)x->dims[0]);
    }
    for (int64_t k = 0; k < 4; ++k) {
      if (isfinite(clv__tensor_get(rois, (size_t)(4 * i + k)))) continue;
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "region %lld has a corner that is not finite", (long long)i);
    }
  }
  if (x->dims[2] > 0 && x->dims[3] > 0) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "the feature map has no elements");
}

static size_t scratch_roi_align(const clv__kernel_call *call) {
  size_t size_bytes;
  if (!clv__tensor_is_static(&call->inputs[0]) || !clv__tensor_is_static(&call->inputs[1])) return 0;
  const size_t threads = (size_t)clv__kernel_thread_limit(call->inputs[1].dims[0]);
  return clv__multiply((size_t)call->inputs[0].dims[1], sizeof(double) * threads, &size_bytes) ? size_bytes : SIZE_MAX;
}

static clv_status run_roi_align(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0], *maps = &call->inputs[2];
  if (clv__tensor_is_empty(y)) return CLV_OK;
  CLV__TRY(check_regions(call));
  const regions r = {.x = x,
                     .rois = &call->inputs[1],
                     .y = y,
                     .average = clv__attribute_is(call->attributes, "mode", "avg", true),
                     .half_pixel = call->opset >= 16 &&
                                   clv__attribute_is(call->attributes, "coordinate_transformation_mode", "half_pixel", true),
                     .wide = x->dtype == CLV_F64,
                     .height = x->dims[2],
                     .width = x->dims[3],
                     .rows = y->dims[2],
                     .columns = y->dims[3],
                     .ratio = clv__attribute_int(call->attributes, "sampling_ratio", 0),
                     .scale = clv__attribute_float(call->attributes, "spatial_scale", 1)};
  const int64_t count = y->dims[0];
  const int threads = clv__kernel_threads(count, 40.0 * (double)count * (double)(x->dims[1] * r.rows * r.columns));
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    if (clv__is_stopped(call->stop)) continue;
    double *sums = (double *)call->scratch + clv__kernel_thread_index() * x->dims[1];
    region_run(&r, i, clv__tensor_get_int(maps, (size_t)i), sums);
  }
  return CLV_OK;
}

static bool accepts_roi_align(const clv__kernel_call *call, char reason[160]) {
  clv_dtype rois = call->inputs[1].dtype, maps = call->inputs[2].dtype;
  if (rois == call->inputs[0].dtype && maps == CLV_I64) return true;
  snprintf(reason, 160, "regions of dtype %s with batch indices of dtype %s are not supported", clv_dtype_name(rois),
           clv_dtype_name(maps));
  return false;
}

const clv__kernel clv__kernels_region[] = {
    {"", "NonMaxSuppression", CLV__DTYPE_BIT(CLV_F32), clv__kernel_suppression, clv__kernel_suppression_scratch_bytes,
     clv__kernel_suppression_accepts},
    {"", "RoiAlign", CLV__DTYPES_FLOAT, run_roi_align, scratch_roi_align, accepts_roi_align},
    {.op = NULL},
};
