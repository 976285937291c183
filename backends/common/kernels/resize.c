/* Resize and Upsample. Each axis has a table that lists, per output position, the input positions to read and their weights.
 * Linear and cubic interpolation are separable, so the axes are applied one after another, in f64, to one slice at a time. */
#include "operators/common/resize.h"
#include "backends/common/kernels/families.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

typedef struct table {
  int64_t *index;  /* [output][taps]; -1 if outside the input: use the extrapolation value */
  double *weights; /* [output][taps]; not used for nearest */
} table;

typedef struct resize {
  clv__resize of; /* parameters of the node */
  table tables[CLV_MAX_RANK];
  /* `outer`: number of slices; `slice_input`: elements per input slice; `slice_largest`: elements per slice at its largest, as
   * the axes are resized one after another */
  int64_t outer, slice_input, slice_largest;
  int32_t first; /* the first axis of a slice, which has all axes from this one on */
} resize;

static clv_status resize_read(const clv__kernel_call *call, resize *r) {
  const clv__resize_node node = {.op = call->op,
                                 .opset = call->opset,
                                 .attributes = call->attributes,
                                 .inputs = call->inputs,
                                 .input_count = call->input_count,
                                 .output = &call->outputs[0]};
  memset(r, 0, sizeof *r);
  return clv__resize_read(&node, &r->of, call->error);
}

/* Finds the first axis to resize, and the number and sizes of the slices. */
static void resize_measure(resize *r) {
  const clv__resize_axis *axes = r->of.axes;
  r->first = r->of.rank;
  for (int32_t i = r->of.rank - 1; i >= 0; --i) {
    if (!axes[i].identity) r->first = i;
  }
  r->outer = r->slice_input = 1;
  for (int32_t i = 0; i < r->of.rank; ++i) *(i < r->first ? &r->outer : &r->slice_input) *= axes[i].input;
  int64_t size = r->slice_largest = r->slice_input;
  for (int32_t i = r->of.rank - 1; i >= r->first; --i) {
    size = size / axes[i].input * axes[i].output;
    if (size > r->slice_largest) r->slice_largest = size;
  }
}

/* tables_bytes() is the size of all tables, slice_bytes() the scratch of one thread. Both are SIZE_MAX if the size overflows. */
static size_t tables_bytes(const resize *r) {
  size_t total = 0, part;
  for (int32_t i = 0; i < r->of.rank; ++i) {
    const clv__resize_axis *a = &r->of.axes[i];
    if (!clv__multiply((size_t)a->output, (size_t)a->taps, &part) || !clv__multiply(part, 16, &part) ||
        !clv__add(total, part, &total)) {
      return SIZE_MAX;
    }
  }
  return total > SIZE_MAX - 64 ? SIZE_MAX : clv__align_up(total, 64);
}

static size_t slice_bytes(const resize *r) {
  size_t bytes;
  if (r->of.mode == CLV__RESIZE_NEAREST) return 0;
  return clv__multiply((size_t)r->slice_largest, 2 * sizeof(double), &bytes) && bytes < SIZE_MAX - 64 ? clv__align_up(bytes, 64)
                                                                                                      : SIZE_MAX;
}

static size_t resize_scratch_bytes(const clv__kernel_call *call) {
  resize r;
  size_t total;
  if (clv__tensor_is_empty(&call->inputs[0]) || clv__tensor_is_empty(&call->outputs[0])) return 0;
  if (resize_read(call, &r) != CLV_OK) return 0;
  resize_measure(&r);
  size_t tables = tables_bytes(&r), slice = slice_bytes(&r);
  if (tables == SIZE_MAX || slice == SIZE_MAX) return SIZE_MAX;
  return clv__multiply(slice, (size_t)clv__kernel_thread_limit(r.outer), &total) && clv__add(total, tables, &total) ? total
                                                                                                                    : SIZE_MAX;
}

static void tables_fill(resize *r, char *scratch) {
  for (int32_t i = 0; i < r->of.rank; ++i) {
    const clv__resize_axis *a = &r->of.axes[i];
    table *t = &r->tables[i];
    t->index = (int64_t *)scratch;
    t->weights = (double *)(t->index + a->output * a->taps);
    scratch = (char *)(t->weights + a->output * a->taps);
    for (int64_t o = 0; o < a->output; ++o) clv__resize_taps(&r->of, a, o, t->index + o * a->taps, t->weights + o * a->taps);
  }
}

/* Resizes a slice, viewed as [before, input, after], along one axis. */
static void axis_apply(const resize *r, int32_t axis, int64_t before, int64_t after, const double *in, double *out) {
  const clv__resize_axis *a = &r->of.axes[axis];
  const table *t = &r->tables[axis];
  for (int64_t b = 0; b < before; ++b, in += a->input * after) {
    for (int64_t o = 0; o < a->output; ++o, out += after) {
      const int64_t *index = t->index + o * a->taps;
      const double *weights = t->weights + o * a->taps;
      for (int64_t i = 0; i < after; ++i) out[i] = index[0] < 0 ? r->of.extrapolation : 0;
      for (int64_t k = 0; index[0] >= 0 && k < a->taps; ++k) {
        const double *row = in + index[k] * after;
        double w = weights[k];
        if (w == 0) continue;
        for (int64_t i = 0; i < after; ++i) out[i] += w * row[i];
      }
    }
  }
}

static void slice_interpolate(const resize *r, const clv__kernel_call *call, int64_t slice, double *from, double *to) {
  clv__row_to_f64(call->inputs[0].dtype, call->inputs[0].data, slice * r->slice_input, r->slice_input, from);
  int64_t before = r->slice_input, after = 1;
  for (int32_t i = r->of.rank - 1; i >= r->first; --i) {
    const clv__resize_axis *a = &r->of.axes[i];
    before /= a->input;
    if (!a->identity) {
      axis_apply(r, i, before, after, from, to);
      double *swapped = from;
      from = to;
      to = swapped;
    }
    after *= a->output;
  }
  if ((CLV__DTYPE_BIT(call->outputs[0].dtype) & CLV__DTYPES_FLOAT) == 0) {
    for (int64_t i = 0; i < after; ++i) from[i] = rint(from[i]);
  }
  clv__row_from_f64(call->outputs[0].dtype, call->outputs[0].data, slice * after, after, from);
}

/* Resizes a slice by copying elements (nearest), which is exact for every dtype. */
static void slice_copy(const resize *r, const clv__kernel_call *call, int64_t slice, const void *outside) {
  size_t size = clv_dtype_size_bytes(call->inputs[0].dtype);
  const clv__resize_axis *axes = r->of.axes;
  const char *in = (const char *)call->inputs[0].data + (size_t)(slice * r->slice_input) * size;
  int64_t index[CLV_MAX_RANK] = {0}, count = 1;
  for (int32_t i = r->first; i < r->of.rank; ++i) count *= axes[i].output;
  char *out = (char *)call->outputs[0].data + (size_t)(slice * count) * size;
  const clv__resize_axis *last = &axes[r->of.rank - 1];
  const int64_t *last_index = r->tables[r->of.rank - 1].index;
  for (int64_t done = 0; done < count; done += last->output) {
    int64_t at = 0;
    bool missing = false;
    for (int32_t i = r->first; i < r->of.rank - 1; ++i) {
      int64_t position = r->tables[i].index[index[i]];
      missing = missing || position < 0;
      at = at * axes[i].input + position;
    }
    at *= last->input;
    for (int64_t o = 0; o < last->output; ++o, out += size) {
      const char *source = missing || last_index[o] < 0 ? outside : in + (size_t)(at + last_index[o]) * size;
      switch (size) {
        case 1:
          *out = *source;
          break;
        case 2:
          memcpy(out, source, 2);
          break;
        case 4:
          memcpy(out, source, 4);
          break;
        default:
          memcpy(out, source, 8);
          break;
      }
    }
    for (int32_t i = r->of.rank - 2; i >= r->first; --i) {
      if (++index[i] < axes[i].output) break;
      index[i] = 0;
    }
  }
}

static clv_status resize_run(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  resize r;
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  CLV__TRY(resize_read(call, &r));
  resize_measure(&r);
  if (r.first == r.of.rank) {
    memcpy(call->outputs[0].data, x->data, (size_t)clv__dims_product(x, 0, x->rank) * clv_dtype_size_bytes(x->dtype));
    return CLV_OK;
  }
  tables_fill(&r, call->scratch);
  char *scratch = (char *)call->scratch + tables_bytes(&r);
  uint64_t outside = 0;
  clv__row_from_f64(x->dtype, &outside, 0, 1, &r.of.extrapolation);
  size_t slice = slice_bytes(&r);
  int threads = clv__kernel_threads(r.outer, (double)r.outer * (double)r.slice_largest * 4);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t s = 0; s < r.outer; ++s) {
    if (clv__is_stopped(call->stop)) continue;
    double *from = (double *)(scratch + (size_t)clv__kernel_thread_index() * slice);
    if (r.of.mode == CLV__RESIZE_NEAREST) {
      slice_copy(&r, call, s, &outside);
    } else {
      slice_interpolate(&r, call, s, from, from + r.slice_largest);
    }
  }
  return CLV_OK;
}

const clv__fast_kernel clv__fast_resize[] = {
    {"", "Resize", resize_run, resize_scratch_bytes},
    {"", "Upsample", resize_run, resize_scratch_bytes},
    {.op = NULL},
};
