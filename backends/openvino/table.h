/* The table of operators that OpenVINO computes correctly, and the description of a node that its rules check. */
#ifndef CLEAVE_BACKENDS_OPENVINO_TABLE_H
#define CLEAVE_BACKENDS_OPENVINO_TABLE_H

#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "cleave/plugin/backend.h"

/* Dtypes of inputs that are positions or sizes (indices, shapes, axes). Their valid values fit in 32 bits. */
#define CLV__OPENVINO_INDEX (CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64))

typedef struct clv__openvino_node {
  const char *op;
  int32_t opset;
  clv__attributes attributes;
  uint32_t input_count, output_count;
  const uint32_t *operands, *results; /* CLV_NO_VALUE if absent */
  const clv_tensor *inputs, *outputs; /* their types; `data` is set if the value is known */
  const bool *is_constant;
  bool halves_are_wide; /* intermediate f16 and bf16 results may stay f32 */
} clv__openvino_node;

static inline bool clv__openvino_has(const clv__openvino_node *node, uint32_t input) {
  return input < node->input_count && node->operands[input] != CLV_NO_VALUE;
}
static inline bool clv__openvino_has_output(const clv__openvino_node *node, uint32_t output) {
  return output < node->output_count && node->results[output] != CLV_NO_VALUE;
}

typedef struct clv__openvino_rule {
  const char *domain; /* NULL: ONNX's */
  const char *op;
  uint32_t dtypes;        /* of inputs and outputs */
  uint32_t index_inputs;  /* one bit per input that is an index; `dtypes` does not apply to it */
  uint32_t index_outputs; /* one bit per output that may also be an index: an i64 that fits in 32 bits */
  uint32_t constants;     /* one bit per input that must be a constant */
  bool loses_nan;         /* it turns NaN into a number */
  bool (*accepts)(const clv__openvino_node *node, char reason[160]); /* optional: checks attributes and other conditions */
  const char *wrong;                                                 /* not NULL: the operator is rejected for this reason */
} clv__openvino_rule;

extern const clv__openvino_rule clv__openvino_rules[]; /* ends with an `op` of NULL */

/* ---- Rules of families (rules.c) ---- */
bool clv__openvino_accepts_cast(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_mod(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_max_pool(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_lp_pool(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_lrn(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_softmax(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_gather_elements(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_resize(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_recurrent(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_scatter(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_pad(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_space_to_depth(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_dropout(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_batch_norm(const clv__openvino_node *node, char reason[160]);
bool clv__openvino_accepts_first_output(const clv__openvino_node *node, char reason[160]);

#endif
