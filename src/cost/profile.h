/* Measured cost tables and their file: JSON, one object per device, identified by its fingerprint.
 *
 * The measurements are times of blocks: sets of nodes that were compiled and run as one unit. Single nodes are blocks too. The
 * planner uses two tables derived from the blocks (profile_solve.c). `within_ns` is the time of a node inside a partition
 * together with its neighbours. `saving_ns` is the extra cost if the two nodes of an edge are in different partitions, for
 * example because they are not fused or need a layout conversion. The predicted time of a partition is
 *
 *     launch + sum of within_ns of its nodes + half of saving_ns of every edge that it cuts
 *
 * Thus the predictions for the parts of a graph add up to the measured time of the whole, and the price of a single node
 * includes the savings that it loses. The other half of a cut edge is charged to the other side. */
#ifndef CLEAVE_COST_PROFILE_H
#define CLEAVE_COST_PROFILE_H

#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "device/device.h"

enum { CLV__PROFILE_VERSION = 1 };
#define CLV__PROFILE_MAX_NS ((uint64_t)1 << 50) /* upper limit of any time in a profile: about 13 days */

/* One measurement: the median of warm runs, and their spread. */
typedef struct clv__measure {
  uint64_t time_ns;   /* median */
  uint64_t spread_ns; /* half the distance between the quartiles */
  uint32_t runs;      /* 0: not measured */
} clv__measure;

/* One operator by signature: operator, dtypes, shapes, which inputs are constants, attributes (signature.h). */
typedef struct clv__profile_operator {
  const char *signature;
  double flops, bytes;
  clv__measure alone;     /* in a partition of its own, including the launch */
  bool infeasible;        /* the device has no room for it */
  bool has_within;        /* `within_ns` is valid */
  uint64_t within_ns;     /* time inside a partition */
  uint64_t scratch_bytes; /* required by an executable of this node alone */
} clv__profile_operator;

/* An edge: a value that consumer reads from producer, identified by their signatures. */
typedef struct clv__profile_saving {
  uint32_t producer, consumer; /* indices into the operators */
  double bytes;                /* size of the value */
  uint64_t saving_ns;
} clv__profile_saving;

/* An operator or edge, by its index in the tables, and how often it occurs in the block. */
typedef struct clv__profile_term {
  uint32_t index, count;
} clv__profile_term;

typedef struct clv__profile_block {
  const char *key; /* hash of the block's nodes, of the edges between them and of the edges that the block cuts */
  clv__measure total;
  uint32_t node_count; /* number of distinct operators */
  const clv__profile_term *nodes;
  uint32_t edge_count; /* number of distinct edges with one end inside the block */
  const clv__profile_term *edges;
} clv__profile_block;

typedef struct clv__profile_copy {
  uint64_t size_bytes;
  clv__measure time; /* the time per copy if several copies are enqueued together */
} clv__profile_copy;

/* Copies into the device and out of it. The memory on the host's side comes from malloc or, if pinned, from the device, in a
 * form that the host can address. */
typedef enum clv__copy_kind {
  CLV__COPY_IN,
  CLV__COPY_OUT,
  CLV__COPY_PINNED_IN,
  CLV__COPY_PINNED_OUT,
  CLV__COPY_KINDS
} clv__copy_kind;

typedef struct clv__profile_device {
  const char *fingerprint, *name, *kind, *description;
  const char *measured;                      /* the day: "2026-11-21" */
  clv__measure launch;                       /* time of the smallest possible partition */
  double flops_per_second, bytes_per_second; /* peaks for f32; 0: not measured */
  uint32_t copy_counts[CLV__COPY_KINDS];     /* the number of `copies` of each kind, which ascend by size */
  clv__profile_copy *copies[CLV__COPY_KINDS];
  uint32_t operator_count, saving_count, block_count;
  clv__profile_operator *operators;
  clv__profile_saving *savings;
  clv__profile_block *blocks;
  uint32_t nodes_measured;                                   /* by this process; not in the file */
  size_t operator_capacity, saving_capacity, block_capacity; /* capacities of the three arrays above, which are on the heap */
  /* Index of an operator by signature, of a saving by "producer>consumer", of a block by key. */
  clv__map operator_index, saving_index, block_index;
} clv__profile_device;

typedef struct clv__profile {
  clv__arena arena;
  bool is_partial;                                           /* measuring was interrupted */
  const char *host_processor, *host_system, *cleave_version; /* the machine it was measured on; informational */
  uint32_t device_count;
  clv__profile_device **devices;
  size_t device_capacity;
  char id[2 * CLV__HASH_BYTES + 1];
} clv__profile;

/* Creates an empty profile. */
clv_status clv__profile_create(const clv_allocator *allocator, clv__profile **profile, clv_error *error);
/* Reads a profile file. Rejects an invalid file; the error names the file, the place and the value. */
clv_status clv__profile_read(const char *path, const clv_allocator *allocator, clv__profile **profile, clv_error *error);
/* Reads a profile from memory; `name` replaces the path in errors. For the fuzz target. */
clv_status clv__profile_parse(const char *text, size_t size_bytes, const char *name, const clv_allocator *allocator,
                              clv__profile **profile, clv_error *error);
/* Writes the file completely or not at all. The entries are sorted, so equal tables give equal bytes. */
clv_status clv__profile_write(const clv__profile *profile, const char *path, clv_error *error);
/* Adds to `into` what only `from` has. Where both have a measurement, that of `into` stays. (profile_merge.c) */
clv_status clv__profile_merge(clv__profile *into, const clv__profile *from, clv_error *error);
/* Adds the measurements that the file has by now to the profile, and writes the file. If several processes do this at the same
 * time, no measurement is lost. */
clv_status clv__profile_update(clv__profile *profile, const char *path, clv_error *error);
/* Prints the text that clv__profile_write() writes. */
clv_status clv__profile_print(const clv__profile *profile, clv__text *text, clv_error *error);
void clv__profile_destroy(clv__profile *profile); /* accepts NULL */
/* Content hash as text, for plan files; "" if the profile was not read from a file. */
const char *clv__profile_id(const clv__profile *profile);

/* ---- The tables (profile.c): find an entry, or find or add one. Texts are copied. ---- */

/* If there is no such entry, the find functions return CLV__NO_ID (devices) or CLV__MAP_NONE (operators, savings). */
uint32_t clv__profile_find_device(const clv__profile *profile, const char *fingerprint);
clv_status clv__profile_find_or_add_device(clv__profile *profile, const char *fingerprint, clv__profile_device **device,
                                           clv_error *error);
uint32_t clv__profile_find_operator(const clv__profile_device *device, const char *signature);
clv_status clv__profile_find_or_add_operator(clv__profile *profile, clv__profile_device *device, const char *signature,
                                             uint32_t *index, clv_error *error);
uint32_t clv__profile_find_saving(const clv__profile_device *device, uint32_t producer, uint32_t consumer);
clv_status clv__profile_find_or_add_saving(clv__profile *profile, clv__profile_device *device, uint32_t producer,
                                           uint32_t consumer, double bytes, uint32_t *index, clv_error *error);
/* Replaces the block with the same key. The terms are copied. */
clv_status clv__profile_put_block(clv__profile *profile, clv__profile_device *device, const clv__profile_block *block,
                                  clv_error *error);
clv_status clv__profile_put_copies(clv__profile *profile, clv__profile_device *device, clv__copy_kind kind,
                                   const clv__profile_copy *copies, uint32_t count, clv_error *error);

/* Computes `within_ns` and `saving_ns` from all blocks (profile_solve.c). */
clv_status clv__profile_solve(clv__profile_device *device, const clv_allocator *allocator, clv_error *error);
/* The time that these tables predict for a block. */
double clv__profile_block_ns(const clv__profile_device *device, const clv__profile_block *block);

#endif
