/* ConvInteger and QLinearConv: 8-bit operands, exact i32 sums, one output row at a time. Padding has the value of the zero point,
 * so it adds nothing. */
#include "backends/common/kernels/families.h"
#include "operators/common/requantize.h"
#include "operators/common/threads.h"
#include "operators/common/window.h"
#include "operators/run.h"

enum { CHUNK = 512 };

typedef struct conv {
  const clv_tensor *x, *w, *y, *bias, *x_zero, *w_zero, *y_zero, *x_scale, *w_scale, *y_scale;
  clv__window window;
  int32_t last;                              /* spatial axis that rows run along */
  int64_t groups, in_channels, out_channels; /* channels per group */
  int64_t volume, input_plane, output_rows;  /* taps; elements per input plane; rows per output plane */
  bool quantizes;
} conv;

static clv_status conv_read(const clv__kernel_call *call, conv *c) {
  const bool quantizes = call->op[0] == 'Q';
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[quantizes ? 3 : 1];
  *c = (conv){.x = x, .w = w, .y = &call->outputs[0], .quantizes = quantizes, .output_rows = 1};
  c->x_zero = clv__call_input(call, 2);
  c->w_zero = clv__call_input(call, quantizes ? 5 : 3);
  if (quantizes) {
    c->x_scale = clv__call_input(call, 1);
    c->w_scale = clv__call_input(call, 4);
    c->y_scale = clv__call_input(call, 6);
    c->y_zero = clv__call_input(call, 7);
    c->bias = clv__call_input(call, 8);
  }
  clv__window *window = &c->window;
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, w->dims + 2, window, call->error));
  CLV__TRY(clv__window_resolve(window, x->dims + 2, call->error));
  c->groups = clv__attribute_int(call->attributes, "group", 1);
  c->in_channels = w->dims[1];
  c->out_channels = w->dims[0] / c->groups;
  c->volume = clv__dims_count(w, 2, w->rank);
  c->input_plane = clv__dims_count(x, 2, x->rank);
  bool pointwise = true;
  for (int32_t i = 0; i < window->spatial; ++i) {
    pointwise = pointwise && window->kernel[i] == 1 && window->stride[i] == 1 && window->input[i] == window->output[i] &&
                window->pad_begin[i] == 0;
  }
  if (pointwise) { /* treat a plane as one row */
    window->spatial = 1;
    window->input[0] = window->output[0] = c->input_plane;
  }
  c->last = window->spatial - 1;
  for (int32_t i = 0; i < c->last; ++i) c->output_rows *= window->output[i];
  return CLV_OK;
}

#define DEFINE_ADD(name, T)                                                                                   \
  static void name(const T *x, int64_t step, int64_t count, uint32_t weight, uint32_t zero, uint32_t *sums) { \
    if (step == 1) {                                                                                          \
      for (int64_t q = 0; q < count; ++q) sums[q] += weight * ((uint32_t)x[q] - zero);                        \
    } else {                                                                                                  \
      for (int64_t q = 0; q < count; ++q) sums[q] += weight * ((uint32_t)x[q * step] - zero);                 \
    }                                                                                                         \
  }
DEFINE_ADD(add_unsigned, uint8_t)
DEFINE_ADD(add_signed, int8_t)

/* Finds the input of tap `tap` for the output row at `position` (indices along all axes except the last): the input row, and the
 * offset along the last axis. Returns false if the row is outside the input. */
static bool tap_place(const clv__window *w, int64_t tap, const int64_t *position, int64_t *row, int64_t *offset) {
  int64_t step = 1;
  const int32_t last = w->spatial - 1;
  *offset = tap % w->kernel[last] * w->dilation[last] - w->pad_begin[last];
  tap /= w->kernel[last];
  *row = 0;
  for (int32_t i = last - 1; i >= 0; --i) {
    const int64_t at = position[i] * w->stride[i] + tap % w->kernel[i] * w->dilation[i] - w->pad_begin[i];
    tap /= w->kernel[i];
    if (at < 0 || at >= w->input[i]) return false;
    *row += at * step;
    step *= w->input[i];
  }
  return true;
}

/* Sums output positions [start, start + count) of one row over all input channels and taps. */
static void sum_row(const conv *c, int64_t image, int64_t channel, const int64_t *position, int64_t start, int64_t count,
                    uint32_t *sums) {
  const clv__window *w = &c->window;
  const int64_t length = w->input[c->last], stride = w->stride[c->last], group = channel / c->out_channels;
  const uint32_t zero = (uint32_t)clv__zero_at(c->x_zero, 0);
  const bool one_zero = c->w_zero == NULL || clv__dims_count(c->w_zero, 0, c->w_zero->rank) == 1;
  const int32_t w_zero = clv__zero_at(c->w_zero, one_zero ? 0 : channel);
  for (int64_t tap = 0; tap < c->volume; ++tap) {
    int64_t row, offset;
    if (!tap_place(w, tap, position, &row, &offset)) continue;
    offset += start * stride;
    const int64_t low = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t high = offset < length ? (length - offset + stride - 1) / stride : 0;
    if (high > count) high = count;
    if (low >= high) continue;
    for (int64_t i = 0; i < c->in_channels; ++i) {
      const int64_t at = (channel * c->in_channels + i) * c->volume + tap;
      const uint32_t weight = (uint32_t)(clv__byte_at(c->w->dtype, c->w->data, at) - w_zero);
      const int64_t plane = (image * c->groups + group) * c->in_channels + i;
      const int64_t first = plane * c->input_plane + row * length + offset + low * stride;
      if (c->x->dtype == CLV_I8)
        add_signed((const int8_t *)c->x->data + first, stride, high - low, weight, zero, sums + low);
      else
        add_unsigned((const uint8_t *)c->x->data + first, stride, high - low, weight, zero, sums + low);
    }
  }
}

static void run_row(const conv *c, int64_t task) {
  const clv__window *w = &c->window;
  const int64_t channels = c->groups * c->out_channels, plane = task / c->output_rows, channel = plane % channels;
  const int64_t width = w->output[c->last];
  int64_t position[CLV__MAX_SPATIAL], rest = task % c->output_rows;
  for (int32_t i = c->last - 1; i >= 0; --i) {
    position[i] = rest % w->output[i];
    rest /= w->output[i];
  }
  float factor = 1;
  if (c->quantizes) {
    const bool one = clv__dims_count(c->w_scale, 0, c->w_scale->rank) == 1;
    factor = clv__scale_at(c->x_scale, 0) * clv__scale_at(c->w_scale, one ? 0 : channel) / clv__scale_at(c->y_scale, 0);
  }
  for (int64_t start = 0; start < width; start += CHUNK) {
    const int64_t count = width - start < CHUNK ? width - start : CHUNK, first = task * width + start;
    const uint32_t bias = c->bias != NULL ? (uint32_t)((const int32_t *)c->bias->data)[channel] : 0;
    uint32_t sums[CHUNK];
    for (int64_t q = 0; q < count; ++q) sums[q] = bias;
    sum_row(c, plane / channels, channel, position, start, count, sums);
    if (c->quantizes)
      clv__requantize(c->y->dtype, c->y->data, first, count, sums, &factor, 0, clv__zero_at(c->y_zero, 0));
    else
      memcpy((uint32_t *)c->y->data + first, sums, (size_t)count * sizeof *sums);
  }
}

static clv_status run_conv(const clv__kernel_call *call) {
  conv c;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(conv_read(call, &c));
  const int64_t width = c.window.output[c.last], rows = clv__dims_count(c.y, 0, c.y->rank) / width;
  const int threads = clv__kernel_threads(rows, (double)rows * (double)width * (double)c.in_channels * (double)c.volume);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    if (!clv__is_stopped(call->stop)) run_row(&c, row);
  }
  return CLV_OK;
}

const clv__fast_kernel clv__fast_conv_integer[] = {
    {"", "ConvInteger", run_conv, NULL},
    {"", "QLinearConv", run_conv, NULL},
    {.op = NULL},
};
