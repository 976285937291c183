/* The time of a cut, of a placement, and of a single change of a placement: sums and one walk over the steps, in integer
 * nanoseconds. Sums saturate at CLV__NO_TIME instead of overflowing. */
#include <string.h>

#include "split/split.h"

static inline uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* ---- A cut ---- */

typedef struct schedule {
  const clv__problem *problem;
  const clv__cut *cut;
  uint64_t *free_at, *used; /* by lane (one per device, then one for the copies of each memory space): the time from which it is
                               free, and the sum of its times */
  uint64_t *ready; /* [value * space_count + space]: the time from which the value is in the space; CLV__NO_TIME while it is not
                      there */
  clv__price *price;
} schedule;

/* Puts a step on its lane, not before `from`. Returns its start. */
static uint64_t occupy(schedule *s, uint32_t lane, uint64_t from, uint64_t time_ns) {
  uint64_t start = later(s->free_at[lane], from), end = clv__sum_ns(start, time_ns);
  s->free_at[lane] = end;
  s->used[lane] = clv__sum_ns(s->used[lane], time_ns);
  s->price->serial_ns = clv__sum_ns(s->price->serial_ns, time_ns);
  s->price->overlapped_ns = later(s->price->overlapped_ns, end);
  return start;
}

static clv_status run_copy(schedule *s, const clv__copies *copies, uint32_t index, uint64_t *weights_at, clv_error *error) {
  const clv__problem *problem = s->problem;
  const clv__copy *copy = &copies->items[index];
  uint32_t spaces = problem->space_count, space = copy->from == 0 ? copy->to : copy->from;
  uint32_t lane = problem->device_count + space;
  if (copy->is_weight) {
    uint64_t time_ns = problem->weight_in_ns == NULL ? 0 : problem->weight_in_ns[(size_t)copy->value * spaces + space];
    s->price->copy_ns[index] = time_ns;
    s->price->copy_start_ns[index] = occupy(s, lane, 0, time_ns);
    *weights_at = later(*weights_at, s->free_at[lane]);
    return CLV_OK;
  }
  uint64_t *ready = &s->ready[(size_t)copy->value * spaces];
  if (ready[copy->from] == CLV__NO_TIME) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "copy %u copies value %u from memory space %u, which does not contain it",
                          index, copy->value, copy->from);
  }
  uint64_t time_ns = copy->from == 0 ? clv__in_ns(problem, copy->value, space) : clv__out_ns(problem, copy->value, space);
  s->price->copy_ns[index] = time_ns;
  s->price->copy_start_ns[index] = occupy(s, lane, ready[copy->from], time_ns);
  ready[copy->to] = s->free_at[lane];
  return CLV_OK;
}

/* Makes the hosted views of the partition ready at the time when their source is, whatever their device does meanwhile. */
static void rename_views(schedule *s, uint32_t partition) {
  const clv__problem *problem = s->problem;
  const clv__cut *cut = s->cut;
  uint32_t space = problem->spaces[cut->devices[partition]], spaces = problem->space_count;
  uint64_t last = 0;
  for (uint32_t i = cut->offsets[partition]; i < cut->offsets[partition + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    uint64_t ready = s->ready[(size_t)problem->reads[problem->read_offsets[node]] * spaces + space];
    s->ready[(size_t)problem->writes[problem->write_offsets[node]] * spaces + space] = ready;
    last = later(last, ready);
  }
  s->price->partition_ns[partition] = 0;
  s->price->partition_start_ns[partition] = last;
}

/* Runs a partition, not before `from`, the time at which its streamed weights are available. */
static clv_status run_partition(schedule *s, uint32_t partition, uint64_t from, clv_error *error) {
  const clv__problem *problem = s->problem;
  const clv__cut *cut = s->cut;
  uint32_t device = cut->devices[partition], space = problem->spaces[device], spaces = problem->space_count;
  uint64_t time_ns = 0, saved_ns = 0;
  bool only_views = true;
  for (uint32_t i = cut->offsets[partition]; i < cut->offsets[partition + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    if (!clv__can_run(problem, node, device)) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "partition %u: node %u is on device %u, which does not support it",
                            partition, node, device);
    }
    time_ns = clv__sum_ns(time_ns, clv__node_ns(problem, node, device));
    only_views = only_views && (problem->flags[node] & CLV__NODE_VIEW) != 0;
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t value = problem->reads[r], producer = problem->producers[value];
      if (producer != CLV__NONE && cut->partition_of[producer] == partition) {
        saved_ns = clv__sum_ns(saved_ns, clv__saving_ns(problem, r, device));
        continue;
      }
      uint64_t ready = s->ready[(size_t)value * spaces + space];
      if (ready == CLV__NO_TIME) {
        return clv__error_set(error, CLV_INVALID_ARGUMENT,
                              "partition %u: node %u reads value %u, which is not in memory space %u", partition, node, value,
                              space);
      }
      from = later(from, ready);
    }
  }
  if (!only_views) time_ns = clv__sum_ns(time_ns, problem->launch_ns[device]);
  time_ns -= saved_ns < time_ns ? saved_ns : time_ns;
  if (clv__cut_is_hosted(problem, cut, partition)) {
    rename_views(s, partition);
    return CLV_OK;
  }
  s->price->partition_ns[partition] = time_ns;
  s->price->partition_start_ns[partition] = occupy(s, device, from, time_ns);
  for (uint32_t i = cut->offsets[partition]; i < cut->offsets[partition + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
      s->ready[(size_t)problem->writes[w] * spaces + space] = s->free_at[device];
    }
  }
  return CLV_OK;
}

static clv_status run_steps(schedule *s, const clv__copies *copies, clv_error *error) {
  uint32_t next = 0;
  for (uint32_t p = 0; p <= s->cut->count; ++p) {
    uint64_t weights_at = 0;
    for (; next < copies->count && copies->items[next].before == p; ++next) {
      CLV__TRY(run_copy(s, copies, next, &weights_at, error));
    }
    if (p < s->cut->count) CLV__TRY(run_partition(s, p, weights_at, error));
  }
  if (next == copies->count) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT,
                        "copy %u, before partition %u, is out of order: copies must be listed in the order of partitions", next,
                        copies->items[next].before);
}

clv_status clv__price_cut(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies, clv__arena *arena,
                          clv__price *price, clv_error *error) {
  const clv_allocator *allocator = arena->allocator;
  uint32_t lanes = problem->device_count + problem->space_count;
  size_t ready_bytes = (size_t)problem->value_count * problem->space_count * sizeof(uint64_t);
  clv_status status = CLV_OK;
  clv__price made = {0};
  made.partition_ns = clv__arena_allocate(arena, (size_t)cut->count * sizeof *made.partition_ns);
  made.partition_start_ns = clv__arena_allocate(arena, (size_t)cut->count * sizeof *made.partition_start_ns);
  made.copy_ns = clv__arena_allocate(arena, (size_t)copies->count * sizeof *made.copy_ns);
  made.copy_start_ns = clv__arena_allocate(arena, (size_t)copies->count * sizeof *made.copy_start_ns);
  schedule s = {problem,
                cut,
                clv__allocate_zero(allocator, lanes * sizeof *s.free_at),
                clv__allocate_zero(allocator, lanes * sizeof *s.used),
                clv__allocate(allocator, ready_bytes),
                &made};
  if (made.partition_ns == NULL || made.partition_start_ns == NULL || made.copy_ns == NULL || made.copy_start_ns == NULL ||
      s.free_at == NULL || s.used == NULL || s.ready == NULL) {
    status = clv__error_memory(error, ready_bytes);
    goto cleanup;
  }
  memset(s.ready, 0xff, ready_bytes); /* CLV__NO_TIME */
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    if (problem->producers[v] == CLV__NONE) s.ready[(size_t)v * problem->space_count] = 0;
  }
  CLV__TRY_GOTO(run_steps(&s, copies, error));
  for (uint32_t i = 0; i < lanes; ++i) made.throughput_ns = later(made.throughput_ns, s.used[i]);
  *price = made;
cleanup:
  clv__release(allocator, s.ready);
  clv__release(allocator, s.used);
  clv__release(allocator, s.free_at);
  return status;
}

/* ---- A placement ---- */

/* Returns the time to copy a value computed in memory space `home` to all memory spaces of `wanted` (bits), each once, through
 * host memory. */
static uint64_t copies_ns(const clv__problem *problem, uint32_t value, uint32_t home, uint32_t wanted) {
  uint64_t time_ns = 0;
  wanted &= ~(1u << home);
  if (wanted == 0) return 0;
  if (home != 0) time_ns = clv__out_ns(problem, value, home);
  for (wanted &= ~1u; wanted != 0; wanted &= wanted - 1) {
    time_ns = clv__sum_ns(time_ns, clv__in_ns(problem, value, (uint32_t)__builtin_ctz(wanted)));
  }
  return time_ns;
}

/* The memory spaces in which a value is read (bits). `counts`, if not NULL, saves a walk over all readers. */
static uint32_t read_in(const clv__problem *problem, const uint32_t *devices, const clv__reader_counts *counts, uint32_t value) {
  uint32_t spaces = 0;
  if (counts == NULL) {
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      spaces |= 1u << problem->spaces[devices[problem->readers[i]]];
    }
    return spaces;
  }
  const uint32_t *by_space = &counts->by_space[(size_t)value * problem->space_count];
  for (uint32_t s = 0; s < problem->space_count; ++s) spaces |= by_space[s] > 0 ? 1u << s : 0;
  return spaces;
}

/* Returns whether the value is read in memory space `space` by any node other than `node`, which reads it there. */
static bool is_read_by_others(const clv__problem *problem, const uint32_t *devices, const clv__reader_counts *counts,
                              uint32_t value, uint32_t node, uint32_t space) {
  if (counts != NULL) return counts->by_space[(size_t)value * problem->space_count + space] > 1;
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    if (problem->readers[i] != node && problem->spaces[devices[problem->readers[i]]] == space) return true;
  }
  return false;
}

/* Returns the time of all copies of a value that is computed in `home` and read in `spaces`. */
static uint64_t transfer_ns(const clv__problem *problem, uint32_t value, uint32_t home, uint32_t spaces) {
  return copies_ns(problem, value, home, spaces | (problem->is_output[value] ? 1u : 0u));
}

static uint32_t home_of(const clv__problem *problem, const uint32_t *devices, uint32_t value) {
  uint32_t producer = problem->producers[value];
  return producer == CLV__NONE ? 0 : problem->spaces[devices[producer]];
}

clv_status clv__reader_counts_make(const clv__problem *problem, const uint32_t *devices, clv__arena *arena,
                                   clv__reader_counts *counts, clv_error *error) {
  size_t reads = problem->read_offsets[problem->node_count], cells = (size_t)problem->value_count * problem->space_count;
  uint32_t *by_space = clv__arena_allocate_zero(arena, cells, sizeof *by_space);
  uint32_t *reads_of = clv__arena_allocate_zero(arena, reads, sizeof *reads_of);
  size_t filled_bytes = (size_t)problem->value_count * sizeof(uint32_t);
  uint32_t *filled = clv__allocate_zero(arena->allocator, filled_bytes);
  bool failed = by_space == NULL || reads_of == NULL || filled == NULL;
  /* Readers are listed in ascending order, so walking the nodes meets each value's readers in the order of its list. */
  for (uint32_t node = 0; node < problem->node_count && !failed; ++node) {
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t value = problem->reads[r];
      ++by_space[(size_t)value * problem->space_count + problem->spaces[devices[node]]];
      reads_of[problem->reader_offsets[value] + filled[value]++] = r;
    }
  }
  clv__release(arena->allocator, filled);
  *counts = (clv__reader_counts){by_space, reads_of};
  return failed ? clv__error_memory(error, filled_bytes) : CLV_OK;
}

clv_status clv__price_placement(const clv__problem *problem, const uint32_t *devices, uint64_t *time_ns, clv_error *error) {
  uint64_t total = 0, saved = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint32_t device = devices[node];
    if (device >= problem->device_count || !clv__can_run(problem, node, device)) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node %u is on device %u, which does not support it", node, device);
    }
    total = clv__sum_ns(total, clv__node_ns(problem, node, device));
    for (uint32_t r = problem->read_offsets[node]; problem->saving_ns != NULL && r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && devices[producer] == device) saved = clv__sum_ns(saved, clv__saving_ns(problem, r, device));
    }
  }
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    total = clv__sum_ns(total, transfer_ns(problem, v, home_of(problem, devices, v), read_in(problem, devices, NULL, v)));
  }
  *time_ns = total - (saved < total ? saved : total);
  return CLV_OK;
}

/* Returns the savings of `node` with its producers and its readers if it were on `device`. */
static uint64_t savings_ns(const clv__problem *problem, const uint32_t *devices, const clv__reader_counts *counts, uint32_t node,
                           uint32_t device) {
  uint64_t saved = 0;
  if (problem->saving_ns == NULL) return 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && devices[producer] == device) saved = clv__sum_ns(saved, clv__saving_ns(problem, r, device));
  }
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      uint32_t reader = problem->readers[i];
      if (devices[reader] != device) continue;
      uint32_t r = counts != NULL ? counts->reads[i] : problem->read_offsets[reader];
      while (problem->reads[r] != value) ++r;
      saved = clv__sum_ns(saved, clv__saving_ns(problem, r, device));
    }
  }
  return saved;
}

int64_t clv__price_move(const clv__problem *problem, const uint32_t *devices, const clv__reader_counts *counts, uint32_t node,
                        uint32_t device) {
  uint32_t from = devices[node], old = problem->spaces[from], new = problem->spaces[device];
  if (from == device) return 0;
  uint64_t before = clv__sum_ns(clv__node_ns(problem, node, from), savings_ns(problem, devices, counts, node, device));
  uint64_t after = clv__sum_ns(clv__node_ns(problem, node, device), savings_ns(problem, devices, counts, node, from));
  for (uint32_t r = problem->read_offsets[node]; old != new &&r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r], home = home_of(problem, devices, value);
    uint32_t spaces = read_in(problem, devices, counts, value), then = spaces | 1u << new;
    if (!is_read_by_others(problem, devices, counts, value, node, old)) then &= ~(1u << old);
    before = clv__sum_ns(before, transfer_ns(problem, value, home, spaces));
    after = clv__sum_ns(after, transfer_ns(problem, value, home, then));
  }
  for (uint32_t w = problem->write_offsets[node]; old != new &&w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w], spaces = read_in(problem, devices, counts, value);
    before = clv__sum_ns(before, transfer_ns(problem, value, old, spaces));
    after = clv__sum_ns(after, transfer_ns(problem, value, new, spaces));
  }
  if (after >= before) return after - before > INT64_MAX ? INT64_MAX : (int64_t)(after - before);
  return before - after > INT64_MAX ? INT64_MIN : -(int64_t)(before - after);
}
