/* Tests the lower bounds on the times of plans. A bound must never exceed the time of the best plan, which is found by
 * trying all plans, and must not be far below it. */
#include <stdlib.h>
#include <string.h>

#include "problem_brute.h"
#include "problem_checks.h"
#include "split/split.h"
#include "support.h"

static clv__bounds bounds_of(const clv__problem *problem) {
  clv__bounds bounds;
  clv_error error = {0};
  assert_ok(clv__bound(problem, clv__allocator_default(), &bounds, &error), error);
  assert_true(bounds.throughput_ns <= bounds.overlapped_ns && bounds.overlapped_ns <= bounds.serial_ns);
  return bounds;
}

/* Sums up the ratios of bounds to best times. Their mean must not be small, so that a bound that is much too low fails too. */
typedef struct reached {
  double sum;
  uint32_t count;
} reached;

static void check(const char *what, uint64_t bound, uint64_t best, reached *into) {
  if (bound > best) {
    test_problem_fail(NULL, "the %s bound, %llu ns, is above the best plan's time, %llu ns", what, (unsigned long long)bound,
                      (unsigned long long)best);
  }
  if (best == 0 || best == UINT64_MAX) return;
  into->sum += (double)bound / (double)best;
  ++into->count;
}

static double mean(const reached *of) {
  return of->sum / of->count;
}

static double check_serial(uint64_t seeds, test_problem_options shape) {
  reached serial = {0};
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &shape, &arena);
    test_problem_at(problem, seed, "bounds");
    check("serial", bounds_of(problem).serial_ns, test_brute_serial(problem, NULL), &serial);
    clv__arena_finish(&arena);
  }
  return mean(&serial);
}

static void test_serial(void **state) {
  (void)state;
  const uint32_t free = TEST_ALL & ~(uint32_t)TEST_LIMITS;
  double one = check_serial(500, (test_problem_options){1, 9, 1, 1, free, TEST_SHAPE_COUNT});
  double two = check_serial(6000, (test_problem_options){1, 9, 2, 2, free, TEST_SHAPE_COUNT});
  double three = check_serial(2500, (test_problem_options){1, 7, 3, 3, free, TEST_SHAPE_COUNT});
  double four = check_serial(1000, (test_problem_options){1, 6, 4, 4, free, TEST_SHAPE_COUNT});
  check_serial(1000, (test_problem_options){1, 7, 1, 3, TEST_ALL, TEST_SHAPE_COUNT});
  print_message(
      "mean ratio of the bound to the best serial time: %.4f with one device, %.4f with two, %.4f with three, %.4f with four\n",
      one, two, three, four);
  assert_true(one > 0.99 && two > 0.99 && three > 0.96 && four > 0.94);
}

/* Without launches, the bound for two devices is exact. */
static void test_two_exactly(void **state) {
  (void)state;
  const test_problem_options shape = {1, 11, 2, 2, TEST_ALL & ~(uint32_t)(TEST_LIMITS | TEST_LAUNCHES), TEST_SHAPE_COUNT};
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &shape, &arena);
    assert_int_equal(bounds_of(problem).serial_ns, test_brute_placement(problem, false, NULL));
    clv__arena_finish(&arena);
  }
}

static void test_lanes(void **state) {
  (void)state;
  reached overlapped = {0}, throughput = {0};
  for (uint64_t seed = 1; seed <= 2500; ++seed) {
    const test_problem_options shape = {1, 5, 1, 3, TEST_ALL & ~(uint32_t)TEST_LIMITS, TEST_SHAPE_COUNT};
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &shape, &arena);
    test_problem_at(problem, seed, "bounds of lanes");
    clv__bounds bounds = bounds_of(problem);
    test_best_lanes best = test_brute_lanes(problem);
    check("overlapped", bounds.overlapped_ns, best.overlapped_ns, &overlapped);
    check("throughput", bounds.throughput_ns, best.throughput_ns, &throughput);
    clv__arena_finish(&arena);
  }
  print_message("mean ratio of the bound to the best plan: %.4f for overlap, %.4f for throughput\n", mean(&overlapped),
                mean(&throughput));
  assert_true(mean(&overlapped) > 0.9 && mean(&throughput) > 0.7);
}

/* If times are so large that the better bounds would overflow, the bound is the sum of the nodes' times. A node that no device
 * supports is an error. */
static void test_refusals(void **state) {
  (void)state;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  const test_problem_options shape = {4, 4, 3, 3, 0, TEST_CHAIN};
  clv__problem *problem = test_problem_make(1, &shape, &arena);
  uint64_t times[12];
  for (int i = 0; i < 12; ++i) times[i] = (uint64_t)1 << 57;
  problem->node_ns = times;
  assert_true(bounds_of(problem).serial_ns == (uint64_t)1 << 59);
  problem->device_count = 2;
  assert_true(bounds_of(problem).serial_ns == (uint64_t)1 << 59);
  uint16_t supports[4] = {7, 7, 4, 7};
  problem->supports = supports;
  clv__bounds bounds;
  clv_error error = {0};
  assert_int_equal(clv__bound(problem, clv__allocator_default(), &bounds, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "node 2"));
  clv__arena_finish(&arena);
}

static void test_memory(void **state) {
  (void)state;
  for (uint32_t devices = 1; devices <= 4; ++devices) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    const test_problem_options shape = {30, 30, devices, devices, TEST_SAVINGS | TEST_LAUNCHES, TEST_RANDOM};
    clv__problem *problem = test_problem_make(4, &shape, &arena);
    test_allocator counting;
    test_allocator_init(&counting);
    clv_status status;
    do {
      clv_error error = {0};
      clv__bounds bounds;
      counting.calls = 0;
      ++counting.fail_at;
      status = clv__bound(problem, &counting.allocator, &bounds, &error);
      assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY);
      assert_int_equal(counting.live, 0);
    } while (status != CLV_OK);
    assert_true(counting.fail_at > 3);
    clv__arena_finish(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_serial),   cmocka_unit_test(test_two_exactly), cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
