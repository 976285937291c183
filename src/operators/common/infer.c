/* Shared by the inference of several families: broadcasting, axes, contents of shape tensors. */
#include "operators/infer.h"

bool clv__dim_merge(int64_t a, int64_t b, int64_t *dim) {
  if (a >= 0 && b >= 0 && a != b) return false;
  /* A number is more specific than a symbol, a symbol more than unknown. Two different symbols may be equal: the first one is
   * kept. */
  if (a >= 0)
    *dim = a;
  else if (b >= 0)
    *dim = b;
  else
    *dim = a == CLV_DIM_UNKNOWN ? b : a;
  return true;
}

/* Broadcasts one more dim into `*dim`. False if the two dims do not broadcast. */
static bool broadcast_dim(int64_t *dim, int64_t other) {
  if (*dim == other || other == 1) return true;
  if (*dim == 1)
    *dim = other;
  else if (*dim >= 0 && other >= 0)
    return false;
  else if (*dim < 0 && other < 0)
    *dim = CLV_DIM_UNKNOWN;
  else if (*dim < 0)
    *dim = other; /* one dim is a number other than 1: the unknown one is equal to it or 1 */
  return true;
}

clv_status clv__infer_broadcast(clv__infer *infer, const clv_tensor *inputs, uint32_t count, clv_tensor *out) {
  int32_t rank = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (inputs[i].rank < 0) {
      out->rank = CLV_RANK_UNKNOWN;
      return CLV_OK;
    }
    if (inputs[i].rank > rank) rank = inputs[i].rank;
  }
  int64_t dims[CLV_MAX_RANK];
  for (int32_t axis = 0; axis < rank; ++axis) dims[axis] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    int32_t offset = rank - inputs[i].rank;
    for (int32_t axis = 0; axis < inputs[i].rank; ++axis) {
      if (broadcast_dim(&dims[offset + axis], inputs[i].dims[axis])) continue;
      char text[128], first[128];
      clv__infer_text(infer, &inputs[i], text, sizeof text);
      clv__infer_text(infer, &inputs[0], first, sizeof first);
      return clv__error_set(
          infer->error, CLV_INVALID_MODEL,
          "input %u, %s, does not broadcast with the inputs before it (input 0 is %s): dimensions %lld and %lld differ",
          (unsigned)i, text, first, (long long)inputs[i].dims[axis], (long long)dims[offset + axis]);
    }
  }
  out->rank = rank;
  for (int32_t axis = 0; axis < rank; ++axis) out->dims[axis] = dims[axis];
  return CLV_OK;
}

clv_status clv__infer_axis(clv__infer *infer, int64_t axis, int32_t rank, int32_t *out) {
  if (axis < -(int64_t)rank || axis >= rank) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %lld is out of range for rank %d", (long long)axis, (int)rank);
  }
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return CLV_OK;
}

bool clv__infer_elements(const clv__infer *infer, uint32_t input, clv__content *content) {
  content->known = false;
  content->count = 0;
  if (!clv__infer_has(infer, input)) return false;
  const clv_tensor *tensor = &infer->inputs[input];
  if (tensor->data == NULL) {
    const clv__content *known = infer->contents != NULL ? infer->contents[input] : NULL;
    if (known == NULL || !known->known) return false;
    *content = *known;
    return true;
  }
  size_t count;
  bool readable = tensor->dtype == CLV_I64 || tensor->dtype == CLV_I32 || tensor->dtype == CLV_BOOL;
  if (!readable || !clv__tensor_count(tensor, &count) || count > CLV__MAX_CONTENT) return false;
  content->known = true;
  content->count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    int64_t value = clv__tensor_get_int(tensor, i);
    /* Symbols use the lowest numbers. A model may contain such a number: a Slice uses INT64_MIN for "from the very start". It is
     * replaced by the lowest number that is not a symbol, which has the same effect. */
    content->elements[i] = clv__element_is_number(value) ? value : CLV__ELEMENT_LAST_SYMBOL + 1;
  }
  return true;
}

clv_status clv__infer_same(clv__infer *infer) {
  clv__infer_set(infer, 0, infer->inputs[0].dtype, infer->inputs[0].rank, infer->inputs[0].dims);
  return CLV_OK;
}

void clv__infer_set(clv__infer *infer, uint32_t output, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  if (output >= infer->output_count) return;
  clv_tensor *to = &infer->outputs[output];
  to->dtype = dtype;
  to->rank = rank;
  to->data = NULL;
  for (int32_t i = 0; i < rank; ++i) to->dims[i] = dims[i];
}
