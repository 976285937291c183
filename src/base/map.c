/* See map.h. */
#include "base/map.h"

#include <string.h>

#include "base/memory.h"

static uint32_t hash_name(const char *key) { /* FNV-1a, then a mix: linear probing needs well-distributed low bits */
  uint32_t hash = 2166136261u;
  for (; *key != '\0'; ++key) hash = (hash ^ (uint8_t)*key) * 16777619u;
  hash ^= hash >> 15;
  hash *= 0x2c1b3c6du;
  return hash ^ (hash >> 12);
}

void clv__map_init(clv__map *map, const clv_allocator *allocator) {
  *map = (clv__map){.allocator = allocator};
}

void clv__map_finish(clv__map *map) {
  clv__release(map->allocator, map->slots);
  clv__map_init(map, map->allocator);
}

static clv__map_slot *probe(const clv__map *map, const char *key, uint32_t hash) {
  uint32_t mask = map->capacity - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    clv__map_slot *slot = &map->slots[i];
    if (slot->key == NULL || (slot->hash == hash && strcmp(slot->key, key) == 0)) return slot;
  }
}

uint32_t clv__map_find(const clv__map *map, const char *key) {
  if (map->capacity == 0) return CLV__MAP_NONE;
  const clv__map_slot *slot = probe(map, key, hash_name(key));
  return slot->key == NULL ? CLV__MAP_NONE : slot->value;
}

static bool grow(clv__map *map) {
  clv__map bigger = *map;
  bigger.capacity = map->capacity == 0 ? 16 : map->capacity * 2;
  bigger.slots = clv__allocate_zero(map->allocator, (size_t)bigger.capacity * sizeof *bigger.slots);
  if (bigger.slots == NULL || bigger.capacity == 0) return false;
  for (uint32_t i = 0; i < map->capacity; ++i) {
    if (map->slots[i].key != NULL) *probe(&bigger, map->slots[i].key, map->slots[i].hash) = map->slots[i];
  }
  clv__release(map->allocator, map->slots);
  *map = bigger;
  return true;
}

bool clv__map_set(clv__map *map, const char *key, uint32_t value) {
  if (map->count * 4ull >= map->capacity * 3ull && !grow(map)) return false;
  uint32_t hash = hash_name(key);
  clv__map_slot *slot = probe(map, key, hash);
  if (slot->key == NULL) ++map->count;
  *slot = (clv__map_slot){key, hash, value};
  return true;
}
