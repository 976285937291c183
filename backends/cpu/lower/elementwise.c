/* Elementwise nodes that have a kernel. If the values share a layout that is not row-major, the kernel runs over them in memory
 * order. Otherwise, if there is little work, the operator's row function is looked up here, so that a run merely calls it. */
#include "backends/common/kernels.h"
#include "operators/common/threads.h"
#include "small.h"

static clv_tensor without_data(const clv_tensor *type) {
  clv_tensor only = *type;
  only.data = NULL;
  return only;
}

static bool is_little(const clv_tensor *out, const clv__elementwise *what) {
  size_t count;
  return clv__tensor_count(out, &count) && count > 0 && (double)count * what->cost < CLV__KERNEL_PARALLEL_WORK;
}

static clv_status add_step(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const char *what,
                           const clv__cpu_elementwise *found, const uint32_t *slots, const clv_tensor *types,
                           clv__cpu_step **step, clv_error *error) {
  clv__cpu_elementwise *kept = clv__arena_copy(&variant->arena, found, sizeof *found);
  if (kept == NULL) return clv__error_memory(error, sizeof *found);
  *step = clv__cpu_step_new(variant, CLV__CPU_STEP_ELEMENTWISE, node->source, what, found->input_count + 1);
  if (*step == NULL) return clv__error_memory(error, sizeof **step);
  (*step)->elementwise = kept;
  for (uint32_t i = 0; i < found->input_count; ++i) clv__cpu_step_input(*step, 0, slots[i], NULL);
  clv__cpu_step_output(*step, 0, slots[found->input_count], NULL);
  for (uint32_t i = 0; i <= found->input_count; ++i) (*step)->operands[i].type = without_data(&types[i]);
  return CLV_OK;
}

/* ---- The row function of a node. ---- */

static bool find(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_elementwise *found, clv_tensor *types,
                 bool *in_place) {
  clv_tensor inputs[CLV__ROW_INPUTS], out;
  if (node->source->domain[0] != 0 || node->input_count == 0 || node->input_count > CLV__ROW_INPUTS || node->composed ||
      node->output_count != 1 || node->outputs[0] == CLV__CPU_NONE) {
    return false;
  }
  for (uint32_t i = 0; i < node->input_count; ++i) {
    memset(&inputs[i], 0, sizeof inputs[i]);
    if (node->inputs[i] != CLV__CPU_NONE) inputs[i] = variant->values[node->inputs[i]].type; /* with its data, if known */
  }
  out = without_data(&variant->values[node->outputs[0]].type);
  const clv__kernel_call call = {.op = node->source->op,
                                 .opset = node->source->opset,
                                 .attributes = node->source->attributes,
                                 .inputs = inputs,
                                 .input_count = node->input_count,
                                 .outputs = &out,
                                 .output_count = 1};
  if (!clv__kernels()->elementwise_find(&call, &found->what, &found->params, &found->input_count)) return false;
  for (uint32_t i = 0; i < found->input_count; ++i) {
    if (node->inputs[i] == CLV__CPU_NONE) return false;
    const bool half = inputs[i].dtype == CLV_F16 || inputs[i].dtype == CLV_BF16;
    if (half && found->what.half_f32) return false;
    types[i] = inputs[i];
  }
  types[found->input_count] = out;
  *in_place = clv__tensor_same_type(&inputs[0], &out);
  return true;
}

/* ---- A node whose values all have one layout: element by element in memory order. ---- */

/* The common layout. NULL if there is none: an operand is row-major in f32, has a different layout, or is broadcast. */
static const clv__dnn_layout *common_layout(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t input_count) {
  const clv_tensor *out = &clv__cpu_output(variant, node)->type;
  const clv__dnn_layout *layout = NULL;
  for (uint32_t i = 0; i < input_count; ++i) {
    if (!clv__cpu_form_is_blocked(variant, node->inputs[i]) ||
        !clv__tensor_same_type(&variant->values[node->inputs[i]].type, out)) {
      return NULL;
    }
    if (i == 0) layout = clv__cpu_form_layout(variant, node->inputs[0]);
    if (i > 0 && !clv__dnn_layout_equal(layout, clv__cpu_form_layout(variant, node->inputs[i]))) return NULL;
  }
  if (layout == NULL || out->dtype != CLV_F32) return NULL;
  return clv__dnn_layout_dtype(layout) == CLV_F32 || clv__cpu_output(variant, node)->made == CLV_BF16 ? layout : NULL;
}

/* Whether the function maps zeros to 0, as layouts require for their padding channels. */
static bool keeps_zero(const clv__cpu_elementwise *found) {
  const float zero = 0.0f;
  float result = 1.0f;
  const clv__row row = {.count = 1, .out = &result, .in = {&zero, &zero, &zero}, .params = &found->params};
  found->what.run(&row);
  return result == 0.0f;
}

/* Whether the node can be computed in memory order: the layout has no gaps, and padding channels, if any, stay 0. */
static bool can_be_flat(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_elementwise *found,
                        const clv__dnn_layout *layout) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const int64_t count = clv__dnn_layout_memory_count(layout);
  return count > 0 && (count == clv__dims_product(out, 0, out->rank) || keeps_zero(found));
}

static clv_status lower_flat(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_elementwise *found,
                             const clv__dnn_layout *layout, clv_error *error) {
  const clv_dtype dtype = clv__dnn_layout_dtype(layout);
  const clv_tensor flat = {.dtype = dtype, .rank = 1, .dims = {clv__dnn_layout_memory_count(layout)}};
  clv__cpu_step *step =
      clv__cpu_step_new(variant, CLV__CPU_STEP_KERNEL, node->source, node->source->op, node->input_count + node->output_count);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  const size_t at = (size_t)(step - variant->steps);
  for (uint32_t i = 0; i <= node->input_count; ++i) {
    const bool is_value = i < found->input_count, is_output = i == node->input_count;
    uint32_t slot = CLV__CPU_NONE;
    if (is_output)
      CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], layout, &slot, error));
    else if (node->inputs[i] != CLV__CPU_NONE) /* emits no step: a value has this layout already, or is a constant */
      CLV__TRY(clv__cpu_form_get(variant, node->inputs[i], is_value ? layout : NULL, &slot, error));
    step = &variant->steps[at];
    if (is_output)
      clv__cpu_step_output(step, 0, slot, NULL);
    else
      clv__cpu_step_input(step, 0, slot, NULL);
    clv_tensor *type = &step->operands[i].type;
    memset(type, 0, sizeof *type);
    if (is_value || is_output)
      *type = flat;
    else if (node->inputs[i] != CLV__CPU_NONE)
      *type = without_data(&variant->values[node->inputs[i]].type);
  }
  step->may_overlap = true;
  return CLV_OK;
}

/* ---- Lowering. ---- */

bool clv__cpu_is_in_place(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  clv__cpu_elementwise found;
  clv_tensor types[CLV__ROW_INPUTS + 1];
  bool in_place;
  return find(variant, node, &found, types, &in_place) && in_place;
}

clv_status clv__cpu_lower_elementwise(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  clv__cpu_elementwise found;
  clv_tensor types[CLV__ROW_INPUTS + 1];
  uint32_t slots[CLV__ROW_INPUTS + 1];
  bool in_place;
  const bool fused = node->kind == CLV__CPU_BINARY && node->post_count == 2; /* post 0 is the operator itself */
  *taken = node->scale == NULL && node->bias == NULL && node->source->kernel != NULL &&
           (node->post_count == 0 || (fused && clv__cpu_post_is_elementwise(&node->posts[1]))) &&
           find(variant, node, &found, types, &in_place);
  if (!*taken) return CLV_OK;
  const clv__dnn_layout *layout = fused ? NULL : common_layout(variant, node, found.input_count);
  if (layout != NULL && can_be_flat(variant, node, &found, layout)) return lower_flat(variant, node, &found, layout, error);
  *taken = is_little(&types[found.input_count], &found.what);
  if (!*taken) return CLV_OK;
  for (uint32_t i = 0; i < found.input_count; ++i) {
    CLV__TRY(clv__cpu_form_get(variant, node->inputs[i], NULL, &slots[i], error));
  }
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], NULL, &slots[found.input_count], error));
  clv__cpu_step *step;
  CLV__TRY(add_step(variant, node, node->source->op, &found, slots, types, &step, error));
  step->may_overlap = in_place;
  return fused ? clv__cpu_lower_post_elementwise(variant, node, &node->posts[1], slots[found.input_count], error) : CLV_OK;
}

/* ---- A fused function or sum, run as a separate step with the kernel of its operator. ---- */

static const char *operator_of(const clv__cpu_post *post) {
  if (post->kind == CLV__CPU_POST_ADD) return "Add";
  switch ((clv__dnn_unary)post->algorithm) {
    case CLV__DNN_RELU:
      return post->alpha == 0.0f ? "Relu" : "LeakyRelu";
    case CLV__DNN_ELU:
      return "Elu";
    case CLV__DNN_TANH:
      return "Tanh";
    case CLV__DNN_SIGMOID:
      return "Sigmoid";
    case CLV__DNN_GELU_ERF:
    case CLV__DNN_GELU_TANH:
      return "Gelu";
    case CLV__DNN_CLIP:
      return "Clip";
    case CLV__DNN_HARDSWISH:
      return "HardSwish";
    case CLV__DNN_SWISH:
      return "Swish";
    case CLV__DNN_MISH:
      return "Mish";
    case CLV__DNN_ABS:
      return "Abs";
    case CLV__DNN_SQRT:
      return "Sqrt";
    default:
      return NULL;
  }
}

bool clv__cpu_post_is_elementwise(const clv__cpu_post *post) {
  return operator_of(post) != NULL;
}

clv_status clv__cpu_lower_post_elementwise(clv__cpu_variant *variant, const clv__cpu_variant_node *node,
                                           const clv__cpu_post *post, uint32_t slot, clv_error *error) {
  static const clv_string tanh = {"tanh", 4};
  const bool clips = post->kind == CLV__CPU_POST_UNARY && post->algorithm == CLV__DNN_CLIP;
  const clv_attribute attributes[3] = {
      {.name = clips ? "min" : "alpha", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = &post->alpha},
      {.name = clips ? "max" : "beta", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = &post->beta},
      {.name = "approximate", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &tanh},
  };
  const bool approximate = post->kind == CLV__CPU_POST_UNARY && post->algorithm == CLV__DNN_GELU_TANH;
  const clv_tensor *type = &variant->values[node->outputs[0]].type;
  const clv_tensor types[3] = {without_data(type), without_data(type), without_data(type)};
  clv_tensor out = types[0];
  const bool sum = post->kind == CLV__CPU_POST_ADD;
  const clv__kernel_call call = {.op = operator_of(post),
                                 .opset = 6, /* in this opset, the bounds of Clip are attributes */
                                 .attributes = {attributes, approximate ? 3 : 2},
                                 .inputs = types,
                                 .input_count = sum ? 2 : 1,
                                 .outputs = &out,
                                 .output_count = 1};
  clv__cpu_elementwise found;
  if (call.op == NULL || !clv__kernels()->elementwise_find(&call, &found.what, &found.params, &found.input_count)) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "a fused function has no kernel"); /* the caller lowers again without fusion */
  }
  uint32_t slots[3] = {slot, slot, slot};
  if (sum) CLV__TRY(clv__cpu_form_get(variant, post->value, NULL, &slots[1], error));
  clv__cpu_step *step;
  return add_step(variant, node, call.op, &found, slots, types, &step, error);
}
