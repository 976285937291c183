/* Mapped files that change: what clv__file_map_check() sees, and reading a truncated file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "support.h"

enum { FILE_BYTES = 20000 };

static char path[64];

static void write_bytes(const char *to, off_t at, char byte, size_t count) {
  char bytes[FILE_BYTES];
  memset(bytes, byte, sizeof bytes);
  int file = open(to, O_WRONLY | O_CREAT, 0600);
  assert_true(file >= 0 && pwrite(file, bytes, count, at) == (ssize_t)count);
  close(file);
}

/* Creates a file with a modification time of an hour ago, so that any change changes its time. */
static int set_up(void **state) {
  (void)state;
  strcpy(path, "/tmp/cleave-map-XXXXXX");
  int file = mkstemp(path);
  if (file < 0) return -1;
  close(file);
  write_bytes(path, 0, 'a', FILE_BYTES);
  struct timespec now, times[2];
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= 3600;
  times[0] = times[1] = now;
  return utimensat(AT_FDCWD, path, times, 0);
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

static clv__file_map map_file(void) {
  clv_error error = {0};
  clv__file_map map;
  assert_ok(clv__file_map_open(path, &map, &error), error);
  assert_int_equal(map.size_bytes, FILE_BYTES);
  return map;
}

static void truncated(void **state) {
  (void)state;
  clv_error error = {0};
  char bytes[FILE_BYTES];
  clv__file_map map = map_file();
  assert_true(clv__file_map_check(&map));
  assert_ok(clv__file_map_read(&map, map.data + 10, FILE_BYTES - 10, bytes, &error), error);
  assert_int_equal(bytes[FILE_BYTES - 11], 'a');
  assert_int_equal(truncate(path, 100), 0);
  assert_false(clv__file_map_check(&map));
  assert_ok(clv__file_map_read(&map, map.data + 10, 90, bytes, &error), error);
  assert_int_equal(clv__file_map_read(&map, map.data + 10, 91, bytes, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "the file ends at byte 100, but had 20000 bytes when it was loaded"));
  clv__file_map_close(&map);
}

static void overwritten(void **state) {
  (void)state;
  clv__file_map map = map_file();
  write_bytes(path, 5000, 'b', 1);
  assert_false(clv__file_map_check(&map));
  clv__file_map_close(&map);
  clv__file_map empty = {0};
  assert_true(clv__file_map_check(&empty));
}

static void replaced_and_deleted(void **state) {
  (void)state;
  char other[80];
  clv__file_map map = map_file();
  snprintf(other, sizeof other, "%s.new", path);
  write_bytes(other, 0, 'c', 5);
  assert_int_equal(rename(other, path), 0);
  assert_true(clv__file_map_check(&map));
  assert_int_equal(map.data[FILE_BYTES - 1], 'a');
  clv__file_map_close(&map);
  clv_error error = {0};
  assert_ok(clv__file_map_open(path, &map, &error), error);
  unlink(path);
  assert_true(clv__file_map_check(&map));
  assert_int_equal(map.data[4], 'c');
  clv__file_map_close(&map);
}

/* At most CLV__FILES_KEPT_OPEN mapped files stay open. Further files are mapped too, but clv__file_map_check() does not see
 * changes to them. */
static void many(void **state) {
  (void)state;
  enum { COUNT = CLV__FILES_KEPT_OPEN + 10 };
  static clv__file_map maps[COUNT];
  for (int round = 0; round < 2; ++round) { /* in the second round, the files closed after the first one must have made room */
    for (int i = 0; i < COUNT; ++i) maps[i] = map_file();
    write_bytes(path, 5000, (char)('b' + round), 1);
    int seen = 0;
    for (int i = 0; i < COUNT; ++i) {
      char byte;
      clv_error error = {0};
      seen += !clv__file_map_check(&maps[i]);
      assert_ok(clv__file_map_read(&maps[i], maps[i].data + 5000, 1, &byte, &error), error);
      assert_int_equal(byte, 'b' + round);
    }
    assert_int_equal(seen, CLV__FILES_KEPT_OPEN);
    for (int i = 0; i < COUNT; ++i) clv__file_map_close(&maps[i]);
    usleep(20000); /* longer than a tick of the file system's clock, so that the next change has another time */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(truncated, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overwritten, set_up, tear_down),
      cmocka_unit_test_setup_teardown(replaced_and_deleted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(many, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
