/* Memory: the allocator's helpers, arenas, growing arrays, checked arithmetic. Nothing here knows of graphs. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include "cleave/types.h"

#define CLV__ALIGNMENT 64u /* of everything that may hold tensor data */

/* malloc and free, aligned. */
const clv_allocator *clv__allocator_default(void);

/* `size_bytes` of memory aligned to CLV__ALIGNMENT, or NULL. Zero bytes give a valid pointer. */
void *clv__allocate(const clv_allocator *allocator, size_t size_bytes);
void *clv__allocate_zero(const clv_allocator *allocator, size_t size_bytes);
void clv__release(const clv_allocator *allocator, void *pointer);

/* Says of memory from the allocator that parts of it may stay untouched: they shall not be filled with the rest of a huge page.
 * Where it is so large that finding its pages takes time, nothing changes. */
void clv__memory_sparse(void *pointer, size_t size_bytes);

/* Says of memory from the allocator that having it soon counts more than finding its pages quickly ever after: it is not made of
 * huge pages, for which the system may have to move others, or the host of a guest has to look. */
void clv__memory_soon(void *pointer, size_t size_bytes);

/* Checked arithmetic: false on overflow, and *result is then untouched. */
static inline bool clv__multiply(size_t a, size_t b, size_t *result) {
  return !__builtin_mul_overflow(a, b, result);
}
static inline bool clv__add(size_t a, size_t b, size_t *result) {
  return !__builtin_add_overflow(a, b, result);
}
static inline size_t clv__align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/* An arena: allocations that die together. Blocks grow geometrically; nothing is freed by hand. */
typedef struct clv__arena_block clv__arena_block;
typedef struct clv__arena {
  const clv_allocator *allocator;
  clv__arena_block *blocks;
} clv__arena;

void clv__arena_init(clv__arena *arena, const clv_allocator *allocator);
void clv__arena_finish(clv__arena *arena);
/* Aligned to 16 bytes (`clv__arena_allocate`) or to CLV__ALIGNMENT; NULL when memory is out. Zero bytes give a valid pointer. */
void *clv__arena_allocate(clv__arena *arena, size_t size_bytes);
void *clv__arena_allocate_zero(clv__arena *arena, size_t count, size_t element_bytes); /* checked product */
void *clv__arena_allocate_data(clv__arena *arena, size_t size_bytes);
void *clv__arena_copy(clv__arena *arena, const void *data, size_t size_bytes);
char *clv__arena_string(clv__arena *arena, const char *text, size_t size_bytes); /* terminated copy */

/* Makes room for `needed` elements in a heap array, doubling. `*array` may move. False when memory is out. */
bool clv__array_reserve(const clv_allocator *allocator, void **array, size_t *capacity, size_t needed, size_t element_bytes,
                        size_t used);

#endif
