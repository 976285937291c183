/* Random placements: a seed selects for every node one of the devices that support it. */
#ifndef CLEAVE_CLI_TEST_PLACEMENTS_H
#define CLEAVE_CLI_TEST_PLACEMENTS_H

#include "cleave/plan.h"
#include "cli/command.h"

/* Creates pins by node name for all nodes that `base` runs. Nodes that the user assigned keep their device. Each other node is
 * pinned to a random device that supports it. The array is in `arena`; the graph owns the names. `devices` are those of
 * the plan. */
clv_status cli_placement_pins(const clv_plan *base, const clv_devices *devices, uint64_t seed, cli_arena *arena,
                              clv_assignment **pins, uint32_t *count, clv_error *error);

#endif
