/* MaxPool, AveragePool, LpPool and their global forms. f32 and f64 planes are read in place. Other dtypes are converted one plane
 * at a time. */
#include <math.h>
#include <stdio.h>

#include "backends/common/kernels/families.h"
#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/common/window.h"
#include "operators/run.h"

#define AXES 3
#define LANES 16

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

typedef struct axis {
  int64_t input, output, kernel, stride, dilation, pad, pad_end;
  bool count_padding;
} axis;

typedef struct pool {
  pool_kind kind;
  double p;
  double lowest; /* the initial maximum, and the result for a window without elements */
  bool column_major;
  clv_dtype dtype;
  int64_t planes, input_plane, output_plane;
  axis axes[AXES];
} pool;

/* The taps [first, end) of a window, along one axis, that are inside the input. An average is divided by the product of
 * `counted` over all axes. */
typedef struct span {
  int64_t first, end, counted;
} span;

static int64_t ceil_divide(int64_t a, int64_t b) {
  return a <= 0 ? -(-a / b) : (a + b - 1) / b;
}

static inline span span_of(const axis *a, int64_t output) {
  int64_t start = output * a->stride - a->pad;
  span s;
  s.first = start < 0 ? ceil_divide(-start, a->dilation) : 0;
  s.end = ceil_divide(a->input - start, a->dilation);
  if (s.end > a->kernel) s.end = a->kernel;
  if (s.end < s.first) s.end = s.first;
  s.counted = s.end - s.first;
  if (a->count_padding) { /* the average includes the padding, but not the positions beyond it that ceil_mode adds */
    int64_t end = ceil_divide(a->input + a->pad_end - start, a->dilation);
    s.counted = end > a->kernel ? a->kernel : end;
  }
  return s;
}

/* The output positions [low, high) for which position * stride + offset is inside the input. */
static inline void positions_of(const axis *a, int64_t offset, int64_t *low, int64_t *high) {
  *low = offset < 0 ? ceil_divide(-offset, a->stride) : 0;
  *high = a->input > offset ? ceil_divide(a->input - offset, a->stride) : 0;
  if (*high > a->output) *high = a->output;
}

static inline double power_f64(double x, double p) {
  return p == 2 ? x * x : p == 1 ? fabs(x) : pow(fabs(x), p);
}
static inline double root_f64(double x, double p) {
  return p == 2 ? sqrt(x) : p == 1 ? x : pow(x, 1 / p);
}
static inline float power_f32(float x, double p) {
  return p == 2 ? x * x : p == 1 ? fabsf(x) : powf(fabsf(x), (float)p);
}
static inline float root_f32(float x, double p) {
  return p == 2 ? sqrtf(x) : p == 1 ? x : powf(x, (float)(1 / p));
}

#define NAME(x) x##_f32
#define REAL float
#include "backends/common/kernels/pool_body.h"
#define NAME(x) x##_f64
#define REAL double
#include "backends/common/kernels/pool_body.h"

/* The output tensor; if only the indices are requested, the tensor of the indices. */
static const clv_tensor *pool_output(const clv__kernel_call *call) {
  const bool left_out = call->outputs[0].dtype == CLV_DTYPE_NONE && call->output_count > 1;
  return &call->outputs[left_out ? 1 : 0];
}

static bool nothing_to_do(const clv__kernel_call *call) {
  const clv_tensor *out = pool_output(call);
  return out->dtype == CLV_DTYPE_NONE || clv__tensor_is_empty(out);
}

static void pool_set_kind(const clv__kernel_call *call, pool *c) {
  const clv_tensor *x = &call->inputs[0];
  c->kind = strstr(call->op, "Max") != NULL ? POOL_MAX : strstr(call->op, "Average") != NULL ? POOL_AVERAGE : POOL_LP;
  c->p = (double)clv__attribute_int(call->attributes, "p", 2);
  c->lowest = x->dtype == CLV_I8 ? INT8_MIN : x->dtype == CLV_U8 ? 0 : (double)-INFINITY;
  c->dtype = x->dtype;
  c->planes = clv__dims_count(x, 0, 2);
  c->input_plane = clv__dims_count(x, 2, x->rank);
  c->output_plane = clv__dims_count(pool_output(call), 2, x->rank);
}

static bool needs_conversion(clv_dtype dtype) {
  return dtype != CLV_F32 && dtype != CLV_F64;
}

static clv_status pool_read(const clv__kernel_call *call, pool *c) {
  const clv_tensor *x = &call->inputs[0];
  clv__window w;
  memset(c, 0, sizeof *c);
  pool_set_kind(call, c);
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, NULL, &w, call->error));
  CLV__TRY(clv__window_resolve(&w, x->dims + 2, call->error));
  c->column_major = clv__attribute_int(call->attributes, "storage_order", 0) == 1;
  bool count_padding = clv__attribute_int(call->attributes, "count_include_pad", 0) != 0;
  for (int32_t i = 0; i < AXES; ++i) {
    int32_t j = i - (AXES - w.spatial);
    c->axes[i] = j < 0 ? (axis){1, 1, 1, 1, 1, 0, 0, false} : (axis){w.input[j],    w.output[j],    w.kernel[j],  w.stride[j],
                                                                     w.dilation[j], w.pad_begin[j], w.pad_end[j], count_padding};
  }
  return CLV_OK;
}

/* The bytes of a thread's slice of the scratch: an input plane and an output plane in f32. 0 if the dtype needs no
 * conversion. */
static size_t slice_bytes(const pool *c) {
  if (!needs_conversion(c->dtype)) return 0;
  return clv__align_up((size_t)c->input_plane * sizeof(float), 64) + clv__align_up((size_t)c->output_plane * sizeof(float), 64);
}

static void pool_plane(const pool *c, const clv__kernel_call *call, int64_t plane, char *slice) {
  const clv_tensor *x = &call->inputs[0];
  int64_t *indices = call->output_count > 1 && call->outputs[1].dtype == CLV_I64
                         ? (int64_t *)call->outputs[1].data + plane * c->output_plane
                         : NULL;
  const bool wanted = call->outputs[0].dtype != CLV_DTYPE_NONE;
  int64_t base = plane * c->input_plane, out = plane * c->output_plane;
  if (c->dtype == CLV_F64) {
    const double *from = (const double *)x->data + base;
    double *to = wanted ? (double *)call->outputs[0].data + out : NULL;
    if (indices != NULL) {
      plane_indices_f64(c, from, to, indices, base);
    } else {
      plane_f64(c, from, to);
    }
    return;
  }
  const float *from;
  float *to;
  if (needs_conversion(c->dtype)) {
    clv__row_to_f32(c->dtype, x->data, base, c->input_plane, (float *)slice);
    from = (const float *)slice;
    to = (float *)(slice + clv__align_up((size_t)c->input_plane * sizeof(float), 64));
  } else {
    from = (const float *)x->data + base;
    to = wanted ? (float *)call->outputs[0].data + out : NULL;
  }
  if (indices != NULL) {
    plane_indices_f32(c, from, to, indices, base);
  } else {
    plane_f32(c, from, to);
  }
  if (needs_conversion(c->dtype) && wanted) clv__row_from_f32(c->dtype, call->outputs[0].data, out, c->output_plane, to);
}

static clv_status pool_run(const clv__kernel_call *call) {
  pool c;
  if (nothing_to_do(call)) return CLV_OK;
  CLV__TRY(pool_read(call, &c));
  size_t slice = slice_bytes(&c);
  double taps = (double)c.axes[0].kernel * (double)c.axes[1].kernel * (double)c.axes[2].kernel;
  int threads = clv__kernel_threads(c.planes, (double)c.planes * (double)c.output_plane * taps);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t plane = 0; plane < c.planes; ++plane) {
    if (clv__is_stopped(call->stop)) continue;
    size_t at = (size_t)clv__kernel_thread_index() * slice;
    pool_plane(&c, call, plane, slice != 0 ? (char *)call->scratch + at : NULL);
  }
  return CLV_OK;
}

static size_t pool_scratch_bytes(const clv__kernel_call *call) {
  pool c;
  if (nothing_to_do(call) || pool_read(call, &c) != CLV_OK) return 0;
  return slice_bytes(&c) * (size_t)clv__kernel_thread_limit(c.planes);
}

static clv_status global_run(const clv__kernel_call *call) {
  pool c;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  memset(&c, 0, sizeof c);
  pool_set_kind(call, &c);
  const clv_tensor *x = &call->inputs[0];
  size_t slice = slice_bytes(&c);
  int threads = clv__kernel_threads(c.planes, (double)c.planes * (double)(c.input_plane + 1));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t plane = 0; plane < c.planes; ++plane) {
    if (clv__is_stopped(call->stop)) continue;
    if (c.dtype == CLV_F64) {
      ((double *)call->outputs[0].data)[plane] = global_f64(&c, (const double *)x->data + plane * c.input_plane, c.input_plane);
      continue;
    }
    const float *from = (const float *)x->data + plane * c.input_plane;
    if (needs_conversion(c.dtype)) {
      float *converted = (float *)((char *)call->scratch + (size_t)clv__kernel_thread_index() * slice);
      clv__row_to_f32(c.dtype, x->data, plane * c.input_plane, c.input_plane, converted);
      from = converted;
    }
    float result = global_f32(&c, from, c.input_plane);
    clv__row_from_f32(c.dtype, call->outputs[0].data, plane, 1, &result);
  }
  return CLV_OK;
}

static size_t global_scratch_bytes(const clv__kernel_call *call) {
  pool c;
  if (clv__tensor_is_empty(&call->outputs[0])) return 0;
  memset(&c, 0, sizeof c);
  pool_set_kind(call, &c);
  return slice_bytes(&c) * (size_t)clv__kernel_thread_limit(c.planes);
}

const clv__fast_kernel clv__fast_pool[] = {
    {"", "MaxPool", pool_run, pool_scratch_bytes},
    {"", "AveragePool", pool_run, pool_scratch_bytes},
    {"", "LpPool", pool_run, pool_scratch_bytes},
    {"", "GlobalMaxPool", global_run, global_scratch_bytes},
    {"", "GlobalAveragePool", global_run, global_scratch_bytes},
    {"", "GlobalLpPool", global_run, global_scratch_bytes},
    {.op = NULL},
};
