/* Parsing the calls of ATen operators: the results, and the errors. PyTorch is not needed: its numbers for dtypes, layouts and
 * formats are replaced by invented ones. */
#include <stdio.h>
#include <string.h>

#include "backends/torch/call.h"
#include "support.h"

static int32_t zero(void) {
  return 0;
}
static int32_t one(void) {
  return 1;
}
static int32_t two(void) {
  return 2;
}
static int32_t three(void) {
  return 3;
}

static clv__torch_api numbers(void) {
  clv__torch_api api = {.layout_strided = zero,
                        .format_contiguous = zero,
                        .format_preserve = one,
                        .format_channels_last = two,
                        .format_channels_last_3d = three};
  for (int i = 0; i < CLV__TORCH_DTYPES; ++i) api.dtypes[i] = 100 + i;
  return api;
}

typedef struct fixture {
  clv__torch_api api;
  clv__arena arena;
  clv__torch_call call;
  clv_error error;
} fixture;

/* Reads the call of a node of operator `op` with one argument and one result. The node has three inputs, of which the last is
 * absent. */
static clv_status read(fixture *f, const char *op, const char *argument, const char *result) {
  static const uint32_t inputs[] = {7, 8, CLV_NO_VALUE}, outputs[] = {9};
  clv_string strings[2] = {{argument, strlen(argument)}, {result, strlen(result)}};
  clv_attribute attributes[] = {
      {.name = "call", .kind = CLV_ATTRIBUTE_STRINGS, .is_list = true, .count = argument[0] != '\0', .strings = &strings[0]},
      {.name = "returns", .kind = CLV_ATTRIBUTE_STRINGS, .is_list = true, .count = result[0] != '\0', .strings = &strings[1]}};
  clv_node_info node = {.struct_size = sizeof node,
                        .op = op,
                        .domain = "aten",
                        .name = "n",
                        .input_count = 3,
                        .inputs = inputs,
                        .output_count = 1,
                        .outputs = outputs,
                        .attribute_count = 2,
                        .attributes = attributes};
  f->error.message[0] = '\0';
  return clv__torch_call_read(&f->api, &node, &f->arena, &f->call, &f->error);
}

static void begin(fixture *f) {
  *f = (fixture){.api = numbers()};
  clv__arena_init(&f->arena, clv__allocator_default());
}

static void names(void **state) {
  (void)state;
  static const struct {
    const char *op, *name, *overload;
  } cases[] = {{"linalg_inv.default", "aten::linalg_inv", ""},
               {"sum.dim_IntList", "aten::sum", "dim_IntList"},
               {"torchvision.nms.default", "torchvision::nms", ""}};
  fixture f;
  begin(&f);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    assert_ok(read(&f, cases[i].op, "Tensor self=%0", "Tensor"), f.error);
    assert_string_equal(f.call.op, cases[i].name);
    assert_string_equal(f.call.overload, cases[i].overload);
  }
  static const char *const wrong[] = {"inv", ".default", "inv.", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    assert_int_equal(read(&f, wrong[i], "Tensor self=%0", "Tensor"), CLV_NOT_SUPPORTED);
  }
  clv__arena_finish(&f.arena);
}

static void values(void **state) {
  (void)state;
  fixture f;
  begin(&f);
  const clv__torch_argument *a;
#define READ(text)                                              \
  assert_ok(read(&f, "op.default", text, "Tensor[]"), f.error); \
  a = &f.call.arguments[0]
  READ("Tensor self=%1");
  assert_int_equal(a->items[0].input, 1);
  assert_true(f.call.returns_list[0]);
  READ("int dim=-9223372036854775808");
  assert_true(a->items[0].number == INT64_MIN);
  READ("float p=1e-05");
  assert_true(a->items[0].real == 1e-05);
  READ("float p=-inf");
  assert_true(a->items[0].real < 0);
  READ("bool keepdim=True");
  assert_int_equal(a->items[0].number, 1);
  READ("str mode=\"a \\\"b\\\" %0, ]\"");
  assert_string_equal(a->items[0].text, "a \"b\" %0, ]");
  READ("ScalarType? dtype=torch.bfloat16");
  assert_true(a->is_optional && !a->is_none && a->items[0].number == 100 + CLV_BF16);
  READ("MemoryFormat? memory_format=torch.channels_last_3d");
  assert_int_equal(a->items[0].number, 3);
  READ("int[]? dim=[1, -2, 3]");
  assert_true(a->is_optional && a->is_list && a->count == 3 && a->items[1].number == -2);
  READ("int[] size=[]");
  assert_true(a->is_list && a->count == 0 && !a->is_none);
  READ("Tensor?[] indices=[None, %0, %1]");
  assert_true(a->items_are_optional && a->count == 3 && a->items[0].is_none && a->items[2].input == 1);
  READ("Generator? generator=None");
  assert_true(a->is_none);
  READ("Scalar? value=None");
  assert_true(a->is_none);
  READ("Tensor? weight=None");
  assert_true(a->is_none);
#undef READ
  clv__arena_finish(&f.arena);
}

static void refusals(void **state) {
  (void)state;
  static const struct {
    const char *argument, *result;
    clv_status status;
    const char *text;
  } cases[] = {
      {"Scalar alpha=1", "Tensor", CLV_NOT_SUPPORTED, "\"Scalar alpha=1\": PyTorch's C interface does not support its type"},
      {"Scalar? alpha=1", "Tensor", CLV_NOT_SUPPORTED, "does not support its type"},
      {"Scalar[] a=[1]", "Tensor", CLV_NOT_SUPPORTED, "does not support its type"},
      {"Generator? g=cpu", "Tensor", CLV_NOT_SUPPORTED, "does not support its type"},
      {"dim=1", "Tensor", CLV_NOT_SUPPORTED, "without the operator's schema"},
      {"int dim=1", "int", CLV_NOT_SUPPORTED, "a result of type 'int' is not a tensor"},
      {"Tensor self=%3", "Tensor", CLV_INVALID_MODEL, "one of the node's inputs"},
      {"Tensor self=%2", "Tensor", CLV_INVALID_MODEL, "one of the node's inputs"}, /* input 2 is absent */
      {"Tensor self=%-1", "Tensor", CLV_INVALID_MODEL, "one of the node's inputs"},
      {"Tensor self=%99999999999999999999", "Tensor", CLV_INVALID_MODEL, "one of the node's inputs"},
      {"Tensor self=None", "Tensor", CLV_INVALID_MODEL, "it must not be None"},
      {"Tensor[] self=[None]", "Tensor", CLV_INVALID_MODEL, "it must not be None"},
      {"int dim=1.5", "Tensor", CLV_INVALID_MODEL, "expected a whole number"},
      {"int dim=99999999999999999999", "Tensor", CLV_INVALID_MODEL, "expected a whole number"},
      {"int dim=1 2", "Tensor", CLV_INVALID_MODEL, "expected a whole number"},
      {"int[] dim=1", "Tensor", CLV_INVALID_MODEL, "expected a list in brackets"},
      {"int[] dim=[1", "Tensor", CLV_INVALID_MODEL, "the list has no closing bracket"},
      {"int[] dim=[1]]", "Tensor", CLV_INVALID_MODEL, "unexpected text after"},
      {"int[] dim=[1,,2]", "Tensor", CLV_INVALID_MODEL, "expected a whole number"},
      {"bool keepdim=1", "Tensor", CLV_INVALID_MODEL, "True or False"},
      {"float p=", "Tensor", CLV_INVALID_MODEL, "expected a number"},
      {"str mode=abc", "Tensor", CLV_INVALID_MODEL, "a quoted string"},
      {"str mode=\"abc", "Tensor", CLV_INVALID_MODEL, "a quoted string"},
      {"str mode=\"\\", "Tensor", CLV_INVALID_MODEL, "a quoted string"},
      {"ScalarType t=torch.complex64", "Tensor", CLV_INVALID_MODEL, "a dtype that Cleave supports"},
      {"Layout l=torch.sparse_coo", "Tensor", CLV_INVALID_MODEL, "torch.strided"},
      {"Device d=cuda:0", "Tensor", CLV_INVALID_MODEL, "not the CPU"},
  };
  fixture f;
  begin(&f);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_status status = read(&f, "op.default", cases[i].argument, cases[i].result);
    if (status != cases[i].status || strstr(f.error.message, cases[i].text) == NULL)
      fail_msg("reading '%s' gives an unexpected result: %s: %s", cases[i].argument, clv_status_name(status), f.error.message);
  }
  clv__arena_finish(&f.arena);
}

/* Random changes to valid arguments: the reader succeeds or gives an error, and does not read beyond the text. */
static void any_bytes(void **state) {
  (void)state;
  static const char *const seeds[] = {"Tensor?[] indices=[None, %0, %1]", "int[]? dim=[1, -2, 3]", "str mode=\"a \\\"b\\\" c\"",
                                      "ScalarType? dtype=torch.bfloat16", "float p=1e-05",         "Device? d=cpu"};
  uint64_t random = 11;
  for (uint32_t i = 0; i < 20000; ++i) {
    fixture f;
    char *text;
    begin(&f);
    const char *seed = seeds[test_random(&random) % (sizeof seeds / sizeof *seeds)];
    size_t length = strlen(seed);
    text = clv__arena_string(&f.arena, seed, length); /* its own memory, so that the sanitizer finds overreads */
    assert_non_null(text);
    for (uint64_t changes = test_random(&random) % 4; changes > 0; --changes) {
      static const char letters[] = "[]?%,\"\\ =0-N\0T";
      text[test_random(&random) % length] = letters[test_random(&random) % sizeof letters];
    }
    clv_status status = read(&f, "op.default", text, "Tensor");
    assert_true(status == CLV_OK || f.error.message[0] != '\0');
    clv__arena_finish(&f.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(values), cmocka_unit_test(refusals),
                                     cmocka_unit_test(any_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
