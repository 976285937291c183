/* The operators of the family that have their own files. run.c has the table. */
#ifndef CLEAVE_OPERATORS_MATMUL_RUN_H
#define CLEAVE_OPERATORS_MATMUL_RUN_H

#include "operators/run.h"

/* run_integer.c: MatMulInteger and QLinearMatMul */
clv_status clv__kernel_matmul_integer(const clv__kernel_call *call);

#endif
