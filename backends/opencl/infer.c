/* The first pass that makes a variant (variant.h): infers the static type of every value from the types of the inputs, and
 * computes small values that depend only on shapes and constants. */
#include "backends/common/fold.h"
#include "variant.h"

/* Whether `from` can be broadcast to `to` by numpy's rules. */
static bool broadcasts(const clv_tensor *from, const clv_tensor *to) {
  const int32_t lead = to->rank - from->rank;
  if (lead < 0) return false;
  for (int32_t d = 0; d < from->rank; ++d) {
    if (from->dims[d] != 1 && from->dims[d] != to->dims[d + lead]) return false;
  }
  return true;
}

/* If the shape input of a view (such as a Reshape) or of an Expand is unknown here, sets the type of the output to the type
 * that the graph declares, if that type is static and fits the input. The value of the shape input is not needed, because no
 * kernel reads it. */
static void take_declared(const clv_executable *e, const clv_node_info *node, const clv_tensor *inputs, clv_tensor *outputs) {
  size_t declared, given;
  if (node->output_count != 1 || node->outputs[0] == CLV_NO_VALUE || clv__tensor_is_static(&outputs[0])) return;
  const clv_tensor *type = &e->values[node->outputs[0]].declared;
  if (!clv__tensor_count(type, &declared) || !clv__tensor_count(&inputs[0], &given) || type->dtype != inputs[0].dtype) return;
  const bool view = clv__opencl_is_view(node->domain, node->op, node->opset) && declared == given;
  const bool expand = node->domain[0] == '\0' && strcmp(node->op, "Expand") == 0 && broadcasts(&inputs[0], type);
  if (view || expand) outputs[0] = *type;
}

/* Repeats the check of supports(), now that all types are known. The host has checked the nodes of a partition that it compiles,
 * but not those of a file that it loads. */
static clv_status check_node(const clv__opencl_variant *variant, uint32_t index, clv_tensor *types, bool *constant,
                             clv_error *error) {
  const clv__opencl_node node = clv__opencl_variant_node_view(variant, index, types, constant);
  char reason[160] = "";
  if (clv__opencl_accepts(variant->device, &variant->executable->nodes[index], &node, reason)) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "%s", reason);
}

/* Whether the size of a type is known, and the product of its dims is far from overflow. Dims of 0 are left out of that product,
 * because some passes multiply only the other dims. */
static bool has_size(const clv_tensor *type) {
  int64_t product = 1;
  size_t size_bytes;
  if (type->dtype == CLV_STRING || !clv__tensor_size_bytes(type, &size_bytes)) return false;
  for (int32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] > 0 && __builtin_mul_overflow(product, type->dims[d], &product)) return false;
  }
  return product <= INT64_MAX / 64;
}

static clv_status refuse_size(const clv__opencl_variant *variant, uint32_t value, const clv_tensor *type, clv_error *error) {
  char text[100];
  clv__tensor_text(type, text, sizeof text);
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "value '%s' is %s: its size must be known in advance and fit in memory, and strings are not supported",
                        variant->executable->values[value].name, text);
}

static clv_status infer_node(clv__opencl_variant *variant, uint32_t index, clv_tensor *inputs, clv_tensor *outputs,
                             clv_error *error) {
  const clv_executable *e = variant->executable;
  const clv_node_info *node = &e->nodes[index];
  for (uint32_t i = 0; i < node->input_count; ++i) {
    inputs[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    if (node->inputs[i] != CLV_NO_VALUE) inputs[i] = variant->values[node->inputs[i]].type;
  }
  CLV__TRY(variant->device->host->infer_node(e->view, index, inputs, outputs, error));
  take_declared(e, node, inputs, outputs);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    outputs[i].data = NULL;
    if (node->outputs[i] == CLV_NO_VALUE)
      outputs[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    else if (!has_size(&outputs[i]))
      return refuse_size(variant, node->outputs[i], &outputs[i], error);
  }
  const clv__kernel *kernel = clv__kernel_find(node->domain, node->op);
  const clv__kernel_call call = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = {node->attributes, node->attribute_count},
                                 .inputs = inputs,
                                 .input_count = node->input_count,
                                 .outputs = outputs,
                                 .output_count = node->output_count,
                                 .error = error};
  variant->nodes[index].is_dead = kernel != NULL && clv__fold_is_possible(node->domain, &call);
  if (variant->nodes[index].is_dead) {
    CLV__TRY(clv__fold(kernel, &call, inputs, outputs, &variant->arena, variant->device->allocator));
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV_NO_VALUE) variant->values[node->outputs[i]].type = outputs[i];
  }
  return CLV_OK;
}

clv_status clv__opencl_pass_infer(clv__opencl_variant *variant, clv_error *error) {
  const clv_executable *e = variant->executable;
  uint32_t most = clv__opencl_variant_most(variant);
  clv_tensor *operands = clv__arena_allocate_zero(&variant->arena, 2 * ((size_t)most + 1), sizeof *operands);
  bool *constant = clv__arena_allocate_zero(&variant->arena, (size_t)most + 1, sizeof *constant);
  if (operands == NULL || constant == NULL) return clv__error_memory(error, most * sizeof *operands);
  for (uint32_t v = 0; v < e->value_count; ++v) {
    const bool is_input = e->values[v].input != CLV__OPENCL_NONE;
    const bool is_source = is_input || e->values[v].weight != CLV__OPENCL_NONE || e->values[v].declared.data != NULL;
    variant->values[v].type = is_input ? variant->input_types[e->values[v].input] : e->values[v].declared;
    if (is_source && !has_size(&variant->values[v].type)) return refuse_size(variant, v, &variant->values[v].type, error);
  }
  for (uint32_t n = 0; n < e->node_count; ++n) {
    clv_status status = infer_node(variant, n, operands, operands + most + 1, error);
    if (status == CLV_OK && !variant->nodes[n].is_dead) status = check_node(variant, n, operands, constant, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "node '%s' (%s)", e->nodes[n].name, e->nodes[n].op);
  }
  return CLV_OK;
}
