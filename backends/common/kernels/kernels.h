/* The kernels that backends run in host memory: the fast one of an operator, or the reference loops where there is none. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_KERNELS_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_KERNELS_H

#include "operators/run.h"

/* A fast kernel accepts every call that the reference accepts, and gives its results within the dtype's tolerance. NULL where the
 * operator has neither. Any thread. */
const clv__kernel *clv__fast_kernel_find(const char *domain, const char *op);

#endif
