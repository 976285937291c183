/* Memory: helpers for allocators, arenas, growing arrays, checked arithmetic. Independent of graphs. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include "cleave/types.h"

#define CLV__ALIGNMENT 64u /* alignment of all memory that may hold tensor data */

/* The default allocator: malloc and free, with alignment. */
const clv_allocator *clv__allocator_default(void);

/* Allocate memory aligned to CLV__ALIGNMENT; return NULL if out of memory. Zero bytes give a valid pointer. */
void *clv__allocate(const clv_allocator *allocator, size_t size_bytes);
void *clv__allocate_zero(const clv_allocator *allocator, size_t size_bytes);
void clv__release(const clv_allocator *allocator, void *pointer);

/* Marks memory from an allocator as sparsely used: parts of it may never be touched, so the system must not back it with huge
 * pages. Has no effect on blocks of 32 MiB and more. Up to 256 MiB they keep their huge pages, for fast page lookups; larger
 * blocks get none from the default allocator anyway. */
void clv__memory_sparse(void *pointer, size_t size_bytes);

/* Marks allocator memory as needed soon: a fast first touch matters more than fast lookups later. The memory is not backed by
 * huge pages, because the system may have to move other pages to get them, or the host of a virtual machine may have to find
 * them. */
void clv__memory_soon(void *pointer, size_t size_bytes);

/* Checked arithmetic: returns false on overflow and leaves *result unchanged. */
static inline bool clv__multiply(size_t a, size_t b, size_t *result) {
  return !__builtin_mul_overflow(a, b, result);
}
static inline bool clv__add(size_t a, size_t b, size_t *result) {
  return !__builtin_add_overflow(a, b, result);
}
static inline size_t clv__align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/* An arena: allocations that are freed together, never one alone. Blocks grow geometrically. */
typedef struct clv__arena_block clv__arena_block;
typedef struct clv__arena {
  const clv_allocator *allocator;
  clv__arena_block *blocks;
} clv__arena;

void clv__arena_init(clv__arena *arena, const clv_allocator *allocator);
void clv__arena_finish(clv__arena *arena);
/* Allocate memory that is aligned to 16 bytes or, by clv__arena_allocate_data(), to CLV__ALIGNMENT. Return NULL if out of
 * memory. Zero bytes give a valid pointer. */
void *clv__arena_allocate(clv__arena *arena, size_t size_bytes);
void *clv__arena_allocate_zero(clv__arena *arena, size_t count, size_t element_bytes); /* checks the product for overflow */
void *clv__arena_allocate_data(clv__arena *arena, size_t size_bytes);
void *clv__arena_copy(clv__arena *arena, const void *data, size_t size_bytes);
char *clv__arena_string(clv__arena *arena, const char *text, size_t size_bytes); /* a terminated copy, not aligned */

/* Makes room for `needed` elements in a heap array by doubling it. `*array` may move; its first `used` elements move with it.
 * Returns false if out of memory, and then changes nothing. */
bool clv__array_reserve(const clv_allocator *allocator, void **array, size_t *capacity, size_t needed, size_t element_bytes,
                        size_t used);

#endif
