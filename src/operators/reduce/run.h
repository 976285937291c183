/* The operators of the family that live in files of their own; run.c holds the table. */
#ifndef CLEAVE_OPERATORS_REDUCE_RUN_H
#define CLEAVE_OPERATORS_REDUCE_RUN_H

#include "operators/run.h"

/* run_axis.c: ArgMax and its kin, CumSum and CumProd */
clv_status clv__kernel_arg(const clv__kernel_call *call);
clv_status clv__kernel_cumulate(const clv__kernel_call *call);

#endif
