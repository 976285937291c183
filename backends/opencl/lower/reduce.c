/* Reduce*, and the global pools, which reduce their spatial axes. */
#include <stdio.h>

#include "fold.h"
#include "list.h"

typedef enum finish { FINISH_NONE, FINISH_MEAN, FINISH_ROOT, FINISH_LOG } finish;

typedef struct reduction {
  const char *op;
  const char *fold, *merge;
  finish last;
  bool is_product, is_extreme, is_shifted;
} reduction;

#define ADD "(total) + (other)"
#define LARGER "(x) > (total) || (x) != (x) ? (x) : (total)"
#define SMALLER "(x) < (total) || (x) != (x) ? (x) : (total)"
#define MERGE_LARGER "(other) > (total) || (other) != (other) ? (other) : (total)"
#define MERGE_SMALLER "(other) < (total) || (other) != (other) ? (other) : (total)"

static const reduction reductions[] = {
    {"ReduceSum", "(total) + (x)", ADD, FINISH_NONE, false, false, false},
    {"ReduceMean", "(total) + (x)", ADD, FINISH_MEAN, false, false, false},
    {"ReduceMax", LARGER, MERGE_LARGER, FINISH_NONE, false, true, false},
    {"ReduceMin", SMALLER, MERGE_SMALLER, FINISH_NONE, false, true, false},
    {"ReduceProd", "(total) * (x)", "(total) * (other)", FINISH_NONE, true, false, false},
    {"ReduceL1", "(total) + ((x) < 0 ? -(x) : (x))", ADD, FINISH_NONE, false, false, false},
    {"ReduceL2", "(total) + (x) * (x)", ADD, FINISH_ROOT, false, false, false},
    {"ReduceLogSum", "(total) + (x)", ADD, FINISH_LOG, false, false, false},
    {"ReduceLogSumExp", "(total) + exp((x) - shift)", ADD, FINISH_LOG, false, false, true},
    {"ReduceSumSquare", "(total) + (x) * (x)", ADD, FINISH_NONE, false, false, false},
    /* A max pool ignores NaN, unlike ReduceMax. */
    {"GlobalMaxPool", "(x) > (total) ? (x) : (total)", "(other) > (total) ? (other) : (total)", FINISH_NONE, false, true, false},
    {"GlobalAveragePool", "(total) + (x)", ADD, FINISH_MEAN, false, false, false},
};

/* If fewer elements than this are folded into an output, a single work item computes the output. */
#define FEW 32

void clv__opencl_fold_make(const clv_tensor *input, uint32_t axes, clv__opencl_fold *fold) {
  int64_t steps[CLV_MAX_RANK], step = 1;
  bool last_folded = false, any = false;
  *fold = (clv__opencl_fold){.kept = {.count = 1}, .folded = {.count = 1}};
  for (int32_t d = input->rank - 1; d >= 0; --d) {
    steps[d] = step;
    step *= input->dims[d];
  }
  for (int32_t d = 0; d < input->rank; ++d) {
    const bool is_folded = (axes >> d & 1u) != 0;
    clv__opencl_axes *of = is_folded ? &fold->folded : &fold->kept;
    if (input->dims[d] == 1) continue;
    const bool joins = any && of->rank > 0 && is_folded == last_folded;
    const int32_t at = joins ? of->rank - 1 : of->rank++;
    of->dims[at] = (joins ? of->dims[at] : 1) * input->dims[d];
    of->strides[at] = steps[d];
    of->count *= input->dims[d];
    last_folded = is_folded;
    any = true;
  }
  fold->inner_folded = any && last_folded;
}

void clv__opencl_pass_axes(clv__opencl_lowering *l, const clv__opencl_axes *axes) {
  clv__opencl_pass_int(l, axes->rank);
  clv__opencl_pass_dims(l, axes->dims, (uint32_t)axes->rank);
  clv__opencl_pass_dims(l, axes->strides, (uint32_t)axes->rank);
}

/* ---- Reductions and their types ---- */

static bool is_float(clv_dtype dtype) {
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
}

static const char *accumulator_of(clv_dtype dtype) {
  if (is_float(dtype)) return dtype == CLV_F64 ? "double" : "float";
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_SIGNED) != 0 ? "LONG" : "ULONG";
}

/* The minimum (`smallest`) or maximum of no elements. It is also the start value of the fold. */
static const char *extreme_start(clv_dtype dtype, bool smallest) {
  switch (dtype) {
    case CLV_I8:
      return smallest ? "127" : "-128";
    case CLV_I16:
      return smallest ? "32767" : "-32768";
    case CLV_I32:
      return smallest ? "2147483647" : "(-2147483647 - 1)";
    case CLV_I64:
      return smallest ? "9223372036854775807L" : "(-9223372036854775807L - 1)";
    case CLV_U8:
      return smallest ? "255" : "0";
    case CLV_U16:
      return smallest ? "65535" : "0";
    case CLV_U32:
      return smallest ? "4294967295u" : "0";
    case CLV_U64:
      return smallest ? "(~(ULONG)0)" : "0";
    case CLV_BOOL:
      return smallest ? "1" : "0";
    default:
      return smallest ? "((accumulator)INFINITY)" : "(-(accumulator)INFINITY)";
  }
}

static const reduction *find(const char *op) {
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; ++i) {
    if (strcmp(reductions[i].op, op) == 0) return &reductions[i];
  }
  return NULL;
}

/* ---- Lowering ---- */

static clv_status launch(clv__opencl_lowering *l, const clv__opencl_node *node, const reduction *r, uint32_t axes) {
  const clv_tensor *in = &node->inputs[0];
  clv__opencl_fold fold;
  clv__opencl_fold_make(in, axes, &fold);
  const bool rows = fold.inner_folded && fold.folded.count >= FEW;
  clv__opencl_launch(l, "reduce", rows ? "rows" : "columns");
  clv__opencl_define_dtype(l, "T", in->dtype);
  clv__opencl_define_dtype(l, "R", node->outputs[0].dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_define(l, "ACCUMULATOR", "%s", accumulator_of(in->dtype));
  clv__opencl_define(l, "IN_FLOAT", "%d", is_float(in->dtype) ? 1 : 0);
  clv__opencl_define(l, "START", "%s",
                     r->is_extreme   ? extreme_start(in->dtype, strcmp(r->op, "ReduceMin") == 0)
                     : r->is_product ? "1"
                                     : "0");
  clv__opencl_define(l, "FOLD(total, x)", "(%s)", r->fold);
  clv__opencl_define(l, "MERGE(total, other)", "(%s)", r->merge);
  if (r->is_shifted) clv__opencl_define(l, "SHIFTED", "1");
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, fold.kept.count);
  clv__opencl_pass_axes(l, &fold.kept);
  clv__opencl_pass_index(l, fold.folded.count);
  clv__opencl_pass_axes(l, &fold.folded);
  clv__opencl_pass_int(l, (int32_t)r->last);
  if (!rows) return clv__opencl_enqueue_1d(l, fold.kept.count);
  const int64_t group = clv__opencl_group(l);
  return clv__opencl_enqueue(l, 1, (int64_t[]){fold.kept.count * group}, (int64_t[]){group});
}

/* Reads the axes from input 1 or, in earlier opsets, from the attribute, and adds the launch. If there are no axes, all are
 * reduced, or none if noop_with_empty_axes is set. */
static clv_status lower_reduce(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  const int32_t rank = node->inputs[0].rank;
  clv__opencl_list list = clv__opencl_list_read(node, 0, "", 1);
  uint32_t axes = 0;
  if (list.tensor == NULL) list.ints = clv__attribute_ints(node->attributes, "axes", &list.count);
  for (size_t i = 0; i < list.count; ++i) {
    const int64_t axis = clv__opencl_list_get(&list, i, 0);
    if (axis < -(int64_t)rank || axis >= rank) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "axes: %lld out of range for rank %d", (long long)axis, (int)rank);
    }
    axes |= 1u << clv__opencl_axis(axis, rank);
  }
  if (list.count == 0 && clv__attribute_int(node->attributes, "noop_with_empty_axes", 0) == 0) axes = (1u << rank) - 1;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  return launch(l, node, find(node->op), axes);
}

static clv_status lower_global(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  return launch(l, node, find(node->op), ((1u << node->inputs[0].rank) - 1) & ~3u);
}

static bool accepts_axes(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_constant(node, 1, "axes", reason);
}

const clv__opencl_operator clv__opencl_family_reduce[] = {
    {"", "ReduceSum", CLV__DTYPES_NUMBER, false, accepts_axes, lower_reduce},
    {"", "ReduceMean", CLV__DTYPES_NUMBER, false, accepts_axes, lower_reduce},
    {"", "ReduceMax", CLV__DTYPES_ANY, false, accepts_axes, lower_reduce},
    {"", "ReduceMin", CLV__DTYPES_ANY, false, accepts_axes, lower_reduce},
    {"", "ReduceProd", CLV__DTYPES_NUMBER, false, accepts_axes, lower_reduce},
    {"", "ReduceL1", CLV__DTYPES_NUMBER, false, accepts_axes, lower_reduce},
    {"", "ReduceSumSquare", CLV__DTYPES_NUMBER, false, accepts_axes, lower_reduce},
    /* These three do not accept integers: the square root or logarithm of the sum would have to be computed in double. */
    {"", "ReduceL2", CLV__DTYPES_FLOAT, false, accepts_axes, lower_reduce},
    {"", "ReduceLogSum", CLV__DTYPES_FLOAT, false, accepts_axes, lower_reduce},
    {"", "ReduceLogSumExp", CLV__DTYPES_FLOAT, false, accepts_axes, lower_reduce},
    {"", "GlobalMaxPool", CLV__DTYPES_FLOAT, false, NULL, lower_global},
    {"", "GlobalAveragePool", CLV__DTYPES_FLOAT, false, NULL, lower_global},
    {NULL, NULL, 0, false, NULL, NULL},
};
