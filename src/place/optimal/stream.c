/* Streams weights that do not fit: they stay in host memory, and are copied to the device before each partition that reads them,
 * into a buffer that the next partition reuses. A partition ends when its streamed weights fill the buffer. */
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"

typedef struct ranked {
  uint64_t bytes;
  uint32_t readers, weight;
} ranked;

typedef struct streamer {
  const clv__problem *problem;
  const uint32_t *devices;
  clv__placing *placing;
  uint32_t *slots; /* by weight: its index in `order`, plus 1; 0 if the weight is not on the device */
  ranked *order;   /* weights on the device, in the order in which to keep them resident */
  uint32_t *seen;  /* by weight: the last group (+ 1) that reads it */
  uint32_t order_count, group;
} streamer;

/* Compares weights: those with most readers come first, because streaming a weight costs one copy for every partition that reads
 * it. */
static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->readers != y->readers) return x->readers > y->readers ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static void list_weights(streamer *s, uint32_t device) {
  const clv__problem *problem = s->problem;
  memset(s->slots, 0, problem->weight_count * sizeof *s->slots);
  s->order_count = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (s->devices[n] != device) continue;
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      uint32_t weight = problem->weights[k], *slot = &s->slots[weight];
      if (*slot == 0) {
        s->order[s->order_count] = (ranked){problem->weight_bytes[weight], 0, weight};
        *slot = ++s->order_count;
      }
      ++s->order[*slot - 1].readers;
    }
  }
  if (s->order_count > 1) qsort(s->order, s->order_count, sizeof *s->order, compare_ranked);
}

/* Streams the weights of `device` that do not fit into `room` bytes together with a buffer of `buffer` bytes. A group ends when
 * its streamed weights fill the buffer. */
static void stream_device(streamer *s, uint32_t device, uint64_t room, uint64_t buffer) {
  const clv__problem *problem = s->problem;
  uint64_t resident = 0, filled = 0;
  list_weights(s, device);
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (!clv__can_stream(problem, s->order[i].weight, device)) resident += s->order[i].bytes;
  }
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const ranked *at = &s->order[i];
    if (!clv__can_stream(problem, at->weight, device)) continue;
    if (resident + at->bytes + buffer <= room)
      resident += at->bytes;
    else
      s->placing->streamed[at->weight] |= (uint16_t)(1u << device);
  }
  ++s->group;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (s->devices[n] != device) continue;
    uint64_t bytes = 0;
    for (int pass = 0; pass < 2; ++pass) {
      bytes = 0;
      for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
        uint32_t weight = problem->weights[k];
        if ((s->placing->streamed[weight] >> device & 1u) == 0 || s->seen[weight] == s->group + 1) continue;
        bytes += problem->weight_bytes[weight];
      }
      if (filled == 0 || filled + bytes <= buffer) break;
      ++s->group;
      filled = 0;
    }
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      s->seen[problem->weights[k]] = s->group + 1;
    }
    filled += bytes;
    s->placing->groups[n] = s->group;
  }
}

static clv_status stream_once(clv__optimal *o, streamer *s, uint32_t share, uint32_t part, clv__score *score) {
  const clv__problem *problem = o->problem;
  memset(s->placing->streamed, 0, problem->weight_count * sizeof *s->placing->streamed);
  memset(s->placing->groups, 0xff, problem->node_count * sizeof *s->placing->groups); /* CLV__NONE */
  memset(s->seen, 0, problem->weight_count * sizeof *s->seen);
  s->group = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t limit = problem->limits[d].memory_bytes;
    if (limit > 0 && problem->spaces[d] != 0) stream_device(s, d, limit / 16 * share, limit / 16 * share / part);
  }
  o->evaluator.streamed = s->placing->streamed;
  o->evaluator.groups = s->placing->groups;
  clv_status status = clv__evaluate(&o->evaluator, s->devices, score, o->error);
  o->evaluator.streamed = NULL;
  o->evaluator.groups = NULL;
  return status;
}

clv_status clv__optimal_stream(clv__optimal *o, const uint32_t *devices, clv__arena *arena, clv__placing *placing,
                               clv__score *score) {
  static const uint32_t shares[] = {15, 12, 8, 4, 0}, parts[] = {2, 4, 8}; /* share 0: all weights are streamed, node by node */
  const clv__problem *problem = o->problem;
  clv__placing trial = {0};
  streamer s = {.problem = problem,
                .devices = devices,
                .placing = &trial,
                .slots = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *s.slots),
                .order = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *s.order),
                .seen = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *s.seen)};
  *score = CLV__SCORE_WORST;
  if (s.slots == NULL || s.order == NULL || s.seen == NULL) return clv__error_memory(o->error, problem->weight_count);
  for (uint32_t i = 0; i < 13; ++i) {
    clv__score fresh;
    if (trial.streamed == NULL) {
      trial.streamed = clv__arena_allocate(arena, problem->weight_count * sizeof *trial.streamed);
      trial.groups = clv__arena_allocate(arena, problem->node_count * sizeof *trial.groups);
      if (trial.streamed == NULL || trial.groups == NULL) return clv__error_memory(o->error, problem->node_count);
    }
    CLV__TRY(stream_once(o, &s, shares[i / 3], parts[i % 3], &fresh));
    if (!clv__score_less(&fresh, score)) continue;
    clv__placing kept = *placing;
    *score = fresh;
    placing->streamed = trial.streamed;
    placing->groups = trial.groups;
    trial.streamed = kept.streamed; /* swap the arrays: the next trial overwrites those of the previous best */
    trial.groups = kept.groups;
  }
  return CLV_OK;
}
