/* Slice. Its parameters are attributes before opset 10, inputs from then on. The known elements of a shape tensor are sliced too.
 */
#include "operators/common/dims.h"
#include "operators/join/infer.h"

typedef struct range {
  int64_t start, step, count; /* `count` may be a symbol or unknown; `start` and `step` are valid only if it is a number */
} range;

/* Infers one axis of a slice. `dim` may be a symbol or unknown, and so may `start`, `end` and `step`, which are elements of a
 * clv__content. */
static range slice_axis(int64_t dim, int64_t start, int64_t end, int64_t step) {
  range whole = {0, 1, dim}, unknown = {0, 1, CLV_DIM_UNKNOWN};
  const int64_t far = INT32_MAX; /* ends of this size or more mean "to the end": exporters write INT32_MAX and INT64_MAX */
  if (!clv__element_is_number(step) || !clv__element_is_number(start)) return unknown;
  if (dim < 0) { /* a slice of the whole axis has the same symbol */
    if (step == 1 && start == 0 && dim != CLV_DIM_UNKNOWN && end == clv__element_from_dim(dim)) return whole;
    if (step == 1 && start == 0 && clv__element_is_number(end) && end >= far) return whole;
    if (step == -1 && clv__element_is_number(end) && (start == -1 || start >= far) && end <= -far) return whole;
    return unknown;
  }
  if (!clv__element_is_number(end)) return unknown;
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  range r = {.step = step};
  if (step > 0) {
    r.start = start < 0 ? 0 : start > dim ? dim : start;
    end = end < 0 ? 0 : end > dim ? dim : end;
    r.count = end > r.start ? (end - r.start - 1) / step + 1 : 0;
  } else {
    r.start = start < 0 ? -1 : start >= dim ? dim - 1 : start;
    end = end < 0 ? -1 : end >= dim ? dim - 1 : end;
    r.count = r.start > end ? (r.start - end - 1) / -(step == INT64_MIN ? step + 1 : step) + 1 : 0;
  }
  return r;
}

/* Slices the partly known contents of a vector. */
static void slice_content(clv__infer *infer, const range *r) {
  clv__content from, to = {.known = true};
  if (r->count < 0 || infer->output_content == NULL || !clv__infer_vector(infer, 0, &from)) return;
  for (int64_t i = 0; i < r->count; ++i) {
    int64_t at = r->start + i * r->step;
    if (at < 0 || at >= from.count) return;
    to.elements[to.count++] = from.elements[at];
  }
  *infer->output_content = to;
}

clv_status clv__infer_slice(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  bool old = infer->opset < 10, starts_given, ends_given, axes_given, steps_given;
  clv__content starts, ends, axes, steps;
  CLV__TRY(clv__infer_list(infer, old ? "starts" : NULL, 1, &starts_given, &starts));
  CLV__TRY(clv__infer_list(infer, old ? "ends" : NULL, 2, &ends_given, &ends));
  CLV__TRY(clv__infer_list(infer, old ? "axes" : NULL, 3, &axes_given, &axes));
  CLV__TRY(clv__infer_list(infer, NULL, 4, &steps_given, &steps));
  if (!starts_given || !ends_given) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "starts and ends must both be given");
  }
  clv__infer_set_unknown(infer, 0, data->dtype, data->rank);
  if (data->rank < 0 || (axes_given && !clv__content_is_numbers(&axes))) return CLV_OK;
  uint32_t count = axes_given ? axes.count : starts.known ? starts.count : ends.known ? ends.count : (uint32_t)data->rank;
  if ((starts.known && starts.count != count) || (ends.known && ends.count != count) || (steps.known && steps.count != count)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%u starts, %u ends, %u axes and %u steps: the counts must be equal",
                          starts.known ? starts.count : count, ends.known ? ends.count : count, axes_given ? axes.count : count,
                          steps.known ? steps.count : count);
  }
  bool sliced[CLV_MAX_RANK] = {false};
  int64_t *dims = infer->outputs[0].dims;
  for (int32_t d = 0; d < data->rank; ++d) dims[d] = data->dims[d];
  range last = {0, 1, data->rank > 0 ? data->dims[0] : 0};
  for (uint32_t i = 0; i < count; ++i) {
    int32_t axis;
    CLV__TRY(clv__infer_axis(infer, axes_given ? axes.elements[i] : (int64_t)i, data->rank, &axis));
    if (sliced[axis]) return clv__error_set(infer->error, CLV_INVALID_MODEL, "axis %d is listed twice", axis);
    sliced[axis] = true;
    int64_t step = !steps_given ? 1 : steps.known ? steps.elements[i] : CLV__ELEMENT_UNKNOWN;
    if (step == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the step along axis %d is 0", axis);
    last = slice_axis(data->dims[axis], starts.known ? starts.elements[i] : CLV__ELEMENT_UNKNOWN,
                      ends.known ? ends.elements[i] : CLV__ELEMENT_UNKNOWN, step);
    dims[axis] = last.count;
  }
  if (data->rank == 1) slice_content(infer, &last);
  return CLV_OK;
}
