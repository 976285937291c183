/* Turns a placement into partitions and transfers, and computes its price and its bounds. Everything works on arrays (problem.h).
 * Results live in the arena that the caller passes. */
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
/* Returns whether the partition has only hosted views. If one of its nodes is hosted, all are. */
static inline bool clv__cut_is_hosted(const clv__problem *problem, const clv__cut *cut, uint32_t partition) {
  return clv__is_hosted(problem, cut->nodes[cut->offsets[partition]], cut->devices[partition]);
}

typedef enum clv__split_mode {
  CLV__SPLIT_LINEAR, /* consecutive nodes of the list on one device */
  CLV__SPLIT_CONVEX, /* least predicted time, then fewest partitions */
  CLV__SPLIT_FEWEST  /* fewest partitions: exact for two devices without hosted views, otherwise a heuristic */
} clv__split_mode;
const char *clv__split_name(clv__split_mode mode); /* as spelled in options and files */

/* Cuts the placement `devices` (by node). `groups` (by node, may be NULL) are the groups that delegates claimed: nodes of
 * different groups never share a partition. Nodes whose group is CLV__NONE form one group, too. Hosted views never share a
 * partition with other nodes. The cut honours the limits of devices: it splits a run that would exceed them. A node whose own
 * inputs exceed its device's limit is an error (CLV_NOT_SUPPORTED). */
clv_status clv__split(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, clv__split_mode mode,
                      clv__arena *arena, clv__cut *cut, clv_error *error);
clv_status clv__split_linear(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, clv__arena *arena,
                             clv__cut *cut, clv_error *error); /* linear.c */
clv_status clv__split_convex(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, bool fewest,
                             clv__arena *arena, clv__cut *cut, clv_error *error); /* convex.c */
/* The error of a node that reads `inputs` values, more than a partition of its device may. */
clv_status clv__split_too_many_inputs(const clv__problem *problem, uint32_t node, uint32_t device, uint32_t inputs,
                                      clv_error *error);
/* Computes the fewest partitions in any acyclic grouping of this placement, ignoring limits, groups and hosted views. The count
 * is exact for two devices and a lower bound for more. */
clv_status clv__split_fewest_bound(const clv__problem *problem, const uint32_t *devices, clv__arena *arena, uint32_t *count,
                                   clv_error *error);

/* ---- Transfers ---- */

/* A copy of a value (or a streamed weight) between host memory and a device's. */
typedef struct clv__copy {
  uint32_t value;    /* index into the problem's values, or into its weights if `is_weight` */
  bool is_weight;    /* a streamed weight: copied again before every partition that reads it */
  uint32_t from, to; /* memory spaces; one of them is the host's */
  uint32_t before;   /* the partition that needs the copy; cut.count: at the end, for outputs */
} clv__copy;

typedef struct clv__copies {
  uint32_t count;
  clv__copy *items; /* in execution order: ascending by `before` */
} clv__copies;

/* A value is copied to a memory space at most once, just before the first partition there that reads it. It then stays resident
 * in both spaces. A copy between the memories of two devices passes through host memory. Devices that share a memory space need
 * no copy. `streamed` (by weight, may be NULL) has bit d set if the weight is streamed on device d. */
clv_status clv__split_copies(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, clv__arena *arena,
                             clv__copies *copies, clv_error *error);

/* ---- Memory ---- */

enum { CLV__MOST_DEVICES = 16 };

/* The memory that a cut needs on devices with a limit: the resident weights of all partitions, each once; one arena per memory
 * space for boundary values and streamed weights, which share bytes if they are not alive in the same step; and one block of
 * scratch per device, as large as the partition that needs most of it. A session allocates the same memory
 * (execute/memory.c). */
typedef struct clv__memory {
  uint64_t weight_bytes[CLV__MOST_DEVICES];    /* by device: resident weights */
  uint64_t inner_bytes[CLV__MOST_DEVICES];     /* by device: the most that the values inside one partition and the scratch of its
                                                  nodes take; the device needs at least this much scratch */
  uint64_t value_bytes[CLV__MOST_DEVICES + 1]; /* by space: the arena if steps run one after the other */
  uint64_t apart_bytes[CLV__MOST_DEVICES + 1]; /* by space: the arena if no two values share bytes */
} clv__memory;

/* Counts the memory of a cut with its copies. If `is_arranged`, computes the exact size of the arenas. Otherwise uses the most
 * bytes that are alive in one step, which is faster to compute and never more than the exact size. */
clv_status clv__memory_count(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies,
                             const uint16_t *streamed, bool is_arranged, const clv_allocator *allocator, clv__memory *memory,
                             clv_error *error);
/* Returns the bytes needed in the memory of `device`, which it may share with others. `scratch_bytes` (by device): NULL means
 * memory->inner_bytes. */
uint64_t clv__memory_needed(const clv__problem *problem, const clv__memory *memory, const uint64_t *scratch_bytes,
                            uint32_t device);

/* ---- Prices ---- */

typedef enum clv__objective {
  CLV__LATENCY,   /* steps run one after the other */
  CLV__OVERLAP,   /* devices and copies run at the same time, for one request */
  CLV__THROUGHPUT /* many requests at once: the time that the busiest device spends on one request */
} clv__objective;
const char *clv__objective_name(clv__objective objective); /* as spelled in options and files */

/* The time of a partition is its launch, plus its nodes, minus the savings of the reads inside it. A partition that has only
 * views takes no time.
 *   serial      the sum of all partitions and copies
 *   overlapped  the end of a schedule that keeps the order of the steps. Each step runs on the lane of its device; a copy runs on
 *               the copy lane of its memory space that is not the host's. A step starts when its lane is free and its inputs are
 *               ready.
 *   throughput  the load of the fullest lane */
typedef struct clv__price {
  uint64_t serial_ns, overlapped_ns, throughput_ns;
  uint64_t *partition_ns, *copy_ns;             /* in the arena */
  uint64_t *partition_start_ns, *copy_start_ns; /* of the overlapped schedule */
} clv__price;

clv_status clv__price_cut(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies, clv__arena *arena,
                          clv__price *price, clv_error *error);
static inline uint64_t clv__price_of(const clv__price *price, clv__objective objective) {
  return objective == CLV__LATENCY ? price->serial_ns : objective == CLV__OVERLAP ? price->overlapped_ns : price->throughput_ns;
}
/* Computes the node + transfer + fusion cost of a placement, without launches and partitions. The minimum cut minimises this
 * cost. */
clv_status clv__price_placement(const clv__problem *problem, const uint32_t *devices, uint64_t *time_ns, clv_error *error);
/* Counts the readers of each value per memory space in one placement, for callers that price many changes of a single node. */
typedef struct clv__reader_counts {
  const uint32_t *by_space; /* [value * space_count + space]: how many nodes read the value there */
  const uint32_t *reads;    /* by entry of problem->readers: the index of that read in problem->reads */
} clv__reader_counts;
clv_status clv__reader_counts_make(const clv__problem *problem, const uint32_t *devices, clv__arena *arena,
                                   clv__reader_counts *counts, clv_error *error);

/* Returns the change of clv__price_placement() if only `node` moves to `device`, which must support it. `counts` must be the
 * counts for `devices`, or NULL. The time grows with the degree of the node, and without `counts` also with the degrees of the
 * values that it touches. */
int64_t clv__price_move(const clv__problem *problem, const uint32_t *devices, const clv__reader_counts *counts, uint32_t node,
                        uint32_t device);

/* ---- Bounds ---- */

/* Lower bounds on the serial time, the overlapped time and the throughput of every plan that runs each node once. */
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
