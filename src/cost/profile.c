/* The tables of a profile in memory: devices by fingerprint, operators by signature, edges by their two operators, blocks by
 * key. */
#include "cost/profile.h"

#include <stdio.h>
#include <string.h>

enum { EDGE_KEY_BYTES = 24 };

clv_status clv__profile_create(const clv_allocator *allocator, clv__profile **out, clv_error *error) {
  *out = NULL;
  clv__profile *profile = clv__allocate_zero(allocator, sizeof *profile);
  if (profile == NULL) return clv__error_memory(error, sizeof *profile);
  clv__arena_init(&profile->arena, allocator);
  profile->host_processor = profile->host_system = profile->cleave_version = "";
  *out = profile;
  return CLV_OK;
}

void clv__profile_destroy(clv__profile *profile) {
  if (profile == NULL) return;
  const clv_allocator *allocator = profile->arena.allocator;
  for (uint32_t d = 0; d < profile->device_count; ++d) {
    clv__profile_device *device = profile->devices[d];
    clv__release(allocator, device->operators);
    clv__release(allocator, device->savings);
    clv__release(allocator, device->blocks);
    clv__map_finish(&device->operator_index);
    clv__map_finish(&device->saving_index);
    clv__map_finish(&device->block_index);
  }
  clv__release(allocator, (void *)profile->devices);
  clv__arena_finish(&profile->arena);
  clv__release(allocator, profile);
}

const char *clv__profile_id(const clv__profile *profile) {
  return profile->id;
}

/* ---- Devices ---- */

uint32_t clv__profile_find_device(const clv__profile *profile, const char *fingerprint) {
  for (uint32_t d = 0; d < profile->device_count; ++d) {
    if (strcmp(profile->devices[d]->fingerprint, fingerprint) == 0) return d;
  }
  return CLV__NO_ID;
}

clv_status clv__profile_find_or_add_device(clv__profile *profile, const char *fingerprint, clv__profile_device **out,
                                           clv_error *error) {
  const clv_allocator *allocator = profile->arena.allocator;
  uint32_t found = clv__profile_find_device(profile, fingerprint);
  *out = found == CLV__NO_ID ? NULL : profile->devices[found];
  if (*out != NULL) return CLV_OK;
  clv__profile_device *device = clv__arena_allocate_zero(&profile->arena, 1, sizeof *device);
  char *copy = clv__arena_string(&profile->arena, fingerprint, strlen(fingerprint));
  if (device == NULL || copy == NULL ||
      !clv__array_reserve(allocator, (void **)&profile->devices, &profile->device_capacity, (size_t)profile->device_count + 1,
                          sizeof *profile->devices, profile->device_count)) {
    return clv__error_memory(error, sizeof *device);
  }
  device->fingerprint = copy;
  device->name = device->kind = device->description = device->measured = "";
  clv__map_init(&device->operator_index, allocator);
  clv__map_init(&device->saving_index, allocator);
  clv__map_init(&device->block_index, allocator);
  profile->devices[profile->device_count++] = device;
  *out = device;
  return CLV_OK;
}

/* ---- Operators ---- */

uint32_t clv__profile_find_operator(const clv__profile_device *device, const char *signature) {
  return clv__map_find(&device->operator_index, signature);
}

clv_status clv__profile_find_or_add_operator(clv__profile *profile, clv__profile_device *device, const char *signature,
                                             uint32_t *index, clv_error *error) {
  *index = clv__map_find(&device->operator_index, signature);
  if (*index != CLV__MAP_NONE) return CLV_OK;
  size_t length = strlen(signature);
  char *copy = clv__arena_string(&profile->arena, signature, length);
  if (copy == NULL ||
      !clv__array_reserve(profile->arena.allocator, (void **)&device->operators, &device->operator_capacity,
                          (size_t)device->operator_count + 1, sizeof *device->operators, device->operator_count) ||
      !clv__map_set(&device->operator_index, copy, device->operator_count)) {
    return clv__error_memory(error, length);
  }
  *index = device->operator_count++;
  device->operators[*index] = (clv__profile_operator){.signature = copy};
  return CLV_OK;
}

/* ---- Edges ---- */

static void edge_key(char key[EDGE_KEY_BYTES], uint32_t producer, uint32_t consumer) {
  snprintf(key, EDGE_KEY_BYTES, "%u>%u", producer, consumer);
}

uint32_t clv__profile_find_saving(const clv__profile_device *device, uint32_t producer, uint32_t consumer) {
  char key[EDGE_KEY_BYTES];
  edge_key(key, producer, consumer);
  return clv__map_find(&device->saving_index, key);
}

clv_status clv__profile_find_or_add_saving(clv__profile *profile, clv__profile_device *device, uint32_t producer,
                                           uint32_t consumer, double bytes, uint32_t *index, clv_error *error) {
  char key[EDGE_KEY_BYTES];
  edge_key(key, producer, consumer);
  *index = clv__map_find(&device->saving_index, key);
  if (*index != CLV__MAP_NONE) return CLV_OK;
  char *copy = clv__arena_string(&profile->arena, key, strlen(key));
  if (copy == NULL ||
      !clv__array_reserve(profile->arena.allocator, (void **)&device->savings, &device->saving_capacity,
                          (size_t)device->saving_count + 1, sizeof *device->savings, device->saving_count) ||
      !clv__map_set(&device->saving_index, copy, device->saving_count)) {
    return clv__error_memory(error, sizeof key);
  }
  *index = device->saving_count++;
  device->savings[*index] = (clv__profile_saving){.producer = producer, .consumer = consumer, .bytes = bytes};
  return CLV_OK;
}

/* ---- Blocks and copies ---- */

clv_status clv__profile_put_block(clv__profile *profile, clv__profile_device *device, const clv__profile_block *block,
                                  clv_error *error) {
  clv__profile_block kept = *block;
  kept.nodes = clv__arena_copy(&profile->arena, block->nodes, block->node_count * sizeof *block->nodes);
  kept.edges = clv__arena_copy(&profile->arena, block->edges, block->edge_count * sizeof *block->edges);
  if (kept.nodes == NULL || kept.edges == NULL) return clv__error_memory(error, block->edge_count * sizeof *block->edges);
  uint32_t index = clv__map_find(&device->block_index, block->key);
  if (index == CLV__MAP_NONE) {
    char *copy = clv__arena_string(&profile->arena, block->key, strlen(block->key));
    if (copy == NULL ||
        !clv__array_reserve(profile->arena.allocator, (void **)&device->blocks, &device->block_capacity,
                            (size_t)device->block_count + 1, sizeof *device->blocks, device->block_count) ||
        !clv__map_set(&device->block_index, copy, device->block_count)) {
      return clv__error_memory(error, sizeof *block);
    }
    index = device->block_count++;
    kept.key = copy;
  } else {
    kept.key = device->blocks[index].key;
  }
  device->blocks[index] = kept;
  return CLV_OK;
}

clv_status clv__profile_put_copies(clv__profile *profile, clv__profile_device *device, clv__copy_kind kind,
                                   const clv__profile_copy *copies, uint32_t count, clv_error *error) {
  clv__profile_copy *kept = clv__arena_copy(&profile->arena, copies, count * sizeof *copies);
  if (kept == NULL) return clv__error_memory(error, count * sizeof *copies);
  device->copies[kind] = kept;
  device->copy_counts[kind] = count;
  return CLV_OK;
}
