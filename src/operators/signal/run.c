/* DFT and STFT: each lane (the elements along the axis, or one frame) is read into f64, transformed, and written back. */
#include <stdio.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/signal/fourier.h"
#include "operators/signal/run.h"

static bool has(const clv__kernel_call *call, uint32_t input) {
  return input < call->input_count && call->inputs[input].dtype != CLV_DTYPE_NONE;
}

/* Reads the number in an input of one element. False if the input is absent or its data is unknown. */
static bool number_of(const clv__kernel_call *call, uint32_t input, int64_t *number) {
  if (!has(call, input) || call->inputs[input].data == NULL) return false;
  *number = clv__tensor_get_int(&call->inputs[input], 0);
  return true;
}

static bool is_list_dtype(clv_dtype dtype) {
  return dtype == CLV_I64 || dtype == CLV_I32;
}

static bool accepts_lengths(const clv__kernel_call *call, char reason[160]) {
  for (uint32_t i = 1; i < call->input_count; ++i) {
    clv_dtype dtype = call->inputs[i].dtype;
    bool is_window = i == 2 && strcmp(call->op, "STFT") == 0;
    bool fits = is_window ? dtype == call->inputs[0].dtype : is_list_dtype(dtype);
    if (dtype == CLV_DTYPE_NONE || fits) continue;
    snprintf(reason, 160, "input %u of dtype %s is not supported", (unsigned)i, clv_dtype_name(dtype));
    return false;
  }
  return true;
}

/* The bytes of scratch: the tables and `extra` elements, which all threads read, and for each thread a lane and the transform's
 * work area. */
static size_t transform_bytes(int64_t length, size_t extra, int64_t lanes) {
  size_t tables = clv__fourier_table_count(length), work = clv__fourier_work_count(length), total;
  if (tables == SIZE_MAX) return SIZE_MAX;
  bool fits = clv__multiply(work + (size_t)length, (size_t)clv__kernel_thread_limit(lanes), &total) &&
              clv__add(total, tables + extra, &total) && clv__multiply(total, sizeof(clv__complex), &total);
  return fits ? total : SIZE_MAX;
}

/* The most that transform_bytes() returns for lengths up to `longest`. */
static size_t transform_bytes_most(int64_t longest, size_t extra, int64_t lanes) {
  size_t own = transform_bytes(longest, extra, lanes), most;
  int64_t power = 64;
  if (own == SIZE_MAX) return SIZE_MAX;
  while (power < longest) power *= 2;
  most = transform_bytes(power - 1, extra, lanes); /* Bluestein's algorithm just below a power of two needs the most */
  return most > own ? most : own;
}

/* ---- DFT ------------------------------------------------------------------------------------------------------------------- */

typedef struct dft {
  int32_t axis;
  int64_t length; /* length of the transform */
  bool inverse, onesided;
} dft;

/* Reads the attributes and inputs. False if the axis or the length is an input whose data is unknown. */
static bool dft_read(const clv__kernel_call *call, dft *d) {
  const clv_tensor *x = &call->inputs[0];
  int64_t axis = call->opset < 20 ? clv__attribute_int(call->attributes, "axis", 1) : -2;
  d->inverse = clv__attribute_int(call->attributes, "inverse", 0) != 0;
  d->onesided = clv__attribute_int(call->attributes, "onesided", 0) != 0;
  if (call->opset >= 20 && has(call, 2) && !number_of(call, 2, &axis)) return false;
  d->axis = (int32_t)(axis < 0 ? axis + x->rank : axis);
  if (has(call, 1)) return number_of(call, 1, &d->length);
  d->length = d->inverse && d->onesided ? 2 * (x->dims[d->axis] - 1) : x->dims[d->axis];
  return true;
}

/* The bytes of scratch; an upper bound if the axis or the length is not known yet. */
static size_t scratch_dft(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  dft d;
  if (!clv__tensor_is_static(x) || !clv__tensor_is_static(y) || x->rank < 2 || clv__tensor_is_empty(y)) return 0;
  if (dft_read(call, &d)) {
    if (d.axis < 0 || d.axis >= x->rank - 1 || d.length < 1) return 0; /* the kernel will reject the call */
    int64_t lanes = clv__dims_count(y, 0, d.axis) * clv__dims_count(y, d.axis + 1, y->rank - 1);
    return transform_bytes(d.length, 0, lanes);
  }
  int64_t longest = 1;
  for (int32_t i = 0; i + 1 < x->rank; ++i) {
    if (2 * y->dims[i] > longest) longest = 2 * y->dims[i];
  }
  return transform_bytes_most(longest, 0, CLV__KERNEL_MAX_THREADS);
}

/* Fills `to` with `length` elements: first those of a lane of `present` elements, `step` apart in x, then zeros. */
static void lane_read(const clv_tensor *x, int64_t first, int64_t step, int64_t present, int64_t length, clv__complex *to) {
  const int64_t parts = x->dims[x->rank - 1], count = present < length ? present : length;
  for (int64_t i = 0; i < length; ++i) to[i] = (clv__complex){0, 0};
  for (int64_t i = 0; i < count; ++i) clv__row_to_f64(x->dtype, x->data, (first + i * step) * parts, parts, &to[i].re);
}

static void lane_write(const clv_tensor *y, int64_t first, int64_t step, int64_t count, const clv__complex *from) {
  const int64_t parts = y->dims[y->rank - 1];
  for (int64_t i = 0; i < count; ++i) clv__row_from_f64(y->dtype, y->data, (first + i * step) * parts, parts, &from[i].re);
}

/* Fills in the second half of the spectrum of a real signal, the conjugate of the first half. */
static void complete_spectrum(clv__complex *data, int64_t length) {
  data[0].im = 0;
  if (length % 2 == 0) data[length / 2].im = 0;
  for (int64_t k = length / 2 + 1; k < length; ++k) data[k] = (clv__complex){data[length - k].re, -data[length - k].im};
}

static clv_status dft_check(const clv__kernel_call *call, const dft *d) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  if (d->axis < 0 || d->axis >= x->rank - 1) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "axis %d cannot be transformed: expected an axis of an input of rank %d other than its last",
                          (int)d->axis, (int)x->rank);
  }
  int64_t wanted = d->onesided && !d->inverse ? d->length / 2 + 1 : d->length;
  if (d->length >= 1 && wanted == y->dims[d->axis]) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "a transform of length %lld does not produce %lld element%s",
                        (long long)d->length, (long long)y->dims[d->axis], CLV__S(y->dims[d->axis]));
}

static clv_status run_dft(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  dft d;
  clv__fourier fourier;
  if (clv__tensor_is_empty(y)) return CLV_OK;
  if (!dft_read(call, &d))
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "the transform's length or axis is not known");
  CLV__TRY(dft_check(call, &d));
  const int64_t outer = clv__dims_count(y, 0, d.axis), inner = clv__dims_count(y, d.axis + 1, y->rank - 1), lanes = outer * inner;
  const int64_t present = x->dims[d.axis], kept = y->dims[d.axis], work_count = (int64_t)clv__fourier_work_count(d.length);
  const bool real = d.inverse && d.onesided;
  clv__complex *tables = call->scratch, *rooms = tables + clv__fourier_table_count(d.length);
  clv__fourier_init(&fourier, d.length, call->stop, tables);
  const int threads = clv__kernel_threads(lanes, 60.0 * (double)lanes * (double)d.length);
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (clv__is_stopped(call->stop)) continue;
    clv__complex *data = rooms + clv__kernel_thread_index() * (work_count + d.length), *work = data + d.length;
    const int64_t o = lane / inner, i = lane % inner;
    lane_read(x, o * present * inner + i, inner, present, real ? d.length / 2 + 1 : d.length, data);
    if (real) complete_spectrum(data, d.length);
    clv__fourier_run(&fourier, data, d.inverse, work);
    lane_write(y, o * kept * inner + i, inner, kept, data);
  }
  return CLV_OK;
}

/* ---- STFT ------------------------------------------------------------------------------------------------------------------ */

/* The length of a frame; 0 if it is not known. */
static int64_t frame_length(const clv__kernel_call *call) {
  int64_t length;
  if (has(call, 2)) return call->inputs[2].dims[0];
  if (has(call, 3)) return number_of(call, 3, &length) ? length : 0;
  return call->inputs[0].dims[1];
}

static size_t scratch_stft(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  if (!clv__tensor_is_static(x) || !clv__tensor_is_static(y) || clv__tensor_is_empty(y)) return 0;
  int64_t length = frame_length(call), lanes = y->dims[0] * y->dims[1];
  if (length > 0) return transform_bytes(length, (size_t)(length + 1) / 2, lanes);
  int64_t longest = 2 * y->dims[2];
  return transform_bytes_most(longest, (size_t)(longest + 1) / 2 + 1, lanes);
}

static clv_status run_stft(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const clv_tensor *window = has(call, 2) ? &call->inputs[2] : NULL;
  if (clv__tensor_is_empty(y)) return CLV_OK;
  const int64_t length = frame_length(call), frames = y->dims[1], signal = x->dims[1], lanes = y->dims[0] * frames;
  int64_t step = 0;
  if (!number_of(call, 1, &step) || step < 1 || length < 1 || length > signal || frames > (signal - length) / step + 1 ||
      y->dims[2] > length) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "%lld frames of length %lld with step %lld do not fit a signal of %lld element%s", (long long)frames,
                          (long long)length, (long long)step, (long long)signal, CLV__S(signal));
  }
  clv__fourier fourier;
  const int64_t work_count = (int64_t)clv__fourier_work_count(length);
  clv__complex *tables = call->scratch, *shared = tables + clv__fourier_table_count(length), *rooms = shared + (length + 1) / 2;
  double *weights = &shared->re;
  clv__fourier_init(&fourier, length, call->stop, tables);
  for (int64_t i = 0; i < length; ++i) weights[i] = 1;
  if (window != NULL) clv__row_to_f64(window->dtype, window->data, 0, length, weights);
  const int threads = clv__kernel_threads(lanes, 60.0 * (double)lanes * (double)length);
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (clv__is_stopped(call->stop)) continue;
    clv__complex *data = rooms + clv__kernel_thread_index() * (work_count + length), *work = data + length;
    lane_read(x, lane / frames * signal + lane % frames * step, 1, length, length, data);
    for (int64_t i = 0; i < length; ++i) data[i] = (clv__complex){data[i].re * weights[i], data[i].im * weights[i]};
    clv__fourier_run(&fourier, data, false, work);
    lane_write(y, lane * y->dims[2], 1, y->dims[2], data);
  }
  return CLV_OK;
}

#define WHOLE (CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64))

const clv__kernel clv__kernels_signal[] = {
    {"", "DFT", CLV__DTYPES_FLOAT, run_dft, scratch_dft, accepts_lengths},
    {"", "STFT", CLV__DTYPES_FLOAT, run_stft, scratch_stft, accepts_lengths},
    {"", "HannWindow", WHOLE, clv__kernel_window, NULL, clv__kernel_window_accepts},
    {"", "HammingWindow", WHOLE, clv__kernel_window, NULL, clv__kernel_window_accepts},
    {"", "BlackmanWindow", WHOLE, clv__kernel_window, NULL, clv__kernel_window_accepts},
    {"", "MelWeightMatrix", WHOLE, clv__kernel_mel, NULL, clv__kernel_mel_accepts},
    {.op = NULL},
};
