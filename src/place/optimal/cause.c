/* Derives the cause of a node from its device in the cut at the true prices. */
#include "place/optimal/optimal.h"

/* The causes of `optimal`. If the placement comes from another strategy, its nodes have that strategy's causes.
 *   usr      fixed by the user
 *   only     the only device that can run it
 *   single   everything on one device is cheapest
 *   view     moves no data: it stays with its source, or with its reader
 *   cut      the minimum cut of node, transfer and fusion times puts it there
 *   back     returned: the boundary that the cut would draw here costs more, with launches, than it gains
 *   load     moved from its device in the cut, so that devices work at the same time
 *   memory   moved from its device in the cut, because that does not fit the device's memory */
static const char *cause_of(const clv__optimal *o, const uint32_t *devices, uint32_t node, bool is_single) {
  const clv__problem *problem = o->problem;
  if (problem->pins[node] != CLV__NONE) return "usr";
  if ((problem->supports[node] & (problem->supports[node] - 1u)) == 0) return "only";
  if (is_single) return "single";
  if ((problem->flags[node] & CLV__NODE_VIEW) != 0) return "view";
  if (devices[node] == o->reference[node]) return "cut";
  if (!o->reference_fits) return "memory";
  return o->input->objective == CLV__LATENCY ? "back" : "load";
}

void clv__optimal_causes(const clv__optimal *o, const uint32_t *devices, const char **causes) {
  bool is_single = true;
  for (uint32_t n = 1; n < o->problem->node_count; ++n) is_single &= devices[n] == devices[0];
  for (uint32_t n = 0; n < o->problem->node_count; ++n) causes[n] = cause_of(o, devices, n, is_single);
}
