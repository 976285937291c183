/* Decides which tasks run in parallel. Tasks are narrow (on one thread, in a lane) or wide (on all threads, with nothing
 * beside them).
 *
 * Initially, every task that may be narrow is narrow. Narrow tasks at the same level form one group: they wait for no wide tasks
 * except those that follow earlier groups. List scheduling assigns a group's tasks to lanes. The longest path of successors sets
 * their priority (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969). If a path is longer than the lanes' share of the
 * group, its heaviest task becomes wide, and all tasks are grouped again. The best of these rounds is kept, with those of its
 * groups that pay. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lanes.h"

#define NONE UINT32_MAX
#define HANDOVER_US 0.3 /* until a lane sees another lane's progress */
#define LEAST_GAIN 0.1  /* fraction of a group's time on all threads */
#define ROUNDS 12

typedef struct key {
  uint32_t level, task;
  double first; /* tasks with greater values come first */
} key;

typedef struct work {
  const clv__cpu_tasks *dag;
  const clv__cpu_team *team;
  bool *wide;
  uint32_t *level;    /* wide tasks: the group they follow */
  double *path;       /* the longest path within the group that begins with the task, including the task */
  uint32_t *next;     /* the next task on that path, or NONE */
  key *keys;          /* narrow tasks, group by group */
  uint32_t key_count; /* number of these keys */
  uint8_t *lane;
  double *begin, *end;
  bool *taken;               /* by level: whether the group pays */
  uint32_t *latest, *anchor; /* per wide task: the last group it may follow; per group: its first task in the original order */
} work;

/* ---- Groups. ---- */

static void find_levels(work *w) {
  for (uint32_t t = 0; t < w->dag->count; ++t) {
    w->level[t] = 0;
    for (uint32_t i = w->dag->offsets[t]; i < w->dag->offsets[t + 1]; ++i) {
      const uint32_t b = w->dag->before[i], level = w->level[b] + (w->wide[b] && !w->wide[t]);
      if (level > w->level[t]) w->level[t] = level;
    }
  }
}

static void find_paths(work *w) {
  for (uint32_t t = 0; t < w->dag->count; ++t) {
    w->path[t] = 0.0;
    w->next[t] = NONE;
  }
  for (uint32_t t = w->dag->count; t-- > 0;) {
    if (w->wide[t]) continue;
    w->path[t] += w->dag->tasks[t].alone_us;
    for (uint32_t i = w->dag->offsets[t]; i < w->dag->offsets[t + 1]; ++i) {
      const uint32_t b = w->dag->before[i];
      if (w->wide[b] || w->level[b] != w->level[t] || w->path[b] >= w->path[t]) continue;
      w->path[b] = w->path[t];
      w->next[b] = t;
    }
  }
}

static int by_level(const void *a, const void *b) {
  const key *x = a, *y = b;
  if (x->level != y->level) return x->level < y->level ? -1 : 1;
  if (x->first != y->first) return x->first > y->first ? -1 : 1;
  return x->task < y->task ? -1 : x->task > y->task;
}

static void find_groups(work *w) {
  find_levels(w);
  find_paths(w);
  w->key_count = 0;
  for (uint32_t t = 0; t < w->dag->count; ++t) {
    if (!w->wide[t]) w->keys[w->key_count++] = (key){.level = w->level[t], .task = t, .first = w->path[t]};
  }
  qsort(w->keys, w->key_count, sizeof *w->keys, by_level);
}

static uint32_t group_end(const work *w, uint32_t first) {
  uint32_t end = first + 1;
  while (end < w->key_count && w->keys[end].level == w->keys[first].level) ++end;
  return end;
}

/* ---- Lanes. ---- */

/* The earliest time when `task` could begin on `lane`, which is free from `free_us` on. */
static double earliest(const work *w, uint32_t task, uint32_t lane, double free_us) {
  double begin = free_us;
  for (uint32_t i = w->dag->offsets[task]; i < w->dag->offsets[task + 1]; ++i) {
    const uint32_t b = w->dag->before[i];
    if (w->wide[b] || w->level[b] != w->level[task]) continue;
    const double ready = w->end[b] + (w->lane[b] != lane ? HANDOVER_US : 0.0);
    if (ready > begin) begin = ready;
  }
  return begin;
}

/* Assigns lanes to the group's tasks. Returns the time the group takes, and the number of lanes used. */
static double fill_lanes(work *w, uint32_t first, uint32_t end, uint32_t *used) {
  double free_us[CLV__CPU_MAX_LANES] = {0}, makespan = 0.0;
  *used = 0;
  for (uint32_t k = first; k < end; ++k) {
    const uint32_t task = w->keys[k].task;
    const uint32_t most = *used < w->team->lane_count ? *used + 1 : *used; /* all empty lanes are equivalent */
    uint32_t best = 0;
    double begin = earliest(w, task, 0, free_us[0]);
    for (uint32_t l = 1; l < most; ++l) {
      const double other = earliest(w, task, l, free_us[l]);
      if (other < begin) best = l, begin = other;
    }
    w->lane[task] = (uint8_t)best;
    w->begin[task] = begin;
    w->end[task] = free_us[best] = begin + w->dag->tasks[task].alone_us;
    if (w->end[task] > makespan) makespan = w->end[task];
    if (best >= *used) *used = best + 1;
  }
  return makespan;
}

/* Computes the total time and records which groups pay. */
static double evaluate(work *w) {
  double total = 0.0;
  for (uint32_t t = 0; t < w->dag->count; ++t) {
    w->taken[t] = false;
    if (w->wide[t]) total += w->dag->tasks[t].together_us;
  }
  for (uint32_t first = 0, end; first < w->key_count; first = end) {
    double together = 0.0;
    uint32_t used;
    end = group_end(w, first);
    for (uint32_t k = first; k < end; ++k) together += w->dag->tasks[w->keys[k].task].together_us;
    const double side_by_side = fill_lanes(w, first, end, &used) + clv__cpu_region_us(w->team->threads);
    const bool pays = w->team->forced || side_by_side <= (1.0 - LEAST_GAIN) * together;
    w->taken[w->keys[first].level] = used > 1 && pays;
    total += used > 1 && pays ? side_by_side : together;
  }
  return total;
}

/* ---- Which tasks are wide. ---- */

static bool widen(work *w, uint32_t task) {
  if (w->dag->tasks[task].together_us >= w->dag->tasks[task].alone_us) return false;
  w->wide[task] = true;
  return true;
}

/* Makes tasks wide on paths that are longer than the lanes' share of the work. Returns false if there are none. */
static bool widen_paths(work *w) {
  bool changed = false;
  for (uint32_t first = 0, end; first < w->key_count; first = end) {
    double load = 0.0;
    uint32_t heaviest = NONE;
    end = group_end(w, first);
    for (uint32_t k = first; k < end; ++k) load += w->dag->tasks[w->keys[k].task].alone_us;
    const double path = w->keys[first].first;
    const uint32_t lanes = end - first < w->team->lane_count ? end - first : w->team->lane_count;
    if (end - first > 1 && path <= 1.1 * load / lanes) continue;
    const bool is_chain = path > 0.9 * load;
    for (uint32_t t = w->keys[first].task; t != NONE; t = w->next[t]) {
      const clv__cpu_task *task = &w->dag->tasks[t];
      if (is_chain)
        changed = widen(w, t) || changed;
      else if (task->together_us < task->alone_us && (heaviest == NONE || task->alone_us > w->dag->tasks[heaviest].alone_us))
        heaviest = t;
    }
    if (heaviest != NONE) changed = widen(w, heaviest) || changed;
  }
  return changed;
}

/* ---- The order. ---- */

/* Finds the latest position of each wide task: it may follow no group later than latest[]. */
static uint32_t find_latest(work *w) {
  const clv__cpu_tasks *dag = w->dag;
  uint32_t levels = 0;
  for (uint32_t t = 0; t < dag->count; ++t) w->latest[t] = w->anchor[t] = NONE;
  for (uint32_t t = dag->count; t-- > 0;) {
    if (!w->wide[t]) {
      w->anchor[w->level[t]] = t; /* ends up as the first of them */
      if (w->level[t] >= levels) levels = w->level[t] + 1;
    }
    for (uint32_t i = dag->offsets[t]; i < dag->offsets[t + 1]; ++i) {
      const uint32_t b = dag->before[i];
      if (!w->wide[b]) continue;
      const uint32_t bound = w->wide[t] ? w->latest[t] : w->level[t] - 1;
      if (bound < w->latest[b]) w->latest[b] = bound;
    }
  }
  return levels;
}

/* Places wide tasks, if allowed, after the groups that began before them in the original order. A task that follows a group
 * without depending on it thus does not move in front of it, where its results would stay alive longer. */
static void keep_order(work *w) {
  const clv__cpu_tasks *dag = w->dag;
  const uint32_t levels = find_latest(w);
  for (uint32_t t = 0; t < dag->count; ++t) {
    if (!w->wide[t]) continue;
    uint32_t level = w->level[t];
    while (level + 1 < levels && w->anchor[level + 1] < t) ++level;
    if (level > w->latest[t]) level = w->latest[t];
    for (uint32_t i = dag->offsets[t]; i < dag->offsets[t + 1]; ++i) {
      if (w->level[dag->before[i]] > level) level = w->level[dag->before[i]];
    }
    w->level[t] = level;
  }
}

typedef struct place {
  uint32_t level, task;
  bool wide;
  double begin;
} place;

static int by_place(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->level != y->level) return x->level < y->level ? -1 : 1;
  if (x->wide != y->wide) return x->wide ? 1 : -1;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->task < y->task ? -1 : x->task > y->task;
}

static void write_order(const work *w, place *places, clv__cpu_schedule *schedule) {
  const uint32_t count = w->dag->count;
  uint32_t level = NONE;
  for (uint32_t t = 0; t < count; ++t) {
    places[t] = (place){.level = w->level[t], .task = t, .wide = w->wide[t], .begin = w->wide[t] ? 0.0 : w->begin[t]};
  }
  qsort(places, count, sizeof *places, by_place);
  schedule->stretch_count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t t = places[i].task;
    schedule->order[i] = t;
    schedule->lane[t] = CLV__CPU_NO_LANE;
    schedule->stretch[t] = NONE;
    if (w->wide[t]) continue;
    if (places[i].level != level) schedule->stretch_count++;
    level = places[i].level;
    schedule->stretch[t] = schedule->stretch_count - 1;
    schedule->lane[t] = w->lane[t];
    schedule->begin[t] = w->begin[t];
    schedule->end[t] = w->end[t];
  }
}

/* ---- All of it. ---- */

static bool prepare(work *w, clv__arena *arena, clv__cpu_schedule *schedule, bool **best, place **places) {
  const uint32_t count = w->dag->count;
  w->wide = clv__arena_allocate_zero(arena, count, sizeof *w->wide);
  w->level = clv__arena_allocate_zero(arena, count, sizeof *w->level);
  w->path = clv__arena_allocate_zero(arena, count, sizeof *w->path);
  w->next = clv__arena_allocate_zero(arena, count, sizeof *w->next);
  w->keys = clv__arena_allocate_zero(arena, count, sizeof *w->keys);
  w->lane = clv__arena_allocate_zero(arena, count, sizeof *w->lane);
  w->begin = clv__arena_allocate_zero(arena, count, sizeof *w->begin);
  w->end = clv__arena_allocate_zero(arena, count, sizeof *w->end);
  w->taken = clv__arena_allocate_zero(arena, count, sizeof *w->taken);
  w->latest = clv__arena_allocate_zero(arena, count, sizeof *w->latest);
  w->anchor = clv__arena_allocate_zero(arena, count, sizeof *w->anchor);
  *best = clv__arena_allocate_zero(arena, count, sizeof **best);
  *places = clv__arena_allocate_zero(arena, count, sizeof **places);
  schedule->order = clv__arena_allocate_zero(arena, count, sizeof *schedule->order);
  schedule->lane = clv__arena_allocate_zero(arena, count, sizeof *schedule->lane);
  schedule->stretch = clv__arena_allocate_zero(arena, count, sizeof *schedule->stretch);
  schedule->begin = clv__arena_allocate_zero(arena, count, sizeof *schedule->begin);
  schedule->end = clv__arena_allocate_zero(arena, count, sizeof *schedule->end);
  return w->wide != NULL && w->level != NULL && w->path != NULL && w->next != NULL && w->keys != NULL && w->lane != NULL &&
         w->begin != NULL && w->end != NULL && w->taken != NULL && w->latest != NULL && w->anchor != NULL && *best != NULL &&
         *places != NULL && schedule->order != NULL && schedule->lane != NULL && schedule->stretch != NULL &&
         schedule->begin != NULL && schedule->end != NULL;
}

clv_status clv__cpu_schedule_make(const clv__cpu_tasks *tasks, const clv__cpu_team *team, clv__arena *arena,
                                  clv__cpu_schedule *schedule, clv_error *error) {
  work w = {.dag = tasks, .team = team};
  bool *best;
  place *places;
  double least = 0.0;
  if (!prepare(&w, arena, schedule, &best, &places)) return clv__error_memory(error, tasks->count * sizeof *places);
  for (uint32_t t = 0; t < tasks->count; ++t) w.wide[t] = !tasks->tasks[t].may_lane;
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    find_groups(&w);
    const double total = evaluate(&w);
    if (round == 0 || total < least) {
      least = total;
      for (uint32_t t = 0; t < tasks->count; ++t) best[t] = w.wide[t] || !w.taken[w.level[t]];
    }
    if (team->forced || !widen_paths(&w)) break;
  }
  /* Groups that do not pay become wide here. This moves no other task to another group, so the order among those tasks stays. */
  memcpy(w.wide, best, tasks->count * sizeof *best);
  find_groups(&w);
  (void)evaluate(&w);
  for (uint32_t t = 0; t < tasks->count; ++t) w.wide[t] = w.wide[t] || !w.taken[w.level[t]];
  find_levels(&w);
  keep_order(&w);
  write_order(&w, places, schedule);
  return CLV_OK;
}
