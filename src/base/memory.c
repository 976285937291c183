/* See memory.h. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Large blocks hold weights and arenas of values. With huge pages, their first touch costs only a quarter as much, and page
 * lookups cost less. The largest blocks get no huge pages: no cache holds them and they are read from end to end, so the page
 * size does not matter. Finding that many huge pages may take seconds if the system has to move other pages, or if it is a
 * virtual machine whose host has to find them. */
enum { PAGE = 4096, HUGE_PAGE = 2 << 20, MOST_SPARSE = 32 << 20, MOST_HUGE = 256 << 20 };

static void *default_allocate(void *user_data, size_t size_bytes, size_t alignment) {
  (void)user_data;
  void *pointer = NULL;
  const bool large = size_bytes >= 2 * (size_t)HUGE_PAGE && size_bytes < MOST_HUGE;
  if (large && alignment < HUGE_PAGE) alignment = HUGE_PAGE;
  if (posix_memalign(&pointer, alignment < sizeof(void *) ? sizeof(void *) : alignment, size_bytes) != 0) return NULL;
  if (large) (void)madvise(pointer, size_bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  return pointer;
}

static void default_release(void *user_data, void *pointer) {
  (void)user_data;
  free(pointer);
}

const clv_allocator *clv__allocator_default(void) {
  static const clv_allocator allocator = {NULL, default_allocate, default_release};
  return &allocator;
}

void *clv__allocate(const clv_allocator *allocator, size_t size_bytes) {
  if (size_bytes == 0) size_bytes = 1;
  if (size_bytes > SIZE_MAX / 2) return NULL;
  return allocator->allocate(allocator->user_data, size_bytes, CLV__ALIGNMENT);
}

void *clv__allocate_zero(const clv_allocator *allocator, size_t size_bytes) {
  void *pointer = clv__allocate(allocator, size_bytes);
  if (pointer != NULL) memset(pointer, 0, size_bytes);
  return pointer;
}

void clv__release(const clv_allocator *allocator, void *pointer) {
  if (pointer != NULL) allocator->release(allocator->user_data, pointer);
}

static void refuse_huge(void *pointer, size_t size_bytes) {
  const uintptr_t begin = clv__align_up((uintptr_t)pointer, PAGE), end = ((uintptr_t)pointer + size_bytes) / PAGE * PAGE;
  if (begin < end) (void)madvise((void *)begin, end - begin, MADV_NOHUGEPAGE);
}

void clv__memory_sparse(void *pointer, size_t size_bytes) {
  if (size_bytes >= HUGE_PAGE && size_bytes < MOST_SPARSE) refuse_huge(pointer, size_bytes);
}

void clv__memory_soon(void *pointer, size_t size_bytes) {
  if (size_bytes >= HUGE_PAGE) refuse_huge(pointer, size_bytes);
}

struct clv__arena_block {
  clv__arena_block *next;
  size_t used; /* bytes in use, counted from the start of this header */
  size_t size_bytes;
};

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

void clv__arena_init(clv__arena *arena, const clv_allocator *allocator) {
  arena->allocator = allocator;
  arena->blocks = NULL;
}

void clv__arena_finish(clv__arena *arena) {
  while (arena->blocks != NULL) {
    clv__arena_block *block = arena->blocks;
    arena->blocks = block->next;
    clv__release(arena->allocator, block);
  }
}

static void *arena_allocate(clv__arena *arena, size_t size_bytes, size_t alignment) {
  if (size_bytes > SIZE_MAX / 4) return NULL;
  if (size_bytes == 0) size_bytes = 1;
  clv__arena_block *block = arena->blocks;
  if (block != NULL) {
    size_t start = clv__align_up(block->used, alignment);
    if (start <= block->size_bytes && size_bytes <= block->size_bytes - start) {
      block->used = start + size_bytes;
      return (char *)block + start;
    }
  }
  size_t header = clv__align_up(sizeof *block, CLV__ALIGNMENT);
  size_t grown = block == NULL ? FIRST_BLOCK : block->size_bytes * 2;
  if (grown > LARGEST_BLOCK) grown = LARGEST_BLOCK;
  bool alone = size_bytes > grown / 4; /* a large allocation gets its own block and leaves the current one in use */
  size_t total = alone ? header + size_bytes : grown;
  clv__arena_block *fresh = clv__allocate(arena->allocator, total);
  if (fresh == NULL) return NULL;
  fresh->size_bytes = total;
  fresh->used = header + size_bytes;
  if (alone && block != NULL) {
    fresh->next = block->next;
    block->next = fresh;
  } else {
    fresh->next = block;
    arena->blocks = fresh;
  }
  return (char *)fresh + header;
}

void *clv__arena_allocate(clv__arena *arena, size_t size_bytes) {
  return arena_allocate(arena, size_bytes, 16);
}

void *clv__arena_allocate_zero(clv__arena *arena, size_t count, size_t element_bytes) {
  size_t size_bytes;
  if (!clv__multiply(count, element_bytes, &size_bytes)) return NULL;
  void *pointer = arena_allocate(arena, size_bytes, 16);
  if (pointer != NULL) memset(pointer, 0, size_bytes);
  return pointer;
}

void *clv__arena_allocate_data(clv__arena *arena, size_t size_bytes) {
  return arena_allocate(arena, size_bytes, CLV__ALIGNMENT);
}

void *clv__arena_copy(clv__arena *arena, const void *data, size_t size_bytes) {
  void *pointer = arena_allocate(arena, size_bytes, 16);
  if (pointer != NULL && size_bytes > 0) memcpy(pointer, data, size_bytes);
  return pointer;
}

char *clv__arena_string(clv__arena *arena, const char *text, size_t size_bytes) {
  size_t total;
  if (!clv__add(size_bytes, 1, &total)) return NULL;
  char *copy = arena_allocate(arena, total, 1);
  if (copy == NULL) return NULL;
  if (size_bytes > 0) memcpy(copy, text, size_bytes);
  copy[size_bytes] = '\0';
  return copy;
}

bool clv__array_reserve(const clv_allocator *allocator, void **array, size_t *capacity, size_t needed, size_t element_bytes,
                        size_t used) {
  if (needed <= *capacity) return true;
  size_t grown = *capacity < 8 ? 8 : *capacity;
  while (grown < needed) {
    if (grown > SIZE_MAX / 2) return false;
    grown *= 2;
  }
  size_t size_bytes;
  if (!clv__multiply(grown, element_bytes, &size_bytes)) return false;
  void *fresh = clv__allocate(allocator, size_bytes);
  if (fresh == NULL) return false;
  if (used > 0) memcpy(fresh, *array, used * element_bytes);
  clv__release(allocator, *array);
  *array = fresh;
  *capacity = grown;
  return true;
}
