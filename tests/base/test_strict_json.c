/* The strict JSON reader: accepted values, and the position in error messages. */
#include "base/strict_json.h"

#include <stdint.h>
#include <string.h>

#include "support.h"

static clv_error error;
static const clv__strict_json file = {.name = "f.json", .error = &error};

static json_t *parse(const char *text) {
  json_t *root;
  assert_ok(clv__json_parse(&file, text, strlen(text), 100, "test", &root), error);
  return root;
}

static void expect(clv_status status, const char *message) {
  assert_int_equal(status, CLV_INVALID_MODEL);
  assert_string_equal(error.message, message);
}

static void test_parse(void **state) {
  (void)state;
  json_t *root;
  char long_text[101];
  memset(long_text, ' ', sizeof long_text);
  long_text[0] = '[', long_text[100] = ']';
  assert_ok(clv__json_parse(&file, long_text, 101, 101, "test", &root), error);
  json_decref(root);
  expect(clv__json_parse(&file, long_text, 101, 100, "test", &root),
         "f.json: a file of 101 bytes is too large for a test; expected at most 100 bytes");
  assert_null(root);
  expect(clv__json_parse(&file, "{\"a\": 1, \"a\": 2}", 16, 100, "test", &root),
         "f.json: line 1, column 12: duplicate object key near '\"a\"'");
  assert_null(root);
  assert_int_equal(clv__json_parse(&file, "[1]]", 4, 100, "test", &root), CLV_INVALID_MODEL);
  assert_int_equal(clv__json_parse(&file, "[\"a\\u0000b\"]", 11, 100, "test", &root), CLV_INVALID_MODEL);
  assert_int_equal(clv__json_parse(&file, NULL, 0, 100, "test", &root), CLV_INVALID_MODEL);
}

static void test_keys(void **state) {
  (void)state;
  static const char *const known[] = {"a", "b", NULL};
  json_t *root = parse("{\"a\": {\"c\": 1}, \"b\": []}");
  assert_ok(clv__json_check_keys(&file, root, "root", known), error);
  expect(clv__json_check_keys(&file, json_object_get(root, "a"), "a", known), "f.json: a: unknown key 'c'");
  expect(clv__json_check_keys(&file, json_object_get(root, "b"), "b", known), "f.json: b is not an object");
  expect(clv__json_check_keys(&file, NULL, "none", known), "f.json: none is not an object");
  const clv__strict_json part = {.part = "part[1]", .error = &error}, bare = {.error = &error};
  expect(clv__json_check_keys(&part, json_object_get(root, "a"), "a", known), "part[1]: a: unknown key 'c'");
  expect(clv__json_check_keys(&bare, json_object_get(root, "a"), NULL, known), "unknown key 'c'");
  expect(clv__json_check_keys(&bare, NULL, NULL, known), "is not an object");
  json_decref(root);
}

static void test_values(void **state) {
  (void)state;
  json_t *root = parse("{\"n\": 7, \"x\": 2.5, \"m\": -1, \"s\": \"abc\", \"l\": [1, 2, 3]}");
  uint64_t size = 0;
  double number = 0;
  const char *text = NULL;
  json_t *list = NULL;
  assert_ok(clv__json_size(&file, root, "w", "n", 7, &size), error);
  assert_int_equal(size, 7);
  expect(clv__json_size(&file, root, "w", "n", 6, &size), "f.json: w: 'n' is 7; expected 0 to 6");
  expect(clv__json_size(&file, root, "w", "m", 6, &size), "f.json: w: 'm' is -1; expected 0 to 6");
  expect(clv__json_size(&file, root, "w", "x", 6, &size), "f.json: w: 'x' must be a whole number");
  assert_ok(clv__json_number(&file, root, "w", "x", 2.5, &number), error);
  assert_true(number == 2.5);
  assert_ok(clv__json_number(&file, root, "w", "n", 7, &number), error);
  expect(clv__json_number(&file, root, "w", "x", 2, &number), "f.json: w: 'x' is 2.5; expected 0 to 2");
  expect(clv__json_number(&file, root, "w", "m", 2, &number), "f.json: w: 'm' is -1; expected 0 to 2");
  expect(clv__json_number(&file, root, "w", "s", 2, &number), "f.json: w: 's' must be a number");
  assert_ok(clv__json_string(&file, root, "w", "s", 3, 3, &text), error);
  assert_string_equal(text, "abc");
  expect(clv__json_string(&file, root, "w", "s", 0, 2, &text), "f.json: w: 's' must be a string of 0 to 2 bytes");
  expect(clv__json_string(&file, root, "w", "s", 4, 5, &text), "f.json: w: 's' must be a string of 4 to 5 bytes");
  assert_int_equal(clv__json_string(&file, root, "w", "n", 0, 5, &text), CLV_INVALID_MODEL);
  assert_ok(clv__json_list(&file, root, "w", "l", 3, 3, &list), error);
  assert_int_equal(json_array_size(list), 3);
  expect(clv__json_list(&file, root, "w", "l", 0, 2, &list), "f.json: w: 'l' has length 3; expected 0 to 2");
  expect(clv__json_list(&file, root, "w", "l", 4, 5, &list), "f.json: w: 'l' has length 3; expected 4 to 5");
  expect(clv__json_list(&file, root, "w", "none", 0, 2, &list), "f.json: w: 'none' must be a list");
  json_decref(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_keys), cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
