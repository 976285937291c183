/* Det: the output has the dims of the input without the two axes of the matrices. */
#include "operators/common/checks.h"

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

const clv__op clv__ops_linalg[] = {
    {"", "Det", 1, 1, 1, 1, 0, infer_det, work_det, NULL},
    {.name = NULL},
};
