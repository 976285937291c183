/* Documents that the public interface gives to callers: texts with their own allocator, paths and callbacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/document.h"
#include "base/memory.h"
#include "support.h"

typedef struct received {
  char bytes[64];
  size_t size;
  bool stops;
} received;

static bool receive(void *user_data, const char *bytes, size_t size) {
  received *at = user_data;
  if (at->stops) return false;
  assert_true(at->size + size < sizeof at->bytes);
  memcpy(at->bytes + at->size, bytes, size);
  at->size += size;
  return true;
}

static clv__text text_of(const char *content) {
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__text_append(&text, "%s", content);
  return text;
}

static uint32_t live;
static void *count_allocate(void *user_data, size_t size_bytes, size_t alignment) {
  ++live;
  return clv__allocator_default()->allocate(user_data, size_bytes, alignment);
}
static void count_release(void *user_data, void *pointer) {
  live -= pointer != NULL;
  clv__allocator_default()->release(user_data, pointer);
}

static void test_give(void **state) {
  (void)state;
  clv_error error;
  char *out;
  {
    clv_allocator counting = {NULL, count_allocate, count_release};
    clv__text text;
    clv__text_init(&text, &counting);
    clv__text_append(&text, "%s", "two\nlines\n");
    assert_int_equal(clv__document_give(&text, &out, &error), CLV_OK);
    memset(&counting, 0, sizeof counting); /* the document has its own copy of the allocator */
  }
  assert_string_equal(out, "two\nlines\n");
  assert_int_equal(live, 1);
  clv_text_free(out);
  assert_int_equal(live, 0);
  clv_text_free(NULL);

  clv__text empty = text_of("");
  assert_int_equal(clv__document_give(&empty, &out, &error), CLV_OK);
  assert_string_equal(out, "");
  clv_text_free(out);

  clv__text failed = text_of("x");
  failed.failed = true;
  assert_int_equal(clv__document_give(&failed, &out, &error), CLV_OUT_OF_MEMORY);
}

static void test_check(void **state) {
  (void)state;
  clv_error error;
  char *out = (char *)"old";
  assert_int_equal(clv__document_check(CLV_FORM_JSON, &out, &error), CLV_OK);
  assert_null(out);
  assert_int_equal(clv__document_check((clv_form)7, &out, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "form 7"));
  assert_int_equal(clv__document_check(CLV_FORM_TEXT, NULL, &error), CLV_INVALID_ARGUMENT);
}

static void test_write(void **state) {
  (void)state;
  clv_error error;
  received got = {0};
  clv__text text = text_of("abc");
  assert_int_equal(clv__document_write(&text, NULL, receive, &got, &error), CLV_OK);
  assert_int_equal(got.size, 3);
  assert_memory_equal(got.bytes, "abc", 3);
  got.stops = true;
  text = text_of("abc");
  assert_int_equal(clv__document_write(&text, NULL, receive, &got, &error), CLV_CANCELLED);
  text = text_of("abc");
  assert_int_equal(clv__document_write(&text, NULL, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  text = text_of("abc");
  assert_int_equal(clv__document_write(&text, "x", receive, &got, &error), CLV_INVALID_ARGUMENT);
  text = text_of("abc");
  text.failed = true;
  assert_int_equal(clv__document_write(&text, NULL, receive, &got, &error), CLV_OUT_OF_MEMORY);

  char path[] = "/tmp/cleave-document-XXXXXX", line[8] = "";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  text = text_of("abc");
  assert_int_equal(clv__document_write(&text, path, NULL, NULL, &error), CLV_OK);
  FILE *written = fopen(path, "r");
  assert_non_null(written);
  assert_int_equal(fread(line, 1, sizeof line, written), 3);
  fclose(written);
  unlink(path);
  assert_memory_equal(line, "abc", 3);
  text = text_of("abc");
  assert_int_equal(clv__document_write(&text, "/nowhere/file", NULL, NULL, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "/nowhere/file"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_give), cmocka_unit_test(test_check), cmocka_unit_test(test_write)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
