/* Resize and Upsample: each element of the result is a weighted sum of input elements. Along every axis, its position selects
 * some input positions, each with a weight; the weight of an input element is the product of these. operators/common/resize.h
 * computes positions and weights. */
#include "operators/resize/run.h"

#include "operators/common/resize.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/element.h"
#include "operators/run.h"

/* The input positions and weights of every output position of an axis: [output][taps]. An axis that does not change has
 * one tap: its own position, with weight 1. */
typedef struct table {
  int64_t taps;
  int64_t *positions; /* the first is -1 if the output position is outside the region, and gets the extrapolation value */
  double *weights;
} table;

typedef struct resize {
  clv__resize of;
  table tables[CLV_MAX_RANK];
} resize;

static clv_status resize_read(const clv__kernel_call *call, resize *r) {
  const clv__resize_node node = {.op = call->op,
                                 .opset = call->opset,
                                 .attributes = call->attributes,
                                 .inputs = call->inputs,
                                 .input_count = call->input_count,
                                 .output = &call->outputs[0]};
  CLV__TRY(clv__resize_read(&node, &r->of, call->error));
  for (int32_t i = 0; i < r->of.rank; ++i) r->tables[i].taps = r->of.axes[i].identity ? 1 : r->of.axes[i].taps;
  return CLV_OK;
}

static void tables_fill(resize *r, char *scratch) {
  for (int32_t i = 0; i < r->of.rank; ++i) {
    const clv__resize_axis *a = &r->of.axes[i];
    table *t = &r->tables[i];
    t->positions = (int64_t *)scratch;
    t->weights = (double *)(t->positions + a->output * t->taps);
    scratch = (char *)(t->weights + a->output * t->taps);
    for (int64_t o = 0; o < a->output; ++o) {
      t->weights[o * t->taps] = 1;
      t->positions[o * t->taps] = o;
      if (!a->identity) clv__resize_taps(&r->of, a, o, t->positions + o * t->taps, t->weights + o * t->taps);
    }
  }
}

static bool is_outside(const resize *r, const int64_t *at) {
  for (int32_t i = 0; i < r->of.rank; ++i) {
    if (r->tables[i].positions[at[i] * r->tables[i].taps] < 0) return true;
  }
  return false;
}

/* The input element that tap `tap` of each axis reads for output position `at`, and its weight. */
static int64_t element_of(const resize *r, const int64_t *at, const int64_t *tap, double *weight) {
  int64_t index = 0;
  *weight = 1;
  for (int32_t i = 0; i < r->of.rank; ++i) {
    const table *t = &r->tables[i];
    index = index * r->of.axes[i].input + t->positions[at[i] * t->taps + tap[i]];
    *weight *= t->weights[at[i] * t->taps + tap[i]];
  }
  return index;
}

static double interpolate(const resize *r, const clv_tensor *x, const int64_t *at) {
  int64_t tap[CLV_MAX_RANK] = {0}, taps[CLV_MAX_RANK], count = 1;
  double sum = 0, weight;
  for (int32_t i = 0; i < r->of.rank; ++i) count *= taps[i] = r->tables[i].taps;
  for (int64_t k = 0; k < count; ++k, clv__index_next(r->of.rank, taps, tap)) {
    const int64_t from = element_of(r, at, tap, &weight);
    if (weight != 0) sum += weight * clv__element_load(x, from);
  }
  return sum;
}

static clv_status run_resize(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t first_taps[CLV_MAX_RANK] = {0}, count = clv__dims_count(y, 0, y->rank);
  int64_t at[CLV_MAX_RANK] = {0};
  double ignored;
  resize r;
  if (count == 0) return CLV_OK;
  CLV__TRY(resize_read(call, &r));
  tables_fill(&r, call->scratch);
  for (int64_t i = 0; i < count; ++i, clv__index_next(y->rank, y->dims, at)) {
    const bool outside = is_outside(&r, at), nearest = r.of.mode == CLV__RESIZE_NEAREST;
    if (nearest && !outside) {
      clv__element_copy(y, i, x, element_of(&r, at, first_taps, &ignored));
      continue;
    }
    const double value = outside ? r.of.extrapolation : interpolate(&r, x, at);
    clv__element_store(y, i, clv__element_is_float(y) || nearest ? value : rint(value));
  }
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  resize r;
  size_t total = 0, part;
  if (clv__tensor_is_empty(&call->outputs[0]) || resize_read(call, &r) != CLV_OK) return 0;
  for (int32_t i = 0; i < r.of.rank; ++i) {
    if (__builtin_mul_overflow((size_t)r.of.axes[i].output, (size_t)r.tables[i].taps, &part) ||
        __builtin_mul_overflow(part, sizeof(int64_t) + sizeof(double), &part) || __builtin_add_overflow(total, part, &total)) {
      return SIZE_MAX;
    }
  }
  return total;
}

static bool accepts(const clv__kernel_call *call, char reason[160]) {
  const bool interpolates = !clv__attribute_is(call->attributes, "mode", "nearest", true);
  if (interpolates && call->inputs[0].dtype == CLV_BOOL) {
    snprintf(reason, 160, "bool can only be resized with mode nearest");
    return false;
  }
  if (!interpolates && clv__attribute_int(call->attributes, "antialias", 0) != 0) {
    snprintf(reason, 160, "antialias cannot be used with mode nearest");
    return false;
  }
  return true;
}

const clv__kernel clv__kernels_resize[] = {
    {"", "Resize", CLV__DTYPES_ANY, run_resize, scratch_bytes, accepts},
    {"", "Upsample", CLV__DTYPES_ANY, run_resize, scratch_bytes, accepts},
    {"", "GridSample", CLV__DTYPES_ANY, clv__kernel_grid_sample, NULL, clv__kernel_grid_sample_accepts},
    {"", "AffineGrid", CLV__DTYPES_FLOAT, clv__kernel_affine_grid, NULL, NULL},
    {.op = NULL},
};
