/* See memory_pool.h. Each memory space has a shelf of blocks sorted by size. Allocating a block also reserves the array entry
 * that its return needs, so clv__memory_pool_free() cannot fail. Backends are called without the pool's lock. */
#include "device/memory_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The blocks returned to a space: smallest first; blocks of equal size in the order of their return. */
typedef struct shelf {
  clv__memory_block *kept;
  size_t count, capacity, given_out; /* capacity >= count + given_out */
  clv__memory_pool_counters counters;
} shelf;

/* Host memory that a lost device may still write to until it is closed. */
typedef struct abandoned {
  const clv_allocator *allocator;
  void **items;
  size_t count, capacity;
} abandoned;

typedef struct pool {
  clv_devices *devices;
  const clv_allocator *allocator;
  pthread_mutex_t lock; /* protects everything below */
  uint64_t generation;
  uint64_t lost_at[CLV__MAX_DEVICES]; /* by device: `generation` at the time when its loss was noticed; 0: not lost */
  shelf shelves[CLV__MAX_DEVICES + 1];
  abandoned *abandoned;
  clv__memory_block *suspect; /* buffers of other devices that a lost device may still write to */
  size_t suspect_count, suspect_capacity;
} pool;

static bool is_lost(const pool *p, uint32_t device) {
  return device != CLV__NO_ID && clv__device_is_lost(&p->devices->items[device]);
}

/* Releases a block's memory. Call it without the pool's lock, except for memory of the allocator. Memory of a lost device is not
 * released: closing the device does that. */
static void release_block(const pool *p, const clv__memory_block *block) {
  if (block->device == CLV__NO_ID) {
    clv__release(p->allocator, block->host);
  } else {
    const clv__device *device = &p->devices->items[block->device];
    device->backend->buffer_free(device->handle, block->buffer);
  }
}

/* ---- Create and destroy ---- */

static void abandoned_finish(void *self) {
  abandoned *g = self;
  const clv_allocator *allocator = g->allocator;
  for (size_t i = 0; i < g->count; ++i) clv__release(allocator, g->items[i]);
  clv__release(allocator, g->items);
  clv__release(allocator, g);
}

static void pool_finish(void *self) {
  pool *p = self;
  for (uint32_t s = 0; s <= CLV__MAX_DEVICES; ++s) {
    for (size_t i = 0; i < p->shelves[s].count; ++i) release_block(p, &p->shelves[s].kept[i]);
    clv__release(p->allocator, p->shelves[s].kept);
  }
  for (size_t i = 0; i < p->suspect_count; ++i) release_block(p, &p->suspect[i]);
  clv__release(p->allocator, p->suspect);
  pthread_mutex_destroy(&p->lock);
  clv__release(p->allocator, p);
}

static clv_status pool_create(clv_devices *devices, pool **out, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  pool *p = clv__allocate_zero(allocator, sizeof *p);
  abandoned *g = clv__allocate_zero(allocator, sizeof *g);
  *out = NULL;
  if (p == NULL || g == NULL) {
    clv__release(allocator, g);
    clv__release(allocator, p);
    return clv__error_memory(error, sizeof *p);
  }
  p->devices = devices;
  p->allocator = g->allocator = allocator;
  p->abandoned = g;
  pthread_mutex_init(&p->lock, NULL);
  for (uint32_t d = devices->count; d-- > 0;) {
    if (devices->items[d].space == CLV__SPACE_HOST) continue;
    p->shelves[devices->items[d].space].counters.limit_bytes = devices->items[d].info.memory_limit_bytes;
  }
  *out = p;
  return CLV_OK;
}

/* Does not take the devices' lock: threads of devices also allocate and must not wait for it. */
static pool *pool_of(clv_devices *devices) {
  return __atomic_load_n(&devices->attachments[CLV__ATTACHED_MEMORY].self, __ATOMIC_ACQUIRE);
}

static clv_status pool_get(clv_devices *devices, pool **out, clv_error *error) {
  clv__attachment *attachment = &devices->attachments[CLV__ATTACHED_MEMORY];
  *out = pool_of(devices);
  if (*out != NULL) return CLV_OK;
  void *none = NULL;
  CLV__TRY(pool_create(devices, out, error));
  __atomic_store_n(&attachment->finish, pool_finish, __ATOMIC_RELAXED);
  if (__atomic_compare_exchange_n(&attachment->self, &none, *out, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    devices->attachments[CLV__ATTACHED_ABANDONED] = (clv__attachment){(*out)->abandoned, abandoned_finish};
  } else { /* another thread created it first */
    abandoned_finish((*out)->abandoned);
    pool_finish(*out);
    *out = none;
  }
  return CLV_OK;
}

/* ---- Shelves ---- */

static void shelf_insert(shelf *s, const clv__memory_block *block) {
  size_t at = s->count++;
  for (; at > 0 && s->kept[at - 1].size_bytes > block->size_bytes; --at) s->kept[at] = s->kept[at - 1];
  s->kept[at] = *block;
  s->counters.kept_bytes += block->size_bytes;
}

static clv__memory_block shelf_remove(shelf *s, size_t at) {
  clv__memory_block block = s->kept[at];
  memmove(&s->kept[at], &s->kept[at + 1], (--s->count - at) * sizeof *s->kept);
  s->counters.kept_bytes -= block.size_bytes;
  return block;
}

/* Finds the smallest kept block of the device with at least `size_bytes`, but not more than about twice that; among equal
 * sizes, the one returned last. */
static bool shelf_find(const shelf *s, uint32_t device, uint64_t size_bytes, size_t *found) {
  size_t low = 0, high = s->count;
  bool any = false;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->kept[middle].size_bytes < size_bytes)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < s->count && s->kept[low].size_bytes / 2 <= size_bytes; ++low) {
    if (s->kept[low].device != device) continue;
    if (any && s->kept[low].size_bytes > s->kept[*found].size_bytes) break;
    any = true;
    *found = low;
  }
  return any;
}

/* The block that was allocated longest ago. */
static size_t shelf_oldest(const shelf *s) {
  size_t oldest = 0;
  for (size_t i = 1; i < s->count; ++i) {
    if (s->kept[i].generation < s->kept[oldest].generation) oldest = i;
  }
  return oldest;
}

/* Frees the kept blocks one by one. Called with the lock held; releases the lock while it frees a block. */
static void shelf_clear(pool *p, shelf *s) {
  while (s->count > 0) {
    clv__memory_block block = shelf_remove(s, s->count - 1);
    pthread_mutex_unlock(&p->lock);
    release_block(p, &block);
    pthread_mutex_lock(&p->lock);
  }
}

/* ---- Lost devices ---- */

static void notice_lost(pool *p) {
  for (uint32_t d = 0; d < p->devices->count; ++d) {
    if (p->lost_at[d] == 0 && is_lost(p, d)) p->lost_at[d] = p->generation;
  }
}

/* Returns whether a lost device may still write to the block: it can access the block's memory, and the block was allocated
 * before the loss was noticed. */
static bool is_suspect(const pool *p, const clv__memory_block *block) {
  for (uint32_t d = 0; d < p->devices->count; ++d) {
    if (block->generation > p->lost_at[d]) continue;
    if (block->space == CLV__SPACE_HOST || block->space == p->devices->items[d].space) return true;
  }
  return false;
}

/* ---- Allocate ---- */

/* Reserves the array entries that are needed to keep or abandon the block when it is returned. */
static bool reserve(pool *p, shelf *s, uint32_t device) {
  if (!clv__array_reserve(p->allocator, (void **)&s->kept, &s->capacity, s->count + s->given_out + 1, sizeof *s->kept, s->count))
    return false;
  if (device == CLV__NO_ID) {
    return clv__array_reserve(p->allocator, (void **)&p->abandoned->items, &p->abandoned->capacity,
                              p->abandoned->count + s->given_out + 1, sizeof *p->abandoned->items, p->abandoned->count);
  }
  size_t given_out = 1;
  for (uint32_t k = 0; k <= CLV__MAX_DEVICES; ++k) given_out += p->shelves[k].given_out;
  return clv__array_reserve(p->allocator, (void **)&p->suspect, &p->suspect_capacity, p->suspect_count + given_out,
                            sizeof *p->suspect, p->suspect_count);
}

static void count_taken(shelf *s, uint64_t size_bytes, bool is_reused) {
  ++s->counters.taken;
  s->counters.reused += is_reused;
  s->counters.in_use_bytes += size_bytes;
  if (s->counters.in_use_bytes > s->counters.peak_bytes) s->counters.peak_bytes = s->counters.in_use_bytes;
}

/* Allocates new memory; the lock is not held. */
static clv_status allocate_block(const pool *p, clv__memory_block *block, clv_error *error) {
  if (block->device == CLV__NO_ID) {
    size_t alignment = clv__devices_alignment(p->devices, CLV__SPACE_HOST);
    block->host = p->allocator->allocate(p->allocator->user_data, (size_t)block->size_bytes, alignment);
    return block->host == NULL ? clv__error_memory(error, (size_t)block->size_bytes) : CLV_OK;
  }
  const clv__device *device = &p->devices->items[block->device];
  clv_status status = CLV__CALL(device, error, buffer_alloc, block->size_bytes, &block->buffer);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", device->name);
  block->host = device->backend->buffer_host_pointer(device->handle, block->buffer);
  return CLV_OK;
}

/* Drops the kept blocks of a lost device; the lock is held. */
static void forget_kept(shelf *s, uint32_t device) {
  for (size_t i = s->count; i-- > 0;) {
    if (s->kept[i].device == device) (void)shelf_remove(s, i);
  }
}

static clv_status refuse(const shelf *s, const clv__memory_block *block, uint64_t freed_bytes, clv_error *error) {
  char limit[48] = "";
  if (s->counters.limit_bytes > 0) snprintf(limit, sizeof limit, " of at most %" PRIu64, s->counters.limit_bytes);
  return clv__error_prefix(error, CLV_OUT_OF_MEMORY,
                           "cannot allocate %" PRIu64 " bytes (%" PRIu64 " bytes%s are in use; freeing %" PRIu64
                           " unused bytes did not help)",
                           block->size_bytes, s->counters.in_use_bytes, limit, freed_bytes);
}

/* Allocates new memory for a block whose size, space and device are set. If the device is out of memory, frees the kept blocks
 * and tries again. */
static clv_status take_new(pool *p, shelf *s, clv__memory_block *block, clv_error *error) {
  clv_status status = allocate_block(p, block, error);
  if (status != CLV_OUT_OF_MEMORY) return status;
  pthread_mutex_lock(&p->lock);
  uint64_t freed = s->counters.kept_bytes;
  if (freed > 0) shelf_clear(p, s);
  pthread_mutex_unlock(&p->lock);
  if (freed > 0) status = allocate_block(p, block, error);
  if (status != CLV_OUT_OF_MEMORY) return status;
  pthread_mutex_lock(&p->lock);
  status = refuse(s, block, freed, error);
  pthread_mutex_unlock(&p->lock);
  return status;
}

clv_status clv__memory_pool_allocate(clv_devices *devices, uint32_t device, uint64_t size_bytes, clv__memory_block *out,
                                     clv_error *error) {
  pool *p;
  *out = (clv__memory_block){0};
  CLV__TRY(pool_get(devices, &p, error));
  if (size_bytes > UINT64_MAX / 4) return clv__error_memory(error, SIZE_MAX);
  clv__memory_block block = {.size_bytes = clv__align_up(size_bytes == 0 ? 1 : size_bytes, CLV__ALIGNMENT),
                             .space = device == CLV__NO_ID ? CLV__SPACE_HOST : devices->items[device].space,
                             .device = device};
  shelf *s = &p->shelves[block.space];
  size_t found;
  pthread_mutex_lock(&p->lock);
  notice_lost(p);
  if (is_lost(p, device)) {
    forget_kept(s, device);
    pthread_mutex_unlock(&p->lock);
    return clv__device_check(&devices->items[device], error);
  }
  if (!reserve(p, s, device)) {
    pthread_mutex_unlock(&p->lock);
    return clv__error_memory(error, sizeof block);
  }
  bool is_reused = shelf_find(s, device, block.size_bytes, &found);
  if (is_reused) block = shelf_remove(s, found);
  block.generation = ++p->generation;
  ++s->given_out;
  clv_status status = CLV_OK;
  if (!is_reused) {
    pthread_mutex_unlock(&p->lock);
    status = take_new(p, s, &block, error);
    pthread_mutex_lock(&p->lock);
  }
  if (status == CLV_OK) {
    count_taken(s, block.size_bytes, is_reused);
    *out = block;
  } else {
    --s->given_out;
  }
  pthread_mutex_unlock(&p->lock);
  return status;
}

/* ---- Free ---- */

void clv__memory_pool_free(clv_devices *devices, clv__memory_block *given) {
  clv__memory_block block = *given, oldest = {0};
  *given = (clv__memory_block){0};
  if (block.generation == 0) return;
  pool *p = pool_of(devices); /* the pool exists because the block came from it */
  shelf *s = &p->shelves[block.space];
  pthread_mutex_lock(&p->lock);
  notice_lost(p);
  --s->given_out;
  s->counters.in_use_bytes -= block.size_bytes;
  if (is_lost(p, block.device)) {
    forget_kept(s, block.device);
  } else if (!is_suspect(p, &block)) {
    shelf_insert(s, &block);
  } else if (block.device == CLV__NO_ID) {
    p->abandoned->items[p->abandoned->count++] = block.host;
  } else {
    p->suspect[p->suspect_count++] = block;
  }
  /* Frees the oldest blocks, whose sizes are probably no longer requested. */
  while (s->counters.kept_bytes > s->counters.peak_bytes) {
    oldest = shelf_remove(s, shelf_oldest(s));
    pthread_mutex_unlock(&p->lock);
    release_block(p, &oldest);
    pthread_mutex_lock(&p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

void clv__memory_pool_trim(clv_devices *devices) {
  pool *p = pool_of(devices);
  if (p == NULL) return;
  pthread_mutex_lock(&p->lock);
  for (uint32_t s = 0; s < devices->space_count; ++s) shelf_clear(p, &p->shelves[s]);
  pthread_mutex_unlock(&p->lock);
}

void clv__memory_pool_counters_get(clv_devices *devices, uint32_t space, clv__memory_pool_counters *counters) {
  pool *p = pool_of(devices);
  *counters = (clv__memory_pool_counters){0};
  if (p == NULL || space >= devices->space_count) return;
  pthread_mutex_lock(&p->lock);
  *counters = p->shelves[space].counters;
  pthread_mutex_unlock(&p->lock);
}
