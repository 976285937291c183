/* Kernels of convolutions with one to three spatial axes. All are treated as if they had three: missing leading axes have size
 * 1. */
#ifndef CLEAVE_OPERATORS_CONVOLUTION_RUN_H
#define CLEAVE_OPERATORS_CONVOLUTION_RUN_H

#include "operators/common/window.h"
#include "operators/run.h"

enum { CLV__CONV_AXES = 3 };

typedef struct clv__conv_axis {
  int64_t input, output, kernel, stride, dilation, pad;
} clv__conv_axis;

/* Sets `axes` to the axes of a resolved window. */
void clv__conv_axes(const clv__window *window, clv__conv_axis axes[CLV__CONV_AXES]);

bool clv__conv_accepts(const clv__kernel_call *call, char reason[160]);

/* ---- Operators with their own files; run.c has the table ---- */

/* run_integer.c: ConvInteger and QLinearConv */
clv_status clv__kernel_conv_integer(const clv__kernel_call *call);

/* run_state.c: CausalConvWithState */
clv_status clv__kernel_causal_conv(const clv__kernel_call *call);

/* run_deform.c: DeformConv */
clv_status clv__kernel_deform(const clv__kernel_call *call);
size_t clv__kernel_deform_scratch_bytes(const clv__kernel_call *call);
bool clv__kernel_deform_accepts(const clv__kernel_call *call, char reason[160]);

#endif
