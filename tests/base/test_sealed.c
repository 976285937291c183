/* Sealed files: values are read back as written, a fingerprint must match exactly, and changed, truncated or extended files are
 * rejected. */
#include <string.h>

#include "base/files/sealed.h"
#include "support.h"

static const clv__sealed_kind kind = {"thing", "CLVTHING", 7};

static clv_status append(void *cookie, const void *data, size_t size_bytes) {
  clv__text_append_bytes(cookie, data, size_bytes);
  return CLV_OK;
}

static void write_file(clv__text *file, const char *fingerprint) {
  clv_error error = {0};
  clv__text payload;
  const clv_tensor type = clv__tensor_make(CLV_F16, 2, (int64_t[]){3, CLV_DIM_UNKNOWN}, NULL);
  clv__text_init(file, clv__allocator_default());
  clv__text_init(&payload, clv__allocator_default());
  clv__sealed_put_text(&payload, fingerprint);
  clv__sealed_put(&payload, 0x1122334455667788u, 8);
  clv__sealed_put(&payload, 1, 4);
  clv__sealed_put_type(&payload, &type);
  clv__sealed_put_bytes(&payload, "abc", 3);
  assert_ok(clv__sealed_write(&kind, &payload, append, file, &error), error);
  clv__text_finish(&payload);
}

static void fingerprints_fit_whole(void **state) {
  (void)state;
  static const char *const others[] = {"", "device", "device 1", "device 12 ", "Device 12", "device 123"};
  clv_error error = {0};
  clv__sealed_reader reader;
  clv__text file;
  write_file(&file, "device 12");
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    assert_ok(clv__sealed_open(&kind, file.data, file.size_bytes, &reader, &error), error);
    assert_int_equal(clv__sealed_check_fingerprint(&reader, others[i]), CLV_NOT_SUPPORTED);
    assert_non_null(strstr(error.message, "thing: compiled for another device"));
  }
  clv__text_finish(&file);
}

static void what_is_put_is_taken(void **state) {
  (void)state;
  clv_error error = {0};
  clv__sealed_reader reader;
  clv__text file;
  clv__arena arena;
  clv_tensor *types;
  uint32_t count;
  void *bytes;
  size_t size_bytes;
  clv__arena_init(&arena, clv__allocator_default());
  write_file(&file, "device 12");
  assert_ok(clv__sealed_open(&kind, file.data, file.size_bytes, &reader, &error), error);
  assert_ok(clv__sealed_check_fingerprint(&reader, "device 12"), error);
  assert_true(clv__sealed_take(&reader, 8) == 0x1122334455667788u);
  assert_ok(clv__sealed_take_types(&reader, &arena, &types, &count), error);
  assert_int_equal(count, 1);
  assert_true(types[0].dtype == CLV_F16 && types[0].rank == 2 && types[0].dims[0] == 3 && types[0].dims[1] == CLV_DIM_UNKNOWN);
  assert_ok(clv__sealed_copy_bytes(&reader, clv__allocator_default(), &bytes, &size_bytes), error);
  assert_int_equal(size_bytes, 3);
  assert_memory_equal(bytes, "abc", 3);
  clv__release(clv__allocator_default(), bytes);
  assert_int_equal(reader.at, reader.size_bytes);
  assert_false(reader.failed);
  assert_int_equal(clv__sealed_take(&reader, 1), 0); /* reading past the end */
  assert_true(reader.failed);
  clv__text_finish(&file);
  clv__arena_finish(&arena);
}

static void every_byte_counts(void **state) {
  (void)state;
  clv_error error = {0};
  clv__sealed_reader reader;
  clv__text file;
  write_file(&file, "device 12");
  for (size_t i = 0; i < file.size_bytes; ++i) {
    assert_int_not_equal(clv__sealed_open(&kind, file.data, i, &reader, &error), CLV_OK); /* truncated after i bytes */
    file.data[i] = (char)(file.data[i] ^ 0x10);
    assert_int_not_equal(clv__sealed_open(&kind, file.data, file.size_bytes, &reader, &error), CLV_OK);
    file.data[i] = (char)(file.data[i] ^ 0x10);
  }
  clv__text_append_bytes(&file, "", 1);
  assert_int_not_equal(clv__sealed_open(&kind, file.data, file.size_bytes, &reader, &error), CLV_OK);
  assert_ok(clv__sealed_open(&kind, file.data, file.size_bytes - 1, &reader, &error), error);
  clv__text_finish(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fingerprints_fit_whole),
      cmocka_unit_test(what_is_put_is_taken),
      cmocka_unit_test(every_byte_counts),
  };
  return cmocka_run_group_tests_name("base/sealed", tests, NULL, NULL);
}
