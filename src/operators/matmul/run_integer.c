/* MatMulInteger and QLinearMatMul: 8-bit operands, exact i32 sums that wrap. Zero points and scales are per tensor, per row of A
 * (or Y), or per column of B. */
#include "operators/matmul/run.h"

#include "operators/common/requantize.h"
#include "operators/run.h"

/* Zero points or scales of a tensor's lines (rows or columns). The zero point or scale of line i of matrix m is element m *
 * matrix_step + i * line_step. */
typedef struct lines {
  const clv_tensor *tensor; /* NULL: none */
  int64_t matrix_step, line_step;
} lines;

/* Reads the zero points or scales in input `input`, for `matrices` matrices of `count` lines each. `along`: 0 if lines are rows,
 * 1 if they are columns. */
static clv_status lines_read(const clv__kernel_call *call, uint32_t input, int64_t matrices, int64_t count, int along,
                             lines *out) {
  const clv_tensor *t = clv__call_input(call, input);
  *out = (lines){.tensor = t};
  if (t == NULL) return CLV_OK;
  const int64_t given = clv__dims_count(t, 0, t->rank);
  if (given == 1) return CLV_OK;
  const bool across = t->rank > 1 && t->dims[t->rank - 2 + along] == count && t->dims[t->rank - 1 - along] == 1;
  if (given == count && (t->rank == 1 || across)) {
    out->line_step = 1;
    return CLV_OK;
  }
  if (across && given == matrices * count) {
    *out = (lines){t, count, 1};
    return CLV_OK;
  }
  char text[128];
  clv__tensor_text(t, text, sizeof text);
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                        "input %u is %s; expected one element, or one for each of the matrix's %lld %s", input, text,
                        (long long)count, along ? "columns" : "rows");
}

static int64_t zero_of(const lines *l, int64_t matrix, int64_t line) {
  return l->tensor != NULL ? clv__element_load_int(l->tensor, matrix * l->matrix_step + line * l->line_step) : 0;
}
static float scale_of(const lines *l, int64_t matrix, int64_t line) {
  return (float)clv__element_load(l->tensor, matrix * l->matrix_step + line * l->line_step);
}

typedef struct product {
  const clv_tensor *a, *b, *y;
  int64_t rows, columns, depth;
  bool quantizes;
  lines a_zero, b_zero, y_zero, a_scale, b_scale, y_scale;
} product;

static clv_status product_read(const clv__kernel_call *call, int32_t lead, product *p) {
  const bool quantizes = strcmp(call->op, "QLinearMatMul") == 0;
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[quantizes ? 3 : 1], *y = &call->outputs[0];
  *p = (product){.a = a, .b = b, .y = y, .quantizes = quantizes, .depth = a->dims[a->rank - 1]};
  p->rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  p->columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  const int64_t a_matrices = clv__dims_count(a, 0, a->rank - 2), b_matrices = clv__dims_count(b, 0, b->rank - 2);
  CLV__TRY(lines_read(call, 2, a_matrices, p->rows, 0, &p->a_zero));
  CLV__TRY(lines_read(call, quantizes ? 5 : 3, b_matrices, p->columns, 1, &p->b_zero));
  if (!quantizes) return CLV_OK;
  const int64_t y_matrices = clv__dims_count(y, 0, lead);
  CLV__TRY(lines_read(call, 1, a_matrices, p->rows, 0, &p->a_scale));
  CLV__TRY(lines_read(call, 4, b_matrices, p->columns, 1, &p->b_scale));
  CLV__TRY(lines_read(call, 6, y_matrices, p->rows, 0, &p->y_scale));
  return lines_read(call, 7, y_matrices, p->rows, 0, &p->y_zero);
}

/* The index of an operand's matrix for batch `batch` of the result. */
static int64_t matrix_of(const clv_tensor *tensor, int32_t rank, const int64_t *batch) {
  const clv_tensor matrices =
      clv__tensor_make(tensor->dtype, tensor->rank > 2 ? tensor->rank - 2 : 0, tensor->dims, tensor->data);
  return clv__index_broadcast(&matrices, rank, batch);
}

/* Computes the result's matrix n from matrix `am` of A and matrix `bm` of B. */
static void run_matrix(const product *p, int64_t n, int64_t am, int64_t bm) {
  for (int64_t i = 0; i < p->rows; ++i) {
    for (int64_t j = 0; j < p->columns; ++j) {
      const int64_t a_zero = zero_of(&p->a_zero, am, i), b_zero = zero_of(&p->b_zero, bm, j);
      const int64_t at = (n * p->rows + i) * p->columns + j;
      int64_t sum = 0;
      for (int64_t k = 0; k < p->depth; ++k) {
        sum += (clv__element_load_int(p->a, (am * p->rows + i) * p->depth + k) - a_zero) *
               (clv__element_load_int(p->b, (bm * p->depth + k) * p->columns + j) - b_zero);
      }
      if (p->quantizes) {
        const float factor = scale_of(&p->a_scale, am, i) * scale_of(&p->b_scale, bm, j) / scale_of(&p->y_scale, n, i);
        clv__requantize_element(p->y, at, (int32_t)sum, factor, zero_of(&p->y_zero, n, i));
      } else {
        clv__element_store_int(p->y, at, sum);
      }
    }
  }
}

clv_status clv__kernel_matmul_integer(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[call->op[0] == 'Q' ? 3 : 1], *y = &call->outputs[0];
  const int32_t lead = y->rank - (a->rank > 1) - (b->rank > 1);
  int64_t batch[CLV_MAX_RANK] = {0};
  product p;
  if (clv__tensor_is_empty(y)) return CLV_OK;
  CLV__TRY(product_read(call, lead, &p));
  for (int64_t n = 0; n < clv__dims_count(y, 0, lead); ++n, clv__index_next(lead, y->dims, batch)) {
    run_matrix(&p, n, matrix_of(a, lead, batch), matrix_of(b, lead, batch));
  }
  return CLV_OK;
}
