/* A device's description: its operators, memory and speed. It is read from JSON; docs/virtual-npu.md lists the keys. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_SPEC_H
#define CLEAVE_BACKENDS_VNPU_SPEC_SPEC_H

#include "base/map.h"
#include "base/memory.h"
#include "cleave/plugin/backend.h"

/* A value of an attribute: `text` if `is_text`, otherwise `number`. */
typedef struct clv__vnpu_scalar {
  bool is_text;
  double number;
  const char *text;
} clv__vnpu_scalar;

/* The values that the device allows for an attribute; for a list, those of each element. If a node omits the attribute,
 * `fallback` is its value, and must be allowed as well. Without a fallback, a node may always omit the attribute. */
typedef struct clv__vnpu_attribute {
  const char *name;
  bool has_min, has_max, has_fallback;
  double min, max;
  clv__vnpu_scalar fallback;
  uint32_t allowed_count; /* number of allowed values; 0: every value is allowed */
  const clv__vnpu_scalar *allowed;
} clv__vnpu_attribute;

typedef struct clv__vnpu_operand {
  uint32_t index;
  uint32_t dtypes;
} clv__vnpu_operand;

/* The limits of one operator. Where the description gives no limit for the operator, the limit here is that of the device. */
typedef struct clv__vnpu_operator {
  const char *name; /* "Conv", or "domain:Op" outside ONNX's domain */
  uint32_t dtypes;  /* a bit CLV__DTYPE_BIT for each allowed dtype */
  int32_t max_rank;
  uint32_t max_inputs; /* 0: no limit */
  int64_t max_kernel;  /* largest extent of a window; 0: no limit */
  uint32_t input_count, output_count, attribute_count, constant_count;
  const clv__vnpu_operand *inputs;  /* inputs whose allowed dtypes differ from `dtypes` */
  const clv__vnpu_operand *outputs; /* outputs whose allowed dtypes differ from `dtypes` */
  const clv__vnpu_attribute *attributes;
  const uint32_t *constants; /* inputs that must be constants */
} clv__vnpu_operator;

/* The time of one operator's nodes as a function of their operands (speed.h defines rows and edges). */
typedef struct clv__vnpu_operator_speed {
  const char *name; /* written as in clv__vnpu_operator */
  double us, ns_per_row, ns_per_edge;
} clv__vnpu_operator_speed;

/* The parameters of the speed model. If a rate is 0, the work that it applies to takes no time. All times are multiplied by
 * time_scale. */
typedef struct clv__vnpu_speed {
  bool given;
  double launch_overhead_us;
  double flops_per_second;
  double bytes_per_second;
  double copy_latency_us;
  double copy_bytes_per_second;
  double time_scale;
  double frequency; /* the times of computing, but not those of copies, are divided by this */
  uint32_t operator_count;
  const clv__vnpu_operator_speed *operators; /* operators whose times do not depend on arithmetic and memory traffic */
} clv__vnpu_speed;

typedef struct clv__vnpu_spec {
  clv__arena arena; /* holds everything below */
  const char *name; /* "" if the description gives none */
  const char *description;
  const char *memory_space; /* "" if the description gives none */
  uint64_t memory_bytes;    /* 0: no limit */
  uint32_t alignment_bytes;
  uint32_t max_partition_inputs, max_partition_nodes;
  uint32_t dtypes;
  int32_t max_rank;
  bool static_shapes;
  bool control_flow;
  bool computes_views;     /* if set, the host never renames a value in place of a view: see clv_device_info */
  clv_dtype compute_dtype; /* f32 results are rounded to this dtype */
  bool any_operator;
  uint32_t operator_count;
  const clv__vnpu_operator *operators;
  clv__map index; /* maps an operator's name to its index in `operators` */
  clv__vnpu_speed speed;
  bool is_guarded;           /* the device's memory is inaccessible while no engine works, and poisoned before each run */
  uint64_t hang_at, fail_at; /* faults for tests: the launch, counted from 1, that never ends or that fails; 0: none */
  const char *canonical;     /* canonical text of the description and the options; the fingerprint is computed from it */
} clv__vnpu_spec;

/* The default of the option `guard`. It is false; unit tests change it before they open a device. */
extern bool clv__vnpu_guard_default;
/* A device's options, which override its description. */
enum { CLV__VNPU_OPTION_COUNT = 7 };
extern const clv_option_info clv__vnpu_options[CLV__VNPU_OPTION_COUNT];

/* Returns the value of the option `spec`: the last one if the option is given several times, NULL if it is not given. */
const char *clv__vnpu_option_spec(const clv_option *options, uint32_t option_count);

/* Reads the description that `text` names: "default" (also NULL), "all", JSON that begins with a brace, or the path of a file.
 * Then applies the options. After an error `spec` is empty. */
clv_status clv__vnpu_spec_open(const clv_allocator *allocator, const char *text, const clv_option *options, uint32_t option_count,
                               clv__vnpu_spec *spec, clv_error *error);
void clv__vnpu_spec_finish(clv__vnpu_spec *spec);
/* The limits of an operator, or NULL if the device does not support it. If `any_operator` is set, all operators without an entry
 * of their own share one entry. */
const clv__vnpu_operator *clv__vnpu_spec_find(const clv__vnpu_spec *spec, const char *domain, const char *op);

/* The text of a built-in description, or NULL (builtin.c). */
const char *clv__vnpu_builtin(const char *name);

#endif
