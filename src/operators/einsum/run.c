/* Einsum: for each element of the result, multiplies one element of every input and sums over all labels that are not in the
 * result. Integers wrap. */
#include "operators/common/einsum.h"

#include "operators/common/element.h"
#include "operators/run.h"

#define LABELS CLV__EINSUM_LABELS

/* The step of an input's elements along each label. A label that the input does not have, or that has size 1, has step 0. A label
 * that occurs twice in a term steps along the diagonal. */
typedef struct operand {
  int64_t steps[LABELS];
} operand;

typedef struct einsum {
  const clv__kernel_call *call;
  operand *operands;
  int64_t dims[LABELS];      /* size of each label; 1 if no input has the label */
  int64_t at[LABELS];        /* current position along each label */
  int32_t kept, summed;      /* number of labels in the result; number of labels that are summed over */
  int8_t labels[2 * LABELS]; /* labels of the result in its order, then those that are summed over */
} einsum;

static clv_status input_read(einsum *e, uint32_t index) {
  const clv_tensor *t = &e->call->inputs[index];
  operand *o = &e->operands[index];
  clv__einsum_term term;
  int8_t labels[LABELS];
  memset(o, 0, sizeof *o);
  CLV__TRY(clv__einsum_read_input(e->call->attributes, index, &term, e->call->error));
  const int32_t ellipsis = t->rank - term.count;
  if (ellipsis < 0 || (ellipsis > 0 && !term.has_ellipsis)) {
    return clv__error_set(e->call->error, CLV_INVALID_MODEL, "input %u has rank %d, but its term in the equation has %d letters",
                          (unsigned)index, (int)t->rank, (int)term.count);
  }
  clv__einsum_labels(&term, ellipsis, labels);
  for (int32_t i = 0; i < t->rank; ++i) {
    if (t->dims[i] != 1) o->steps[labels[i]] += clv__dims_count(t, i + 1, t->rank);
    if (e->dims[labels[i]] == 1) e->dims[labels[i]] = t->dims[i];
  }
  return CLV_OK;
}

static clv_status einsum_read(const clv__kernel_call *call, einsum *e) {
  const clv_tensor *y = &call->outputs[0];
  clv__einsum_term term;
  bool in_output[LABELS] = {false};
  *e = (einsum){.call = call, .operands = call->scratch};
  for (int i = 0; i < LABELS; ++i) e->dims[i] = 1;
  for (uint32_t i = 0; i < call->input_count; ++i) CLV__TRY(input_read(e, i));
  CLV__TRY(clv__einsum_read_output(call->attributes, call->input_count, &term, call->error));
  if (y->rank < term.count || (y->rank > term.count && !term.has_ellipsis)) {
    return clv__error_set(call->error, CLV_INVALID_MODEL, "the output has rank %d, but its term in the equation has %d letters",
                          (int)y->rank, (int)term.count);
  }
  clv__einsum_labels(&term, y->rank - term.count, e->labels);
  e->kept = y->rank;
  for (int32_t i = 0; i < e->kept; ++i) in_output[e->labels[i]] = true;
  for (int8_t label = 0; label < LABELS; ++label) {
    if (!in_output[label] && e->dims[label] != 1) e->labels[e->kept + e->summed++] = label;
  }
  return CLV_OK;
}

/* Advances to the next combination of positions along the `count` labels. False after the last one, when all are 0 again. */
static bool next(einsum *e, const int8_t *labels, int32_t count) {
  for (int32_t i = count - 1; i >= 0; --i) {
    if (++e->at[labels[i]] < e->dims[labels[i]]) return true;
    e->at[labels[i]] = 0;
  }
  return false;
}

static int64_t index_of(const einsum *e, uint32_t input) {
  const int32_t count = e->kept + e->summed;
  int64_t index = 0;
  for (int32_t i = 0; i < count; ++i) index += e->at[e->labels[i]] * e->operands[input].steps[e->labels[i]];
  return index;
}

static bool sums_nothing(const einsum *e) {
  for (int32_t i = 0; i < e->summed; ++i) {
    if (e->dims[e->labels[e->kept + i]] == 0) return true;
  }
  return false;
}

static double sum_of(einsum *e) {
  double sum = 0;
  if (sums_nothing(e)) return 0;
  do {
    double product = 1;
    for (uint32_t i = 0; i < e->call->input_count; ++i) product *= clv__element_load(&e->call->inputs[i], index_of(e, i));
    sum += product;
  } while (next(e, e->labels + e->kept, e->summed));
  return sum;
}

static uint64_t whole_sum_of(einsum *e) {
  uint64_t sum = 0;
  if (sums_nothing(e)) return 0;
  do {
    uint64_t product = 1;
    for (uint32_t i = 0; i < e->call->input_count; ++i) {
      product *= (uint64_t)clv__element_load_int(&e->call->inputs[i], index_of(e, i));
    }
    sum += product;
  } while (next(e, e->labels + e->kept, e->summed));
  return sum;
}

static clv_status run_einsum(const clv__kernel_call *call) {
  const clv_tensor *y = &call->outputs[0];
  int64_t at = 0;
  einsum e;
  if (clv__tensor_is_empty(y)) return CLV_OK;
  CLV__TRY(einsum_read(call, &e));
  do {
    if (clv__element_is_float(y))
      clv__element_store(y, at++, sum_of(&e));
    else
      clv__element_store_int(y, at++, (int64_t)whole_sum_of(&e));
  } while (next(&e, e.labels, e.kept));
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  return call->input_count * sizeof(operand);
}

const clv__kernel clv__kernels_einsum[] = {
    {"", "Einsum", CLV__DTYPES_NUMBER, run_einsum, scratch_bytes, NULL},
    {.op = NULL},
};
