/* Tests the cases of operators in the conformance kit: every case must be valid, have its own name and be the same each time it
 * is created, and every operator must have cases. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "check/cases/cases.h"
#include "check/check.h"
#include "operators/infer.h"
#include "operators/run.h"
#include "support.h"

enum { SEED = 7, MAX_OUTPUTS = 16 };

static void make(uint32_t index, uint64_t seed, clv__check_case *made) {
  clv_error error = {0};
  if (clv__check_case_make(clv__allocator_default(), index, seed, made, &error) != CLV_OK) {
    fail_msg("case %u cannot be made: %s", (unsigned)index, error.message);
  }
}

static bool same_bytes(const clv_tensor *a, const clv_tensor *b) {
  size_t size_bytes;
  return clv__tensor_same_type(a, b) && clv__tensor_size_bytes(a, &size_bytes) && memcmp(a->data, b->data, size_bytes) == 0;
}

/* Whether all inputs and constants of two cases have the same data. */
static bool same_data(const clv__check_case *a, const clv__check_case *b) {
  bool same = true;
  for (uint32_t i = 0; i < a->input_count; ++i) same = same && same_bytes(&a->inputs[i], &b->inputs[i]);
  for (clv_value_id v = 0; v < a->graph->value_count; ++v) {
    const clv_tensor *x = &a->graph->values[v].type, *y = &b->graph->values[v].type;
    if (x->data != NULL) same = same && same_bytes(x, y);
  }
  return same;
}

static void every_case_is_the_same_twice(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  uint32_t differ = 0;
  assert_in_range(count, 1000, 6000);
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_case one, two, other;
    make(i, SEED, &one);
    make(i, SEED, &two);
    make(i, SEED + 1, &other);
    assert_string_equal(one.what, two.what);
    assert_int_equal(one.input_count, one.graph->input_count);
    clv__hash first, second;
    clv__graph_hash(one.graph, &first);
    clv__graph_hash(two.graph, &second);
    assert_memory_equal(&first, &second, sizeof first);
    if (!same_data(&one, &two)) fail_msg("%s: made again with the same seed, the data differs", one.what);
    differ += !same_data(&one, &other);
    clv__check_case_finish(&one);
    clv__check_case_finish(&two);
    clv__check_case_finish(&other);
  }
  assert_true(differ > count * 9 / 10); /* in the remaining cases, the data are empty or do not depend on the seed */
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_tell_cases_apart(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  char **names = calloc(count, sizeof *names);
  assert_non_null(names);
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_case made;
    make(i, SEED, &made);
    if (strlen(made.what) + 1 >= sizeof made.what) fail_msg("the name of case %u is too long: %s", (unsigned)i, made.what);
    names[i] = strdup(made.what);
    clv__check_case_finish(&made);
  }
  qsort(names, count, sizeof *names, compare_texts);
  for (uint32_t i = 1; i < count; ++i) {
    if (strcmp(names[i - 1], names[i]) == 0) fail_msg("two cases have the name %s", names[i]);
  }
  for (uint32_t i = 0; i < count; ++i) free(names[i]);
  free(names);
}

static bool finite_data(const clv_tensor *t) {
  size_t count;
  assert_true(clv__tensor_count(t, &count));
  for (size_t i = 0; i < count; ++i) {
    if (!isfinite(clv__tensor_get(t, i))) return false;
  }
  return true;
}

static void every_case_runs(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  for (uint32_t i = 0; i < count; ++i) {
    clv_error error = {0};
    clv__check_case made;
    clv__shapes *shapes = NULL;
    clv_tensor outputs[MAX_OUTPUTS];
    make(i, SEED, &made);
    assert_in_range(made.graph->output_count, 1, MAX_OUTPUTS);
    if (clv__shapes_infer(made.graph, NULL, 0, 0, &shapes, &error) != CLV_OK) fail_msg("%s: %s", made.what, error.message);
    if (clv__graph_evaluate(made.graph, made.inputs, NULL, outputs, NULL, NULL, clv__allocator_default(), &error) != CLV_OK) {
      fail_msg("%s: %s", made.what, error.message);
    }
    bool finite = strncmp(made.what, "Cast ", 5) != 0 || strstr(made.what, "~max") == NULL; /* may overflow a narrower dtype */
    for (uint32_t k = 0; k < made.input_count; ++k) finite = finite && finite_data(&made.inputs[k]);
    for (clv_value_id v = 0; v < made.graph->value_count; ++v) {
      const clv_tensor *t = &made.graph->values[v].type;
      if (t->data != NULL) finite = finite && finite_data(t);
    }
    for (uint32_t k = 0; k < made.graph->output_count; ++k) {
      const clv_tensor *inferred = &shapes->types[made.graph->outputs[k]];
      assert_int_equal(inferred->dtype, outputs[k].dtype);
      if (finite && !finite_data(&outputs[k])) fail_msg("%s: output %u is not finite", made.what, (unsigned)k);
      clv__release(clv__allocator_default(), outputs[k].data);
    }
    clv__shapes_destroy(shapes);
    clv__check_case_finish(&made);
  }
}

/* The data of an input must vary: if all elements were equal, reads from a wrong place would not be noticed. */
static void data_vary(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_case made;
    make(i, SEED, &made);
    for (uint32_t k = 0; k < made.input_count; ++k) {
      const clv_tensor *t = &made.inputs[k];
      size_t elements, differ = 0, element_bytes = clv_dtype_size_bytes(t->dtype);
      assert_true(clv__tensor_count(t, &elements));
      for (size_t e = 1; e < elements; ++e) {
        differ += memcmp(t->data, (const char *)t->data + e * element_bytes, element_bytes) != 0;
      }
      if (elements >= 30 && differ < elements / 30)
        fail_msg("%s: almost all elements of input %u are equal", made.what, (unsigned)k);
    }
    clv__check_case_finish(&made);
  }
}

/* ---- Families ------------------------------------------------------------------------------------------------------------ */

typedef struct family {
  const char *name;
  const clv__op *ops;
  const clv__kernel *kernels;
  const clv__case_row *cases;
} family;

#define FAMILY(name) {#name, clv__ops_##name, clv__kernels_##name, clv__cases_##name},
static const family families[] = {CLV__TENSOR_FAMILIES(FAMILY){"control", clv__ops_control, NULL, NULL}};
#undef FAMILY
enum { FAMILIES = sizeof families / sizeof *families };

static bool has_op(const family *f, const char *domain, size_t domain_length, const char *name, size_t name_length) {
  for (const clv__op *op = f->ops; op->name != NULL; ++op) {
    if (strlen(op->domain) == domain_length && memcmp(op->domain, domain, domain_length) == 0 &&
        strlen(op->name) == name_length && memcmp(op->name, name, name_length) == 0) {
      return true;
    }
  }
  return false;
}

static bool has_kernel(const family *f, const clv__kernel *kernel) {
  for (const clv__kernel *k = f->kernels; k != NULL && k->op != NULL; ++k) {
    if (k == kernel) return true;
  }
  return false;
}

/* The rows of a family may contain only its operators. */
static void check_rows(const family *f) {
  for (const clv__case_row *row = f->cases; row != NULL && row->ops != NULL; ++row) {
    for (const char *at = row->ops; *at != '\0';) {
      const size_t length = strcspn(at, " ");
      size_t dot = length;
      while (dot > 0 && at[dot - 1] != '.') --dot;
      if (!has_op(f, at, dot > 0 ? dot - 1 : 0, at + dot, length - dot)) {
        fail_msg("%.*s has cases in family %s, but is not in that family", (int)length, at, f->name);
      }
      at += length + (at[length] == ' ');
    }
  }
}

/* Every operator belongs to one family, which has its inference, its kernel and its cases. */
static void an_operator_has_one_family(void **state) {
  (void)state;
  for (size_t i = 0; i < FAMILIES; ++i) {
    const family *f = &families[i];
    for (const clv__op *op = f->ops; op->name != NULL; ++op) {
      if (clv__op_find(op->domain, op->name) != op)
        fail_msg("clv__op_find() does not return the entry for %s in family %s", op->name, f->name);
      const clv__kernel *kernel = clv__kernel_find(op->domain, op->name);
      if (kernel != NULL && !has_kernel(f, kernel)) {
        fail_msg("%s is in family %s, but its kernel is not", op->name, f->name);
      }
    }
    for (const clv__kernel *kernel = f->kernels; kernel != NULL && kernel->op != NULL; ++kernel) {
      if (!has_op(f, kernel->domain, strlen(kernel->domain), kernel->op, strlen(kernel->op))) {
        fail_msg("family %s has a kernel for %s, but no inference", f->name, kernel->op);
      }
      if (clv__kernel_find(kernel->domain, kernel->op) != kernel)
        fail_msg("clv__kernel_find() does not return the kernel for %s in family %s", kernel->op, f->name);
    }
    check_rows(f);
  }
}

/* ---- Operators ----------------------------------------------------------------------------------------------------------- */

/* The number of cases of an operator, and the dtypes of its first operand (or of its output, if it has no operand) in them. */
typedef struct tally {
  uint32_t found, dtypes;
} tally;

static const clv__op *find_main_op(const clv__check_case *made, clv_dtype *dtype) {
  const clv_node_id n = clv__graph_find_node(made->graph, "node");
  assert_int_not_equal(n, CLV__NO_ID);
  const clv__node *node = &made->graph->nodes[n];
  const clv_attribute *value = clv__attribute_find(node->attributes, "value");
  *dtype = value != NULL && value->tensor != NULL ? value->tensor->dtype : CLV_F32;
  if (node->input_count > 0) *dtype = made->graph->values[node->inputs[0]].type.dtype;
  if (node->input_count > 0 && *dtype == CLV_DTYPE_NONE)
    *dtype = made->inputs[0].dtype; /* the operand is the output of another node */
  const size_t length = strlen(node->op);
  const char *what = node->domain[0] != '\0' ? made->what + strlen(node->domain) + 1 : made->what;
  assert_true(strncmp(what, node->op, length) == 0 && what[length] == ' ');
  return clv__op_find(node->domain, node->op);
}

static tally tally_of(const clv__op *op, const clv__op *const *ops, const clv_dtype *dtypes, uint32_t count) {
  tally t = {0, 0};
  for (uint32_t i = 0; i < count; ++i) {
    if (ops[i] != op) continue;
    t.found++;
    t.dtypes |= CLV__DTYPE_BIT(dtypes[i]);
  }
  return t;
}

#define BIT(dtype) CLV__DTYPE_BIT(CLV_##dtype)
#define NARROW_INTEGERS (BIT(I8) | BIT(I16) | BIT(U8) | BIT(U16))

/* Dtypes that a kernel supports, but that have no cases: either ONNX does not allow them, or they would add nothing. */
static const struct {
  const char *op;
  uint32_t not_asked; /* dtypes of the first operand */
  const char *reason;
} exceptions[] = {
    {"Pow", NARROW_INTEGERS | BIT(U32) | BIT(U64), "ONNX allows floats, i32 and i64"},
    {"BitShift", CLV__DTYPES_SIGNED, "ONNX allows only unsigned integers"},
    {"Celu", CLV__DTYPES_FLOAT & ~BIT(F32), "ONNX allows only f32"},
    {"Shrink", BIT(BF16), "the tested opsets do not allow bf16"},
    {"TopK", BIT(BF16), "the tested opsets do not allow bf16"},
    {"Unique", BIT(BF16) | BIT(BOOL), "the tested opset does not allow bf16; bool has only two values"},
    {"Compress", BIT(BF16), "the tested opsets do not allow bf16"},
    {"ReverseSequence", BIT(BF16), "the tested opsets do not allow bf16"},
    {"OneHot", CLV__DTYPES_NUMBER & ~(BIT(I64) | BIT(I32) | BIT(F32)),
     "the first operand is the indices; the cases vary the dtype of the values"},
    {"CumSum", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"CumProd", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"Einsum", BIT(BF16), "the tested opsets do not allow bf16"},
    {"Upsample", BIT(BF16), "the tested opsets do not allow bf16"},
    {"Scatter", BIT(BF16), "the tested opsets do not allow bf16"},
    {"Range", (NARROW_INTEGERS & ~BIT(I16)) | BIT(F16) | BIT(BF16) | BIT(U32) | BIT(U64),
     "ONNX allows only f32, f64, i16, i32 and i64"},
    {"ReduceSum", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"ReduceMean", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"ReduceProd", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"ReduceL1", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"ReduceSumSquare", NARROW_INTEGERS, "ONNX allows only 32-bit and 64-bit integers"},
    {"ReduceMax", BIT(I16) | BIT(U16), "ONNX allows only 8-bit, 32-bit and 64-bit integers"},
    {"ReduceMin", BIT(I16) | BIT(U16), "ONNX allows only 8-bit, 32-bit and 64-bit integers"},
    {"ReduceL2", CLV__DTYPES_INTEGER, "ONNX does not say how the root is rounded"},
    {"ReduceLogSum", CLV__DTYPES_INTEGER, "ONNX does not say how the logarithm is rounded"},
    {"ReduceLogSumExp", CLV__DTYPES_INTEGER, "ONNX does not say how the logarithm is rounded"},
};

static uint32_t not_asked(const char *op) {
  for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; ++i) {
    if (strcmp(exceptions[i].op, op) == 0) return exceptions[i].not_asked;
  }
  return 0;
}

/* Returns the number of errors: dtypes of the kernel that have no case and are not listed in `exceptions`, and dtypes that are
 * listed but have a case. */
static uint32_t check_dtypes(const clv__op *op, const clv__kernel *kernel, uint32_t dtypes) {
  const uint32_t missing = kernel->dtypes & ~dtypes, excepted = not_asked(op->name);
  uint32_t wrong = 0;
  for (int d = CLV_F32; d <= CLV_BF16; ++d) {
    const uint32_t bit = CLV__DTYPE_BIT(d);
    const bool has_none = (missing & ~excepted & bit) != 0, is_needless = (excepted & ~missing & bit) != 0;
    if (has_none) print_error("%s has no case with %s\n", op->name, clv_dtype_name((clv_dtype)d));
    if (is_needless) print_error("%s has cases with %s, but is listed as an exception\n", op->name, clv_dtype_name((clv_dtype)d));
    wrong += has_none + is_needless;
  }
  return wrong;
}

static void every_operator_has_cases(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  const clv__op **ops = calloc(count, sizeof *ops);
  clv_dtype *dtypes = calloc(count, sizeof *dtypes);
  uint32_t wrong = 0;
  assert_true(ops != NULL && dtypes != NULL);
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_case made;
    make(i, SEED, &made);
    ops[i] = find_main_op(&made, &dtypes[i]);
    assert_non_null(ops[i]);
    clv__check_case_finish(&made);
  }
  for (size_t f = 0; f < FAMILIES; ++f) {
    for (const clv__op *op = families[f].ops; op->name != NULL; ++op) {
      const clv__kernel *kernel = clv__kernel_find(op->domain, op->name);
      const bool has_body = (op->flags & CLV__OP_HAS_BODY) != 0;
      if (kernel == NULL && !has_body) continue; /* there is no kernel to compare with */
      const tally t = tally_of(op, ops, dtypes, count);
      if (t.found < (has_body ? 2u : 3u)) fail_msg("%s has only %u cases", op->name, (unsigned)t.found);
      if (kernel != NULL) wrong += check_dtypes(op, kernel, t.dtypes);
    }
  }
  assert_int_equal(wrong, 0);
  free(ops);
  free(dtypes);
}

/* ---- The syntax of rows -------------------------------------------------------------------------------------------------- */

static void find_case(const char *what, clv__check_case *made) {
  const uint32_t count = clv__check_case_count();
  for (uint32_t i = 0; i < count; ++i) {
    make(i, SEED, made);
    if (strcmp(made->what, what) == 0) return;
    clv__check_case_finish(made);
  }
  fail_msg("there is no case %s", what);
}

static void text_becomes_graphs(void **state) {
  (void)state;
  clv__check_case made;
  find_case("Conv 22, f32: x[1,3,9,8] w[4,3,3,3]= b[4]=; strides=[3,2] pads=[1,1,1,1]", &made);
  const clv__node *node = &made.graph->nodes[0];
  size_t count;
  assert_int_equal(node->opset, 22);
  assert_int_equal(node->input_count, 3);
  assert_int_equal(made.input_count, 1);
  assert_non_null(made.graph->values[node->inputs[1]].type.data);
  assert_non_null(made.graph->values[node->inputs[2]].type.data);
  const int64_t *strides = clv__attribute_ints(node->attributes, "strides", &count);
  assert_int_equal(count, 2);
  assert_int_equal(strides[0], 3);
  assert_int_equal(strides[1], 2);
  clv__check_case_finish(&made);

  find_case("Clip 22, f32: x[5,7] - hi=(1)", &made);
  node = &made.graph->nodes[0];
  assert_int_equal(node->input_count, 3);
  assert_int_equal(node->inputs[1], CLV__NO_ID);
  assert_true(*(const float *)made.graph->values[node->inputs[2]].type.data == 1.0f);
  assert_int_equal(made.graph->values[node->inputs[2]].type.rank, 0);
  clv__check_case_finish(&made);

  find_case("MatMul 22, f32: a[3,9]& b[9,5]&", &made);
  assert_int_equal(made.graph->node_count, 3);
  assert_string_equal(made.graph->nodes[0].op, "Identity");
  clv__check_case_finish(&made);

  find_case("LayerNormalization 17, f32: x[2,3,4,5] s[4,5]= b[4,5]=; >101 axis=2", &made);
  node = &made.graph->nodes[0];
  assert_int_equal(node->output_count, 3);
  assert_int_equal(node->outputs[1], CLV__NO_ID);
  assert_int_equal(made.graph->output_count, 2);
  clv__check_case_finish(&made);

  find_case("Add 22, f32: a[5,7] b[5,7] +c[7] +d[5,1]; then ! Mul(c)! Sub(d)! Abs", &made);
  assert_int_equal(made.graph->node_count, 4);
  assert_int_equal(made.graph->output_count, 4);
  assert_int_equal(made.input_count, 4);
  assert_string_equal(made.graph->nodes[2].op, "Sub");
  clv__check_case_finish(&made);
}

static void data_are_what_the_fill_says(void **state) {
  (void)state;
  clv__check_case made;
  find_case("ScatterElements 22, f32: x[5,7]~any i:i64[3,7]~turn:5 u[3,7]~any", &made);
  const int64_t *indices = made.inputs[1].data;
  for (int column = 0; column < 7; ++column) { /* no index occurs twice along axis 0 */
    for (int row = 0; row < 3; ++row) {
      assert_in_range(indices[row * 7 + column], 0, 4);
      for (int other = 0; other < row; ++other) assert_int_not_equal(indices[row * 7 + column], indices[other * 7 + column]);
    }
  }
  clv__check_case_finish(&made);

  find_case("Greater 22, f32: a[33,35]~nan b[33,35]~nan", &made);
  const float *floats = made.inputs[0].data;
  int nan = 0, infinite = 0, negative_zero = 0;
  for (int i = 0; i < 33 * 35; ++i) {
    nan += isnan(floats[i]);
    infinite += isinf(floats[i]) != 0;
    negative_zero += floats[i] == 0 && signbit(floats[i]);
  }
  assert_true(nan > 10 && infinite > 10 && negative_zero > 10);
  clv__check_case_finish(&made);

  find_case("BitwiseNot 18, i8: x[3,5,7,11]~any", &made);
  const int8_t *bytes = made.inputs[0].data;
  int lowest = 0, highest = 0;
  for (int i = 0; i < 3 * 5 * 7 * 11; ++i) {
    lowest += bytes[i] == INT8_MIN;
    highest += bytes[i] == INT8_MAX;
  }
  assert_true(lowest > 0 && highest > 0);
  clv__check_case_finish(&made);
}

static void no_such_case(void **state) {
  (void)state;
  clv_error error = {0};
  clv__check_case made;
  assert_int_equal(clv__check_case_make(clv__allocator_default(), clv__check_case_count(), SEED, &made, &error), CLV_NOT_FOUND);
  clv__check_case_finish(&made);
}

/* If memory runs out, everything must be freed. Tests every 97th case and the last 8. */
static void memory_may_run_out(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  for (uint32_t i = 0; i < count; i += i + 8 < count ? 97 : 1) {
    for (size_t fail_at = 1;; ++fail_at) {
      test_allocator failing;
      test_allocator_init(&failing);
      failing.fail_at = fail_at;
      clv_error error = {0};
      clv__check_case made;
      const clv_status status = clv__check_case_make(&failing.allocator, i, SEED, &made, &error);
      clv__check_case_finish(&made);
      assert_int_equal(failing.live, 0);
      if (status == CLV_OK) break;
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_case_is_the_same_twice),
      cmocka_unit_test(names_tell_cases_apart),
      cmocka_unit_test(every_case_runs),
      cmocka_unit_test(data_vary),
      cmocka_unit_test(an_operator_has_one_family),
      cmocka_unit_test(every_operator_has_cases),
      cmocka_unit_test(text_becomes_graphs),
      cmocka_unit_test(data_are_what_the_fill_says),
      cmocka_unit_test(no_such_case),
      cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
