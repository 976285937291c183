/* The speed model: estimates how long a launch or copy takes on the described hardware, and waits that long. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_SPEED_H
#define CLEAVE_BACKENDS_VNPU_SPEC_SPEED_H

#include "cleave/plugin/backend.h"
#include "spec.h"

/* Returns once `seconds` have passed since `start_ns` (a time of clv__clock_ns()), or immediately if they have passed or are 0.
 * The result is the due time; if that had passed before the call, it is the current time. So the model does not count a late
 * wake-up of this thread. */
uint64_t clv__vnpu_wait_until(uint64_t start_ns, double seconds);

double clv__vnpu_copy_seconds(const clv__vnpu_speed *speed, uint64_t size_bytes);
/* Time to start a program. */
double clv__vnpu_launch_seconds(const clv__vnpu_speed *speed);
/* Time of one instruction of a launch: the longer of its arithmetic and its memory traffic.
 *
 * If the operator has its own figures, they replace both. Their rows are the elements along the first axis of the first input.
 * Their edges are the elements of the operand that selects rows: the sources of ai.cleave's operators, the indices of Gather and
 * Scatter. Other operators have 0 edges.
 *
 * Shapes must be static. Data is not read. */
double clv__vnpu_node_seconds(const clv__vnpu_speed *speed, const clv_node_info *node, const clv_tensor *inputs,
                              const clv_tensor *outputs);

#endif
