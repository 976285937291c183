/* Operators that change or read a shape and leave the bytes unchanged. Known elements of small integer tensors are passed on to
 * the output. */
#include "operators/infer.h"
#include "operators/common/dims.h"
#include "operators/view/rules.h"

static clv_status infer_identity(clv__infer *infer) {
  clv__infer_pass_content(infer);
  return clv__infer_same(infer);
}

static clv_status infer_dropout(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  CLV__TRY(clv__infer_check_count(infer, 1, 1));
  CLV__TRY(clv__infer_check_count(infer, 2, 1));
  clv_dtype mask = infer->opset < 10 ? data->dtype : CLV_BOOL;
  clv__infer_set(infer, 1, mask, data->rank, data->dims);
  return infer_identity(infer);
}

/* ---- Reshape ------------------------------------------------------------------------------------------------------------- */

typedef struct reshape {
  int64_t dims[CLV_MAX_RANK];
  /* The input's dims, and the known new dims. Neither list includes dims that a 0 copies. */
  int64_t above[CLV_MAX_RANK], below[CLV_MAX_RANK];
  int32_t above_count, below_count;
  int32_t open_count; /* number of new dims that are still unknown */
  int32_t open;       /* index of the last of them */
  bool has_minus_one;
} reshape;

static clv_status read_target(clv__infer *infer, const clv__content *target, reshape *r) {
  const clv_tensor *data = &infer->inputs[0];
  bool keep_zero = clv__attribute_int(infer->attributes, "allowzero", 0) != 0;
  bool copied[CLV_MAX_RANK] = {false};
  for (uint32_t i = 0; i < target->count; ++i) {
    int64_t element = target->elements[i];
    bool number = clv__element_is_number(element);
    r->dims[i] = clv__dim_from_element(element);
    if (number && element < -1) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "new dimension %u is %lld; expected -1 or more", i,
                            (long long)element);
    }
    if (number && element == -1) {
      if (r->has_minus_one)
        return clv__error_set(infer->error, CLV_INVALID_MODEL, "two of the new dimensions are -1; at most one may be");
      r->has_minus_one = true;
    }
    if (number && element == 0 && !keep_zero) {
      if (data->rank >= 0 && (int32_t)i >= data->rank) {
        return clv__error_set(infer->error, CLV_INVALID_MODEL,
                              "new dimension %u is 0, which copies an input dimension, but the input has rank %d", i, data->rank);
      }
      r->dims[i] = data->rank >= 0 ? data->dims[i] : CLV_DIM_UNKNOWN;
      copied[i] = true;
    } else if (r->dims[i] == CLV_DIM_UNKNOWN) {
      r->open_count++;
      r->open = (int32_t)i;
    } else {
      r->below[r->below_count++] = r->dims[i];
    }
  }
  for (int32_t i = 0; i < data->rank; ++i) {
    if (!copied[i]) r->above[r->above_count++] = data->dims[i];
  }
  return CLV_OK;
}

static clv_status reshape_mismatch(clv__infer *infer, const reshape *r, uint32_t rank) {
  char from[96], to[96];
  clv_tensor type = clv__tensor_make(infer->inputs[0].dtype, (int32_t)rank, r->dims, NULL);
  clv__infer_text(infer, &infer->inputs[0], from, sizeof from);
  clv__infer_text(infer, &type, to, sizeof to);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s cannot be reshaped to %s", from, to);
}

static clv_status infer_reshape(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *shape = &infer->inputs[1];
  clv__content target;
  CLV__TRY(clv__infer_check_list(infer, 1));
  clv__infer_pass_content(infer);
  bool scalar = shape->rank == 1 && shape->dims[0] == 0; /* an empty shape is known without data */
  if (!clv__infer_elements(infer, 1, &target) && !scalar) {
    int64_t rank = shape->rank == 1 ? shape->dims[0] : CLV_RANK_UNKNOWN;
    CLV__TRY(clv__infer_rank(infer, rank));
    clv__infer_set_unknown(infer, 0, data->dtype, rank < 0 ? CLV_RANK_UNKNOWN : (int32_t)rank);
    if (rank == 1 && data->rank >= 0) return clv__infer_product(infer, data->dims, data->rank, &infer->outputs[0].dims[0]);
    return CLV_OK;
  }
  CLV__TRY(clv__infer_rank(infer, target.count));
  reshape r = {.open = -1};
  CLV__TRY(read_target(infer, &target, &r));
  /* Input and output have the same number of elements, so a single open dimension is the quotient of the two products. */
  if (data->rank >= 0 && r.open_count <= 1) {
    int64_t rest;
    bool divides = clv__dims_quotient(r.above, r.above_count, r.below, r.below_count, &rest);
    if (r.open_count == 1 && divides) r.dims[r.open] = rest;
    if (r.open_count == 1 && !divides) return reshape_mismatch(infer, &r, target.count);
    if (r.open_count == 0 && divides && rest >= 0 && rest != 1) return reshape_mismatch(infer, &r, target.count);
    if (r.open_count == 0 && !divides) { /* valid only if neither shape has elements */
      bool empty = false, was_empty = false;
      for (int32_t i = 0; i < r.below_count; ++i) empty = empty || r.below[i] == 0;
      for (int32_t i = 0; i < r.above_count; ++i) was_empty = was_empty || r.above[i] <= 0;
      if (!(empty && was_empty)) return reshape_mismatch(infer, &r, target.count);
    }
  }
  clv__infer_set(infer, 0, data->dtype, (int32_t)target.count, r.dims);
  return CLV_OK;
}

static clv_status infer_flatten(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  int64_t axis = clv__attribute_int(infer->attributes, "axis", 1), dims[2] = {CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN};
  if (data->rank >= 0) {
    if (axis < -(int64_t)data->rank || axis > data->rank) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute axis is %lld, which is out of range for rank %d",
                            (long long)axis, data->rank);
    }
    int32_t at = (int32_t)(axis < 0 ? axis + data->rank : axis);
    CLV__TRY(clv__infer_product(infer, data->dims, at, &dims[0]));
    CLV__TRY(clv__infer_product(infer, data->dims + at, data->rank - at, &dims[1]));
  }
  clv__infer_set(infer, 0, data->dtype, 2, dims);
  return CLV_OK;
}

/* ---- Squeeze, Unsqueeze -------------------------------------------------------------------------------------------------- */

/* Marks the listed axes of a shape of `rank` axes. */
static clv_status mark_axes(clv__infer *infer, const clv__content *axes, int32_t rank, bool marked[CLV_MAX_RANK]) {
  for (uint32_t i = 0; i < axes->count; ++i) {
    int32_t axis;
    CLV__TRY(clv__infer_axis(infer, axes->elements[i], rank, &axis));
    if (marked[axis]) return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d is listed twice", axis);
    marked[axis] = true;
  }
  return CLV_OK;
}

/* The length of the list in input axes, whose elements are unknown; -1 if the length is unknown too. */
static int64_t axes_length(const clv__infer *infer) {
  const clv_tensor *axes = infer->input_count > 1 ? &infer->inputs[1] : NULL;
  if (axes == NULL || axes->rank < 0) return -1;
  return axes->rank == 0 ? 1 : axes->dims[0] < 0 ? -1 : axes->dims[0];
}

static clv_status infer_squeeze(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  clv__content axes;
  bool given, drop[CLV_MAX_RANK] = {false};
  clv__infer_pass_content(infer);
  CLV__TRY(clv__infer_list(infer, infer->opset < 13 ? "axes" : NULL, 1, &given, &axes));
  clv__infer_set(infer, 0, data->dtype, CLV_RANK_UNKNOWN, NULL);
  if (data->rank < 0) return CLV_OK;
  if (given && !clv__content_is_numbers(&axes)) {
    int64_t length = axes_length(infer);
    if (length >= 0 && length <= data->rank) clv__infer_set_unknown(infer, 0, data->dtype, data->rank - (int32_t)length);
    return CLV_OK;
  }
  if (given) CLV__TRY(mark_axes(infer, &axes, data->rank, drop));
  int64_t dims[CLV_MAX_RANK];
  int32_t rank = 0;
  for (int32_t i = 0; i < data->rank; ++i) {
    /* The axis is removed if its size is 1, so the rank of the output is unknown. */
    if (!given && data->dims[i] < 0) return CLV_OK;
    if (given && drop[i] && data->dims[i] >= 0 && data->dims[i] != 1) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d cannot be squeezed: its size is %lld, not 1", i,
                            (long long)data->dims[i]);
    }
    if (given ? !drop[i] : data->dims[i] != 1) dims[rank++] = data->dims[i];
  }
  clv__infer_set(infer, 0, data->dtype, rank, dims);
  return CLV_OK;
}

static clv_status infer_unsqueeze(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  clv__content axes;
  bool given, added[CLV_MAX_RANK] = {false};
  clv__infer_pass_content(infer);
  CLV__TRY(clv__infer_list(infer, infer->opset < 13 ? "axes" : NULL, 1, &given, &axes));
  if (!given) return clv__error_set(infer->error, CLV_INVALID_MODEL, "axes are not given");
  int64_t count = axes.known ? axes.count : axes_length(infer);
  if (data->rank < 0 || count < 0) {
    clv__infer_set(infer, 0, data->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  CLV__TRY(clv__infer_rank(infer, count > CLV_MAX_RANK ? count : data->rank + count));
  int32_t rank = data->rank + (int32_t)count;
  if (!clv__content_is_numbers(&axes)) {
    clv__infer_set_unknown(infer, 0, data->dtype, rank);
    return CLV_OK;
  }
  CLV__TRY(mark_axes(infer, &axes, rank, added));
  int64_t dims[CLV_MAX_RANK];
  for (int32_t i = 0, from = 0; i < rank; ++i) dims[i] = added[i] ? 1 : data->dims[from++];
  clv__infer_set(infer, 0, data->dtype, rank, dims);
  return CLV_OK;
}

/* ---- Shape, Size --------------------------------------------------------------------------------------------------------- */

static int64_t clamp_axis(int64_t axis, int32_t rank) {
  if (axis < 0) axis += rank;
  return axis < 0 ? 0 : axis > rank ? rank : axis;
}

static clv_status infer_shape(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  if (data->rank < 0) {
    clv__infer_set_unknown(infer, 0, CLV_I64, 1);
    return CLV_OK;
  }
  int64_t start = clamp_axis(clv__attribute_int(infer->attributes, "start", 0), data->rank);
  int64_t end = clamp_axis(clv__attribute_int(infer->attributes, "end", data->rank), data->rank);
  int64_t count = end > start ? end - start : 0;
  clv__infer_set(infer, 0, CLV_I64, 1, &count);
  if (infer->output_content == NULL) return CLV_OK;
  infer->output_content->known = true;
  infer->output_content->count = (uint32_t)count;
  for (int64_t i = 0; i < count; ++i) infer->output_content->elements[i] = clv__element_from_dim(data->dims[start + i]);
  return CLV_OK;
}

static clv_status infer_size(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  clv__infer_set(infer, 0, CLV_I64, 0, NULL);
  if (data->rank < 0 || infer->output_content == NULL) return CLV_OK;
  int64_t product;
  CLV__TRY(clv__infer_product(infer, data->dims, data->rank, &product));
  infer->output_content->known = product != CLV_DIM_UNKNOWN;
  infer->output_content->count = 1;
  infer->output_content->elements[0] = clv__element_from_dim(product);
  return CLV_OK;
}

const clv__op clv__ops_view[] = {
    {"", "Reshape", 2, 2, 1, 1, CLV__OP_VIEW | CLV__OP_KEEPS_ZERO, infer_reshape, clv__work_none, clv__independent_reshape},
    {"", "Flatten", 1, 1, 1, 1, CLV__OP_VIEW | CLV__OP_KEEPS_ZERO, infer_flatten, clv__work_none, clv__independent_reshape},
    {"", "Squeeze", 1, 2, 1, 1, CLV__OP_VIEW | CLV__OP_KEEPS_ZERO, infer_squeeze, clv__work_none, clv__independent_reshape},
    {"", "Unsqueeze", 1, 2, 1, 1, CLV__OP_VIEW | CLV__OP_KEEPS_ZERO, infer_unsqueeze, clv__work_none, clv__independent_reshape},
    {"", "Identity", 1, 1, 1, 1, CLV__OP_VIEW | CLV__OP_KEEPS_ZERO, infer_identity, clv__work_none, clv__independent_first},
    {"", "Dropout", 1, 3, 1, 2, CLV__OP_VIEW | CLV__OP_KEEPS_ZERO, infer_dropout, clv__work_none, clv__independent_first},
    {"", "Shape", 1, 1, 1, 1, 0, infer_shape, clv__work_none, NULL},
    {"", "Size", 1, 1, 1, 1, 0, infer_size, clv__work_none, NULL},
    {.name = NULL},
};
