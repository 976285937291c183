/* See memory.h. */
#include "gnn/plan/memory.h"

#include <string.h>

enum { PLACES = CLV__MOST_STAGES * (CLV__MOST_STAGES + 1) };

clv_status clv__memory_init(clv__gnn_memory *memory, clv__arena *arena, clv_devices *devices, const uint32_t *device_of,
                            uint32_t device_count, const clv__stages *stages, uint32_t layer_count, clv_error *error) {
  *memory = (clv__gnn_memory){
      .arena = arena, .devices = devices, .stages = stages, .layer_count = layer_count, .device_count = device_count};
  for (uint32_t d = 0; d < device_count; ++d) {
    const clv__device *device = &devices->items[device_of[d]];
    uint32_t users = 0;
    for (uint32_t e = 0; e < device_count; ++e) users += devices->items[device_of[e]].space == device->space;
    memory->device_of[d] = device_of[d];
    memory->limit_bytes[d] = device->info.memory_limit_bytes;
    memory->budget_bytes[d] = device->info.memory_limit_bytes / users;
  }
  size_t count = (size_t)layer_count * device_count * PLACES;
  memory->lists = clv__arena_allocate_zero(arena, count, sizeof *memory->lists);
  return memory->lists != NULL ? CLV_OK : clv__error_memory(error, count * sizeof *memory->lists);
}

static bool same_sizes(const clv__layer_sizes *a, const clv__layer_sizes *b) {
  return a->rows == b->rows && a->targets == b->targets && a->edges == b->edges;
}

static clv_status ask(clv__gnn_memory *memory, const clv__memory_key *key, clv__block_need *need, clv_error *error) {
  const clv__block_form form = clv__block_form_fixed(key->sizes);
  clv__block block;
  CLV__TRY(clv__block_make(memory->arena->allocator, &memory->stages[key->layer], key->first, key->last, &form, &block, error));
  clv_status status =
      clv__block_need_of(memory->devices, memory->device_of[key->device], &block, memory->budget_bytes[key->device], need, error);
  clv__block_finish(&block);
  return status;
}

clv_status clv__gnn_memory_need(clv__gnn_memory *memory, const clv__memory_key *key, clv__memory_entry **entry,
                                clv_error *error) {
  size_t place = ((size_t)key->layer * memory->device_count + key->device) * PLACES;
  clv__memory_entry **list = &memory->lists[place + key->first * (CLV__MOST_STAGES + 1) + key->last];
  for (*entry = *list; *entry != NULL; *entry = (*entry)->next) {
    if (same_sizes(&(*entry)->key.sizes, &key->sizes)) return CLV_OK;
  }
  clv__memory_entry *made = clv__arena_allocate_zero(memory->arena, 1, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->key = *key;
  CLV__TRY(ask(memory, key, &made->need, error));
  made->next = *list;
  *list = *entry = made;
  return CLV_OK;
}

bool clv__memory_fits(clv__gnn_memory *memory, const clv__memory_key *key, uint64_t *bytes) {
  clv__memory_entry *entry;
  clv_error error = {0};
  *bytes = 0;
  if (memory->budget_bytes[key->device] == 0) return true;
  if (memory->status != CLV_OK) return false;
  clv_status status = clv__gnn_memory_need(memory, key, &entry, &error);
  if (status != CLV_OK) {
    memory->status = status;
    memory->error = error;
    return false;
  }
  *bytes = entry->need.total_bytes;
  return entry->need.fits;
}

void clv__memory_count_none(clv__gnn_memory *memory) {
  size_t count = (size_t)memory->layer_count * memory->device_count * PLACES;
  for (size_t i = 0; i < count; ++i) {
    for (clv__memory_entry *entry = memory->lists[i]; entry != NULL; entry = entry->next) entry->is_counted = false;
  }
  memset(memory->most_bytes, 0, sizeof memory->most_bytes);
  memset(memory->sum_bytes, 0, sizeof memory->sum_bytes);
}

clv_status clv__gnn_memory_count(clv__gnn_memory *memory, const clv__memory_key *key, clv_error *error) {
  clv__memory_entry *entry;
  uint32_t device = key->device;
  if (memory->budget_bytes[device] == 0) return CLV_OK;
  CLV__TRY(clv__gnn_memory_need(memory, key, &entry, error));
  if (entry->is_counted) return CLV_OK;
  entry->is_counted = true;
  memory->sum_bytes[device] += entry->need.total_bytes;
  if (entry->need.total_bytes > memory->most_bytes[device]) memory->most_bytes[device] = entry->need.total_bytes;
  if (entry->need.fits) return CLV_OK;
  const char *name = memory->devices->items[memory->device_of[device]].name;
  return clv__error_set(error, CLV_TOO_LARGE,
                        "layer %u, %s to %s on %s: the block needs %llu bytes of the device's memory, but may use %llu of %llu",
                        key->layer, clv__stage_name(memory->stages[key->layer].items[key->first]),
                        clv__stage_name(memory->stages[key->layer].items[key->last - 1]), name,
                        (unsigned long long)entry->need.total_bytes, (unsigned long long)memory->budget_bytes[device],
                        (unsigned long long)memory->limit_bytes[device]);
}
