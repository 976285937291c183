/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: one scale (and zero point) per tensor, per slice of an axis, or per
 * block. */
#include <math.h>
#include <stdio.h>

#include "backends/common/kernels/families.h"
#include "base/tensor/small.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

enum { BLOCK = 256, RUN = 4096 };

/* The tensor as `rows` runs of contiguous elements. A run has one scale (scale_step 0) or one per element (scale_step 1). */
typedef struct runs {
  const clv_tensor *x, *scale, *zero, *y; /* zero may be NULL */
  int64_t outer, length, inner;           /* `length`: extent of the axis of the scales */
  int64_t block, scale_length;            /* elements per scale, and number of scales, along the axis */
  bool whole;                             /* one scale for the whole tensor; `block`: the elements per run */
  int64_t total, rows;
  int64_t scale_step;
  clv_dtype precision; /* the dtype to which x / scale is rounded */
  bool saturate;       /* whether small floats saturate */
  bool direct;         /* f32 to or from bytes with one scale for the whole tensor: process RUN elements at a time, not BLOCK */
  const clv__stop *stop;
} runs;

static clv_status runs_make(const clv__kernel_call *call, runs *r) {
  const clv_tensor *x = &call->inputs[0], *scale = &call->inputs[1];
  const clv_tensor *zero = call->input_count > 2 && call->inputs[2].dtype != CLV_DTYPE_NONE ? &call->inputs[2] : NULL;
  *r = (runs){.x = x, .scale = scale, .zero = zero, .y = &call->outputs[0], .inner = 1, .block = 1, .stop = call->stop};
  r->total = clv__dims_product(x, 0, x->rank);
  int64_t scales = clv__dims_product(scale, 0, scale->rank);
  if (zero != NULL && clv__dims_product(zero, 0, zero->rank) != scales) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "scale and zero point must have the same shape");
  }
  if (r->total == 0) return CLV_OK; /* nothing to do, whatever the number of scales */
  if (scales == 1) {
    r->whole = true;
    r->outer = 1;
    r->length = r->total;
    r->block = RUN;
    r->rows = (r->total + RUN - 1) / RUN;
    return CLV_OK;
  }
  const int64_t given_axis = clv__attribute_int(call->attributes, "axis", 1);
  int64_t axis = given_axis < 0 ? given_axis + x->rank : given_axis;
  if (x->rank == 1) axis = 0;
  if (axis < 0 || axis >= x->rank) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "axis: %lld out of range for rank %d", (long long)given_axis,
                          (int)x->rank);
  }
  r->outer = clv__dims_product(x, 0, (int32_t)axis);
  r->length = x->dims[axis];
  r->inner = clv__dims_product(x, (int32_t)axis + 1, x->rank);
  bool blocked = scale->rank == x->rank && x->rank > 1;
  r->scale_length = scale->dims[blocked ? axis : 0];
  if (blocked) {
    int64_t given = clv__attribute_int(call->attributes, "block_size", 0);
    r->block = given > 0 ? given : r->scale_length > 0 ? (r->length + r->scale_length - 1) / r->scale_length : 1;
  }
  bool fits = r->block > 0 && r->scale_length == (r->length + r->block - 1) / r->block &&
              scales == (blocked ? r->outer * r->scale_length * r->inner : r->scale_length);
  if (!fits) {
    char scale_text[96], x_text[96];
    clv__tensor_text(scale, scale_text, sizeof scale_text);
    clv__tensor_text(x, x_text, sizeof x_text);
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "scale, %s, does not fit input %s (axis %lld, block size %lld)",
                          scale_text, x_text, (long long)axis, (long long)r->block);
  }
  /* If the axis is the innermost, runs lie along it. Otherwise they lie along the axes inside it. */
  r->scale_step = (r->inner == 1) != blocked;
  r->rows = r->inner > 1 ? r->outer * r->length : blocked ? r->outer * r->scale_length : r->outer;
  return CLV_OK;
}

/* Sets *first, *count and *scale to the start, the length and the first scale of run `row`. */
static void run_at(const runs *r, int64_t row, int64_t *first, int64_t *count, int64_t *scale) {
  if (r->inner > 1) {
    int64_t d = row % r->length;
    *first = row * r->inner;
    *count = r->inner;
    *scale = r->scale_step == 0 ? d : (row / r->length * r->scale_length + d / r->block) * r->inner;
  } else if (r->scale_step == 0) { /* blocks of the innermost axis, or of the whole tensor */
    int64_t blocks = r->whole ? r->rows : r->scale_length, at = row % blocks * r->block;
    *first = row / blocks * r->length + at;
    *count = r->length - at < r->block ? r->length - at : r->block;
    *scale = r->whole ? 0 : row;
  } else {
    *first = row * r->length;
    *count = r->length;
    *scale = 0;
  }
}

static inline float round_to(clv_dtype dtype, float value) {
  if (dtype == CLV_F16) return clv__f16_widen(clv__f32_to_f16(value));
  return dtype == CLV_BF16 ? clv__bf16_to_f32(clv__f32_to_bf16(value)) : value;
}

/* Processes `count` elements from `first` on: at most RUN if r->direct is set, otherwise at most BLOCK. */
typedef void (*run_fn)(const runs *r, int64_t first, int64_t count, const float *scales, const double *zeros);

/* The smallest and the largest value of an integer dtype. */
static void target_range(clv_dtype dtype, float *low, float *high) {
  switch (dtype) {
    case CLV_U8:
      *low = 0, *high = UINT8_MAX;
      break;
    case CLV_I8:
      *low = INT8_MIN, *high = INT8_MAX;
      break;
    case CLV_U16:
      *low = 0, *high = UINT16_MAX;
      break;
    case CLV_I16:
      *low = INT16_MIN, *high = INT16_MAX;
      break;
    default: {
      int least, most;
      clv__packed_range(dtype, &least, &most);
      *low = (float)least, *high = (float)most;
      break;
    }
  }
}

/* Computes x / scale in the requested precision. */
static void divide(const runs *r, int64_t first, int64_t count, const float *scales, float *x) {
  clv__row_to_f32(r->x->dtype, r->x->data, first, count, x);
  for (int64_t i = 0; i < count; ++i) x[i] /= scales[i * r->scale_step];
  if (r->precision == CLV_F16 || r->precision == CLV_BF16) {
    for (int64_t i = 0; i < count; ++i) x[i] = round_to(r->precision, x[i]);
  }
}

static void quantize_small_float(const runs *r, int64_t first, int64_t count, const float *scales, const double *zeros) {
  float x[BLOCK];
  divide(r, first, count, scales, x);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t bits = clv__small_from_f64(r->y->dtype, (double)x[i] + zeros[i * r->scale_step], r->saturate);
    clv__small_store(r->y->dtype, r->y->data, (size_t)(first + i), bits);
  }
}

static const float round_by = 0x1.8p23f; /* adding and then subtracting this rounds numbers below 2^22 to nearest, ties to even */

/* Quantises f32 with one scale: to u8 if `offset` is 0, to i8 if `offset` is 128. Converting to unsigned bytes is faster, so i8
 * results are computed as u8, 128 higher, and then converted. */
static void quantize_whole(const float *x, uint8_t *y, int64_t count, float scale, float least, float most, float zero,
                           int offset) {
  for (int64_t i = 0; i < count; ++i) {
    float value = x[i] / scale;
    value = value != value ? 0 : value;
    value = value < least ? least : value;
    value = value > most ? most : value;
    y[i] = (uint8_t)((int32_t)(value + round_by - round_by + zero) + offset) ^ (uint8_t)offset;
  }
}

#ifdef __AVX512F__
/* Like quantize_whole(), but without a division: multiplies by the inverse of the scale and then corrects the error (Markstein
 * 1990). The resulting byte is the same, even if the quotient is next to a tie. If the correction yields NaN, because the number
 * is infinite, keeps the uncorrected product. Returns the number of elements processed. */
static int64_t quantize_inverse(const float *x, uint8_t *y, int64_t count, float scale, float least, float most, float zero) {
  const __m512 factor = _mm512_set1_ps(scale), inverse = _mm512_set1_ps(1.0f / scale);
  const __m512 low = _mm512_set1_ps(least), high = _mm512_set1_ps(most);
  const __m512i middle = _mm512_set1_epi32((int)zero);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512 number = _mm512_loadu_ps(x + i), product = _mm512_mul_ps(number, inverse);
    const __m512 quotient = _mm512_fmadd_ps(_mm512_fnmadd_ps(product, factor, number), inverse, product);
    const __mmask16 is_finite = _mm512_cmp_ps_mask(quotient, quotient, _CMP_ORD_Q);
    __m512 value = _mm512_mask_mov_ps(product, is_finite, quotient);
    value = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(product, product, _CMP_ORD_Q), value);
    value = _mm512_min_ps(_mm512_max_ps(value, low), high);
    const __m512i byte = _mm512_add_epi32(_mm512_cvtps_epi32(value), middle);
    _mm_storeu_si128((__m128i *)(void *)(y + i), _mm512_cvtepi32_epi8(byte));
  }
  return i;
}

#endif

static void dequantize_whole(const uint8_t *x, float *y, int64_t count, float scale, int zero, int offset) {
  for (int64_t i = 0; i < count; ++i) y[i] = (float)((int)(uint8_t)(x[i] ^ offset) - offset - zero) * scale;
}

static bool is_byte(clv_dtype dtype) {
  return dtype == CLV_U8 || dtype == CLV_I8;
}

static void quantize(const runs *r, int64_t first, int64_t count, const float *scales, const double *zeros) {
  float x[BLOCK], low, high;
  int64_t y[BLOCK];
  target_range(r->y->dtype, &low, &high);
  if (r->direct) {
    const float zero = (float)zeros[0], *from = (const float *)r->x->data + first;
    uint8_t *to = (uint8_t *)r->y->data + first;
    int64_t done = 0;
#ifdef __AVX512F__
    /* With scales in this range, overflow and underflow affect only quotients that are clamped or rounded to 0 anyway. */
    if (scales[0] >= 0x1p-60f && scales[0] <= 0x1p60f) {
      done = quantize_inverse(from, to, count, scales[0], low - zero, high - zero, zero);
    }
#endif
    quantize_whole(from + done, to + done, count - done, scales[0], low - zero, high - zero, zero,
                   r->y->dtype == CLV_I8 ? 128 : 0);
    return;
  }
  divide(r, first, count, scales, x);
  for (int64_t i = 0; i < count; ++i) { /* may clamp before rounding, because the bounds are integers */
    const float zero = (float)zeros[i * r->scale_step], least = low - zero, most = high - zero;
    float value = x[i] != x[i] ? 0 : x[i];
    value = value < least ? least : value;
    value = value > most ? most : value;
    y[i] = (int32_t)(value + round_by - round_by + zero);
  }
  clv__row_from_i64(r->y->dtype, r->y->data, first, count, y);
}

static void dequantize(const runs *r, int64_t first, int64_t count, const float *scales, const double *zeros) {
  double x[BLOCK];
  float y[BLOCK];
  if (r->direct) {
    dequantize_whole((const uint8_t *)r->x->data + first, (float *)r->y->data + first, count, scales[0], (int)zeros[0],
                     r->x->dtype == CLV_I8 ? 128 : 0);
    return;
  }
  clv__row_to_f64(r->x->dtype, r->x->data, first, count, x);
  for (int64_t i = 0; i < count; ++i) y[i] = (float)(x[i] - zeros[i * r->scale_step]) * scales[i * r->scale_step];
  clv__row_from_f32(r->y->dtype, r->y->data, first, count, y);
}

static void run_all(const runs *r, run_fn each) {
  /* If elements are smaller than a byte, neighbouring runs may share a byte, so one thread computes all runs. With one scale for
   * the whole tensor, this is not needed: its runs have RUN elements, which fill whole bytes. */
  const bool alone = !r->whole && clv__dtype_is_in(r->y->dtype, CLV__DTYPES_PACKED);
  const int64_t step = r->direct ? RUN : BLOCK;
  const int threads = alone ? 1 : clv__kernel_threads(r->rows, 4.0 * (double)r->total);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t row = 0; row < r->rows; ++row) {
    int64_t first, length, scale_first;
    float scales[BLOCK];
    double zeros[BLOCK] = {0};
    run_at(r, row, &first, &length, &scale_first);
    for (int64_t from = 0; from < length && !clv__is_stopped(r->stop); from += step) {
      int64_t count = length - from < step ? length - from : step;
      if (from == 0 || r->scale_step != 0) {
        int64_t wanted = r->scale_step != 0 ? count : 1, at = scale_first + (r->scale_step != 0 ? from : 0);
        clv__row_to_f32(r->scale->dtype, r->scale->data, at, wanted, scales);
        if (r->zero != NULL) clv__row_to_f64(r->zero->dtype, r->zero->data, at, wanted, zeros);
      }
      each(r, first + from, count, scales, zeros);
    }
  }
}

static clv_status run_quantize(const clv__kernel_call *call) {
  runs r;
  CLV__TRY(runs_make(call, &r));
  int64_t precision = clv__attribute_int(call->attributes, "precision", 0);
  r.precision = precision == 0 ? call->inputs[1].dtype : (clv_dtype)precision;
  r.saturate = clv__attribute_int(call->attributes, "saturate", 1) != 0;
  r.direct = r.whole && r.x->dtype == CLV_F32 && r.precision == CLV_F32 && is_byte(r.y->dtype);
  clv__small_clear(r.y);
  run_all(&r, clv__dtype_is_in(r.y->dtype, CLV__DTYPES_SMALL_FLOAT) ? quantize_small_float : quantize);
  return CLV_OK;
}

static clv_status run_dequantize(const clv__kernel_call *call) {
  runs r;
  CLV__TRY(runs_make(call, &r));
  r.direct = r.whole && is_byte(r.x->dtype) && r.y->dtype == CLV_F32;
  run_all(&r, dequantize);
  return CLV_OK;
}

/* Widens [*low, *high] to include all values that are not NaN. */
static void widen_range(const float *values, int64_t count, float *low, float *high) {
  enum { LANES = 64 };
  float lows[LANES], highs[LANES];
  const int64_t whole = count / LANES * LANES;
  for (int j = 0; j < LANES; ++j) lows[j] = *low, highs[j] = *high;
  for (int64_t i = 0; i < whole; i += LANES) {
    for (int j = 0; j < LANES; ++j) lows[j] = values[i + j] < lows[j] ? values[i + j] : lows[j];
    for (int j = 0; j < LANES; ++j) highs[j] = values[i + j] > highs[j] ? values[i + j] : highs[j];
  }
  for (int64_t i = whole; i < count; ++i) {
    lows[0] = values[i] < lows[0] ? values[i] : lows[0];
    highs[0] = values[i] > highs[0] ? values[i] : highs[0];
  }
  for (int j = 0; j < LANES; ++j) *low = lows[j] < *low ? lows[j] : *low;
  for (int j = 0; j < LANES; ++j) *high = highs[j] > *high ? highs[j] : *high;
}

/* The minimum and maximum of all values and zero. */
static void range_of(const float *values, int64_t total, const clv__stop *stop, float *low, float *high) {
  const int64_t pieces = (total + RUN - 1) / RUN;
  const int threads = clv__kernel_threads(pieces, (double)total);
  float least = 0, most = 0;
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : least) reduction(max : most) if (threads > 1)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    if (clv__is_stopped(stop)) continue;
    const int64_t first = piece * RUN, left = total - first;
    widen_range(values + first, left < RUN ? left : RUN, &least, &most);
  }
  *low = least;
  *high = most;
}

static clv_status run_dynamic(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  float low, high;
  range_of(x->data, clv__dims_product(x, 0, x->rank), call->stop, &low, &high);
  float scale = high > low ? (high - low) / 255 : 1;
  float zero = rintf(-low / scale);
  uint8_t zero_byte = zero > 0 ? zero < 255 ? (uint8_t)zero : 255 : 0; /* NaN yields 0 */
  clv_tensor scale_tensor = clv__tensor_make(CLV_F32, 0, NULL, &scale);
  clv_tensor zero_tensor = clv__tensor_make(CLV_U8, 0, NULL, &zero_byte);
  clv__kernel_call quantize_call = *call;
  const clv_tensor inputs[3] = {*x, scale_tensor, zero_tensor};
  quantize_call.inputs = inputs;
  quantize_call.input_count = 3;
  quantize_call.attributes = (clv__attributes){NULL, 0};
  if (call->output_count > 1 && call->outputs[1].dtype != CLV_DTYPE_NONE) *(float *)call->outputs[1].data = scale;
  if (call->output_count > 2 && call->outputs[2].dtype != CLV_DTYPE_NONE) *(uint8_t *)call->outputs[2].data = zero_byte;
  return call->outputs[0].dtype != CLV_DTYPE_NONE ? run_quantize(&quantize_call) : CLV_OK;
}

const clv__fast_kernel clv__fast_quantize[] = {
    {"", "QuantizeLinear", run_quantize, NULL},
    {"", "DequantizeLinear", run_dequantize, NULL},
    {"", "DynamicQuantizeLinear", run_dynamic, NULL},
    {.op = NULL},
};
