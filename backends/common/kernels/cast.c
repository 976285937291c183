/* Cast, CastLike and BitCast, in blocks on several threads. src/operators/cast/run.c states the conversion rules. */
#include "backends/common/kernels/families.h"
#include "base/tensor/small.h"
#include "operators/common/move.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"

enum { BLOCK = 256, TASK = 4096 /* numbers of elements; multiples of 8, so that sub-byte elements fill whole bytes */ };

#define IS_FLOAT(dtype) clv__dtype_is_in(dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT)

typedef struct small_cast {
  bool saturate;
  clv__small_round round;
} small_cast;

static clv__small_round read_round(const clv__kernel_call *call) {
  if (clv__attribute_is(call->attributes, "round_mode", "down", false)) return CLV__SMALL_DOWN;
  return clv__attribute_is(call->attributes, "round_mode", "nearest", false) ? CLV__SMALL_NEAREST : CLV__SMALL_UP;
}

/* Converts through double. A double represents every number of the source dtypes exactly, except large 64-bit integers. Those
 * are rounded to odd, so that rounding the double again gives the same result as rounding the integer once. */
static void cast_to_small(const clv_tensor *from, const clv_tensor *to, int64_t first, int64_t count, small_cast how) {
  double row[BLOCK];
  clv__row_to_f64_odd(from->dtype, from->data, first, count, row);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t bits = to->dtype == CLV_F8E8M0 ? clv__small_power_of(row[i], how.saturate, how.round)
                                                 : clv__small_from_f64(to->dtype, row[i], how.saturate);
    clv__small_store(to->dtype, to->data, (size_t)(first + i), bits);
  }
}

/* Converts elements [first, first + count), in blocks. The type in between is chosen so that each result is that of a single
 * rounding. */
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
      (to->dtype == CLV_F64 ? clv__row_to_f64 : clv__row_to_f64_odd)(from->dtype, from->data, at, block, row);
      clv__row_from_f64(to->dtype, to->data, at, block, row);
    }
  }
}

static clv_status run_bit_cast(const clv__kernel_call *call) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&call->outputs[0], &size_bytes)) return CLV_OK;
  clv__copy_bytes(call->outputs[0].data, call->inputs[0].data, size_bytes, call->stop);
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
  const small_cast how = {.saturate = clv__attribute_int(call->attributes, "saturate", 1) != 0, .round = read_round(call)};
  clv__small_clear(to);
  int64_t tasks = (total + TASK - 1) / TASK;
  const int threads = clv__kernel_threads(tasks, 2.0 * (double)total);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t first = task * TASK;
    cast_run(from, to, first, total - first < TASK ? total - first : TASK, how);
  }
  return CLV_OK;
}

const clv__fast_kernel clv__fast_cast[] = {
    {"", "Cast", run_cast, NULL},
    {"", "CastLike", run_cast, NULL},
    {"", "BitCast", run_bit_cast, NULL},
    {.op = NULL},
};
