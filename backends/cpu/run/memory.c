/* Assigns offsets to each slot of the arena and each step's scratch. Derives lifetimes from the steps. Slots whose lifetimes do
 * not overlap can share memory. */
#include "backends/cpu/passes/variant.h"
#include "base/arrange.h"

#define NEVER UINT32_MAX

/* ---- Lifetimes. ---- */

static void find_lifetimes(clv__cpu_variant *variant) {
  for (size_t i = 0; i < variant->slot_count; ++i) variant->slots[i].first = NEVER;
  for (uint32_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    for (uint32_t i = 0; i < step->operand_count; ++i) {
      if (step->operands[i].slot == CLV__CPU_NONE) continue;
      const uint32_t slot = step->operands[i].slot;
      clv__cpu_slot *root = &variant->slots[clv__cpu_slot_root(variant, slot)];
      if (root->first == NEVER) root->first = s;
      root->last = s;
      if (variant->slots[slot].size_bytes > root->size_bytes) root->size_bytes = variant->slots[slot].size_bytes;
    }
  }
}

/* If a step can compute its output in place of its first input, and no later step uses the input's memory, stores the output
 * there. */
static void overlap(clv__cpu_variant *variant) {
  for (uint32_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    if (!step->may_overlap) continue;
    const uint32_t from = clv__cpu_slot_root(variant, step->operands[0].slot);
    const uint32_t to = clv__cpu_slot_root(variant, step->operands[step->input_count].slot);
    clv__cpu_slot *a = &variant->slots[from], *b = &variant->slots[to];
    bool alone = from != to && a->kind == CLV__CPU_SLOT_ARENA && b->kind == CLV__CPU_SLOT_ARENA && a->last == s &&
                 b->first == s && a->size_bytes == b->size_bytes;
    for (uint32_t i = 1; i < step->input_count && alone; ++i) {
      alone = step->operands[i].slot == CLV__CPU_NONE || clv__cpu_slot_root(variant, step->operands[i].slot) != from;
    }
    if (!alone) continue;
    b->root = from; /* the output takes over the memory of the input */
    a->last = b->last;
  }
}

static bool has_place(const clv__cpu_variant *variant, uint32_t slot) {
  const clv__cpu_slot *s = &variant->slots[slot];
  return s->kind == CLV__CPU_SLOT_ARENA && s->root == slot && s->first != NEVER;
}

/* ---- Offsets. ---- */

/* Collects the intervals that need an offset: the slots, then each step's scratch. */
static uint32_t collect(const clv__cpu_variant *variant, clv__interval *intervals) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < variant->slot_count; ++i) {
    const clv__cpu_slot *slot = &variant->slots[i];
    if (!has_place(variant, i)) continue;
    const size_t size_bytes = clv__align_up(slot->size_bytes + (slot->size_bytes == 0), CLV__ALIGNMENT);
    intervals[count++] = (clv__interval){.id = i, .first = slot->first, .last = slot->last, .size_bytes = size_bytes};
  }
  for (uint32_t s = 0; s < variant->step_count; ++s) {
    if (variant->steps[s].scratch_bytes == 0) continue;
    const size_t size_bytes = clv__align_up(variant->steps[s].scratch_bytes, CLV__ALIGNMENT);
    intervals[count++] =
        (clv__interval){.id = (uint32_t)variant->slot_count + s, .first = s, .last = s, .size_bytes = size_bytes};
  }
  return count;
}

/* The largest number of bytes in use at any one step: a lower bound for any assignment. `change` has step_count + 1 elements,
 * all 0. */
static size_t least(const clv__cpu_variant *variant, const clv__interval *intervals, uint32_t count, int64_t *change) {
  int64_t alive = 0, worst = 0;
  for (uint32_t i = 0; i < count; ++i) {
    change[intervals[i].first] += (int64_t)intervals[i].size_bytes;
    change[intervals[i].last + 1] -= (int64_t)intervals[i].size_bytes;
  }
  for (size_t s = 0; s < variant->step_count; ++s) {
    alive += change[s];
    if (alive > worst) worst = alive;
  }
  return (size_t)worst;
}

static clv_status place(clv__cpu_variant *variant, clv__arena *arena, clv_error *error) {
  const size_t room = variant->slot_count + variant->step_count;
  clv__interval *intervals = clv__arena_allocate_zero(arena, room, sizeof *intervals);
  clv__interval **order = clv__arena_allocate_zero(arena, room, sizeof *order);
  int64_t *change = clv__arena_allocate_zero(arena, variant->step_count + 1, sizeof *change);
  if (intervals == NULL || order == NULL || change == NULL) return clv__error_memory(error, room * sizeof *intervals);
  const uint32_t count = collect(variant, intervals);
  variant->least_memory_bytes = least(variant, intervals, count, change);
  for (uint32_t i = 0; i < count; ++i) order[i] = &intervals[i];
  CLV__TRY(clv__intervals_arrange(order, count, variant->device->allocator, &variant->memory_bytes, error));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = intervals[i].id;
    if (id < variant->slot_count)
      variant->slots[id].offset_bytes = intervals[i].offset;
    else
      variant->steps[id - variant->slot_count].scratch_offset_bytes = intervals[i].offset;
  }
  return CLV_OK;
}

clv_status clv__cpu_pass_memory(clv__cpu_variant *variant, clv_error *error) {
  clv__arena arena;
  clv__arena_init(&arena, variant->device->allocator);
  find_lifetimes(variant);
  overlap(variant);
  const clv_status status = place(variant, &arena, error);
  for (uint32_t i = 0; i < variant->slot_count && status == CLV_OK; ++i) variant->slots[i].root = clv__cpu_slot_root(variant, i);
  clv__arena_finish(&arena);
  return status;
}
