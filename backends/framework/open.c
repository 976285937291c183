/* Opens a framework's device with its options, describes it, and closes it. Closing also destroys the objects that the host has
 * not destroyed. */
#include "device.h"

#include <stdio.h>
#include <string.h>

#include "queue.h"

static bool is_word(const char *text, const char *const *words) {
  for (; *words != NULL; ++words) {
    if (strcmp(text, *words) == 0) return true;
  }
  return false;
}

/* Reads the option `async` into *is_async. `rest` receives all other options, which are the framework's own. */
static clv_status read_options(const clv__framework *framework, const clv_device_config *config, clv_option *rest,
                               uint32_t *rest_count, bool *is_async, clv_error *error) {
  static const char *const yes[] = {"1", "on", "true", "yes", NULL}, *const no[] = {"0", "off", "false", "no", NULL};
  *rest_count = 0;
  for (uint32_t i = 0; i < config->option_count; ++i) {
    const clv_option *option = &config->options[i];
    if (strcmp(option->key, "async") == 0) {
      *is_async = is_word(option->value, yes);
      if (*is_async || is_word(option->value, no)) continue;
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "option async=%s: expected yes or no", option->value);
    }
    bool known = false;
    for (uint32_t k = 0; k < framework->option_count && !known; ++k) {
      known = strcmp(option->key, framework->options[k].key) == 0;
    }
    if (!known) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s has no option '%s'", framework->name, option->key);
    rest[(*rest_count)++] = *option;
  }
  return CLV_OK;
}

typedef struct first_device {
  char name[128];
  bool found;
} first_device;

static clv_status take_first(void *cookie, const char *name, const char *kind) {
  first_device *first = cookie;
  (void)kind;
  size_t length = strlen(name);
  if (!first->found && length < sizeof first->name) {
    memcpy(first->name, name, length + 1);
    first->found = true;
  }
  return CLV_OK;
}

static clv_status open_handle(clv_device *device, void *library, const clv_device_config *config, clv_error *error) {
  const clv__framework *framework = device->framework;
  const char *colon = config->name != NULL ? strchr(config->name, ':') : NULL;
  const char *name = colon != NULL ? colon + 1 : "";
  clv_option *rest = clv__allocate(device->allocator, config->option_count * sizeof *rest);
  if (rest == NULL) return clv__error_memory(error, config->option_count * sizeof *rest);
  clv_device_config own = *config;
  first_device first = {.found = false};
  bool is_async = false;
  own.options = rest;
  clv_status status = CLV_OK;
  CLV__TRY_GOTO(read_options(framework, config, rest, &own.option_count, &is_async, error));
  if (name[0] == '\0') {
    CLV__TRY_GOTO(framework->list(library, take_first, &first, error));
    name = first.name;
    if (!first.found) {
      status = clv__error_set(error, CLV_NOT_SUPPORTED, "%s reports no devices", framework->name);
      goto cleanup;
    }
  }
  clv__error_clear(error);
  CLV__TRY_GOTO(framework->device_open(library, device->host, name, &own, &device->handle, &device->info, error));
  device->is_async = is_async || !device->info.computes_on_host;
cleanup:
  clv__release(device->allocator, rest);
  return status;
}

clv_status clv__framework_open(const clv__framework *framework, void *library, const clv_host *host,
                               const clv_device_config *config, clv_device **out, clv_error *error) {
  *out = NULL;
  clv_device *device = clv__allocate_zero(host->allocator, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  device->framework = framework;
  device->host = host;
  device->allocator = host->allocator;
  clv_status status = open_handle(device, library, config, error);
  if (status != CLV_OK) {
    clv__release(host->allocator, device);
    return status;
  }
  clv__objects_init(&device->objects, host->allocator, device);
  clv__framework_queue_init(&device->queue);
  snprintf(device->verdicts_key, sizeof device->verdicts_key, "%s %s %s|%s", CLEAVE_VERSION, framework->name, framework->version,
           device->info.fingerprint);
  clv__verdicts_init(&device->verdicts, host, framework->name, device->verdicts_key);
  *out = device;
  return CLV_OK;
}

void clv__framework_close(clv_device *device) {
  if (device == NULL) return;
  clv__verdicts_finish(&device->verdicts);
  if (!clv__framework_queue_stop(device)) return; /* leaks everything: a run is still in progress and may use it */
  clv__objects_finish(&device->objects);          /* objects that the host has not destroyed: instances before executables */
  device->framework->device_close(device->handle);
  clv__framework_queue_finish(device);
  clv__release(device->allocator, device);
}

void clv__framework_info(clv_device *device, clv_device_info *info) {
  const clv__framework_device_info *own = &device->info;
  clv_device_info filled = {
      .struct_size = info->struct_size,
      .static_shapes_only = own->static_shapes_only,
      .kind = own->kind,
      .description = own->description,
      .fingerprint = own->fingerprint,
      .memory_space = "host",
      .memory_limit_bytes = own->memory_limit_bytes,
      .alignment_bytes = CLV__ALIGNMENT,
      .is_synchronous = !device->is_async,
      .silicon = strcmp(own->kind, "cpu") == 0 ? "cpu" : NULL,
  };
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}
