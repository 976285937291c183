/* The pass that finds stretches. It divides the steps into regions between the steps that all dependencies pass through, and
 * schedules each region separately. If the plan's memory would grow by more than a few percent, the region with the most bytes
 * alive at once is given up. */
#include "lanes.h"
#include <math.h>
#include "base/arrange.h"

#define NONE UINT32_MAX
#define MOST_GROWTH 0.03 /* of the instance's memory */
#define MOST_OVER 0.05   /* memory above the lower bound, unless it was that far above without lanes */
#define TRIALS 4         /* memory plans to try before all regions are given up */

typedef struct region {
  uint32_t first, count; /* steps */
  clv__cpu_schedule schedule;
  bool dropped;
} region;

typedef struct pass {
  clv__cpu_plan *plan;
  clv__cpu_team team;
  clv__arena arena;
  uint32_t *offsets, *before; /* the dependencies of the steps (lanes_order.c) */
  clv__cpu_task *tasks;
  clv__dnn_primitive **again; /* by step: its primitive for one thread; NULL: the existing one serves, or none was created */
  bool *made;                 /* by step: whether `again` is known */
  region *regions;
  uint32_t region_count;
} pass;

/* ---- Regions. ---- */

/* Marks the steps that depend on all earlier steps and that all later steps depend on. */
static bool find_passages(pass *p, bool *passage) {
  const uint32_t count = (uint32_t)p->plan->step_count;
  uint32_t *first_after = clv__arena_allocate_zero(&p->arena, count, sizeof *first_after);
  uint32_t *last_before = clv__arena_allocate_zero(&p->arena, count, sizeof *last_before); /* plus 1 */
  if (first_after == NULL || last_before == NULL) return false;
  for (uint32_t s = 0; s < count; ++s) first_after[s] = NONE;
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t i = p->offsets[s]; i < p->offsets[s + 1]; ++i) {
      const uint32_t b = p->before[i];
      if (b + 1 > last_before[s]) last_before[s] = b + 1;
      if (first_after[b] == NONE) first_after[b] = s;
    }
  }
  uint32_t latest = 0, earliest = NONE;
  for (uint32_t s = 0; s < count; ++s) { /* each step before s has a dependent up to s, and so on up to s itself */
    passage[s] = latest <= s;
    if (first_after[s] > latest) latest = first_after[s];
  }
  for (uint32_t s = count; s-- > 0;) {
    passage[s] = passage[s] && earliest > s;
    if (last_before[s] < earliest) earliest = last_before[s];
  }
  return true;
}

/* Extracts the dependencies within a region. */
static bool cut(pass *p, const region *r, clv__cpu_tasks *tasks) {
  const size_t most = p->offsets[r->first + r->count] - p->offsets[r->first];
  uint32_t *offsets = clv__arena_allocate_zero(&p->arena, (size_t)r->count + 1, sizeof *offsets);
  uint32_t *before = clv__arena_allocate_zero(&p->arena, most + 1, sizeof *before);
  if (offsets == NULL || before == NULL) return false;
  uint32_t at = 0;
  for (uint32_t t = 0; t < r->count; ++t) {
    for (uint32_t i = p->offsets[r->first + t]; i < p->offsets[r->first + t + 1]; ++i) {
      if (p->before[i] >= r->first) before[at++] = p->before[i] - r->first;
    }
    offsets[t + 1] = at;
  }
  *tasks = (clv__cpu_tasks){.tasks = p->tasks + r->first, .count = r->count, .offsets = offsets, .before = before};
  return true;
}

/* Creates the primitives of the region's lanes for one thread. If one cannot be created, takes its step out of the lanes and sets
 * *all to false. */
static clv_status make_primitives(pass *p, const region *r, bool *all, clv_error *error) {
  clv_status status = CLV_OK;
  *all = true;
  const int threads = clv__cpu_threads_enter_one();
  for (uint32_t t = 0; t < r->count && status == CLV_OK; ++t) {
    const uint32_t s = r->first + t;
    const clv__cpu_step *step = &p->plan->steps[s];
    if (r->schedule.lane[t] == CLV__CPU_NO_LANE || step->kind != CLV__CPU_STEP_PRIMITIVE || p->made[s]) continue;
    status = clv__dnn_primitive_again(p->plan->device->dnn, step->primitive, &p->plan->arena, &p->again[s], error);
    p->made[s] = status == CLV_OK;
    if (status != CLV_NOT_SUPPORTED) continue;
    status = CLV_OK;
    p->tasks[s].may_lane = *all = false;
  }
  clv__cpu_threads_leave_one(threads);
  return status;
}

static clv_status schedule_region(pass *p, uint32_t first, uint32_t count, clv_error *error) {
  region made = {.first = first, .count = count};
  clv__cpu_tasks tasks;
  bool all = false;
  if (!cut(p, &made, &tasks)) return clv__error_memory(error, count * sizeof(uint32_t));
  while (!all) { /* each round removes a task from the lanes */
    CLV__TRY(clv__cpu_schedule_make(&tasks, &p->team, &p->arena, &made.schedule, error));
    if (made.schedule.stretch_count == 0) return CLV_OK;
    CLV__TRY(make_primitives(p, &made, &all, error));
  }
  p->regions[p->region_count++] = made;
  return CLV_OK;
}

static clv_status find_regions(pass *p, clv_error *error) {
  const uint32_t count = (uint32_t)p->plan->step_count;
  bool *passage = clv__arena_allocate_zero(&p->arena, count, sizeof *passage);
  p->regions = clv__arena_allocate_zero(&p->arena, (size_t)count / 2 + 1, sizeof *p->regions);
  if (passage == NULL || p->regions == NULL || !find_passages(p, passage))
    return clv__error_memory(error, count * sizeof(region));
  for (uint32_t s = 0; s < count; ++s) {
    clv__cpu_task_estimate(&p->plan->steps[s], p->team.threads, &p->tasks[s]);
  }
  for (uint32_t first = 0; first < count;) {
    uint32_t end = first;
    while (end < count && !passage[end]) ++end;
    if (end - first > 1) CLV__TRY(schedule_region(p, first, end - first, error));
    first = end + 1;
  }
  return CLV_OK;
}

/* ---- Stretches of the plan. ---- */

/* Writes the clocks and waits of a stretch whose steps are in place. `places` maps each step of the plan to its new position. */
static clv_status write_waits(pass *p, const region *r, clv__cpu_stretch *stretch, const uint32_t *places, clv_error *error) {
  clv__cpu_plan *plan = p->plan;
  size_t room = 0;
  uint32_t at = 0;
  for (uint32_t i = 0; i < r->count; ++i) {
    const uint32_t s = r->first + i;
    if (places[s] >= stretch->first && places[s] < stretch->first + stretch->count) room += p->offsets[s + 1] - p->offsets[s];
  }
  uint32_t *offsets = clv__arena_allocate_zero(&p->arena, (size_t)stretch->count + 1, sizeof *offsets);
  uint32_t *before = clv__arena_allocate_zero(&p->arena, room + 1, sizeof *before);
  uint32_t *wait_counts = clv__arena_allocate_zero(&p->arena, stretch->count, sizeof *wait_counts);
  uint8_t *lanes = clv__arena_allocate_zero(&p->arena, stretch->count, sizeof *lanes);
  clv__cpu_wait **waits = clv__arena_allocate_zero(&p->arena, stretch->count, sizeof *waits);
  stretch->clocks = clv__arena_allocate_zero(&plan->arena, (size_t)stretch->count * stretch->lane_count, sizeof *stretch->clocks);
  if (offsets == NULL || before == NULL || wait_counts == NULL || lanes == NULL || waits == NULL || stretch->clocks == NULL) {
    return clv__error_memory(error, stretch->count * sizeof *stretch->clocks);
  }
  for (uint32_t i = 0; i < stretch->count; ++i) {
    const uint32_t s = stretch->origins[i];
    lanes[i] = plan->steps[stretch->first + i].lane;
    for (uint32_t k = p->offsets[s]; k < p->offsets[s + 1]; ++k) {
      const uint32_t place = places[p->before[k]];
      if (place >= stretch->first && place < stretch->first + i) before[at++] = place - stretch->first;
    }
    offsets[i + 1] = at;
  }
  CLV__TRY(clv__cpu_waits_make(stretch->count, lanes, stretch->lane_count, offsets, before, &plan->arena, stretch->clocks, waits,
                               wait_counts, error));
  for (uint32_t i = 0; i < stretch->count; ++i) {
    plan->steps[stretch->first + i].waits = waits[i];
    plan->steps[stretch->first + i].wait_count = wait_counts[i];
  }
  return CLV_OK;
}

/* Puts the region's steps in their new order. `steps` are those of the plan as lowered. */
static clv_status write_region(pass *p, const region *r, const clv__cpu_step *steps, uint32_t *places, clv_error *error) {
  clv__cpu_plan *plan = p->plan;
  const clv__cpu_schedule *schedule = &r->schedule;
  const size_t before = plan->stretch_count;
  uint32_t *origins = clv__arena_allocate_zero(&plan->arena, r->count, sizeof *origins);
  double *times = clv__arena_allocate_zero(&plan->arena, (size_t)r->count * 2, sizeof *times);
  if (origins == NULL || times == NULL) return clv__error_memory(error, r->count * sizeof *times);
  for (uint32_t i = 0; i < r->count; ++i) {
    const uint32_t t = schedule->order[i], s = r->first + t;
    clv__cpu_step *step = &plan->steps[r->first + i];
    *step = steps[s];
    step->lane = schedule->lane[t];
    places[s] = r->first + i;
    origins[i] = s;
    if (step->lane == CLV__CPU_NO_LANE) continue;
    if (step->kind == CLV__CPU_STEP_PRIMITIVE && p->again[s] != NULL) {
      step->primitive = p->again[s];
      step->scratch_bytes = step->primitive->scratch_bytes;
    }
    step->stretch = (uint32_t)before + schedule->stretch[t];
    clv__cpu_stretch *stretch = &plan->stretches[step->stretch];
    if (step->stretch >= plan->stretch_count) {
      *stretch =
          (clv__cpu_stretch){.first = r->first + i, .origins = origins + i, .begin = times + i, .end = times + r->count + i};
      plan->stretch_count = step->stretch + 1;
    }
    stretch->begin[stretch->count] = schedule->begin[t];
    stretch->end[stretch->count] = schedule->end[t];
    if (schedule->end[t] > stretch->span) stretch->span = schedule->end[t];
    stretch->count++;
    if (step->lane >= stretch->lane_count) stretch->lane_count = (uint32_t)step->lane + 1;
  }
  for (size_t i = before; i < plan->stretch_count; ++i) CLV__TRY(write_waits(p, r, &plan->stretches[i], places, error));
  return CLV_OK;
}

/* ---- Memory. ---- */

/* The plan as lowered. */
typedef struct original {
  clv__cpu_step *steps;
  clv__cpu_slot *slots;
} original;

static clv_status arrange(pass *p, const original *from, bool lanes, clv_error *error) {
  clv__cpu_plan *plan = p->plan;
  uint32_t *places = clv__arena_allocate_zero(&p->arena, plan->step_count, sizeof *places);
  if (places == NULL) return clv__error_memory(error, plan->step_count * sizeof *places);
  memcpy(plan->steps, from->steps, plan->step_count * sizeof *plan->steps);
  memcpy(plan->slots, from->slots, plan->slot_count * sizeof *plan->slots);
  for (uint32_t s = 0; s < plan->step_count; ++s) places[s] = s;
  plan->stretch_count = 0;
  for (uint32_t r = 0; r < p->region_count && lanes; ++r) {
    if (!p->regions[r].dropped) CLV__TRY(write_region(p, &p->regions[r], from->steps, places, error));
  }
  return clv__cpu_pass_memory(plan, error);
}

/* Gives up the region with the most bytes alive. Returns false if the peak is not in a region. */
static bool drop_peak(pass *p) {
  for (uint32_t r = 0; r < p->region_count; ++r) {
    region *here = &p->regions[r];
    if (here->dropped || p->plan->peak_step < here->first || p->plan->peak_step >= here->first + here->count) continue;
    return here->dropped = true;
  }
  return false;
}

/* If a step has two primitives, keeps the one it runs and releases the other. */
static void take_primitives(pass *p, const original *from) {
  const clv__cpu_plan *plan = p->plan;
  for (uint32_t i = 0; i < plan->stretch_count; ++i) {
    const clv__cpu_stretch *stretch = &plan->stretches[i];
    for (uint32_t k = 0; k < stretch->count; ++k) {
      const uint32_t s = stretch->origins[k];
      if (p->again[s] == NULL) continue;
      clv__dnn_primitive_release(from->steps[s].primitive);
      p->again[s] = NULL;
    }
  }
}

static clv_status choose_stretches(pass *p, clv_error *error) {
  clv__cpu_plan *plan = p->plan;
  uint32_t stretches = 0;
  for (uint32_t r = 0; r < p->region_count; ++r) stretches += p->regions[r].schedule.stretch_count;
  const original from = {clv__arena_copy(&p->arena, plan->steps, plan->step_count * sizeof *plan->steps),
                         clv__arena_copy(&p->arena, plan->slots, plan->slot_count * sizeof *plan->slots)};
  plan->stretches = clv__arena_allocate_zero(&plan->arena, stretches, sizeof *plan->stretches);
  if (from.steps == NULL || from.slots == NULL || plan->stretches == NULL) {
    return clv__error_memory(error, plan->step_count * sizeof *plan->steps);
  }
  CLV__TRY(arrange(p, &from, false, error));
  const double most = (1.0 + MOST_GROWTH) * (double)plan->memory_bytes;
  const double over = fmax(1.0 + MOST_OVER, (double)plan->memory_bytes / fmax((double)plan->least_memory_bytes, 1.0));
  clv_status status = CLV_OK;
  for (int trial = 0; trial < TRIALS && status == CLV_OK; ++trial) {
    status = arrange(p, &from, true, error);
    const double bytes = (double)plan->memory_bytes;
    const bool fits = bytes <= most && bytes <= over * (double)plan->least_memory_bytes;
    if (status == CLV_OK && (p->team.forced || fits)) {
      take_primitives(p, &from);
      return CLV_OK;
    }
    if (status == CLV_OK && !drop_peak(p)) break;
  }
  if (status == CLV_OK) return arrange(p, &from, false, error);
  memcpy(plan->steps, from.steps, plan->step_count * sizeof *plan->steps); /* the plan owns their primitives */
  plan->stretch_count = 0;
  return status;
}

static clv_status survey_steps(pass *p, clv_error *error) {
  p->tasks = clv__arena_allocate_zero(&p->arena, p->plan->step_count, sizeof *p->tasks);
  p->again = clv__arena_allocate_zero(&p->arena, p->plan->step_count, sizeof *p->again);
  p->made = clv__arena_allocate_zero(&p->arena, p->plan->step_count, sizeof *p->made);
  if (p->tasks == NULL || p->again == NULL || p->made == NULL) {
    return clv__error_memory(error, p->plan->step_count * sizeof *p->tasks);
  }
  CLV__TRY(clv__cpu_order_find(p->plan, &p->arena, &p->offsets, &p->before, error));
  return find_regions(p, error);
}

clv_status clv__cpu_pass_lanes(clv__cpu_plan *plan, clv_error *error) {
  const int wanted = plan->device->lanes;
  const uint32_t threads = clv__cpu_threads_team();
  pass p = {.plan = plan, .team = {.threads = threads, .lane_count = threads, .forced = wanted > 1}};
  for (size_t s = 0; s < plan->step_count; ++s) {
    plan->steps[s].lane = CLV__CPU_NO_LANE;
    plan->steps[s].stretch = NONE;
  }
  if (p.team.forced) p.team.lane_count = (uint32_t)wanted;
  if (p.team.lane_count > CLV__CPU_MAX_LANES) p.team.lane_count = CLV__CPU_MAX_LANES;
  const bool compared = plan->step_count + plan->slot_count <=
                        CLV__ARRANGE_PAIRS; /* memory.c compares these pairs to find which use ends before which begins */
  if (wanted == 0 || p.team.lane_count < 2 || plan->program->deterministic || !compared) return clv__cpu_pass_memory(plan, error);
  clv__arena_init(&p.arena, plan->device->allocator);
  clv_status status = survey_steps(&p, error);
  if (status == CLV_OK) status = p.region_count > 0 ? choose_stretches(&p, error) : clv__cpu_pass_memory(plan, error);
  for (size_t s = 0; p.again != NULL && s < plan->step_count; ++s) clv__dnn_primitive_release(p.again[s]);
  clv__arena_finish(&p.arena);
  return status;
}
