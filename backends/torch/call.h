/* Calls of ATen's operators: read from the text that a node of domain `aten` carries (docs/ir-json.md has the grammar), and made
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
  CLV__TORCH_FORMAT, /* of memory */
  CLV__TORCH_DEVICE
} clv__torch_kind;

typedef struct clv__torch_item {
  bool is_none;
  uint32_t input;   /* CLV__TORCH_TENSOR: of the node's inputs */
  int64_t number;   /* INT, BOOL; DTYPE, LAYOUT and FORMAT as PyTorch numbers them */
  double real;      /* FLOAT */
  const char *text; /* STRING */
} clv__torch_item;

/* An argument as its type says: `int[]? dim` is a list that may be none; `Tensor?[]` one whose items may be. */
typedef struct clv__torch_argument {
  clv__torch_kind kind;
  bool is_list, is_optional, items_are_optional;
  bool is_none;
  uint32_t count; /* of items; 1 where it is no list */
  clv__torch_item *items;
} clv__torch_argument;

typedef struct clv__torch_call {
  const char *op;       /* "aten::linalg_inv" */
  const char *overload; /* "" where it has none */
  uint32_t argument_count;
  clv__torch_argument *arguments;
  uint32_t return_count;
  bool *returns_list; /* each result: a tensor, or a list of them */
  uint32_t room;      /* of the stack: the larger of both counts */
} clv__torch_call;

/* Reads the call of a node, in `arena`. CLV_NOT_SUPPORTED: it has none, or an argument or a result of a type that PyTorch's C
 * interface does not carry (Scalar, Generator): the text names it. CLV_INVALID_MODEL: it is written wrongly. */
clv_status clv__torch_call_read(const clv__torch_api *api, const clv_node_info *node, clv__arena *arena, clv__torch_call *call,
                                clv_error *error);

/* Makes it. `inputs` stay the caller's; `outputs` are new tensors, as many as the node has, which become the caller's. `stack`
 * has room for `call->room`. CLV_NOT_SUPPORTED: PyTorch has no such operator; CLV_DEVICE_ERROR with its own words. */
clv_status clv__torch_call_make(const clv__torch_api *api, const clv__torch_call *call, const clv__torch_tensor *inputs,
                                clv__torch_value *stack, clv__torch_tensor *outputs, uint32_t output_count, clv_error *error);

#endif
