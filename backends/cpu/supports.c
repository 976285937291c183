/* Capability: the device supports a node if the kernel of its operator accepts it, and an If, Loop, Scan or FlexAttention if it
 * supports every node of the bodies. */
#include <stdio.h>

#include "backends/common/host.h"
#include "backends/common/kernels.h"
#include "device.h"

#define MAX_DEPTH 64 /* the deepest nesting of bodies that is accepted */

static bool node_runs(const clv_host *host, const clv_graph_view *graph, uint32_t node, int depth, char reason[160]);

static bool body_runs(const clv_host *host, const clv_graph_view *body, int depth, char reason[160]) {
  if (depth > MAX_DEPTH) {
    snprintf(reason, 160, "bodies are nested more than %d levels deep", MAX_DEPTH);
    return false;
  }
  const uint32_t count = host->graph_node_count(body);
  for (uint32_t i = 0; i < count; ++i) {
    char inner[160] = "";
    if (node_runs(host, body, i, depth, inner)) continue;
    snprintf(reason, 160, "body: %.150s", inner);
    return false;
  }
  return true;
}

/* The types of a node's operands, as far as the graph view knows them. An absent operand and an unknown type have dtype
 * NONE. */
static void operand_types(const clv_host *host, const clv_graph_view *graph, const uint32_t *ids, uint32_t count,
                          clv_tensor *types) {
  for (uint32_t i = 0; i < count; ++i) {
    memset(&types[i], 0, sizeof types[i]);
    if (ids[i] == CLV_NO_VALUE) continue;
    clv_value_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    host->graph_value(graph, ids[i], &info);
    types[i] = info.type;
  }
}

/* Whether a present operand has no type. This happens in bodies, whose inputs are known only when they run. */
static bool any_untyped(const uint32_t *ids, const clv_tensor *types, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (ids[i] != CLV_NO_VALUE && types[i].dtype == CLV_DTYPE_NONE) return true;
  }
  return false;
}

static bool kernel_runs(const clv_host *host, const clv_graph_view *graph, const clv_node_info *info, bool in_body,
                        char reason[160]) {
  const clv__kernel *kernel = clv__fast_kernel_find(info->domain, info->op);
  if (kernel == NULL) {
    snprintf(reason, 160, "no kernel for operator %.60s%s%.60s", info->domain, info->domain[0] != 0 ? "." : "", info->op);
    return false;
  }
  clv_tensor few[16], *types = few;
  const size_t count = (size_t)info->input_count + info->output_count;
  if (count > sizeof few / sizeof few[0]) types = clv__allocate(host->allocator, count * sizeof *types);
  if (types == NULL) {
    snprintf(reason, 160, "out of memory");
    return false;
  }
  operand_types(host, graph, info->inputs, info->input_count, types);
  operand_types(host, graph, info->outputs, info->output_count, types + info->input_count);
  const clv__kernel_call call = {.op = info->op,
                                 .opset = info->opset,
                                 .attributes = {info->attributes, info->attribute_count},
                                 .inputs = types,
                                 .input_count = info->input_count,
                                 .outputs = types + info->input_count,
                                 .output_count = info->output_count};
  const bool untyped = any_untyped(info->inputs, types, info->input_count) ||
                       any_untyped(info->outputs, types + info->input_count, info->output_count);
  const bool accepted = (in_body && untyped) || clv__kernel_accepts(kernel, &call, reason);
  if (types != few) clv__release(host->allocator, types);
  return accepted;
}

/* Whether some values have elements that share bytes: such values cannot be sliced or assembled from slices. */
static bool any_packed(const clv_host *host, const clv_graph_view *graph, const uint32_t *ids, uint32_t first, uint32_t end,
                       char reason[160]) {
  for (uint32_t i = first; i < end; ++i) {
    clv_tensor type;
    operand_types(host, graph, &ids[i], 1, &type);
    if (!clv__dtype_is_in(type.dtype, CLV__DTYPES_PACKED)) continue;
    snprintf(reason, 160, "slices of dtype %s are not supported", clv_dtype_name(type.dtype));
    return true;
  }
  return false;
}

/* Whether the values that a Loop or Scan slices or stacks have dtypes that can be sliced: both stack slices into outputs, and
 * Scan slices its inputs. Values carried between iterations, and values of If, may have any dtype. */
static bool slices_run(const clv_host *host, const clv_graph_view *graph, const clv_node_info *info, char reason[160]) {
  const clv__attributes attributes = {info->attributes, info->attribute_count};
  const clv_attribute *body = clv__attribute_find(attributes, "body");
  if (body == NULL || body->kind != CLV_ATTRIBUTE_GRAPH) return true;
  const bool is_scan = strcmp(info->op, "Scan") == 0;
  const uint32_t inputs = host->graph_input_count(body->graph);
  /* The number of the body's inputs that are not carried: in a Scan the slices, in a Loop the iteration number and the
   * condition. */
  const int64_t scanned = is_scan ? clv__attribute_int(attributes, "num_scan_inputs", 0) : 2;
  const uint32_t carried = scanned >= 0 && scanned <= inputs ? inputs - (uint32_t)scanned : 0;
  if (any_packed(host, graph, info->outputs, carried, info->output_count, reason)) return false;
  const uint32_t end = inputs < info->input_count ? inputs : info->input_count;
  return !is_scan || !any_packed(host, graph, info->inputs, carried, end, reason);
}

static bool node_runs(const clv_host *host, const clv_graph_view *graph, uint32_t node, int depth, char reason[160]) {
  clv_node_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  host->graph_node(graph, node, &info);
  bool has_body = false;
  for (uint32_t i = 0; i < info.attribute_count; ++i) {
    if (info.attributes[i].kind != CLV_ATTRIBUTE_GRAPH) continue;
    has_body = true;
    if (info.attributes[i].graph == NULL || !body_runs(host, info.attributes[i].graph, depth + 1, reason)) return false;
  }
  if (!has_body) return kernel_runs(host, graph, &info, depth > 0, reason);
  if (clv__host_is_control_flow(&info)) {
    return slices_run(host, graph, &info, reason);
  }
  if (strcmp(info.domain, "ai.onnx.preview") == 0 && strcmp(info.op, "FlexAttention") == 0) return true;
  snprintf(reason, 160, "operator %.60s with a body is not supported", info.op);
  return false;
}

void clv__cpu_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  verdict->reason[0] = 0;
  verdict->supported = node_runs(device->host, graph, node, 0, verdict->reason);
  if (verdict->supported) verdict->reason[0] = 0;
}
