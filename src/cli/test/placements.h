/* Random placements: every node on some device that supports it, chosen by a seed. */
#ifndef CLEAVE_CLI_TEST_PLACEMENTS_H
#define CLEAVE_CLI_TEST_PLACEMENTS_H

#include "cli/command.h"
#include "plan/plan.h"

/* Pins by node name for all nodes that `base` runs: nodes that the user fixed stay where they are, the others go to one of the
 * devices that support them. The array is from `arena`; the names are the graph's. */
clv_status cli_placement_pins(const clv_plan *base, uint64_t seed, clv__arena *arena, clv_assignment **pins, uint32_t *count,
                              clv_error *error);

#endif
