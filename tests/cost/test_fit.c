/* Tests fits of operators and copies, and the prices derived from blocks, on data generated from known coefficients. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/fit.h"

static void recovers_the_truth(void **state) {
  (void)state;
  clv__fit_point points[32];
  uint64_t seed = 5;
  for (uint32_t i = 0; i < 32; ++i) {
    double flops = 1e6 * (double)(1 + test_random(&seed) % 1000), bytes = 1e4 * (double)(1 + test_random(&seed) % 500);
    points[i] = (clv__fit_point){flops, bytes, 3000 + flops * 2e-2 + bytes * 5e-2, 0};
  }
  clv__fit fit;
  double time;
  assert_true(clv__fit_points(points, 32, &fit));
  assert_true(fabs(fit.base_ns - 3000) < 1 && fabs(fit.per_flop_ns - 2e-2) < 1e-6 && fabs(fit.per_byte_ns - 5e-2) < 1e-5);
  assert_true(clv__fit_time(&fit, points[7].flops, points[7].bytes, &time));
  assert_true(fabs(time - points[7].time_ns) < 1e-3 * points[7].time_ns);
  assert_false(clv__fit_time(&fit, 2e9, points[7].bytes, &time)); /* more FLOPs than any point */
  assert_false(clv__fit_time(&fit, points[7].flops, 1, &time));
}

/* On random data no coefficient is negative, and the fit is the best among those without negative coefficients. */
static void is_never_negative(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    clv__fit_point points[12];
    uint64_t random = seed;
    uint32_t count = 4 + (uint32_t)(test_random(&random) % 9);
    for (uint32_t i = 0; i < count; ++i) {
      points[i] = (clv__fit_point){(double)(test_random(&random) % 1000) * 1e5, (double)(test_random(&random) % 1000) * 1e3,
                                   (double)(test_random(&random) % 100000), 0};
    }
    clv__fit fit;
    (void)clv__fit_points(points, count, &fit);
    assert_true(fit.base_ns >= 0 && fit.per_flop_ns >= 0 && fit.per_byte_ns >= 0);
    double best = 0; /* the sum of squared errors of the fit: changing one coefficient must not reduce it */
    for (int step = -1; step < 6; ++step) {
      clv__fit moved = fit;
      double sum = 0, *at[] = {&moved.base_ns, &moved.per_flop_ns, &moved.per_byte_ns}, size[] = {500, 5e-6, 5e-4};
      if (step >= 0) *at[step / 2] = fmax(0, *at[step / 2] + (step % 2 ? size[step / 2] : -size[step / 2]));
      for (uint32_t i = 0; i < count; ++i) {
        double time = moved.base_ns + moved.per_flop_ns * points[i].flops + moved.per_byte_ns * points[i].bytes;
        sum += pow((time - points[i].time_ns) / (points[i].time_ns + 1000), 2);
      }
      if (step < 0)
        best = sum;
      else if (sum < best * (1 - 1e-9))
        fail_msg("seed %u: the fit is not the best one: changing coefficient %d reduces the error", (unsigned)seed, step / 2);
    }
  }
}

static void refuses_what_is_no_fit(void **state) {
  (void)state;
  clv__fit_point points[8];
  clv__fit fit;
  for (uint32_t i = 0; i < 8; ++i) points[i] = (clv__fit_point){1e6, 1e5, i % 2 ? 1e4 : 1e6, 0};
  assert_false(clv__fit_points(points, 8, &fit));
  assert_false(clv__fit_points(points, 3, &fit)); /* 3 points are too few */
}

static clv__profile_copy copy(uint64_t size_bytes, uint64_t time_ns) {
  return (clv__profile_copy){size_bytes, {time_ns, 0, 5}};
}

static void copies_are_monotone(void **state) {
  (void)state;
  const clv__profile_copy noisy[] = {copy(64, 9000), copy(4096, 8000), copy(65536, 20000), copy(1048576, 15000),
                                     copy(4194304, 500000)};
  double last = 0;
  for (uint64_t size = 0; size < 8u << 20; size += 4001) {
    double time = clv__copy_time(noisy, 5, size);
    if (time < last) fail_msg("%llu bytes take %g ns, but fewer bytes take %g ns", (unsigned long long)size, time, last);
    last = time;
  }
  const clv__profile_copy straight[] = {copy(0, 1000), copy(1000, 2000), copy(2000, 3000)};
  assert_true(fabs(clv__copy_time(straight, 3, 500) - 1500) < 1e-6);
  assert_true(fabs(clv__copy_time(straight, 3, 10000) - 11000) < 1e-6); /* beyond the largest size the last slope continues */
  assert_true(clv__copy_time(straight, 1, 1u << 30) == 1000 && clv__copy_time(NULL, 0, 5) == 0);
}

/* ---- Prices derived from blocks ---- */

/* A chain of random operators with known times and savings. Every contiguous part of the chain is a block. The times of some
 * blocks are tripled, as if another program had been running. Even so, the times found must predict the whole chain, and most
 * blocks. */
static void solving_finds_the_truth(void **state) {
  (void)state;
  enum { NODES = 24, KINDS = 7 };
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    uint64_t random = seed, truth[KINDS], savings[KINDS][KINDS];
    clv_error error = {0};
    clv__profile *profile;
    clv__profile_device *device;
    uint32_t kinds[NODES], index;
    assert_ok(clv__profile_create(clv__allocator_default(), &profile, &error), error);
    assert_ok(clv__profile_find_or_add_device(profile, "made up", &device, &error), error);
    device->launch = (clv__measure){5000, 0, 9};
    for (uint32_t k = 0; k < KINDS; ++k) {
      char name[8];
      snprintf(name, sizeof name, "K%u()", k);
      assert_ok(clv__profile_find_or_add_operator(profile, device, name, &index, &error), error);
      truth[k] = k % 3 == 0 ? 0 : 1000 + test_random(&random) % 500000;
      for (uint32_t j = 0; j < KINDS; ++j) savings[k][j] = test_random(&random) % 2 ? test_random(&random) % 100000 : 0;
    }
    for (uint32_t i = 0; i < NODES; ++i) kinds[i] = (uint32_t)(test_random(&random) % KINDS);
    for (uint32_t from = 0; from < NODES; ++from) {
      for (uint32_t to = from + 1; to <= NODES; ++to) {
        clv__profile_term nodes[KINDS], edges[2];
        uint32_t counts[KINDS] = {0}, node_count = 0, edge_count = 0;
        double time = 5000;
        for (uint32_t i = from; i < to; ++i) ++counts[kinds[i]], time += (double)truth[kinds[i]];
        for (uint32_t k = 0; k < KINDS; ++k) {
          if (counts[k] > 0) nodes[node_count++] = (clv__profile_term){k, counts[k]};
        }
        for (uint32_t side = 0; side < 2; ++side) {
          uint32_t after = side == 0 ? from : to;
          if (after == 0 || after == NODES) continue;
          uint32_t a = kinds[after - 1], b = kinds[after];
          assert_ok(clv__profile_find_or_add_saving(profile, device, a, b, 64, &index, &error), error);
          time += 0.5 * (double)savings[a][b];
          if (edge_count == 1 && edges[0].index == index)
            edges[0].count = 2;
          else
            edges[edge_count++] = (clv__profile_term){index, 1};
        }
        if (test_random(&random) % 40 == 0) time *= 3; /* as if another program had been running */
        char key[16];
        snprintf(key, sizeof key, "%u-%u", from, to);
        const clv__profile_block block = {key, {(uint64_t)time, 0, 9}, node_count, nodes, edge_count, edges};
        if (to - from == 1) device->operators[kinds[from]].alone = block.total;
        assert_ok(clv__profile_put_block(profile, device, &block, &error), error);
      }
    }
    assert_ok(clv__profile_solve(device, clv__allocator_default(), &error), error);
    double sum = 5000, whole = 5000; /* predicted and true time of the whole chain in one partition: no edge is cut */
    for (uint32_t i = 0; i < NODES; ++i) {
      whole += (double)truth[kinds[i]];
      sum += (double)device->operators[kinds[i]].within_ns;
      assert_true(device->operators[kinds[i]].has_within);
    }
    if (fabs(sum - whole) > 0.02 * whole)
      fail_msg("seed %u: the predicted time of the whole chain is %g, expected %g", (unsigned)seed, sum, whole);
    for (uint32_t i = 0; i < device->saving_count; ++i) assert_int_equal(device->savings[i].saving_ns % 2, 0);
    uint32_t missed = 0;
    for (uint32_t b = 0; b < device->block_count; ++b) {
      double measured = (double)device->blocks[b].total.time_ns;
      missed += fabs(clv__profile_block_ns(device, &device->blocks[b]) - measured) > 0.05 * measured;
    }
    if (missed * 10 > device->block_count)
      fail_msg("seed %u: %u of %u blocks are predicted with an error above 5%%", (unsigned)seed, missed, device->block_count);
    clv__profile_destroy(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recovers_the_truth),  cmocka_unit_test(is_never_negative),       cmocka_unit_test(refuses_what_is_no_fit),
      cmocka_unit_test(copies_are_monotone), cmocka_unit_test(solving_finds_the_truth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
