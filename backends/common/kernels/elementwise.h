/* Elementwise operators looked up apart from running them: who makes the same call many times asks once for its row function,
 * plans the walk (common/broadcast.h) and calls the rows itself. The kernels of unary.c and binary.c run what is found here. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ELEMENTWISE_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ELEMENTWISE_H

#include "operators/common/broadcast.h"
#include "operators/run.h"

/* What a row function's `params` may point to. */
typedef struct clv__elementwise_params {
  uint64_t words[2];
} clv__elementwise_params;

/* What clv__broadcast_run() has to run over all inputs of the call; `what->params` points to `params` where the rows have any. Of
 * the call's tensors the types are read, and the data of those that are parameters rather than operands (Clip's bounds; NULL
 * where it is not known). `input_count` is told how many of the inputs are operands. False: not an elementwise operator of
 * ONNX's, or more than one walk. */
bool clv__elementwise_find(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params,
                           uint32_t *input_count);

/* The two halves of it. */
bool clv__elementwise_find_unary(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params);
bool clv__elementwise_find_binary(const clv__kernel_call *call, clv__elementwise *what);

#endif
