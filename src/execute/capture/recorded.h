/* The graphs of one set of shapes on one device, as they were captured, and where their bindings were then. What a cache of
 * graphs keeps (cache.h) is one of these.
 *
 * A graph is of partitions that are issued one right after the other (clv__partition_state.first and next); it is known by the
 * first of them. */
#ifndef CLEAVE_EXECUTE_CAPTURE_RECORDED_H
#define CLEAVE_EXECUTE_CAPTURE_RECORDED_H

#include "execute/session_own.h"

typedef struct clv__recorded clv__recorded;

clv_status clv__recorded_create(const clv__request *request, uint32_t device, clv__recorded **recorded, clv_error *error);
/* Nothing of it runs. Accepts NULL. */
void clv__recorded_destroy(void *recorded);
/* Lets go of one graph; that does not run. */
void clv__recorded_drop(clv__recorded *recorded, uint32_t first);
uint64_t clv__recorded_bytes(const clv__recorded *recorded);

/* Captures the executions of all its partitions, which are bound; nothing of it is left where that fails. Adds the time that
 * execute() took to `execute_ns`. */
clv_status clv__recorded_capture(clv__recorded *recorded, clv__request *request, uint32_t first, clv_stream *stream,
                                 uint64_t *execute_ns, clv_error *error);

typedef enum clv__follow {
  CLV__FOLLOW_AT_PLACE,  /* nothing has moved */
  CLV__FOLLOW_PATCHED,   /* bindings are now where they are in this run */
  CLV__FOLLOW_RECAPTURE, /* the device cannot do that: to be captured again; its partitions are bound */
  CLV__FOLLOW_NEITHER    /* nor is that worth it: it was captured only a few runs ago. The graph stays as it is */
} clv__follow;
/* Moves the graph's bindings to where they are now; counts them in `patches`. The first partition is bound. */
clv_status clv__recorded_follow(clv__recorded *recorded, clv__request *request, uint32_t first, clv__follow *how,
                                uint64_t *patches, clv_error *error);
clv_status clv__recorded_launch(clv__recorded *recorded, uint32_t first, clv_stream *stream, clv_error *error);

#endif
