/* Tests the strategy `ready`, which runs devices in turns: in its turn, a device runs every node that it supports and whose
 * inputs are computed. Compares the number of turns with that of all placements of small problems, and checks properties of
 * the results of larger ones. */
#include "place/node.h"
#include "problem_checks.h"
#include "small.h"

typedef struct outcome {
  clv__arena arena;
  clv__placing placing;
  clv_status status;
  clv_error error;
} outcome;

static void ready(outcome *o, const clv__problem *problem, const clv_allocator *allocator) {
  clv__place_input input = {.problem = problem, .split = CLV__SPLIT_CONVEX};
  memset(o, 0, sizeof *o);
  clv__arena_init(&o->arena, allocator);
  o->status = clv__place_ready(&input, &o->arena, &o->placing, &o->error);
}

static void ready_ok(outcome *o, const clv__problem *problem) {
  ready(o, problem, clv__allocator_default());
  assert_ok(o->status, o->error);
}

/* Returns the number of turns that a placement on two devices needs if each node runs in the first turn of its device that is
 * not before the turns of its inputs. */
static uint32_t count_turns(const clv__problem *problem, const uint32_t *devices) {
  uint32_t best = CLV__NONE;
  for (uint32_t first = 0; first < 2; ++first) {
    uint32_t turns[64], highest = 0;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      turns[n] = 1 + (devices[n] != first);
      for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
        uint32_t producer = problem->producers[problem->reads[r]];
        if (producer == CLV__NONE) continue;
        uint32_t turn = turns[producer] + (devices[producer] != devices[n]);
        if (turn > turns[n]) turns[n] = turn;
      }
      if (turns[n] > highest) highest = turns[n];
    }
    if (highest < best) best = highest;
  }
  return best;
}

static uint32_t fewest_turns(const clv__problem *problem, uint32_t *devices, uint32_t node) {
  if (node == problem->node_count) return count_turns(problem, devices);
  uint32_t best = CLV__NONE;
  for (uint32_t d = 0; d < 2; ++d) {
    if ((clv__node_choices(problem, node) >> d & 1u) == 0) continue;
    devices[node] = d;
    uint32_t turns = fewest_turns(problem, devices, node + 1);
    if (turns < best) best = turns;
  }
  return best;
}

static void fewest_of_all_placements(void **state) {
  (void)state;
  test_problem_options options = {.min_nodes = 1,
                                  .max_nodes = 11,
                                  .min_devices = 2,
                                  .max_devices = 2,
                                  .features = TEST_ALL & ~(uint32_t)TEST_VIEWS,
                                  .shape = TEST_SHAPE_COUNT};
  uint32_t several = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    const clv__problem *problem = test_problem_make(seed, &options, &arena);
    test_problem_at(problem, seed, "ready");
    outcome o;
    ready_ok(&o, problem);
    test_check_placement(problem, o.placing.devices);
    uint32_t devices[64], least = fewest_turns(problem, devices, 0), turns = count_turns(problem, o.placing.devices);
    if (turns != least) test_problem_fail(o.placing.devices, "the placement needs %u turns, but %u suffice", turns, least);
    several += least > 2;

    /* The algorithm for more devices, with a third device that supports nothing. It chooses the first turn by the number of
     * nodes, so it may need one turn more. */
    clv__problem three = *problem;
    uint32_t spaces[3] = {problem->spaces[0], problem->spaces[1], 0};
    three.device_count = 3;
    three.spaces = spaces;
    outcome many;
    ready_ok(&many, &three);
    turns = count_turns(problem, many.placing.devices);
    if (turns != least && turns != least + 1)
      test_problem_fail(many.placing.devices,
                        "with a third device, the placement needs %u turns, but %u suffice; one more is allowed", turns, least);
    clv__arena_finish(&many.arena);
    clv__arena_finish(&o.arena);
    clv__arena_finish(&arena);
  }
  print_message("in %u problems, the devices must take turns more than twice\n", several);
  assert_true(several > 300);
}

/* Views follow their sources; views of graph inputs follow the reader whose turn comes first. */
static void views(void **state) {
  (void)state;
  static const uint32_t spaces[] = {1, 0};
  small s;
  outcome o;
  small_begin(&s, 2, spaces, 1);
  uint32_t x = small_view(&s, SMALL_ALL, 0); /* node 0: read by nodes 2 and 4; the turn of node 4 comes first */
  uint32_t a = small_node(&s, 1, 0);         /* 1 */
  uint32_t b = small_node(&s, 2, a, x);      /* 2 */
  uint32_t v = small_view(&s, SMALL_ALL, b); /* node 3: follows its source, node 2 */
  small_node(&s, 1, x);                      /* 4 */
  uint32_t w = small_view(&s, 1, v);         /* node 5: its source's device does not support it */
  small_node(&s, SMALL_ALL, w);              /* node 6: runs in the turn of node 5 */
  uint32_t unread = small_view(&s, SMALL_ALL, 0);
  (void)unread; /* node 7: an output that is a view of a graph input, so it stays in host memory */
  ready_ok(&o, small_end(&s));
  char text[9];
  assert_string_equal(small_devices(o.placing.devices, 8, text), "00110001");
  static const char *const causes[] = {"view", "only", "only", "view", "only", "only", "ready", "view"};
  for (uint32_t n = 0; n < 8; ++n) assert_string_equal(o.placing.causes[n], causes[n]);
  clv__arena_finish(&o.arena);
}

/* The turn goes to the device that can run the most nodes; among ties, to the first. */
static void three_devices(void **state) {
  (void)state;
  static const uint32_t spaces[] = {1, 2, 0};
  small s;
  outcome o;
  small_begin(&s, 3, spaces, 1);
  uint32_t a = small_node(&s, 4 | 2, 0); /* node 0: device 1 could run only this node; device 2 can run nodes 0 to 2 */
  a = small_node(&s, 4, a);
  a = small_node(&s, 4, a);
  uint32_t b = small_node(&s, 1, a); /* node 3: devices 0 and 1 can run one node each, so it is the turn of device 0 */
  uint32_t c = small_node(&s, 2, a);
  small_node(&s, 6, b, c); /* node 5: ready in the turn of device 1 */
  ready_ok(&o, small_end(&s));
  char text[7];
  assert_string_equal(small_devices(o.placing.devices, 6, text), "222011");
  clv__arena_finish(&o.arena);
}

static void random_problems(void **state) {
  (void)state;
  static const test_problem_options any = {
      .min_nodes = 1, .max_nodes = 80, .min_devices = 1, .max_devices = 4, .features = TEST_ALL, .shape = TEST_SHAPE_COUNT};
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    const clv__problem *problem = test_problem_make(seed, &any, &arena);
    test_problem_at(problem, seed, "ready");
    outcome o, again;
    ready_ok(&o, problem);
    test_check_placement(problem, o.placing.devices);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      if (o.placing.causes[n][0] == '\0') test_problem_fail(o.placing.devices, "node %u has no cause", n);
      if (!clv__node_is_view(problem, n) || problem->pins[n] != CLV__NONE) continue;
      uint32_t source = clv__node_source(problem, n);
      bool is_waiting = source != CLV__NONE && strcmp(o.placing.causes[source], "view") == 0;
      if (source == CLV__NONE || is_waiting || !clv__can_run(problem, n, o.placing.devices[source])) continue;
      if (o.placing.devices[n] != o.placing.devices[source])
        test_problem_fail(o.placing.devices, "node %u is not on its source's device", n);
    }
    ready_ok(&again, problem);
    assert_memory_equal(again.placing.devices, o.placing.devices, problem->node_count * sizeof(uint32_t));
    clv__arena_finish(&again.arena);
    clv__arena_finish(&o.arena);
    clv__arena_finish(&arena);
  }
}

static void every_allocation_fails(void **state) {
  (void)state;
  static const test_problem_options two = {
      .min_nodes = 20, .max_nodes = 20, .min_devices = 2, .max_devices = 4, .features = TEST_ALL, .shape = TEST_SHAPE_COUNT};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    clv__arena own;
    clv__arena_init(&own, clv__allocator_default());
    const clv__problem *problem = test_problem_make(seed, &two, &own);
    for (size_t fail_at = 1;; ++fail_at) {
      test_allocator counting;
      test_allocator_init(&counting);
      counting.fail_at = fail_at;
      outcome o;
      ready(&o, problem, &counting.allocator);
      bool is_through = counting.calls < fail_at;
      clv__arena_finish(&o.arena);
      assert_int_equal(counting.live, 0);
      if (is_through) {
        assert_ok(o.status, o.error);
        assert_true(fail_at > 3);
        break;
      }
      assert_int_equal(o.status, CLV_OUT_OF_MEMORY);
    }
    clv__arena_finish(&own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fewest_of_all_placements),
      cmocka_unit_test(views),
      cmocka_unit_test(three_devices),
      cmocka_unit_test(random_problems),
      cmocka_unit_test(every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
