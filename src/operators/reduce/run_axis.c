/* Operators that work along one axis: ArgMax, ArgMin, CumSum, CumProd. Floats are accumulated in double, integers in 64 bits. */
#include "operators/reduce/run.h"

#include "operators/common/element.h"
#include "operators/run.h"

static clv_status lines_make(const clv__kernel_call *call, int64_t axis, clv__lines *lines) {
  const clv_tensor *x = &call->inputs[0];
  *lines = (clv__lines){1, 1, 1};
  if (x->rank == 0 && (axis == 0 || axis == -1)) return CLV_OK;
  if (axis < -(int64_t)x->rank || axis >= x->rank) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "axis is %lld, which is out of range for rank %d", (long long)axis,
                          (int)x->rank);
  }
  const int32_t at = (int32_t)(axis < 0 ? axis + x->rank : axis);
  *lines = (clv__lines){clv__dims_count(x, 0, at), x->dims[at], clv__dims_count(x, at + 1, x->rank)};
  return CLV_OK;
}

/* ---- ArgMax, ArgMin ---- */

/* Returns -1, 0 or 1 if element `a` is less than, equal to or greater than element `b`. A NaN is greater than any number and
 * equal to another NaN. */
static int compare(const clv_tensor *x, int64_t a, int64_t b) {
  if (clv__element_is_float(x)) {
    const double left = clv__element_load(x, a), right = clv__element_load(x, b);
    if (left != left || right != right) return (left != left) - (right != right);
    return (left > right) - (left < right);
  }
  const int64_t left = clv__element_load_int(x, a), right = clv__element_load_int(x, b);
  if (x->dtype == CLV_U64) return ((uint64_t)left > (uint64_t)right) - ((uint64_t)left < (uint64_t)right);
  return (left > right) - (left < right);
}

static bool is_nan(const clv_tensor *x, int64_t at) {
  return clv__element_is_float(x) && clv__element_load(x, at) != clv__element_load(x, at);
}

/* The position of the largest or smallest element of a line. If there are NaNs, it is that of the first NaN, as in numpy. */
static int64_t place_of(const clv_tensor *x, int64_t first, int64_t length, int64_t step, bool smallest, bool last) {
  int64_t best = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (is_nan(x, first + i * step)) return i;
    const int order = compare(x, first + i * step, first + best * step);
    if ((smallest ? order < 0 : order > 0) || (last && order == 0)) best = i;
  }
  return best;
}

clv_status clv__kernel_arg(const clv__kernel_call *call) {
  const bool smallest = strcmp(call->op, "ArgMin") == 0;
  const bool last = clv__attribute_int(call->attributes, "select_last_index", 0) != 0;
  clv__lines lines;
  CLV__TRY(lines_make(call, clv__attribute_int(call->attributes, "axis", 0), &lines));
  if (lines.outer == 0 || lines.inner == 0) return CLV_OK;
  if (lines.length == 0) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "an axis without elements has no %s element",
                          smallest ? "smallest" : "largest");
  }
  for (int64_t o = 0; o < lines.outer; ++o) {
    for (int64_t j = 0; j < lines.inner; ++j) {
      const int64_t first = o * lines.length * lines.inner + j;
      const int64_t place = place_of(&call->inputs[0], first, lines.length, lines.inner, smallest, last);
      clv__element_store_int(&call->outputs[0], o * lines.inner + j, place);
    }
  }
  return CLV_OK;
}

/* ---- CumSum, CumProd ---- */

/* Sums start from -0, so that the sum of elements that are all -0 is -0. With `exclusive`, the first result of a sum is 0, not
 * -0. */
static void run_reals(const clv_tensor *x, const clv_tensor *y, int64_t first, int64_t length, int64_t step, bool product,
                      bool exclusive) {
  double total = product ? 1 : -0.0;
  for (int64_t i = 0; i < length; ++i) {
    const double before = total, value = clv__element_load(x, first + i * step);
    total = product ? total * value : total + value;
    clv__element_store(y, first + i * step, exclusive ? before + 0 : total);
  }
}

static void run_integers(const clv_tensor *x, const clv_tensor *y, int64_t first, int64_t length, int64_t step, bool product,
                         bool exclusive) {
  uint64_t total = product;
  for (int64_t i = 0; i < length; ++i) {
    const uint64_t before = total, value = (uint64_t)clv__element_load_int(x, first + i * step);
    total = product ? total * value : total + value;
    clv__element_store_int(y, first + i * step, (int64_t)(exclusive ? before : total));
  }
}

clv_status clv__kernel_cumulate(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *axis = &call->inputs[1], *y = &call->outputs[0];
  const bool product = strcmp(call->op, "CumProd") == 0;
  const bool exclusive = clv__attribute_int(call->attributes, "exclusive", 0) != 0;
  const bool reverse = clv__attribute_int(call->attributes, "reverse", 0) != 0;
  clv__lines lines;
  size_t count;
  if (!clv__tensor_count(axis, &count) || count != 1) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "input axis must have one element");
  }
  CLV__TRY(lines_make(call, clv__element_load_int(axis, 0), &lines));
  const int64_t step = reverse ? -lines.inner : lines.inner, begin = reverse ? (lines.length - 1) * lines.inner : 0;
  for (int64_t o = 0; o < lines.outer; ++o) {
    for (int64_t j = 0; j < lines.inner; ++j) {
      const int64_t first = o * lines.length * lines.inner + begin + j;
      (clv__element_is_float(x) ? run_reals : run_integers)(x, y, first, lines.length, step, product, exclusive);
    }
  }
  return CLV_OK;
}
