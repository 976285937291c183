/* Tests the merging of buckets: subgraphs of different padded sizes are padded to one size, so that the device compiles
 * once. Subgraphs, devices and compile times are random. Compares each choice with the same choice without merging, and
 * checks that merging a further pair of buckets would not save time. */
#include "gnn/plan/buckets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/plan.h"
#include "gnx.h"

enum { MOST_K = 12, ROUNDS = 90 };

static clv_error error;

/* Makes a random machine. Compiling for the NPU takes `compile_ns` (0: unknown). With `runs_all`, the NPU supports all
 * stages. */
static void open_machine(gnx *g, uint64_t seed, bool runs_all, double compile_ns) {
  gnx_made(g, clv__allocator_default(), seed);
  if (runs_all) g->machine.devices[GNX_NPU].cannot = 0;
  for (uint32_t first = 0; first < g->chain.stage_count && runs_all; ++first) {
    for (uint32_t last = first + 1; last <= g->chain.stage_count; ++last) {
      const clv__chain_block *block = &g->chain.blocks[first][last];
      for (uint64_t n = 10; n <= 100000 && !block->is_empty; n *= 10) {
        for (uint64_t density = 0; density <= (block->reads_edges ? 64 : 0); density += 16) {
          clv__table_point point = {.n = n, .m = n * density, .origin = CLV__SYNTHETIC};
          point.time_ns = 1000 + (last - first) * (9 * (double)n + 2 * (double)point.m);
          assert_ok(clv__tables_put(&g->tables, "npu", g->chain.layer, first, last, &point, &error), error);
        }
      }
    }
  }
  for (uint32_t t = 0; t < g->tables.table_count; ++t) {
    clv__block_table *table = &g->tables.tables[t];
    for (uint32_t p = 0; p < table->point_count && strcmp(table->device, "npu") == 0; ++p)
      table->points[p].compile_ns = compile_ns;
  }
  assert_ok(clv__tables_fit(&g->tables, &error), error);
  assert_ok(clv__costs_init(&g->costs, &g->tables, &g->machine, &g->chain, &error), error);
}

typedef struct sum {
  uint32_t buckets;
  double time_ns; /* the sum over all parts */
} sum;

/* Checks the parts of the plans. Counts their buckets and adds up their times. */
static sum look_at(const gnx *g, const clv__chosen_layer *layer, uint32_t k) {
  const clv__pep_part *seen[MOST_K * CLV__PEP_DEVICES];
  const clv__pep_block *of[MOST_K * CLV__PEP_DEVICES];
  sum s = {0};
  for (uint32_t i = 0; i < k; ++i) {
    const clv__pep *pep = layer->peps[i];
    for (uint32_t b = 0; b < pep->block_count; ++b) {
      const clv__pep_block *block = &pep->blocks[b];
      double longest = 0;
      for (uint32_t p = 0; p < block->part_count; ++p) {
        const clv__pep_part *part = &block->parts[p];
        s.time_ns += part->time_ns;
        longest = fmax(longest, part->time_ns);
        assert_true(pep->load_ns[part->device] == part->time_ns);
        if (!part->is_static || part->sizes.targets == 0) continue;
        assert_true(part->padded.rows >= part->sizes.rows && part->padded.edges >= part->sizes.edges);
        assert_true(part->padded.rows % 1000 == 0 && part->padded.edges % 1000 == 0 && part->padded.targets == part->padded.rows);
        assert_true(part->padded.edges == part->sizes.edges || part->padded.rows > part->sizes.rows);
        double time_ns;
        const clv__block_table *table = g->costs.blocks[part->device][block->first][block->last];
        assert_int_equal(clv__table_time(table, part->padded.rows, part->padded.edges, part->padded.targets, &time_ns),
                         CLV__KNOWN);
        assert_true(part->compute_ns == round(time_ns));
        uint32_t at = 0;
        while (at < s.buckets &&
               (seen[at]->device != part->device || of[at]->first != block->first || of[at]->last != block->last ||
                seen[at]->padded.rows != part->padded.rows || seen[at]->padded.edges != part->padded.edges))
          ++at;
        if (at < s.buckets) continue;
        seen[at] = part, of[at] = block;
        ++s.buckets;
      }
      assert_true(fabs(block->time_ns - longest - block->merge_ns) < 1e-6);
    }
  }
  return s;
}

/* Merging the result again must not find another merge. */
static void check_finished(clv__arena *arena, const gnx *g, const clv__choose_cut *cut, const clv__chosen_layer *layer) {
  clv__pep *peps = clv__arena_allocate_zero(arena, cut->k, sizeof *peps);
  assert_non_null(peps);
  for (uint32_t i = 0; i < cut->k; ++i) peps[i] = *layer->peps[i];
  clv__bucketing again = {.arena = arena, .costs = &g->costs, .cut = cut, .peps = peps, .sequence = layer->sequence};
  assert_ok(clv__buckets_merge(&again, &error), error);
  assert_int_equal(again.merge_count, 0);
  assert_true(again.makespan_ns == layer->timeline.makespan_ns);
}

static void check_file(const gnx *g, const clv__choice *choice) {
  static const clv__gnn_plan_names names = {.model = "m.json"};
  clv__gnn_plan *plan, *again;
  clv__text text, other;
  assert_ok(clv__gnn_plan_make(clv__allocator_default(), &names, &g->costs, choice, 0, &plan, &error), error);
  clv__text_init(&text, clv__allocator_default());
  clv__text_init(&other, clv__allocator_default());
  assert_ok(clv__gnn_plan_print(plan, &text, &error), error);
  assert_ok(clv__gnn_plan_parse(clv__allocator_default(), text.data, text.size_bytes, "p", &again, &error), error);
  assert_ok(clv__gnn_plan_print(again, &other, &error), error);
  assert_string_equal(text.data, other.data);
  assert_int_equal(again->layers[0].merge_count, choice->items[choice->chosen].layers[0].merge_count);
  clv__text_finish(&other);
  clv__text_finish(&text);
  clv__gnn_plan_destroy(again);
  clv__gnn_plan_destroy(plan);
}

static void random_subgraphs(uint64_t *state, uint32_t k, clv__subgraph_sizes *subgraphs) {
  bool is_near = test_random(state) % 2 == 0; /* nearly equal subgraphs, as METIS makes them */
  gnx_random_subgraph(state, &subgraphs[0]);
  for (uint32_t i = 1; i < k; ++i) {
    gnx_random_subgraph(state, &subgraphs[i]);
    if (!is_near) continue;
    subgraphs[i] = subgraphs[0];
    subgraphs[i].owned += test_random(state) % 2000;
    subgraphs[i].edges += test_random(state) % 5000;
  }
  if (test_random(state) % 4 == 0) subgraphs[k - 1] = (clv__subgraph_sizes){.owned = 0}; /* a subgraph without vertices */
}

static void test_merges(void **unused) {
  (void)unused;
  static const double compiling_ns[] = {0, 1e4, 1e5, 1e6, 1e9};
  uint64_t state = 31;
  uint32_t merged = 0, alone = 0, same = 0;
  for (uint64_t seed = 0; seed < ROUNDS; ++seed) {
    gnx g;
    clv__arena arena;
    clv__subgraph_sizes subgraphs[MOST_K];
    clv__choose_cut cut = {2 + (uint32_t)(test_random(&state) % (MOST_K - 1)), subgraphs};
    clv__choice plain, choice;
    clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
    double compile_ns = compiling_ns[seed % 5];
    open_machine(&g, seed, seed % 3 == 1, compile_ns);
    random_subgraphs(&state, cut.k, subgraphs);
    clv__arena_init(&arena, clv__allocator_default());
    options.effort = seed % 2 == 0 ? CLV__EFFORT_QUICK : CLV__EFFORT_FULL;
    options.budget = 20000;
    options.keeps_buckets = true;
    assert_ok(clv__choose(&arena, &g.costs, 1, &cut, 1, &options, &plain, &error), error);
    options.keeps_buckets = false;
    assert_ok(clv__choose(&arena, &g.costs, 1, &cut, 1, &options, &choice, &error), error);
    const clv__chosen_layer *before = &plain.items[1].layers[0], *layer = &choice.items[1].layers[0];
    sum was = look_at(&g, before, cut.k), is = look_at(&g, layer, cut.k);
    double saved_ns = 0, added_ns = 0;
    for (uint32_t m = 0; m < layer->merge_count; ++m) {
      const clv__bucket_merge *merge = &layer->merges[m];
      assert_true(merge->device == GNX_NPU && merge->saved_ns == compile_ns && merge->added_ns < merge->saved_ns);
      assert_true(merge->added_ns >= 0 && merge->parts >= 1);
      for (int from = 0; from < 2; ++from)
        assert_true(merge->from[from].rows <= merge->into.rows && merge->from[from].edges <= merge->into.edges);
      saved_ns += merge->saved_ns, added_ns += merge->added_ns;
    }
    /* The makespan may grow by the saved compile time at most. */
    assert_true(layer->timeline.makespan_ns <= before->timeline.makespan_ns + saved_ns + 1);
    if (!(layer->bound_ns <= layer->timeline.makespan_ns && layer->bound_all_ns <= layer->bound_ns))
      fail_msg(
          "seed %d, %u merges: the makespan %.17g must not be below the bound %.17g, nor that below the bound over all sequences "
          "%.17g "
          "(without merges: %.17g, %.17g, %.17g)",
          (int)seed, layer->merge_count, layer->timeline.makespan_ns, layer->bound_ns, layer->bound_all_ns,
          before->timeline.makespan_ns, before->bound_ns, before->bound_all_ns);
    for (uint32_t d = 0; d < 3; ++d) assert_true(layer->timeline.makespan_ns <= layer->single_ns[d] * (1 + 1e-9));
    if (compile_ns == 0) assert_int_equal(layer->merge_count, 0);
    if (layer->merge_count == 0) assert_true(layer->timeline.makespan_ns == before->timeline.makespan_ns);
    if (layer->merge_count > 0 && strcmp(layer->from, before->from) == 0) { /* merging began with the same plans as `before` */
      assert_int_equal(is.buckets, was.buckets - layer->merge_count);
      assert_true(fabs(is.time_ns - was.time_ns - added_ns) < 1e-3);
      ++same;
    }
    merged += layer->merge_count > 0;
    alone += strcmp(layer->from, before->from) != 0;
    if (layer->merge_count > 0) check_finished(&arena, &g, &cut, layer);
    check_file(&g, &choice);
    clv__arena_finish(&arena);
    gnx_close(&g);
  }
  print_message(
      "buckets were merged in %u of %u rounds; in %u rounds the plans stayed the same, in %u rounds others were chosen\n", merged,
      ROUNDS, same, alone);
  assert_true(merged >= ROUNDS / 4 && same >= ROUNDS / 6);
}

/* Runs each of two subgraphs on the NPU alone, and merges their buckets. */
static void merge_two(const gnx *g, clv__arena *arena, const clv__choose_cut *cut, clv__pep peps[2], clv__bucketing *b,
                      double *before_ns) {
  static const uint32_t sequence[] = {0, 1};
  for (uint32_t i = 0; i < 2; ++i) {
    clv__pep_list list;
    clv__pep_options options = CLV__PEP_OPTIONS_INIT;
    options.most_blocks = options.most_parts = 1;
    assert_ok(clv__peps_make(arena, &g->costs, &cut->subgraphs[i], &options, &list, &error), error);
    uint32_t o = 0;
    while (o < list.count && clv__pep_single(&list.items[o]) != GNX_NPU) ++o;
    assert_true(o < list.count);
    peps[i] = list.items[o];
  }
  *before_ns = peps[0].time_ns + peps[1].time_ns;
  *b = (clv__bucketing){.arena = arena, .costs = &g->costs, .cut = cut, .peps = peps, .sequence = sequence};
  assert_ok(clv__buckets_merge(b, &error), error);
}

/* Two buckets are merged if and only if compiling takes longer than the added padding, even by a nanosecond. */
static void test_edge(void **unused) {
  (void)unused;
  for (uint64_t seed = 1; seed < 12; seed += 3) {
    double added_ns = 0;
    for (int step = 0; step < 3; ++step) {
      gnx g;
      clv__arena arena;
      clv__subgraph_sizes subgraphs[] = {{.owned = 2500, .edges = 9500}, {.owned = 3500, .edges = 9500}};
      clv__choose_cut cut = {2, subgraphs};
      clv__pep peps[2];
      clv__bucketing b;
      double before_ns;
      open_machine(&g, seed, true, step == 0 ? 1e12 : step == 1 ? added_ns : added_ns + 1);
      g.machine.devices[GNX_NPU].switch_ns = 0;
      clv__arena_init(&arena, clv__allocator_default());
      merge_two(&g, &arena, &cut, peps, &b, &before_ns);
      if (step == 0) {
        assert_int_equal(b.merge_count, 1);
        added_ns = b.merges[0].added_ns;
        assert_true(added_ns > 0 && b.merges[0].parts == 1);
        assert_int_equal(peps[0].blocks[0].parts[0].padded.rows, 4000);
        assert_true(peps[0].time_ns + peps[1].time_ns == before_ns + added_ns && b.makespan_ns == before_ns + added_ns);
      } else {
        assert_int_equal(b.merge_count, step - 1);
        if (step == 1) assert_true(peps[0].time_ns + peps[1].time_ns == before_ns);
      }
      clv__arena_finish(&arena);
      gnx_close(&g);
    }
  }
}

/* Padding edges need a padding row: a bucket whose rows are full cannot get more edges. */
static void test_exact_rows(void **unused) {
  (void)unused;
  for (uint64_t rows = 3999; rows <= 4000; ++rows) {
    gnx g;
    clv__arena arena;
    clv__pep peps[2];
    clv__bucketing b;
    double before_ns;
    clv__subgraph_sizes subgraphs[] = {{.owned = rows, .edges = 10000}, {.owned = 3500, .edges = 10500}};
    clv__choose_cut cut = {2, subgraphs};
    open_machine(&g, 1, true, 1e12);
    clv__arena_init(&arena, clv__allocator_default());
    merge_two(&g, &arena, &cut, peps, &b, &before_ns);
    assert_int_equal(b.merge_count, rows == 3999);
    clv__arena_finish(&arena);
    gnx_close(&g);
  }
}

/* Allocations fail, one per attempt; nothing may leak. */
static void test_memory(void **unused) {
  (void)unused;
  gnx g;
  clv__subgraph_sizes subgraphs[4];
  uint64_t state = 3;
  clv__choose_cut cut = {4, subgraphs};
  open_machine(&g, 1, true, 1e9);
  for (uint32_t i = 0; i < 4; ++i) gnx_random_subgraph(&state, &subgraphs[i]);
  clv_status status = CLV_OUT_OF_MEMORY;
  uint32_t merges = 0;
  for (size_t fail = 1; status != CLV_OK; fail += 1 + fail / 12) {
    test_allocator counting;
    clv__arena arena;
    clv__choice choice;
    clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
    options.budget = 2000;
    test_allocator_init(&counting);
    counting.fail_at = fail;
    clv__arena_init(&arena, &counting.allocator);
    status = clv__choose(&arena, &g.costs, 1, &cut, 1, &options, &choice, &error);
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    if (status == CLV_OK) merges = choice.items[1].layers[0].merge_count;
    clv__arena_finish(&arena);
    assert_int_equal(counting.live, 0);
  }
  assert_true(merges > 0);
  gnx_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_merges), cmocka_unit_test(test_edge),
                                     cmocka_unit_test(test_exact_rows), cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
