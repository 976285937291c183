/* Shape inference of elementwise and reducing operators: broadcasting with symbols, contents of shape tensors, axes, and rejected
 * inputs. */
#include <string.h>

#include "operators/common/content.h"
#include "operators/infer.h"
#include "support.h"

enum { N = 0, M = 1 }; /* the indices of two symbols */
#define S(index) CLV_DIM_SYMBOL(index)

typedef struct inferred {
  clv_status status;
  clv_tensor out;
  clv__content content;
  clv_error error;
} inferred;

static inferred infer(const char *op, int32_t opset, const clv_attribute *attributes, uint32_t attribute_count,
                      const clv_tensor *inputs, const clv__content *const *contents, uint32_t count) {
  inferred r = {.out = {.rank = CLV_RANK_UNKNOWN}};
  const clv__op *entry = clv__op_find("", op);
  assert_non_null(entry);
  clv__infer call = {.op = op,
                     .opset = opset,
                     .attributes = {attributes, attribute_count},
                     .inputs = inputs,
                     .contents = contents,
                     .input_count = count,
                     .outputs = &r.out,
                     .output_content = &r.content,
                     .output_count = 1,
                     .allocator = clv__allocator_default(),
                     .error = &r.error};
  r.status = entry->infer(&call);
  return r;
}

static clv_tensor type(clv_dtype dtype, int32_t rank, int64_t a, int64_t b, int64_t c) {
  return clv__tensor_make(dtype, rank, (int64_t[]){a, b, c}, NULL);
}

static void expect_type(const inferred *r, const char *wanted) {
  char text[128];
  if (r->status != CLV_OK) fail_msg("inference fails: %s", r->error.message);
  clv__tensor_text(&r->out, text, sizeof text);
  assert_string_equal(text, wanted);
}

static void expect_refused(const inferred *r, const char *part) {
  assert_int_equal(r->status, CLV_INVALID_MODEL);
  if (strstr(r->error.message, part) == NULL) fail_msg("'%s' does not say '%s'", r->error.message, part);
}

static void test_broadcast(void **state) {
  static const struct {
    clv_tensor a, b;
    const char *wanted;
  } cases[] = {
      {{CLV_F32, 3, {2, 1, 4}, NULL}, {CLV_F32, 2, {3, 1}, NULL}, "f32[2,3,4]"},
      {{CLV_F32, 2, {S(N), 4}, NULL}, {CLV_F32, 1, {4}, NULL}, "f32[s0,4]"},
      {{CLV_F32, 2, {S(N), 4}, NULL}, {CLV_F32, 2, {S(N), 1}, NULL}, "f32[s0,4]"},
      {{CLV_F32, 1, {S(N)}, NULL}, {CLV_F32, 1, {S(M)}, NULL}, "f32[?]"},
      {{CLV_F32, 1, {S(N)}, NULL}, {CLV_F32, 1, {7}, NULL}, "f32[7]"},
      {{CLV_F32, 1, {1}, NULL}, {CLV_F32, 1, {S(N)}, NULL}, "f32[s0]"},
      {{CLV_F32, 1, {CLV_DIM_UNKNOWN}, NULL}, {CLV_F32, 0, {0}, NULL}, "f32[?]"},
      {{CLV_F32, 1, {0}, NULL}, {CLV_F32, 1, {1}, NULL}, "f32[0]"},
      {{CLV_F32, CLV_RANK_UNKNOWN, {0}, NULL}, {CLV_F32, 1, {3}, NULL}, "f32[...]"},
      {{CLV_DTYPE_NONE, 1, {3}, NULL}, {CLV_F32, 1, {3}, NULL}, "f32[3]"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_tensor inputs[2] = {cases[i].a, cases[i].b};
    inferred r = infer("Add", 14, NULL, 0, inputs, NULL, 2);
    expect_type(&r, cases[i].wanted);
  }
  clv_tensor clash[2] = {type(CLV_F32, 2, 2, 3, 0), type(CLV_F32, 1, 4, 0, 0)};
  inferred r = infer("Add", 14, NULL, 0, clash, NULL, 2);
  expect_refused(&r, "dimensions 4 and 3");
  clash[1] = type(CLV_I64, 1, 3, 0, 0);
  r = infer("Add", 14, NULL, 0, clash, NULL, 2);
  expect_refused(&r, "f32 and i64");
  r = infer("Pow", 14, NULL, 0, clash, NULL, 2); /* Pow may mix dtypes */
  expect_type(&r, "f32[2,3]");
  clv_tensor slope[2] = {type(CLV_F32, 1, 3, 0, 0), type(CLV_F32, 2, 2, 3, 0)};
  r = infer("PRelu", 16, NULL, 0, slope, NULL, 2);
  expect_refused(&r, "slope");
  clv_tensor where[3] = {type(CLV_BOOL, 2, S(N), 1, 0), type(CLV_F16, 1, 5, 0, 0), type(CLV_F16, 0, 0, 0, 0)};
  r = infer("Where", 16, NULL, 0, where, NULL, 3);
  expect_type(&r, "f16[s0,5]");
  where[0].dtype = CLV_I32;
  r = infer("Where", 16, NULL, 0, where, NULL, 3);
  expect_refused(&r, "bool");
}

/* Checks the elements that inference finds for the output of `op` on two vectors of three elements. An element may be a symbol
 * or unknown. */
static void expect_elements(const char *op, const int64_t *a, const int64_t *b, const int64_t *wanted) {
  clv__content left = {.known = true, .count = 3}, right = {.known = true, .count = 3};
  memcpy(left.elements, a, 3 * sizeof *a);
  memcpy(right.elements, b, 3 * sizeof *b);
  clv_tensor inputs[2] = {type(CLV_I64, 1, 3, 0, 0), type(CLV_I64, 1, 3, 0, 0)};
  const clv__content *contents[2] = {&left, &right};
  inferred r = infer(op, 14, NULL, 0, inputs, contents, 2);
  assert_int_equal(r.status, CLV_OK);
  assert_true(r.content.known && r.content.count == 3);
  for (int i = 0; i < 3; ++i) {
    if (r.content.elements[i] != wanted[i])
      fail_msg("%s: element %d is %lld, expected %lld", op, i, (long long)r.content.elements[i], (long long)wanted[i]);
  }
}

static void test_contents(void **state) {
  const int64_t n = CLV__ELEMENT_SYMBOL(N), m = CLV__ELEMENT_SYMBOL(M), u = CLV__ELEMENT_UNKNOWN;
  (void)state;
#define ROW(...) ((int64_t[]){__VA_ARGS__})
  expect_elements("Add", ROW(2, n, n), ROW(3, 0, 1), ROW(5, n, u));
  expect_elements("Sub", ROW(2, n, n), ROW(3, n, 0), ROW(-1, 0, n));
  expect_elements("Mul", ROW(n, n, u), ROW(1, 0, 0), ROW(n, 0, 0));
  expect_elements("Mul", ROW(n, INT64_MAX, 7), ROW(m, 2, -2), ROW(u, u, -14));
  expect_elements("Div", ROW(n, -7, 7), ROW(1, 2, 0), ROW(n, -3, u));
  expect_elements("Mod", ROW(-7, n, 7), ROW(2, 1, 0), ROW(1, 0, u));
  expect_elements("Max", ROW(n, n, 3), ROW(0, 1, 5), ROW(n, u, 5));
  expect_elements("Min", ROW(n, n, 3), ROW(-1, n, 5), ROW(-1, n, 3));
  expect_elements("Equal", ROW(n, n, n), ROW(n, -1, 4), ROW(1, 0, u));
  expect_elements("Greater", ROW(n, 3, n), ROW(-1, 2, 1), ROW(1, 1, u));
  expect_elements("LessOrEqual", ROW(n, 0, n), ROW(-1, n, 1), ROW(0, 1, u));
#undef ROW
}

/* Exporters write Where(Equal(shape, -1), other, shape) to compute a shape. An element of the result must be known if the
 * condition is known, or if it is the same in both branches; otherwise inference could not find the shape. */
static void test_where_contents(void **state) {
  const int64_t n = CLV__ELEMENT_SYMBOL(N);
  clv__content condition = {true, 3, {0, 1, CLV__ELEMENT_UNKNOWN}}, a = {true, 1, {5}}, b = {true, 3, {n, 7, 5}};
  const clv__content *contents[3] = {&condition, &a, &b};
  clv_tensor inputs[3] = {type(CLV_BOOL, 1, 3, 0, 0), type(CLV_I64, 0, 0, 0, 0), type(CLV_I64, 1, 3, 0, 0)};
  (void)state;
  inferred r = infer("Where", 16, NULL, 0, inputs, contents, 3);
  assert_true(r.content.known && r.content.count == 3);
  assert_true(r.content.elements[0] == n && r.content.elements[1] == 5 && r.content.elements[2] == 5);
}

static void test_cast_and_fold_contents(void **state) {
  const int64_t n = CLV__ELEMENT_SYMBOL(N);
  clv__content shape = {true, 3, {n, 1, 1}};
  const clv__content *contents[1] = {&shape};
  clv_tensor input = type(CLV_I64, 1, 3, 0, 0);
  (void)state;
  const int64_t to_i32 = CLV_I32, to_f64 = CLV_F64, to_f32 = CLV_F32, no = 0, to_complex = 14, to_float8 = CLV_F8E5M2;
  clv_attribute to = {.name = "to", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &to_i32};
  inferred r = infer("Cast", 13, &to, 1, &input, contents, 1);
  expect_type(&r, "i32[3]");
  assert_true(r.content.known && r.content.elements[0] == n);
  to.ints = &to_f32;
  r = infer("Cast", 13, &to, 1, &input, contents, 1);
  assert_false(r.content.known);
  to.ints = &to_complex;
  r = infer("Cast", 19, &to, 1, &input, contents, 1);
  assert_true(r.status == CLV_OK && r.out.dtype == CLV_DTYPE_NONE && r.out.rank == 1);
  to.ints = &to_float8;
  r = infer("Cast", 19, &to, 1, &input, contents, 1);
  expect_type(&r, "f8e5m2[3]");
  r = infer("BitCast", 26, &to, 1, &input, NULL, 1);
  expect_refused(&r, "the bits of i64 cannot be reinterpreted as f8e5m2");
  to.ints = &to_f64;
  r = infer("BitCast", 26, &to, 1, &input, NULL, 1);
  expect_type(&r, "f64[3]");
  r = infer("Cast", 13, NULL, 0, &input, contents, 1);
  expect_refused(&r, "'to' is missing");
  clv_attribute keep = {.name = "keepdims", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &no};
  r = infer("ReduceProd", 13, &keep, 1, &input, contents, 1);
  expect_type(&r, "i64[]");
  assert_true(r.content.known && r.content.count == 1 && r.content.elements[0] == n);
  r = infer("Neg", 13, NULL, 0, &input, contents, 1);
  assert_true(r.content.elements[0] == CLV__ELEMENT_UNKNOWN && r.content.elements[1] == -1);
  r = infer("Abs", 13, NULL, 0, &input, contents, 1);
  assert_true(r.content.elements[0] == n);
}

static void test_reduce(void **state) {
  clv_tensor inputs[2] = {type(CLV_F32, 3, S(N), 4, 5), type(CLV_I64, 1, 2, 0, 0)};
  int64_t axes[2] = {-1, 0}, no = 0, yes = 1, far = 3;
  clv_attribute list = {.name = "axes", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = axes};
  clv_attribute drop = {.name = "keepdims", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &no};
  clv_attribute noop = {.name = "noop_with_empty_axes", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &yes};
  (void)state;
  inferred r = infer("ReduceMean", 13, &list, 1, inputs, NULL, 1);
  expect_type(&r, "f32[1,4,1]");
  r = infer("ReduceMean", 13, (clv_attribute[]){list, drop}, 2, inputs, NULL, 1);
  expect_type(&r, "f32[4]");
  r = infer("ReduceMean", 18, &drop, 1, inputs, NULL, 1);
  expect_type(&r, "f32[]");
  r = infer("ReduceMean", 18, &noop, 1, inputs, NULL, 1);
  expect_type(&r, "f32[s0,4,5]");
  r = infer("ReduceMean", 18, NULL, 0, inputs, NULL, 2); /* the axes, input 1, have no data */
  expect_type(&r, "f32[?,?,?]");
  r = infer("ReduceMean", 18, &drop, 1, inputs, NULL, 2);
  expect_type(&r, "f32[?]");
  inputs[1].data = axes;
  r = infer("ReduceMean", 18, &drop, 1, inputs, NULL, 2);
  expect_type(&r, "f32[4]");
  list.count = 1;
  list.ints = &far;
  r = infer("ReduceMean", 13, &list, 1, inputs, NULL, 1);
  expect_refused(&r, "3 is out of range for rank 3");
  clv_attribute axis = {.name = "axis", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &axes[0]};
  r = infer("ArgMax", 13, (clv_attribute[]){axis, drop}, 2, inputs, NULL, 1);
  expect_type(&r, "i64[s0,4]");
  axis.ints = &far;
  r = infer("ArgMax", 13, &axis, 1, inputs, NULL, 1);
  expect_refused(&r, "out of range");
  r = infer("Softmax", 13, &axis, 1, inputs, NULL, 1);
  expect_refused(&r, "out of range");
}

static void test_clip_and_scales(void **state) {
  clv_tensor inputs[3] = {type(CLV_F32, 2, 3, 4, 0), type(CLV_F32, 0, 0, 0, 0), type(CLV_F32, 1, 2, 0, 0)};
  (void)state;
  inferred r = infer("Clip", 13, NULL, 0, inputs, NULL, 2);
  expect_type(&r, "f32[3,4]");
  r = infer("Clip", 13, NULL, 0, inputs, NULL, 3);
  expect_refused(&r, "max must be a scalar");
  inputs[2] = type(CLV_I8, 0, 0, 0, 0);
  r = infer("QuantizeLinear", 13, NULL, 0, inputs, NULL, 3);
  expect_type(&r, "i8[3,4]");
  inputs[1] = type(CLV_F32, 1, 5, 0, 0);
  r = infer("QuantizeLinear", 13, NULL, 0, inputs, NULL, 2);
  expect_refused(&r, "5 scales do not fit axis 1 of 4");
}

static void test_work(void **state) {
  clv_tensor inputs[2] = {type(CLV_F32, 2, 3, 4, 0), type(CLV_F32, 1, 4, 0, 0)}, out = type(CLV_F32, 2, 3, 4, 0);
  clv__infer call = {.op = "Add", .inputs = inputs, .input_count = 2, .outputs = &out, .output_count = 1};
  clv__work work;
  (void)state;
  clv__op_work(clv__op_find("", "Add"), &call, &work);
  assert_true(work.flops == 12 && work.bytes == 4.0 * (12 + 4 + 12));
  inputs[0].dims[0] = S(N);
  clv__op_work(clv__op_find("", "Add"), &call, &work);
  assert_true(work.flops == 0 && work.bytes == 0);
  assert_null(clv__op_find("", "NoSuchOperator"));
  assert_null(clv__op_find("nowhere", "Add"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broadcast),      cmocka_unit_test(test_contents),
      cmocka_unit_test(test_where_contents), cmocka_unit_test(test_cast_and_fold_contents),
      cmocka_unit_test(test_reduce),         cmocka_unit_test(test_clip_and_scales),
      cmocka_unit_test(test_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
