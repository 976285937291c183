/* OpenVINO's devices: lists them, opens them with their options, and describes them. */
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---- */

enum { THREADS, PRECISION, INTEGERS, HALVES, NAN_VALUES, SHAPES, PINNING };

const clv_option_info clv__openvino_options[CLV__OPENVINO_OPTION_COUNT] = {
    [THREADS] = {"threads", "a whole number from 1 to 4096",
                 "number of threads of the CPU device (default: the value of --threads)"},
    [PRECISION] = {"precision", "exact, default",
                   "exact: compute f32 as f32; default: let the device choose, possibly bf16 or f16 (default: exact)"},
    [INTEGERS] =
        {"integers", "exact, narrow",
         "exact: reject nodes on 64-bit integers, which OpenVINO computes as 32-bit ones; narrow: accept them (default: exact)"},
    [HALVES] = {"halves", "exact, wide",
                "exact: reject nodes on f16 and bf16 whose results need the rounding that OpenVINO skips, such as casts and "
                "Floor; wide: accept them (default: exact)"},
    [NAN_VALUES] =
        {"nan", "lose, keep",
         "keep: reject operators in which OpenVINO loses NaNs, such as Relu and Max; lose: accept them (default: lose)"},
    [SHAPES] = {"shapes", "open, fixed", "fixed: compile models only for known shapes (default: open, but fixed on an NPU)"},
    [PINNING] = {"pinning", "yes, no", "yes: bind OpenVINO's threads to cores (default: no)"},
};

typedef struct settings {
  uint32_t threads; /* 0: OpenVINO decides */
  bool exact, narrow, wide, keeps_nan, fixed, pinned;
} settings;

static clv_status wrong_value(const clv_option *option, uint32_t which, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "option %s=%.60s: expected %s", option->key, option->value,
                        clv__openvino_options[which].values);
}

/* Reads an option whose value must be one of two words. */
static clv_status read_word(const clv_option *option, uint32_t which, const char *no, const char *yes, bool *value,
                            clv_error *error) {
  *value = strcmp(option->value, yes) == 0;
  return *value || strcmp(option->value, no) == 0 ? CLV_OK : wrong_value(option, which, error);
}

static clv_status read_threads(const clv_option *option, uint32_t *threads, clv_error *error) {
  char *end;
  errno = 0;
  long number = strtol(option->value, &end, 10);
  if (errno != 0 || end == option->value || *end != '\0' || number < 1 || number > 4096) {
    return wrong_value(option, THREADS, error);
  }
  *threads = (uint32_t)number;
  return CLV_OK;
}

static clv_status read_settings(const clv_device_config *config, bool is_npu, settings *s, clv_error *error) {
  *s = (settings){.threads = config->thread_count, .exact = true, .fixed = is_npu};
  for (uint32_t i = 0; i < config->option_count; ++i) {
    const clv_option *option = &config->options[i];
    clv_status status = CLV_OK;
    for (uint32_t which = 0; which < CLV__OPENVINO_OPTION_COUNT; ++which) {
      if (strcmp(option->key, clv__openvino_options[which].key) != 0) continue;
      switch (which) {
        case THREADS:
          status = read_threads(option, &s->threads, error);
          break;
        case PRECISION:
          status = read_word(option, which, "default", "exact", &s->exact, error);
          break;
        case INTEGERS:
          status = read_word(option, which, "exact", "narrow", &s->narrow, error);
          break;
        case HALVES:
          status = read_word(option, which, "exact", "wide", &s->wide, error);
          break;
        case NAN_VALUES:
          status = read_word(option, which, "lose", "keep", &s->keeps_nan, error);
          break;
        case SHAPES:
          status = read_word(option, which, "open", "fixed", &s->fixed, error);
          break;
        case PINNING:
          status = read_word(option, which, "no", "yes", &s->pinned, error);
          break;
      }
    }
    if (status != CLV_OK) return status;
  }
  return CLV_OK;
}

/* ---- Listing ---- */

static const char *kind_of(const char *name) {
  static const char *const kinds[][2] = {{"CPU", "cpu"}, {"GPU", "gpu"}, {"NPU", "npu"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    size_t length = strlen(kinds[i][0]);
    if (strncmp(name, kinds[i][0], length) == 0 && (name[length] == '\0' || name[length] == '.')) return kinds[i][1];
  }
  return "npu"; /* an unknown kind: a third-party plugin of OpenVINO */
}

/* Lists GPUs and NPUs before the CPU, which is always available. */
clv_status clv__openvino_list(void *library, clv_found_fn found, void *cookie, clv_error *error) {
  const clv__openvino *ov = library;
  ov_core *core = NULL;
  ov_device_names devices = {NULL, 0};
  CLV__OPENVINO_TRY(ov, error, core_create, &core);
  int code = ov->core_get_available_devices(core, &devices);
  clv_status status = code == 0 ? CLV_OK : clv__openvino_failed(ov, error, "ov_core_get_available_devices", code);
  for (int cpus = 0; cpus <= 1 && code == 0; ++cpus) {
    for (size_t i = 0; i < devices.count && status == CLV_OK; ++i) {
      const char *kind = kind_of(devices.names[i]);
      if ((strcmp(kind, "cpu") == 0) == (cpus == 1)) status = found(cookie, devices.names[i], kind);
    }
  }
  if (code == 0) ov->available_devices_free(&devices);
  ov->core_free(core);
  return status;
}

typedef struct wanted_device {
  const char *name;
  bool found;
  char names[200]; /* all device names, for the error message */
} wanted_device;

static clv_status compare_name(void *cookie, const char *name, const char *kind) {
  wanted_device *wanted = cookie;
  (void)kind;
  size_t length = strlen(wanted->name), used = strlen(wanted->names);
  /* "GPU" means "GPU.0", the first of "GPU.0" and "GPU.1" */
  bool same = strncmp(wanted->name, name, length) == 0 && (name[length] == '\0' || strcmp(name + length, ".0") == 0);
  wanted->found = wanted->found || same;
  snprintf(wanted->names + used, sizeof wanted->names - used, "%s%s", used > 0 ? ", " : "", name);
  return CLV_OK;
}

/* ---- Opening ---- */

/* Reads a property. Returns false and "" if the device does not have it. */
static bool get_property(const clv__openvino_device *device, const char *key, char *value, size_t value_bytes) {
  char *text = NULL;
  value[0] = '\0';
  if (device->ov->core_get_property(device->core, device->name, key, &text) != 0 || text == NULL) return false;
  snprintf(value, value_bytes, "%s", text);
  device->ov->free(text);
  for (char *at = value; *at != '\0'; ++at) {
    if ((unsigned char)*at < ' ') *at = ' ';
  }
  return true;
}

static bool set_property(const clv__openvino_device *device, const char *key, const char *value) {
  return device->ov->core_set_property(device->core, device->name, key, value) == 0;
}

/* Properties apply to every model that the core compiles or imports for the device. Accelerators do not have all of them, so a
 * property that cannot be set is skipped. `is_exact` tells whether f32 will be computed as f32. */
static void set_properties(clv__openvino_device *device, const settings *s, bool *is_exact) {
  bool is_cpu = strcmp(device->kind, "cpu") == 0;
  char number[16];
  snprintf(number, sizeof number, "%u", s->threads);
  set_property(device, "PERFORMANCE_HINT", "LATENCY");
  *is_exact = s->exact && set_property(device, "INFERENCE_PRECISION_HINT", "f32");
  if (s->exact) set_property(device, "EXECUTION_MODE_HINT", "ACCURACY");
  if (is_cpu && s->threads > 0) set_property(device, "INFERENCE_NUM_THREADS", number);
  if (is_cpu) set_property(device, "ENABLE_CPU_PINNING", s->pinned ? "YES" : "NO");
}

/* The fingerprint covers everything that compiled models depend on, including the driver if the device has one. */
static void describe(clv__openvino_device *device, const settings *s, bool is_exact) {
  static const char *const keys[] = {"DEVICE_ARCHITECTURE", "OPTIMIZATION_CAPABILITIES", "GPU_DRIVER_VERSION",
                                     "NPU_DRIVER_VERSION", "NPU_COMPILER_VERSION"};
  char full[128], value[160];
  if (!get_property(device, "FULL_DEVICE_NAME", full, sizeof full)) snprintf(full, sizeof full, "?");
  snprintf(device->description, sizeof device->description, "OpenVINO %.*s, %s: %s%s", (int)strcspn(device->ov->build, "-"),
           device->ov->build, device->name, full, s->exact && !is_exact ? " (which has no setting to compute f32 as f32)" : "");
  int used = snprintf(device->fingerprint, sizeof device->fingerprint, "openvino %s %s %s threads=%u%s%s%s%s%s%s",
                      device->ov->build, device->name, full, s->threads, s->exact ? " exact" : "", s->narrow ? " narrow" : "",
                      s->wide ? " wide" : "", s->keeps_nan ? " nan" : "", s->fixed ? " fixed" : "", s->pinned ? " pinned" : "");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    if (used < 0 || (size_t)used >= sizeof device->fingerprint) return;
    if (!get_property(device, keys[i], value, sizeof value)) continue;
    used += snprintf(device->fingerprint + used, sizeof device->fingerprint - (size_t)used, " %s", value);
  }
}

static uint64_t memory_limit(const clv__openvino_device *device) {
  char value[32];
  bool is_gpu = strcmp(device->kind, "gpu") == 0;
  return is_gpu && get_property(device, "GPU_DEVICE_TOTAL_MEM_SIZE", value, sizeof value) ? strtoull(value, NULL, 10) : 0;
}

static clv_status check_is_here(const clv__openvino_device *device, clv_error *error) {
  char value[8];
  bool is_cpu = strcmp(device->name, "CPU") == 0; /* listing the other devices takes a while, so check the CPU first */
  if (is_cpu && get_property(device, "FULL_DEVICE_NAME", value, sizeof value)) return CLV_OK;
  wanted_device wanted = {.name = device->name};
  CLV__TRY(clv__openvino_list((void *)device->ov, compare_name, &wanted, error));
  if (wanted.found) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO has no device '%s' here; its devices are %s", device->name,
                        wanted.names[0] != '\0' ? wanted.names : "none");
}

clv_status clv__openvino_device_open(void *library, const clv_host *host, const char *name, const clv_device_config *config,
                                     void **out, clv__framework_device_info *info, clv_error *error) {
  *out = NULL;
  settings s;
  CLV__TRY(read_settings(config, strcmp(kind_of(name), "npu") == 0, &s, error));
  clv__openvino_device *device = clv__allocate_zero(host->allocator, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  device->ov = library;
  device->host = host;
  device->allocator = host->allocator;
  device->static_shapes = s.fixed;
  device->narrow = s.narrow;
  device->wide = s.wide;
  device->keeps_nan = s.keeps_nan;
  snprintf(device->kind, sizeof device->kind, "%s", kind_of(name));
  clv_status status = CLV_OK;
  if ((size_t)snprintf(device->name, sizeof device->name, "%s", name) >= sizeof device->name) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO has no device '%.80s' here", name);
    goto cleanup;
  }
  int code = device->ov->core_create(&device->core);
  if (code != 0) {
    status = clv__openvino_failed(device->ov, error, "ov_core_create", code);
    goto cleanup;
  }
  CLV__TRY_GOTO(check_is_here(device, error));
  bool is_exact = false;
  set_properties(device, &s, &is_exact);
  describe(device, &s, is_exact);
  *info = (clv__framework_device_info){
      .kind = device->kind,
      .description = device->description,
      .fingerprint = device->fingerprint,
      .static_shapes_only = device->static_shapes,
      .computes_on_host = strcmp(device->kind, "cpu") == 0,
      .memory_limit_bytes = memory_limit(device),
  };
  *out = device;
cleanup:
  if (status != CLV_OK) clv__openvino_device_close(device);
  return status;
}

void clv__openvino_device_close(void *self) {
  clv__openvino_device *device = self;
  if (device == NULL) return;
  if (device->core != NULL) device->ov->core_free(device->core);
  clv__release(device->allocator, device);
}
