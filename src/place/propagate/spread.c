/* Pass 2 of `propagate`: devices spread along the list. */
#include "place/propagate/propagate.h"

void clv__propagate_spread(clv__propagation *p, const clv__sweep *sweep) {
  const clv__problem *problem = p->problem;
  uint32_t current = CLV__NONE, stop = sweep->host ? CLV__NONE : p->last;
  for (uint32_t i = 0; i < problem->node_count && p->left > 0; ++i) {
    uint32_t n = sweep->up ? problem->node_count - 1 - i : i;
    if (clv__node_is_view(problem, n)) continue;
    uint32_t device = p->devices[n];
    if (device != CLV__NONE) {
      current = device == stop ? CLV__NONE : device;
    } else if (current != CLV__NONE && clv__can_run(problem, n, current)) {
      p->devices[n] = current;
      p->causes[n] = sweep->cause;
      --p->left;
    }
  }
}
