/* MatMul and Gemm, and the matrix products of 8-bit integers. */
#include "operators/common/checks.h"
#include "operators/common/padding.h"
#include "operators/common/quantized.h"

static clv_status depth_merge(clv__infer *infer, int64_t a, int64_t b) {
  int64_t merged;
  if (clv__dim_merge(a, b, &merged)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "the inner dimensions differ: %lld and %lld", (long long)a,
                        (long long)b);
}

static clv_status matmul_infer(clv__infer *infer) {
  const clv_tensor *a = &infer->inputs[0], *b = &infer->inputs[1];
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  CLV__TRY(clv__check_rank(infer, 0, 1, CLV_MAX_RANK));
  CLV__TRY(clv__check_rank(infer, 1, 1, CLV_MAX_RANK));
  if (a->rank == CLV_RANK_UNKNOWN || b->rank == CLV_RANK_UNKNOWN) {
    clv__infer_set(infer, 0, a->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  CLV__TRY(depth_merge(infer, a->dims[a->rank - 1], b->dims[b->rank > 1 ? b->rank - 2 : 0]));
  clv_tensor batches[2] = {*a, *b}, out;
  for (int i = 0; i < 2; ++i) batches[i].rank = batches[i].rank > 2 ? batches[i].rank - 2 : 0;
  CLV__TRY(clv__infer_broadcast(infer, batches, 2, &out));
  if (a->rank > 1) out.dims[out.rank++] = a->dims[a->rank - 2];
  if (b->rank > 1) out.dims[out.rank++] = b->dims[b->rank - 1];
  clv__infer_set(infer, 0, a->dtype, out.rank, out.dims);
  return CLV_OK;
}

static void matmul_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *a = &infer->inputs[0];
  if (a->rank < 1) return;
  work->flops = 2 * clv__known_count(&infer->outputs[0]) * (double)a->dims[a->rank - 1];
}

static clv_status gemm_infer(clv__infer *infer) {
  const clv_tensor *a = &infer->inputs[0], *b = &infer->inputs[1];
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  CLV__TRY(clv__check_same_dtype(infer, 0, 2));
  CLV__TRY(clv__check_rank(infer, 0, 2, 2));
  CLV__TRY(clv__check_rank(infer, 1, 2, 2));
  int transpose_a = clv__attribute_int(infer->attributes, "transA", 0) != 0;
  int transpose_b = clv__attribute_int(infer->attributes, "transB", 0) != 0;
  clv_tensor out = clv__tensor_make(a->dtype, 2, (int64_t[]){CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN}, NULL);
  if (a->rank == 2) out.dims[0] = a->dims[transpose_a];
  if (b->rank == 2) out.dims[1] = b->dims[!transpose_b];
  if (a->rank == 2 && b->rank == 2) CLV__TRY(depth_merge(infer, a->dims[!transpose_a], b->dims[transpose_b]));
  CLV__TRY(clv__check_broadcasts_to(infer, 2, &out));
  clv__infer_set(infer, 0, a->dtype, 2, out.dims);
  return CLV_OK;
}

static void gemm_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *a = &infer->inputs[0], *y = &infer->outputs[0];
  if (a->rank != 2 || y->rank != 2) return;
  bool transpose_a = clv__attribute_int(infer->attributes, "transA", 0) != 0;
  work->flops = 2 * clv__known_count(y) * (double)a->dims[transpose_a ? 0 : 1];
  if (clv__infer_has(infer, 2)) work->flops += 2 * clv__known_count(y);
}

static clv_status integer_infer(clv__infer *infer) {
  const clv__quantized *at = clv__quantized_places(infer);
  CLV__TRY(clv__quantized_check(infer, at));
  return clv__quantized_infer(infer, at, matmul_infer);
}

/* ---- Independence along padded axes (common/padding.h) ---- */

static bool independent_matmul(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const clv_tensor *a = &node->inputs[0], *b = &node->inputs[1];
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(a->rank - 1))) return false;
  if (!clv__padding_avoids(padding, 1, clv__axis_bit(b->rank > 1 ? b->rank - 2 : 0))) return false;
  int32_t batches = 0, of_a = a->rank > 2 ? a->rank - 2 : 0, of_b = b->rank > 2 ? b->rank - 2 : 0;
  batches = of_a > of_b ? of_a : of_b;
  for (int32_t axis = 0; axis < batches; ++axis) {
    int32_t x = axis - (batches - of_a), y = axis - (batches - of_b);
    bool a_there = x >= 0 && a->dims[x] != 1, b_there = y >= 0 && b->dims[y] != 1;
    bool a_padded = a_there && (padding->inputs[0] >> x & 1u) != 0, b_padded = b_there && (padding->inputs[1] >> y & 1u) != 0;
    if (a_there && b_there && a_padded != b_padded)
      return clv__padding_no(padding, "its inputs do not have the same open size along batch axis %d", (int)axis);
    if (a_padded || b_padded) padding->outputs[0] |= clv__axis_bit(axis);
  }
  int32_t at = batches;
  if (a->rank > 1 && (padding->inputs[0] >> (a->rank - 2) & 1u) != 0) padding->outputs[0] |= clv__axis_bit(at);
  at += a->rank > 1;
  if (b->rank > 1 && (padding->inputs[1] >> (b->rank - 1) & 1u) != 0) padding->outputs[0] |= clv__axis_bit(at);
  return true;
}

static bool independent_gemm(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int rows = clv__attribute_int(node->attributes, "transA", 0) != 0,
      columns = clv__attribute_int(node->attributes, "transB", 0) == 0;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(!rows)) || !clv__padding_avoids(padding, 1, clv__axis_bit(!columns)))
    return false;
  if ((padding->inputs[0] >> rows & 1u) != 0) padding->outputs[0] |= 1u;
  if ((padding->inputs[1] >> columns & 1u) != 0) padding->outputs[0] |= 2u;
  const clv_tensor *c = clv__infer_has(node, 2) ? &node->inputs[2] : NULL;
  for (int32_t axis = 0; c != NULL && axis < 2; ++axis) { /* along each axis, C must be broadcast or padded like the product */
    int32_t own = axis - (2 - c->rank);
    if (own < 0 || c->dims[own] == 1) continue;
    if ((padding->inputs[2] >> own & 1u) != (padding->outputs[0] >> axis & 1u))
      return clv__padding_no(padding, "its input 2 does not have the same open size as the product along axis %d", (int)axis);
  }
  return true;
}

const clv__op clv__ops_matmul[] = {
    {"", "MatMul", 2, 2, 1, 1, 0, matmul_infer, matmul_work, independent_matmul},
    {"", "Gemm", 2, 3, 1, 1, 0, gemm_infer, gemm_work, independent_gemm},
    {"", "MatMulInteger", 2, 4, 1, 1, 0, integer_infer, matmul_work, NULL},
    {"", "QLinearMatMul", 8, 8, 1, 1, CLV__OP_ROUNDS, integer_infer, matmul_work, NULL},
    {.name = NULL},
};
