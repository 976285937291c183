/* Properties of every placement and split, on random problems. Each test prints the number of its problems;
 * CLEAVE_TEST_PERCENT=N runs N percent of them. A failure prints the problem and its seed, which reproduces it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"
#include "problem_brute.h"
#include "problem_checks.h"
#include "split/minimum_cut/network.h"
#include "support.h"

static uint32_t scaled(uint32_t problems) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  problems = (problems + 3) / 4; /* sanitizers are slow */
#endif
  return test_some(problems);
}

/* A random problem, and the input for strategies. */
typedef struct subject {
  clv__arena arena;
  uint64_t seed;
  const clv__problem *problem;
  clv__place_input input;
} subject;

static void subject_open(subject *s, uint64_t seed, const test_problem_options *options) {
  clv__arena_init(&s->arena, clv__allocator_default());
  s->seed = seed;
  s->problem = test_problem_make(seed, options, &s->arena);
  s->input = (clv__place_input){.problem = s->problem};
  test_problem_at(s->problem, seed, "");
}

static void subject_close(subject *s) {
  clv__arena_finish(&s->arena);
}

/* Lets half of the devices choose groups among the nodes that they can run. */
static void draw_claims(subject *s, uint64_t random) {
  const clv__problem *problem = s->problem;
  uint32_t **claims = clv__arena_allocate_zero(&s->arena, problem->device_count, sizeof *claims);
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (test_random(&random) % 2 == 0) continue;
    uint32_t group = 0;
    claims[d] = clv__arena_allocate(&s->arena, problem->node_count * sizeof **claims);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      if (test_random(&random) % 3 == 0) ++group;
      claims[d][n] = clv__can_run(problem, n, d) && test_random(&random) % 4 != 0 ? group : CLV__NONE;
    }
  }
  s->input.claims = (const uint32_t *const *)claims;
}

static void expect_ok(const subject *s, clv_status status, const clv_error *error, const char *what) {
  test_problem_at(s->problem, s->seed, what);
  if (status != CLV_OK) test_problem_fail(NULL, "%s: %s", clv_status_name(status), error->message);
}

static void check_candidate(const subject *s, const clv__candidate *c) {
  const clv__problem *problem = s->problem;
  const clv__placing *placing = &c->placing;
  clv_error error = {0};
  uint64_t time;
  test_check_placement(problem, placing->devices);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (placing->causes[n] == NULL || placing->causes[n][0] == '\0')
      test_problem_fail(placing->devices, "node %u has no cause", n);
  }
  test_check_cut(problem, placing->devices, placing->groups, &c->cut);
  test_check_moves(problem, &c->cut, placing->streamed, &c->copies);
  test_check_price(problem, &c->cut, &c->copies, &c->price);
  expect_ok(s, clv__price_placement(problem, placing->devices, &time, &error), &error, "price of a placement");
  if (time != test_placement_ns(problem, placing->devices)) {
    test_problem_fail(placing->devices, "the placement costs %llu, but clv__price_placement() returns %llu",
                      (unsigned long long)test_placement_ns(problem, placing->devices), (unsigned long long)time);
  }
}

static void expect_same(const clv__candidate *a, const clv__candidate *b, const clv__problem *problem, const char *name) {
  bool same = memcmp(a->placing.devices, b->placing.devices, problem->node_count * sizeof *a->placing.devices) == 0 &&
              a->cut.count == b->cut.count && a->copies.count == b->copies.count &&
              memcmp(a->cut.nodes, b->cut.nodes, problem->node_count * sizeof *a->cut.nodes) == 0 &&
              memcmp(a->cut.offsets, b->cut.offsets, (a->cut.count + 1) * sizeof *a->cut.offsets) == 0;
  for (uint32_t n = 0; same && n < problem->node_count; ++n) same = strcmp(a->placing.causes[n], b->placing.causes[n]) == 0;
  for (uint32_t m = 0; same && m < a->copies.count; ++m) {
    const clv__copy *x = &a->copies.items[m], *y = &b->copies.items[m];
    same = x->value == y->value && x->is_weight == y->is_weight && x->from == y->from && x->to == y->to && x->before == y->before;
  }
  if (!same) test_problem_fail(a->placing.devices, "%s: the same problem gave two different plans", name);
}

/* Runs a strategy and checks its result. If `again`, runs it twice and compares the results. */
static void run_strategy(subject *s, const clv__strategy *strategy, bool again, clv__candidate *c) {
  clv_error error = {0};
  clv__candidate second;
  clv__place_input input = s->input;
  if (!input.split_is_given) input.split = strategy->split;
  expect_ok(s, clv__place_candidate(&input, strategy->place, &s->arena, c, &error), &error, strategy->name);
  check_candidate(s, c);
  if (!again) return;
  expect_ok(s, clv__place_candidate(&input, strategy->place, &s->arena, &second, &error), &error, strategy->name);
  expect_same(c, &second, s->problem, strategy->name);
}

/* Places everything on one device. Returns false if that is not possible. */
static bool run_single(subject *s, uint32_t device, clv__candidate *c) {
  clv_error error = {0};
  *c = (clv__candidate){0};
  expect_ok(s, clv__placing_init(s->problem, &s->arena, &c->placing, &error), &error, "single");
  for (uint32_t n = 0; n < s->problem->node_count; ++n) {
    if ((clv__node_devices(s->problem, n) >> device & 1u) == 0) return false;
    c->placing.devices[n] = device;
    c->placing.causes[n] = "single";
  }
  expect_ok(s, clv__place_price(&s->input, &s->arena, c, &error), &error, "single");
  check_candidate(s, c);
  return true;
}

static void expect_not_above(const subject *s, uint64_t low, uint64_t high, const char *what) {
  test_problem_at(s->problem, s->seed, what);
  if (low > high) test_problem_fail(NULL, "%llu is above %llu", (unsigned long long)low, (unsigned long long)high);
}

static void check_strategies(subject *s, bool again) {
  clv_error error = {0};
  clv__bounds bounds;
  clv__candidate best, other;
  expect_ok(s, clv__bound(s->problem, clv__allocator_default(), &bounds, &error), &error, "bound");
  run_strategy(s, clv__strategy_find("optimal"), again, &best);
  clv__objective objective = s->input.objective;
  uint64_t least = clv__price_of(&best.price, objective);
  expect_not_above(s, clv__bound_of(&bounds, objective), least, "the bound and the result of optimal");
  for (uint32_t at = 0; clv__strategies[at] != NULL; ++at) {
    const clv__strategy *strategy = clv__strategies[at];
    if (strategy->place == clv__place_optimal) continue;
    run_strategy(s, strategy, again, &other);
    char what[64];
    snprintf(what, sizeof what, "the results of optimal and %s", strategy->name);
    expect_not_above(s, least, clv__price_of(&other.price, objective), what);
    expect_not_above(s, bounds.serial_ns, other.price.serial_ns, "the serial bound");
    expect_not_above(s, bounds.overlapped_ns, other.price.overlapped_ns, "the overlapped bound");
    expect_not_above(s, bounds.throughput_ns, other.price.throughput_ns, "the throughput bound");
  }
  for (uint32_t d = 0; d < s->problem->device_count; ++d) {
    if (run_single(s, d, &other))
      expect_not_above(s, least, clv__price_of(&other.price, objective), "the results of optimal and a single device");
  }
}

static void strategies_of(uint32_t problems, uint64_t first_seed, const test_problem_options *options) {
  uint32_t count = scaled(problems);
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    subject_open(&s, first_seed + i, options);
    uint32_t mode = i % 4;
    s.input.split = mode == 3 ? CLV__SPLIT_CONVEX : (clv__split_mode)mode;
    s.input.split_is_given = mode < 3;
    s.input.objective = i % 128 == 127 ? CLV__OVERLAP
                        : i % 32 == 31 ? CLV__THROUGHPUT
                                       : CLV__LATENCY; /* an objective that takes longer to plan is drawn less often */
    if (i % 3 == 0) draw_claims(&s, s.seed);
    check_strategies(&s, i % 5 == 0);
    subject_close(&s);
  }
  print_message("             %u problems of %u to %u nodes\n", count, options->min_nodes, options->max_nodes);
}

static void every_strategy(void **state) {
  (void)state;
  strategies_of(20000, 1000000, &(test_problem_options){1, 10, 1, 4, TEST_ALL, TEST_SHAPE_COUNT});
  strategies_of(100, 2000000, &(test_problem_options){13, 60, 2, 4, TEST_ALL, TEST_SHAPE_COUNT});
}

/* ---- Node + transfer + fusion, exact for two devices ---- */

/* Solves the network of two devices with some nodes fixed, perhaps on other devices. Compares the cost with that of the best
 * placement of the same problem in which only the two devices support the nodes that are not fixed. */
static void check_network(subject *s, bool launches, uint64_t random) {
  clv__problem held = *s->problem;
  uint32_t count = held.node_count, one = (uint32_t)(test_random(&random) % held.device_count);
  uint32_t other = (one + 1 + (uint32_t)(test_random(&random) % (held.device_count - 1))) % held.device_count;
  uint32_t *fixed = clv__arena_allocate(&s->arena, count * sizeof *fixed);
  uint32_t *devices = clv__arena_allocate(&s->arena, count * sizeof *devices);
  uint16_t *supports = clv__arena_copy(&s->arena, held.supports, count * sizeof *supports),
           both = (uint16_t)(1u << one | 1u << other);
  for (uint32_t n = 0; n < count; ++n) {
    fixed[n] = held.pins[n] == one || held.pins[n] == other ? CLV__NONE : held.pins[n];
    bool hold = (supports[n] & both) == 0 || (held.pins[n] == CLV__NONE && test_random(&random) % 8 == 0);
    while (fixed[n] == CLV__NONE && hold) {
      uint32_t d = (uint32_t)(test_random(&random) % held.device_count);
      if (clv__can_run(s->problem, n, d)) fixed[n] = d;
    }
    supports[n] = fixed[n] != CLV__NONE ? (uint16_t)(1u << fixed[n]) : supports[n] & both;
  }
  held.supports = supports;
  clv__network_options options = {.one = one, .other = other, .fixed = fixed, .launches = launches};
  clv_error error = {0};
  uint64_t cost, least = test_brute_placement(&held, launches, NULL);
  expect_ok(s, clv__network_solve(s->problem, &options, clv__allocator_default(), devices, &cost, &error), &error, "network");
  test_check_placement(&held, devices);
  uint64_t is = test_placement_ns(&held, devices) + (launches ? test_launches_once(&held, devices) : 0);
  if (is != least || (held.device_count == 2 && cost != least)) {
    test_problem_fail(
        devices,
        "between devices %u and %u (launches: %d), the placement costs %llu, the reported cost is %llu, and the least is %llu",
        one, other, launches, (unsigned long long)is, (unsigned long long)cost, (unsigned long long)least);
  }
}

static void network_is_exact(void **state) {
  (void)state;
  uint32_t count = scaled(10000);
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    uint32_t most = i % 2 == 0 ? 12 : 8;
    bool two = i % 4 < 3;
    subject_open(&s, 3000000 + i, &(test_problem_options){1, most, 2, two ? 2 : 4, TEST_ALL, TEST_SHAPE_COUNT});
    check_network(&s, i % 2 == 0, s.seed);
    subject_close(&s);
  }
  print_message("             %u problems\n", count);
}

/* ---- The best plan, by brute force ---- */

/* Without launches and limits, the time of a plan is its node + transfer + fusion cost, if there is a grouping that loses no
 * saving. Then `optimal` must reach the least cost. */
static void optimal_is_least_without_launches(void **state) {
  (void)state;
  static const uint32_t most[] = {0, 0, 12, 8, 6};
  uint32_t count = scaled(5000), reached = 0;
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    uint32_t devices = 2 + i % 3, features = TEST_ALL & ~(TEST_LAUNCHES | TEST_LIMITS);
    uint32_t nodes = devices == 2 && i % 4 != 0 ? 9 : most[devices];
    subject_open(&s, 4000000 + i, &(test_problem_options){1, nodes, devices, devices, features, TEST_SHAPE_COUNT});
    clv__candidate c;
    run_strategy(&s, clv__strategy_find("optimal"), false, &c);
    uint64_t least = test_brute_placement(s.problem, false, NULL);
    expect_not_above(&s, least, c.price.serial_ns, "node + transfer + fusion cost");
    bool saves = s.problem->saving_ns != NULL; /* if so, it is possible that no grouping reaches the least cost */
    if (c.price.serial_ns == least)
      ++reached;
    else if (!saves || test_brute_groups(s.problem, c.placing.devices).serial_ns != c.price.serial_ns)
      test_problem_fail(c.placing.devices, "optimal costs %llu, but the least is %llu", (unsigned long long)c.price.serial_ns,
                        (unsigned long long)least);
    subject_close(&s);
  }
  print_message("             %u problems; in %u, optimal has the least cost of nodes, transfers and fusion\n", count, reached);
}

/* With launches and limits: the bound is at most the best plan, which is at most the result of `optimal`. */
static void optimal_is_within_its_gap(void **state) {
  (void)state;
  static const uint32_t most[] = {0, 9, 8, 5, 5};
  uint32_t count = scaled(6000), same = 0, tight = 0;
  double worst = 0;
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    clv_error error = {0};
    clv__bounds bounds;
    uint32_t devices = 1 + i % 4, nodes = devices == 2 && i % 16 != 1 ? 7 : most[devices];
    subject_open(&s, 5000000 + i, &(test_problem_options){1, nodes, devices, devices, TEST_ALL, TEST_SHAPE_COUNT});
    clv__candidate c;
    run_strategy(&s, clv__strategy_find("optimal"), false, &c);
    uint64_t least = test_brute_serial(s.problem, NULL);
    expect_ok(&s, clv__bound(s.problem, clv__allocator_default(), &bounds, &error), &error, "bound");
    expect_not_above(&s, bounds.serial_ns, least, "the serial bound and the best plan");
    expect_not_above(&s, least, c.price.serial_ns, "the best plan and the result of optimal");
    same += c.price.serial_ns == least;
    tight += bounds.serial_ns == least;
    if (least > 0 && (double)c.price.serial_ns / (double)least - 1 > worst) worst = (double)c.price.serial_ns / (double)least - 1;
    subject_close(&s);
  }
  print_message(
      "             %u problems; optimal finds the best plan in %u (at worst %.1f %% slower), and the bound equals its time in "
      "%u\n",
      count, same, 100 * worst, tight);
  assert_true(same * 100 >= count * 95);
}

/* Checks the time and the memory of a plan. Returns whether it fits. */
static bool check_budgets(const subject *s, const clv__candidate *c) {
  const clv__problem *problem = s->problem;
  clv_error error = {0};
  clv__memory memory;
  uint64_t excess, needs[2], time = test_run_budgets(problem, &c->cut, c->placing.streamed, needs);
  expect_ok(
      s,
      clv__memory_excess(problem, &c->cut, &c->copies, c->placing.streamed, clv__allocator_default(), &memory, &excess, &error),
      &error, "excess");
  if (time != c->price.serial_ns)
    test_problem_fail(c->placing.devices, "the plan takes %llu ns, but its price is %llu", (unsigned long long)time,
                      (unsigned long long)c->price.serial_ns);
  bool fits = true;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t limit = problem->limits[d].memory_bytes, states = clv__memory_needed(problem, &memory, NULL, d);
    if (limit > 0 && needs[d] != states)
      test_problem_fail(c->placing.devices, "device %u needs %llu bytes, but clv__memory_needed() returns %llu", d,
                        (unsigned long long)needs[d], (unsigned long long)states);
    fits = fits && (limit == 0 || needs[d] <= limit);
    for (uint32_t w = 0; c->placing.streamed != NULL && w < problem->weight_count; ++w) {
      if ((c->placing.streamed[w] >> d & 1u) != 0 && !clv__can_stream(problem, w, d))
        test_problem_fail(c->placing.devices, "weight %u cannot be streamed to device %u", w, d);
    }
  }
  if (fits != (excess == 0))
    test_problem_fail(c->placing.devices, "the plan %s into memory, but clv__memory_excess() gives %llu bytes",
                      fits ? "fits" : "does not fit", (unsigned long long)excess);
  return fits;
}

/* With memory limits and streamed weights: the bound is at most the best plan that fits, which is at most the result of
 * `optimal`. So its gap is never too small. Counts the problems for which `optimal` misses: it finds no plan that fits,
 * although there is one, or its plan is slower than the best. */
static void optimal_keeps_budgets(void **state) {
  (void)state;
  const uint32_t features =
      TEST_PARTIAL | TEST_VIEWS | TEST_SAVINGS | TEST_LAUNCHES | TEST_SHARED | TEST_PINS | TEST_WEIGHTS | TEST_MEMORY;
  uint32_t count = test_some(5000), none = 0, binding = 0, missed = 0, slower = 0, tight = 0;
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    clv_error error = {0};
    clv__bounds bounds;
    clv__candidate c;
    subject_open(&s, 9000000 + i, &(test_problem_options){1, TEST_BUDGET_NODES, 2, 2, features, TEST_SHAPE_COUNT});
    run_strategy(&s, clv__strategy_find("optimal"), false, &c);
    bool fits = check_budgets(&s, &c);
    uint64_t least = test_brute_budgets(s.problem);
    expect_ok(&s, clv__bound(s.problem, clv__allocator_default(), &bounds, &error), &error, "bound");
    if (least == UINT64_MAX) {
      assert_false(fits);
      ++none;
      subject_close(&s);
      continue;
    }
    expect_not_above(&s, bounds.serial_ns, least, "the serial bound and the best plan that fits");
    if (fits) expect_not_above(&s, least, c.price.serial_ns, "the best plan that fits and the result of optimal");
    clv__problem unlimited = *s.problem;
    unlimited.limits = (const clv__limits[2]){{0}};
    binding += test_brute_budgets(&unlimited) < least;
    missed += !fits;
    slower += fits && c.price.serial_ns > least;
    tight += bounds.serial_ns == least;
    subject_close(&s);
  }
  uint32_t solvable = count - none;
  print_message(
      "             %u problems, %u without a plan that fits; in %u of the others, memory makes the best plan slower. optimal "
      "misses every plan that fits in %u, and is slower than the best in %u; the bound is the best plan in %u\n",
      count, none, binding, missed, slower, tight);
  assert_true(missed <= 1 + solvable / 400 && slower <= 1 + solvable / 40);
}

/* The objectives `overlap` and `throughput`: the bound is at most the time of the best plan, which is found by trying all
 * orders of all groupings, and `optimal` finds a plan of that time in at least 80 % of the problems. */
static void lanes_are_within_their_gap(void **state) {
  (void)state;
  uint32_t count = scaled(1000), same = 0, tight = 0;
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    clv_error error = {0};
    clv__bounds bounds;
    clv__candidate c;
    uint32_t devices = 2 + i % 3 / 2;
    subject_open(&s, 6000000 + i, &(test_problem_options){1, devices == 2 ? 5 : 4, devices, devices, TEST_ALL, TEST_SHAPE_COUNT});
    s.input.objective = i % 2 == 0 ? CLV__OVERLAP : CLV__THROUGHPUT;
    run_strategy(&s, clv__strategy_find("optimal"), false, &c);
    test_best_lanes best = test_brute_lanes(s.problem);
    uint64_t least = i % 2 == 0 ? best.overlapped_ns : best.throughput_ns;
    expect_ok(&s, clv__bound(s.problem, clv__allocator_default(), &bounds, &error), &error, "bound");
    expect_not_above(&s, bounds.overlapped_ns, best.overlapped_ns, "the overlapped bound and the best plan");
    expect_not_above(&s, bounds.throughput_ns, best.throughput_ns, "the throughput bound and the best plan");
    same += clv__price_of(&c.price, s.input.objective) <= least;
    tight += clv__bound_of(&bounds, s.input.objective) == least;
    subject_close(&s);
  }
  print_message("             %u problems; optimal finds the best plan in %u, and the bound equals its time in %u\n", count, same,
                tight);
  assert_true(same * 100 >= count * 80);
}

/* ---- Splits ---- */

static uint32_t *draw_placement(subject *s) {
  uint64_t random = s->seed;
  uint32_t *devices = clv__arena_allocate(&s->arena, s->problem->node_count * sizeof *devices);
  for (uint32_t n = 0; n < s->problem->node_count; ++n) {
    do devices[n] = (uint32_t)(test_random(&random) % s->problem->device_count);
    while (!clv__can_run(s->problem, n, devices[n]));
  }
  return devices;
}

/* Compares the splits of random placements, and the bound on the number of partitions, with the best of all groupings. */
static void splits_are_least(void **state) {
  (void)state;
  uint32_t count = scaled(6000), fewest = 0, least = 0;
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    clv_error error = {0};
    uint32_t features = i % 4 == 0 ? TEST_ALL & ~TEST_PINS : TEST_ALL & ~(TEST_PINS | TEST_LIMITS), bound;
    subject_open(&s, 7000000 + i, &(test_problem_options){1, 10, 1, 2 + i % 3, features, TEST_SHAPE_COUNT});
    clv__candidate few = {0}, fast = {0};
    uint32_t *devices = few.placing.devices = fast.placing.devices = draw_placement(&s);
    test_best_groups best = test_brute_groups(s.problem, devices);
    s.input.split = CLV__SPLIT_FEWEST;
    expect_ok(&s, clv__place_price(&s.input, &s.arena, &few, &error), &error, "fewest");
    test_check_cut(s.problem, devices, NULL, &few.cut);
    s.input.split = CLV__SPLIT_CONVEX;
    expect_ok(&s, clv__place_price(&s.input, &s.arena, &fast, &error), &error, "convex");
    test_check_cut(s.problem, devices, NULL, &fast.cut);
    expect_ok(&s, clv__split_fewest_bound(s.problem, devices, &s.arena, &bound, &error), &error, "bound of the fewest");
    uint32_t used = 0;
    bool has_hosted = false; /* whether there are hosted views: their partitions count, but the bounds do not include them */
    for (uint32_t n = 0; n < s.problem->node_count; ++n) {
      used |= 1u << devices[n];
      has_hosted = has_hosted || clv__is_hosted(s.problem, n, devices[n]);
    }
    bool two = __builtin_popcount(used) <= 2 && !has_hosted;
    if (bound > best.fewest || (two && bound != best.fewest)) {
      test_problem_fail(devices, "the fewest partitions are %u, but the bound is %u", best.fewest, bound);
    }
    bool limited = features != (TEST_ALL & ~(TEST_PINS | TEST_LIMITS));
    if (few.cut.count < best.fewest_in_limits || (two && !limited && few.cut.count != best.fewest)) {
      test_problem_fail(devices, "the fewest partitions are %u, or %u within the limits of devices, but the split has %u",
                        best.fewest, best.fewest_in_limits, few.cut.count);
    }
    expect_not_above(&s, best.serial_ns, fast.price.serial_ns,
                     "the least time of all groupings and the time of the convex split");
    fewest += few.cut.count == best.fewest_in_limits;
    least += fast.price.serial_ns == best.serial_ns;
    subject_close(&s);
  }
  print_message("             %u problems; the split has the fewest partitions in %u, and the least time in %u\n", count, fewest,
                least);
  assert_true(fewest * 100 >= count * 90 && least * 100 >= count * 90);
}

/* ---- The price of a single move ---- */

static void moves_are_priced(void **state) {
  (void)state;
  uint32_t count = scaled(5000);
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    subject_open(&s, 8000000 + i, &(test_problem_options){1, 12, 1, 4, TEST_ALL, TEST_SHAPE_COUNT});
    uint32_t *devices = draw_placement(&s);
    for (uint32_t n = 0; n < s.problem->node_count; ++n) {
      uint32_t was = devices[n];
      for (uint32_t d = 0; d < s.problem->device_count; ++d) {
        if (!clv__can_run(s.problem, n, d)) continue;
        uint64_t before = test_placement_ns(s.problem, devices);
        int64_t says = clv__price_move(s.problem, devices, NULL, n, d);
        devices[n] = d;
        int64_t is = (int64_t)(test_placement_ns(s.problem, devices) - before);
        devices[n] = was;
        if (is != says) {
          test_problem_fail(devices, "moving node %u to device %u costs %lld ns, but clv__price_move() returns %lld", n, d,
                            (long long)is, (long long)says);
        }
      }
    }
    subject_close(&s);
  }
  print_message("             %u problems\n", count);
}

/* ---- Memory ---- */

/* Lets allocations of a strategy fail one after the other: each of the first hundred, then fewer. The strategy must return
 * CLV_OUT_OF_MEMORY and release all memory. */
static uint32_t fail_allocations(const subject *s, const clv__strategy *strategy) {
  uint32_t failures = 0;
  bool failed = true;
  for (size_t fail_at = 1; failed; fail_at += 1 + fail_at / 100) {
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv__arena arena;
    clv__arena_init(&arena, &counting.allocator);
    clv__candidate c;
    clv_error error = {0};
    clv__place_input input = s->input;
    input.split = strategy->split;
    clv_status status = clv__place_candidate(&input, strategy->place, &arena, &c, &error);
    clv__arena_finish(&arena);
    failed = counting.calls >= fail_at;
    test_problem_at(s->problem, s->seed, strategy->name);
    if (failed ? status != CLV_OUT_OF_MEMORY : status != CLV_OK) {
      test_problem_fail(NULL, "allocation %zu %s: status %s, expected %s: %s", fail_at, failed ? "fails" : "does not happen",
                        clv_status_name(status), failed ? "CLV_OUT_OF_MEMORY" : "CLV_OK", error.message);
    }
    if (counting.live != 0)
      test_problem_fail(NULL, "allocation %zu fails: %zu allocations are not released", fail_at, counting.live);
    failures += failed;
  }
  return failures;
}

static void allocations_fail(void **state) {
  (void)state;
  uint32_t failures = 0, count = scaled(12);
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    uint32_t features = i % 2 == 0 ? TEST_ALL : TEST_ALL | TEST_MEMORY;
    subject_open(&s, 9000000 + i, &(test_problem_options){2, 12, 2, 4, features, TEST_SHAPE_COUNT});
    for (uint32_t at = 0; clv__strategies[at] != NULL; ++at) {
      const clv__strategy *strategy = clv__strategies[at];
      failures += fail_allocations(&s, strategy);
    }
    subject_close(&s);
  }
  print_message("             %u problems, %u failures\n", count, failures);
}

/* With limited memory, every strategy gives a valid result, although it may not fit: planning makes it fit, or refuses it. */
static void memory_may_not_suffice(void **state) {
  (void)state;
  uint32_t count = scaled(600);
  for (uint32_t i = 0; i < count; ++i) {
    subject s;
    clv_error error = {0};
    clv__candidate c;
    subject_open(&s, 10000000 + i, &(test_problem_options){2, 14, 1, 4, TEST_ALL | TEST_MEMORY, TEST_SHAPE_COUNT});
    for (uint32_t at = 0; clv__strategies[at] != NULL; ++at) {
      const clv__strategy *strategy = clv__strategies[at];
      s.input.split = strategy->split;
      expect_ok(&s, clv__place_candidate(&s.input, strategy->place, &s.arena, &c, &error), &error, strategy->name);
      check_candidate(&s, &c);
    }
    subject_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_strategy),
      cmocka_unit_test(network_is_exact),
      cmocka_unit_test(optimal_is_least_without_launches),
      cmocka_unit_test(optimal_is_within_its_gap),
      cmocka_unit_test(optimal_keeps_budgets),
      cmocka_unit_test(lanes_are_within_their_gap),
      cmocka_unit_test(splits_are_least),
      cmocka_unit_test(moves_are_priced),
      cmocka_unit_test(allocations_fail),
      cmocka_unit_test(memory_may_not_suffice),
  };
  if (getenv("CMOCKA_TEST_FILTER") != NULL) cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
