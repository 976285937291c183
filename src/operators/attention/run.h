/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_ATTENTION_RUN_H
#define CLEAVE_OPERATORS_ATTENTION_RUN_H

#include "operators/run.h"

/* run_linear.c: LinearAttention */
clv_status clv__kernel_linear_attention(const clv__kernel_call *call);
size_t clv__kernel_linear_attention_scratch_bytes(const clv__kernel_call *call);
bool clv__kernel_linear_attention_accepts(const clv__kernel_call *call, char reason[160]);

/* run_rotary.c: RotaryEmbedding */
clv_status clv__kernel_rotary(const clv__kernel_call *call);

#endif
