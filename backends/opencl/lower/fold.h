/* Separates the axes that a reduction keeps from those that it folds. Neighbouring axes of the same kind are merged. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_FOLD_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_FOLD_H

#include "lower.h"

typedef struct clv__opencl_axes {
  int32_t rank;
  int64_t count; /* the product of dims */
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
} clv__opencl_axes;

typedef struct clv__opencl_fold {
  clv__opencl_axes kept, folded;
  bool inner_folded; /* whether the innermost axis is folded */
} clv__opencl_fold;

/* `axes` has a bit for each axis of `input`, which is 1 if the axis is folded. */
void clv__opencl_fold_make(const clv_tensor *input, uint32_t axes, clv__opencl_fold *fold);
/* Passes the axes as the kernels of reduce.cl and norm.cl expect them: rank, dims, strides. */
void clv__opencl_pass_axes(clv__opencl_lowering *l, const clv__opencl_axes *axes);

#endif
