/* Tests the normalizations against their formulas in f64. */
#include "node_case.h"

static const double epsilon = (double)1e-5f;

/* Mean and variance of elements [first, first + count). */
static void moments(const clv_tensor *x, size_t first, size_t count, double *mean, double *variance) {
  *mean = *variance = 0;
  for (size_t i = 0; i < count; ++i) *mean += clv__tensor_get(x, first + i) / (double)count;
  for (size_t i = 0; i < count; ++i) {
    double d = clv__tensor_get(x, first + i) - *mean;
    *variance += d * d / (double)count;
  }
}

static int32_t random_dims(uint64_t *seed, int32_t low_rank, int64_t channels, int64_t *dims) {
  int32_t rank = (int32_t)random_in(seed, low_rank, 5);
  for (int32_t i = 0; i < rank; ++i) dims[i] = random_in(seed, 1, i < 2 ? 3 : 9);
  if (rank > 1) dims[1] = channels;
  return rank;
}

static void test_batch(void **state) {
  (void)state;
  uint64_t seed = 41;
  for (int i = 0; i < 60; ++i) {
    int64_t dims[5], channels = random_in(&seed, 1, 7);
    int32_t rank = random_dims(&seed, 2, channels, dims);
    clv_dtype dtype = random_float_dtype(&seed);
    node_case *c = case_begin("BatchNormalization", i % 2 == 0 ? 9 : 15);
    clv_tensor *x = case_input(c, &seed, dtype, rank, dims);
    for (int k = 0; k < 4; ++k) case_input(c, &seed, i % 2 == 1 && k >= 2 ? CLV_F32 : dtype, 1, &channels);
    for (int64_t k = 0; k < channels; ++k)
      element_set(&c->inputs[4], (size_t)k, 0.25 + fabs(clv__tensor_get(&c->inputs[4], (size_t)k)));
    case_run(c);
    size_t count = count_of(x), plane = count / (size_t)(dims[0] * channels);
    double *y = calloc(count, sizeof *y);
    for (size_t e = 0; e < count; ++e) {
      size_t k = e / plane % (size_t)channels;
      double factor = clv__tensor_get(&c->inputs[1], k) / sqrt(clv__tensor_get(&c->inputs[4], k) + epsilon);
      y[e] = (clv__tensor_get(x, e) - clv__tensor_get(&c->inputs[3], k)) * factor + clv__tensor_get(&c->inputs[2], k);
    }
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

/* Training mode must be rejected with a reason. */
static void test_batch_training(void **state) {
  (void)state;
  uint64_t seed = 42;
  int64_t channels = 2;
  char reason[160] = "";
  node_case *c = case_begin("BatchNormalization", 15);
  case_int(c, "training_mode", 1);
  case_input(c, &seed, CLV_F32, 2, (int64_t[]){3, 2});
  for (int k = 0; k < 4; ++k) case_input(c, &seed, CLV_F32, 1, &channels);
  assert_ok(case_infer(c), c->error);
  clv__kernel_call call = {.op = c->op,
                           .opset = 15,
                           .attributes = {c->attributes, 1},
                           .inputs = c->inputs,
                           .input_count = 5,
                           .outputs = c->outputs,
                           .output_count = 1,
                           .error = &c->error};
  assert_false(clv__kernel_accepts(find_kernel("", c->op), &call, reason));
  assert_non_null(strstr(reason, "training"));
  case_end(c);
}

/* Tests InstanceNormalization, and GroupNormalization with one scale per group (opset 18) or per channel (opset 21). */
static void test_groups(void **state) {
  (void)state;
  uint64_t seed = 43;
  for (int i = 0; i < 90; ++i) {
    int64_t dims[5], groups = random_in(&seed, 1, 3), channels = groups * random_in(&seed, 1, 3);
    bool instance = i % 3 == 0, by_group = i % 3 == 1;
    if (instance) groups = channels;
    int32_t rank = random_dims(&seed, 3, channels, dims);
    node_case *c = case_begin(instance ? "InstanceNormalization" : "GroupNormalization", by_group ? 18 : 21);
    if (!instance) case_int(c, "num_groups", groups);
    clv_dtype dtype = random_float_dtype(&seed);
    clv_tensor *x = case_input(c, &seed, dtype, rank, dims);
    for (int k = 0; k < 2; ++k) case_input(c, &seed, dtype, 1, by_group ? &groups : &channels);
    case_run(c);
    size_t count = count_of(x), plane = count / (size_t)(dims[0] * channels), part = count / (size_t)(dims[0] * groups);
    double *y = calloc(count, sizeof *y), mean = 0, variance = 0;
    for (size_t e = 0; e < count; ++e) {
      if (e % part == 0) moments(x, e, part, &mean, &variance);
      size_t k = by_group ? e / part % (size_t)groups : e / plane % (size_t)channels;
      y[e] = (clv__tensor_get(x, e) - mean) / sqrt(variance + epsilon) * clv__tensor_get(&c->inputs[1], k) +
             clv__tensor_get(&c->inputs[2], k);
    }
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

/* Tests LayerNormalization, with the statistics as outputs, and RMSNormalization. The scale has all of the normalized axes,
 * some of them, or more axes than these. */
static void test_layer(void **state) {
  (void)state;
  uint64_t seed = 44;
  for (int i = 0; i < 120; ++i) {
    bool layer = i % 2 == 0;
    int64_t dims[4], scale_dims[4];
    int32_t rank = (int32_t)random_in(&seed, 1, 4), axis = (int32_t)random_in(&seed, 0, rank - 1);
    for (int32_t d = 0; d < rank; ++d) dims[d] = random_in(&seed, 1, d == rank - 1 ? 700 : 4);
    int32_t scale_rank = (int32_t)random_in(&seed, 0, rank);
    for (int32_t d = 0; d < scale_rank; ++d) {
      scale_dims[d] = random_in(&seed, 0, 3) == 0 ? 1 : dims[rank - scale_rank + d];
    }
    node_case *c = case_begin(layer ? "LayerNormalization" : "RMSNormalization", 23);
    case_int(c, "axis", random_in(&seed, 0, 1) != 0 ? axis : axis - rank);
    clv_dtype dtype = random_float_dtype(&seed);
    clv_tensor *x = case_input(c, &seed, dtype, rank, dims), *scale = case_input(c, &seed, dtype, scale_rank, scale_dims);
    clv_tensor *bias = layer && random_in(&seed, 0, 1) != 0 ? case_input(c, &seed, dtype, scale_rank, scale_dims) : NULL;
    c->output_count = layer ? 3 : 1;
    case_run(c);
    size_t count = count_of(x), inner = 1;
    for (int32_t d = axis; d < rank; ++d) inner *= (size_t)dims[d];
    double *y = calloc(count, sizeof *y), *means = calloc(count, sizeof *y), *inverses = calloc(count, sizeof *y);
    for (size_t row = 0; row < count / inner; ++row) {
      double variance;
      moments(x, row * inner, inner, &means[row], &variance);
      if (!layer) variance += means[row] * means[row], means[row] = 0;
      inverses[row] = 1 / sqrt(variance + epsilon);
    }
    for (size_t e = 0; e < count; ++e) {
      size_t rest = e, at = 0, step = 1;
      for (int32_t d = 1; d <= scale_rank; ++d) {
        if (scale_dims[scale_rank - d] != 1) at += rest % (size_t)dims[rank - d] * step;
        step *= (size_t)scale_dims[scale_rank - d];
        rest /= (size_t)dims[rank - d];
      }
      y[e] = (clv__tensor_get(x, e) - means[e / inner]) * inverses[e / inner] * clv__tensor_get(scale, at);
      if (bias != NULL) y[e] += clv__tensor_get(bias, at);
    }
    case_expect(c, 0, y);
    if (layer) {
      assert_int_equal(c->outputs[1].dtype, CLV_F32);
      case_expect(c, 1, means);
      case_expect(c, 2, inverses);
    }
    free(y);
    free(means);
    free(inverses);
    case_end(c);
  }
}

static void test_lrn(void **state) {
  (void)state;
  uint64_t seed = 45;
  for (int i = 0; i < 60; ++i) {
    int64_t dims[4] = {2, random_in(&seed, 1, 9), random_in(&seed, 1, 30), random_in(&seed, 1, 30)},
            size = random_in(&seed, 1, 7);
    float beta = i % 2 == 0 ? 0.75f : 0.6f;
    node_case *c = case_begin("LRN", 13);
    case_int(c, "size", size);
    case_float(c, "alpha", 0.5f);
    case_float(c, "beta", beta);
    case_float(c, "bias", 1.5f);
    clv_tensor *x = case_input(c, &seed, random_float_dtype(&seed), 4, dims);
    case_run(c);
    size_t count = count_of(x);
    int64_t plane = dims[2] * dims[3];
    double *y = calloc(count, sizeof *y);
    for (int64_t e = 0; e < (int64_t)count; ++e) {
      int64_t channel = e / plane % dims[1];
      double sum = 0;
      for (int64_t k = channel - (size - 1) / 2; k <= channel + size / 2; ++k) {
        if (k < 0 || k >= dims[1]) continue;
        double value = clv__tensor_get(x, (size_t)(e + (k - channel) * plane));
        sum += value * value;
      }
      y[e] = clv__tensor_get(x, (size_t)e) / pow(1.5 + 0.5 / (double)size * sum, (double)beta);
    }
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

/* Tests MeanVarianceNormalization over axes 0 and 2, and LpNormalization along axis 1, of tensors of rank 3. */
static void test_axes(void **state) {
  (void)state;
  uint64_t seed = 46;
  for (int i = 0; i < 60; ++i) {
    size_t a = (size_t)random_in(&seed, 1, 4), b = (size_t)random_in(&seed, 1, 6), n = (size_t)random_in(&seed, 2, 9);
    bool lp = i % 2 == 0;
    int64_t p = random_in(&seed, 1, 2);
    node_case *c = case_begin(lp ? "LpNormalization" : "MeanVarianceNormalization", 22);
    if (lp) case_int(c, "axis", -2), case_int(c, "p", p);
    if (!lp) case_ints(c, "axes", 2, (int64_t[]){0, -1});
    clv_tensor *x = case_input(c, &seed, random_float_dtype(&seed), 3, (int64_t[]){(int64_t)a, (int64_t)b, (int64_t)n});
    if (lp)
      for (size_t j = 0; j < b; ++j) element_set(x, j * n, 0); /* a line of zeros, whose norm is 0 */
    case_run(c);
    double *y = calloc(a * b * n, sizeof *y);
    for (size_t e = 0; e < a * b * n; ++e) {
      size_t i0 = e / n / b, i1 = e / n % b, i2 = e % n;
      double norm = 0, mean = 0, variance = 0;
      for (size_t j = 0; j < b; ++j) {
        double value = fabs(clv__tensor_get(x, (i0 * b + j) * n + i2));
        norm += p == 1 ? value : value * value;
      }
      for (size_t j = 0; j < a * n; ++j) mean += clv__tensor_get(x, (j / n * b + i1) * n + j % n) / (double)(a * n);
      for (size_t j = 0; j < a * n; ++j) {
        double d = clv__tensor_get(x, (j / n * b + i1) * n + j % n) - mean;
        variance += d * d / (double)(a * n);
      }
      double value = clv__tensor_get(x, e);
      norm = p == 1 ? norm : sqrt(norm);
      y[e] = lp ? (norm == 0 ? 0 : value / norm) : (value - mean) / (sqrt(variance) + 1e-9);
    }
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batch),  cmocka_unit_test(test_batch_training),
      cmocka_unit_test(test_groups), cmocka_unit_test(test_layer),
      cmocka_unit_test(test_lrn),    cmocka_unit_test(test_axes),
  };
  return RUN_BOTH_KERNELS(tests);
}
