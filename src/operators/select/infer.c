/* Operators that select or reorder elements: NonZero, TopK, Compress, Unique, ReverseSequence. */
#include <math.h>

#include "operators/common/dims.h"
#include "operators/common/padding.h"
#include "operators/infer.h"
#include "operators/select/unique.h"

static clv_status infer_nonzero(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  int64_t dims[2] = {data->rank < 0 ? CLV_DIM_UNKNOWN : data->rank, CLV_DIM_UNKNOWN};
  size_t count;
  if (data->data != NULL && clv__tensor_count(data, &count)) {
    dims[1] = 0;
    for (size_t i = 0; i < count; ++i) dims[1] += clv__tensor_get(data, i) != 0;
  }
  clv__infer_set(infer, 0, CLV_I64, 2, dims);
  return CLV_OK;
}

static clv_status infer_topk(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  clv__content content;
  int64_t k = CLV__ELEMENT_UNKNOWN;
  if (infer->opset < 10) {
    k = clv__attribute_int(infer->attributes, "k", -1);
  } else if (!clv__infer_has(infer, 1)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "k is not given");
  } else if (clv__infer_check_list(infer, 1) != CLV_OK || clv__infer_check_count(infer, 1, 1) != CLV_OK) {
    return CLV_INVALID_MODEL;
  } else if (clv__infer_vector(infer, 1, &content) && content.count == 1) {
    k = content.elements[0];
  }
  if (clv__element_is_number(k) && k < 0)
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "k is %lld, but must not be negative", (long long)k);
  clv__infer_set(infer, 0, data->dtype, data->rank, data->dims);
  clv__infer_set(infer, 1, CLV_I64, data->rank, data->dims);
  if (data->rank < 0) return CLV_OK;
  int32_t axis;
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", -1), data->rank, &axis));
  int64_t dim = clv__dim_from_element(k);
  if (data->dims[axis] >= 0 && dim > data->dims[axis]) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "k is %lld, but axis %d has size %lld", (long long)dim, axis,
                          (long long)data->dims[axis]);
  }
  for (uint32_t i = 0; i < infer->output_count && i < 2; ++i) infer->outputs[i].dims[axis] = dim;
  return CLV_OK;
}

static void work_topk(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (infer->inputs[0].rank < 1 || !clv__tensor_count(&infer->inputs[0], &count)) return;
  int64_t axis = clv__attribute_int(infer->attributes, "axis", -1);
  if (axis < 0) axis += infer->inputs[0].rank;
  double length = axis >= 0 && axis < infer->inputs[0].rank ? (double)infer->inputs[0].dims[axis] : 1;
  work->flops = (double)count * (length > 2 ? log2(length) : 1);
}

static clv_status infer_compress(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *condition = &infer->inputs[1];
  bool flat = clv__attribute_find(infer->attributes, "axis") == NULL;
  if (condition->dtype != CLV_BOOL || (condition->rank >= 0 && condition->rank != 1)) {
    char text[96];
    clv__infer_text(infer, condition, text, sizeof text);
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the condition is %s; expected a vector of bools", text);
  }
  clv__infer_set_unknown(infer, 0, data->dtype, flat ? 1 : data->rank);
  if (data->rank < 0) return CLV_OK;
  int32_t axis = 0;
  int64_t available;
  if (flat) {
    CLV__TRY(clv__infer_product(infer, data->dims, data->rank, &available));
  } else {
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 0), data->rank, &axis));
    available = data->dims[axis];
    clv__infer_set(infer, 0, data->dtype, data->rank, data->dims);
    infer->outputs[0].dims[axis] = CLV_DIM_UNKNOWN;
  }
  if (condition->data == NULL || available < 0) return CLV_OK;
  int64_t chosen = 0;
  for (int64_t i = 0; i < condition->dims[0]; ++i) {
    if (((const uint8_t *)condition->data)[i] == 0) continue;
    if (i >= available) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "the condition selects element %lld, but there are only %lld",
                            (long long)i, (long long)available);
    }
    chosen++;
  }
  infer->outputs[0].dims[axis] = chosen;
  return CLV_OK;
}

static clv_status infer_unique(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  bool flat = clv__attribute_find(infer->attributes, "axis") == NULL;
  int32_t axis = 0;
  int64_t distinct = CLV_DIM_UNKNOWN, length = CLV_DIM_UNKNOWN;
  clv__infer_set_unknown(infer, 0, data->dtype, flat ? 1 : data->rank);
  for (uint32_t i = 1; i < infer->output_count; ++i) clv__infer_set_unknown(infer, i, CLV_I64, 1);
  if (data->rank < 0) return CLV_OK;
  if (flat) {
    CLV__TRY(clv__infer_product(infer, data->dims, data->rank, &length));
  } else {
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 0), data->rank, &axis));
    length = data->dims[axis];
    clv__infer_set(infer, 0, data->dtype, data->rank, data->dims);
  }
  if (data->data != NULL && clv__tensor_is_static(data)) {
    size_t size_bytes;
    if (!clv__multiply((size_t)length, 2 * sizeof(int64_t), &size_bytes)) return clv__error_memory(infer->error, SIZE_MAX);
    int64_t *order = clv__allocate(infer->allocator, size_bytes);
    if (order == NULL) return clv__error_memory(infer->error, size_bytes);
    distinct = clv__unique_sort(data, flat ? -1 : axis, order, order + length, NULL);
    clv__release(infer->allocator, order);
  }
  infer->outputs[0].dims[axis] = distinct;
  if (infer->output_count > 1) infer->outputs[1].dims[0] = distinct;
  if (infer->output_count > 2) infer->outputs[2].dims[0] = length;
  if (infer->output_count > 3) infer->outputs[3].dims[0] = distinct;
  return CLV_OK;
}

static clv_status infer_reverse_sequence(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *lengths = &infer->inputs[1];
  int64_t batch = clv__attribute_int(infer->attributes, "batch_axis", 1);
  int64_t time = clv__attribute_int(infer->attributes, "time_axis", 0);
  if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "batch_axis %lld and time_axis %lld must be 0 and 1, in any order",
                          (long long)batch, (long long)time);
  }
  if (data->rank >= 0 && data->rank < 2) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input has rank %d; expected 2 or more", data->rank);
  }
  int64_t merged;
  if ((lengths->rank >= 0 && lengths->rank != 1) ||
      (lengths->rank == 1 && data->rank >= 0 && !clv__dim_merge(lengths->dims[0], data->dims[batch], &merged))) {
    char text[96];
    clv__infer_text(infer, lengths, text, sizeof text);
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "sequence_lens is %s; expected a vector with one length per sequence of the batch", text);
  }
  return clv__infer_same(infer);
}

static bool independent_topk(clv__padding *padding) {
  return clv__padding_whole_from(padding, 1) && clv__independent_lines(padding);
}

const clv__op clv__ops_select[] = {
    {"", "NonZero", 1, 1, 1, 1, 0, infer_nonzero, NULL, NULL},
    {"", "TopK", 1, 2, 1, 2, 0, infer_topk, work_topk, independent_topk},
    {"", "Compress", 2, 2, 1, 1, 0, infer_compress, clv__work_none, NULL},
    {"", "Unique", 1, 1, 1, 4, 0, infer_unique, work_topk, NULL},
    {"", "ReverseSequence", 2, 2, 1, 1, 0, infer_reverse_sequence, clv__work_none, NULL},
    {.name = NULL},
};
