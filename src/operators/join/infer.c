/* Operators that concatenate, split, pad, expand and repeat tensors. */
#include "operators/join/infer.h"

#include "operators/common/dims.h"
#include "operators/join/rules.h"

/* ---- Concat -------------------------------------------------------------------------------------------------------------- */

static void concat_content(clv__infer *infer) {
  clv__content whole = {.known = true}, part;
  if (infer->output_content == NULL) return;
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    if (infer->inputs[i].rank != 1) return;
    if (clv__infer_vector(infer, i, &part)) {
    } else if (infer->inputs[i].dims[0] >= 0 && infer->inputs[i].dims[0] <= CLV__MAX_CONTENT) {
      part.count = (uint32_t)infer->inputs[i].dims[0]; /* an input of unknown content: only its own elements become unknown */
      for (uint32_t k = 0; k < part.count; ++k) part.elements[k] = CLV__ELEMENT_UNKNOWN;
    } else {
      return;
    }
    if (whole.count + part.count > CLV__MAX_CONTENT) return;
    for (uint32_t k = 0; k < part.count; ++k) whole.elements[whole.count++] = part.elements[k];
  }
  *infer->output_content = whole;
}

static clv_status infer_concat(clv__infer *infer) {
  const clv_tensor *first = NULL;
  int32_t axis;
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    const clv_tensor *input = &infer->inputs[i];
    if (input->dtype != infer->inputs[0].dtype) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s, but input 0 is %s", i, clv_dtype_name(input->dtype),
                            clv_dtype_name(infer->inputs[0].dtype));
    }
    if (input->rank < 0) continue;
    if (first == NULL) first = input;
    if (input->rank == first->rank) continue;
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "inputs have different ranks, %d and %d", first->rank, input->rank);
  }
  clv__infer_set(infer, 0, infer->inputs[0].dtype, CLV_RANK_UNKNOWN, NULL);
  if (first == NULL) return CLV_OK;
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 1), first->rank, &axis));
  clv_tensor out = *first;
  int64_t total = 0;
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    const clv_tensor *input = &infer->inputs[i];
    total = input->rank < 0 || total == CLV_DIM_UNKNOWN ? CLV_DIM_UNKNOWN : clv__dim_add(total, input->dims[axis]);
    for (int32_t d = 0; d < input->rank; ++d) {
      if (d == axis || clv__dim_merge(out.dims[d], input->dims[d], &out.dims[d])) continue;
      char want[96], have[96];
      clv__infer_text(infer, first, want, sizeof want);
      clv__infer_text(infer, input, have, sizeof have);
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s and %s cannot be joined along axis %d", want, have, axis);
    }
  }
  out.dims[axis] = total;
  clv__infer_set(infer, 0, out.dtype, out.rank, out.dims);
  concat_content(infer);
  return CLV_OK;
}

/* ---- Split --------------------------------------------------------------------------------------------------------------- */

static clv_status equal_parts(clv__infer *infer, int64_t dim, int64_t parts, int64_t *sizes) {
  int64_t chunk = dim < 0 ? CLV_DIM_UNKNOWN : (dim + parts - 1) / parts;
  if (dim >= 0 && infer->opset < 18 && dim % parts != 0) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld element%s cannot be split into %lld equal parts", (long long)dim,
                          CLV__S(dim), (long long)parts);
  }
  for (int64_t i = 0; i < parts; ++i) {
    int64_t left = dim - chunk * i;
    sizes[i] = dim < 0 ? CLV_DIM_UNKNOWN : left < 0 ? 0 : left < chunk ? left : chunk;
  }
  if (parts == 1) sizes[0] = dim;
  return CLV_OK;
}

/* Reads the sizes of the parts from the attribute or the input, which may list more than a clv__content has room for. False if
 * they are not known. */
static bool listed_parts(const clv__infer *infer, int64_t *sizes, size_t *count) {
  size_t listed;
  clv__content content;
  const int64_t *ints = infer->opset < 13 ? clv__attribute_ints(infer->attributes, "split", &listed) : NULL;
  const clv_tensor *input = clv__infer_has(infer, 1) ? &infer->inputs[1] : NULL;
  bool from_data = ints == NULL && input != NULL && input->data != NULL && clv__tensor_count(input, &listed);
  if (ints == NULL && !from_data) {
    if (!clv__infer_vector(infer, 1, &content)) return false;
    listed = content.count;
  }
  for (size_t i = 0; i < listed && i < infer->output_count; ++i) {
    int64_t element = ints != NULL ? ints[i] : from_data ? clv__tensor_get_int(input, i) : content.elements[i];
    /* Only an element of a clv__content may be a symbol. An element from another source is a plain number, and must not be
     * negative. */
    bool is_dim = ints == NULL && !from_data;
    sizes[i] = is_dim ? clv__dim_from_element(element) : element < 0 ? INT64_MIN : element;
  }
  *count = listed;
  return true;
}

static clv_status check_parts(clv__infer *infer, int64_t dim, const int64_t *sizes, size_t count) {
  int64_t total = 0;
  if (count != infer->output_count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the split lists %zu size%s, but the node has %u output%s", count,
                          CLV__S(count), infer->output_count, CLV__S(infer->output_count));
  }
  for (size_t i = 0; i < count; ++i) {
    if (dim >= 0 && sizes[i] > dim) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "part %zu has %lld element%s, but the axis has %lld", i,
                            (long long)sizes[i], CLV__S(sizes[i]), (long long)dim);
    }
    if (sizes[i] == INT64_MIN) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the size of part %zu is negative", i);
    total = total == CLV_DIM_UNKNOWN ? total : clv__dim_add(total, sizes[i]);
  }
  if (dim < 0 || total < 0 || total == dim) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "the parts have %lld element%s in total, but the axis has %lld",
                        (long long)total, CLV__S(total), (long long)dim);
}

static clv_status split_sizes(clv__infer *infer, int64_t dim, int64_t *sizes) {
  size_t count;
  CLV__TRY(clv__infer_check_list(infer, 1));
  const clv_attribute *split = infer->opset < 13 ? clv__attribute_find(infer->attributes, "split") : NULL;
  if (split != NULL && split->kind != CLV_ATTRIBUTE_INTS) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute split is not a list of integers");
  }
  bool given = split != NULL || clv__infer_has(infer, 1);
  int64_t parts = clv__attribute_int(infer->attributes, "num_outputs", infer->output_count);
  if (!given && infer->opset >= 18 && parts != infer->output_count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "num_outputs is %lld, but the node has %u output%s", (long long)parts,
                          infer->output_count, CLV__S(infer->output_count));
  }
  if (!given) return equal_parts(infer, dim, infer->output_count, sizes);
  if (listed_parts(infer, sizes, &count)) return check_parts(infer, dim, sizes, count);
  for (uint32_t i = 0; i < infer->output_count; ++i) sizes[i] = CLV_DIM_UNKNOWN;
  return CLV_OK;
}

static clv_status infer_split(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  int32_t axis;
  for (uint32_t i = 0; i < infer->output_count; ++i) clv__infer_set(infer, i, data->dtype, CLV_RANK_UNKNOWN, NULL);
  if (data->rank < 0) return CLV_OK;
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 0), data->rank, &axis));
  size_t size_bytes = infer->output_count * sizeof(int64_t);
  int64_t *sizes = clv__allocate_zero(infer->allocator, size_bytes);
  if (sizes == NULL) return clv__error_memory(infer->error, size_bytes);
  clv_status status = split_sizes(infer, data->dims[axis], sizes);
  for (uint32_t i = 0; status == CLV_OK && i < infer->output_count; ++i) {
    clv__infer_set(infer, i, data->dtype, data->rank, data->dims);
    infer->outputs[i].dims[axis] = sizes[i];
  }
  clv__release(infer->allocator, sizes);
  clv__content content;
  if (status == CLV_OK && data->rank == 1 && infer->output_content != NULL && clv__infer_vector(infer, 0, &content) &&
      infer->outputs[0].dims[0] >= 0 && infer->outputs[0].dims[0] <= content.count) {
    content.count = (uint32_t)infer->outputs[0].dims[0];
    *infer->output_content = content;
  }
  return status;
}

/* ---- Pad, Expand, Tile --------------------------------------------------------------------------------------------------- */

static clv_status pad_axis(clv__infer *infer, int32_t axis, int64_t before, int64_t after, bool fills, int64_t *dim) {
  int64_t total;
  if (!clv__element_is_number(before) || !clv__element_is_number(after)) {
    *dim = CLV_DIM_UNKNOWN;
    return CLV_OK;
  }
  if (__builtin_add_overflow(before, after, &total) || (*dim >= 0 && __builtin_add_overflow(*dim, total, &total)) ||
      (*dim >= 0 && total < 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "pads of %lld before and %lld after do not fit axis %d of size %lld",
                          (long long)before, (long long)after, axis, (long long)*dim);
  }
  if (*dim < 0) {
    if (total != 0) *dim = CLV_DIM_UNKNOWN;
    return CLV_OK;
  }
  int64_t left = *dim + (before < 0 ? before : 0) + (after < 0 ? after : 0);
  if (left < 0 || (fills && left == 0 && total > 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d of size %lld has no elements to pad with (pads %lld, %lld)",
                          axis, (long long)*dim, (long long)before, (long long)after);
  }
  *dim = total;
  return CLV_OK;
}

static clv_status infer_pad(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  bool given, axes_given = false;
  clv__content pads, axes = {.known = false};
  CLV__TRY(clv__infer_list(infer, infer->opset < 11 ? "pads" : NULL, 1, &given, &pads));
  if (infer->opset >= 18) CLV__TRY(clv__infer_list(infer, NULL, 3, &axes_given, &axes));
  if (!given) return clv__error_set(infer->error, CLV_INVALID_MODEL, "pads are not given");
  bool fills = !clv__attribute_is(infer->attributes, "mode", "constant", true);
  if (fills && !clv__attribute_is(infer->attributes, "mode", "reflect", false) &&
      !clv__attribute_is(infer->attributes, "mode", "edge", false) &&
      !clv__attribute_is(infer->attributes, "mode", "wrap", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute mode is not one of constant, reflect, edge, wrap");
  }
  clv__infer_set_unknown(infer, 0, data->dtype, data->rank);
  if (data->rank < 0 || (axes_given && !clv__content_is_numbers(&axes))) return CLV_OK;
  uint32_t count = axes_given ? axes.count : (uint32_t)data->rank;
  if (!pads.known) return CLV_OK;
  if (pads.count != 2 * count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%u pads; expected 2 x %u", pads.count, count);
  }
  bool padded[CLV_MAX_RANK] = {false};
  int64_t *dims = infer->outputs[0].dims;
  for (int32_t d = 0; d < data->rank; ++d) dims[d] = data->dims[d];
  for (uint32_t i = 0; i < count; ++i) {
    int32_t axis;
    CLV__TRY(clv__infer_axis(infer, axes_given ? axes.elements[i] : (int64_t)i, data->rank, &axis));
    if (padded[axis]) return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d is listed twice", axis);
    padded[axis] = true;
    CLV__TRY(pad_axis(infer, axis, pads.elements[i], pads.elements[count + i], fills, &dims[axis]));
  }
  return CLV_OK;
}

static clv_status infer_expand(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *shape = &infer->inputs[1];
  clv__content want;
  CLV__TRY(clv__infer_check_list(infer, 1));
  if (!clv__infer_elements(infer, 1, &want)) {
    int64_t length = shape->rank == 1 ? shape->dims[0] : -1;
    CLV__TRY(clv__infer_rank(infer, length));
    int64_t rank = data->rank < 0 || length < 0 ? CLV_RANK_UNKNOWN : length > data->rank ? length : data->rank;
    clv__infer_set_unknown(infer, 0, data->dtype, (int32_t)rank);
    return CLV_OK;
  }
  CLV__TRY(clv__infer_rank(infer, want.count));
  clv_tensor parts[2] = {*data, {.rank = (int32_t)want.count}}, out = {.rank = CLV_RANK_UNKNOWN};
  for (uint32_t i = 0; i < want.count; ++i) {
    if (clv__element_is_number(want.elements[i]) && want.elements[i] < 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "target dimension %u is %lld, but must not be negative", i,
                            (long long)want.elements[i]);
    }
    parts[1].dims[i] = clv__dim_from_element(want.elements[i]);
  }
  CLV__TRY(clv__infer_broadcast(infer, parts, 2, &out));
  clv__infer_set(infer, 0, data->dtype, out.rank, out.dims);
  clv__content content;
  if (infer->output_content != NULL && clv__infer_vector(infer, 0, &content) && content.count == 1 && out.rank == 1 &&
      out.dims[0] >= 0 && out.dims[0] <= CLV__MAX_CONTENT) {
    for (int64_t i = 1; i < out.dims[0]; ++i) content.elements[i] = content.elements[0];
    content.count = (uint32_t)out.dims[0];
    *infer->output_content = content;
  }
  return CLV_OK;
}

static clv_status infer_tile(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  clv__content repeats;
  CLV__TRY(clv__infer_check_list(infer, 1));
  bool known = clv__infer_elements(infer, 1, &repeats);
  int64_t dims[CLV_MAX_RANK];
  if (known && data->rank >= 0 && repeats.count != (uint32_t)data->rank) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "repeats has %u element%s, but the input has rank %d", repeats.count,
                          CLV__S(repeats.count), data->rank);
  }
  for (int32_t d = 0; d < data->rank; ++d) {
    if (known && clv__element_is_number(repeats.elements[d]) && repeats.elements[d] < 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d cannot be repeated %lld times", d,
                            (long long)repeats.elements[d]);
    }
    int64_t factors[2] = {data->dims[d], known ? clv__dim_from_element(repeats.elements[d]) : CLV_DIM_UNKNOWN};
    CLV__TRY(clv__infer_product(infer, factors, 2, &dims[d]));
  }
  clv__infer_set(infer, 0, data->dtype, data->rank, dims);
  return CLV_OK;
}

const clv__op clv__ops_join[] = {
    {"", "Concat", 1, CLV__ANY_COUNT, 1, 1, CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_concat, clv__work_none,
     clv__independent_concat},
    {"", "Split", 1, 2, 1, CLV__ANY_COUNT, CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_split, clv__work_none,
     clv__independent_split},
    {"", "Slice", 1, 5, 1, 1, CLV__OP_PICKS | CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, clv__infer_slice, clv__work_none,
     clv__independent_slice},
    {"", "Pad", 1, 4, 1, 1, 0, infer_pad, clv__work_none, clv__independent_pad},
    {"", "Expand", 2, 2, 1, 1, CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_expand, clv__work_none, clv__independent_expand},
    {"", "Tile", 2, 2, 1, 1, CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_tile, clv__work_none, clv__independent_tile},
    {.name = NULL},
};
