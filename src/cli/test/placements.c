/* See placements.h. */
#include "cli/test/placements.h"
#include "base/random.h"

#include <string.h>

#include "base/text.h"

static uint32_t choose(const clv_plan *base, clv_node_id node, uint64_t *state) {
  uint32_t able[CLV__MAX_DEVICES], count = 0;
  uint64_t bits = clv__random(state); /* one draw per node, so that a node's choice does not depend on the devices of others */
  if (strcmp(base->placement.causes[node], "usr") == 0) return base->placement.devices[node];
  for (uint32_t d = 0; d < base->devices->count; ++d) {
    if (clv__capability_reason(&base->capability, node, d) == NULL) able[count++] = d;
  }
  return count == 0 ? base->placement.devices[node] : able[bits % count];
}

clv_status cli_placement_pins(const clv_plan *base, uint64_t seed, clv__arena *arena, clv_assignment **out, uint32_t *out_count,
                              clv_error *error) {
  const clv_graph *graph = base->graph;
  clv_assignment *pins = clv__arena_allocate_zero(arena, graph->node_count, sizeof *pins);
  if (pins == NULL) return clv__error_memory(error, graph->node_count * sizeof *pins);
  uint64_t state = seed * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du;
  uint32_t count = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    uint32_t device = base->placement.devices[n] == CLV__NO_ID ? CLV__NO_ID : choose(base, n, &state);
    if (device == CLV__NO_ID) continue;                        /* constant-folded, so it runs on no device */
    if (strpbrk(graph->nodes[n].name, "*?") != NULL) continue; /* a pin with this name could match other nodes too */
    pins[count++] = (clv_assignment){graph->nodes[n].name, base->devices->items[device].name};
  }
  *out = pins;
  *out_count = count;
  return CLV_OK;
}
