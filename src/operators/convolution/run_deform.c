/* DeformConv: at every output position, each tap of the kernel reads at a position shifted by its offsets, with linear
 * interpolation between elements. The taps of a position form a column, which is multiplied by the weights. */
#include "operators/convolution/run.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/common/window.h"
#include "operators/run.h"

enum { MAX_CORNERS = 1 << CLV__MAX_SPATIAL };

typedef struct deform {
  const clv_tensor *x, *offset, *mask, *y; /* mask may be NULL */
  clv__window window;
  int64_t taps, plane, positions; /* number of elements of the kernel; of an input channel; of an output channel */
  int64_t channels, groups, offset_groups, outputs;
  const double *weights, *bias; /* in f64; bias may be NULL */
} deform;

static bool has(const clv__kernel_call *call, uint32_t input) {
  return input < call->input_count && call->inputs[input].dtype != CLV_DTYPE_NONE;
}

static clv_status deform_read(const clv__kernel_call *call, deform *d) {
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[1];
  *d = (deform){.x = x, .offset = &call->inputs[2], .mask = has(call, 4) ? &call->inputs[4] : NULL, .y = &call->outputs[0]};
  CLV__TRY(clv__window_read(call->attributes, x->rank - 2, w->dims + 2, &d->window, call->error));
  CLV__TRY(clv__window_resolve(&d->window, x->dims + 2, call->error));
  d->taps = clv__dims_count(w, 2, w->rank);
  d->plane = clv__dims_count(x, 2, x->rank);
  d->positions = clv__dims_count(d->y, 2, d->y->rank);
  d->channels = x->dims[1];
  d->outputs = w->dims[0];
  d->groups = clv__attribute_int(call->attributes, "group", 1);
  d->offset_groups = clv__attribute_int(call->attributes, "offset_group", 1);
  return CLV_OK;
}

/* Scratch for the weights and the bias in f64, and a column for each thread. */
size_t clv__kernel_deform_scratch_bytes(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[1], *y = &call->outputs[0];
  size_t weights, column, total;
  if (!clv__tensor_is_static(x) || !clv__tensor_is_static(w) || !clv__tensor_is_static(y) || clv__tensor_is_empty(y)) return 0;
  if (!clv__tensor_count(w, &weights)) return SIZE_MAX;
  const size_t threads = (size_t)clv__kernel_thread_limit(y->dims[0] * clv__dims_count(y, 2, y->rank));
  bool fits = clv__multiply((size_t)x->dims[1], (size_t)clv__dims_count(w, 2, w->rank), &column) &&
              clv__multiply(column, threads, &total) && clv__add(total, weights, &total) &&
              clv__add(total, (size_t)w->dims[0], &total) && clv__multiply(total, sizeof(double), &total);
  return fits ? total : SIZE_MAX;
}

/* Finds the input elements around a point and their interpolation weights. Returns their number. Elements outside are omitted,
 * because they are zero. */
static int corners_make(const deform *d, const double *point, int64_t *offsets, double *weights) {
  const int32_t spatial = d->window.spatial;
  int count = 1;
  offsets[0] = 0;
  weights[0] = 1;
  for (int32_t axis = 0; axis < spatial; ++axis) {
    const int64_t size = d->window.input[axis];
    if (!(point[axis] > -1 && point[axis] < (double)size)) return 0;
    const double low = floor(point[axis]), part = point[axis] - low;
    const int64_t at = (int64_t)low;
    int next = 0;
    int64_t old_offsets[MAX_CORNERS];
    double old_weights[MAX_CORNERS];
    memcpy(old_offsets, offsets, (size_t)count * sizeof *offsets);
    memcpy(old_weights, weights, (size_t)count * sizeof *weights);
    for (int i = 0; i < count; ++i) {
      for (int side = 0; side < 2; ++side) {
        if (at + side < 0 || at + side >= size) continue;
        offsets[next] = old_offsets[i] * size + at + side;
        weights[next++] = old_weights[i] * (side == 0 ? 1 - part : part);
      }
    }
    count = next;
  }
  return count;
}

/* Reads tap `tap` of an offset group from all channels of the group, for output position `position`. */
static void tap_read(const deform *d, int64_t n, int64_t group, int64_t tap, int64_t position, double *column) {
  const clv__window *w = &d->window;
  const int64_t members = d->channels / d->offset_groups, taps = d->offset_groups * d->taps;
  double point[CLV__MAX_SPATIAL], weights[MAX_CORNERS], mask = 1;
  int64_t offsets[MAX_CORNERS], at_tap = tap, at_output = position;
  for (int32_t axis = w->spatial - 1; axis >= 0; --axis) {
    int64_t row = ((n * taps + group * d->taps + tap) * w->spatial + axis) * d->positions;
    point[axis] = (double)(at_output % w->output[axis] * w->stride[axis] - w->pad_begin[axis] +
                           at_tap % w->kernel[axis] * w->dilation[axis]) +
                  clv__tensor_get(d->offset, (size_t)(row + position));
    at_output /= w->output[axis];
    at_tap /= w->kernel[axis];
  }
  if (d->mask != NULL) mask = clv__tensor_get(d->mask, (size_t)((n * taps + group * d->taps + tap) * d->positions + position));
  const int count = corners_make(d, point, offsets, weights);
  for (int64_t c = group * members; c < (group + 1) * members; ++c) {
    const int64_t base = (n * d->channels + c) * d->plane;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      size_t at = (size_t)(base + offsets[i]);
      sum += weights[i] * (d->x->dtype == CLV_F32 ? (double)((const float *)d->x->data)[at] : clv__tensor_get(d->x, at));
    }
    column[c * d->taps + tap] = sum * mask;
  }
}

static void position_run(const deform *d, int64_t n, int64_t position, double *column) {
  const int64_t length = d->channels / d->groups * d->taps, members = d->outputs / d->groups;
  for (int64_t group = 0; group < d->offset_groups; ++group) {
    for (int64_t tap = 0; tap < d->taps; ++tap) tap_read(d, n, group, tap, position, column);
  }
  for (int64_t o = 0; o < d->outputs; ++o) {
    const double *weights = d->weights + o * length, *from = column + o / members * length;
    double sum = d->bias != NULL ? d->bias[o] : 0;
    for (int64_t i = 0; i < length; ++i) sum += weights[i] * from[i];
    clv__row_from_f64(d->y->dtype, d->y->data, (n * d->outputs + o) * d->positions + position, 1, &sum);
  }
}

clv_status clv__kernel_deform(const clv__kernel_call *call) {
  const clv_tensor *w = &call->inputs[1];
  deform d;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(deform_read(call, &d));
  const int64_t count = clv__dims_count(w, 0, w->rank), tasks = d.y->dims[0] * d.positions;
  double *weights = call->scratch, *bias = weights + count, *columns = bias + d.outputs;
  clv__row_to_f64(w->dtype, w->data, 0, count, weights);
  d.weights = weights;
  if (has(call, 3)) {
    clv__row_to_f64(call->inputs[3].dtype, call->inputs[3].data, 0, d.outputs, bias);
    d.bias = bias;
  }
  const int threads = clv__kernel_threads(tasks, (double)tasks * (double)(count + 8 * d.channels * d.taps));
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    double *column = columns + clv__kernel_thread_index() * d.channels * d.taps;
    position_run(&d, task / d.positions, task % d.positions, column);
  }
  return CLV_OK;
}

bool clv__kernel_deform_accepts(const clv__kernel_call *call, char reason[160]) {
  for (uint32_t i = 1; i < call->input_count; ++i) {
    clv_dtype dtype = call->inputs[i].dtype;
    if (dtype == call->inputs[0].dtype || (i > 2 && dtype == CLV_DTYPE_NONE)) continue;
    snprintf(reason, 160, "input %u of dtype %s is not supported", (unsigned)i, clv_dtype_name(dtype));
    return false;
  }
  return true;
}
