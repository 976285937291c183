/* Tests the choice of plans: it is never slower than a single device, close to its bound, and reproducible. Also tests the
 * plan file. */
#include "gnn/plan/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/plan.h"
#include "gnx.h"

static clv_error error;

/* Checks the properties that every choice has. */
static void check_choice(const gnx *g, const clv__choice *choice, uint32_t layers) {
  double best = INFINITY;
  bool has_whole = false;
  for (uint32_t c = 0; c < choice->k_count; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    has_whole = has_whole || item->k == 1;
    if (!item->has_plan) {
      assert_true(item->reason[0] != '\0');
      continue;
    }
    double makespan = 0, bound = 0, single[CLV__PEP_DEVICES] = {0};
    for (uint32_t l = 0; l < layers; ++l) {
      const clv__chosen_layer *layer = &item->layers[l];
      clv__pep_work works[GNX_MOST_SUBGRAPHS];
      const clv__pep_work *sequence[GNX_MOST_SUBGRAPHS];
      uint64_t seen = 0;
      for (uint32_t at = 0; at < item->k; ++at) {
        uint32_t subgraph = layer->sequence[at];
        assert_true(subgraph < item->k && (seen >> subgraph & 1) == 0);
        seen |= (uint64_t)1 << subgraph;
        clv__pep_work_of(layer->peps[subgraph], &works[at]);
        sequence[at] = &works[at];
      }
      uint32_t places = 0;
      for (uint32_t q = 0; q < layer->cluster_count; ++q) {
        assert_int_equal(layer->clusters[q].first, places);
        for (uint32_t at = 1; at < layer->clusters[q].count; ++at)
          assert_true(clv__pep_same(layer->peps[layer->sequence[places]], layer->peps[layer->sequence[places + at]]));
        places += layer->clusters[q].count;
      }
      assert_int_equal(places, item->k);
      assert_true(layer->timeline.makespan_ns == clv__simulate_time(&g->machine, sequence, item->k));
      assert_true(layer->bound_ns <= layer->timeline.makespan_ns * (1 + 1e-9) &&
                  layer->bound_all_ns <= layer->bound_ns * (1 + 1e-9));
      assert_true(layer->bound_ns > 0);
      makespan += layer->timeline.makespan_ns, bound += layer->bound_ns;
      for (uint32_t d = 0; d < 3; ++d) {
        assert_true(layer->timeline.makespan_ns <= layer->single_ns[d] * (1 + 1e-9));
        single[d] += layer->single_ns[d];
      }
    }
    assert_true(fabs(makespan - item->makespan_ns) <= 1e-9 * makespan && fabs(bound - item->bound_ns) <= 1e-9 * bound);
    for (uint32_t d = 0; d < 3; ++d) assert_true(item->makespan_ns <= single[d] * (1 + 1e-9));
    best = fmin(best, makespan);
  }
  assert_true(has_whole);
  assert_true(choice->items[choice->chosen].makespan_ns == best);
  assert_true(best <= choice->best_single_ns * (1 + 1e-9));
}

static clv_status choose(clv__arena *arena, const gnx *g, const clv__choose_cut *cuts, uint32_t count, clv__effort effort,
                         clv__choice *choice) {
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  options.effort = effort;
  return clv__choose(arena, &g->costs, 1, cuts, count, &options, choice, &error);
}

/* Flickr's subgraphs on the measured machine: for k = 1 to 20, the plan is within 1 % of the bound. */
static void test_flickr(void **unused) {
  (void)unused;
  gnx g;
  if (!gnx_open(&g, clv__allocator_default())) return;
  for (uint32_t k = 1; k <= 20; ++k) {
    clv__subgraph_sizes subgraphs[GNX_MOST_SUBGRAPHS];
    clv__choose_cut cut = {k, subgraphs};
    clv__choice choice, quick;
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    assert_int_equal(gnx_subgraphs("flickr", k, subgraphs), k);
    assert_ok(choose(&arena, &g, &cut, 1, CLV__EFFORT_FULL, &choice), error);
    check_choice(&g, &choice, 1);
    assert_int_equal(choice.origin, CLV__SYNTHETIC);
    const clv__chosen_k *item = &choice.items[choice.k_count - 1];
    assert_int_equal(item->k, k);
    if (!(item->gap <= 0.01))
      fail_msg("k %u: the makespan %g ms and the bound %g ms have a gap of %g, at most 0.01 is allowed", k,
               item->makespan_ns / 1e6, item->bound_ns / 1e6, item->gap);
    assert_ok(choose(&arena, &g, &cut, 1, CLV__EFFORT_QUICK, &quick), error);
    check_choice(&g, &quick, 1);
    clv__arena_finish(&arena);
  }
  gnx_close(&g);
}

/* Changes the prices: each device becomes up to 1.5 times faster or slower, and copies up to 2 times. */
static void change_prices(gnx *g, uint64_t seed) {
  double devices[3], copies;
  uint64_t state = seed;
  for (int d = 0; d < 3; ++d) devices[d] = pow(1.5, (double)(test_random(&state) % 2001) / 1000 - 1);
  copies = pow(2, (double)(test_random(&state) % 2001) / 1000 - 1);
  for (uint32_t t = 0; t < g->tables.table_count; ++t) {
    clv__block_table *table = &g->tables.tables[t];
    double by = devices[strcmp(table->device, "cpu") == 0 ? GNX_CPU : strcmp(table->device, "gpu") == 0 ? GNX_GPU : GNX_NPU];
    for (uint32_t p = 0; p < table->point_count; ++p) table->points[p].time_ns *= by;
  }
  for (uint32_t t = 0; t < g->tables.copy_count; ++t) {
    for (uint32_t p = 0; p < g->tables.copies[t].point_count; ++p) g->tables.copies[t].points[p].time_ns *= copies;
  }
  assert_ok(clv__tables_fit(&g->tables, &error), error);
  assert_ok(clv__costs_init(&g->costs, &g->tables, &g->machine, &g->chain, &error), error);
}

static const clv__chosen_k *choose_kind(clv__arena *arena, const gnx *g, const clv__choose_cut *cut, uint32_t most_blocks,
                                        uint32_t most_parts, clv__choice *choice) {
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  options.peps.most_blocks = most_blocks, options.peps.most_parts = most_parts;
  assert_ok(clv__choose(arena, &g->costs, 1, cut, 1, &options, choice, &error), error);
  return &choice->items[choice->k_count - 1];
}

/* With changed prices, the choice is within 1 % of the bound and reproducible. It is not slower than the best choice among
 * plans of one block (shared among devices) alone, or among plans whose blocks have one part each (pipelines) alone. */
static void test_prices(void **unused) {
  (void)unused;
  static const uint32_t ks[] = {5, 8, 12, 16, 20};
  for (uint64_t seed = 1; seed <= test_some(10); ++seed) {
    gnx g;
    clv__subgraph_sizes subgraphs[GNX_MOST_SUBGRAPHS];
    clv__choose_cut cut = {ks[seed % 5], subgraphs};
    clv__choice choice, other;
    clv__arena arena;
    if (!gnx_open(&g, clv__allocator_default())) return;
    change_prices(&g, seed);
    clv__arena_init(&arena, clv__allocator_default());
    assert_int_equal(gnx_subgraphs("flickr", cut.k, subgraphs), cut.k);
    const clv__chosen_k *item = choose_kind(&arena, &g, &cut, 0, 0, &choice);
    check_choice(&g, &choice, 1);
    if (!(item->gap <= 0.01))
      fail_msg("prices %u, k %u: the gap is %g, at most 0.01 is allowed", (unsigned)seed, cut.k, item->gap);
    const clv__chosen_k *again = choose_kind(&arena, &g, &cut, 0, 0, &other);
    assert_true(again->makespan_ns == item->makespan_ns && again->bound_ns == item->bound_ns);
    for (uint32_t kind = 0; kind < 2; ++kind) {
      const clv__chosen_k *alone = choose_kind(&arena, &g, &cut, kind == 0, kind == 1, &other);
      if (item->makespan_ns > alone->makespan_ns)
        fail_msg("prices %u, k %u: the choice is slower than that among %s alone", (unsigned)seed, cut.k,
                 kind == 0 ? "shared blocks" : "pipelines");
    }
    clv__arena_finish(&arena);
    gnx_close(&g);
  }
}

/* The shortest makespan of two subgraphs over all plans in both orders. */
static double best_of_two(const clv__machine *machine, const clv__pep_list lists[2]) {
  double best = INFINITY;
  for (uint32_t a = 0; a < lists[0].count; ++a) {
    for (uint32_t b = 0; b < lists[1].count; ++b) {
      clv__pep_work x, y;
      clv__pep_work_of(&lists[0].items[a], &x);
      clv__pep_work_of(&lists[1].items[b], &y);
      const clv__pep_work *one[] = {&x, &y}, *other[] = {&y, &x};
      best = fmin(best, fmin(clv__simulate_time(machine, one, 2), clv__simulate_time(machine, other, 2)));
    }
  }
  return best;
}

static void test_small(void **unused) {
  (void)unused;
  uint64_t state = 17;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gnx g;
    clv__arena arena;
    clv__subgraph_sizes subgraphs[2];
    clv__choose_cut cut = {2, subgraphs};
    clv__choice choice;
    clv__pep_list lists[2];
    clv__pep_options options = CLV__PEP_OPTIONS_INIT;
    gnx_made(&g, clv__allocator_default(), seed);
    clv__arena_init(&arena, clv__allocator_default());
    for (int i = 0; i < 2; ++i) {
      gnx_random_subgraph(&state, &subgraphs[i]);
      assert_ok(clv__peps_make(&arena, &g.costs, &subgraphs[i], &options, &lists[i], &error), error);
    }
    assert_ok(choose(&arena, &g, &cut, 1, CLV__EFFORT_FULL, &choice), error);
    check_choice(&g, &choice, 1);
    const clv__chosen_k *item = &choice.items[1];
    double best = best_of_two(&g.machine, lists);
    assert_true(item->layers[0].bound_all_ns <= best * (1 + 1e-9));
    if (!(item->makespan_ns <= best * 1.01 && item->makespan_ns >= best * (1 - 1e-9)))
      fail_msg("seed %u: the makespan is %g, not within 1 %% of the best, %g", (unsigned)seed, item->makespan_ns, best);
    clv__arena_finish(&arena);
    gnx_close(&g);
  }
}

/* With these prices, a search over only one kind of plan (shared blocks or pipelines) finds better plans than a search over all
 * plans. Therefore choosing also searches each kind alone, and continues from the better result. */
static void test_apart(void **unused) {
  (void)unused;
  const uint64_t seed = 5;
  uint64_t state = seed;
  gnx g;
  clv__arena arena;
  clv__subgraph_sizes subgraphs[8];
  clv__choose_cut cut = {8, subgraphs};
  clv__choice choice;
  gnx_made(&g, clv__allocator_default(), seed);
  clv__arena_init(&arena, clv__allocator_default());
  for (int i = 0; i < 8; ++i) gnx_random_subgraph(&state, &subgraphs[i]);
  assert_ok(choose(&arena, &g, &cut, 1, CLV__EFFORT_FULL, &choice), error);
  check_choice(&g, &choice, 1);
  clv__arena_finish(&arena);
  gnx_close(&g);
}

/* Unusual cuts: subgraphs without vertices, sizes outside the tables, no cut, the same k twice. */
static void test_odd(void **unused) {
  (void)unused;
  gnx g;
  clv__arena arena;
  clv__choice choice;
  gnx_made(&g, clv__allocator_default(), 3);
  clv__arena_init(&arena, clv__allocator_default());
  clv__subgraph_sizes subgraphs[3] = {{.owned = 5000, .halo = 100, .edges = 30000}, {0}, {.owned = 0}}, none[2] = {{0}, {0}};
  clv__subgraph_sizes huge[2] = {{.owned = 1u << 30, .edges = 1u << 31}, {.owned = 50, .edges = 70}};
  clv__choose_cut cuts[] = {{3, subgraphs}, {2, huge}}, empty = {2, none}, only = {2, huge};
  assert_ok(choose(&arena, &g, cuts, 1, CLV__EFFORT_FULL, &choice), error);
  check_choice(&g, &choice, 1);
  assert_ok(choose(&arena, &g, cuts, 2, CLV__EFFORT_FULL, &choice), error);
  assert_false(choice.items[1].has_plan);
  assert_non_null(strstr(choice.items[1].reason, "is outside the measured range"));
  assert_ok(choose(&arena, &g, &empty, 1, CLV__EFFORT_FULL, &choice), error);
  assert_true(choice.items[choice.chosen].makespan_ns == 0);
  assert_int_equal(choose(&arena, &g, &only, 1, CLV__EFFORT_FULL, &choice), CLV_NOT_SUPPORTED);
  assert_int_equal(choose(&arena, &g, NULL, 0, CLV__EFFORT_FULL, &choice), CLV_INVALID_ARGUMENT);
  clv__choose_cut twice[] = {{3, subgraphs}, {3, subgraphs}};
  assert_int_equal(choose(&arena, &g, twice, 2, CLV__EFFORT_FULL, &choice), CLV_INVALID_ARGUMENT);
  clv__arena_finish(&arena);
  gnx_close(&g);
}

/* ---- The file ---- */

static clv_status make_plan(const gnx *g, const clv_allocator *allocator, clv__gnn_plan **plan) {
  uint64_t state = 5;
  clv__arena arena;
  clv__choice choice;
  clv__subgraph_sizes subgraphs[7];
  clv__choose_cut cuts[] = {{3, subgraphs}, {4, subgraphs + 3}};
  clv__costs costs[2] = {g->costs, g->costs};
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__gnn_plan_names names = {.model = "m.json", .model_hash = "ab", .graph_hash = "cd", .membership_key = "k", .seed = 9};
  options.exchange_ns = 5000;
  options.budget = 20000;
  for (int i = 0; i < 7; ++i) gnx_random_subgraph(&state, &subgraphs[i]);
  *plan = NULL;
  clv__arena_init(&arena, allocator);
  clv_status status = clv__choose(&arena, costs, 2, cuts, 2, &options, &choice, &error);
  if (status == CLV_OK) status = clv__gnn_plan_make(allocator, &names, costs, &choice, options.exchange_ns, plan, &error);
  if (status == CLV_OK && allocator == clv__allocator_default())
    assert_true(choice.items[choice.chosen].makespan_ns == (*plan)->makespan_ns);
  clv__arena_finish(&arena);
  return status;
}

static void print(const clv__gnn_plan *plan, clv__text *text) {
  clv__text_init(text, clv__allocator_default());
  assert_ok(clv__gnn_plan_print(plan, text, &error), error);
}

static void test_file(void **unused) {
  (void)unused;
  gnx g;
  clv__gnn_plan *plan, *other;
  clv__text text, again;
  gnx_made(&g, clv__allocator_default(), 6);
  assert_ok(make_plan(&g, clv__allocator_default(), &plan), error);
  print(plan, &text);
  assert_ok(make_plan(&g, clv__allocator_default(), &other), error); /* the same inputs give the same bytes */
  print(other, &again);
  assert_string_equal(text.data, again.data);
  clv__text_finish(&again);
  clv__gnn_plan_destroy(other);
  assert_ok(clv__gnn_plan_parse(clv__allocator_default(), text.data, text.size_bytes, "p.json", &other, &error), error);
  print(other, &again);
  assert_string_equal(text.data, again.data); /* a plan that is read and written again is the same */
  assert_true(other->makespan_ns == plan->makespan_ns && other->k == plan->k && other->seed == 9);
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    for (uint32_t i = 0; i < plan->k; ++i) assert_true(clv__pep_same(&plan->layers[l].peps[i], &other->layers[l].peps[i]));
  }
  clv__text_finish(&again);
  clv__gnn_plan_destroy(other);
  static const char *const names[] = {"\"per_k\"",          "\"k\"",   "\"makespan_ms\"",
                                      "\"lower_bound_ms\"", "\"gap\"", "\"best_single_device_ms\""};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) assert_non_null(strstr(text.data, names[i]));
  for (size_t cut = 0; cut < text.size_bytes - 2; cut += 211)
    assert_int_equal(clv__gnn_plan_parse(clv__allocator_default(), text.data, cut, "cut", &other, &error), CLV_INVALID_MODEL);
  static const struct {
    const char *from, *to, *says;
  } edits[] = {{"\"cleave_gnn_plan\": 1", "\"cleave_gnn_plan\": 2", "plan again"},
               {"\"from\": 0,", "\"from\": 1,", "shares must be consecutive"},
               {"\"to\": 20,", "\"to\": 19,", "shares end at 19"},
               {"\"first\": 0,\n     \"last\"", "\"first\": 1,\n     \"last\"", "stages 1 to"},
               {"\"seed\": 9", "\"seeds\": 9", "unknown key 'seeds'"},
               {"\"device\": \"gpu\"", "\"device\": \"tpu\"", "'tpu'"},
               {"\"padded\"", "\"padding\"", "unknown key 'padding'"},
               {"\"pad_step\": 1000", "\"pad_step\": 0", "pad_step"},
               {"\"prices\": \"synthetic\"", "\"prices\": \"guessed\"", "guessed"},
               {"\"name\": \"gpu\"", "\"name\": \"cpu\"", "twice"}};
  uint32_t tried = 0;
  for (size_t i = 0; i < sizeof edits / sizeof *edits; ++i) {
    const char *at = strstr(text.data, edits[i].from);
    clv__text edited;
    if (at == NULL) continue; /* this plan does not contain the text to replace */
    clv__text_init(&edited, clv__allocator_default());
    clv__text_append(&edited, "%.*s%s%s", (int)(at - text.data), text.data, edits[i].to, at + strlen(edits[i].from));
    if (clv__gnn_plan_parse(clv__allocator_default(), edited.data, edited.size_bytes, "edited", &other, &error) == CLV_OK)
      fail_msg("a file with %s was accepted", edits[i].to);
    if (strstr(error.message, edits[i].says) == NULL)
      fail_msg("the message '%s' does not contain '%s'", error.message, edits[i].says);
    clv__text_finish(&edited);
    ++tried;
  }
  assert_true(tried >= 8);
  clv__text_finish(&text);
  clv__gnn_plan_destroy(plan);
  gnx_close(&g);
}

/* Replaces numbers of a plan file, one at a time and chosen at random. If the edited file is accepted, its plan must be
 * consistent. */
static void test_edits(void **unused) {
  (void)unused;
  static const char *const values[] = {"-1", "0", "1", "7", "21", "4000000000", "1e300", "true", "\"x\"", "[]"};
  gnx g;
  clv__gnn_plan *plan, *other;
  clv__text text;
  uint32_t refused = 0, read = 0;
  gnx_made(&g, clv__allocator_default(), 6);
  assert_ok(make_plan(&g, clv__allocator_default(), &plan), error);
  print(plan, &text);
  uint64_t state = 2;
  for (size_t at = 1; at < text.size_bytes; ++at) {
    if (strchr("0123456789", text.data[at]) == NULL || strchr(" [", text.data[at - 1]) == NULL || test_random(&state) % 4 != 0)
      continue;
    size_t end = at + strspn(text.data + at, "0123456789.eE+-");
    clv__text edited;
    clv__text_init(&edited, clv__allocator_default());
    clv__text_append(&edited, "%.*s%s%s", (int)at, text.data, values[test_random(&state) % 10], text.data + end);
    if (clv__gnn_plan_parse(clv__allocator_default(), edited.data, edited.size_bytes, "edited", &other, &error) == CLV_OK) {
      ++read;
      for (uint32_t l = 0; l < other->layer_count; ++l) {
        assert_true(isfinite(other->layers[l].timeline.makespan_ns) && other->layers[l].cluster_count > 0);
        for (uint32_t i = 0; i < other->k; ++i) assert_true(other->layers[l].sequence[i] < other->k);
      }
      clv__gnn_plan_destroy(other);
    } else {
      ++refused;
      assert_non_null(strstr(error.message, "edited: "));
    }
    clv__text_finish(&edited);
  }
  assert_true(refused > 20 && read > 20);
  clv__text_finish(&text);
  clv__gnn_plan_destroy(plan);
  gnx_close(&g);
}

/* Allocations fail, one per attempt; nothing may leak. */
static void test_memory(void **unused) {
  (void)unused;
  gnx g;
  gnx_made(&g, clv__allocator_default(), 6);
  clv_status status = CLV_OUT_OF_MEMORY;
  size_t fail = 1;
  for (; status != CLV_OK; fail += 1 + fail / test_some(20)) {
    test_allocator counting;
    clv__gnn_plan *plan;
    test_allocator_init(&counting);
    counting.fail_at = fail;
    status = make_plan(&g, &counting.allocator, &plan);
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    clv__gnn_plan_destroy(plan);
    assert_int_equal(counting.live, 0);
  }
  assert_true(fail > 50);
  gnx_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_flickr), cmocka_unit_test(test_prices), cmocka_unit_test(test_small),
                                     cmocka_unit_test(test_apart),  cmocka_unit_test(test_odd),    cmocka_unit_test(test_file),
                                     cmocka_unit_test(test_edits),  cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
