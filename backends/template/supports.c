/* Decides which nodes the device can run, and estimates how fast it runs them. */
#include "template.h"

/* A verdict of yes means that compile() of this node alone succeeds, and that the node's results are correct for any sizes.
 * Shapes may be unknown here, because the device accepts any shape. Ranks may be unknown too. */
void template_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  const clv_host *host = device->base.host;
  clv_node_info info = {.struct_size = sizeof info};
  host->graph_node(graph, node, &info);
  const uint32_t op = template_find_operator(&info);
  if (op == template_operator_count) {
    snprintf(verdict->reason, sizeof verdict->reason, "operator %.60s", info.op);
    return;
  }
  if (info.opset < template_operators[op].since) {
    snprintf(verdict->reason, sizeof verdict->reason, "opset %d below %d", (int)info.opset, (int)template_operators[op].since);
    return;
  }
  if (info.input_count != template_operators[op].input_count || info.output_count != 1) {
    snprintf(verdict->reason, sizeof verdict->reason, "%u inputs and %u outputs are not supported", info.input_count,
             info.output_count);
    return;
  }
  for (uint32_t i = 0; i <= info.input_count; ++i) {
    const uint32_t id = i < info.input_count ? info.inputs[i] : info.outputs[0];
    clv_value_info value = {.struct_size = sizeof value};
    if (id == CLV_NO_VALUE) {
      snprintf(verdict->reason, sizeof verdict->reason, "an input or the output is absent");
      return;
    }
    host->graph_value(graph, id, &value);
    if (value.type.dtype != CLV_F32) {
      snprintf(verdict->reason, sizeof verdict->reason, "dtype %d of '%.60s': only f32 (1) is supported", (int)value.type.dtype,
               value.name);
      return;
    }
  }
  verdict->supported = true;
}

/* ---- Speed, as a data sheet would state it ---- */

#define FLOPS_PER_SECOND 1e9
#define BYTES_PER_SECOND 4e9

/* Estimates the time of one run of the node, in seconds. Returns a negative number if the time is unknown, because the device
 * does not support the operator or a size is unknown. */
double template_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  const clv_host *host = device->base.host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_tensor types[MAX_INPUTS] = {{.rank = CLV_RANK_UNKNOWN}}, output = {.dtype = CLV_F32};
  host->graph_node(graph, node, &info);
  const uint32_t op = template_find_operator(&info);
  if (op == template_operator_count || info.input_count != template_operators[op].input_count) return -1;
  double bytes = 0;
  for (uint32_t i = 0; i < info.input_count; ++i) {
    clv_value_info value = {.struct_size = sizeof value};
    if (info.inputs[i] == CLV_NO_VALUE) return -1;
    host->graph_value(graph, info.inputs[i], &value);
    types[i] = value.type;
    if (clv_host_count(&types[i]) < 0) return -1;
    bytes += (double)clv_host_count(&types[i]) * sizeof(float);
  }
  if (!template_operators[op].shape(types, &output) || clv_host_count(&output) < 0) return -1;
  bytes += (double)clv_host_count(&output) * sizeof(float);
  const double computing = template_operators[op].flops(types, &output) / FLOPS_PER_SECOND, moving = bytes / BYTES_PER_SECOND;
  return computing > moving ? computing : moving;
}

/* Estimates the time, in seconds, of a copy of `size_bytes` bytes between host memory, in which this device works, and the
 * memory of another device. */
double template_copy_seconds(clv_device *device, uint64_t size_bytes) {
  (void)device;
  return (double)size_bytes / BYTES_PER_SECOND;
}

double template_launch_seconds(clv_device *device) {
  (void)device;
  return 1e-6;
}
