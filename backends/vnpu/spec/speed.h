/* The speed model: what a launch and a copy would take on the hardware described, and waiting until then. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_SPEED_H
#define CLEAVE_BACKENDS_VNPU_SPEC_SPEED_H

#include "cleave/plugin/backend.h"
#include "spec.h"

/* Returns once `seconds` have passed since `start_ns` of clv__clock_ns(); at once when they have, or when it is 0. Gives the
 * moment when that was due, or now where that is already past: how late this thread woke is not the model's. */
uint64_t clv__vnpu_wait_until(uint64_t start_ns, double seconds);

double clv__vnpu_copy_seconds(const clv__vnpu_speed *speed, uint64_t size_bytes);
/* Starting a program. */
double clv__vnpu_launch_seconds(const clv__vnpu_speed *speed);
/* One instruction of it: the longer of its arithmetic and its memory traffic; of an operator that has figures of its own what
 * they say, its rows being those of its first input (elements along the first axis), its edges the elements of the operand that
 * says which rows (sources of ai.cleave's operators, indices of Gather and Scatter; 0 elsewhere). Shapes are static; data is not
 * read. */
double clv__vnpu_node_seconds(const clv__vnpu_speed *speed, const clv_node_info *node, const clv_tensor *inputs,
                              const clv_tensor *outputs);

#endif
