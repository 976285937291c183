/* Measures the time of looking for a capture in the cache of captures: of a miss, and of entering the capture after a hit. */
#include "replay.h"

#include <string.h>

#include "execute/capture/cache.h"
#include "plan/plan.h"

typedef struct lookups {
  clv__capture_cache *cache;
  clv__capture_key key;
  clv__capture_entry *entry;
} lookups;

enum { LOOKUPS = 64 };

static void destroy_nothing(void *content) {
  (void)content;
}

static cost ask(void *cookie) {
  const lookups *l = cookie;
  cost begun = begin();
  for (int i = 0; i < LOOKUPS; ++i) (void)clv__capture_cache_ask(l->cache, &l->key, NULL, 0);
  return end(begun);
}

static cost enter(void *cookie) {
  const lookups *l = cookie;
  cost begun = begin();
  for (int i = 0; i < LOOKUPS; ++i) {
    (void)clv__capture_entry_enter(l->cache, l->entry);
    clv__capture_entry_leave(l->entry);
  }
  return end(begun);
}

void measure_lookups(const clv_plan *plan, int samples, double *asked, double *entered) {
  clv_error error = {0};
  clv__arena arena;
  lookups l;
  clv__arena_init(&arena, clv__allocator_default());
  bool *captured = clv__arena_allocate(&arena, plan->partition_count * sizeof *captured);
  if (captured == NULL) check(CLV_OUT_OF_MEMORY, &error, "lookups");
  memset(captured, true, plan->partition_count * sizeof *captured);
  check(clv__capture_key_make(plan, 0, captured, plan->shapes->types, NULL, &arena, &l.key, &error), &error, "key");
  check(clv__capture_cache_create(clv__allocator_default(), 12, UINT64_MAX, true, &l.cache, &error), &error, "cache");
  check(clv__capture_cache_insert(l.cache, &l.key, &l, 1, destroy_nothing, &l.entry, &error), &error, "cache");
  clv__capture_entry_leave(l.entry);
  cost costs[2];
  measure((subject[]){{ask, &l}, {enter, &l}}, 2, samples, costs);
  *asked = costs[0].cpu / LOOKUPS;
  *entered = costs[1].cpu / LOOKUPS;
  clv__capture_entry_remove(l.cache, l.entry);
  clv__capture_cache_destroy(l.cache);
  clv__arena_finish(&arena);
}
