/* The state of captured graphs of one prepared set on one device, shared by set.c (what can be captured) and capture.c
 * (what is done in a run). */
#ifndef CLEAVE_EXECUTE_CAPTURE_OWN_H
#define CLEAVE_EXECUTE_CAPTURE_OWN_H

#include "execute/capture/cache.h"
#include "execute/capture/recorded.h"

struct clv__capture {
  clv__graph_cache *cache;
  clv__graph_key key;
  clv__arena key_arena;
  bool follows_shapes;     /* a partition has other sizes with other shapes of the bucket: then graphs go and the key changes */
  bool is_key_stale;       /* the set has other shapes since it was made */
  bool is_unconfirmed;     /* they are of this run: not worth capturing before they come again */
  clv__graph_entry *entry; /* NULL: none */
  clv__recorded *recorded; /* of this run: the entry's, or in the making */
  clv__issue issue;        /* of this run, from here on */
  const char *why;
  bool is_over;      /* in this run: its graphs are not to be kept */
  bool is_used;      /* in this run: a graph was launched */
  bool is_broken;    /* in this run: a launch failed, and nobody knows how far it came */
  bool is_suspected; /* the run failed with graphs, and is repeated without them until it is over */
  uint64_t eager_ns; /* of the host, to issue all partitions one by one, without waiting; 0: not known */
  uint64_t run_ns;   /* so far in this run */
};

bool clv__capture_is_possible(const clv__device *device);
/* Why nothing is captured with these settings, on any device; NULL: it may be. */
const char *clv__capture_is_off(const clv__settings *settings);
/* Makes the key of what the set is on the device now. */
clv_status clv__capture_make_key(const clv__prepared *prepared, uint32_t device, clv_error *error);
/* Says which of the device's partitions are captured together: `first` and `next` of their states. */
void clv__capture_join(clv__prepared *prepared, uint32_t device);
/* The device's cache, of all sessions; NULL where there is none. */
clv__graph_cache *clv__capture_cache(const clv_session *session, uint32_t device);

#endif
