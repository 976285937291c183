/* Cast, CastLike and BitCast between all dtypes except strings.
 *
 * From integer to integer: the low bits are kept. From float to integer: truncated towards zero. For floats that do not fit,
 * the specification leaves the result undefined; here they saturate (but integers of less than a byte receive the low bits, as
 * in ONNX's own tests), and a NaN becomes 0. To bool: everything except zero is true. To a small float: rounded to even, with
 * the attributes saturate and round_mode. */
#include <stdio.h>

#include "base/tensor/small.h"
#include "operators/common/element.h"
#include "operators/run.h"

#define IS_FLOAT(dtype) clv__dtype_is_in(dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT)

static bool read_round(const clv__kernel_call *call, clv__small_round *round) {
  static const char *const names[] = {[CLV__SMALL_UP] = "up", [CLV__SMALL_DOWN] = "down", [CLV__SMALL_NEAREST] = "nearest"};
  for (int i = 0; i < 3; ++i) {
    *round = (clv__small_round)i;
    if (clv__attribute_is(call->attributes, "round_mode", names[i], i == CLV__SMALL_UP)) return true;
  }
  return false;
}

static clv_status run_bit_cast(const clv__kernel_call *call) {
  const clv_tensor *from = &call->inputs[0], *to = &call->outputs[0];
  size_t size_bytes;
  if (!clv__tensor_size_bytes(to, &size_bytes)) return CLV_OK;
  for (size_t i = 0; i < size_bytes; ++i) {
    const uint8_t byte = ((const uint8_t *)from->data)[i];
    ((uint8_t *)to->data)[i] = to->dtype == CLV_BOOL ? byte != 0 : byte; /* a bool must be 0 or 1, whatever the bits are */
  }
  return CLV_OK;
}

/* Loads an element as a double, which the caller rounds to dtype `to`. If `to` is f64, it is the nearest double. Otherwise it
 * is rounded to odd (see clv__row_to_f64_odd()), so that both roundings together give the same result as one. */
static double load(const clv_tensor *tensor, int64_t index, clv_dtype to) {
  double value;
  (to == CLV_F64 ? clv__row_to_f64 : clv__row_to_f64_odd)(tensor->dtype, tensor->data, index, 1, &value);
  return value;
}

static clv_status run_cast(const clv__kernel_call *call) {
  const clv_tensor *from = &call->inputs[0], *to = &call->outputs[0];
  const bool saturates = clv__attribute_int(call->attributes, "saturate", 1) != 0;
  const bool to_small = clv__dtype_is_in(to->dtype, CLV__DTYPES_SMALL_FLOAT), to_float = IS_FLOAT(to->dtype);
  clv__small_round round;
  (void)read_round(call, &round);
  if (from->dtype == to->dtype) return run_bit_cast(call);
  if (clv__tensor_is_empty(from)) return CLV_OK;
  clv__small_clear(to);
  for (int64_t i = 0; i < clv__dims_count(from, 0, from->rank); ++i) {
    const double value = load(from, i, to->dtype);
    if (to_small) {
      const uint8_t bits = to->dtype == CLV_F8E8M0 ? clv__small_power_of(value, saturates, round)
                                                   : clv__small_from_f64(to->dtype, value, saturates);
      clv__small_store(to->dtype, to->data, (size_t)i, bits);
    } else if (!IS_FLOAT(from->dtype) && !to_float) {
      clv__element_store_int(to, i, clv__element_load_int(from, i));
    } else {
      clv__element_store(to, i, value);
    }
  }
  return CLV_OK;
}

static bool accepts_target(const clv__kernel_call *call, clv_dtype dtype, char reason[160]) {
  clv__small_round round;
  if (!clv__dtype_is_in(dtype, CLV__DTYPES_ANY | CLV__DTYPES_SMALL)) {
    snprintf(reason, 160, "a cast to dtype %s is not supported", clv_dtype_name(dtype));
    return false;
  }
  if (dtype != CLV_F8E8M0 || read_round(call, &round)) return true;
  snprintf(reason, 160, "round_mode is not one of up, down, nearest");
  return false;
}

static bool accepts_cast(const clv__kernel_call *call, char reason[160]) {
  int64_t to = clv__attribute_int(call->attributes, "to", 0);
  if (clv__dtype_is_known(to)) return accepts_target(call, (clv_dtype)to, reason);
  snprintf(reason, 160, "a cast to ONNX's dtype number %lld is not supported", (long long)to);
  return false;
}

static bool accepts_cast_like(const clv__kernel_call *call, char reason[160]) {
  return call->input_count < 2 || accepts_target(call, call->inputs[1].dtype, reason);
}

#define CASTABLE (CLV__DTYPES_ANY | CLV__DTYPES_SMALL)

const clv__kernel clv__kernels_cast[] = {
    {"", "Cast", CASTABLE, run_cast, NULL, accepts_cast},
    {"", "CastLike", CASTABLE, run_cast, NULL, accepts_cast_like},
    {"", "BitCast", CASTABLE, run_bit_cast, NULL, accepts_cast},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
