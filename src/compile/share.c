/* See share.h. */
#include "compile/share.h"

#include <stdio.h>
#include <string.h>

#include "graph/content.h"

/* A hash table with chains; it doubles when the chains grow long. */
typedef clv__share_link thing;
typedef struct table {
  thing **buckets;
  size_t count, capacity; /* capacity: 0 or a power of two */
} table;

struct clv__share {
  clv_devices *devices;
  const clv_allocator *allocator;
  table executables, weights;
};

static bool table_add(const clv_allocator *allocator, table *t, thing *added) {
  if (t->count >= t->capacity) {
    size_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
    thing **buckets = clv__allocate_zero(allocator, capacity * sizeof *buckets);
    if (buckets == NULL) return false;
    for (size_t b = 0; b < t->capacity; ++b) {
      for (thing *at = t->buckets[b], *next; at != NULL; at = next) {
        next = at->next;
        at->next = buckets[at->hash & (capacity - 1)];
        buckets[at->hash & (capacity - 1)] = at;
      }
    }
    clv__release(allocator, (void *)t->buckets);
    t->buckets = buckets;
    t->capacity = capacity;
  }
  thing **bucket = &t->buckets[added->hash & (t->capacity - 1)];
  added->next = *bucket;
  *bucket = added;
  ++t->count;
  return true;
}

static thing *table_first(const table *t, uint64_t hash) {
  return t->capacity == 0 ? NULL : t->buckets[hash & (t->capacity - 1)];
}

static void table_remove(table *t, const thing *removed) {
  thing **link = &t->buckets[removed->hash & (t->capacity - 1)];
  while (*link != removed) link = &(*link)->next;
  *link = removed->next;
  --t->count;
}

static uint64_t mix(uint64_t hash, const void *data, size_t size_bytes) { /* FNV-1a */
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}
#define MIX_START 0xcbf29ce484222325u

/* ---- Create and destroy ---- */

static void finish(void *self) {
  clv__share *share = self;
  const clv_allocator *allocator = share->allocator;
  clv__release(allocator, (void *)share->executables.buckets);
  clv__release(allocator, (void *)share->weights.buckets);
  clv__release(allocator, share);
}

clv_status clv__share_get(clv_devices *devices, clv__share **share, clv_error *error) {
  clv__attachment *attachment = &devices->attachments[CLV__ATTACHED_PROGRAMS];
  if (attachment->self == NULL) {
    const clv_allocator *allocator = clv__context_allocator(devices->context);
    clv__share *made = clv__allocate_zero(allocator, sizeof *made);
    if (made == NULL) return clv__error_memory(error, sizeof *made);
    made->devices = devices;
    made->allocator = allocator;
    *attachment = (clv__attachment){made, finish};
  }
  *share = attachment->self;
  return CLV_OK;
}

/* ---- Executables ---- */

/* Lists the bytes of the view's constants, by value; NULL for values that are not constants. */
static const void **list_constants(const clv_graph_view *view, clv__arena *arena) {
  const void **data = clv__arena_allocate_zero(arena, view->value_count, sizeof *data);
  for (uint32_t v = 0; data != NULL && v < view->value_count; ++v) {
    if (clv__key_has_bytes(view, v)) data[v] = clv__view_type(view, v)->data;
  }
  return data;
}

static bool same_constants(const clv_graph_view *view, const void *const *mine, const void *const *theirs) {
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (mine[v] == theirs[v]) continue;
    clv_tensor other = *clv__view_type(view, v); /* both constants have this dtype and these dims, which are part of the key */
    other.data = (void *)theirs[v];
    if (mine[v] == NULL || theirs[v] == NULL || !clv__content_equal(clv__view_type(view, v), &other)) return false;
  }
  return true;
}

/* Hashes what equal executables have in common: the key, and a few bytes of their first constants. Thousands of partitions may
 * differ only in their weights, and should not share a chain. */
static uint64_t hash_key(uint32_t device, const clv__key *key, const clv_graph_view *view, const void *const *constants) {
  enum { CONSTANTS = 16, BYTES = 32 };
  uint64_t hash = mix(MIX_START, &device, sizeof device);
  for (uint32_t i = 0; i < CLV__KEY_PARTS; ++i) {
    if (i != CLV__KEY_CONSTANTS) hash = mix(hash, key->parts[i].bytes, 8);
  }
  for (uint32_t v = 0, taken = 0; v < view->value_count && taken < CONSTANTS; ++v) {
    const clv_tensor *type = clv__view_type(view, v);
    size_t size_bytes;
    if (constants[v] == NULL || type->dtype == CLV_STRING || !clv__tensor_size_bytes(type, &size_bytes)) continue;
    hash = mix(hash, constants[v], size_bytes < BYTES ? size_bytes : BYTES);
    ++taken;
  }
  return hash;
}

/* Returns whether the bytes of a use, which belong to the graph `of`, are still those that the device has: whether the files of
 * `of` are unchanged. The caller has already checked the files of `graph`. */
static bool is_intact(const clv_graph *of, const clv_graph *graph) {
  return of == graph || clv__graph_check_files(of, NULL) == CLV_OK;
}

static const clv__executable_use *find_intact(const clv__shared_executable *e, const clv_graph *graph) {
  const clv__executable_use *use = e->uses;
  while (use != NULL && !is_intact(use->graph, graph)) use = use->next;
  return use;
}

static bool same_key(const clv__key *a, const clv__key *b) {
  for (uint32_t i = 0; i < CLV__KEY_PARTS; ++i) {
    if (i != CLV__KEY_CONSTANTS && memcmp(&a->parts[i], &b->parts[i], sizeof a->parts[i]) != 0) return false;
  }
  return true;
}

static clv__executable_use *begin_use(clv__shared_executable *e, const clv_graph *graph, const void **constants,
                                      clv__arena *arena) {
  clv__executable_use *use = clv__arena_allocate_zero(arena, 1, sizeof *use);
  if (use == NULL) return NULL;
  *use = (clv__executable_use){.next = e->uses, .of = e, .graph = graph, .constants = constants};
  if (e->uses != NULL) e->uses->previous = use;
  e->uses = use;
  return use;
}

clv_status clv__share_find(clv__share *share, uint32_t device, const clv__key *key, const clv_graph_view *view, clv__arena *arena,
                           clv__executable_use **use, clv_error *error) {
  *use = NULL;
  const void **constants = list_constants(view, arena);
  if (constants == NULL) return clv__error_memory(error, view->value_count * sizeof *constants);
  uint64_t hash = hash_key(device, key, view, constants);
  for (thing *at = table_first(&share->executables, hash); at != NULL; at = at->next) {
    clv__shared_executable *e = (clv__shared_executable *)at;
    if (e->link.hash != hash || e->device != device || !same_key(&e->key, key)) continue;
    const clv__executable_use *other = find_intact(e, view->graph);
    if (other == NULL || !same_constants(view, constants, other->constants)) continue;
    *use = begin_use(e, view->graph, constants, arena);
    return *use != NULL ? CLV_OK : clv__error_memory(error, sizeof **use);
  }
  return CLV_OK;
}

clv_status clv__share_add(clv__share *share, uint32_t device, const clv__key *key, const clv_graph_view *view, clv__arena *arena,
                          clv_executable *executable, const uint32_t *weights, clv__executable_use **use, clv_error *error) {
  const clv__device *d = &share->devices->items[device];
  clv_executable_info info = {.struct_size = sizeof info};
  d->backend->executable_info(d->handle, executable, &info);
  size_t size_bytes = sizeof(clv__shared_executable) + info.weight_count * sizeof *weights;
  const void **constants = list_constants(view, arena);
  clv__shared_executable *e = constants == NULL ? NULL : clv__allocate_zero(share->allocator, size_bytes);
  if (e == NULL) return clv__error_memory(error, size_bytes);
  *e = (clv__shared_executable){
      .link.hash = hash_key(device, key, view, constants), .device = device, .key = *key, .executable = executable};
  e->info = info;
  e->weights = (uint32_t *)(e + 1);
  if (info.weight_count > 0) memcpy(e->weights, weights, info.weight_count * sizeof *weights);
  *use = begin_use(e, view->graph, constants, arena);
  if (*use != NULL && table_add(share->allocator, &share->executables, &e->link)) return CLV_OK;
  *use = NULL;
  clv__release(share->allocator, e);
  return clv__error_memory(error, size_bytes);
}

void clv__share_drop(clv__share *share, clv__executable_use *use) {
  if (use == NULL) return;
  clv__shared_executable *e = use->of;
  if (use->next != NULL) use->next->previous = use->previous;
  if (use->previous != NULL)
    use->previous->next = use->next;
  else
    e->uses = use->next;
  if (e->uses != NULL) return;
  const clv__device *d = &share->devices->items[e->device];
  d->backend->executable_destroy(d->handle, e->executable);
  table_remove(&share->executables, &e->link);
  clv__release(share->allocator, e);
}

/* ---- Weights ---- */

/* Hashes the type and a few bytes at the beginning, the middle and the end. A comparison covers the rest. */
static uint64_t hash_weight(uint32_t device, const clv_tensor *data, size_t size_bytes) {
  enum { SAMPLE_BYTES = 64 };
  uint64_t hash = mix(MIX_START, &device, sizeof device);
  hash = mix(hash, &data->dtype, sizeof data->dtype);
  hash = mix(hash, data->dims, (size_t)(data->rank < 0 ? 0 : data->rank) * sizeof *data->dims);
  if (data->dtype == CLV_STRING) return hash;
  size_t sample = size_bytes < SAMPLE_BYTES ? size_bytes : SAMPLE_BYTES;
  const uint8_t *bytes = data->data;
  hash = mix(hash, bytes, sample);
  hash = mix(hash, bytes + (size_bytes - sample) / 2, sample);
  return mix(hash, bytes + size_bytes - sample, sample);
}

static void begin_weight_use(clv__shared_weight *w, const clv_graph *graph, const clv_tensor *data, clv__weight_use *use) {
  *use = (clv__weight_use){.next = w->uses, .of = w, .graph = graph, .data = data->data};
  if (w->uses != NULL) w->uses->previous = use;
  w->uses = use;
}

static const clv__weight_use *find_intact_weight(const clv__shared_weight *w, const clv_graph *graph) {
  const clv__weight_use *use = w->uses;
  while (use != NULL && !is_intact(use->graph, graph)) use = use->next;
  return use;
}

static clv__shared_weight *find_weight(const clv__share *share, uint32_t device, uint64_t hash, const clv_graph *graph,
                                       const clv_tensor *data) {
  for (thing *at = table_first(&share->weights, hash); at != NULL; at = at->next) {
    clv__shared_weight *w = (clv__shared_weight *)at;
    if (w->link.hash != hash || w->device != device || !clv__tensor_same_type(&w->type, data)) continue;
    const clv__weight_use *use = find_intact_weight(w, graph);
    if (use == NULL) continue;
    clv_tensor other = *data;
    other.data = (void *)use->data;
    if (clv__content_equal(data, &other)) return w;
  }
  return NULL;
}

/* Uploads the bytes. Bytes in a mapped file are first read from the file, because access to the mapping raises a signal if the
 * file is truncated meanwhile. */
static clv_status upload(const clv__share *share, uint32_t device, const clv_graph *graph, const char *name,
                         const clv_tensor *data, size_t size_bytes, clv_weight **weight, bool *by_device, clv_error *error) {
  const clv__device *d = &share->devices->items[device];
  clv_tensor bytes = *data;
  void *read = NULL;
  *by_device = false;
  if (size_bytes > 0 && clv__graph_is_in_file(graph, data->data)) {
    bytes.data = read = clv__allocate(share->allocator, size_bytes);
    if (read == NULL) return clv__error_memory(error, size_bytes);
    clv_status status = clv__graph_read_file(graph, data->data, size_bytes, read, error);
    if (status != CLV_OK) {
      clv__release(share->allocator, read);
      return status;
    }
  }
  *by_device = true;
  clv_status status = CLV__CALL(d, error, weight_upload, name, &bytes, weight);
  clv__release(share->allocator, read);
  return status;
}

clv_status clv__share_weight(clv__share *share, uint32_t device, const clv_graph *graph, const char *name, const clv_tensor *data,
                             clv__weight_use *use, bool *uploaded, bool *by_device, clv_error *error) {
  size_t size_bytes;
  *uploaded = false;
  *by_device = true;
  if (!clv__tensor_size_bytes(data, &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "weight '%s' has an unknown size", name);
  }
  uint64_t hash = hash_weight(device, data, size_bytes);
  clv__shared_weight *w = find_weight(share, device, hash, graph, data);
  if (w != NULL) {
    begin_weight_use(w, graph, data, use);
    return CLV_OK;
  }
  w = clv__allocate_zero(share->allocator, sizeof *w);
  if (w == NULL) return clv__error_memory(error, sizeof *w);
  w->link.hash = hash;
  w->device = device;
  w->type = *data;
  w->type.data = NULL;
  if (!table_add(share->allocator, &share->weights, &w->link)) {
    clv__release(share->allocator, w);
    return clv__error_memory(error, share->weights.capacity * sizeof(thing *));
  }
  clv_status status = upload(share, device, graph, name, data, size_bytes, &w->weight, by_device, error);
  if (status != CLV_OK) {
    table_remove(&share->weights, &w->link);
    clv__release(share->allocator, w);
    return clv__error_prefix(error, status, "weight '%s'", name);
  }
  begin_weight_use(w, graph, data, use);
  *uploaded = true;
  return CLV_OK;
}

void clv__share_drop_weight(clv__share *share, clv__weight_use *use) {
  clv__shared_weight *w = use->of;
  if (w == NULL) return;
  if (use->next != NULL) use->next->previous = use->previous;
  if (use->previous != NULL)
    use->previous->next = use->next;
  else
    w->uses = use->next;
  *use = (clv__weight_use){0};
  if (w->uses != NULL) return;
  const clv__device *d = &share->devices->items[w->device];
  d->backend->weight_release(d->handle, w->weight);
  table_remove(&share->weights, &w->link);
  clv__release(share->allocator, w);
}
