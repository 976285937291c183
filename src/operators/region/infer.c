/* NonMaxSuppression, which selects boxes of an image, and RoiAlign, which pools regions of a feature map. */
#include <math.h>

#include "base/memory.h"
#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/infer.h"
#include "operators/region/run_suppress.h"

#define MOST_SAMPLES 1024 /* greatest number of samples per bin along one axis */

/* ---- NonMaxSuppression ---- */

static clv_status check_dtype(clv__infer *infer, uint32_t input, clv_dtype wanted) {
  if (!clv__infer_has(infer, input) || infer->inputs[input].dtype == wanted) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s; expected %s", (unsigned)input,
                        clv_dtype_name(infer->inputs[input].dtype), clv_dtype_name(wanted));
}

static clv_status check_suppression(clv__infer *infer) {
  const clv_tensor *boxes = &infer->inputs[0], *scores = &infer->inputs[1];
  int64_t unused;
  for (uint32_t i = 0; i < 5; ++i) CLV__TRY(check_dtype(infer, i, i == 2 ? CLV_I64 : CLV_F32));
  for (uint32_t i = 0; i < 2; ++i) CLV__TRY(clv__check_rank(infer, i, 3, 3));
  for (uint32_t i = 2; i < infer->input_count && i < 5; ++i) {
    if (infer->inputs[i].rank == 1 && infer->inputs[i].dims[0] == 0) continue; /* treated like an absent input */
    CLV__TRY(clv__infer_check_count(infer, i, 1));
  }
  bool fits = boxes->rank < 0 || clv__dim_merge(boxes->dims[2], 4, &unused);
  if (boxes->rank == 3 && scores->rank == 3) {
    fits = fits && clv__dim_merge(boxes->dims[0], scores->dims[0], &unused) &&
           clv__dim_merge(boxes->dims[1], scores->dims[2], &unused);
  }
  if (fits) return CLV_OK;
  char first[96], second[96];
  clv__infer_text(infer, boxes, first, sizeof first);
  clv__infer_text(infer, scores, second, sizeof second);
  return clv__error_set(infer->error, CLV_INVALID_MODEL,
                        "boxes are %s and scores %s; expected [batches,boxes,4] and [batches,classes,boxes]", first, second);
}

/* Whether the data of all inputs is known. */
static bool suppression_known(const clv__infer *infer) {
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    if (clv__infer_has(infer, i) && (infer->inputs[i].data == NULL || !clv__tensor_is_static(&infer->inputs[i]))) return false;
  }
  return true;
}

static clv_status infer_suppression(clv__infer *infer) {
  int64_t dims[2] = {CLV_DIM_UNKNOWN, 3};
  CLV__TRY(check_suppression(infer));
  if (suppression_known(infer)) {
    clv__suppression suppression;
    size_t size_bytes;
    clv__suppression_read(infer->attributes, infer->inputs, infer->input_count, &suppression);
    if (!clv__multiply(clv__suppression_room(&suppression), sizeof(int64_t), &size_bytes)) {
      return clv__error_memory(infer->error, SIZE_MAX);
    }
    int64_t *room = clv__allocate(infer->allocator, size_bytes > 0 ? size_bytes : 1);
    if (room == NULL) return clv__error_memory(infer->error, size_bytes);
    dims[0] = clv__suppression_run(&suppression, room, 0, NULL);
    clv__release(infer->allocator, room);
  }
  clv__infer_set(infer, 0, CLV_I64, 2, dims);
  return CLV_OK;
}

static void work_suppression(const clv__infer *infer, clv__work *work) {
  double scores = clv__known_count(&infer->inputs[1]);
  work->flops = scores > 2 ? scores * log2(scores) : scores;
}

/* ---- RoiAlign ---- */

static clv_status check_roi_attributes(clv__infer *infer, int64_t *height, int64_t *width) {
  const clv__attributes a = infer->attributes;
  const int64_t ratio = clv__attribute_int(a, "sampling_ratio", 0);
  const double scale = clv__attribute_float(a, "spatial_scale", 1);
  *height = clv__attribute_int(a, "output_height", 1);
  *width = clv__attribute_int(a, "output_width", 1);
  if (*height < 1 || *width < 1) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "output_height is %lld and output_width is %lld; both must be above 0",
                          (long long)*height, (long long)*width);
  }
  if (ratio < 0 || ratio > MOST_SAMPLES) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "sampling_ratio is %lld; expected 0 to %d", (long long)ratio,
                          MOST_SAMPLES);
  }
  if (!isfinite(scale)) return clv__error_set(infer->error, CLV_INVALID_MODEL, "spatial_scale is %g, which is not finite", scale);
  if (!clv__attribute_is(a, "mode", "avg", true) && !clv__attribute_is(a, "mode", "max", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "mode is not one of avg, max");
  }
  const char *transform = "coordinate_transformation_mode";
  if (!clv__attribute_is(a, transform, "half_pixel", true) && !clv__attribute_is(a, transform, "output_half_pixel", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s is not one of half_pixel, output_half_pixel", transform);
  }
  return CLV_OK;
}

static clv_status infer_roi_align(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *rois = &infer->inputs[1], *maps = &infer->inputs[2];
  int64_t dims[4] = {CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, 1, 1}, unused;
  CLV__TRY(check_roi_attributes(infer, &dims[2], &dims[3]));
  CLV__TRY(clv__check_rank(infer, 0, 4, 4));
  CLV__TRY(clv__check_rank(infer, 1, 2, 2));
  CLV__TRY(clv__check_rank(infer, 2, 1, 1));
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  if (x->rank == 4) dims[1] = x->dims[1];
  if (rois->rank == 2) dims[0] = rois->dims[0];
  bool fits = rois->rank < 0 || clv__dim_merge(rois->dims[1], 4, &unused);
  if (maps->rank == 1) fits = fits && clv__dim_merge(dims[0], maps->dims[0], &dims[0]);
  if (!fits) {
    char first[96], second[96];
    clv__infer_text(infer, rois, first, sizeof first);
    clv__infer_text(infer, maps, second, sizeof second);
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "rois are %s and batch_indices %s; expected [regions,4] and [regions]",
                          first, second);
  }
  clv__infer_set(infer, 0, x->dtype, 4, dims);
  return CLV_OK;
}

static void work_roi_align(const clv__infer *infer, clv__work *work) {
  const int64_t ratio = clv__attribute_int(infer->attributes, "sampling_ratio", 0);
  work->flops = clv__known_count(&infer->outputs[0]) * 8 * (ratio > 0 ? (double)ratio * (double)ratio : 4);
}

const clv__op clv__ops_region[] = {
    {"", "NonMaxSuppression", 2, 5, 1, 1, 0, infer_suppression, work_suppression, NULL},
    {"", "RoiAlign", 3, 3, 1, 1, 0, infer_roi_align, work_roi_align, NULL},
    {.name = NULL},
};
