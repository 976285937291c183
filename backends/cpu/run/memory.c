/* Assigns offsets to each slot of the arena and each step's scratch. Derives lifetimes from the steps, then assigns offsets
 * and reuses free memory.
 *
 * Outside stretches (lanes.h), the life of a slot is an interval of steps. Within a stretch, a step that is earlier in the
 * list may complete later. Two slots share bytes only if the stretch's clocks guarantee that every use of one completes
 * before the other is first written, at any speed of the lanes. All uses of a slot follow its first writer, because they
 * depend on it. */
#include <stdlib.h>

#include "backends/cpu/passes/plan.h"
#include "base/arrange.h"

#define NEVER UINT32_MAX

typedef struct lives {
  clv__cpu_plan *plan;
  clv__arena arena;
  uint32_t lane_count; /* maximum over all stretches; 0: there are none */
  uint32_t *uses;      /* by root and lane: number of the lane's steps that must be complete, in the stretch of the last use */
} lives;

/* ---- Lanes. ---- */

static const clv__cpu_stretch *stretch_of(const clv__cpu_plan *plan, uint32_t step) {
  const clv__cpu_step *s = &plan->steps[step];
  return s->lane != CLV__CPU_NO_LANE ? &plan->stretches[s->stretch] : NULL;
}

static const uint32_t *clock_of(const clv__cpu_stretch *stretch, uint32_t step) {
  return stretch->clocks + (size_t)(step - stretch->first) * stretch->lane_count;
}

/* Records that `step` uses a slot. All earlier steps must have been recorded. */
static void note_use(const lives *l, uint32_t root, uint32_t last_before, uint32_t step) {
  const clv__cpu_stretch *stretch = stretch_of(l->plan, step);
  if (l->uses == NULL) return;
  uint32_t *uses = l->uses + (size_t)root * l->lane_count;
  const bool same = stretch != NULL && last_before != NEVER && last_before >= stretch->first;
  if (!same) memset(uses, 0, l->lane_count * sizeof *uses);
  if (stretch == NULL) return;
  const uint32_t lane = l->plan->steps[step].lane;
  uses[lane] = clock_of(stretch, step)[lane] + 1;
}

/* Whether `uses` steps of each lane are complete when `step` begins. Ignores the lane `except`. */
static bool are_over(const clv__cpu_stretch *stretch, const uint32_t *uses, uint32_t step, uint32_t except) {
  const uint32_t *clock = clock_of(stretch, step);
  for (uint32_t i = 0; i < stretch->lane_count; ++i) {
    if (i != except && uses[i] > clock[i]) return false;
  }
  return true;
}

/* ---- Lifetimes. ---- */

static void find_lifetimes(const lives *l) {
  clv__cpu_plan *plan = l->plan;
  for (size_t i = 0; i < plan->slot_count; ++i) plan->slots[i].first = NEVER;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__cpu_step *step = &plan->steps[s];
    for (uint32_t i = 0; i < step->operand_count; ++i) {
      if (step->operands[i].slot == CLV__CPU_NONE) continue;
      const uint32_t slot = step->operands[i].slot, at = clv__cpu_slot_root(plan, slot);
      clv__cpu_slot *root = &plan->slots[at];
      note_use(l, at, root->first == NEVER ? NEVER : root->last, s);
      if (root->first == NEVER) root->first = s;
      root->last = s;
      if (plan->slots[slot].size_bytes > root->size_bytes) root->size_bytes = plan->slots[slot].size_bytes;
    }
  }
}

/* Whether no step after or in parallel with `s` uses the slot `from`. */
static bool is_last_use(const lives *l, uint32_t from, uint32_t s) {
  const clv__cpu_stretch *stretch = stretch_of(l->plan, s);
  if (l->plan->slots[from].last != s) return false;
  return stretch == NULL || are_over(stretch, l->uses + (size_t)from * l->lane_count, s, l->plan->steps[s].lane);
}

/* Lets `to` continue in the memory of `from`. */
static void join(const lives *l, uint32_t from, uint32_t to) {
  clv__cpu_slot *a = &l->plan->slots[from], *b = &l->plan->slots[to];
  b->root = from;
  if (l->uses != NULL) { /* all uses of `to` are in the step where both meet, or after it */
    memcpy(l->uses + (size_t)from * l->lane_count, l->uses + (size_t)to * l->lane_count, l->lane_count * sizeof *l->uses);
  }
  a->last = b->last;
}

/* Lets steps overwrite their first input, if they support that and it is the last read. */
static void overlap(const lives *l) {
  clv__cpu_plan *plan = l->plan;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__cpu_step *step = &plan->steps[s];
    if (!step->may_overlap) continue;
    const uint32_t from = clv__cpu_slot_root(plan, step->operands[0].slot);
    const uint32_t to = clv__cpu_slot_root(plan, step->operands[step->input_count].slot);
    const clv__cpu_slot *a = &plan->slots[from], *b = &plan->slots[to];
    bool alone = from != to && a->kind == CLV__CPU_SLOT_ARENA && b->kind == CLV__CPU_SLOT_ARENA && is_last_use(l, from, s) &&
                 b->first == s && a->size_bytes == b->size_bytes;
    for (uint32_t i = 1; i < step->input_count && alone; ++i) {
      alone = step->operands[i].slot == CLV__CPU_NONE || clv__cpu_slot_root(plan, step->operands[i].slot) != from;
    }
    if (alone) join(l, from, to);
  }
}

static bool has_place(const clv__cpu_plan *plan, uint32_t slot) {
  const clv__cpu_slot *s = &plan->slots[slot];
  return s->kind == CLV__CPU_SLOT_ARENA && s->root == slot && s->first != NEVER;
}

/* ---- Places. ---- */

/* Collects the intervals to place: the slots, then each step's scratch. If the last step of an interval is in a stretch, its
 * owner states how many steps of each lane it outlasts. */
static bool collect(lives *l, clv__interval *intervals, uint32_t *count_out) {
  const clv__cpu_plan *plan = l->plan;
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->slot_count; ++i) {
    const clv__cpu_slot *slot = &plan->slots[i];
    if (!has_place(plan, i)) continue;
    const size_t size_bytes = clv__align_up(slot->size_bytes + (slot->size_bytes == 0), CLV__ALIGNMENT);
    intervals[count] = (clv__interval){.id = i, .first = slot->first, .last = slot->last, .size_bytes = size_bytes};
    if (l->uses != NULL) intervals[count].owner = l->uses + (size_t)i * l->lane_count;
    ++count;
  }
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__cpu_stretch *stretch = stretch_of(plan, s);
    if (plan->steps[s].scratch_bytes == 0) continue;
    const size_t size_bytes = clv__align_up(plan->steps[s].scratch_bytes, CLV__ALIGNMENT);
    intervals[count] = (clv__interval){.id = (uint32_t)plan->slot_count + s, .first = s, .last = s, .size_bytes = size_bytes};
    if (stretch != NULL) {
      const uint32_t lane = plan->steps[s].lane;
      uint32_t *uses = clv__arena_allocate_zero(&l->arena, l->lane_count, sizeof *uses);
      if (uses == NULL) return false;
      uses[lane] = clock_of(stretch, s)[lane] + 1;
      intervals[count].owner = uses;
    }
    ++count;
  }
  *count_out = count;
  return true;
}

/* Whether all uses of `a` are complete when `b` begins. */
static bool is_before(const clv__cpu_plan *plan, const clv__interval *a, const clv__interval *b) {
  if (a->last >= b->first) return false; /* lanes never run against the list order */
  const clv__cpu_stretch *stretch = stretch_of(plan, b->first);
  if (stretch == NULL || a->last < stretch->first) return true;
  return are_over(stretch, a->owner, b->first, CLV__CPU_NO_LANE);
}

static bool meet(const void *cookie, const clv__interval *a, const clv__interval *b) {
  return !is_before(cookie, a, b) && !is_before(cookie, b, a);
}

/* The most bytes alive at one step: a lower bound for any assignment. `change` has room for one number per step plus one, all 0.
 */
static size_t least(const clv__cpu_plan *plan, const clv__interval *intervals, uint32_t count, int64_t *change) {
  int64_t alive = 0, worst = 0;
  for (uint32_t i = 0; i < count; ++i) {
    change[intervals[i].first] += (int64_t)intervals[i].size_bytes;
    change[intervals[i].last + 1] -= (int64_t)intervals[i].size_bytes;
  }
  for (size_t s = 0; s < plan->step_count; ++s) {
    alive += change[s];
    if (alive > worst) worst = alive;
  }
  return (size_t)worst;
}

typedef struct event {
  double time;
  int64_t change;
  uint32_t step;
} event;

typedef struct moment { /* the moment of a stretch with the most bytes alive, if each step takes its estimated time */
  double time;
  int64_t alive;
} moment;

static int by_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return x->change < y->change ? -1 : x->change > y->change; /* first, events that free memory */
}

/* The time when a step begins (`end`: completes), counted in steps. A whole stretch lies within the time of its first step. */
static double time_of(const clv__cpu_plan *plan, uint32_t step, bool end) {
  const clv__cpu_stretch *stretch = stretch_of(plan, step);
  if (stretch == NULL) return step + (end ? 0.5 : 0.0);
  return stretch->first + 0.5 * (end ? stretch->end : stretch->begin)[step - stretch->first] / (stretch->span + 1.0);
}

/* The bytes alive at that moment, plus any other intervals that may coexist with all of those: a lower bound for any assignment.
 */
static size_t most_together(const clv__cpu_plan *plan, const clv__interval *intervals, uint32_t count, double time,
                            const clv__interval **together) {
  uint32_t members = 0;
  size_t total = 0;
  for (int turn = 0; turn < 2; ++turn) {
    for (uint32_t i = 0; i < count; ++i) {
      const bool alive = time_of(plan, intervals[i].first, false) <= time && time < time_of(plan, intervals[i].last, true);
      bool joins = alive == (turn == 0);
      for (uint32_t k = 0; k < members && joins; ++k) joins = meet(plan, together[k], &intervals[i]);
      if (!joins) continue;
      together[members++] = &intervals[i];
      total += intervals[i].size_bytes;
    }
  }
  return total;
}

/* Like least(), for plans with stretches. `events` has room for two per interval, `moments` for one per stretch. */
static size_t least_in_lanes(clv__cpu_plan *plan, const clv__interval *intervals, uint32_t count, event *events, moment *moments,
                             const clv__interval **together) {
  int64_t alive = 0, worst = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const clv__interval *interval = &intervals[i];
    events[2 * i] = (event){time_of(plan, interval->first, false), (int64_t)interval->size_bytes, interval->first};
    events[2 * i + 1] = (event){time_of(plan, interval->last, true), -(int64_t)interval->size_bytes, interval->last};
  }
  if (count > 0) qsort(events, 2 * (size_t)count, sizeof *events, by_time);
  for (uint32_t i = 0; i < 2 * count; ++i) {
    const event *e = &events[i];
    alive += e->change;
    if (alive > worst) {
      worst = alive;
      plan->peak_step = e->step;
    }
    if (plan->steps[e->step].lane == CLV__CPU_NO_LANE) continue;
    moment *m = &moments[plan->steps[e->step].stretch];
    if (alive > m->alive) *m = (moment){e->time, alive};
  }
  for (size_t i = 0; i < plan->stretch_count; ++i) {
    const size_t total = most_together(plan, intervals, count, moments[i].time, together);
    if ((int64_t)total <= worst) continue;
    worst = (int64_t)total;
    plan->peak_step = plan->stretches[i].first;
  }
  return (size_t)worst;
}

static clv_status place(lives *l, clv_error *error) {
  clv__cpu_plan *plan = l->plan;
  const size_t room = plan->slot_count + plan->step_count;
  uint32_t count = 0;
  clv__interval *intervals = clv__arena_allocate_zero(&l->arena, room, sizeof *intervals);
  clv__interval **order = clv__arena_allocate_zero(&l->arena, room, sizeof *order);
  int64_t *change = clv__arena_allocate_zero(&l->arena, plan->step_count + 1, sizeof *change);
  const size_t events_room = l->uses != NULL ? 2 * room : 0;
  event *events = clv__arena_allocate_zero(&l->arena, events_room, sizeof *events);
  moment *moments = clv__arena_allocate_zero(&l->arena, plan->stretch_count, sizeof *moments);
  const clv__interval **together = clv__arena_allocate_zero(&l->arena, events_room, sizeof *together);
  if (intervals == NULL || order == NULL || change == NULL || events == NULL || moments == NULL || together == NULL ||
      !collect(l, intervals, &count)) {
    return clv__error_memory(error, room * sizeof *intervals);
  }
  plan->least_memory_bytes =
      l->uses != NULL ? least_in_lanes(plan, intervals, count, events, moments, together) : least(plan, intervals, count, change);
  for (uint32_t i = 0; i < count; ++i) order[i] = &intervals[i];
  const clv_allocator *allocator = plan->device->allocator;
  CLV__TRY(l->uses != NULL ? clv__intervals_arrange_by(order, count, meet, plan, allocator, &plan->memory_bytes, error)
                           : clv__intervals_arrange(order, count, allocator, &plan->memory_bytes, error));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = intervals[i].id;
    if (id < plan->slot_count)
      plan->slots[id].offset_bytes = intervals[i].offset;
    else
      plan->steps[id - plan->slot_count].scratch_offset_bytes = intervals[i].offset;
  }
  return CLV_OK;
}

static clv_status plan_memory(lives *l, clv_error *error) {
  clv__cpu_plan *plan = l->plan;
  for (size_t i = 0; i < plan->stretch_count; ++i) {
    if (plan->stretches[i].lane_count > l->lane_count) l->lane_count = plan->stretches[i].lane_count;
  }
  if (l->lane_count > 0) {
    l->uses = clv__arena_allocate_zero(&l->arena, plan->slot_count * l->lane_count + 1, sizeof *l->uses);
    if (l->uses == NULL) return clv__error_memory(error, plan->slot_count * l->lane_count * sizeof *l->uses);
  }
  find_lifetimes(l);
  overlap(l);
  CLV__TRY(place(l, error));
  for (uint32_t i = 0; i < plan->slot_count; ++i) plan->slots[i].root = clv__cpu_slot_root(plan, i);
  return CLV_OK;
}

clv_status clv__cpu_pass_memory(clv__cpu_plan *plan, clv_error *error) {
  lives l = {.plan = plan};
  clv__arena_init(&l.arena, plan->device->allocator);
  const clv_status status = plan_memory(&l, error);
  clv__arena_finish(&l.arena);
  return status;
}
