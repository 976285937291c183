/* See checks.h. */
#include "operators/common/checks.h"

clv_status clv__check_same_dtype(clv__infer *infer, uint32_t a, uint32_t b) {
  if (!clv__infer_has(infer, a) || !clv__infer_has(infer, b) || infer->inputs[a].dtype == infer->inputs[b].dtype) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s, but input %u is %s: they must have the same dtype",
                        (unsigned)a, clv_dtype_name(infer->inputs[a].dtype), (unsigned)b, clv_dtype_name(infer->inputs[b].dtype));
}

clv_status clv__check_rank(clv__infer *infer, uint32_t input, int32_t low, int32_t high) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  int32_t rank = infer->inputs[input].rank;
  if (rank == CLV_RANK_UNKNOWN || (rank >= low && rank <= high)) return CLV_OK;
  if (low == high) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u has rank %d; expected %d", (unsigned)input, (int)rank,
                          (int)low);
  }
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u has rank %d; expected %d to %d", (unsigned)input, (int)rank,
                        (int)low, (int)high);
}

clv_status clv__check_vector(clv__infer *infer, uint32_t input, int64_t size) {
  CLV__TRY(clv__check_rank(infer, input, 1, 1));
  if (!clv__infer_has(infer, input) || infer->inputs[input].rank != 1) return CLV_OK;
  int64_t own = infer->inputs[input].dims[0];
  if (own < 0 || size < 0 || own == size) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u has %lld element%s; expected %lld", (unsigned)input,
                        (long long)own, CLV__S(own), (long long)size);
}

clv_status clv__check_broadcasts_to(clv__infer *infer, uint32_t input, const clv_tensor *target) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  if (t->rank == CLV_RANK_UNKNOWN || target->rank == CLV_RANK_UNKNOWN) return CLV_OK;
  bool fits = t->rank <= target->rank;
  for (int32_t i = 0; fits && i < t->rank; ++i) {
    int64_t own = t->dims[i], wide = target->dims[target->rank - t->rank + i];
    fits = own < 0 || own == 1 || wide < 0 || own == wide;
  }
  if (fits) return CLV_OK;
  char text[128], wide_text[128];
  clv__infer_text(infer, t, text, sizeof text);
  clv__infer_text(infer, target, wide_text, sizeof wide_text);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u, %s, does not broadcast to %s", (unsigned)input, text,
                        wide_text);
}

clv_status clv__check_same_dim(clv__infer *infer, int64_t a, int64_t b, const char *what) {
  int64_t unused;
  if (clv__dim_merge(a, b, &unused)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s must be equal, but are %lld and %lld", what, (long long)a,
                        (long long)b);
}

double clv__known_count(const clv_tensor *tensor) {
  size_t count;
  return tensor->dtype != CLV_DTYPE_NONE && clv__tensor_count(tensor, &count) ? (double)count : 0;
}
