/* Memory that is released all at once, and a map of names in such memory. */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

enum { BLOCK_BYTES = 16384, ALIGNMENT = 16 };

struct clv__ep_block {
  clv__ep_block *next;
  size_t used, room; /* bytes after this header */
};
#define HEADER_BYTES ((sizeof(clv__ep_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

void *clv__ep_take(clv__ep_arena *arena, size_t count, size_t item_bytes) {
  if (item_bytes > 0 && count > (SIZE_MAX / 4) / item_bytes) return NULL;
  size_t bytes = (count * item_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  clv__ep_block *block = arena->blocks;
  if (block == NULL || block->room - block->used < bytes) {
    size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    block = calloc(1, HEADER_BYTES + room);
    if (block == NULL) return NULL;
    block->room = room;
    block->next = arena->blocks;
    arena->blocks = block;
  }
  void *taken = (char *)block + HEADER_BYTES + block->used;
  block->used += bytes;
  return taken;
}

char *clv__ep_copy_text(clv__ep_arena *arena, const char *text, size_t size_bytes) {
  char *copy = clv__ep_take(arena, size_bytes + 1, 1);
  if (copy != NULL && size_bytes > 0) memcpy(copy, text, size_bytes);
  return copy;
}

void clv__ep_arena_finish(clv__ep_arena *arena) {
  while (arena->blocks != NULL) {
    clv__ep_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
}

struct clv__ep_name {
  const char *name; /* NULL: a free slot */
  uint32_t number;
};

/* FNV-1a. */
static size_t hash(const char *name) {
  uint64_t value = 14695981039346656037u;
  for (; *name != '\0'; ++name) value = (value ^ (unsigned char)*name) * 1099511628211u;
  return (size_t)(value ^ value >> 32);
}

static struct clv__ep_name *slot_of(const clv__ep_names *names, const char *name) {
  size_t at = hash(name) & (names->capacity - 1);
  while (names->slots[at].name != NULL && strcmp(names->slots[at].name, name) != 0) at = (at + 1) & (names->capacity - 1);
  return &names->slots[at];
}

uint32_t clv__ep_find(const clv__ep_names *names, const char *name) {
  if (names->capacity == 0) return CLV__EP_ABSENT;
  const struct clv__ep_name *slot = slot_of(names, name);
  return slot->name == NULL ? CLV__EP_ABSENT : slot->number;
}

static bool grow(clv__ep_arena *arena, clv__ep_names *names) {
  clv__ep_names larger = {.capacity = names->capacity == 0 ? 64 : 2 * names->capacity, .count = names->count};
  larger.slots = clv__ep_take(arena, larger.capacity, sizeof *larger.slots);
  if (larger.slots == NULL) return false;
  for (size_t i = 0; i < names->capacity; ++i) {
    if (names->slots[i].name != NULL) *slot_of(&larger, names->slots[i].name) = names->slots[i];
  }
  *names = larger;
  return true;
}

bool clv__ep_put(clv__ep_arena *arena, clv__ep_names *names, const char *name, uint32_t number) {
  if (2 * (names->count + 1) > names->capacity && !grow(arena, names)) return false;
  struct clv__ep_name *slot = slot_of(names, name);
  names->count += slot->name == NULL;
  *slot = (struct clv__ep_name){name, number};
  return true;
}
