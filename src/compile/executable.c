/* Gets one executable from the nearest source: another session of these devices, the folder, the cache on disk, or the compiler.
 * If there is any problem with the cache, the executable is compiled, and the reason is recorded. */
#include <stdio.h>
#include <string.h>

#include "compile/confirm.h"
#include "compile/folder.h"

typedef struct obtaining {
  clv__share *share;
  const clv_compiled *folder; /* NULL: none */
  clv_devices *devices;
  uint32_t partition;
  const clv__device *device;
  const clv_graph_view *view;
  const clv_compile_options *options;
  clv__arena *arena;
  clv__key key;
  clv__cache *cache; /* NULL: not used; origin->reason says why */
  clv__origin *origin;
  clv_executable *executable; /* owned by this struct until clv__share_add() takes it over */
  uint32_t *weights;          /* indexed by weight of the executable: its value in the view */
} obtaining;

static void set_reason(clv__origin *origin, const char *text) {
  snprintf(origin->reason, sizeof origin->reason, "%s", text);
}

static void destroy(obtaining *o) {
  if (o->executable != NULL) o->device->backend->executable_destroy(o->device->handle, o->executable);
  o->executable = NULL;
}

/* ---- From disk ---- */

/* The file's graph must be this view, and its weights must be constants of the view. The matching key implies that, but the file
 * may be forged. */
static clv_status confirm(obtaining *o, const clv__cache_info *info, clv_error *error) {
  clv_executable_info made = {.struct_size = sizeof made};
  o->device->backend->executable_info(o->device->handle, o->executable, &made);
  bool fits = made.weight_count == info->weight_count;
  for (uint32_t i = 0; fits && i < info->weight_count; ++i)
    fits = info->weights[i] < o->view->value_count && clv__key_has_bytes(o->view, info->weights[i]);
  if (!fits)
    return clv__error_set(error, CLV_INVALID_MODEL, "the weights of the stored executable differ from those of the partition");
  CLV__TRY(clv__executable_confirm(o->device, o->executable, o->view, &made, info->weights, error));
  o->weights = clv__arena_allocate_zero(o->arena, info->weight_count, sizeof *o->weights);
  if (o->weights == NULL) return clv__error_memory(error, info->weight_count * sizeof *o->weights);
  if (info->weight_count > 0) memcpy(o->weights, info->weights, info->weight_count * sizeof *o->weights);
  return CLV_OK;
}

/* Logs a problem. `where`: the cache or the folder. */
static void warn(const obtaining *o, const char *where, const char *text) {
  clv__context_log(o->devices->context, 1, "%s: partition %u on %s: %s", where, o->partition, o->device->name, text);
}

/* Loads the executable from a file's contents. Leaves it NULL, with the reason in `text`, if the device or our checks reject
 * it. */
static clv_status load_executable(obtaining *o, const clv__cache_info *info, const void *payload, size_t payload_bytes,
                                  char *text, size_t text_bytes) {
  clv_error error = {0};
  clv_status status = CLV__CALL(o->device, &error, save->load, payload, payload_bytes, &o->executable);
  if (status != CLV_OK) {
    o->executable = NULL;
    snprintf(text, text_bytes, "the device rejected the stored executable: %.*s", 150, error.message);
    return status;
  }
  status = confirm(o, info, &error);
  if (status == CLV_OK) return CLV_OK;
  destroy(o);
  snprintf(text, text_bytes, "%.*s", (int)text_bytes - 1, error.message);
  return status;
}

/* Loads from the folder compiled ahead of time. Never changes the folder, whatever is wrong with it. */
static void load_from_folder(obtaining *o) {
  clv__folder_found found;
  clv_error error = {0};
  char text[sizeof o->origin->reason];
  if (clv__folder_find(o->folder, &o->key, &found, &error) != CLV_OK) {
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, error.message);
  } else {
    (void)load_executable(o, &found.info, found.payload, found.payload_bytes, text, sizeof text);
    clv__folder_found_finish(o->folder, &found);
  }
  if (o->executable != NULL) {
    o->origin->source = CLV__SOURCE_FOLDER;
    return;
  }
  o->origin->is_missed = true;
  set_reason(o->origin, text);
  warn(o, o->folder->directory, text);
}

/* Loads from the cache. Leaves `executable` NULL, with the reason in the origin, if none is usable. */
static void load(obtaining *o) {
  clv__cached cached;
  clv_error error = {0};
  char text[sizeof o->origin->reason];
  clv_status status = clv__cache_get(o->cache, &o->key, &cached, &error);
  if (status != CLV_OK) {
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, error.message);
    if (!o->origin->is_missed) set_reason(o->origin, text); /* the reason why the folder lacks it is more useful */
    if (status != CLV_NOT_FOUND) warn(o, "cache", text);
    return;
  }
  status = load_executable(o, &cached.info, cached.payload, cached.payload_bytes, text, sizeof text);
  if (o->executable == NULL) {
    set_reason(o->origin, text);
    warn(o, "cache", text);
    if (status != CLV_OUT_OF_MEMORY && status != CLV_TOO_LARGE) clv__cache_remove(o->cache, &o->key);
  }
  clv__cached_finish(o->cache, &cached);
}

/* ---- Compiled ---- */

/* Finds the value for each weight that the executable requests by name. */
static clv_status find_weights(obtaining *o, clv_error *error) {
  clv_executable_info info = {.struct_size = sizeof info};
  o->device->backend->executable_info(o->device->handle, o->executable, &info);
  o->weights = clv__arena_allocate_zero(o->arena, info.weight_count, sizeof *o->weights);
  if (o->weights == NULL) return clv__error_memory(error, info.weight_count * sizeof *o->weights);
  if (info.weight_count == 0) return CLV_OK;
  clv__map names;
  clv__map_init(&names, o->arena->allocator);
  clv_status status = CLV_OK;
  for (uint32_t v = 0; status == CLV_OK && v < o->view->value_count; ++v) {
    if (!clv__key_has_bytes(o->view, v)) continue;
    if (!clv__map_set(&names, o->view->graph->values[o->view->values[v]].name, v)) {
      status = clv__error_memory(error, sizeof(clv__map_slot));
    }
  }
  for (uint32_t i = 0; status == CLV_OK && i < info.weight_count; ++i) {
    o->weights[i] = clv__map_find(&names, info.weights[i]);
    if (o->weights[i] != CLV__MAP_NONE) continue;
    status = clv__error_set(error, CLV_INTERNAL_ERROR, "the executable requests weight '%s', which the partition does not read",
                            info.weights[i]);
  }
  clv__map_finish(&names);
  return status;
}

/* ---- To disk ---- */

typedef struct saving {
  const clv__device *device;
  clv_executable *executable;
} saving;

static clv_status save(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  const saving *s = self;
  return CLV__CALL(s->device, error, save->save, s->executable, write, cookie);
}

/* "Conv ×53, Relu ×49, Add ×16", the most frequent first, for users who list the cache. */
static void list_operators(const clv_graph_view *view, char text[CLV__CACHE_TEXT_BYTES]) {
  enum { MOST_KINDS = 64 };
  const char *kinds[MOST_KINDS];
  uint32_t counts[MOST_KINDS] = {0}, count = 0;
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const char *op = clv__view_node(view, n)->op;
    uint32_t k = 0;
    while (k < count && strcmp(kinds[k], op) != 0) ++k;
    if (k == MOST_KINDS) continue;
    if (k == count) kinds[count++] = op;
    ++counts[k];
  }
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t listed = 0; listed < count; ++listed) {
    uint32_t most = 0;
    for (uint32_t k = 1; k < count; ++k) most = counts[k] > counts[most] ? k : most;
    char times[16] = "", word[CLV__CACHE_TEXT_BYTES];
    if (counts[most] > 1) snprintf(times, sizeof times, " ×%u", counts[most]);
    int length = snprintf(word, sizeof word, "%s%.64s%s", listed > 0 ? ", " : "", kinds[most], times);
    if (length < 0 || used + (size_t)length + sizeof ", ..." > CLV__CACHE_TEXT_BYTES) {
      memcpy(text + used, ", ...", sizeof ", ...");
      return;
    }
    memcpy(text + used, word, (size_t)length + 1);
    used += (size_t)length;
    counts[most] = 0;
  }
}

void clv__executable_describe(const clv_devices *devices, const clv_graph_view *view, const clv__shared_executable *e,
                              clv__cache_info *info) {
  const clv__device *device = &devices->items[e->device];
  *info = (clv__cache_info){
      .key = e->key, .node_count = view->node_count, .weights = e->weights, .weight_count = e->info.weight_count};
  snprintf(info->backend, sizeof info->backend, "%s", device->backend->name);
  snprintf(info->version, sizeof info->version, "%s", device->backend->version);
  snprintf(info->device, sizeof info->device, "%s", device->name);
  snprintf(info->description, sizeof info->description, "%s", device->info.description);
  list_operators(view, info->operators);
}

void clv__executable_keep(clv_devices *devices, const clv_graph_view *view, const clv__shared_executable *e,
                          clv__origin *origin) {
  const clv__device *device = &devices->items[e->device];
  const char *unused;
  clv__cache *cache = clv__context_cache(devices->context, &unused);
  clv_error error = {0};
  clv__cache_info info;
  clv__executable_describe(devices, view, e, &info);
  origin->is_to_be_kept = false;
  saving saved = {device, e->executable};
  if (clv__cache_put(cache, &info, save, &saved, &error) == CLV_OK) {
    origin->source = CLV__SOURCE_COMPILED;
    return;
  }
  char text[sizeof origin->reason];
  snprintf(text, sizeof text, "%.*s; not cached: %.*s", 100, origin->reason, 100, error.message);
  set_reason(origin, text);
}

void clv__executable_forget(clv_devices *devices, const clv__shared_executable *e) {
  const char *unused;
  clv__cache *cache = clv__context_cache(devices->context, &unused);
  if (cache != NULL) clv__cache_remove(cache, &e->key);
}

/* ---- All sources ---- */

static clv_status compile(obtaining *o, bool *by_device, clv_error *error) {
  clv_status status = CLV__CALL(o->device, error, compile, o->view, o->options, &o->executable);
  if (status != CLV_OK) {
    o->executable = NULL;
    *by_device = true;
    return status;
  }
  CLV__TRY(find_weights(o, error));
  o->origin->source = CLV__SOURCE_NOT_KEPT;
  o->origin->is_to_be_kept = o->cache != NULL;
  return CLV_OK;
}

/* Looks on disk: in the folder first, then in the cache. */
static void look_for(obtaining *o) {
  const char *reason = NULL;
  clv_error error = {0};
  bool is_kept = o->device->backend->save != NULL;
  if (is_kept)
    o->cache = clv__context_cache(o->devices->context, &reason);
  else
    reason = "its backend cannot save executables";
  if (is_kept && (o->folder != NULL || o->cache != NULL) && clv__key_add_constants(o->view, &o->key, &error) != CLV_OK) {
    reason = "not enough memory to hash its weights";
    o->cache = NULL;
  } else if (is_kept && o->folder != NULL) {
    load_from_folder(o);
  }
  if (o->executable != NULL) return;
  if (o->cache != NULL)
    load(o);
  else if (!o->origin->is_missed)
    set_reason(o->origin, reason);
  if (o->executable != NULL) o->origin->source = CLV__SOURCE_DISK;
}

clv_status clv__executable_obtain(const clv__executables *all, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                  clv__executable_use **use, clv__origin *origin, bool *by_device, clv_error *error) {
  uint32_t device = all->plan->partitions[partition].device;
  obtaining o = {.share = all->share, .folder = all->folder, .devices = all->plan->devices, .partition = partition, .view = view};
  o.device = &o.devices->items[device];
  o.options = &all->options;
  o.arena = arena;
  o.origin = origin;
  *origin = (clv__origin){.source = CLV__SOURCE_MEMORY};
  *by_device = false;
  clv__key_make(view, o.device, o.options, &o.key);
  CLV__TRY(clv__share_find(o.share, device, &o.key, view, arena, use, error));
  if (*use != NULL) return CLV_OK;
  look_for(&o);
  clv_status status = o.executable == NULL ? compile(&o, by_device, error) : CLV_OK;
  if (status == CLV_OK) status = clv__share_add(o.share, device, &o.key, view, arena, o.executable, o.weights, use, error);
  if (status != CLV_OK) destroy(&o);
  return status;
}
