/* Every device follows the sequence, so dependencies are known in advance. One pass over the sequence visits all events in a
 * possible order. See simulate.h. */
#include "gnn/plan/simulate.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-9 /* relative tolerance of loads, which are summed in another order than in a schedule */

void clv__pep_work_of(const clv__pep *pep, clv__pep_work *work) {
  *work = (clv__pep_work){.key = pep->key, .block_count = (uint8_t)pep->block_count};
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    work->part_counts[b] = (uint8_t)pep->blocks[b].part_count;
    work->merge_ns[b] = pep->blocks[b].merge_ns;
    for (uint32_t i = 0; i < pep->blocks[b].part_count; ++i) {
      work->devices[b][i] = (uint8_t)pep->blocks[b].parts[i].device;
      work->times_ns[b][i] = pep->blocks[b].parts[i].time_ns;
    }
  }
}

/* The state of the devices and queues. */
typedef struct running {
  double free_ns[CLV__PEP_DEVICES];
  uint64_t last_key[CLV__PEP_DEVICES];
  bool used[CLV__PEP_DEVICES];
  double done_ns[CLV__PEP_BLOCKS + 1][CLV__QUEUE_DEPTH]; /* per block: when it finished the last few positions of the cluster */
  double makespan_ns;
  uint32_t run; /* the subgraph's position in its cluster */
} running;

/* Simulates the sequence for all functions below. This function is inlined so that features which only one caller needs cost
 * the other callers nothing. If `left` is not NULL, it holds each device's remaining work, and the pass stops once that work
 * cannot finish within `limit_ns`. */
static inline __attribute__((always_inline)) double pass(const clv__machine *machine, const clv__pep_work *const *sequence,
                                                         uint32_t count, double *left, double limit_ns, clv__timeline *timeline,
                                                         clv__task_time *tasks) {
  running r = {.makespan_ns = 0};
  uint32_t depth = machine->queue_depth < CLV__QUEUE_DEPTH ? machine->queue_depth : CLV__QUEUE_DEPTH, slot = 0;
  for (uint32_t turn = 0; turn < count; ++turn) {
    const clv__pep_work *work = sequence[turn];
    double ready = 0;
    r.run = turn > 0 && sequence[turn - 1]->key == work->key ? r.run + 1 : 0;
    slot = r.run == 0 || slot + 1 == depth ? 0 : slot + 1;
    if (timeline != NULL) timeline->cluster_count += r.run == 0;
    for (uint32_t b = 0; b < work->block_count; ++b) {
      double from = ready, end = 0;
      if (b + 1u < work->block_count && r.run >= depth && r.done_ns[b + 1][slot] > from) from = r.done_ns[b + 1][slot];
      for (uint32_t i = 0; i < work->part_counts[b]; ++i) {
        uint32_t d = work->devices[b][i];
        bool switches = r.used[d] && r.last_key[d] != work->key;
        double start = r.free_ns[d] + (switches ? machine->devices[d].switch_ns : 0);
        if (start < from) start = from;
        r.free_ns[d] = start + work->times_ns[b][i];
        r.last_key[d] = work->key;
        r.used[d] = true;
        if (r.free_ns[d] > end) end = r.free_ns[d];
        if (left != NULL) left[d] -= work->times_ns[b][i];
        if (left != NULL && r.free_ns[d] + left[d] > limit_ns) return INFINITY;
        if (timeline != NULL) timeline->switches += switches;
        if (timeline != NULL) timeline->busy_ns[d] += work->times_ns[b][i] + (switches ? machine->devices[d].switch_ns : 0);
        if (tasks != NULL) *tasks++ = (clv__task_time){turn, b, d, start, r.free_ns[d]};
      }
      ready = end + work->merge_ns[b];
      r.done_ns[b][slot] = ready;
    }
    if (ready > r.makespan_ns) r.makespan_ns = ready;
  }
  return r.makespan_ns;
}

double clv__simulate_time(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count) {
  return pass(machine, sequence, count, NULL, 0, NULL, NULL);
}

double clv__simulate_within(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count,
                            const double loads[CLV__PEP_DEVICES], double limit_ns) {
  double left[CLV__PEP_DEVICES];
  memcpy(left, loads, sizeof left);
  return pass(machine, sequence, count, left, limit_ns * (1 + ROUNDING), NULL, NULL);
}

void clv__simulate(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count, clv__timeline *timeline,
                   clv__task_time *tasks, uint32_t *task_count) {
  *timeline = (clv__timeline){.cluster_count = 0};
  timeline->makespan_ns = pass(machine, sequence, count, NULL, 0, timeline, tasks);
  for (uint32_t d = 0; d < machine->device_count; ++d) timeline->idle_ns[d] = timeline->makespan_ns - timeline->busy_ns[d];
  *task_count = 0;
  for (uint32_t turn = 0; turn < count; ++turn) {
    for (uint32_t b = 0; b < sequence[turn]->block_count; ++b) *task_count += sequence[turn]->part_counts[b];
  }
}
