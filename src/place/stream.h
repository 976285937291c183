/* Streaming: weights that do not fit a device stay in host memory, and are copied to the device before each partition that reads
 * them, into a buffer that the next partition reuses. */
#ifndef CLEAVE_PLACE_STREAM_H
#define CLEAVE_PLACE_STREAM_H

#include "place/place.h"

/* The weights that can be streamed to a device, in the order in which they stay resident: first those whose copies in every run
 * take the most time per byte. The order does not depend on the device's memory, so more memory keeps a superset resident. */
typedef struct clv__stream {
  const clv__problem *problem;
  const uint32_t *devices; /* by node */
  uint32_t device, count;
  uint32_t *weights;
  uint64_t *ends;        /* by position: the bytes of all weights up to and including this one */
  uint32_t *positions;   /* by weight: its position, or CLV__NONE */
  uint32_t *seen;        /* by weight: working memory */
  uint32_t *given;       /* by node: working memory */
  uint64_t buffer_bytes; /* the most bytes of these weights that one node reads: the smallest buffer */
  uint64_t value_bytes;  /* the most bytes of values that one node computes */
} clv__stream;

/* Lists the weights that `device` reads in the placement `devices` and that can be streamed to it, except those that `streamed`
 * (by weight, may be NULL) already streams to it. The arrays live in the arena. */
clv_status clv__stream_list(const clv__problem *problem, const uint32_t *devices, const uint16_t *streamed, uint32_t device,
                            clv__arena *arena, clv__stream *stream, clv_error *error);
/* Returns the number of weights that stay resident in step `step` of `steps`: none in step 0, all in step `steps`. Each step
 * keeps about equally many more bytes than the step before, or one weight more if there are at most `steps` weights. */
uint32_t clv__stream_kept(const clv__stream *stream, uint32_t step, uint32_t steps);
/* A way to stream, or, if all weights stay resident, only to cut. */
typedef struct clv__stream_way {
  uint32_t kept;         /* the number of weights that stay resident */
  uint64_t buffer_bytes; /* a group of nodes ends where it would exceed these bytes */
  bool is_fine; /* `buffer_bytes` also limits the values that the nodes of a group compute, so partitions need less scratch */
} clv__stream_way;

/* Returns the buffer size to try at `index`: 0 at index 0, then the smallest that holds what any one node adds, then twice the
 * size before. */
static inline uint64_t clv__stream_buffer(const clv__stream *stream, uint32_t index, bool is_fine) {
  uint64_t least = stream->buffer_bytes + (is_fine ? stream->value_bytes : 0);
  return index == 0 ? 0 : least << (index - 1);
}

/* Streams all weights but the first way->kept ones: sets their bits in `streamed`, and divides the `groups` of the device's
 * nodes. New groups have numbers above node_count. */
void clv__stream_apply(const clv__stream *stream, const clv__stream_way *way, uint16_t *streamed, uint32_t *groups);

#endif
