/* Einsum: the inputs are multiplied from left to right, each step a batch of matrix products over tables of offsets; a label is
 * summed in the first step after which nobody needs it. Intermediate results are f32 (f64 for f64, 64 bits for integers). */
#include "kernels/einsum.h"

#include "base/memory.h"
#include "kernels/kernels.h"
#include "kernels/product.h"

#define LABELS CLV__EINSUM_LABELS

/* A factor: where along each label an element is. Labels that it does not have, or of size 1, have step 0. */
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
  uint8_t last_input[LABELS]; /* unused beyond `needed`; see needed_later() */
  operand output;
  char *scratch; /* NULL: only measure */
  size_t used_bytes, product_bytes;
} einsum;

static clv_dtype wide_dtype(clv_dtype dtype) {
  if (dtype == CLV_F64) return CLV_F64;
  if ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0) return CLV_F32;
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_SIGNED) != 0 ? CLV_I64 : CLV_U64;
}

/* Reads input `index`: its operand, and its part of the label sizes. */
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
    return clv__error_set(e->call->error, CLV_INVALID_MODEL, "input %u has rank %d, its term %d letters", (unsigned)index,
                          (int)t->rank, (int)term.count);
  }
  clv__einsum_labels(&term, ellipsis, labels);
  int64_t step = 1;
  for (int32_t i = t->rank - 1; i >= 0; --i) {
    int8_t label = labels[i];
    o->has[label] = true;
    if (t->dims[i] != 1) o->steps[label] += step; /* a repeated label runs along the diagonal */
    if (e->dims[label] == 1) e->dims[label] = t->dims[i];
    step *= t->dims[i];
  }
  return CLV_OK;
}

static clv_status einsum_read(const clv__kernel_call *call, einsum *e) {
  memset(e, 0, sizeof *e);
  e->call = call;
  for (int i = 0; i < LABELS; ++i) e->dims[i] = 1;
  operand ignored;
  for (uint32_t i = 0; i < call->input_count; ++i) CLV__TRY(input_read(e, i, &ignored));
  clv__einsum_term term;
  int8_t labels[LABELS];
  CLV__TRY(clv__einsum_read_output(call->attributes, call->input_count, &term, call->error));
  const clv_tensor *y = &call->outputs[0];
  if (y->rank < term.count || (y->rank > term.count && !term.has_ellipsis)) {
    return clv__error_set(call->error, CLV_INVALID_MODEL, "the output has rank %d, its term %d letters", (int)y->rank,
                          (int)term.count);
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

/* Whether inputs after `index` have the label. */
static bool needed_later(einsum *e, uint32_t index, int label, const operand *later, uint32_t later_count) {
  (void)e;
  (void)index;
  for (uint32_t i = 0; i < later_count; ++i) {
    if (later[i].has[label]) return true;
  }
  return false;
}

/* A group of labels that together are one axis of the matrices. */
typedef struct group {
  int count;
  int labels[LABELS];
} group;

static int64_t group_size(const einsum *e, const group *g) {
  int64_t size = 1;
  for (int i = 0; i < g->count; ++i) size *= e->dims[g->labels[i]];
  return size;
}

/* Offsets of `o` along the group, the last label fastest. */
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
