/* See node.h. */
#include "analysis/node.h"

#include "graph/view.h"

static bool is_aligned(const clv_tensor *tensor) {
  if (tensor->data == NULL || tensor->dtype == CLV_STRING) return true;
  size_t element = clv_dtype_size_bytes(tensor->dtype);
  return element == 0 || (uintptr_t)tensor->data % element == 0;
}

static bool is_float(clv_dtype dtype) {
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
}

clv_status clv__operands_align(const clv_tensor *inputs, uint32_t count, size_t float_limit_bytes, clv_tensor *aligned,
                               const clv_allocator *allocator, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    aligned[i] = inputs[i];
    if (is_aligned(&inputs[i])) continue;
    aligned[i].data = NULL;
    size_t size_bytes;
    if (!clv__tensor_size_bytes(&inputs[i], &size_bytes)) continue;
    if (is_float(inputs[i].dtype) && size_bytes > float_limit_bytes) continue;
    aligned[i].data = clv__allocate(allocator, size_bytes);
    if (aligned[i].data == NULL) {
      clv__operands_release(inputs, i, aligned, allocator);
      return clv__error_memory(error, size_bytes);
    }
    memcpy(aligned[i].data, inputs[i].data, size_bytes);
  }
  return CLV_OK;
}

void clv__operands_release(const clv_tensor *inputs, uint32_t count, clv_tensor *aligned, const clv_allocator *allocator) {
  for (uint32_t i = 0; i < count; ++i) {
    if (aligned[i].data != inputs[i].data) clv__release(allocator, aligned[i].data);
    aligned[i].data = NULL;
  }
}

/* Opset 7 is the oldest supported one. In earlier opsets these operators had another meaning: they had an axis for broadcasting,
 * shapes as attributes, or a training mode. The other operators are the same, or differ only in the inputs that they accept. */
static clv_status check_opset(const clv__node *node, clv_error *error) {
  static const char *const changed[] = {"Add",
                                        "And",
                                        "BatchNormalization",
                                        "Cast",
                                        "Concat",
                                        "Div",
                                        "Dropout",
                                        "Equal",
                                        "Gemm",
                                        "Greater",
                                        "InstanceNormalization",
                                        "Less",
                                        "Max",
                                        "Mean",
                                        "Min",
                                        "Mul",
                                        "Or",
                                        "PRelu",
                                        "Pad",
                                        "Pow",
                                        "Reshape",
                                        "Selu",
                                        "Split",
                                        "Sub",
                                        "Sum",
                                        "Tile",
                                        "Upsample",
                                        "Xor"};
  if (node->opset >= 7 || node->domain[0] != '\0') return CLV_OK;
  for (size_t i = 0; i < sizeof changed / sizeof *changed; ++i) {
    if (strcmp(node->op, changed[i]) != 0) continue;
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "%s of opset %d differs from that of opset 7: convert the model to a newer opset", node->op,
                          node->opset);
  }
  return CLV_OK;
}

static clv_status check_arity(const clv__op *op, const clv__node *node, clv_error *error) {
  uint32_t inputs = clv__node_explicit_inputs(node);
  if (inputs < op->min_inputs || (op->max_inputs != CLV__ANY_COUNT && inputs > op->max_inputs)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "it has %u input%s; expected %s%u", inputs, CLV__S(inputs),
                          op->max_inputs == op->min_inputs ? ""
                          : inputs < op->min_inputs        ? "at least "
                                                           : "at most ",
                          inputs < op->min_inputs ? op->min_inputs : op->max_inputs);
  }
  if (node->output_count < op->min_outputs || (op->max_outputs != CLV__ANY_COUNT && node->output_count > op->max_outputs)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "it has %u output%s; expected %s%u", node->output_count,
                          CLV__S(node->output_count),
                          op->max_outputs == op->min_outputs     ? ""
                          : node->output_count < op->min_outputs ? "at least "
                                                                 : "at most ",
                          node->output_count < op->min_outputs ? op->min_outputs : op->max_outputs);
  }
  if (op->max_outputs == 1 && node->outputs[0] == CLV__NO_ID) {
    return clv__error_set(error, CLV_INVALID_MODEL, "its only output is omitted");
  }
  for (uint32_t i = 0; (op->flags & CLV__OP_HAS_BODY) == 0 && i < op->min_inputs; ++i) {
    if (node->inputs[i] == CLV__NO_ID) return clv__error_set(error, CLV_INVALID_MODEL, "input %u is missing", i);
  }
  return CLV_OK;
}

clv_status clv__node_check(const clv__node *node, const clv__op *op, clv_error *error) {
  CLV__TRY(check_arity(op, node, error));
  return check_opset(node, error);
}

clv_status clv__call_run(const char *domain, const clv__kernel_call *call, const clv_allocator *allocator) {
  const clv__kernel *kernel = clv__kernel_find(domain, call->op);
  char reason[160] = "";
  if (kernel == NULL) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "no reference kernel for operator %s%s%s", domain,
                          domain[0] != '\0' ? "." : "", call->op);
  }
  if (!clv__kernel_accepts(kernel, call, reason)) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "its reference kernel does not support it: %s", reason);
  }
  return clv__kernel_run(kernel, call, allocator);
}

clv_status clv__node_run(const clv__node *node, const clv_tensor *inputs, clv_tensor *outputs, const clv_allocator *allocator,
                         clv_error *error) {
  const clv__kernel_call call = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = node->attributes,
                                 .inputs = inputs,
                                 .input_count = clv__node_explicit_inputs(node),
                                 .outputs = outputs,
                                 .output_count = node->output_count,
                                 .error = error};
  return clv__call_run(node->domain, &call, allocator);
}

clv_status clv__node_error(const clv__node *node, clv_status status, clv_error *error) {
  clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  return status;
}

const clv_graph *clv__node_body(const clv__node *node, const char *name) {
  const clv_attribute *attribute = clv__attribute_find(node->attributes, name);
  if (attribute == NULL || attribute->kind != CLV_ATTRIBUTE_GRAPH || attribute->graph == NULL) return NULL;
  return attribute->graph->graph;
}
