/* A partition copied out of the host's view: nodes, values, attributes and small constants. The copy does not refer to the view,
 * except for large constants while compile() runs. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_PROGRAM_H
#define CLEAVE_BACKENDS_CPU_PASSES_PROGRAM_H

#include "backends/cpu/device.h"
#include "operators/run.h"

#define CLV__CPU_NONE UINT32_MAX
/* Constants above this size are not copied. Most are packed for oneDNN, and only the packed copy is kept. */
#define CLV__CPU_SMALL_BYTES ((size_t)8 * 1024)

typedef struct clv__cpu_node clv__cpu_node;

typedef struct clv__cpu_value {
  const char *name;
  clv_tensor type; /* as in the view; `data`: the bytes of a constant, aligned unless is_borrowed; NULL: not available */
  bool is_constant;
  bool is_borrowed;              /* `data` belongs to the view and is gone after compile() */
  const clv__cpu_node *computed; /* the node that computes this constant from others once its bytes are needed; else NULL */
} clv__cpu_value;

struct clv__cpu_node {
  const char *name, *op, *domain;
  int32_t opset;
  uint32_t input_count, output_count; /* values that a body captures are inputs, too */
  const uint32_t *inputs, *outputs;   /* indices of values; CLV__CPU_NONE for an absent operand */
  clv__attributes attributes;         /* attributes whose value is a graph (bodies) are omitted */
  bool has_body;
  const clv__kernel *kernel; /* NULL for nodes with bodies */
};

typedef struct clv__cpu_program {
  clv_device *device;
  clv__arena arena;
  uint32_t node_count, value_count, input_count, output_count;
  clv__cpu_node *nodes;
  clv__cpu_value *values;
  uint32_t *inputs, *outputs;
  bool has_body;
  bool deterministic;  /* use no algorithm that changes rounding */
  bool tune;           /* measure the alternative implementations of each step and choose the fastest (tune.h) */
  clv_dtype precision; /* CLV_BF16: f32 products may be computed in bf16; else CLV_DTYPE_NONE */
  void *model;         /* the partition as ONNX, for shapes and bodies resolved at run time; NULL if the host gave none */
  size_t model_bytes;
  clv_graph_view *view; /* the graph view of `model`; NULL until it is first used */
} clv__cpu_program;

clv_status clv__cpu_program_read(clv__cpu_program *program, clv_device *device, const clv_graph_view *graph, clv_error *error);
void clv__cpu_program_finish(clv__cpu_program *program);
/* Whether all of the node's outputs are constant, so that nothing is left to run. */
bool clv__cpu_program_is_given(const clv__cpu_program *program, const clv__cpu_node *node);
/* Clears the pointers to constants whose bytes belong to the view. Call this before compile() returns. */
void clv__cpu_program_detach(clv__cpu_program *program);
/* Opens `model` as `view`, unless that is open already. */
clv_status clv__cpu_program_open(clv__cpu_program *program, clv_error *error);

#endif
