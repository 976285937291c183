/* Lets every file of the command line be a pipe, such as the shell's <(...), and lets a model be standard input ("-"). A pipe can
 * be read once, and commands open some files several times, so each pipe is copied to memory first. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/options.h"

/* Copies `data` to a file in memory, which stays open until the process ends. Returns its descriptor, or -1. */
static int keep(const char *data, size_t size_bytes) {
  const int file = memfd_create("cleave-pipe", MFD_CLOEXEC);
  for (size_t done = 0; file >= 0 && done < size_bytes;) {
    const ssize_t more = write(file, data + done, size_bytes - done);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return -1;
    done += (size_t)more;
  }
  return file;
}

/* Replaces the path of a pipe by that of its copy. */
static clv_status settle(cli_invocation *cli, const char **path, clv_error *error) {
  struct stat info;
  char text[32], *data;
  size_t size_bytes;
  if (stat(*path, &info) != 0 || !S_ISFIFO(info.st_mode)) return CLV_OK;
  CLI_TRY(cli_file_read(*path, &data, &size_bytes, error));
  const int copy = size_bytes > 0 ? keep(data, size_bytes) : -1;
  const int code = errno;
  free(data);
  if (size_bytes == 0) return cli_error_set(error, CLV_INVALID_ARGUMENT, "%s: the pipe is empty", *path);
  if (copy < 0) return cli_error_set(error, CLV_IO_ERROR, "%s: cannot copy the pipe into memory: %s", *path, strerror(code));
  snprintf(text, sizeof text, "/proc/self/fd/%d", copy);
  *path = cli_arena_string(&cli->arena, text, strlen(text));
  return *path == NULL ? cli_error_memory(error, sizeof text) : CLV_OK;
}

static clv_status settle_model(cli_invocation *cli, const char **path, clv_error *error) {
  if (strcmp(*path, "-") == 0) *path = "/dev/stdin";
  return settle(cli, path, error);
}

/* Replaces the path in "NAME=PATH" if it is that of a pipe. A name may contain `=`, so the path begins after the first `=` that
 * is followed by a pipe's path. */
static clv_status settle_pair(cli_invocation *cli, const char **text, clv_error *error) {
  struct stat info;
  for (const char *equals = strchr(*text, '='); equals != NULL; equals = strchr(equals + 1, '=')) {
    const char *path = equals + 1;
    if (stat(path, &info) != 0 || !S_ISFIFO(info.st_mode)) continue;
    CLI_TRY(settle(cli, &path, error));
    const size_t name = (size_t)(equals + 1 - *text), length = strlen(path);
    char *joined = cli_arena_allocate(&cli->arena, name + length + 1);
    if (joined == NULL) return cli_error_memory(error, name + length + 1);
    memcpy(joined, *text, name);
    memcpy(joined + name, path, length + 1);
    *text = joined;
    return CLV_OK;
  }
  return settle(cli, text, error);
}

clv_status cli_options_settle(cli_invocation *cli, cli_options *options, clv_error *error) {
  static const cli_option_id files[] = {OPTION_NPU_SPEC, OPTION_PINS,      OPTION_PROFILE, OPTION_PARAMS,
                                        OPTION_GNN_PLAN, OPTION_GNN_PARTS, OPTION_IMPORT,  OPTION_GNN_X};
  static const cli_option_id models[] = {OPTION_MODEL, OPTION_GNN_GRAPH};
  for (uint32_t i = 0; i < options->operand_count; ++i) CLI_TRY(settle_model(cli, &options->operands[i], error));
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
    const cli_given *given = &options->given[models[i]];
    for (uint32_t k = 0; k < given->count; ++k) CLI_TRY(settle_model(cli, &given->values[k], error));
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    const cli_given *given = &options->given[files[i]];
    for (uint32_t k = 0; k < given->count; ++k) CLI_TRY(settle(cli, &given->values[k], error));
  }
  const cli_given *inputs = &options->given[OPTION_INPUT];
  for (uint32_t k = 0; k < inputs->count; ++k) CLI_TRY(settle_pair(cli, &inputs->values[k], error));
  return CLV_OK;
}
