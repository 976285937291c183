/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: one scale (and zero point) per tensor, per index of an axis, or per
 * block. Computed in f32. A quotient is rounded to the precision that the node requests. */
#include <math.h>
#include <stdio.h>

#include "base/tensor/small.h"
#include "operators/common/element.h"
#include "operators/run.h"

/* The scales and zero points, and how to find those of an element. `whole`: there is one scale for the whole tensor. Otherwise
 * there is one per `block` elements along the axis; with `blocked`, each line along the axis has its own scales. */
typedef struct scales {
  const clv_tensor *scale, *zero; /* zero may be NULL */
  clv__lines lines;
  int64_t block, count; /* along the axis: number of elements that share a scale; number of scales */
  bool whole, blocked;
} scales;

static clv_status scales_read(const clv__kernel_call *call, scales *s) {
  const clv_tensor *x = &call->inputs[0], *scale = &call->inputs[1], *zero = clv__call_input(call, 2);
  const int64_t given = clv__dims_count(scale, 0, scale->rank);
  *s = (scales){.scale = scale, .zero = zero, .block = 1, .whole = given == 1};
  if (zero != NULL && clv__dims_count(zero, 0, zero->rank) != given) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "scale has %lld element%s, but the zero point has %lld",
                          (long long)given, CLV__S(given), (long long)clv__dims_count(zero, 0, zero->rank));
  }
  if (s->whole || clv__tensor_is_empty(x)) return CLV_OK;
  int64_t axis = clv__attribute_int(call->attributes, "axis", 1);
  if (axis < 0) axis += x->rank;
  if (x->rank == 1) axis = 0;
  if (axis < 0 || axis >= x->rank) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "attribute axis is %lld, which is out of range for rank %d",
                          (long long)axis, (int)x->rank);
  }
  s->lines = (clv__lines){clv__dims_count(x, 0, (int32_t)axis), x->dims[axis], clv__dims_count(x, (int32_t)axis + 1, x->rank)};
  s->blocked = scale->rank == x->rank && x->rank > 1;
  s->count = scale->dims[s->blocked ? axis : 0];
  if (s->blocked) {
    const int64_t size = clv__attribute_int(call->attributes, "block_size", 0);
    s->block = size > 0 ? size : s->count > 0 ? (s->lines.length + s->count - 1) / s->count : 1;
  }
  const bool fits = s->block > 0 && s->count == (s->lines.length + s->block - 1) / s->block &&
                    given == (s->blocked ? s->lines.outer * s->count * s->lines.inner : s->count);
  if (fits) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "%lld scales do not fit axis %lld of %lld element%s",
                        (long long)s->count, (long long)axis, (long long)s->lines.length, CLV__S(s->lines.length));
}

static int64_t scale_index(const scales *s, int64_t element) {
  if (s->whole) return 0;
  const int64_t j = element % s->lines.inner, d = element / s->lines.inner % s->lines.length;
  const int64_t o = element / s->lines.inner / s->lines.length;
  return s->blocked ? (o * s->count + d / s->block) * s->lines.inner + j : d;
}

static float scale_of(const scales *s, int64_t element) {
  return (float)clv__element_load(s->scale, scale_index(s, element));
}
static double zero_of(const scales *s, int64_t element) {
  return s->zero != NULL ? clv__element_load(s->zero, scale_index(s, element)) : 0;
}

/* x / scale, rounded to the requested precision. */
static float divide(float x, float scale, clv_dtype precision) {
  const float quotient = x / scale;
  if (precision == CLV_F16) return clv__f16_to_f32(clv__f32_to_f16(quotient));
  return precision == CLV_BF16 ? clv__bf16_to_f32(clv__f32_to_bf16(quotient)) : quotient;
}

/* The least and greatest numbers of a quantized dtype. */
static void range_of(clv_dtype dtype, int *least, int *most) {
  if (clv__dtype_is_in(dtype, CLV__DTYPES_PACKED_INTEGER)) {
    clv__packed_range(dtype, least, most);
    return;
  }
  const int bits = (int)clv_dtype_size_bits(dtype), numbers = 1 << bits;
  *least = clv__dtype_is_in(dtype, CLV__DTYPES_SIGNED) ? -numbers / 2 : 0;
  *most = *least + numbers - 1;
}

/* y = saturate(round(quotient) + zero), halves to even. A NaN is quantized like 0. */
static void store_quantized(const clv_tensor *y, int64_t index, float quotient, double zero, bool saturate) {
  int least, most;
  if (clv__dtype_is_in(y->dtype, CLV__DTYPES_SMALL_FLOAT)) {
    clv__small_store(y->dtype, y->data, (size_t)index, clv__small_from_f64(y->dtype, (double)quotient + zero, saturate));
    return;
  }
  range_of(y->dtype, &least, &most);
  double value = (quotient == quotient ? (double)rintf(quotient) : 0) + zero;
  if (value < least) value = least;
  if (value > most) value = most;
  clv__element_store_int(y, index, (int64_t)value);
}

static clv_status run_quantize(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t count = clv__dims_count(x, 0, x->rank), asked = clv__attribute_int(call->attributes, "precision", 0);
  const clv_dtype precision = asked == 0 ? call->inputs[1].dtype : (clv_dtype)asked;
  const bool saturate = clv__attribute_int(call->attributes, "saturate", 1) != 0;
  scales s;
  CLV__TRY(scales_read(call, &s));
  clv__small_clear(y);
  for (int64_t i = 0; i < count; ++i) {
    const float quotient = divide((float)clv__element_load(x, i), scale_of(&s, i), precision);
    store_quantized(y, i, quotient, zero_of(&s, i), saturate);
  }
  return CLV_OK;
}

static clv_status run_dequantize(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t count = clv__dims_count(x, 0, x->rank);
  scales s;
  CLV__TRY(scales_read(call, &s));
  for (int64_t i = 0; i < count; ++i) {
    const float value = (float)(clv__element_load(x, i) - zero_of(&s, i)) * scale_of(&s, i);
    clv__element_store(y, i, (double)value);
  }
  return CLV_OK;
}

/* DynamicQuantizeLinear: maps the range of the values, extended to include 0, to [0, 255]. */
static clv_status run_dynamic(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = clv__call_output(call, 0);
  const clv_tensor *scale_out = clv__call_output(call, 1), *zero_out = clv__call_output(call, 2);
  const int64_t count = clv__dims_count(x, 0, x->rank);
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float value = (float)clv__element_load(x, i);
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const float scale = high > low ? (high - low) / 255 : 1, zero = rintf(-low / scale);
  const double place = zero > 0 ? zero < 255 ? (double)zero : 255 : 0; /* 0 for a NaN */
  for (int64_t i = 0; y != NULL && i < count; ++i) {
    store_quantized(y, i, (float)clv__element_load(x, i) / scale, place, true);
  }
  if (scale_out != NULL) clv__element_store(scale_out, 0, (double)scale);
  if (zero_out != NULL) clv__element_store(zero_out, 0, place);
  return CLV_OK;
}

static bool accepts_target(int64_t dtype, uint32_t dtypes, char reason[160]) {
  if (clv__dtype_is_known(dtype) && clv__dtype_is_in((clv_dtype)dtype, dtypes)) return true;
  if (clv__dtype_is_known(dtype))
    snprintf(reason, 160, "an output of dtype %s is not supported", clv_dtype_name((clv_dtype)dtype));
  else
    snprintf(reason, 160, "output_dtype %lld is not supported", (long long)dtype);
  return false;
}

#define SCALES CLV__DTYPE_BIT(CLV_F8E8M0) /* powers of two, used only for scales */
#define SMALL_INTEGERS (CLV__DTYPE_BIT(CLV_U8) | CLV__DTYPE_BIT(CLV_I8) | CLV__DTYPE_BIT(CLV_U16) | CLV__DTYPE_BIT(CLV_I16))
#define SMALL_FLOATS (CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))
#define QUANTIZED (SMALL_INTEGERS | (CLV__DTYPES_SMALL & ~SCALES))

static bool accepts_operand(const clv__kernel_call *call, uint32_t index, uint32_t dtypes, char reason[160]) {
  if (index >= call->input_count || call->inputs[index].dtype == CLV_DTYPE_NONE) return true;
  if (clv__dtype_is_in(call->inputs[index].dtype, dtypes)) return true;
  snprintf(reason, 160, "dtype %s of input %u is not supported", clv_dtype_name(call->inputs[index].dtype), index);
  return false;
}

static bool accepts_quantize(const clv__kernel_call *call, char reason[160]) {
  const int64_t precision = clv__attribute_int(call->attributes, "precision", 0);
  if (precision != 0 && precision != CLV_F32 && precision != CLV_F16 && precision != CLV_BF16) {
    snprintf(reason, 160, "precision %lld is not supported", (long long)precision);
    return false;
  }
  const int64_t wanted = clv__attribute_int(call->attributes, "output_dtype", 0);
  return accepts_operand(call, 0, SMALL_FLOATS | CLV__DTYPE_BIT(CLV_I32), reason) &&
         accepts_operand(call, 1, SMALL_FLOATS | CLV__DTYPE_BIT(CLV_I32) | SCALES, reason) &&
         accepts_operand(call, 2, QUANTIZED, reason) && (wanted == 0 || accepts_target(wanted, QUANTIZED, reason));
}

static bool accepts_dequantize(const clv__kernel_call *call, char reason[160]) {
  const int64_t wanted = clv__attribute_int(call->attributes, "output_dtype", 0);
  if (!accepts_operand(call, 0, QUANTIZED | CLV__DTYPE_BIT(CLV_I32), reason)) return false;
  if (!accepts_operand(call, 1, SMALL_FLOATS | SCALES, reason)) return false;
  return accepts_target(wanted != 0 ? wanted : (int64_t)call->inputs[1].dtype, SMALL_FLOATS, reason);
}

const clv__kernel clv__kernels_quantize[] = {
    {"", "QuantizeLinear", SMALL_FLOATS | CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPES_SMALL, run_quantize, NULL, accepts_quantize},
    {"", "DequantizeLinear", QUANTIZED | CLV__DTYPE_BIT(CLV_I32) | SCALES, run_dequantize, NULL, accepts_dequantize},
    {"", "DynamicQuantizeLinear", CLV__DTYPE_BIT(CLV_F32), run_dynamic, NULL, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
