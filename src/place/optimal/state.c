/* A placement that is changed one node at a time. It counts the readers of each value by memory space, so the price of moving a
 * node can be computed from the node's own edges, however many readers its inputs have. */
#include "place/optimal/optimal.h"

#include <string.h>

clv_status clv__state_create(const clv__problem *problem, clv__arena *arena, clv__state *state, clv_error *error) {
  size_t reads = problem->read_offsets[problem->node_count], counts = (size_t)problem->value_count * problem->space_count;
  *state = (clv__state){.problem = problem,
                        .devices = clv__arena_allocate_zero(arena, problem->node_count, sizeof *state->devices),
                        .reader_counts = clv__arena_allocate_zero(arena, counts, sizeof *state->reader_counts),
                        .reader_reads = clv__arena_allocate_zero(arena, reads, sizeof *state->reader_reads)};
  uint32_t *filled = clv__arena_allocate_zero(arena, problem->value_count, sizeof *filled);
  if (state->devices == NULL || state->reader_counts == NULL || state->reader_reads == NULL || filled == NULL) {
    return clv__error_memory(error, (reads + counts) * sizeof(uint32_t));
  }
  /* Readers are listed in ascending order, so walking the nodes meets each value's readers in the order of its list. */
  for (uint32_t r = 0; r < reads; ++r) {
    uint32_t value = problem->reads[r];
    state->reader_reads[problem->reader_offsets[value] + filled[value]++] = r;
  }
  return CLV_OK;
}

void clv__state_load(clv__state *state, const uint32_t *devices) {
  const clv__problem *problem = state->problem;
  memcpy(state->devices, devices, (size_t)problem->node_count * sizeof *devices);
  memset(state->reader_counts, 0, (size_t)problem->value_count * problem->space_count * sizeof *state->reader_counts);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t space = problem->spaces[devices[n]];
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      ++state->reader_counts[(size_t)problem->reads[r] * problem->space_count + space];
    }
  }
}

static uint32_t home_space(const clv__state *state, uint32_t value) {
  uint32_t producer = state->problem->producers[value];
  return producer == CLV__NONE ? 0 : state->problem->spaces[state->devices[producer]];
}

/* Returns the time to copy the value from memory space `home` to all its readers. */
static uint64_t transfer_ns(const clv__state *state, uint32_t value, uint32_t home) {
  const clv__problem *problem = state->problem;
  const uint32_t *counts = &state->reader_counts[(size_t)value * problem->space_count];
  bool leaves = home != 0 && problem->is_output[value];
  uint64_t time = 0;
  for (uint32_t s = 0; s < problem->space_count; ++s) {
    if (s == home || counts[s] == 0) continue;
    leaves = true;
    if (s != 0) time += clv__in_ns(problem, value, s);
  }
  if (leaves && home != 0) time += clv__out_ns(problem, value, home);
  return time;
}

/* Returns the time that the node saves on its device by fusions with its neighbours. */
static uint64_t saved_ns(const clv__state *state, uint32_t node) {
  const clv__problem *problem = state->problem;
  if (problem->saving_ns == NULL) return 0;
  uint32_t device = state->devices[node];
  uint64_t saved = 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && state->devices[producer] == device) saved += clv__saving_ns(problem, r, device);
  }
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      if (state->devices[problem->readers[i]] == device) saved += clv__saving_ns(problem, state->reader_reads[i], device);
    }
  }
  return saved;
}

int64_t clv__state_move(clv__state *state, uint32_t node, uint32_t device) {
  const clv__problem *problem = state->problem;
  uint32_t old = state->devices[node], from = problem->spaces[old], to = problem->spaces[device];
  if (old == device) return 0;
  /* Unsigned: a negative difference wraps around, and the final sum wraps back. */
  uint64_t delta = clv__node_ns(problem, node, device) - clv__node_ns(problem, node, old);
  delta += saved_ns(state, node);
  state->devices[node] = device;
  delta -= saved_ns(state, node);
  if (from == to) return (int64_t)delta;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r], home = home_space(state, value);
    uint32_t *counts = &state->reader_counts[(size_t)value * problem->space_count];
    delta -= transfer_ns(state, value, home);
    --counts[from];
    ++counts[to];
    delta += transfer_ns(state, value, home);
  }
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    delta += transfer_ns(state, problem->writes[w], to) - transfer_ns(state, problem->writes[w], from);
  }
  return (int64_t)delta;
}
