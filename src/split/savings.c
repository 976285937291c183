/* Limits savings to the times of the nodes involved, so that no partition has a negative cost. */
#include "split/problem.h"

typedef unsigned __int128 wide; /* products of two times */

/* A node that reads more values than this is fused with none of their producers. Otherwise the searches of saving_of() would take
 * time that grows with the square of a node's reads. */
enum { MOST_FUSED_READS = 64 };

static bool is_wide(const clv__problem *problem, uint32_t node) {
  return problem->read_offsets[node + 1] - problem->read_offsets[node] > MOST_FUSED_READS;
}

/* Returns the address of the saving that applies if `node` shares a partition with the producer of `value`, which it reads. */
static uint64_t *saving_of(const clv__problem *problem, uint32_t value, uint32_t node, uint32_t device, uint64_t *saving_ns) {
  uint32_t r = problem->read_offsets[node];
  while (problem->reads[r] != value) ++r;
  return &saving_ns[(size_t)r * problem->device_count + device];
}

/* Limits each saving that `node` takes part in to `budget` and, if `sum` is not 0, scales it by `budget` / `sum`. Returns the
 * sum of these savings afterwards. */
static wide visit(const clv__problem *problem, uint32_t node, uint32_t device, uint64_t budget, wide sum, uint64_t *saving_ns) {
  wide total = 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint64_t *saving = &saving_ns[(size_t)r * problem->device_count + device];
    if (*saving > budget) *saving = budget;
    if (sum != 0) *saving = (uint64_t)(*saving * (wide)budget / sum);
    total += *saving;
  }
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      if (is_wide(problem, problem->readers[i])) continue; /* clv__problem_clamp_savings() has set its savings to 0 */
      uint64_t *saving = saving_of(problem, value, problem->readers[i], device, saving_ns);
      if (*saving > budget) *saving = budget;
      if (sum != 0) *saving = (uint64_t)(*saving * (wide)budget / sum);
      total += *saving;
    }
  }
  return total;
}

void clv__problem_clamp_savings(const clv__problem *problem, uint64_t *saving_ns) {
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    if (!is_wide(problem, node)) continue;
    size_t first = (size_t)problem->read_offsets[node] * problem->device_count;
    size_t end = (size_t)problem->read_offsets[node + 1] * problem->device_count;
    for (size_t i = first; i < end; ++i) saving_ns[i] = 0;
  }
  /* One pass is enough: scaling at a node only reduces the sums at other nodes. */
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    for (uint32_t device = 0; device < problem->device_count; ++device) {
      uint64_t time_ns = clv__node_ns(problem, node, device);
      uint64_t budget = !clv__can_run(problem, node, device) ? 0
                        : time_ns > CLV__MAX_TIME_NS         ? 2 * CLV__MAX_TIME_NS
                                                             : 2 * time_ns;
      wide sum = visit(problem, node, device, budget, 0, saving_ns);
      if (sum > budget) visit(problem, node, device, budget, sum, saving_ns);
    }
  }
}
