/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_BINARY_RUN_H
#define CLEAVE_OPERATORS_BINARY_RUN_H

#include "operators/run.h"

/* run_swiglu.c: SwiGLU */
clv_status clv__kernel_swiglu(const clv__kernel_call *call);

#endif
