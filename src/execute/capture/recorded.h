/* The captures of one set of shapes on one device, with the locations of their bindings at capture time. One of these is
 * the content of an entry in the cache of captures (cache.h).
 *
 * A recording covers partitions that are issued directly one after the other (clv__partition_state.first and next). Its first
 * partition identifies it. */
#ifndef CLEAVE_EXECUTE_CAPTURE_RECORDED_H
#define CLEAVE_EXECUTE_CAPTURE_RECORDED_H

#include "execute/session_own.h"

typedef struct clv__recorded clv__recorded;

clv_status clv__recorded_create(const clv__request *request, uint32_t device, clv__recorded **recorded, clv_error *error);
/* Destroys all recordings. None of them may be running. Accepts NULL. */
void clv__recorded_destroy(void *recorded);
/* Releases one recording, which must not run. */
void clv__recorded_drop(clv__recorded *recorded, uint32_t first);
uint64_t clv__recorded_bytes(const clv__recorded *recorded);

/* Captures the executions of all partitions of the recording, which must be bound. On failure nothing remains. Adds the time
 * spent in execute() to `execute_ns`. */
clv_status clv__recorded_capture(clv__recorded *recorded, clv__request *request, uint32_t first, clv_stream *stream,
                                 uint64_t *execute_ns, clv_error *error);

typedef enum clv__follow {
  CLV__FOLLOW_AT_PLACE,  /* nothing has moved */
  CLV__FOLLOW_PATCHED,   /* the bindings now have this run's locations */
  CLV__FOLLOW_RECAPTURE, /* the device cannot patch: capture the recording again; its partitions are bound */
  CLV__FOLLOW_NEITHER    /* the device cannot patch, and it is too early to capture again: the recording stays as it is */
} clv__follow;
/* Compares the recording's bindings with their current locations, and patches those that moved if the device can. Sets `how`,
 * and adds the number of patched partitions to `patches`. The caller must have bound the first partition; this binds the others
 * if something moved. */
clv_status clv__recorded_follow(clv__recorded *recorded, clv__request *request, uint32_t first, clv__follow *how,
                                uint64_t *patches, clv_error *error);
clv_status clv__recorded_launch(clv__recorded *recorded, uint32_t first, clv_stream *stream, clv_error *error);

#endif
