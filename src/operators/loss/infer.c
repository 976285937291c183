/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: one loss per target, or one for all of them. */
#include "operators/infer.h"
#include "operators/common/checks.h"

static clv_status check_target(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *target = &infer->inputs[1];
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  CLV__TRY(clv__check_same_dtype(infer, 0, 2));
  CLV__TRY(clv__check_vector(infer, 2, x->rank >= 2 ? x->dims[1] : CLV_DIM_UNKNOWN));
  if (target->dtype != CLV_DTYPE_NONE && target->dtype != CLV_I32 && target->dtype != CLV_I64) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "targets must be i32 or i64, not %s", clv_dtype_name(target->dtype));
  }
  if (x->rank < 0 || target->rank < 0) return CLV_OK;
  if (target->rank != x->rank - 1) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "targets have rank %d and scores rank %d; the rank of scores must be greater by one", (int)target->rank,
                          (int)x->rank);
  }
  for (int32_t i = 0; i < target->rank; ++i) {
    int64_t unused, wanted = x->dims[i == 0 ? 0 : i + 1];
    if (!clv__dim_merge(target->dims[i], wanted, &unused)) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "dimension %d of the targets is %lld, but the corresponding dimension of the scores is %lld", (int)i,
                            (long long)target->dims[i], (long long)wanted);
    }
  }
  return CLV_OK;
}

static clv_status infer_loss(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *target = &infer->inputs[1];
  const bool none = clv__attribute_is(infer->attributes, "reduction", "none", false);
  CLV__TRY(check_target(infer));
  if (!none && !clv__attribute_is(infer->attributes, "reduction", "sum", false) &&
      !clv__attribute_is(infer->attributes, "reduction", "mean", true)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute reduction is not one of none, sum, mean");
  }
  if (!none) {
    clv__infer_set(infer, 0, x->dtype, 0, NULL);
  } else if (target->rank >= 0 || x->rank < 0) {
    clv__infer_set(infer, 0, x->dtype, target->rank, target->dims);
  } else {
    int64_t dims[CLV_MAX_RANK] = {x->dims[0]};
    for (int32_t i = 2; i < x->rank; ++i) dims[i - 1] = x->dims[i];
    clv__infer_set(infer, 0, x->dtype, x->rank - 1, dims);
  }
  if (infer->output_count > 1) clv__infer_set(infer, 1, x->dtype, x->rank, x->dims);
  return CLV_OK;
}

static void work_likelihood(const clv__infer *infer, clv__work *work) {
  work->flops = 3 * clv__known_count(&infer->inputs[1]);
}

/* Counts 15 FLOPs per score, mostly for an exponential. */
static void work_entropy(const clv__infer *infer, clv__work *work) {
  work->flops = 15 * clv__known_count(&infer->inputs[0]);
}

const clv__op clv__ops_loss[] = {
    {"", "NegativeLogLikelihoodLoss", 2, 3, 1, 1, 0, infer_loss, work_likelihood, NULL},
    {"", "SoftmaxCrossEntropyLoss", 2, 3, 1, 2, 0, infer_loss, work_entropy, NULL},
    {.name = NULL},
};
