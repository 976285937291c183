/* Operators that walk along one axis: ArgMax, ArgMin, CumSum, CumProd.
 *
 * A tensor is viewed as [outer, length, inner]. A line is the `length` elements with the same outer and inner index. Up to BLOCK
 * lines with neighbouring inner indices are processed together, one index along `length` at a time. If inner is 1, a line is
 * contiguous and is loaded in blocks. Floats are processed as double, integers as 64 bits. */
#include "backends/common/kernels/extreme.h"
#include "backends/common/kernels/families.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { BLOCK = 256, SHARE = 32768 /* number of elements per task if lines are contiguous */ };

typedef struct lines {
  int64_t outer, length, inner;
  int64_t groups; /* groups of up to BLOCK neighbouring lines, per outer index */
} lines;

static clv_status lines_make(const clv__kernel_call *call, int64_t axis, lines *shape) {
  const clv_tensor *input = &call->inputs[0];
  int32_t rank = input->rank;
  if (axis < -(int64_t)rank || axis >= rank) {
    if (rank != 0 || (axis != 0 && axis != -1)) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "axis: %lld out of range for rank %d", (long long)axis, (int)rank);
    }
    *shape = (lines){1, 1, 1, 1};
    return CLV_OK;
  }
  int32_t at = (int32_t)(axis < 0 ? axis + rank : axis);
  *shape = (lines){clv__dims_product(input, 0, at), input->dims[at], clv__dims_product(input, at + 1, rank), 0};
  shape->groups = (shape->inner + BLOCK - 1) / BLOCK;
  return CLV_OK;
}

/* Processes `width` neighbouring lines. The first of them begins at element `first` of the input and `out_first` of the
 * output. */
typedef void (*walk_fn)(const clv__kernel_call *call, const lines *shape, int64_t first, int64_t out_first, int64_t width);

static void run_lines(const clv__kernel_call *call, const lines *shape, int64_t out_length, walk_fn walk) {
  int64_t tasks = shape->outer * shape->groups;
  double work = 3.0 * (double)shape->outer * (double)shape->length * (double)shape->inner;
  const int threads = clv__kernel_threads(tasks, work);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t outer = task / shape->groups, first = task % shape->groups * BLOCK;
    int64_t width = shape->inner - first < BLOCK ? shape->inner - first : BLOCK;
    walk(call, shape, outer * shape->length * shape->inner + first, outer * out_length * shape->inner + first, width);
  }
}

/* ---- ArgMax, ArgMin. A NaN beats every number, as in numpy. Of several NaNs, the first wins. ---- */

#define DEFINE_BEATS(suffix, T)                                                                   \
  static inline bool beats_##suffix(T value, T best, bool smallest, bool last) {                  \
    if (best != best) return false;                                                               \
    return (smallest ? value < best : value > best) || (last && value == best) || value != value; \
  }
#define DEFINE_ARG(suffix, T, load)                                                                                             \
  DEFINE_BEATS(suffix, T)                                                                                                       \
  static void arg_##suffix(const clv__kernel_call *call, const lines *shape, int64_t first, int64_t out_first, int64_t width) { \
    const clv_tensor *input = &call->inputs[0];                                                                                 \
    const bool smallest = strcmp(call->op, "ArgMin") == 0;                                                                      \
    const bool last = clv__attribute_int(call->attributes, "select_last_index", 0) != 0;                                        \
    T best[BLOCK], row[BLOCK];                                                                                                  \
    int64_t at[BLOCK] = {0};                                                                                                    \
    load(input->dtype, input->data, first, width, (void *)best);                                                                \
    if (shape->inner == 1) {                                                                                                    \
      for (int64_t from = 0; from < shape->length && !clv__is_stopped(call->stop); from += BLOCK) {                             \
        int64_t count = shape->length - from < BLOCK ? shape->length - from : BLOCK;                                            \
        load(input->dtype, input->data, first + from, count, (void *)row);                                                      \
        for (int64_t i = 0; i < count; ++i) {                                                                                   \
          if (beats_##suffix(row[i], best[0], smallest, last)) best[0] = row[i], at[0] = from + i;                              \
        }                                                                                                                       \
      }                                                                                                                         \
    } else {                                                                                                                    \
      for (int64_t i = 1; i < shape->length && !clv__is_stopped(call->stop); ++i) {                                             \
        load(input->dtype, input->data, first + i * shape->inner, width, (void *)row);                                          \
        for (int64_t g = 0; g < width; ++g) {                                                                                   \
          if (beats_##suffix(row[g], best[g], smallest, last)) best[g] = row[g], at[g] = i;                                     \
        }                                                                                                                       \
      }                                                                                                                         \
    }                                                                                                                           \
    memcpy((int64_t *)call->outputs[0].data + out_first, at, (size_t)width * sizeof *at);                                       \
  }
DEFINE_ARG(f64, double, clv__row_to_f64)
DEFINE_ARG(i64, int64_t, clv__row_to_i64)
DEFINE_ARG(u64, uint64_t, clv__row_to_i64)

/* Runs ArgMax or ArgMin over contiguous f32 lines. Of equal elements, the first wins. */
static void arg_rows(const clv__kernel_call *call, const lines *shape) {
  const bool smallest = strcmp(call->op, "ArgMin") == 0;
  const int64_t group = shape->length < SHARE ? SHARE / shape->length : 1, tasks = (shape->outer + group - 1) / group;
  const int threads = clv__kernel_threads(tasks, 2.0 * (double)shape->outer * (double)shape->length);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    const int64_t first = task * group, rows = shape->outer - first < group ? shape->outer - first : group;
    clv__rows_extreme_at((const float *)call->inputs[0].data + first * shape->length, rows, shape->length, smallest,
                         (int64_t *)call->outputs[0].data + first);
  }
}

static clv_status run_arg(const clv__kernel_call *call) {
  lines shape;
  CLV__TRY(lines_make(call, clv__attribute_int(call->attributes, "axis", 0), &shape));
  if (shape.outer * shape.inner == 0) return CLV_OK;
  if (shape.length == 0) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "an empty axis has no %s element",
                          strcmp(call->op, "ArgMin") == 0 ? "smallest" : "largest");
  }
  clv_dtype dtype = call->inputs[0].dtype;
  bool is_float = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
  if (dtype == CLV_F32 && shape.inner == 1 && clv__attribute_int(call->attributes, "select_last_index", 0) == 0) {
    arg_rows(call, &shape);
    return CLV_OK;
  }
  run_lines(call, &shape, 1, is_float ? arg_f64 : dtype == CLV_U64 ? arg_u64 : arg_i64);
  return CLV_OK;
}

/* ---- CumSum, CumProd ---- */

#define DEFINE_CUMULATE(name, T, COMBINE, start, load, store)                                                           \
  static void name(const clv__kernel_call *call, const lines *shape, int64_t first, int64_t out_first, int64_t width) { \
    const clv_tensor *input = &call->inputs[0];                                                                         \
    const bool exclusive = clv__attribute_int(call->attributes, "exclusive", 0) != 0;                                   \
    const bool reverse = clv__attribute_int(call->attributes, "reverse", 0) != 0;                                       \
    const bool contiguous = shape->inner == 1;                                                                          \
    /* A step processes one element of each line of the group, or one block of a contiguous line. */                    \
    const int64_t stride = contiguous ? BLOCK : 1, steps = (shape->length + stride - 1) / stride;                       \
    T total[BLOCK], row[BLOCK];                                                                                         \
    for (int64_t g = 0; g < width; ++g) total[g] = start;                                                               \
    for (int64_t step = 0; step < steps && !clv__is_stopped(call->stop); ++step) {                                      \
      int64_t from = (reverse ? steps - 1 - step : step) * stride;                                                      \
      int64_t count = !contiguous ? width : shape->length - from < BLOCK ? shape->length - from : BLOCK;                \
      load(input->dtype, input->data, first + from * shape->inner, count, (void *)row);                                 \
      for (int64_t k = 0; k < count; ++k) {                                                                             \
        int64_t i = contiguous && reverse ? count - 1 - k : k, g = contiguous ? 0 : k;                                  \
        const T before = total[g];                                                                                      \
        total[g] = COMBINE(before, row[i]);                                                                             \
        row[i] = exclusive ? before + 0 : total[g];                                                                     \
      }                                                                                                                 \
      store(call->outputs[0].dtype, call->outputs[0].data, out_first + from * shape->inner, count, (void *)row);        \
    }                                                                                                                   \
  }
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
/* Sums start from -0, so that a sum of only -0 elements is -0. With `exclusive`, the first result is 0, not -0. */
DEFINE_CUMULATE(sum_f64, double, SUM, -0.0, clv__row_to_f64, clv__row_from_f64)
DEFINE_CUMULATE(sum_u64, uint64_t, SUM, 0, clv__row_to_i64, clv__row_from_i64)
DEFINE_CUMULATE(product_f64, double, PRODUCT, 1, clv__row_to_f64, clv__row_from_f64)
DEFINE_CUMULATE(product_u64, uint64_t, PRODUCT, 1, clv__row_to_i64, clv__row_from_i64)

static clv_status run_cumulate(const clv__kernel_call *call) {
  const clv_tensor *axis = &call->inputs[1];
  size_t count;
  if (!clv__tensor_count(axis, &count) || count != 1) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "input axis must have one element");
  }
  lines shape;
  CLV__TRY(lines_make(call, clv__tensor_get_int(axis, 0), &shape));
  bool is_float = (CLV__DTYPE_BIT(call->inputs[0].dtype) & CLV__DTYPES_FLOAT) != 0;
  bool product = strcmp(call->op, "CumProd") == 0;
  run_lines(call, &shape, shape.length, is_float ? product ? product_f64 : sum_f64 : product ? product_u64 : sum_u64);
  return CLV_OK;
}

const clv__fast_kernel clv__fast_axis[] = {
    {"", "ArgMax", run_arg, NULL},
    {"", "ArgMin", run_arg, NULL},
    {"", "CumSum", run_cumulate, NULL},
    {"", "CumProd", run_cumulate, NULL},
    {.op = NULL},
};
