/* What inference, the kernel of Resize and backends share: which axes the inputs speak of, the scale under an aspect-ratio
 * policy, and, for every axis, the input positions that an output position reads and their weights. */
#ifndef CLEAVE_OPERATORS_COMMON_RESIZE_H
#define CLEAVE_OPERATORS_COMMON_RESIZE_H

#include "base/error.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

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

/* ---- Positions and weights (resize_taps.c) ---- */

typedef enum clv__resize_mode { CLV__RESIZE_NEAREST, CLV__RESIZE_LINEAR, CLV__RESIZE_CUBIC } clv__resize_mode;

typedef enum clv__resize_transform {
  CLV__RESIZE_HALF_PIXEL,
  CLV__RESIZE_HALF_PIXEL_SYMMETRIC,
  CLV__RESIZE_PYTORCH_HALF_PIXEL,
  CLV__RESIZE_ALIGN_CORNERS,
  CLV__RESIZE_ASYMMETRIC,
  CLV__RESIZE_HALF_PIXEL_FOR_NEAREST,
  CLV__RESIZE_CROP_AND_RESIZE
} clv__resize_transform;

typedef struct clv__resize_axis {
  int64_t input, output;
  double scale;
  double width;      /* of the output, a fraction where it comes from a scale */
  double start, end; /* of the region of interest */
  int64_t taps;      /* input positions that an output position reads */
  bool identity;     /* nothing to do */
} clv__resize_axis;

typedef struct clv__resize {
  clv__resize_mode mode;
  clv__resize_transform transform;
  const char *nearest;
  bool antialias, exclude_outside;
  double cubic, extrapolation;
  int32_t rank;
  clv__resize_axis axes[CLV_MAX_RANK];
} clv__resize;

/* A node Resize or Upsample of static shapes, as inference has found it right. */
typedef struct clv__resize_node {
  const char *op;
  int32_t opset;
  clv__attributes attributes;
  const clv_tensor *inputs; /* an absent one has dtype CLV_DTYPE_NONE */
  uint32_t input_count;
  const clv_tensor *output;
} clv__resize_node;

/* Everything about the node, of an output that has elements. Where the data of scales, sizes or roi is not there (sizes of memory
 * for types alone), the ratio of the shapes. CLV_INVALID_MODEL: a scale or roi that cannot be, an axis without elements. */
clv_status clv__resize_read(const clv__resize_node *node, clv__resize *resize, clv_error *error);

/* The positions that output position `output` of an axis reads, and their weights (not written for nearest): `taps` of each. The
 * first position is -1 where it lies outside the region: it takes the extrapolation value. */
void clv__resize_taps(const clv__resize *resize, const clv__resize_axis *axis, int64_t output, int64_t *positions,
                      double *weights);

#endif
