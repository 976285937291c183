/* Operators that create tensors from attributes, sizes or positions: Constant, ConstantOfShape, Range, EyeLike, Trilu, OneHot. */
#include <math.h>

#include "operators/common/dims.h"
#include "operators/common/padding.h"
#include "operators/infer.h"

static clv_status set_list(clv__infer *infer, clv_dtype dtype, const clv_attribute *attribute, bool is_list) {
  int64_t count = (int64_t)attribute->count;
  clv__infer_set(infer, 0, dtype, is_list ? 1 : 0, &count);
  if (is_list || count == 1) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute %s has %lld value%s; expected 1", attribute->name,
                        (long long)count, CLV__S(count));
}

static clv_status infer_constant(clv__infer *infer) {
  static const struct {
    const char *name;
    clv_attribute_kind kind;
    clv_dtype dtype;
    bool is_list;
  } forms[] = {
      {"value_int", CLV_ATTRIBUTE_INTS, CLV_I64, false},          {"value_ints", CLV_ATTRIBUTE_INTS, CLV_I64, true},
      {"value_float", CLV_ATTRIBUTE_FLOATS, CLV_F32, false},      {"value_floats", CLV_ATTRIBUTE_FLOATS, CLV_F32, true},
      {"value_string", CLV_ATTRIBUTE_STRINGS, CLV_STRING, false}, {"value_strings", CLV_ATTRIBUTE_STRINGS, CLV_STRING, true}};
  const clv_attribute *value = clv__attribute_find(infer->attributes, "value");
  if (value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR && value->tensor != NULL) {
    clv__infer_set(infer, 0, value->tensor->dtype, value->tensor->rank, value->tensor->dims);
    return CLV_OK;
  }
  for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) {
    const clv_attribute *attribute = clv__attribute_find(infer->attributes, forms[i].name);
    /* An empty list does not record its kind. */
    if (attribute == NULL || (attribute->kind != forms[i].kind && attribute->count > 0)) continue;
    return set_list(infer, forms[i].dtype, attribute, forms[i].is_list);
  }
  return clv__error_set(infer->error, CLV_NOT_SUPPORTED,
                        "none of the supported attributes is given: value, value_int(s), value_float(s), value_string(s)");
}

/* Sets the content of a small integer output, all of whose elements are equal to the one in `value`. */
static void constant_content(clv__infer *infer, const clv_tensor *value) {
  const clv_tensor *out = &infer->outputs[0];
  size_t count;
  if (infer->output_content == NULL || value == NULL || (value->dtype != CLV_I64 && value->dtype != CLV_I32)) return;
  if (out->rank > 1 || !clv__tensor_count(out, &count) || count > CLV__MAX_CONTENT) return;
  int64_t element = clv__tensor_get_int(value, 0);
  if (!clv__element_is_number(element)) return;
  infer->output_content->known = true;
  infer->output_content->count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) infer->output_content->elements[i] = element;
}

static clv_status infer_constant_of_shape(clv__infer *infer) {
  const clv_attribute *attribute = clv__attribute_find(infer->attributes, "value");
  const clv_tensor *value = attribute != NULL && attribute->kind == CLV_ATTRIBUTE_TENSOR ? attribute->tensor : NULL;
  const clv_tensor *shape = &infer->inputs[0];
  size_t count;
  if (value != NULL && (!clv__tensor_count(value, &count) || count != 1 || value->data == NULL)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute value must be a tensor with one element");
  }
  clv_dtype dtype = value != NULL ? value->dtype : CLV_F32;
  clv__content want;
  CLV__TRY(clv__infer_check_list(infer, 0));
  if (!clv__infer_elements(infer, 0, &want)) {
    int64_t rank = shape->rank == 1 && shape->dims[0] >= 0 ? shape->dims[0] : CLV_RANK_UNKNOWN;
    CLV__TRY(clv__infer_rank(infer, rank));
    clv__infer_set_unknown(infer, 0, dtype, (int32_t)rank);
    return CLV_OK;
  }
  CLV__TRY(clv__infer_rank(infer, want.count));
  int64_t dims[CLV_MAX_RANK];
  for (uint32_t i = 0; i < want.count; ++i) {
    if (clv__element_is_number(want.elements[i]) && want.elements[i] < 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "dimension %u is %lld, but must not be negative", i,
                            (long long)want.elements[i]);
    }
    dims[i] = clv__dim_from_element(want.elements[i]);
  }
  clv__infer_set(infer, 0, dtype, (int32_t)want.count, dims);
  constant_content(infer, value);
  return CLV_OK;
}

/* ---- Range --------------------------------------------------------------------------------------------------------------- */

static bool one_element(const clv_tensor *tensor) {
  size_t count;
  return tensor->data != NULL && clv__tensor_count(tensor, &count) && count == 1;
}

static clv_status range_length(clv__infer *infer, int64_t *length) {
  const clv_tensor *in = infer->inputs;
  bool integer = (CLV__DTYPE_BIT(in[0].dtype) & CLV__DTYPES_INTEGER) != 0;
  double steps;
  if (integer) {
    __int128 start = clv__tensor_get_int(&in[0], 0), limit = clv__tensor_get_int(&in[1], 0);
    __int128 delta = clv__tensor_get_int(&in[2], 0), distance = limit - start;
    if (delta == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the step is 0");
    if (delta < 0) {
      delta = -delta;
      distance = -distance;
    }
    __int128 count = distance <= 0 ? 0 : (distance + delta - 1) / delta;
    steps = (double)count;
    *length = count > INT64_MAX ? INT64_MAX : (int64_t)count;
  } else {
    double start = clv__tensor_get(&in[0], 0), limit = clv__tensor_get(&in[1], 0), delta = clv__tensor_get(&in[2], 0);
    double distance = in[0].dtype == CLV_F64 ? limit - start : (double)((float)limit - (float)start);
    if (delta == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the step is 0");
    steps = ceil(distance / delta);
    *length = steps > 0 && steps < 0x1p62 ? (int64_t)steps : 0;
  }
  if (!isfinite(steps) || steps >= 0x1p48) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "a range cannot have %g elements", steps);
  }
  return CLV_OK;
}

static clv_status infer_range(clv__infer *infer) {
  const clv_tensor *in = infer->inputs;
  int64_t length = CLV_DIM_UNKNOWN;
  clv__content start, limit, delta;
  if (in[1].dtype != in[0].dtype || in[2].dtype != in[0].dtype) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "start, limit and delta must have the same dtype, not %s, %s and %s",
                          clv_dtype_name(in[0].dtype), clv_dtype_name(in[1].dtype), clv_dtype_name(in[2].dtype));
  }
  for (uint32_t i = 0; i < 3; ++i) CLV__TRY(clv__infer_check_count(infer, i, 1));
  if (one_element(&in[0]) && one_element(&in[1]) && one_element(&in[2])) {
    CLV__TRY(range_length(infer, &length));
  } else if (clv__infer_elements(infer, 0, &start) && clv__infer_elements(infer, 1, &limit) &&
             clv__infer_elements(infer, 2, &delta) && start.count == 1 && limit.count == 1 && delta.count == 1 &&
             start.elements[0] == 0 && delta.elements[0] == 1) {
    length = clv__dim_from_element(limit.elements[0]);
  }
  clv__infer_set(infer, 0, in[0].dtype, 1, &length);
  return CLV_OK;
}

/* ---- EyeLike, Trilu, OneHot ---------------------------------------------------------------------------------------------- */

static clv_status infer_eye_like(clv__infer *infer) {
  const clv_tensor *like = &infer->inputs[0];
  if (like->rank >= 0 && like->rank != 2) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input has rank %d; expected 2", like->rank);
  }
  clv_dtype dtype = (clv_dtype)clv__attribute_int(infer->attributes, "dtype", like->dtype);
  if (clv_dtype_size_bytes(dtype) == 0) {
    return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "attribute dtype has the value %d, which is not supported",
                          (int)dtype);
  }
  if (like->rank < 0)
    clv__infer_set_unknown(infer, 0, dtype, 2);
  else
    clv__infer_set(infer, 0, dtype, like->rank, like->dims);
  return CLV_OK;
}

static clv_status infer_trilu(clv__infer *infer) {
  CLV__TRY(clv__infer_check_list(infer, 1));
  CLV__TRY(clv__infer_check_count(infer, 1, 1));
  if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank < 2) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input has rank %d; expected 2 or more", infer->inputs[0].rank);
  }
  return clv__infer_same(infer);
}

static clv_status infer_one_hot(clv__infer *infer) {
  const clv_tensor *indices = &infer->inputs[0], *depth = &infer->inputs[1], *values = &infer->inputs[2];
  CLV__TRY(clv__infer_check_count(infer, 1, 1));
  CLV__TRY(clv__infer_check_count(infer, 2, 2));
  clv__infer_set(infer, 0, values->dtype, CLV_RANK_UNKNOWN, NULL);
  if (indices->rank < 0) return CLV_OK;
  CLV__TRY(clv__infer_rank(infer, indices->rank + 1));
  int32_t axis;
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", -1), indices->rank + 1, &axis));
  int64_t size = CLV_DIM_UNKNOWN, dims[CLV_MAX_RANK];
  clv__content content;
  if (one_element(depth)) {
    size = clv__tensor_get_int(depth, 0);
    if (size < 0)
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "the depth is %lld, but must not be negative", (long long)size);
  } else if (clv__infer_elements(infer, 1, &content) && content.count == 1) {
    size = clv__dim_from_element(content.elements[0]);
  }
  for (int32_t d = 0, from = 0; d <= indices->rank; ++d) dims[d] = d == axis ? size : indices->dims[from++];
  clv__infer_set(infer, 0, values->dtype, indices->rank + 1, dims);
  return CLV_OK;
}

/* ---- Independence along padded axes (common/padding.h) ---- */

static bool independent_one_hot(clv__padding *padding) {
  int32_t axis, rank = padding->node->inputs[0].rank;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_attribute_axis(padding, -1, rank + 1, &axis)) return false;
  for (int32_t d = 0; d < rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) padding->outputs[0] |= clv__axis_bit(d < axis ? d : d + 1);
  }
  return true;
}

const clv__op clv__ops_generate[] = {
    {"", "Constant", 0, 0, 1, 1, 0, infer_constant, clv__work_none, NULL},
    {"", "ConstantOfShape", 1, 1, 1, 1, 0, infer_constant_of_shape, clv__work_none, NULL},
    {"", "Range", 3, 3, 1, 1, 0, infer_range, NULL, NULL},
    {"", "EyeLike", 1, 1, 1, 1, 0, infer_eye_like, clv__work_none, clv__independent_first},
    {"", "Trilu", 1, 2, 1, 1, CLV__OP_KEEPS_ZERO, infer_trilu, clv__work_none, clv__independent_first},
    {"", "OneHot", 3, 3, 1, 1, 0, infer_one_hot, clv__work_none, independent_one_hot},
    {.name = NULL},
};
