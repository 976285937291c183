/* The memory that a cut needs on each device: resident weights, each once; and boundary values and streamed weights with their
 * lifetimes in steps, which share one arena per memory space. A step is a copy or a partition, in the order of execution. */
#include <string.h>

#include "base/arrange.h"
#include "split/split.h"

typedef struct counting {
  const clv__problem *problem;
  const clv__cut *cut;
  const uint16_t *streamed;
  clv__interval *slots;
  uint32_t *slot_spaces;
  uint32_t *slot_of; /* [(value, or value_count + weight) * space_count + space]: index in `slots`, plus 1 */
  uint32_t *seen;    /* by weight: bits of the devices that hold it */
  size_t count, capacity;
  uint32_t limited; /* bits of the spaces to count */
} counting;

static uint64_t alignment_of(const clv__problem *problem, uint32_t space) {
  return problem->alignments == NULL ? CLV__ALIGNMENT : problem->alignments[space];
}

static uint64_t padded(const clv__problem *problem, uint64_t bytes, uint32_t space) {
  return clv__align_up(bytes == 0 ? 1 : bytes, alignment_of(problem, space));
}

/* Extends the lifetime of a value, or of a streamed weight, in the memory space to the step. The first use begins it. */
static clv_status touch(counting *c, uint32_t index, bool is_weight, uint32_t space, uint32_t step, clv_error *error) {
  const clv__problem *problem = c->problem;
  if ((c->limited >> space & 1u) == 0) return CLV_OK;
  uint32_t *slot = &c->slot_of[((size_t)index + (is_weight ? problem->value_count : 0)) * problem->space_count + space];
  if (*slot == 0) {
    if (c->count == c->capacity) return clv__error_set(error, CLV_INTERNAL_ERROR, "more slots than uses");
    uint64_t bytes = is_weight ? problem->weight_bytes[index] : problem->value_bytes[index];
    const uint32_t *ids = is_weight ? problem->weight_ids : problem->value_ids;
    uint32_t id = ids != NULL ? ids[index] : is_weight ? problem->value_count + index : index;
    c->slot_spaces[c->count] = space;
    c->slots[c->count] = (clv__interval){.id = id, .first = step, .size_bytes = padded(problem, bytes, space)};
    *slot = (uint32_t)++c->count;
  }
  c->slots[*slot - 1].last = step;
  return CLV_OK;
}

/* Gives each hosted view of the partition the slot of its source, because its result is in the bytes of the source. */
static void rename_views(counting *c, uint32_t partition) {
  const clv__problem *problem = c->problem;
  uint32_t space = problem->spaces[c->cut->devices[partition]], spaces = problem->space_count;
  for (uint32_t i = c->cut->offsets[partition]; i < c->cut->offsets[partition + 1]; ++i) {
    uint32_t node = c->cut->nodes[i];
    uint32_t from = problem->reads[problem->read_offsets[node]], to = problem->writes[problem->write_offsets[node]];
    c->slot_of[(size_t)to * spaces + space] = c->slot_of[(size_t)from * spaces + space];
  }
}

static bool is_boundary(const counting *c, uint32_t value, uint32_t partition) {
  const clv__problem *problem = c->problem;
  if (problem->is_output[value]) return true;
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    if (c->cut->partition_of[problem->readers[i]] != partition) return true;
  }
  return false;
}

static clv_status count_weights(counting *c, uint32_t node, uint32_t device, uint32_t step, clv__memory *memory,
                                clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t space = problem->spaces[device];
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    if (c->streamed != NULL && space != 0 && (c->streamed[weight] >> device & 1u) != 0) {
      CLV__TRY(touch(c, weight, true, space, step, error));
    } else if ((c->seen[weight] >> device & 1u) == 0) {
      c->seen[weight] |= 1u << device;
      memory->weight_bytes[device] += padded(problem, problem->weight_bytes[weight], space);
    }
  }
  return CLV_OK;
}

/* Counts the weights and boundary values that a partition uses, and the most memory that it needs inside. A value that stays
 * inside needs memory from the node that computes it to its last reader; a node needs its scratch only while it is computed. */
static clv_status count_partition(counting *c, uint32_t partition, uint32_t step, clv__memory *memory, clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t device = c->cut->devices[partition], space = problem->spaces[device];
  uint64_t alive = 0, most = 0;
  for (uint32_t i = c->cut->offsets[partition]; i < c->cut->offsets[partition + 1]; ++i) {
    uint32_t node = c->cut->nodes[i];
    uint64_t ended = 0;
    CLV__TRY(count_weights(c, node, device, step, memory, error));
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t value = problem->reads[r], producer = problem->producers[value];
      if (producer == CLV__NONE || c->cut->partition_of[producer] != partition) {
        CLV__TRY(touch(c, value, false, space, step, error));
      } else if (problem->readers[problem->reader_offsets[value + 1] - 1] == node && !is_boundary(c, value, partition)) {
        ended += padded(problem, problem->value_bytes[value], space);
      }
    }
    for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
      uint32_t value = problem->writes[w];
      uint64_t bytes = padded(problem, problem->value_bytes[value], space);
      if (is_boundary(c, value, partition)) {
        CLV__TRY(touch(c, value, false, space, step, error));
        continue;
      }
      alive += bytes;
      if (problem->reader_offsets[value] == problem->reader_offsets[value + 1]) ended += bytes;
    }
    const uint64_t all = clv__sum_ns(alive, clv__scratch_bytes(problem, node, device));
    if (all > most) most = all;
    alive -= ended < alive ? ended : alive;
  }
  if (most > memory->inner_bytes[device]) memory->inner_bytes[device] = most;
  return CLV_OK;
}

static clv_status count_copy(counting *c, const clv__copy *copy, uint32_t step, clv_error *error) {
  if (!copy->is_weight) CLV__TRY(touch(c, copy->value, false, copy->from, step, error));
  return touch(c, copy->value, copy->is_weight, copy->to, step, error);
}

/* A device without a limit counts if it shares the memory of one that has a limit. */
static bool is_counted(const counting *c, uint32_t device) {
  return c->problem->limits[device].memory_bytes > 0 || (c->limited >> c->problem->spaces[device] & 1u) != 0;
}

static clv_status count_steps(counting *c, const clv__copies *copies, clv__memory *memory, clv_error *error) {
  uint32_t copy = 0, step = 0;
  for (uint32_t p = 0; p <= c->cut->count; ++p) {
    for (; copy < copies->count && copies->items[copy].before == p; ++copy) {
      CLV__TRY(count_copy(c, &copies->items[copy], step++, error));
    }
    if (p < c->cut->count && clv__cut_is_hosted(c->problem, c->cut, p))
      rename_views(c, p);
    else if (p < c->cut->count && is_counted(c, c->cut->devices[p]))
      CLV__TRY(count_partition(c, p, step, memory, error));
    ++step;
  }
  return CLV_OK;
}

/* The most bytes of the space that are alive in one step. `change` has room for two numbers per step. */
static uint64_t most_alive(const counting *c, uint32_t space, uint32_t step_count, uint64_t *change) {
  uint64_t *begin = change, *end = change + step_count + 1, alive = 0, most = 0;
  memset(change, 0, 2 * ((size_t)step_count + 1) * sizeof *change);
  for (size_t i = 0; i < c->count; ++i) {
    if (c->slot_spaces[i] != space) continue;
    begin[c->slots[i].first] += c->slots[i].size_bytes;
    end[c->slots[i].last] += c->slots[i].size_bytes;
  }
  for (uint32_t s = 0; s <= step_count; ++s) {
    alive += begin[s];
    if (alive > most) most = alive;
    alive -= end[s];
  }
  return most;
}

static clv_status arrange(counting *c, uint32_t space, clv__arena *arena, uint64_t *bytes, clv_error *error) {
  size_t count = 0, total = 0;
  clv__interval **order = clv__arena_allocate(arena, (c->count + 1) * sizeof *order);
  if (order == NULL) return clv__error_memory(error, c->count * sizeof *order);
  for (size_t i = 0; i < c->count; ++i) {
    if (c->slot_spaces[i] == space) order[count++] = &c->slots[i];
  }
  CLV__TRY(clv__intervals_arrange(order, count, arena->allocator, &total, error));
  *bytes = total;
  return CLV_OK;
}

static clv_status count_all(counting *c, const clv__copies *copies, bool is_arranged, clv__arena *arena, clv__memory *memory,
                            clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t steps = copies->count + c->cut->count + 1;
  uint64_t *change = clv__arena_allocate(arena, 2 * ((size_t)steps + 1) * sizeof *change);
  if (change == NULL) return clv__error_memory(error, 2 * (size_t)steps * sizeof *change);
  CLV__TRY(count_steps(c, copies, memory, error));
  for (uint32_t space = 1; space < problem->space_count; ++space) {
    if ((c->limited >> space & 1u) == 0) continue;
    memory->value_bytes[space] = most_alive(c, space, steps, change);
    if (is_arranged) CLV__TRY(arrange(c, space, arena, &memory->value_bytes[space], error));
    for (size_t i = 0; i < c->count; ++i) {
      if (c->slot_spaces[i] == space) memory->apart_bytes[space] += c->slots[i].size_bytes;
    }
  }
  return CLV_OK;
}

clv_status clv__memory_count(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies,
                             const uint16_t *streamed, bool is_arranged, const clv_allocator *allocator, clv__memory *memory,
                             clv_error *error) {
  clv__arena arena;
  counting c = {.problem = problem, .cut = cut, .streamed = streamed};
  *memory = (clv__memory){0};
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (problem->limits[d].memory_bytes > 0 && problem->spaces[d] != 0) c.limited |= 1u << problem->spaces[d];
  }
  clv__arena_init(&arena, allocator);
  size_t cells = ((size_t)problem->value_count + problem->weight_count) * problem->space_count;
  c.capacity = (size_t)problem->read_offsets[problem->node_count] + problem->write_offsets[problem->node_count] +
               problem->weight_offsets[problem->node_count] + 2 * (size_t)copies->count;
  if (c.capacity > cells) c.capacity = cells;
  c.slots = clv__arena_allocate(&arena, (c.capacity + 1) * sizeof *c.slots);
  c.slot_spaces = clv__arena_allocate(&arena, (c.capacity + 1) * sizeof *c.slot_spaces);
  c.slot_of = clv__arena_allocate_zero(&arena, cells, sizeof *c.slot_of);
  c.seen = clv__arena_allocate_zero(&arena, problem->weight_count, sizeof *c.seen);
  bool has_all = c.slots != NULL && c.slot_spaces != NULL && c.slot_of != NULL && c.seen != NULL;
  clv_status status =
      has_all ? count_all(&c, copies, is_arranged, &arena, memory, error) : clv__error_memory(error, cells * sizeof *c.slot_of);
  clv__arena_finish(&arena);
  return status;
}

uint64_t clv__memory_needed(const clv__problem *problem, const clv__memory *memory, const uint64_t *scratch_bytes,
                            uint32_t device) {
  uint32_t space = problem->spaces[device];
  uint64_t total = space == 0 ? 0 : memory->value_bytes[space];
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (problem->spaces[d] != space || problem->limits[d].memory_bytes == 0) continue;
    total = clv__sum_ns(total, memory->weight_bytes[d]);
    total = clv__sum_ns(
        total, clv__align_up(scratch_bytes == NULL ? memory->inner_bytes[d] : scratch_bytes[d], alignment_of(problem, space)));
  }
  return total;
}
