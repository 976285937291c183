/* MatMul and Gemm, and the matrix products of 8-bit integers. */
#include "operators/common/checks.h"
#include "operators/common/quantized.h"

static clv_status depth_merge(clv__infer *infer, int64_t a, int64_t b) {
  int64_t merged;
  if (clv__dim_merge(a, b, &merged)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "the inner dims are %lld and %lld", (long long)a, (long long)b);
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

const clv__op clv__ops_matmul[] = {
    {"", "MatMul", 2, 2, 1, 1, 0, matmul_infer, matmul_work},
    {"", "Gemm", 2, 3, 1, 1, 0, gemm_infer, gemm_work},
    {"", "MatMulInteger", 2, 4, 1, 1, 0, integer_infer, matmul_work},
    {"", "QLinearMatMul", 8, 8, 1, 1, 0, integer_infer, matmul_work},
    {0},
};
