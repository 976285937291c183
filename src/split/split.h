/* From a placement to partitions, transfers, a price and bounds. All of it on arrays (problem.h); results live in the arena
 * given.
 */
#ifndef CLEAVE_SPLIT_SPLIT_H
#define CLEAVE_SPLIT_SPLIT_H

#include "split/problem.h"

/* ---- Partitions ---- */

/* Partitions in execution order. The graph of partitions is acyclic and every partition is convex: each edge between partitions
 * goes from an earlier to a later one. */
typedef struct clv__cut {
  uint32_t count;
  uint32_t *devices;         /* by partition */
  uint32_t *offsets, *nodes; /* CSR by partition: nodes, ascending */
  uint32_t *partition_of;    /* by node */
} clv__cut;

typedef enum clv__split_mode {
  CLV__SPLIT_LINEAR, /* runs of the list */
  CLV__SPLIT_CONVEX, /* least predicted time, then fewest partitions */
  CLV__SPLIT_FEWEST  /* fewest partitions: exact for two devices, a heuristic for more */
} clv__split_mode;
const char *clv__split_name(clv__split_mode mode); /* as options and files have it */

/* Cuts the placement `devices` (by node). `groups` (by node, may be NULL) keeps apart what a delegate claimed apart: nodes of
 * different groups share no partition; CLV__NONE is a group too. Limits of devices are honoured: a run that would exceed them is
 * cut; a node whose own inputs exceed its device's limit is an error (CLV_NOT_SUPPORTED, by index; see problem.node_ids). */
clv_status clv__split(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, clv__split_mode mode,
                      clv__arena *arena, clv__cut *cut, clv_error *error);
clv_status clv__split_linear(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, clv__arena *arena,
                             clv__cut *cut, clv_error *error); /* linear.c */
clv_status clv__split_convex(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, bool fewest,
                             clv__arena *arena, clv__cut *cut, clv_error *error); /* convex.c */
/* The fewest partitions that any acyclic grouping of this placement has (limits and groups apart): exact for two devices, a lower
 * bound for more. */
clv_status clv__split_fewest_bound(const clv__problem *problem, const uint32_t *devices, clv__arena *arena, uint32_t *count,
                                   clv_error *error);

/* ---- Transfers ---- */

/* A copy of a value (or a streamed weight) between host memory and a device's. */
typedef struct clv__move {
  uint32_t value;    /* of the problem: a value, or a weight where `is_weight` */
  bool is_weight;    /* streamed: copied again before every partition that reads it */
  uint32_t from, to; /* memory spaces; one of them is the host's */
  uint32_t before;   /* the partition it must be done before; cut.count: at the end, for outputs */
} clv__move;

typedef struct clv__moves {
  uint32_t count;
  clv__move *items; /* in execution order: ascending by `before` */
} clv__moves;

/* A value is copied to a memory space at most once, just before the first partition there that reads it, and stays resident in
 * both; between two devices' memories it passes through the host's; nothing is copied where spaces are shared. `streamed` (by
 * weight, may be NULL) has bit d where the weight is streamed on device d. */
clv_status clv__split_moves(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, clv__arena *arena,
                            clv__moves *moves, clv_error *error);

/* ---- Prices ---- */

typedef enum clv__objective {
  CLV__LATENCY,   /* steps one after the other */
  CLV__OVERLAP,   /* devices and copies at the same time, one request */
  CLV__THROUGHPUT /* many requests at once: what the busiest device takes for one */
} clv__objective;
const char *clv__objective_name(clv__objective objective); /* as options and files have it */

/* Of a partition: launch + nodes - savings of the reads inside it. A partition of views alone takes nothing.
 * serial: the sum of partitions and moves. overlapped: steps in order, each on its device's lane (moves on a copy lane of the
 * memory space that is not the host's), begun when the lane is free and what it waits for is done. throughput: the fullest lane.
 */
typedef struct clv__price {
  uint64_t serial_ns, overlapped_ns, throughput_ns;
  uint64_t *partition_ns, *move_ns;             /* in the arena */
  uint64_t *partition_start_ns, *move_start_ns; /* of the overlapped schedule */
} clv__price;

clv_status clv__price_cut(const clv__problem *problem, const clv__cut *cut, const clv__moves *moves, clv__arena *arena,
                          clv__price *price, clv_error *error);
static inline uint64_t clv__price_of(const clv__price *price, clv__objective objective) {
  return objective == CLV__LATENCY ? price->serial_ns : objective == CLV__OVERLAP ? price->overlapped_ns : price->throughput_ns;
}
/* Node + transfer + fusion cost of a placement, launches and partitions apart: what the minimum cut minimises. */
clv_status clv__price_placement(const clv__problem *problem, const uint32_t *devices, uint64_t *time_ns, clv_error *error);
/* Who reads what where, in one placement: made for those that ask for the price of many moves. */
typedef struct clv__reader_counts {
  const uint32_t *by_space; /* [value * space_count + space]: how many nodes read it there */
  const uint32_t *reads;    /* by entry of problem->readers: its index in problem->reads */
} clv__reader_counts;
clv_status clv__reader_counts_make(const clv__problem *problem, const uint32_t *devices, clv__arena *arena,
                                   clv__reader_counts *counts, clv_error *error);

/* By how much that changes where `node` alone moves to `device` (which must support it). `counts` are those of `devices`, or
 * NULL. Time grows with the degree of the node; without counts also with that of the values it touches. */
int64_t clv__price_move(const clv__problem *problem, const uint32_t *devices, const clv__reader_counts *counts, uint32_t node,
                        uint32_t device);

/* ---- Bounds ---- */

/* No plan without recomputation is below: of the serial time, the overlapped time and the throughput. */
typedef struct clv__bounds {
  uint64_t serial_ns, overlapped_ns, throughput_ns;
} clv__bounds;

clv_status clv__bound(const clv__problem *problem, const clv_allocator *allocator, clv__bounds *bounds, clv_error *error);
static inline uint64_t clv__bound_of(const clv__bounds *bounds, clv__objective objective) {
  return objective == CLV__LATENCY   ? bounds->serial_ns
         : objective == CLV__OVERLAP ? bounds->overlapped_ns
                                     : bounds->throughput_ns;
}

#endif
