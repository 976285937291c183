/* Tests folding: which nodes can be computed while a plan is made, and that the results are those of the kernel. */
#include "backends/common/fold.h"

#include <string.h>

#include "support.h"

typedef struct node {
  clv_tensor inputs[2], outputs[1];
  clv_error error;
  clv__kernel_call call;
} node;

static clv_tensor tensor(clv_dtype dtype, int64_t count, void *data) {
  return clv__tensor_make(dtype, 1, &count, data);
}

static void make(node *n, const char *op, clv_tensor a, clv_tensor b, clv_tensor out) {
  *n = (node){.inputs = {a, b}, .outputs = {out}};
  n->call = (clv__kernel_call){.op = op,
                               .opset = 17,
                               .inputs = n->inputs,
                               .input_count = b.dtype == CLV_DTYPE_NONE ? 1 : 2,
                               .outputs = n->outputs,
                               .output_count = 1,
                               .error = &n->error};
}

static bool is_possible(const char *op, clv_tensor a, clv_tensor b, clv_tensor out) {
  node n;
  make(&n, op, a, b, out);
  return clv__fold_is_possible("", &n.call);
}

static void test_is_possible(void **state) {
  (void)state;
  float data[4] = {1, 2, 3, 4};
  const clv_tensor known = tensor(CLV_F32, 4, data), unknown = tensor(CLV_F32, 4, NULL), none = {0};
  const clv_tensor text = tensor(CLV_STRING, 4, data), small = tensor(CLV_F32, 4, NULL);
  assert_true(is_possible("Add", known, known, small));
  assert_false(is_possible("Add", known, unknown, small));
  assert_false(is_possible("Add", unknown, known, small));
  assert_true(is_possible("Neg", known, none, small)); /* the second operand is absent, so it needs no value */
  assert_false(is_possible("Identity", text, none, small));
  assert_false(is_possible("Identity", known, none, tensor(CLV_STRING, 4, NULL)));
  /* Shape and Size need only the shape of their input, not its data. */
  assert_true(is_possible("Shape", unknown, none, tensor(CLV_I64, 1, NULL)));
  assert_true(is_possible("Size", text, none, tensor(CLV_I64, 1, NULL)));
  node other;
  make(&other, "Shape", unknown, none, tensor(CLV_I64, 1, NULL));
  assert_false(clv__fold_is_possible("ai.onnx.ml", &other.call));
  /* Operators whose results differ from run to run are not folded. */
  static const char *const random[] = {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"};
  for (size_t i = 0; i < sizeof random / sizeof *random; ++i) assert_false(is_possible(random[i], known, none, small));
  /* CLV__FOLD_BYTES limits the size of all outputs together. */
  assert_true(is_possible("Neg", known, none, tensor(CLV_F32, CLV__FOLD_BYTES / 4, NULL)));
  assert_false(is_possible("Neg", known, none, tensor(CLV_F32, CLV__FOLD_BYTES / 4 + 1, NULL)));
  assert_false(is_possible("Neg", known, none, tensor(CLV_F32, CLV_DIM_UNKNOWN, NULL)));
  node two;
  make(&two, "Split", known, none, small);
  clv_tensor outputs[] = {tensor(CLV_F32, CLV__FOLD_BYTES / 8, NULL), tensor(CLV_F32, CLV__FOLD_BYTES / 8, NULL)};
  two.call.outputs = outputs;
  two.call.output_count = 2;
  assert_true(clv__fold_is_possible("", &two.call));
  outputs[1] = tensor(CLV_F32, CLV__FOLD_BYTES / 8 + 1, NULL);
  assert_false(clv__fold_is_possible("", &two.call));
  outputs[0] = none; /* the first output is absent */
  assert_true(clv__fold_is_possible("", &two.call));
}

static void test_fold(void **state) {
  (void)state;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
  node n;
  make(&n, "Add", tensor(CLV_F32, 3, a), tensor(CLV_F32, 3, b), tensor(CLV_F32, 3, NULL));
  assert_ok(clv__fold(clv__kernel_find("", "Add"), &n.call, n.inputs, n.outputs, &arena, clv__allocator_default()), n.error);
  const float *sums = n.outputs[0].data;
  for (int i = 0; i < 3; ++i) assert_true(sums[i] == a[i] + b[i]);
  const clv_tensor none = {0};
  make(&n, "Shape", tensor(CLV_F32, 7, NULL), none, tensor(CLV_I64, 1, NULL));
  assert_ok(clv__fold(clv__kernel_find("", "Shape"), &n.call, n.inputs, n.outputs, &arena, clv__allocator_default()), n.error);
  assert_int_equal(*(const int64_t *)n.outputs[0].data, 7);
  make(&n, "Add", tensor(CLV_BOOL, 3, a), tensor(CLV_BOOL, 3, b), tensor(CLV_BOOL, 3, NULL));
  assert_int_equal(clv__fold(clv__kernel_find("", "Add"), &n.call, n.inputs, n.outputs, &arena, clv__allocator_default()),
                   CLV_NOT_SUPPORTED);
  assert_true(n.error.message[0] != '\0');
  clv__arena_finish(&arena);
}

static void test_memory(void **state) {
  (void)state;
  float a[3] = {1, 2, 3};
  test_allocator counting;
  test_allocator_init(&counting);
  counting.fail_at = 1;
  clv__arena arena;
  clv__arena_init(&arena, &counting.allocator);
  node n;
  make(&n, "Add", tensor(CLV_F32, 3, a), tensor(CLV_F32, 3, a), tensor(CLV_F32, 3, NULL));
  assert_int_equal(clv__fold(clv__kernel_find("", "Add"), &n.call, n.inputs, n.outputs, &arena, &counting.allocator),
                   CLV_OUT_OF_MEMORY);
  clv__arena_finish(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_is_possible), cmocka_unit_test(test_fold),
                                     cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
