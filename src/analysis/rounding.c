/* See rounding.h. */
#include "analysis/rounding.h"

#include <math.h>
#include <string.h>

#include "operators/infer.h"

/* Returns the largest magnitude in the value `scale`, the scales of a DequantizeLinear; 0 if the value is not constant. */
static double largest_scale(const clv_graph_view *view, uint32_t scale) {
  const clv_tensor *type = clv__view_type(view, scale);
  size_t count;
  double largest = 0;
  if (type->data == NULL || !clv__tensor_count(type, &count)) return 0;
  for (size_t i = 0; i < count; ++i) largest = fmax(largest, fabs(clv__tensor_get(type, i)));
  return largest;
}

void clv__view_roundings(const clv_graph_view *view, clv__rounding *roundings) {
  memset(roundings, 0, view->value_count * sizeof *roundings);
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const clv__node *node = clv__view_node(view, n);
    const clv__op *op = clv__op_find(node->domain, node->op);
    const uint32_t *inputs = view->operands + view->operand_offsets[n], *outputs = inputs + node->input_count;
    clv__rounding read = {0};
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (inputs[i] == CLV_NO_VALUE) continue;
      const clv__rounding *input = &roundings[inputs[i]];
      if (input->times > read.times) read.times = input->times;
      if (input->step > read.step) read.step = input->step;
    }
    const uint32_t flags = op == NULL ? 0 : op->flags;
    const bool rounds = (flags & CLV__OP_ROUNDS) != 0, keeps = (flags & (CLV__OP_KEEPS_STEPS | CLV__OP_VIEW)) != 0;
    const bool scales = strcmp(node->op, "DequantizeLinear") == 0 && node->domain[0] == '\0' && read.step > 0;
    for (uint32_t o = 0; o < node->output_count; ++o) {
      if (outputs[o] == CLV_NO_VALUE) continue;
      const clv_dtype dtype = clv__view_type(view, outputs[o])->dtype;
      const bool is_rounded = rounds && clv__dtype_is_in(dtype, CLV__DTYPES_INTEGER | CLV__DTYPES_PACKED_INTEGER);
      double step = 0;
      if (is_rounded) step = 1;
      if (scales) step = largest_scale(view, inputs[1]);
      if (keeps && inputs[0] != CLV_NO_VALUE && dtype == clv__view_type(view, inputs[0])->dtype) step = read.step;
      roundings[outputs[o]] = (clv__rounding){read.times + is_rounded, step};
    }
  }
}
