/* Operators that reorder elements: Transpose, DepthToSpace, SpaceToDepth. */
#include "operators/infer.h"
#include "operators/common/dims.h"
#include "operators/common/padding.h"

static clv_status infer_transpose(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  size_t count;
  const int64_t *perm = clv__attribute_ints(infer->attributes, "perm", &count);
  int32_t rank = data->rank >= 0 || perm == NULL ? data->rank : count <= CLV_MAX_RANK ? (int32_t)count : CLV_RANK_UNKNOWN;
  if (rank >= 0 && perm != NULL && count != (size_t)rank) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute perm has %zu entries, but the input has rank %d", count,
                          rank);
  }
  int64_t dims[CLV_MAX_RANK];
  bool used[CLV_MAX_RANK] = {false};
  for (int32_t i = 0; i < rank; ++i) {
    int64_t from = perm != NULL ? perm[i] : rank - 1 - i;
    if (from < 0 || from >= rank || used[from]) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute perm is not a permutation: entry %d is %lld for rank %d",
                            i, (long long)from, rank);
    }
    used[from] = true;
    dims[i] = data->rank >= 0 ? data->dims[from] : CLV_DIM_UNKNOWN;
  }
  clv__infer_set(infer, 0, data->dtype, rank, dims);
  if (rank == 0 || rank == 1) clv__infer_pass_content(infer);
  return CLV_OK;
}

/* Checks that the input can be an image of rank 4 (batch, channels, height, width). Sets *block to attribute blocksize. */
static clv_status check_image(clv__infer *infer, int64_t *block) {
  const clv_tensor *data = &infer->inputs[0];
  *block = clv__attribute_int(infer->attributes, "blocksize", 0);
  if (*block < 1 || *block > 65535) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute blocksize is %lld; expected 1 to 65535", (long long)*block);
  }
  if (data->rank >= 0 && data->rank != 4) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input has rank %d; expected 4", data->rank);
  }
  return CLV_OK;
}

static clv_status grow(clv__infer *infer, int64_t dim, int64_t factor, int64_t *result) {
  int64_t factors[2] = {dim, factor};
  return clv__infer_product(infer, factors, 2, result);
}

static clv_status shrink(clv__infer *infer, const char *what, int64_t dim, int64_t divisor, int64_t *result) {
  if (clv__dims_quotient(&dim, 1, &divisor, 1, result)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "the input's %s is %lld; expected a multiple of %lld", what,
                        (long long)dim, (long long)divisor);
}

static clv_status infer_depth_to_space(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  int64_t block, dims[4] = {CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN};
  CLV__TRY(check_image(infer, &block));
  if (data->rank == 4) {
    dims[0] = data->dims[0];
    CLV__TRY(shrink(infer, "depth", data->dims[1], block * block, &dims[1]));
    CLV__TRY(grow(infer, data->dims[2], block, &dims[2]));
    CLV__TRY(grow(infer, data->dims[3], block, &dims[3]));
  }
  clv__infer_set(infer, 0, data->dtype, 4, dims);
  return CLV_OK;
}

static clv_status infer_space_to_depth(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  int64_t block, dims[4] = {CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN};
  CLV__TRY(check_image(infer, &block));
  if (data->rank == 4) {
    dims[0] = data->dims[0];
    CLV__TRY(grow(infer, data->dims[1], block * block, &dims[1]));
    CLV__TRY(shrink(infer, "height", data->dims[2], block, &dims[2]));
    CLV__TRY(shrink(infer, "width", data->dims[3], block, &dims[3]));
  }
  clv__infer_set(infer, 0, data->dtype, 4, dims);
  return CLV_OK;
}

/* ---- Independence along padded axes (common/padding.h) ---- */

static bool independent_transpose(clv__padding *padding) {
  size_t count;
  int32_t rank = padding->node->inputs[0].rank;
  const int64_t *perm = clv__attribute_ints(padding->node->attributes, "perm", &count);
  for (int32_t to = 0; to < rank; ++to) {
    int64_t from = perm != NULL && (size_t)to < count ? perm[to] : rank - 1 - to;
    if (from >= 0 && from < rank && (padding->inputs[0] >> from & 1u) != 0) padding->outputs[0] |= clv__axis_bit(to);
  }
  return true;
}

const clv__op clv__ops_layout[] = {
    {"", "Transpose", 1, 1, 1, 1, CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_transpose, clv__work_none,
     independent_transpose},
    {"", "DepthToSpace", 1, 1, 1, 1, CLV__OP_KEEPS_STEPS, infer_depth_to_space, clv__work_none, clv__independent_batch},
    {"", "SpaceToDepth", 1, 1, 1, 1, 0, infer_space_to_depth, clv__work_none, clv__independent_batch},
    {.name = NULL},
};
