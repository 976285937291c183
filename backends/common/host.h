/* Helpers of several backends: reading types from the host's graph views, and checks. */
#ifndef CLEAVE_BACKENDS_COMMON_HOST_H
#define CLEAVE_BACKENDS_COMMON_HOST_H

#include "base/memory.h"
#include "cleave/plugin/backend.h"

/* Copies the types of a partition's inputs into the arena, where they may outlive the graph. Symbolic dims become unknown,
 * because symbols have no meaning outside the graph. */
clv_status clv__host_input_types(const clv_host *host, const clv_graph_view *graph, clv__arena *arena, clv_tensor **types,
                                 uint32_t *count, clv_error *error);

/* The types of a node's operands, inputs first, then outputs, with the data of constants. An omitted operand has rank
 * CLV_RANK_UNKNOWN. `is_constant` may be NULL. Otherwise it receives which operands are constant, including constants whose data
 * is not known yet. */
void clv__host_operand_types(const clv_host *host, const clv_graph_view *graph, const clv_node_info *node, clv_tensor *types,
                             bool *is_constant);

/* Whether an attribute of the node is a graph. */
bool clv__host_has_body(const clv_node_info *node);
/* Whether the node is an If, Loop or Scan, which the host's evaluator runs. */
bool clv__host_is_control_flow(const clv_node_info *node);

/* Returns CLV_INVALID_ARGUMENT if a copy does not lie within a buffer of `whole_bytes`. */
clv_status clv__host_check_range(uint64_t whole_bytes, uint64_t offset, uint64_t size_bytes, clv_error *error);

#endif
