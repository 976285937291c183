/* Tests .npy and .npz files: writing and reading every dtype, files as NumPy writes them, and damaged files. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/npz.h"

static const clv_dtype dtypes[] = {CLV_F32,  CLV_U8,  CLV_I8,  CLV_U16, CLV_I16, CLV_I32, CLV_I64,
                                   CLV_BOOL, CLV_F16, CLV_F64, CLV_U32, CLV_U64, CLV_BF16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static char path[64];

static int make_path(void **state) {
  (void)state;
  strcpy(path, "/tmp/cleave-test-XXXXXX");
  int file = mkstemp(path);
  return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
  (void)state;
  return unlink(path);
}

static void assert_same(const clv_tensor *a, const clv_tensor *b) {
  assert_true(clv__tensor_same_type(a, b));
  size_t size_bytes;
  assert_true(clv__tensor_size_bytes(a, &size_bytes));
  assert_memory_equal(a->data, b->data, size_bytes);
}

static clv_tensor random_tensor(clv_dtype dtype, int32_t rank, const int64_t *dims, uint8_t *bytes, size_t room, uint64_t *seed) {
  for (size_t i = 0; i < room; ++i) bytes[i] = (uint8_t)(test_random(seed) & (dtype == CLV_BOOL ? 1 : 255));
  return clv__tensor_make(dtype, rank, dims, bytes);
}

static void every_dtype_and_rank_goes_round(void **state) {
  (void)state;
  static const int64_t dims[][8] = {{0}, {3}, {2, 3}, {0, 4}, {2, 1, 2, 1, 1, 2, 1, 3}};
  static const int32_t ranks[] = {0, 1, 2, 2, 8};
  uint64_t seed = 1;
  uint8_t bytes[256];
  for (size_t d = 0; d < DTYPES; ++d) {
    for (size_t s = 0; s < 5; ++s) {
      clv_tensor tensor = random_tensor(dtypes[d], ranks[s], dims[s], bytes, sizeof bytes, &seed), again;
      test_allocator counting;
      test_allocator_init(&counting);
      clv_error error = {0};
      assert_ok(clv__npy_write(&counting.allocator, path, &tensor, &error), error);
      assert_ok(clv__npy_read(&counting.allocator, path, &again, &error), error);
      assert_same(&tensor, &again);
      clv__release(&counting.allocator, again.data);
      assert_int_equal(counting.live, 0);
    }
  }
}

static void strings_go_round(void **state) {
  (void)state;
  static const clv_string strings[] = {{"one", 3}, {NULL, 0}, {"gr\xc3\xbc\xc3\x9f", 6}, {"\xf0\x9f\x98\x80!", 5}};
  static const int64_t dims[] = {2, 2};
  clv_tensor tensor = clv__tensor_make(CLV_STRING, 2, dims, (void *)strings), again;
  clv_error error = {0};
  assert_ok(clv__npy_write(clv__allocator_default(), path, &tensor, &error), error);
  assert_ok(clv__npy_read(clv__allocator_default(), path, &again, &error), error);
  const clv_string *read = again.data;
  for (size_t i = 0; i < 4; ++i) {
    assert_int_equal(read[i].size_bytes, strings[i].size_bytes);
    if (read[i].size_bytes > 0) assert_memory_equal(read[i].data, strings[i].data, read[i].size_bytes);
  }
  clv__release(clv__allocator_default(), again.data);
  static const clv_string bad[] = {{"\xff", 1}};
  static const int64_t one[] = {1};
  tensor = clv__tensor_make(CLV_STRING, 1, one, (void *)bad);
  assert_int_equal(clv__npy_write(clv__allocator_default(), path, &tensor, &error), CLV_NOT_SUPPORTED);
}

/* Makes a file of version 1 or 2 with the given dictionary and data, and returns its size. */
static size_t make_file(uint8_t *file, int version, const char *dictionary, const void *data, size_t data_bytes) {
  size_t length = strlen(dictionary), start = version == 1 ? 10 : 12;
  memcpy(file, "\x93NUMPY\0\0\0\0\0\0", 12);
  file[6] = (uint8_t)version;
  file[8] = (uint8_t)length;
  file[9] = (uint8_t)(length >> 8);
  memcpy(file + start, dictionary, length);
  if (data_bytes > 0) memcpy(file + start + length, data, data_bytes);
  return start + length + data_bytes;
}

static void orders_are_brought_to_ours(void **state) {
  (void)state;
  uint8_t file[512];
  clv_tensor tensor;
  clv_error error = {0};
  static const int16_t columns[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
  for (int version = 1; version <= 3; ++version) {
    size_t size_bytes =
        make_file(file, version, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", columns, sizeof columns);
    assert_ok(clv__npy_read_memory(clv__allocator_default(), file, size_bytes, &tensor, &error), error);
    assert_memory_equal(tensor.data, rows, sizeof rows);
    clv__release(clv__allocator_default(), tensor.data);
  }
  size_t size_bytes = make_file(file, 1, "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\">u4\"}", "\0\0\1\2\xff\0\0\3", 8);
  assert_ok(clv__npy_read_memory(clv__allocator_default(), file, size_bytes, &tensor, &error), error);
  assert_memory_equal(tensor.data, ((const uint32_t[]){0x102, 0xff000003u}), 8);
  clv__release(clv__allocator_default(), tensor.data);
  size_bytes = make_file(file, 1, "{'descr': '|V2', 'fortran_order': False, 'shape': (1L,)}", "\x80\x3f", 2);
  assert_ok(clv__npy_read_memory(clv__allocator_default(), file, size_bytes, &tensor, &error), error);
  assert_int_equal(tensor.dtype, CLV_BF16);
  clv__release(clv__allocator_default(), tensor.data);
  size_bytes = make_file(file, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\7", 3);
  assert_ok(clv__npy_read_memory(clv__allocator_default(), file, size_bytes, &tensor, &error), error);
  assert_memory_equal(tensor.data, "\0\1\1", 3);
  clv__release(clv__allocator_default(), tensor.data);
}

/* Elements smaller than a byte are written as one byte each: integers as numbers, floats as bits. Files with bits cannot be read
 * back, because the header does not state the dtype. */
static void small_dtypes_are_written(void **state) {
  (void)state;
  static const struct {
    clv_dtype dtype, read;
    int64_t count;
    uint8_t bytes[3], file[5];
  } cases[] = {{CLV_I4, CLV_I8, 5, {0x78, 0x0f, 0x03}, {0xf8, 7, 0xff, 0, 3}},
               {CLV_U4, CLV_U8, 3, {0x1f, 0x09}, {15, 1, 9}},
               {CLV_I2, CLV_I8, 5, {0x36, 0x01}, {0xfe, 1, 0xff, 0, 1}},
               {CLV_U2, CLV_U8, 4, {0x93}, {3, 0, 1, 2}},
               {CLV_F4E2M1, CLV_DTYPE_NONE, 3, {0x7f, 0x08}, {15, 7, 8}},
               {CLV_F8E4M3FN, CLV_DTYPE_NONE, 2, {0x7e, 0x80}, {0x7e, 0x80}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    clv_tensor again, tensor = clv__tensor_make(cases[c].dtype, 1, &cases[c].count, (void *)cases[c].bytes);
    clv_error error = {0};
    clv__text out;
    clv__text_init(&out, clv__allocator_default());
    assert_ok(clv__npy_append(&out, &tensor, &error), error);
    const size_t count = (size_t)cases[c].count;
    assert_memory_equal(out.data + out.size_bytes - count, cases[c].file, count);
    const clv_status status = clv__npy_read_memory(clv__allocator_default(), out.data, out.size_bytes, &again, &error);
    if (cases[c].read == CLV_DTYPE_NONE) {
      assert_int_equal(status, CLV_NOT_SUPPORTED);
      assert_non_null(strstr(error.message, "which one-byte type they have"));
    } else {
      assert_ok(status, error);
      assert_int_equal(again.dtype, cases[c].read);
      assert_memory_equal(again.data, cases[c].file, count);
      clv__release(clv__allocator_default(), again.data);
    }
    clv__text_finish(&out);
  }
}

typedef struct bad_header {
  const char *dictionary, *text;
  clv_status status;
} bad_header;

static void damaged_headers_are_refused(void **state) {
  (void)state;
  static const bad_header headers[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}", "too large for any memory",
       CLV_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "dimension 0", CLV_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,)}", "needs 4000000 bytes, but the file has 4",
       CLV_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "dimension 0", CLV_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "rank", CLV_NOT_SUPPORTED},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", "expected ',' or ')'", CLV_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "fortran_order", CLV_INVALID_MODEL},
      {"{'descr': '<f4', 'shape': (1,)}", "'fortran_order' is missing", CLV_INVALID_MODEL},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects", CLV_NOT_SUPPORTED},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "'<c8'", CLV_NOT_SUPPORTED},
      {"{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,)}", "strings of 0", CLV_INVALID_MODEL},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured arrays", CLV_NOT_SUPPORTED},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "unknown key 'more'", CLV_INVALID_MODEL},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "", CLV_INVALID_MODEL},
      {"{", "", CLV_INVALID_MODEL},
      {"", "not a dictionary", CLV_INVALID_MODEL},
  };
  uint8_t file[512];
  for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
    size_t size_bytes = make_file(file, 1, headers[i].dictionary, "\0\0\0\0", 4);
    clv_tensor tensor;
    clv_error error = {0};
    clv_status status = clv__npy_read_memory(clv__allocator_default(), file, size_bytes, &tensor, &error);
    assert_null(tensor.data);
    if (i == 13) continue; /* an empty descr: any error is fine */
    if (status != headers[i].status || strstr(error.message, headers[i].text) == NULL) {
      fail_msg("the header %s gives %s: '%s', expected %s with '%s'", headers[i].dictionary, clv_status_name(status),
               error.message, clv_status_name(headers[i].status), headers[i].text);
    }
  }
}

static void mutated_files_get_a_status(void **state) {
  (void)state;
  uint8_t original[256], *file = malloc(256);
  size_t size_bytes =
      make_file(original, 1, "{'descr': '<U3', 'fortran_order': True, 'shape': (2, 2), }", "a\0\0\0b\0\0\0\0\0\0\0", 12);
  memset(original + size_bytes, 0, 36);
  size_bytes += 36;
  uint64_t seed = 5;
  for (unsigned i = 0; i < 20000; ++i) {
    memcpy(file, original, size_bytes);
    for (unsigned k = 0; k < 1 + i % 3; ++k) file[test_random(&seed) % size_bytes] = (uint8_t)test_random(&seed);
    size_t cut = i % 5 == 0 ? test_random(&seed) % size_bytes : size_bytes;
    test_allocator counting;
    test_allocator_init(&counting);
    clv_tensor tensor;
    clv_error error = {0};
    if (clv__npy_read_memory(&counting.allocator, file, cut, &tensor, &error) == CLV_OK) {
      clv__release(&counting.allocator, tensor.data);
    } else {
      assert_true(error.message[0] != '\0');
    }
    assert_int_equal(counting.live, 0);
  }
  free(file);
}

/* ---- npz ---- */

static clv_status write_all(bool deflate, uint8_t (*bytes)[256], clv_tensor *tensors, const clv_allocator *allocator,
                            clv_error *error) {
  static const char *const names[DTYPES] = {"f32",  "u8",  "i8",  "u16", "i16", "i32",   "i64",
                                            "bool", "f16", "f64", "u32", "u64", "b/f.16"};
  static const int64_t dims[] = {2, 3, 5};
  uint64_t seed = 3;
  for (size_t d = 0; d < DTYPES; ++d) tensors[d] = random_tensor(dtypes[d], 3, dims, bytes[d], 256, &seed);
  return clv__npz_write(allocator, path, names, tensors, DTYPES, deflate, error);
}

static void archives_go_round(void **state) {
  (void)state;
  static uint8_t bytes[DTYPES][256];
  for (int deflate = 0; deflate < 2; ++deflate) {
    clv_tensor tensors[DTYPES], again;
    test_allocator counting;
    test_allocator_init(&counting);
    clv_error error = {0};
    assert_ok(write_all(deflate != 0, bytes, tensors, &counting.allocator, &error), error);
    clv__npz *npz;
    assert_ok(clv__npz_open(&counting.allocator, path, &npz, &error), error);
    assert_int_equal(clv__npz_count(npz), DTYPES);
    assert_string_equal(clv__npz_name(npz, DTYPES - 1), "b/f.16");
    for (size_t d = 0; d < DTYPES; ++d) {
      assert_ok(clv__npz_read(npz, clv__npz_name(npz, d), &again, &error), error);
      assert_same(&tensors[d], &again);
      clv__release(&counting.allocator, again.data);
    }
    assert_int_equal(clv__npz_read(npz, "absent", &again, &error), CLV_NOT_FOUND);
    assert_non_null(strstr(error.message, "the arrays are: f32 u8 i8"));
    clv__npz_close(npz);
    assert_int_equal(counting.live, 0);
  }
}

/* Arrays so large that the reader reads them in several steps are read back unchanged. */
static void large_arrays_go_round(void **state) {
  (void)state;
  enum { COUNT = 300000 };
  static const char *const name[] = {"x"};
  float *numbers = malloc(COUNT * sizeof *numbers);
  uint64_t seed = 9;
  for (size_t i = 0; i < COUNT; ++i) numbers[i] = i % 3 == 0 ? test_random_float(&seed) : 0;
  clv_tensor tensor = clv__tensor_make(CLV_F32, 1, (const int64_t[]){COUNT}, numbers), again;
  for (int deflate = 0; deflate < 2; ++deflate) {
    clv_error error = {0};
    assert_ok(clv__npz_write(clv__allocator_default(), path, name, &tensor, 1, deflate != 0, &error), error);
    clv__npz *npz;
    assert_ok(clv__npz_open(clv__allocator_default(), path, &npz, &error), error);
    assert_ok(clv__npz_read(npz, "x", &again, &error), error);
    assert_same(&tensor, &again);
    clv__release(clv__allocator_default(), again.data);
    clv__npz_close(npz);
  }
  free(numbers);
}

/* Writes and reads arrays piece by piece, in pieces of random length, and skips elements. Calls in the wrong order fail. */
static void arrays_are_streamed(void **state) {
  (void)state;
  enum { COUNT = 300000 };
  clv_error error = {0};
  static int64_t data[COUNT], piece[COUNT];
  uint64_t random = 5;
  for (size_t i = 0; i < COUNT; ++i) data[i] = (int64_t)(test_random(&random) >> (i % 3 == 0 ? 3 : 60));
  const int64_t dims[] = {COUNT};
  clv_tensor type = clv__tensor_make(CLV_I64, 1, dims, NULL), all = clv__tensor_make(CLV_I64, 1, dims, data);
  for (int deflate = 0; deflate < 2; ++deflate) {
    clv__npz_writer *writer;
    clv__npz *npz;
    clv__npz_stream *stream, *second;
    assert_ok(clv__npz_writer_open(clv__allocator_default(), path, deflate != 0, &writer, &error), error);
    assert_int_equal(clv__npz_writer_append(writer, data, 8, &error), CLV_INVALID_ARGUMENT);
    assert_ok(clv__npz_writer_put(writer, "whole", &all, &error), error);
    assert_ok(clv__npz_writer_begin(writer, "pieces", &type, &error), error);
    assert_int_equal(clv__npz_writer_put(writer, "between", &all, &error), CLV_INVALID_ARGUMENT);
    for (size_t done = 0; done < COUNT;) {
      size_t some = test_random(&random) % 50000;
      if (some > COUNT - done) some = COUNT - done;
      assert_ok(clv__npz_writer_append(writer, data + done, some * sizeof *data, &error), error);
      done += some;
    }
    assert_int_equal(clv__npz_writer_commit(writer, &error), CLV_INVALID_ARGUMENT);
    assert_ok(clv__npz_writer_end(writer, &error), error);
    assert_ok(clv__npz_writer_commit(writer, &error), error);
    clv__npz_writer_close(writer);

    assert_ok(clv__npz_open(clv__allocator_default(), path, &npz, &error), error);
    assert_int_equal(clv__npz_count(npz), 2);
    for (int jump = 0; jump < 2; ++jump) {
      assert_ok(clv__npz_stream_open(npz, jump == 0 ? "whole" : "pieces", &stream, &error), error);
      assert_ok(clv__npz_stream_open(npz, "pieces", &second, &error), error);
      assert_ok(clv__npz_stream_skip(second, 123456, jump != 0, &error), error);
      for (size_t done = 0; done < COUNT;) {
        size_t some = test_random(&random) % 50000;
        if (some > COUNT - done) some = COUNT - done;
        assert_ok(clv__npz_stream_read(stream, piece, some, &error), error);
        assert_memory_equal(piece, data + done, some * sizeof *data);
        done += some;
      }
      assert_ok(clv__npz_stream_read(second, piece, COUNT - 123456, &error), error);
      assert_memory_equal(piece, data + 123456, (COUNT - 123456) * sizeof *data);
      assert_int_equal(clv__npz_stream_read(stream, piece, 1, &error), CLV_INVALID_ARGUMENT);
      assert_int_equal(clv__npz_stream_skip(stream, 1, true, &error), CLV_INVALID_ARGUMENT);
      clv__npz_stream_close(second);
      clv__npz_stream_close(stream);
    }
    clv__npz_close(npz);
  }
  /* a file that is not committed is not written */
  clv__npz_writer *writer;
  assert_ok(clv__npz_writer_open(clv__allocator_default(), path, false, &writer, &error), error);
  assert_ok(clv__npz_writer_begin(writer, "x", &type, &error), error);
  assert_ok(clv__npz_writer_append(writer, data, 80, &error), error);
  assert_int_equal(clv__npz_writer_end(writer, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "but its type needs 2400128"));
  clv__npz_writer_close(writer);
  clv__npz *npz;
  assert_ok(clv__npz_open(clv__allocator_default(), path, &npz, &error), error);
  assert_int_equal(clv__npz_count(npz), 2);
  clv__npz_close(npz);
}

static void read_everything(const clv_allocator *allocator, const void *data, size_t size_bytes) {
  clv__npz *npz;
  clv_error error = {0};
  if (clv__npz_open_memory(allocator, data, size_bytes, &npz, &error) != CLV_OK) {
    assert_true(error.message[0] != '\0');
    return;
  }
  for (size_t i = 0; i < clv__npz_count(npz) && i < 32; ++i) {
    clv_tensor tensor;
    if (clv__npz_read(npz, clv__npz_name(npz, i), &tensor, &error) == CLV_OK) clv__release(allocator, tensor.data);
  }
  clv__npz_close(npz);
}

static void damaged_archives_get_a_status(void **state) {
  (void)state;
  static uint8_t bytes[DTYPES][256];
  clv_tensor tensors[DTYPES];
  clv_error error = {0};
  for (int deflate = 0; deflate < 2; ++deflate) {
    assert_ok(write_all(deflate != 0, bytes, tensors, clv__allocator_default(), &error), error);
    clv__file_map map;
    assert_ok(clv__file_map_open(path, &map, &error), error);
    uint8_t *file = malloc(map.size_bytes);
    uint64_t seed = 11;
    for (unsigned i = 0; i < 1500; ++i) {
      memcpy(file, map.data, map.size_bytes);
      for (unsigned k = 0; k < 1 + i % 4; ++k) file[test_random(&seed) % map.size_bytes] = (uint8_t)test_random(&seed);
      size_t tail = map.size_bytes > 1200 ? map.size_bytes - 1200 : 0; /* the zip directory is at the end */
      file[tail + test_random(&seed) % (map.size_bytes - tail)] = (uint8_t)test_random(&seed);
      size_t cut = i % 7 == 0 ? test_random(&seed) % map.size_bytes : map.size_bytes;
      test_allocator counting;
      test_allocator_init(&counting);
      read_everything(&counting.allocator, file, cut);
      assert_int_equal(counting.live, 0);
    }
    free(file);
    clv__file_map_close(&map);
  }
}

static void every_failed_allocation_gets_a_status(void **state) {
  (void)state;
  static uint8_t bytes[DTYPES][256];
  for (int deflate = 0; deflate < 2; ++deflate) {
    for (size_t fail_at = 1;; ++fail_at) {
      clv_tensor tensors[DTYPES], again = {0};
      test_allocator counting;
      test_allocator_init(&counting);
      counting.fail_at = fail_at;
      clv_error error = {0};
      clv__npz *npz = NULL;
      clv_status status = write_all(deflate != 0, bytes, tensors, &counting.allocator, &error);
      if (status == CLV_OK) status = clv__npz_open(&counting.allocator, path, &npz, &error);
      if (status == CLV_OK) status = clv__npz_read(npz, "i32", &again, &error);
      clv__release(&counting.allocator, again.data);
      clv__npz_close(npz);
      assert_int_equal(counting.live, 0);
      if (status == CLV_OK) {
        assert_true(counting.calls < fail_at);
        break;
      }
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_and_rank_goes_round),
      cmocka_unit_test(strings_go_round),
      cmocka_unit_test(orders_are_brought_to_ours),
      cmocka_unit_test(small_dtypes_are_written),
      cmocka_unit_test(damaged_headers_are_refused),
      cmocka_unit_test(mutated_files_get_a_status),
      cmocka_unit_test(archives_go_round),
      cmocka_unit_test(arrays_are_streamed),
      cmocka_unit_test(large_arrays_go_round),
      cmocka_unit_test(damaged_archives_get_a_status),
      cmocka_unit_test(every_failed_allocation_gets_a_status),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
