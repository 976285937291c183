/* The cache of captures of one device: which entries to keep, which to evict, and which shapes are worth capturing. It does not
 * depend on how captures are made: the caller owns the format of an entry's content.
 *
 * An entry is all captured partitions of one plan and one set of shapes on the device, for one owner (a request's prepared
 * shapes), because captures refer to the owner's memory. Other statistics (sightings, failed keys) are kept per key, in bounded
 * memory: see sightings.h. A sighting of a key is a run with that key: it launches an entry, or calls clv__capture_cache_ask().
 *
 * Admission when entries or bytes are full follows TinyLFU (Einziger, Friedman and Manes, 2017). The least recently used entries
 * are evicted, but only if the newcomer was seen more often than each of them, by more than a quarter. So runs that cycle over
 * more shapes than there are entries still hit some of them.
 *
 * The cost of a call does not depend on the size of keys, except to report a difference and for the first entry of a key. It
 * grows with the number of entries if one must be evicted.
 *
 * Threads: all functions lock the cache except clv__capture_entry_enter(), _leave() and _is_kept(), which take no lock, because
 * every run calls them once its shapes are captured. Contents are destroyed without the lock held; their destruction must not
 * call the cache. */
#ifndef CLEAVE_EXECUTE_CAPTURE_CACHE_H
#define CLEAVE_EXECUTE_CAPTURE_CACHE_H

#include "execute/capture/key.h"

typedef struct clv__capture_cache clv__capture_cache;
typedef struct clv__capture_entry clv__capture_entry;

typedef struct clv__capture_counters {
  uint64_t hits;      /* launches of a capture */
  uint64_t misses;    /* runs without a capture, and runs that make one: calls of clv__capture_cache_ask() */
  uint64_t captures;  /* successful captures, kept or not */
  uint64_t failures;  /* captures that failed */
  uint64_t evictions; /* entries evicted for others */
  uint64_t entries, bytes;
  uint64_t patches;    /* times that the bindings of a captured partition were changed to other locations */
  uint64_t recaptures; /* captures made again because bindings could not be moved */
  uint64_t saved_ns;   /* host time saved, compared with issuing the launches one by one */
} clv__capture_counters;

typedef enum clv__capture_verdict {
  CLV__CAPTURE_NOW,         /* capture now, then clv__capture_cache_insert() or _fail() */
  CLV__CAPTURE_EAGER_SIGHT, /* not seen often enough yet (only in automatic mode) */
  CLV__CAPTURE_EAGER_FULL,  /* no room: not seen clearly more often than the entries to evict, or larger than the cache */
  CLV__CAPTURE_EAGER_FAILED /* an earlier capture of this key failed */
} clv__capture_verdict;
/* For reports: "captured", "the cache is full", … Static storage. */
const char *clv__capture_verdict_text(clv__capture_verdict verdict);

/* Creates a cache with room for `entries` entries and `bytes` bytes. With 0 entries, nothing is captured. Without
 * `on_first_sight`, a key is captured only once it was seen twice. */
clv_status clv__capture_cache_create(const clv_allocator *allocator, uint32_t entries, uint64_t bytes, bool on_first_sight,
                                     clv__capture_cache **cache, clv_error *error);
/* Destroys the remaining entries; none may be entered. Accepts NULL. */
void clv__capture_cache_destroy(clv__capture_cache *cache);

/* To be called for a run that has no entry: counts a sighting of the key, and returns what to do. `difference` (may be NULL)
 * receives the first difference between the key and the entry used last: "node 3 'act': Mul, was Add", "value 'x': f32[1,4],
 * was f32[1,3]"; or "no earlier capture is kept". */
clv__capture_verdict clv__capture_cache_ask(clv__capture_cache *cache, const clv__capture_key *key, char *difference,
                                            size_t size_bytes);

/* Keeps a capture. The key is copied. `destroy` runs once on `content`: on eviction, on removal, or with the cache; never
 * while the entry is entered. The entry is returned entered, for its first launch, which does not count as a hit. On CLV_OK the
 * cache owns `content` and the caller owns the entry until clv__capture_entry_remove(), which is required even after an eviction.
 * Exception: if there was no room, CLV_OK is returned with a NULL entry, and the caller still owns `content`. The caller also
 * still owns it on CLV_OUT_OF_MEMORY. */
clv_status clv__capture_cache_insert(clv__capture_cache *cache, const clv__capture_key *key, void *content, uint64_t bytes,
                                     void (*destroy)(void *content), clv__capture_entry **entry, clv_error *error);
/* Records that the key's capture failed: it is not tried again. */
void clv__capture_cache_fail(clv__capture_cache *cache, const clv__capture_key *key);
/* Frees an entry, at the request of its owner. The entry must not be entered. Its content is destroyed before this returns, by
 * this thread or by the one that evicted the entry. Accepts NULL. */
void clv__capture_entry_remove(clv__capture_cache *cache, clv__capture_entry *entry);

/* Returns the content for a launch, or NULL if the entry was evicted. Enter before a launch and leave when the device has
 * finished it. If the entry is evicted in between, its content is destroyed only on leaving. Only one thread at a time may
 * enter, and not again before leaving. Counts a hit and marks the entry as the most recently used. */
void *clv__capture_entry_enter(clv__capture_cache *cache, clv__capture_entry *entry);
void clv__capture_entry_leave(clv__capture_entry *entry);
/* Returns whether the entry has not been evicted. Only its owner may call this. */
bool clv__capture_entry_is_kept(const clv__capture_entry *entry);

/* Adds to the counters of the same names. Takes no lock. */
void clv__capture_cache_add(clv__capture_cache *cache, uint64_t patches, uint64_t recaptures, uint64_t saved_ns);
void clv__capture_cache_counters(clv__capture_cache *cache, clv__capture_counters *counters);

#endif
