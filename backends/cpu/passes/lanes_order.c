/* Finds the dependencies between steps: a step depends on the steps that computed its inputs, and on those that used the memory
 * it overwrites. */
#include "lanes.h"

#define NONE UINT32_MAX

typedef struct reader {
  uint32_t step, next;
} reader;

typedef struct order {
  const clv__cpu_plan *plan;
  uint32_t *offsets, *before;
  uint32_t count;    /* of `before` */
  uint32_t *writer;  /* by root: the last step that wrote it, or NONE */
  uint32_t *readers; /* by root: the last entry of the list of its readers since then, or NONE */
  reader *list;
  uint32_t list_count;
} order;

static void add_before(order *o, uint32_t step, uint32_t other) {
  if (other != NONE && other != step) o->before[o->count++] = other;
}

static void read_slot(order *o, uint32_t s, uint32_t root) {
  add_before(o, s, o->writer[root]);
  o->list[o->list_count] = (reader){.step = s, .next = o->readers[root]};
  o->readers[root] = o->list_count++;
}

/* Each reader precedes at most one writer, the next. */
static void write_slot(order *o, uint32_t s, uint32_t root) {
  add_before(o, s, o->writer[root]);
  for (uint32_t r = o->readers[root]; r != NONE; r = o->list[r].next) add_before(o, s, o->list[r].step);
  o->readers[root] = NONE;
  o->writer[root] = s;
}

clv_status clv__cpu_order_find(const clv__cpu_plan *plan, clv__arena *arena, uint32_t **offsets, uint32_t **before,
                               clv_error *error) {
  size_t operands = 0;
  for (size_t s = 0; s < plan->step_count; ++s) operands += plan->steps[s].operand_count;
  order o = {.plan = plan};
  o.writer = clv__arena_allocate_zero(arena, plan->slot_count, sizeof *o.writer);
  o.readers = clv__arena_allocate_zero(arena, plan->slot_count, sizeof *o.readers);
  o.list = clv__arena_allocate_zero(arena, operands, sizeof *o.list);
  o.offsets = clv__arena_allocate_zero(arena, plan->step_count + 1, sizeof *o.offsets);
  o.before = clv__arena_allocate_zero(arena, 2 * operands, sizeof *o.before); /* per operand, its writer and its readers */
  if (o.writer == NULL || o.readers == NULL || o.list == NULL || o.offsets == NULL || o.before == NULL) {
    return clv__error_memory(error, operands * sizeof *o.list);
  }
  for (size_t i = 0; i < plan->slot_count; ++i) o.writer[i] = o.readers[i] = NONE;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__cpu_step *step = &plan->steps[s];
    for (uint32_t i = 0; i < step->operand_count; ++i) {
      if (step->operands[i].slot == CLV__CPU_NONE) continue;
      const uint32_t root = clv__cpu_slot_root(plan, step->operands[i].slot);
      if (plan->slots[root].kind == CLV__CPU_SLOT_CONSTANT) continue;
      if (i < step->input_count)
        read_slot(&o, s, root);
      else
        write_slot(&o, s, root);
    }
    o.offsets[s + 1] = o.count;
  }
  *offsets = o.offsets;
  *before = o.before;
  return CLV_OK;
}
