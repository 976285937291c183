/* Calls of ATen's operators. A call is read from the text of a node of domain `aten` (docs/ir-json.md has the grammar), and made
 * through PyTorch's dispatcher. */
#ifndef CLEAVE_BACKENDS_TORCH_CALL_H
#define CLEAVE_BACKENDS_TORCH_CALL_H

#include "api.h"
#include "base/memory.h"

typedef enum clv__torch_kind {
  CLV__TORCH_TENSOR,
  CLV__TORCH_INT,
  CLV__TORCH_FLOAT,
  CLV__TORCH_BOOL,
  CLV__TORCH_STRING,
  CLV__TORCH_DTYPE,
  CLV__TORCH_LAYOUT,
  CLV__TORCH_FORMAT, /* memory format */
  CLV__TORCH_DEVICE
} clv__torch_kind;

typedef struct clv__torch_item {
  bool is_none;
  uint32_t input;   /* CLV__TORCH_TENSOR: index of the node's input */
  int64_t number;   /* INT, BOOL; also DTYPE, LAYOUT and FORMAT, with PyTorch's numbers */
  double real;      /* FLOAT */
  const char *text; /* STRING */
} clv__torch_item;

/* An argument with its type and value. In the type, `int[]?` is a list that may be None, and `Tensor?[]` a list whose items may
 * be None. */
typedef struct clv__torch_argument {
  clv__torch_kind kind;
  bool is_list, is_optional, items_are_optional;
  bool is_none;
  uint32_t count; /* number of items; 1 if the argument is not a list */
  clv__torch_item *items;
} clv__torch_argument;

typedef struct clv__torch_call {
  const char *op;       /* "aten::linalg_inv" */
  const char *overload; /* "" if it has none */
  uint32_t argument_count;
  clv__torch_argument *arguments;
  uint32_t return_count;
  bool *returns_list; /* per result: false for a tensor, true for a list of tensors */
  uint32_t room;      /* size of the stack: the larger of argument_count and return_count */
} clv__torch_call;

/* Reads the call of a node into `arena`. Returns CLV_NOT_SUPPORTED if the node has no call, or if an argument or result has a
 * type that PyTorch's C interface does not support (Scalar, Generator); the message names it. Returns CLV_INVALID_MODEL for a
 * syntax error. */
clv_status clv__torch_call_read(const clv__torch_api *api, const clv_node_info *node, clv__arena *arena, clv__torch_call *call,
                                clv_error *error);

/* Makes the call. `inputs` still belong to the caller afterwards. `outputs` receives as many new tensors as the node has
 * outputs; the caller owns them. `stack` has room for `call->room` values. Returns CLV_NOT_SUPPORTED if PyTorch does not have
 * the operator, or CLV_DEVICE_ERROR with PyTorch's message. */
clv_status clv__torch_call_make(const clv__torch_api *api, const clv__torch_call *call, const clv__torch_tensor *inputs,
                                clv__torch_value *stack, clv__torch_tensor *outputs, uint32_t output_count, clv_error *error);

#endif
