/* Measured cost tables, and their file: JSON, one object a device, known by its fingerprint.
 *
 * What is measured are blocks: sets of nodes that were compiled and run as one, single nodes among them. What is planned with are
 * two tables worked out from them (profile_solve.c): what each node takes inside a partition, its surroundings there
 * (`within_ns`), and what each edge costs when its two ends part (`saving_ns`: a fusion lost, a layout turned back). A partition
 * is predicted as
 *
 *     launch + sum of within_ns of its nodes + half of saving_ns of every edge that it cuts
 *
 * so that parts add up to what was measured of the whole, and a node alone is priced with what it loses by being alone. The other
 * half of a cut edge belongs to the other side. */
#ifndef CLEAVE_COST_PROFILE_H
#define CLEAVE_COST_PROFILE_H

#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "device/device.h"

enum { CLV__PROFILE_VERSION = 1 };
#define CLV__PROFILE_MAX_NS ((uint64_t)1 << 50) /* no time in a profile is above: about 13 days */

/* One measured thing: the median of warm runs, and how far they lay apart. */
typedef struct clv__measure {
  uint64_t time_ns;   /* median */
  uint64_t spread_ns; /* half of what lies between the quartiles */
  uint32_t runs;      /* 0: not measured */
} clv__measure;

/* A signature: operator, dtypes, shapes, which inputs are constants, attributes (signature.h). */
typedef struct clv__profile_operator {
  const char *signature;
  double flops, bytes;
  clv__measure alone;     /* in a partition of its own, launch included */
  bool infeasible;        /* the device has no room for it */
  bool has_within;        /* `within_ns` holds */
  uint64_t within_ns;     /* inside a partition */
  uint64_t scratch_bytes; /* what an executable of it alone asks for */
} clv__profile_operator;

/* An edge: what consumer reads from producer, by signatures. */
typedef struct clv__profile_saving {
  uint32_t producer, consumer; /* of the operators */
  double bytes;                /* of the value between */
  uint64_t saving_ns;
} clv__profile_saving;

/* So many of one operator or edge. */
typedef struct clv__profile_term {
  uint32_t index, count;
} clv__profile_term;

typedef struct clv__profile_block {
  const char *key; /* hash of structure and surroundings */
  clv__measure total;
  uint32_t node_count; /* distinct operators */
  const clv__profile_term *nodes;
  uint32_t edge_count; /* distinct edges with one end inside */
  const clv__profile_term *edges;
} clv__profile_block;

typedef struct clv__profile_copy {
  uint64_t size_bytes;
  clv__measure time; /* of one among several enqueued together */
} clv__profile_copy;

/* Host memory a copy begins or ends in: what malloc gives, and the device's own where the host can address it. */
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
  clv__measure launch;                       /* of the smallest partition there is */
  double flops_per_second, bytes_per_second; /* f32; 0: not measured */
  uint32_t copy_counts[CLV__COPY_KINDS];     /* ascending by size */
  clv__profile_copy *copies[CLV__COPY_KINDS];
  uint32_t operator_count, saving_count, block_count;
  clv__profile_operator *operators;
  clv__profile_saving *savings;
  clv__profile_block *blocks;
  size_t operator_capacity, saving_capacity, block_capacity; /* of the arrays, on the heap */
  clv__map operator_index, saving_index, block_index;        /* by signature, by "producer>consumer", by key */
} clv__profile_device;

typedef struct clv__profile {
  clv__arena arena;
  const char *host_processor, *host_system, *cleave_version; /* where it was measured: information */
  uint32_t device_count;
  clv__profile_device **devices;
  size_t device_capacity;
  char id[2 * CLV__HASH_BYTES + 1];
} clv__profile;

/* Empty. */
clv_status clv__profile_create(const clv_allocator *allocator, clv__profile **profile, clv_error *error);
/* Reads a profile file. Bad ones are refused by name: file, place, value. */
clv_status clv__profile_read(const char *path, const clv_allocator *allocator, clv__profile **profile, clv_error *error);
/* The same from memory; `name` stands for the path in errors. For the fuzz target. */
clv_status clv__profile_parse(const char *text, size_t size_bytes, const char *name, const clv_allocator *allocator,
                              clv__profile **profile, clv_error *error);
/* Writes whole, or not at all; entries sorted, so that the same tables give the same bytes. */
clv_status clv__profile_write(const clv__profile *profile, const char *path, clv_error *error);
/* What is written. */
clv_status clv__profile_print(const clv__profile *profile, clv__text *text, clv_error *error);
void clv__profile_destroy(clv__profile *profile); /* accepts NULL */
/* Content hash as text, for plan files; "" for one that was not read from a file. */
const char *clv__profile_id(const clv__profile *profile);

/* ---- The tables (profile.c): found, or made. Texts are copied. ---- */

/* CLV__NO_ID where there is none. */
uint32_t clv__profile_find_device(const clv__profile *profile, const char *fingerprint);
clv_status clv__profile_find_or_add_device(clv__profile *profile, const char *fingerprint, clv__profile_device **device,
                                           clv_error *error);
uint32_t clv__profile_find_operator(const clv__profile_device *device, const char *signature);
clv_status clv__profile_find_or_add_operator(clv__profile *profile, clv__profile_device *device, const char *signature,
                                             uint32_t *index, clv_error *error);
uint32_t clv__profile_find_saving(const clv__profile_device *device, uint32_t producer, uint32_t consumer);
clv_status clv__profile_find_or_add_saving(clv__profile *profile, clv__profile_device *device, uint32_t producer,
                                           uint32_t consumer, double bytes, uint32_t *index, clv_error *error);
/* Replaces the one of the same key. The terms are copied. */
clv_status clv__profile_put_block(clv__profile *profile, clv__profile_device *device, const clv__profile_block *block,
                                  clv_error *error);
clv_status clv__profile_put_copies(clv__profile *profile, clv__profile_device *device, clv__copy_kind kind,
                                   const clv__profile_copy *copies, uint32_t count, clv_error *error);

/* Works `within_ns` and `saving_ns` out of all blocks (profile_solve.c). */
clv_status clv__profile_solve(clv__profile_device *device, const clv_allocator *allocator, clv_error *error);
/* What these say that a block takes. */
double clv__profile_block_ns(const clv__profile_device *device, const clv__profile_block *block);

#endif
