/* See host.h. */
#include "backends/common/host.h"

#include <string.h>

#include "base/error.h"

clv_status clv__host_input_types(const clv_host *host, const clv_graph_view *graph, clv__arena *arena, clv_tensor **types,
                                 uint32_t *count, clv_error *error) {
  *count = host->graph_input_count(graph);
  *types = clv__arena_allocate_zero(arena, *count, sizeof **types);
  if (*types == NULL) return clv__error_memory(error, *count * sizeof **types);
  for (uint32_t i = 0; i < *count; ++i) {
    clv_value_info info = {.struct_size = sizeof info};
    host->graph_value(graph, host->graph_input(graph, i), &info);
    info.type.data = NULL;
    for (int32_t d = 0; d < info.type.rank; ++d) {
      if (info.type.dims[d] < 0) info.type.dims[d] = CLV_DIM_UNKNOWN;
    }
    (*types)[i] = info.type;
  }
  return CLV_OK;
}

void clv__host_operand_types(const clv_host *host, const clv_graph_view *graph, const clv_node_info *node, clv_tensor *types,
                             bool *is_constant) {
  const uint32_t count = node->input_count + node->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    clv_value_info info = {.struct_size = sizeof info};
    types[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    if (is_constant != NULL) is_constant[i] = false;
    if (value == CLV_NO_VALUE) continue;
    host->graph_value(graph, value, &info);
    types[i] = info.type;
    if (is_constant != NULL) is_constant[i] = info.is_constant || info.type.data != NULL;
  }
}

clv_status clv__host_check_range(uint64_t whole_bytes, uint64_t offset, uint64_t size_bytes, clv_error *error) {
  if (offset <= whole_bytes && size_bytes <= whole_bytes - offset) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "a copy of %llu bytes at offset %llu does not fit the buffer of %llu bytes",
                        (unsigned long long)size_bytes, (unsigned long long)offset, (unsigned long long)whole_bytes);
}

bool clv__host_has_body(const clv_node_info *node) {
  for (uint32_t i = 0; i < node->attribute_count; ++i) {
    if (node->attributes[i].kind == CLV_ATTRIBUTE_GRAPH) return true;
  }
  return false;
}

bool clv__host_is_control_flow(const clv_node_info *node) {
  if (node->domain[0] != '\0') return false;
  return strcmp(node->op, "If") == 0 || strcmp(node->op, "Loop") == 0 || strcmp(node->op, "Scan") == 0;
}
