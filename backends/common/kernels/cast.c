/* Cast, CastLike and BitCast between all dtypes except strings.
 *
 * Integers keep their low bits. Floats are truncated towards zero. The specification leaves floats undefined that do not fit an
 * integer; here they saturate (integers of less than a byte keep the low bits, as in ONNX's own tests), and a NaN becomes 0. To
 * bool: everything except zero is true. To a small float: rounded to even, with the attributes saturate and round_mode. */
#include <stdio.h>

#include "base/tensor/small.h"
#include "operators/common/move.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { BLOCK = 256, TASK = 4096 /* both are a whole number of bytes in every dtype */ };

#define IS_FLOAT(dtype) clv__dtype_is_in(dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT)

typedef struct small_cast {
  bool saturate;
  clv__small_round round;
} small_cast;

static bool read_round(const clv__kernel_call *call, clv__small_round *round) {
  static const char *const names[] = {[CLV__SMALL_UP] = "up", [CLV__SMALL_DOWN] = "down", [CLV__SMALL_NEAREST] = "nearest"};
  for (int i = 0; i < 3; ++i) {
    *round = (clv__small_round)i;
    if (clv__attribute_is(call->attributes, "round_mode", names[i], i == CLV__SMALL_UP)) return true;
  }
  return false;
}

/* Converts through double, which holds every number of the other dtypes except 64-bit integers. So there is one rounding. */
static void cast_to_small(const clv_tensor *from, const clv_tensor *to, int64_t first, int64_t count, small_cast how) {
  double row[BLOCK];
  clv__row_to_f64(from->dtype, from->data, first, count, row);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t bits = to->dtype == CLV_F8E8M0 ? clv__small_power_of(row[i], how.saturate, how.round)
                                                 : clv__small_from_f64(to->dtype, row[i], how.saturate);
    clv__small_store(to->dtype, to->data, (size_t)(first + i), bits);
  }
}

/* Converts elements [first, first + count), in blocks, through the narrowest type that holds every value of the source. */
static void cast_run(const clv_tensor *from, const clv_tensor *to, int64_t first, int64_t count, small_cast how) {
  const bool to_small = clv__dtype_is_in(to->dtype, CLV__DTYPES_SMALL_FLOAT);
  for (int64_t at = first; at < first + count; at += BLOCK) {
    int64_t block = first + count - at < BLOCK ? first + count - at : BLOCK;
    if (to_small) {
      cast_to_small(from, to, at, block, how);
    } else if (!IS_FLOAT(from->dtype) && !IS_FLOAT(to->dtype)) {
      int64_t row[BLOCK];
      clv__row_to_i64(from->dtype, from->data, at, block, row);
      clv__row_from_i64(to->dtype, to->data, at, block, row);
    } else if (to->dtype == CLV_F32 || (IS_FLOAT(from->dtype) && from->dtype != CLV_F64)) {
      float row[BLOCK]; /* integers are rounded only once, directly to f32 */
      clv__row_to_f32(from->dtype, from->data, at, block, row);
      clv__row_from_f32(to->dtype, to->data, at, block, row);
    } else {
      double row[BLOCK];
      clv__row_to_f64(from->dtype, from->data, at, block, row);
      clv__row_from_f64(to->dtype, to->data, at, block, row);
    }
  }
}

static clv_status run_bit_cast(const clv__kernel_call *call) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&call->outputs[0], &size_bytes)) return CLV_OK;
  clv__copy_bytes(call->outputs[0].data, call->inputs[0].data, size_bytes);
  if (call->outputs[0].dtype != CLV_BOOL) return CLV_OK;
  uint8_t *truths = call->outputs[0].data; /* a bool must be 0 or 1, whatever the source bits are */
  for (size_t i = 0; i < size_bytes; ++i) truths[i] = truths[i] != 0;
  return CLV_OK;
}

static clv_status run_cast(const clv__kernel_call *call) {
  const clv_tensor *from = &call->inputs[0], *to = &call->outputs[0];
  int64_t total = clv__dims_product(from, 0, from->rank);
  if (total == 0) return CLV_OK;
  if (from->dtype == to->dtype) return run_bit_cast(call);
  small_cast how = {.saturate = clv__attribute_int(call->attributes, "saturate", 1) != 0};
  (void)read_round(call, &how.round);
  clv__small_clear(to);
  int64_t tasks = (total + TASK - 1) / TASK;
  const int threads = clv__kernel_threads(tasks, 2.0 * (double)total);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    int64_t first = task * TASK;
    cast_run(from, to, first, total - first < TASK ? total - first : TASK, how);
  }
  return CLV_OK;
}

static bool accepts_target(const clv__kernel_call *call, clv_dtype dtype, char reason[160]) {
  clv__small_round round;
  if (!clv__dtype_is_in(dtype, CLV__DTYPES_ANY | CLV__DTYPES_SMALL)) {
    snprintf(reason, 160, "a cast to dtype %s not supported", clv_dtype_name(dtype));
    return false;
  }
  if (dtype != CLV_F8E8M0 || read_round(call, &round)) return true;
  snprintf(reason, 160, "a round_mode other than up, down and nearest");
  return false;
}

static bool accepts_cast(const clv__kernel_call *call, char reason[160]) {
  int64_t to = clv__attribute_int(call->attributes, "to", 0);
  if (clv__dtype_is_known(to)) return accepts_target(call, (clv_dtype)to, reason);
  snprintf(reason, 160, "a cast to ONNX's dtype %lld not supported", (long long)to);
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
