/* A map from names to 32-bit numbers: open addressing, insertion only. Keys are borrowed. */
#ifndef CLEAVE_BASE_MAP_H
#define CLEAVE_BASE_MAP_H

#include "cleave/types.h"

#define CLV__MAP_NONE UINT32_MAX

typedef struct clv__map_slot {
  const char *key;
  uint32_t hash;
  uint32_t value;
} clv__map_slot;

typedef struct clv__map {
  const clv_allocator *allocator;
  clv__map_slot *slots;
  uint32_t capacity; /* 0 or a power of two */
  uint32_t count;
} clv__map;

void clv__map_init(clv__map *map, const clv_allocator *allocator);
void clv__map_finish(clv__map *map);
/* Returns CLV__MAP_NONE if the map does not have the key. */
uint32_t clv__map_find(const clv__map *map, const char *key);
/* Inserts the key, or replaces its value. `key` must outlive the map. Returns false if out of memory. */
bool clv__map_set(clv__map *map, const char *key, uint32_t value);

#endif
