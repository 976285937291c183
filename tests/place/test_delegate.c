/* Tests the strategy `delegate`. Every device but the last is a delegate: it gets runs of consecutive nodes, or the groups
 * of nodes that it claims. The last device gets the remaining nodes. Worked examples, and random problems with random
 * claims. */
#include "place/groups.h"
#include "place/node.h"
#include "problem_checks.h"
#include "small.h"

enum { NPU, GPU, CPU };
static const uint32_t spaces[] = {1, 2, 0};

typedef struct outcome {
  clv__arena arena;
  clv__placing placing;
  clv_status status;
  clv_error error;
} outcome;

static void delegate(outcome *o, const clv__problem *problem, const uint32_t *const *claims, const clv_allocator *allocator) {
  clv__place_input input = {.problem = problem, .split = CLV__SPLIT_LINEAR, .claims = claims};
  memset(o, 0, sizeof *o);
  clv__arena_init(&o->arena, allocator);
  o->status = clv__place_delegate(&input, &o->arena, &o->placing, &o->error);
}

static void delegate_ok(outcome *o, const clv__problem *problem, const uint32_t *const *claims) {
  delegate(o, problem, claims, clv__allocator_default());
  assert_ok(o->status, o->error);
}

/* Compares the devices and partitions of all nodes (one digit per node) and the first letters of their causes. */
static void expect(const outcome *o, const clv__problem *problem, const char *devices, const char *partitions,
                   const char *causes) {
  char text[SMALL_NODES + 1];
  assert_string_equal(small_devices(o->placing.devices, problem->node_count, text), devices);
  assert_string_equal(small_devices(o->placing.cut.partition_of, problem->node_count, text), partitions);
  for (uint32_t n = 0; n < problem->node_count; ++n) text[n] = o->placing.causes[n][0];
  assert_string_equal(text, causes);
}

static void runs_in_order_of_priority(void **state) {
  (void)state;
  small s;
  outcome o;
  small_begin(&s, 3, spaces, 1);
  static const uint16_t supports[] = {7, 6, 4, 7, 3, 6, 1, 4, 2, 5};
  for (uint32_t n = 0, value = 0; n < 10; ++n) value = small_node(&s, supports[n], value);
  delegate_ok(&o, small_end(&s), NULL);
  /* Delegates get every node that they support, even runs of one node (0, 6, 8) and the last run (9). The cpu gets the rest: 2
   * and 7. */
  expect(&o, &s.problem, "0120010210", "0123345678", "rrrrrrrrrr");
  assert_string_equal(o.placing.causes[0], "run");
  assert_string_equal(o.placing.causes[2], "rest");
  assert_string_equal(o.placing.causes[9], "run");
  clv__arena_finish(&o.arena);
}

static void pins_and_views(void **state) {
  (void)state;
  small s;
  outcome o;
  small_begin(&s, 3, spaces, 1);
  uint32_t x = small_view(&s, SMALL_ALL, 0); /* node 0: a view of a graph input follows its reader */
  x = small_view(&s, SMALL_ALL, x);          /* node 1: so does a view of that view */
  uint32_t a = small_node(&s, 4, x);         /* node 2 */
  uint32_t b = small_node(&s, SMALL_ALL, a); /* node 3: the npu would get it, but it is pinned */
  small_pin(&s, GPU);
  uint32_t v = small_view(&s, SMALL_ALL, b); /* node 4: follows its source */
  uint32_t c = small_node(&s, SMALL_ALL, v); /* node 5 */
  uint32_t w = small_view(&s, 6, c);         /* node 6: its source's device cannot run it, so the next delegate gets it */
  small_node(&s, 4, w, b);                   /* node 7 */
  delegate_ok(&o, small_end(&s), NULL);
  expect(&o, &s.problem, "22211012", "00011234", "vvruvrrr");
  clv__arena_finish(&o.arena);
}

/* The npu chose the groups {0, 2} and {3, 5}. Each becomes one partition. The npu does not get node 4, although it supports
 * it. */
static void groups_stand_together(void **state) {
  (void)state;
  small s;
  outcome o;
  small_begin(&s, 3, spaces, 2);
  uint32_t a = small_node(&s, SMALL_ALL, 0);
  uint32_t b = small_node(&s, SMALL_ALL, 1);
  uint32_t c = small_node(&s, SMALL_ALL, a);
  uint32_t d = small_node(&s, SMALL_ALL, c);
  uint32_t e = small_node(&s, SMALL_ALL, b);
  uint32_t f = small_node(&s, SMALL_ALL, d);
  small_node(&s, 4, e, f);
  static const uint32_t npu[] = {0, CLV__NONE, 0, 3, CLV__NONE, 3, CLV__NONE};
  static const uint32_t *const claims[] = {npu, NULL, NULL};
  delegate_ok(&o, small_end(&s), claims);
  expect(&o, &s.problem, "0100102", "0102324", "crccrcr");
  assert_int_equal(o.placing.groups[0], o.placing.groups[2]);
  assert_int_not_equal(o.placing.groups[2], o.placing.groups[3]);
  assert_int_equal(o.placing.groups[1], CLV__NONE);
  clv__arena_finish(&o.arena);
}

/* A group that waits for itself through a node outside it, and two groups that wait for each other, are broken up. */
static void groups_that_cannot_stand_together(void **state) {
  (void)state;
  small s;
  clv__arena arena;
  clv_error error = {0};
  uint32_t *order;
  small_begin(&s, 3, spaces, 2);
  uint32_t a = small_node(&s, SMALL_ALL, 0); /* node 0: in group 0 */
  uint32_t b = small_node(&s, SMALL_ALL, a); /* node 1 */
  small_node(&s, SMALL_ALL, b);              /* node 2: in group 0 */
  uint32_t c = small_node(&s, SMALL_ALL, 1); /* node 3: in group 1 */
  uint32_t d = small_node(&s, SMALL_ALL, 1); /* node 4: in group 2 */
  small_node(&s, SMALL_ALL, d);              /* node 5: in group 1 */
  small_node(&s, SMALL_ALL, c);              /* node 6: in group 2 */
  static const uint32_t groups[] = {0, CLV__NONE, 0, 1, 2, 1, 2};
  static const uint32_t expected[] = {0, 1, 2, 3, 4, 6, 5};
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__groups_order(small_end(&s), groups, &arena, &order, &error), error);
  assert_memory_equal(order, expected, sizeof expected);
  clv__arena_finish(&arena);
}

/* Two groups that wait for each other at every node are broken up into single nodes. */
static void groups_that_fall_apart(void **state) {
  (void)state;
  small s;
  clv__arena arena;
  clv_error error = {0};
  uint32_t *order, groups[SMALL_NODES];
  small_begin(&s, 3, spaces, 1);
  for (uint32_t n = 0, value = 0; n < SMALL_NODES; ++n) {
    value = small_node(&s, SMALL_ALL, value);
    groups[n] = n % 2;
  }
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__groups_order(small_end(&s), groups, &arena, &order, &error), error);
  for (uint32_t n = 0; n < SMALL_NODES; ++n) assert_int_equal(order[n], n);
  clv__arena_finish(&arena);
}

static void claims_are_checked(void **state) {
  (void)state;
  small s;
  outcome o;
  small_begin(&s, 3, spaces, 1);
  small_node(&s, SMALL_ALL, 0);
  static const uint32_t npu[] = {2};
  static const uint32_t *const claims[] = {npu, NULL, NULL};
  delegate(&o, small_end(&s), claims, clv__allocator_default());
  assert_int_equal(o.status, CLV_INVALID_ARGUMENT);
  clv__arena_finish(&o.arena);
}

static const test_problem_options any = {
    .min_nodes = 1, .max_nodes = 60, .min_devices = 1, .max_devices = 4, .features = TEST_ALL, .shape = TEST_SHAPE_COUNT};

static const uint32_t *const *draw_claims(const clv__problem *problem, uint64_t random, clv__arena *arena) {
  const uint32_t **claims = clv__arena_allocate_zero(arena, problem->device_count, sizeof *claims);
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (test_random(&random) % 3 == 0) continue;
    uint32_t *groups = clv__arena_allocate(arena, (problem->node_count + 1) * sizeof *groups);
    uint32_t number = 1 + (uint32_t)(test_random(&random) % 6);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      bool takes = clv__can_run(problem, n, d) && test_random(&random) % 4 != 0;
      groups[n] = takes ? (uint32_t)(test_random(&random) % number) % problem->node_count : CLV__NONE;
    }
    claims[d] = groups;
  }
  return claims;
}

/* Returns the device that a node other than a view must get. */
static uint32_t expected_device(const clv__problem *problem, const uint32_t *const *claims, uint32_t node) {
  uint32_t last = problem->device_count - 1;
  if (problem->pins[node] != CLV__NONE) return problem->pins[node];
  for (uint32_t d = 0; d < last; ++d) {
    if (!clv__can_run(problem, node, d)) continue;
    if (claims == NULL || claims[d] == NULL || claims[d][node] != CLV__NONE) return d;
  }
  if (clv__can_run(problem, node, last)) return last;
  for (uint32_t d = 0; d < last; ++d) {
    if (clv__can_run(problem, node, d)) return d;
  }
  return CLV__NONE;
}

static void random_problems(void **state) {
  (void)state;
  uint32_t whole = 0, groups = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    const clv__problem *problem = test_problem_make(seed, &any, &arena);
    const uint32_t *const *claims = seed % 2 == 0 ? draw_claims(problem, seed, &arena) : NULL;
    outcome o, again;
    test_problem_at(problem, seed, "delegate");
    delegate_ok(&o, problem, claims);
    test_check_placement(problem, o.placing.devices);
    test_check_cut(problem, o.placing.devices, o.placing.groups, &o.placing.cut);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      uint32_t device = o.placing.devices[n];
      if (o.placing.causes[n][0] == '\0') test_problem_fail(o.placing.devices, "node %u has no cause", n);
      if (!clv__node_is_view(problem, n) && device != expected_device(problem, claims, n))
        test_problem_fail(o.placing.devices, "node %u is on device %u, expected %u", n, device,
                          expected_device(problem, claims, n));
      if (claims == NULL || claims[device] == NULL || device + 1 == problem->device_count) continue;
      bool is_given = problem->pins[n] != CLV__NONE || strcmp(o.placing.causes[n], "rest") == 0;
      /* A hosted view stays on the device, but the host runs it, so the device need not have chosen it. */
      is_given = is_given || clv__is_hosted(problem, n, device);
      if (claims[device][n] == CLV__NONE && !is_given)
        test_problem_fail(o.placing.devices, "node %u is on device %u, which did not choose it", n, device);
      for (uint32_t m = 0; m < n; ++m) {
        bool is_same = o.placing.groups[m] == o.placing.groups[n] && o.placing.groups[n] != CLV__NONE;
        if (o.placing.devices[m] != device && is_same)
          test_problem_fail(o.placing.devices, "nodes %u and %u on different devices are in one group", m, n);
        if (o.placing.devices[m] != device) continue;
        if ((claims[device][n] == claims[device][m]) != (o.placing.groups[n] == o.placing.groups[m]))
          test_problem_fail(o.placing.devices, "nodes %u and %u: claimed and final groups differ", m, n);
      }
    }
    groups += o.placing.groups != NULL;
    whole += o.placing.groups != NULL && o.placing.cut.count < problem->node_count;
    delegate_ok(&again, problem, claims);
    assert_memory_equal(again.placing.devices, o.placing.devices, problem->node_count * sizeof(uint32_t));
    assert_memory_equal(again.placing.cut.partition_of, o.placing.cut.partition_of, problem->node_count * sizeof(uint32_t));
    clv__arena_finish(&again.arena);
    clv__arena_finish(&o.arena);
    clv__arena_finish(&arena);
  }
  print_message("%u problems have groups of nodes that a device claims; %u of these have partitions of several nodes\n", groups,
                whole);
  assert_true(whole > groups / 2);
}

/* Groups that form runs in some topological order are never broken up: each is contiguous in the result. */
static void groups_in_one_direction_stay_whole(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    clv__arena arena;
    clv_error error = {0};
    clv__arena_init(&arena, clv__allocator_default());
    const clv__problem *problem = test_problem_make(seed, &any, &arena);
    uint32_t n = problem->node_count, *place = clv__arena_allocate(&arena, n * sizeof *place), *order;
    uint32_t *groups = clv__arena_allocate(&arena, n * sizeof *groups), *done = clv__arena_allocate_zero(&arena, n, sizeof *done);
    uint64_t random = seed;
    for (uint32_t i = 0; i < n;) { /* a random topological order */
      uint32_t node = (uint32_t)(test_random(&random) % n);
      bool ready = !done[node];
      for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
        uint32_t producer = problem->producers[problem->reads[r]];
        ready = ready && (producer == CLV__NONE || done[producer]);
      }
      if (ready) done[node] = 1, place[i++] = node;
    }
    uint32_t size = 1 + (uint32_t)(test_random(&random) % 7), changes = 0;
    for (uint32_t i = 0; i < n; ++i) groups[place[i]] = i / size % 3 == 2 ? CLV__NONE : i / size;
    assert_ok(clv__groups_order(problem, groups, &arena, &order, &error), error);
    memset(done, 0, n * sizeof *done);
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t r = problem->read_offsets[order[i]]; r < problem->read_offsets[order[i] + 1]; ++r) {
        uint32_t producer = problem->producers[problem->reads[r]];
        assert_true(producer == CLV__NONE || done[producer]);
      }
      done[order[i]] = 1;
      changes += i == 0 || groups[order[i]] == CLV__NONE || groups[order[i]] != groups[order[i - 1]];
    }
    uint32_t items = 0;
    for (uint32_t i = 0; i < n; ++i) items += groups[place[i]] == CLV__NONE || i % size == 0;
    assert_int_equal(changes, items);
    clv__arena_finish(&arena);
  }
}

static void every_allocation_fails(void **state) {
  (void)state;
  clv__arena own;
  clv__arena_init(&own, clv__allocator_default());
  static const test_problem_options several = {
      .min_nodes = 30, .max_nodes = 30, .min_devices = 4, .max_devices = 4, .features = TEST_ALL, .shape = TEST_SHAPE_COUNT};
  const clv__problem *problem = test_problem_make(7, &several, &own);
  const uint32_t *const *claims = draw_claims(problem, 2, &own);
  for (size_t fail_at = 1;; ++fail_at) {
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    outcome o;
    delegate(&o, problem, claims, &counting.allocator);
    bool is_through = counting.calls < fail_at;
    clv__arena_finish(&o.arena);
    assert_int_equal(counting.live, 0);
    if (is_through) {
      assert_ok(o.status, o.error);
      assert_true(fail_at > 6);
      break;
    }
    assert_int_equal(o.status, CLV_OUT_OF_MEMORY);
  }
  clv__arena_finish(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_in_order_of_priority), cmocka_unit_test(pins_and_views),
      cmocka_unit_test(groups_stand_together),     cmocka_unit_test(groups_that_cannot_stand_together),
      cmocka_unit_test(groups_that_fall_apart),    cmocka_unit_test(claims_are_checked),
      cmocka_unit_test(random_problems),           cmocka_unit_test(groups_in_one_direction_stay_whole),
      cmocka_unit_test(every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
