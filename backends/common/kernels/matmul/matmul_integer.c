/* MatMulInteger and QLinearMatMul: 8-bit operands, exact i32 sums. Zero points and scales apply to the whole tensor, to each row
 * of A (or of Y), or to each column of B. */
#include "backends/common/kernels/families.h"
#include "operators/common/requantize.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { CHUNK = 256 };

/* Zero points or scales. The entry for line i of matrix m is at m * matrix_step + i * line_step. */
typedef struct lines {
  const clv_tensor *tensor; /* NULL: none */
  int64_t matrix_step, line_step;
} lines;

typedef struct product {
  const clv_tensor *a, *b, *y;
  int64_t rows, columns, depth, batches;
  int64_t batch[CLV_MAX_RANK];
  int32_t batch_rank, a_lead, b_lead;
  bool quantizes;
  lines a_zero, b_zero, y_zero, a_scale, b_scale, y_scale;
} product;

/* Reads the zero points or scales of `matrices` matrices of `count` lines. Lines are rows if `along` is 0, columns if it is 1. */
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
  } else if (across && given == matrices * count) {
    out->line_step = 1;
    out->matrix_step = count;
  } else {
    char text[128];
    clv__tensor_text(t, text, sizeof text);
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "input %u, a scale or zero point, is %s; expected one number, or one for each of %lld %s", input, text,
                          (long long)count, along ? "columns" : "rows");
  }
  return CLV_OK;
}

static clv_status product_read(const clv__kernel_call *call, product *p) {
  const bool quantizes = call->op[0] == 'Q';
  *p = (product){.a = &call->inputs[0], .b = &call->inputs[quantizes ? 3 : 1], .y = &call->outputs[0], .batches = 1};
  const clv_tensor *a = p->a, *b = p->b;
  p->quantizes = quantizes;
  p->rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  p->depth = a->dims[a->rank - 1];
  p->columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  p->a_lead = a->rank > 2 ? a->rank - 2 : 0;
  p->b_lead = b->rank > 2 ? b->rank - 2 : 0;
  p->batch_rank = p->a_lead > p->b_lead ? p->a_lead : p->b_lead;
  for (int32_t i = 0; i < p->batch_rank; ++i) {
    const int32_t ai = i - (p->batch_rank - p->a_lead), bi = i - (p->batch_rank - p->b_lead);
    const int64_t left = ai >= 0 ? a->dims[ai] : 1, right = bi >= 0 ? b->dims[bi] : 1;
    p->batch[i] = left == 1 ? right : left;
    p->batches *= p->batch[i];
  }
  const int64_t a_matrices = clv__dims_count(a, 0, p->a_lead), b_matrices = clv__dims_count(b, 0, p->b_lead);
  CLV__TRY(lines_read(call, 2, a_matrices, p->rows, 0, &p->a_zero));
  CLV__TRY(lines_read(call, quantizes ? 5 : 3, b_matrices, p->columns, 1, &p->b_zero));
  if (!quantizes) return CLV_OK;
  CLV__TRY(lines_read(call, 1, a_matrices, p->rows, 0, &p->a_scale));
  CLV__TRY(lines_read(call, 4, b_matrices, p->columns, 1, &p->b_scale));
  CLV__TRY(lines_read(call, 6, p->batches, p->rows, 0, &p->y_scale));
  return lines_read(call, 7, p->batches, p->rows, 0, &p->y_zero);
}

/* The index of the operand's matrix from which matrix `n` of the result is computed. */
static int64_t matrix_of(const product *p, const clv_tensor *operand, int32_t lead, int64_t n) {
  int64_t matrix = 0, step = 1;
  for (int32_t i = p->batch_rank - 1; i >= 0; --i) {
    const int32_t own = i - (p->batch_rank - lead);
    const int64_t index = n % p->batch[i];
    n /= p->batch[i];
    if (own < 0) continue;
    if (operand->dims[own] != 1) matrix += index * step;
    step *= operand->dims[own];
  }
  return matrix;
}

/* sums += left * (bytes of a row of B). */
#define DEFINE_ADD(name, T)                                                      \
  static void name(const T *row, int64_t count, uint32_t left, uint32_t *sums) { \
    for (int64_t j = 0; j < count; ++j) sums[j] += left * (uint32_t)row[j];      \
  }
DEFINE_ADD(add_unsigned, uint8_t)
DEFINE_ADD(add_signed, int8_t)

static int64_t line_at(const lines *l, int64_t matrix, int64_t line) {
  return matrix * l->matrix_step + line * l->line_step;
}

/* Computes columns [column, column + count) of one row. With zero points za and zb, the sum of (a - za)(b - zb) equals the sum of
 * (a - za) b minus zb times the sum of (a - za). */
static void run_chunk(const product *p, int64_t n, int64_t row, int64_t column, int64_t count) {
  const int64_t am = matrix_of(p, p->a, p->a_lead, n), bm = matrix_of(p, p->b, p->b_lead, n);
  const int64_t a = (am * p->rows + row) * p->depth, first = (n * p->rows + row) * p->columns + column;
  const int32_t a_zero = clv__zero_at(p->a_zero.tensor, line_at(&p->a_zero, am, row));
  uint32_t sums[CHUNK] = {0}, left_sum = 0;
  float factors[CHUNK];
  for (int64_t k = 0; k < p->depth; ++k) {
    const uint32_t left = (uint32_t)(clv__byte_at(p->a->dtype, p->a->data, a + k) - a_zero);
    const int64_t b = (bm * p->depth + k) * p->columns + column;
    left_sum += left;
    if (left == 0) continue;
    if (p->b->dtype == CLV_I8)
      add_signed((const int8_t *)p->b->data + b, count, left, sums);
    else
      add_unsigned((const uint8_t *)p->b->data + b, count, left, sums);
  }
  for (int64_t j = 0; j < count; ++j) {
    sums[j] -= left_sum * (uint32_t)clv__zero_at(p->b_zero.tensor, line_at(&p->b_zero, bm, column + j));
  }
  if (!p->quantizes) {
    memcpy((uint32_t *)p->y->data + first, sums, (size_t)count * sizeof *sums);
    return;
  }
  const float a_scale = clv__scale_at(p->a_scale.tensor, line_at(&p->a_scale, am, row));
  const float y_scale = clv__scale_at(p->y_scale.tensor, line_at(&p->y_scale, n, row));
  for (int64_t j = 0; j < count; ++j) {
    factors[j] = a_scale * clv__scale_at(p->b_scale.tensor, line_at(&p->b_scale, bm, column + j)) / y_scale;
  }
  const int32_t y_zero = clv__zero_at(p->y_zero.tensor, line_at(&p->y_zero, n, row));
  clv__requantize(p->y->dtype, p->y->data, first, count, sums, factors, 1, y_zero);
}

static clv_status run_matmul(const clv__kernel_call *call) {
  product p;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(product_read(call, &p));
  const int64_t chunks = (p.columns + CHUNK - 1) / CHUNK, tasks = p.batches * p.rows * chunks;
  const int threads = clv__kernel_threads(tasks, (double)p.batches * (double)p.rows * (double)p.columns * (double)(p.depth + 1));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    const int64_t column = task % chunks * CHUNK, row = task / chunks % p.rows;
    run_chunk(&p, task / chunks / p.rows, row, column, p.columns - column < CHUNK ? p.columns - column : CHUNK);
  }
  return CLV_OK;
}

const clv__fast_kernel clv__fast_matmul_integer[] = {
    {"", "MatMulInteger", run_matmul, NULL},
    {"", "QLinearMatMul", run_matmul, NULL},
    {.op = NULL},
};
