/* Softmax, LogSoftmax and Hardmax along an axis. Before opset 13 they work over all axes from the given one on. */
#include <math.h>

#include "operators/common/element.h"
#include "operators/run.h"

static clv__lines lines_of(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  const bool flattens = call->opset < 13;
  int64_t axis = clv__attribute_int(call->attributes, "axis", flattens ? 1 : -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0) axis = 0;
  if (axis > x->rank) axis = x->rank;
  clv__lines lines = {clv__dims_count(x, 0, (int32_t)axis), 1, 1};
  if (flattens) {
    lines.length = clv__dims_count(x, (int32_t)axis, x->rank);
  } else if (axis < x->rank) {
    lines.length = x->dims[axis];
    lines.inner = clv__dims_count(x, (int32_t)axis + 1, x->rank);
  }
  return lines;
}

/* The position of the first of the largest elements; 0 if the first element is a NaN. */
static int64_t find_largest(const clv_tensor *x, int64_t first, int64_t length, int64_t step) {
  int64_t at = 0;
  for (int64_t i = 1; i < length; ++i) {
    if (clv__element_load(x, first + i * step) > clv__element_load(x, first + at * step)) at = i;
  }
  return at;
}

/* Computes one line. Softmax: e^(x - largest) / sum. LogSoftmax: the logarithm of that. Hardmax: 1 at the largest element, 0
 * elsewhere. In Softmax and LogSoftmax, a line that contains only -inf becomes NaNs. */
static void run_line(const clv__kernel_call *call, int64_t first, int64_t length, int64_t step) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t at = find_largest(x, first, length, step);
  const double largest = clv__element_load(x, first + at * step);
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += exp(clv__element_load(x, first + i * step) - largest);
  for (int64_t i = 0; i < length; ++i) {
    const double shifted = clv__element_load(x, first + i * step) - largest;
    double value = exp(shifted) / sum;
    if (strcmp(call->op, "LogSoftmax") == 0) value = shifted - log(sum);
    if (strcmp(call->op, "Hardmax") == 0) value = i == at;
    clv__element_store(y, first + i * step, value);
  }
}

static clv_status run_softmax(const clv__kernel_call *call) {
  const clv__lines lines = lines_of(call);
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  for (int64_t o = 0; o < lines.outer; ++o) {
    for (int64_t j = 0; j < lines.inner; ++j) run_line(call, o * lines.length * lines.inner + j, lines.length, lines.inner);
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_softmax[] = {
    {"", "Softmax", CLV__DTYPES_FLOAT, run_softmax, NULL, NULL},
    {"", "LogSoftmax", CLV__DTYPES_FLOAT, run_softmax, NULL, NULL},
    {"", "Hardmax", CLV__DTYPES_FLOAT, run_softmax, NULL, NULL},
    {.op = NULL},
};
