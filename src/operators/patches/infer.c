/* Col2Im, MaxUnpool, CenterCropPad, DeformConv, Det: sizes out of windows, lists and groups. */
#include "operators/patches/run.h"

#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/families.h"

/* Sizes in input `input`, a vector of `count` elements (CLV_DIM_UNKNOWN: any number). *given is how many there are, -1: not
 * known. */
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
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s has %lld elements, %lld expected", what, (long long)*given,
                          (long long)count);
  }
  for (uint32_t i = 0; content->known && i < content->count; ++i) {
    if (!clv__element_is_number(content->elements[i]) || content->elements[i] >= 0) continue;
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s[%u] is %lld", what, (unsigned)i, (long long)content->elements[i]);
  }
  return CLV_OK;
}

/* ---- Col2Im ------------------------------------------------------------------------------------------------------------------
 */

/* The columns' dims against the blocks, all of whose sizes are known. */
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
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld rows are no whole number of blocks of %lld elements",
                            (long long)x->dims[1], (long long)taps);
    }
  }
  if (blocks < 0 || clv__dim_merge(x->dims[2], blocks, &unused)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld columns for %lld blocks", (long long)x->dims[2],
                        (long long)blocks);
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
    return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "images of %lld axes, 1 to %d can be handled", (long long)count,
                          CLV__MAX_SPATIAL);
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

/* ---- MaxUnpool ---------------------------------------------------------------------------------------------------------------
 */

static clv_status infer_max_unpool(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *indices = &infer->inputs[1];
  clv__content wanted;
  int64_t dims[CLV_MAX_RANK], given, unused;
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  CLV__TRY(sizes_read(infer, 2, "output_shape", x->rank >= 0 ? x->rank : CLV_DIM_UNKNOWN, &given, &wanted));
  bool fits = x->rank < 0 || indices->rank < 0 || x->rank == indices->rank;
  for (int32_t i = 0; fits && i < x->rank && indices->rank >= 0; ++i)
    fits = clv__dim_merge(x->dims[i], indices->dims[i], &unused);
  if (!fits) return clv__error_set(infer->error, CLV_INVALID_MODEL, "values and indices differ in shape");
  clv__infer_set_unknown(infer, 0, x->dtype, x->rank);
  if (x->rank < 0) return CLV_OK;
  CLV__TRY(clv__patches_unpooled(infer->attributes, x, dims, infer->error));
  for (int32_t i = 0; clv__infer_has(infer, 2) && i < x->rank; ++i) {
    int64_t own = wanted.known ? clv__dim_from_element(wanted.elements[i]) : CLV_DIM_UNKNOWN;
    if (own >= 0 && dims[i] > own) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "output_shape[%d] is %lld, below the %lld that the indices count in",
                            (int)i, (long long)own, (long long)dims[i]);
    }
    dims[i] = own;
  }
  clv__infer_set(infer, 0, x->dtype, x->rank, dims);
  return CLV_OK;
}

/* ---- CenterCropPad -----------------------------------------------------------------------------------------------------------
 */

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

/* ---- DeformConv --------------------------------------------------------------------------------------------------------------
 */

static clv_status check_groups(clv__infer *infer, int64_t groups, int64_t offset_groups) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  const int64_t channels = x->dims[1], outputs = w->dims[0];
  int64_t wanted;
  if (groups < 1 || offset_groups < 1) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "group is %lld, offset_group is %lld", (long long)groups,
                          (long long)offset_groups);
  }
  bool fits = channels < 0 || channels % offset_groups == 0;
  fits = fits && (outputs < 0 || outputs % groups == 0);
  fits = fits && (channels < 0 || w->dims[1] < 0 || (!__builtin_mul_overflow(w->dims[1], groups, &wanted) && wanted == channels));
  if (fits) return CLV_OK;
  char first[96], second[96];
  clv__tensor_text(x, first, sizeof first);
  clv__tensor_text(w, second, sizeof second);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s and weights %s do not fit %lld groups and %lld offset groups", first,
                        second, (long long)groups, (long long)offset_groups);
}

/* Offsets (`parts` a tap: one an axis) or the mask (1) against the output. */
static clv_status check_offsets(clv__infer *infer, uint32_t input, const clv__window *window, int64_t parts,
                                int64_t offset_groups) {
  if (!clv__infer_has(infer, input) || infer->inputs[input].rank < 0) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input], *x = &infer->inputs[0];
  int64_t unused, rows = parts;
  bool known = true,
       fits = !__builtin_mul_overflow(rows, offset_groups, &rows) && clv__dim_merge(t->dims[0], x->dims[0], &unused);
  for (int32_t i = 0; i < window->spatial && fits; ++i) {
    known = known && window->kernel[i] >= 0;
    fits = (!known || !__builtin_mul_overflow(rows, window->kernel[i], &rows)) &&
           clv__dim_merge(t->dims[i + 2], window->output[i], &unused);
  }
  if (fits && (!known || clv__dim_merge(t->dims[1], rows, &unused))) return CLV_OK;
  char text[96];
  clv__tensor_text(t, text, sizeof text);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u, %s, does not fit the output and the kernel", (unsigned)input,
                        text);
}

static clv_status infer_deform(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  int64_t dims[CLV_MAX_RANK], offset_groups = clv__attribute_int(infer->attributes, "offset_group", 1);
  clv__window window;
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  const int32_t rank = x->rank;
  clv__infer_set_unknown(infer, 0, x->dtype, rank);
  for (uint32_t i = 1; i < 5; ++i) CLV__TRY(clv__check_same_dtype(infer, 0, i));
  for (uint32_t i = 1; i < 5 && rank >= 0; ++i) CLV__TRY(clv__check_rank(infer, i, i == 3 ? 1 : rank, i == 3 ? 1 : rank));
  if (rank < 0) return CLV_OK;
  int64_t unknown[CLV__MAX_SPATIAL];
  for (int32_t i = 0; i < CLV__MAX_SPATIAL; ++i) unknown[i] = CLV_DIM_UNKNOWN;
  CLV__TRY(clv__window_read(infer->attributes, rank - 2, w->rank >= 0 ? w->dims + 2 : unknown, &window, infer->error));
  CLV__TRY(clv__window_resolve(&window, x->dims + 2, infer->error));
  if (w->rank >= 0) {
    CLV__TRY(check_groups(infer, clv__attribute_int(infer->attributes, "group", 1), offset_groups));
    CLV__TRY(clv__check_vector(infer, 3, w->dims[0]));
  }
  CLV__TRY(check_offsets(infer, 2, &window, window.spatial, offset_groups));
  CLV__TRY(check_offsets(infer, 4, &window, 1, offset_groups));
  dims[0] = x->dims[0];
  dims[1] = w->rank >= 0 ? w->dims[0] : CLV_DIM_UNKNOWN;
  for (int32_t i = 0; i < window.spatial; ++i) dims[i + 2] = window.output[i];
  clv__infer_set(infer, 0, x->dtype, rank, dims);
  return CLV_OK;
}

static void work_deform(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[1];
  size_t count;
  if (w->rank < 1 || !clv__tensor_count(w, &count) || w->dims[0] < 1) return;
  const double products = clv__known_count(&infer->outputs[0]) * 2 * (double)count / (double)w->dims[0];
  work->flops = products + clv__known_count(&infer->inputs[2]) * 8;
}

/* ---- Det ---------------------------------------------------------------------------------------------------------------------
 */

static clv_status infer_det(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int64_t unused;
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  if (x->rank >= 0 && !clv__dim_merge(x->dims[x->rank - 1], x->dims[x->rank - 2], &unused)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "a matrix of %lld by %lld is not square",
                          (long long)x->dims[x->rank - 2], (long long)x->dims[x->rank - 1]);
  }
  clv__infer_set(infer, 0, x->dtype, x->rank < 0 ? CLV_RANK_UNKNOWN : x->rank - 2, x->dims);
  return CLV_OK;
}

static void work_det(const clv__infer *infer, clv__work *work) {
  const clv_tensor *x = &infer->inputs[0];
  if (x->rank >= 2) work->flops = clv__known_count(x) * (double)x->dims[x->rank - 1] * 2 / 3;
}

const clv__op clv__ops_patches[] = {
    {"", "Col2Im", 3, 3, 1, 1, 0, infer_col2im, work_col2im},
    {"", "MaxUnpool", 2, 3, 1, 1, 0, infer_max_unpool, clv__work_none},
    {"", "CenterCropPad", 2, 2, 1, 1, 0, infer_crop_pad, clv__work_none},
    {"", "DeformConv", 3, 5, 1, 1, 0, infer_deform, work_deform},
    {"", "Det", 1, 1, 1, 1, 0, infer_det, work_det},
    {0},
};
