/* See window_axis.h. */
#include "operators/common/window_axis.h"

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

clv__window_axis clv__window_axis_forward(const clv__window *w, int32_t i) {
  return (clv__window_axis){.count = w->output[i],
                            .taps = w->kernel[i],
                            .output_step = 1,
                            .input_step = w->stride[i],
                            .offset_first = -w->pad_begin[i],
                            .offset_step = w->dilation[i],
                            .kernel_step = 1,
                            .input = w->input[i],
                            .output = w->output[i],
                            .kernel = w->kernel[i]};
}

/* In phase `phase`, tap k reads input positions only if phase + pad - k * dilation is a multiple of the stride. */
clv__window_axis clv__window_axis_phase(const clv__window *w, int32_t i, int64_t phase) {
  const int64_t stride = w->stride[i], dilation = w->dilation[i], base = phase + w->pad_begin[i];
  clv__window_axis a = {.count = w->output[i] > phase ? (w->output[i] - phase + stride - 1) / stride : 0,
                        .output_first = phase,
                        .output_step = stride,
                        .input_step = 1,
                        .input = w->input[i],
                        .output = w->output[i],
                        .kernel = w->kernel[i]};
  a.kernel_step = stride / greatest_divisor(stride, dilation);
  a.offset_step = -(a.kernel_step * dilation / stride);
  while (a.kernel_first < a.kernel && a.kernel_first < a.kernel_step && (base - a.kernel_first * dilation) % stride != 0) {
    ++a.kernel_first;
  }
  if (a.kernel_first >= a.kernel || a.kernel_first >= a.kernel_step) return a;
  a.taps = (a.kernel - 1 - a.kernel_first) / a.kernel_step + 1;
  a.offset_first = (base - a.kernel_first * dilation) / stride;
  return a;
}
