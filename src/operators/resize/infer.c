/* Resize and Upsample: output sizes follow from scales or sizes, which each opset passes in its own way. GridSample reads at
 * positions given by a grid of coordinates; AffineGrid computes such a grid. */
#include <math.h>

#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/common/padding.h"
#include "operators/common/resize.h"
#include "operators/resize/run_grid.h"

/* floor(dim * scale), computed in f32, like exporters and the specification's own inference do. */
static clv_status scaled_dim(clv__infer *infer, int64_t dim, float scale, int64_t *out) {
  if (!(scale > 0) || !isfinite(scale)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "scale is %g; expected a finite number above 0", (double)scale);
  }
  if (dim < 0) {
    *out = scale == 1.0f ? dim : CLV_DIM_UNKNOWN;
    return CLV_OK;
  }
  float product = floorf((float)dim * scale);
  if (!(product < 0x1p62f)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "dimension %lld times scale %g is too large for any tensor",
                          (long long)dim, (double)scale);
  }
  *out = scale == 1.0f ? dim : (int64_t)product;
  return CLV_OK;
}

static clv_status count_check(clv__infer *infer, const char *what, size_t count, const clv__resize_axes *axes) {
  if (count == (size_t)axes->count) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s has %zu element%s; expected %d", what, count, CLV__S(count),
                        (int)axes->count);
}

static clv_status by_scales(clv__infer *infer, const float *scales, const clv__resize_axes *axes, int64_t *dims) {
  for (int32_t i = 0; i < axes->count; ++i) {
    CLV__TRY(scaled_dim(infer, infer->inputs[0].dims[axes->axes[i]], scales[i], &dims[axes->axes[i]]));
  }
  return CLV_OK;
}

static clv_status by_sizes(clv__infer *infer, const clv__content *sizes, const clv__resize_axes *axes, int64_t *dims) {
  const clv_tensor *x = &infer->inputs[0];
  bool stretch = clv__attribute_is(infer->attributes, "keep_aspect_ratio_policy", "stretch", true);
  bool known = true;
  for (int32_t i = 0; i < axes->count; ++i) {
    int64_t element = sizes->elements[i];
    if (clv__element_is_number(element) && element < 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "sizes[%d] is %lld, but must not be negative", (int)i,
                            (long long)element);
    }
    if (stretch) dims[axes->axes[i]] = clv__dim_from_element(element);
    known = known && clv__element_is_number(element) && x->dims[axes->axes[i]] > 0;
  }
  if (stretch) return CLV_OK;
  double scale = 1;
  if (known && !clv__resize_shared_scale(infer->attributes, axes, sizes->elements, x->dims, &scale)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "keep_aspect_ratio_policy is not one of stretch, not_larger, not_smaller");
  }
  for (int32_t i = 0; i < axes->count; ++i) {
    double size = floor(scale * (double)x->dims[axes->axes[i]] + 0.5);
    if (known && !(size < 0x1p62)) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d would have %g elements, which is too many",
                            (int)axes->axes[i], size);
    }
    dims[axes->axes[i]] = known ? (int64_t)size : x->dims[axes->axes[i]] == 0 ? 0 : CLV_DIM_UNKNOWN;
  }
  return CLV_OK;
}

static bool is_empty(const clv_tensor *t) {
  size_t count;
  return t->rank == 1 && clv__tensor_count(t, &count) && count == 0;
}

/* Checks input roi, which has a start and an end per axis, if coordinate_transformation_mode uses it. */
static clv_status roi_check(clv__infer *infer, const clv__resize_axes *axes) {
  if (infer->opset < 11 || !clv__attribute_is(infer->attributes, "coordinate_transformation_mode", "tf_crop_and_resize", false)) {
    return CLV_OK;
  }
  if (!clv__infer_has(infer, 1))
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "mode tf_crop_and_resize needs input roi");
  return clv__check_vector(infer, 1, 2 * (int64_t)axes->count);
}

static clv_status resize_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  if (x->rank == CLV_RANK_UNKNOWN) return clv__infer_same(infer);
  CLV__TRY(clv__check_rank(infer, 0, 1, CLV_MAX_RANK));
  clv__resize_axes axes;
  CLV__TRY(clv__resize_axes_read(infer->attributes, x->rank, &axes, infer->error));
  CLV__TRY(roi_check(infer, &axes));
  int64_t dims[CLV_MAX_RANK];
  memcpy(dims, x->dims, sizeof dims);
  for (int32_t i = 0; i < axes.count; ++i) dims[axes.axes[i]] = CLV_DIM_UNKNOWN;
  uint32_t scales, sizes;
  clv__resize_inputs(infer->op, infer->opset, &scales, &sizes);
  if (scales == UINT32_MAX) {
    size_t count;
    const float *list = clv__attribute_floats(infer->attributes, "scales", &count);
    CLV__TRY(count_check(infer, "scales", count, &axes));
    CLV__TRY(by_scales(infer, list, &axes, dims));
  } else if (clv__infer_has(infer, scales) && !is_empty(&infer->inputs[scales])) {
    const clv_tensor *t = &infer->inputs[scales];
    CLV__TRY(clv__check_rank(infer, scales, 1, 1));
    if (t->rank == 1 && t->dims[0] >= 0) CLV__TRY(count_check(infer, "scales", (size_t)t->dims[0], &axes));
    if (t->data != NULL && t->rank == 1 && t->dtype == CLV_F32) {
      float list[CLV_MAX_RANK];
      for (int32_t i = 0; i < axes.count; ++i) list[i] = (float)clv__tensor_get(t, (size_t)i);
      CLV__TRY(by_scales(infer, list, &axes, dims));
    }
  } else if (sizes != UINT32_MAX && clv__infer_has(infer, sizes)) {
    clv__content content;
    const clv_tensor *t = &infer->inputs[sizes];
    CLV__TRY(clv__check_rank(infer, sizes, 1, 1));
    if (t->rank == 1 && t->dims[0] >= 0) CLV__TRY(count_check(infer, "sizes", (size_t)t->dims[0], &axes));
    if (clv__infer_elements(infer, sizes, &content)) {
      CLV__TRY(count_check(infer, "sizes", content.count, &axes));
      CLV__TRY(by_sizes(infer, &content, &axes, dims));
    }
  } else {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "neither scales nor sizes is given");
  }
  for (int32_t i = 0; i < x->rank; ++i) {
    if (x->dims[i] == 0 && dims[i] > 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d has no elements, so it cannot be resized to %lld", (int)i,
                            (long long)dims[i]);
    }
  }
  clv__infer_set(infer, 0, x->dtype, x->rank, dims);
  return CLV_OK;
}

static void resize_work(const clv__infer *infer, clv__work *work) {
  bool linear = clv__attribute_is(infer->attributes, "mode", "linear", false);
  bool cubic = clv__attribute_is(infer->attributes, "mode", "cubic", false);
  work->flops = clv__known_count(&infer->outputs[0]) * (cubic ? 40 : linear ? 8 : 1);
}

/* ---- GridSample, AffineGrid ---- */

static clv_status refuse_inputs(clv__infer *infer, const char *rule) {
  char first[96], second[96];
  clv__infer_text(infer, &infer->inputs[0], first, sizeof first);
  clv__infer_text(infer, &infer->inputs[1], second, sizeof second);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "inputs %s and %s: %s", first, second, rule);
}

static clv_status infer_grid_sample(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *grid = &infer->inputs[1];
  clv__grid_mode mode;
  clv__grid_padding padding;
  int64_t dims[CLV_MAX_RANK], unused;
  CLV__TRY(clv__grid_read(infer->attributes, &mode, &padding, infer->error));
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  CLV__TRY(clv__check_rank(infer, 1, 3, CLV_MAX_RANK));
  const int32_t rank = x->rank >= 0 ? x->rank : grid->rank;
  if (rank < 0) {
    clv__infer_set(infer, 0, x->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  if (x->rank >= 0 && grid->rank >= 0) {
    if (x->rank != grid->rank) return refuse_inputs(infer, "their ranks must be equal");
    if (!clv__dim_merge(x->dims[0], grid->dims[0], &unused)) return refuse_inputs(infer, "their batch sizes must be equal");
  }
  if (grid->rank >= 0 && grid->dims[rank - 1] >= 0 && grid->dims[rank - 1] != rank - 2) {
    return refuse_inputs(infer, "the grid needs one coordinate per spatial axis");
  }
  for (int32_t i = 0; i < rank; ++i) dims[i] = CLV_DIM_UNKNOWN;
  for (int32_t i = 2; i < rank && grid->rank >= 0; ++i) dims[i] = grid->dims[i - 1];
  if (x->rank >= 0) {
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
  }
  if (grid->rank >= 0) clv__dim_merge(dims[0], grid->dims[0], &dims[0]);
  clv__infer_set(infer, 0, x->dtype, rank, dims);
  return CLV_OK;
}

static void work_grid_sample(const clv__infer *infer, clv__work *work) {
  clv__grid_mode mode;
  clv__grid_padding padding;
  if (clv__grid_read(infer->attributes, &mode, &padding, NULL) != CLV_OK) return;
  double corners = 1;
  for (int32_t i = 2; i < infer->outputs[0].rank; ++i)
    corners *= mode == CLV__GRID_NEAREST ? 1 : mode == CLV__GRID_LINEAR ? 2 : 4;
  work->flops = clv__known_count(&infer->outputs[0]) * 2 * corners;
}

static clv_status infer_affine_grid(clv__infer *infer) {
  const clv_tensor *theta = &infer->inputs[0], *size = &infer->inputs[1];
  clv__content content;
  int64_t dims[CLV_MAX_RANK], unused;
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(clv__check_rank(infer, 1, 1, 1));
  CLV__TRY(clv__infer_check_list(infer, 1));
  int64_t spatial = size->rank == 1 && size->dims[0] >= 0 ? size->dims[0] - 2 : CLV_DIM_UNKNOWN;
  if (theta->rank == 3 && spatial < 0 && size->rank == 1 && size->dims[0] < 0) spatial = theta->dims[1];
  bool known = clv__infer_elements(infer, 1, &content);
  if (known) spatial = (int64_t)content.count - 2;
  if ((known || spatial >= 0 || (size->rank == 1 && size->dims[0] >= 0)) && spatial != 2 && spatial != 3) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "size has %lld element%s; expected 4 or 5", (long long)spatial + 2,
                          CLV__S(spatial + 2));
  }
  clv__infer_set_unknown(infer, 0, theta->dtype, spatial == 2 || spatial == 3 ? (int32_t)spatial + 2 : CLV_RANK_UNKNOWN);
  if (spatial != 2 && spatial != 3) return CLV_OK;
  if (theta->rank == 3 &&
      (!clv__dim_merge(theta->dims[1], spatial, &unused) || !clv__dim_merge(theta->dims[2], spatial + 1, &unused))) {
    return refuse_inputs(infer, "theta must be [N,2,3] if size has 4 elements, or [N,3,4] if it has 5");
  }
  for (int32_t i = 0; i <= spatial; ++i) {
    int64_t element = known ? content.elements[i == 0 ? 0 : i + 1] : CLV__ELEMENT_UNKNOWN;
    if (clv__element_is_number(element) && element < 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "size[%d] is %lld, but must not be negative",
                            i == 0 ? 0 : (int)i + 1, (long long)element);
    }
    dims[i] = clv__dim_from_element(element);
  }
  if (theta->rank == 3 && !clv__dim_merge(dims[0], theta->dims[0], &dims[0])) {
    return refuse_inputs(infer, "theta's batch size must equal the first element of size");
  }
  dims[spatial + 1] = spatial;
  clv__infer_set(infer, 0, theta->dtype, (int32_t)spatial + 2, dims);
  return CLV_OK;
}

static void work_affine_grid(const clv__infer *infer, clv__work *work) {
  work->flops = clv__known_count(&infer->outputs[0]) * 2 * infer->outputs[0].rank;
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* Axis 0 may be padded if inference gives the output's axis 0 the size of the input's: if the scale of axis 0 is 1, or if the
 * attribute axes omits axis 0. It may not be padded if input sizes contains a size of axis 0. */
static bool independent_resize(clv__padding *padding) {
  const clv__infer *node = padding->node;
  if (!clv__independent_batch(padding)) return false;
  if (padding->inputs[0] == 0 || (node->outputs[0].rank > 0 && node->outputs[0].dims[0] == node->inputs[0].dims[0])) return true;
  return clv__padding_no(padding, "it changes the size of axis 0");
}

const clv__op clv__ops_resize[] = {
    {"", "Resize", 1, 4, 1, 1, 0, resize_infer, resize_work, independent_resize},
    {"", "Upsample", 1, 2, 1, 1, 0, resize_infer, resize_work, independent_resize},
    {"", "GridSample", 2, 2, 1, 1, 0, infer_grid_sample, work_grid_sample, NULL},
    {"", "AffineGrid", 2, 2, 1, 1, 0, infer_affine_grid, work_affine_grid, NULL},
    {.name = NULL},
};
