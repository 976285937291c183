/* Runs the built command in tests: finds it, makes a folder to run it in, and reads its output. */
#ifndef CLEAVE_TESTS_CLI_COMMAND_H
#define CLEAVE_TESTS_CLI_COMMAND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static char work[64], command[4096], out[65536], err[4096];

/* Sets `command` to the path of the built command, <build>/cleave. This program is <build>/tests/<name>. */
static inline bool command_find(void) {
  ssize_t length = readlink("/proc/self/exe", command, sizeof command - 16);
  if (length <= 0) return false;
  command[length] = '\0';
  for (int i = 0; i < 2; ++i) *strrchr(command, '/') = '\0';
  strcat(command, "/cleave");
  return true;
}

/* Creates a temporary folder for the test. The cache directory is "kept" in the folder. */
static inline bool command_set_up(void) {
  strcpy(work, "/tmp/cleave-test-XXXXXX");
  return command_find() && mkdtemp(work) != NULL && setenv("CLEAVE_CACHE_DIR", "kept", 1) == 0;
}

static inline int command_tear_down(void **state) {
  char line[128];
  (void)state;
  snprintf(line, sizeof line, "rm -rf '%s'", work);
  return system(line);
}

static inline void read_text(const char *name, char *text, size_t size_bytes) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", work, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, size_bytes - 1, file)] = '\0';
  fclose(file);
}

/* Runs a shell command in the folder and returns its exit status. Its output is then in `out` and `err`. */
static inline int shell(const char *line) {
  char full[8192];
  assert_true(snprintf(full, sizeof full, "cd '%s' && { %s; } >out.txt 2>err.txt </dev/null", work, line) < (int)sizeof full);
  int status = system(full);
  read_text("out.txt", out, sizeof out);
  read_text("err.txt", err, sizeof err);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

#endif
