/* What more than one backend asks of its host, or refuses, in the same way. */
#ifndef CLEAVE_BACKENDS_COMMON_HOST_H
#define CLEAVE_BACKENDS_COMMON_HOST_H

#include "base/memory.h"
#include "cleave/plugin/backend.h"

/* The types of a partition's inputs, in the arena, for what is kept longer than the graph: symbols mean nothing outside it. */
clv_status clv__host_input_types(const clv_host *host, const clv_graph_view *graph, clv__arena *arena, clv_tensor **types,
                                 uint32_t *count, clv_error *error);

/* The types of a node's operands, inputs then outputs, with the data of constants; of rank CLV_RANK_UNKNOWN where one is left
 * out. `is_constant`, which may be NULL, says which have one value, known now or later. */
void clv__host_operand_types(const clv_host *host, const clv_graph_view *graph, const clv_node_info *node, clv_tensor *types,
                             bool *is_constant);

/* Whether an attribute of the node is a graph. */
bool clv__host_has_body(const clv_node_info *node);
/* If, Loop and Scan: what the host's evaluator runs. */
bool clv__host_is_control_flow(const clv_node_info *node);

/* CLV_INVALID_ARGUMENT for a copy that is not inside a buffer of `whole_bytes`. */
clv_status clv__host_check_range(uint64_t whole_bytes, uint64_t offset, uint64_t size_bytes, clv_error *error);

#endif
