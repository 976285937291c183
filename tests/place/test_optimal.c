/* Tests of `optimal` in addition to those of test_properties.c for every strategy: how often it is exact, its components,
 * memory and streaming, larger problems, and partition boundaries that cost more than they save. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"
#include "problem_brute.h"
#include "problem_checks.h"
#include "split/minimum_cut/network.h"
#include "support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SHARE = 16 };
#else
enum { SHARE = 1 };
#endif

static clv_error error;

static clv__candidate place(const clv__problem *problem, clv__objective objective, clv__arena *arena) {
  clv__candidate candidate;
  clv__place_input input = {.problem = problem, .objective = objective, .split = CLV__SPLIT_CONVEX};
  assert_ok(clv__place_candidate(&input, clv__place_optimal, arena, &candidate, &error), error);
  test_check_placement(problem, candidate.placing.devices);
  test_check_cut(problem, candidate.placing.devices, candidate.placing.groups, &candidate.cut);
  test_check_moves(problem, &candidate.cut, candidate.placing.streamed, &candidate.copies);
  test_check_price(problem, &candidate.cut, &candidate.copies, &candidate.price);
  return candidate;
}

/* ---- Chains made by hand ---- */

/* Node n reads value n and writes value n + 1; the last value is the output. Device 0 has its own memory and takes 1,000 ns per
 * node; device 1 is the host, and slow. Copies take the same time in both directions. */
static clv__problem *make_chain(uint32_t nodes, uint64_t fast_launch_ns, uint64_t copy_ns, uint64_t slow_ns, clv__arena *arena) {
#define ARRAY(type, name, count)                                               \
  type *name = clv__arena_allocate_zero(arena, (size_t)(count), sizeof(type)); \
  problem->name = name
  clv__problem *problem = clv__arena_allocate_zero(arena, 1, sizeof *problem);
  problem->node_count = nodes;
  problem->value_count = nodes + 1;
  problem->device_count = problem->space_count = 2;
  ARRAY(uint32_t, spaces, 2);
  ARRAY(clv__limits, limits, 2);
  ARRAY(uint64_t, launch_ns, 2);
  ARRAY(uint32_t, read_offsets, nodes + 1);
  ARRAY(uint32_t, reads, nodes);
  ARRAY(uint32_t, write_offsets, nodes + 1);
  ARRAY(uint32_t, writes, nodes);
  ARRAY(uint16_t, supports, nodes);
  ARRAY(uint16_t, prefers, nodes);
  ARRAY(uint32_t, pins, nodes);
  ARRAY(uint8_t, flags, nodes);
  ARRAY(uint64_t, node_ns, 2 * nodes);
  ARRAY(uint32_t, producers, nodes + 1);
  ARRAY(uint32_t, reader_offsets, nodes + 2);
  ARRAY(uint32_t, readers, nodes);
  ARRAY(uint8_t, is_output, nodes + 1);
  ARRAY(uint64_t, value_bytes, nodes + 1);
  ARRAY(uint64_t, in_ns, 2 * (nodes + 1));
  ARRAY(uint32_t, value_homes, nodes + 1);
  ARRAY(uint32_t, weight_offsets, nodes + 1);
#undef ARRAY
  spaces[0] = 1;
  launch_ns[0] = fast_launch_ns;
  launch_ns[1] = fast_launch_ns / 10;
  for (uint32_t n = 0; n < nodes; ++n) {
    reads[n] = readers[n] = n;
    writes[n] = n + 1;
    read_offsets[n + 1] = write_offsets[n + 1] = reader_offsets[n + 1] = n + 1;
    supports[n] = 3;
    pins[n] = CLV__NONE;
    node_ns[2 * n] = 1000;
    node_ns[2 * n + 1] = slow_ns;
  }
  reader_offsets[nodes + 1] = nodes;
  is_output[nodes] = 1;
  for (uint32_t v = 0; v <= nodes; ++v) {
    producers[v] = v == 0 ? CLV__NONE : v - 1;
    value_homes[v] = CLV__NONE;
    in_ns[2 * v + 1] = copy_ns;
  }
  problem->out_ns = in_ns;
  return problem;
}

/* ---- Comparison with the exact optimum ---- */

typedef struct gaps {
  uint32_t count, exact;
  double worst;
} gaps;

static void note_gap(gaps *g, uint64_t is, uint64_t least) {
  double ratio = least > 0 ? (double)is / (double)least : is > 0 ? 2.0 : 1.0;
  assert_true(is >= least);
  ++g->count;
  g->exact += is == least;
  if (ratio > g->worst) g->worst = ratio;
}

static gaps serial_gaps(uint32_t count, uint64_t seed, const test_problem_options *options) {
  gaps g = {0, 0, 1.0};
  for (uint32_t i = 0; i < count; ++i) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed + i, options, &arena);
    test_problem_at(problem, seed + i, "optimal");
    note_gap(&g, place(problem, CLV__LATENCY, &arena).price.serial_ns, test_brute_serial(problem, NULL));
    clv__arena_finish(&arena);
  }
  return g;
}

static void test_nearly_always_exact(void **state) {
  (void)state;
  const uint32_t common = TEST_PARTIAL | TEST_VIEWS | TEST_SAVINGS | TEST_LAUNCHES | TEST_SHARED | TEST_PINS | TEST_WEIGHTS;
  const test_problem_options two = {1, 9, 2, 2, common, TEST_SHAPE_COUNT};
  const test_problem_options more = {1, 6, 3, 4, common, TEST_SHAPE_COUNT};
  gaps g = serial_gaps(400 / SHARE, 1000, &two);
  printf("two devices: %u of %u plans are optimal, the worst takes %.3f times the least time\n", g.exact, g.count, g.worst);
  assert_true(g.exact * 100 >= g.count * 99 && g.worst <= 1.05);
  g = serial_gaps(160 / SHARE, 5000, &more);
  printf("three and four devices: %u of %u plans are optimal, the worst takes %.3f times the least time\n", g.exact, g.count,
         g.worst);
  assert_true(g.exact * 100 >= g.count * 98 && g.worst <= 1.10);
}

/* A launch costs as much as a node. So the placement with the least node, transfer and fusion cost, which a minimum cut finds
 * without counting launches, is often not optimal. */
static void test_launches_are_counted(void **state) {
  (void)state;
  const test_problem_options options = {9, 9, 2, 2, TEST_PARTIAL | TEST_VIEWS | TEST_SAVINGS, TEST_SHAPE_COUNT};
  gaps g = {0, 0, 1.0}, cut = {0, 0, 1.0};
  for (uint64_t seed = 1; seed <= 160 / SHARE; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    test_problem_at(problem, seed, "launches");
    uint64_t sum = 0, count = 0, random = seed * 77, cut_ns, launches[2];
    for (uint32_t i = 0; i < 18; ++i) {
      if (problem->node_ns[i] == CLV__NO_TIME) continue;
      sum += problem->node_ns[i];
      ++count;
    }
    for (uint32_t d = 0; d < 2; ++d) launches[d] = sum / count * (20 + test_random(&random) % 200) / 100;
    problem->launch_ns = launches;
    uint64_t least = test_brute_serial(problem, NULL);
    note_gap(&g, place(problem, CLV__LATENCY, &arena).price.serial_ns, least);
    uint32_t devices[9];
    clv__network_options network = {.one = 0, .other = 1};
    clv__evaluator evaluator;
    clv__score score;
    assert_ok(clv__network_solve(problem, &network, arena.allocator, devices, &cut_ns, &error), error);
    clv__evaluator_init(&evaluator, problem, CLV__LATENCY, CLV__SPLIT_CONVEX, arena.allocator);
    assert_ok(clv__evaluate(&evaluator, devices, &score, &error), error);
    note_gap(&cut, score.time_ns, least);
    clv__evaluator_finish(&evaluator);
    clv__arena_finish(&arena);
  }
  printf("launches as expensive as nodes: %u of %u exact, worst %.3f; the cut without launches: %u, worst %.3f\n", g.exact,
         g.count, g.worst, cut.exact, cut.worst);
  assert_true(g.exact * 100 >= g.count * 97 && g.worst <= 1.06);
}

static void test_lanes_are_filled(void **state) {
  (void)state;
  const uint32_t common = TEST_PARTIAL | TEST_SAVINGS | TEST_LAUNCHES | TEST_SHARED;
  const test_problem_options options = {2, 6, 2, 3, common, TEST_SHAPE_COUNT};
  gaps overlap = {0, 0, 1.0}, throughput = {0, 0, 1.0};
  for (uint64_t seed = 1; seed <= 120 / SHARE; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    test_problem_at(problem, seed, "optimal");
    test_best_lanes best = test_brute_lanes(problem);
    note_gap(&overlap, place(problem, CLV__OVERLAP, &arena).price.overlapped_ns, best.overlapped_ns);
    note_gap(&throughput, place(problem, CLV__THROUGHPUT, &arena).price.throughput_ns, best.throughput_ns);
    clv__arena_finish(&arena);
  }
  printf("overlap: %u of %u plans are optimal, the worst takes %.3f times the least time\n", overlap.exact, overlap.count,
         overlap.worst);
  printf("throughput: %u of %u plans are optimal, the worst takes %.3f times the least time\n", throughput.exact,
         throughput.count, throughput.worst);
  assert_true(overlap.exact * 100 >= overlap.count * 80 && throughput.exact * 100 >= throughput.count * 80);
}

/* ---- The components of `optimal` ---- */

static const test_problem_options any = {2, 40, 2, 4, TEST_ALL & ~TEST_LIMITS, TEST_SHAPE_COUNT};

/* Makes a random placement that verdicts and pins allow. */
static uint32_t *draw_placement(const clv__problem *problem, uint64_t *random, clv__arena *arena) {
  uint32_t *devices = clv__arena_allocate(arena, problem->node_count * sizeof *devices);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    devices[n] = problem->pins[n];
    while (devices[n] == CLV__NONE || !clv__can_run(problem, n, devices[n])) {
      devices[n] = (uint32_t)(test_random(random) % problem->device_count);
    }
  }
  return devices;
}

static void test_state_prices_moves(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200 / SHARE; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &any, &arena);
    uint64_t random = seed, before, after;
    uint32_t *devices = draw_placement(problem, &random, &arena);
    clv__state moving;
    assert_ok(clv__state_create(problem, &arena, &moving, &error), error);
    clv__state_load(&moving, devices);
    for (uint32_t i = 0; i < 50; ++i) {
      uint32_t node = (uint32_t)(test_random(&random) % problem->node_count);
      uint32_t device = (uint32_t)(test_random(&random) % problem->device_count);
      if (!clv__can_run(problem, node, device)) continue;
      before = test_placement_ns(problem, devices);
      devices[node] = device;
      after = test_placement_ns(problem, devices);
      assert_true(clv__state_move(&moving, node, device) == (int64_t)(after - before));
    }
    assert_memory_equal(moving.devices, devices, problem->node_count * sizeof *devices);
    clv__arena_finish(&arena);
  }
}

/* If boundaries get a price, the cost of a placement increases by that price per boundary, and not at all on a single
 * device. */
static void test_repricing_keeps_single_devices(void **state) {
  (void)state;
  static const uint32_t one_memory[2] = {0, 0};
  for (uint32_t shared = 0; shared < 2; ++shared) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = make_chain(20, 100, 50, 3000, &arena), repriced;
    if (shared) problem->spaces = one_memory;
    clv__reprice prices = CLV__REPRICE_AS_IS;
    prices.boundary = 1024;
    assert_ok(clv__reprice_make(problem, &prices, &arena, &repriced, &error), error);
    uint32_t devices[20] = {0};
    int64_t single = (int64_t)(test_placement_ns(&repriced, devices) - test_placement_ns(problem, devices));
    for (uint32_t n = 5; n < 15; ++n) devices[n] = 1; /* adds two boundaries */
    int64_t three = (int64_t)(test_placement_ns(&repriced, devices) - test_placement_ns(problem, devices));
    /* With one memory, each of the two boundaries costs the cheaper launch. With two memories, the boundary into the other
     * device's memory costs that device's launch, and the boundary back to host memory costs the host's launch. */
    assert_int_equal(three - single, shared ? 20 : 110);
    if (shared) assert_int_equal(single, -19 * 10 + 2 * 19 * 5);
    clv__arena_finish(&arena);
  }
}

/* ---- Memory ---- */

static clv_status excess_of(const clv__problem *problem, const clv__candidate *c, uint64_t *excess) {
  clv__memory memory;
  return clv__memory_excess(problem, &c->cut, &c->copies, c->placing.streamed, clv__allocator_default(), &memory, excess, &error);
}

static void test_memory_is_kept(void **state) {
  (void)state;
  const uint32_t features = TEST_PARTIAL | TEST_SAVINGS | TEST_LAUNCHES | TEST_SHARED | TEST_WEIGHTS | TEST_MEMORY;
  const test_problem_options options = {2, 30, 2, 3, features, TEST_SHAPE_COUNT};
  uint32_t refused = 0, streamed = 0, moved = 0, count = 240 / SHARE;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    test_problem_at(problem, seed, "memory");
    clv__candidate c;
    clv__place_input input = {.problem = problem, .split = CLV__SPLIT_CONVEX};
    clv_status status = clv__place_candidate(&input, clv__place_optimal, &arena, &c, &error);
    uint64_t excess;
    assert_ok(status, error);
    assert_ok(excess_of(problem, &c, &excess), error);
    if (excess > 0) { /* planning would refuse this placement */
      ++refused;
    } else {
      test_check_placement(problem, c.placing.devices);
      test_check_cut(problem, c.placing.devices, c.placing.groups, &c.cut);
      test_check_moves(problem, &c.cut, c.placing.streamed, &c.copies);
      streamed += c.placing.streamed != NULL;
      for (uint32_t n = 0; n < problem->node_count; ++n) {
        if (strcmp(c.placing.causes[n], "memory") != 0) continue;
        ++moved;
        break;
      }
    }
    clv__arena_finish(&arena);
  }
  printf("memory: %u problems, %u refused, %u streamed, %u with nodes moved for memory\n", count, refused, streamed, moved);
  assert_true(refused < count / 2);
}

/* Makes a chain of 30 nodes of 100 ns on device 0 and `slow_ns` on the host. Every node has a weight of 1,000 bytes, and
 * device 0 has room for a third of them. Streaming a weight costs 100 ns. */
static clv__problem *make_weights(uint64_t slow_ns, uint64_t **weight_bytes, clv__arena *arena) {
  clv__problem *problem = make_chain(30, 100, 50, slow_ns, arena);
  uint32_t *offsets = clv__arena_allocate_zero(arena, 31, sizeof *offsets);
  uint32_t *weights = clv__arena_allocate_zero(arena, 30, sizeof *weights);
  uint32_t *homes = clv__arena_allocate_zero(arena, 30, sizeof *homes);
  uint64_t *bytes = *weight_bytes = clv__arena_allocate_zero(arena, 30, sizeof *bytes);
  uint64_t *in_ns = clv__arena_allocate_zero(arena, 60, sizeof *in_ns);
  clv__limits *limits = clv__arena_allocate_zero(arena, 2, sizeof *limits);
  for (uint32_t n = 0; n < 30; ++n) {
    offsets[n + 1] = n + 1;
    weights[n] = n;
    homes[n] = CLV__NONE;
    bytes[n] = 1000;
    in_ns[2 * n + 1] = 100;
  }
  limits[0].memory_bytes = 10000;
  problem->weight_count = 30;
  problem->weight_offsets = offsets;
  problem->weights = weights;
  problem->weight_homes = homes;
  problem->weight_bytes = bytes;
  problem->weight_in_ns = in_ns;
  problem->value_bytes = clv__arena_allocate_zero(arena, problem->value_count, sizeof *problem->value_bytes);
  problem->limits = limits;
  return problem;
}

/* Weights are streamed, or their nodes run on the slow host. Streaming pays only if the host is very slow. */
static void test_weights_are_streamed(void **state) {
  (void)state;
  const uint64_t slow[] = {1010, 50000};
  for (uint32_t pays = 0; pays < 2; ++pays) {
    clv__arena arena;
    uint64_t *weight_bytes;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = make_weights(slow[pays], &weight_bytes, &arena);
    clv__candidate c = place(problem, CLV__LATENCY, &arena);
    uint64_t excess;
    assert_ok(excess_of(problem, &c, &excess), error);
    assert_int_equal(excess, 0);
    assert_int_equal(c.placing.streamed != NULL, pays);
    uint32_t fast = 0;
    for (uint32_t n = 0; n < 30; ++n) fast += c.placing.devices[n] == 0;
    printf("streaming %s: %u of 30 nodes on the fast device, %llu ns, %llu ns with everything on the host\n",
           pays ? "pays" : "does not pay", fast, (unsigned long long)c.price.serial_ns,
           (unsigned long long)(30 * slow[pays] + 10));
    assert_true(pays ? fast == 30 : fast <= 10);
    if (!pays) { /* only the fast device supports the nodes, and its memory is too small: planning would refuse this */
      uint16_t *supports = clv__arena_allocate(&arena, 30 * sizeof *supports);
      for (uint32_t n = 0; n < 30; ++n) supports[n] = 1;
      problem->limits = (const clv__limits[2]){{.memory_bytes = 900}};
      problem->supports = supports;
      for (uint32_t n = 0; n < 30; ++n) ((uint64_t *)(uintptr_t)problem->node_ns)[2 * n + 1] = CLV__NO_TIME;
      clv__place_input input = {.problem = problem, .split = CLV__SPLIT_CONVEX};
      assert_ok(clv__place_candidate(&input, clv__place_optimal, &arena, &c, &error), error);
      assert_ok(excess_of(problem, &c, &excess), error);
      assert_true(excess > 0);
    }
    clv__arena_finish(&arena);
  }
}

/* ---- Boundaries of partitions that cost more than they save ---- */

/* Twenty blocks of five nodes. The fast device does not support the middle node of each block, and runs each of the other four
 * 2,000 ns faster than the host. */
static clv__candidate place_blocks(uint64_t launch_ns, uint32_t longer, clv__arena *arena) {
  clv__problem *problem = make_chain(100, launch_ns, 1000, 3000, arena);
  uint16_t *supports = clv__arena_allocate(arena, 100 * sizeof *supports);
  for (uint32_t n = 0; n < 100; ++n) {
    bool runs = n % 5 != 2 || n < longer;
    supports[n] = runs ? 3 : 2;
    if (!runs) ((uint64_t *)(uintptr_t)problem->node_ns)[2 * n] = CLV__NO_TIME;
  }
  problem->supports = supports;
  clv__candidate c = place(problem, CLV__LATENCY, arena);
  clv__candidate other;
  clv__place_input linear = {.problem = problem, .split = CLV__SPLIT_LINEAR};
  assert_ok(clv__place_candidate(&linear, clv__place_contiguous, arena, &other, &error), error);
  printf("launch of %llu ns: %u partitions, %llu ns; with all supported nodes on the fast device: %u, %llu; host alone: %llu\n",
         (unsigned long long)launch_ns, c.cut.count, (unsigned long long)c.price.serial_ns, other.cut.count,
         (unsigned long long)other.price.serial_ns, (unsigned long long)(100 * 3000 + launch_ns / 10));
  return c;
}

/* Three nodes have weights that are each larger than the device's memory. They run on the host, although they gain more
 * time per byte of weights on the device than the other nodes, all of which run there. */
static void test_large_nodes_are_shed(void **state) {
  (void)state;
  clv__arena arena;
  uint64_t *weight_bytes, excess;
  clv__arena_init(&arena, clv__allocator_default());
  clv__problem *problem = make_weights(50000, &weight_bytes, &arena);
  for (uint32_t n = 0; n < 30; ++n) weight_bytes[n] = 3000;
  for (uint32_t i = 0; i < 3; ++i) {
    static const uint32_t large[] = {5, 6, 20};
    weight_bytes[large[i]] = 10001;
    ((uint64_t *)(uintptr_t)problem->node_ns)[2 * large[i] + 1] = 400000;
  }
  clv__candidate c = place(problem, CLV__LATENCY, &arena);
  assert_ok(excess_of(problem, &c, &excess), error);
  assert_int_equal(excess, 0);
  for (uint32_t n = 0; n < 30; ++n) assert_int_equal(c.placing.devices[n], n == 5 || n == 6 || n == 20);
  clv__arena_finish(&arena);
}

static void test_boundaries_that_do_not_pay(void **state) {
  (void)state;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  /* Per block, the fast device saves 8,000 ns; the copies cost 2,000 ns, and the launches 1,100 ns. */
  clv__candidate c = place_blocks(1000, 0, &arena);
  assert_int_equal(c.cut.count, 41);
  assert_string_equal(c.placing.causes[0], "cut");
  assert_string_equal(c.placing.causes[2], "only");
  c = place_blocks(10000, 0, &arena); /* now copies and launches cost 2,000 + 11,000 ns, more than the device saves */
  assert_int_equal(c.cut.count, 1);
  assert_string_equal(c.placing.causes[0], "single");
  assert_string_equal(c.placing.causes[2], "only");
  c = place_blocks(10000, 40, &arena); /* the fast device supports all of nodes 0 to 41, so it pays to use it for them */
  assert_int_equal(c.cut.count, 2);
  for (uint32_t n = 0; n < 100; ++n) assert_int_equal(c.placing.devices[n], n < 42 ? 0 : 1);
  assert_string_equal(c.placing.causes[50], "back");
  clv__arena_finish(&arena);
}

/* ---- Larger problems, and failures ---- */

static void test_larger_problems(void **state) {
  (void)state;
  for (uint32_t shape = 0; shape < TEST_SHAPE_COUNT; ++shape) {
    const test_problem_options options = {800 / SHARE, 800 / SHARE, 2, shape % 2 == 0 ? 2 : 3, TEST_ALL, (test_shape)shape};
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    clv__problem *problem = test_problem_make(shape, &options, &arena);
    test_problem_at(problem, shape, "larger");
    for (clv__objective objective = CLV__LATENCY; objective <= CLV__THROUGHPUT; ++objective) {
      clv__candidate best = place(problem, objective, &arena);
      uint64_t time = clv__price_of(&best.price, objective);
      for (uint32_t at = 0; clv__strategies[at] != NULL; ++at) {
        const clv__strategy *strategy = clv__strategies[at];
        clv__place_input input = {.problem = problem, .objective = objective, .split = strategy->split};
        clv__candidate other;
        if (strategy->place == clv__place_optimal) continue;
        assert_ok(clv__place_candidate(&input, strategy->place, &arena, &other, &error), error);
        assert_true(time <= clv__price_of(&other.price, objective));
      }
    }
    clv__arena_finish(&arena);
  }
}

static void test_allocations_fail(void **state) {
  (void)state;
  const test_problem_options options = {12, 12, 2, 3, TEST_ALL, TEST_SHAPE_COUNT};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    clv__arena kept;
    clv__arena_init(&kept, clv__allocator_default());
    clv__problem *problem = test_problem_make(seed, &options, &kept);
    clv__place_input input = {.problem = problem, .objective = (clv__objective)(seed % 3), .split = CLV__SPLIT_CONVEX};
    bool failed = true;
    uint32_t step = 1;
    for (size_t at = 1; failed; at += step) {
      test_allocator counting;
      clv__arena arena;
      clv__candidate candidate;
      test_allocator_init(&counting);
      counting.fail_at = at;
      clv__arena_init(&arena, &counting.allocator);
      clv_status status = clv__place_candidate(&input, clv__place_optimal, &arena, &candidate, &error);
      failed = status != CLV_OK;
      if (failed) assert_int_equal(status, CLV_OUT_OF_MEMORY);
      clv__arena_finish(&arena);
      assert_int_equal(counting.live, 0);
      /* Skips most of the later allocations, because the search repeats itself. */
      step = at < test_some(200) ? 1 : 1 + (uint32_t)(at / test_some(50));
    }
    clv__arena_finish(&kept);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nearly_always_exact),
      cmocka_unit_test(test_launches_are_counted),
      cmocka_unit_test(test_lanes_are_filled),
      cmocka_unit_test(test_state_prices_moves),
      cmocka_unit_test(test_repricing_keeps_single_devices),
      cmocka_unit_test(test_memory_is_kept),
      cmocka_unit_test(test_weights_are_streamed),
      cmocka_unit_test(test_large_nodes_are_shed),
      cmocka_unit_test(test_boundaries_that_do_not_pay),
      cmocka_unit_test(test_larger_problems),
      cmocka_unit_test(test_allocations_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
