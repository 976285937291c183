/* Conv and ConvTranspose. Both gather: an output position reads one input position for each tap of the kernel. A transposed
 * convolution of stride s splits into s phases per axis. Each phase is a stride-1 convolution with a fixed subset of the taps.
 *
 * Most shapes run as a blocked matrix product whose right-hand matrix is gathered block by block, so that no complete im2col
 * matrix exists. If groups have few output channels (depthwise), output rows are accumulated directly. */
#include <stdio.h>

#include "backends/common/kernels/families.h"
#include "backends/common/kernels/matmul/gemm.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/common/window_axis.h"
#include "operators/run.h"

#define AXES 3
#define DIRECT_CHUNK 512  /* output elements accumulated at a time */
#define DIRECT_CHANNELS 3 /* output rows are accumulated directly only if groups have at most this many output channels */

typedef clv__window_axis axis;

typedef struct conv {
  clv_dtype dtype;
  const void *input, *weight, *bias;
  void *output;
  int64_t batch, groups;
  int64_t in_channels, out_channels; /* channels per group */
  int64_t depth;                     /* in_channels * taps */
  int64_t kernel_volume, input_plane, output_plane;
  bool transposed; /* weights are [in, out, …] instead of [out, in, …] */
  bool scattered;  /* successive output positions are not adjacent in Y, because a phase computes only every stride-th of them */
  axis axes[AXES];
  const clv__stop *stop;
} conv;

/* A position along the depth: an input channel and a tap. */
typedef struct tap {
  int64_t channel, t[AXES];
} tap;

static tap tap_decode(const conv *c, int64_t k) {
  const axis *a = c->axes;
  tap at;
  at.t[2] = k % a[2].taps;
  at.t[1] = k / a[2].taps % a[1].taps;
  at.t[0] = k / a[2].taps / a[1].taps % a[0].taps;
  at.channel = k / a[2].taps / a[1].taps / a[0].taps;
  return at;
}

static inline void tap_next(const conv *c, tap *at) {
  for (int i = AXES - 1; i >= 0; --i) {
    if (++at->t[i] < c->axes[i].taps) return;
    at->t[i] = 0;
  }
  ++at->channel;
}

static inline int64_t weight_index(const conv *c, int64_t group, int64_t out_channel, const tap *at) {
  int64_t k = 0;
  for (int i = 0; i < AXES; ++i) k = k * c->axes[i].kernel + c->axes[i].kernel_first + at->t[i] * c->axes[i].kernel_step;
  int64_t matrix = c->transposed ? (group * c->in_channels + at->channel) * c->out_channels + out_channel
                                 : (group * c->out_channels + out_channel) * c->in_channels + at->channel;
  return matrix * c->kernel_volume + k;
}

static inline int64_t output_index(const conv *c, int64_t q0, int64_t q1, int64_t q2) {
  const axis *a = c->axes;
  int64_t o0 = a[0].output_first + q0 * a[0].output_step, o1 = a[1].output_first + q1 * a[1].output_step;
  return (o0 * a[1].output + o1) * a[2].output + a[2].output_first + q2 * a[2].output_step;
}

/* Sets *low and *high so that q * step + offset is within [0, input) exactly for the positions q in [low, high). Steps 1 and 2
 * avoid the division, which would dominate the time of short rows. */
static inline void positions_of(int64_t offset, int64_t step, int64_t input, int64_t *low, int64_t *high) {
  int64_t before = offset < 0 ? -offset : 0, after = input > offset ? input - offset : 0;
  *low = step == 1 ? before : step == 2 ? (before + 1) >> 1 : (before + step - 1) / step;
  *high = step == 1 ? after : step == 2 ? (after + 1) >> 1 : (after + step - 1) / step;
}

#define NAME(x) x##_f32
#define STORED float
#define REAL float
#define LOAD(e) (e)
#define SAVE(r) (r)
#define SPREAD clv__gemm_spread_f32
#include "backends/common/kernels/convolution/conv_body.h"
#define NAME(x) x##_f64
#define STORED double
#define REAL double
#define LOAD(e) (e)
#define SAVE(r) (r)
#define SPREAD clv__gemm_spread_f64
#include "backends/common/kernels/convolution/conv_body.h"
#define NAME(x) x##_f16
#define STORED uint16_t
#define REAL float
#define LOAD(e) clv__f16_widen(e)
#define SAVE(r) clv__f32_to_f16(r)
#define SPREAD clv__gemm_spread_f32
#include "backends/common/kernels/convolution/conv_body.h"
#define NAME(x) x##_bf16
#define STORED uint16_t
#define REAL float
#define LOAD(e) clv__bf16_to_f32(e)
#define SAVE(r) clv__f32_to_bf16(r)
#define SPREAD clv__gemm_spread_f32
#include "backends/common/kernels/convolution/conv_body.h"

static void gemm_set_dtype(clv_dtype dtype, clv__gemm *gemm) {
  gemm->is_double = dtype == CLV_F64;
#define USE(suffix)                             \
  {                                             \
    gemm->pack_rows = pack_rows_##suffix;       \
    gemm->pack_columns = pack_columns_##suffix; \
    gemm->store = store_##suffix;               \
    break;                                      \
  }
  switch (dtype) {
    case CLV_F64:
      USE(f64)
    case CLV_F16:
      USE(f16)
    case CLV_BF16:
      USE(bf16)
    default:
      USE(f32)
  }
#undef USE
}

static clv_status conv_read(const clv__kernel_call *call, conv *c, clv__window *w) {
  const clv_tensor *x = &call->inputs[0], *weight = &call->inputs[1];
  memset(c, 0, sizeof *c);
  c->transposed = strcmp(call->op, "ConvTranspose") == 0;
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, weight->dims + 2, w, call->error));
  if (c->transposed) {
    CLV__TRY(clv__window_resolve_transposed(call->attributes, w, x->dims + 2, call->error));
  } else {
    CLV__TRY(clv__window_resolve(w, x->dims + 2, call->error));
  }
  c->stop = call->stop;
  c->dtype = x->dtype;
  c->input = x->data;
  c->weight = weight->data;
  c->bias = call->input_count > 2 && call->inputs[2].dtype != CLV_DTYPE_NONE ? call->inputs[2].data : NULL;
  c->output = call->outputs[0].data;
  c->batch = x->dims[0];
  c->groups = clv__attribute_int(call->attributes, "group", 1);
  c->in_channels = x->dims[1] / c->groups;
  c->out_channels = c->transposed ? weight->dims[1] : weight->dims[0] / c->groups;
  c->kernel_volume = clv__dims_count(weight, 2, weight->rank);
  c->input_plane = clv__dims_count(x, 2, x->rank);
  c->output_plane = clv__dims_count(&call->outputs[0], 2, x->rank);
  return CLV_OK;
}

/* Sets the axes of the convolution or, if `phases` is given, of one phase of a transposed convolution. Unused leading axes have
 * size 1. */
static void conv_set_axes(conv *c, const clv__window *w, const int64_t *phases) {
  int32_t lead = AXES - w->spatial;
  for (int32_t i = 0; i < AXES; ++i) {
    if (i < lead) {
      c->axes[i] = CLV__WINDOW_AXIS_NONE;
    } else if (phases == NULL) {
      c->axes[i] = clv__window_axis_forward(w, i - lead);
    } else {
      c->axes[i] = clv__window_axis_phase(w, i - lead, phases[i]);
    }
  }
  /* A pointwise convolution treats its planes as single rows. */
  if (phases == NULL && c->kernel_volume == 1) {
    bool plain = true;
    for (int i = 0; i < AXES; ++i) {
      plain = plain && c->axes[i].input_step == 1 && c->axes[i].offset_first == 0 && c->axes[i].input == c->axes[i].output;
    }
    if (plain) {
      for (int i = 0; i < AXES - 1; ++i) c->axes[i].count = c->axes[i].input = c->axes[i].output = 1;
      c->axes[AXES - 1].count = c->axes[AXES - 1].input = c->axes[AXES - 1].output = c->input_plane;
    }
  }
  c->depth = c->in_channels;
  c->scattered = false;
  for (int i = 0; i < AXES; ++i) {
    c->depth *= c->axes[i].taps;
    if (c->axes[i].output_step != 1) c->scattered = true;
  }
}

static bool conv_is_direct(const conv *c) {
  return c->out_channels <= DIRECT_CHANNELS && c->in_channels * c->out_channels <= 64;
}

static void conv_run_phase(const conv *c, void *scratch) {
  int64_t rows = c->axes[0].count * c->axes[1].count, columns = rows * c->axes[2].count;
  if (!conv_is_direct(c)) {
    clv__gemm gemm = {.batches = c->batch * c->groups,
                      .rows = c->out_channels,
                      .columns = columns,
                      .depth = c->depth,
                      .stop = c->stop,
                      .cookie = c};
    gemm_set_dtype(c->dtype, &gemm);
    clv__gemm_run(&gemm, scratch);
    return;
  }
  rows *= c->batch * c->groups * c->out_channels;
  int threads = clv__kernel_threads(rows, (double)rows * (double)c->axes[2].count * (double)(c->depth + 1) / 4);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    if (clv__is_stopped(c->stop)) continue;
    switch (c->dtype) {
      case CLV_F64:
        direct_row_f64(c, row);
        break;
      case CLV_F16:
        direct_row_f16(c, row);
        break;
      case CLV_BF16:
        direct_row_bf16(c, row);
        break;
      default:
        direct_row_f32(c, row);
        break;
    }
  }
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static clv_status conv_run(const clv__kernel_call *call) {
  conv c;
  clv__window w;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(conv_read(call, &c, &w));
  if (!c.transposed) {
    conv_set_axes(&c, &w, NULL);
    conv_run_phase(&c, call->scratch);
    return CLV_OK;
  }
  int64_t phases[AXES], limits[AXES];
  for (int i = 0; i < AXES; ++i) {
    int32_t j = i - (AXES - w.spatial);
    limits[i] = j < 0 ? 1 : smaller(w.stride[j], w.output[j]);
  }
  for (phases[0] = 0; phases[0] < limits[0]; ++phases[0]) {
    for (phases[1] = 0; phases[1] < limits[1]; ++phases[1]) {
      for (phases[2] = 0; phases[2] < limits[2]; ++phases[2]) {
        conv_set_axes(&c, &w, phases);
        conv_run_phase(&c, call->scratch);
      }
    }
  }
  return CLV_OK;
}

static size_t conv_scratch_bytes(const clv__kernel_call *call) {
  conv c;
  clv__window w;
  if (clv__tensor_is_empty(&call->outputs[0]) || conv_read(call, &c, &w) != CLV_OK || conv_is_direct(&c)) return 0;
  clv__gemm gemm = {.is_double = c.dtype == CLV_F64,
                    .batches = c.batch * c.groups,
                    .rows = c.out_channels,
                    .columns = 1,
                    .depth = c.in_channels};
  for (int32_t i = 0; i < w.spatial; ++i) {
    int64_t stride = c.transposed ? w.stride[i] : 1; /* count the columns of the first phase, which has the most */
    gemm.columns *= (w.output[i] + stride - 1) / stride;
    gemm.depth *= w.kernel[i];
  }
  return clv__gemm_scratch_bytes(&gemm);
}

const clv__fast_kernel clv__fast_conv[] = {
    {"", "Conv", conv_run, conv_scratch_bytes},
    {"", "ConvTranspose", conv_run, conv_scratch_bytes},
    {.op = NULL},
};
