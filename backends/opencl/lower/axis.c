/* Operators along one axis: ArgMax, ArgMin, CumSum, CumProd, TopK. */
#include <stdio.h>

#include "list.h"

typedef struct lines {
  int64_t outer, length, inner;
} lines;

static clv_status lines_make(const clv__opencl_node *node, int64_t axis, lines *shape, clv_error *error) {
  const clv_tensor *x = &node->inputs[0];
  if (x->rank == 0 && (axis == 0 || axis == -1)) {
    *shape = (lines){1, 1, 1};
    return CLV_OK;
  }
  if (axis < -(int64_t)x->rank || axis >= x->rank) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "axis: %lld out of range for rank %d", (long long)axis, (int)x->rank);
  }
  const int32_t at = clv__opencl_axis(axis, x->rank);
  *shape = (lines){clv__dims_product(x, 0, at), x->dims[at], clv__dims_product(x, at + 1, x->rank)};
  return CLV_OK;
}

static void begin(clv__opencl_lowering *l, const char *kernel, clv_dtype dtype) {
  clv__opencl_launch(l, "axis", kernel);
  clv__opencl_define_dtype(l, "T", dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
}

static clv_status lower_arg(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  lines shape;
  CLV__TRY(lines_make(node, clv__attribute_int(node->attributes, "axis", 0), &shape, error));
  const int64_t count = shape.outer * shape.inner, group = clv__opencl_group(l);
  if (count == 0) return CLV_OK;
  if (shape.length == 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "an empty axis has no %s element",
                          strcmp(node->op, "ArgMin") == 0 ? "smallest" : "largest");
  }
  const bool by_group = shape.length >= 4 * group && (shape.inner == 1 || count < 1024);
  begin(l, by_group ? "arg_group" : "arg", node->inputs[0].dtype);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  if (!by_group) clv__opencl_pass_index(l, count);
  clv__opencl_pass_index(l, shape.length);
  clv__opencl_pass_index(l, shape.inner);
  clv__opencl_pass_int(l, strcmp(node->op, "ArgMin") == 0);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "select_last_index", 0) != 0);
  if (!by_group) return clv__opencl_enqueue_1d(l, count);
  return clv__opencl_enqueue(l, 1, (int64_t[]){count * group}, (int64_t[]){group});
}

static clv_status lower_cumulate(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  lines shape;
  const clv_tensor *axis = &node->inputs[1];
  if (axis->data == NULL || clv__opencl_count(axis) != 1) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input axis must have one element, known at compile time");
  }
  CLV__TRY(lines_make(node, clv__tensor_get_int(axis, 0), &shape, error));
  if (clv__opencl_is_empty(&node->inputs[0])) return CLV_OK;
  const int64_t count = shape.outer * shape.inner;
  begin(l, "cumulate", node->inputs[0].dtype);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_index(l, shape.length);
  clv__opencl_pass_index(l, shape.inner);
  clv__opencl_pass_int(l, strcmp(node->op, "CumProd") == 0);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "exclusive", 0) != 0);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "reverse", 0) != 0);
  return clv__opencl_enqueue_1d(l, count);
}

static bool accepts_cumulate(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const clv_tensor *axis = &node->inputs[1];
  bool is_single = axis->rank == 0;
  for (int32_t d = 0; d < axis->rank; ++d) is_single = axis->dims[d] == 1;
  if (axis->rank > 1 || !is_single) {
    snprintf(reason, 160, "input axis is not known to have one element");
    return false;
  }
  return clv__opencl_accepts_constant(node, 1, "axis", reason);
}

static clv_status lower_top(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  const clv_tensor *x = &node->inputs[0];
  const bool has_values = clv__opencl_has_output(node, 0), has_places = clv__opencl_has_output(node, 1);
  lines shape;
  if (!has_values && !has_places) return CLV_OK;
  CLV__TRY(lines_make(node, clv__attribute_int(node->attributes, "axis", -1), &shape, error));
  const clv_tensor *out = &node->outputs[has_values ? 0 : 1];
  if (clv__opencl_is_empty(out)) return CLV_OK;
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", -1), x->rank);
  begin(l, "top", x->dtype);
  clv__opencl_pass_output(l, has_values ? 0 : 1);
  clv__opencl_pass_output(l, has_places ? 1 : 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(x));
  clv__opencl_pass_index(l, shape.length);
  clv__opencl_pass_index(l, shape.inner);
  clv__opencl_pass_index(l, out->dims[axis]);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "largest", 1) != 0);
  clv__opencl_pass_int(l, has_values);
  clv__opencl_pass_int(l, has_places);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(x));
}

/* TopK is supported for at most this many elements along the axis, because it compares each of them with all others. */
#define LONGEST_LINE 16384

static bool accepts_top(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const clv_tensor *x = &node->inputs[0];
  const int64_t given = clv__attribute_int(node->attributes, "axis", -1);
  const int64_t axis = given < 0 && x->rank != CLV_RANK_UNKNOWN ? given + x->rank : given;
  if (node->opset >= 10 && !clv__opencl_accepts_constant(node, 1, "K", reason)) return false;
  if (x->rank == CLV_RANK_UNKNOWN || axis < 0 || axis >= x->rank || x->dims[axis] <= LONGEST_LINE) return true;
  snprintf(reason, 160, "%lld elements along the axis, above the maximum of %d", (long long)x->dims[axis], LONGEST_LINE);
  return false;
}

const clv__opencl_operator clv__opencl_family_axis[] = {
    {"", "ArgMax", CLV__DTYPES_NUMBER, false, NULL, lower_arg},
    {"", "ArgMin", CLV__DTYPES_NUMBER, false, NULL, lower_arg},
    {"", "CumSum", CLV__DTYPES_NUMBER, false, accepts_cumulate, lower_cumulate},
    {"", "CumProd", CLV__DTYPES_NUMBER, false, accepts_cumulate, lower_cumulate},
    {"", "TopK", CLV__DTYPES_NUMBER, false, accepts_top, lower_top},
    {NULL, NULL, 0, false, NULL, NULL},
};
