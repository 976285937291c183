/* ATen's reductions, running sums and sorting. See lower.h. */
#include <math.h>

#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

/* Reduces x over the given axes, or over all axes if `count` is 0. The result has x's dtype. A tensor of rank 0 is returned
 * unchanged. */
static value reduce(aten *n, const char *op, value x, const int64_t *axes, uint32_t count, bool keep) {
  if (x.type.rank == 0) return x;
  clv__aten_set_int(n, "keepdims", keep);
  return clv__aten_call(n, op, x.type.dtype, x, clv__aten_vector(n, axes, count));
}

static const char *axes_name(const aten *n) {
  return clv__aten_has(n, "dims") ? "dims" : "dim";
}

/* Without attrs.dtype, sums of integers are i64 and means of integers are f32. */
static void lower_sum(aten *n) {
  value x = clv__aten_input(n, 0);
  static const char *const ops[][2] = {{"sum", "ReduceSum"},  {"mean", "ReduceMean"},          {"prod", "ReduceProd"},
                                       {"amax", "ReduceMax"}, {"amin", "ReduceMin"},           {"max", "ReduceMax"},
                                       {"min", "ReduceMin"},  {"logsumexp", "ReduceLogSumExp"}};
  const char *op = NULL;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    if (strcmp(ops[i][0], n->stem) == 0) op = ops[i][1];
  }
  bool adds = strcmp(n->stem, "sum") == 0 || strcmp(n->stem, "prod") == 0,
       real = strcmp(n->stem, "mean") == 0 || n->stem[0] == 'l';
  bool integers = !clv__aten_is_float(x.type.dtype);
  clv_dtype dtype = clv__aten_dtype(n, "dtype", adds && integers ? CLV_I64 : real && integers ? CLV_F32 : x.type.dtype);
  bool is_bool = dtype == CLV_BOOL;
  x = clv__aten_cast(n, x, is_bool ? CLV_I32 : dtype);
  int64_t axes[CLV__ATEN_MAX_LIST];
  uint32_t count = clv__aten_axes(n, axes_name(n), x.type.rank, axes);
  clv__aten_return(n, 0, reduce(n, op, x, axes, count, clv__aten_bool(n, "keepdim", false)));
}

static void lower_any(aten *n) {
  value x = clv__aten_cast(n, clv__aten_cast(n, clv__aten_input(n, 0), CLV_BOOL), CLV_I32);
  int64_t axes[CLV__ATEN_MAX_LIST];
  uint32_t count = clv__aten_axes(n, axes_name(n), x.type.rank, axes);
  const char *op = strcmp(n->stem, "any") == 0 ? "ReduceMax" : "ReduceMin";
  clv__aten_return(n, 0, clv__aten_cast(n, reduce(n, op, x, axes, count, clv__aten_bool(n, "keepdim", false)), CLV_BOOL));
}

/* Lowers argmax and argmin, along one axis or over all elements. Over all elements, the result is an index into the flattened
 * tensor. */
static void lower_arg(aten *n) {
  value x = clv__aten_input(n, 0);
  bool keep = clv__aten_bool(n, "keepdim", false), all = !clv__aten_has(n, "dim");
  size_t count;
  if (x.type.rank == 0 || x.type.dtype == CLV_BOOL || (all && keep)) clv__aten_keep(n);
  if (n->status != CLV_OK || !clv__tensor_count(&x.type, &count)) return;
  if (all) x = clv__aten_reshape(n, x, 1, (int64_t[]){(int64_t)count});
  clv__aten_set_int(n, "axis", all ? 0 : clv__aten_axis(n, "dim", 0, x.type.rank));
  clv__aten_set_int(n, "keepdims", keep);
  clv__aten_return(n, 0, clv__aten_call(n, strcmp(n->stem, "argmax") == 0 ? "ArgMax" : "ArgMin", CLV_I64, x));
}

/* Lowers the three forms of max and min: of two tensors, of all elements, and along an axis with the indices as second output. */
static void lower_max(aten *n) {
  if (strcmp(n->overload, "other") == 0 || n->input_count == 2) {
    for (const clv__aten_lowering *l = clv__aten_binary; l->stem != NULL; ++l) {
      if (strcmp(l->stem, strcmp(n->stem, "max") == 0 ? "maximum" : "minimum") == 0) l->lower(n);
    }
    return;
  }
  if (n->output_count < 2) {
    lower_sum(n);
    return;
  }
  value x = clv__aten_input(n, 0);
  bool keep = clv__aten_bool(n, "keepdim", false), is_max = strcmp(n->stem, "max") == 0;
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  if (x.type.rank == 0 || x.type.dtype == CLV_BOOL) clv__aten_keep(n);
  if (n->output_read[0]) clv__aten_return(n, 0, reduce(n, is_max ? "ReduceMax" : "ReduceMin", x, &axis, 1, keep));
  if (!n->output_read[1]) return;
  clv__aten_set_int(n, "axis", axis);
  clv__aten_set_int(n, "keepdims", keep);
  clv__aten_return(n, 1, clv__aten_call(n, is_max ? "ArgMax" : "ArgMin", CLV_I64, x));
}

/* Lowers the variance to the sum of squared distances from the mean, divided by the number of elements minus the correction. */
static void lower_var(aten *n) {
  value x = clv__aten_wide_input(n, 0);
  int64_t axes[CLV__ATEN_MAX_LIST];
  uint32_t count = clv__aten_axes(n, "dim", x.type.rank, axes);
  bool keep = clv__aten_bool(n, "keepdim", false), pair = strstr(n->stem, "_mean") != NULL;
  double correction = clv__aten_has(n, "correction") ? clv__aten_real(n, "correction", 1) : clv__aten_bool(n, "unbiased", true);
  if (x.type.rank == 0) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  double elements = 1;
  for (uint32_t i = 0; i < count; ++i) elements *= (double)x.type.dims[axes[i]];
  if (elements <= correction) clv__aten_keep(n);
  clv_dtype dtype = x.type.dtype;
  value mean = reduce(n, "ReduceMean", x, axes, count, true);
  value distance = clv__aten_call(n, "Sub", dtype, x, mean);
  value sum = reduce(n, "ReduceSumSquare", (value){distance.id, x.type}, axes, count, keep);
  value variance = clv__aten_call(n, "Div", dtype, sum, clv__aten_number(n, dtype, elements - correction));
  if (strncmp(n->stem, "std", 3) == 0) variance = clv__aten_call(n, "Sqrt", dtype, variance);
  clv__aten_return(n, 0, variance);
  if (pair && n->output_count > 1 && n->output_read[1]) clv__aten_return(n, 1, reduce(n, "ReduceMean", x, axes, count, keep));
}

/* Returns the norm of any order. Order 0 counts the nonzero elements; order inf (-inf) is the largest (smallest) magnitude. */
static value norm_of(aten *n, value x, double order, const int64_t *axes, uint32_t count, bool keep) {
  clv_dtype dtype = x.type.dtype;
  if (order == 1 || order == 2) return reduce(n, order == 1 ? "ReduceL1" : "ReduceL2", x, axes, count, keep);
  if (order == 0) {
    value is_zero = clv__aten_call(n, "Equal", CLV_BOOL, x, clv__aten_number(n, dtype, 0));
    value counts = clv__aten_cast(n, clv__aten_call(n, "Not", CLV_BOOL, is_zero), dtype);
    return reduce(n, "ReduceSum", (value){counts.id, x.type}, axes, count, keep);
  }
  value size = clv__aten_call(n, "Abs", dtype, x);
  if (isinf(order)) return reduce(n, order > 0 ? "ReduceMax" : "ReduceMin", (value){size.id, x.type}, axes, count, keep);
  value powers = clv__aten_call(n, "Pow", dtype, size, clv__aten_number(n, dtype, order));
  value sum = reduce(n, "ReduceSum", (value){powers.id, x.type}, axes, count, keep);
  return clv__aten_call(n, "Pow", dtype, sum, clv__aten_number(n, dtype, 1 / order));
}

static void lower_norm(aten *n) {
  value x = clv__aten_real_input(n, 0);
  double order = clv__aten_real(n, clv__aten_has(n, "p") ? "p" : "ord", 2);
  x = clv__aten_cast(n, x, clv__aten_wide(clv__aten_dtype(n, "dtype", x.type.dtype)));
  if (x.type.rank == 0) x = clv__aten_reshape(n, x, 1, (int64_t[]){1});
  int64_t axes[CLV__ATEN_MAX_LIST];
  uint32_t count = clv__aten_axes(n, "dim", x.type.rank, axes);
  value made = norm_of(n, x, order, axes, count, clv__aten_bool(n, "keepdim", false));
  clv__aten_return(n, 0, n->input_count > 0 && n->inputs[0].type.rank == 0 ? clv__aten_reshape(n, made, 0, NULL) : made);
}

static void lower_cumsum(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  bool integers = !clv__aten_is_float(x.type.dtype);
  clv_dtype dtype = clv__aten_dtype(n, "dtype", integers ? CLV_I64 : x.type.dtype);
  x = clv__aten_cast(n, x, dtype);
  if (x.type.rank == 0)
    clv__aten_return(n, 0, x);
  else
    clv__aten_return(n, 0, clv__aten_call(n, "CumSum", dtype, x, clv__aten_number(n, CLV_I64, (double)axis)));
}

/* Returns x[1:] - x[:-1] along an axis; for bools, whether neighbours differ. */
static value neighbours(aten *n, value x, int64_t axis) {
  value after = clv__aten_slice(n, x, axis, 1, INT64_MAX, 1), before = clv__aten_slice(n, x, axis, 0, -1, 1);
  return clv__aten_call(n, x.type.dtype == CLV_BOOL ? "Xor" : "Sub", x.type.dtype, after, before);
}

/* Lowers diff: joins prepend, self and append, and subtracts neighbours `n` times. If `n` is 0, the result is self alone. */
static void lower_diff(aten *n) {
  enum { MAX_TIMES = 16 }; /* bounds the number of nodes */
  value x = clv__aten_input(n, 0);
  value given[3] = {clv__aten_optional(n, "prepend", 1), x, clv__aten_optional(n, "append", 2)}, parts[3];
  int64_t axis = clv__aten_axis(n, "dim", -1, x.type.rank), times = clv__aten_int(n, "n", 1);
  if (x.type.rank < 1 || times < 0 || times > MAX_TIMES) clv__aten_keep(n);
  clv_dtype dtype = clv__aten_common(n->inputs, n->input_count, (clv__aten_scalar){CLV_DTYPE_NONE, 0, 0});
  uint32_t count = 0;
  for (uint32_t i = 0; i < 3 && times > 0; ++i) {
    if (given[i].id != CLV__NO_ID) parts[count++] = clv__aten_cast(n, given[i], dtype);
  }
  if (count > 1) {
    clv__aten_set_int(n, "axis", axis);
    x = clv__aten_op(n, "Concat", dtype, parts, count);
  }
  for (int64_t i = 0; n->status == CLV_OK && i < times; ++i) x = neighbours(n, x, axis);
  clv__aten_return(n, 0, x);
}

/* Lowers topk, sort and argsort to TopK; sorting is topk with k = size. Equal elements keep their order; ATen does not specify
 * their order. */
static void lower_topk(aten *n) {
  value x = clv__aten_input(n, 0);
  bool topk = strcmp(n->stem, "topk") == 0, only_places = strcmp(n->stem, "argsort") == 0;
  int64_t axis = clv__aten_axis(n, "dim", -1, x.type.rank);
  if (x.type.rank == 0 || x.type.dtype == CLV_BOOL) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  int64_t k = topk ? clv__aten_int(n, "k", -1) : x.type.dims[axis];
  if (k < 0 || k > x.type.dims[axis])
    clv__aten_fail(n, "attrs.k is %lld, but the axis has size %lld", (long long)k, (long long)x.type.dims[axis]);
  clv__aten_set_int(n, "axis", axis);
  clv__aten_set_int(n, "largest", topk ? clv__aten_bool(n, "largest", true) : clv__aten_bool(n, "descending", false));
  clv__aten_set_int(n, "sorted", topk ? clv__aten_bool(n, "sorted", true) : 1);
  value inputs[2] = {x, clv__aten_vector(n, &k, 1)}, made[2] = {{.type.dtype = x.type.dtype}, {.type.dtype = CLV_I64}};
  clv__aten_ops(n, "TopK", inputs, 2, made, 2);
  for (uint32_t i = 0; i < n->output_count && i < 2; ++i) clv__aten_return(n, i, made[only_places ? 1 : i]);
}

const clv__aten_lowering clv__aten_reduce[] = {
    {"sum", lower_sum},
    {"mean", lower_sum},
    {"prod", lower_sum},
    {"amax", lower_sum},
    {"amin", lower_sum},
    {"logsumexp", lower_sum},
    {"any", lower_any},
    {"all", lower_any},
    {"argmax", lower_arg},
    {"argmin", lower_arg},
    {"max", lower_max},
    {"min", lower_max},
    {"var", lower_var},
    {"std", lower_var},
    {"var_mean", lower_var},
    {"linalg_vector_norm", lower_norm},
    {"norm", lower_norm},
    {"cumsum", lower_cumsum},
    {"diff", lower_diff},
    {"topk", lower_topk},
    {"sort", lower_topk},
    {"argsort", lower_topk},
    {NULL, NULL},
};
