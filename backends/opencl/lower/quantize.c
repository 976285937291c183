/* QuantizeLinear and DequantizeLinear, with one scale for the tensor, one per index of an axis, or one per block of elements
 * along an axis. */
#include <stdio.h>

#include "list.h"

typedef struct scales {
  int64_t length, inner, block, count; /* axis length; product of the dims after it; elements per scale; number of scales */
  bool blocked, whole;
} scales;

static clv_status scales_make(const clv__opencl_node *node, scales *s, clv_error *error) {
  const clv_tensor *x = &node->inputs[0], *scale = &node->inputs[1];
  const int64_t total = clv__opencl_count(scale);
  *s = (scales){.length = 1, .inner = 1, .block = 1, .count = 1, .whole = total == 1};
  if (clv__opencl_has_input(node, 2) && clv__opencl_count(&node->inputs[2]) != total) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "scale and zero point must have the same shape");
  }
  if (s->whole) return CLV_OK;
  int64_t axis = clv__attribute_int(node->attributes, "axis", 1);
  if (axis < 0) axis += x->rank;
  if (x->rank == 1) axis = 0;
  if (axis < 0 || axis >= x->rank) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "axis: %lld out of range for rank %d", (long long)axis, (int)x->rank);
  }
  s->length = x->dims[axis];
  s->inner = clv__dims_product(x, (int32_t)axis + 1, x->rank);
  s->blocked = scale->rank == x->rank && x->rank > 1;
  s->count = scale->dims[s->blocked ? axis : 0];
  if (s->blocked) {
    const int64_t given = clv__attribute_int(node->attributes, "block_size", 0);
    s->block = given > 0 ? given : s->count > 0 ? (s->length + s->count - 1) / s->count : 1;
  }
  const int64_t outer = clv__dims_product(x, 0, (int32_t)axis);
  const bool fits = s->block > 0 && s->count == (s->length + s->block - 1) / s->block &&
                    total == (s->blocked ? outer * s->count * s->inner : s->count);
  if (fits || clv__opencl_is_empty(x)) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%lld scales do not fit axis %lld of %lld elements", (long long)s->count,
                        (long long)axis, (long long)s->length);
}

static clv_status lower_quantize(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  const bool down = node->op[0] == 'Q', has_zero = clv__opencl_has_input(node, 2);
  const clv_tensor *y = &node->outputs[0];
  scales s;
  CLV__TRY(scales_make(node, &s, error));
  if (clv__opencl_is_empty(y)) return CLV_OK;
  clv__opencl_launch(l, "quantize", down ? "quantize" : "dequantize");
  clv__opencl_define_dtype(l, "T", y->dtype);
  clv__opencl_define_dtype(l, "X", node->inputs[0].dtype);
  clv__opencl_define_dtype(l, "S", node->inputs[1].dtype);
  if (down) {
    const bool is_signed = y->dtype == CLV_I8 || y->dtype == CLV_I16, narrow = clv_dtype_size_bytes(y->dtype) == 1;
    clv__opencl_define(l, "LOW", "(%d)", is_signed ? narrow ? INT8_MIN : INT16_MIN : 0);
    clv__opencl_define(l, "HIGH", "(%d)", is_signed ? narrow ? INT8_MAX : INT16_MAX : narrow ? UINT8_MAX : UINT16_MAX);
  }
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  if (has_zero)
    clv__opencl_pass_input(l, 2);
  else if (down)
    clv__opencl_pass_output(l, 0);
  else
    clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(y));
  clv__opencl_pass_index(l, s.length);
  clv__opencl_pass_index(l, s.inner);
  clv__opencl_pass_index(l, s.block);
  clv__opencl_pass_index(l, s.count);
  clv__opencl_pass_int(l, s.blocked);
  clv__opencl_pass_int(l, s.whole);
  clv__opencl_pass_int(l, has_zero);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(y));
}

#define SMALL_INTEGERS (CLV__DTYPE_BIT(CLV_U8) | CLV__DTYPE_BIT(CLV_I8) | CLV__DTYPE_BIT(CLV_U16) | CLV__DTYPE_BIT(CLV_I16))
#define SMALL_FLOATS (CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))

static bool accepts_output(const clv__opencl_node *node, uint32_t dtypes, char reason[160]) {
  const int64_t wanted = clv__attribute_int(node->attributes, "output_dtype", 0);
  if (wanted == 0 || (wanted > 0 && wanted <= CLV_BF16 && (dtypes >> wanted & 1u) != 0)) return true;
  snprintf(reason, 160, "output_dtype %lld is not supported", (long long)wanted);
  return false;
}

/* Accepts only precision f32, because the kernel rounds the quotient to f32. */
static bool accepts_quantize(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const int64_t given = clv__attribute_int(node->attributes, "precision", 0);
  const int64_t precision = given != 0 || node->input_count < 2 ? given : (int64_t)node->inputs[1].dtype;
  if (precision != CLV_F32) {
    snprintf(reason, 160, "precision %s",
             precision > 0 && precision <= CLV_BF16 ? clv_dtype_name((clv_dtype)precision) : "unknown");
    return false;
  }
  return clv__opencl_accepts_dtype(node, 2, SMALL_INTEGERS, reason) && accepts_output(node, SMALL_INTEGERS, reason);
}

static bool accepts_dequantize(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 1, SMALL_FLOATS, reason) &&
         clv__opencl_accepts_dtype(node, 2, CLV__DTYPE_BIT(node->inputs[0].dtype), reason) &&
         accepts_output(node, SMALL_FLOATS, reason);
}

const clv__opencl_operator clv__opencl_family_quantize[] = {
    {"", "QuantizeLinear", SMALL_FLOATS | CLV__DTYPE_BIT(CLV_I32), false, accepts_quantize, lower_quantize},
    {"", "DequantizeLinear", SMALL_INTEGERS | CLV__DTYPE_BIT(CLV_I32), false, accepts_dequantize, lower_quantize},
    {NULL, NULL, 0, false, NULL, NULL},
};
