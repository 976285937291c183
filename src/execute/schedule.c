/* See schedule.h. Every step has a vector clock (Fidge, 1988; Mattern, 1989): how many steps of each lane complete before the
 * step begins. A wait that the clock already covers is left out. */
#include "execute/schedule.h"

#include <string.h>

static uint32_t lane_of(const clv_plan *plan, const clv__step *step) {
  if (!step->is_transfer) return 2 * plan->partitions[step->index].device;
  uint32_t device = plan->transfers[step->index].device;
  return 2 * device + (plan->devices->items[device].info.is_synchronous ? 0 : 1);
}

typedef struct maker {
  const clv_plan *plan;
  const clv__schedule_rules *rules;
  clv__schedule *schedule;
  uint32_t needed[CLV__MAX_LANES]; /* indexed by lane: 1 + the last step to wait for; 0: none */
  bool late[CLV__MAX_LANES];       /* indexed by lane: some awaited step of the lane is one of rules->sized_late */
  uint32_t *waits;                 /* of all steps, concatenated */
  size_t wait_count;
} maker;

static void need(maker *m, uint32_t step) {
  uint32_t lane = m->schedule->tracks[step].lane;
  if (step + 1 > m->needed[lane]) m->needed[lane] = step + 1;
  if (m->rules->sized_late != NULL && m->rules->sized_late[step]) m->late[lane] = true;
}

static void join(uint32_t *clock, const uint32_t *other, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (other[i] > clock[i]) clock[i] = other[i];
  }
}

/* Sets the clock of `step`, and its waits: those of `needed` that no other wait implies. */
static void set_waits(maker *m, uint32_t step) {
  clv__schedule *s = m->schedule;
  clv__track *track = &s->tracks[step];
  uint32_t lanes = s->lane_count, own = s->lane_index[track->lane];
  uint32_t *clock = &s->clocks[(size_t)step * lanes];
  if (track->position > 0) { /* a step in a stream begins after the steps before it */
    uint32_t previous = s->lane_steps[track->lane][track->position - 1];
    memcpy(clock, &s->clocks[(size_t)previous * lanes], lanes * sizeof *clock);
    clock[own] = track->position;
  }
  track->waits = &m->waits[m->wait_count];
  for (int on_host = 0; on_host < 2; ++on_host) {
    for (uint32_t i = lanes; i-- > 0;) { /* any order is correct; waits for later lanes tend to imply more other waits */
      uint32_t lane = s->lanes[i], last = m->needed[lane];
      bool is_host = m->late[lane] || clv__lane_device(lane) != clv__lane_device(track->lane);
      if (last == 0 || is_host != (on_host == 1)) continue;
      clv__track *other = &s->tracks[last - 1];
      /* The step needs no wait that an earlier wait, or the order of its own lane, implies. */
      if (!m->late[lane] && clock[i] > other->position) continue;
      m->waits[m->wait_count++] = last - 1;
      ++track->wait_count;
      track->device_waits += on_host == 0;
      join(clock, &s->clocks[(size_t)(last - 1) * lanes], lanes);
      if (clock[i] < other->position + 1) clock[i] = other->position + 1;
      other->is_recorded = true;
      other->is_watched |= on_host == 1;
    }
  }
}

/* The end of a run waits for all lanes. If the last step of a lane completes before the last step of another begins, waiting for
 * the latter suffices. */
static void watch_ends(clv__schedule *s) {
  for (uint32_t i = 0; i < s->lane_count; ++i) {
    uint32_t end = s->lane_ends[s->lanes[i]];
    bool is_implied = false;
    for (uint32_t k = 0; k < s->lane_count && !is_implied; ++k) {
      uint32_t other = s->lane_steps[s->lanes[k]][s->lane_ends[s->lanes[k]] - 1];
      is_implied = s->clocks[(size_t)other * s->lane_count + i] == end;
    }
    clv__track *last = &s->tracks[s->lane_steps[s->lanes[i]][end - 1]];
    last->is_recorded = true; /* its event is needed to check whether it failed */
    last->is_watched |= !is_implied;
  }
}

static clv_status make_lanes(maker *m, clv__arena *arena, clv_error *error) {
  clv__schedule *s = m->schedule;
  s->lane_index = clv__arena_allocate(arena, CLV__MAX_LANES * sizeof *s->lane_index);
  if (s->lane_index == NULL) return clv__error_memory(error, CLV__MAX_LANES * sizeof *s->lane_index);
  memset(s->lane_index, 0xff, CLV__MAX_LANES * sizeof *s->lane_index); /* all are CLV__NO_ID */
  for (uint32_t i = 0; i < s->step_count; ++i) {
    clv__track *track = &s->tracks[i];
    track->lane = lane_of(m->plan, &m->plan->steps[i]);
    track->position = s->lane_ends[track->lane]++;
    if (track->position > 0) continue;
    s->lane_index[track->lane] = s->lane_count;
    s->lanes[s->lane_count++] = track->lane;
  }
  for (uint32_t i = 0; i < s->lane_count; ++i) {
    uint32_t lane = s->lanes[i];
    s->lane_steps[lane] = clv__arena_allocate(arena, s->lane_ends[lane] * sizeof *s->lane_steps[lane]);
    if (s->lane_steps[lane] == NULL) return clv__error_memory(error, s->lane_ends[lane] * sizeof *s->lane_steps[lane]);
  }
  for (uint32_t i = 0; i < s->step_count; ++i) s->lane_steps[s->tracks[i].lane][s->tracks[i].position] = i;
  return CLV_OK;
}

clv_status clv__schedule_make(const clv_plan *plan, const clv__schedule_rules *rules, clv__arena *arena, clv__schedule *schedule,
                              clv_error *error) {
  *schedule = (clv__schedule){.step_count = plan->step_count};
  maker m = {.plan = plan, .rules = rules, .schedule = schedule};
  schedule->tracks = clv__arena_allocate_zero(arena, plan->step_count, sizeof *schedule->tracks);
  if (schedule->tracks == NULL) return clv__error_memory(error, plan->step_count * sizeof *schedule->tracks);
  CLV__TRY(make_lanes(&m, arena, error));
  size_t cells;
  if (!clv__multiply(plan->step_count, schedule->lane_count, &cells)) return clv__error_memory(error, SIZE_MAX);
  schedule->clocks = clv__arena_allocate_zero(arena, cells, sizeof *schedule->clocks);
  m.waits = clv__arena_allocate_zero(arena, cells, sizeof *m.waits); /* at most one per lane and step */
  if (schedule->clocks == NULL || m.waits == NULL) return clv__error_memory(error, cells * sizeof *m.waits);
  size_t edge = 0;
  for (uint32_t i = 0; i < plan->step_count; ++i) {
    memset(m.needed, 0, sizeof m.needed);
    memset(m.late, 0, sizeof m.late);
    for (uint32_t d = 0; d < plan->steps[i].dependency_count; ++d) need(&m, plan->steps[i].dependencies[d]);
    for (; edge < rules->edge_count && rules->edges[edge].after == i; ++edge) need(&m, rules->edges[edge].before);
    if (rules->is_serial && i > 0) need(&m, i - 1);
    set_waits(&m, i);
  }
  watch_ends(schedule);
  return CLV_OK;
}
