/* Tests prices (estimated times): of cuts, compared with an independent calculation; of placements; of single copies. Also
 * tests the limits on the time that fusing nodes saves. */
#include <string.h>

#include "problem_brute.h"
#include "problem_checks.h"
#include "support.h"

static void place_at_random(const clv__problem *problem, uint64_t *random, uint32_t *devices) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    do devices[n] = (uint32_t)(test_random(random) % problem->device_count);
    while (!clv__can_run(problem, n, devices[n]));
  }
}

static uint16_t *stream_at_random(const clv__problem *problem, uint64_t *random, clv__arena *arena) {
  uint16_t *streamed = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *streamed);
  assert_non_null(streamed);
  for (uint32_t w = 0; w < problem->weight_count; ++w) streamed[w] = (uint16_t)test_random(random);
  return streamed;
}

static void prices_of_cuts_are_right(void **state) {
  (void)state;
  clv_error error = {0};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    test_problem_options options = {1, 30, 1, 4, TEST_ALL, TEST_SHAPE_COUNT};
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    uint64_t random = seed;
    uint32_t *devices = clv__arena_allocate(&arena, problem->node_count * sizeof *devices);
    place_at_random(problem, &random, devices);
    uint16_t *streamed = seed % 3 == 0 ? stream_at_random(problem, &random, &arena) : NULL;
    uint64_t *weight_in_ns =
        clv__arena_allocate_zero(&arena, (size_t)problem->weight_count * problem->space_count, sizeof *weight_in_ns);
    for (uint32_t i = 0; i < problem->weight_count * problem->space_count; ++i) weight_in_ns[i] = test_random(&random) % 1000;
    problem->weight_in_ns = weight_in_ns;
    test_problem_at(problem, seed, "price of a cut");
    for (uint32_t mode = 0; mode < 3; ++mode) {
      clv__cut cut;
      clv__copies copies;
      clv__price price;
      assert_ok(clv__split(problem, devices, NULL, (clv__split_mode)mode, &arena, &cut, &error), error);
      assert_ok(clv__split_copies(problem, &cut, streamed, &arena, &copies, &error), error);
      assert_ok(clv__price_cut(problem, &cut, &copies, &arena, &price, &error), error);
      test_check_price(problem, &cut, &copies, &price);
      for (uint32_t m = 0; m < copies.count; ++m) {
        const clv__copy *move = &copies.items[m];
        if (!move->is_weight) continue;
        assert_int_equal(price.copy_ns[m], weight_in_ns[move->value * problem->space_count + move->to]);
      }
    }
    clv__arena_finish(&arena);
  }
}

/* Prices of a cut, computed by hand: node 0 on the device, node 1 on the host, then nodes 2 and 3 on the device. */
static void a_schedule_by_hand(void **state) {
  (void)state;
  static const uint32_t spaces[] = {1, 0}, read_offsets[] = {0, 1, 2, 4, 5}, reads[] = {0, 1, 2, 0, 3};
  static const uint32_t write_offsets[] = {0, 1, 2, 3, 4}, writes[] = {1, 2, 3, 4}, producers[] = {CLV__NONE, 0, 1, 2, 3};
  static const uint32_t reader_offsets[] = {0, 2, 3, 4, 5, 5}, readers[] = {0, 2, 1, 2, 3};
  static const clv__limits limits[2];
  static const uint64_t launch_ns[] = {100, 10}, value_bytes[5];
  static const uint64_t node_ns[] = {50, 500, 60, 600, 70, 700, 80, 800}, saving_ns[] = {0, 0, 0, 0, 0, 0, 0, 0, 30, 300};
  static const uint64_t in_ns[] = {0, 7, 0, 8, 0, 9, 0, 11, 0, 12}, out_ns[] = {0, 17, 0, 18, 0, 19, 0, 21, 0, 22};
  static const uint16_t supports[] = {3, 3, 3, 3}, prefers[4];
  static const uint8_t flags[4], is_output[] = {0, 0, 0, 0, 1};
  static const uint32_t none[] = {CLV__NONE, CLV__NONE, CLV__NONE, CLV__NONE, CLV__NONE}, zeros[5];
  const clv__problem problem = {.node_count = 4,
                                .value_count = 5,
                                .device_count = 2,
                                .space_count = 2,
                                .spaces = spaces,
                                .limits = limits,
                                .launch_ns = launch_ns,
                                .read_offsets = read_offsets,
                                .reads = reads,
                                .write_offsets = write_offsets,
                                .writes = writes,
                                .supports = supports,
                                .prefers = prefers,
                                .pins = none,
                                .flags = flags,
                                .node_ns = node_ns,
                                .saving_ns = saving_ns,
                                .producers = producers,
                                .reader_offsets = reader_offsets,
                                .readers = readers,
                                .is_output = is_output,
                                .value_bytes = value_bytes,
                                .in_ns = in_ns,
                                .out_ns = out_ns,
                                .value_homes = none,
                                .weight_offsets = zeros};
  /* Node 0 is on the device, 1 on the host, 2 and 3 on the device. */
  uint32_t devices[] = {0, 1, 0, 0};
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv_error error = {0};
  clv__cut cut;
  clv__copies copies;
  clv__price price;
  uint64_t placement;
  assert_ok(clv__split(&problem, devices, NULL, CLV__SPLIT_LINEAR, &arena, &cut, &error), error);
  assert_ok(clv__split_copies(&problem, &cut, NULL, &arena, &copies, &error), error);
  assert_ok(clv__price_cut(&problem, &cut, &copies, &arena, &price, &error), error);
  assert_int_equal(cut.count, 3);
  assert_int_equal(copies.count, 4); /* values 0 and 2 are copied in, 1 and 4 out */
  /* Times: copy in 0-7; node 0 7-157; copy out 157-175; node 1 175-785; copy in 785-794; nodes 2 and 3 from 794 for 100 +
   * 70 + 80 - 30; copy out. */
  assert_int_equal(price.partition_start_ns[0], 7);
  assert_int_equal(price.partition_start_ns[1], 175);
  assert_int_equal(price.partition_start_ns[2], 794);
  assert_int_equal(price.partition_ns[2], 220);
  assert_int_equal(price.overlapped_ns, 794 + 220 + 22);
  assert_int_equal(price.serial_ns, 7 + 150 + 18 + 610 + 9 + 220 + 22);
  assert_int_equal(price.throughput_ns, 610);
  assert_ok(clv__price_placement(&problem, devices, &placement, &error), error);
  assert_int_equal(placement, price.serial_ns - 210);
  /* Moving node 1 to the device changes its time from 600 to 60 and saves two copies. */
  assert_int_equal(clv__price_move(&problem, devices, NULL, 1, 0), 60 - 600 - 18 - 9);
  clv__arena_finish(&arena);
}

static void moves_of_nodes_are_priced_exactly(void **state) {
  (void)state;
  clv_error error = {0};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    test_problem_options options = {1, 24, 1, 4, TEST_ALL, TEST_SHAPE_COUNT};
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    uint64_t random = seed, before, after;
    uint32_t devices[24];
    place_at_random(problem, &random, devices);
    test_problem_at(problem, seed, "price of a placement");
    assert_ok(clv__price_placement(problem, devices, &before, &error), error);
    if (before != test_placement_ns(problem, devices))
      test_problem_fail(devices, "clv__price_placement() gives %llu ns, expected %llu", (unsigned long long)before,
                        (unsigned long long)test_placement_ns(problem, devices));
    clv__reader_counts counts;
    assert_ok(clv__reader_counts_make(problem, devices, &arena, &counts, &error), error);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      uint32_t was = devices[n];
      for (uint32_t d = 0; d < problem->device_count; ++d) {
        if (!clv__can_run(problem, n, d)) continue;
        int64_t change = clv__price_move(problem, devices, NULL, n, d);
        assert_int_equal(clv__price_move(problem, devices, &counts, n, d), change);
        devices[n] = d;
        assert_ok(clv__price_placement(problem, devices, &after, &error), error);
        devices[n] = was;
        if ((int64_t)(after - before) != change) {
          test_problem_fail(devices, "moving node %u to device %u: clv__price_move() gives %lld ns, expected %lld", n, d,
                            (long long)change, (long long)(after - before));
        }
      }
    }
    clv__arena_finish(&arena);
  }
}

static void savings_are_held_to_times(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    test_problem_options options = {1, seed % 10 == 0 ? 300 : 20, 1, 4, TEST_ALL, TEST_SHAPE_COUNT};
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    uint32_t reads = problem->read_offsets[problem->node_count], count = problem->device_count;
    uint64_t random = seed, scale = (uint64_t)1 << (test_random(&random) % 64);
    uint64_t *savings = clv__arena_allocate_zero(&arena, (size_t)reads * count, sizeof *savings);
    uint64_t *given = clv__arena_allocate_zero(&arena, (size_t)reads * count, sizeof *given);
    uint64_t *sums = clv__arena_allocate_zero(&arena, (size_t)problem->node_count * count, sizeof *sums);
    bool *scaled = clv__arena_allocate_zero(&arena, (size_t)problem->node_count * count, 1);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
        if (problem->producers[problem->reads[r]] == CLV__NONE) continue;
        for (uint32_t d = 0; d < count; ++d) given[r * count + d] = savings[r * count + d] = test_random(&random) % scale;
      }
    }
    clv__problem_clamp_savings(problem, savings);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
        uint32_t producer = problem->producers[problem->reads[r]];
        for (uint32_t d = 0; d < count && producer != CLV__NONE; ++d) {
          uint64_t saving = savings[r * count + d];
          assert_true(saving <= given[r * count + d]);
          sums[n * count + d] += saving, sums[producer * count + d] += saving;
          if (saving < given[r * count + d]) scaled[n * count + d] = scaled[producer * count + d] = true;
        }
      }
    }
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      for (uint32_t d = 0; d < count; ++d) {
        uint64_t most = clv__can_run(problem, n, d) ? 2 * clv__node_ns(problem, n, d) : 0;
        assert_true(sums[n * count + d] <= most);
      }
    }
    /* A saving that exceeds the limit of neither of its two nodes is unchanged. */
    uint64_t *wanted = clv__arena_allocate_zero(&arena, (size_t)problem->node_count * count, sizeof *wanted);
    for (uint32_t pass = 0; pass < 2; ++pass) {
      for (uint32_t n = 0; n < problem->node_count; ++n) {
        uint32_t read_count = problem->read_offsets[n + 1] - problem->read_offsets[n];
        for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
          uint32_t producer = problem->producers[problem->reads[r]];
          for (uint32_t d = 0; d < count && producer != CLV__NONE && scale < (uint64_t)1 << 40 && read_count <= 64; ++d) {
            size_t here = n * count + d, there = producer * count + d;
            if (pass == 0) {
              wanted[here] += given[r * count + d], wanted[there] += given[r * count + d];
            } else if (clv__can_run(problem, n, d) && clv__can_run(problem, producer, d) &&
                       wanted[here] <= 2 * clv__node_ns(problem, n, d) &&
                       wanted[there] <= 2 * clv__node_ns(problem, producer, d)) {
              assert_int_equal(savings[r * count + d], given[r * count + d]);
            }
          }
        }
      }
    }
    clv__arena_finish(&arena);
  }
}

/* A node with too many operands to be fused has no savings, and the search for them takes little time. */
static void many_operands_save_nothing(void **state) {
  (void)state;
  enum { COUNT = 50000 };
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  uint32_t *ramp = clv__arena_allocate(&arena, (COUNT + 2) * sizeof *ramp);
  uint32_t *read_offsets = clv__arena_allocate_zero(&arena, COUNT + 2, sizeof *read_offsets);
  uint32_t *readers = clv__arena_allocate(&arena, COUNT * sizeof *readers);
  uint64_t *node_ns = clv__arena_allocate(&arena, (COUNT + 1) * sizeof *node_ns);
  uint64_t *savings = clv__arena_allocate(&arena, COUNT * sizeof *savings);
  uint16_t *supports = clv__arena_allocate(&arena, (COUNT + 1) * sizeof *supports);
  for (uint32_t i = 0; i < COUNT + 2; ++i) ramp[i] = i;
  for (uint32_t i = 0; i < COUNT; ++i) readers[i] = COUNT, savings[i] = 5;
  for (uint32_t i = 0; i < COUNT + 1; ++i) node_ns[i] = 1000000, supports[i] = 1;
  read_offsets[COUNT + 1] = COUNT;
  const clv__problem problem = {.node_count = COUNT + 1,
                                .value_count = COUNT + 1,
                                .device_count = 1,
                                .space_count = 1,
                                .read_offsets = read_offsets,
                                .reads = ramp,
                                .write_offsets = ramp,
                                .writes = ramp,
                                .producers = ramp,
                                .reader_offsets = ramp,
                                .readers = readers,
                                .node_ns = node_ns,
                                .supports = supports};
  /* The last node's value has no reader. */
  uint32_t *reader_offsets = clv__arena_copy(&arena, ramp, (COUNT + 2) * sizeof *ramp);
  reader_offsets[COUNT + 1] = COUNT;
  clv__problem copy = problem;
  copy.reader_offsets = reader_offsets;
  clv__problem_clamp_savings(&copy, savings);
  for (uint32_t i = 0; i < COUNT; ++i) assert_int_equal(savings[i], 0);
  clv__arena_finish(&arena);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv_error error = {0};
  uint32_t refused[3] = {0};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    test_problem_options options = {4, 12, 2, 3, TEST_PARTIAL, TEST_CHAIN};
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    uint64_t random = seed, total;
    uint32_t devices[12];
    clv__cut cut;
    clv__copies copies;
    clv__price price = {0};
    place_at_random(problem, &random, devices);
    assert_ok(clv__split_linear(problem, devices, NULL, &arena, &cut, &error), error);
    assert_ok(clv__split_copies(problem, &cut, NULL, &arena, &copies, &error), error);
    if (copies.count > 0) {
      clv__copies fewer = {copies.count - 1, copies.items + 1};
      if (clv__price_cut(problem, &cut, &fewer, &arena, &price, &error) != CLV_OK) {
        assert_int_equal(error.status, CLV_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "memory space"));
        assert_null(price.partition_ns);
        ++refused[0];
      }
      price = (clv__price){0};
      clv__copies disordered = {copies.count, clv__arena_copy(&arena, copies.items, copies.count * sizeof *copies.items)};
      disordered.items[copies.count - 1].before = cut.count + 1;
      assert_int_equal(clv__price_cut(problem, &cut, &disordered, &arena, &price, &error), CLV_INVALID_ARGUMENT);
      ++refused[1];
    }
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      for (uint32_t d = 0; d < problem->device_count; ++d) {
        if (clv__can_run(problem, n, d)) continue;
        uint32_t was = devices[n];
        devices[n] = d;
        assert_int_equal(clv__price_placement(problem, devices, &total, &error), CLV_NOT_SUPPORTED);
        devices[n] = was;
        ++refused[2];
      }
    }
    assert_null(price.partition_ns);
  }
  for (uint32_t i = 0; i < 3; ++i) assert_true(refused[i] > 50);
  clv__arena_finish(&arena);
}

static void memory_may_run_out(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    clv__arena arena;
    clv_error error = {0};
    clv__arena_init(&arena, clv__allocator_default());
    test_problem_options options = {300, 400, 2, 3, TEST_ALL & ~TEST_LIMITS, TEST_RANDOM};
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    uint64_t random = seed;
    uint32_t devices[400];
    clv__cut cut;
    clv__copies copies;
    place_at_random(problem, &random, devices);
    assert_ok(clv__split_linear(problem, devices, NULL, &arena, &cut, &error), error);
    assert_ok(clv__split_copies(problem, &cut, NULL, &arena, &copies, &error), error);
    bool done = false;
    for (size_t fail = 1; !done; ++fail) {
      test_allocator counting;
      clv__arena inner;
      clv__price price = {0};
      test_allocator_init(&counting);
      counting.fail_at = fail;
      clv__arena_init(&inner, &counting.allocator);
      clv_status status = clv__price_cut(problem, &cut, &copies, &inner, &price, &error);
      done = counting.calls < fail;
      assert_int_equal(status, done ? CLV_OK : CLV_OUT_OF_MEMORY);
      clv__arena_finish(&inner);
      assert_int_equal(counting.live, 0);
    }
    clv__arena_finish(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prices_of_cuts_are_right),
      cmocka_unit_test(a_schedule_by_hand),
      cmocka_unit_test(moves_of_nodes_are_priced_exactly),
      cmocka_unit_test(savings_are_held_to_times),
      cmocka_unit_test(many_operands_save_nothing),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
