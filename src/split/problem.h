/* The input of placing and splitting: plain arrays, separate from the graph, of the nodes that run, their values, the
 * verdict of each device on each node, and all costs. Strategies, the split, prices and bounds have no other input, so tests can
 * run each of them on hand-made arrays.
 *
 * Nodes are numbered from 0 in the graph's topological order; folded nodes are left out. Values are the graph inputs that
 * something reads, and the outputs of nodes. Constants are weights, not values. All times are integer nanoseconds. */
#ifndef CLEAVE_SPLIT_PROBLEM_H
#define CLEAVE_SPLIT_PROBLEM_H

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/stop.h"

#define CLV__NONE UINT32_MAX                 /* no node, value, device or partition */
#define CLV__NO_TIME UINT64_MAX              /* time of a node on a device that cannot run it */
#define CLV__MAX_TIME_NS ((uint64_t)1 << 50) /* limit of a single price: about 13 days; 2^12 of them add up without overflow */

enum {
  CLV__NODE_VIEW = 1u << 0,        /* output 0 has the bytes of reads[0]: no work, no launch, no copy of its own */
  CLV__NODE_LIGHT_WEIGHT = 1u << 1 /* its weights are too small to influence the choice of a device (RotaryEmbedding) */
};

/* The limits of a device, per partition and in total. 0: no limit. */
typedef struct clv__limits {
  uint32_t max_inputs; /* distinct values that a partition reads from outside, not counting weights */
  uint32_t max_nodes;
  uint64_t memory_bytes;
} clv__limits;

typedef struct clv__problem {
  uint32_t node_count, value_count, weight_count, device_count, space_count;

  /* Devices, in the order of priority; space 0 is host memory. */
  const uint32_t *spaces;     /* by device */
  const clv__limits *limits;  /* by device */
  const uint64_t *launch_ns;  /* by device: the overhead of one partition on top of its nodes */
  const uint32_t *alignments; /* by space: of addresses in its memory; NULL: CLV__ALIGNMENT */
  uint32_t gone;              /* bits of the devices that were removed: they support nothing and copy nothing */

  /* Nodes. */
  const uint32_t *read_offsets, *reads;   /* CSR: the distinct values that a node reads; a view's source comes first */
  const uint32_t *write_offsets, *writes; /* CSR */
  const uint16_t *supports;               /* bit d: it can be on device d; this holds for views too */
  const uint16_t *hosted;                 /* bit d: a view that device d rejects, see clv__is_hosted(); NULL: none */
  const uint16_t *prefers;                /* bit d: device d prefers to run it although its weights are elsewhere */
  const uint32_t *pins;                   /* a device, or CLV__NONE. The pinned device supports the node */
  const uint8_t *flags;
  const uint64_t
      *node_ns; /* [node * device_count + device]: alone in a partition, without its launch; CLV__NO_TIME if not supported */
  /* [node * device_count + device]: the memory that the device's kernels need while they compute the node, besides its operands.
   * NULL: unknown, counted as none. */
  const uint64_t *scratch_bytes;
  /* [read * device_count + device], where `read` is an index into `reads`: the time saved if the producer of that value and its
   * reader share a partition on that device. 0 if the value is a graph input. NULL: no savings at all. For each node, half the
   * sum of all savings it takes part in never exceeds its time on that device; clv__problem_clamp_savings() ensures this. */
  const uint64_t *saving_ns;

  /* Values. */
  const uint32_t *producers;                /* by value: a node, or CLV__NONE for a graph input, which starts in host memory */
  const uint32_t *reader_offsets, *readers; /* CSR by value: nodes, ascending, each once */
  const uint8_t *is_output;                 /* by value: it must be in host memory at the end */
  const uint64_t *value_bytes;              /* 0 if only a run can determine it */
  const uint64_t *in_ns, *out_ns;           /* [value * space_count + space]: host -> space, space -> host; 0 for host memory */
  const uint32_t *value_homes;              /* by value: the device in whose memory the user placed it, or CLV__NONE */

  /* Weights: a device holds each weight once, however many nodes read it there. Weights are uploaded before the first run. */
  const uint32_t *weight_offsets, *weights; /* CSR by node */
  const uint64_t *weight_bytes;             /* by weight */
  const uint64_t *weight_in_ns;             /* [weight * space_count + space]: host -> space, if it is streamed */
  const uint16_t *streams;         /* by weight: bit d: it can be streamed to device d; NULL: every weight can, to every device */
  const uint32_t *weight_homes;    /* by weight: the device the user put it on, or CLV__NONE: host memory */
  const uint32_t *weight_operands; /* by entry of `weights`: its input index; NULL: its position among the node's weights */

  /* Maps back to the graph; NULL for hand-made problems in tests. */
  const uint32_t *node_ids, *value_ids, *weight_ids;
  const char *const *node_names, *const *value_names, *const *weight_names;
  const char *const *device_names;

  clv__poll *poll; /* whether planning should end; NULL: it never ends early */
} clv__problem;

/* Adds times; saturates at CLV__NO_TIME instead of overflowing. */
static inline uint64_t clv__sum_ns(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? CLV__NO_TIME : sum;
}
static inline bool clv__can_run(const clv__problem *problem, uint32_t node, uint32_t device) {
  return (problem->supports[node] >> device & 1u) != 0;
}
/* Returns whether the node on the device is a hosted view. Its result has the bytes of its source under another type, which only
 * the host knows: no program of the device contains it, so its readers are in a later partition than its source. Hosted views are
 * in partitions of their own. These are not launched and take no time, no memory and no weights. */
static inline bool clv__is_hosted(const clv__problem *problem, uint32_t node, uint32_t device) {
  return problem->hosted != NULL && (problem->hosted[node] >> device & 1u) != 0;
}
/* Bits of the devices that the verdicts and the pin allow for a node. */
static inline uint32_t clv__node_devices(const clv__problem *problem, uint32_t node) {
  uint32_t pin = problem->pins[node];
  return pin == CLV__NONE ? problem->supports[node] : problem->supports[node] & 1u << pin;
}
static inline bool clv__can_stream(const clv__problem *problem, uint32_t weight, uint32_t device) {
  return problem->streams == NULL || (problem->streams[weight] >> device & 1u) != 0;
}
static inline uint64_t clv__node_ns(const clv__problem *problem, uint32_t node, uint32_t device) {
  return problem->node_ns[(size_t)node * problem->device_count + device];
}
static inline uint64_t clv__scratch_bytes(const clv__problem *problem, uint32_t node, uint32_t device) {
  return problem->scratch_bytes == NULL ? 0 : problem->scratch_bytes[(size_t)node * problem->device_count + device];
}
static inline uint64_t clv__saving_ns(const clv__problem *problem, uint32_t read, uint32_t device) {
  return problem->saving_ns == NULL ? 0 : problem->saving_ns[(size_t)read * problem->device_count + device];
}
static inline uint64_t clv__in_ns(const clv__problem *problem, uint32_t value, uint32_t space) {
  return problem->in_ns[(size_t)value * problem->space_count + space];
}
static inline uint64_t clv__out_ns(const clv__problem *problem, uint32_t value, uint32_t space) {
  return problem->out_ns[(size_t)value * problem->space_count + space];
}

static inline bool clv__is_gone(const clv__problem *problem, uint32_t device) {
  return (problem->gone >> device & 1u) != 0;
}

/* The first device that works in the space and was not removed; it performs the copies there. device_count if there is none. */
static inline uint32_t clv__space_device(const clv__problem *problem, uint32_t space) {
  uint32_t device = 0;
  while (device < problem->device_count && (problem->spaces[device] != space || clv__is_gone(problem, device))) ++device;
  return device;
}

/* A node's name for messages, or its number if there are no names. */
static inline const char *clv__problem_node_name(const clv__problem *problem, uint32_t node, char text[16]) {
  if (problem->node_names != NULL) return problem->node_names[node];
  snprintf(text, 16, "#%u", node);
  return text;
}

/* A device's name for messages, or its number if there are no names. */
static inline const char *clv__problem_device_name(const clv__problem *problem, uint32_t device, char text[16]) {
  if (problem->device_names != NULL) return problem->device_names[device];
  snprintf(text, 16, "device %u", device);
  return text;
}

/* Scales the savings at each node and device, in place, so that half their sum does not exceed the node's time there. */
void clv__problem_clamp_savings(const clv__problem *problem, uint64_t *saving_ns);

#endif
