/* A partition copied out of the host's view: nodes, values, attributes and small constants. Nothing here refers to the view, but
 * for large constants while compile() runs. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_PROGRAM_H
#define CLEAVE_BACKENDS_CPU_PASSES_PROGRAM_H

#include "backends/cpu/device.h"
#include "operators/run.h"

#define CLV__CPU_NONE UINT32_MAX
/* Constants above this size are not copied: most are packed for oneDNN, and only the packed copy stays. */
#define CLV__CPU_SMALL_BYTES ((size_t)8 * 1024)

typedef struct clv__cpu_node clv__cpu_node;

typedef struct clv__cpu_value {
  const char *name;
  clv_tensor type; /* as the view has it; `data`: a constant that is at hand, aligned when it is small */
  bool is_constant;
  bool is_borrowed;              /* `data` is the view's: gone after compile() */
  const clv__cpu_node *computed; /* a constant that this node makes of others, when somebody wants its bytes; else NULL */
} clv__cpu_value;

struct clv__cpu_node {
  const char *name, *op, *domain;
  int32_t opset;
  uint32_t input_count, output_count; /* captures are inputs */
  const uint32_t *inputs, *outputs;   /* values, CLV__CPU_NONE where absent */
  clv__attributes attributes;         /* bodies left out */
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
  bool deterministic;  /* no algorithm that changes rounding */
  bool tune;           /* ways to make a step are measured (tune.h) */
  clv_dtype precision; /* CLV_BF16: f32 products may be made in it; else CLV_DTYPE_NONE */
  void *model;         /* the partition as ONNX, for shapes and bodies met at run time; NULL when the host gave none */
  size_t model_bytes;
  clv_graph_view *view; /* that model, opened when first needed */
} clv__cpu_program;

clv_status clv__cpu_program_read(clv__cpu_program *program, clv_device *device, const clv_graph_view *graph, clv_error *error);
void clv__cpu_program_finish(clv__cpu_program *program);
/* Whether all that the node makes is constant: nothing is left to run. */
bool clv__cpu_program_is_given(const clv__cpu_program *program, const clv__cpu_node *node);
/* Forgets what belongs to the view. */
void clv__cpu_program_detach(clv__cpu_program *program);
/* Opens `model`, unless it is open. */
clv_status clv__cpu_program_open(clv__cpu_program *program, clv_error *error);

#endif
