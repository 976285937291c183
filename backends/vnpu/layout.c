/* The scratch of a static program: one walk over the instructions with the set of what is alive, to lay it out or to check it. */
#include <string.h>

#include "base/error.h"
#include "program.h"

typedef struct range {
  uint64_t offset, size_bytes;
  uint32_t value; /* CLV_NO_VALUE: a kernel's scratch */
} range;

/* What is alive, sorted by offset. */
typedef struct alive {
  const clv_allocator *allocator;
  range *items;
  size_t count, capacity;
} alive;

static uint64_t rounded(uint64_t size_bytes) {
  return clv__align_up(size_bytes, CLV__ALIGNMENT);
}

static bool insert(alive *set, range r) {
  void *items = set->items;
  if (!clv__array_reserve(set->allocator, &items, &set->capacity, set->count + 1, sizeof r, set->count)) return false;
  set->items = items;
  size_t at = set->count;
  while (at > 0 && set->items[at - 1].offset > r.offset) --at;
  memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof r);
  set->items[at] = r;
  ++set->count;
  return true;
}

/* Drops the kernel's scratch and what no later instruction needs. */
static void retire(alive *set, const clv_executable *p, uint32_t instruction) {
  size_t kept = 0;
  for (size_t i = 0; i < set->count; ++i) {
    uint32_t v = set->items[i].value;
    if (v != CLV_NO_VALUE && p->last_uses[v] > instruction) set->items[kept++] = set->items[i];
  }
  set->count = kept;
}

static uint64_t first_gap(const alive *set, uint64_t size_bytes) {
  uint64_t at = 0;
  for (size_t i = 0; i < set->count; ++i) {
    if (set->items[i].offset >= at && set->items[i].offset - at >= size_bytes) break;
    uint64_t end = set->items[i].offset + set->items[i].size_bytes;
    if (end > at) at = end;
  }
  return at;
}

static clv_status place(clv_executable *p, alive *set, uint64_t size_bytes, uint32_t value, uint64_t *offset, clv_error *error) {
  if (size_bytes > UINT64_MAX / 4 || p->scratch_bytes > UINT64_MAX / 4) {
    return clv__error_set(error, CLV_TOO_LARGE, "scratch beyond any memory");
  }
  uint64_t room = rounded(size_bytes);
  *offset = first_gap(set, room);
  if (*offset + room > p->scratch_bytes) p->scratch_bytes = *offset + room;
  return insert(set, (range){*offset, room, value}) ? CLV_OK : clv__error_memory(error, set->count * sizeof(range));
}

clv_status clv__vnpu_layout_make(clv_executable *p, clv_error *error) {
  alive set = {.allocator = p->device->allocator};
  clv_status status = CLV_OK;
  p->scratch_bytes = 0;
  for (uint32_t n = 0; n < p->node_count && status == CLV_OK; ++n) {
    clv__vnpu_instruction *instruction = &p->instructions[n];
    for (uint32_t i = 0; i < instruction->node.output_count && status == CLV_OK; ++i) {
      uint32_t v = instruction->node.outputs[i];
      if (v == CLV_NO_VALUE || p->locations[v].place != CLV__VNPU_SCRATCH) continue;
      status = place(p, &set, p->sizes[v], v, &p->locations[v].offset, error);
    }
    if (status == CLV_OK && instruction->scratch_bytes > 0) {
      status = place(p, &set, instruction->scratch_bytes, CLV_NO_VALUE, &instruction->scratch_offset, error);
    }
    retire(&set, p, n);
  }
  clv__release(set.allocator, set.items);
  return status;
}

static clv_status admit(const clv_executable *p, alive *set, uint64_t offset, uint64_t size_bytes, uint32_t value,
                        clv_error *error) {
  range r = {offset, rounded(size_bytes), value};
  if (size_bytes > UINT64_MAX / 4 || offset % CLV__ALIGNMENT != 0 || offset > p->scratch_bytes ||
      r.size_bytes > p->scratch_bytes - offset) {
    return clv__error_set(error, CLV_INVALID_MODEL, "scratch at %llu with %llu bytes does not lie inside its %llu",
                          (unsigned long long)offset, (unsigned long long)size_bytes, (unsigned long long)p->scratch_bytes);
  }
  for (size_t i = 0; i < set->count; ++i) {
    const range *other = &set->items[i];
    if (other->offset < offset + r.size_bytes && offset < other->offset + other->size_bytes) {
      return clv__error_set(error, CLV_INVALID_MODEL, "scratch at %llu overlaps what lives at %llu", (unsigned long long)offset,
                            (unsigned long long)other->offset);
    }
  }
  return insert(set, r) ? CLV_OK : clv__error_memory(error, set->count * sizeof(range));
}

clv_status clv__vnpu_layout_check(const clv_executable *p, clv_error *error) {
  alive set = {.allocator = p->device->allocator};
  clv_status status = CLV_OK;
  for (uint32_t n = 0; n < p->node_count && status == CLV_OK; ++n) {
    const clv__vnpu_instruction *instruction = &p->instructions[n];
    for (uint32_t i = 0; i < instruction->node.output_count && status == CLV_OK; ++i) {
      uint32_t v = instruction->node.outputs[i];
      if (v == CLV_NO_VALUE || p->locations[v].place != CLV__VNPU_SCRATCH) continue;
      status = admit(p, &set, p->locations[v].offset, p->sizes[v], v, error);
    }
    if (status == CLV_OK && instruction->scratch_bytes > 0) {
      status = admit(p, &set, instruction->scratch_offset, instruction->scratch_bytes, CLV_NO_VALUE, error);
    }
    if (status != CLV_OK) clv__error_prefix(error, status, "instruction %u", n);
    retire(&set, p, n);
  }
  clv__release(set.allocator, set.items);
  return status;
}
