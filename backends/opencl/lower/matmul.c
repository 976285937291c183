/* MatMul and Gemm. */
#include <stdio.h>

#include "list.h"
#include "product.h"

/* Two strided matrices, an addend that may be broadcast, and the steps over batches. */
typedef struct matrices {
  clv__opencl_product p;
  int64_t a_row, a_depth, b_depth, b_column, c_row, c_column;
  float alpha, beta;
  bool has_addend;
  int32_t batch_rank;
  int64_t batch[CLV_MAX_RANK], a_batch[CLV_MAX_RANK], b_batch[CLV_MAX_RANK];
} matrices;

static clv_status launch(clv__opencl_lowering *l, matrices *m) {
  static const int64_t none[CLV_MAX_RANK] = {0};
  m->p.both_along_depth = m->a_depth == 1 && m->b_depth == 1;
  const clv__opencl_product_launch how = clv__opencl_product_choose(l, &m->p);
  clv__opencl_product_begin(l, &m->p, &how);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_input(l, m->has_addend ? 2 : 0);
  clv__opencl_pass_index(l, m->p.rows);
  clv__opencl_pass_index(l, m->p.columns);
  clv__opencl_pass_index(l, m->p.depth);
  clv__opencl_pass_index(l, m->a_row);
  clv__opencl_pass_index(l, m->a_depth);
  clv__opencl_pass_index(l, m->b_depth);
  clv__opencl_pass_index(l, m->b_column);
  clv__opencl_pass_index(l, m->c_row);
  clv__opencl_pass_index(l, m->c_column);
  clv__opencl_pass_float(l, m->alpha);
  clv__opencl_pass_float(l, m->beta);
  clv__opencl_pass_int(l, m->has_addend);
  clv__opencl_pass_int(l, m->batch_rank);
  clv__opencl_pass_dims(l, m->batch, (uint32_t)m->batch_rank);
  clv__opencl_pass_dims(l, m->a_batch, (uint32_t)m->batch_rank);
  clv__opencl_pass_dims(l, m->b_batch, (uint32_t)m->batch_rank);
  clv__opencl_pass_dims(l, none, (uint32_t)m->batch_rank);
  return clv__opencl_product_end(l, &how);
}

/* Computes an operand's step, in elements, for each batch dim of the result. The result has `rank` batch dims; the operand has
 * only the last `own` of them. Dims that are 1 or missing have step 0: they are broadcast. A matrix of the operand has `matrix`
 * elements. */
static void batch_steps(const clv_tensor *t, int32_t own, int32_t rank, int64_t matrix, int64_t steps[CLV_MAX_RANK]) {
  int64_t step = matrix;
  for (int32_t i = own - 1; i >= 0; --i) {
    steps[rank - own + i] = t->dims[i] == 1 ? 0 : step;
    step *= t->dims[i];
  }
}

static clv_status lower_matmul(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *a = &node->inputs[0], *b = &node->inputs[1];
  matrices m = {.p = {.dtype = a->dtype, .batches = 1}, .alpha = 1};
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  m.p.rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  m.p.depth = a->dims[a->rank - 1];
  m.p.columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  const int32_t a_lead = a->rank > 2 ? a->rank - 2 : 0, b_lead = b->rank > 2 ? b->rank - 2 : 0;
  m.batch_rank = a_lead > b_lead ? a_lead : b_lead;
  for (int32_t i = 0; i < m.batch_rank; ++i) {
    const int32_t ai = i - (m.batch_rank - a_lead), bi = i - (m.batch_rank - b_lead);
    const int64_t left = ai >= 0 ? a->dims[ai] : 1, right = bi >= 0 ? b->dims[bi] : 1;
    m.batch[i] = left == 1 ? right : left;
    m.p.batches *= m.batch[i];
  }
  if (clv__dims_product(b, 0, b_lead) == 1 &&
      a->rank > 2) { /* all batches share b, so the rows of all batches of a form one matrix */
    m.p.rows *= m.p.batches;
    m.p.batches = 1;
    m.batch_rank = 0;
  } else {
    batch_steps(a, a_lead, m.batch_rank, m.p.rows * m.p.depth, m.a_batch);
    batch_steps(b, b_lead, m.batch_rank, m.p.columns * m.p.depth, m.b_batch);
  }
  m.a_row = m.p.depth;
  m.a_depth = 1;
  m.b_depth = m.p.columns;
  m.b_column = 1;
  return launch(l, &m);
}

static clv_status lower_gemm(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *a = &node->inputs[0], *b = &node->inputs[1];
  const bool turn_a = clv__attribute_int(node->attributes, "transA", 0) != 0;
  const bool turn_b = clv__attribute_int(node->attributes, "transB", 0) != 0;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  matrices m = {.p = {.dtype = a->dtype,
                      .batches = 1,
                      .rows = a->dims[turn_a ? 1 : 0],
                      .depth = a->dims[turn_a ? 0 : 1],
                      .columns = b->dims[turn_b ? 0 : 1]},
                .alpha = clv__attribute_float(node->attributes, "alpha", 1.0f),
                .beta = clv__attribute_float(node->attributes, "beta", 1.0f)};
  m.has_addend = clv__opencl_has_input(node, 2) && m.beta != 0.0f;
  if (m.has_addend) {
    const clv_tensor *c = &node->inputs[2];
    const int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1, rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    m.c_column = columns == 1 ? 0 : 1;
    m.c_row = rows == 1 ? 0 : columns;
  }
  m.a_row = turn_a ? 1 : m.p.depth;
  m.a_depth = turn_a ? m.p.rows : 1;
  m.b_depth = turn_b ? 1 : m.p.columns;
  m.b_column = turn_b ? m.p.depth : 1;
  return launch(l, &m);
}

/* For integers accepts only alpha 1 and beta 0 or 1. Other factors go through f32, which would round large values. */
static bool accepts_gemm(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const float alpha = clv__attribute_float(node->attributes, "alpha", 1.0f);
  const float beta = clv__attribute_float(node->attributes, "beta", 1.0f);
  if ((CLV__DTYPE_BIT(node->inputs[0].dtype) & CLV__DTYPES_FLOAT) != 0 || (alpha == 1 && (beta == 1 || beta == 0))) return true;
  snprintf(reason, 160, "alpha %g and beta %g are not supported for dtype %s", (double)alpha, (double)beta,
           clv_dtype_name(node->inputs[0].dtype));
  return false;
}

#define DTYPES \
  (CLV__DTYPES_FLOAT | CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64) | CLV__DTYPE_BIT(CLV_U32) | CLV__DTYPE_BIT(CLV_U64))

const clv__opencl_operator clv__opencl_family_matmul[] = {
    {"", "MatMul", DTYPES, true, NULL, lower_matmul},
    {"", "Gemm", DTYPES, true, accepts_gemm, lower_gemm},
    {NULL, NULL, 0, false, NULL, NULL},
};
