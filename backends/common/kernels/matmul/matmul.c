/* MatMul, with numpy's broadcasting, and Gemm. */
#include "backends/common/kernels/families.h"
#include "backends/common/kernels/matmul/product.h"
#include "operators/common/rows.h"
#include "operators/run.h"

static void table_fill(int64_t *table, int64_t count, int64_t step) {
  for (int64_t i = 0; i < count; ++i) table[i] = i * step;
}

/* Fills `table` with the offset of an operand's matrix for each of the `count` matrices of the result. `batch` has the result's
 * `rank` batch dims. The operand has `own` batch dims, of which those of size 1 are broadcast. A matrix has `matrix` elements. */
static void table_fill_batches(int64_t *table, int64_t count, const clv_tensor *tensor, int32_t own, const int64_t *batch,
                               int32_t rank, int64_t matrix) {
  int64_t steps[CLV_MAX_RANK] = {0}, index[CLV_MAX_RANK] = {0}, step = matrix, offset = 0;
  for (int32_t i = own - 1; i >= 0; --i) {
    steps[rank - own + i] = tensor->dims[i] == 1 ? 0 : step;
    step *= tensor->dims[i];
  }
  for (int64_t n = 0; n < count; ++n) {
    table[n] = offset;
    for (int32_t i = rank - 1; i >= 0; --i) {
      offset += steps[i];
      if (++index[i] < batch[i]) break;
      offset -= steps[i] * batch[i];
      index[i] = 0;
    }
  }
}

static clv__product matmul_product(const clv__kernel_call *call, int64_t *batch, int32_t *batch_rank) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1];
  clv__product p = {.stop = call->stop,
                    .a_dtype = a->dtype,
                    .b_dtype = b->dtype,
                    .c_dtype = a->dtype,
                    .a = a->data,
                    .b = b->data,
                    .alpha = 1,
                    .beta = 1,
                    .batches = 1};
  p.rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  p.depth = a->dims[a->rank - 1];
  p.columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  int32_t a_lead = a->rank > 2 ? a->rank - 2 : 0, b_lead = b->rank > 2 ? b->rank - 2 : 0;
  *batch_rank = a_lead > b_lead ? a_lead : b_lead;
  for (int32_t i = 0; i < *batch_rank; ++i) {
    int32_t ai = i - (*batch_rank - a_lead), bi = i - (*batch_rank - b_lead);
    int64_t left = ai >= 0 ? a->dims[ai] : 1, right = bi >= 0 ? b->dims[bi] : 1;
    batch[i] = left == 1 ? right : left;
    p.batches *= batch[i];
  }
  /* If one right-hand matrix serves the whole batch, the left-hand matrices of the batch form one tall matrix. */
  if (p.batches > 0 && b_lead == 0 && a->rank > 2) {
    p.rows *= p.batches;
    p.batches = 1;
    *batch_rank = 0;
  }
  return p;
}

static clv_status matmul_run(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1];
  int64_t batch[CLV_MAX_RANK];
  int32_t rank;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  clv__product p = matmul_product(call, batch, &rank);
  p.c = call->outputs[0].data;
  clv__product_bind(&p, call->scratch);
  if (rank == 0) {
    p.a_batch[0] = p.b_batch[0] = 0;
  } else {
    table_fill_batches(p.a_batch, p.batches, a, a->rank > 2 ? a->rank - 2 : 0, batch, rank, p.rows * p.depth);
    table_fill_batches(p.b_batch, p.batches, b, b->rank > 2 ? b->rank - 2 : 0, batch, rank, p.columns * p.depth);
  }
  table_fill(p.c_batch, p.batches, p.rows * p.columns);
  table_fill(p.a_row, p.rows, p.depth);
  table_fill(p.c_row, p.rows, p.columns);
  table_fill(p.a_depth, p.depth, 1);
  table_fill(p.b_depth, p.depth, p.columns);
  table_fill(p.b_column, p.columns, 1);
  table_fill(p.c_column, p.columns, 1);
  clv__product_run(&p);
  return CLV_OK;
}

static size_t matmul_scratch_bytes(const clv__kernel_call *call) {
  int64_t batch[CLV_MAX_RANK];
  int32_t rank;
  if (clv__tensor_is_empty(&call->outputs[0])) return 0;
  clv__product p = matmul_product(call, batch, &rank);
  return clv__product_scratch_bytes(&p);
}

static clv__product gemm_product(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1];
  bool transpose_a = clv__attribute_int(call->attributes, "transA", 0) != 0;
  bool transpose_b = clv__attribute_int(call->attributes, "transB", 0) != 0;
  return (clv__product){.stop = call->stop,
                        .a_dtype = a->dtype,
                        .b_dtype = b->dtype,
                        .c_dtype = a->dtype,
                        .a = a->data,
                        .b = b->data,
                        .batches = 1,
                        .rows = a->dims[transpose_a ? 1 : 0],
                        .depth = a->dims[transpose_a ? 0 : 1],
                        .columns = b->dims[transpose_b ? 0 : 1]};
}

static clv_status gemm_run(const clv__kernel_call *call) {
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  clv__product p = gemm_product(call);
  bool transpose_a = clv__attribute_int(call->attributes, "transA", 0) != 0;
  bool transpose_b = clv__attribute_int(call->attributes, "transB", 0) != 0;
  p.alpha = clv__attribute_float(call->attributes, "alpha", 1.0f);
  p.beta = clv__attribute_float(call->attributes, "beta", 1.0f);
  p.c = call->outputs[0].data;
  if (call->input_count > 2 && call->inputs[2].dtype != CLV_DTYPE_NONE && p.beta != 0.0f) {
    const clv_tensor *c = &call->inputs[2];
    int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1, rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    p.addend = c->data;
    p.addend_column = columns == 1 ? 0 : 1;
    p.addend_row = rows == 1 ? 0 : columns;
  }
  clv__product_bind(&p, call->scratch);
  p.a_batch[0] = p.b_batch[0] = p.c_batch[0] = 0;
  table_fill(p.a_row, p.rows, transpose_a ? 1 : p.depth);
  table_fill(p.c_row, p.rows, p.columns);
  table_fill(p.a_depth, p.depth, transpose_a ? p.rows : 1);
  table_fill(p.b_depth, p.depth, transpose_b ? 1 : p.columns);
  table_fill(p.b_column, p.columns, transpose_b ? p.depth : 1);
  table_fill(p.c_column, p.columns, 1);
  clv__product_run(&p);
  return CLV_OK;
}

static size_t gemm_scratch_bytes(const clv__kernel_call *call) {
  if (clv__tensor_is_empty(&call->outputs[0])) return 0;
  clv__product p = gemm_product(call);
  return clv__product_scratch_bytes(&p);
}

const clv__fast_kernel clv__fast_matmul[] = {
    {"", "MatMul", matmul_run, matmul_scratch_bytes},
    {"", "Gemm", gemm_run, gemm_scratch_bytes},
    {.op = NULL},
};
