/* Decides whether the device supports a node. It supports views, nodes whose outputs depend only on shapes, and the operators of
 * the families (lower/families.h). */
#include <stdio.h>

#include "backends/common/fold.h"
#include "backends/common/host.h"
#include "backends/opencl/lower/families.h"
#include "device.h"

/* ---- The operators ---- */

#define FAMILY(name) clv__opencl_family_##name,
static const clv__opencl_operator *const families[] = {CLV__OPENCL_FAMILIES(FAMILY)};
#undef FAMILY

const clv__opencl_operator *clv__opencl_operator_find(const char *domain, const char *op) {
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__opencl_operator *o = families[i]; o->op != NULL; ++o) {
      if (strcmp(o->op, op) == 0 && strcmp(o->domain, domain) == 0) return o;
    }
  }
  return NULL;
}

bool clv__opencl_is_view(const char *domain, const char *op, int32_t opset) {
  static const char *const views[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"};
  (void)opset;
  if (domain[0] != '\0') return false;
  for (size_t i = 0; i < sizeof views / sizeof *views; ++i) {
    if (strcmp(op, views[i]) == 0) return true;
  }
  return false;
}

/* ---- Helpers of accepts() ---- */

bool clv__opencl_accepts_constant(const clv__opencl_node *node, uint32_t index, const char *what, char reason[160]) {
  if (!clv__opencl_has_input(node, index) || node->is_constant[index]) return true;
  snprintf(reason, 160, "input %u (%.60s) is not a constant", index, what);
  return false;
}

bool clv__opencl_accepts_dtype(const clv__opencl_node *node, uint32_t index, uint32_t dtypes, char reason[160]) {
  if (!clv__opencl_has_input(node, index) || (dtypes & CLV__DTYPE_BIT(node->inputs[index].dtype)) != 0) return true;
  snprintf(reason, 160, "input %u of dtype %s", index, clv_dtype_name(node->inputs[index].dtype));
  return false;
}

/* ---- The verdict ---- */

clv__opencl_node clv__opencl_node_of(const clv_node_info *info, const clv_tensor *types, const bool *constant) {
  return (clv__opencl_node){.name = info->name,
                            .op = info->op,
                            .domain = info->domain,
                            .opset = info->opset,
                            .attributes = {info->attributes, info->attribute_count},
                            .input_count = info->input_count,
                            .output_count = info->output_count,
                            .inputs = types,
                            .outputs = types + info->input_count,
                            .is_constant = constant};
}

/* Rejects dtypes that this device cannot store. */
static bool dtypes_fit(const clv_device *device, const clv__opencl_node *node, char reason[160]) {
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    bool output = i >= node->input_count;
    clv_dtype dtype = output ? node->outputs[i - node->input_count].dtype : node->inputs[i].dtype;
    bool lacks = dtype == CLV_STRING || clv__dtype_is_in(dtype, CLV__DTYPES_SMALL) ||
                 (dtype == CLV_F64 && !device->traits.has_double) || (dtype == CLV_F16 && !device->half);
    if (!lacks) continue;
    snprintf(reason, 160, "%s %u of dtype %s, which this device does not support", output ? "output" : "input",
             output ? i - node->input_count : i, clv_dtype_name(dtype));
    return false;
  }
  return true;
}

/* Rejects a view whose shape input is computed, if the size of its first input is known but the shape of its output is not.
 * Inference has not found that shape, so it depends on data. */
static bool view_fits(const clv__opencl_node *node, char reason[160]) {
  if (node->input_count == 0 || node->inputs[0].dtype == CLV_DTYPE_NONE) {
    snprintf(reason, 160, "dtype %s not supported", clv_dtype_name(CLV_DTYPE_NONE));
    return false;
  }
  const bool computed = clv__opencl_has_input(node, 1) && !node->is_constant[1];
  if (!computed || node->output_count == 0 || !clv__tensor_is_static(&node->inputs[0]) ||
      clv__tensor_is_static(&node->outputs[0])) {
    return true;
  }
  snprintf(reason, 160, "the size of output 0 depends on data");
  return false;
}

bool clv__opencl_accepts(const clv_device *device, const clv_node_info *info, const clv__opencl_node *node, char reason[160]) {
  if (clv__host_has_body(info)) {
    snprintf(reason, 160, "control flow (%.60s)", info->op);
    return false;
  }
  if (clv__fold_reads_shape(info->domain, info->op) && !clv__dtype_is_in(node->inputs[0].dtype, CLV__DTYPES_SMALL)) return true;
  if (!dtypes_fit(device, node, reason)) return false;
  if (clv__opencl_is_view(info->domain, info->op, info->opset)) return view_fits(node, reason);
  const clv__opencl_operator *op = clv__opencl_operator_find(info->domain, info->op);
  if (op == NULL) {
    snprintf(reason, 160, "no kernel for operator %.60s%s%.60s", info->domain, info->domain[0] != '\0' ? "." : "", info->op);
    return false;
  }
  clv_dtype dtype = node->input_count > 0    ? node->inputs[0].dtype
                    : node->output_count > 0 ? node->outputs[0].dtype
                                             : CLV_DTYPE_NONE;
  if ((op->dtypes & CLV__DTYPE_BIT(dtype)) == 0) {
    snprintf(reason, 160, "dtype %s not supported", clv_dtype_name(dtype));
    return false;
  }
  return op->accepts == NULL || op->accepts(&device->traits, node, reason);
}

enum { FEW = 24 };

void clv__opencl_supports(clv_device *device, const clv_graph_view *graph, uint32_t index, clv_verdict *verdict) {
  const clv_host *host = device->host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_tensor few[FEW], *types = few;
  bool few_constant[FEW], *constant = few_constant;
  host->graph_node(graph, index, &info);
  size_t count = (size_t)info.input_count + info.output_count;
  *verdict = (clv_verdict){.supported = false};
  if (count > FEW) {
    types = clv__allocate(device->allocator, count * (sizeof *types + sizeof *constant));
    if (types == NULL) {
      snprintf(verdict->reason, sizeof verdict->reason, "the host is out of memory");
      return;
    }
    constant = (bool *)(types + count);
  }
  clv__host_operand_types(host, graph, &info, types, constant);
  const clv__opencl_node node = clv__opencl_node_of(&info, types, constant);
  verdict->supported = clv__opencl_accepts(device, &info, &node, verdict->reason);
  if (verdict->supported) verdict->reason[0] = '\0';
  if (types != few) clv__release(device->allocator, types);
}

/* A device that is not a CPU prefers operators with much arithmetic. */
bool clv__opencl_prefers(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  static const char *const heavy[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Attention"};
  if (device->traits.is_cpu) return false;
  clv_node_info info = {.struct_size = sizeof info};
  device->host->graph_node(graph, node, &info);
  for (size_t i = 0; i < sizeof heavy / sizeof *heavy; ++i) {
    if (info.domain[0] == '\0' && strcmp(info.op, heavy[i]) == 0) return true;
  }
  return false;
}
