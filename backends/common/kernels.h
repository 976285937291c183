/* The kernels that backends run in host memory: an operator's fast kernel, or the reference loops if it has none. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_KERNELS_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_KERNELS_H

#include "operators/run.h"

/* A fast kernel accepts every call that the reference accepts, and its results agree within the dtype's tolerance. NULL if the
 * operator has neither. Any thread. */
const clv__kernel *clv__fast_kernel_find(const char *domain, const char *op);

#endif
