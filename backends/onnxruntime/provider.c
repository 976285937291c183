/* Execution providers as devices: lists them, and reads their names and options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

const clv_option_info clv__ort_options_known[CLV__ORT_OPTION_COUNT] = {
    {"optimize", "off, basic, extended, all", "how much ONNX Runtime optimises the graph of a partition (default: all)"},
    {"spin", "yes, no", "yes: ONNX Runtime's threads spin while they wait for work (default: yes)"},
    {"provider", "key=value;key=value",
     "options of the execution provider, named as in ONNX Runtime's documentation (default: none)"},
};

/* ---- Listing ---- */

/* Derives "cpu", "gpu" or "npu" from a provider's name. Returns NULL for a provider that is a remote service, not a device. A
 * provider that is not listed here is taken for a GPU. */
static const char *kind_of(const char *provider) {
  static const struct {
    const char *provider, *kind;
  } kinds[] = {{"CPU", "cpu"},    {"Azure", NULL}, {"Dnnl", "cpu"},  {"Xnnpack", "cpu"}, {"ACL", "cpu"},
               {"ArmNN", "cpu"},  {"QNN", "npu"},  {"SNPE", "npu"},  {"VitisAI", "npu"}, {"Nnapi", "npu"},
               {"CoreML", "npu"}, {"CANN", "npu"}, {"RKNPU", "npu"}, {"VSINPU", "npu"},  {"OpenVINO", "npu"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (strcmp(provider, kinds[i].provider) == 0) return kinds[i].kind;
  }
  return "gpu";
}

/* Calls `found` for every provider in the library that is a device, best first. */
static clv_status for_providers(const clv__ort_api *api, clv_found_fn found, void *cookie, clv_error *error) {
  char **names = NULL;
  int count = 0;
  CLV__ORT_TRY(api, GetAvailableProviders, &names, &count);
  clv_status status = CLV_OK;
  for (int i = 0; i < count && status == CLV_OK; ++i) {
    char name[64];
    size_t length = strlen(names[i]), suffix = strlen(CLV__ORT_PROVIDER_SUFFIX);
    bool has_suffix = length > suffix && strcmp(names[i] + length - suffix, CLV__ORT_PROVIDER_SUFFIX) == 0;
    snprintf(name, sizeof name, "%.*s", (int)(has_suffix ? length - suffix : length), names[i]);
    if (kind_of(name) != NULL) status = found(cookie, name, kind_of(name));
  }
  clv_error ignored = {0};
  (void)clv__ort_check(api, api->ReleaseAvailableProviders(names, count), "ReleaseAvailableProviders", &ignored);
  return status;
}

typedef struct listing {
  const clv__ort_library *library;
  clv_found_fn found;
  void *cookie;
} listing;

/* Reports a provider only if it is usable. ONNX Runtime also lists providers that need another library, which may be
 * missing. */
static clv_status list_usable(void *cookie, const char *name, const char *kind) {
  const listing *self = cookie;
  clv__ort_device device = {.library = self->library, .api = self->library->api, .is_cpu = strcmp(name, "CPU") == 0};
  snprintf(device.provider, sizeof device.provider, "%s", name);
  clv__ort_options *options = NULL;
  clv_error ignored = {0};
  clv_status status = clv__ort_options_create(&device, &options, &ignored);
  if (options != NULL) device.api->ReleaseSessionOptions(options);
  return status == CLV_OK ? self->found(self->cookie, name, kind) : CLV_OK;
}

clv_status clv__ort_list(void *library, clv_found_fn found, void *cookie, clv_error *error) {
  listing self = {library, found, cookie};
  return for_providers(self.library->api, list_usable, &self, error);
}

/* ---- Opening ---- */

typedef struct choice {
  const char *wanted;
  bool found;
  char known[200];
} choice;

static clv_status compare_name(void *cookie, const char *name, const char *kind) {
  choice *self = cookie;
  (void)kind;
  size_t used = strlen(self->known);
  snprintf(self->known + used, sizeof self->known - used, "%s%s", used > 0 ? ", " : "", name);
  self->found = self->found || strcmp(name, self->wanted) == 0;
  return CLV_OK;
}

static clv_status find_provider(clv__ort_device *device, const char *name, clv_error *error) {
  choice chosen = {.wanted = name};
  CLV__TRY(for_providers(device->api, compare_name, &chosen, error));
  if (!chosen.found) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "ONNX Runtime %s has no execution provider '%.60s'; it has %s",
                          device->library->version, name, chosen.known);
  }
  snprintf(device->provider, sizeof device->provider, "%s", name);
  device->is_cpu = strcmp(name, "CPU") == 0;
  device->saturates = device->is_cpu && clv__ort_saturates();
  return CLV_OK;
}

/* Reads options from "key=value;key=value". Copies `text` first. */
static clv_status read_provider_options(clv__ort_device *device, const char *text, clv_error *error) {
  const clv_allocator *allocator = device->host->allocator;
  size_t length = strlen(text), count = 1;
  for (const char *at = text; *at != '\0'; ++at) count += *at == ';';
  clv__release(allocator, device->option_text);
  clv__release(allocator, device->provider_options);
  device->provider_option_count = 0;
  device->option_text = clv__allocate(allocator, length + 1);
  device->provider_options = clv__allocate(allocator, count * sizeof *device->provider_options);
  if (device->option_text == NULL || device->provider_options == NULL) return clv__error_memory(error, length);
  memcpy(device->option_text, text, length + 1);
  for (char *at = device->option_text; *at != '\0';) {
    size_t part = strcspn(at, ";"), key = strcspn(at, "=;");
    bool last = at[part] == '\0';
    if (key == 0 || key >= part) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "option provider=%.100s: expected key=value;key=value", text);
    }
    at[key] = at[part] = '\0';
    device->provider_options[device->provider_option_count++] = (clv_option){at, at + key + 1};
    at += last ? part : part + 1;
  }
  return CLV_OK;
}

static clv_status read_option(clv__ort_device *device, const clv_option *option, bool *spins, clv_error *error) {
  static const struct {
    const char *word;
    int level;
  } levels[] = {{"off", CLV__ORT_OPTIMIZE_NONE},
                {"basic", CLV__ORT_OPTIMIZE_BASIC},
                {"extended", CLV__ORT_OPTIMIZE_EXTENDED},
                {"all", CLV__ORT_OPTIMIZE_ALL}};
  if (strcmp(option->key, "provider") == 0) return read_provider_options(device, option->value, error);
  if (strcmp(option->key, "spin") == 0) {
    *spins = strcmp(option->value, "yes") == 0;
    if (*spins || strcmp(option->value, "no") == 0) return CLV_OK;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "option spin=%.40s: expected yes or no", option->value);
  }
  for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
    if (strcmp(option->value, levels[i].word) == 0) return device->level = levels[i].level, CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "option optimize=%.40s: expected off, basic, extended or all",
                        option->value);
}

static clv_status open_device(clv__ort_device *device, const char *name, const clv_device_config *config, clv_error *error) {
  bool spins = true;
  for (uint32_t i = 0; i < config->option_count; ++i) CLV__TRY(read_option(device, &config->options[i], &spins, error));
  CLV__TRY(find_provider(device, name, error));
  CLV__TRY(clv__ort_environment_join(device, spins, error));
  CLV__ORT_TRY(device->api, CreateCpuMemoryInfo, CLV__ORT_ARENA_ALLOCATOR, CLV__ORT_MEMORY_DEFAULT, &device->memory);
  clv_status status = clv__ort_probe(device, error);
  if (status == CLV_OK || !device->shares_threads) return status;
  device->shares_threads = false; /* the program itself created the library's environment before, without shared threads */
  return clv__ort_probe(device, error);
}

static void describe(clv__ort_device *device) {
  snprintf(device->description, sizeof device->description, "ONNX Runtime %s, %s" CLV__ORT_PROVIDER_SUFFIX,
           device->library->version, device->provider);
  snprintf(device->fingerprint, sizeof device->fingerprint, "onnxruntime %s|%s|optimize=%d", device->library->version,
           device->provider, device->level);
  if (device->saturates) { /* verdicts and session options depend on `saturates` */
    size_t used = strlen(device->fingerprint);
    snprintf(device->fingerprint + used, sizeof device->fingerprint - used, "|saturates");
  }
  for (uint32_t i = 0; i < device->provider_option_count; ++i) {
    size_t used = strlen(device->fingerprint);
    snprintf(device->fingerprint + used, sizeof device->fingerprint - used, "|%s=%s", device->provider_options[i].key,
             device->provider_options[i].value);
  }
}

void clv__ort_device_close(void *self) {
  clv__ort_device *device = self;
  if (device == NULL) return;
  const clv_allocator *allocator = device->host->allocator;
  if (device->memory != NULL) device->api->ReleaseMemoryInfo(device->memory);
  clv__ort_environment_leave(device);
  clv__release(allocator, device->option_text);
  clv__release(allocator, device->provider_options);
  clv__release(allocator, device);
}

clv_status clv__ort_device_open(void *library, const clv_host *host, const char *name, const clv_device_config *config,
                                void **out, clv__framework_device_info *info, clv_error *error) {
  *out = NULL;
  clv__ort_device *device = clv__allocate_zero(host->allocator, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  device->library = library;
  device->api = device->library->api;
  device->host = host;
  device->level = CLV__ORT_OPTIMIZE_ALL;
  device->thread_count = config->thread_count <= 4096 ? (int)config->thread_count : 4096;
  clv_status status = open_device(device, name, config, error);
  if (status != CLV_OK) {
    clv__ort_device_close(device);
    return status;
  }
  describe(device);
  *info = (clv__framework_device_info){
      .kind = kind_of(device->provider),
      .description = device->description,
      .fingerprint = device->fingerprint,
      .computes_on_host = strcmp(kind_of(device->provider), "cpu") == 0,
  };
  *out = device;
  return CLV_OK;
}
