/* Decides which nodes the device can run. This depends on the limits in its description, and on the kernels that compute in place
 * of hardware. */
#ifndef CLEAVE_BACKENDS_VNPU_SUPPORTS_H
#define CLEAVE_BACKENDS_VNPU_SUPPORTS_H

#include "device.h"
#include "operators/run.h"

/* Sets the verdict on one node. A verdict of yes means that a program of this node alone compiles. Returns CLV_OUT_OF_MEMORY if
 * the host ran out of memory during the check; the verdict is then no. */
clv_status clv__vnpu_supports(const clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);

/* Builds a kernel call for the node, without scratch and error. */
clv__kernel_call clv__vnpu_call(const clv_node_info *node, const clv_tensor *inputs, clv_tensor *outputs);

#endif
