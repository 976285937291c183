/* The device's own memory. It consists of banks: contiguous ranges of device addresses, each backed by one mapping of host
 * memory. Addresses between banks are never valid. A bank has a list of its blocks, used and free, sorted by address. Allocation
 * is first-fit. Adjacent free blocks are merged only when no block is large enough. */
#include "memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "mapping.h"

#define BANK_BYTES (UINT64_C(4) << 20)    /* minimum size of a bank */
#define BANK_GAP (UINT64_C(1) << 20)      /* invalid addresses after each bank */
#define FIRST_ADDRESS (UINT64_C(1) << 62) /* no processor has host memory here: dereferencing a device address is a fault */

typedef struct block {
  uint64_t offset; /* from the start of its bank */
  uint64_t size_bytes;
  bool used;
} block;

typedef struct bank {
  struct bank *next; /* the bank with the next higher address */
  uint64_t address;
  uint64_t size_bytes;
  clv__vnpu_mapping mapping;
  block *blocks;
  size_t count, capacity;
  size_t low;          /* all blocks before this index are in use */
  uint64_t free_bytes; /* sum over all free blocks */
  bool is_loose;       /* there may be adjacent free blocks that are not merged */
} bank;

struct clv__vnpu_space {
  struct clv__vnpu_space *next; /* the next entry of the list `table` */
  const clv_host *host;
  uint32_t users; /* number of devices that have the space open; `table_lock` guards it and `next` */
  char *name;
  bool is_host;
  bool shared;
  uint64_t asked_limit_bytes;
  uint64_t limit_bytes;
  uint32_t alignment_bytes;
  pthread_mutex_t lock; /* guards everything below */
  uint64_t used_bytes;
  uint64_t next_address;
  bank *banks;
  bool is_guarded;  /* the memory of all banks is inaccessible while `workers` is 0 */
  uint32_t workers; /* number of engines and uploads that access the memory now */
};

/* The list of all open spaces. A device finds a space that it shares with other devices of its host here, by name. A space is
 * removed when its last device is closed. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static clv__vnpu_space *table;

const char *clv__vnpu_bytes_text(uint64_t size_bytes, char text[32]) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = (double)size_bytes;
  int unit = 0;
  while (size >= 1024 && unit < 6) {
    size /= 1024;
    ++unit;
  }
  snprintf(text, 32, unit == 0 || size == (double)(int)size ? "%.0f %s" : "%.1f %s", size, units[unit]);
  return text;
}

static uint64_t physical_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 40;
}

static clv_status create(const clv_host *host, const char *name, uint64_t limit_bytes, uint32_t alignment_bytes,
                         clv__vnpu_space **out, clv_error *error) {
  size_t name_bytes = strlen(name) + 1;
  clv__vnpu_space *space = clv__allocate_zero(host->allocator, sizeof *space + name_bytes);
  if (space == NULL) return clv__error_memory(error, sizeof *space + name_bytes);
  space->host = host;
  space->users = 1;
  space->name = (char *)(space + 1);
  memcpy(space->name, name, name_bytes);
  space->is_host = strcmp(name, "host") == 0;
  space->asked_limit_bytes = limit_bytes;
  space->limit_bytes = limit_bytes != 0 ? limit_bytes : physical_bytes();
  space->alignment_bytes = alignment_bytes;
  space->next_address = FIRST_ADDRESS;
  pthread_mutex_init(&space->lock, NULL);
  *out = space;
  return CLV_OK;
}

/* Finds the open space that a new device joins. `found` is NULL if a new space must be created. Called with the table's lock
 * held. */
static clv_status find_open(const clv_host *host, const char *name, bool shared, uint64_t limit_bytes, uint32_t alignment_bytes,
                            clv__vnpu_space **found, clv_error *error) {
  *found = NULL;
  for (clv__vnpu_space *space = table; space != NULL; space = space->next) {
    if (space->host != host || strcmp(space->name, name) != 0 || (!space->shared && !shared)) continue;
    if (space->shared != shared) {
      return clv__error_set(
          error, CLV_INVALID_ARGUMENT,
          "'%s' is the name of both a shared and a private memory space: give one of the devices another 'memory_space'", name);
    }
    if (space->asked_limit_bytes != limit_bytes || space->alignment_bytes != alignment_bytes) {
      char here[32], there[32];
      return clv__error_set(
          error, CLV_INVALID_ARGUMENT,
          "memory space '%s' is open with a memory size of %s (0: no limit) and an alignment of %u bytes, not with %s and %u: "
          "devices that share it must state the same memory size and alignment",
          name, clv__vnpu_bytes_text(space->asked_limit_bytes, there), (unsigned)space->alignment_bytes,
          clv__vnpu_bytes_text(limit_bytes, here), (unsigned)alignment_bytes);
    }
    *found = space;
    return CLV_OK;
  }
  return CLV_OK;
}

clv_status clv__vnpu_space_open(const clv_host *host, const char *name, bool shared, uint64_t limit_bytes,
                                uint32_t alignment_bytes, clv__vnpu_space **out, clv_error *error) {
  clv__vnpu_space *space;
  *out = NULL;
  pthread_mutex_lock(&table_lock);
  clv_status status = find_open(host, name, shared, limit_bytes, alignment_bytes, &space, error);
  if (status == CLV_OK && space != NULL) {
    ++space->users;
  } else if (status == CLV_OK) {
    status = create(host, name, limit_bytes, alignment_bytes, &space, error);
    if (status == CLV_OK) {
      space->shared = shared;
      space->next = table;
      table = space;
    }
  }
  pthread_mutex_unlock(&table_lock);
  if (status == CLV_OK) *out = space;
  return status;
}

static void bank_destroy(clv__vnpu_space *space, bank *b) {
  clv__vnpu_mapping_close(&b->mapping);
  clv__release(space->host->allocator, b->blocks);
  clv__release(space->host->allocator, b);
}

void clv__vnpu_space_close(clv__vnpu_space *space) {
  if (space == NULL) return;
  pthread_mutex_lock(&table_lock);
  bool last = --space->users == 0;
  if (last) {
    clv__vnpu_space **link = &table;
    while (*link != space) link = &(*link)->next;
    *link = space->next;
  }
  pthread_mutex_unlock(&table_lock);
  if (!last) return;
  while (space->banks != NULL) {
    bank *b = space->banks;
    space->banks = b->next;
    bank_destroy(space, b);
  }
  pthread_mutex_destroy(&space->lock);
  clv__release(space->host->allocator, space);
}

/* ---- Access ---- */

static void shut_banks(const clv__vnpu_space *space, bool shut) {
  for (const bank *b = space->banks; b != NULL; b = b->next) clv__vnpu_mapping_shut(&b->mapping, shut);
}

static void enter_locked(clv__vnpu_space *space) {
  if (space->workers++ == 0 && space->is_guarded) shut_banks(space, false);
}

static void leave_locked(clv__vnpu_space *space) {
  if (--space->workers == 0 && space->is_guarded) shut_banks(space, true);
}

void clv__vnpu_space_guard(clv__vnpu_space *space) {
  pthread_mutex_lock(&space->lock);
  space->is_guarded = true;
  if (space->workers == 0) shut_banks(space, true);
  pthread_mutex_unlock(&space->lock);
}

void clv__vnpu_space_enter(clv__vnpu_space *space) {
  pthread_mutex_lock(&space->lock);
  enter_locked(space);
  pthread_mutex_unlock(&space->lock);
}

void clv__vnpu_space_leave(clv__vnpu_space *space) {
  pthread_mutex_lock(&space->lock);
  leave_locked(space);
  pthread_mutex_unlock(&space->lock);
}

bool clv__vnpu_space_is_host(const clv__vnpu_space *space) {
  return space->is_host;
}

uint64_t clv__vnpu_space_round(const clv__vnpu_space *space, uint64_t size_bytes) {
  uint64_t mask = space->alignment_bytes - 1;
  if (size_bytes == 0) size_bytes = 1;
  return size_bytes > UINT64_MAX - mask ? UINT64_MAX & ~mask : (size_bytes + mask) & ~mask;
}

uint64_t clv__vnpu_space_used(clv__vnpu_space *space) {
  pthread_mutex_lock(&space->lock);
  uint64_t used = space->used_bytes;
  pthread_mutex_unlock(&space->lock);
  return used;
}

/* Merges all adjacent free blocks in one pass. Merging on every free would move all later blocks each time. */
static void merge(bank *b) {
  size_t count = 0;
  for (size_t i = 0; i < b->count; ++i) {
    block *last = count > 0 ? &b->blocks[count - 1] : NULL;
    if (last != NULL && !last->used && !b->blocks[i].used) {
      last->size_bytes += b->blocks[i].size_bytes;
    } else {
      b->blocks[count++] = b->blocks[i];
    }
  }
  b->count = count;
  b->low = 0;
  b->is_loose = false;
}

static block *find_free(bank *b, uint64_t size_bytes) {
  while (b->low < b->count && b->blocks[b->low].used) ++b->low;
  for (size_t i = b->low; i < b->count; ++i) {
    if (!b->blocks[i].used && b->blocks[i].size_bytes >= size_bytes) return &b->blocks[i];
  }
  return NULL;
}

/* Allocates the first free block of the bank that is large enough. `blocks` must have room for one more, because the block may be
 * split. */
static bool allocate_in_bank(bank *b, uint64_t size_bytes, uint64_t *address) {
  block *found = find_free(b, size_bytes);
  if (found == NULL && b->is_loose) {
    merge(b);
    found = find_free(b, size_bytes);
  }
  if (found == NULL) return false;
  if (found->size_bytes > size_bytes) {
    memmove(found + 2, found + 1, (b->count - (size_t)(found - b->blocks) - 1) * sizeof *found);
    found[1] = (block){found->offset + size_bytes, found->size_bytes - size_bytes, false};
    ++b->count;
  }
  found->size_bytes = size_bytes;
  found->used = true;
  b->free_bytes -= size_bytes;
  *address = b->address + found->offset;
  memset(b->mapping.memory + found->offset, CLV__VNPU_POISON, size_bytes);
  return true;
}

/* Frees banks without used blocks. Called before a bank is added. */
static void trim(clv__vnpu_space *space) {
  for (bank **link = &space->banks; *link != NULL;) {
    bank *b = *link;
    if (b->free_bytes == b->size_bytes) {
      *link = b->next;
      bank_destroy(space, b);
    } else {
      link = &b->next;
    }
  }
}

static bank *grow(clv__vnpu_space *space, uint64_t size_bytes) {
  const clv_allocator *allocator = space->host->allocator;
  trim(space);
  uint64_t bank_bytes = size_bytes > BANK_BYTES ? size_bytes : BANK_BYTES;
  bank *b = clv__allocate_zero(allocator, sizeof *b);
  if (b == NULL) return NULL;
  void *blocks = NULL;
  if (!clv__vnpu_mapping_open(bank_bytes, space->alignment_bytes, &b->mapping) ||
      !clv__array_reserve(allocator, &blocks, &b->capacity, 2, sizeof(block), 0)) {
    bank_destroy(space, b);
    return NULL;
  }
  b->blocks = blocks;
  bank_bytes = b->mapping.size_bytes;
  b->blocks[b->count++] = (block){0, bank_bytes, false};
  b->size_bytes = b->free_bytes = bank_bytes;
  uint64_t step = space->alignment_bytes > BANK_GAP ? space->alignment_bytes : BANK_GAP;
  b->address = space->next_address;
  space->next_address += (bank_bytes + step - 1) / step * step + step;
  bank **link = &space->banks;
  while (*link != NULL) link = &(*link)->next;
  *link = b;
  return b;
}

/* Allocates in the first bank that has room, or in a new bank. `size_bytes` is already rounded. Called with the lock held. */
static bool allocate_locked(clv__vnpu_space *space, uint64_t size_bytes, uint64_t *address) {
  const clv_allocator *allocator = space->host->allocator;
  if (space->is_host) {
    void *memory = allocator->allocate(allocator->user_data, size_bytes, space->alignment_bytes);
    if (memory == NULL) return false;
    memset(memory, CLV__VNPU_POISON, size_bytes);
    *address = (uint64_t)(uintptr_t)memory;
    return true;
  }
  for (bank *b = space->banks; b != NULL; b = b->next) {
    void *blocks = b->blocks;
    if (b->free_bytes < size_bytes) continue;
    if (!clv__array_reserve(allocator, &blocks, &b->capacity, b->count + 1, sizeof(block), b->count)) return false;
    b->blocks = blocks;
    if (allocate_in_bank(b, size_bytes, address)) return true;
  }
  bank *fresh = grow(space, size_bytes);
  return fresh != NULL && allocate_in_bank(fresh, size_bytes, address);
}

clv_status clv__vnpu_space_allocate(clv__vnpu_space *space, uint64_t size_bytes, uint64_t *address, clv_error *error) {
  uint64_t rounded = clv__vnpu_space_round(space, size_bytes);
  char asked[32], used[32], limit[32];
  pthread_mutex_lock(&space->lock);
  uint64_t in_use = space->used_bytes;
  bool fits = rounded <= space->limit_bytes && in_use <= space->limit_bytes - rounded;
  enter_locked(space);
  bool done = fits && allocate_locked(space, rounded, address);
  if (done) space->used_bytes += rounded;
  leave_locked(space);
  pthread_mutex_unlock(&space->lock);
  if (done) return CLV_OK;
  clv__vnpu_bytes_text(rounded, asked);
  clv__vnpu_bytes_text(in_use, used);
  clv__vnpu_bytes_text(space->limit_bytes, limit);
  return clv__error_set(error, CLV_OUT_OF_MEMORY, "memory space '%s': %s requested, but %s of %s are in use%s", space->name,
                        asked, used, limit, fits ? ", and the host has no more memory" : "");
}

static bank *bank_of(clv__vnpu_space *space, uint64_t address) {
  bank *b = space->banks;
  while (b != NULL && (address < b->address || address - b->address >= b->size_bytes)) b = b->next;
  return b;
}

/* Index of the block that contains `offset`. */
static size_t block_at(const bank *b, uint64_t offset) {
  size_t low = 0, high = b->count;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (b->blocks[middle].offset <= offset)
      low = middle;
    else
      high = middle;
  }
  return low;
}

void clv__vnpu_space_free(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes) {
  if (address == 0) return;
  uint64_t rounded = clv__vnpu_space_round(space, size_bytes);
  pthread_mutex_lock(&space->lock);
  if (space->is_host) {
    memset((void *)(uintptr_t)address, CLV__VNPU_POISON, rounded);
    clv__release(space->host->allocator, (void *)(uintptr_t)address);
    space->used_bytes -= rounded;
  } else {
    bank *b = bank_of(space, address);
    size_t i = b != NULL ? block_at(b, address - b->address) : 0;
    if (b != NULL && b->blocks[i].used && b->blocks[i].offset == address - b->address) {
      enter_locked(space);
      space->used_bytes -= b->blocks[i].size_bytes;
      memset(b->mapping.memory + b->blocks[i].offset, CLV__VNPU_POISON, b->blocks[i].size_bytes);
      b->blocks[i].used = false;
      b->free_bytes += b->blocks[i].size_bytes;
      if (i < b->low) b->low = i;
      b->is_loose = true;
      leave_locked(space);
    }
  }
  pthread_mutex_unlock(&space->lock);
}

void *clv__vnpu_space_translate(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes) {
  if (space->is_host) return (void *)(uintptr_t)address;
  void *pointer = NULL;
  pthread_mutex_lock(&space->lock);
  bank *b = bank_of(space, address);
  if (b != NULL) {
    uint64_t offset = address - b->address;
    const block *found = &b->blocks[block_at(b, offset)];
    uint64_t inside = offset - found->offset;
    if (found->used && inside <= found->size_bytes && size_bytes <= found->size_bytes - inside)
      pointer = b->mapping.memory + offset;
  }
  pthread_mutex_unlock(&space->lock);
  return pointer;
}

void clv__vnpu_space_discard(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes) {
  pthread_mutex_lock(&space->lock);
  bool is_guarded = space->is_guarded;
  pthread_mutex_unlock(&space->lock);
  void *data = is_guarded ? clv__vnpu_space_translate(space, address, size_bytes) : NULL;
  if (data == NULL) return;
  clv__vnpu_space_enter(space);
  memset(data, CLV__VNPU_POISON, size_bytes);
  clv__vnpu_space_leave(space);
}

clv_status clv__vnpu_space_reach(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes, void **data, clv_error *error) {
  static uint64_t nothing[8]; /* the address of tensors without elements; never read or written */
  *data = nothing;
  if (size_bytes == 0) return CLV_OK;
  if (!space->is_host && address % space->alignment_bytes != 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "device address 0x%llx is not a multiple of the device's alignment of %u",
                          (unsigned long long)address, (unsigned)space->alignment_bytes);
  }
  *data = clv__vnpu_space_translate(space, address, size_bytes);
  if (*data != NULL) return CLV_OK;
  return clv__error_set(error, CLV_DEVICE_ERROR, "%llu bytes at device address 0x%llx: this memory is not allocated",
                        (unsigned long long)size_bytes, (unsigned long long)address);
}
