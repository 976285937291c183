/* What is remembered of keys of captured graphs, whether there are graphs of them or not: how often each was seen of late, what
 * its graph took, whether its capture failed. Bounded: keys without a graph are forgotten, those unseen for longest first and
 * failed ones last.
 *
 * Counts age as TinyLFU's do (Einziger, Friedman and Manes, 2017): after every `window` sightings all are halved, so that what
 * was popular once gives way. Halves are rounded up; keys with a graph get one more, so that rounding never turns equals in
 * favour of those without. Not for several threads at once. */
#ifndef CLEAVE_EXECUTE_CAPTURE_SIGHTINGS_H
#define CLEAVE_EXECUTE_CAPTURE_SIGHTINGS_H

#include "execute/capture/key.h"

enum { CLV__SIGHTINGS_KEPT = 1024 }; /* keys without a graph */

typedef struct clv__sighting {
  clv__hash hash;
  uint32_t next;        /* in its bucket, or among those that are free */
  uint32_t count;       /* how often it was seen */
  uint32_t graph_count; /* of graphs that are kept; such a key is not forgotten */
  bool has_failed;
  uint64_t graph_bytes; /* of the last graph; 0: none yet */
  uint64_t last_seen;
  clv__graph_key key; /* its bytes, on the heap, while graph_count > 0 */
} clv__sighting;

typedef struct clv__sightings {
  const clv_allocator *allocator;
  clv__sighting *items;
  size_t capacity;
  uint32_t used, free; /* items [0, used) are in use or in the list of free ones */
  uint32_t graphless;  /* in use, without a graph */
  uint32_t *buckets;   /* as many as `bucket_count`, a power of two, or none */
  size_t bucket_count;
  uint64_t window, sum; /* sightings since counts were halved */
  uint64_t clock;
} clv__sightings;

void clv__sightings_init(clv__sightings *sightings, const clv_allocator *allocator, uint64_t window);
void clv__sightings_finish(clv__sightings *sightings);

/* The index of a key, made when it is new; CLV__NO_ID when memory is out. Indices stay; items may move. */
uint32_t clv__sightings_index(clv__sightings *sightings, const clv__hash *hash);
/* Counts `times` sightings of a key. */
void clv__sightings_count(clv__sightings *sightings, uint32_t index, uint64_t times);
/* Halves all counts, as often as it is due. */
void clv__sightings_age(clv__sightings *sightings);
/* A graph of the key is kept, or no longer: the key is copied with the first and let go with the last. False, and nothing
 * changed, when memory is out or it is not the key whose graphs are kept. */
bool clv__sightings_add_graph(clv__sightings *sightings, uint32_t index, const clv__graph_key *key);
void clv__sightings_drop_graph(clv__sightings *sightings, uint32_t index);

#endif
