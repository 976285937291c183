/* Declarations shared by the fast normalisations. All compute in f64 and round once. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_NORMALIZE_NORMALIZE_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_NORMALIZE_NORMALIZE_H

#include "operators/run.h"

enum { CLV__NORMALIZE_CHUNK = 512 /* elements converted at a time */ };

/* The sum of (x - mean)^power over elements [first, first + count). `power` is 1 or 2. Once `stop` (may be NULL) is set, the
 * rest of the sum is left out. */
double clv__row_deviation(const clv_tensor *x, int64_t first, int64_t count, double mean, int power, const clv__stop *stop);
/* y = (x - mean) * factor + shift for elements [first, first + count) of both tensors. Once `stop` (may be NULL) is set, skips
 * the rest. */
void clv__row_affine(const clv_tensor *x, clv_tensor *y, int64_t first, int64_t count, double mean, double factor, double shift,
                     const clv__stop *stop);

/* Normalise over the trailing axes (layer.c). */
clv_status clv__layer_normalization(const clv__kernel_call *call); /* also RMSNormalization */
/* Normalise over any axes, or along one axis (axes.c). */
clv_status clv__mean_variance_normalization(const clv__kernel_call *call);
size_t clv__mean_variance_scratch_bytes(const clv__kernel_call *call);
clv_status clv__lp_normalization(const clv__kernel_call *call);
clv_status clv__lrn(const clv__kernel_call *call);

#endif
