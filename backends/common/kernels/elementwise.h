/* Finds the row function of an elementwise call without running it. A caller that repeats the same call finds the row function
 * once, plans the loops over the operands once (common/broadcast.h) and then calls the row function directly. The kernels of
 * unary.c and binary.c use these functions, too. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ELEMENTWISE_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ELEMENTWISE_H

#include "operators/common/broadcast.h"
#include "operators/run.h"

/* Storage for the parameters of a row function, large enough for all of them. */
typedef struct clv__elementwise_params {
  uint64_t words[2];
} clv__elementwise_params;

/* Sets *what to the function that clv__broadcast_run() has to run over the first *input_count inputs of the call. Inputs after
 * these are parameters (Clip's bounds). what->params points to `params`, which must live as long as *what. Reads the types of
 * all tensors, but the data only of parameters. Returns false if the call is not one of ONNX's elementwise operators, if its
 * dtype is not supported, if it needs more than one pass over its inputs, or if the data of a parameter is NULL (unknown). */
bool clv__elementwise_find(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params,
                           uint32_t *input_count);

/* Like clv__elementwise_find(), but clv__elementwise_find_unary() finds only operators of unary.c, and
 * clv__elementwise_find_binary() only operators of binary.c, whose inputs are all operands. */
bool clv__elementwise_find_unary(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params);
bool clv__elementwise_find_binary(const clv__kernel_call *call, clv__elementwise *what);

#endif
