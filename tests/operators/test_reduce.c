/* Tests reductions, ArgMax/ArgMin, CumSum/CumProd and Softmax against simple loops, with random shapes and axes. Results must
 * not depend on the number of threads. */
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernel_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The index of the result element to which element `index` of `from` contributes, if the axes in the bit mask `axes` are reduced
 * to size 1. */
static size_t target_index(const clv_tensor *from, uint32_t axes, size_t index) {
  size_t at = 0, stride = 1;
  for (int32_t axis = from->rank - 1; axis >= 0; --axis) {
    size_t dim = (size_t)from->dims[axis], position = index % dim;
    index /= dim;
    if ((axes >> axis & 1u) != 0) continue;
    at += position * stride;
    stride *= dim;
  }
  return at;
}

static void reduced_dims(const clv_tensor *from, uint32_t axes, int64_t *dims) {
  for (int32_t i = 0; i < from->rank; ++i) dims[i] = (axes >> i & 1u) != 0 ? 1 : from->dims[i];
}

static double fold_double(const char *op, double total, double x) {
  if (strcmp(op, "ReduceMax") == 0) return isnan(total) || isnan(x) ? (double)NAN : fmax(total, x);
  if (strcmp(op, "ReduceMin") == 0) return isnan(total) || isnan(x) ? (double)NAN : fmin(total, x);
  if (strcmp(op, "ReduceProd") == 0) return total * x;
  if (strcmp(op, "ReduceL1") == 0) return total + fabs(x);
  if (strcmp(op, "ReduceL2") == 0 || strcmp(op, "ReduceSumSquare") == 0) return total + x * x;
  if (strcmp(op, "ReduceLogSumExp") == 0) return total + exp(x);
  return total + x;
}

static double start_of(const char *op) {
  if (strcmp(op, "ReduceMax") == 0) return -(double)INFINITY;
  if (strcmp(op, "ReduceMin") == 0) return (double)INFINITY;
  return strcmp(op, "ReduceProd") == 0 ? 1 : 0;
}

static double finish_of(const char *op, double total, size_t count) {
  if (strcmp(op, "ReduceMean") == 0) return total / (double)count;
  if (strcmp(op, "ReduceL2") == 0) return sqrt(total);
  if (strncmp(op, "ReduceLog", 9) == 0) return log(total);
  return total;
}

static const char *const reductions[] = {"ReduceSum", "ReduceMean", "ReduceMax",    "ReduceMin",       "ReduceProd",
                                         "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};

static void check_reduction(const char *op, const clv_tensor *x, uint32_t axes) {
  int64_t dims[CLV_MAX_RANK], list[CLV_MAX_RANK];
  size_t count = 0;
  for (int32_t i = 0; i < x->rank; ++i) {
    if ((axes >> i & 1u) != 0) list[count++] = i % 2 == 0 ? i : i - x->rank;
  }
  reduced_dims(x, axes, dims);
  clv_tensor y = case_tensor(x->dtype, x->rank, dims), wanted = case_tensor(CLV_F64, x->rank, dims);
  clv_tensor inputs[2] = {*x, clv__tensor_make(CLV_I64, 1, (int64_t[]){(int64_t)count}, list)};
  const int64_t noop = 1; /* an empty list means no axis, so that every set of axes can be tested */
  clv_attribute attributes[2] = {case_int("noop_with_empty_axes", &noop), case_ints("axes", list, count)};
  bool as_input = axes == 0 || axes % 2 == 0;
  case_run(op, as_input ? 18 : 11, attributes, as_input ? 1 : 2, inputs, as_input ? 2 : 1, &y);
  double *totals = wanted.data;
  size_t outputs = case_count(&y), elements = case_count(x);
  for (size_t i = 0; i < outputs; ++i) totals[i] = start_of(op);
  for (size_t i = 0; i < elements; ++i) {
    size_t at = target_index(x, axes, i);
    totals[at] = fold_double(op, totals[at], clv__tensor_get(x, i));
  }
  size_t each = outputs > 0 ? elements / outputs : 0;
  for (size_t i = 0; i < outputs; ++i) case_expect(op, &y, i, finish_of(op, totals[i], each), 0.01);
  free(y.data);
  free(wanted.data);
}

static void test_reductions(void **state) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16};
  uint64_t seed = 1;
  (void)state;
  for (int repeat = 0; repeat < 60; ++repeat) {
    int64_t dims[CLV_MAX_RANK];
    int32_t rank = (int32_t)(test_random(&seed) % 6);
    for (int32_t i = 0; i < rank; ++i) dims[i] = (int64_t)(test_random(&seed) % 5 + (test_random(&seed) % 8 != 0));
    if (rank > 0 && test_random(&seed) % 5 == 0) dims[test_random(&seed) % (uint64_t)rank] = 700;
    for (size_t o = 0; o < COUNT(reductions); ++o) {
      clv_tensor x = case_tensor(dtypes[test_random(&seed) % COUNT(dtypes)], rank, dims);
      bool positive = strcmp(reductions[o], "ReduceLogSum") == 0;
      case_fill(&x, strcmp(reductions[o], "ReduceProd") == 0 ? 0.9 : positive ? 0.1 : -2, positive ? 2 : 1.1, &seed);
      check_reduction(reductions[o], &x, (uint32_t)test_random(&seed) & ((1u << rank) - 1));
      free(x.data);
    }
  }
}

/* Tests every set of reduced axes of a tensor of rank 4. */
static void test_every_axis_set(void **state) {
  uint64_t seed = 2;
  (void)state;
  clv_tensor x = case_tensor(CLV_F32, 4, (int64_t[]){3, 4, 2, 5});
  case_fill(&x, -2, 2, &seed);
  for (uint32_t axes = 0; axes < 16; ++axes) check_reduction("ReduceSum", &x, axes);
  free(x.data);
}

static void test_integers(void **state) {
  int32_t data[6] = {INT32_MAX, 1, -5, 7, 0, 2}, y[2];
  clv_tensor x = clv__tensor_make(CLV_I32, 2, (int64_t[]){2, 3}, data), out = clv__tensor_make(CLV_I32, 1, (int64_t[]){2}, y);
  const int64_t axis = 1, no = 0;
  clv_attribute attributes[2] = {case_ints("axes", &axis, 1), case_int("keepdims", &no)};
  (void)state;
  case_run("ReduceSum", 11, attributes, 2, &x, 1, &out);
  assert_true(y[0] == INT32_MAX - 4 && y[1] == 9);
  case_run("ReduceMean", 11, attributes, 2, &x, 1, &out);
  assert_true(y[0] == (INT32_MAX - 4) / 3 && y[1] == 3);
  case_run("ReduceMax", 11, attributes, 2, &x, 1, &out);
  assert_true(y[0] == INT32_MAX && y[1] == 7);
  case_run("ReduceMin", 11, attributes, 2, &x, 1, &out);
  assert_true(y[0] == -5 && y[1] == 0);
  uint64_t large[3] = {(uint64_t)1 << 63, 5, ((uint64_t)1 << 63) + 2}, most;
  clv_tensor xu = clv__tensor_make(CLV_U64, 1, (int64_t[]){3}, large), outu = clv__tensor_make(CLV_U64, 0, NULL, &most);
  case_run("ReduceMax", 13, &attributes[1], 1, &xu, 1, &outu);
  assert_true(most == large[2]);
  bool flags[3] = {false, true, false}, any;
  clv_tensor xb = clv__tensor_make(CLV_BOOL, 1, (int64_t[]){3}, flags), outb = clv__tensor_make(CLV_BOOL, 0, NULL, &any);
  case_run("ReduceMax", 20, &attributes[1], 1, &xb, 1, &outb);
  assert_true(any);
  case_run("ReduceMin", 20, &attributes[1], 1, &xb, 1, &outb);
  assert_true(!any);
}

/* A reduction of no elements must give the identity of the operation; for extremes, the least or greatest number of the
 * dtype. */
static void test_empty(void **state) {
  float y[2];
  int8_t bytes[2];
  clv_tensor x = clv__tensor_make(CLV_F32, 2, (int64_t[]){2, 0}, y), out = clv__tensor_make(CLV_F32, 1, (int64_t[]){2}, y);
  const int64_t axis = 1, no = 0;
  clv_attribute attributes[2] = {case_ints("axes", &axis, 1), case_int("keepdims", &no)};
  (void)state;
  for (size_t o = 0; o < COUNT(reductions); ++o) {
    case_run(reductions[o], 13, attributes, 2, &x, 1, &out);
    double wanted = finish_of(reductions[o], start_of(reductions[o]), 0);
    for (int i = 0; i < 2; ++i) assert_true((double)y[i] == wanted || (isnan(y[i]) && isnan(wanted)));
  }
  x.dtype = out.dtype = CLV_I8;
  x.data = out.data = bytes;
  case_run("ReduceMax", 13, attributes, 2, &x, 1, &out);
  assert_int_equal(bytes[1], INT8_MIN);
  case_run("ReduceMin", 13, attributes, 2, &x, 1, &out);
  assert_int_equal(bytes[0], INT8_MAX);
}

static void test_accuracy(void **state) {
  const int64_t count = 3000000, no = 0;
  clv_tensor x = case_tensor(CLV_F32, 1, &count);
  float y;
  clv_tensor out = clv__tensor_make(CLV_F32, 0, NULL, &y);
  clv_attribute attribute = case_int("keepdims", &no);
  (void)state;
  for (int64_t i = 0; i < count; ++i) ((float *)x.data)[i] = 0.1f;
  case_run("ReduceSum", 13, &attribute, 1, &x, 1, &out);
  assert_true(fabs((double)y / ((double)count * (double)0.1f) - 1) < 1e-7);
#ifdef _OPENMP
  uint64_t seed = 3;
  case_fill(&x, -1, 1, &seed);
  int threads = omp_get_max_threads();
  float by_threads[4];
  for (int t = 0; t < 4; ++t) {
    omp_set_num_threads(t + 1);
    case_run("ReduceSum", 13, &attribute, 1, &x, 1, &out);
    by_threads[t] = y;
  }
  omp_set_num_threads(threads);
  for (int t = 1; t < 4; ++t) assert_memory_equal(&by_threads[0], &by_threads[t], sizeof(float));
#endif
  free(x.data);
}

/* A random tensor, tested along lines of `length` elements that are `inner` apart. */
typedef struct line_case {
  clv_tensor x;
  int32_t axis;
  size_t length, inner;
} line_case;

static line_case random_lines(clv_dtype dtype, uint64_t *seed) {
  int64_t dims[CLV_MAX_RANK];
  line_case c;
  int32_t rank = 1 + (int32_t)(test_random(seed) % 4);
  for (int32_t i = 0; i < rank; ++i) dims[i] = 1 + (int64_t)(test_random(seed) % 5);
  if (test_random(seed) % 3 == 0) dims[test_random(seed) % (uint64_t)rank] = 600;
  c.x = case_tensor(dtype, rank, dims);
  c.axis = (int32_t)(test_random(seed) % (uint64_t)rank);
  c.length = (size_t)dims[c.axis];
  c.inner = (size_t)clv__dims_product(&c.x, c.axis + 1, rank);
  return c;
}
static size_t line_start(const line_case *c, size_t line) {
  return line / c->inner * c->length * c->inner + line % c->inner;
}

static void test_arg(void **state) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_I32, CLV_U8, CLV_I64, CLV_U64};
  uint64_t seed = 4;
  (void)state;
  for (int repeat = 0; repeat < 300; ++repeat) {
    line_case c = random_lines(dtypes[test_random(&seed) % COUNT(dtypes)], &seed);
    case_fill(&c.x, 0, 6, &seed);
    bool smallest = test_random(&seed) % 2 != 0;
    const int64_t axis = c.axis - (repeat % 2 != 0 ? c.x.rank : 0), last = (int64_t)(test_random(&seed) % 2);
    clv_attribute attributes[2] = {case_int("axis", &axis), case_int("select_last_index", &last)};
    size_t lines = case_count(&c.x) / c.length;
    clv_tensor y = case_tensor(CLV_I64, 1, (int64_t[]){(int64_t)lines});
    case_run(smallest ? "ArgMin" : "ArgMax", 13, attributes, 2, &c.x, 1, &y);
    for (size_t line = 0; line < lines; ++line) {
      size_t best = 0;
      for (size_t i = 1; i < c.length; ++i) {
        double value = clv__tensor_get(&c.x, line_start(&c, line) + i * c.inner);
        double than = clv__tensor_get(&c.x, line_start(&c, line) + best * c.inner);
        if ((smallest ? value < than : value > than) || (last != 0 && value == than)) best = i;
      }
      double got = clv__tensor_get(&c.x, line_start(&c, line) + (size_t)((int64_t *)y.data)[line] * c.inner);
      double than = clv__tensor_get(&c.x, line_start(&c, line) + best * c.inner);
      assert_true(got == than); /* different 64-bit integers may be equal as doubles */
      if (c.x.dtype != CLV_I64 && c.x.dtype != CLV_U64) assert_int_equal(((int64_t *)y.data)[line], best);
    }
    free(c.x.data);
    free(y.data);
  }
}

static void test_cumulate(void **state) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_BF16, CLV_I32};
  uint64_t seed = 5;
  (void)state;
  for (int repeat = 0; repeat < 200; ++repeat) {
    line_case c = random_lines(dtypes[test_random(&seed) % COUNT(dtypes)], &seed);
    bool product = test_random(&seed) % 2 != 0 && c.x.dtype != CLV_I32;
    for (size_t i = 0; i < case_count(&c.x); ++i) case_set(&c.x, i, product ? 0.99 : (double)(test_random(&seed) % 7) - 3);
    const int64_t exclusive = (int64_t)(test_random(&seed) % 2), reverse = (int64_t)(test_random(&seed) % 2);
    clv_attribute attributes[2] = {case_int("exclusive", &exclusive), case_int("reverse", &reverse)};
    int32_t axis = c.axis - c.x.rank;
    clv_tensor inputs[2] = {c.x, clv__tensor_make(CLV_I32, 0, NULL, &axis)}, y = case_tensor(c.x.dtype, c.x.rank, c.x.dims);
    case_run(product ? "CumProd" : "CumSum", 26, attributes, 2, inputs, 2, &y);
    for (size_t line = 0; line < case_count(&c.x) / c.length; ++line) {
      double total = product ? 1 : 0;
      for (size_t step = 0; step < c.length; ++step) {
        size_t at = line_start(&c, line) + (reverse != 0 ? c.length - 1 - step : step) * c.inner;
        double value = clv__tensor_get(&c.x, at), before = total;
        total = product ? total * value : total + value;
        case_expect("cumulate", &y, at, exclusive != 0 ? before : total, 0);
      }
    }
    free(c.x.data);
    free(y.data);
  }
}

static void test_softmax(void **state) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16};
  static const char *const ops[] = {"Softmax", "LogSoftmax", "Hardmax"};
  uint64_t seed = 6;
  (void)state;
  for (int repeat = 0; repeat < 300; ++repeat) {
    line_case c = random_lines(dtypes[test_random(&seed) % COUNT(dtypes)], &seed);
    case_fill(&c.x, -9, 9, &seed);
    bool flattens = test_random(&seed) % 3 == 0;
    const int64_t axis = c.axis;
    if (flattens) c.length *= c.inner, c.inner = 1;
    clv_attribute attribute = case_int("axis", &axis);
    clv_tensor y = case_tensor(c.x.dtype, c.x.rank, c.x.dims);
    const char *op = ops[repeat % 3];
    case_run(op, flattens ? 11 : 13, &attribute, 1, &c.x, 1, &y);
    for (size_t line = 0; line < case_count(&c.x) / c.length; ++line) {
      size_t best = line_start(&c, line);
      double sum = 0;
      for (size_t i = 0; i < c.length; ++i) {
        size_t at = line_start(&c, line) + i * c.inner;
        if (clv__tensor_get(&c.x, at) > clv__tensor_get(&c.x, best)) best = at;
      }
      double largest = clv__tensor_get(&c.x, best);
      for (size_t i = 0; i < c.length; ++i) sum += exp(clv__tensor_get(&c.x, line_start(&c, line) + i * c.inner) - largest);
      for (size_t i = 0; i < c.length; ++i) {
        size_t at = line_start(&c, line) + i * c.inner;
        double x = clv__tensor_get(&c.x, at) - largest;
        case_expect(op, &y, at, op[0] == 'S' ? exp(x) / sum : op[0] == 'L' ? x - log(sum) : at == best, op[0] == 'L' ? 1 : 0.001);
      }
    }
    free(c.x.data);
    free(y.data);
  }
}

static void test_refusals(void **state) {
  float data[2] = {1, 2};
  int64_t axis = 3, y[2];
  clv_tensor x = clv__tensor_make(CLV_F32, 1, (int64_t[]){2}, data), axes = clv__tensor_make(CLV_I64, 1, (int64_t[]){1}, &axis);
  clv_tensor inputs[2] = {x, axes}, out = clv__tensor_make(CLV_F32, 1, (int64_t[]){2}, y);
  clv_error error;
  (void)state;
  assert_int_equal(case_try("ReduceSum", 13, NULL, 0, inputs, 2, &out, 1, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "out of range for rank 1"));
  assert_int_equal(case_try("CumSum", 14, NULL, 0, inputs, 2, &out, 1, &error), CLV_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reductions), cmocka_unit_test(test_every_axis_set), cmocka_unit_test(test_integers),
      cmocka_unit_test(test_empty),      cmocka_unit_test(test_accuracy),       cmocka_unit_test(test_arg),
      cmocka_unit_test(test_cumulate),   cmocka_unit_test(test_softmax),        cmocka_unit_test(test_refusals),
  };
  return RUN_BOTH_KERNELS(tests);
}
