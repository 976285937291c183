/* Einsum: multiplies the inputs from left to right. Each step multiplies the product so far by the next input, as a batch of
 * matrix products. Tables of offsets address the elements. A label is summed over in the first step after which it is no longer
 * needed, because neither a later input nor the output has it. Intermediate results are f32 (f64 for f64, 64 bits for
 * integers). */
#include "operators/common/einsum.h"
#include "backends/common/kernels/families.h"

#include "backends/common/kernels/matmul/product.h"
#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/run.h"

#define LABELS CLV__EINSUM_LABELS

/* A factor of a product. steps[label] is the distance between neighbours along the label, in elements. It is 0 if the factor
 * lacks the label or has size 1 there. */
typedef struct operand {
  clv_dtype dtype;
  void *data;
  bool has[LABELS];
  int64_t steps[LABELS];
} operand;

typedef struct einsum {
  const clv__kernel_call *call;
  int64_t dims[LABELS];
  bool in_output[LABELS];
  uint32_t last[LABELS]; /* index of the last input that has the label */
  operand output;
  char *scratch;        /* NULL: only compute the sizes below */
  size_t used_bytes;    /* bytes of scratch that intermediate results use */
  size_t product_bytes; /* the most scratch that one product needs in addition; SIZE_MAX if the size overflows */
} einsum;

static clv_dtype wide_dtype(clv_dtype dtype) {
  if (dtype == CLV_F64) return CLV_F64;
  if ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0) return CLV_F32;
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_SIGNED) != 0 ? CLV_I64 : CLV_U64;
}

/* Describes input `index` in `o`, and sets the sizes of its labels in `e`. */
static clv_status input_read(einsum *e, uint32_t index, operand *o) {
  const clv_tensor *t = &e->call->inputs[index];
  clv__einsum_term term;
  int8_t labels[LABELS];
  memset(o, 0, sizeof *o);
  o->dtype = t->dtype;
  o->data = t->data;
  CLV__TRY(clv__einsum_read_input(e->call->attributes, index, &term, e->call->error));
  int32_t ellipsis = t->rank - term.count;
  if (ellipsis < 0 || (ellipsis > 0 && !term.has_ellipsis)) {
    return clv__error_set(e->call->error, CLV_INVALID_MODEL, "input %u has rank %d, but its term in the equation has %d letters",
                          (unsigned)index, (int)t->rank, (int)term.count);
  }
  clv__einsum_labels(&term, ellipsis, labels);
  int64_t step = 1;
  for (int32_t i = t->rank - 1; i >= 0; --i) {
    int8_t label = labels[i];
    o->has[label] = true;
    if (t->dims[i] != 1) o->steps[label] += step; /* a repeated label runs along the diagonal */
    if (e->dims[label] == 1) e->dims[label] = t->dims[i];
    step *= t->dims[i] == 0 ? 1 : t->dims[i]; /* an empty dim does not make the other steps 0 */
  }
  return CLV_OK;
}

static clv_status einsum_read(const clv__kernel_call *call, einsum *e) {
  memset(e, 0, sizeof *e);
  e->call = call;
  for (int i = 0; i < LABELS; ++i) e->dims[i] = 1;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    operand input;
    CLV__TRY(input_read(e, i, &input));
    for (int label = 0; label < LABELS; ++label) {
      if (input.has[label]) e->last[label] = i;
    }
  }
  clv__einsum_term term;
  int8_t labels[LABELS];
  CLV__TRY(clv__einsum_read_output(call->attributes, call->input_count, &term, call->error));
  const clv_tensor *y = &call->outputs[0];
  if (y->rank < term.count || (y->rank > term.count && !term.has_ellipsis)) {
    return clv__error_set(call->error, CLV_INVALID_MODEL, "the output has rank %d, but its term in the equation has %d letters",
                          (int)y->rank, (int)term.count);
  }
  clv__einsum_labels(&term, y->rank - term.count, labels);
  e->output.dtype = y->dtype;
  e->output.data = y->data;
  int64_t step = 1;
  for (int32_t i = y->rank - 1; i >= 0; --i) {
    e->in_output[labels[i]] = true;
    e->output.has[labels[i]] = true;
    e->output.steps[labels[i]] = step;
    step *= y->dims[i];
  }
  return CLV_OK;
}

/* A group of labels that together form one axis of the matrices. */
typedef struct group {
  int count;
  int labels[LABELS];
} group;

static int64_t group_size(const einsum *e, const group *g) {
  int64_t size = 1;
  for (int i = 0; i < g->count; ++i) size *= e->dims[g->labels[i]];
  return size;
}

/* Fills `table` with the element offsets of `o` for the first `count` indices of the group. The last label varies fastest. */
static void group_offsets(const einsum *e, const group *g, const operand *o, int64_t count, int64_t *table) {
  int64_t index[LABELS] = {0}, offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    table[n] = offset;
    for (int i = g->count - 1; i >= 0; --i) {
      int label = g->labels[i];
      offset += o->steps[label];
      if (++index[i] < e->dims[label]) break;
      offset -= o->steps[label] * e->dims[label];
      index[i] = 0;
    }
  }
}

/* Sorts the labels of two factors into groups. Labels that are not needed after `step` are summed over (depth). The others are in
 * both factors (batch), only in `a` (row) or only in `b` (column). */
static void groups_make(const einsum *e, uint32_t step, const operand *a, const operand *b, group *batch, group *row,
                        group *column, group *depth) {
  batch->count = row->count = column->count = depth->count = 0;
  for (int label = 0; label < LABELS; ++label) {
    if (!a->has[label] && !b->has[label]) continue;
    bool kept = e->in_output[label] || e->last[label] > step;
    group *g = !kept ? depth : a->has[label] && b->has[label] ? batch : a->has[label] ? row : column;
    g->labels[g->count++] = label;
  }
}

/* Orders a group's labels by descending step in `by`, so that neighbouring indices have contiguous elements of `by` if
 * possible. */
static void group_sort(group *g, const operand *by) {
  for (int i = 1; i < g->count; ++i) {
    for (int j = i; j > 0 && by->steps[g->labels[j]] > by->steps[g->labels[j - 1]]; --j) {
      int label = g->labels[j];
      g->labels[j] = g->labels[j - 1];
      g->labels[j - 1] = label;
    }
  }
}

/* Creates an intermediate result in scratch. It is dense, with the labels of `batch`, `row` and `column` as its axes, in this
 * order. */
static clv_status intermediate_make(einsum *e, const group *batch, const group *row, const group *column, operand *out) {
  const group *groups[] = {batch, row, column};
  memset(out, 0, sizeof *out);
  out->dtype = wide_dtype(e->call->inputs[0].dtype);
  size_t size = 1;
  for (int g = 2; g >= 0; --g) {
    for (int i = groups[g]->count - 1; i >= 0; --i) {
      int label = groups[g]->labels[i];
      out->has[label] = true;
      out->steps[label] = (int64_t)size;
      if (!clv__multiply(size, (size_t)e->dims[label], &size) || size > (SIZE_MAX >> 5)) return CLV_OUT_OF_MEMORY;
    }
  }
  size_t bytes = clv__align_up(size * clv_dtype_size_bytes(out->dtype), 64);
  out->data = e->scratch != NULL ? e->scratch + e->used_bytes : NULL;
  return clv__add(e->used_bytes, bytes, &e->used_bytes) ? CLV_OK : CLV_OUT_OF_MEMORY;
}

/* One step: `out` = the product of a and b, summed over the labels not needed after input `step`. If `is_last`, `out` is the
 * final result. If e->scratch is NULL, multiplies nothing, and only adds up how much scratch the step needs. */
static clv_status step_run(einsum *e, uint32_t step, bool is_last, const operand *a, const operand *b, size_t product_at,
                           operand *out) {
  group batch, row, column, depth;
  groups_make(e, step, a, b, &batch, &row, &column, &depth);
  if (is_last) {
    *out = e->output;
    /* The axis along which the result is contiguous should form the columns. */
    int last_row = -1, last_column = -1;
    group_sort(&batch, out), group_sort(&row, out), group_sort(&column, out);
    if (row.count > 0) last_row = row.labels[row.count - 1];
    if (column.count > 0) last_column = column.labels[column.count - 1];
    if (last_row >= 0 && last_column >= 0 && out->steps[last_row] < out->steps[last_column]) {
      const operand *swapped = a;
      a = b;
      b = swapped;
      group other = row;
      row = column;
      column = other;
    }
  } else {
    clv_status status = intermediate_make(e, &batch, &row, &column, out);
    if (status != CLV_OK) return clv__error_set(e->call->error, status, "the size of an intermediate result overflows");
  }
  group_sort(&depth, b);
  clv__product p = {.stop = e->call->stop,
                    .a_dtype = a->dtype,
                    .b_dtype = b->dtype,
                    .c_dtype = out->dtype,
                    .a = a->data,
                    .b = b->data,
                    .c = out->data,
                    .alpha = 1,
                    .beta = 1,
                    .batches = group_size(e, &batch),
                    .rows = group_size(e, &row),
                    .columns = group_size(e, &column),
                    .depth = group_size(e, &depth)};
  if (e->scratch == NULL) {
    size_t bytes = clv__product_scratch_bytes(&p);
    if (bytes > e->product_bytes) e->product_bytes = bytes;
    return CLV_OK;
  }
  if (p.batches == 0 || p.rows == 0 || p.columns == 0) return CLV_OK;
  clv__product_bind(&p, e->scratch + product_at);
  group_offsets(e, &batch, a, p.batches, p.a_batch);
  group_offsets(e, &batch, b, p.batches, p.b_batch);
  group_offsets(e, &batch, out, p.batches, p.c_batch);
  group_offsets(e, &row, a, p.rows, p.a_row);
  group_offsets(e, &row, out, p.rows, p.c_row);
  group_offsets(e, &depth, a, p.depth, p.a_depth);
  group_offsets(e, &depth, b, p.depth, p.b_depth);
  group_offsets(e, &column, b, p.columns, p.b_column);
  group_offsets(e, &column, out, p.columns, p.c_column);
  clv__product_run(&p);
  return CLV_OK;
}

/* Runs all steps. If there is only one input, multiplies it by the number 1. */
static clv_status steps_run(einsum *e, size_t product_at) {
  static const union {
    float f32;
    double f64;
    uint16_t u16;
    uint64_t u64;
  } ones[] = {{.f32 = 1}, {.f64 = 1}, {.u16 = 0x3c00}, {.u16 = 0x3f80}, {.u64 = 1}};
  uint32_t count = e->call->input_count;
  operand left, right, result;
  CLV__TRY(input_read(e, 0, &left));
  if (count == 1) {
    clv_dtype dtype = left.dtype;
    size_t which = dtype == CLV_F32 ? 0 : dtype == CLV_F64 ? 1 : dtype == CLV_F16 ? 2 : dtype == CLV_BF16 ? 3 : 4;
    operand one = {.dtype = which < 4 ? dtype : CLV_U64, .data = (void *)(uintptr_t)&ones[which]};
    return step_run(e, 0, true, &one, &left, product_at, &result);
  }
  for (uint32_t i = 1; i < count; ++i) {
    CLV__TRY(input_read(e, i, &right));
    CLV__TRY(step_run(e, i, i + 1 == count, &left, &right, product_at, &result));
    left = result;
  }
  return CLV_OK;
}

static size_t einsum_scratch_bytes(const clv__kernel_call *call) {
  einsum e;
  size_t total;
  if (clv__tensor_is_empty(&call->outputs[0])) return 0;
  if (einsum_read(call, &e) != CLV_OK) return 0;
  if (steps_run(&e, 0) != CLV_OK || e.product_bytes == SIZE_MAX) return SIZE_MAX;
  return clv__add(e.used_bytes, e.product_bytes, &total) ? total : SIZE_MAX;
}

static clv_status einsum_run(const clv__kernel_call *call) {
  einsum e;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(einsum_read(call, &e));
  CLV__TRY(steps_run(&e, 0));
  size_t product_at = e.used_bytes;
  e.used_bytes = 0;
  e.scratch = call->scratch;
  return steps_run(&e, product_at);
}

const clv__fast_kernel clv__fast_einsum[] = {
    {"", "Einsum", einsum_run, einsum_scratch_bytes},
    {.op = NULL},
};
