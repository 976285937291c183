/* Tests placements on two devices by minimum cut: compares them with all possible placements. */
#include <stdlib.h>
#include <string.h>

#include "problem_brute.h"
#include "problem_checks.h"
#include "split/minimum_cut/network.h"
#include "support.h"

enum { MOST_NODES = 12 };

static void *array(clv__arena *arena, size_t count, size_t element_bytes) {
  void *memory = clv__arena_allocate_zero(arena, count + 1, element_bytes);
  assert_non_null(memory);
  return memory;
}

static uint32_t below(uint64_t *random, uint32_t limit) {
  return (uint32_t)(test_random(random) % limit);
}

/* ---- Two devices ---- */

static void check_two(uint64_t seed, clv__arena *arena) {
  const test_problem_options shape = {1, MOST_NODES, 2, 2, TEST_ALL, TEST_SHAPE_COUNT};
  clv__problem *problem = test_problem_make(seed, &shape, arena);
  test_problem_at(problem, seed, "network of two devices");
  for (int i = 0; i < 4; ++i) {
    clv__network_options options = {.one = i & 1, .other = !(i & 1), .launches = i >= 2};
    uint32_t devices[MOST_NODES];
    uint64_t cost;
    clv_error error = {0};
    assert_ok(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), error);
    test_check_placement(problem, devices);
    uint64_t price = test_placement_ns(problem, devices) + (i >= 2 ? test_launches_once(problem, devices) : 0);
    if (cost != price)
      test_problem_fail(devices, "the placement costs %llu, but the reported cost is %llu", (unsigned long long)price,
                        (unsigned long long)cost);
    uint64_t best = test_brute_placement(problem, i >= 2, NULL);
    if (cost != best)
      test_problem_fail(devices, "the cut costs %llu, but the best placement %llu", (unsigned long long)cost,
                        (unsigned long long)best);
  }
}

static void test_two_devices(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    check_two(seed, &arena);
    clv__arena_finish(&arena);
  }
}

/* Among all best placements, the result is the one with the most nodes on `one`. */
static void check_ties(uint64_t seed, clv__arena *arena) {
  const test_problem_options shape = {1, 7, 2, 2, TEST_ALL & ~(uint32_t)(TEST_PINS | TEST_PARTIAL), TEST_SHAPE_COUNT};
  clv__problem *problem = test_problem_make(seed, &shape, arena);
  test_problem_at(problem, seed, "ties of two devices");
  clv__network_options options = {.one = (uint32_t)seed % 2, .other = (uint32_t)(seed + 1) % 2};
  uint32_t devices[MOST_NODES], other[MOST_NODES];
  uint64_t cost;
  clv_error error = {0};
  assert_ok(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), error);
  for (uint32_t set = 0; set < 1u << problem->node_count; ++set) {
    for (uint32_t n = 0; n < problem->node_count; ++n) other[n] = set >> n & 1u;
    if (test_placement_ns(problem, other) > cost) continue;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      if (devices[n] == options.other && other[n] == options.one)
        test_problem_fail(devices, "node %u is on `other`, but another best placement has it on `one`", n);
    }
  }
}

static void test_ties(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    check_ties(seed, &arena);
    clv__arena_finish(&arena);
  }
}

/* ---- Penalties, and nodes fixed on third devices ---- */

/* Returns an equivalent problem for brute force: penalties become node times, fixed nodes are pinned, and only the two devices
 * support the other nodes. */
static clv__problem as_pinned(const clv__problem *problem, const clv__network_options *options, clv__arena *arena) {
  clv__problem copy = *problem;
  uint64_t *times = array(arena, (size_t)problem->node_count * problem->device_count, sizeof *times);
  uint16_t *supports = array(arena, problem->node_count, sizeof *supports);
  uint32_t *pins = array(arena, problem->node_count, sizeof *pins);
  memcpy(times, problem->node_ns, (size_t)problem->node_count * problem->device_count * sizeof *times);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint64_t *row = &times[(size_t)n * problem->device_count];
    bool is_third = options->fixed[n] != CLV__NONE && options->fixed[n] != options->one && options->fixed[n] != options->other;
    supports[n] = problem->supports[n];
    pins[n] = problem->pins[n];
    if (options->fixed[n] != CLV__NONE) {
      pins[n] = options->fixed[n];
    } else {
      supports[n] &= (uint16_t)(1u << options->one | 1u << options->other);
    }
    if (is_third) continue;
    if (clv__can_run(problem, n, options->one)) row[options->one] += options->penalty_one[n];
    if (clv__can_run(problem, n, options->other)) row[options->other] += options->penalty_other[n];
  }
  copy.node_ns = times, copy.supports = supports, copy.pins = pins;
  return copy;
}

/* Returns the sum of the launch times of the devices other than `one` and `other` of the options. They are constant, and not
 * part of the network's cost. */
static uint64_t third_launches(const clv__problem *problem, const clv__network_options *options) {
  uint64_t time = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    bool used = false;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      used = used || (options->fixed[n] == d && (problem->flags[n] & CLV__NODE_VIEW) == 0);
    }
    if (used && d != options->one && d != options->other) time += problem->launch_ns[d];
  }
  return time;
}

static void check_fixed(uint64_t seed, clv__arena *arena) {
  const test_problem_options shape = {1, MOST_NODES - 2, 2, 4, TEST_ALL, TEST_SHAPE_COUNT};
  clv__problem *problem = test_problem_make(seed, &shape, arena);
  uint64_t random = seed ^ 0x5eed;
  uint32_t fixed[MOST_NODES], devices[MOST_NODES], percent = below(&random, 100);
  uint64_t penalty_one[MOST_NODES], penalty_other[MOST_NODES], cost;
  clv__network_options options = {.one = below(&random, problem->device_count), .fixed = fixed, .launches = below(&random, 2)};
  options.other = (options.one + 1 + below(&random, problem->device_count - 1)) % problem->device_count;
  bool penalised = below(&random, 2) == 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t two = 1u << options.one | 1u << options.other, pin = problem->pins[n];
    uint32_t allowed = pin == CLV__NONE ? problem->supports[n] : 1u << pin;
    penalty_one[n] = penalised ? below(&random, 50) : 0;
    penalty_other[n] = penalised ? below(&random, 50) : 0;
    fixed[n] = CLV__NONE;
    if ((allowed & two) != 0 && below(&random, 100) >= percent) continue;
    do fixed[n] = below(&random, problem->device_count);
    while ((allowed >> fixed[n] & 1u) == 0);
  }
  options.penalty_one = penalty_one, options.penalty_other = penalty_other;
  clv__problem pinned = as_pinned(problem, &options, arena);
  test_problem_at(&pinned, seed, options.launches ? "network with fixed nodes and launches" : "network with fixed nodes");
  clv_error error = {0};
  assert_ok(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), error);
  test_check_placement(&pinned, devices);
  uint64_t launches = options.launches ? third_launches(problem, &options) : 0;
  uint64_t price = test_placement_ns(&pinned, devices) + (options.launches ? test_launches_once(&pinned, devices) : 0);
  uint64_t best = test_brute_placement(&pinned, options.launches, NULL);
  if (cost + launches != price || price != best) {
    test_problem_fail(devices, "the reported cost is %llu, the placement costs %llu, the best %llu",
                      (unsigned long long)(cost + launches), (unsigned long long)price, (unsigned long long)best);
  }
}

static void test_fixed_nodes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    check_fixed(seed, &arena);
    clv__arena_finish(&arena);
  }
}

/* ---- Paths and sets of devices ---- */

static bool reads_from(const clv__problem *problem, uint32_t reader, uint32_t from) {
  for (uint32_t r = problem->read_offsets[reader]; r < problem->read_offsets[reader + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer == from) return true;
    if (producer != CLV__NONE && (problem->flags[producer] & CLV__NODE_VIEW) != 0 && reads_from(problem, producer, from))
      return true;
  }
  return false;
}

/* The network also counts the launches along one path of nodes: the first, and one at each change of device. Its cost is the
 * least over all placements, each with its launches along the path, and at most the time of the best serial plan. */
static void check_path(uint64_t seed, clv__arena *arena) {
  const test_problem_options shape = {1, 8, 2, 2, TEST_ALL & ~(uint32_t)TEST_LIMITS, TEST_SHAPE_COUNT};
  clv__problem *problem = test_problem_make(seed, &shape, arena);
  test_problem_at(problem, seed, "launches along a path");
  clv_error error = {0};
  uint32_t *path, count, devices[MOST_NODES];
  assert_ok(clv__network_path_find(problem, clv__allocator_default(), &path, &count, &error), error);
  uint64_t along = 0, cost, best = UINT64_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    assert_true((problem->flags[path[i]] & CLV__NODE_VIEW) == 0);
    if (i > 0) assert_true(reads_from(problem, path[i], path[i - 1]));
  }
  clv__network_options options = {.one = 0, .other = 1, .path = {count, path}};
  assert_ok(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), error);
  uint32_t trial[MOST_NODES];
  for (uint32_t set = 0; set < 1u << problem->node_count; ++set) {
    bool allowed = true;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      trial[n] = set >> n & 1u;
      allowed = allowed && clv__can_run(problem, n, trial[n]) && (problem->pins[n] == CLV__NONE || problem->pins[n] == trial[n]);
    }
    if (!allowed) continue;
    along = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (i == 0 || trial[path[i]] != trial[path[i - 1]]) along += problem->launch_ns[trial[path[i]]];
    }
    uint64_t time = test_placement_ns(problem, trial) + along;
    if (time < best) best = time;
  }
  if (cost != best)
    test_problem_fail(devices, "the cut costs %llu, but the best placement %llu", (unsigned long long)cost,
                      (unsigned long long)best);
  uint64_t serial = test_brute_serial(problem, NULL);
  if (cost > serial)
    test_problem_fail(devices, "the cost %llu is above the best serial time %llu", (unsigned long long)cost,
                      (unsigned long long)serial);
  clv__release(clv__allocator_default(), path);
}

static void test_paths(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    check_path(seed, &arena);
    clv__arena_finish(&arena);
  }
}

/* Divides the devices into two sets in all ways. The bound for the two sets must not exceed the cost of the best placement. */
static void check_sides(uint64_t seed, clv__arena *arena) {
  const test_problem_options shape = {1, 7, 2, 4, TEST_ALL, TEST_SHAPE_COUNT};
  clv__problem *problem = test_problem_make(seed, &shape, arena);
  test_problem_at(problem, seed, "two sets of devices");
  uint32_t all = (1u << problem->device_count) - 1;
  uint64_t best = test_brute_placement(problem, false, NULL), cost;
  clv_error error = {0};
  for (uint32_t one = 1; one < all; ++one) {
    clv__network_sides sides = {.one = (uint16_t)one, .other = (uint16_t)(all & ~one)};
    assert_ok(clv__network_bound(problem, &sides, clv__allocator_default(), NULL, &cost, &error), error);
    if (cost > best)
      test_problem_fail(NULL, "devices %#x against the others: the bound %llu is above the best placement's cost, %llu", one,
                        (unsigned long long)cost, (unsigned long long)best);
  }
}

static void test_sides(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    check_sides(seed, &arena);
    clv__arena_finish(&arena);
  }
}

/* ---- Large ones, refusals ---- */

static void test_large(void **state) {
  (void)state;
  for (test_shape kind = 0; kind < TEST_SHAPE_COUNT; ++kind) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    const test_problem_options shape = {30000, 30000, 3, 3, TEST_ALL & ~(uint32_t)(TEST_PINS | TEST_PARTIAL), kind};
    clv__problem *problem = test_problem_make(kind + 3, &shape, &arena);
    test_problem_at(problem, kind + 3, "a large network");
    uint32_t *fixed = array(&arena, problem->node_count, sizeof *fixed),
             *devices = array(&arena, problem->node_count, sizeof *devices);
    for (uint32_t n = 0; n < problem->node_count; ++n) fixed[n] = n % 3 == 0 ? 2 : CLV__NONE;
    for (int i = 0; i < 2; ++i) {
      clv__network_options options = {.one = 1, .other = 0, .fixed = i == 0 ? NULL : fixed};
      uint64_t cost, price;
      clv_error error = {0};
      assert_ok(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), error);
      assert_ok(clv__price_placement(problem, devices, &price, &error), error);
      assert_int_equal(cost, price);
      /* Moving a single node to the other device never lowers the cost. */
      for (uint32_t n = 0; n < problem->node_count; n += 97) {
        if (devices[n] < 2) assert_true(clv__price_move(problem, devices, NULL, n, 1 - devices[n]) >= 0);
      }
    }
    clv__arena_finish(&arena);
  }
}

static void test_refusals(void **state) {
  (void)state;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  const test_problem_options shape = {4, 4, 3, 3, 0, TEST_CHAIN};
  clv__problem *problem = test_problem_make(1, &shape, &arena);
  uint32_t pins[4] = {CLV__NONE, CLV__NONE, 2, CLV__NONE}, devices[4], fixed[4] = {0, 0, 0, 1};
  uint16_t supports[4] = {7, 7, 7, 5};
  uint64_t times[12], cost;
  clv_error error = {0};
  problem->pins = pins;
  clv__network_options options = {.one = 0, .other = 1};
  assert_int_equal(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "node 2"));
  pins[2] = CLV__NONE;
  problem->supports = supports;
  options.fixed = fixed;
  assert_int_equal(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "node 3"));
  for (int i = 0; i < 12; ++i) times[i] = (uint64_t)1 << 57;
  supports[3] = 7;
  options.fixed = NULL;
  problem->node_ns = times;
  assert_int_equal(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), CLV_INVALID_ARGUMENT);
  fixed[3] = 0;
  for (int i = 0; i < 12; ++i) times[i] = INT64_MAX;
  options.fixed = fixed;
  assert_int_equal(clv__network_solve(problem, &options, clv__allocator_default(), devices, &cost, &error), CLV_INVALID_ARGUMENT);
  clv__arena_finish(&arena);
}

static void test_memory(void **state) {
  (void)state;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  const test_problem_options shape = {60, 60, 2, 2, TEST_SAVINGS | TEST_LAUNCHES | TEST_VIEWS, TEST_RANDOM};
  clv__problem *problem = test_problem_make(5, &shape, &arena);
  uint32_t devices[60], *path, count;
  uint64_t cost;
  test_allocator counting;
  test_allocator_init(&counting);
  clv_status status;
  do {
    clv_error error = {0};
    counting.calls = 0;
    ++counting.fail_at;
    clv__network_options options = {.one = 0, .other = 1, .launches = true};
    status = clv__network_path_find(problem, &counting.allocator, &path, &count, &error);
    if (status == CLV_OK) {
      clv__release(&counting.allocator, path);
      status = clv__network_solve(problem, &options, &counting.allocator, devices, &cost, &error);
    }
    assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY);
    assert_int_equal(counting.live, 0);
  } while (status != CLV_OK);
  assert_true(counting.fail_at > 6);
  clv__arena_finish(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_devices), cmocka_unit_test(test_ties),   cmocka_unit_test(test_fixed_nodes),
      cmocka_unit_test(test_paths),       cmocka_unit_test(test_sides),  cmocka_unit_test(test_large),
      cmocka_unit_test(test_refusals),    cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
