/* The planner's hints: which nodes the device prefers, and the speed model's estimates of nodes, copies and launches. */
#include <string.h>

#include "backends/common/host.h"
#include "backends/vnpu/spec/speed.h"
#include "base/tensor/tensor.h"
#include "device.h"

double clv__vnpu_hint_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  clv_node_info info = {.struct_size = sizeof info};
  device->host->graph_node(graph, node, &info);
  clv_tensor few[16], *types = few;
  size_t count = (size_t)info.input_count + info.output_count;
  if (!device->spec.speed.given) return -1;
  if (count > sizeof few / sizeof *few) types = clv__allocate(device->allocator, count * sizeof *types);
  if (types == NULL) return -1;
  clv__host_operand_types(device->host, graph, &info, types, NULL);
  bool known = true;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value = i < info.input_count ? info.inputs[i] : info.outputs[i - info.input_count];
    known = known && (value == CLV_NO_VALUE || clv__tensor_is_static(&types[i]));
  }
  double seconds = known ? clv__vnpu_node_seconds(&device->spec.speed, &info, types, types + info.input_count) : -1;
  if (types != few) clv__release(device->allocator, types);
  return seconds;
}

/* An NPU prefers operators with much arithmetic per byte, for which loading the weights is worth the time. */
bool clv__vnpu_hint_prefers(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  static const char *const wanted[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  clv_node_info info = {.struct_size = sizeof info};
  device->host->graph_node(graph, node, &info);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    if (info.domain[0] == '\0' && strcmp(info.op, wanted[i]) == 0) return true;
  }
  return false;
}

double clv__vnpu_hint_copy_seconds(clv_device *device, uint64_t size_bytes) {
  return device->spec.speed.given ? clv__vnpu_copy_seconds(&device->spec.speed, size_bytes) : -1;
}

double clv__vnpu_hint_launch_seconds(clv_device *device) {
  return device->spec.speed.given ? clv__vnpu_launch_seconds(&device->spec.speed) : -1;
}
