/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_RESIZE_RUN_H
#define CLEAVE_OPERATORS_RESIZE_RUN_H

#include "operators/run.h"

/* run_grid.c: GridSample and AffineGrid */
clv_status clv__kernel_grid_sample(const clv__kernel_call *call);
bool clv__kernel_grid_sample_accepts(const clv__kernel_call *call, char reason[160]);
clv_status clv__kernel_affine_grid(const clv__kernel_call *call);

#endif
