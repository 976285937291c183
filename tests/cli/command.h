/* The built command as tests call it: where it is, a folder to call it in, and what it said. */
#ifndef CLEAVE_TESTS_CLI_COMMAND_H
#define CLEAVE_TESTS_CLI_COMMAND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static char work[64], command[4096], out[65536], err[4096];

/* Finds the command: <build>/cleave, where this program is <build>/tests/<this>. */
static inline bool command_find(void) {
  ssize_t length = readlink("/proc/self/exe", command, sizeof command - 16);
  if (length <= 0) return false;
  command[length] = '\0';
  for (int i = 0; i < 2; ++i) *strrchr(command, '/') = '\0';
  strcat(command, "/cleave");
  return true;
}

/* A folder of the test's own, with a cache in it. */
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

/* A line of the shell in the folder; its exit status. What it printed is in `out` and `err`. */
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
