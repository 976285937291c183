/* Sizes and positions for inference and the kernels of the operators that put elements into larger or smaller tensors. */
#ifndef CLEAVE_OPERATORS_PATCHES_RUN_H
#define CLEAVE_OPERATORS_PATCHES_RUN_H

#include "base/error.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "operators/common/window.h"

/* Col2Im: sets `window` to the blocks of size `block` over an image of the known size `image`. Both have `spatial` axes, at most
 * CLV__MAX_SPATIAL. */
clv_status clv__patches_window(clv__attributes attributes, int32_t spatial, const int64_t *image, const int64_t *block,
                               clv__window *window, clv_error *error);

/* MaxUnpool: sets `dims` to the shape that the indices refer to, for the input `x`. Unknown dims stay unknown. */
clv_status clv__patches_unpooled(clv__attributes attributes, const clv_tensor *x, int64_t *dims, clv_error *error);

/* CenterCropPad: sets `axes` and *count to the axes, in [0, rank), whose new sizes input `shape` lists. Returns an error if an
 * axis is repeated or out of range. */
clv_status clv__patches_axes(clv__attributes attributes, int32_t rank, int32_t *axes, int32_t *count, clv_error *error);

#endif
