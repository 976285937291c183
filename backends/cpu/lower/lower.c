/* Lowers nodes to steps. This file lowers portable kernels, views and copies; the other kinds of nodes have their own files. */
#include "lower.h"
#include "backends/cpu/sums/sums.h"
#include "small.h"

static const clv__cpu_lower_fn lower_table[CLV__CPU_KIND_COUNT] = {
    [CLV__CPU_CONVOLUTION] = clv__cpu_lower_convolution,
    [CLV__CPU_MATRIX] = clv__cpu_lower_matrix,
    [CLV__CPU_AFFINE] = clv__cpu_lower_affine,
    [CLV__CPU_POOL] = clv__cpu_lower_pool,
    [CLV__CPU_UNARY] = clv__cpu_lower_unary,
    [CLV__CPU_BINARY] = clv__cpu_lower_binary,
    [CLV__CPU_CONCAT] = clv__cpu_lower_concat,
    [CLV__CPU_LRN] = clv__cpu_lower_lrn,
    [CLV__CPU_SOFTMAX] = clv__cpu_lower_softmax,
    [CLV__CPU_TRANSPOSE] = clv__cpu_lower_transpose,
    [CLV__CPU_SHUFFLE] = clv__cpu_lower_shuffle,
    [CLV__CPU_LAYER_NORM] = clv__cpu_lower_layer_norm,
    [CLV__CPU_INSTANCE_NORM] = clv__cpu_lower_instance,
    [CLV__CPU_DECONVOLUTION] = clv__cpu_lower_deconvolution,
    [CLV__CPU_RESIZE] = clv__cpu_lower_resize,
    [CLV__CPU_INTEGER_CONVOLUTION] = clv__cpu_lower_integers,
    [CLV__CPU_INTEGER_MATRIX] = clv__cpu_lower_integers,
    [CLV__CPU_GRID] = clv__cpu_lower_grid,
    [CLV__CPU_ATTENTION] = clv__cpu_lower_attention,
    [CLV__CPU_SUMS] = clv__cpu_lower_sums,
};

/* The type of the value without its data. If `wide` is set, this is the type that steps see (f32 instead of f16 and bf16,
 * widen.c); otherwise the model's type. */
static clv_tensor type_only(const clv__cpu_variant *variant, uint32_t value, bool wide) {
  clv_tensor type;
  memset(&type, 0, sizeof type);
  if (value == CLV__CPU_NONE) return type;
  if (!wide) return clv__cpu_outer_type(variant, value);
  type = variant->values[value].type;
  type.data = NULL;
  return type;
}

static clv_status kernel_layout(clv__cpu_variant *variant, uint32_t value, bool wide, const clv__dnn_layout **layout,
                                clv_error *error) {
  *layout = NULL;
  return wide ? CLV_OK : clv__cpu_form_outer(variant, value, layout, error);
}

clv_status clv__cpu_kernel_scratch(clv__cpu_variant *variant, clv__cpu_step *step, clv_error *error) {
  const clv__kernel *kernel = step->kernel != NULL ? step->kernel : step->node->kernel;
  if (kernel->scratch_bytes == NULL) return CLV_OK;
  clv_tensor *types = clv__arena_allocate_zero(&variant->arena, step->operand_count, sizeof *types);
  if (types == NULL) return clv__error_memory(error, step->operand_count * sizeof *types);
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    types[i] = step->operands[i].type;
    if (step->operands[i].slot != CLV__CPU_NONE && variant->slots[step->operands[i].slot].kind == CLV__CPU_SLOT_CONSTANT) {
      types[i].data = variant->slots[step->operands[i].slot].data;
    }
  }
  const clv__kernel_call call = {.op = step->node->op,
                                 .opset = step->node->opset,
                                 .attributes = step->node->attributes,
                                 .inputs = types,
                                 .input_count = step->input_count,
                                 .outputs = types + step->input_count,
                                 .output_count = step->operand_count - step->input_count,
                                 .error = error};
  step->scratch_bytes = kernel->scratch_bytes(&call);
  if (step->scratch_bytes != SIZE_MAX) return CLV_OK;
  return clv__error_set(error, CLV_OUT_OF_MEMORY, "the kernel's scratch size exceeds the address space");
}

static clv_status lower_kernel(clv__cpu_variant *variant, clv__cpu_variant_node *node, clv_error *error) {
  if (node->source->kernel == NULL || node->post_count > 0 || node->scale != NULL || node->bias != NULL ||
      node->kind == CLV__CPU_SHUFFLE || node->composed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "a fused step has no kernel"); /* the caller lowers again without fusion */
  }
  const uint32_t room = node->input_count + node->output_count;
  clv__cpu_operand *operands = clv__arena_allocate_zero(&variant->arena, room, sizeof *operands);
  if (operands == NULL) return clv__error_memory(error, room * sizeof *operands);
  const bool wide = clv__cpu_runs_wide(variant, node);
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const clv__dnn_layout *layout;
    operands[i] = (clv__cpu_operand){.slot = CLV__CPU_NONE, .type = type_only(variant, node->inputs[i], wide)};
    if (node->inputs[i] == CLV__CPU_NONE) continue;
    CLV__TRY(kernel_layout(variant, node->inputs[i], wide, &layout, error));
    CLV__TRY(clv__cpu_form_get(variant, node->inputs[i], layout, &operands[i].slot, error));
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const clv__dnn_layout *layout;
    clv__cpu_operand *operand = &operands[node->input_count + i];
    *operand = (clv__cpu_operand){.slot = CLV__CPU_NONE, .type = type_only(variant, node->outputs[i], wide)};
    if (node->outputs[i] == CLV__CPU_NONE) continue;
    CLV__TRY(kernel_layout(variant, node->outputs[i], wide, &layout, error));
    CLV__TRY(clv__cpu_form_make(variant, node->outputs[i], layout, &operand->slot, error));
  }
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_KERNEL, node->source, node->source->op, 0);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->operands = operands;
  step->operand_count = step->operand_room = room;
  step->input_count = node->input_count;
  step->may_overlap = clv__cpu_is_in_place(variant, node);
  return clv__cpu_kernel_scratch(variant, step, error);
}

/* Emits a copy of row-major bytes, in the model's dtype, to the memory of the variant's output. */
static clv_status copy_out(clv__cpu_variant *variant, const clv__cpu_node *node, uint32_t from_slot, uint32_t value,
                           clv_error *error) {
  const clv__dnn_layout *layout;
  uint32_t slot;
  CLV__TRY(clv__cpu_form_outer(variant, value, &layout, error));
  CLV__TRY(clv__cpu_form_make(variant, value, layout, &slot, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_COPY, node, "copy", 2);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  clv__cpu_step_input(step, 0, from_slot, NULL);
  clv__cpu_step_output(step, 0, slot, NULL);
  step->operands[0].type = step->operands[1].type = type_only(variant, value, false);
  return CLV_OK;
}

/* Whether `made` is the result of a Cast to f32 of a value that is stored in the narrower dtype `lies`. Nodes that read `made`
 * derive the dtype of their results from it, so the value must be converted to f32 here. */
static bool widens(const clv__cpu_variant_value *made, clv_dtype lies) {
  return made->outer == CLV_DTYPE_NONE && made->made == CLV_F32 && lies != made->type.dtype;
}

/* Sets *dtype to the dtype that a view shares with its source: usually that in which the source is stored. Sets *from and *to
 * to the row-major layouts of the source and of the view in this dtype; NULL if it is the dtype of the source's type. */
static clv_status view_layouts(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout **from,
                               const clv__dnn_layout **to, clv_dtype *dtype, clv_error *error) {
  const clv__cpu_variant_value *source = &variant->values[node->inputs[0]];
  const clv__dnn_layout *lies = source->form_count > 0 ? source->forms[0].layout : NULL;
  *dtype = lies != NULL ? clv__dnn_layout_dtype(lies) : source->type.dtype;
  *from = *to = NULL;
  if (widens(clv__cpu_output(variant, node), *dtype)) *dtype = source->type.dtype;
  if (*dtype == source->type.dtype) return CLV_OK;
  *from = clv__cpu_form_dense(variant, node->inputs[0], *dtype);
  *to = clv__cpu_form_dense(variant, node->outputs[0], *dtype);
  return *from != NULL && *to != NULL ? CLV_OK : clv__error_memory(error, 0);
}

/* A view shares the slot of its source, because the bytes are the same. If the view is an output of the variant, the source is
 * computed directly in the output's memory. A source that is an input, a constant or another output is copied there instead. If
 * the source is stored in a dtype other than the model's, finish_outputs() later converts it. */
static clv_status lower_view(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv_error *error) {
  clv__cpu_variant_value *made = clv__cpu_output(variant, node);
  const clv_tensor *from = &variant->values[node->inputs[0]].type;
  const clv__dnn_layout *source, *view;
  clv_dtype dtype;
  uint32_t slot;
  if (made->output == CLV__CPU_NONE && clv__tensor_same_type(from, &made->type) &&
      clv__cpu_form_is_blocked(variant, node->inputs[0]) &&
      !widens(made, clv__cpu_form_dtype(variant, node->inputs[0]))) { /* the same shape: any layout works */
    made->forms[0] = variant->values[node->inputs[0]].forms[0];
    made->form_count = 1;
    return CLV_OK;
  }
  CLV__TRY(view_layouts(variant, node, &source, &view, &dtype, error));
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], source, &slot, error));
  clv__cpu_slot *root = &variant->slots[variant->slots[slot].root];
  if (made->output != CLV__CPU_NONE && dtype == clv__cpu_outer_type(variant, node->outputs[0]).dtype) {
    if (root->kind != CLV__CPU_SLOT_ARENA) return copy_out(variant, node->source, slot, node->outputs[0], error);
    root->kind = CLV__CPU_SLOT_OUTPUT;
    root->index = made->output;
  }
  made->forms[0] = (clv__cpu_form){view, slot};
  made->form_count = 1;
  return CLV_OK;
}

static clv_status lower_node(clv__cpu_variant *variant, clv__cpu_variant_node *node, clv_error *error) {
  bool taken;
  if (node->kind == CLV__CPU_VIEW) return lower_view(variant, node, error);
  if (node->kind != CLV__CPU_KERNEL) {
    taken = true;
    CLV__TRY(lower_table[node->kind](variant, node, &taken, error));
    if (taken) return CLV_OK;
    if (node->kind == CLV__CPU_UNARY || (node->kind == CLV__CPU_BINARY && node->post_count == 1)) node->post_count = 0;
  }
  CLV__TRY(clv__cpu_lower_elementwise(variant, node, &taken, error));
  if (taken) return CLV_OK;
  CLV__TRY(clv__cpu_lower_recurrent(variant, node, &taken, error));
  if (taken) return CLV_OK;
  CLV__TRY(clv__cpu_lower_split(variant, node, &taken, error));
  if (taken) return CLV_OK;
  return lower_kernel(variant, node, error);
}

/* Emits copies for outputs that no step has written yet: inputs and constants passed through, a value listed twice, values in
 * other layouts. */
static clv_status finish_outputs(clv__cpu_variant *variant, clv_error *error) {
  const clv__cpu_program *program = variant->program;
  for (uint32_t i = 0; i < program->output_count; ++i) {
    const uint32_t value = program->outputs[i];
    clv__cpu_variant_value *made = &variant->values[value];
    const clv__dnn_layout *layout;
    uint32_t slot;
    CLV__TRY(clv__cpu_form_outer(variant, value, &layout, error));
    CLV__TRY(clv__cpu_form_get(variant, value, layout, &slot, error));
    const clv__cpu_slot *root = &variant->slots[variant->slots[slot].root];
    if (root->kind == CLV__CPU_SLOT_OUTPUT && root->index == i) continue;
    made->output = i;
    CLV__TRY(
        copy_out(variant, made->producer != CLV__CPU_NONE ? variant->nodes[made->producer].source : NULL, slot, value, error));
  }
  return CLV_OK;
}

clv_status clv__cpu_pass_lower(clv__cpu_variant *variant, clv_error *error) {
  for (uint32_t i = 0; i < variant->program->input_count; ++i) {
    clv__cpu_variant_value *value = &variant->values[variant->program->inputs[i]];
    const uint32_t output = value->output;
    const clv__dnn_layout *layout;
    uint32_t slot;
    value->output = CLV__CPU_NONE; /* an input is stored in the caller's memory, even if it is also an output */
    CLV__TRY(clv__cpu_form_outer(variant, variant->program->inputs[i], &layout, error));
    CLV__TRY(clv__cpu_form_make(variant, variant->program->inputs[i], layout, &slot, error));
    value->output = output;
    variant->slots[slot].kind = CLV__CPU_SLOT_INPUT;
    variant->slots[slot].index = i;
  }
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead) continue;
    clv_status status = lower_node(variant, node, error);
    if (status != CLV_OK) {
      return clv__error_prefix(error, status, "node '%s' (%s)", node->source->name, node->source->op);
    }
  }
  return finish_outputs(variant, error);
}
