/* See packs.h. The store is an unsorted list. Linear search is fast enough: a model has hundreds of packs, and comparing two
 * numbers rejects most of them. */
#include "packs.h"

#include <pthread.h>
#include <string.h>

enum { SAMPLED_WORDS = 64 };

struct clv__cpu_packs {
  const clv_allocator *allocator;
  pthread_mutex_t lock;
  clv__cpu_shared **items;
  size_t count, capacity;
};

clv_status clv__cpu_packs_create(const clv_allocator *allocator, clv__cpu_packs **packs, clv_error *error) {
  *packs = NULL;
  clv__cpu_packs *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  if (pthread_mutex_init(&made->lock, NULL) != 0) {
    clv__release(allocator, made);
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "cannot create a lock for packed constants");
  }
  *packs = made;
  return CLV_OK;
}

static void destroy(const clv_allocator *allocator, clv__cpu_shared *shared) {
  clv__release(allocator, shared->data);
  clv__release(allocator, shared->layout);
  clv__release(allocator, shared);
}

void clv__cpu_packs_destroy(clv__cpu_packs *packs) {
  if (packs == NULL) return;
  for (size_t i = 0; i < packs->count; ++i) destroy(packs->allocator, packs->items[i]);
  clv__release(packs->allocator, packs->items);
  pthread_mutex_destroy(&packs->lock);
  clv__release(packs->allocator, packs);
}

/* Hashes words sampled from the whole pack; FNV-1a. */
static uint64_t sample_of(const void *data, size_t size_bytes) {
  const size_t words = size_bytes / sizeof(uint32_t), step = words / SAMPLED_WORDS + 1;
  uint64_t hash = 0xcbf29ce484222325u ^ size_bytes;
  for (size_t i = 0; i < words; i += step) {
    uint32_t word;
    memcpy(&word, (const uint8_t *)data + i * sizeof word, sizeof word);
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

static bool is_like(const clv__cpu_shared *shared, uint64_t sample, const clv__dnn_layout *layout, size_t size_bytes) {
  return shared->sample == sample && shared->size_bytes == size_bytes && (shared->layout == NULL) == (layout == NULL) &&
         (layout == NULL || clv__dnn_layout_equal(shared->layout, layout));
}

/* Finds the first pack from index *at on that has this size, layout and sample and so may be equal. Counts the caller as a user
 * of the pack. Sets *at to the next index to search from. Returns NULL if there is none. */
static clv__cpu_shared *borrow(clv__cpu_packs *packs, size_t *at, uint64_t sample, const clv__dnn_layout *layout,
                               size_t size_bytes) {
  clv__cpu_shared *found = NULL;
  pthread_mutex_lock(&packs->lock);
  for (; *at < packs->count && found == NULL; ++*at) {
    if (is_like(packs->items[*at], sample, layout, size_bytes)) found = packs->items[*at];
  }
  if (found != NULL) found->users++;
  pthread_mutex_unlock(&packs->lock);
  return found;
}

static clv_status add_shared(clv__cpu_packs *packs, clv__cpu_shared *shared, clv_error *error) {
  pthread_mutex_lock(&packs->lock);
  void *items = packs->items;
  const bool room =
      clv__array_reserve(packs->allocator, &items, &packs->capacity, packs->count + 1, sizeof *packs->items, packs->count);
  packs->items = items;
  if (room) packs->items[packs->count++] = shared;
  pthread_mutex_unlock(&packs->lock);
  return room ? CLV_OK : clv__error_memory(error, sizeof *packs->items);
}

clv_status clv__cpu_packs_keep(clv__cpu_packs *packs, const clv__dnn_layout *layout, void *data, size_t size_bytes,
                               clv__cpu_shared **shared, bool *is_new, clv_error *error) {
  const uint64_t sample = sample_of(data, size_bytes);
  size_t at = 0;
  *shared = NULL;
  if (is_new != NULL) *is_new = false;
  for (clv__cpu_shared *other; (other = borrow(packs, &at, sample, layout, size_bytes)) != NULL;) {
    if (size_bytes == 0 || memcmp(other->data, data, size_bytes) == 0) {
      clv__release(packs->allocator, data);
      *shared = other;
      return CLV_OK;
    }
    clv__cpu_packs_release(packs, other);
  }
  clv__cpu_shared *made = clv__allocate_zero(packs->allocator, sizeof *made);
  if (made == NULL) {
    clv__release(packs->allocator, data);
    return clv__error_memory(error, sizeof *made);
  }
  *made = (clv__cpu_shared){.data = data, .size_bytes = size_bytes, .sample = sample, .users = 1};
  made->layout = layout != NULL ? clv__dnn_layout_clone(packs->allocator, layout) : NULL;
  clv_status status = layout != NULL && made->layout == NULL ? clv__error_memory(error, 0) : add_shared(packs, made, error);
  if (status != CLV_OK) {
    destroy(packs->allocator, made);
    return status;
  }
  if (is_new != NULL) *is_new = true;
  *shared = made;
  return CLV_OK;
}

void clv__cpu_packs_release(clv__cpu_packs *packs, clv__cpu_shared *shared) {
  if (shared == NULL) return;
  pthread_mutex_lock(&packs->lock);
  const bool last = --shared->users == 0;
  for (size_t i = 0; last && i < packs->count; ++i) {
    if (packs->items[i] != shared) continue;
    packs->items[i] = packs->items[--packs->count];
    break;
  }
  pthread_mutex_unlock(&packs->lock);
  if (last) destroy(packs->allocator, shared);
}
