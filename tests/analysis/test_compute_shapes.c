/* Shape inference of operators that do arithmetic, such as Conv and MatMul: symbolic dims are preserved, ranks may be unknown,
 * and errors name the contradicting values. */
#include "support.h"

#include <string.h>

#include "operators/infer.h"

#define N CLV_DIM_SYMBOL(0)
#define M CLV_DIM_SYMBOL(1)
#define UNKNOWN CLV_DIM_UNKNOWN

static clv_error error;

static clv_tensor type(clv_dtype dtype, int32_t rank, const int64_t *dims) {
  return clv__tensor_make(dtype, rank, dims, NULL);
}
#define F32(...) type(CLV_F32, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static clv_attribute ints(const char *name, size_t count, const int64_t *values) {
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = count, .ints = values};
}

static clv_attribute text(const char *name, const clv_string *value) {
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = value};
}

static clv_status infer(const char *op, int32_t opset, const clv_attribute *attributes, uint32_t attribute_count,
                        const clv_tensor *inputs, uint32_t input_count, clv_tensor *output) {
  clv__content content = {0};
  *output = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
  error.message[0] = '\0';
  clv__infer call = {.op = op,
                     .opset = opset,
                     .attributes = {attributes, attribute_count},
                     .inputs = inputs,
                     .input_count = input_count,
                     .outputs = output,
                     .output_count = 1,
                     .output_content = &content,
                     .allocator = clv__allocator_default(),
                     .error = &error};
  return clv__op_find("", op)->infer(&call);
}

static void assert_dims(const clv_tensor *t, int32_t rank, const int64_t *dims) {
  assert_int_equal(t->rank, rank);
  for (int32_t i = 0; i < rank; ++i) assert_true(t->dims[i] == dims[i]);
}

static void test_symbols_stay(void **state) {
  (void)state;
  clv_tensor y;
  const int64_t one[] = {1, 1, 1, 1}, two[] = {2, 2};
  clv_attribute padded[] = {ints("pads", 4, one)}, strided[] = {ints("pads", 4, one), ints("strides", 2, two)};
  clv_tensor conv[] = {F32(N, 3, M, 224), F32(8, 3, 3, 3)};
  assert_ok(infer("Conv", 11, padded, 1, conv, 2, &y), error);
  assert_dims(&y, 4, (int64_t[]){N, 8, M, 224});
  assert_ok(infer("Conv", 11, strided, 2, conv, 2, &y), error);
  assert_dims(&y, 4, (int64_t[]){N, 8, UNKNOWN, 112});
  conv[0].rank = CLV_RANK_UNKNOWN;
  assert_ok(infer("Conv", 11, padded, 1, conv, 2, &y), error);
  assert_dims(&y, 4, (int64_t[]){UNKNOWN, 8, UNKNOWN, UNKNOWN});
  clv_tensor product[] = {F32(N, 12, M, 64), F32(N, 12, 64, M)};
  assert_ok(infer("MatMul", 13, NULL, 0, product, 2, &y), error);
  assert_dims(&y, 4, (int64_t[]){N, 12, M, M});
  clv_string equation = {"bij,bjk->bik", 12};
  clv_attribute einsum[] = {text("equation", &equation)};
  clv_tensor factors[] = {F32(N, 4, M), F32(N, M, 5)};
  assert_ok(infer("Einsum", 12, einsum, 1, factors, 2, &y), error);
  assert_dims(&y, 3, (int64_t[]){N, 4, 5});
  float scales[] = {1, 1, 2, 2};
  clv_tensor resize[] = {F32(N, 3, M, 5), {0}, clv__tensor_make(CLV_F32, 1, (int64_t[]){4}, scales)};
  assert_ok(infer("Resize", 13, NULL, 0, resize, 3, &y), error);
  assert_dims(&y, 4, (int64_t[]){N, 3, UNKNOWN, 10});
}

/* Each case must be rejected with a message that states the contradicting values, so that the user can find them
 * in the model. */
static void test_contradictions(void **state) {
  (void)state;
  clv_tensor y;
  const int64_t group[] = {2}, kernel[] = {3, 3}, huge[] = {INT64_MAX, 1}, none[] = {0, 1}, seven[] = {7, 7};
  clv_attribute a_group[] = {ints("group", 1, group)}, a_kernel[] = {ints("kernel_shape", 2, kernel)};
  clv_attribute a_huge[] = {ints("strides", 2, huge)}, a_none[] = {ints("dilations", 2, none)};
  clv_attribute a_seven[] = {ints("kernel_shape", 2, seven)};
  const struct {
    const char *op;
    const clv_attribute *attributes;
    uint32_t attribute_count;
    clv_tensor inputs[3];
    uint32_t input_count;
    const char *words[2];
  } cases[] = {
      {"Conv", NULL, 0, {F32(1, 3, 8, 8), F32(4, 5, 3, 3)}, 2, {"3 channels", "5"}},
      {"Conv", a_group, 1, {F32(1, 6, 8, 8), F32(5, 3, 3, 3)}, 2, {"5 channels", "group 2"}},
      {"Conv", a_kernel, 1, {F32(1, 3, 8, 8), F32(4, 3, 5, 5)}, 2, {"kernel_shape[0] is 3", "5"}},
      {"Conv", a_huge, 1, {F32(1, 3, 8, 8), F32(4, 3, 3, 3)}, 2, {"strides[0]", "9223372036854775807"}},
      {"Conv", a_none, 1, {F32(1, 3, 8, 8), F32(4, 3, 3, 3)}, 2, {"dilations[0] is 0", ""}},
      {"Conv", NULL, 0, {F32(1, 3, 8, 8), F32(4, 3, 3, 3), F32(3)}, 3, {"3 elements", "expected 4"}},
      {"Conv", NULL, 0, {F32(1, 3, 8), F32(4, 3, 3, 3)}, 2, {"rank 3", "4"}},
      {"MaxPool", a_seven, 1, {F32(1, 3, 4, 4)}, 1, {"kernel 7", "input 4"}},
      {"MaxPool", NULL, 0, {F32(1, 3, 4, 4)}, 1, {"kernel_shape", "missing"}},
      {"MatMul", NULL, 0, {F32(2, 3), F32(4, 5)}, 2, {"3", "4"}},
      {"MatMul", NULL, 0, {F32(2, 3, 4), F32(3, 4, 5)}, 2, {"2", "3"}},
      {"Gemm", NULL, 0, {F32(2, 3), F32(3, 5), F32(4)}, 3, {"f32[4]", "f32[2,5]"}},
      {"LRN", NULL, 0, {F32(1, 2, 3)}, 1, {"size", "0"}},
      {"LayerNormalization", NULL, 0, {F32(2, 3), F32(4)}, 2, {"f32[4]", "f32[2,3]"}},
      {"GroupNormalization", NULL, 0, {F32(2, 3, 4), F32(3), F32(3)}, 3, {"num_groups is 0", "expected 1 or more"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_status status =
        infer(cases[i].op, 21, cases[i].attributes, cases[i].attribute_count, cases[i].inputs, cases[i].input_count, &y);
    if (status != CLV_INVALID_MODEL)
      fail_msg("case %zu (%s) returned %s, expected CLV_INVALID_MODEL", i, cases[i].op, clv_status_name(status));
    for (int w = 0; w < 2; ++w) {
      if (strstr(error.message, cases[i].words[w]) == NULL) {
        fail_msg("case %zu (%s): '%s' is not in '%s'", i, cases[i].op, cases[i].words[w], error.message);
      }
    }
  }
}

static void test_work(void **state) {
  (void)state;
  clv_tensor inputs[] = {F32(1, 64, 56, 56), F32(64, 64, 3, 3)}, y;
  const int64_t one[] = {1, 1, 1, 1};
  clv_attribute padded[] = {ints("pads", 4, one)};
  assert_ok(infer("Conv", 11, padded, 1, inputs, 2, &y), error);
  clv__infer call = {
      .op = "Conv", .opset = 11, .attributes = {padded, 1}, .inputs = inputs, .input_count = 2, .outputs = &y, .output_count = 1};
  clv__work work;
  clv__op_work(clv__op_find("", "Conv"), &call, &work);
  assert_true(work.flops == 2.0 * 64 * 56 * 56 * 64 * 9);
  assert_true(work.bytes == 4.0 * (2 * 64 * 56 * 56 + 64 * 64 * 9));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_symbols_stay),
      cmocka_unit_test(test_contradictions),
      cmocka_unit_test(test_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
