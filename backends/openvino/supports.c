/* Whether a node may be tried on OpenVINO. The answer comes from a table of the operators and dtypes that OpenVINO computes
 * correctly, and from rules for attributes. The table rejects wrong results, not compile errors. OpenVINO computes 64-bit
 * integers as 32-bit ones and f64 as f32. It saturates small integers, and computes large ones through f32 in some operators. It
 * keeps intermediate f16 and bf16 results in f32. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/common/host.h"
#include "base/lookup.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "device.h"
#include "table.h"

enum { FEW = 24 };

/* ---- The table ---- */

static clv__lookup known;

static void fill_known(void) {
  for (const clv__openvino_rule *rule = clv__openvino_rules; rule->op != NULL; ++rule) {
    clv__lookup_add(&known, rule->domain != NULL ? rule->domain : "", rule->op, rule);
  }
}

static const clv__openvino_rule *find_rule(const char *domain, const char *op) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_known);
  return clv__lookup_find(&known, domain, op);
}

/* ---- Verdicts ---- */

/* Returns false if a dim is 0. operands_fit() rejects such tensors, unless they are constants: OpenVINO computes some operators
 * wrongly on them, and others divide by zero, which kills the process. */
static bool has_elements(const clv_tensor *type) {
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] == 0) return false;
  }
  return true;
}

static bool dtype_fits(const clv__openvino_device *device, const clv__openvino_rule *rule, const clv__openvino_node *node,
                       uint32_t index, bool is_output, char reason[160]) {
  const clv_tensor *type = is_output ? &node->outputs[index] : &node->inputs[index];
  clv_dtype dtype = type->dtype;
  uint32_t indices = is_output ? rule->index_outputs : rule->index_inputs, allowed = rule->dtypes;
  if (index < 32 && (indices >> index & 1) != 0) allowed = CLV__OPENVINO_INDEX | (is_output ? allowed : 0);
  if (device->narrow && (allowed & CLV__DTYPE_BIT(CLV_I32)) != 0) allowed |= CLV__DTYPE_BIT(CLV_I64);
  if (device->wide && (allowed & CLV__DTYPE_BIT(CLV_F32)) != 0) allowed |= CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16);
  if ((allowed & CLV__DTYPE_BIT(dtype)) != 0) return true;
  snprintf(reason, 160, "%s %u of dtype %s%s", is_output ? "output" : "input", index, clv_dtype_name(dtype),
           dtype == CLV_I64 && (rule->dtypes & CLV__DTYPE_BIT(CLV_I32)) != 0
               ? ", which OpenVINO computes as i32 (option integers=narrow allows it)"
           : dtype == CLV_F64 ? ", which OpenVINO computes as f32"
                              : ", which is not known to be correct for this operator");
  return false;
}

static bool operands_fit(const clv__openvino_device *device, const clv__openvino_rule *rule, const clv__openvino_node *node,
                         char reason[160]) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!clv__openvino_has(node, i)) continue;
    if (!dtype_fits(device, rule, node, i, false, reason)) return false;
    if (!has_elements(&node->inputs[i]) && !node->is_constant[i]) {
      snprintf(reason, 160, "input %u has no elements", i);
      return false;
    }
    if (i < 32 && (rule->constants >> i & 1) != 0 && !node->is_constant[i]) {
      snprintf(reason, 160, "input %u is not a constant", i);
      return false;
    }
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i].dtype == CLV_DTYPE_NONE) continue;
    if (!dtype_fits(device, rule, node, i, true, reason)) return false;
    if (!has_elements(&node->outputs[i])) {
      snprintf(reason, 160, "output %u has no elements", i);
      return false;
    }
  }
  return true;
}

static bool accepts(const clv__openvino_device *device, const clv_node_info *info, const clv__openvino_node *node,
                    char reason[160]) {
  for (uint32_t i = 0; i < info->attribute_count; ++i) {
    if (info->attributes[i].kind != CLV_ATTRIBUTE_GRAPH) continue;
    snprintf(reason, 160, "control flow (%.60s)", info->op);
    return false;
  }
  const clv__openvino_rule *rule = find_rule(info->domain, info->op);
  if (rule == NULL || rule->wrong != NULL) {
    snprintf(reason, 160, "operator %.40s%s%.40s: %s", info->domain, info->domain[0] != '\0' ? "." : "", info->op,
             rule != NULL ? rule->wrong : "not known to be correct on OpenVINO");
    return false;
  }
  if (device->keeps_nan && rule->loses_nan) {
    snprintf(reason, 160, "operator %.40s loses NaNs on OpenVINO", info->op);
    return false;
  }
  return operands_fit(device, rule, node, reason) && (rule->accepts == NULL || rule->accepts(node, reason));
}

bool clv__openvino_may_support(void *self, const clv_graph_view *graph, uint32_t index, bool *is_sure, clv_verdict *verdict) {
  const clv__openvino_device *device = self;
  const clv_host *host = device->host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_tensor few[FEW], *types = few;
  bool few_constant[FEW], *constant = few_constant;
  host->graph_node(graph, index, &info);
  size_t count = (size_t)info.input_count + info.output_count;
  *is_sure = false;
  *verdict = (clv_verdict){.supported = false};
  if (count > FEW) {
    types = clv__allocate(device->allocator, count * (sizeof *types + sizeof *constant));
    if (types == NULL) {
      snprintf(verdict->reason, sizeof verdict->reason, "the host is out of memory");
      return false;
    }
    constant = (bool *)(types + count);
  }
  clv__host_operand_types(host, graph, &info, types, constant);
  const clv__openvino_node node = {
      .op = info.op,
      .opset = info.opset,
      .attributes = {info.attributes, info.attribute_count},
      .input_count = info.input_count,
      .output_count = info.output_count,
      .operands = info.inputs,
      .results = info.outputs,
      .inputs = types,
      .outputs = types + info.input_count,
      .is_constant = constant,
      .halves_are_wide = device->wide,
  };
  bool may = accepts(device, &info, &node, verdict->reason);
  if (types != few) clv__release(device->allocator, types);
  return may;
}
