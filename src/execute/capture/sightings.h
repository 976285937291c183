/* Statistics of the keys of captures, whether or not a capture exists: how often each was seen recently, the size of its
 * capture, and whether its capture failed. The memory is bounded: keys without a capture are evicted, the least recently seen
 * first and failed ones last.
 *
 * Counts age as in TinyLFU (Einziger, Friedman and Manes, 2017): after every `window` sightings all are halved, so that keys that
 * were popular once give way. Halves are rounded up. Keys with a capture get one more, so that rounding never favours an equal
 * key without a capture. Not thread-safe. */
#ifndef CLEAVE_EXECUTE_CAPTURE_SIGHTINGS_H
#define CLEAVE_EXECUTE_CAPTURE_SIGHTINGS_H

#include "execute/capture/key.h"

enum { CLV__SIGHTINGS_KEPT = 1024 }; /* most keys without a capture that are kept */

typedef struct clv__sighting {
  clv__hash hash;
  uint32_t next;          /* in its bucket, or in the list of free items */
  uint32_t count;         /* how often it was seen */
  uint32_t capture_count; /* number of its captures that are kept; a key with a capture is never evicted */
  bool has_failed;
  uint64_t capture_bytes; /* of the last capture; 0: none yet */
  uint64_t last_seen;
  clv__capture_key key; /* its bytes are on the heap while capture_count > 0 */
} clv__sighting;

typedef struct clv__sightings {
  const clv_allocator *allocator;
  clv__sighting *items;
  size_t capacity;
  uint32_t used, free; /* items [0, used) are in use or in the list of free ones */
  uint32_t uncaptured; /* how many of them are in use and without a capture */
  uint32_t *buckets;   /* `bucket_count` of them, a power of two or zero */
  size_t bucket_count;
  uint64_t window, sum; /* `sum`: sightings since the counts were last halved; halved again when it reaches `window` */
  uint64_t clock;
} clv__sightings;

void clv__sightings_init(clv__sightings *sightings, const clv_allocator *allocator, uint64_t window);
void clv__sightings_finish(clv__sightings *sightings);

/* Returns the index of a key, and adds the key if it is new; CLV__NO_ID if out of memory. Indices are stable; items may move. */
uint32_t clv__sightings_index(clv__sightings *sightings, const clv__hash *hash);
/* Counts `times` sightings of a key. */
void clv__sightings_count(clv__sightings *sightings, uint32_t index, uint64_t times);
/* Halves all counts as often as due. */
void clv__sightings_age(clv__sightings *sightings);
/* Records that a capture of the key is kept (add) or no longer kept (drop). The first one copies the key and the last one
 * releases it. Returns false, and changes nothing, if out of memory, or if kept captures at this index have another key. */
bool clv__sightings_add_capture(clv__sightings *sightings, uint32_t index, const clv__capture_key *key);
void clv__sightings_drop_capture(clv__sightings *sightings, uint32_t index);

#endif
