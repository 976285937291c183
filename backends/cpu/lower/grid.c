/* QuantizeLinear and DequantizeLinear with one scale for the whole tensor, and DynamicQuantizeLinear. If the input has its
 * channels last, they process its elements in memory order, and the result has its channels last, too. Otherwise the portable
 * kernel runs on row-major tensors. */
#include "lower.h"

/* Whether the value is stored with channels last. If not, the portable kernel reads it as row-major. */
static bool is_channels_last(clv__cpu_variant *variant, uint32_t value) {
  const clv_tensor *type = &variant->values[value].type;
  if (!clv__cpu_form_is_blocked(variant, value)) return false;
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, value);
  if (layout == NULL) return false;
  const clv__dnn_layout *last =
      clv__dnn_layout_channels_last(&variant->arena, clv__dnn_layout_dtype(layout), type->rank, type->dims);
  return last != NULL && clv__dnn_layout_equal(layout, last);
}

clv_status clv__cpu_lower_grid(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  *taken = is_channels_last(variant, node->inputs[0]);
  if (!*taken) return CLV_OK;
  const uint32_t count = node->input_count + node->output_count;
  clv__cpu_operand *operands = clv__arena_allocate_zero(&variant->arena, count, sizeof *operands);
  const clv_tensor *to = &variant->values[node->outputs[0]].type;
  const clv__dnn_layout *from_layout = clv__cpu_form_layout(variant, node->inputs[0]);
  const clv__dnn_layout *to_layout = clv__dnn_layout_channels_last(&variant->arena, to->dtype, to->rank, to->dims);
  if (operands == NULL || from_layout == NULL || to_layout == NULL) return clv__error_memory(error, sizeof *operands);
  for (uint32_t i = 0; i < node->input_count; ++i) {
    operands[i].slot = CLV__CPU_NONE;
    if (node->inputs[i] == CLV__CPU_NONE) continue;
    operands[i].type = variant->values[node->inputs[i]].type;
    operands[i].type.data = NULL;
    CLV__TRY(clv__cpu_form_get(variant, node->inputs[i], i == 0 ? from_layout : NULL, &operands[i].slot, error));
  }
  operands[0].type.dtype = clv__dnn_layout_dtype(from_layout); /* as stored: u8 for an i8 value that is never negative */
  for (uint32_t i = 0; i < node->output_count; ++i) {
    clv__cpu_operand *made = &operands[node->input_count + i];
    made->slot = CLV__CPU_NONE;
    if (node->outputs[i] == CLV__CPU_NONE) continue;
    made->type = variant->values[node->outputs[i]].type;
    made->type.data = NULL;
    CLV__TRY(clv__cpu_form_make(variant, node->outputs[i], i == 0 ? to_layout : NULL, &made->slot, error));
  }
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_KERNEL, node->source, node->source->op, 0);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->operands = operands;
  step->operand_count = step->operand_room = count;
  step->input_count = node->input_count;
  return CLV_OK;
}
