/* Plans at work against the run on one device: every plan that the stages allow on a CPU and two virtual NPUs, of which one takes
 * no sparse operators; random graphs and memberships; devices that fail; runs that are cancelled, killed and gone on with. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gnn.h"
#include "gnn/portion.h"
#include "gnn/run.h"
#include "gnn/single.h"
#include "support.h"

enum { MOST_PEPS = 1024, MOST_K = 5, MOST_LAYERS = 4, DEVICES = 3 };

/* ---- Devices ---- */

typedef struct machine {
  clv_context *context;
  clv_devices *devices;
} machine;

static machine open_machine(const char *option) {
  static const char *const specs[] = {"default",
                                      "{\"name\": \"whole\", \"static_shapes\": true, \"max_rank\": 4, \"operators\": \"all\"}"};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv_error error = {0};
  machine m;
  context_options.cache_directory = "";
  if (option != NULL) context_options.graph = CLV_GRAPH_OFF; /* a recorded launch that fails is done again, without recording */
  options.list = "cpu,npu,npu1";
#if !defined(__SANITIZE_THREAD__) /* OpenMP's own barriers look like races */
  options.thread_count = 2;
#else
  options.thread_count = 1;
#endif
  options.npu_specs = specs;
  options.npu_spec_count = 2;
  options.device_options = &option;
  options.device_option_count = option != NULL;
  assert_ok(clv_context_create(&context_options, &m.context, &error), error);
  assert_ok(clv_devices_open(m.context, &options, &m.devices, &error), error);
  return m;
}

static void close_machine(machine *m) {
  clv_devices_close(m->devices);
  clv_context_destroy(m->context);
}

static clv__machine about(uint64_t pad_step, uint32_t depth) {
  clv__machine means = {.device_count = DEVICES, .pad_step = pad_step, .queue_depth = depth};
  means.devices[0] = (clv__machine_device){.name = "cpu"};
  means.devices[1] = (clv__machine_device){.name = "npu", .space = 1, .is_static = true};
  means.devices[2] = (clv__machine_device){.name = "npu1", .space = 2, .is_static = true};
  return means;
}

/* ---- All plans of a layer ---- */

typedef struct pep_set {
  uint32_t count;
  clv__pep *items;
} pep_set;

static bool add_block(const clv__chain *chain, const clv__stage_table *table, uint32_t first, uint32_t last, uint32_t set,
                      uint64_t *seed, clv__pep *pep) {
  clv__pep_block *block = &pep->blocks[pep->block_count++];
  const clv__chain_block *said = &chain->blocks[first][last];
  uint32_t at = 0;
  *block = (clv__pep_block){.first = first, .last = last};
  for (uint32_t d = 0; d < DEVICES; ++d) {
    if ((set >> d & 1u) == 0) continue;
    if (!table->runs[d][first][last]) return false;
    uint32_t to = at + (uint32_t)(test_random(seed) % (CLV__PEP_SHARES + 1 - at)); /* nothing at all, too */
    block->parts[block->part_count++] = (clv__pep_part){.device = d, .is_static = d > 0, .from = at, .to = to};
    at = to;
  }
  block->parts[block->part_count - 1].to = CLV__PEP_SHARES;
  return !said->is_empty && !(block->part_count > 1 && said->is_whole);
}

static pep_set all_peps(const clv__stages *stages, const clv__stage_table *table, uint64_t *seed) {
  pep_set made = {.items = malloc(MOST_PEPS * sizeof *made.items)};
  clv__chain chain;
  uint32_t count = stages->count;
  assert_non_null(made.items);
  clv__chain_of(stages, &chain);
  for (uint32_t way = 0; way < 64; ++way) { /* each device in a block, or in none */
    uint32_t sets[4] = {0}, blocks = 0;
    for (uint32_t d = 0; d < DEVICES; ++d) sets[way >> 2 * d & 3u] |= 1u << d;
    while (blocks < 3 && sets[blocks] != 0) ++blocks;
    if (blocks == 0 || (blocks < 3 && sets[2] != 0) || (blocks < 2 && sets[1] != 0)) continue;
    for (uint32_t i = 1; i <= (blocks > 1 ? count - 1 : 1); ++i) {
      for (uint32_t k = i + 1; k <= (blocks > 2 ? count - 1 : i + 1); ++k) {
        uint32_t cuts[4] = {0, i, k, count};
        clv__pep pep = {.block_count = 0};
        bool is_legal = true;
        cuts[blocks] = count;
        for (uint32_t b = 0; b < blocks; ++b)
          is_legal = add_block(&chain, table, cuts[b], cuts[b + 1], sets[b], seed, &pep) && is_legal;
        assert_true(made.count < MOST_PEPS);
        if (is_legal) made.items[made.count++] = pep;
      }
    }
  }
  return made;
}

/* ---- A graph, cut ---- */

typedef struct scene {
  test_gnn gnn;
  clv__gnn_model *model;
  clv__gnn_graph *looped;
  uint32_t n, k, width, parts[512];
  clv__partitioned partitioned;
  float *alone; /* what one device says */
  double *expected;
} scene;

/* Vertices are strewn over the parts, of which some may own nothing. */
static void make_scene(scene *s, machine *m, clv__gnn_type type, uint32_t layers, uint32_t n, uint64_t edges, uint32_t k,
                       uint32_t spread, uint64_t *seed) {
  clv_error error = {0};
  clv__gnn_single *single;
  uint32_t features = 1 + (uint32_t)(test_random(seed) % 14);
  *s = (scene){.n = n, .k = k};
  test_gnn_make(&s->gnn, clv__allocator_default(), n, edges, features, test_random(seed));
  s->model = test_gnn_model(clv__allocator_default(), type, layers, features, test_random(seed));
  if (type != CLV__GNN_SAGE) assert_ok(clv__gnn_graph_with_loops(s->gnn.graph, &s->looped, &error), error);
  assert_true(n <= sizeof s->parts / sizeof *s->parts);
  for (uint32_t v = 0; v < n; ++v) s->parts[v] = (uint32_t)(test_random(seed) % spread);
  clv__membership membership = {.k = k, .vertex_count = n, .parts = s->parts};
  assert_ok(clv__partitioned_make(clv__allocator_default(), s->looped != NULL ? s->looped : s->gnn.graph, &membership,
                                  &s->partitioned, &error),
            error);
  s->width = clv__gnn_layer_width(&s->model->layers[layers - 1]);
  s->alone = malloc((size_t)n * s->width * sizeof *s->alone);
  s->expected = malloc((size_t)n * s->width * sizeof *s->expected);
  assert_true(s->alone != NULL && s->expected != NULL);
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){n, s->width}, s->alone);
  assert_ok(clv__gnn_single_create(m->devices, 0, s->model, s->gnn.graph, &single, &error), error);
  assert_ok(clv__gnn_single_run(single, NULL, &out, &error), error);
  clv__gnn_single_destroy(single);
  for (size_t i = 0; i < (size_t)n * s->width; ++i) s->expected[i] = s->alone[i];
}

static void finish_scene(scene *s) {
  free(s->alone);
  free(s->expected);
  clv__partitioned_finish(&s->partitioned);
  clv__gnn_graph_destroy(s->looped);
  clv__gnn_model_destroy(s->model);
  test_gnn_finish(&s->gnn);
}

typedef struct places {
  clv__gnn_place items[MOST_LAYERS][MOST_K];
  const clv__gnn_place *layers[MOST_LAYERS];
  clv__gnn_schedule schedule;
} places;

/* Subgraphs in an order of chance; clusters where neighbours happen to have the same plan. */
static void make_places(places *p, const scene *s, const clv__machine *means, uint64_t *seed) {
  *p = (places){.schedule = {means, s->model->layer_count, s->k, p->layers}};
  for (uint32_t i = 0; i < s->model->layer_count; ++i) {
    p->layers[i] = p->items[i];
    for (uint32_t k = 0; k < s->k; ++k) {
      uint32_t at = (uint32_t)(test_random(seed) % (k + 1));
      p->items[i][k] = p->items[i][at];
      p->items[i][at].subgraph = k;
    }
  }
}

static void check_record(const clv__gnn_run *run, const scene *s) {
  clv__gnn_record record;
  clv__gnn_run_record(run, &record);
  assert_true(record.task_count >= s->model->layer_count * s->k);
  assert_true(record.measured_ns > 0 && record.cluster_count >= s->model->layer_count);
  for (uint32_t t = 0; t < record.task_count; ++t) {
    const clv__gnn_task *task = &record.tasks[t];
    assert_true(task->begin_ns <= task->packed_ns && task->packed_ns <= task->computed_ns && task->computed_ns <= task->end_ns);
    if (task->sizes.targets > 0) assert_true(task->end_ns > 0);
    for (uint32_t u = 0; u < t; ++u) { /* a device does one thing at a time, and blocks follow each other */
      const clv__gnn_task *before = &record.tasks[u];
      if (task->sizes.targets == 0 || before->sizes.targets == 0 || before->layer != task->layer) continue;
      if (before->device == task->device || (before->place == task->place && before->block < task->block))
        assert_true(before->end_ns <= task->begin_ns);
    }
  }
}

static bool same_bits(const float *a, const float *b, size_t count) {
  return memcmp(a, b, count * sizeof *a) == 0;
}

static void run_places(machine *m, const scene *s, const places *p, bool is_same_kernel, const char *what) {
  size_t count = (size_t)s->n * s->width;
  float *actual = malloc(count * sizeof *actual);
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){s->n, s->width}, actual);
  clv__gnn_run *run;
  clv_error error = {0};
  assert_non_null(actual);
  assert_ok(clv__gnn_run_create(m->devices, s->model, s->gnn.graph, &s->partitioned, &p->schedule, &run, &error), error);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < count; ++i) actual[i] = NAN;
    assert_ok(clv__gnn_run_execute(run, NULL, &out, NULL, &error), error);
    test_gnn_compare(s->expected, actual, s->n, s->width, what);
    if (is_same_kernel && !same_bits(actual, s->alone, count)) fail_msg("%s: not the same bits", what);
    check_record(run, s);
  }
  clv__gnn_run_destroy(run);
  free(actual);
}

/* ---- Every plan ---- */

static void every_plan(machine *m, clv__gnn_type type, uint32_t layers, uint32_t n, uint64_t edges, uint32_t k, uint64_t *seed) {
  const uint64_t steps[] = {1, 8, 100};
  clv__machine means = about(steps[test_random(seed) % 3], 1 + (uint32_t)(test_random(seed) % 3));
  clv__stage_table *table = malloc(sizeof *table);
  clv_error error = {0};
  pep_set peps[MOST_LAYERS];
  uint32_t next[MOST_LAYERS] = {0}, most = 0;
  scene s;
  assert_non_null(table);
  make_scene(&s, m, type, layers, n, edges, k, 1 + (uint32_t)(test_random(seed) % k), seed);
  for (uint32_t i = 0; i < layers; ++i) {
    clv__stages stages;
    clv__stages_of(type, &s.model->layers[i], CLV_F32, &stages);
    assert_ok(clv__stage_table_make(m->devices, &stages, table, &error), error);
    peps[i] = all_peps(&stages, table, seed);
    assert_true(peps[i].count > 20);
    if (peps[i].count > most) most = peps[i].count;
  }
  for (bool done = false; !done;) {
    places p;
    char what[160];
    make_places(&p, &s, &means, seed);
    done = true;
    for (uint32_t i = 0; i < layers; ++i) {
      for (uint32_t a = 0; a < k; ++a) p.items[i][a].pep = &peps[i].items[next[i]++ % peps[i].count];
      done = done && next[i] >= peps[i].count;
    }
    snprintf(what, sizeof what, "type %d, %u layers, n %u, m %llu, k %u, plans from %u of %u", type, layers, n,
             (unsigned long long)edges, k, next[0] - k, peps[0].count);
    run_places(m, &s, &p, false, what);
  }
  for (uint32_t i = 0; i < layers; ++i) free(peps[i].items);
  finish_scene(&s);
  free(table);
}

static void test_every_plan(void **state) {
  (void)state;
  static const struct {
    uint32_t layers, n;
    uint64_t edges;
    uint32_t k;
  } sizes[] = {{1, 60, 300, 5}, {2, 40, 130, 3}, {1, 100, 1000, 1}, {4, 30, 90, 5}};
  machine m = open_machine(NULL);
  uint64_t seed = 5;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int type = 0; type < 3; ++type)
      every_plan(&m, (clv__gnn_type)type, sizes[i].layers, sizes[i].n, sizes[i].edges, sizes[i].k, &seed);
  }
  close_machine(&m);
}

/* ---- One plan for all subgraphs: pipelines, and graphs that are odd ---- */

static clv__pep one_device(uint32_t device, uint32_t stages) {
  clv__pep pep = {.block_count = 1};
  pep.blocks[0] = (clv__pep_block){.last = stages, .part_count = 1};
  pep.blocks[0].parts[0] = (clv__pep_part){.device = device, .to = CLV__PEP_SHARES};
  return pep;
}

static void test_odd_graphs(void **state) {
  (void)state;
  static const struct {
    uint32_t n;
    uint64_t edges;
  } sizes[] = {{1, 0}, {1, 3}, {2, 1}, {3, 0}, {4, 9}, {100, 200}, {400, 6000}};
  machine m = open_machine(NULL);
  clv__machine means = about(10, 2);
  uint64_t seed = 77;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int type = 0; type < 3; ++type) {
      for (uint32_t k = 1; k <= MOST_K; ++k) {
        scene s;
        places p;
        clv__stages stages;
        char what[96];
        make_scene(&s, &m, (clv__gnn_type)type, 1 + k % MOST_LAYERS, sizes[i].n, sizes[i].edges, k,
                   1 + (uint32_t)(test_random(&seed) % k), &seed);
        clv__stages_of((clv__gnn_type)type, s.model->layers, CLV_F32, &stages);
        clv__pep whole = one_device(0, stages.count), pipeline = {.block_count = 2}, shared = one_device(0, stages.count);
        pipeline.blocks[0] = pipeline.blocks[1] = whole.blocks[0];
        pipeline.blocks[0].last = pipeline.blocks[1].first = stages.count - 1;
        pipeline.blocks[1].parts[0].device = 1;
        shared.blocks[0].part_count = 2;
        shared.blocks[0].parts[0].to = shared.blocks[0].parts[1].from = 7;
        shared.blocks[0].parts[1].device = 2;
        shared.blocks[0].parts[1].to = CLV__PEP_SHARES;
        const clv__pep *const each[] = {&whole, &pipeline, &shared};
        for (size_t e = 0; e < sizeof each / sizeof *each; ++e) {
          make_places(&p, &s, &means, &seed);
          for (uint32_t layer = 0; layer < s.model->layer_count; ++layer) {
            for (uint32_t a = 0; a < k; ++a) p.items[layer][a].pep = each[e];
          }
          snprintf(what, sizeof what, "n %u, m %llu, type %d, k %u, plan %zu", sizes[i].n, (unsigned long long)sizes[i].edges,
                   type, k, e);
          run_places(&m, &s, &p, e == 0 && k == 1, what);
        }
        finish_scene(&s);
      }
    }
  }
  close_machine(&m);
}

/* ---- Portions ---- */

static void test_portions(void **state) {
  (void)state;
  machine m = open_machine(NULL);
  uint64_t seed = 9;
  for (int round = 0; round < 30; ++round) {
    scene s;
    clv__arena arena;
    clv_error error = {0};
    make_scene(&s, &m, CLV__GNN_SAGE, 1, 1 + (uint32_t)(test_random(&seed) % 60), test_random(&seed) % 300, 3, 3, &seed);
    clv__arena_init(&arena, clv__allocator_default());
    for (uint32_t i = 0; i < s.k; ++i) {
      const clv__subgraph *sub = &s.partitioned.subgraphs[i];
      uint32_t before = 0;
      for (uint32_t share = 1; share <= CLV__PEP_SHARES; ++share) {
        uint32_t to = clv__subgraph_vertex_at(sub, (double)share / CLV__PEP_SHARES);
        clv__portion portion;
        assert_true(to >= before);
        assert_ok(clv__portion_make(&arena, sub, before, to, &portion, &error), error);
        assert_int_equal(portion.sizes.targets, to - before);
        uint64_t e = sub->offsets[before];
        for (uint32_t v = before; v < to; ++v) {
          assert_int_equal(portion.vertices[v - before], sub->vertices[v]);
          assert_int_equal(portion.offsets[v + 1 - before] - portion.offsets[v - before], sub->offsets[v + 1] - sub->offsets[v]);
          for (uint64_t at = portion.offsets[v - before]; at < portion.offsets[v + 1 - before]; ++at, ++e) {
            assert_true(portion.sources[at] < portion.sizes.rows);
            assert_int_equal(portion.vertices[portion.sources[at]], sub->vertices[sub->sources[e]]);
          }
        }
        for (uint64_t r = to - before + 1u; r < portion.sizes.rows; ++r) /* each row once */
          assert_true(portion.is_whole || r == to - before || portion.rows[r] > portion.rows[r - 1] || r == to - before);
        before = to;
      }
      assert_int_equal(before, sub->owned_count);
    }
    clv__arena_finish(&arena);
    finish_scene(&s);
  }
  close_machine(&m);
}

/* ---- What goes wrong ---- */

/* A pipeline from the CPU to the NPU over five subgraphs and three layers. */
typedef struct pipeline {
  machine m;
  clv__machine means;
  scene s;
  clv__pep pep;
  places p;
  clv__gnn_run *run;
} pipeline;

static void open_pipeline(pipeline *l, const char *option, uint64_t seed) {
  clv__stages stages;
  clv_error error = {0};
  l->m = open_machine(option);
  l->means = about(16, 2);
  make_scene(&l->s, &l->m, CLV__GNN_SAGE, 3, 200, 2000, MOST_K, MOST_K, &seed);
  clv__stages_of(CLV__GNN_SAGE, l->s.model->layers, CLV_F32, &stages);
  l->pep = one_device(0, stages.count);
  l->pep.block_count = 2;
  l->pep.blocks[1] = l->pep.blocks[0];
  l->pep.blocks[0].last = l->pep.blocks[1].first = 5;
  l->pep.blocks[1].parts[0].device = 2;
  make_places(&l->p, &l->s, &l->means, &seed);
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t a = 0; a < MOST_K; ++a) l->p.items[i][a].pep = &l->pep;
  }
  assert_ok(clv__gnn_run_create(l->m.devices, l->s.model, l->s.gnn.graph, &l->s.partitioned, &l->p.schedule, &l->run, &error),
            error);
}

static void close_pipeline(pipeline *l) {
  clv__gnn_run_destroy(l->run);
  finish_scene(&l->s);
  close_machine(&l->m);
}

static clv_status run_pipeline(pipeline *l, float *rows, const clv__gnn_run_options *options, clv_error *error) {
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){l->s.n, l->s.width}, rows);
  return clv__gnn_run_execute(l->run, NULL, &out, options, error);
}

static float *make_rows(const pipeline *l) {
  float *rows = malloc((size_t)l->s.n * l->s.width * sizeof *rows);
  assert_non_null(rows);
  return rows;
}

static void test_device_fails(void **state) {
  (void)state;
  for (int launch = 1; launch <= 9; launch += 4) {
    pipeline l;
    char option[32];
    clv_error error = {0};
    snprintf(option, sizeof option, "npu1:fail=%d", launch);
    open_pipeline(&l, option, 3);
    float *rows = make_rows(&l);
    clv_status status = run_pipeline(&l, rows, NULL, &error);
    if (status != CLV_DEVICE_ERROR) fail_msg("launch %d: %s", launch, clv_status_name(status));
    assert_non_null(strstr(error.message, "npu1"));
    assert_non_null(strstr(error.message, "layer "));
    assert_non_null(strstr(error.message, "subgraph "));
    free(rows);
    close_pipeline(&l);
  }
}

typedef struct watcher {
  uint32_t stop_at; /* so many tasks; 0: never */
  uint32_t first, done;
  bool dies;
} watcher;

static bool watch(void *user_data, const clv__gnn_progress *progress) {
  watcher *w = user_data;
  assert_true(progress->done > w->done && progress->done <= progress->of);
  if (w->done == 0) w->first = progress->done;
  w->done = progress->done;
  if (w->stop_at == 0 || w->done < w->stop_at) return true;
  if (w->dies) kill(getpid(), SIGKILL);
  return false;
}

static void test_cancel(void **state) {
  (void)state;
  pipeline l;
  clv_error error = {0};
  open_pipeline(&l, NULL, 4);
  float *rows = make_rows(&l);
  for (uint32_t at = 1; at < 30; at += 7) {
    watcher w = {.stop_at = at};
    clv__gnn_run_options options = {.progress = watch, .user_data = &w};
    clv_status status = run_pipeline(&l, rows, &options, &error);
    assert_int_equal(status, CLV_CANCELLED);
    assert_true(w.done >= at && w.done <= at + 2);
  }
  watcher all = {0};
  clv__gnn_run_options options = {.progress = watch, .user_data = &all};
  assert_ok(run_pipeline(&l, rows, &options, &error), error); /* nothing is left of those */
  assert_int_equal(all.done, 3 * MOST_K * 2);
  test_gnn_compare(l.s.expected, rows, l.s.n, l.s.width, "after cancelled runs");
  free(rows);
  close_pipeline(&l);
}

static void test_refusals(void **state) {
  (void)state;
  pipeline l;
  clv__gnn_run *run = NULL;
  clv_error error = {0};
  open_pipeline(&l, NULL, 5);
  clv__pep wrong[8];
  for (size_t i = 0; i < 8; ++i) wrong[i] = l.pep;
  wrong[0].block_count = 0;
  wrong[1].blocks[1].first = 4;
  wrong[2].blocks[1].parts[0].device = 0; /* as the first block's */
  wrong[3].blocks[1].parts[0].device = 3;
  wrong[4].blocks[0].parts[0].to = 19;
  wrong[5].blocks[1].last = 6;
  wrong[6].blocks[1].part_count = 0;
  wrong[7].block_count = 1;
  for (size_t i = 0; i < 8; ++i) {
    l.p.items[1][2].pep = &wrong[i];
    assert_int_equal(clv__gnn_run_create(l.m.devices, l.s.model, l.s.gnn.graph, &l.s.partitioned, &l.p.schedule, &run, &error),
                     CLV_INVALID_ARGUMENT);
    assert_null(run);
    assert_non_null(strstr(error.message, "layer 1"));
  }
  clv__pep aggregates = one_device(1, 7); /* the restricted one */
  l.p.items[1][2].pep = &aggregates;
  assert_int_equal(clv__gnn_run_create(l.m.devices, l.s.model, l.s.gnn.graph, &l.s.partitioned, &l.p.schedule, &run, &error),
                   CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "npu"));
  l.p.items[1][2].pep = &l.pep;
  l.p.items[1][2].subgraph = l.p.items[1][1].subgraph;
  assert_int_equal(clv__gnn_run_create(l.m.devices, l.s.model, l.s.gnn.graph, &l.s.partitioned, &l.p.schedule, &run, &error),
                   CLV_INVALID_ARGUMENT);
  close_pipeline(&l);
}

/* ---- Killed, and gone on with ---- */

/* The child has no threads yet when it begins: it is the first test. */
static void test_resume(void **state) {
  (void)state;
  char path[] = "/tmp/cleave-gnn-run-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  unlink(path);
  for (uint32_t layer = 1; layer <= 2; ++layer) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      pipeline l;
      clv_error error = {0};
      watcher w = {.stop_at = layer * MOST_K * 2 + 3, .dies = true};
      clv__gnn_run_options options = {.progress = watch, .user_data = &w, .state_path = path};
      open_pipeline(&l, NULL, 6);
      (void)run_pipeline(&l, make_rows(&l), &options, &error);
      _exit(1); /* it was to be killed */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(access(path, R_OK), 0);
    child = fork(); /* this process stays as it is */
    assert_true(child >= 0);
    if (child == 0) {
      pipeline l, other;
      clv_error error = {0};
      clv__gnn_record record;
      watcher w = {0};
      clv__gnn_run_options options = {.progress = watch, .user_data = &w, .state_path = path, .resume = true};
      open_pipeline(&other, NULL, 7);
      float *rows = make_rows(&other);
      assert_int_equal(run_pipeline(&other, rows, &options, &error), CLV_INVALID_ARGUMENT); /* of another model */
      free(rows);
      close_pipeline(&other);
      open_pipeline(&l, NULL, 6);
      rows = make_rows(&l);
      assert_ok(run_pipeline(&l, rows, &options, &error), error);
      clv__gnn_run_record(l.run, &record);
      assert_int_equal(record.first_layer, layer);
      assert_true(w.first > layer * MOST_K * 2 && w.done == 3 * MOST_K * 2);
      test_gnn_compare(l.s.expected, rows, l.s.n, l.s.width, "resumed");
      assert_int_not_equal(access(path, F_OK), 0); /* it is done with */
      free(rows);
      close_pipeline(&l);
      fflush(NULL);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

static void test_damaged_state(void **state) {
  (void)state;
  pipeline l;
  char path[] = "/tmp/cleave-gnn-run-XXXXXX";
  clv_error error = {0};
  int file = mkstemp(path);
  assert_true(file >= 0);
  open_pipeline(&l, NULL, 8);
  float *rows = make_rows(&l);
  watcher w = {.stop_at = MOST_K * 2 + 1};
  clv__gnn_run_options options = {.progress = watch, .user_data = &w, .state_path = path};
  assert_int_equal(run_pipeline(&l, rows, &options, &error), CLV_CANCELLED);
  off_t length = lseek(open(path, O_RDWR), 0, SEEK_END);
  close(file);
  for (off_t at = 0; at < length; at += 1 + length / 23) {
    uint8_t byte, changed;
    file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    changed = byte ^ 0x40u;
    assert_int_equal(pwrite(file, &changed, 1, at), 1);
    clv__gnn_run_options again = {.state_path = path, .resume = true};
    clv_status status = run_pipeline(&l, rows, &again, &error);
    if (at < 44 || at >= 56) assert_int_equal(status, CLV_INVALID_ARGUMENT);
    if (access(path, F_OK) != 0) break;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
  }
  unlink(path);
  free(rows);
  close_pipeline(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resume),     cmocka_unit_test(test_portions),      cmocka_unit_test(test_every_plan),
      cmocka_unit_test(test_odd_graphs), cmocka_unit_test(test_device_fails),  cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_refusals),   cmocka_unit_test(test_damaged_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
