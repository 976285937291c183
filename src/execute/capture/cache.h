/* The captured graphs of one device: which are kept, which goes, which shapes are worth capturing. Knows nothing of how graphs
 * are captured: an entry's content is the caller's.
 *
 * An entry is all captured partitions of one plan and one set of shapes on the device, for one owner (a request's prepared
 * shapes): graphs refer to the owner's memory. What is remembered beside entries (sightings, keys that failed) is by key alone,
 * and bounded, see sightings.h. A sighting is a run: of an entry, or one that asked.
 *
 * Admission when full, of entries or of bytes: TinyLFU's rule (Einziger, Friedman and Manes, 2017). The entries used least
 * recently go, and a newcomer must have been seen more often than each of them, by more than a quarter, so that cycling over more
 * shapes than there are entries still hits.
 *
 * What a call costs does not depend on the size of keys, but where a difference is asked for, and for the first entry of a key;
 * it grows with the number of entries where one has to go.
 *
 * Threads: all functions lock the cache, but clv__graph_entry_enter(), _leave() and _is_kept(), which take no lock: the steady
 * state. Contents are destroyed without the lock; that must not call the cache. */
#ifndef CLEAVE_EXECUTE_CAPTURE_CACHE_H
#define CLEAVE_EXECUTE_CAPTURE_CACHE_H

#include "execute/capture/key.h"

typedef struct clv__graph_cache clv__graph_cache;
typedef struct clv__graph_entry clv__graph_entry;

typedef struct clv__graph_counters {
  uint64_t hits;      /* launches of a captured graph */
  uint64_t misses;    /* runs without one, whatever the reason, capturing runs included: calls of ask */
  uint64_t captures;  /* that succeeded, kept or not */
  uint64_t failures;  /* captures that failed */
  uint64_t evictions; /* entries that went for others */
  uint64_t entries, bytes;
  uint64_t patches;    /* bindings moved in a captured graph */
  uint64_t recaptures; /* captured again because bindings could not be moved */
  uint64_t saved_ns;   /* time of the host, against issuing the launches one by one */
} clv__graph_counters;

typedef enum clv__graph_verdict {
  CLV__GRAPH_CAPTURE,     /* capture now, then clv__graph_cache_insert() or _fail() */
  CLV__GRAPH_EAGER_SIGHT, /* not seen often enough yet (auto) */
  CLV__GRAPH_EAGER_FULL,  /* no room: entries were seen more often, or the graph is larger than the cache */
  CLV__GRAPH_EAGER_FAILED /* this key's capture has failed before */
} clv__graph_verdict;
/* "captured", "seen once", …: for reports. Static storage. */
const char *clv__graph_verdict_text(clv__graph_verdict verdict);

/* Room for `entries` that hold `bytes`; 0 entries: nothing is ever worth capturing. */
clv_status clv__graph_cache_create(const clv_allocator *allocator, uint32_t entries, uint64_t bytes, bool on_first_sight,
                                   clv__graph_cache **cache, clv_error *error);
/* Destroys entries that are left; none is entered. Accepts NULL. */
void clv__graph_cache_destroy(clv__graph_cache *cache);

/* A run without an entry: counts a sighting of the key, and says what to do. `difference` (may be NULL) is told where the key
 * first differs from the entry used last: "no graph is captured", "node 3 'act': Mul, was Add", "value 'x': f32[1,4], was
 * f32[1,3]". */
clv__graph_verdict clv__graph_cache_ask(clv__graph_cache *cache, const clv__graph_key *key, char *difference, size_t size_bytes);

/* Keeps a captured graph. `content` is destroyed by `destroy` once: when the entry goes for another, is removed, or with the
 * cache; never while it is entered. The key is copied. The entry comes entered, for its first launch, which counts as no hit. On
 * CLV_OK the cache owns `content`, and the caller the entry, until clv__graph_entry_remove(), due even after an eviction; but
 * where there turned out to be no room `entry` is NULL, and `content` stays the caller's, as it does on CLV_OUT_OF_MEMORY. */
clv_status clv__graph_cache_insert(clv__graph_cache *cache, const clv__graph_key *key, void *content, uint64_t bytes,
                                   void (*destroy)(void *content), clv__graph_entry **entry, clv_error *error);
/* The key's capture failed: it is not tried again. */
void clv__graph_cache_fail(clv__graph_cache *cache, const clv__graph_key *key);
/* The owner lets go of its entry, which is not entered: when this returns the content is destroyed, by whomever. Accepts NULL. */
void clv__graph_entry_remove(clv__graph_cache *cache, clv__graph_entry *entry);

/* The content, to launch it, or NULL when it was evicted. Enter before a launch, leave when the launch is over (the device has
 * finished): eviction waits in between. One thread at a time, and not again before leaving. Counts a hit and marks the entry as
 * the one used last. */
void *clv__graph_entry_enter(clv__graph_cache *cache, clv__graph_entry *entry);
void clv__graph_entry_leave(clv__graph_entry *entry);
/* Not evicted so far. For its owner. */
bool clv__graph_entry_is_kept(const clv__graph_entry *entry);

/* Adds to these counters; takes no lock. */
void clv__graph_cache_add(clv__graph_cache *cache, uint64_t patches, uint64_t recaptures, uint64_t saved_ns);
void clv__graph_cache_counters(clv__graph_cache *cache, clv__graph_counters *counters);

#endif
