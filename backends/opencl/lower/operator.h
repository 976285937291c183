/* The interface of an operator: accepts() checks whether the device supports a node, lower() adds the node's launches. The
 * families implement operators (lower.h). */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_OPERATOR_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_OPERATOR_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

/* The device properties on which a choice of kernels may depend. */
typedef struct clv__opencl_traits {
  bool is_cpu;     /* one thread runs a group's work items in turn, so local memory and small tiles do not help */
  bool has_half;   /* the device can compute in half; loading and storing half is always possible */
  bool has_double; /* supports f64 */
  uint32_t compute_units;
  uint32_t max_group;   /* maximum work items per group */
  uint32_t group_1d;    /* a good group size for one-dimensional kernels; a power of two */
  uint64_t local_bytes; /* local memory per group */
  uint64_t max_buffer_bytes;
} clv__opencl_traits;

typedef struct clv__opencl_node {
  const char *name, *op, *domain;
  int32_t opset;
  clv__attributes attributes; /* attributes whose value is a graph are omitted */
  uint32_t input_count, output_count;
  /* An absent operand has dtype CLV_DTYPE_NONE. In lower() all types are static. `data` is set if the value is known; this
   * applies to small values (axes, shapes, pads, scales), and they are aligned. It is NULL for values that are only on the
   * device. */
  const clv_tensor *inputs;
  const clv_tensor *outputs;
  const bool *is_constant; /* per input: whether it is a constant. lower() gets the `data` of a small constant; accepts() may not
                              get it yet */
} clv__opencl_node;

typedef struct clv__opencl_lowering clv__opencl_lowering;

typedef struct clv__opencl_operator {
  const char *domain; /* "" is the ONNX domain */
  const char *op;
  uint32_t dtypes;  /* a bit for each supported dtype of input 0 (of output 0 for operators without inputs) */
  bool takes_posts; /* elementwise nodes can be fused into it; see clv__opencl_pass_posts() */
  /* Optional. Rejects nodes that `dtypes` alone cannot reject, with the reason. Dims and ranks may be unknown, and data absent.
   * If it accepts a node, lower() must support the node with any shapes. */
  bool (*accepts)(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]);
  clv_status (*lower)(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error);
} clv__opencl_operator;

/* An error that a launch found in its input data. It has the layout of fault_t in clv_kernel.h, which a kernel fills with
 * clv_say(). The family defines the meaning of `kind`, `at`, `value` and `limit`. */
typedef struct clv__opencl_fault {
  int32_t said, kind;
  int64_t at, value, limit;
} clv__opencl_fault;
typedef void (*clv__opencl_explain_fn)(const clv__opencl_fault *fault, char text[160]);

/* Finds an operator, or returns NULL (supports.c). Any thread may call it. f64 is accepted only if the device supports it, so
 * accepts() need not check that. */
const clv__opencl_operator *clv__opencl_operator_find(const char *domain, const char *op);

/* For accepts(): returns false with the reason if input `index` is present but not a constant ("input 1 (axes) is not a
 * constant"). */
bool clv__opencl_accepts_constant(const clv__opencl_node *node, uint32_t index, const char *what, char reason[160]);
/* For accepts(): returns false with the reason if input `index` is present and its dtype is not in `dtypes` (bits). */
bool clv__opencl_accepts_dtype(const clv__opencl_node *node, uint32_t index, uint32_t dtypes, char reason[160]);

static inline bool clv__opencl_has_input(const clv__opencl_node *node, uint32_t index) {
  return index < node->input_count && node->inputs[index].dtype != CLV_DTYPE_NONE;
}
static inline bool clv__opencl_has_output(const clv__opencl_node *node, uint32_t index) {
  return index < node->output_count && node->outputs[index].dtype != CLV_DTYPE_NONE;
}
/* The number of elements of a static type; 0 for any other type. In lower(), all types are static, and no product of their dims
 * overflows (has_size() in infer.c). */
static inline int64_t clv__opencl_count(const clv_tensor *type) {
  size_t count = 0;
  return clv__tensor_count(type, &count) ? (int64_t)count : 0;
}
static inline bool clv__opencl_is_empty(const clv_tensor *type) {
  return clv__opencl_count(type) == 0;
}

#endif
