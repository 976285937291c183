/* A device's description: what it can run, its memory, its speed. Read from JSON; README.md lists the keys. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_SPEC_H
#define CLEAVE_BACKENDS_VNPU_SPEC_SPEC_H

#include "base/map.h"
#include "base/memory.h"
#include "cleave/plugin/backend.h"

/* What an attribute's value (each element, for a list) may be. Where a node leaves the attribute out, `fallback` stands for it;
 * with no fallback either, the limit is met. */
typedef struct clv__vnpu_scalar {
  bool is_text;
  double number;
  const char *text;
} clv__vnpu_scalar;

typedef struct clv__vnpu_attribute {
  const char *name;
  bool has_min, has_max, has_fallback;
  double min, max;
  clv__vnpu_scalar fallback;
  uint32_t allowed_count; /* 0: any */
  const clv__vnpu_scalar *allowed;
} clv__vnpu_attribute;

typedef struct clv__vnpu_operand {
  uint32_t index;
  uint32_t dtypes;
} clv__vnpu_operand;

/* One operator's limits. What it leaves out is the device's. */
typedef struct clv__vnpu_operator {
  const char *name; /* "Conv", or "domain:Op" outside ONNX's domain */
  uint32_t dtypes;  /* mask of CLV__DTYPE_BIT */
  int32_t max_rank;
  uint32_t max_inputs; /* 0: no limit */
  int64_t max_kernel;  /* largest extent of a window; 0: no limit */
  uint32_t input_count, output_count, attribute_count, constant_count;
  const clv__vnpu_operand *inputs;  /* dtypes of single inputs */
  const clv__vnpu_operand *outputs; /* dtypes of single outputs */
  const clv__vnpu_attribute *attributes;
  const uint32_t *constants; /* inputs that must be constants */
} clv__vnpu_operator;

/* What a node of one operator takes, by what it is given (speed.h says what rows and edges are). */
typedef struct clv__vnpu_operator_speed {
  const char *name; /* as of clv__vnpu_operator */
  double us, ns_per_row, ns_per_edge;
} clv__vnpu_operator_speed;

/* Zero figures cost no time. Times are multiplied by time_scale at the end. */
typedef struct clv__vnpu_speed {
  bool given;
  double launch_overhead_us;
  double flops_per_second;
  double bytes_per_second;
  double copy_latency_us;
  double copy_bytes_per_second;
  double time_scale;
  double frequency; /* computing (not copies) is this many times as fast as the figures say */
  uint32_t operator_count;
  const clv__vnpu_operator_speed *operators; /* these instead of arithmetic and traffic */
} clv__vnpu_speed;

typedef struct clv__vnpu_spec {
  clv__arena arena; /* everything below */
  const char *name; /* "" when it gives none */
  const char *description;
  const char *memory_space; /* "" when it gives none */
  uint64_t memory_bytes;    /* 0: no limit */
  uint32_t alignment_bytes;
  uint32_t max_partition_inputs, max_partition_nodes;
  uint32_t dtypes;
  int32_t max_rank;
  bool static_shapes;
  bool control_flow;
  clv_dtype compute_dtype; /* f32 results are rounded to it */
  bool any_operator;
  uint32_t operator_count;
  const clv__vnpu_operator *operators;
  clv__map index; /* operator name -> index */
  clv__vnpu_speed speed;
  uint64_t hang_at, fail_at; /* faults on purpose: the launch, counted from 1, that never ends or fails; 0: none */
  const char *canonical;     /* the description and the options, always spelled the same: what fingerprints are made from */
} clv__vnpu_spec;

/* The options of a device: what the description says otherwise. */
enum { CLV__VNPU_OPTION_COUNT = 5 };
extern const clv_option_info clv__vnpu_options[CLV__VNPU_OPTION_COUNT];

/* Reads the description that `text` names: "default" (also NULL), "all", JSON that begins with a brace, or a file's path; then
 * applies the options. `spec` is empty after an error. */
clv_status clv__vnpu_spec_open(const clv_allocator *allocator, const char *text, const clv_option *options, uint32_t option_count,
                               clv__vnpu_spec *spec, clv_error *error);
void clv__vnpu_spec_finish(clv__vnpu_spec *spec);
/* The limits of an operator; NULL when the device has it not. With `any_operator`, those without an entry share one. */
const clv__vnpu_operator *clv__vnpu_spec_find(const clv__vnpu_spec *spec, const char *domain, const char *op);

/* The text of a built-in description, or NULL (builtin.c). */
const char *clv__vnpu_builtin(const char *name);

#endif
