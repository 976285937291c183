/* Softmax, LogSoftmax, Hardmax. */
#include "list.h"

/* A single work item computes a line with fewer elements than this. */
#define SHORT 32

static clv_status lower_softmax(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0];
  const bool flattens = node->opset < 13;
  int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", flattens ? 1 : -1), in->rank);
  if (axis < 0) axis = 0;
  if (axis > in->rank) axis = in->rank;
  if (clv__opencl_is_empty(in)) return CLV_OK;
  const int64_t outer = clv__dims_product(in, 0, axis);
  int64_t length = 1, inner = 1;
  if (flattens) {
    length = clv__dims_product(in, axis, in->rank);
  } else if (axis < in->rank) {
    length = in->dims[axis];
    inner = clv__dims_product(in, axis + 1, in->rank);
  }
  const int32_t kind = node->op[0] == 'S' ? 0 : node->op[0] == 'L' ? 1 : 2;
  const bool wide = clv__opencl_is_wide(l, in->dtype) && inner == 1 && kind != 2 && length >= SHORT;
  const bool rows = !wide && inner == 1 && length >= SHORT;
  clv__opencl_launch(l, "softmax", wide ? "wide" : rows ? "rows" : "columns");
  clv__opencl_define_dtype(l, "T", in->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  if (wide) clv__opencl_define(l, "VECTORS", "1");
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  if (!rows) clv__opencl_pass_index(l, outer * inner);
  clv__opencl_pass_index(l, length);
  if (!rows && !wide) clv__opencl_pass_index(l, inner);
  clv__opencl_pass_int(l, kind);
  clv__opencl_pass_posts(l);
  if (wide) return clv__opencl_enqueue(l, 1, &outer, (int64_t[]){1});
  if (!rows) return clv__opencl_enqueue_1d(l, outer * inner);
  const int64_t group = clv__opencl_group(l);
  return clv__opencl_enqueue(l, 1, (int64_t[]){outer * group}, (int64_t[]){group});
}

const clv__opencl_operator clv__opencl_family_softmax[] = {
    {"", "Softmax", CLV__DTYPES_FLOAT, true, NULL, lower_softmax},
    {"", "LogSoftmax", CLV__DTYPES_FLOAT, true, NULL, lower_softmax},
    {"", "Hardmax", CLV__DTYPES_FLOAT, true, NULL, lower_softmax},
    {NULL, NULL, 0, false, NULL, NULL},
};
