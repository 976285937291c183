/* Col2Im, MaxUnpool, CenterCropPad: infers the output's sizes from windows and from inputs that list sizes. */
#include "operators/patches/run.h"

#include "operators/common/checks.h"
#include "operators/common/dims.h"

/* Reads the sizes in input `input`, a vector of `count` elements (CLV_DIM_UNKNOWN: any number). *given is the number of elements,
 * or -1 if unknown. */
static clv_status sizes_read(clv__infer *infer, uint32_t input, const char *what, int64_t count, int64_t *given,
                             clv__content *content) {
  const clv_tensor *list = &infer->inputs[input];
  content->known = false;
  *given = -1;
  if (!clv__infer_has(infer, input)) return CLV_OK;
  CLV__TRY(clv__check_rank(infer, input, 1, 1));
  CLV__TRY(clv__infer_check_list(infer, input));
  if (list->rank == 1 && list->dims[0] >= 0) *given = list->dims[0];
  if (clv__infer_elements(infer, input, content)) *given = content->count;
  if (*given >= 0 && count >= 0 && *given != count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s has %lld element%s; expected %lld", what, (long long)*given,
                          CLV__S(*given), (long long)count);
  }
  for (uint32_t i = 0; content->known && i < content->count; ++i) {
    if (!clv__element_is_number(content->elements[i]) || content->elements[i] >= 0) continue;
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s[%u] is %lld, but must not be negative", what, (unsigned)i,
                          (long long)content->elements[i]);
  }
  return CLV_OK;
}

/* ---- Col2Im ---- */

/* Checks the input, [batch, channels * block elements, blocks], against the block's size `sizes`, which is known. Sets
 * *channels to the number of channels. */
static clv_status check_columns(clv__infer *infer, int32_t spatial, const int64_t *image, const int64_t *sizes,
                                int64_t *channels) {
  const clv_tensor *x = &infer->inputs[0];
  clv__window window;
  int64_t taps, blocks, unused;
  CLV__TRY(clv__patches_window(infer->attributes, spatial, image, sizes, &window, infer->error));
  CLV__TRY(clv__infer_product(infer, sizes, spatial, &taps));
  CLV__TRY(clv__infer_product(infer, window.output, spatial, &blocks));
  if (x->rank != 3) return CLV_OK;
  if (x->dims[1] >= 0 && taps > 0) {
    *channels = x->dims[1] / taps;
    if (x->dims[1] % taps != 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "dimension 1 of the input is %lld, which is not a multiple of the block's %lld element%s",
                            (long long)x->dims[1], (long long)taps, CLV__S(taps));
    }
  }
  if (blocks < 0 || clv__dim_merge(x->dims[2], blocks, &unused)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "dimension 2 of the input is %lld, but the image has %lld blocks",
                        (long long)x->dims[2], (long long)blocks);
}

static clv_status infer_col2im(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  clv__content image, block;
  int64_t count, blocks, dims[CLV_MAX_RANK], sizes[CLV__MAX_SPATIAL];
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(sizes_read(infer, 1, "image_shape", CLV_DIM_UNKNOWN, &count, &image));
  CLV__TRY(sizes_read(infer, 2, "block_shape", count, &blocks, &block));
  if (count < 0) count = blocks;
  clv__infer_set(infer, 0, x->dtype, CLV_RANK_UNKNOWN, NULL);
  if (count < 0) return CLV_OK;
  if (count < 1 || count > CLV__MAX_SPATIAL) {
    return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "an image with %lld axes is not supported; expected 1 to %d",
                          (long long)count, CLV__MAX_SPATIAL);
  }
  dims[0] = x->rank == 3 ? x->dims[0] : CLV_DIM_UNKNOWN;
  dims[1] = CLV_DIM_UNKNOWN;
  for (int32_t i = 0; i < count; ++i) {
    dims[i + 2] = image.known ? clv__dim_from_element(image.elements[i]) : CLV_DIM_UNKNOWN;
    sizes[i] = block.known ? clv__dim_from_element(block.elements[i]) : CLV_DIM_UNKNOWN;
  }
  if (clv__content_is_numbers(&block)) CLV__TRY(check_columns(infer, (int32_t)count, dims + 2, sizes, &dims[1]));
  clv__infer_set(infer, 0, x->dtype, (int32_t)count + 2, dims);
  return CLV_OK;
}

static void work_col2im(const clv__infer *infer, clv__work *work) {
  work->flops = clv__known_count(&infer->inputs[0]);
}

/* ---- MaxUnpool ---- */

static clv_status infer_max_unpool(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *indices = &infer->inputs[1];
  clv__content wanted;
  int64_t dims[CLV_MAX_RANK], given, unused;
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  CLV__TRY(sizes_read(infer, 2, "output_shape", x->rank >= 0 ? x->rank : CLV_DIM_UNKNOWN, &given, &wanted));
  bool fits = x->rank < 0 || indices->rank < 0 || x->rank == indices->rank;
  for (int32_t i = 0; fits && i < x->rank && indices->rank >= 0; ++i)
    fits = clv__dim_merge(x->dims[i], indices->dims[i], &unused);
  if (!fits) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the input and the indices have different shapes");
  clv__infer_set_unknown(infer, 0, x->dtype, x->rank);
  if (x->rank < 0) return CLV_OK;
  CLV__TRY(clv__patches_unpooled(infer->attributes, x, dims, infer->error));
  for (int32_t i = 0; clv__infer_has(infer, 2) && i < x->rank; ++i) {
    int64_t own = wanted.known ? clv__dim_from_element(wanted.elements[i]) : CLV_DIM_UNKNOWN;
    if (own >= 0 && dims[i] > own) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "output_shape[%d] is %lld, less than the size %lld that the indices refer to", (int)i, (long long)own,
                            (long long)dims[i]);
    }
    dims[i] = own;
  }
  clv__infer_set(infer, 0, x->dtype, x->rank, dims);
  return CLV_OK;
}

/* ---- CenterCropPad ---- */

static clv_status infer_crop_pad(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  clv__content sizes;
  int64_t dims[CLV_MAX_RANK], given;
  int32_t axes[CLV_MAX_RANK], count;
  clv__infer_set_unknown(infer, 0, x->dtype, x->rank);
  if (x->rank < 0) return CLV_OK;
  CLV__TRY(clv__patches_axes(infer->attributes, x->rank, axes, &count, infer->error));
  CLV__TRY(sizes_read(infer, 1, "shape", count, &given, &sizes));
  for (int32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[i];
  for (int32_t i = 0; i < count; ++i) dims[axes[i]] = sizes.known ? clv__dim_from_element(sizes.elements[i]) : CLV_DIM_UNKNOWN;
  clv__infer_set(infer, 0, x->dtype, x->rank, dims);
  return CLV_OK;
}

const clv__op clv__ops_patches[] = {
    {"", "Col2Im", 3, 3, 1, 1, 0, infer_col2im, work_col2im, NULL},
    {"", "MaxUnpool", 2, 3, 1, 1, 0, infer_max_unpool, clv__work_none, NULL},
    {"", "CenterCropPad", 2, 2, 1, 1, 0, infer_crop_pad, clv__work_none, NULL},
    {.name = NULL},
};
