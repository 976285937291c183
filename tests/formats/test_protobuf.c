/* Tests protobuf's wire format: numbers and nested messages are written and read back, and invalid messages are rejected. */
#include "support.h"

#include <string.h>

#include "formats/onnx/protobuf.h"

static void numbers_go_round(void **state) {
  (void)state;
  static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, 1ull << 35, UINT64_MAX, (uint64_t)-1000};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    clv__text out;
    clv__text_init(&out, clv__allocator_default());
    clv__proto_write_varint(&out, 536870911, numbers[i]);
    clv__proto_write_float(&out, 3, -0.0f);
    clv__proto_reader reader = clv__proto_read((clv__proto_span){(uint8_t *)out.data, out.size_bytes}, (uint8_t *)out.data);
    clv__proto_field field;
    clv_error error = {0};
    assert_ok(clv__proto_next(&reader, &field, &error), error);
    assert_int_equal(field.tag, CLV__PROTO_TAG(536870911, CLV__PROTO_VARINT));
    assert_true(field.number == numbers[i]);
    assert_ok(clv__proto_next(&reader, &field, &error), error);
    assert_int_equal(field.number, 0x80000000u);
    assert_ok(clv__proto_next(&reader, &field, &error), error);
    assert_int_equal(field.tag, 0);
    clv__text_finish(&out);
  }
}

/* The estimate of a nested message's size does not change the bytes. */
static void guesses_do_not_matter(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 127, 128, 300, 16384, 70000}, guesses[] = {0, 127, 128, 20000, 1u << 21, 1u << 28};
  static uint8_t content[70000];
  for (size_t i = 0; i < sizeof content; ++i) content[i] = (uint8_t)(i * 7);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    for (size_t g = 0; g < sizeof guesses / sizeof *guesses; ++g) {
      clv__text out, plain;
      clv__text_init(&out, clv__allocator_default());
      clv__text_init(&plain, clv__allocator_default());
      size_t mark = clv__proto_begin(&out, 7, guesses[g]);
      clv__text_append_bytes(&out, content, sizes[s]);
      clv__proto_end(&out, mark, guesses[g]);
      clv__proto_write_bytes(&plain, 7, content, sizes[s]);
      assert_int_equal(out.size_bytes, plain.size_bytes);
      assert_memory_equal(out.data, plain.data, plain.size_bytes);
      clv__text_finish(&plain);
      clv__text_finish(&out);
    }
  }
}

static void expect_error(const char *bytes, size_t size_bytes, const char *text) {
  clv__proto_reader reader = clv__proto_read((clv__proto_span){(const uint8_t *)bytes, size_bytes}, (const uint8_t *)bytes);
  clv__proto_field field;
  clv_error error = {0};
  clv_status status;
  do status = clv__proto_next(&reader, &field, &error);
  while (status == CLV_OK && field.tag != 0);
  if (status != CLV_INVALID_MODEL || strstr(error.message, text) == NULL)
    fail_msg("expected CLV_INVALID_MODEL with '%s', got %s: '%s'", text, clv_status_name(status), error.message);
}

static void damage_is_named_with_its_place(void **state) {
  (void)state;
  expect_error("\x08\x01\x12\x05\x61", 5, "byte 4: a field has 5 bytes, but only 1 are left");
  expect_error("\x08\x80", 2, "byte 1: a number is truncated");
  expect_error("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "byte 1: a number has more than 10 bytes");
  expect_error("\x0d\x01\x02", 3, "but only 2 are left");
  expect_error("\x09\x01\x02", 3, "but only 2 are left");
  expect_error("\x0b", 1, "a group, which ONNX does not use");
  expect_error("\x0f", 1, "wire type 7");
  expect_error("\x00", 1, "field number 0");
  expect_error("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x61", 12, "are left");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_go_round),
      cmocka_unit_test(guesses_do_not_matter),
      cmocka_unit_test(damage_is_named_with_its_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
