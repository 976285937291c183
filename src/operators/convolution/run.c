/* Conv and ConvTranspose: computes one sum per element of the result. */
#include "operators/convolution/run.h"

#include <stdio.h>

#include "operators/common/element.h"
#include "operators/common/requantize.h"
#include "operators/run.h"

void clv__conv_axes(const clv__window *window, clv__conv_axis axes[CLV__CONV_AXES]) {
  for (int32_t i = 0; i < CLV__CONV_AXES; ++i) {
    const int32_t j = i - (CLV__CONV_AXES - window->spatial);
    axes[i] = j < 0 ? (clv__conv_axis){1, 1, 1, 1, 1, 0}
                    : (clv__conv_axis){window->input[j],  window->output[j],   window->kernel[j],
                                       window->stride[j], window->dilation[j], window->pad_begin[j]};
  }
}

bool clv__conv_accepts(const clv__kernel_call *call, char reason[160]) {
  const int32_t rank = call->inputs[0].rank;
  if (rank == CLV_RANK_UNKNOWN || (rank >= 3 && rank <= 2 + CLV__CONV_AXES)) return true;
  snprintf(reason, 160, "an input of rank %d is not supported; expected a batch axis, a channel axis and 1 to %d spatial axes",
           (int)rank, CLV__CONV_AXES);
  return false;
}

typedef struct conv {
  const clv_tensor *x, *w, *bias, *y;
  bool transposed;                           /* weights are [in, out, …] instead of [out, in, …] */
  int64_t groups, in_channels, out_channels; /* channels of a group */
  clv__conv_axis axes[CLV__CONV_AXES];
} conv;

static clv_status conv_read(const clv__kernel_call *call, conv *c) {
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[1];
  const bool transposed = strcmp(call->op, "ConvTranspose") == 0;
  clv__window window;
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, w->dims + 2, &window, call->error));
  if (transposed)
    CLV__TRY(clv__window_resolve_transposed(call->attributes, &window, x->dims + 2, call->error));
  else
    CLV__TRY(clv__window_resolve(&window, x->dims + 2, call->error));
  *c = (conv){.x = x, .w = w, .bias = clv__call_input(call, 2), .y = &call->outputs[0], .transposed = transposed};
  c->groups = clv__attribute_int(call->attributes, "group", 1);
  c->in_channels = x->dims[1] / c->groups;
  c->out_channels = c->transposed ? w->dims[1] : w->dims[0] / c->groups;
  clv__conv_axes(&window, c->axes);
  return CLV_OK;
}

/* Sets *i to the input position that output position `o` reads with tap `k`. Returns false if there is none, because the
 * position is in the padding or, if transposed, between two strides. */
static bool input_of(const conv *c, int axis, int64_t o, int64_t k, int64_t *i) {
  const clv__conv_axis *a = &c->axes[axis];
  if (!c->transposed) {
    *i = o * a->stride + k * a->dilation - a->pad;
  } else { /* input i adds to outputs i * stride + k * dilation - pad */
    const int64_t from = o + a->pad - k * a->dilation;
    if (from < 0 || from % a->stride != 0) return false;
    *i = from / a->stride;
  }
  return *i >= 0 && *i < a->input;
}

/* The products of input position `i` (an index in its plane) and tap `k` (an index in the kernel), summed over the input channels
 * of a group. */
static double sum_channels(const conv *c, int64_t image, int64_t group, int64_t channel, int64_t i, int64_t k) {
  const clv__conv_axis *a = c->axes;
  const int64_t plane = a[0].input * a[1].input * a[2].input, volume = a[0].kernel * a[1].kernel * a[2].kernel;
  double sum = 0;
  for (int64_t in = 0; in < c->in_channels; ++in) {
    const int64_t x = (image * c->groups + group) * c->in_channels + in;
    const int64_t w = c->transposed ? (group * c->in_channels + in) * c->out_channels + channel
                                    : (group * c->out_channels + channel) * c->in_channels + in;
    sum += clv__element_load(c->x, x * plane + i) * clv__element_load(c->w, w * volume + k);
  }
  return sum;
}

static double output_of(const conv *c, int64_t image, int64_t group, int64_t channel, int64_t o0, int64_t o1, int64_t o2) {
  const clv__conv_axis *a = c->axes;
  double sum = c->bias != NULL ? clv__element_load(c->bias, group * c->out_channels + channel) : 0;
  int64_t i0, i1, i2;
  for (int64_t k0 = 0; k0 < a[0].kernel; ++k0) {
    if (!input_of(c, 0, o0, k0, &i0)) continue;
    for (int64_t k1 = 0; k1 < a[1].kernel; ++k1) {
      if (!input_of(c, 1, o1, k1, &i1)) continue;
      for (int64_t k2 = 0; k2 < a[2].kernel; ++k2) {
        if (!input_of(c, 2, o2, k2, &i2)) continue;
        const int64_t i = (i0 * a[1].input + i1) * a[2].input + i2, k = (k0 * a[1].kernel + k1) * a[2].kernel + k2;
        sum += sum_channels(c, image, group, channel, i, k);
      }
    }
  }
  return sum;
}

static clv_status run_conv(const clv__kernel_call *call) {
  conv c;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(conv_read(call, &c));
  const int64_t channels = c.groups * c.out_channels, planes = c.y->dims[0] * channels;
  for (int64_t plane = 0, at = 0; plane < planes; ++plane) {
    const int64_t image = plane / channels, group = plane % channels / c.out_channels, channel = plane % c.out_channels;
    for (int64_t o0 = 0; o0 < c.axes[0].output; ++o0) {
      for (int64_t o1 = 0; o1 < c.axes[1].output; ++o1) {
        for (int64_t o2 = 0; o2 < c.axes[2].output; ++o2) {
          clv__element_store(c.y, at++, output_of(&c, image, group, channel, o0, o1, o2));
        }
      }
    }
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_convolution[] = {
    {"", "Conv", CLV__DTYPES_FLOAT, run_conv, NULL, clv__conv_accepts},
    {"", "ConvTranspose", CLV__DTYPES_FLOAT, run_conv, NULL, clv__conv_accepts},
    {"", "ConvInteger", CLV__BYTES, clv__kernel_conv_integer, NULL, NULL},
    {"", "QLinearConv", CLV__BYTES, clv__kernel_conv_integer, NULL, NULL},
    {"", "CausalConvWithState", CLV__DTYPES_FLOAT & ~CLV__DTYPE_BIT(CLV_F64), clv__kernel_causal_conv, NULL, NULL},
    {"", "DeformConv", CLV__DTYPES_FLOAT, clv__kernel_deform, clv__kernel_deform_scratch_bytes, clv__kernel_deform_accepts},
    {.op = NULL},
};
