/* The captures of one prepared set on one device. Shared by set.c (what can be captured) and capture.c (the actions during
 * a run). */
#ifndef CLEAVE_EXECUTE_CAPTURE_OWN_H
#define CLEAVE_EXECUTE_CAPTURE_OWN_H

#include "execute/capture/cache.h"
#include "execute/capture/recorded.h"

struct clv__capture {
  clv__capture_cache *cache;
  clv__capture_key key;
  clv__arena key_arena;
  bool follows_shapes;       /* a partition's sizes vary within the bucket: new shapes release the captures and change the key */
  bool is_key_stale;         /* the set's shapes changed since the key was made */
  bool is_unconfirmed;       /* the shapes are new in this run: not worth capturing before they recur */
  clv__capture_entry *entry; /* NULL: none */
  clv__recorded *recorded;   /* in this run: the content of the entry, or the recording being made */
  clv__issue issue;          /* how the rest of this run is issued */
  const char *why;
  bool is_over;      /* the captures that this run uses or makes are released when it ends */
  bool is_used;      /* in this run: at least one capture was launched */
  bool is_broken;    /* in this run: a launch failed, and it is unknown how far it got */
  bool is_suspected; /* the run failed with captures, and is being repeated without them */
  uint64_t eager_ns; /* host time to issue all partitions one by one, without waiting; 0: not known */
  uint64_t run_ns;   /* host time to issue partitions so far in this run */
};

bool clv__capture_is_possible(const clv__device *device);
/* The reason why these settings disable capturing on every device; NULL: they do not. */
const char *clv__capture_is_off(const clv__settings *settings);
/* Makes the key for the set's current state on the device. */
clv_status clv__capture_make_key(const clv__prepared *prepared, uint32_t device, clv_error *error);
/* Determines which of the device's partitions are captured together: sets `first` and `next` of their states. */
void clv__capture_join(clv__prepared *prepared, uint32_t device);
/* The device's cache, shared by all sessions; NULL if there is none. */
clv__capture_cache *clv__capture_cache_of(const clv_session *session, uint32_t device);

#endif
