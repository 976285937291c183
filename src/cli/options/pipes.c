/* Lets every file of the command line be a pipe, such as the shell's <(...), and lets a model be standard input ("-"). A pipe can
 * be read once, and commands open some files several times, so each pipe is copied to memory first. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "cli/options/options.h"

/* Replaces the path of a pipe by that of its copy, which stays open until the process ends. */
static clv_status settle(cli_invocation *cli, const char **path, clv_error *error) {
  struct stat info;
  clv__file_map copy;
  char text[32];
  if (stat(*path, &info) != 0 || !S_ISFIFO(info.st_mode)) return CLV_OK;
  CLV__TRY(clv__file_map_open(*path, &copy, error));
  if (copy.data == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: the pipe is empty", *path);
  snprintf(text, sizeof text, "/proc/self/fd/%d", copy.file);
  *path = clv__arena_string(&cli->arena, text, strlen(text));
  return *path == NULL ? clv__error_memory(error, sizeof text) : CLV_OK;
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
    CLV__TRY(settle(cli, &path, error));
    const size_t name = (size_t)(equals + 1 - *text), length = strlen(path);
    char *joined = clv__arena_allocate(&cli->arena, name + length + 1);
    if (joined == NULL) return clv__error_memory(error, name + length + 1);
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
  for (uint32_t i = 0; i < options->operand_count; ++i) CLV__TRY(settle_model(cli, &options->operands[i], error));
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
    const cli_given *given = &options->given[models[i]];
    for (uint32_t k = 0; k < given->count; ++k) CLV__TRY(settle_model(cli, &given->values[k], error));
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    const cli_given *given = &options->given[files[i]];
    for (uint32_t k = 0; k < given->count; ++k) CLV__TRY(settle(cli, &given->values[k], error));
  }
  const cli_given *inputs = &options->given[OPTION_INPUT];
  for (uint32_t k = 0; k < inputs->count; ++k) CLV__TRY(settle_pair(cli, &inputs->values[k], error));
  return CLV_OK;
}
