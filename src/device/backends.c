/* The backends of a context: checks and completes their tables, and finds them by device name. */
#include "device/backends.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "built_in_backends.h" /* made from the list in CMakeLists.txt */
#include "device/device.h"

/* The built-in backends, in the order in which "auto" tries them. */
static const clv_backend_query_fn built_in[] = {CLV__BUILT_IN_BACKENDS};

void clv__backends_init(clv__backends *backends) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&backends->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  atomic_init(&backends->count, 0);
}

void clv__backends_finish(clv__backends *backends, const clv_allocator *allocator) {
  for (uint32_t i = backends->count; i-- > 0;) {
    clv__plugin *plugin = &backends->items[i].plugin;
    if (plugin->handle != NULL) dlclose(plugin->handle);
    clv__release(allocator, plugin->path);
  }
  pthread_mutex_destroy(&backends->lock);
}

clv_status clv__backends_add_built_in(clv_context *context, clv_error *error) {
  for (size_t i = 0; i < sizeof built_in / sizeof *built_in; ++i) {
    CLV__TRY(clv__backends_add(context, built_in[i], NULL, NULL, NULL, NULL, error));
  }
  return CLV_OK;
}

/* Returns the name of a required slot that is missing, or NULL. */
static const char *missing_slot(const clv_backend *b) {
#define NEED(slot) \
  if (b->slot == NULL) return #slot
  NEED(name);
  NEED(version);
  NEED(open);
  NEED(close);
  NEED(info);
  NEED(supports);
  NEED(buffer_alloc);
  NEED(buffer_free);
  NEED(buffer_host_pointer);
  NEED(stream_create);
  NEED(stream_destroy);
  NEED(stream_synchronize);
  NEED(event_create);
  NEED(event_destroy);
  NEED(event_record);
  NEED(event_wait);
  NEED(event_synchronize);
  NEED(copy_in);
  NEED(copy_out);
  NEED(weight_upload);
  NEED(weight_release);
  NEED(compile);
  NEED(executable_destroy);
  NEED(executable_info);
  NEED(instance_create);
  NEED(instance_destroy);
  NEED(execute);
#undef NEED
#define NEED(group, slot) \
  if (b->group != NULL && (!CLV__GROUP_HAS(b->group, slot) || b->group->slot == NULL)) return #group "->" #slot
  NEED(save, save);
  NEED(save, load);
  NEED(scratch, size_bytes);
  NEED(scratch, bind);
  NEED(capture, begin);
  NEED(capture, end);
  NEED(capture, launch);
  NEED(capture, destroy);
  NEED(capture, size_bytes);
  NEED(timing, enable);
  NEED(timing, steps);
#undef NEED
  return NULL;
}

/* The size of the first version of the table. */
#define LEAST_TABLE_BYTES (offsetof(clv_backend, execute) + sizeof(((clv_backend *)0)->execute))

static clv_status read_table(const clv_backend *given, clv_backend *table, clv_error *error) {
  if (given->abi_version != CLV_ABI_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "backend has plugin ABI version %u, but this library has %u: rebuild the backend for this version",
                          given->abi_version, CLV_ABI_VERSION);
  }
  if (given->struct_size < LEAST_TABLE_BYTES) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "backend's table has %u bytes; at least %zu are needed", given->struct_size,
                          LEAST_TABLE_BYTES);
  }
  /* Sets slots to NULL that a smaller table lacks or contains only in part. Ignores unknown slots of a larger table. */
  size_t size_bytes = given->struct_size < sizeof *table ? given->struct_size : sizeof *table;
  memset(table, 0, sizeof *table);
  memcpy(table, given, size_bytes - (size_bytes - LEAST_TABLE_BYTES) % sizeof(void (*)(void)));
  const char *missing = missing_slot(table);
  if (missing != NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "backend's table lacks the slot '%s'", missing);
  if (table->options == NULL) table->option_count = 0;
  for (uint32_t i = 0; i < table->option_count; ++i) {
    if (table->options[i].key != NULL) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "backend '%.64s': option %u has no key", table->name, i);
  }
  return CLV_OK;
}

/* A name appears in lists of devices and in the file name of a plugin, so it must be a plain word. */
static clv_status check_name(const char *name, const char *expected, clv_error *error) {
  static const char *const taken[] = {"auto", "npu", "gpu", "host"};
  bool is_word = name[0] != '\0' && strlen(name) < 64;
  for (const char *at = name; is_word && *at != '\0'; ++at) is_word = isalnum((unsigned char)*at) || *at == '_' || *at == '-';
  if (!is_word) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "backend '%.80s': its name must have 1 to 63 letters, digits, '_' and '-'",
                          name);
  }
  for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i) {
    if (strcmp(name, taken[i]) == 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "backend '%s': this name is reserved in device lists", name);
    }
  }
  if (expected == NULL || strcmp(name, expected) == 0) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "its backend is named '%s', so the file must be named 'cleave_%s.so'", name,
                        name);
}

clv_status clv__backends_add(clv_context *context, clv_backend_query_fn query, void *user_data, const char *name,
                             const clv__plugin *plugin, const clv_backend **added, clv_error *error) {
  clv__backends *backends = clv__context_backends(context);
  const clv_backend *given = NULL;
  clv_backend table;
  clv__error_clear(error);
  clv_status status = query(clv__context_host(context), user_data, &given, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "the backend's query");
  if (given == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the backend's query returned no table");
  CLV__TRY(read_table(given, &table, error));
  CLV__TRY(check_name(table.name, name, error));
  pthread_mutex_lock(&backends->lock);
  uint32_t count = backends->count;
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i) {
    if (strcmp(backends->items[i].table.name, table.name) != 0) continue;
    const char *path = backends->items[i].plugin.path;
    status = clv__error_set(error, CLV_INVALID_ARGUMENT, "a backend named '%s' already exists%s%s", table.name,
                            path != NULL ? ": " : "", path != NULL ? path : "");
  }
  if (status == CLV_OK && count == CLV__MAX_BACKENDS) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT, "a context can have at most %d backends", CLV__MAX_BACKENDS);
  }
  if (status == CLV_OK) {
    clv__loaded *item = &backends->items[count];
    item->table = table;
    if (plugin != NULL) item->plugin = *plugin;
    if (added != NULL) *added = &item->table;
    backends->count = count + 1;
  }
  pthread_mutex_unlock(&backends->lock);
  return status;
}

clv_status clv_context_add_backend(clv_context *context, clv_backend_query_fn query, void *user_data, clv_error *error) {
  if (context == NULL || query == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context and query must not be NULL");
  return clv__backends_add(context, query, user_data, NULL, NULL, NULL, error);
}

/* ---- By name ---- */

static const clv_backend *find_named(const clv__backends *backends, const char *name, size_t length) {
  uint32_t count = backends->count;
  for (uint32_t i = 0; i < count; ++i) {
    const char *other = backends->items[i].table.name;
    if (strlen(other) == length && strncmp(other, name, length) == 0) return &backends->items[i].table;
  }
  return NULL;
}

static bool is_word(const char *name, size_t length, const char *word) {
  return strlen(word) == length && strncmp(name, word, length) == 0;
}

const clv_backend *clv__backends_find(const clv__backends *backends, const char *device_name, const char **rest) {
  size_t before_colon = strcspn(device_name, ":"), before_digits = before_colon;
  while (before_digits > 0 && isdigit((unsigned char)device_name[before_digits - 1])) --before_digits;
  const size_t lengths[] = {strlen(device_name), before_colon, before_digits};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    const clv_backend *found = find_named(backends, device_name, lengths[i]);
    if (found == NULL && is_word(device_name, lengths[i], "npu")) found = find_named(backends, "vnpu", 4);
    if (found == NULL && is_word(device_name, lengths[i], "gpu")) found = find_named(backends, "opencl", 6);
    if (found == NULL) continue;
    if (rest != NULL) *rest = device_name + lengths[i];
    return found;
  }
  return NULL;
}
