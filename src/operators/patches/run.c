/* Col2Im, MaxUnpool, CenterCropPad: elements are put into larger or smaller tensors; all other elements are zero. */
#include "operators/patches/run.h"

#include <stdio.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

/* ---- Col2Im ---- */

clv_status clv__patches_window(clv__attributes attributes, int32_t spatial, const int64_t *image, const int64_t *block,
                               clv__window *window, clv_error *error) {
  CLV__TRY(clv__window_read(attributes, spatial, block, window, error));
  return clv__window_resolve(window, image, error);
}

typedef struct fold {
  const clv_tensor *x, *y;
  clv__window window;
  int64_t taps, blocks, plane; /* number of elements of a block; of blocks per channel; of elements of an image's channel */
  bool whole;                  /* the dtype is an integer type, so the sums are computed in integers */
} fold;

/* The index, along one axis, of the block whose tap `tap` covers element `at`; -1 if there is none. */
static int64_t block_of(const clv__window *w, int32_t axis, int64_t at, int64_t tap) {
  int64_t first = at + w->pad_begin[axis] - tap * w->dilation[axis];
  if (first < 0 || first % w->stride[axis] != 0) return -1;
  first /= w->stride[axis];
  return first < w->output[axis] ? first : -1;
}

/* Computes one element of plane `plane`: the sum of all column elements that belong to it. */
static void fold_element(const fold *f, int64_t plane, int64_t element) {
  const clv__window *w = &f->window;
  int64_t at[CLV__MAX_SPATIAL], rest = element, sum = 0;
  double real = 0;
  for (int32_t i = w->spatial - 1; i >= 0; --i) {
    at[i] = rest % w->input[i];
    rest /= w->input[i];
  }
  for (int64_t tap = 0; tap < f->taps; ++tap) {
    int64_t block = 0, stride = 1;
    rest = tap;
    for (int32_t i = w->spatial - 1; i >= 0 && block >= 0; --i) {
      const int64_t own = block_of(w, i, at[i], rest % w->kernel[i]);
      rest /= w->kernel[i];
      block = own < 0 ? -1 : block + own * stride;
      stride *= w->output[i];
    }
    if (block < 0) continue;
    const size_t from = (size_t)((plane * f->taps + tap) * f->blocks + block);
    if (f->whole)
      sum = (int64_t)((uint64_t)sum + (uint64_t)clv__tensor_get_int(f->x, from)); /* wraps, like sums of integers */
    else
      real += clv__tensor_get(f->x, from);
  }
  if (f->whole)
    clv__row_from_i64(f->y->dtype, f->y->data, plane * f->plane + element, 1, &sum);
  else
    clv__row_from_f64(f->y->dtype, f->y->data, plane * f->plane + element, 1, &real);
}

static clv_status run_col2im(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0], *block = &call->inputs[2];
  fold f = {.x = x, .y = y, .taps = 1, .blocks = 1, .whole = (CLV__DTYPE_BIT(x->dtype) & CLV__DTYPES_INTEGER) != 0};
  int64_t sizes[CLV__MAX_SPATIAL];
  if (clv__tensor_is_empty(y)) return CLV_OK;
  const int32_t spatial = y->rank - 2;
  for (int32_t i = 0; i < spatial; ++i) sizes[i] = clv__tensor_get_int(block, (size_t)i);
  CLV__TRY(clv__patches_window(call->attributes, spatial, y->dims + 2, sizes, &f.window, call->error));
  bool fits = true;
  for (int32_t i = 0; i < spatial; ++i) {
    fits = fits && !__builtin_mul_overflow(f.taps, sizes[i], &f.taps) &&
           !__builtin_mul_overflow(f.blocks, f.window.output[i], &f.blocks);
  }
  int64_t rows;
  if (!fits || __builtin_mul_overflow(f.taps, y->dims[1], &rows) || rows != x->dims[1] || f.blocks != x->dims[2]) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "dimensions 1 and 2 of the input, %lld and %lld, do not fit %lld blocks of %lld element%s",
                          (long long)x->dims[1], (long long)x->dims[2], (long long)f.blocks, (long long)f.taps, CLV__S(f.taps));
  }
  f.plane = clv__dims_count(y, 2, y->rank);
  const int64_t total = clv__dims_count(y, 0, y->rank);
  const int threads = clv__kernel_threads(total, 8.0 * (double)total * (double)f.taps);
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t i = 0; i < total; ++i) {
    if (!clv__is_stopped(call->stop)) fold_element(&f, i / f.plane, i % f.plane);
  }
  return CLV_OK;
}

static bool accepts_col2im(const clv__kernel_call *call, char reason[160]) {
  for (uint32_t i = 1; i < 3; ++i) {
    if (call->inputs[i].dtype == CLV_I64) continue;
    snprintf(reason, 160, "input %u of dtype %s is not supported", (unsigned)i, clv_dtype_name(call->inputs[i].dtype));
    return false;
  }
  return true;
}

/* ---- MaxUnpool ---- */

clv_status clv__patches_unpooled(clv__attributes attributes, const clv_tensor *x, int64_t *dims, clv_error *error) {
  clv__window w;
  CLV__TRY(clv__window_read(attributes, x->rank - 2, NULL, &w, error));
  for (int32_t i = 0; i < 2; ++i) dims[i] = x->dims[i];
  for (int32_t i = 0; i < w.spatial; ++i) {
    const int64_t own = x->dims[i + 2];
    int64_t size;
    dims[i + 2] = CLV_DIM_UNKNOWN;
    if (own < 0) continue;
    /* attributes are at most 2^31, so the sums below cannot overflow */
    if (__builtin_mul_overflow(own - 1, w.stride[i], &size) || size > INT64_C(1) << 60) {
      return clv__error_set(error, CLV_INVALID_MODEL,
                            "axis %d: input %lld with stride %lld gives an output larger than any tensor", (int)i + 2,
                            (long long)own, (long long)w.stride[i]);
    }
    size += w.kernel[i] - w.pad_begin[i] - w.pad_end[i];
    if (size < 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "axis %d of the output would have the negative size %lld", (int)i + 2,
                            (long long)size);
    }
    dims[i + 2] = size;
  }
  return CLV_OK;
}

static clv_status run_max_unpool(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *indices = &call->inputs[1], *y = &call->outputs[0];
  const size_t size = clv_dtype_size_bytes(x->dtype);
  clv_tensor counted = *y; /* the shape that the indices refer to; the output may be larger, and is zero elsewhere */
  size_t size_bytes, limit;
  CLV__TRY(clv__patches_unpooled(call->attributes, x, counted.dims, call->error));
  if (!clv__tensor_size_bytes(y, &size_bytes) || size_bytes == 0) return CLV_OK;
  if (!clv__tensor_count(&counted, &limit)) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "the indices refer to more elements than a tensor can have");
  }
  memset(y->data, 0, size_bytes);
  const int64_t count = clv__dims_count(x, 0, x->rank);
  for (int64_t i = 0; i < count; ++i) { /* in order, so that of several elements with the same index the last one is kept */
    int64_t index = ((const int64_t *)indices->data)[i], to = 0, stride = 1;
    if (index < 0 || (uint64_t)index >= limit) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "index %lld is out of range for %zu element%s", (long long)index,
                            limit, CLV__S(limit));
    }
    for (int32_t d = y->rank - 1; d >= 0; --d) {
      to += index % counted.dims[d] * stride;
      index /= counted.dims[d];
      stride *= y->dims[d];
    }
    memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)i * size, size);
  }
  return CLV_OK;
}

static bool accepts_max_unpool(const clv__kernel_call *call, char reason[160]) {
  if (call->inputs[1].dtype == CLV_I64) return true;
  snprintf(reason, 160, "indices of dtype %s are not supported", clv_dtype_name(call->inputs[1].dtype));
  return false;
}

/* ---- CenterCropPad ---- */

clv_status clv__patches_axes(clv__attributes attributes, int32_t rank, int32_t *axes, int32_t *count, clv_error *error) {
  size_t given;
  const int64_t *list = clv__attribute_ints(attributes, "axes", &given);
  bool seen[CLV_MAX_RANK] = {false};
  *count = rank;
  for (int32_t i = 0; i < rank; ++i) axes[i] = i;
  if (list == NULL) return CLV_OK;
  if (given > (size_t)rank)
    return clv__error_set(error, CLV_INVALID_MODEL, "axes has %zu element%s, but the input has rank %d", given, CLV__S(given),
                          (int)rank);
  *count = (int32_t)given;
  for (int32_t i = 0; i < *count; ++i) {
    if (list[i] < -rank || list[i] >= rank || seen[list[i] < 0 ? list[i] + rank : list[i]]) {
      return clv__error_set(error, CLV_INVALID_MODEL, "axes[%d] is %lld, which is repeated, or out of range for rank %d", (int)i,
                            (long long)list[i], (int)rank);
    }
    axes[i] = (int32_t)(list[i] < 0 ? list[i] + rank : list[i]);
    seen[axes[i]] = true;
  }
  return CLV_OK;
}

static clv_status run_crop_pad(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const size_t size = clv_dtype_size_bytes(x->dtype);
  int64_t from[CLV_MAX_RANK], to[CLV_MAX_RANK], length[CLV_MAX_RANK], at[CLV_MAX_RANK] = {0}, rows = 1;
  size_t size_bytes;
  if (!clv__tensor_size_bytes(y, &size_bytes) || size_bytes == 0) return CLV_OK;
  memset(y->data, 0, size_bytes);
  if (clv__tensor_is_empty(x)) return CLV_OK;
  const int32_t last = x->rank - 1;
  if (last < 0) {
    memcpy(y->data, x->data, size);
    return CLV_OK;
  }
  for (int32_t i = 0; i <= last; ++i) { /* if the difference is odd, the smaller half is at the beginning */
    const int64_t in = x->dims[i], out = y->dims[i];
    from[i] = in > out ? (in - out) / 2 : 0;
    to[i] = out > in ? (out - in) / 2 : 0;
    length[i] = in < out ? in : out;
    if (i < last) rows *= length[i];
  }
  for (int64_t row = 0; row < rows; ++row) {
    int64_t source = 0, target = 0;
    for (int32_t i = 0; i <= last; ++i) {
      source = source * x->dims[i] + from[i] + at[i];
      target = target * y->dims[i] + to[i] + at[i];
    }
    memcpy((char *)y->data + (size_t)target * size, (const char *)x->data + (size_t)source * size, (size_t)length[last] * size);
    for (int32_t i = last - 1; i >= 0 && ++at[i] == length[i]; --i) at[i] = 0;
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_patches[] = {
    {"", "Col2Im", CLV__DTYPES_NUMBER, run_col2im, NULL, accepts_col2im},
    {"", "MaxUnpool", CLV__DTYPES_FLOAT, run_max_unpool, NULL, accepts_max_unpool},
    {"", "CenterCropPad", CLV__DTYPES_ANY, run_crop_pad, NULL, NULL},
    {.op = NULL},
};
