/* Tests the assignment, which chooses a plan for each subgraph. Compares its lower bound on the makespan with the best of
 * all assignments in all sequences, and its quick mode with a simple implementation. */
#include "gnn/plan/assign.h"

#include <math.h>
#include <stdlib.h>

#include "gnn/plan/simulate.h"
#include "gnx.h"

static clv_error error;

enum { MOST_PIECES = 9 };

typedef struct instance {
  gnx g;
  clv__arena arena;
  uint32_t count;
  clv__pep_list lists[MOST_PIECES];
  clv__assign assign;
  double best; /* the shortest makespan that attempt() found */
} instance;

static void open_instance(instance *in, uint64_t seed, uint32_t count, uint32_t plans) {
  uint64_t state = seed * 77 + 5;
  clv__pep_options options = {.top_k = plans, .variants = 0};
  clv__subgraph_sizes piece;
  gnx_made(&in->g, clv__allocator_default(), seed);
  clv__arena_init(&in->arena, clv__allocator_default());
  in->g.machine.queue_depth = 1 + (uint32_t)(seed % 2);
  for (uint32_t d = 0; d < 3; ++d) in->g.machine.devices[d].switch_ns = seed % 3 == 0 ? 0 : 1e5 * d;
  in->count = count;
  in->best = INFINITY;
  for (uint32_t i = 0; i < count; ++i) {
    if (i == 0 || seed % 4 != 0) gnx_random_subgraph(&state, &piece); /* for every fourth seed, all subgraphs are equal */
    assert_ok(clv__peps_make(&in->arena, &in->g.costs, &piece, &options, &in->lists[i], &error), error);
  }
  assert_ok(clv__assign_init(&in->assign, &in->arena, 3, in->lists, count, &error), error);
}

static void close_instance(instance *in) {
  clv__arena_finish(&in->arena);
  gnx_close(&in->g);
}

/* Returns the shortest makespan over all sequences of the subgraphs, with the plans `choices`. */
static double best_sequence(const instance *in, const uint32_t *choices) {
  clv__pep_work works[MOST_PIECES];
  const clv__pep_work *sequence[MOST_PIECES];
  double best = INFINITY;
  for (uint32_t i = 0; i < in->count; ++i) clv__pep_work_of(&in->lists[i].items[choices[i]], &works[i]);
  uint32_t ways = 1;
  for (uint32_t i = 2; i <= in->count; ++i) ways *= i;
  for (uint32_t way = 0; way < ways; ++way) {
    uint32_t left = way;
    bool taken[MOST_PIECES] = {false};
    for (uint32_t i = 0; i < in->count; ++i) {
      uint32_t skip = left % (in->count - i), at = 0;
      for (left /= in->count - i; taken[at] || skip > 0; ++at) skip -= !taken[at];
      taken[at] = true;
      sequence[i] = &works[at];
    }
    best = fmin(best, clv__simulate_time(&in->g.machine, sequence, in->count));
  }
  return best;
}

static double brute(const instance *in) {
  uint32_t choices[MOST_PIECES] = {0};
  double best = INFINITY;
  for (bool more = true; more;) {
    double value = clv__assign_value(&in->assign, choices), time = best_sequence(in, choices);
    assert_true(value <= time * (1 + 1e-9)); /* the value is a lower bound on all schedules of the assignment */
    best = fmin(best, time);
    more = false;
    for (uint32_t i = 0; i < in->count && !more; ++i) {
      more = ++choices[i] < in->lists[i].count;
      if (!more) choices[i] = 0;
    }
  }
  return best;
}

static double attempt(void *user, const uint32_t *choices, double goal_ns, double *proven_ns) {
  instance *in = user;
  double time = best_sequence(in, choices);
  in->best = fmin(in->best, time);
  *proven_ns = fmin(time, goal_ns);
  return in->best;
}

static void test_bound(void **unused) {
  (void)unused;
  double loosest = 1;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    instance in;
    clv__assign_result result;
    open_instance(&in, seed, 2 + (uint32_t)(seed % 4), seed % 4 == 3 ? 1 : seed % 4 == 2 ? 4 : 9);
    double best = brute(&in), far = best * (1 + (double)(seed % 5) / 10);
    /* Without attempt(), the result is a lower bound, for any budget. */
    for (uint64_t budget = 10; budget < 10000000; budget *= 30) {
      assert_ok(clv__assign_bound(&in.assign, far, 0.01, budget, NULL, NULL, &result, &error), error);
      if (result.bound_ns > best * (1 + 1e-9))
        fail_msg("seed %u: the lower bound %.9g is above the best makespan %.9g", (unsigned)seed, result.bound_ns, best);
    }
    loosest = fmin(loosest, result.bound_ns / best);
    /* With attempt(), which tries all sequences of an assignment, the result is the optimum within the tolerance. */
    assert_ok(clv__assign_bound(&in.assign, far, 0.01, UINT64_MAX, attempt, &in, &result, &error), error);
    assert_true(result.is_closed && result.bound_ns <= best * (1 + 1e-9));
    double known = fmin(far, in.best);
    assert_true(known <= best * 1.01 * (1 + 1e-9) && result.bound_ns >= known / 1.01 * (1 - 1e-9));
    close_instance(&in);
  }
  assert_true(loosest > 0.6);
}

/* Returns the least value of all assignments. */
static double least_value(const instance *in, uint32_t *choices) {
  double least = INFINITY;
  for (uint32_t i = 0; i < in->count; ++i) choices[i] = 0;
  for (bool more = true; more;) {
    least = fmin(least, clv__assign_value(&in->assign, choices));
    more = false;
    for (uint32_t i = 0; i < in->count && !more; ++i) {
      more = ++choices[i] < in->lists[i].count;
      if (!more) choices[i] = 0;
    }
  }
  return least;
}

/* With more subgraphs, all assignments can be enumerated, but not all sequences. The bound reaches the least value, exceeds
 * its budget only by work that has already begun, and is reproducible. */
static void test_value(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    instance in;
    uint32_t choices[MOST_PIECES];
    clv__assign_result result, again;
    open_instance(&in, seed, 6 + (uint32_t)(seed % 4), 2);
    double least = least_value(&in, choices);
    assert_ok(clv__assign_bound(&in.assign, 1.02 * least, 0.01, UINT64_MAX, NULL, NULL, &result, &error), error);
    assert_true(result.is_closed);
    if (result.bound_ns < least * (1 - 1e-9)) /* the bound may be larger, because all devices follow one sequence */
      fail_msg("seed %u: the bound %.9g is below the least value of all assignments, %.9g", (unsigned)seed, result.bound_ns,
               least);
    double closed_ns = result.bound_ns;
    uint64_t all = result.steps, begun = 2000ul * in.assign.offsets[in.count]; /* more steps than the relaxation takes */
    for (uint64_t budget = all / 64; budget < all; budget = budget * 2 + 1) {
      assert_ok(clv__assign_bound(&in.assign, 1.02 * least, 0.01, budget, NULL, NULL, &result, &error), error);
      assert_true(result.bound_ns <= closed_ns * (1 + 1e-9) && result.steps <= budget + begun);
      assert_ok(clv__assign_bound(&in.assign, 1.02 * least, 0.01, budget, NULL, NULL, &again, &error), error);
      assert_true(again.bound_ns == result.bound_ns && again.steps == result.steps && again.nodes == result.nodes);
    }
    close_instance(&in);
  }
}

/* The quick mode as assign.h describes it. It starts with every subgraph's fastest plan. Then, among the subgraphs on the
 * bottleneck device, it makes the change of a plan that lowers the largest load most, until no change lowers it. Returns the
 * number of changes. */
static uint32_t told_greedy(const instance *in, uint32_t *choices) {
  uint32_t moves = 0;
  for (uint32_t i = 0; i < in->count; ++i) {
    choices[i] = 0;
    for (uint32_t o = 0; o < in->lists[i].count; ++o) {
      if (in->lists[i].items[o].time_ns < in->lists[i].items[choices[i]].time_ns) choices[i] = o;
    }
  }
  for (;; ++moves) {
    double loads[3] = {0}, best;
    uint32_t bottleneck = 0, piece = UINT32_MAX, plan = 0;
    for (uint32_t i = 0; i < in->count; ++i) {
      for (int d = 0; d < 3; ++d) loads[d] += in->lists[i].items[choices[i]].load_ns[d];
    }
    for (uint32_t d = 1; d < 3; ++d) bottleneck = loads[d] > loads[bottleneck] ? d : bottleneck;
    best = loads[bottleneck];
    for (uint32_t i = 0; i < in->count; ++i) {
      if (in->lists[i].items[choices[i]].load_ns[bottleneck] <= 0) continue;
      for (uint32_t o = 0; o < in->lists[i].count; ++o) {
        uint32_t kept = choices[i];
        double most = 0;
        choices[i] = o;
        for (int d = 0; d < 3; ++d) {
          double load = 0;
          for (uint32_t k = 0; k < in->count; ++k) load += in->lists[k].items[choices[k]].load_ns[d];
          most = fmax(most, load);
        }
        choices[i] = kept;
        if (most < best * (1 - 1e-8)) best = most, piece = i, plan = o;
      }
    }
    if (piece == UINT32_MAX) return moves;
    choices[piece] = plan;
  }
}

static void count_moves(void *user, const clv__assign_move *move) {
  ++*(uint32_t *)user;
  assert_true(move->after_ns < move->before_ns && move->from != move->to);
}

static void test_greedy(void **unused) {
  (void)unused;
  uint32_t all = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    instance in;
    uint32_t choices[MOST_PIECES], told[MOST_PIECES], moves = 0, device;
    open_instance(&in, seed, 4, 0);
    clv__assign_greedy(&in.assign, choices, count_moves, &moves);
    assert_int_equal(told_greedy(&in, told), moves);
    double got = clv__assign_largest_load(&in.assign, choices, &device);
    assert_true(fabs(got - clv__assign_largest_load(&in.assign, told, &device)) <= 1e-6 * got);
    all += moves;
    close_instance(&in);
  }
  assert_true(all > 20);
}

static void test_empty(void **unused) {
  (void)unused;
  instance in;
  clv__assign_result result;
  open_instance(&in, 1, 2, 0);
  in.assign.count = 0;
  assert_ok(clv__assign_bound(&in.assign, 1, 0.01, 1000, NULL, NULL, &result, &error), error);
  assert_true(result.bound_ns == 0);
  close_instance(&in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound), cmocka_unit_test(test_value), cmocka_unit_test(test_greedy),
                                     cmocka_unit_test(test_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
