/* Files that are replaced completely or not at all: their content while a new version is written, after the writer is killed, and
 * on file systems without unnamed files. */
#define _GNU_SOURCE /* O_TMPFILE */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file_writer.h"
#include "support.h"

static char folder[64], path[96];
static bool without_proc; /* access() then reports that /proc is missing, so that the writer does not use unnamed files */

/* Replaces the C library's access(), which only the file writer calls here. */
int access(const char *asked, int mode) {
  if (without_proc && strncmp(asked, "/proc/self/fd", 13) == 0) {
    errno = ENOENT;
    return -1;
  }
  return faccessat(AT_FDCWD, asked, mode, 0);
}

static int set_up(void **state) {
  (void)state;
  strcpy(folder, "/tmp/cleave-writer-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  without_proc = false;
  return 0;
}

static int tear_down(void **state) {
  char line[128];
  (void)state;
  snprintf(line, sizeof line, "rm -rf '%s'", folder);
  return system(line);
}

static size_t count_files(void) {
  size_t count = 0;
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) count += entry->d_name[0] != '.';
  closedir(open);
  return count;
}

static void expect_content(const char *expected) {
  char text[64] = "";
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(text, expected);
}

static void write_text(const char *text) {
  clv__file_writer writer;
  clv_error error = {0};
  assert_int_equal(clv__file_writer_open(path, &writer, &error), CLV_OK);
  assert_int_equal(clv__file_writer_append(&writer, text, strlen(text), &error), CLV_OK);
  assert_int_equal(clv__file_writer_commit(&writer, &error), CLV_OK);
}

/* Whether this file system supports unnamed files. If not, only the fallback is tested. */
static bool has_unnamed(void) {
  int file = open(folder, O_TMPFILE | O_RDWR, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

static void check_replacing(void) {
  clv__file_writer writer;
  clv_error error = {0};
  struct stat info;
  mode_t mask = umask(027);
  write_text("old");
  umask(mask);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  assert_int_equal(clv__file_writer_open(path, &writer, &error), CLV_OK);
  assert_int_equal(clv__file_writer_append(&writer, "n_wer", 5, &error), CLV_OK);
  assert_int_equal(clv__file_writer_patch(&writer, 1, "e", 1, &error), CLV_OK);
  expect_content("old");
  assert_int_equal(clv__file_writer_commit(&writer, &error), CLV_OK);
  clv__file_writer_abandon(&writer); /* has no effect after a commit */
  expect_content("newer");
  assert_int_equal(clv__file_writer_open(path, &writer, &error), CLV_OK);
  assert_int_equal(clv__file_writer_append(&writer, "lost", 4, &error), CLV_OK);
  clv__file_writer_abandon(&writer);
  expect_content("newer");
  assert_int_equal(count_files(), 1);
}

static void test_replacing(void **state) {
  (void)state;
  check_replacing();
  without_proc = true;
  check_replacing();
}

/* Kills a child process while it writes. Returns the number of files that it leaves beside the old file. */
static size_t left_by_killed(void) {
  write_text("old");
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    clv__file_writer writer;
    clv_error error = {0};
    if (clv__file_writer_open(path, &writer, &error) != CLV_OK) _exit(1);
    if (clv__file_writer_append(&writer, "half", 4, &error) != CLV_OK) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  expect_content("old");
  return count_files() - 1;
}

static void test_killed(void **state) {
  (void)state;
  assert_int_equal(left_by_killed(), has_unnamed() ? 0 : 1);
  without_proc = true;
  size_t left = left_by_killed();
  assert_true(left >= 1);
  clv__file_writer_sweep(path);
  assert_int_equal(count_files(), 1);
  expect_content("old");
}

/* A path without a folder means the current folder. A folder that does not exist and a path that is too long are errors. */
static void test_names(void **state) {
  char before[512], *longest = malloc(5000);
  clv__file_writer writer;
  clv_error error = {0};
  (void)state;
  assert_non_null(longest);
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder), 0);
  strcpy(path, "file");
  write_text("here");
  expect_content("here");
  assert_int_equal(count_files(), 1);
  assert_int_equal(chdir(before), 0);
  snprintf(path, sizeof path, "%s/none/file", folder);
  assert_int_equal(clv__file_writer_open(path, &writer, &error), CLV_IO_ERROR);
  assert_non_null(strstr(error.message, "/none/file: cannot create: No such file or directory"));
  clv__file_writer_abandon(&writer);
  memset(longest, 'x', 4999);
  longest[4999] = '\0';
  assert_int_equal(clv__file_writer_open(longest, &writer, &error), CLV_INVALID_ARGUMENT);
  clv__file_writer_abandon(&writer);
  free(longest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_replacing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
