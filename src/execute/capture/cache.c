/* See cache.h.
 *
 * The life of an entry: at first it is in the list `resident`. On eviction it moves to the list `evicted`, and its content is
 * destroyed: at once or, if its owner has entered it, when the owner leaves it. Finally its owner removes it. "Entered" and
 * "evicted" are two bits of one atomic. The owner enters and leaves without the lock, so the atomic ensures that exactly one of
 * the owner and the evicting thread destroys the content. */
#include "execute/capture/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "execute/capture/sightings.h"

enum { ENTERED = 1u, EVICTED = 2u };

struct clv__capture_entry {
  clv__capture_entry *next, *previous; /* in `resident` or `evicted` */
  clv__capture_entry *next_going;
  atomic_uint state;
  _Atomic(uint64_t) hits;      /* only the owner writes it */
  _Atomic(uint64_t) last_used; /* by the cache's clock */
  void *content;
  void (*destroy)(void *content);
  uint64_t bytes;
  uint64_t counted; /* how many of `hits` are already counted in the key's sightings */
  uint32_t key;     /* index in the sightings */
  bool is_going;    /* the thread that evicted it is destroying its content; the owner waits before it frees the entry */
  bool is_chosen;   /* to be evicted for another entry */
};

struct clv__capture_cache {
  const clv_allocator *allocator;
  pthread_mutex_t lock;
  pthread_cond_t gone; /* signals that an entry is no longer `is_going` */
  uint32_t entry_limit;
  uint64_t byte_limit;
  bool on_first_sight;
  clv__capture_entry *resident, *evicted;
  clv__sightings sightings;
  _Atomic(uint64_t) clock;
  clv__capture_counters counters; /* all except hits, patches, recaptures and saved_ns */
  uint64_t inserted;              /* number of insertions; `clock` - `inserted` is the number of hits */
  _Atomic(uint64_t) patches, recaptures, saved_ns;
};

clv_status clv__capture_cache_create(const clv_allocator *allocator, uint32_t entries, uint64_t bytes, bool on_first_sight,
                                     clv__capture_cache **out, clv_error *error) {
  enum { LEAST_WINDOW = 64, MOST_WINDOW = 1 << 20, SIGHTINGS_AN_ENTRY = 16 };
  *out = NULL;
  clv__capture_cache *cache = clv__allocate_zero(allocator, sizeof *cache);
  if (cache == NULL) return clv__error_memory(error, sizeof *cache);
  cache->allocator = allocator;
  cache->entry_limit = entries;
  cache->byte_limit = bytes;
  cache->on_first_sight = on_first_sight;
  uint64_t window = (uint64_t)entries * SIGHTINGS_AN_ENTRY;
  clv__sightings_init(&cache->sightings, allocator,
                      window < LEAST_WINDOW  ? LEAST_WINDOW
                      : window > MOST_WINDOW ? MOST_WINDOW
                                             : window);
  pthread_mutex_init(&cache->lock, NULL);
  pthread_cond_init(&cache->gone, NULL);
  *out = cache;
  return CLV_OK;
}

static void link_entry(clv__capture_entry **list, clv__capture_entry *entry) {
  entry->previous = NULL;
  entry->next = *list;
  if (*list != NULL) (*list)->previous = entry;
  *list = entry;
}

static void unlink_entry(clv__capture_entry **list, clv__capture_entry *entry) {
  if (entry->next != NULL) entry->next->previous = entry->previous;
  *(entry->previous != NULL ? &entry->previous->next : list) = entry->next;
}

static void free_entries(clv__capture_cache *cache, clv__capture_entry *entry) {
  while (entry != NULL) {
    clv__capture_entry *next = entry->next;
    if ((atomic_load(&entry->state) & EVICTED) == 0) entry->destroy(entry->content);
    clv__release(cache->allocator, entry);
    entry = next;
  }
}

void clv__capture_cache_destroy(clv__capture_cache *cache) {
  if (cache == NULL) return;
  free_entries(cache, cache->resident);
  free_entries(cache, cache->evicted);
  clv__sightings_finish(&cache->sightings);
  pthread_cond_destroy(&cache->gone);
  pthread_mutex_destroy(&cache->lock);
  clv__release(cache->allocator, cache);
}

/* ---- Admission; all under the lock ---- */

/* Adds the entry's new hits, which its owner counts without the lock, to its key's sightings. */
static void count_hits(clv__capture_cache *cache, clv__capture_entry *entry) {
  uint64_t hits = atomic_load_explicit(&entry->hits, memory_order_relaxed);
  clv__sightings_count(&cache->sightings, entry->key, hits - entry->counted);
  entry->counted = hits;
}

static clv__capture_entry *least_recent(clv__capture_cache *cache) {
  clv__capture_entry *least = NULL;
  for (clv__capture_entry *entry = cache->resident; entry != NULL; entry = entry->next) {
    if (entry->is_chosen) continue;
    if (least == NULL || atomic_load_explicit(&entry->last_used, memory_order_relaxed) <
                             atomic_load_explicit(&least->last_used, memory_order_relaxed)) {
      least = entry;
    }
  }
  return least;
}

static void choose_none(clv__capture_cache *cache) {
  for (clv__capture_entry *entry = cache->resident; entry != NULL; entry = entry->next) entry->is_chosen = false;
}

/* Returns whether a key that was seen `seen` times may replace one that was seen `resident` times. Requires a margin of a
 * quarter. Otherwise owners that run the same keys at different times would evict each other's captures forever. */
static bool is_seen_more(uint32_t seen, uint32_t resident) {
  return seen > resident + resident / 4;
}

/* Returns whether a capture of `bytes` may be admitted. If so, marks the entries to evict for it. */
static bool choose_room(clv__capture_cache *cache, uint32_t seen, uint64_t bytes) {
  uint64_t entries = cache->counters.entries, held = cache->counters.bytes;
  if (cache->entry_limit == 0 || bytes > cache->byte_limit) return false;
  while (entries >= cache->entry_limit || held > cache->byte_limit - bytes) {
    clv__capture_entry *entry = least_recent(cache); /* not NULL, because an empty cache has room */
    if (!is_seen_more(seen, cache->sightings.items[entry->key].count)) {
      choose_none(cache);
      return false;
    }
    entry->is_chosen = true;
    --entries;
    held -= entry->bytes;
  }
  return true;
}

/* Removes an entry from the resident list. */
static void take_out(clv__capture_cache *cache, clv__capture_entry *entry) {
  unlink_entry(&cache->resident, entry);
  count_hits(cache, entry);
  clv__sightings_drop_capture(&cache->sightings, entry->key);
  --cache->counters.entries;
  cache->counters.bytes -= entry->bytes;
}

/* Evicts the chosen entries. Returns those whose contents destroy_contents() must destroy now, linked by `next_going`. */
static clv__capture_entry *evict_chosen(clv__capture_cache *cache) {
  clv__capture_entry *going = NULL;
  for (clv__capture_entry *entry = cache->resident, *next; entry != NULL; entry = next) {
    next = entry->next;
    if (!entry->is_chosen) continue;
    take_out(cache, entry);
    link_entry(&cache->evicted, entry);
    ++cache->counters.evictions;
    if ((atomic_fetch_or(&entry->state, EVICTED) & ENTERED) != 0) continue; /* in use: its owner destroys it on leaving */
    entry->is_going = true;
    entry->next_going = going;
    going = entry;
  }
  return going;
}

/* Destroys the contents of evicted entries, without the lock because that may take long. Owners that remove one of these entries
 * wait. */
static void destroy_contents(clv__capture_cache *cache, clv__capture_entry *going) {
  if (going == NULL) return;
  for (clv__capture_entry *entry = going; entry != NULL; entry = entry->next_going) entry->destroy(entry->content);
  pthread_mutex_lock(&cache->lock);
  for (clv__capture_entry *entry = going, *next; entry != NULL; entry = next) {
    next = entry->next_going;
    entry->is_going = false;
  }
  pthread_cond_broadcast(&cache->gone);
  pthread_mutex_unlock(&cache->lock);
}

/* ---- Interface ---- */

static void tell_difference(const clv__capture_cache *cache, const clv__capture_key *key, char *text, size_t size_bytes) {
  const clv__capture_entry *last = NULL;
  for (const clv__capture_entry *entry = cache->resident; entry != NULL; entry = entry->next) {
    if (last == NULL || atomic_load_explicit(&entry->last_used, memory_order_relaxed) >
                            atomic_load_explicit(&last->last_used, memory_order_relaxed)) {
      last = entry;
    }
  }
  if (last == NULL) {
    snprintf(text, size_bytes, "no earlier capture is kept");
    return;
  }
  const clv__capture_key *before = &cache->sightings.items[last->key].key;
  if (clv__capture_key_equal(key, before)) {
    snprintf(text, size_bytes, "the same shapes were captured for another request");
  } else {
    clv__capture_key_difference(key, before, text, size_bytes);
  }
}

static clv__capture_verdict judge(clv__capture_cache *cache, const clv__sighting *seen) {
  if (seen->has_failed) return CLV__CAPTURE_EAGER_FAILED;
  if (!cache->on_first_sight && seen->count < 2) return CLV__CAPTURE_EAGER_SIGHT;
  if (!choose_room(cache, seen->count, seen->capture_bytes)) return CLV__CAPTURE_EAGER_FULL;
  choose_none(cache);
  return CLV__CAPTURE_NOW;
}

clv__capture_verdict clv__capture_cache_ask(clv__capture_cache *cache, const clv__capture_key *key, char *difference,
                                            size_t size_bytes) {
  clv__capture_verdict verdict = CLV__CAPTURE_EAGER_SIGHT; /* the verdict if memory runs out */
  pthread_mutex_lock(&cache->lock);
  ++cache->counters.misses;
  for (clv__capture_entry *entry = cache->resident; entry != NULL; entry = entry->next) count_hits(cache, entry);
  clv__sightings_age(&cache->sightings);
  uint32_t index = clv__sightings_index(&cache->sightings, &key->hash);
  if (index != CLV__NO_ID) {
    clv__sightings_count(&cache->sightings, index, 1);
    verdict = judge(cache, &cache->sightings.items[index]);
  }
  if (difference != NULL) tell_difference(cache, key, difference, size_bytes);
  pthread_mutex_unlock(&cache->lock);
  return verdict;
}

static uint64_t tick(clv__capture_cache *cache) {
  return atomic_fetch_add_explicit(&cache->clock, 1, memory_order_relaxed) + 1;
}

/* Makes `entry` resident if there is room. Returns false if there is no room, or no memory for its key. */
static bool admit(clv__capture_cache *cache, clv__capture_entry *entry, const clv__capture_key *key, clv__capture_entry **going,
                  bool *out_of_memory) {
  entry->key = clv__sightings_index(&cache->sightings, &key->hash);
  *out_of_memory = entry->key == CLV__NO_ID;
  if (*out_of_memory) return false;
  clv__sighting *seen = &cache->sightings.items[entry->key];
  seen->capture_bytes = entry->bytes;
  if (!choose_room(cache, seen->count, entry->bytes)) return false;
  /* Must precede the eviction of other entries, which could evict the statistics of this key. */
  if (!clv__sightings_add_capture(&cache->sightings, entry->key, key)) {
    *out_of_memory = seen->capture_count == 0;
    choose_none(cache);
    return false;
  }
  *going = evict_chosen(cache);
  link_entry(&cache->resident, entry);
  ++cache->counters.entries;
  cache->counters.bytes += entry->bytes;
  ++cache->inserted;
  atomic_store_explicit(&entry->last_used, tick(cache), memory_order_relaxed);
  return true;
}

clv_status clv__capture_cache_insert(clv__capture_cache *cache, const clv__capture_key *key, void *content, uint64_t bytes,
                                     void (*destroy)(void *content), clv__capture_entry **out, clv_error *error) {
  clv__capture_entry *going = NULL;
  bool out_of_memory;
  *out = NULL;
  clv__capture_entry *entry = clv__allocate_zero(cache->allocator, sizeof *entry);
  if (entry == NULL) return clv__error_memory(error, sizeof *entry);
  entry->content = content;
  entry->destroy = destroy;
  entry->bytes = bytes;
  atomic_store(&entry->state, ENTERED);
  pthread_mutex_lock(&cache->lock);
  ++cache->counters.captures;
  bool is_kept = admit(cache, entry, key, &going, &out_of_memory);
  pthread_mutex_unlock(&cache->lock);
  destroy_contents(cache, going);
  if (is_kept) {
    *out = entry;
    return CLV_OK;
  }
  clv__release(cache->allocator, entry);
  return out_of_memory ? clv__error_memory(error, key->size_bytes) : CLV_OK;
}

void clv__capture_cache_fail(clv__capture_cache *cache, const clv__capture_key *key) {
  pthread_mutex_lock(&cache->lock);
  ++cache->counters.failures;
  uint32_t index = clv__sightings_index(&cache->sightings, &key->hash);
  if (index != CLV__NO_ID) cache->sightings.items[index].has_failed = true;
  pthread_mutex_unlock(&cache->lock);
}

void clv__capture_entry_remove(clv__capture_cache *cache, clv__capture_entry *entry) {
  if (entry == NULL) return;
  pthread_mutex_lock(&cache->lock);
  while (entry->is_going) pthread_cond_wait(&cache->gone, &cache->lock);
  bool was_evicted = (atomic_load(&entry->state) & EVICTED) != 0;
  if (was_evicted) {
    unlink_entry(&cache->evicted, entry);
  } else {
    take_out(cache, entry);
  }
  pthread_mutex_unlock(&cache->lock);
  if (!was_evicted) entry->destroy(entry->content);
  clv__release(cache->allocator, entry);
}

void *clv__capture_entry_enter(clv__capture_cache *cache, clv__capture_entry *entry) {
  unsigned idle = 0;
  if (!atomic_compare_exchange_strong(&entry->state, &idle, ENTERED)) return NULL;
  uint64_t hits = atomic_load_explicit(&entry->hits, memory_order_relaxed);
  atomic_store_explicit(&entry->hits, hits + 1, memory_order_relaxed);
  atomic_store_explicit(&entry->last_used, tick(cache), memory_order_relaxed);
  return entry->content;
}

void clv__capture_entry_leave(clv__capture_entry *entry) {
  if ((atomic_fetch_and(&entry->state, ~(unsigned)ENTERED) & EVICTED) != 0) entry->destroy(entry->content);
}

bool clv__capture_entry_is_kept(const clv__capture_entry *entry) {
  return (atomic_load(&entry->state) & EVICTED) == 0;
}

void clv__capture_cache_add(clv__capture_cache *cache, uint64_t patches, uint64_t recaptures, uint64_t saved_ns) {
  atomic_fetch_add_explicit(&cache->patches, patches, memory_order_relaxed);
  atomic_fetch_add_explicit(&cache->recaptures, recaptures, memory_order_relaxed);
  atomic_fetch_add_explicit(&cache->saved_ns, saved_ns, memory_order_relaxed);
}

void clv__capture_cache_counters(clv__capture_cache *cache, clv__capture_counters *counters) {
  pthread_mutex_lock(&cache->lock);
  *counters = cache->counters;
  counters->hits = atomic_load_explicit(&cache->clock, memory_order_relaxed) - cache->inserted;
  counters->patches = atomic_load_explicit(&cache->patches, memory_order_relaxed);
  counters->recaptures = atomic_load_explicit(&cache->recaptures, memory_order_relaxed);
  counters->saved_ns = atomic_load_explicit(&cache->saved_ns, memory_order_relaxed);
  pthread_mutex_unlock(&cache->lock);
}

const char *clv__capture_verdict_text(clv__capture_verdict verdict) {
  static const char *const texts[] = {"captured", "these shapes were not run often enough", "the cache is full",
                                      "its capture failed"};
  return texts[verdict];
}
