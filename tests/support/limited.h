/* Random models, and random virtual NPUs whose limits matter for them: memory about as large as the weights, few inputs and nodes
 * per partition, missing operators and dtypes. */
#ifndef CLEAVE_TESTS_LIMITED_H
#define CLEAVE_TESTS_LIMITED_H

#include "graph/graph.h"

enum { LIMITED_ROWS = 8, LIMITED_MOST_WIDTH = 96, LIMITED_MOST_NODES = 14, LIMITED_MOST_NPUS = 3 };

/* The limits in a device's description. The test judges plans and refusals by them. */
typedef struct limited_npu {
  uint32_t operators;             /* bits: indices in limited_operators */
  uint32_t dtypes;                /* bits: clv_dtype */
  uint64_t memory_bytes;          /* 0: no limit */
  uint32_t max_inputs, max_nodes; /* the most that a partition may have; 0: no limit */
} limited_npu;

typedef struct limited_node {
  uint32_t op;         /* index in limited_operators */
  uint32_t dtypes;     /* bits: the dtypes (clv_dtype) of its operands */
  uint64_t size_bytes; /* bytes of its operands and of the scratch of its kernel, each rounded up to a multiple of 64 */
} limited_node;

/* A model on 2 or 3 virtual NPUs, with or without the CPU as the last device. */
typedef struct limited_case {
  clv_graph *graph; /* nodes "n0", "n1", ...; values [LIMITED_ROWS, up to LIMITED_MOST_WIDTH] of f32, f16 and i64 */
  limited_node nodes[LIMITED_MOST_NODES];
  uint32_t npu_count;
  bool has_cpu;
  limited_npu npus[LIMITED_MOST_NPUS];
  char specs[LIMITED_MOST_NPUS][640]; /* the descriptions as JSON */
  char list[32];                      /* the devices: "npu,npu1,cpu" */
} limited_case;

extern const char *const limited_operators[]; /* ends with NULL */

void limited_draw(const clv_allocator *allocator, uint64_t seed, limited_case *drawn);

#endif
