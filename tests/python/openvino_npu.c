/* A library that simulates an OpenVINO with an NPU, for test_openvino.py. It wraps the real library, whose CPU device does the
 * work. The NPU supports only fixed shapes. It does not compile a model whose bytes contain the text in the environment
 * variable OPENVINO_NPU_REFUSES. This library is linked against the real one, which provides all other entry points. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct names {
  char **names;
  size_t count;
} names;

void *dlsym(void *handle, const char *name);
#define NEXT ((void *)-1l)
#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(NEXT, name))

bool ov_model_is_dynamic(const void *model);

static const char *behind(const char *device) {
  return strcmp(device, "NPU") == 0 ? "CPU" : device;
}

int ov_core_get_available_devices(const void *core, names *devices) {
  static char *all[] = {"CPU", "NPU"};
  (void)core;
  *devices = (names){all, 2};
  return 0;
}

void ov_available_devices_free(names *devices) {
  *devices = (names){NULL, 0};
}

int ov_core_get_property(const void *core, const char *device, const char *key, char **value) {
  return REAL(int, "ov_core_get_property", const void *, const char *, const char *, char **)(core, behind(device), key, value);
}

int ov_core_set_property(const void *core, const char *device, const char *key, const char *value) {
  return REAL(int, "ov_core_set_property", const void *, const char *, ...)(core, behind(device), key, value);
}

static _Thread_local bool is_refused;

int ov_core_read_model_from_memory_buffer(const void *core, const char *data, size_t size_bytes, const void *weights,
                                          void **model) {
  const char *refused = getenv("OPENVINO_NPU_REFUSES");
  is_refused = refused != NULL && memmem(data, size_bytes, refused, strlen(refused)) != NULL;
  return REAL(int, "ov_core_read_model_from_memory_buffer", const void *, const char *, size_t, const void *, void **)(
      core, data, size_bytes, weights, model);
}

int ov_core_compile_model(const void *core, const void *model, const char *device, size_t count, void **compiled) {
  if (strcmp(device, "NPU") == 0 && (is_refused || ov_model_is_dynamic(model))) return -1;
  return REAL(int, "ov_core_compile_model", const void *, const void *, const char *, size_t, void **, ...)(
      core, model, behind(device), count, compiled);
}

int ov_core_import_model(const void *core, const char *data, size_t size_bytes, const char *device, void **compiled) {
  return REAL(int, "ov_core_import_model", const void *, const char *, size_t, const char *, void **)(core, data, size_bytes,
                                                                                                      behind(device), compiled);
}
