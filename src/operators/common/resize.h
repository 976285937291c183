/* The geometry of Resize, for inference, the kernel and backends: the axes that scales and sizes refer to, the scale under an
 * aspect-ratio policy, and, for every axis, the input positions that an output position reads and their weights. */
#ifndef CLEAVE_OPERATORS_COMMON_RESIZE_H
#define CLEAVE_OPERATORS_COMMON_RESIZE_H

#include "base/error.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

typedef struct clv__resize_axes {
  int32_t count; /* number of elements in scales or sizes */
  int32_t axes[CLV_MAX_RANK];
} clv__resize_axes;

/* Reads attribute axes, which defaults to all axes. Returns an error if an axis is out of range or repeated. */
clv_status clv__resize_axes_read(clv__attributes attributes, int32_t rank, clv__resize_axes *axes, clv_error *error);

/* Sets *scales and *sizes to the indices of these inputs, which depend on the opset (UINT32_MAX: the opset has no such input). */
void clv__resize_inputs(const char *op, int32_t opset, uint32_t *scales, uint32_t *sizes);

/* Sets *scale to the scale that all axes share under keep_aspect_ratio_policy. Returns false for the policy `stretch`, under
 * which they share none. `dims` is the input's shape; all dims are known. */
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
  double width;      /* size of the output along this axis; may be a fraction if it follows from a scale */
  double start, end; /* of the region of interest, as fractions of the input's size */
  int64_t taps;      /* number of input positions that an output position reads */
  bool identity;     /* the axis is copied unchanged */
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

/* A Resize or Upsample node of static shapes that inference has checked. */
typedef struct clv__resize_node {
  const char *op;
  int32_t opset;
  clv__attributes attributes;
  const clv_tensor *inputs; /* an absent one has dtype CLV_DTYPE_NONE */
  uint32_t input_count;
  const clv_tensor *output;
} clv__resize_node;

/* Reads the attributes and inputs of a node whose output has elements. If scales, sizes or roi have no data (when memory sizes
 * are computed from types alone), uses the ratio of the shapes. Returns CLV_INVALID_MODEL for an impossible scale or roi, or an
 * axis without elements. */
clv_status clv__resize_read(const clv__resize_node *node, clv__resize *resize, clv_error *error);

/* Fills `positions` and `weights` with the axis->taps input positions that output position `output` of an axis reads, and their
 * weights. Mode nearest leaves `weights` unwritten. The first position is -1 if the output position lies outside the region of
 * interest; the output then takes the extrapolation value. */
void clv__resize_taps(const clv__resize *resize, const clv__resize_axis *axis, int64_t output, int64_t *positions,
                      double *weights);

#endif
