/* Softmax, LogSoftmax and Hardmax along an axis; before opset 13 over everything from the axis on. f16 and bf16 are widened into
 * scratch as a whole. */
#include <math.h>
#include <tgmath.h>

#include "kernels/kernels.h"
#include "kernels/rows.h"
#include "kernels/threads.h"

/* A tensor as [outer, length, inner]; lines run along `length`. */
typedef struct lines {
  int64_t outer, length, inner;
} lines;

typedef enum kind { SOFTMAX, LOG_SOFTMAX, HARDMAX } kind;

enum { GROUP = 64 };

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

/* Up to GROUP neighbouring lines at once, so that memory is read in runs although a line is not contiguous. Here and in one line,
 * x may be y: an element is not read again after its place was written with something else. */
#define DEFINE_GROUP(name, T)                                                                      \
  static void name(kind what, const T *x, T *y, int64_t length, int64_t inner, int64_t width) {    \
    T largest[GROUP];                                                                              \
    int64_t at[GROUP] = {0};                                                                       \
    double sum[GROUP] = {0};                                                                       \
    for (int64_t g = 0; g < width; ++g) largest[g] = x[g];                                         \
    for (int64_t i = 1; i < length; ++i) {                                                         \
      for (int64_t g = 0; g < width; ++g) {                                                        \
        bool above = x[i * inner + g] > largest[g];                                                \
        largest[g] = above ? x[i * inner + g] : largest[g];                                        \
        at[g] = above ? i : at[g];                                                                 \
      }                                                                                            \
    }                                                                                              \
    if (what == HARDMAX) {                                                                         \
      for (int64_t i = 0; i < length; ++i) {                                                       \
        for (int64_t g = 0; g < width; ++g) y[i * inner + g] = i == at[g] ? 1 : 0;                 \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < length; ++i) {                                                         \
      for (int64_t g = 0; g < width; ++g) {                                                        \
        const T value = exp(x[i * inner + g] - largest[g]);                                        \
        sum[g] += (double)value;                                                                   \
        if (what == SOFTMAX) y[i * inner + g] = value;                                             \
      }                                                                                            \
    }                                                                                              \
    T last[GROUP]; /* what scales, or is taken off */                                              \
    for (int64_t g = 0; g < width; ++g) last[g] = (T)(what == SOFTMAX ? 1 / sum[g] : log(sum[g])); \
    for (int64_t i = 0; i < length; ++i) {                                                         \
      for (int64_t g = 0; g < width; ++g) {                                                        \
        const int64_t k = i * inner + g;                                                           \
        y[k] = what == SOFTMAX ? y[k] * last[g] : x[k] - largest[g] - last[g];                     \
      }                                                                                            \
    }                                                                                              \
  }
DEFINE_GROUP(group_f32, float)
DEFINE_GROUP(group_f64, double)

/* One contiguous line. */
#define DEFINE_LINE(name, T)                                                                           \
  static void name(kind what, const T *x, T *y, int64_t length) {                                      \
    T largest = x[0];                                                                                  \
    int64_t at = 0;                                                                                    \
    double sum = 0;                                                                                    \
    for (int64_t i = 1; i < length; ++i) {                                                             \
      if (x[i] > largest) largest = x[i], at = i;                                                      \
    }                                                                                                  \
    if (what == HARDMAX) {                                                                             \
      for (int64_t i = 0; i < length; ++i) y[i] = i == at ? 1 : 0;                                     \
    } else if (what == SOFTMAX) {                                                                      \
      for (int64_t i = 0; i < length; ++i) y[i] = exp(x[i] - largest);                                 \
      _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < length; ++i) sum += (double)y[i]; \
      const T scale = (T)(1 / sum);                                                                    \
      for (int64_t i = 0; i < length; ++i) y[i] *= scale;                                              \
    } else {                                                                                           \
      for (int64_t i = 0; i < length; ++i) sum += (double)exp(x[i] - largest);                         \
      const T shift = (T)log(sum);                                                                     \
      for (int64_t i = 0; i < length; ++i) y[i] = x[i] - largest - shift;                              \
    }                                                                                                  \
  }
DEFINE_LINE(line_f32, float)
DEFINE_LINE(line_f64, double)

static void run_lines(kind what, const lines *shape, bool wide, const void *x, void *y) {
  int64_t groups = (shape->inner + GROUP - 1) / GROUP, tasks = shape->outer * groups;
  double work = 15.0 * (double)shape->outer * (double)shape->length * (double)shape->inner;
  const int threads = clv__kernel_threads(tasks, work);
  (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    int64_t first = task % groups * GROUP, width = shape->inner - first < GROUP ? shape->inner - first : GROUP;
    int64_t offset = task / groups * shape->length * shape->inner + first;
    if (shape->inner == 1 && wide)
      line_f64(what, (const double *)x + offset, (double *)y + offset, shape->length);
    else if (shape->inner == 1)
      line_f32(what, (const float *)x + offset, (float *)y + offset, shape->length);
    else if (wide)
      group_f64(what, (const double *)x + offset, (double *)y + offset, shape->length, shape->inner, width);
    else
      group_f32(what, (const float *)x + offset, (float *)y + offset, shape->length, shape->inner, width);
  }
}

static clv_status run(const clv__kernel_call *call, kind what) {
  const clv_tensor *input = &call->inputs[0], *output = &call->outputs[0];
  lines shape = lines_of(call);
  int64_t total = shape.outer * shape.length * shape.inner;
  if (total == 0) return CLV_OK;
  if (input->dtype == CLV_F32 || input->dtype == CLV_F64) {
    run_lines(what, &shape, input->dtype == CLV_F64, input->data, output->data);
    return CLV_OK;
  }
  float *wide = call->scratch;
  clv__row_to_f32(input->dtype, input->data, 0, total, wide);
  run_lines(what, &shape, false, wide, wide);
  clv__row_from_f32(output->dtype, output->data, 0, total, wide);
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  size_t count, size_bytes;
  if (call->inputs[0].dtype == CLV_F32 || call->inputs[0].dtype == CLV_F64) return 0;
  if (!clv__tensor_count(&call->inputs[0], &count)) return SIZE_MAX;
  return __builtin_mul_overflow(count, sizeof(float), &size_bytes) ? SIZE_MAX : size_bytes;
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

const clv__kernel clv__kernels_softmax[] = {
    {"", "Softmax", CLV__DTYPES_FLOAT, run_softmax, scratch_bytes, NULL},
    {"", "LogSoftmax", CLV__DTYPES_FLOAT, run_log_softmax, scratch_bytes, NULL},
    {"", "Hardmax", CLV__DTYPES_FLOAT, run_hardmax, scratch_bytes, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
