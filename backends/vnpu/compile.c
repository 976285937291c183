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

/* A larger group can be split. The limit of inputs is the planner's: streamed weights, which it does not count, look like inputs
 * here. */
static clv_status check_size(const clv_device *device, const clv_graph_view *graph, clv_error *error) {
  const uint32_t count = device->host->graph_node_count(graph), most = device->spec.max_partition_nodes;
  if (most == 0 || count <= most) return CLV_OK;
  return clv__error_set(error, CLV_TOO_LARGE, "%u nodes, but a program has at most %u ('max_partition_nodes')", count, most);
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
