/* What inference and the kernel of Resize share: which axes the inputs speak of, and the scale under an aspect-ratio policy. */
#ifndef CLEAVE_KERNELS_RESIZE_H
#define CLEAVE_KERNELS_RESIZE_H

#include "base/attribute.h"
#include "base/error.h"
#include "base/tensor.h"

typedef struct clv__resize_axes {
  int32_t count; /* elements that scales or sizes have */
  int32_t axes[CLV_MAX_RANK];
} clv__resize_axes;

/* The attribute axes, or all of them. An error when one is out of range or repeated. */
clv_status clv__resize_axes_read(clv__attributes attributes, int32_t rank, clv__resize_axes *axes, clv_error *error);

/* The input that holds scales, and the one that holds sizes (UINT32_MAX: none at this version): they moved over the versions. */
void clv__resize_inputs(const char *op, int32_t opset, uint32_t *scales, uint32_t *sizes);

/* The scale that all axes share under keep_aspect_ratio_policy; false for `stretch`. `dims` is the input's shape, of known dims.
 */
bool clv__resize_shared_scale(clv__attributes attributes, const clv__resize_axes *axes, const int64_t *sizes, const int64_t *dims,
                              double *scale);

#endif
