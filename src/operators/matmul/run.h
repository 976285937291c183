/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_MATMUL_RUN_H
#define CLEAVE_OPERATORS_MATMUL_RUN_H

#include "operators/run.h"

/* run_integer.c: MatMulInteger and QLinearMatMul */
clv_status clv__kernel_matmul_integer(const clv__kernel_call *call);

#endif
