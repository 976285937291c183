/* The members of the normalization family that live in files of their own; normalize.c holds the table. */
#ifndef CLEAVE_KERNELS_NORMALIZE_H
#define CLEAVE_KERNELS_NORMALIZE_H

#include "kernels/kernels.h"

/* normalize_layer.c: over trailing axes */
clv_status clv__kernel_layer_normalization(const clv__kernel_call *call); /* RMSNormalization too */
/* normalize_axes.c: over any axes, or one */
clv_status clv__kernel_mean_variance_normalization(const clv__kernel_call *call);
size_t clv__kernel_mean_variance_scratch_bytes(const clv__kernel_call *call);
clv_status clv__kernel_lp_normalization(const clv__kernel_call *call);
clv_status clv__kernel_lrn(const clv__kernel_call *call);

#endif
