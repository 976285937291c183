/* "What if": treats operators as supported by a device that rejects them. */
#include <string.h>

#include "base/text.h"
#include "plan/make.h"

clv_status clv__suppose(clv_plan *plan, const clv_assignment *items, uint32_t count, clv_error *error) {
  const clv_graph *graph = plan->graph;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t hits = 0, device = clv__devices_find(plan->devices, items[i].device);
    if (device == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s@%s': device '%s' is not in the list of devices", items[i].pattern,
                            items[i].device, items[i].device);
    }
    for (clv_node_id n = 0; n < graph->node_count; ++n) {
      if (plan->shapes->node_folded[n] || !clv__node_matches_op(&graph->nodes[n], items[i].pattern)) continue;
      const char **reason = &plan->capability.reasons[(size_t)n * plan->capability.device_count + device];
      ++hits;
      if (*reason != NULL) plan->is_supposed = true;
      *reason = NULL;
    }
    if (hits > 0) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s@%s' matches no operator of the model", items[i].pattern,
                          items[i].device);
  }
  return CLV_OK;
}
