/* Opening a list of devices, and closing them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backends/vnpu/vnpu.h"
#include "base/options.h"
#include "device/device.h"

enum { MAX_OPTIONS = 64 };

uint32_t clv_devices_count(const clv_devices *devices) {
  return devices == NULL ? 0 : devices->count;
}
const char *clv_devices_name(const clv_devices *devices, uint32_t index) {
  return index < clv_devices_count(devices) ? devices->items[index].name : NULL;
}

void clv_devices_info(const clv_devices *devices, uint32_t index, clv_device_info *info) {
  const clv_device_info none = {0};
  uint32_t struct_size = info->struct_size < sizeof *info ? info->struct_size : (uint32_t)sizeof *info;
  memcpy(info, index < clv_devices_count(devices) ? &devices->items[index].info : &none, struct_size);
  info->struct_size = struct_size;
}

void clv__devices_lock(clv_devices *devices) {
  pthread_mutex_lock(&devices->lock);
}
void clv__devices_unlock(clv_devices *devices) {
  pthread_mutex_unlock(&devices->lock);
}

uint32_t clv__devices_alignment(const clv_devices *devices, uint32_t space) {
  uint32_t most = CLV__ALIGNMENT;
  for (uint32_t d = 0; d < devices->count; ++d) {
    uint32_t alignment = devices->items[d].info.alignment_bytes;
    bool is_power = alignment > 0 && (alignment & (alignment - 1)) == 0;
    if (devices->items[d].space == space && is_power && alignment > most) most = alignment;
  }
  return most;
}

clv_status clv__device_check(const clv__device *device, clv_error *error) {
  if (!device->is_lost) return CLV_OK;
  return clv__error_set(error, CLV_DEVICE_ERROR, "%s was given up: it did not answer in time", device->name);
}

uint32_t clv__devices_find(const clv_devices *devices, const char *name) {
  for (uint32_t i = 0; i < devices->count; ++i) {
    if (strcmp(devices->items[i].name, name) == 0) return i;
  }
  return CLV__NO_ID;
}

static clv_status unknown_device(const clv_context *context, const char *name, clv_error *error) {
  char known[256] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < clv__context_backend_count(context) && used < sizeof known; ++i) {
    const char *backend = clv__context_backend(context, i)->name;
    int written =
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", strcmp(backend, "vnpu") == 0 ? "npu" : backend);
    used += written < 0 ? 0 : (size_t)written;
  }
  return clv__error_set(error, CLV_NOT_FOUND, "device '%s': no backend has it; there are: %s", name, known);
}

/* The key of an option "NAME:key=value" that is meant for `name`, which may have a colon itself ("opencl:1"); NULL: for another.
 */
static const char *option_key(const char *text, const char *name, size_t *key_bytes) {
  size_t length = strlen(name);
  const char *equals = strchr(text, '=');
  if (strncmp(text, name, length) != 0 || text[length] != ':' || equals == NULL || equals <= text + length + 1) return NULL;
  *key_bytes = (size_t)(equals - (text + length + 1));
  return memchr(text + length + 1, ':', *key_bytes) == NULL ? text + length + 1 : NULL;
}

/* The options "NAME:key=value" that are meant for `name`, split in place in the arena. */
static clv_status take_options(clv_devices *devices, const clv_devices_options *options, const char *name, clv_option *taken,
                               uint32_t *count, clv_error *error) {
  *count = 0;
  for (uint32_t i = 0; i < options->device_option_count; ++i) {
    const char *text = options->device_options[i];
    size_t key_bytes;
    const char *key = option_key(text, name, &key_bytes);
    if (key == NULL) continue;
    if (*count == MAX_OPTIONS)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "more than %d options for '%s'", MAX_OPTIONS, name);
    const char *value = key + key_bytes + 1;
    char *key_copy = clv__arena_string(&devices->arena, key, key_bytes);
    char *value_copy = clv__arena_string(&devices->arena, value, strlen(value));
    if (key_copy == NULL || value_copy == NULL) return clv__error_memory(error, strlen(text));
    taken[(*count)++] = (clv_option){key_copy, value_copy};
  }
  return CLV_OK;
}

/* Every option must have been meant for some device of the list. */
static clv_status check_options(const clv_devices *devices, const clv_devices_options *options, clv_error *error) {
  for (uint32_t i = 0; i < options->device_option_count; ++i) {
    const char *text = options->device_options[i];
    size_t key_bytes;
    bool meant = false;
    for (uint32_t d = 0; d < devices->count; ++d) {
      meant = meant || option_key(text, devices->items[d].name, &key_bytes) != NULL;
    }
    if (!meant) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "device option '%s': expected DEVICE:key=value with a device of the list", text);
    }
  }
  return CLV_OK;
}

static uint32_t find_space(clv_devices *devices, const char *name) {
  for (uint32_t i = 0; i < devices->space_count; ++i) {
    if (strcmp(devices->spaces[i], name) == 0) return i;
  }
  devices->spaces[devices->space_count] = name;
  return devices->space_count++;
}

/* The backend that a device's name means, and for a virtual NPU its description. The first description is "npu", the next "npu1",
 * …, unless they name their devices themselves. */
static clv_status resolve(const clv_devices *devices, const clv_devices_options *options, const char *name,
                          const clv_backend **backend, const char **spec, uint32_t *ordinal, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  static const char *const builtin[] = {"default"};
  const char *const *specs = options->npu_spec_count > 0 ? options->npu_specs : builtin;
  uint32_t spec_count = options->npu_spec_count > 0 ? options->npu_spec_count : 1;
  *spec = NULL;
  for (*ordinal = 0; *ordinal < spec_count; ++*ordinal) {
    char own[64], numbered[16];
    CLV__TRY(clv__vnpu_spec_name(allocator, specs[*ordinal], own, sizeof own, error));
    const clv_backend *other = clv__context_find(devices->context, own);
    if (other != NULL && strcmp(other->name, "vnpu") != 0 && strncmp(own, "gpu", 3) != 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "description '%s' calls its device '%s', which is the name of a backend",
                            specs[*ordinal], own);
    }
    snprintf(numbered, sizeof numbered, *ordinal == 0 ? "npu" : "npu%u", *ordinal);
    if (strcmp(name, own) != 0 && strcmp(name, numbered) != 0) continue;
    *spec = specs[*ordinal];
    *backend = clv__context_find(devices->context, "npu");
    return CLV_OK;
  }
  *backend = clv__context_find(devices->context, name);
  if (*backend == NULL) return unknown_device(devices->context, name, error);
  if (strcmp((*backend)->name, "vnpu") == 0) {
    return clv__error_set(error, CLV_NOT_FOUND, "device '%s': there are %u descriptions; give one more with --npu-spec", name,
                          spec_count);
  }
  *ordinal = (uint32_t)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
  return CLV_OK;
}

/* What a backend left out: texts are empty, and memory that has no name is the device's own. */
static void complete_info(clv__device *device) {
  clv_device_info *info = &device->info;
  if (info->kind == NULL) info->kind = "";
  if (info->description == NULL) info->description = "";
  if (info->fingerprint == NULL) info->fingerprint = "";
  if (info->memory_space == NULL) info->memory_space = device->name;
}

static clv_status open_device(clv_devices *devices, const clv_devices_options *options, const char *name, clv_error *error) {
  if (devices->count == CLV__MAX_DEVICES) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "more than %d devices", CLV__MAX_DEVICES);
  }
  if (clv__devices_find(devices, name) != CLV__NO_ID) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "device '%s' is listed twice", name);
  }
  const clv_backend *backend;
  const char *spec;
  uint32_t ordinal;
  CLV__TRY(resolve(devices, options, name, &backend, &spec, &ordinal, error));
  clv_option taken[MAX_OPTIONS];
  uint32_t taken_count;
  CLV__TRY(take_options(devices, options, name, taken, &taken_count, error));
  clv_device_config config = {
      .struct_size = sizeof config,
      .ordinal = ordinal,
      .name = name,
      .option_count = taken_count,
      .options = taken,
      .spec = spec,
      .thread_count = options->thread_count,
  };
  clv__device *device = &devices->items[devices->count];
  clv__error_clear(error);
  clv_status status = backend->open(backend->self, clv__context_host(devices->context), &config, &device->handle, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "device '%s'", name);
  device->backend = backend;
  device->name = name;
  device->info = (clv_device_info){.struct_size = sizeof device->info};
  backend->info(device->handle, &device->info);
  complete_info(device);
  device->space = find_space(devices, device->info.memory_space);
  ++devices->count;
  return CLV_OK;
}

/* Every GPU of OpenCL. Its CPU devices only by name: the cpu device is that machine already. */
static void open_gpus(clv_devices *devices, const clv_devices_options *options) {
  static const char *const names[] = {"gpu", "gpu:1", "gpu:2", "gpu:3", "gpu:4", "gpu:5", "gpu:6", "gpu:7"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    clv_error ignored = {0};
    if (open_device(devices, options, names[i], &ignored) == CLV_OK) continue;
    if (i == 0) clv__context_log(devices->context, 2, "opencl is left out: %s", ignored.message);
    return;
  }
}

/* "auto": everything real that is found, the CPU last. Virtual devices only by name. */
static clv_status open_auto(clv_devices *devices, const clv_devices_options *options, clv_error *error) {
  for (uint32_t i = 0; i < clv__context_backend_count(devices->context); ++i) {
    const char *name = clv__context_backend(devices->context, i)->name;
    if (strcmp(name, "cpu") == 0 || strcmp(name, "vnpu") == 0) continue;
    if (strcmp(name, "opencl") == 0) {
      open_gpus(devices, options);
      continue;
    }
    clv_error ignored = {0};
    if (open_device(devices, options, name, &ignored) != CLV_OK) {
      clv__context_log(devices->context, 2, "%s is left out: %s", name, ignored.message);
    }
  }
  return open_device(devices, options, "cpu", error);
}

static clv_status open_list(clv_devices *devices, const clv_devices_options *options, const char *list, clv_error *error) {
  for (const char *at = list;;) {
    size_t length = strcspn(at, ",");
    if (length == 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "device list '%s': a name is empty", list);
    char *name = clv__arena_string(&devices->arena, at, length);
    if (name == NULL) return clv__error_memory(error, length);
    CLV__TRY(open_device(devices, options, name, error));
    if (at[length] == '\0') return CLV_OK;
    at += length + 1;
  }
}

static void init_lock(clv_devices *devices) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&devices->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

clv_status clv_devices_open(clv_context *context, const clv_devices_options *given, clv_devices **out, clv_error *error) {
  if (context == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context and devices must not be NULL");
  *out = NULL;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_DEVICES_OPTIONS_INIT", error));
  CLV__TRY(clv__options_texts(options.npu_specs, options.npu_spec_count, "descriptions of virtual NPUs", error));
  CLV__TRY(clv__options_texts(options.device_options, options.device_option_count, "device options", error));
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_devices *devices = clv__allocate_zero(allocator, sizeof *devices);
  if (devices == NULL) return clv__error_memory(error, sizeof *devices);
  devices->context = context;
  init_lock(devices);
  clv__arena_init(&devices->arena, allocator);
  devices->spaces[0] = "host";
  devices->space_count = 1;
  const char *list = options.list == NULL ? "cpu" : options.list;
  clv_status status = strcmp(list, "auto") == 0 ? open_auto(devices, &options, error) : open_list(devices, &options, list, error);
  if (status == CLV_OK) status = check_options(devices, &options, error);
  if (status != CLV_OK) {
    clv_devices_close(devices);
    return status;
  }
  *out = devices;
  return CLV_OK;
}

static void finish_attachment(clv__attachment *attachment) {
  if (attachment->self != NULL) attachment->finish(attachment->self);
  *attachment = (clv__attachment){0};
}

static void close_devices(clv_devices *devices, bool lost) {
  for (uint32_t i = devices->count; i-- > 0;) {
    clv__device *device = &devices->items[i];
    if (device->is_lost == lost) device->backend->close(device->handle);
  }
}

void clv_devices_close(clv_devices *devices) {
  if (devices == NULL) return;
  close_devices(devices, true); /* they may still write to memory of the others */
  for (uint32_t k = CLV__ATTACHED_GRAVES; k-- > 0;) finish_attachment(&devices->attachments[k]);
  close_devices(devices, false);
  for (uint32_t k = CLV__ATTACHMENT_COUNT; k-- > CLV__ATTACHED_GRAVES;) finish_attachment(&devices->attachments[k]);
  const clv_allocator *allocator = devices->arena.allocator;
  pthread_mutex_destroy(&devices->lock);
  clv__arena_finish(&devices->arena);
  clv__release(allocator, devices);
}
