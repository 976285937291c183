/* Cast and CastLike between all numeric dtypes and bool.
 *
 * Integers keep their low bits. Floats are truncated towards zero; what does not fit, which the specification leaves open,
 * saturates, and a NaN becomes 0. To bool: everything but zero is true. */
#include <stdio.h>

#include "kernels/kernels.h"
#include "kernels/rows.h"
#include "kernels/threads.h"

enum { BLOCK = 256, TASK = 4096 };

#define IS_FLOAT(dtype) ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0)

/* Elements [first, first + count), in blocks through the narrowest type that holds every value of the source. */
static void cast_run(const clv_tensor *from, const clv_tensor *to, int64_t first, int64_t count) {
  for (int64_t at = first; at < first + count; at += BLOCK) {
    int64_t block = first + count - at < BLOCK ? first + count - at : BLOCK;
    if (!IS_FLOAT(from->dtype) && !IS_FLOAT(to->dtype)) {
      int64_t row[BLOCK];
      clv__row_to_i64(from->dtype, from->data, at, block, row);
      clv__row_from_i64(to->dtype, to->data, at, block, row);
    } else if (to->dtype == CLV_F32 || (IS_FLOAT(from->dtype) && from->dtype != CLV_F64)) {
      float row[BLOCK]; /* integers are rounded once, straight to f32 */
      clv__row_to_f32(from->dtype, from->data, at, block, row);
      clv__row_from_f32(to->dtype, to->data, at, block, row);
    } else {
      double row[BLOCK];
      clv__row_to_f64(from->dtype, from->data, at, block, row);
      clv__row_from_f64(to->dtype, to->data, at, block, row);
    }
  }
}

static clv_status run_cast(const clv__kernel_call *call) {
  const clv_tensor *from = &call->inputs[0], *to = &call->outputs[0];
  int64_t total = clv__dims_product(from, 0, from->rank);
  if (total == 0) return CLV_OK;
  if (from->dtype == to->dtype) {
    memcpy(to->data, from->data, (size_t)total * clv_dtype_size_bytes(from->dtype));
    return CLV_OK;
  }
  int64_t tasks = (total + TASK - 1) / TASK;
  const int threads = clv__kernel_threads(tasks, 2.0 * (double)total);
  (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    int64_t first = task * TASK;
    cast_run(from, to, first, total - first < TASK ? total - first : TASK);
  }
  return CLV_OK;
}

static bool accepts_target(clv_dtype dtype, char reason[160]) {
  if ((CLV__DTYPE_BIT(dtype) & CLV__DTYPES_ANY) != 0) return true;
  snprintf(reason, 160, "a cast to dtype %s not supported", clv_dtype_name(dtype));
  return false;
}

static bool accepts_cast(const clv__kernel_call *call, char reason[160]) {
  int64_t to = clv__attribute_int(call->attributes, "to", 0);
  if (to > 0 && to <= CLV_BF16) return accepts_target((clv_dtype)to, reason);
  snprintf(reason, 160, "a cast to ONNX's dtype %lld not supported", (long long)to);
  return false;
}

static bool accepts_cast_like(const clv__kernel_call *call, char reason[160]) {
  return call->input_count < 2 || accepts_target(call->inputs[1].dtype, reason);
}

const clv__kernel clv__kernels_cast[] = {
    {"", "Cast", CLV__DTYPES_ANY, run_cast, NULL, accepts_cast},
    {"", "CastLike", CLV__DTYPES_ANY, run_cast, NULL, accepts_cast_like},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
