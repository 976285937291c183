/* Softmax, LogSoftmax and Hardmax along an axis. Before opset 13, the axis and all axes after it are treated as one. f16 and
 * bf16 are converted to f32 in scratch, a few lines at a time. Softmax and LogSoftmax of a line are NaN if it contains a NaN or
 * +infinity, or only -infinity. */
#include <math.h>
#include <tgmath.h>

#include "backends/common/kernels/families.h"
#include "operators/common/exponential.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

/* A tensor as [outer, length, inner]; lines run along `length`. */
typedef struct lines {
  int64_t outer, length, inner;
} lines;

typedef enum kind { SOFTMAX, LOG_SOFTMAX, HARDMAX } kind;

enum {
  GROUP = 64,
  LANES = 16,
  SUMMED = 2048 /* elements per f32 sum, a multiple of LANES; the last sum of a line may differ: sum_f32() */
};

static lines lines_of(const clv__kernel_call *call) {
  const clv_tensor *input = &call->inputs[0];
  bool flattens = call->opset < 13;
  int64_t axis = clv__attribute_int(call->attributes, "axis", flattens ? 1 : -1);
  if (axis < 0) axis += input->rank;
  if (axis < 0) axis = 0;
  if (axis > input->rank) axis = input->rank;
  lines shape = {clv__dims_product(input, 0, (int32_t)axis), 1, 1};
  if (flattens) {
    shape.length = clv__dims_product(input, (int32_t)axis, input->rank);
  } else if (axis < input->rank) {
    shape.length = input->dims[axis];
    shape.inner = clv__dims_product(input, (int32_t)axis + 1, input->rank);
  }
  return shape;
}

/* Computes up to GROUP neighbouring lines together, so that reads are contiguous although a line is not. x may be equal to y,
 * because no element is read after it has been overwritten. That also holds for line_f32() and line_f64(). Additions have the
 * same order as in those functions, so a line gets the same result in a group as alone. */
#define DEFINE_GROUP(name, T, EXP, lane_count)                                                     \
  static void name(kind what, const T *x, T *y, int64_t length, int64_t inner, int64_t width) {    \
    T largest[GROUP], last[GROUP]; /* `last`: factor (Softmax) or number to subtract */            \
    T lanes[lane_count][GROUP];                                                                    \
    double sum[GROUP] = {0};                                                                       \
    const int64_t whole = length / LANES * LANES, used = length < LANES ? 1 : lane_count;          \
    memset(lanes, 0, sizeof lanes);                                                                \
    for (int64_t g = 0; g < width; ++g) largest[g] = x[g];                                         \
    for (int64_t i = 1; i < length; ++i) {                                                         \
      const T *row = x + i * inner;                                                                \
      for (int64_t g = 0; g < width; ++g) largest[g] = row[g] > largest[g] ? row[g] : largest[g];  \
    }                                                                                              \
    for (int64_t i = 0; i < length; ++i) {                                                         \
      const T *row = x + i * inner;                                                                \
      T values[GROUP], *onto = lanes[i % used];                                                    \
      for (int64_t g = 0; g < width; ++g) {                                                        \
        values[g] = EXP(row[g] - largest[g]);                                                      \
        onto[g] += values[g];                                                                      \
      }                                                                                            \
      if (what == SOFTMAX) memcpy(y + i * inner, values, (size_t)width * sizeof *values);          \
      if (i + 1 < length && ((i + 1) % SUMMED != 0 || i + 1 == whole || used == 1)) continue;      \
      for (int64_t half = used / 2; half > 0; half /= 2) {                                         \
        for (int64_t k = 0; k < half; ++k) {                                                       \
          for (int64_t g = 0; g < width; ++g) lanes[k][g] += lanes[k + half][g];                   \
        }                                                                                          \
      }                                                                                            \
      for (int64_t g = 0; g < width; ++g) sum[g] += (double)lanes[0][g];                           \
      memset(lanes, 0, sizeof lanes);                                                              \
    }                                                                                              \
    for (int64_t g = 0; g < width; ++g) last[g] = (T)(what == SOFTMAX ? 1 / sum[g] : log(sum[g])); \
    for (int64_t i = 0; i < length; ++i) {                                                         \
      const T *row = x + i * inner;                                                                \
      T *to = y + i * inner;                                                                       \
      if (what == SOFTMAX) {                                                                       \
        for (int64_t g = 0; g < width; ++g) to[g] *= last[g];                                      \
      } else {                                                                                     \
        for (int64_t g = 0; g < width; ++g) to[g] = row[g] - largest[g] - last[g];                 \
      }                                                                                            \
    }                                                                                              \
  }
DEFINE_GROUP(group_f32, float, clv__exp_f32, LANES)
DEFINE_GROUP(group_f64, double, exp, 1)

/* The functions up to line_f32() compute one contiguous f32 line, LANES elements at a time. A remainder of fewer than LANES
 * elements is padded with neutral values. */
#define ALWAYS static inline __attribute__((always_inline))

/* The largest element. Skips NaNs, except if the first element is NaN. The result of a line with a NaN is NaN in any case,
 * because its sum of exponentials is NaN. */
ALWAYS float largest_f32(const float *x, int64_t length) {
  float lanes[LANES], rest[LANES];
  const int64_t whole = length / LANES * LANES;
  for (int k = 0; k < LANES; ++k) lanes[k] = rest[k] = x[0];
  for (int64_t i = 0; i < whole; i += LANES) {
    for (int k = 0; k < LANES; ++k) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
  }
  memcpy(rest, x + whole, (size_t)(length - whole) * sizeof *rest);
  for (int k = 0; k < LANES; ++k) lanes[k] = rest[k] > lanes[k] ? rest[k] : lanes[k];
  for (int half = LANES / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lanes[k] = lanes[k + half] > lanes[k] ? lanes[k + half] : lanes[k];
  }
  return lanes[0];
}

/* Writes the exponentials of up to LANES elements to y, unless it is NULL, and adds them to `lanes`. */
ALWAYS void exponentials(const float *x, float *y, float largest, float lanes[LANES]) {
  float values[LANES];
  for (int k = 0; k < LANES; ++k) {
    values[k] = clv__exp_f32(x[k] - largest);
    lanes[k] += values[k];
  }
  if (y != NULL) memcpy(y, values, sizeof values);
}

/* The sum of the exponentials of a line, which are also written to y unless it is NULL. Each block of SUMMED elements is
 * summed in f32, and its sum is then added to a double. The last block may be shorter, and a remainder of fewer than LANES
 * elements belongs to it, too. */
ALWAYS double sum_f32(const float *x, float *y, float largest, int64_t length) {
  const int64_t whole = length / LANES * LANES;
  double sum = 0;
  for (int64_t from = 0; from <= whole; from += SUMMED) {
    float lanes[LANES] = {0}, rest[LANES];
    const int64_t to = whole - from < SUMMED ? whole : from + SUMMED;
    for (int64_t i = from; i < to; i += LANES) exponentials(x + i, y != NULL ? y + i : NULL, largest, lanes);
    if (to == whole && whole < length) {
      const size_t rest_bytes = (size_t)(length - whole) * sizeof *rest;
      for (int k = 0; k < LANES; ++k) rest[k] = -INFINITY;
      memcpy(rest, x + whole, rest_bytes);
      exponentials(rest, rest, largest, lanes);
      if (y != NULL) memcpy(y + whole, rest, rest_bytes);
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    }
    sum += (double)lanes[0];
    if (to == whole) break;
  }
  return sum;
}

/* Computes a line of fewer than LANES elements, where padding would be most of the work. */
ALWAYS void short_f32(kind what, const float *x, float *y, int64_t length) {
  float largest = x[0], values[LANES], sum = 0;
  for (int64_t i = 1; i < length; ++i) largest = x[i] > largest ? x[i] : largest;
  for (int64_t i = 0; i < length; ++i) values[i] = clv__exp_f32(x[i] - largest);
  for (int64_t i = 0; i < length; ++i) sum += values[i];
  const float last = (float)(what == SOFTMAX ? 1 / (double)sum : log((double)sum));
  for (int64_t i = 0; i < length; ++i) y[i] = what == SOFTMAX ? values[i] * last : x[i] - largest - last;
}

static void line_f32(kind what, const float *x, float *y, int64_t length) {
  if (length < LANES) {
    short_f32(what, x, y, length);
    return;
  }
  const float largest = largest_f32(x, length);
  if (what == SOFTMAX) {
    const float scale = (float)(1 / sum_f32(x, y, largest, length));
    for (int64_t i = 0; i < length; ++i) y[i] *= scale;
  } else {
    const float shift = (float)log(sum_f32(x, NULL, largest, length));
    for (int64_t i = 0; i < length; ++i) y[i] = x[i] - largest - shift;
  }
}

static void line_f64(kind what, const double *x, double *y, int64_t length) {
  double largest = x[0], sum = 0;
  for (int64_t i = 1; i < length; ++i) largest = x[i] > largest ? x[i] : largest;
  for (int64_t i = 0; i < length; ++i) {
    const double value = exp(x[i] - largest);
    sum += value;
    if (what == SOFTMAX) y[i] = value;
  }
  const double last = what == SOFTMAX ? 1 / sum : log(sum);
  for (int64_t i = 0; i < length; ++i) y[i] = what == SOFTMAX ? y[i] * last : x[i] - largest - last;
}

/* Writes a 1 at the first of the largest elements of each of `width` neighbouring lines, and 0 elsewhere. */
#define DEFINE_HARDMAX(name, T)                                                      \
  static void name(const T *x, T *y, int64_t length, int64_t inner, int64_t width) { \
    for (int64_t g = 0; g < width; ++g) {                                            \
      int64_t at = 0;                                                                \
      for (int64_t i = 1; i < length; ++i) {                                         \
        if (x[i * inner + g] > x[at * inner + g]) at = i;                            \
      }                                                                              \
      for (int64_t i = 0; i < length; ++i) y[i * inner + g] = i == at ? 1 : 0;       \
    }                                                                                \
  }
DEFINE_HARDMAX(hardmax_f32, float)
DEFINE_HARDMAX(hardmax_f64, double)

static void run_f32(kind what, const float *x, float *y, int64_t length, int64_t inner, int64_t width) {
  if (what == HARDMAX)
    hardmax_f32(x, y, length, inner, width);
  else if (inner == 1)
    line_f32(what, x, y, length);
  else
    group_f32(what, x, y, length, inner, width);
}

static void run_f64(kind what, const double *x, double *y, int64_t length, int64_t inner, int64_t width) {
  if (what == HARDMAX)
    hardmax_f64(x, y, length, inner, width);
  else if (inner == 1)
    line_f64(what, x, y, length);
  else
    group_f64(what, x, y, length, inner, width);
}

/* Computes lines if x, y or both are f16 or bf16. The lines are converted to f32 in `wide`, without gaps between them. */
static void run_narrow(kind what, const clv_tensor *x, const clv_tensor *y, int64_t offset, int64_t length, int64_t inner,
                       int64_t width, float *wide) {
  const int64_t rows = inner == 1 ? 1 : length, count = inner == 1 ? length : width;
  for (int64_t i = 0; i < rows; ++i) clv__row_to_f32(x->dtype, x->data, offset + i * inner, count, wide + i * count);
  run_f32(what, wide, wide, length, width, width);
  for (int64_t i = 0; i < rows; ++i) clv__row_from_f32(y->dtype, y->data, offset + i * inner, count, wide + i * count);
}

/* The number of floats of scratch that a task needs if x or y is f16 or bf16. */
static int64_t wide_count(const lines *shape) {
  return shape->length * (shape->inner < GROUP ? shape->inner : GROUP);
}

static int64_t task_count(const lines *shape) {
  return shape->outer * ((shape->inner + GROUP - 1) / GROUP);
}

static clv_status run(const clv__kernel_call *call, kind what) {
  const clv_tensor *input = &call->inputs[0], *output = &call->outputs[0];
  const lines shape = lines_of(call);
  const int64_t length = shape.length, inner = shape.inner, groups = (inner + GROUP - 1) / GROUP, tasks = task_count(&shape);
  const double work = 5.0 * (double)shape.outer * (double)length * (double)inner * (input->dtype == CLV_F64 ? 4 : 1);
  if (work == 0) return CLV_OK;
  const int threads = clv__kernel_threads(tasks, work);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    const int64_t first = task % groups * GROUP, width = inner - first < GROUP ? inner - first : GROUP;
    const int64_t offset = task / groups * length * inner + first;
    if (input->dtype == CLV_F64)
      run_f64(what, (const double *)input->data + offset, (double *)output->data + offset, length, inner, width);
    else if (input->dtype == CLV_F32 && output->dtype == CLV_F32)
      run_f32(what, (const float *)input->data + offset, (float *)output->data + offset, length, inner, width);
    else
      run_narrow(what, input, output, offset, length, inner, width,
                 (float *)call->scratch + clv__kernel_thread_index() * wide_count(&shape));
  }
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  const clv_dtype from = call->inputs[0].dtype, to = call->outputs[0].dtype;
  size_t count, size_bytes;
  if (from == CLV_F64 || (from == CLV_F32 && to == CLV_F32)) return 0;
  if (!clv__tensor_count(&call->inputs[0], &count)) return SIZE_MAX;
  if (count == 0) return 0;
  const lines shape = lines_of(call);
  const size_t wide = (size_t)wide_count(&shape); /* cannot be truncated, because it is at most `count` */
  const size_t shares = (size_t)clv__kernel_thread_limit(task_count(&shape));
  return __builtin_mul_overflow(wide, shares * sizeof(float), &size_bytes) ? SIZE_MAX : size_bytes;
}

static clv_status run_softmax(const clv__kernel_call *call) {
  return run(call, SOFTMAX);
}
static clv_status run_log_softmax(const clv__kernel_call *call) {
  return run(call, LOG_SOFTMAX);
}
static clv_status run_hardmax(const clv__kernel_call *call) {
  return run(call, HARDMAX);
}

const clv__fast_kernel clv__fast_softmax[] = {
    {"", "Softmax", run_softmax, scratch_bytes},
    {"", "LogSoftmax", run_log_softmax, scratch_bytes},
    {"", "Hardmax", run_hardmax, scratch_bytes},
    {.op = NULL},
};
