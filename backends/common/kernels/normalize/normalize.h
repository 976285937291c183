/* The normalizations that have their own files. run.c has the table. */
#ifndef CLEAVE_OPERATORS_NORMALIZE_RUN_H
#define CLEAVE_OPERATORS_NORMALIZE_RUN_H

#include "operators/run.h"

/* run_layer.c: over trailing axes */
clv_status clv__kernel_layer_normalization(const clv__kernel_call *call); /* also RMSNormalization */
/* run_axes.c: over any axes, or along one */
clv_status clv__kernel_mean_variance_normalization(const clv__kernel_call *call);
size_t clv__kernel_mean_variance_scratch_bytes(const clv__kernel_call *call);
clv_status clv__kernel_lp_normalization(const clv__kernel_call *call);
clv_status clv__kernel_lrn(const clv__kernel_call *call);

#endif
