/* Compiles a partition to a program: runs the same checks as supports(), stores the graph as ONNX, and lays out its memory. */
#include <string.h>

#include "backends/common/host.h"
#include "base/error.h"
#include "program.h"
#include "supports.h"

static clv_status check_nodes(const clv_device *device, const clv_graph_view *graph, clv_error *error) {
  uint32_t count = device->host->graph_node_count(graph);
  for (uint32_t n = 0; n < count; ++n) {
    clv_verdict verdict;
    clv_status asked = clv__vnpu_supports(device, graph, n, &verdict);
    if (verdict.supported) continue;
    clv_node_info node = {.struct_size = sizeof node};
    device->host->graph_node(graph, n, &node);
    return clv__error_set(error, asked == CLV_OK ? CLV_NOT_SUPPORTED : asked, "node '%s' (%s): %s", node.name, node.op,
                          verdict.reason);
  }
  return CLV_OK;
}

/* Counts the inputs that are not streamed. The planner does not count streamed inputs either. */
static uint32_t count_inputs(const clv_host *host, const clv_graph_view *graph) {
  const uint32_t all = host->graph_input_count(graph);
  uint32_t count = 0;
  for (uint32_t i = 0; i < all; ++i) {
    clv_value_info value = {.struct_size = sizeof value};
    host->graph_value(graph, host->graph_input(graph, i), &value);
    count += !value.is_streamed;
  }
  return count;
}

/* Checks the numbers of nodes and inputs against the limits of the description. A group of nodes that exceeds them is rejected,
 * because the host can split it. A single node cannot be split, so it may have more inputs; supports() has accepted it. */
static clv_status check_size(const clv_device *device, const clv_graph_view *graph, clv_error *error) {
  const clv__vnpu_spec *spec = &device->spec;
  const uint32_t nodes = device->host->graph_node_count(graph), inputs = count_inputs(device->host, graph);
  if (spec->max_partition_nodes > 0 && nodes > spec->max_partition_nodes) {
    return clv__error_set(error, CLV_TOO_LARGE, "%u nodes, but a program has at most %u ('max_partition_nodes')", nodes,
                          spec->max_partition_nodes);
  }
  if (spec->max_partition_inputs == 0 || inputs <= spec->max_partition_inputs || nodes == 1) return CLV_OK;
  return clv__error_set(error, CLV_TOO_LARGE, "%u inputs, but a program has at most %u ('max_partition_inputs')", inputs,
                        spec->max_partition_inputs);
}

clv_status clv__vnpu_compile(const clv_device *device, const clv_graph_view *graph, clv_executable **out, clv_error *error) {
  *out = NULL;
  clv__arena arena;
  clv__arena_init(&arena, device->allocator);
  clv_executable *program = NULL;
  clv_tensor *types = NULL;
  uint32_t count = 0;
  void *onnx = NULL;
  size_t onnx_bytes = 0;
  clv_status status = check_size(device, graph, error);
  if (status == CLV_OK) status = check_nodes(device, graph, error);
  if (status == CLV_OK) status = clv__host_input_types(device->host, graph, &arena, &types, &count, error);
  if (status == CLV_OK) status = device->host->graph_to_onnx(graph, CLV__VNPU_INLINE_BYTES, &onnx, &onnx_bytes, error);
  if (status == CLV_OK) status = clv__vnpu_program_open(device, onnx, onnx_bytes, types, count, &program, error);
  if (status == CLV_OK && program->is_static) status = clv__vnpu_layout_make(program, error);
  if (status == CLV_OK) status = clv__vnpu_program_finish(program, error);
  clv__arena_finish(&arena);
  if (status == CLV_OK)
    *out = program;
  else
    clv__vnpu_program_destroy(program);
  return status;
}

void clv__vnpu_compile_for(const clv_executable *program, const clv_tensor *inputs, clv_executable **out) {
  const clv_device *device = program->device;
  *out = NULL;
  for (uint32_t i = 0; i < program->input_count; ++i) {
    if (!clv__tensor_is_static(&inputs[i])) return;
  }
  void *onnx = clv__allocate(device->allocator, program->onnx_bytes);
  clv_executable *made = NULL;
  if (onnx == NULL) return;
  memcpy(onnx, program->onnx, program->onnx_bytes);
  clv_status status = clv__vnpu_program_open(device, onnx, program->onnx_bytes, inputs, program->input_count, &made, NULL);
  if (status == CLV_OK && !made->is_static) status = CLV_NOT_SUPPORTED;
  if (status == CLV_OK) status = clv__vnpu_layout_make(made, NULL);
  if (status == CLV_OK) status = clv__vnpu_program_finish(made, NULL);
  if (status == CLV_OK)
    *out = made;
  else
    clv__vnpu_program_destroy(made);
}
