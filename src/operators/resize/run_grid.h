/* Reads the attributes of GridSample, for inference and the kernel. The names of the modes depend on the opset. */
#ifndef CLEAVE_OPERATORS_RESIZE_RUN_GRID_H
#define CLEAVE_OPERATORS_RESIZE_RUN_GRID_H

#include "base/error.h"
#include "base/tensor/attribute.h"

typedef enum clv__grid_mode { CLV__GRID_NEAREST, CLV__GRID_LINEAR, CLV__GRID_CUBIC } clv__grid_mode;
typedef enum clv__grid_padding { CLV__GRID_ZEROS, CLV__GRID_BORDER, CLV__GRID_REFLECTION } clv__grid_padding;

/* Reads the attributes mode and padding_mode. Returns CLV_INVALID_MODEL if one of them has an unknown value. */
clv_status clv__grid_read(clv__attributes attributes, clv__grid_mode *mode, clv__grid_padding *padding, clv_error *error);

#endif
