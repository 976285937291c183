/* See lookup.h. */
#include "base/lookup.h"

#include <string.h>

/* FNV-1a over both strings, with the terminator between them. */
static uint32_t hash_names(const char *domain, const char *name) {
  uint32_t hash = 2166136261u;
  for (; *domain != '\0'; ++domain) hash = (hash ^ (uint8_t)*domain) * 16777619u;
  hash *= 16777619u;
  for (; *name != '\0'; ++name) hash = (hash ^ (uint8_t)*name) * 16777619u;
  return hash;
}

/* The slot that holds the names, or the empty slot for them. The search ends because half of the slots stay empty. */
static uint32_t find_slot(const clv__lookup *lookup, const char *domain, const char *name) {
  uint32_t at = hash_names(domain, name) & (CLV__LOOKUP_SLOTS - 1);
  while (lookup->slots[at].entry != NULL &&
         (strcmp(lookup->slots[at].name, name) != 0 || strcmp(lookup->slots[at].domain, domain) != 0)) {
    at = (at + 1) & (CLV__LOOKUP_SLOTS - 1);
  }
  return at;
}

bool clv__lookup_add(clv__lookup *lookup, const char *domain, const char *name, const void *entry) {
  clv__lookup_slot *slot = &lookup->slots[find_slot(lookup, domain, name)];
  if (slot->entry != NULL) return true;
  if (lookup->count >= CLV__LOOKUP_SLOTS / 2) return false;
  *slot = (clv__lookup_slot){domain, name, entry};
  ++lookup->count;
  return true;
}

const void *clv__lookup_find(const clv__lookup *lookup, const char *domain, const char *name) {
  return lookup->slots[find_slot(lookup, domain, name)].entry;
}
