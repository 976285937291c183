/* Tensors whose elements depend on their positions: ConstantOfShape, EyeLike, Trilu, OneHot. */
#include <stdio.h>

#include "list.h"

static clv_status lower_fill(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *out = &node->outputs[0];
  const clv_attribute *value = clv__attribute_find(node->attributes, "value");
  if (clv__opencl_is_empty(out)) return CLV_OK;
  clv__opencl_launch(l, "generate", "fill");
  clv__opencl_define_dtype(l, "T", clv__opencl_bits(out->dtype));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(out));
  const bool given = value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR;
  clv__opencl_pass_long(l, given ? clv__opencl_element_bits(value->tensor) : 0);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(out));
}

static bool accepts_fill(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const clv_attribute *value = clv__attribute_find(node->attributes, "value");
  const clv_dtype dtype = value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR ? value->tensor->dtype : CLV_F32;
  if ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_ANY) == 0) {
    snprintf(reason, 160, "dtype %s not supported", clv_dtype_name(dtype));
    return false;
  }
  return clv__opencl_accepts_constant(node, 0, "shape", reason);
}

static clv_status lower_eye(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *out = &node->outputs[0];
  int64_t one = 0, k = clv__attribute_int(node->attributes, "k", 0);
  const clv_tensor element = {.dtype = out->dtype, .data = &one};
  if (clv__opencl_is_empty(out)) return CLV_OK;
  clv__tensor_put(&element, 0, 1, 1, true);
  if (k > out->dims[1]) k = out->dims[1]; /* all diagonals outside the matrix are equivalent */
  if (k < -out->dims[0]) k = -out->dims[0];
  clv__opencl_launch(l, "generate", "eye");
  clv__opencl_define_dtype(l, "T", clv__opencl_bits(out->dtype));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(out));
  clv__opencl_pass_index(l, out->dims[1]);
  clv__opencl_pass_index(l, k);
  clv__opencl_pass_long(l, one);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(out));
}

static bool accepts_eye(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const clv_dtype dtype = node->output_count > 0 ? node->outputs[0].dtype : CLV_DTYPE_NONE;
  if ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_ANY) != 0) return true;
  snprintf(reason, 160, "dtype %s not supported", clv_dtype_name(dtype));
  return false;
}

static clv_status lower_trilu(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  if (clv__opencl_is_empty(x)) return CLV_OK;
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  int64_t k = clv__opencl_has_input(node, 1) ? clv__tensor_get_int(&node->inputs[1], 0) : 0;
  if (k > columns) k = columns;
  if (k < -rows) k = -rows;
  clv__opencl_launch(l, "generate", "trilu");
  clv__opencl_define_dtype(l, "T", clv__opencl_bits(x->dtype));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(x));
  clv__opencl_pass_index(l, rows);
  clv__opencl_pass_index(l, columns);
  clv__opencl_pass_index(l, k);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "upper", 1) != 0);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(x));
}

static bool accepts_trilu(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_constant(node, 1, "k", reason);
}

static clv_status lower_one_hot(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *out = &node->outputs[0];
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", -1), out->rank);
  if (clv__opencl_is_empty(out)) return CLV_OK;
  clv__opencl_launch(l, "generate", "one_hot");
  clv__opencl_define_dtype(l, "T", clv__opencl_bits(out->dtype));
  clv__opencl_define_dtype(l, "I", node->inputs[0].dtype);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 2);
  clv__opencl_pass_index(l, clv__opencl_count(out));
  clv__opencl_pass_index(l, out->dims[axis]);
  clv__opencl_pass_index(l, clv__dims_product(out, axis + 1, out->rank));
  return clv__opencl_enqueue_1d(l, clv__opencl_count(out));
}

static bool accepts_one_hot(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 2, CLV__DTYPES_ANY, reason) && clv__opencl_accepts_constant(node, 1, "depth", reason);
}

const clv__opencl_operator clv__opencl_family_generate[] = {
    {"", "ConstantOfShape", CLV__DTYPE_BIT(CLV_I64), false, accepts_fill, lower_fill},
    {"", "EyeLike", CLV__DTYPES_ANY, false, accepts_eye, lower_eye},
    {"", "Trilu", CLV__DTYPES_ANY, false, accepts_trilu, lower_trilu},
    {"", "OneHot", CLV__DTYPES_NUMBER, false, accepts_one_hot, lower_one_hot},
    {NULL, NULL, 0, false, NULL, NULL},
};
