/* Resize and Upsample. Every axis gets a table: for each output position the input positions it reads and their weights. Linear
 * and cubic interpolation are separable, so the axes are applied one after another, in f64, to one slice at a time. */
#include "kernels/resize.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "kernels/kernels.h"
#include "kernels/multiversion.h"
#include "kernels/rows.h"
#include "kernels/threads.h"

typedef enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode;
typedef enum transform {
  HALF_PIXEL,
  HALF_PIXEL_SYMMETRIC,
  PYTORCH_HALF_PIXEL,
  ALIGN_CORNERS,
  ASYMMETRIC,
  HALF_PIXEL_FOR_NEAREST,
  CROP_AND_RESIZE
} transform;

typedef struct axis {
  int64_t input, output;
  double scale;
  double width;      /* of the output, a fraction where it comes from a scale */
  double start, end; /* of the region of interest */
  int64_t taps;
  bool identity;
  int64_t *index;  /* [output][taps], -1: outside the region, takes the extrapolation value */
  double *weights; /* [output][taps]; not for nearest */
} axis;

typedef struct resize {
  resize_mode mode;
  transform transform;
  const char *nearest;
  bool antialias, exclude_outside;
  double cubic, extrapolation;
  int32_t rank;
  axis axes[CLV_MAX_RANK];
  int64_t outer, slice_input, slice_largest; /* leading axes that stay; elements of a slice, and of its largest stage */
  int32_t first;                             /* the first axis of a slice */
} resize;

static bool has_input(const clv__kernel_call *call, uint32_t i) {
  return i < call->input_count && call->inputs[i].dtype != CLV_DTYPE_NONE;
}

/* Present and not of zero elements: an empty tensor stands for an absent one. */
static bool has_elements(const clv__kernel_call *call, uint32_t i) {
  return has_input(call, i) && clv__dims_product(&call->inputs[i], 0, call->inputs[i].rank) > 0;
}

static void modes_read(const clv__kernel_call *call, resize *r) {
  clv__attributes a = call->attributes;
  r->mode = clv__attribute_is(a, "mode", "cubic", false)                                                       ? RESIZE_CUBIC
            : clv__attribute_is(a, "mode", "linear", false) || clv__attribute_is(a, "mode", "bilinear", false) ? RESIZE_LINEAR
                                                                                                               : RESIZE_NEAREST;
  bool early = strcmp(call->op, "Upsample") == 0 || call->opset < 11;
  static const struct {
    const char *name;
    transform transform;
  } transforms[] = {{"half_pixel", HALF_PIXEL},
                    {"half_pixel_symmetric", HALF_PIXEL_SYMMETRIC},
                    {"pytorch_half_pixel", PYTORCH_HALF_PIXEL},
                    {"align_corners", ALIGN_CORNERS},
                    {"asymmetric", ASYMMETRIC},
                    {"tf_half_pixel_for_nn", HALF_PIXEL_FOR_NEAREST},
                    {"tf_crop_and_resize", CROP_AND_RESIZE}};
  r->transform = early ? ASYMMETRIC : HALF_PIXEL;
  for (size_t i = 0; i < sizeof transforms / sizeof *transforms; ++i) {
    if (clv__attribute_is(a, "coordinate_transformation_mode", transforms[i].name, false)) r->transform = transforms[i].transform;
  }
  r->nearest = early ? "floor" : "round_prefer_floor";
  static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  for (size_t i = 0; i < 4; ++i) {
    if (clv__attribute_is(a, "nearest_mode", nearest[i], false)) r->nearest = nearest[i];
  }
  r->antialias = clv__attribute_int(a, "antialias", 0) != 0;
  r->exclude_outside = clv__attribute_int(a, "exclude_outside", 0) != 0;
  r->cubic = (double)clv__attribute_float(a, "cubic_coeff_a", -0.75f);
  r->extrapolation = (double)clv__attribute_float(a, "extrapolation_value", 0.0f);
}

/* Taps of an axis: 2 or 4, more where a smaller output is filtered. */
static int64_t taps_of(const resize *r, double scale, int64_t input) {
  if (r->mode == RESIZE_NEAREST) return 1;
  double reach = r->mode == RESIZE_LINEAR ? 1 : 2;
  if (!r->antialias || scale >= 1) return (int64_t)(2 * reach);
  double wide = reach / scale, most = 4 * (double)input + 4; /* beyond it nothing new is read */
  return 2 - 2 * ((int64_t)floor(wide < most ? -wide : -most) + 1);
}

/* Sizes, scales and regions of all axes. Where the scales' data is not there (scratch for types alone), the ratio of the sizes.
 */
static clv_status resize_read(const clv__kernel_call *call, resize *r) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  memset(r, 0, sizeof *r);
  modes_read(call, r);
  r->rank = x->rank;
  clv__resize_axes axes;
  CLV__TRY(clv__resize_axes_read(call->attributes, x->rank, &axes, call->error));
  uint32_t scales, sizes;
  clv__resize_inputs(call->op, call->opset, &scales, &sizes);
  size_t float_count;
  const float *floats = clv__attribute_floats(call->attributes, "scales", &float_count);
  bool by_scales = scales != UINT32_MAX ? has_elements(call, scales) && call->inputs[scales].data != NULL : floats != NULL;
  for (int32_t i = 0; i < x->rank; ++i) {
    axis *a = &r->axes[i];
    *a = (axis){.input = x->dims[i], .output = y->dims[i], .end = 1, .width = (double)y->dims[i]};
    a->scale = a->input > 0 ? (double)a->output / (double)a->input : 1;
  }
  int64_t wanted[CLV_MAX_RANK] = {0};
  bool by_sizes = sizes != UINT32_MAX && has_elements(call, sizes) && call->inputs[sizes].data != NULL;
  double shared = 0;
  for (int32_t i = 0; by_sizes && i < axes.count; ++i) wanted[i] = clv__tensor_get_int(&call->inputs[sizes], (size_t)i);
  bool is_shared = by_sizes && clv__resize_shared_scale(call->attributes, &axes, wanted, x->dims, &shared);
  const clv_tensor *roi = call->opset >= 11 && has_elements(call, 1) && r->transform == CROP_AND_RESIZE ? &call->inputs[1] : NULL;
  if (roi != NULL && clv__dims_product(roi, 0, roi->rank) != 2 * axes.count) {
    return clv__error_set(call->error, CLV_INVALID_MODEL, "roi has %lld elements, %d expected",
                          (long long)clv__dims_product(roi, 0, roi->rank), 2 * (int)axes.count);
  }
  for (int32_t i = 0; i < axes.count; ++i) {
    axis *a = &r->axes[axes.axes[i]];
    if (by_scales) {
      a->scale = scales != UINT32_MAX      ? clv__tensor_get(&call->inputs[scales], (size_t)i)
                 : (size_t)i < float_count ? (double)floats[i]
                                           : 1;
    } else if (is_shared) {
      a->scale = shared;
    }
    if (!(a->scale > 0) && a->output > 0) {
      return clv__error_set(call->error, CLV_INVALID_MODEL, "scale %g of axis %d is not above 0", a->scale, (int)axes.axes[i]);
    }
    if (by_scales || is_shared) a->width = a->scale * (double)a->input;
    if (roi != NULL && roi->data != NULL) {
      a->start = clv__tensor_get(roi, (size_t)i);
      a->end = clv__tensor_get(roi, (size_t)(axes.count + i));
    }
  }
  return CLV_OK;
}

/* Which axes do anything, how many taps they have, and the slices. */
static void resize_measure(resize *r) {
  r->first = r->rank;
  for (int32_t i = r->rank - 1; i >= 0; --i) {
    axis *a = &r->axes[i];
    a->identity = a->input == a->output && fabs(a->scale - 1) < 1e-9 && a->start == 0 && a->end == 1;
    a->taps = taps_of(r, a->scale, a->input);
    if (!a->identity) r->first = i;
  }
  r->outer = r->slice_input = 1;
  for (int32_t i = 0; i < r->rank; ++i) *(i < r->first ? &r->outer : &r->slice_input) *= r->axes[i].input;
  int64_t size = r->slice_largest = r->slice_input;
  for (int32_t i = r->rank - 1; i >= r->first; --i) {
    size = size / r->axes[i].input * r->axes[i].output;
    if (size > r->slice_largest) r->slice_largest = size;
  }
}

static double coordinate(const resize *r, const axis *a, double x) {
  double last = (double)a->input - 1;
  switch (r->transform) {
    case ALIGN_CORNERS:
      return a->width == 1 ? 0 : x * last / (a->width - 1);
    case ASYMMETRIC:
      return x / a->scale;
    case HALF_PIXEL_FOR_NEAREST:
      return (x + 0.5) / a->scale;
    case PYTORCH_HALF_PIXEL:
      return a->output > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    case HALF_PIXEL_SYMMETRIC:
      return (double)a->input / 2 * (1 - (double)a->output / a->width) + (x + 0.5) / a->scale - 0.5;
    case CROP_AND_RESIZE:
      if (a->output <= 1) return 0.5 * (a->start + a->end) * last;
      return a->start * last + x * (a->end - a->start) * last / (a->width - 1);
    default:
      return (x + 0.5) / a->scale - 0.5;
  }
}

static int64_t clamp(double x, int64_t count) {
  return !(x > 0) ? 0 : x >= (double)(count - 1) ? count - 1 : (int64_t)x;
}

static double nearest(const resize *r, double x) {
  switch (r->nearest[0]) {
    case 'f':
      return floor(x);
    case 'c':
      return ceil(x);
    default:
      return strcmp(r->nearest, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
  }
}

static double filter(const resize *r, double x) {
  double a = r->cubic;
  x = fabs(x);
  if (r->mode == RESIZE_LINEAR) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Weights of one output position. The taps lie around `base`, the last input position left of x. */
static void weights_fill(const resize *r, const axis *a, double x, int64_t *index, double *weights) {
  double base = ceil(x) - 1, sum = 0, squeeze = r->antialias && a->scale < 1 ? a->scale : 1;
  for (int64_t t = 0; t < a->taps; ++t) {
    double position = base - (double)(a->taps / 2 - 1) + (double)t;
    bool outside = position < 0 || position > (double)(a->input - 1);
    weights[t] = r->exclude_outside && outside ? 0 : filter(r, (position - x) * squeeze);
    index[t] = clamp(position, a->input);
    sum += weights[t];
  }
  if ((!r->exclude_outside && squeeze == 1) || sum == 0) return;
  for (int64_t t = 0; t < a->taps; ++t) weights[t] /= sum;
}

static void axis_fill(const resize *r, axis *a) {
  for (int64_t o = 0; o < a->output; ++o) {
    double x = coordinate(r, a, (double)o);
    int64_t *index = a->index + o * a->taps;
    bool outside = r->transform == CROP_AND_RESIZE && (x < 0 || x > (double)(a->input - 1));
    if (r->mode == RESIZE_NEAREST) {
      index[0] = a->identity ? o : clamp(nearest(r, x), a->input);
    } else {
      weights_fill(r, a, x, index, a->weights + o * a->taps);
    }
    if (outside && !a->identity) index[0] = -1;
  }
}

/* Bytes of the tables and of a thread's slice; SIZE_MAX beyond any memory. */
static size_t tables_bytes(const resize *r) {
  size_t total = 0, part;
  for (int32_t i = 0; i < r->rank; ++i) {
    const axis *a = &r->axes[i];
    if (!clv__multiply((size_t)a->output, (size_t)a->taps, &part) || !clv__multiply(part, 16, &part) ||
        !clv__add(total, part, &total)) {
      return SIZE_MAX;
    }
  }
  return total > SIZE_MAX - 64 ? SIZE_MAX : clv__align_up(total, 64);
}

static size_t slice_bytes(const resize *r) {
  size_t bytes;
  if (r->mode == RESIZE_NEAREST) return 0;
  return clv__multiply((size_t)r->slice_largest, 2 * sizeof(double), &bytes) && bytes < SIZE_MAX - 64 ? clv__align_up(bytes, 64)
                                                                                                      : SIZE_MAX;
}

static size_t resize_scratch_bytes(const clv__kernel_call *call) {
  resize r;
  size_t total;
  if (clv__tensor_is_empty(&call->inputs[0]) || clv__tensor_is_empty(&call->outputs[0])) return 0;
  if (resize_read(call, &r) != CLV_OK) return 0;
  resize_measure(&r);
  size_t tables = tables_bytes(&r), slice = slice_bytes(&r);
  if (tables == SIZE_MAX || slice == SIZE_MAX) return SIZE_MAX;
  return clv__multiply(slice, (size_t)clv__kernel_thread_limit(r.outer), &total) && clv__add(total, tables, &total) ? total
                                                                                                                    : SIZE_MAX;
}

/* One axis of a slice seen as [before, input, after]. */
CLV__MULTIVERSION static void axis_apply(const resize *r, const axis *a, int64_t before, int64_t after, const double *in,
                                         double *out) {
  for (int64_t b = 0; b < before; ++b, in += a->input * after) {
    for (int64_t o = 0; o < a->output; ++o, out += after) {
      const int64_t *index = a->index + o * a->taps;
      const double *weights = a->weights + o * a->taps;
      for (int64_t i = 0; i < after; ++i) out[i] = index[0] < 0 ? r->extrapolation : 0;
      for (int64_t t = 0; index[0] >= 0 && t < a->taps; ++t) {
        const double *row = in + index[t] * after;
        double w = weights[t];
        if (w == 0) continue;
        for (int64_t i = 0; i < after; ++i) out[i] += w * row[i];
      }
    }
  }
}

static void slice_interpolate(const resize *r, const clv__kernel_call *call, int64_t slice, double *from, double *to) {
  clv__row_to_f64(call->inputs[0].dtype, call->inputs[0].data, slice * r->slice_input, r->slice_input, from);
  int64_t before = r->slice_input, after = 1;
  for (int32_t i = r->rank - 1; i >= r->first; --i) {
    const axis *a = &r->axes[i];
    before /= a->input;
    if (!a->identity) {
      axis_apply(r, a, before, after, from, to);
      double *swapped = from;
      from = to;
      to = swapped;
    }
    after *= a->output;
  }
  if ((CLV__DTYPE_BIT(call->outputs[0].dtype) & CLV__DTYPES_FLOAT) == 0) {
    for (int64_t i = 0; i < after; ++i) from[i] = rint(from[i]);
  }
  clv__row_from_f64(call->outputs[0].dtype, call->outputs[0].data, slice * after, after, from);
}

/* Copies whole elements: exact for every dtype. */
static void slice_copy(const resize *r, const clv__kernel_call *call, int64_t slice, const void *outside) {
  size_t size = clv_dtype_size_bytes(call->inputs[0].dtype);
  const char *in = (const char *)call->inputs[0].data + (size_t)(slice * r->slice_input) * size;
  int64_t index[CLV_MAX_RANK] = {0}, count = 1;
  for (int32_t i = r->first; i < r->rank; ++i) count *= r->axes[i].output;
  char *out = (char *)call->outputs[0].data + (size_t)(slice * count) * size;
  const axis *last = &r->axes[r->rank - 1];
  for (int64_t done = 0; done < count; done += last->output) {
    int64_t at = 0;
    bool missing = false;
    for (int32_t i = r->first; i < r->rank - 1; ++i) {
      int64_t position = r->axes[i].index[index[i]];
      missing = missing || position < 0;
      at = at * r->axes[i].input + position;
    }
    at *= last->input;
    for (int64_t o = 0; o < last->output; ++o, out += size) {
      const char *source = missing || last->index[o] < 0 ? outside : in + (size_t)(at + last->index[o]) * size;
      switch (size) {
        case 1:
          *out = *source;
          break;
        case 2:
          memcpy(out, source, 2);
          break;
        case 4:
          memcpy(out, source, 4);
          break;
        default:
          memcpy(out, source, 8);
          break;
      }
    }
    for (int32_t i = r->rank - 2; i >= r->first; --i) {
      if (++index[i] < r->axes[i].output) break;
      index[i] = 0;
    }
  }
}

static clv_status resize_run(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  resize r;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(resize_read(call, &r));
  for (int32_t i = 0; i < r.rank; ++i) {
    if (r.axes[i].input == 0) {
      return clv__error_set(call->error, CLV_INVALID_MODEL, "axis %d cannot be resized from 0 to %lld", (int)i,
                            (long long)r.axes[i].output);
    }
  }
  resize_measure(&r);
  if (r.first == r.rank) {
    memcpy(call->outputs[0].data, x->data, (size_t)clv__dims_product(x, 0, x->rank) * clv_dtype_size_bytes(x->dtype));
    return CLV_OK;
  }
  char *scratch = call->scratch;
  for (int32_t i = 0; i < r.rank; ++i) {
    axis *a = &r.axes[i];
    a->index = (int64_t *)scratch;
    a->weights = (double *)(a->index + a->output * a->taps);
    scratch = (char *)(a->weights + a->output * a->taps);
    axis_fill(&r, a);
  }
  scratch = (char *)call->scratch + tables_bytes(&r);
  uint64_t outside = 0;
  clv__row_from_f64(x->dtype, &outside, 0, 1, &r.extrapolation);
  size_t slice = slice_bytes(&r);
  int threads = clv__kernel_threads(r.outer, (double)r.outer * (double)r.slice_largest * 4);
  (void)threads; /* read by OpenMP alone */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t s = 0; s < r.outer; ++s) {
    double *from = (double *)(scratch + (size_t)clv__kernel_thread_index() * slice);
    if (r.mode == RESIZE_NEAREST) {
      slice_copy(&r, call, s, &outside);
    } else {
      slice_interpolate(&r, call, s, from, from + r.slice_largest);
    }
  }
  return CLV_OK;
}

static bool resize_accepts(const clv__kernel_call *call, char reason[160]) {
  clv__attributes a = call->attributes;
  bool interpolates = !clv__attribute_is(a, "mode", "nearest", true);
  if (interpolates && call->inputs[0].dtype == CLV_BOOL) {
    snprintf(reason, 160, "bool can only be resized with mode nearest");
    return false;
  }
  if (!interpolates && clv__attribute_int(a, "antialias", 0) != 0) {
    snprintf(reason, 160, "antialias has no meaning for mode nearest");
    return false;
  }
  return true;
}

const clv__kernel clv__kernels_resize[] = {
    {"", "Resize", CLV__DTYPES_ANY, resize_run, resize_scratch_bytes, resize_accepts},
    {"", "Upsample", CLV__DTYPES_ANY, resize_run, resize_scratch_bytes, resize_accepts},
    {0},
};
