/* The input positions that a convolution's output positions read, along one axis. A transposed convolution of stride s splits
 * into s phases. Each phase uses some of the taps, with stride 1. */
#ifndef CLEAVE_OPERATORS_COMMON_WINDOW_AXIS_H
#define CLEAVE_OPERATORS_COMMON_WINDOW_AXIS_H

#include "operators/common/window.h"

/* Output position output_first + q * output_step reads, for tap t, input position q * input_step + offset_first + t * offset_step
 * with weight kernel_first + t * kernel_step. */
typedef struct clv__window_axis {
  int64_t count, taps;
  int64_t output_first, output_step;
  int64_t input_step, offset_first, offset_step;
  int64_t kernel_first, kernel_step;
  int64_t input, output, kernel;
} clv__window_axis;

/* An axis of size 1, in place of one that the window does not have. */
#define CLV__WINDOW_AXIS_NONE \
  ((clv__window_axis){        \
      .count = 1, .taps = 1, .output_step = 1, .input_step = 1, .kernel_step = 1, .input = 1, .output = 1, .kernel = 1})

/* Describes axis `i` of a resolved window, for a convolution that is not transposed. */
clv__window_axis clv__window_axis_forward(const clv__window *window, int32_t i);
/* Describes output positions `phase`, `phase` + stride, … of axis `i` of a transposed convolution. If there are no taps, the
 * output is the bias alone. */
clv__window_axis clv__window_axis_phase(const clv__window *window, int32_t i, int64_t phase);

#endif
