/* Tests pools against loops over windows in f64, with random shapes, attributes and dtypes. */
#include "node_case.h"

typedef struct pool_shape {
  int32_t spatial;
  int64_t input[3], kernel[3], stride[3], dilation[3], begin[3], end[3], output[3];
} pool_shape;

static void shape_random(uint64_t *seed, node_case *c, pool_shape *s) {
  static const char *const pads[] = {NULL, NULL, NULL, "SAME_UPPER", "SAME_LOWER", "VALID"};
  memset(s, 0, sizeof *s);
  s->spatial = (int32_t)random_in(seed, 1, 3);
  const char *auto_pad = pads[random_in(seed, 0, 5)];
  bool ceil_mode = random_in(seed, 0, 2) == 0;
  int64_t list[6] = {0};
  for (int i = 0; i < s->spatial; ++i) {
    s->kernel[i] = random_in(seed, 1, 4);
    s->stride[i] = random_in(seed, 1, 3);
    s->dilation[i] = random_in(seed, 1, 2);
    int64_t extent = (s->kernel[i] - 1) * s->dilation[i] + 1;
    s->input[i] = extent + random_in(seed, 0, 6);
    if (auto_pad == NULL) {
      list[i] = s->begin[i] = random_in(seed, 0, (s->kernel[i] - 1) / 2);
      list[s->spatial + i] = s->end[i] = random_in(seed, 0, (s->kernel[i] - 1) / 2);
    }
    if (auto_pad != NULL && auto_pad[0] == 'S') {
      s->output[i] = (s->input[i] + s->stride[i] - 1) / s->stride[i];
      int64_t total = (s->output[i] - 1) * s->stride[i] + extent - s->input[i];
      if (total < 0) total = 0;
      s->begin[i] = strcmp(auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
      s->end[i] = total - s->begin[i];
      continue;
    }
    int64_t room = s->input[i] + s->begin[i] + s->end[i] - extent;
    s->output[i] = (ceil_mode ? (room + s->stride[i] - 1) / s->stride[i] : room / s->stride[i]) + 1;
    if (ceil_mode && (s->output[i] - 1) * s->stride[i] >= s->input[i] + s->begin[i]) --s->output[i];
  }
  case_ints(c, "kernel_shape", (size_t)s->spatial, s->kernel);
  case_ints(c, "strides", (size_t)s->spatial, s->stride);
  case_ints(c, "dilations", (size_t)s->spatial, s->dilation);
  case_int(c, "ceil_mode", ceil_mode);
  if (auto_pad != NULL) {
    case_string(c, "auto_pad", auto_pad);
  } else {
    case_ints(c, "pads", (size_t)(2 * s->spatial), list);
  }
}

static bool advance(int32_t rank, const int64_t *limits, int64_t *index) {
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (++index[i] < limits[i]) return true;
    index[i] = 0;
  }
  return false;
}

/* The facts of a window: its largest element and the element's index, the sum of the elements or of their powers, and the numbers
 * of taps inside the input and inside the padded input. */
typedef struct window_facts {
  double largest, sum;
  int64_t where, where_column_major, inside, padded;
} window_facts;

static window_facts window_walk(const pool_shape *s, const clv_tensor *x, int64_t base, const int64_t *at, double power) {
  window_facts f = {-INFINITY, 0, -1, -1, 0, 0};
  int64_t k[3] = {0};
  do {
    int64_t flat = 0, reversed = 0, step = 1;
    bool inside = true, padded = true;
    for (int i = 0; i < s->spatial; ++i) {
      int64_t p = at[i] * s->stride[i] + k[i] * s->dilation[i] - s->begin[i];
      inside = inside && p >= 0 && p < s->input[i];
      padded = padded && p < s->input[i] + s->end[i];
      flat = flat * s->input[i] + p;
      reversed += p * step;
      step *= s->input[i];
    }
    f.padded += padded;
    if (!inside) continue;
    double value = clv__tensor_get(x, (size_t)(base + flat));
    ++f.inside;
    f.sum += power == 0 ? value : pow(fabs(value), power);
    if (value > f.largest) f.largest = value, f.where = base + flat, f.where_column_major = base + reversed;
  } while (advance(s->spatial, s->kernel, k));
  return f;
}

static void one_case(uint64_t *seed, const char *op) {
  static const clv_dtype bytes[] = {CLV_I8, CLV_U8};
  node_case *c = case_begin(op, 22);
  pool_shape s;
  shape_random(seed, c, &s);
  bool is_max = strcmp(op, "MaxPool") == 0, is_lp = strcmp(op, "LpPool") == 0;
  bool include = random_in(seed, 0, 1) != 0, column_major = random_in(seed, 0, 1) != 0;
  int64_t power = random_in(seed, 1, 3);
  if (is_max) c->output_count = (uint32_t)random_in(seed, 1, 2), case_int(c, "storage_order", column_major);
  if (is_lp) case_int(c, "p", power);
  if (!is_max && !is_lp) case_int(c, "count_include_pad", include);
  int64_t dims[5] = {random_in(seed, 1, 2), random_in(seed, 1, 3)}, plane = 1;
  for (int i = 0; i < s.spatial; ++i) dims[2 + i] = s.input[i], plane *= s.input[i];
  clv_dtype dtype = is_max && random_in(seed, 0, 3) == 0 ? bytes[random_in(seed, 0, 1)] : random_float_dtype(seed);
  clv_tensor *x = case_input(c, seed, dtype, 2 + s.spatial, dims);
  case_run(c);
  size_t count = count_of(&c->outputs[0]), at = 0;
  double *y = calloc(count, sizeof *y), *indices = calloc(count, sizeof *indices);
  for (int64_t p = 0; p < dims[0] * dims[1]; ++p) {
    int64_t o[3] = {0};
    do {
      window_facts f = window_walk(&s, x, p * plane, o, is_lp ? (double)power : 0);
      y[at] = is_max ? f.largest : is_lp ? pow(f.sum, 1.0 / (double)power) : f.sum / (double)(include ? f.padded : f.inside);
      indices[at++] = (double)(column_major ? f.where_column_major : f.where);
    } while (advance(s.spatial, s.output, o));
  }
  assert_int_equal(at, count);
  case_expect(c, 0, y);
  if (c->output_count == 2) case_expect(c, 1, indices);
  free(y);
  free(indices);
  case_end(c);
}

static void test_max(void **state) {
  (void)state;
  uint64_t seed = 31;
  for (int i = 0; i < 200; ++i) one_case(&seed, "MaxPool");
}

static void test_average(void **state) {
  (void)state;
  uint64_t seed = 32;
  for (int i = 0; i < 200; ++i) one_case(&seed, "AveragePool");
}

static void test_lp(void **state) {
  (void)state;
  uint64_t seed = 33;
  for (int i = 0; i < 100; ++i) one_case(&seed, "LpPool");
}

static void test_global(void **state) {
  (void)state;
  static const char *const ops[] = {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"};
  uint64_t seed = 34;
  for (int i = 0; i < 60; ++i) {
    node_case *c = case_begin(ops[i % 3], 22);
    int64_t dims[5] = {2, 3, random_in(&seed, 1, 9), random_in(&seed, 1, 9), random_in(&seed, 1, 3)};
    int32_t rank = (int32_t)random_in(&seed, 2, 5);
    clv_tensor *x = case_input(c, &seed, random_float_dtype(&seed), rank, dims);
    case_run(c);
    assert_int_equal(c->outputs[0].rank, rank);
    size_t plane = count_of(x) / 6;
    double y[6];
    for (size_t p = 0; p < 6; ++p) {
      double largest = -INFINITY, sum = 0, squares = 0;
      for (size_t j = 0; j < plane; ++j) {
        double value = clv__tensor_get(x, p * plane + j);
        if (value > largest) largest = value;
        sum += value;
        squares += value * value;
      }
      y[p] = i % 3 == 0 ? largest : i % 3 == 1 ? sum / (double)plane : sqrt(squares);
    }
    case_expect(c, 0, y);
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_max),
      cmocka_unit_test(test_average),
      cmocka_unit_test(test_lp),
      cmocka_unit_test(test_global),
  };
  return RUN_BOTH_KERNELS(tests);
}
