/* Resize and Upsample: one axis after another, the last first, each with tables of the input positions (and weights) that an
 * output position reads. The arithmetic of the tables is in double, as in src/kernels/resize.c. */
#include "kernels/resize.h"

#include <math.h>
#include <stdio.h>

#include "list.h"

typedef enum mode { NEAREST, LINEAR, CUBIC } mode;
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
  double scale, width; /* width: of the output, a fraction where it comes from a scale */
  double start, end;   /* of the region of interest */
  bool identity;
} axis;

typedef struct resize {
  mode mode;
  transform transform;
  const char *nearest;
  bool antialias, exclude_outside;
  double cubic, extrapolation;
  int32_t rank;
  axis axes[CLV_MAX_RANK];
} resize;

static void modes_read(const clv__opencl_node *node, resize *r) {
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
  static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const clv__attributes a = node->attributes;
  const bool early = node->op[0] == 'U' || node->opset < 11;
  const bool linear = clv__attribute_is(a, "mode", "linear", false) || clv__attribute_is(a, "mode", "bilinear", false);
  r->mode = clv__attribute_is(a, "mode", "cubic", false) ? CUBIC : linear ? LINEAR : NEAREST;
  r->transform = early ? ASYMMETRIC : HALF_PIXEL;
  for (size_t i = 0; i < sizeof transforms / sizeof *transforms; ++i) {
    if (clv__attribute_is(a, "coordinate_transformation_mode", transforms[i].name, false)) r->transform = transforms[i].transform;
  }
  r->nearest = early ? "floor" : "round_prefer_floor";
  for (size_t i = 0; i < 4; ++i) {
    if (clv__attribute_is(a, "nearest_mode", nearest[i], false)) r->nearest = nearest[i];
  }
  r->antialias = clv__attribute_int(a, "antialias", 0) != 0;
  r->exclude_outside = clv__attribute_int(a, "exclude_outside", 0) != 0;
  r->cubic = (double)clv__attribute_float(a, "cubic_coeff_a", -0.75f);
  r->extrapolation = (double)clv__attribute_float(a, "extrapolation_value", 0.0f);
}

static bool has_elements(const clv__opencl_node *node, uint32_t i) {
  return clv__opencl_has_input(node, i) && clv__opencl_count(&node->inputs[i]) > 0;
}

/* Sizes, scales and regions of all axes. */
static clv_status read(const clv__opencl_node *node, resize *r, clv_error *error) {
  const clv_tensor *x = &node->inputs[0], *y = &node->outputs[0];
  *r = (resize){.rank = x->rank};
  modes_read(node, r);
  clv__resize_axes axes;
  CLV__TRY(clv__resize_axes_read(node->attributes, x->rank, &axes, error));
  uint32_t scales, sizes;
  clv__resize_inputs(node->op, node->opset, &scales, &sizes);
  size_t float_count;
  const float *floats = clv__attribute_floats(node->attributes, "scales", &float_count);
  const bool by_scales = scales != UINT32_MAX ? has_elements(node, scales) : floats != NULL;
  const bool by_sizes = sizes != UINT32_MAX && has_elements(node, sizes);
  for (int32_t i = 0; i < x->rank; ++i) {
    r->axes[i] = (axis){.input = x->dims[i], .output = y->dims[i], .end = 1, .width = (double)y->dims[i]};
    r->axes[i].scale = x->dims[i] > 0 ? (double)y->dims[i] / (double)x->dims[i] : 1;
  }
  int64_t wanted[CLV_MAX_RANK] = {0};
  double shared = 0;
  for (int32_t i = 0; by_sizes && i < axes.count; ++i) wanted[i] = clv__tensor_get_int(&node->inputs[sizes], (size_t)i);
  const bool is_shared = by_sizes && clv__resize_shared_scale(node->attributes, &axes, wanted, x->dims, &shared);
  const bool has_roi = node->opset >= 11 && has_elements(node, 1) && r->transform == CROP_AND_RESIZE;
  if (has_roi && clv__opencl_count(&node->inputs[1]) != 2 * axes.count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "roi has %lld elements, %d expected",
                          (long long)clv__opencl_count(&node->inputs[1]), 2 * (int)axes.count);
  }
  for (int32_t i = 0; i < axes.count; ++i) {
    axis *a = &r->axes[axes.axes[i]];
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
    if (a->input == 0 && a->output > 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "axis %d cannot be resized from 0 to %lld", (int)axes.axes[i],
                            (long long)a->output);
    }
    if (by_scales || is_shared) a->width = a->scale * (double)a->input;
    if (has_roi) {
      a->start = clv__tensor_get(&node->inputs[1], (size_t)i);
      a->end = clv__tensor_get(&node->inputs[1], (size_t)(axes.count + i));
    }
  }
  for (int32_t i = 0; i < r->rank; ++i) {
    axis *a = &r->axes[i];
    a->identity = a->input == a->output && fabs(a->scale - 1) < 1e-9 && a->start == 0 && a->end == 1;
  }
  return CLV_OK;
}

/* ---- Tables ---- */

/* Taps of an axis: 2 or 4, more where a smaller output is filtered. */
static int64_t taps_of(const resize *r, const axis *a) {
  if (r->mode == NEAREST) return 1;
  const double reach = r->mode == LINEAR ? 1 : 2;
  if (!r->antialias || a->scale >= 1) return (int64_t)(2 * reach);
  const double wide = reach / a->scale, most = 4 * (double)a->input + 4; /* beyond it nothing new is read */
  return 2 - 2 * ((int64_t)floor(wide < most ? -wide : -most) + 1);
}

static double coordinate(const resize *r, const axis *a, double x) {
  const double last = (double)a->input - 1;
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

static int32_t clamp(double x, int64_t count) {
  return (int32_t)(!(x > 0) ? 0 : x >= (double)(count - 1) ? count - 1 : (int64_t)x);
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
  const double a = r->cubic;
  x = fabs(x);
  if (r->mode == LINEAR) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* The taps lie around `base`, the last input position left of x. */
static void fill_taps(const resize *r, const axis *a, double x, int64_t taps, int32_t *places, float *weights) {
  const double base = ceil(x) - 1, squeeze = r->antialias && a->scale < 1 ? a->scale : 1;
  double sum = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const bool scaled = pass == 1 && (r->exclude_outside || squeeze != 1) && sum != 0;
    for (int64_t t = 0; t < taps; ++t) {
      const double position = base - (double)(taps / 2 - 1) + (double)t;
      const bool outside = position < 0 || position > (double)(a->input - 1);
      const double weight = r->exclude_outside && outside ? 0 : filter(r, (position - x) * squeeze);
      if (pass == 0) sum += weight;
      places[t] = clamp(position, a->input);
      weights[t] = (float)(scaled ? weight / sum : weight);
    }
  }
}

static void fill_axis(const resize *r, const axis *a, int64_t taps, int32_t *places, float *weights) {
  for (int64_t o = 0; o < a->output; ++o) {
    const double x = coordinate(r, a, (double)o);
    if (r->mode == NEAREST)
      places[o] = clamp(nearest(r, x), a->input);
    else
      fill_taps(r, a, x, taps, places + o * taps, weights + o * taps);
    if (r->transform == CROP_AND_RESIZE && (x < 0 || x > (double)(a->input - 1))) places[o * taps] = -1;
  }
}

/* ---- Launches ---- */

/* Where a stage reads and writes: the operands, or scratch between them. */
typedef struct stage {
  bool first, last;
  uint32_t from, to; /* scratch */
  clv_dtype from_dtype, to_dtype;
  int64_t before, after; /* elements around the axis */
} stage;

static void pass_ends(clv__opencl_lowering *l, const stage *s) {
  if (s->last)
    clv__opencl_pass_output(l, 0);
  else
    clv__opencl_pass_scratch(l, s->to);
  if (s->first)
    clv__opencl_pass_input(l, 0);
  else
    clv__opencl_pass_scratch(l, s->from);
}

static clv_status launch(clv__opencl_lowering *l, const clv__opencl_node *node, const resize *r, const axis *a, const stage *s,
                         clv_error *error) {
  const int64_t taps = taps_of(r, a), count = s->before * a->output * s->after;
  clv__arena *arena = clv__opencl_lowering_arena(l);
  size_t entries;
  int32_t *places = NULL;
  float *weights = NULL;
  if (clv__multiply((size_t)a->output, (size_t)taps, &entries)) {
    places = clv__arena_allocate_zero(arena, entries, sizeof *places);
    weights = clv__arena_allocate_zero(arena, entries, sizeof *weights);
  }
  if (places == NULL || weights == NULL) return clv__error_memory(error, entries * 8);
  fill_axis(r, a, taps, places, weights);
  const uint32_t place_table = clv__opencl_table(l, places, entries * sizeof *places);
  const bool picks = r->mode == NEAREST;
  const uint32_t weight_table = picks ? 0 : clv__opencl_table(l, weights, entries * sizeof *weights);
  clv__opencl_launch(l, "resize", picks ? "pick" : "blend");
  clv__opencl_define_dtype(l, "T", picks ? clv__opencl_bits(s->to_dtype) : s->to_dtype);
  if (!picks) clv__opencl_define_dtype(l, "X", s->from_dtype);
  pass_ends(l, s);
  clv__opencl_pass_table(l, place_table);
  if (!picks) clv__opencl_pass_table(l, weight_table);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_index(l, a->input);
  clv__opencl_pass_index(l, a->output);
  clv__opencl_pass_index(l, s->after);
  if (picks) {
    int64_t bits = 0;
    const clv_tensor element = {.dtype = node->inputs[0].dtype, .data = &bits};
    clv__tensor_put(&element, 0, r->extrapolation, (int64_t)r->extrapolation, r->extrapolation != 0);
    clv__opencl_pass_long(l, bits);
  } else {
    clv__opencl_pass_int(l, (int32_t)taps);
    clv__opencl_pass_float(l, (float)r->extrapolation);
  }
  return clv__opencl_enqueue_1d(l, count);
}

static clv_status lower_resize(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  const clv_tensor *x = &node->inputs[0];
  resize r;
  int32_t left = 0;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  CLV__TRY(read(node, &r, error));
  for (int32_t i = 0; i < r.rank; ++i) left += !r.axes[i].identity;
  if (left == 0) {
    return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0,
                            (uint64_t)clv__opencl_count(x) * clv_dtype_size_bytes(x->dtype));
  }
  const clv_dtype between = r.mode == NEAREST ? x->dtype : CLV_F32;
  stage s = {.first = true, .before = clv__opencl_count(x), .after = 1, .from_dtype = x->dtype};
  for (int32_t i = r.rank - 1; i >= 0; --i) {
    const axis *a = &r.axes[i];
    s.before /= a->input;
    if (!a->identity) {
      s.last = --left == 0;
      s.to_dtype = s.last ? x->dtype : between;
      if (!s.last) s.to = clv__opencl_scratch(l, (uint64_t)(s.before * a->output * s.after) * clv_dtype_size_bytes(between));
      CLV__TRY(launch(l, node, &r, a, &s, error));
      s.first = false;
      s.from = s.to;
      s.from_dtype = between;
    }
    s.after *= a->output;
  }
  return CLV_OK;
}

/* Of integers only elements are picked: their blends round at the edge between two numbers. */
static bool accepts_resize(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const bool picks = clv__attribute_is(node->attributes, "mode", "nearest", true);
  const clv_dtype dtype = node->inputs[0].dtype;
  if (!picks && dtype != CLV_F32 && dtype != CLV_F16 && dtype != CLV_BF16) {
    snprintf(reason, 160, "dtype %s with a mode other than nearest", clv_dtype_name(dtype));
    return false;
  }
  if (picks && clv__attribute_int(node->attributes, "antialias", 0) != 0) {
    snprintf(reason, 160, "antialias has no meaning for mode nearest");
    return false;
  }
  for (uint32_t i = 1; i < node->input_count; ++i) {
    if (!clv__opencl_accepts_constant(node, i, "roi, scales or sizes", reason)) return false;
  }
  return true;
}

const clv__opencl_operator clv__opencl_family_resize[] = {
    {"", "Resize", CLV__DTYPES_ANY, false, accepts_resize, lower_resize},
    {"", "Upsample", CLV__DTYPES_ANY, false, accepts_resize, lower_resize},
    {NULL, NULL, 0, false, NULL, NULL},
};
