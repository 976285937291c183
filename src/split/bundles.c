/* Bundles: nodes that are to be in one slot, because they were claimed together or to see what it costs. */
#include <string.h>

#include "split/rounds.h"

static void settle(const clv__convex *c, clv__bundles *b) {
  for (uint32_t i = 0; i < c->problem->node_count; ++i) b->root[i] = clv__find(b->root, i);
}

clv_status clv__bundles_make(clv__convex *c, clv__bundles *bundles, clv_error *error) {
  uint32_t n = c->problem->node_count;
  bundles->root = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *bundles->root);
  bundles->next = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *bundles->next);
  uint32_t *last = clv__arena_allocate(&c->scratch, (size_t)c->color_count * sizeof *last);
  if (bundles->root == NULL || bundles->next == NULL || last == NULL) return clv__error_memory(error, (size_t)n * sizeof *last);
  for (uint32_t i = 0; i < n; ++i) bundles->root[i] = bundles->next[i] = i;
  memset(last, 0xff, c->color_count * sizeof *last);
  for (uint32_t i = 0; i < n && c->has_claims; ++i) {
    uint32_t color = c->colors[i];
    if (!c->color_is_claimed[color]) continue;
    if (last[color] != CLV__NONE) clv__join(bundles->root, bundles->next, last[color], i);
    last[color] = i;
  }
  settle(c, bundles);
  return CLV_OK;
}

void clv__bundles_join(const clv__convex *c, clv__bundles *bundles, uint32_t x, uint32_t y) {
  clv__join(bundles->root, bundles->next, x, y);
  settle(c, bundles);
}
