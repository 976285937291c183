/* Helpers of several backends: reading types from the host's graph views, and checks. */
#ifndef CLEAVE_BACKENDS_COMMON_HOST_H
#define CLEAVE_BACKENDS_COMMON_HOST_H

#include "base/memory.h"
#include "cleave/plugin/backend.h"

/* Sets *types to the types of a partition's *count inputs, copied into the arena without data, so that they may outlive the
 * graph. Symbolic dims become CLV_DIM_UNKNOWN, because symbols have no meaning outside the graph. Returns CLV_OUT_OF_MEMORY if
 * memory runs out. */
clv_status clv__host_input_types(const clv_host *host, const clv_graph_view *graph, clv__arena *arena, clv_tensor **types,
                                 uint32_t *count, clv_error *error);

/* Fills `types` with the types of a node's operands: first the inputs, then the outputs. The type of a constant has its data,
 * if known. An omitted operand has rank CLV_RANK_UNKNOWN. Unless `is_constant` is NULL, is_constant[i] is set to whether
 * operand i is a constant, even if its data is not known yet. */
void clv__host_operand_types(const clv_host *host, const clv_graph_view *graph, const clv_node_info *node, clv_tensor *types,
                             bool *is_constant);

/* Whether an attribute of the node is a graph. */
bool clv__host_has_body(const clv_node_info *node);
/* Whether the node is an If, Loop or Scan, which the host's evaluator runs. */
bool clv__host_is_control_flow(const clv_node_info *node);

/* Returns CLV_INVALID_ARGUMENT if a copy does not lie within a buffer of `whole_bytes`. */
clv_status clv__host_check_range(uint64_t whole_bytes, uint64_t offset, uint64_t size_bytes, clv_error *error);

#endif
