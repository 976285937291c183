/* Reduce*: sums, products, extremes and related functions over any set of axes. Floats accumulate in double, integers in 64 bits,
 * which wrap. Roots and logarithms of integers are computed in double. A NaN makes a maximum or minimum NaN. */
#include "operators/reduce/run.h"

#include <math.h>

#include "operators/common/element.h"
#include "operators/run.h"

/* The axes to reduce, as bits: from input 1, or in earlier opsets from the attribute. An empty list means all axes, or with
 * noop_with_empty_axes no axis. */
static clv_status read_axes(const clv__kernel_call *call, uint32_t *axes) {
  const int32_t rank = call->inputs[0].rank;
  const clv_tensor *input = clv__call_input(call, 1);
  size_t count = 0;
  const int64_t *list = clv__attribute_ints(call->attributes, "axes", &count);
  if (input != NULL) count = (size_t)clv__dims_count(input, 0, input->rank);
  *axes = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = input != NULL ? clv__element_load_int(input, (int64_t)i) : list[i];
    if (axis < -(int64_t)rank || axis >= rank) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "axes contains %lld, which is out of range for rank %d",
                            (long long)axis, (int)rank);
    }
    *axes |= 1u << (axis < 0 ? axis + rank : axis);
  }
  if (count == 0 && clv__attribute_int(call->attributes, "noop_with_empty_axes", 0) == 0) *axes = (1u << rank) - 1;
  return CLV_OK;
}

/* The axes of the input that are kept, or those that are reduced, each with its step in elements. */
typedef struct axes {
  int32_t rank;
  int64_t dims[CLV_MAX_RANK], steps[CLV_MAX_RANK];
  int64_t count; /* product of dims */
} axes;

static void axes_read(const clv_tensor *x, uint32_t reduced, axes *kept, axes *folded) {
  *kept = *folded = (axes){.count = 1};
  for (int32_t i = 0; i < x->rank; ++i) {
    axes *of = (reduced >> i & 1u) != 0 ? folded : kept;
    of->dims[of->rank] = x->dims[i];
    of->steps[of->rank++] = clv__dims_count(x, i + 1, x->rank);
    of->count *= x->dims[i];
  }
}

static int64_t offset_of(const axes *a, const int64_t *at) {
  int64_t offset = 0;
  for (int32_t i = 0; i < a->rank; ++i) offset += at[i] * a->steps[i];
  return offset;
}

/* ---- Floats, and operators that compute in double ---- */

typedef double real_fold(double total, double x);

static double add(double total, double x) {
  return total + x;
}
static double add_absolute(double total, double x) {
  return total + fabs(x);
}
static double add_square(double total, double x) {
  return total + x * x;
}
static double multiply(double total, double x) {
  return total * x;
}
static double larger(double total, double x) {
  return x > total || x != x ? x : total;
}
static double smaller(double total, double x) {
  return x < total || x != x ? x : total;
}

static double fold_reals(const clv_tensor *x, int64_t first, const axes *folded, real_fold *fold, double total) {
  int64_t at[CLV_MAX_RANK] = {0};
  for (int64_t i = 0; i < folded->count; ++i, clv__index_next(folded->rank, folded->dims, at)) {
    total = fold(total, clv__element_load(x, first + offset_of(folded, at)));
  }
  return total;
}

/* log(sum(e^x)). The largest element is subtracted first, so that nothing overflows. */
static double log_sum_exp(const clv_tensor *x, int64_t first, const axes *folded) {
  const double largest = fold_reals(x, first, folded, larger, -INFINITY), shift = isfinite(largest) ? largest : 0;
  int64_t at[CLV_MAX_RANK] = {0};
  double sum = 0;
  for (int64_t i = 0; i < folded->count; ++i, clv__index_next(folded->rank, folded->dims, at)) {
    sum += exp(clv__element_load(x, first + offset_of(folded, at)) - shift);
  }
  return log(sum) + shift;
}

static double reduce_reals(const char *op, const clv_tensor *x, int64_t first, const axes *folded) {
  if (strcmp(op, "ReduceMean") == 0) return fold_reals(x, first, folded, add, 0) / (double)folded->count;
  if (strcmp(op, "ReduceMax") == 0) return fold_reals(x, first, folded, larger, -INFINITY);
  if (strcmp(op, "ReduceMin") == 0) return fold_reals(x, first, folded, smaller, INFINITY);
  if (strcmp(op, "ReduceProd") == 0) return fold_reals(x, first, folded, multiply, 1);
  if (strcmp(op, "ReduceL1") == 0) return fold_reals(x, first, folded, add_absolute, 0);
  if (strcmp(op, "ReduceL2") == 0) return sqrt(fold_reals(x, first, folded, add_square, 0));
  if (strcmp(op, "ReduceSumSquare") == 0) return fold_reals(x, first, folded, add_square, 0);
  if (strcmp(op, "ReduceLogSum") == 0) return log(fold_reals(x, first, folded, add, 0));
  if (strcmp(op, "ReduceLogSumExp") == 0) return log_sum_exp(x, first, folded);
  return fold_reals(x, first, folded, add, 0);
}

/* ---- Integers and bool ---- */

/* The maximum or minimum of no elements: the least or the greatest number of the dtype. */
static int64_t bound_of(clv_dtype dtype, bool greatest) {
  const unsigned bits = dtype == CLV_BOOL ? 1 : (unsigned)clv_dtype_size_bits(dtype);
  const uint64_t all = UINT64_MAX >> (64 - bits);
  if (!clv__dtype_is_in(dtype, CLV__DTYPES_SIGNED)) return greatest ? (int64_t)all : 0;
  return greatest ? (int64_t)(all >> 1) : -1 - (int64_t)(all >> 1);
}

static bool is_larger(int64_t a, int64_t b, bool is_u64) {
  return is_u64 ? (uint64_t)a > (uint64_t)b : a > b;
}

static int64_t reduce_integers(const char *op, const clv_tensor *x, int64_t first, const axes *folded) {
  const bool is_u64 = x->dtype == CLV_U64, max = strcmp(op, "ReduceMax") == 0, min = strcmp(op, "ReduceMin") == 0;
  const bool product = strcmp(op, "ReduceProd") == 0, squares = strcmp(op, "ReduceSumSquare") == 0;
  const bool absolute = strcmp(op, "ReduceL1") == 0 && !is_u64;
  int64_t at[CLV_MAX_RANK] = {0};
  uint64_t total = max || min ? (uint64_t)bound_of(x->dtype, min) : product ? 1 : 0;
  for (int64_t i = 0; i < folded->count; ++i, clv__index_next(folded->rank, folded->dims, at)) {
    const int64_t value = clv__element_load_int(x, first + offset_of(folded, at));
    if (max)
      total = is_larger(value, (int64_t)total, is_u64) ? (uint64_t)value : total;
    else if (min)
      total = is_larger((int64_t)total, value, is_u64) ? (uint64_t)value : total;
    else if (product)
      total *= (uint64_t)value;
    else if (squares)
      total += (uint64_t)value * (uint64_t)value;
    else
      total += absolute && value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  }
  if (strcmp(op, "ReduceMean") != 0) return (int64_t)total;
  if (folded->count == 0) return 0;
  return is_u64 ? (int64_t)(total / (uint64_t)folded->count) : (int64_t)total / folded->count;
}

static clv_status run_reduce(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  uint32_t reduced;
  axes kept, folded;
  int64_t at[CLV_MAX_RANK] = {0};
  CLV__TRY(read_axes(call, &reduced));
  if (clv__tensor_is_empty(y)) return CLV_OK;
  axes_read(x, reduced, &kept, &folded);
  const bool through_reals = strcmp(call->op, "ReduceL2") == 0 || strncmp(call->op, "ReduceLog", strlen("ReduceLog")) == 0;
  for (int64_t i = 0; i < kept.count; ++i, clv__index_next(kept.rank, kept.dims, at)) {
    if (clv__element_is_float(x) || through_reals)
      clv__element_store(y, i, reduce_reals(call->op, x, offset_of(&kept, at), &folded));
    else
      clv__element_store_int(y, i, reduce_integers(call->op, x, offset_of(&kept, at), &folded));
  }
  return CLV_OK;
}

#define KERNEL(op, dtypes) \
  { "", op, dtypes, run_reduce, NULL, NULL }

const clv__kernel clv__kernels_reduce[] = {
    KERNEL("ReduceSum", CLV__DTYPES_NUMBER),
    KERNEL("ReduceMean", CLV__DTYPES_NUMBER),
    KERNEL("ReduceMax", CLV__DTYPES_ANY),
    KERNEL("ReduceMin", CLV__DTYPES_ANY),
    KERNEL("ReduceProd", CLV__DTYPES_NUMBER),
    KERNEL("ReduceL1", CLV__DTYPES_NUMBER),
    KERNEL("ReduceL2", CLV__DTYPES_NUMBER),
    KERNEL("ReduceLogSum", CLV__DTYPES_NUMBER),
    KERNEL("ReduceLogSumExp", CLV__DTYPES_NUMBER),
    KERNEL("ReduceSumSquare", CLV__DTYPES_NUMBER),
    {"", "ArgMax", CLV__DTYPES_NUMBER, clv__kernel_arg, NULL, NULL},
    {"", "ArgMin", CLV__DTYPES_NUMBER, clv__kernel_arg, NULL, NULL},
    {"", "CumSum", CLV__DTYPES_NUMBER, clv__kernel_cumulate, NULL, NULL},
    {"", "CumProd", CLV__DTYPES_NUMBER, clv__kernel_cumulate, NULL, NULL},
    {.op = NULL},
};
