/* RotaryEmbedding: rotates pairs of a head's columns by angles. The angles come from a table indexed by position, or each token
 * has its own. */
#include "operators/attention/infer.h"
#include "operators/common/checks.h"

static clv_status check_angles(clv__infer *infer, uint32_t input, int64_t batch, int64_t length, int64_t half) {
  const bool by_position = clv__infer_has(infer, 3);
  const clv_tensor *t = &infer->inputs[input];
  CLV__TRY(clv__check_same_dtype(infer, 0, input));
  CLV__TRY(clv__check_rank(infer, input, by_position ? 2 : 3, by_position ? 2 : 3));
  if (t->rank < 0) return CLV_OK;
  if (!by_position) {
    CLV__TRY(clv__check_same_dim(infer, batch, t->dims[0], "the batch sizes of X and cos_cache (or sin_cache)"));
    CLV__TRY(clv__check_same_dim(infer, length, t->dims[1], "the lengths of X and cos_cache (or sin_cache)"));
  }
  return clv__check_same_dim(infer, half, t->dims[t->rank - 1],
                             "half the number of rotated columns, and the number of columns of cos_cache (or sin_cache),");
}

clv_status clv__infer_rotary(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int64_t batch = CLV_DIM_UNKNOWN, length = CLV_DIM_UNKNOWN, size = CLV_DIM_UNKNOWN;
  CLV__TRY(clv__check_rank(infer, 0, 3, 4));
  if (x->rank == 4) {
    batch = x->dims[0], length = x->dims[2], size = x->dims[3];
  } else if (x->rank == 3) {
    const int64_t heads = clv__attribute_int(infer->attributes, "num_heads", 0);
    if (heads <= 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "attribute num_heads must be given and above 0 for an input of rank 3");
    }
    batch = x->dims[0], length = x->dims[1];
    CLV__TRY(clv__attention_head_size(infer, 0, x->dims[2], heads, &size));
  }
  const int64_t rotated = clv__attribute_int(infer->attributes, "rotary_embedding_dim", 0);
  const int64_t count = rotated != 0 ? rotated : size;
  if (rotated < 0 || (size < 0 && count >= 0 && count % 2 != 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute rotary_embedding_dim is %lld; expected an even number",
                          (long long)rotated);
  }
  if (size >= 0 && (count % 2 != 0 || count > size)) {
    return clv__error_set(
        infer->error, CLV_INVALID_MODEL,
        "cannot rotate %lld of the %lld columns of a head: the first number must be even, and at most the second",
        (long long)count, (long long)size);
  }
  for (uint32_t i = 1; i <= 2; ++i) CLV__TRY(check_angles(infer, i, batch, length, count >= 0 ? count / 2 : CLV_DIM_UNKNOWN));
  if (infer->inputs[1].rank > 0 && infer->inputs[2].rank > 0) {
    CLV__TRY(clv__check_same_dim(infer, infer->inputs[1].dims[0], infer->inputs[2].dims[0],
                                 "the numbers of rows of cos_cache and sin_cache"));
  }
  if (clv__infer_has(infer, 3)) {
    const clv_tensor *positions = &infer->inputs[3];
    CLV__TRY(clv__check_rank(infer, 3, 2, 2));
    if (positions->rank == 2) {
      CLV__TRY(clv__check_same_dim(infer, batch, positions->dims[0], "the batch sizes of X and position_ids"));
      CLV__TRY(clv__check_same_dim(infer, length, positions->dims[1], "the lengths of X and position_ids"));
    }
    if (positions->dtype != CLV_I64) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "position_ids are %s; expected i64",
                            clv_dtype_name(positions->dtype));
    }
  }
  return clv__infer_same(infer);
}

void clv__work_rotary(const clv__infer *infer, clv__work *work) {
  work->flops = 3 * clv__known_count(&infer->inputs[0]);
}
