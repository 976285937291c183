/* Opens a folder as `cleave compile` writes it. The input is its compiled.json; the other files are empty, and its only
 * executable is invalid. If the folder opens, compiled.json must name only files inside the folder. */
#ifndef CLEAVE_FUZZ_TARGET_COMPILED_H
#define CLEAVE_FUZZ_TARGET_COMPILED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "compile/folder.h"

static inline void fuzz_compiled_put(const char *directory, const char *name, const void *data, size_t size_bytes) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, "wb");
  if (file == NULL || (size_bytes > 0 && fwrite(data, 1, size_bytes, file) != size_bytes) || fclose(file) != 0) abort();
}

static inline void fuzz_compiled_inside(const char *directory, const char *path) {
  const size_t length = strlen(directory);
  if (strncmp(path, directory, length) != 0 || path[length] != '/' || strchr(path + length + 1, '/') != NULL) abort();
}

static inline clv_status fuzz_compiled_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  static const char *const others[] = {CLV__FOLDER_MODEL, CLV__FOLDER_PLAN, CLV__FOLDER_WEIGHTS, "partition-0.clvx"};
  enum { OTHERS = sizeof others / sizeof *others };
  char directory[] = "/tmp/cleave-fuzz-XXXXXX", path[128];
  clv_context *context = NULL;
  clv_compiled *compiled = NULL;
  if (mkdtemp(directory) == NULL || clv_context_create(NULL, &context, error) != CLV_OK) abort();
  for (int i = 0; i < OTHERS; ++i) fuzz_compiled_put(directory, others[i], "no file", i == OTHERS - 1 ? 7 : 0);
  fuzz_compiled_put(directory, CLV__FOLDER_LIST, data, size_bytes);
  const clv_status status = clv_compiled_open(context, directory, &compiled, error);
  if (status == CLV_OK) {
    const clv_devices_options *devices = clv_compiled_devices_options(compiled);
    for (uint32_t i = 0; i < devices->npu_spec_count; ++i) {
      if (strcmp(devices->npu_specs[i], "default") == 0 || strcmp(devices->npu_specs[i], "all") == 0) continue;
      fuzz_compiled_inside(directory, devices->npu_specs[i]);
    }
    for (uint32_t i = 0; i < compiled->executable_count; ++i) fuzz_compiled_inside(directory, compiled->executables[i].path);
    if (devices->list == NULL || compiled->key_count > 0) abort(); /* the folder has no valid executable */
  } else if (compiled != NULL || error->message[0] == '\0') {
    abort();
  }
  clv_compiled_close(compiled);
  clv_context_destroy(context);
  for (int i = 0; i <= OTHERS; ++i) {
    snprintf(path, sizeof path, "%s/%s", directory, i < OTHERS ? others[i] : CLV__FOLDER_LIST);
    if (unlink(path) != 0) abort();
  }
  if (rmdir(directory) != 0) abort();
  return status;
}

static inline void fuzz_compiled(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_compiled_status(data, size_bytes, &error);
}

#endif
