/* Random placements: a seed selects for every node one of the devices that support it. */
#ifndef CLEAVE_CLI_TEST_PLACEMENTS_H
#define CLEAVE_CLI_TEST_PLACEMENTS_H

#include "cli/command.h"
#include "plan/plan.h"

/* Creates pins by node name for all nodes that `base` runs. Nodes fixed by the user keep their device; each other node goes to
 * one of the devices that support it. The array is from `arena`; the graph owns the names. */
clv_status cli_placement_pins(const clv_plan *base, uint64_t seed, clv__arena *arena, clv_assignment **pins, uint32_t *count,
                              clv_error *error);

#endif
