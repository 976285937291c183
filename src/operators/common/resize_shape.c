/* The shapes of Resize; see resize.h. */
#include "operators/common/resize.h"

clv_status clv__resize_axes_read(clv__attributes attributes, int32_t rank, clv__resize_axes *axes, clv_error *error) {
  size_t count;
  const int64_t *given = clv__attribute_ints(attributes, "axes", &count);
  bool seen[CLV_MAX_RANK] = {false};
  if (given == NULL || count == 0) {
    axes->count = rank;
    for (int32_t i = 0; i < rank; ++i) axes->axes[i] = i;
    return CLV_OK;
  }
  if (count > (size_t)rank) {
    return clv__error_set(error, CLV_INVALID_MODEL, "axes has %zu element%s, but the input has rank %d", count, CLV__S(count),
                          (int)rank);
  }
  axes->count = (int32_t)count;
  for (size_t i = 0; i < count; ++i) {
    int64_t at = given[i] < 0 ? given[i] + rank : given[i];
    if (at < 0 || at >= rank || seen[at]) {
      return clv__error_set(error, CLV_INVALID_MODEL, "axes[%zu] is %lld, which is out of range for rank %d, or repeated", i,
                            (long long)given[i], (int)rank);
    }
    seen[at] = true;
    axes->axes[i] = (int32_t)at;
  }
  return CLV_OK;
}

void clv__resize_inputs(const char *op, int32_t opset, uint32_t *scales, uint32_t *sizes) {
  *sizes = UINT32_MAX;
  *scales = 1;
  if (strcmp(op, "Upsample") == 0) {
    if (opset < 9) *scales = UINT32_MAX;
  } else if (opset >= 11) {
    *scales = 2;
    *sizes = 3;
  }
}

bool clv__resize_shared_scale(clv__attributes attributes, const clv__resize_axes *axes, const int64_t *sizes, const int64_t *dims,
                              double *scale) {
  bool smallest = clv__attribute_is(attributes, "keep_aspect_ratio_policy", "not_larger", false);
  if (!smallest && !clv__attribute_is(attributes, "keep_aspect_ratio_policy", "not_smaller", false)) return false;
  for (int32_t i = 0; i < axes->count; ++i) {
    double ratio = (double)sizes[i] / (double)dims[axes->axes[i]];
    if (i == 0 || (smallest ? ratio < *scale : ratio > *scale)) *scale = ratio;
  }
  return true;
}
