/* MatMul (by numpy's rules) and Gemm: computes one sum per element of the result. Integers wrap. */
#include "operators/matmul/run.h"

#include "operators/common/element.h"
#include "operators/common/requantize.h"
#include "operators/run.h"

/* A matrix within a tensor: the index of its first element and the steps between its elements. */
typedef struct matrix {
  const clv_tensor *tensor;
  int64_t first, row_step, column_step;
} matrix;

static double sum_of(const matrix *a, const matrix *b, int64_t row, int64_t column, int64_t depth) {
  const int64_t left = a->first + row * a->row_step, right = b->first + column * b->column_step;
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    sum += clv__element_load(a->tensor, left + k * a->column_step) * clv__element_load(b->tensor, right + k * b->row_step);
  }
  return sum;
}

static uint64_t whole_sum_of(const matrix *a, const matrix *b, int64_t row, int64_t column, int64_t depth) {
  const int64_t left = a->first + row * a->row_step, right = b->first + column * b->column_step;
  uint64_t sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    sum += (uint64_t)clv__element_load_int(a->tensor, left + k * a->column_step) *
           (uint64_t)clv__element_load_int(b->tensor, right + k * b->row_step);
  }
  return sum;
}

/* The index of the first element of the operand's matrix for batch `batch` of the result. The operand's leading dims broadcast.
 */
static int64_t matrix_first(const clv_tensor *tensor, int32_t rank, const int64_t *batch) {
  const int32_t lead = tensor->rank > 2 ? tensor->rank - 2 : 0;
  const clv_tensor matrices = clv__tensor_make(tensor->dtype, lead, tensor->dims, tensor->data);
  return clv__index_broadcast(&matrices, rank, batch) * clv__dims_product(tensor, lead, tensor->rank);
}

static clv_status run_matmul(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
  const int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  const int64_t depth = a->dims[a->rank - 1];
  const int32_t lead = y->rank - (a->rank > 1) - (b->rank > 1);
  int64_t batch[CLV_MAX_RANK] = {0};
  if (clv__tensor_is_empty(y)) return CLV_OK;
  for (int64_t n = 0, at = 0; n < clv__dims_product(y, 0, lead); ++n, clv__index_next(lead, y->dims, batch)) {
    const matrix left = {a, matrix_first(a, lead, batch), depth, 1}, right = {b, matrix_first(b, lead, batch), columns, 1};
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j, ++at) {
        if (clv__element_is_float(y))
          clv__element_store(y, at, sum_of(&left, &right, i, j, depth));
        else
          clv__element_store_int(y, at, (int64_t)whole_sum_of(&left, &right, i, j, depth));
      }
    }
  }
  return CLV_OK;
}

/* alpha * sum + beta * c. Integers are exact if alpha and beta are 1; otherwise they are computed in double. */
static void store_gemm(const clv_tensor *y, int64_t at, const matrix *a, const matrix *b, int64_t row, int64_t column,
                       int64_t depth, double alpha, double beta, const clv_tensor *c, int64_t c_at) {
  if (clv__element_is_float(y)) {
    const double addend = c != NULL ? beta * clv__element_load(c, c_at) : 0;
    clv__element_store(y, at, alpha * sum_of(a, b, row, column, depth) + addend);
    return;
  }
  const uint64_t sum = whole_sum_of(a, b, row, column, depth), addend = c != NULL ? (uint64_t)clv__element_load_int(c, c_at) : 0;
  if (alpha == 1 && beta == 1) {
    clv__element_store_int(y, at, (int64_t)(sum + addend));
  } else if (clv__dtype_is_in(y->dtype, CLV__DTYPES_SIGNED)) {
    clv__element_store(y, at, alpha * (double)(int64_t)sum + beta * (double)(int64_t)addend);
  } else {
    clv__element_store(y, at, alpha * (double)sum + beta * (double)addend);
  }
}

static clv_status run_gemm(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
  const bool a_turned = clv__attribute_int(call->attributes, "transA", 0) != 0;
  const bool b_turned = clv__attribute_int(call->attributes, "transB", 0) != 0;
  const double alpha = (double)clv__attribute_float(call->attributes, "alpha", 1);
  const double beta = (double)clv__attribute_float(call->attributes, "beta", 1);
  const clv_tensor *c = beta != 0 ? clv__call_input(call, 2) : NULL;
  const int64_t depth = a->dims[a_turned ? 0 : 1];
  const matrix left = {a, 0, a_turned ? 1 : a->dims[1], a_turned ? a->dims[1] : 1};
  const matrix right = {b, 0, b_turned ? 1 : b->dims[1], b_turned ? b->dims[1] : 1};
  for (int64_t i = 0; i < y->dims[0]; ++i) {
    for (int64_t j = 0; j < y->dims[1]; ++j) {
      const int64_t place[] = {i, j}, c_at = c != NULL ? clv__index_broadcast(c, 2, place) : 0;
      store_gemm(y, i * y->dims[1] + j, &left, &right, i, j, depth, alpha, beta, c, c_at);
    }
  }
  return CLV_OK;
}

#define DTYPES \
  (CLV__DTYPES_FLOAT | CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64) | CLV__DTYPE_BIT(CLV_U32) | CLV__DTYPE_BIT(CLV_U64))

const clv__kernel clv__kernels_matmul[] = {
    {"", "MatMul", DTYPES, run_matmul, NULL, NULL},
    {"", "Gemm", DTYPES, run_gemm, NULL, NULL},
    {"", "MatMulInteger", CLV__BYTES, clv__kernel_matmul_integer, NULL, NULL},
    {"", "QLinearMatMul", CLV__BYTES, clv__kernel_matmul_integer, NULL, NULL},
    {.op = NULL},
};
