/* The counting allocator and the random numbers: see support.h. */
#include "support.h"

#include <stdlib.h>

static void *allocate(void *user_data, size_t size_bytes, size_t alignment) {
  test_allocator *counting = user_data;
  size_t call = __atomic_add_fetch(&counting->calls, 1, __ATOMIC_RELAXED);
  if (call == counting->fail_at) return NULL;
  const clv_allocator *base = clv__allocator_default();
  void *pointer = base->allocate(base->user_data, size_bytes, alignment);
  if (pointer != NULL) __atomic_add_fetch(&counting->live, 1, __ATOMIC_RELAXED);
  return pointer;
}

static void release(void *user_data, void *pointer) {
  test_allocator *counting = user_data;
  if (pointer == NULL) return;
  __atomic_sub_fetch(&counting->live, 1, __ATOMIC_RELAXED);
  const clv_allocator *base = clv__allocator_default();
  base->release(base->user_data, pointer);
}

void test_allocator_init(test_allocator *counting) {
  *counting = (test_allocator){.allocator = {counting, allocate, release}};
}

uint64_t test_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t test_some(uint32_t count) {
#if defined(__SANITIZE_THREAD__)
  uint64_t percent = 15;
#elif defined(__SANITIZE_ADDRESS__)
  uint64_t percent = 25;
#else
  uint64_t percent = 100;
#endif
  const char *said = getenv("CLEAVE_TEST_PERCENT");
  if (said != NULL) percent = strtoull(said, NULL, 10);
  uint64_t some = count * percent / 100;
  return some > 0 ? (uint32_t)some : 1;
}

float test_random_float(uint64_t *state) {
  return (float)(test_random(state) >> 40) / 8388608.0f - 1.0f;
}
