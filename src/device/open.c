/* See open.h. */
#include "device/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/backends.h"

enum { MAX_OPTIONS = 64 };

static clv_status unknown_device(const clv_context *context, const char *name, clv_error *error) {
  char known[512] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < clv__context_backend_count(context) && used < sizeof known; ++i) {
    const char *backend = clv__context_backend(context, i)->name;
    int written =
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", strcmp(backend, "vnpu") == 0 ? "npu" : backend);
    used += written < 0 ? 0 : (size_t)written;
  }
  return clv__error_set(error, CLV_NOT_FOUND, "device '%s' is unknown; the backends are: %s; there is no plugin cleave_%.*s.so",
                        name, known, (int)strcspn(name, ":"), name);
}

/* Returns the start of the key in the option "NAME:key=value" if NAME is `name`, otherwise NULL. `name` may contain a colon
 * ("opencl:1"). */
static const char *option_key(const char *text, const char *name, size_t *key_bytes) {
  size_t length = strlen(name);
  const char *equals = strchr(text, '=');
  if (strncmp(text, name, length) != 0 || text[length] != ':' || equals == NULL || equals <= text + length + 1) return NULL;
  *key_bytes = (size_t)(equals - (text + length + 1));
  return memchr(text + length + 1, ':', *key_bytes) == NULL ? text + length + 1 : NULL;
}

/* Appends the options "NAME:key=value" for `name` as pairs of key and value, copied to the arena. */
static clv_status collect_options(clv_devices *devices, const clv_devices_options *options, const char *name, clv_option *taken,
                                  uint32_t *count, clv_error *error) {
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

/* Rejects unknown options if the backend lists those it knows. */
static clv_status check_keys(const clv_devices *devices, const clv_backend *backend, const clv_option *taken, uint32_t count,
                             clv_error *error) {
  for (uint32_t i = 0; backend->options != NULL && i < count; ++i) {
    bool is_known = false;
    for (uint32_t k = 0; k < backend->option_count; ++k)
      is_known = is_known || strcmp(backend->options[k].key, taken[i].key) == 0;
    if (is_known) continue;
    clv__text known;
    clv__text_init(&known, devices->arena.allocator);
    for (uint32_t k = 0; k < backend->option_count; ++k) {
      const clv_option_info *o = &backend->options[k];
      clv__text_append(&known, "%s%s%s%s%s", k > 0 ? "; " : "", o->key, o->values != NULL ? " (" : "",
                       o->values != NULL ? o->values : "", o->values != NULL ? ")" : "");
    }
    clv_status status = clv__error_set(error, CLV_INVALID_ARGUMENT, "option '%.80s' is unknown; the options of %s are: %s",
                                       taken[i].key, backend->name, known.size_bytes > 0 ? known.data : "none");
    clv__text_finish(&known);
    return status;
  }
  return CLV_OK;
}

static bool is_left_out(const clv_devices *devices, const char *option) {
  size_t key_bytes;
  for (uint32_t i = 0; i < devices->left_out_count; ++i) {
    if (option_key(option, devices->left_out[i].name, &key_bytes) != NULL) return true;
  }
  return false;
}

/* Rejects an option that matches no device in the list. */
static clv_status check_options(const clv_devices *devices, const clv_devices_options *options, clv_error *error) {
  for (uint32_t i = 0; i < options->device_option_count; ++i) {
    const char *text = options->device_options[i];
    size_t key_bytes;
    bool meant = is_left_out(devices, text);
    for (uint32_t d = 0; d < devices->count; ++d) {
      meant = meant || option_key(text, devices->items[d].name, &key_bytes) != NULL;
    }
    if (!meant) {
      return clv__error_set(
          error, CLV_INVALID_ARGUMENT,
          "device option '%s': expected DEVICE:KEY=VALUE, where DEVICE is one of the devices to open (--devices)", text);
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

/* Reads the 1 of "gpu:1". Returns 0 if the text is not a number, like the "GPU.1" of "openvino:GPU.1"; the backend then uses the
 * name. */
static uint32_t read_ordinal(const char *text) {
  size_t length = strspn(text, "0123456789");
  return length == 0 || length > 6 || text[length] != '\0' ? 0 : (uint32_t)strtoul(text, NULL, 10);
}

typedef struct own_name {
  char text[64];
  clv_error *error;
} own_name;

static clv_status copy_name(void *cookie, const char *name, const char *kind) {
  own_name *own = cookie;
  (void)kind;
  if (strlen(name) >= sizeof own->text) {
    return clv__error_set(own->error, CLV_INVALID_ARGUMENT, "the device name has %zu characters; the maximum is %zu",
                          strlen(name), sizeof own->text - 1);
  }
  memcpy(own->text, name, strlen(name) + 1);
  return CLV_OK;
}

/* The name that a description gives its device; "" if it gives none. */
static clv_status read_own_name(const clv_devices *devices, const clv_backend *npu, const char *spec, own_name *own,
                                clv_error *error) {
  const clv_option option = {"spec", spec};
  *own = (own_name){.error = error};
  return npu->list(npu->self, clv__context_host(devices->context), &option, 1, copy_name, own, error);
}

/* Finds the backend of a device name and, for a virtual NPU, its description. A description may name its device. Otherwise the
 * device of the first description is "npu", that of the second "npu1". */
static clv_status resolve(const clv_devices *devices, const clv_devices_options *options, const char *name,
                          const clv_backend **backend, const char **spec, uint32_t *ordinal, clv_error *error) {
  static const char *const builtin[] = {"default"};
  const char *const *specs = options->npu_spec_count > 0 ? options->npu_specs : builtin;
  uint32_t spec_count = options->npu_spec_count > 0 ? options->npu_spec_count : 1;
  const clv_backend *npu = clv__context_find(devices->context, "npu");
  *spec = NULL;
  for (*ordinal = 0; *ordinal < spec_count; ++*ordinal) {
    own_name own;
    char numbered[16];
    CLV__TRY(read_own_name(devices, npu, specs[*ordinal], &own, error));
    const clv_backend *other = clv__context_find(devices->context, own.text);
    if (other != NULL && other != npu && strncmp(own.text, "gpu", 3) != 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "description '%s' names its device '%s', which is the name of a backend",
                            specs[*ordinal], own.text);
    }
    snprintf(numbered, sizeof numbered, *ordinal == 0 ? "npu" : "npu%u", *ordinal);
    if (strcmp(name, own.text) != 0 && strcmp(name, numbered) != 0) continue;
    *spec = specs[*ordinal];
    *backend = npu;
    return CLV_OK;
  }
  const char *rest = "";
  const clv__backends *backends = clv__context_backends(devices->context);
  *backend = clv__backends_find(backends, name, &rest);
  if (*backend == NULL) {
    clv_status status = clv__plugin_find(devices->context, name, error);
    if (status == CLV_OK) *backend = clv__backends_find(backends, name, &rest);
    if (status != CLV_OK && (status != CLV_NOT_FOUND || (error != NULL && error->message[0] != '\0'))) {
      return clv__error_prefix(error, status, "device '%s'", name);
    }
    if (*backend == NULL) return unknown_device(devices->context, name, error);
  }
  if (*backend == npu) {
    return clv__error_set(error, CLV_NOT_FOUND,
                          "device '%s': there %s only %u description%s of virtual NPUs; give another with --npu-spec", name,
                          spec_count == 1 ? "is" : "are", spec_count, spec_count == 1 ? "" : "s");
  }
  *ordinal = read_ordinal(rest[0] == ':' ? rest + 1 : rest);
  return CLV_OK;
}

/* Fills fields that the backend left unset: texts become empty, and unnamed memory becomes the device's own space. */
static void complete_info(clv__device *device) {
  clv_device_info *info = &device->info;
  if (info->kind == NULL) info->kind = "";
  if (info->description == NULL) info->description = "";
  if (info->fingerprint == NULL) info->fingerprint = "";
  if (info->memory_space == NULL) info->memory_space = device->name;
}

/* Opens the device called `name` and adds it to the set. Sets `is_asked` before it calls the backend's open(): if `is_asked` is
 * true, an error is the device's own answer. */
static clv_status open_device(clv_devices *devices, const clv_devices_options *options, const char *name, bool *is_asked,
                              clv_error *error) {
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
  uint32_t taken_count = 0;
  if (spec != NULL) taken[taken_count++] = (clv_option){"spec", spec};
  CLV__TRY(collect_options(devices, options, name, taken, &taken_count, error));
  clv_device_config config = {
      .struct_size = sizeof config,
      .ordinal = ordinal,
      .name = name,
      .option_count = taken_count,
      .options = taken,
      .thread_count = options->thread_count,
  };
  clv__device *device = &devices->items[devices->count];
  clv__error_clear(error);
  clv_status status = check_keys(devices, backend, taken, taken_count, error);
  if (status == CLV_OK) {
    *is_asked = true;
    status = backend->open(backend->self, clv__context_host(devices->context), &config, &device->handle, error);
    status = clv__call_ended(status, "open", error);
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "device '%s'", name);
  device->backend = device->opened_by = backend;
  device->lost = clv__lost_backend(backend);
  device->name = name;
  device->info = (clv_device_info){.struct_size = sizeof device->info};
  backend->info(device->handle, &device->info);
  complete_info(device);
  device->space = find_space(devices, device->info.memory_space);
  ++devices->count;
  return CLV_OK;
}

/* ---- "auto": all devices that are found ---- */

typedef struct found {
  clv_devices *devices;
  const clv_backend *backend;
  uint32_t count;
  size_t capacity;
  const char **names;
} found;

static clv_status add_found(void *cookie, const char *name, const char *kind) {
  found *f = cookie;
  clv_devices *devices = f->devices;
  const char *backend = f->backend->name;
  size_t size_bytes = strlen(backend) + strlen(name) + 2;
  char *full = clv__arena_allocate(&devices->arena, size_bytes);
  (void)kind; /* unused: the open device reports its kind itself */
  if (full == NULL ||
      !clv__array_reserve(devices->arena.allocator, (void **)&f->names, &f->capacity, f->count + 1, sizeof *f->names, f->count)) {
    return CLV_OUT_OF_MEMORY;
  }
  snprintf(full, size_bytes, "%s%s%s", backend, name[0] != '\0' ? ":" : "", name);
  f->names[f->count++] = full;
  return CLV_OK;
}

/* Records a skipped device. If memory for the record is missing, the device is skipped without one. */
static void record_left_out(clv_devices *devices, const char *name, const char *reason) {
  size_t capacity = devices->left_out_count; /* the array grows by one entry at a time: there are only a few */
  clv__left_out added = {clv__arena_string(&devices->arena, name, strlen(name)),
                         clv__arena_string(&devices->arena, reason, strlen(reason))};
  if (added.name == NULL || added.reason == NULL ||
      !clv__array_reserve(devices->arena.allocator, (void **)&devices->left_out, &capacity, capacity + 1,
                          sizeof *devices->left_out, capacity)) {
    return;
  }
  devices->left_out[devices->left_out_count++] = added;
}

static void leave_out(void *cookie, const char *name, const char *reason) {
  clv_devices *devices = cookie;
  clv__context_log(devices->context, 2, "%s is not available: %s", name, reason);
  record_left_out(devices, name, reason);
}

/* Whether the user gave options for the device. If such a device cannot be opened, "auto" does not skip it but fails. */
static bool is_spoken_of(const clv_devices_options *options, const char *name) {
  size_t key_bytes;
  for (uint32_t i = 0; i < options->device_option_count; ++i) {
    if (option_key(options->device_options[i], name, &key_bytes) != NULL) return true;
  }
  return false;
}

static clv_status open_backend(clv_devices *devices, const clv_devices_options *options, const clv_backend *backend,
                               clv_error *error) {
  found f = {.devices = devices, .backend = backend};
  clv_error problem = {0};
  clv_status status = backend->list == NULL
                          ? add_found(&f, "", "")
                          : backend->list(backend->self, clv__context_host(devices->context), NULL, 0, add_found, &f, &problem);
  if (status != CLV_OK) {
    leave_out(devices, backend->name, problem.message[0] != '\0' ? problem.message : clv_status_name(status));
  } else if (f.count == 0) {
    leave_out(devices, backend->name, "it found no device");
  }
  status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < f.count; ++i) {
    clv_error refused = {0};
    bool is_asked;
    clv_status opened = open_device(devices, options, f.names[i], &is_asked, &refused);
    if (opened == CLV_OK) continue;
    if (strcmp(backend->name, "cpu") == 0 || is_spoken_of(options, f.names[i])) {
      status = clv__error_set(error, opened, "%s", refused.message);
    } else {
      leave_out(devices, f.names[i], refused.message);
    }
  }
  clv__release(devices->arena.allocator, (void *)f.names);
  return status;
}

/* Moves accelerators before CPUs and otherwise keeps the order. The cpu device is the first CPU because its backend is the
 * first. */
static void put_accelerators_first(clv_devices *devices) {
  clv__device sorted[CLV__MAX_DEVICES];
  uint32_t count = 0;
  for (int cpus = 0; cpus < 2; ++cpus) {
    for (uint32_t d = 0; d < devices->count; ++d) {
      if ((strcmp(devices->items[d].info.kind, "cpu") == 0) == cpus) sorted[count++] = devices->items[d];
    }
  }
  for (uint32_t d = 0; d < count; ++d) devices->items[d] = sorted[d];
}

static clv_status open_auto(clv_devices *devices, const clv_devices_options *options, clv_error *error) {
  CLV__TRY(clv__plugin_load_all(devices->context, leave_out, devices, error));
  for (uint32_t i = 0; i < clv__context_backend_count(devices->context); ++i) {
    CLV__TRY(open_backend(devices, options, clv__context_backend(devices->context, i), error));
  }
  put_accelerators_first(devices);
  return CLV_OK;
}

/* Reports that no device of `list` is available, with the reason of the first one. */
static clv_status nothing_left(const clv_devices *devices, const char *list, clv_error *error) {
  if (devices->left_out_count == 0) return clv__error_memory(error, sizeof *devices->left_out);
  const char *reason = devices->left_out[0].reason;
  if (devices->left_out_count == 1) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s", reason);
  return clv__error_set(error, CLV_NOT_SUPPORTED, "no device of '%.200s' is available: %s", list, reason);
}

/* Opens the devices of `list`. A device whose open() returns CLV_NOT_SUPPORTED is skipped, unless `no_fallback` is set; if none
 * can be opened, that is an error. */
static clv_status open_list(clv_devices *devices, const clv_devices_options *options, const char *list, clv_error *error) {
  for (const char *at = list;;) {
    size_t length = strcspn(at, ",");
    if (length == 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "device list '%s' contains an empty name", list);
    char *name = clv__arena_string(&devices->arena, at, length);
    if (name == NULL) return clv__error_memory(error, length);
    clv_error refused = {0};
    bool is_asked = false;
    clv_status status = open_device(devices, options, name, &is_asked, &refused);
    const bool is_skipped = status == CLV_NOT_SUPPORTED && is_asked && !options->no_fallback;
    if (status != CLV_OK && !is_skipped) return clv__error_set(error, status, "%s", refused.message);
    if (is_skipped) record_left_out(devices, name, refused.message);
    if (at[length] == '\0') break;
    at += length + 1;
  }
  if (devices->count == 0) return nothing_left(devices, list, error);
  for (uint32_t i = 0; i < devices->left_out_count; ++i)
    clv__context_log(devices->context, 1, "%s; continuing without this device", devices->left_out[i].reason);
  return CLV_OK;
}

clv_status clv__devices_open_all(clv_devices *devices, const clv_devices_options *options, clv_error *error) {
  const char *list = options->list == NULL ? "cpu" : options->list;
  CLV__TRY(strcmp(list, "auto") == 0 ? open_auto(devices, options, error) : open_list(devices, options, list, error));
  return check_options(devices, options, error);
}
