/* The subgraphs' options, the value of an assignment, and the quick mode. assign_bound.c has the search tree. See assign.h. */
#include "gnn/plan/assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

clv_status clv__assign_init(clv__assign *assign, clv__arena *arena, uint32_t device_count, const clv__pep_list *lists,
                            uint32_t count, clv_error *error) {
  size_t total = 0;
  *assign = (clv__assign){.arena = arena, .device_count = device_count, .count = count};
  uint32_t *offsets = clv__arena_allocate_zero(arena, count + 1u, sizeof *offsets);
  assign->twins = clv__arena_allocate_zero(arena, count + 1u, sizeof *assign->twins);
  for (uint32_t i = 0; i < count; ++i) total += lists[i].count;
  assign->options = clv__arena_allocate_zero(arena, total, sizeof *assign->options);
  if (offsets == NULL || assign->twins == NULL || assign->options == NULL)
    return clv__error_memory(error, total * sizeof *assign->options);
  for (uint32_t i = 0; i < count; ++i) {
    clv__option *options = &assign->options[offsets[i]];
    offsets[i + 1] = offsets[i] + lists[i].count;
    for (uint32_t o = 0; o < lists[i].count; ++o) {
      const clv__pep *pep = &lists[i].items[o];
      memcpy(options[o].load, pep->load_ns, sizeof options[o].load);
      memcpy(options[o].head, pep->head_ns, sizeof options[o].head);
      memcpy(options[o].tail, pep->tail_ns, sizeof options[o].tail);
      options[o].time = pep->time_ns;
      options[o].index = o;
      for (uint32_t d = 0; d < device_count; ++d) options[o].devices |= (pep->load_ns[d] > 0 ? 1u : 0u) << d;
    }
    assign->twins[i] = CLV__NO_ID;
    for (uint32_t k = i; k > 0 && assign->twins[i] == CLV__NO_ID; --k) {
      bool same = lists[k - 1].count == lists[i].count;
      same = same && memcmp(&assign->options[offsets[k - 1]], options, lists[i].count * sizeof *options) == 0;
      if (same) assign->twins[i] = k - 1;
    }
  }
  assign->offsets = offsets;
  return CLV_OK;
}

/* ---- The value of an assignment ---- */

typedef struct task {
  double load, head, tail;
} task;

/* Inserts in order of decreasing tail. There are so few tasks that insertion sort beats a library call. */
static void insert_task(task *tasks, uint32_t count, task made) {
  uint32_t at = count;
  for (; at > 0 && tasks[at - 1].tail < made.tail; --at) tasks[at] = tasks[at - 1];
  tasks[at] = made;
}

/* Computes the maximum, over subsets of tasks, of smallest head + loads + smallest tail. It suffices to consider subsets
 * defined by minimum values of head and tail. */
static double worst_set(task *tasks, uint32_t count) {
  double worst = 0;
  for (uint32_t i = 0; i < count; ++i) {
    double loads = 0, head = tasks[i].head;
    for (uint32_t k = 0; k < count; ++k) {
      if (tasks[k].head < head) continue;
      loads += tasks[k].load;
      worst = clv__larger(worst, head + loads + tasks[k].tail);
    }
  }
  return worst;
}

double clv__assign_value(const clv__assign *assign, const uint32_t *choices) {
  enum { SOME = 256 };
  task tasks[SOME];
  double value = 0;
  for (uint32_t d = 0; d < assign->device_count; ++d) {
    uint32_t used = 0;
    double loads = 0, head = INFINITY, tail = INFINITY;
    for (uint32_t i = 0; i < assign->count; ++i) {
      const clv__option *option = &assign->options[assign->offsets[i] + choices[i]];
      value = clv__larger(value, option->time);
      if ((option->devices >> d & 1u) == 0) continue;
      loads += option->load[d];
      head = clv__smaller(head, option->head[d]), tail = clv__smaller(tail, option->tail[d]);
      if (used == SOME) continue;
      insert_task(tasks, used++, (task){option->load[d], option->head[d], option->tail[d]});
    }
    if (used == 0) continue;
    value = clv__larger(value, loads + head + tail);
    /* Tasks beyond the first SOME are left out here, which can only lower the value. It remains a lower bound. */
    value = clv__larger(value, worst_set(tasks, used));
  }
  return value;
}

double clv__assign_largest_load(const clv__assign *assign, const uint32_t *choices, uint32_t *device) {
  double loads[CLV__PEP_DEVICES] = {0}, most = 0;
  *device = 0;
  for (uint32_t i = 0; i < assign->count; ++i) {
    for (uint32_t d = 0; d < assign->device_count; ++d) loads[d] += assign->options[assign->offsets[i] + choices[i]].load[d];
  }
  for (uint32_t d = 0; d < assign->device_count; ++d) {
    if (loads[d] > most) most = loads[d], *device = d;
  }
  return most;
}

/* ---- The quick mode ---- */

/* Finds the change of one plan on the bottleneck device that lowers the largest load most. Returns false if none lowers it. */
static bool best_move(const clv__assign *assign, const uint32_t *choices, clv__assign_move *best) {
  double loads[CLV__PEP_DEVICES] = {0};
  *best = (clv__assign_move){.subgraph = CLV__NO_ID};
  best->before_ns = clv__assign_largest_load(assign, choices, &best->bottleneck);
  best->after_ns = best->before_ns * (1 - 1e-9); /* ignore gains from rounding */
  bool found = false;
  for (uint32_t i = 0; i < assign->count; ++i) {
    for (uint32_t d = 0; d < assign->device_count; ++d) loads[d] += assign->options[assign->offsets[i] + choices[i]].load[d];
  }
  for (uint32_t i = 0; i < assign->count; ++i) {
    const clv__option *options = &assign->options[assign->offsets[i]], *now = &options[choices[i]];
    if ((now->devices >> best->bottleneck & 1u) == 0) continue;
    for (uint32_t o = 0; o < assign->offsets[i + 1] - assign->offsets[i]; ++o) {
      double most = 0;
      for (uint32_t d = 0; d < assign->device_count; ++d) most = clv__larger(most, loads[d] - now->load[d] + options[o].load[d]);
      if (most >= best->after_ns) continue;
      best->subgraph = i, best->from = choices[i], best->to = o, best->after_ns = most;
      found = true;
    }
  }
  return found;
}

void clv__assign_greedy(const clv__assign *assign, uint32_t *choices, void (*moves)(void *user, const clv__assign_move *move),
                        void *user) {
  clv__assign_move move;
  memset(choices, 0, assign->count * sizeof *choices); /* lists are sorted by time: 0 is the fastest plan */
  while (best_move(assign, choices, &move)) {
    choices[move.subgraph] = move.to;
    if (moves != NULL) moves(user, &move);
  }
}
