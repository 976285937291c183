/* Looks up elementwise operators separately from running them. A caller that makes the same call many times asks for the row
 * function once, plans the walk (common/broadcast.h) and calls the row function itself. The kernels of unary.c and binary.c also
 * run what these functions find. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ELEMENTWISE_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ELEMENTWISE_H

#include "operators/common/broadcast.h"
#include "operators/run.h"

/* Room for the parameters of any row function, to which its `params` points. */
typedef struct clv__elementwise_params {
  uint64_t words[2];
} clv__elementwise_params;

/* The function that clv__broadcast_run() has to run over all inputs of the call. `what->params` points to `params` if the row
 * function has parameters. Reads the types of the call's tensors. Reads data only of tensors that are parameters rather than
 * operands: Clip's bounds, whose data is NULL if unknown. Sets `input_count` to the number of inputs that are operands. Returns
 * false if the call is not one of ONNX's elementwise operators, or needs more than one walk. */
bool clv__elementwise_find(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params,
                           uint32_t *input_count);

/* The same for the operators of unary.c, and for those of binary.c. */
bool clv__elementwise_find_unary(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params);
bool clv__elementwise_find_binary(const clv__kernel_call *call, clv__elementwise *what);

#endif
