/* The graphs of one set of shapes on one device: each partition's, as it was captured, and where its bindings were then. What a
 * cache of graphs keeps (graph_cache.h) is one of these. */
#ifndef CLEAVE_EXECUTE_RECORDED_H
#define CLEAVE_EXECUTE_RECORDED_H

#include "execute/internal.h"

typedef struct clv__recorded clv__recorded;

clv_status clv__recorded_create(const clv__request *request, uint32_t device, clv__recorded **recorded, clv_error *error);
/* Nothing of it runs. Accepts NULL. */
void clv__recorded_destroy(void *recorded);
/* Lets go of one partition's graph; that does not run. */
void clv__recorded_drop(clv__recorded *recorded, uint32_t partition);
uint64_t clv__recorded_bytes(const clv__recorded *recorded);

/* Captures the partition's execution; nothing of it is left where that fails. `execute_ns` gets the time that execute() took. */
clv_status clv__recorded_capture(clv__recorded *recorded, clv__request *request, uint32_t partition, clv_stream *stream,
                                 clv_execute_args *args, uint64_t *execute_ns, clv_error *error);

typedef enum clv__follow {
  CLV__FOLLOW_AT_PLACE,  /* nothing has moved */
  CLV__FOLLOW_PATCHED,   /* bindings are now where they are in this run */
  CLV__FOLLOW_RECAPTURE, /* the device cannot do that: to be captured again */
  CLV__FOLLOW_NEITHER    /* nor is that worth it: it was captured only a few runs ago. The graph stays as it is */
} clv__follow;
/* Moves the graph's bindings to where they are now. */
clv_status clv__recorded_follow(clv__recorded *recorded, clv__request *request, uint32_t partition, const clv_execute_args *args,
                                clv__follow *how, clv_error *error);
clv_status clv__recorded_launch(clv__recorded *recorded, uint32_t partition, clv_stream *stream, clv_error *error);

#endif
