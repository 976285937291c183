/* What the device can run: its description's limits, and what the kernels that stand in for its circuits take. */
#ifndef CLEAVE_BACKENDS_VNPU_SUPPORTS_H
#define CLEAVE_BACKENDS_VNPU_SUPPORTS_H

#include "device.h"
#include "operators/run.h"

/* The verdict on one node. A yes means that a program of this node alone compiles. CLV_OUT_OF_MEMORY when the host had none to
 * find out: the verdict is then no. */
clv_status clv__vnpu_supports(const clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);

/* A kernel call for the node, without scratch and error. */
clv__kernel_call clv__vnpu_call(const clv_node_info *node, const clv_tensor *inputs, clv_tensor *outputs);

#endif
