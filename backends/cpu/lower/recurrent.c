/* RNN, GRU and LSTM with constant W and R. Both are packed once, in the form that the kernel of backends/common reads. */
#include "backends/common/kernels.h"
#include "lower.h"

enum { X, W, R, ARRANGEMENT = 18 /* marks packs whose dims differ from the constants' */ };

static bool is_recurrent(const clv__cpu_node *node) {
  static const char *const names[] = {"LSTM", "GRU", "RNN"};
  bool is_named = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) is_named = is_named || strcmp(node->op, names[i]) == 0;
  return is_named && node->domain[0] == 0 && node->input_count > R;
}

/* Whether `value` is a constant [directions, gates * hidden, depth] that steps see as f32. */
static bool is_weights(const clv__cpu_variant *variant, uint32_t value) {
  if (value >= variant->program->value_count || !variant->program->values[value].is_constant) return false;
  return clv__cpu_is_f32(&variant->values[value].type) && variant->values[value].type.rank == 3;
}

/* Packs W or R in panels of 16 units of a gate and sets `operand` to the pack. */
static clv_status pack(clv__cpu_variant *variant, uint32_t value, int64_t hidden, clv__cpu_operand *operand, clv_error *error) {
  const clv_tensor *type = &variant->values[value].type;
  const int64_t dims[3] = {type->dims[0] * type->dims[1] / hidden, hidden, type->dims[2]};
  const int64_t panels = (hidden + CLV__RECURRENT_PANEL - 1) / CLV__RECURRENT_PANEL;
  const int64_t packed[4] = {dims[0], panels, dims[2], CLV__RECURRENT_PANEL};
  const clv__dnn_layout *layout = clv__dnn_layout_units(&variant->arena, CLV_F32, dims);
  const clv__cpu_packing packing = {.value = value,
                                    .from = clv__dnn_layout_dense(&variant->arena, CLV_F32, 3, dims),
                                    .arrangement = ARRANGEMENT,
                                    .is_streamed = true};
  void *data;
  if (packing.from == NULL || layout == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, layout, &data, error));
  operand->type = clv__tensor_make(CLV_F32, 4, packed, NULL);
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(layout), &operand->slot, error);
}

clv_status clv__cpu_lower_recurrent(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  *taken = variant->onednn && is_recurrent(node->source) && is_weights(variant, node->inputs[W]) &&
           is_weights(variant, node->inputs[R]) && clv__cpu_is_f32(&variant->values[node->inputs[X]].type);
  if (!*taken) return CLV_OK;
  const uint32_t count = node->input_count + node->output_count;
  const int64_t hidden = variant->values[node->inputs[R]].type.dims[2];
  clv__cpu_operand *operands = clv__arena_allocate_zero(&variant->arena, count, sizeof *operands);
  if (operands == NULL) return clv__error_memory(error, count * sizeof *operands);
  CLV__TRY(pack(variant, node->inputs[W], hidden, &operands[W], error));
  CLV__TRY(pack(variant, node->inputs[R], hidden, &operands[R], error));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    if (i == W || i == R) continue;
    operands[i].slot = CLV__CPU_NONE;
    if (value == CLV__CPU_NONE) continue;
    operands[i].type = variant->values[value].type;
    operands[i].type.data = NULL;
    if (i < node->input_count)
      CLV__TRY(clv__cpu_form_get(variant, value, NULL, &operands[i].slot, error));
    else
      CLV__TRY(clv__cpu_form_make(variant, value, NULL, &operands[i].slot, error));
  }
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_KERNEL, node->source, node->source->op, 0);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->kernel = clv__kernels()->recurrent_prepared;
  step->operands = operands;
  step->operand_count = step->operand_room = count;
  step->input_count = node->input_count;
  return clv__cpu_kernel_scratch(variant, step, error);
}
