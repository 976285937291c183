/* Which steps run side by side and who waits for whom, on random orders of tasks: what a schedule must keep, and its waits
 * against all that follows from them, found by brute force. */
#include "backends/cpu/passes/lanes.h"
#include "support.h"

enum { MOST = 64 };

typedef struct problem {
  clv__cpu_task tasks[MOST];
  uint32_t offsets[MOST + 1], before[MOST * MOST];
  clv__cpu_tasks dag;
} problem;

static uint32_t pick(uint64_t *seed, uint32_t limit) {
  return (uint32_t)(test_random(seed) % limit);
}

static void make_problem(problem *p, uint64_t seed) {
  const uint32_t count = 1 + pick(&seed, MOST), density = 1 + pick(&seed, 12), reach = 1 + pick(&seed, count);
  uint32_t at = 0;
  p->offsets[0] = 0;
  for (uint32_t t = 0; t < count; ++t) {
    p->tasks[t].alone_us = 0.5 + pick(&seed, 1000) * (pick(&seed, 5) == 0 ? 1.0 : 0.05);
    p->tasks[t].together_us = pick(&seed, 3) == 0 ? p->tasks[t].alone_us : 4.0 + p->tasks[t].alone_us * 0.3;
    p->tasks[t].may_lane = pick(&seed, 8) != 0;
    for (uint32_t b = t > reach ? t - reach : 0; b < t; ++b) {
      if (pick(&seed, density) == 0) p->before[at++] = b;
    }
    p->offsets[t + 1] = at;
  }
  p->dag = (clv__cpu_tasks){.tasks = p->tasks, .count = count, .offsets = p->offsets, .before = p->before};
}

static bool depends(const problem *p, uint32_t t, uint32_t on) {
  for (uint32_t i = p->offsets[t]; i < p->offsets[t + 1]; ++i) {
    if (p->before[i] == on) return true;
  }
  return false;
}

/* ---- Schedules. ---- */

/* What it takes as its estimates have it; stretches are looked at on the way. */
static double check_order(const problem *p, const clv__cpu_team *team, const clv__cpu_schedule *s) {
  uint32_t place[MOST], stretch = 0;
  bool seen[MOST] = {false};
  double total = 0.0, end = 0.0, together = 0.0;
  for (uint32_t i = 0; i < p->dag.count; ++i) {
    const uint32_t t = s->order[i];
    assert_true(t < p->dag.count && !seen[t]);
    seen[t] = true;
    place[t] = i;
    for (uint32_t k = p->offsets[t]; k < p->offsets[t + 1]; ++k) assert_true(seen[p->before[k]]);
    const bool begins = s->stretch[t] != UINT32_MAX && (i == 0 || s->stretch[s->order[i - 1]] != s->stretch[t]);
    const bool ends = s->stretch[t] != UINT32_MAX && (i + 1 == p->dag.count || s->stretch[s->order[i + 1]] != s->stretch[t]);
    if (s->stretch[t] == UINT32_MAX) {
      assert_int_equal(s->lane[t], CLV__CPU_NO_LANE);
      total += p->tasks[t].together_us;
      continue;
    }
    assert_true(p->tasks[t].may_lane && s->lane[t] < team->lane_count);
    if (begins) {
      assert_int_equal(s->stretch[t], stretch++); /* each in one piece */
      end = together = 0.0;
    }
    if (s->end[t] > end) end = s->end[t];
    together += p->tasks[t].together_us;
    if (!ends) continue;
    const double takes = end + clv__cpu_region_us(team->threads);
    if (!team->forced) assert_true(takes <= 0.9 * together + 1e-9);
    total += takes;
  }
  assert_int_equal(stretch, s->stretch_count);
  /* Within a stretch: no lane does two things at once, nothing begins before what it needs is over, and the order is that of
   * beginnings. */
  for (uint32_t a = 0; a < p->dag.count; ++a) {
    for (uint32_t b = 0; b < p->dag.count; ++b) {
      if (a == b || s->stretch[a] == UINT32_MAX || s->stretch[a] != s->stretch[b]) continue;
      if (s->lane[a] == s->lane[b]) assert_true(s->end[a] <= s->begin[b] + 1e-9 || s->end[b] <= s->begin[a] + 1e-9);
      if (depends(p, b, a)) assert_true(s->end[a] <= s->begin[b] + 1e-9);
      if (place[a] < place[b]) assert_true(s->begin[a] <= s->begin[b]);
    }
  }
  return total;
}

static void test_schedules(void **state) {
  (void)state;
  clv_error error = {0};
  problem p;
  uint32_t with = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__cpu_schedule schedule;
    double together = 0.0;
    make_problem(&p, seed);
    const uint32_t threads = 1u << (1 + seed % 4);
    const clv__cpu_team team = {.threads = threads, .lane_count = threads, .forced = seed % 5 == 0};
    clv__arena_init(&arena, clv__allocator_default());
    assert_ok(clv__cpu_schedule_make(&p.dag, &team, &arena, &schedule, &error), error);
    const double total = check_order(&p, &team, &schedule);
    for (uint32_t t = 0; t < p.dag.count; ++t) together += p.tasks[t].together_us;
    if (!team.forced) assert_true(total <= together + 1e-9); /* never slower by its own figures */
    with += schedule.stretch_count > 0;
    clv__arena_finish(&arena);
  }
  assert_true(with > 1000);
}

/* What is known to be best: chains stay on all threads, equal tasks without order take every lane, a heavy one is not left to
 * one. */
static void test_known(void **state) {
  (void)state;
  clv_error error = {0};
  const clv__cpu_team team = {.threads = 4, .lane_count = 4};
  for (int kind = 0; kind < 3; ++kind) {
    problem p = {.dag = {.count = 13}};
    clv__cpu_schedule s;
    clv__arena arena;
    uint32_t at = 0, in_lanes = 0;
    bool used[4] = {false};
    for (uint32_t t = 0; t < 13; ++t) {
      p.tasks[t] = (clv__cpu_task){.alone_us = 40, .together_us = 18, .may_lane = true};
      if (kind == 2 && t == 5) p.tasks[t] = (clv__cpu_task){.alone_us = 800, .together_us = 210, .may_lane = true};
      if (kind == 0 && t > 0) p.before[at++] = t - 1;
      p.offsets[t + 1] = at;
    }
    p.dag.tasks = p.tasks;
    p.dag.offsets = p.offsets;
    p.dag.before = p.before;
    if (kind == 1) p.dag.count = 12;
    clv__arena_init(&arena, clv__allocator_default());
    assert_ok(clv__cpu_schedule_make(&p.dag, &team, &arena, &s, &error), error);
    (void)check_order(&p, &team, &s);
    for (uint32_t t = 0; t < p.dag.count; ++t) {
      in_lanes += s.lane[t] != CLV__CPU_NO_LANE;
      if (s.lane[t] != CLV__CPU_NO_LANE) used[s.lane[t]] = true;
    }
    assert_int_equal(in_lanes, kind == 0 ? 0 : 12);
    if (kind > 0) assert_true(used[0] && used[1] && used[2] && used[3]);
    if (kind == 1) {
      for (uint32_t t = 0; t < 12; ++t) assert_true(s.end[t] <= 120.0 + 1e-9);
    }
    if (kind == 2) assert_int_equal(s.lane[5], CLV__CPU_NO_LANE);
    clv__arena_finish(&arena);
  }
}

/* ---- Waits. ---- */

typedef struct waiting {
  uint32_t count, lane_count, counts[MOST], clocks[MOST * CLV__CPU_MAX_LANES];
  uint8_t lanes[MOST];
  clv__cpu_wait *waits[MOST];
} waiting;

/* over[a][b]: a is over when b begins, by the lanes' order and the waits but the one of `without` that is `skipped`. */
static void close_over(const waiting *w, uint32_t without, uint32_t skipped, bool over[MOST][MOST]) {
  memset(over, 0, sizeof(bool[MOST][MOST]));
  for (uint32_t b = 0; b < w->count; ++b) {
    for (uint32_t i = 0; i < w->counts[b]; ++i) {
      uint32_t done = 0;
      if (b == without && i == skipped) continue;
      for (uint32_t a = 0; a < w->count; ++a) {
        if (w->lanes[a] == w->waits[b][i].lane && ++done == w->waits[b][i].done) over[a][b] = true;
      }
    }
    for (uint32_t a = 0; a < b; ++a) over[a][b] = over[a][b] || w->lanes[a] == w->lanes[b];
  }
  for (uint32_t k = 0; k < w->count; ++k) {
    for (uint32_t a = 0; a < w->count; ++a) {
      for (uint32_t b = 0; b < w->count && over[a][k]; ++b) over[a][b] = over[a][b] || over[k][b];
    }
  }
}

static bool all_waited(const problem *p, bool over[MOST][MOST]) {
  for (uint32_t t = 0; t < p->dag.count; ++t) {
    for (uint32_t i = p->offsets[t]; i < p->offsets[t + 1]; ++i) {
      if (!over[p->before[i]][t]) return false;
    }
  }
  return true;
}

static void test_waits(void **state) {
  (void)state;
  static bool over[MOST][MOST];
  clv_error error = {0};
  problem p;
  uint32_t waits = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    uint64_t random = seed * 7;
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    make_problem(&p, seed);
    waiting w = {.count = p.dag.count, .lane_count = 1 + pick(&random, seed % 3 == 0 ? CLV__CPU_MAX_LANES : 4)};
    for (uint32_t i = 0; i < w.count; ++i) w.lanes[i] = (uint8_t)pick(&random, w.lane_count);
    assert_ok(
        clv__cpu_waits_make(w.count, w.lanes, w.lane_count, p.offsets, p.before, &arena, w.clocks, w.waits, w.counts, &error),
        error);
    close_over(&w, UINT32_MAX, 0, over);
    assert_true(all_waited(&p, over));
    for (uint32_t b = 0; b < w.count; ++b) { /* a wait is for another lane's past, and clocks are what is over */
      assert_false(over[b][b]);
      for (uint32_t i = 0; i < w.counts[b]; ++i) assert_int_not_equal(w.waits[b][i].lane, w.lanes[b]);
      for (uint32_t l = 0; l < w.lane_count; ++l) {
        uint32_t done = 0;
        for (uint32_t a = 0; a < w.count; ++a) done += w.lanes[a] == l && over[a][b];
        assert_int_equal(w.clocks[b * w.lane_count + l], done);
      }
      waits += w.counts[b];
    }
    for (uint32_t b = 0; b < w.count && seed % 25 == 0; ++b) { /* none is too many */
      for (uint32_t i = 0; i < w.counts[b]; ++i) {
        close_over(&w, b, i, over);
        assert_false(all_waited(&p, over));
      }
    }
    clv__arena_finish(&arena);
  }
  assert_true(waits > 10000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules), cmocka_unit_test(test_known),
                                     cmocka_unit_test(test_waits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
