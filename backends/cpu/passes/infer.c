/* The first pass: infers the type and shape of every value from the given input shapes, and computes small values whose inputs
 * are known. */
#include "backends/common/fold.h"
#include "variant.h"

static void start_values(clv__cpu_variant *variant, const clv_tensor *inputs, bool *as_compiled) {
  const clv__cpu_program *program = variant->program;
  *as_compiled = true;
  for (uint32_t i = 0; i < program->value_count; ++i) {
    clv__cpu_variant_value *value = &variant->values[i];
    value->type = program->values[i].type;
    value->is_constant = program->values[i].is_constant;
    if (!value->is_constant) value->type.data = NULL;
  }
  for (uint32_t i = 0; i < program->input_count; ++i) {
    clv__cpu_variant_value *value = &variant->values[program->inputs[i]];
    if (!clv__tensor_same_type(&value->type, &inputs[i])) *as_compiled = false;
    value->type = inputs[i];
    value->type.data = NULL;
    variant->input_types[i] = value->type;
  }
}

/* Whether the node's outputs are small and can be computed now, without reading large constants. */
static bool can_fold(const clv__cpu_variant *variant, const clv__cpu_node *node, const clv__kernel_call *call) {
  if (node->has_body) return false;
  for (uint32_t i = 0; i < node->input_count && !clv__fold_reads_shape(node->domain, node->op); ++i) {
    const uint32_t value = node->inputs[i];
    if (value != CLV__CPU_NONE && value < variant->program->value_count && variant->program->values[value].is_borrowed)
      return false;
  }
  return clv__fold_is_possible(node->domain, call);
}

static clv_status infer_node(clv__cpu_variant *variant, const clv_graph_view *graph, uint32_t index, bool as_compiled,
                             clv_tensor *scratch, bool *complete, clv_error *error) {
  const clv__cpu_node *node = &variant->program->nodes[index];
  clv_tensor *inputs = scratch, *outputs = scratch + node->input_count;
  *complete = true;
  variant->nodes[index].dead = clv__cpu_program_is_given(variant->program, node);
  if (variant->nodes[index].dead) return CLV_OK;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    memset(&inputs[i], 0, sizeof inputs[i]);
    if (node->inputs[i] != CLV__CPU_NONE) inputs[i] = variant->values[node->inputs[i]].type;
  }
  bool known = as_compiled;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    memset(&outputs[i], 0, sizeof outputs[i]);
    outputs[i].rank = CLV_RANK_UNKNOWN;
    if (node->outputs[i] == CLV__CPU_NONE) continue;
    const clv_tensor *type = &variant->values[node->outputs[i]].type;
    if (!clv__tensor_is_static(type)) known = false;
    if (known) outputs[i] = *type;
  }
  if (!known) {
    if (graph == NULL)
      return clv__error_set(error, CLV_NOT_SUPPORTED, "shapes are unknown, and there is no graph to infer them from");
    CLV__TRY(variant->device->host->infer_node(graph, index, inputs, outputs, error));
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__CPU_NONE) {
      outputs[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
      continue;
    }
    outputs[i].data = NULL;
    if (!clv__tensor_is_static(&outputs[i])) *complete = false;
  }
  if (!*complete) return CLV_OK;
  const clv__kernel_call call = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = node->attributes,
                                 .inputs = inputs,
                                 .input_count = node->input_count,
                                 .outputs = outputs,
                                 .output_count = node->output_count,
                                 .error = error};
  const bool folds = can_fold(variant, node, &call);
  if (folds) CLV__TRY(clv__fold(node->kernel, &call, inputs, outputs, &variant->arena, variant->device->allocator));
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__CPU_NONE) continue;
    variant->values[node->outputs[i]].type = outputs[i];
    variant->values[node->outputs[i]].is_constant = folds;
  }
  variant->nodes[index].dead = folds;
  return CLV_OK;
}

clv_status clv__cpu_pass_infer(clv__cpu_variant *variant, const clv_graph_view *graph, bool *complete, clv_error *error) {
  const clv__cpu_program *program = variant->program;
  size_t most = 0;
  for (uint32_t i = 0; i < program->node_count; ++i) {
    const size_t needed = (size_t)program->nodes[i].input_count + program->nodes[i].output_count;
    if (needed > most) most = needed;
  }
  clv_tensor *scratch = clv__arena_allocate_zero(&variant->arena, most, sizeof *scratch);
  variant->input_types = clv__arena_allocate_zero(&variant->arena, program->input_count, sizeof *variant->input_types);
  if (scratch == NULL || variant->input_types == NULL) return clv__error_memory(error, most * sizeof *scratch);
  bool as_compiled;
  *complete = true;
  start_values(variant, variant->given, &as_compiled);
  for (uint32_t i = 0; i < program->input_count; ++i) {
    if (!clv__tensor_is_static(&variant->input_types[i])) *complete = false;
  }
  for (uint32_t i = 0; i < program->node_count && *complete; ++i) {
    clv_status status = infer_node(variant, graph, i, as_compiled, scratch, complete, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "node '%s' (%s)", program->nodes[i].name, program->nodes[i].op);
  }
  return CLV_OK;
}
