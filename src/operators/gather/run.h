/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_GATHER_RUN_H
#define CLEAVE_OPERATORS_GATHER_RUN_H

#include "operators/run.h"

/* run_cache.c: TensorScatter */
clv_status clv__kernel_tensor_scatter(const clv__kernel_call *call);

#endif
