/* Calls of ATen operators, with fake functions in place of PyTorch's. The fakes count objects, and fail if a test requests it.
 * After every call, whether it succeeds or not, only the caller's objects are left. */
#include <stdlib.h>
#include <string.h>

#include "backends/torch/call.h"
#include "support.h"

enum { MAX_ITEMS = 4, OUTPUTS = 3 };

/* What a handle points to: a tensor, a string, a list or the value of an optional argument. */
typedef struct object {
  clv__torch_value items[MAX_ITEMS]; /* the items of a list; items[0]: the value of an optional */
  size_t size;
} object;

static int live;          /* number of fake objects that exist */
static int until_failure; /* number of calls of fake functions that succeed before one fails; negative: none fails */
static const clv__torch_call *called;
static const char *words;   /* message of the last error */
static bool unknown;        /* if set, PyTorch does not have the operator */
static bool operator_fails; /* if set, the operator fails after it took over its arguments */
static uint32_t list_size;  /* number of tensors in the list that the operator returns */

static bool fails(void) {
  if (until_failure < 0 || until_failure-- > 0) return false;
  until_failure = -1;
  words = "out of memory";
  return true;
}

static int make(void *handle) {
  if (fails()) return 1;
  object *made = calloc(1, sizeof *made);
  assert_non_null(made);
  memcpy(handle, &made, sizeof made);
  ++live;
  return 0;
}

static int destroy(void *handle) {
  assert_non_null(handle);
  assert_true(live > 0);
  --live;
  free(handle);
  return 0;
}

static int tensor_share(clv__torch_tensor tensor, clv__torch_tensor *another) {
  assert_non_null(tensor);
  return make(another);
}
static int tensor_delete(clv__torch_tensor tensor) {
  return destroy(tensor);
}
static int string_new(const char *data, size_t length, clv__torch_string *string) {
  assert_int_equal(strlen(data), length);
  return make(string);
}
static int string_delete(clv__torch_string string) {
  return destroy(string);
}
static int list_new(size_t reserved, clv__torch_list *list) {
  assert_true(reserved <= MAX_ITEMS);
  return make(list);
}
static int size_of_list(clv__torch_list list, size_t *size) {
  *size = ((object *)list)->size;
  return 0;
}
static int list_get(clv__torch_list list, size_t index, clv__torch_value *value) {
  object *o = (object *)list;
  assert_true(index < o->size);
  *value = o->items[index];
  return 0;
}
static int list_push(clv__torch_list list, clv__torch_value value) {
  object *o = (object *)list;
  if (fails()) return 1;
  assert_true(o->size < MAX_ITEMS);
  o->items[o->size++] = value;
  return 0;
}
static int list_delete(clv__torch_list list) {
  return destroy(list);
}
static int optional_new(clv__torch_value **value) {
  return make(value);
}
static int optional_delete(clv__torch_value *value) {
  return destroy(value);
}
static const char *last_error(void) {
  return words;
}

/* Takes a value as the dispatcher does: deletes it with everything in it. */
static void take(const clv__torch_argument *argument, bool is_list, bool is_optional, clv__torch_value value) {
  if (is_optional && value == 0) return;
  object *o = (object *)(uintptr_t)value;
  if (is_optional) {
    take(argument, is_list, false, o->items[0]);
    (void)destroy(o);
  } else if (is_list) {
    for (size_t i = 0; i < o->size; ++i) take(argument, false, argument->items_are_optional, o->items[i]);
    (void)destroy(o);
  } else if (argument->kind == CLV__TORCH_TENSOR || argument->kind == CLV__TORCH_STRING) {
    (void)destroy(o);
  }
}

/* The fake dispatcher: takes the arguments from the stack, and puts a tensor and a list of `list_size` tensors there. Returns
 * 0, or 1 if the operator is unknown or fails. */
static int dispatch(const char *op, const char *overload, clv__torch_value *stack, uint64_t abi_version) {
  (void)op, (void)overload, (void)abi_version;
  words = unknown ? "Could not find schema for aten::op." : "the operator failed";
  if (unknown) return 1;
  for (uint32_t i = 0; i < called->argument_count; ++i) {
    take(&called->arguments[i], called->arguments[i].is_list, called->arguments[i].is_optional, stack[i]);
  }
  if (operator_fails) return 1;
  void *made;
  assert_int_equal(make(&made), 0);
  stack[0] = (clv__torch_value)(uintptr_t)made;
  assert_int_equal(make(&made), 0);
  stack[1] = (clv__torch_value)(uintptr_t)made;
  for (object *list = made; list->size < list_size; ++list->size) {
    assert_int_equal(make(&made), 0);
    list->items[list->size] = (clv__torch_value)(uintptr_t)made;
  }
  return 0;
}

static const clv__torch_api api = {.version = "2.13.0",
                                   .tensor_share = tensor_share,
                                   .tensor_delete = tensor_delete,
                                   .string_new = string_new,
                                   .string_delete = string_delete,
                                   .list_new = list_new,
                                   .list_size = size_of_list,
                                   .list_get = list_get,
                                   .list_push = list_push,
                                   .list_delete = list_delete,
                                   .optional_new = optional_new,
                                   .optional_delete = optional_delete,
                                   .call = dispatch,
                                   .last_error = last_error};

/* Makes a call with an argument of every form that owns memory, and deletes its outputs. */
static clv_status run(clv_error *error) {
  clv__torch_item tensors[3] = {{.input = 0}, {.is_none = true}, {.input = 1}}, text = {.text = "right"}, number = {.number = 7};
  clv__torch_item numbers[2] = {{.number = 1}, {.number = 2}}, none = {.is_none = true};
  clv__torch_argument arguments[] = {
      {CLV__TORCH_TENSOR, .count = 1, .items = &tensors[0]},
      {CLV__TORCH_TENSOR, .is_optional = true, .count = 1, .items = &tensors[2]},
      {CLV__TORCH_TENSOR, .is_optional = true, .is_none = true, .count = 1, .items = &none},
      {CLV__TORCH_TENSOR, .is_list = true, .items_are_optional = true, .count = 3, .items = tensors},
      {CLV__TORCH_TENSOR, .is_list = true, .is_optional = true, .count = 1, .items = tensors},
      {CLV__TORCH_STRING, .is_optional = true, .count = 1, .items = &text},
      {CLV__TORCH_INT, .is_list = true, .is_optional = true, .count = 2, .items = numbers},
      {CLV__TORCH_INT, .count = 1, .items = &number},
      {CLV__TORCH_STRING, .count = 1, .items = &text},
  };
  enum { ARGUMENTS = sizeof arguments / sizeof *arguments };
  bool returns_list[2] = {false, true};
  clv__torch_call call = {"aten::op", "", ARGUMENTS, arguments, 2, returns_list, ARGUMENTS};
  clv__torch_value stack[ARGUMENTS];
  object own[2] = {{{0}, 0}, {{0}, 0}};
  clv__torch_tensor inputs[2] = {(clv__torch_tensor)&own[0], (clv__torch_tensor)&own[1]}, outputs[OUTPUTS];
  called = &call;
  *error = (clv_error){0};
  clv_status status = clv__torch_call_make(&api, &call, inputs, stack, outputs, OUTPUTS, error);
  for (uint32_t i = 0; status == CLV_OK && i < OUTPUTS; ++i) (void)tensor_delete(outputs[i]);
  return status;
}

static int reset(void **state) {
  (void)state;
  live = 0;
  until_failure = -1;
  unknown = operator_fails = false;
  list_size = OUTPUTS - 1;
  return 0;
}

static void outcomes(void **state) {
  clv_error error;
  (void)state;
  assert_ok(run(&error), error);
  assert_int_equal(live, 0);
  operator_fails = true;
  assert_int_equal(run(&error), CLV_DEVICE_ERROR);
  assert_int_equal(live, 0);
  assert_non_null(strstr(error.message, "the operator failed"));
  unknown = true;
  assert_int_equal(run(&error), CLV_NOT_SUPPORTED);
  assert_int_equal(live, 0);
}

static void other_numbers_of_outputs(void **state) {
  clv_error error;
  (void)state;
  for (list_size = 0; list_size <= MAX_ITEMS; ++list_size) {
    assert_int_equal(run(&error), list_size == OUTPUTS - 1 ? CLV_OK : CLV_INVALID_MODEL);
    assert_int_equal(live, 0);
  }
}

/* Every function that makes an argument fails once. The call must report this, and leave no objects. */
static void failures_of_memory(void **state) {
  enum { FUNCTIONS = 22 }; /* number of calls of fake functions that make the arguments of run() */
  clv_error error;
  (void)state;
  for (int i = 0; i < FUNCTIONS; ++i) {
    until_failure = i;
    assert_int_equal(run(&error), CLV_DEVICE_ERROR);
    assert_non_null(strstr(error.message, "out of memory"));
    assert_int_equal(live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(outcomes, reset),
                                     cmocka_unit_test_setup(other_numbers_of_outputs, reset),
                                     cmocka_unit_test_setup(failures_of_memory, reset)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
