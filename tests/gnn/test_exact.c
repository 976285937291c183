/* Tests that every plan that the stages of a layer allow gives the result of a single device. The devices are a CPU, a
 * virtual NPU without sparse operators, a virtual NPU with all operators and, if available, OpenCL. The graphs are random
 * graphs and, if available, Cora and the edges of Pubmed. If the same kernels run in the same order, the bits must be
 * equal, whatever the padding.
 *
 *   cleave_tests gnn/test_exact                      every plan over random graphs, some plans over Cora and Pubmed (fewer with
 *                                                    a sanitizer)
 *   CLEAVE_TEST_ALL=1 cleave_tests gnn/test_exact    every plan over all graphs, with one to four layers (takes minutes) */
#include <unistd.h>

#include "gnn/plan/pep.h"
#include "scenes.h"

#define GRAPHS CLEAVE_SOURCE_DIR "/../shared/data/graphs/"

/* On random graphs, every EVERYth plan is tested; in brief rounds, every BRIEFth. On the graphs Cora and PubMed from files,
 * about CORA_PLANS and PUBMED_PLANS plans are tested for each type of model from FIRST_TYPE on. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { EVERY = 5, BRIEF = 23, CORA_PLANS = 8, PUBMED_PLANS = 3, FIRST_TYPE = CLV__GNN_GAT };
#else
enum { EVERY = 1, BRIEF = 7, CORA_PLANS = 18, PUBMED_PLANS = 6, FIRST_TYPE = 0 };
#endif

static bool runs_all;

/* ---- Devices ---- */

/* Opens four devices, the most that can share a graph. Without OpenCL, opens the other three; also with a sanitizer, which
 * would report OpenCL's own threads and leaks. */
static machine open_all(void) {
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  clv_error error = {0};
  machine m;
  if (try_machine("cpu,npu,npu1,opencl:0", NULL, &m, &error) == CLV_OK) return m;
  print_message("OpenCL is not tested: %s\n", error.message);
  clv_context_destroy(m.context);
#endif
  return open_machine("cpu,npu,npu1");
}

/* ---- Every plan over a scene ---- */

typedef struct layer_peps {
  pep_set sets[SCENE_LAYERS];
  uint32_t most; /* the largest number of plans of a layer */
} layer_peps;

/* Checks that the OpenCL device, if there is one, supports every block. */
static void expect_all_stages(const machine *m, const clv__stages *stages, const clv__stage_table *table) {
  for (uint32_t d = 0; d < m->devices->count; ++d) {
    for (uint32_t i = 0; i < stages->count && strcmp(m->devices->items[d].name, "opencl:0") == 0; ++i) {
      for (uint32_t k = i + 1; k <= stages->count; ++k) assert_true(table->runs[d][i][k]);
    }
  }
}

static layer_peps make_peps(machine *m, const clv__machine *means, const scene *s, uint64_t *seed) {
  layer_peps made = {0};
  clv__stage_table *table = malloc(sizeof *table);
  assert_non_null(table);
  for (uint32_t i = 0; i < s->model->layer_count; ++i) {
    clv_error error = {0};
    clv__stages stages;
    clv__stages_of(s->model->type, &s->model->layers[i], CLV_F32, &stages);
    assert_ok(clv__stage_table_make(m->devices, &stages, table, &error), error);
    expect_all_stages(m, &stages, table);
    made.sets[i] = all_peps(means, &stages, table, seed);
    if (made.sets[i].count > made.most) made.most = made.sets[i].count;
  }
  free(table);
  return made;
}

static void free_peps(layer_peps *peps) {
  for (uint32_t i = 0; i < SCENE_LAYERS; ++i) free(peps->sets[i].items);
}

/* Compares the single device with the definition, and then every `step`th plan of every layer with the single device. Each run
 * tests several of these plans, one on each subgraph. Returns the number of plans in the longest list. */
static uint32_t check_scene(machine *m, const scene *s, const char *name, uint64_t pad_step, uint32_t step, uint32_t rounds,
                            uint64_t *seed) {
  static const char *const types[] = {[CLV__GNN_SAGE] = "graphsage", [CLV__GNN_GCN] = "gcn", [CLV__GNN_GAT] = "gat"};
  clv__machine means = about_machine(m, pad_step, 1 + (uint32_t)(test_random(seed) % 3));
  uint32_t layers = s->model->layer_count, next = step > 1 ? (uint32_t)(test_random(seed) % step) : 0;
  layer_peps peps = make_peps(m, &means, s, seed);
  double *defined = test_gnn_expected(&s->gnn, s->model);
  char what[160];
  snprintf(what, sizeof what, "%s, %s, %u layers, alone", name, types[s->model->type], layers);
  test_gnn_compare(defined, s->alone, s->gnn.vertex_count, s->width, what);
  free(defined);
  while (next < peps.most) {
    turns p;
    snprintf(what, sizeof what, "%s, %s, %u layers, k %u, plans from %u of %u", name, types[s->model->type], layers, s->k, next,
             peps.most);
    make_turns(&p, s, &means, seed);
    for (uint32_t i = 0; i < layers; ++i) {
      for (uint32_t a = 0; a < s->k; ++a) p.items[i][a].pep = &peps.sets[i].items[(next + a * step) % peps.sets[i].count];
    }
    free(run_turns(m, s, &p, rounds, NULL, what));
    next += s->k * step;
  }
  free_peps(&peps);
  return peps.most;
}

/* ---- Random graphs ---- */

/* All but the smallest graphs have isolated vertices, self loops, repeated edges and a hub. If `spread` is below k, some
 * subgraphs have no vertices. */
static void test_random_graphs(void **state) {
  (void)state;
  static const struct {
    uint32_t layers, n;
    uint64_t edges;
    uint32_t k, spread;
  } sizes[] = {{1, 60, 300, 8, 8}, {2, 40, 130, 8, 3}, {3, 3, 5, 8, 8},
               {4, 30, 90, 8, 6},  {1, 50, 0, 8, 5},   {1, 200, 4000, 1, 1}};
  const uint64_t steps[] = {1, 8, 100, 1000};
  machine m = open_all();
  uint64_t seed = 5;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int type = 0; type < 3; ++type) {
      bool is_brief = sizes[i].layers > 2 || sizes[i].k == 1 || sizes[i].edges == 0;
      scene s;
      make_scene(&s, &m, (clv__gnn_type)type, sizes[i].layers, sizes[i].n, sizes[i].edges, sizes[i].k, sizes[i].spread, &seed);
      uint32_t count = check_scene(&m, &s, "random", steps[test_random(&seed) % 4],
                                   runs_all   ? 1
                                   : is_brief ? BRIEF
                                              : EVERY,
                                   2, &seed);
      assert_true(count > 40);
      finish_scene(&s);
    }
  }
  close_machine(&m);
}

/* ---- Cora, and Pubmed's edges ---- */

/* Reads the edges of a file, with its features or, if it has none, with random ones. Returns false if the file does not
 * exist. */
static bool read_gnn(test_gnn *gnn, const char *name, uint32_t features, uint64_t *seed) {
  char path[512];
  clv_error error = {0};
  clv__gnn_graph *graph;
  uint64_t used = 0;
  snprintf(path, sizeof path, GRAPHS "%s.npz", name);
  if (access(path, R_OK) != 0) return false;
  assert_ok(clv__gnn_graph_read(clv__allocator_default(), path, &graph, &error), error);
  const clv__csr *csr = &graph->csr;
  if (features == 0) features = (uint32_t)graph->features.dims[1];
  size_t count = (size_t)csr->vertex_count * features;
  *gnn = (test_gnn){.vertex_count = csr->vertex_count, .edge_count = csr->edge_count};
  gnn->sources = malloc((csr->edge_count + 1) * sizeof *gnn->sources);
  gnn->destinations = malloc((csr->edge_count + 1) * sizeof *gnn->destinations);
  float *x = malloc(count * sizeof *x);
  assert_true(gnn->sources != NULL && gnn->destinations != NULL && x != NULL);
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e, ++used)
      gnn->sources[used] = csr->sources[e], gnn->destinations[used] = v;
  }
  for (size_t i = 0; i < count; ++i)
    x[i] = graph->features.dtype != CLV_DTYPE_NONE ? ((const float *)graph->features.data)[i] : test_random_float(seed);
  clv__gnn_graph_destroy(graph);
  gnn->features = clv__tensor_make(CLV_F32, 2, (const int64_t[]){gnn->vertex_count, features}, x);
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), gnn->vertex_count, gnn->edge_count, gnn->sources, gnn->destinations,
                                &gnn->features, NULL, &gnn->graph, &error),
            error);
  return true;
}

/* Makes a random model whose layers have at most 64 columns each (per head). */
static clv__gnn_model *narrow_model(clv__gnn_type type, uint32_t layers, uint32_t features, uint64_t *seed) {
  for (;;) {
    clv__gnn_model *model = test_gnn_model(clv__allocator_default(), type, layers, features, test_random(seed));
    uint32_t widest = 0;
    for (uint32_t i = 0; i < layers; ++i) widest = model->layers[i].out > widest ? model->layers[i].out : widest;
    if (widest <= 64) return model;
    clv__gnn_model_destroy(model);
  }
}

/* Tests plans over a graph partitioned by METIS: about `plans` plans per type of model, or all plans if it is 0. */
static void check_file(const char *name, uint32_t features, uint32_t least_layers, uint32_t most_layers, uint32_t plans,
                       uint64_t seed) {
  enum { K = 6 };
  machine m = open_all();
  for (uint32_t layers = least_layers; layers <= most_layers; ++layers) {
    for (int type = runs_all ? 0 : FIRST_TYPE; type < 3; ++type) {
      clv__membership membership;
      clv_error error = {0};
      scene s = {.k = K};
      if (!read_gnn(&s.gnn, name, features, &seed)) {
        close_machine(&m);
        print_message("skipped: there is no file %s%s.npz\n", GRAPHS, name);
        skip();
      }
      s.model = narrow_model((clv__gnn_type)type, layers, (uint32_t)s.gnn.features.dims[1], &seed);
      assert_ok(clv__membership_make(clv__allocator_default(), s.gnn.graph, K, 1, NULL, &membership, &error), error);
      cut_scene(&s, &m, K, membership.parts);
      clv__membership_finish(clv__allocator_default(), &membership);
      uint32_t step = plans == 0 ? 1 : 1 + (m.devices->count == 4 ? 700 : 150) / plans;
      check_scene(&m, &s, name, 1000, step, 1, &seed);
      finish_scene(&s);
    }
  }
  close_machine(&m);
}

static void test_cora(void **state) {
  (void)state;
  if (runs_all)
    check_file("cora", 0, 1, 4, 0, 31);
  else
    check_file("cora", 0, 2, 2, CORA_PLANS, 31);
}

static void test_pubmed(void **state) {
  (void)state;
  if (runs_all)
    check_file("pubmed_edges", 24, 1, 4, 0, 32);
  else
    check_file("pubmed_edges", 24, 3, 3, PUBMED_PLANS, 32);
}

/* ---- Equal bits ---- */

/* Returns the plan with the same blocks, each of which runs on one device only. */
static clv__pep plain_form(const clv__pep *pep) {
  clv__pep plain = *pep;
  for (uint32_t b = 0; b < plain.block_count; ++b) {
    clv__pep_block *block = &plain.blocks[b];
    block->part_count = 1;
    block->parts[0].from = 0;
    block->parts[0].to = CLV__PEP_SHARES;
  }
  return plain;
}

static void same_pep(turns *p, const scene *s, const clv__pep *pep) {
  for (uint32_t i = 0; i < s->model->layer_count; ++i) {
    for (uint32_t a = 0; a < s->k; ++a) p->items[i][a].pep = pep;
  }
}

/* Two equal NPUs compute each row independently of the other rows. (Products of very few rows use another kernel, but padding
 * adds rows.) So every plan gives the bits of the whole graph on one device, however it is partitioned, divided among devices
 * and padded. Plans that cut GAT's attention into several blocks are an exception, because they run other operators: they are
 * compared with the same blocks over the whole graph. */
static void test_same_bits(void **state) {
  (void)state;
  machine m = open_machine("npu1,npu2");
  uint64_t seed = 11;
  for (uint32_t round = 0; round < 12; ++round) {
    clv__gnn_type type = (clv__gnn_type)(round % 3);
    const uint32_t *nothing = calloc(80, sizeof *nothing);
    scene s, whole;
    clv__stages stages;
    clv__machine means = about_machine(&m, round % 2 == 0 ? 8 : 64, 2);
    make_scene(&s, &m, type, 1, 80, 600, 1 + round % 5, 1 + round % 5, &seed);
    whole = s;
    whole.looped = NULL;
    cut_scene(&whole, &m, 1, nothing);
    layer_peps peps = make_peps(&m, &means, &s, &seed);
    clv__stages_of(type, s.model->layers, CLV_F32, &stages);
    for (uint32_t i = 0; i < peps.sets[0].count; ++i) {
      const clv__pep *pep = &peps.sets[0].items[i], plain = plain_form(pep);
      bool cuts_attention = type == CLV__GNN_GAT && pep->block_count > 1 && pep->blocks[0].last > 1 && pep->blocks[0].last < 6;
      turns p;
      char what[96];
      snprintf(what, sizeof what, "type %d, %s first, plan %u", (int)type, stages.transform_first ? "transform" : "gather", i);
      make_turns(&p, &whole, &means, &seed);
      same_pep(&p, &whole, &plain);
      float *bits = run_turns(&m, &whole, &p, 1, cuts_attention ? NULL : s.alone, what);
      make_turns(&p, &s, &means, &seed);
      same_pep(&p, &s, pep);
      free(run_turns(&m, &s, &p, 1, bits, what));
      free(bits);
    }
    free_peps(&peps);
    free(whole.alone), free(whole.expected), free((void *)(uintptr_t)nothing);
    clv__partitioned_finish(&whole.partitioned);
    clv__gnn_graph_destroy(whole.looped);
    finish_scene(&s);
  }
  close_machine(&m);
}

/* ---- Padding ---- */

/* Makes a scene with n vertices and exactly `edges` edges to aggregate over, including the self loops of GCN and GAT. */
static void make_exact(scene *s, machine *m, clv__gnn_type type, uint32_t n, uint64_t edges, uint64_t *seed) {
  uint64_t loops = type == CLV__GNN_SAGE ? 0 : n, m_count = edges - loops;
  uint32_t *parts = calloc(n, sizeof *parts);
  clv_error error = {0};
  assert_true(edges >= loops && parts != NULL);
  *s = (scene){.k = 1};
  test_gnn_make(&s->gnn, clv__allocator_default(), n, m_count, 5, test_random(seed));
  clv__gnn_graph_destroy(s->gnn.graph);
  for (uint64_t e = 0; e < m_count; ++e) { /* no self loops here, because they are added later */
    if (s->gnn.sources[e] == s->gnn.destinations[e]) s->gnn.sources[e] = (s->gnn.sources[e] + 1) % n;
  }
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), n, m_count, s->gnn.sources, s->gnn.destinations, &s->gnn.features, NULL,
                                &s->gnn.graph, &error),
            error);
  s->model = test_gnn_model(clv__allocator_default(), type, 2, 5, test_random(seed));
  cut_scene(s, m, 1, parts);
  free(parts);
}

static void check_padded(machine *m, const scene *s, const turns *p, clv__layer_sizes padded, const char *what) {
  clv__gnn_run *run;
  clv__gnn_record record;
  clv_error error = {0};
  assert_ok(clv__gnn_run_create(m->devices, s->model, s->gnn.graph, &s->partitioned, &p->schedule, &run, &error), error);
  clv__gnn_run_record(run, &record);
  for (uint32_t t = 0; t < record.task_count; ++t) {
    const clv__gnn_task *task = &record.tasks[t];
    if (task->padded.rows != padded.rows || task->padded.targets != padded.rows || task->padded.edges != padded.edges)
      fail_msg("%s: a task is padded to %llu rows, %llu targets and %llu edges, expected %llu rows and targets and %llu edges",
               what, (unsigned long long)task->padded.rows, (unsigned long long)task->padded.targets,
               (unsigned long long)task->padded.edges, (unsigned long long)padded.rows, (unsigned long long)padded.edges);
  }
  clv__gnn_run_destroy(run);
}

/* Sizes that are multiples of 1000, and sizes next to them. Padding edges need a padding row, which may add another 1000 rows.
 * The bits are the same as with the least padding, except for very few rows, because their products use another kernel. */
static void test_padding(void **state) {
  (void)state;
  static const struct {
    uint32_t n;
    uint64_t edges, rows_padded, edges_padded;
  } sizes[] = {{1000, 3000, 1000, 3000}, {1000, 2999, 2000, 3000}, {999, 2999, 1000, 3000},  {999, 3000, 1000, 3000},
               {1000, 3001, 2000, 4000}, {1001, 3000, 2000, 3000}, {2000, 5000, 2000, 5000}, {1, 1000, 1000, 1000}};
  machine m = open_machine("cpu,npu,npu1");
  uint64_t seed = 21;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int type = 0; type < 3; ++type) {
      clv__machine exact = about_machine(&m, 1, 2), padded = about_machine(&m, 1000, 2);
      clv__stages stages;
      scene s;
      turns p;
      char what[96];
      if (sizes[i].n == 1 && type != CLV__GNN_SAGE) continue; /* with one vertex, GCN and GAT have only one edge, the self loop */
      make_exact(&s, &m, (clv__gnn_type)type, sizes[i].n, sizes[i].edges, &seed);
      clv__stages_of((clv__gnn_type)type, s.model->layers, CLV_F32, &stages);
      clv__pep whole = one_device(&exact, 2, stages.count), pipeline = one_device(&exact, 0, stages.count);
      snprintf(what, sizeof what, "type %d, %u rows, %llu edges", type, sizes[i].n, (unsigned long long)sizes[i].edges);
      make_turns(&p, &s, &exact, &seed);
      same_pep(&p, &s, &whole);
      float *bits = run_turns(&m, &s, &p, 2, NULL, what);
      p.schedule.machine = &padded;
      check_padded(&m, &s, &p, (clv__layer_sizes){sizes[i].rows_padded, sizes[i].rows_padded, sizes[i].edges_padded}, what);
      free(run_turns(&m, &s, &p, 2, sizes[i].n > 4 ? bits : NULL, what));
      free(bits);
      pipeline.block_count = 2; /* puts the last stage on the NPU without sparse operators */
      pipeline.blocks[1] = pipeline.blocks[0];
      pipeline.blocks[0].last = pipeline.blocks[1].first = stages.count - 1;
      pipeline.blocks[1].parts[0].device = 1;
      pipeline.blocks[1].parts[0].is_static = true;
      same_pep(&p, &s, &pipeline);
      bits = run_turns(&m, &s, &p, 1, NULL, what);
      p.schedule.machine = &exact;
      free(run_turns(&m, &s, &p, 1, sizes[i].n > 4 ? bits : NULL, what));
      free(bits);
      finish_scene(&s);
    }
  }
  close_machine(&m);
}

/* ---- The planner considers the same plans ---- */

static clv__tables priced(const clv__machine *means, const clv__chain *chain, const clv__stage_table *table) {
  clv__tables tables;
  clv_error error = {0};
  clv__tables_init(&tables, clv__allocator_default());
  for (uint32_t d = 0; d < means->device_count; ++d) {
    for (uint32_t first = 0; first < chain->stage_count; ++first) {
      for (uint32_t last = first + 1; last <= chain->stage_count; ++last) {
        if (!table->runs[d][first][last] || chain->blocks[first][last].is_empty) continue;
        for (uint64_t i = 0; i < 16; ++i) {
          clv__table_point point = {.n = 1 + i % 4 * 700, .m = i / 4 * 2000, .origin = CLV__SYNTHETIC};
          if (!chain->blocks[first][last].reads_edges) point.m = 0;
          point.time_ns = 1000 + 3 * (double)point.n + (double)point.m;
          assert_ok(clv__tables_put(&tables, means->devices[d].name, chain->layer, first, last, &point, &error), error);
        }
      }
    }
  }
  for (uint32_t d = 0; d <= means->device_count; ++d) { /* d == device_count: packing, from host to host */
    const char *name = d < means->device_count ? means->devices[d].name : CLV__TABLE_HOST;
    for (uint64_t bytes = 1; bytes <= 1u << 30; bytes <<= 6) {
      clv__copy_point point = {.size_bytes = bytes, .origin = CLV__SYNTHETIC, .time_ns = 100 + 0.1 * (double)bytes};
      assert_ok(clv__tables_put_copy(&tables, CLV__TABLE_HOST, name, &point, &error), error);
      if (d < means->device_count) assert_ok(clv__tables_put_copy(&tables, name, CLV__TABLE_HOST, &point, &error), error);
    }
  }
  assert_ok(clv__tables_fit(&tables, &error), error);
  return tables;
}

static void test_as_planned(void **state) {
  (void)state;
  machine m = open_all();
  clv__stage_table *table = malloc(sizeof *table);
  uint64_t seed = 41;
  assert_non_null(table);
  for (uint32_t round = 0; round < 6; ++round) {
    clv__gnn_model *model = test_gnn_model(clv__allocator_default(), (clv__gnn_type)(round % 3), 1, 9, 50 + round);
    clv__machine means = about_machine(&m, 1000, 2);
    clv__pep_options options = CLV__PEP_OPTIONS_INIT;
    clv__subgraph_sizes piece = {.owned = 900, .halo = 200, .edges = 4000};
    clv__stages stages;
    clv__chain chain;
    clv__costs costs;
    clv__pep_list list;
    clv__arena arena;
    clv_error error = {0};
    clv__stages_of(model->type, model->layers, CLV_F32, &stages);
    clv__chain_of(&stages, &chain);
    assert_ok(clv__stage_table_make(m.devices, &stages, table, &error), error);
    for (uint32_t d = 0; d < means.device_count; ++d) {
      for (uint32_t i = 0; i < stages.count; ++i) means.devices[d].cannot |= table->runs[d][i][i + 1] ? 0 : 1u << stages.items[i];
    }
    clv__tables tables = priced(&means, &chain, table);
    clv__arena_init(&arena, clv__allocator_default());
    assert_ok(clv__costs_init(&costs, &tables, &means, &chain, &error), error);
    assert_ok(clv__peps_make(&arena, &costs, &piece, &options, &list, &error), error);
    pep_set peps = all_peps(&means, &stages, table, &seed);
    assert_int_equal(list.structures, peps.count);
    free(peps.items);
    clv__arena_finish(&arena);
    clv__tables_finish(&tables);
    clv__gnn_model_destroy(model);
  }
  free(table);
  close_machine(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_cora),    cmocka_unit_test(test_pubmed),
      cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_padding), cmocka_unit_test(test_as_planned),
  };
  runs_all = getenv("CLEAVE_TEST_ALL") != NULL;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
