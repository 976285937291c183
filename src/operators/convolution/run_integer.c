/* ConvInteger and QLinearConv: 8-bit operands, exact i32 sums that wrap. Padding has the value of the zero point, so it
 * contributes nothing to the sums. */
#include "operators/convolution/run.h"

#include "operators/common/element.h"
#include "operators/common/requantize.h"
#include "operators/common/window.h"
#include "operators/run.h"

typedef struct conv {
  const clv_tensor *x, *w, *y, *bias, *x_zero, *w_zero, *y_zero, *x_scale, *w_scale, *y_scale; /* NULL: none */
  clv__window window;
  int64_t groups, in_channels, out_channels; /* channels of a group */
  int64_t plane, volume, output_plane;       /* number of elements of a channel of X, of a kernel, of a channel of Y */
  bool quantizes;
} conv;

static clv_status conv_read(const clv__kernel_call *call, conv *c) {
  const bool quantizes = strcmp(call->op, "QLinearConv") == 0;
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[quantizes ? 3 : 1], *y = &call->outputs[0];
  *c = (conv){.x = x, .w = w, .y = y, .quantizes = quantizes};
  c->x_zero = clv__call_input(call, 2);
  c->w_zero = clv__call_input(call, quantizes ? 5 : 3);
  if (quantizes) {
    c->x_scale = clv__call_input(call, 1);
    c->w_scale = clv__call_input(call, 4);
    c->y_scale = clv__call_input(call, 6);
    c->y_zero = clv__call_input(call, 7);
    c->bias = clv__call_input(call, 8);
  }
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, w->dims + 2, &c->window, call->error));
  CLV__TRY(clv__window_resolve(&c->window, x->dims + 2, call->error));
  c->groups = clv__attribute_int(call->attributes, "group", 1);
  c->in_channels = w->dims[1];
  c->out_channels = w->dims[0] / c->groups;
  c->plane = clv__dims_count(x, 2, x->rank);
  c->volume = clv__dims_count(w, 2, w->rank);
  c->output_plane = clv__dims_count(y, 2, y->rank);
  return CLV_OK;
}

/* The index, in its channel, of the input element that output position `o` reads with tap `k`; -1 if it is in the padding. */
static int64_t input_of(const clv__window *w, int64_t o, int64_t k) {
  int64_t index = 0, step = 1;
  for (int32_t i = w->spatial - 1; i >= 0; --i) {
    const int64_t at = o % w->output[i] * w->stride[i] + k % w->kernel[i] * w->dilation[i] - w->pad_begin[i];
    if (at < 0 || at >= w->input[i]) return -1;
    index += at * step;
    step *= w->input[i];
    o /= w->output[i];
    k /= w->kernel[i];
  }
  return index;
}

/* The index of the scale or zero point for output channel `channel`: 0 if there is one for the whole tensor. */
static int64_t of_channel(const clv_tensor *tensor, int64_t channel) {
  return clv__dims_count(tensor, 0, tensor->rank) == 1 ? 0 : channel;
}
static int64_t zero_of(const clv_tensor *zero, int64_t channel) {
  return zero != NULL ? clv__element_load_int(zero, of_channel(zero, channel)) : 0;
}
static float scale_of(const clv_tensor *scale, int64_t channel) {
  return (float)clv__element_load(scale, of_channel(scale, channel));
}

static int64_t sum_of(const conv *c, int64_t image, int64_t channel, int64_t o) {
  const int64_t x_zero = zero_of(c->x_zero, 0), w_zero = zero_of(c->w_zero, channel);
  const int64_t first = (image * c->groups + channel / c->out_channels) * c->in_channels;
  int64_t sum = c->bias != NULL ? clv__element_load_int(c->bias, channel) : 0;
  for (int64_t k = 0; k < c->volume; ++k) {
    const int64_t i = input_of(&c->window, o, k);
    if (i < 0) continue;
    for (int64_t in = 0; in < c->in_channels; ++in) {
      sum += (clv__element_load_int(c->x, (first + in) * c->plane + i) - x_zero) *
             (clv__element_load_int(c->w, (channel * c->in_channels + in) * c->volume + k) - w_zero);
    }
  }
  return sum;
}

clv_status clv__kernel_conv_integer(const clv__kernel_call *call) {
  conv c;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(conv_read(call, &c));
  const int64_t channels = c.groups * c.out_channels, planes = c.y->dims[0] * channels;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const int64_t channel = plane % channels;
    for (int64_t o = 0; o < c.output_plane; ++o) {
      const int64_t sum = sum_of(&c, plane / channels, channel, o), at = plane * c.output_plane + o;
      if (c.quantizes) {
        const float factor = scale_of(c.x_scale, 0) * scale_of(c.w_scale, channel) / scale_of(c.y_scale, 0);
        clv__requantize_element(c.y, at, (int32_t)sum, factor, zero_of(c.y_zero, 0));
      } else {
        clv__element_store_int(c.y, at, sum);
      }
    }
  }
  return CLV_OK;
}
