/* The input positions that an output position of Resize reads, and their weights; see resize.h. All arithmetic is in double. */
#include "operators/common/resize.h"

#include <math.h>

/* Whether an input is present and has elements. An input without elements is treated like an absent one. */
static bool has_elements(const clv__resize_node *node, uint32_t i) {
  return i < node->input_count && node->inputs[i].dtype != CLV_DTYPE_NONE &&
         clv__dims_product(&node->inputs[i], 0, node->inputs[i].rank) > 0;
}

static void modes_read(const clv__resize_node *node, clv__resize *r) {
  clv__attributes a = node->attributes;
  r->mode = clv__attribute_is(a, "mode", "cubic", false) ? CLV__RESIZE_CUBIC
            : clv__attribute_is(a, "mode", "linear", false) || clv__attribute_is(a, "mode", "bilinear", false)
                ? CLV__RESIZE_LINEAR
                : CLV__RESIZE_NEAREST;
  bool early = strcmp(node->op, "Upsample") == 0 || node->opset < 11;
  static const struct {
    const char *name;
    clv__resize_transform transform;
  } transforms[] = {{"half_pixel", CLV__RESIZE_HALF_PIXEL},
                    {"half_pixel_symmetric", CLV__RESIZE_HALF_PIXEL_SYMMETRIC},
                    {"pytorch_half_pixel", CLV__RESIZE_PYTORCH_HALF_PIXEL},
                    {"align_corners", CLV__RESIZE_ALIGN_CORNERS},
                    {"asymmetric", CLV__RESIZE_ASYMMETRIC},
                    {"tf_half_pixel_for_nn", CLV__RESIZE_HALF_PIXEL_FOR_NEAREST},
                    {"tf_crop_and_resize", CLV__RESIZE_CROP_AND_RESIZE}};
  r->transform = early ? CLV__RESIZE_ASYMMETRIC : CLV__RESIZE_HALF_PIXEL;
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

/* The number of taps of an axis: 1, 2 or 4 by mode, or more if antialias filters a smaller output. */
static int64_t taps_of(const clv__resize *r, double scale, int64_t input) {
  if (r->mode == CLV__RESIZE_NEAREST) return 1;
  double reach = r->mode == CLV__RESIZE_LINEAR ? 1 : 2;
  if (!r->antialias || scale >= 1) return (int64_t)(2 * reach);
  double wide = reach / scale, most = 4 * (double)input + 4; /* more taps would only read positions outside the input */
  return 2 - 2 * ((int64_t)floor(wide < most ? -wide : -most) + 1);
}

/* Reads sizes, scales and regions of all axes. */
static clv_status axes_read(const clv__resize_node *node, clv__resize *r, clv_error *error) {
  const clv_tensor *x = &node->inputs[0], *y = node->output;
  clv__resize_axes axes;
  CLV__TRY(clv__resize_axes_read(node->attributes, x->rank, &axes, error));
  uint32_t scales, sizes;
  clv__resize_inputs(node->op, node->opset, &scales, &sizes);
  size_t float_count;
  const float *floats = clv__attribute_floats(node->attributes, "scales", &float_count);
  bool by_scales = scales != UINT32_MAX ? has_elements(node, scales) && node->inputs[scales].data != NULL : floats != NULL;
  for (int32_t i = 0; i < x->rank; ++i) {
    clv__resize_axis *a = &r->axes[i];
    *a = (clv__resize_axis){.input = x->dims[i], .output = y->dims[i], .end = 1, .width = (double)y->dims[i]};
    a->scale = a->input > 0 ? (double)a->output / (double)a->input : 1;
  }
  int64_t wanted[CLV_MAX_RANK] = {0};
  bool by_sizes = sizes != UINT32_MAX && has_elements(node, sizes) && node->inputs[sizes].data != NULL;
  double shared = 0;
  for (int32_t i = 0; by_sizes && i < axes.count; ++i) wanted[i] = clv__tensor_get_int(&node->inputs[sizes], (size_t)i);
  bool is_shared = by_sizes && clv__resize_shared_scale(node->attributes, &axes, wanted, x->dims, &shared);
  const clv_tensor *roi =
      node->opset >= 11 && has_elements(node, 1) && r->transform == CLV__RESIZE_CROP_AND_RESIZE ? &node->inputs[1] : NULL;
  if (roi != NULL && clv__dims_product(roi, 0, roi->rank) != 2 * axes.count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "roi has %lld element%s; expected %d",
                          (long long)clv__dims_product(roi, 0, roi->rank), CLV__S(clv__dims_product(roi, 0, roi->rank)),
                          2 * (int)axes.count);
  }
  for (int32_t i = 0; i < axes.count; ++i) {
    clv__resize_axis *a = &r->axes[axes.axes[i]];
    if (by_scales) {
      a->scale = scales != UINT32_MAX      ? clv__tensor_get(&node->inputs[scales], (size_t)i)
                 : (size_t)i < float_count ? (double)floats[i]
                                           : 1;
    } else if (is_shared) {
      a->scale = shared;
    }
    if (!(a->scale > 0) && a->output > 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "scale %g of axis %d is not above 0", a->scale, (int)axes.axes[i]);
    }
    if (by_scales || is_shared) a->width = a->scale * (double)a->input;
    if (roi != NULL && roi->data != NULL) {
      a->start = clv__tensor_get(roi, (size_t)i);
      a->end = clv__tensor_get(roi, (size_t)(axes.count + i));
    }
  }
  return CLV_OK;
}

clv_status clv__resize_read(const clv__resize_node *node, clv__resize *r, clv_error *error) {
  *r = (clv__resize){.rank = node->inputs[0].rank};
  modes_read(node, r);
  CLV__TRY(axes_read(node, r, error));
  for (int32_t i = 0; i < r->rank; ++i) {
    clv__resize_axis *a = &r->axes[i];
    if (a->input == 0 && a->output > 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "axis %d has no elements, so it cannot be resized to %lld", (int)i,
                            (long long)a->output);
    }
    a->identity = a->input == a->output && fabs(a->scale - 1) < 1e-9 && a->start == 0 && a->end == 1;
    a->taps = taps_of(r, a->scale, a->input);
  }
  return CLV_OK;
}

static double coordinate(const clv__resize *r, const clv__resize_axis *a, double x) {
  double last = (double)a->input - 1;
  switch (r->transform) {
    case CLV__RESIZE_ALIGN_CORNERS:
      return a->width == 1 ? 0 : x * last / (a->width - 1);
    case CLV__RESIZE_ASYMMETRIC:
      return x / a->scale;
    case CLV__RESIZE_HALF_PIXEL_FOR_NEAREST:
      return (x + 0.5) / a->scale;
    case CLV__RESIZE_PYTORCH_HALF_PIXEL:
      return a->output > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    case CLV__RESIZE_HALF_PIXEL_SYMMETRIC:
      return (double)a->input / 2 * (1 - (double)a->output / a->width) + (x + 0.5) / a->scale - 0.5;
    case CLV__RESIZE_CROP_AND_RESIZE:
      if (a->output <= 1) return 0.5 * (a->start + a->end) * last;
      return a->start * last + x * (a->end - a->start) * last / (a->width - 1);
    default:
      return (x + 0.5) / a->scale - 0.5;
  }
}

static int64_t clamp(double x, int64_t count) {
  return !(x > 0) ? 0 : x >= (double)(count - 1) ? count - 1 : (int64_t)x;
}

static double nearest(const clv__resize *r, double x) {
  switch (r->nearest[0]) {
    case 'f':
      return floor(x);
    case 'c':
      return ceil(x);
    default:
      return strcmp(r->nearest, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
  }
}

static double filter(const clv__resize *r, double x) {
  double a = r->cubic;
  x = fabs(x);
  if (r->mode == CLV__RESIZE_LINEAR) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Fills in the positions and weights of the taps around coordinate x. `base` is the last input position to the left of x. */
static void weights_fill(const clv__resize *r, const clv__resize_axis *a, double x, int64_t *positions, double *weights) {
  double base = ceil(x) - 1, sum = 0, squeeze = r->antialias && a->scale < 1 ? a->scale : 1;
  for (int64_t t = 0; t < a->taps; ++t) {
    double position = base - (double)(a->taps / 2 - 1) + (double)t;
    bool outside = position < 0 || position > (double)(a->input - 1);
    weights[t] = r->exclude_outside && outside ? 0 : filter(r, (position - x) * squeeze);
    positions[t] = clamp(position, a->input);
    sum += weights[t];
  }
  if ((!r->exclude_outside && squeeze == 1) || sum == 0) return;
  for (int64_t t = 0; t < a->taps; ++t) weights[t] /= sum;
}

void clv__resize_taps(const clv__resize *r, const clv__resize_axis *a, int64_t output, int64_t *positions, double *weights) {
  double x = coordinate(r, a, (double)output);
  if (r->mode == CLV__RESIZE_NEAREST)
    positions[0] = a->identity ? output : clamp(nearest(r, x), a->input);
  else
    weights_fill(r, a, x, positions, weights);
  bool is_outside = r->transform == CLV__RESIZE_CROP_AND_RESIZE && (x < 0 || x > (double)(a->input - 1));
  if (is_outside && !a->identity) positions[0] = -1;
}
