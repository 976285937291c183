/* MaxPool, AveragePool, LpPool and their global forms, with one to three spatial axes. MaxPool skips NaNs, because a NaN does not
 * compare as larger. */
#include <math.h>
#include <stdio.h>

#include "operators/common/element.h"
#include "operators/common/window.h"
#include "operators/run.h"

enum { AXES = 3 };

typedef struct axis {
  int64_t input, output, kernel, stride, dilation, pad, pad_end;
} axis;

typedef struct pool {
  const clv_tensor *x, *y, *indices; /* an output that is not wanted is NULL */
  axis axes[AXES];                   /* if the input has fewer than AXES spatial axes, the leading ones here have size 1 */
  bool column_major, counts_padding;
  double p;
} pool;

/* The initial value of a maximum. */
static double lowest_of(clv_dtype dtype) {
  return dtype == CLV_I8 ? INT8_MIN : dtype == CLV_U8 ? 0 : -INFINITY;
}

static clv_status pool_read(const clv__kernel_call *call, pool *c) {
  const clv_tensor *x = &call->inputs[0];
  clv__window w;
  *c = (pool){.x = x, .y = clv__call_output(call, 0), .indices = clv__call_output(call, 1)};
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, NULL, &w, call->error));
  CLV__TRY(clv__window_resolve(&w, x->dims + 2, call->error));
  c->column_major = clv__attribute_int(call->attributes, "storage_order", 0) == 1;
  c->counts_padding = clv__attribute_int(call->attributes, "count_include_pad", 0) != 0;
  c->p = (double)clv__attribute_int(call->attributes, "p", 2);
  for (int32_t i = 0; i < AXES; ++i) {
    const int32_t j = i - (AXES - w.spatial);
    c->axes[i] = j < 0 ? (axis){1, 1, 1, 1, 1, 0, 0}
                       : (axis){w.input[j], w.output[j], w.kernel[j], w.stride[j], w.dilation[j], w.pad_begin[j], w.pad_end[j]};
  }
  return CLV_OK;
}

/* Sets *i to the input position that output position `o` reads with tap `k`. False if it is in the padding. */
static bool input_of(const axis *a, int64_t o, int64_t k, int64_t *i) {
  *i = o * a->stride - a->pad + k * a->dilation;
  return *i >= 0 && *i < a->input;
}

/* The number of taps that an average divides by: those inside the input, or with `counts_padding` those inside the input or its
 * padding. Taps beyond the padding, which ceil_mode causes, never count. */
static int64_t taps_counted(const axis *a, int64_t o, bool counts_padding) {
  int64_t count = 0, i;
  for (int64_t k = 0; k < a->kernel; ++k) {
    count += input_of(a, o, k, &i) || (counts_padding && i < a->input + a->pad_end);
  }
  return count;
}

/* window_walk() calls a function of this type for every input element that the window at output position `o` covers, in
 * row-major order. The plane of the input begins at element `first`. */
typedef void see_fn(void *cookie, const pool *c, double value, const int64_t at[AXES]);

static void window_walk(const pool *c, int64_t first, const int64_t o[AXES], see_fn *see, void *cookie) {
  const axis *a = c->axes;
  int64_t i[AXES];
  for (int64_t k0 = 0; k0 < a[0].kernel; ++k0) {
    if (!input_of(&a[0], o[0], k0, &i[0])) continue;
    for (int64_t k1 = 0; k1 < a[1].kernel; ++k1) {
      if (!input_of(&a[1], o[1], k1, &i[1])) continue;
      for (int64_t k2 = 0; k2 < a[2].kernel; ++k2) {
        if (!input_of(&a[2], o[2], k2, &i[2])) continue;
        see(cookie, c, clv__element_load(c->x, first + (i[0] * a[1].input + i[1]) * a[2].input + i[2]), i);
      }
    }
  }
}

/* The largest element and its position in its plane. If several are equal, it is the first. */
typedef struct maximum {
  double value;
  int64_t place; /* -1: none */
} maximum;

static void see_maximum(void *cookie, const pool *c, double value, const int64_t i[AXES]) {
  maximum *m = cookie;
  const axis *a = c->axes;
  if (m->place >= 0 && !(value > m->value)) return;
  if (value > m->value) m->value = value;
  m->place = c->column_major ? (i[2] * a[1].input + i[1]) * a[0].input + i[0] : (i[0] * a[1].input + i[1]) * a[2].input + i[2];
}

static void see_sum(void *cookie, const pool *c, double value, const int64_t i[AXES]) {
  (void)c;
  (void)i;
  *(double *)cookie += value;
}

static void see_power(void *cookie, const pool *c, double value, const int64_t i[AXES]) {
  (void)i;
  *(double *)cookie += pow(fabs(value), c->p);
}

/* Computes element `at` of the result: the window at `o` of the plane that begins at element `first` of the input. */
static void run_window(const char *op, const pool *c, int64_t first, const int64_t o[AXES], int64_t at) {
  maximum largest = {lowest_of(c->x->dtype), -1};
  double sum = 0;
  if (strcmp(op, "MaxPool") == 0) {
    window_walk(c, first, o, see_maximum, &largest);
    if (c->y != NULL) clv__element_store(c->y, at, largest.value);
    if (c->indices != NULL) clv__element_store_int(c->indices, at, largest.place < 0 ? -1 : first + largest.place);
  } else if (strcmp(op, "LpPool") == 0) {
    window_walk(c, first, o, see_power, &sum);
    clv__element_store(c->y, at, pow(sum, 1 / c->p));
  } else {
    int64_t count = 1;
    for (int i = 0; i < AXES; ++i) count *= taps_counted(&c->axes[i], o[i], c->counts_padding);
    window_walk(c, first, o, see_sum, &sum);
    clv__element_store(c->y, at, sum / (double)count);
  }
}

static clv_status run_pool(const clv__kernel_call *call) {
  const clv_tensor *wanted = clv__call_output(call, 0) != NULL ? clv__call_output(call, 0) : clv__call_output(call, 1);
  pool c;
  if (wanted == NULL || clv__tensor_is_empty(wanted)) return CLV_OK;
  CLV__TRY(pool_read(call, &c));
  const int64_t planes = clv__dims_count(c.x, 0, 2), plane = clv__dims_count(c.x, 2, c.x->rank);
  const int64_t outputs[AXES] = {c.axes[0].output, c.axes[1].output, c.axes[2].output};
  const int64_t count = outputs[0] * outputs[1] * outputs[2];
  for (int64_t n = 0; n < planes; ++n) {
    int64_t o[AXES] = {0};
    for (int64_t i = 0; i < count; ++i, clv__index_next(AXES, outputs, o)) {
      run_window(call->op, &c, n * plane, o, n * count + i);
    }
  }
  return CLV_OK;
}

static clv_status run_global(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const double p = (double)clv__attribute_int(call->attributes, "p", 2);
  if (clv__tensor_is_empty(y)) return CLV_OK;
  const int64_t planes = clv__dims_count(x, 0, 2), plane = clv__dims_count(x, 2, x->rank);
  for (int64_t n = 0; n < planes; ++n) {
    double largest = lowest_of(x->dtype), sum = 0, powers = 0;
    for (int64_t i = 0; i < plane; ++i) {
      const double value = clv__element_load(x, n * plane + i);
      if (value > largest) largest = value;
      sum += value;
      powers += p == 2 ? value * value : pow(fabs(value), p);
    }
    const bool max = strcmp(call->op, "GlobalMaxPool") == 0, average = strcmp(call->op, "GlobalAveragePool") == 0;
    clv__element_store(y, n, max ? largest : average ? sum / (double)plane : pow(powers, 1 / p));
  }
  return CLV_OK;
}

static bool pool_accepts(const clv__kernel_call *call, char reason[160]) {
  const int32_t rank = call->inputs[0].rank;
  if (rank == CLV_RANK_UNKNOWN || (rank >= 3 && rank <= 2 + AXES)) return true;
  snprintf(reason, 160, "an input of rank %d is not supported; expected a batch axis, a channel axis and 1 to %d spatial axes",
           (int)rank, AXES);
  return false;
}

#define MAX_DTYPES (CLV__DTYPES_FLOAT | CLV__DTYPE_BIT(CLV_I8) | CLV__DTYPE_BIT(CLV_U8))

const clv__kernel clv__kernels_pool[] = {
    {"", "MaxPool", MAX_DTYPES, run_pool, NULL, pool_accepts},
    {"", "AveragePool", CLV__DTYPES_FLOAT, run_pool, NULL, pool_accepts},
    {"", "LpPool", CLV__DTYPES_FLOAT, run_pool, NULL, pool_accepts},
    {"", "GlobalMaxPool", CLV__DTYPES_FLOAT, run_global, NULL, NULL},
    {"", "GlobalAveragePool", CLV__DTYPES_FLOAT, run_global, NULL, NULL},
    {"", "GlobalLpPool", CLV__DTYPES_FLOAT, run_global, NULL, NULL},
    {.op = NULL},
};
