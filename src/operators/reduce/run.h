/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_REDUCE_RUN_H
#define CLEAVE_OPERATORS_REDUCE_RUN_H

#include "operators/run.h"

/* run_axis.c: ArgMax, ArgMin, CumSum and CumProd */
clv_status clv__kernel_arg(const clv__kernel_call *call);
clv_status clv__kernel_cumulate(const clv__kernel_call *call);

#endif
