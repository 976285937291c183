/* Tests the plans of a subgraph: all are legal and correctly priced, none is missing, shares are balanced, and dropping
 * dominated plans does not worsen the best assignment. */
#include "gnn/plan/pep.h"

#include <math.h>
#include <stdlib.h>

#include "gnn/plan/assign.h"
#include "gnn/plan/pep_cost.h"
#include "gnx.h"

static clv_error error;

static bool runs(const gnx *g, uint32_t device, uint32_t first, uint32_t last) {
  for (uint32_t s = first; s < last; ++s) {
    if ((g->machine.devices[device].cannot >> g->chain.stages[s] & 1u) != 0) return false;
  }
  return !g->chain.blocks[first][last].is_empty;
}

static void check_plan(const gnx *g, const clv__subgraph_sizes *subgraph, const clv__pep *pep) {
  uint32_t at = 0, used = 0;
  double time = 0;
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    const clv__pep_block *block = &pep->blocks[b];
    uint32_t share = 0;
    uint64_t targets = 0, edges = 0;
    double longest = 0;
    assert_int_equal(block->first, at);
    assert_true(block->last > at);
    at = block->last;
    for (uint32_t i = 0; i < block->part_count; ++i) {
      const clv__pep_part *part = &block->parts[i];
      assert_true(runs(g, part->device, block->first, block->last));
      assert_int_equal(used >> part->device & 1, 0);
      used |= 1u << part->device;
      assert_int_equal(part->from, share);
      assert_true(part->to > share);
      share = part->to;
      targets += part->sizes.targets, edges += part->sizes.edges;
      assert_true(part->padded.rows >= part->sizes.rows && part->padded.edges >= part->sizes.edges);
      if (g->machine.devices[part->device].is_static) {
        assert_true(part->padded.rows % 1000 == 0 && part->padded.edges % 1000 == 0);
        /* A part with padding edges also has a padding row, the dummy vertex. */
        if (part->padded.edges != part->sizes.edges) assert_true(part->padded.rows > part->sizes.rows);
      }
      double compute;
      const clv__block_table *table = g->costs.blocks[part->device][block->first][block->last];
      assert_int_equal(clv__table_time(table, part->padded.rows, part->padded.edges, part->padded.targets, &compute), CLV__KNOWN);
      assert_true(fabs(compute - part->compute_ns) <= 1);
      assert_true(part->time_ns == part->pack_ns + part->in_ns + part->compute_ns + part->out_ns);
      if (g->machine.devices[part->device].space == 0) assert_true(part->in_ns == 0 && part->out_ns == 0 && part->bytes == 0);
      assert_true(pep->load_ns[part->device] == part->time_ns && pep->head_ns[part->device] == time);
      longest = fmax(longest, part->time_ns);
    }
    assert_int_equal(share, CLV__PEP_SHARES);
    assert_int_equal(targets, subgraph->owned);
    assert_true(edges == subgraph->edges || edges == 0);
    assert_true(block->time_ns == longest + block->merge_ns && block->ideal_ns <= block->time_ns);
    time += block->time_ns;
  }
  assert_int_equal(at, g->chain.stage_count);
  assert_true(fabs(pep->time_ns - time) < 1e-3);
}

/* Counts the structures independently of pep.c: for every set of cuts, the assignments of devices to blocks. */
static uint32_t count_structures(const gnx *g) {
  uint32_t found = 0, stages = g->chain.stage_count;
  for (uint32_t cuts = 0; cuts < 1u << (stages - 1); ++cuts) {
    if (__builtin_popcount(cuts) > 2) continue;
    uint32_t blocks = 1u + (uint32_t)__builtin_popcount(cuts), ways = 1, bounds[4] = {0}, at = 1;
    for (uint32_t s = 1; s < stages; ++s) {
      if ((cuts >> (s - 1) & 1) != 0) bounds[at++] = s;
    }
    bounds[at] = stages;
    for (int d = 0; d < 3; ++d) ways *= blocks + 1;
    for (uint32_t way = 0; way < ways; ++way) {
      uint32_t of[3] = {way % (blocks + 1), way / (blocks + 1) % (blocks + 1), way / (blocks + 1) / (blocks + 1)},
               members[4] = {0};
      bool good = true;
      for (uint32_t d = 0; d < 3; ++d) {
        ++members[of[d]];
        if (of[d] < blocks) good = good && runs(g, d, bounds[of[d]], bounds[of[d] + 1]);
      }
      for (uint32_t b = 0; b < blocks; ++b)
        good = good && members[b] > 0 && !(members[b] > 1 && g->chain.blocks[bounds[b]][bounds[b + 1]].is_whole);
      found += good;
    }
  }
  return found;
}

static void test_plans(void **unused) {
  (void)unused;
  uint64_t state = 3;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    gnx g;
    clv__subgraph_sizes subgraph;
    clv__arena arena;
    clv__pep_list list;
    clv__pep_options options = CLV__PEP_OPTIONS_INIT;
    gnx_made(&g, clv__allocator_default(), seed);
    clv__arena_init(&arena, clv__allocator_default());
    gnx_random_subgraph(&state, &subgraph);
    assert_ok(clv__peps_make(&arena, &g.costs, &subgraph, &options, &list, &error), error);
    assert_int_equal(list.structures, count_structures(&g));
    uint32_t singles = 0;
    for (uint32_t i = 0; i < list.count; ++i) {
      check_plan(&g, &subgraph, &list.items[i]);
      if (i > 0) assert_true(list.items[i].time_ns >= list.items[i - 1].time_ns);
      singles += clv__pep_single(&list.items[i]) != CLV__NO_ID;
      for (uint32_t k = 0; k < i; ++k) assert_false(clv__pep_same(&list.items[i], &list.items[k]));
    }
    assert_int_equal(singles, 2); /* of the three devices, only the NPU cannot run the whole layer */
    uint32_t all = list.count;
    options.top_k = 3;
    assert_ok(clv__peps_make(&arena, &g.costs, &subgraph, &options, &list, &error), error);
    assert_true(list.count <= 5 && list.count <= all);
    clv__arena_finish(&arena);
    gnx_close(&g);
  }
}

/* The time of a part with the stages 0 to `last`, computed here from the tables. */
static double part_time(const gnx *g, const clv__subgraph_sizes *subgraph, uint32_t device, uint32_t last, double from,
                        double to) {
  clv__share share;
  double compute, pack, in = 0, out = 0;
  clv__subgraph_share(subgraph, from, to, &share);
  const clv__chain_block *block = &g->chain.blocks[0][last];
  uint64_t rows = share.targets + share.halo;
  if (clv__table_time(g->costs.blocks[device][0][last], rows, share.edges, share.targets, &compute) != CLV__KNOWN)
    return INFINITY;
  double given = block->given[0].fixed + block->given[0].row * (double)rows + block->given[0].target * (double)share.targets +
                 block->given[0].edge * (double)share.edges;
  clv__copy_table_time(g->costs.pack, (uint64_t)(block->packed[0].row * (double)rows), &pack);
  if (device != GNX_CPU) {
    clv__copy_table_time(g->costs.in[device], (uint64_t)given, &in);
    clv__copy_table_time(g->costs.out[device], (uint64_t)(block->out.fixed + block->out.target * (double)share.targets), &out);
  }
  return compute + pack + in + out;
}

static double bytes_of(const clv__size_rule *rule, clv__layer_sizes sizes) {
  return rule->fixed + rule->row * (double)sizes.rows + rule->target * (double)sizes.targets + rule->edge * (double)sizes.edges;
}

/* Rearranging results adds to the packing time. Results of a device that needs fixed shapes lose their padding. Results of the
 * last layer are put into vertex order, unless the graph is not partitioned. */
static void test_laid_out(void **unused) {
  (void)unused;
  uint64_t state = 12;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    gnx g;
    clv__subgraph_sizes subgraph;
    gnx_made(&g, clv__allocator_default(), seed);
    gnx_random_subgraph(&state, &subgraph);
    if (seed % 3 == 0) subgraph.halo = 0;
    uint32_t stages = g.chain.stage_count, first[3] = {0, 0, stages - 2};
    for (uint32_t d = 0; d < 3; ++d) {
      clv__block_answers answers[2];
      clv__block_question question = {.first = first[d], .last = stages, .set = 1u << d};
      if (!clv__block_is_legal(&g.costs, &question)) continue;
      for (int last = 0; last < 2; ++last) {
        g.costs.is_last = last == 1;
        clv__block_price(&g.costs, &subgraph, &question, 1, &answers[last]);
        assert_int_equal(answers[last].known, CLV__KNOWN);
      }
      const clv__chain_block *block = &g.chain.blocks[first[d]][stages];
      const clv__pep_part *inner = &answers[0].items[0].parts[0], *outer = &answers[1].items[0].parts[0];
      double laid_ns, packed_ns;
      uint64_t bytes = inner->sizes.targets * g.layer.out * sizeof(float);
      assert_true(clv__copy_table_time(g.costs.pack, bytes, &laid_ns));
      bool is_laid = d != GNX_NPU && subgraph.halo > 0;
      assert_true(fabs(outer->pack_ns - inner->pack_ns - (is_laid ? laid_ns : 0)) <= 1);
      if (d != GNX_NPU) continue;
      double packed = bytes_of(&block->given[1], inner->padded) + bytes_of(&block->made[1], inner->padded);
      assert_true(clv__copy_table_time(g.costs.pack, (uint64_t)packed, &packed_ns));
      assert_true(inner->pack_ns == round(packed_ns + laid_ns));
    }
    gnx_close(&g);
  }
}

/* Nothing is copied between two blocks on devices that share a memory other than the host's. Each block is priced with the
 * other block in the same memory and in another memory: in the same memory, it copies fewer bytes. */
static void test_shared_memory(void **unused) {
  (void)unused;
  uint64_t state = 5;
  uint32_t met = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    gnx g;
    clv__subgraph_sizes subgraph;
    gnx_made(&g, clv__allocator_default(), seed);
    gnx_random_subgraph(&state, &subgraph);
    g.machine.devices[GNX_NPU].space = g.machine.devices[GNX_GPU].space;
    for (uint32_t cut = 1; cut < g.chain.stage_count; ++cut) {
      for (uint32_t turn = 0; turn < 2; ++turn) {
        const uint32_t devices[2] = {turn == 0 ? GNX_GPU : GNX_NPU, turn == 0 ? GNX_NPU : GNX_GPU};
        const uint32_t cuts[3] = {0, cut, g.chain.stage_count}, sets[2] = {1u << devices[0], 1u << devices[1]};
        clv__block_question questions[2];
        clv__block_questions(&g.machine, 2, cuts, sets, questions);
        for (uint32_t b = 0;
             b < 2 && clv__block_is_legal(&g.costs, &questions[0]) && clv__block_is_legal(&g.costs, &questions[1]); ++b) {
          assert_true(questions[b].shared_in == (b == 1) && questions[b].shared_out == (b == 0));
          clv__block_question apart = questions[b];
          clv__block_answers answers[2];
          apart.shared_in = apart.shared_out = false;
          clv__block_price(&g.costs, &subgraph, &questions[b], 1, &answers[0]);
          clv__block_price(&g.costs, &subgraph, &apart, 1, &answers[1]);
          assert_true(answers[0].known == CLV__KNOWN && answers[1].known == CLV__KNOWN);
          const clv__pep_part *with = &answers[0].items[0].parts[0], *without = &answers[1].items[0].parts[0];
          const clv__chain_block *block = &g.chain.blocks[questions[b].first][questions[b].last];
          const uint32_t form = devices[b] == GNX_NPU ? 1 : 0;
          const uint64_t out = (uint64_t)bytes_of(&block->out, with->padded);
          double out_ns, in_ns;
          assert_true(clv__copy_table_time(g.costs.out[devices[b]], out, &out_ns));
          const uint64_t given = (uint64_t)bytes_of(&block->given[form], with->padded);
          const uint64_t all =
              (uint64_t)(bytes_of(&block->given[form], with->padded) + bytes_of(&block->made[form], with->padded));
          assert_true(clv__copy_table_time(g.costs.in[devices[b]], b == 0 ? all : given, &in_ns));
          assert_true(without->out_ns == round(out_ns) && with->in_ns == round(in_ns));
          assert_true(with->bytes == (b == 0 ? all : given + out) && without->bytes == all + out);
          assert_true(b == 0 ? with->out_ns < without->out_ns : with->out_ns == without->out_ns);
          ++met;
        }
      }
    }
    gnx_close(&g);
  }
  assert_true(met > 20);
}

/* Dividing a subgraph between CPU and GPU: the point of division is about as good as the best of 4,000 points. After
 * rounding, it is the best of the rounded points. */
static void test_balance(void **unused) {
  (void)unused;
  uint64_t state = 8;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    gnx g;
    clv__subgraph_sizes subgraph;
    clv__block_answers answers;
    gnx_made(&g, clv__allocator_default(), seed);
    gnx_random_subgraph(&state, &subgraph);
    clv__block_question question = {.first = 0, .last = g.chain.stage_count, .set = 1u << GNX_CPU | 1u << GNX_GPU};
    clv__block_price(&g.costs, &subgraph, &question, 1, &answers);
    assert_int_equal(answers.known, CLV__KNOWN);
    double best = INFINITY, rounded = INFINITY, got = INFINITY;
    for (int i = 1; i < 4000; ++i) {
      double cut = i / 4000.0;
      double time = fmax(part_time(&g, &subgraph, GNX_CPU, question.last, 0, cut),
                         part_time(&g, &subgraph, GNX_GPU, question.last, cut, 1));
      best = fmin(best, time);
      if (i % 200 == 0) rounded = fmin(rounded, time);
    }
    for (uint32_t a = 0; a < answers.count; ++a) got = fmin(got, answers.items[a].time_ns);
    double merge = g.machine.merge_ns;
    if (answers.items[0].ideal_ns - merge > best * 1.002)
      fail_msg("seed %u: the ideal time is %g, but a cut of the edges takes only %g", (unsigned)seed, answers.items[0].ideal_ns,
               best);
    assert_true(fabs(got - merge - rounded) <= 1e-3 * rounded);
    gnx_close(&g);
  }
}

/* Makes all plans that are possible, including dominated ones. Returns their number. */
static uint32_t all_plans(const gnx *g, const clv__subgraph_sizes *subgraph, clv__pep *plans, uint32_t room) {
  uint32_t count = 0, stages = g->chain.stage_count;
  clv__block_answers *answers[3] = {malloc(sizeof **answers), malloc(sizeof **answers), malloc(sizeof **answers)};
  for (uint32_t blocks = 1; blocks <= 3; ++blocks) {
    for (uint32_t cut = 1; cut < (blocks > 1 ? stages : 2); ++cut) {
      for (uint32_t next = cut + 1; next < (blocks > 2 ? stages : cut + 2); ++next) {
        uint32_t bounds[4] = {0, cut, next, stages};
        bounds[blocks] = stages;
        for (uint32_t sets = 0; sets < 512; ++sets) {
          uint32_t of[3] = {sets & 7, sets >> 3 & 7, sets >> 6};
          if ((of[0] & of[1]) != 0 || (of[0] & of[2]) != 0 || (of[1] & of[2]) != 0) continue;
          if ((of[1] != 0) != (blocks > 1) || (of[2] != 0) != (blocks > 2)) continue;
          bool good = true;
          for (uint32_t b = 0; b < blocks && good; ++b) {
            clv__block_question question = {.first = bounds[b], .last = bounds[b + 1], .set = of[b]};
            good = clv__block_is_legal(&g->costs, &question);
            if (good) clv__block_price(&g->costs, subgraph, &question, 1, answers[b]);
            good = good && answers[b]->known == CLV__KNOWN;
          }
          for (uint32_t x = 0; good && x < answers[0]->count; ++x) {
            for (uint32_t y = 0; y < (blocks > 1 ? answers[1]->count : 1); ++y) {
              for (uint32_t z = 0; z < (blocks > 2 ? answers[2]->count : 1); ++z) {
                clv__pep *pep = &plans[count < room ? count++ : 0];
                *pep = (clv__pep){.block_count = blocks, .blocks = {answers[0]->items[x]}};
                if (blocks > 1) pep->blocks[1] = answers[1]->items[y];
                if (blocks > 2) pep->blocks[2] = answers[2]->items[z];
                clv__pep_finish(pep);
              }
            }
          }
        }
      }
    }
  }
  for (int b = 0; b < 3; ++b) free(answers[b]);
  return count;
}

static double best_pair(clv__arena *arena, clv__pep_list lists[2]) {
  clv__assign assign;
  double best = INFINITY;
  assert_ok(clv__assign_init(&assign, arena, 3, lists, 2, &error), error);
  for (uint32_t a = 0; a < lists[0].count; ++a) {
    for (uint32_t b = 0; b < lists[1].count; ++b) best = fmin(best, clv__assign_value(&assign, (uint32_t[]){a, b}));
  }
  return best;
}

static void test_dominated(void **unused) {
  (void)unused;
  uint64_t state = 21;
  enum { ROOM = 2000 };
  clv__pep *plans[2] = {malloc(ROOM * sizeof **plans), malloc(ROOM * sizeof **plans)};
  for (uint64_t seed = 0; seed < 6; ++seed) {
    gnx g;
    clv__arena arena;
    clv__subgraph_sizes subgraphs[2];
    clv__pep_list kept[2], all[2];
    clv__pep_options options = CLV__PEP_OPTIONS_INIT;
    gnx_made(&g, clv__allocator_default(), seed);
    clv__arena_init(&arena, clv__allocator_default());
    for (int i = 0; i < 2; ++i) {
      gnx_random_subgraph(&state, &subgraphs[i]);
      assert_ok(clv__peps_make(&arena, &g.costs, &subgraphs[i], &options, &kept[i], &error), error);
      all[i] = (clv__pep_list){.items = plans[i], .count = all_plans(&g, &subgraphs[i], plans[i], ROOM)};
      assert_int_equal(all[i].count, kept[i].priced);
      assert_true(kept[i].count < all[i].count);
    }
    double with = best_pair(&arena, all), without = best_pair(&arena, kept);
    assert_true(fabs(with - without) <= 1e-9 * with);
    clv__arena_finish(&arena);
    gnx_close(&g);
  }
  free(plans[0]);
  free(plans[1]);
}

/* There is no plan outside the measured sizes, beyond a device's memory, or without tables. The error gives the reason. */
static void test_refusals(void **unused) {
  (void)unused;
  gnx g;
  clv__arena arena;
  clv__pep_list list;
  clv__pep_options options = CLV__PEP_OPTIONS_INIT;
  clv__subgraph_sizes subgraph = {.owned = 5000, .halo = 100, .edges = 20000},
                      huge = {.owned = 1u << 30, .halo = 0, .edges = 1u << 31};
  gnx_made(&g, clv__allocator_default(), 0);
  clv__arena_init(&arena, clv__allocator_default());
  assert_int_equal(clv__peps_make(&arena, &g.costs, &huge, &options, &list, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "is outside the measured range"));
  for (uint32_t d = 0; d < 3; ++d) g.machine.devices[d].memory_bytes = 1000;
  assert_int_equal(clv__peps_make(&arena, &g.costs, &subgraph, &options, &list, &error), CLV_TOO_LARGE);
  assert_true(list.infeasible > 0 && list.least.size_bytes > 1000);
  /* Exactly the least memory, which must be enough. */
  for (uint32_t d = 0; d < 3; ++d) g.machine.devices[d].memory_bytes = list.least.size_bytes;
  assert_ok(clv__peps_make(&arena, &g.costs, &subgraph, &options, &list, &error), error);
  g.machine.devices[GNX_GPU].name = "opencl:0";
  assert_int_equal(clv__costs_init(&g.costs, &g.tables, &g.machine, &g.chain, &error), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "opencl:0"));
  clv__arena_finish(&arena);
  gnx_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans),     cmocka_unit_test(test_balance),
                                     cmocka_unit_test(test_laid_out),  cmocka_unit_test(test_shared_memory),
                                     cmocka_unit_test(test_dominated), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
