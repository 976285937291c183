/* Tests the times of schedules against an independent event-driven simulation, and the search for the best sequence of
 * subgraphs against Johnson's rule and against all sequences. */
#include "gnn/plan/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static clv_error error;

enum { MOST = 8 };

static clv__pep_work random_work(uint64_t *state, uint32_t keys) {
  clv__pep_work work = {.key = test_random(state) % keys};
  uint64_t form = work.key; /* subgraphs with the same key have the same blocks and devices */
  uint32_t order[3] = {0, 1, 2}, at = 0, swap = (uint32_t)(form % 3);
  order[0] = swap, order[swap] = 0;
  work.block_count = (uint8_t)(1 + form % 3);
  for (uint32_t b = 0; b < work.block_count; ++b) {
    work.part_counts[b] = (uint8_t)(b == 0 && work.block_count == 2 ? 2 : 1);
    for (uint32_t i = 0; i < work.part_counts[b]; ++i) {
      work.devices[b][i] = (uint8_t)order[at++];
      work.times_ns[b][i] = (double)(1 + test_random(state) % 100);
    }
    work.merge_ns[b] = work.part_counts[b] > 1 ? 3 : 0;
  }
  return work;
}

/* An event-driven simulation: at each point in time, all tasks start that can. Devices follow the sequence. The times at which
 * tasks and blocks have ended determine when a task can start. */
static double step_by_step(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count) {
  double ends[MOST][3][4], done[MOST][3], now = 0, makespan = 0, free_at[3] = {0};
  uint64_t last[3];
  bool used[3] = {false};
  uint32_t next[3] = {0}, run[MOST];
  for (uint32_t i = 0; i < MOST; ++i) {
    for (uint32_t b = 0; b < 3; ++b)
      done[i][b] = INFINITY, ends[i][b][0] = ends[i][b][1] = ends[i][b][2] = ends[i][b][3] = INFINITY;
  }
  for (uint32_t i = 0; i < count; ++i) run[i] = i > 0 && sequence[i - 1]->key == sequence[i]->key ? run[i - 1] + 1 : 0;
  for (bool more = true; more;) {
    double later = INFINITY;
    more = false;
    for (uint32_t d = 0; d < 3; ++d) {
      for (bool again = true; again;) { /* find the next subgraph in the sequence of which this device has a part */
        again = false;
        uint32_t i = next[d], block = 3, part = 0;
        while (i < count && block == 3) {
          for (uint32_t b = 0; b < sequence[i]->block_count; ++b) {
            for (uint32_t p = 0; p < sequence[i]->part_counts[b]; ++p) {
              if (sequence[i]->devices[b][p] == d) block = b, part = p;
            }
          }
          if (block == 3) ++i;
        }
        if (i == count) break;
        more = true;
        double when = free_at[d] + (used[d] && last[d] != sequence[i]->key ? machine->devices[d].switch_ns : 0);
        if (block > 0) when = fmax(when, done[i][block - 1]);
        if (block + 1u < sequence[i]->block_count && run[i] >= machine->queue_depth)
          when = fmax(when, done[i - machine->queue_depth][block + 1]);
        if (when > now) {
          later = fmin(later, when);
          break;
        }
        ends[i][block][part] = free_at[d] = when + sequence[i]->times_ns[block][part];
        used[d] = true, last[d] = sequence[i]->key, next[d] = i + 1;
        double all = 0;
        for (uint32_t p = 0; p < sequence[i]->part_counts[block]; ++p) all = fmax(all, ends[i][block][p]);
        done[i][block] = all + sequence[i]->merge_ns[block];
        if (isfinite(done[i][block])) makespan = fmax(makespan, done[i][block]);
        again = true;
        later = fmin(later, free_at[d]);
      }
    }
    for (uint32_t i = 0; i < count; ++i) { /* the next event may also be the end of a block */
      for (uint32_t b = 0; b < 3; ++b) {
        if (done[i][b] > now) later = fmin(later, done[i][b]);
      }
    }
    if (more && !isfinite(later)) return INFINITY; /* a deadlock: tasks are left, but no event follows */
    now = fmax(now, later);
  }
  return makespan;
}

/* Simulates with limits below the makespan: the result is the exact time or INFINITY. Returns how often it is INFINITY. */
static uint32_t check_within(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count, double time) {
  double loads[CLV__PEP_DEVICES] = {0};
  uint32_t ended = 0;
  for (uint32_t i = 0; i < count; ++i) clv__pep_work_add(sequence[i], 1, loads);
  assert_true(clv__simulate_within(machine, sequence, count, loads, time) == time);
  for (double part = 0.1; part < 1; part += 0.2) {
    double within = clv__simulate_within(machine, sequence, count, loads, part * time);
    assert_true(within == time || isinf(within));
    ended += isinf(within);
  }
  return ended;
}

static void test_events(void **unused) {
  (void)unused;
  uint64_t state = 4;
  uint32_t ended = 0;
  for (int round = 0; round < 3000; ++round) {
    clv__machine machine = {.device_count = 3, .queue_depth = 1 + (uint32_t)(test_random(&state) % 3)};
    for (uint32_t d = 0; d < 3; ++d) machine.devices[d].switch_ns = (double)(test_random(&state) % 10);
    clv__pep_work works[MOST];
    const clv__pep_work *sequence[MOST];
    uint32_t count = 1 + (uint32_t)(test_random(&state) % MOST), tasks = 0;
    clv__timeline timeline;
    clv__task_time times[MOST * CLV__PEP_DEVICES];
    for (uint32_t i = 0; i < count; ++i) works[i] = random_work(&state, 1 + round % 5), sequence[i] = &works[i];
    double got = clv__simulate_time(&machine, sequence, count), other = step_by_step(&machine, sequence, count);
    if (got != other)
      fail_msg("round %d, %u subgraphs: the makespan is %g, but the event-driven simulation gives %g", round, count, got, other);
    clv__simulate(&machine, sequence, count, &timeline, times, &tasks);
    assert_true(timeline.makespan_ns == got);
    ended += check_within(&machine, sequence, count, got);
    double busy[CLV__PEP_DEVICES] = {0}, last[CLV__PEP_DEVICES] = {0}, latest = 0;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t b = 0; b < works[i].block_count; ++b) listed += works[i].part_counts[b];
    }
    assert_int_equal(tasks, listed);
    for (uint32_t t = 0; t < tasks; ++t) { /* a device runs one task at a time */
      assert_true(times[t].start_ns >= last[times[t].device]);
      last[times[t].device] = times[t].end_ns;
      busy[times[t].device] += times[t].end_ns - times[t].start_ns;
      latest = fmax(latest, times[t].end_ns);
    }
    assert_true(latest <= got);
    double switching = 0, sum = 0;
    uint32_t switches = 0;
    uint64_t keys[3] = {0};
    bool has_key[3] = {false};
    for (uint32_t t = 0; t < tasks; ++t) {
      uint32_t d = times[t].device;
      uint64_t key = sequence[times[t].turn]->key;
      bool is_switch = has_key[d] && keys[d] != key;
      switches += is_switch, switching += is_switch ? machine.devices[d].switch_ns : 0;
      keys[d] = key, has_key[d] = true;
    }
    assert_int_equal(timeline.switches, switches);
    for (uint32_t d = 0; d < 3; ++d) {
      assert_true(timeline.idle_ns[d] >= 0 && fabs(timeline.busy_ns[d] + timeline.idle_ns[d] - got) < 1e-6);
      sum += timeline.busy_ns[d] - busy[d];
    }
    assert_true(fabs(sum - switching) < 1e-6);
  }
  assert_true(ended > 3000);
}

typedef struct pipeline {
  clv__arena arena;
  clv__machine machine;
  clv__pep_work works[MOST * 4];
  uint32_t offsets[MOST * 4 + 1];
  clv__pep_works all;
  clv__search search;
  clv__candidate candidate;
} pipeline;

static void open_pipeline(pipeline *p, uint32_t count, uint32_t depth) {
  clv__arena_init(&p->arena, clv__allocator_default());
  p->machine = (clv__machine){.device_count = 3, .queue_depth = depth};
  for (uint32_t i = 0; i <= count; ++i) p->offsets[i] = i;
  p->all = (clv__pep_works){&p->machine, count, p->offsets, p->works};
  assert_ok(clv__search_init(&p->search, &p->arena, &p->all, &error), error);
  assert_ok(clv__candidate_init(&p->candidate, &p->arena, count, &error), error);
}

static double sequence_time(pipeline *p, const uint32_t *sequence, uint32_t count) {
  const clv__pep_work *works[MOST * 4];
  for (uint32_t i = 0; i < count; ++i) works[i] = &p->works[sequence[i]];
  return clv__simulate_time(&p->machine, works, count);
}

static double best_of_all(pipeline *p, uint32_t *sequence, uint32_t depth, uint32_t count) {
  if (depth == count) return sequence_time(p, sequence, count);
  double best = INFINITY;
  for (uint32_t i = depth; i < count; ++i) {
    uint32_t swap = sequence[depth];
    sequence[depth] = sequence[i], sequence[i] = swap;
    best = fmin(best, best_of_all(p, sequence, depth + 1, count));
    swap = sequence[depth];
    sequence[depth] = sequence[i], sequence[i] = swap;
  }
  return best;
}

/* The makespan of Johnson's sequence (1954) on two machines: the maximum, over all positions, of the first blocks' times up to
 * the position plus the second blocks' times from the position on. */
static double johnson(pipeline *p, uint32_t count) {
  double most = 0;
  uint32_t sorted[MOST * 4], used = 0;
  for (int group = 0; group < 2; ++group) {
    for (;;) {
      uint32_t best = UINT32_MAX;
      for (uint32_t i = 0; i < count; ++i) {
        const clv__pep_work *w = &p->works[i];
        bool early = w->times_ns[0][0] < w->times_ns[1][0], taken = false;
        for (uint32_t k = 0; k < used; ++k) taken = taken || sorted[k] == i;
        if (taken || early != (group == 0)) continue;
        if (best == UINT32_MAX ||
            (group == 0 ? w->times_ns[0][0] < p->works[best].times_ns[0][0] : w->times_ns[1][0] > p->works[best].times_ns[1][0]))
          best = i;
      }
      if (best == UINT32_MAX) break;
      sorted[used++] = best;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    double sum = 0;
    for (uint32_t k = 0; k <= i; ++k) sum += p->works[sorted[k]].times_ns[0][0];
    for (uint32_t k = i; k < count; ++k) sum += p->works[sorted[k]].times_ns[1][0];
    most = fmax(most, sum);
  }
  return most;
}

static void test_johnson(void **unused) {
  (void)unused;
  uint64_t state = 10;
  for (int round = 0; round < 200; ++round) {
    pipeline p;
    uint32_t count = 2 + (uint32_t)(test_random(&state) % (round < 60 ? 5 : 26)), order[MOST * 4];
    for (uint32_t i = 0; i < count; ++i) {
      p.works[i] = (clv__pep_work){.key = 1, .block_count = 2, .part_counts = {1, 1}, .devices = {{0}, {1}}};
      p.works[i].times_ns[0][0] = (double)(1 + test_random(&state) % 50),
      p.works[i].times_ns[1][0] = (double)(1 + test_random(&state) % 50);
      order[i] = i;
    }
    open_pipeline(&p, count, CLV__QUEUE_DEPTH);
    double rule = johnson(&p, count);
    if (count <= 6) assert_true(best_of_all(&p, order, 0, count) == rule); /* the queue between the devices is never full */
    clv__search_order(&p.search, &p.candidate);
    if (count <= CLV__QUEUE_DEPTH && p.candidate.makespan_ns != rule)
      fail_msg("round %d, %u subgraphs: the makespan is %g, but with Johnson's rule it is %g", round, count,
               p.candidate.makespan_ns, rule);
    assert_true(p.candidate.makespan_ns >= rule && p.candidate.makespan_ns <= 1.02 * rule);
    assert_true(sequence_time(&p, p.candidate.sequence, count) == p.candidate.makespan_ns);
    clv__arena_finish(&p.arena);
  }
}

/* Compares the search and the pruned enumeration with an enumeration of all sequences. The search is never better than the
 * best sequence, and rarely worse. */
static void test_sequences(void **unused) {
  (void)unused;
  uint64_t state = 11;
  uint32_t worse = 0;
  for (int round = 0; round < 300; ++round) {
    pipeline p;
    uint32_t count = 2 + (uint32_t)(test_random(&state) % 5), order[MOST * 4];
    for (uint32_t i = 0; i < count; ++i) p.works[i] = random_work(&state, 1 + round % 6), order[i] = i;
    open_pipeline(&p, count, 1 + round % 3);
    for (uint32_t d = 0; d < p.machine.device_count; ++d) p.machine.devices[d].switch_ns = (round + d) % 4;
    double best = best_of_all(&p, order, 0, count);
    clv__search_order(&p.search, &p.candidate);
    assert_true(p.candidate.makespan_ns >= best && p.candidate.makespan_ns <= 1.3 * best);
    worse += p.candidate.makespan_ns > best * (1 + 1e-9);
    /* The proven bound is the shortest time without switches and with long queues. */
    double proven_best;
    clv__machine machine = p.machine;
    for (uint32_t d = 0; d < p.machine.device_count; ++d) p.machine.devices[d].switch_ns = 0;
    p.machine.queue_depth = CLV__QUEUE_DEPTH;
    proven_best = best_of_all(&p, order, 0, count);
    p.machine = machine;
    uint32_t nodes = 100000, few = 1;
    p.candidate.makespan_ns = INFINITY;
    assert_true(clv__search_sequences(&p.search, &p.candidate, INFINITY, &nodes) == proven_best);
    assert_true(p.candidate.makespan_ns >= best && sequence_time(&p, p.candidate.sequence, count) == p.candidate.makespan_ns);
    if (best == proven_best) assert_true(p.candidate.makespan_ns <= 1.2 * best);
    assert_true(clv__search_sequences(&p.search, &p.candidate, proven_best * 0.99, &nodes) == proven_best * 0.99);
    if (count > 2) assert_true(clv__search_sequences(&p.search, &p.candidate, INFINITY, &few) == 0 && few == 0);
    clv__arena_finish(&p.arena);
  }
  assert_true(worse < 45);
}

/* Subgraphs with the same key form one cluster, wherever they stood before, and the sequence still has every subgraph once. */
static void test_clusters(void **unused) {
  (void)unused;
  uint64_t state = 12;
  uint32_t before = 0, after = 0;
  for (int round = 0; round < 200; ++round) {
    pipeline p;
    uint32_t count = 1 + (uint32_t)(test_random(&state) % (MOST * 3)), seen = 0;
    for (uint32_t i = 0; i < count; ++i) p.works[i] = random_work(&state, 1 + round % 6);
    open_pipeline(&p, count, 1 + round % 3);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t at = (uint32_t)(test_random(&state) % (i + 1));
      p.candidate.sequence[i] = p.candidate.sequence[at];
      p.candidate.sequence[at] = i;
    }
    uint32_t *sequence = p.candidate.sequence;
    for (uint32_t i = 0; i < count; ++i) before += i == 0 || p.works[sequence[i - 1]].key != p.works[sequence[i]].key;
    clv__search_cluster(&p.search, &p.candidate);
    assert_true(p.candidate.makespan_ns == sequence_time(&p, sequence, count));
    for (uint32_t i = 0; i < count; ++i) {
      assert_true(sequence[i] < count && (seen >> sequence[i] & 1u) == 0);
      seen |= 1u << sequence[i];
      bool begins = i == 0 || p.works[sequence[i - 1]].key != p.works[sequence[i]].key;
      after += begins;
      for (uint32_t k = 0; begins && k < i; ++k) assert_true(p.works[sequence[k]].key != p.works[sequence[i]].key);
    }
    clv__arena_finish(&p.arena);
  }
  assert_true(after < before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_events), cmocka_unit_test(test_johnson),
                                     cmocka_unit_test(test_sequences), cmocka_unit_test(test_clusters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
