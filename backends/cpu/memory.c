/* Where each slot of the arena lies: lifetimes from the steps, then places, reused as soon as they are free. */
#include <stdlib.h>

#include "plan.h"

#define NEVER UINT32_MAX

static uint32_t root_of(clv__cpu_plan *plan, uint32_t slot) {
  while (plan->slots[slot].root != slot) slot = plan->slots[slot].root;
  return slot;
}

static void find_lifetimes(clv__cpu_plan *plan) {
  for (size_t i = 0; i < plan->slot_count; ++i) plan->slots[i].first = NEVER;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__cpu_step *step = &plan->steps[s];
    for (uint32_t i = 0; i < step->operand_count; ++i) {
      if (step->operands[i].slot == CLV__CPU_NONE) continue;
      const uint32_t slot = step->operands[i].slot;
      clv__cpu_slot *root = &plan->slots[root_of(plan, slot)];
      if (root->first == NEVER) root->first = s;
      root->last = s;
      if (plan->slots[slot].size_bytes > root->size_bytes) root->size_bytes = plan->slots[slot].size_bytes;
    }
  }
}

/* Lets steps that may write over their first input do so, when it is read for the last time. */
static void overlap(clv__cpu_plan *plan) {
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__cpu_step *step = &plan->steps[s];
    if (!step->may_overlap) continue;
    const uint32_t from = root_of(plan, step->operands[0].slot);
    const uint32_t to = root_of(plan, step->operands[step->input_count].slot);
    clv__cpu_slot *a = &plan->slots[from], *b = &plan->slots[to];
    bool alone = from != to && a->kind == CLV__CPU_SLOT_ARENA && b->kind == CLV__CPU_SLOT_ARENA && a->last == s &&
                 b->first == s && a->size_bytes == b->size_bytes;
    for (uint32_t i = 1; i < step->input_count && alone; ++i) alone = root_of(plan, step->operands[i].slot) != from;
    if (!alone) continue;
    b->root = from;
    a->last = b->last;
  }
}

/* Free stretches of the arena, by offset. */
typedef struct stretch {
  size_t offset, size;
} stretch;

typedef struct places {
  stretch *free;
  size_t count;
  size_t end; /* of the arena so far */
} places;

static size_t take(places *p, size_t size) {
  size_t best = p->count;
  for (size_t i = 0; i < p->count; ++i) {
    if (p->free[i].size >= size && (best == p->count || p->free[i].size < p->free[best].size)) best = i;
  }
  if (best < p->count) {
    const size_t offset = p->free[best].offset;
    p->free[best].offset += size;
    p->free[best].size -= size;
    if (p->free[best].size == 0) {
      memmove(&p->free[best], &p->free[best + 1], (p->count - best - 1) * sizeof *p->free);
      p->count--;
    }
    return offset;
  }
  if (p->count > 0 && p->free[p->count - 1].offset + p->free[p->count - 1].size == p->end) { /* grow the last free stretch */
    const size_t offset = p->free[--p->count].offset;
    p->end = offset + size;
    return offset;
  }
  p->end += size;
  return p->end - size;
}

static void give(places *p, size_t offset, size_t size) {
  size_t at = 0;
  while (at < p->count && p->free[at].offset < offset) ++at;
  const bool joins_left = at > 0 && p->free[at - 1].offset + p->free[at - 1].size == offset;
  const bool joins_right = at < p->count && offset + size == p->free[at].offset;
  if (joins_left && joins_right) {
    p->free[at - 1].size += size + p->free[at].size;
    memmove(&p->free[at], &p->free[at + 1], (p->count - at - 1) * sizeof *p->free);
    p->count--;
  } else if (joins_left) {
    p->free[at - 1].size += size;
  } else if (joins_right) {
    p->free[at].offset = offset;
    p->free[at].size += size;
  } else {
    memmove(&p->free[at + 1], &p->free[at], (p->count - at) * sizeof *p->free);
    p->free[at] = (stretch){offset, size};
    p->count++;
  }
}

static bool has_place(const clv__cpu_plan *plan, uint32_t slot) {
  const clv__cpu_slot *s = &plan->slots[slot];
  return s->kind == CLV__CPU_SLOT_ARENA && s->root == slot && s->first != NEVER;
}

/* Slots by the step where they begin (`starts`) or end: a counting sort. */
static void bucket(const clv__cpu_plan *plan, bool starts, uint32_t *offsets, uint32_t *order) {
  memset(offsets, 0, (plan->step_count + 2) * sizeof *offsets);
  for (uint32_t i = 0; i < plan->slot_count; ++i) {
    if (has_place(plan, i)) offsets[(starts ? plan->slots[i].first : plan->slots[i].last) + 2]++;
  }
  for (size_t s = 2; s < plan->step_count + 2; ++s) offsets[s] += offsets[s - 1];
  for (uint32_t i = 0; i < plan->slot_count; ++i) {
    if (has_place(plan, i)) order[offsets[(starts ? plan->slots[i].first : plan->slots[i].last) + 1]++] = i;
  }
}

static clv_status place(clv__cpu_plan *plan, clv_error *error) {
  clv__arena arena;
  clv__arena_init(&arena, plan->device->allocator);
  const size_t steps = plan->step_count;
  places p = {.free = clv__arena_allocate_zero(&arena, plan->slot_count + 2, sizeof *p.free)};
  uint32_t *starts = clv__arena_allocate_zero(&arena, steps + 2, sizeof *starts);
  uint32_t *ends = clv__arena_allocate_zero(&arena, steps + 2, sizeof *ends);
  uint32_t *by_start = clv__arena_allocate_zero(&arena, plan->slot_count, sizeof *by_start);
  uint32_t *by_end = clv__arena_allocate_zero(&arena, plan->slot_count, sizeof *by_end);
  clv_status status = CLV_OK;
  if (p.free == NULL || starts == NULL || ends == NULL || by_start == NULL || by_end == NULL) {
    status = clv__error_memory(error, plan->slot_count * sizeof *p.free);
    goto cleanup;
  }
  bucket(plan, true, starts, by_start);
  bucket(plan, false, ends, by_end);
  for (size_t s = 0; s < steps; ++s) {
    for (uint32_t i = starts[s]; i < starts[s + 1]; ++i) {
      clv__cpu_slot *slot = &plan->slots[by_start[i]];
      slot->offset_bytes = take(&p, clv__align_up(slot->size_bytes + (slot->size_bytes == 0), CLV__ALIGNMENT));
    }
    for (uint32_t i = ends[s]; i < ends[s + 1]; ++i) {
      const clv__cpu_slot *slot = &plan->slots[by_end[i]];
      give(&p, slot->offset_bytes, clv__align_up(slot->size_bytes + (slot->size_bytes == 0), CLV__ALIGNMENT));
    }
  }
  plan->memory_bytes = p.end;
cleanup:
  clv__arena_finish(&arena);
  return status;
}

clv_status clv__cpu_pass_memory(clv__cpu_plan *plan, clv_error *error) {
  find_lifetimes(plan);
  overlap(plan);
  CLV__TRY(place(plan, error));
  for (uint32_t i = 0; i < plan->slot_count; ++i) plan->slots[i].root = root_of(plan, i);
  for (size_t s = 0; s < plan->step_count; ++s) {
    if (plan->steps[s].scratch_bytes > plan->scratch_bytes) plan->scratch_bytes = plan->steps[s].scratch_bytes;
  }
  return CLV_OK;
}
