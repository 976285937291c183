/* Tests quantization against the formula in double, for one scale per tensor, per slice of an axis and per block. */
#include "kernel_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct scales {
  clv_tensor x, scale, zero;
  int32_t axis;
  int64_t block; /* elements along the axis per scale; 0: one scale per slice; -1: one for the tensor */
} scales;

/* The index of the scale for element `index` of x. */
static size_t scale_index(const scales *s, size_t index) {
  if (s->block < 0) return 0;
  size_t length = (size_t)s->x.dims[s->axis], inner = (size_t)clv__dims_product(&s->x, s->axis + 1, s->x.rank);
  size_t position = index / inner % length;
  if (s->block == 0) return position;
  size_t blocks = (size_t)s->scale.dims[s->axis];
  return (index / inner / length * blocks + position / (size_t)s->block) * inner + index % inner;
}

static scales random_scales(clv_dtype x, clv_dtype scale, clv_dtype zero, uint64_t *seed) {
  scales s = {.block = (int64_t)(test_random(seed) % 5) - 1};
  int64_t dims[CLV_MAX_RANK], scale_dims[CLV_MAX_RANK];
  int32_t rank = 2 + (int32_t)(test_random(seed) % 3);
  for (int32_t i = 0; i < rank; ++i) dims[i] = scale_dims[i] = 1 + (int64_t)(test_random(seed) % 7);
  dims[test_random(seed) % (uint64_t)rank] += test_random(seed) % 4 == 0 ? 600 : 0;
  s.axis = (int32_t)(test_random(seed) % (uint64_t)rank);
  for (int32_t i = 0; i < rank; ++i) scale_dims[i] = dims[i];
  if (s.block > 0) scale_dims[s.axis] = (dims[s.axis] + s.block - 1) / s.block;
  int32_t scale_rank = s.block < 0 ? 0 : s.block == 0 ? 1 : rank;
  if (s.block == 0) scale_dims[0] = dims[s.axis];
  s.x = case_tensor(x, rank, dims);
  s.scale = case_tensor(scale, scale_rank, scale_dims);
  s.zero = case_tensor(zero, scale_rank, scale_dims);
  case_fill(&s.scale, 0.01, 0.5, seed);
  for (size_t i = 0; i < case_count(&s.zero); ++i) case_set(&s.zero, i, (double)(test_random(seed) % 20));
  return s;
}

static void release(scales *s, clv_tensor *y) {
  free(s->x.data);
  free(s->scale.data);
  free(s->zero.data);
  free(y->data);
}

static const clv_dtype integers[] = {CLV_U8, CLV_I8, CLV_U16, CLV_I16};
static const double lowest[] = {0, -128, 0, -32768}, highest[] = {255, 127, 65535, 32767};

static void test_quantize(void **state) {
  static const clv_dtype sources[] = {CLV_F32, CLV_F16, CLV_BF16, CLV_I32};
  uint64_t seed = 1;
  (void)state;
  for (int repeat = 0; repeat < 300; ++repeat) {
    size_t to = test_random(&seed) % COUNT(integers);
    scales s = random_scales(sources[test_random(&seed) % COUNT(sources)], CLV_F32, integers[to], &seed);
    case_fill(&s.x, -60, 90, &seed);
    const int64_t axis = s.axis - s.x.rank, block = s.block > 0 ? s.block : 0;
    clv_attribute attributes[2] = {case_int("axis", &axis), case_int("block_size", &block)};
    clv_tensor inputs[3] = {s.x, s.scale, s.zero}, y = case_tensor(integers[to], s.x.rank, s.x.dims);
    case_run("QuantizeLinear", 21, attributes, 2, inputs, 3, &y);
    for (size_t i = 0; i < case_count(&y); ++i) {
      size_t at = scale_index(&s, i);
      float quotient = (float)clv__tensor_get(&s.x, i) / (float)clv__tensor_get(&s.scale, at);
      double wanted = rint((double)quotient) + clv__tensor_get(&s.zero, at);
      wanted = fmin(fmax(wanted, lowest[to]), highest[to]);
      if (clv__tensor_get(&y, i) != wanted) fail_msg("element %zu is %g, expected %g", i, clv__tensor_get(&y, i), wanted);
    }
    release(&s, &y);
  }
}

static void test_dequantize(void **state) {
  static const clv_dtype targets[] = {CLV_F32, CLV_F16, CLV_BF16};
  uint64_t seed = 2;
  (void)state;
  for (int repeat = 0; repeat < 300; ++repeat) {
    clv_dtype from = integers[test_random(&seed) % COUNT(integers)];
    scales s = random_scales(from, targets[test_random(&seed) % COUNT(targets)], from, &seed);
    case_fill(&s.x, 0, 100, &seed);
    const int64_t axis = s.axis, block = s.block > 0 ? s.block : 0;
    clv_attribute attributes[2] = {case_int("axis", &axis), case_int("block_size", &block)};
    bool with_zero = test_random(&seed) % 2 == 0;
    clv_tensor inputs[3] = {s.x, s.scale, s.zero}, y = case_tensor(s.scale.dtype, s.x.rank, s.x.dims);
    case_run("DequantizeLinear", 21, attributes, 2, inputs, with_zero ? 3 : 2, &y);
    for (size_t i = 0; i < case_count(&y); ++i) {
      size_t at = scale_index(&s, i);
      double zero = with_zero ? clv__tensor_get(&s.zero, at) : 0;
      case_expect("DequantizeLinear", &y, i, (clv__tensor_get(&s.x, i) - zero) * clv__tensor_get(&s.scale, at), 0);
    }
    release(&s, &y);
  }
}

static void test_dynamic(void **state) {
  float x[6] = {0, 2, -3, -2.5f, 1.34f, 0.5f}, scale;
  uint8_t y[6], zero;
  clv_tensor input = clv__tensor_make(CLV_F32, 1, (int64_t[]){6}, x);
  clv_tensor outputs[3] = {clv__tensor_make(CLV_U8, 1, (int64_t[]){6}, y), clv__tensor_make(CLV_F32, 0, NULL, &scale),
                           clv__tensor_make(CLV_U8, 0, NULL, &zero)};
  clv_error error;
  (void)state;
  assert_ok(case_try("DynamicQuantizeLinear", 11, NULL, 0, &input, 1, outputs, 3, &error), error);
  assert_true(fabsf(scale - 5.0f / 255) < 1e-8f);
  assert_int_equal(zero, 153);
  assert_true(y[0] == 153 && y[1] == 255 && y[2] == 0);
  memset(x, 0, sizeof x);
  assert_ok(case_try("DynamicQuantizeLinear", 11, NULL, 0, &input, 1, outputs, 3, &error), error);
  assert_true(zero == 0 && y[3] == 0 && isfinite(scale));
}

/* Tests lengths near those of vectors, blocks and a thread's share, with the least and the greatest element at random
 * positions, and with NaNs. */
static void test_dynamic_lengths(void **state) {
  static const int64_t counts[] = {1, 63, 64, 65, 130, 4095, 4096, 4097, 12345, 200003};
  uint64_t seed = 9;
  (void)state;
  for (size_t k = 0; k < 3 * sizeof counts / sizeof *counts; ++k) {
    const int64_t count = counts[k / 3];
    clv_tensor x = case_tensor(CLV_F32, 1, &count);
    clv_tensor outputs[3] = {case_tensor(CLV_U8, 1, &count), case_tensor(CLV_F32, 0, NULL), case_tensor(CLV_U8, 0, NULL)};
    clv_error error;
    float *values = x.data, low = 0, high = 0;
    case_fill(&x, k % 3 == 1 ? 0.5 : -1, 1, &seed);
    values[test_random(&seed) % (uint64_t)count] = k % 3 == 2 ? NAN : 7.5f;
    values[test_random(&seed) % (uint64_t)count] = k % 3 == 1 ? 3.0f : -2.25f;
    assert_ok(case_try("DynamicQuantizeLinear", 11, NULL, 0, &x, 1, outputs, 3, &error), error);
    for (int64_t i = 0; i < count; ++i) {
      if (values[i] < low) low = values[i];
      if (values[i] > high) high = values[i];
    }
    const float scale = high > low ? (high - low) / 255 : 1, zero = rintf(-low / scale);
    assert_true(*(const float *)outputs[1].data == scale && *(const uint8_t *)outputs[2].data == (uint8_t)zero);
    for (int64_t i = 0; i < count; ++i) {
      const float rounded = isnan(values[i]) ? zero : rintf(values[i] / scale) + zero;
      const int wanted = rounded < 0 ? 0 : rounded > 255 ? 255 : (int)rounded, made = ((const uint8_t *)outputs[0].data)[i];
      if (made != wanted) fail_msg("element %lld of %lld is %d, expected %d", (long long)i, (long long)count, made, wanted);
    }
    free(x.data);
    for (int i = 0; i < 3; ++i) free(outputs[i].data);
  }
}

/* Quantizes to u8 and i8 with one scale: numbers at the bounds of the dtype, next to them and far beyond them, and NaNs; scales
 * of any size. */
static void test_bytes(void **state) {
  static const float sizes[] = {1, 0.1f, 0.0392156877f, 3, 0x1.fffffep-1f, 0x1p-60f, 0x1.8p-61f, 0x1p61f, 0x1p-130f, -0.25f};
  uint64_t seed = 4;
  (void)state;
  for (int round = 0; round < 400; ++round) {
    const int64_t count = 1 + (int64_t)(test_random(&seed) % (round % 50 == 0 ? 9000 : 70));
    const bool is_signed = test_random(&seed) % 2 == 0;
    const float wide = 1.0f + (float)(test_random(&seed) % 1000000) / 1e6f;
    const float scale = round % 2 == 0 ? wide : sizes[test_random(&seed) % COUNT(sizes)];
    const int zero = is_signed ? (int)(test_random(&seed) % 256) - 128 : (int)(test_random(&seed) % 256);
    const int least = is_signed ? INT8_MIN : 0, most = is_signed ? INT8_MAX : UINT8_MAX;
    const uint8_t zero_byte = (uint8_t)zero;
    clv_tensor x = case_tensor(CLV_F32, 1, &count), y = case_tensor(is_signed ? CLV_I8 : CLV_U8, 1, &count);
    clv_tensor inputs[3] = {x, clv__tensor_make(CLV_F32, 0, NULL, (void *)&scale), y};
    inputs[2].rank = 0;
    inputs[2].data = (void *)&zero_byte;
    float *numbers = x.data;
    for (int64_t i = 0; i < count; ++i) {
      const float tie = (float)((int)(test_random(&seed) % 600) - 300) + 0.5f, at = tie * scale;
      const float odd[] = {at,    nextafterf(at, INFINITY), nextafterf(at, -INFINITY), 0, NAN, INFINITY, -INFINITY, 3e38f, -3e38f,
                           1e-40f};
      const uint64_t kind = test_random(&seed) % 16;
      numbers[i] = kind < COUNT(odd) ? odd[kind] : at * 0.37f;
    }
    case_run("QuantizeLinear", 13, NULL, 0, inputs, 3, &y);
    for (int64_t i = 0; i < count; ++i) {
      const float quotient = numbers[i] / scale, rounded = isnan(quotient) ? 0 : rintf(quotient);
      const float sum = rounded + (float)zero;
      const int wanted = sum < (float)least ? least : sum > (float)most ? most : (int)sum;
      const int made = is_signed ? ((const int8_t *)y.data)[i] : ((const uint8_t *)y.data)[i];
      if (made != wanted) {
        fail_msg("%.9g quantised with the scale %.9g, element %lld of %lld, is %d, expected %d", (double)numbers[i],
                 (double)scale, (long long)i, (long long)count, made, wanted);
      }
    }
    free(x.data);
    free(y.data);
  }
}

/* If the number of scales does not match the axis, the call must be rejected, and no scale may be read beyond the end. */
static void test_refusals(void **state) {
  float x[6] = {0}, scale[4] = {1, 1, 1, 1};
  uint8_t y[6], zero[2] = {0};
  clv_tensor inputs[3] = {clv__tensor_make(CLV_F32, 2, (int64_t[]){2, 3}, x), clv__tensor_make(CLV_F32, 1, (int64_t[]){2}, scale),
                          clv__tensor_make(CLV_U8, 1, (int64_t[]){2}, zero)};
  clv_tensor out = clv__tensor_make(CLV_U8, 2, (int64_t[]){2, 3}, y);
  const int64_t axis = 1, too_far = 2, block = 2;
  clv_attribute attributes[2] = {case_int("axis", &axis), case_int("block_size", &block)};
  clv_error error;
  (void)state;
  assert_int_equal(case_try("QuantizeLinear", 21, attributes, 1, inputs, 2, &out, 1, &error), CLV_INVALID_ARGUMENT);
  attributes[0].ints = &too_far;
  assert_int_equal(case_try("QuantizeLinear", 21, attributes, 1, inputs, 2, &out, 1, &error), CLV_INVALID_ARGUMENT);
  attributes[0].ints = &axis;
  inputs[1] = clv__tensor_make(CLV_F32, 2, (int64_t[]){2, 1}, scale);
  assert_int_equal(case_try("QuantizeLinear", 21, attributes, 2, inputs, 2, &out, 1, &error), CLV_INVALID_ARGUMENT);
  inputs[1] = clv__tensor_make(CLV_F32, 1, (int64_t[]){3}, scale);
  assert_int_equal(case_try("QuantizeLinear", 21, attributes, 1, inputs, 3, &out, 1, &error), CLV_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_quantize), cmocka_unit_test(test_dequantize),
                                     cmocka_unit_test(test_dynamic),  cmocka_unit_test(test_dynamic_lengths),
                                     cmocka_unit_test(test_bytes),    cmocka_unit_test(test_refusals)};
  return RUN_BOTH_KERNELS(tests);
}
