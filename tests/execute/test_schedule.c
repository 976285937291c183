/* Properties of schedules, on random graphs with three devices that finish steps in random order: a step begins after all
 * steps that it depends on, each step that the schedule promises to be complete before another (clv__schedule_is_before()) is
 * complete when that other step begins, and slots (memory of values) that share bytes are never in use at the same time. */
#include "execute/session_own.h"
#include "machine.h"

#define TINY(name) "{\"name\": \"" name "\", \"static_shapes\": false, \"operators\": \"all\"}"

enum { GRAPHS = 60, WALKS = 8 };

static clv_plan *random_plan(machine *m, const clv_graph *graph, uint64_t seed, bool streamed) {
  clv_assignment pins[64];
  assert_true(graph->node_count <= 64);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    uint32_t device = (uint32_t)(test_random(&seed) % clv_devices_count(m->devices));
    pins[n] = (clv_assignment){graph->nodes[n].name, clv_devices_name(m->devices, device)};
  }
  clv_assignment weights = {"*", "cpu"};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.pins = pins;
  options.pin_count = graph->node_count;
  options.weights = &weights;
  options.weight_count = streamed;
  clv_error error = {0};
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, m->devices, &options, &plan, &error), error);
  return plan;
}

/* The state of a simulated run. */
typedef struct walk {
  const clv_plan *plan;
  const clv__prepared *prepared;
  uint32_t begun[CLV__MAX_LANES], over[CLV__MAX_LANES]; /* indexed by lane: how many steps it has begun and completed */
  bool *is_over;
} walk;

/* Returns whether the step can begin: all earlier steps of its lane, and all steps that it waits for, are complete. (Waits of the
 * device and of the host are equivalent here.) */
static bool may_begin(const walk *w, uint32_t step) {
  const clv__track *track = &w->prepared->schedule.tracks[step];
  if (w->over[track->lane] < track->position) return false;
  for (uint32_t i = 0; i < track->wait_count; ++i) {
    if (!w->is_over[track->waits[i]]) return false;
  }
  return true;
}

static bool is_alive(const walk *w, const clv__slot *slot) {
  const clv__schedule *schedule = &w->prepared->schedule;
  bool any_begun = false, all_over = slot->last != UINT32_MAX;
  for (uint32_t i = 0; i < schedule->lane_count; ++i) {
    uint32_t lane = schedule->lanes[i];
    any_begun |= slot->first < schedule->step_count && schedule->tracks[slot->first].lane == lane &&
                 w->begun[lane] > schedule->tracks[slot->first].position;
    all_over &= w->over[lane] >= slot->touched[i];
  }
  return any_begun && !all_over;
}

static void check_slots(const walk *w) {
  for (uint32_t i = 0; i < w->prepared->slot_count; ++i) {
    const clv__slot *a = &w->prepared->slots[i];
    if (!a->size_known || a->is_external || !is_alive(w, a)) continue;
    for (uint32_t k = 0; k < i; ++k) {
      const clv__slot *b = &w->prepared->slots[k];
      if (b->space != a->space || !b->size_known || b->is_external || !is_alive(w, b)) continue;
      assert_true(a->offset >= b->offset + b->size_bytes || b->offset >= a->offset + a->size_bytes);
    }
  }
}

static void check_begin(const walk *w, uint32_t step) {
  const clv__schedule *schedule = &w->prepared->schedule;
  const clv__step *s = &w->plan->steps[step];
  for (uint32_t i = 0; i < s->dependency_count; ++i) assert_true(w->is_over[s->dependencies[i]]);
  for (uint32_t other = 0; other < schedule->step_count; ++other) {
    if (clv__schedule_is_before(schedule, other, step)) assert_true(w->is_over[other]);
  }
}

/* Simulates a run in which devices finish steps in a random order. */
static void walk_once(const clv_plan *plan, const clv__prepared *prepared, uint64_t seed) {
  const clv__schedule *schedule = &prepared->schedule;
  walk w = {.plan = plan, .prepared = prepared, .is_over = calloc(schedule->step_count, sizeof(bool))};
  for (uint32_t left = schedule->step_count; left > 0;) {
    uint32_t lane = schedule->lanes[test_random(&seed) % schedule->lane_count];
    if (w.over[lane] < w.begun[lane]) { /* complete the step that this lane has begun */
      w.is_over[schedule->lane_steps[lane][w.over[lane]++]] = true;
      --left;
      continue;
    }
    if (w.begun[lane] == schedule->lane_ends[lane]) continue;
    uint32_t step = schedule->lane_steps[lane][w.begun[lane]];
    if (!may_begin(&w, step)) continue; /* if no lane could continue, the test would hang until its time limit */
    check_begin(&w, step);
    ++w.begun[lane];
    check_slots(&w);
  }
  free(w.is_over);
}

/* Checks that a step waits only for earlier steps whose completion is recorded, and for at most one per lane. */
static void check_least(const clv__schedule *schedule) {
  for (uint32_t s = 0; s < schedule->step_count; ++s) {
    const clv__track *track = &schedule->tracks[s];
    for (uint32_t i = 0; i < track->wait_count; ++i) {
      assert_true(track->waits[i] < s);
      assert_true(schedule->tracks[track->waits[i]].is_recorded);
      for (uint32_t k = 0; k < i; ++k) {
        assert_true(schedule->tracks[track->waits[i]].lane != schedule->tracks[track->waits[k]].lane);
      }
    }
  }
}

/* Checks that all steps are complete once all steps that the host watches are complete. */
static void check_ends(const clv__schedule *schedule) {
  for (uint32_t i = 0; i < schedule->lane_count; ++i) {
    uint32_t lane = schedule->lanes[i], last = schedule->lane_steps[lane][schedule->lane_ends[lane] - 1];
    assert_true(schedule->tracks[last].is_recorded);
    bool is_known = schedule->tracks[last].is_watched;
    for (uint32_t s = 0; s < schedule->step_count && !is_known; ++s) {
      is_known = schedule->tracks[s].is_watched && clv__schedule_is_before(schedule, last, s);
    }
    assert_true(is_known);
  }
}

static void check_graph(machine *m, uint64_t seed, bool tight, bool streamed) {
  clv_graph *graph = test_random_graph(&m->counting.allocator, seed, 24 + (uint32_t)(seed % 20));
  clv_plan *plan = random_plan(m, graph, seed * 31, streamed);
  clv_session *session = machine_session(plan);
  clv__request *request;
  clv_error error = {0};
  assert_ok(clv__request_acquire(session, CLV__NO_ID, NULL, &request, &error), error);
  clv__prepared *prepared = request->prepared, *made = NULL;
  if (tight) { /* prepares the plan again, with the memory that suffices if steps run one after another */
    made = clv__allocate_zero(session->allocator, sizeof *made);
    made->request = request;
    made->is_tight = true;
    clv__arena_init(&made->arena, session->allocator);
    made->types = clv__arena_copy(&made->arena, prepared->types, graph->value_count * sizeof *made->types);
    made->placed = made->types;
    made->partitions = clv__arena_allocate_zero(&made->arena, plan->partition_count, sizeof *made->partitions);
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      made->partitions[p] = (clv__partition_state){.prepared = made, .index = p};
      clv__arena_init(&made->partitions[p].own_arena, session->allocator);
    }
    assert_ok(clv__prepared_plan_memory(made, &error), error);
    for (uint32_t space = 0; space < m->devices->space_count; ++space) {
      assert_true(made->space_bytes[space] <= prepared->space_bytes[space]);
      assert_true(made->space_bytes[space] >= made->space_bound_bytes[space]);
    }
    prepared = made;
  }
  check_least(&prepared->schedule);
  check_ends(&prepared->schedule);
  for (uint32_t k = 0; k < WALKS; ++k) walk_once(plan, prepared, seed * 1000 + k);
  if (made != NULL) clv__prepared_destroy(made);
  clv__request_release(request);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
}

static void any_order(void **state) {
  (void)state;
  static const char *const specs[] = {TINY("one"), TINY("two")};
  machine m;
  machine_open(&m, "one,two,cpu", 2, specs);
  for (uint64_t seed = 1; seed <= GRAPHS; ++seed) check_graph(&m, seed, seed % 3 == 0, seed % 4 == 1);
  machine_close(&m);
}

/* If a step's output sizes are known only after it, its readers wait for it on the host, even if other waits imply that it is
 * complete. */
static void late_sizes_are_waited_for(void **state) {
  (void)state;
  static const char *const specs[] = {TINY("one"), TINY("two")};
  machine m;
  uint32_t implied = 0; /* dependencies within a lane, for which the host must wait only because of late sizes */
  machine_open(&m, "one,two,cpu", 2, specs);
  for (uint64_t seed = 1; seed <= GRAPHS; ++seed) {
    uint64_t random = seed;
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 24 + (uint32_t)(seed % 20));
    clv_plan *plan = random_plan(&m, graph, seed * 31, false);
    clv__arena arena;
    clv__schedule schedule;
    clv_error error = {0};
    clv__arena_init(&arena, &m.counting.allocator);
    bool *late = clv__arena_allocate_zero(&arena, plan->step_count, sizeof *late);
    for (uint32_t s = 0; s < plan->step_count; ++s) late[s] = test_random(&random) % 3 == 0;
    const clv__schedule_rules rules = {.sized_late = late};
    assert_ok(clv__schedule_make(plan, &rules, &arena, &schedule, &error), error);
    for (uint32_t s = 0; s < plan->step_count; ++s) {
      const clv__track *track = &schedule.tracks[s];
      for (uint32_t d = 0; d < plan->steps[s].dependency_count; ++d) {
        const uint32_t before = plan->steps[s].dependencies[d];
        const clv__track *maker = &schedule.tracks[before];
        bool is_told = !late[before];
        for (uint32_t i = track->device_waits; i < track->wait_count; ++i) {
          const clv__track *waited = &schedule.tracks[track->waits[i]];
          is_told = is_told || (waited->lane == maker->lane && waited->position >= maker->position && waited->is_watched);
        }
        assert_true(is_told);
        implied += late[before] && maker->lane == track->lane;
      }
    }
    clv__arena_finish(&arena);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
  }
  assert_true(implied > 0);
  machine_close(&m);
}

/* With copies in, one partition, and copies out, the host gets only one notification: of the last step. */
static void one_device_tells_once(void **state) {
  (void)state;
  static const char *const specs[] = {TINY("one")};
  machine m;
  uint32_t chains = 0;
  machine_open(&m, "one", 1, specs);
  for (uint64_t seed = 1; seed <= GRAPHS; ++seed) {
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 24);
    clv_plan *plan = random_plan(&m, graph, seed, false);
    clv_session *session = machine_session(plan);
    clv__request *request;
    clv_error error = {0};
    assert_ok(clv__request_acquire(session, CLV__NO_ID, NULL, &request, &error), error);
    const clv__schedule *schedule = &request->prepared->schedule;
    uint32_t watched = 0, last = schedule->step_count - 1;
    for (uint32_t s = 0; s < schedule->step_count; ++s) watched += schedule->tracks[s].is_watched;
    if (plan->partition_count == 1 && plan->steps[last].is_transfer) {
      assert_int_equal(watched, 1);
      assert_true(schedule->tracks[last].is_watched);
      ++chains;
    }
    clv__request_release(request);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
  }
  assert_true(chains > GRAPHS / 4);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_order), cmocka_unit_test(late_sizes_are_waited_for),
                                     cmocka_unit_test(one_device_tells_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
