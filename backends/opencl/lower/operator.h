/* An operator of the device, and the question whether it takes a node: what families answer (lower.h) and supports.c asks. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_OPERATOR_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_OPERATOR_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

/* What a choice of kernels may depend on. */
typedef struct clv__opencl_traits {
  bool is_cpu;     /* work items of a group run one after the other in one thread: no gain from local memory or small tiles */
  bool has_half;   /* arithmetic in half; loads and stores of it are there always */
  bool has_double; /* f64 */
  uint32_t compute_units;
  uint32_t max_group;   /* work items of a group */
  uint32_t group_1d;    /* a good size for one-dimensional kernels; a power of two */
  uint64_t local_bytes; /* local memory of a group */
  uint64_t max_buffer_bytes;
} clv__opencl_traits;

typedef struct clv__opencl_node {
  const char *name, *op, *domain;
  int32_t opset;
  clv__attributes attributes; /* bodies left out */
  uint32_t input_count, output_count;
  /* An absent operand has dtype CLV_DTYPE_NONE. In lower() all are static. `data`: the value is known (small ones: axes, shapes,
   * pads, scales; aligned), NULL for what is only on the device. */
  const clv_tensor *inputs;
  const clv_tensor *outputs;
  const bool *is_constant; /* by input: it will have `data` in lower() if it is small, though it may have none yet in accepts() */
} clv__opencl_node;

typedef struct clv__opencl_lowering clv__opencl_lowering;

typedef struct clv__opencl_operator {
  const char *domain; /* "" is ONNX's */
  const char *op;
  uint32_t dtypes;  /* CLV__DTYPE_BIT of what input 0 may be (of output 0 for operators without inputs) */
  bool takes_posts; /* its last launch ends with clv__opencl_pass_posts(), see there */
  /* Optional. False, with the reason, for what `dtypes` cannot say. Dims and ranks may be unknown, data absent. What this takes
   * must lower, whatever the shapes turn out to be. */
  bool (*accepts)(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]);
  clv_status (*lower)(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error);
} clv__opencl_operator;

/* What a launch found wrong with the numbers it was given: fault_t of clv_kernel.h, which has clv_say() for it. `kind`, `at`,
 * `value` and `limit` are for the family's own words. */
typedef struct clv__opencl_fault {
  int32_t said, kind;
  int64_t at, value, limit;
} clv__opencl_fault;
typedef void (*clv__opencl_explain_fn)(const clv__opencl_fault *fault, char text[160]);

/* NULL when there is none (supports.c). Any thread. f64 is only taken where the device has it: accepts() need not ask. */
const clv__opencl_operator *clv__opencl_operator_find(const char *domain, const char *op);

/* For accepts(): false, with the reason, when input `index` is there and not a constant ("input 1 (axes) is not a constant"). */
bool clv__opencl_accepts_constant(const clv__opencl_node *node, uint32_t index, const char *what, char reason[160]);
/* For accepts(): false, with the reason, when input `index` is there and its dtype is none of `dtypes` (bits). */
bool clv__opencl_accepts_dtype(const clv__opencl_node *node, uint32_t index, uint32_t dtypes, char reason[160]);

static inline bool clv__opencl_has_input(const clv__opencl_node *node, uint32_t index) {
  return index < node->input_count && node->inputs[index].dtype != CLV_DTYPE_NONE;
}
static inline bool clv__opencl_has_output(const clv__opencl_node *node, uint32_t index) {
  return index < node->output_count && node->outputs[index].dtype != CLV_DTYPE_NONE;
}
/* For static types, which lower() is given. A product of dims can be beyond any number where another is 0: begin with this. */
static inline int64_t clv__opencl_count(const clv_tensor *type) {
  size_t count = 0;
  return clv__tensor_count(type, &count) ? (int64_t)count : 0;
}
static inline bool clv__opencl_is_empty(const clv_tensor *type) {
  return clv__opencl_count(type) == 0;
}

#endif
