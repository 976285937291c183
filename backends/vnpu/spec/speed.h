/* The speed model: estimates how long a launch or copy takes on the described hardware, and waits that long. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_SPEED_H
#define CLEAVE_BACKENDS_VNPU_SPEC_SPEED_H

#include "base/stop.h"
#include "cleave/plugin/backend.h"
#include "spec.h"

/* Returns once `seconds` have passed since `start_ns` (a time of clv__clock_ns()), or immediately if they have passed or are 0.
 * Returns the end time, start_ns plus `seconds`, even if this thread wakes later, so that the model does not count the delay.
 * Returns the current time if the end time had passed before the call. Returns 0 if `stop`, which may be NULL, was set before the
 * end. */
uint64_t clv__vnpu_wait_until(uint64_t start_ns, double seconds, const clv__stop *stop);

double clv__vnpu_copy_seconds(const clv__vnpu_speed *speed, uint64_t size_bytes);
/* The overhead of one launch. */
double clv__vnpu_launch_seconds(const clv__vnpu_speed *speed);
/* Time of one instruction of a launch: the longer of its arithmetic and its memory traffic.
 *
 * If the operator has its own parameters, the time is computed from its rows and edges instead. The number of rows is the size of
 * the first input's first axis. The number of edges is the number of elements of the operand that selects rows: the sources of
 * ai.cleave's operators, the indices of Gather and Scatter. Other operators have 0 edges.
 *
 * Shapes must be static. Data is not read. */
double clv__vnpu_node_seconds(const clv__vnpu_speed *speed, const clv_node_info *node, const clv_tensor *inputs,
                              const clv_tensor *outputs);

#endif
