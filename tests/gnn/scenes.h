/* Fixtures for tests that run plans: a scene (a partitioned graph, a model, and the result of a single device), every plan
 * (PEP) that the stages of a layer allow on a machine, and the run of a schedule, compared with the single device. */
#ifndef CLEAVE_TESTS_GNN_SCENES_H
#define CLEAVE_TESTS_GNN_SCENES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn.h"
#include "gnn/run/run.h"
#include "gnn/run/single.h"
#include "machines.h"
#include "support.h"

enum { SCENE_LAYERS = 4, SCENE_PARTS = 8 };

/* Describes the open devices as plans do. */
static inline clv__machine about_machine(const machine *m, uint64_t pad_step, uint32_t depth) {
  clv__machine means = {.device_count = m->devices->count, .pad_step = pad_step, .queue_depth = depth};
  assert_true(means.device_count <= CLV__PEP_DEVICES);
  for (uint32_t d = 0; d < means.device_count; ++d) {
    const clv__device *device = &m->devices->items[d];
    means.devices[d] =
        (clv__machine_device){.name = device->name, .space = device->space, .is_static = device->info.static_shapes_only};
  }
  return means;
}

/* ---- All plans of a layer ---- */

typedef struct pep_set {
  uint32_t count, capacity;
  clv__pep *items;
} pep_set;

/* Adds a block on the devices of `set` to the plan. The shares are random, and a part's share may be empty. Returns false if
 * the stages do not allow the block. */
static inline bool add_block(const clv__machine *means, const clv__chain *chain, const clv__stage_table *table,
                             const uint32_t stages[2], uint32_t set, uint64_t *seed, clv__pep *pep) {
  clv__pep_block *block = &pep->blocks[pep->block_count++];
  const clv__chain_block *said = &chain->blocks[stages[0]][stages[1]];
  uint32_t at = 0;
  *block = (clv__pep_block){.first = stages[0], .last = stages[1]};
  for (uint32_t d = 0; d < means->device_count; ++d) {
    if ((set >> d & 1u) == 0) continue;
    if (!table->runs[d][stages[0]][stages[1]]) return false;
    uint32_t to = at + (uint32_t)(test_random(seed) % (CLV__PEP_SHARES + 1 - at));
    block->parts[block->part_count++] =
        (clv__pep_part){.device = d, .is_static = means->devices[d].is_static, .from = at, .to = to};
    at = to;
  }
  block->parts[block->part_count - 1].to = CLV__PEP_SHARES;
  return !said->is_empty && !(block->part_count > 1 && said->is_whole);
}

static inline void keep_pep(pep_set *set, const clv__pep *pep) {
  if (set->count == set->capacity) {
    set->capacity = 2 * set->capacity + 64;
    set->items = realloc(set->items, set->capacity * sizeof *set->items);
    assert_non_null(set->items);
  }
  set->items[set->count++] = *pep;
}

/* Makes all plans with one to three blocks, each on any set of devices. No device is in two blocks. */
static inline pep_set all_peps(const clv__machine *means, const clv__stages *stages, const clv__stage_table *table,
                               uint64_t *seed) {
  pep_set made = {0};
  clv__chain chain;
  uint32_t count = stages->count;
  clv__chain_of(stages, &chain);
  for (uint32_t way = 0; way >> 2 * means->device_count == 0; ++way) { /* two bits per device: its block, or 3 for none */
    uint32_t sets[4] = {0}, blocks = 0;
    for (uint32_t d = 0; d < means->device_count; ++d) sets[way >> 2 * d & 3u] |= 1u << d;
    while (blocks < CLV__PEP_BLOCKS && sets[blocks] != 0) ++blocks;
    if (blocks == 0 || (blocks < 3 && sets[2] != 0) || (blocks < 2 && sets[1] != 0)) continue;
    for (uint32_t i = 1; i <= (blocks > 1 ? count - 1 : 1); ++i) {
      for (uint32_t k = i + 1; k <= (blocks > 2 ? count - 1 : i + 1); ++k) {
        uint32_t cuts[4] = {0, i, k, count};
        clv__pep pep = {.block_count = 0};
        bool is_legal = true;
        cuts[blocks] = count;
        for (uint32_t b = 0; b < blocks && is_legal; ++b)
          is_legal = add_block(means, &chain, table, cuts + b, sets[b], seed, &pep);
        if (is_legal) keep_pep(&made, &pep);
      }
    }
  }
  return made;
}

static inline clv__pep one_device(const clv__machine *means, uint32_t device, uint32_t stages) {
  clv__pep pep = {.block_count = 1};
  pep.blocks[0] = (clv__pep_block){.last = stages, .part_count = 1};
  pep.blocks[0].parts[0] =
      (clv__pep_part){.device = device, .is_static = means->devices[device].is_static, .to = CLV__PEP_SHARES};
  return pep;
}

/* ---- A partitioned graph ---- */

typedef struct scene {
  test_gnn gnn;
  clv__gnn_model *model;
  clv__gnn_graph *looped;
  uint32_t k, width;
  size_t count; /* number of elements of the result */
  clv__partitioned partitioned;
  float *alone; /* the result of the machine's device 0 for the whole graph */
  double *expected;
} scene;

/* Partitions the scene's graph and runs its model on the whole graph; the caller has set both. `parts` has the part of each
 * vertex. */
static inline void cut_scene(scene *s, machine *m, uint32_t k, const uint32_t *parts) {
  const clv__membership membership = {.k = k, .vertex_count = s->gnn.vertex_count, .parts = parts};
  clv_error error = {0};
  clv__gnn_single *single;
  s->k = k;
  s->width = clv__gnn_layer_width(&s->model->layers[s->model->layer_count - 1]);
  s->count = (size_t)s->gnn.vertex_count * s->width;
  assert_true(k <= SCENE_PARTS && s->model->layer_count <= SCENE_LAYERS);
  if (s->model->type != CLV__GNN_SAGE) assert_ok(clv__gnn_graph_with_loops(s->gnn.graph, &s->looped, &error), error);
  const clv__gnn_graph *graph = s->looped != NULL ? s->looped : s->gnn.graph;
  assert_ok(clv__partitioned_make(clv__allocator_default(), graph, &membership, &s->partitioned, &error), error);
  s->alone = malloc(s->count * sizeof *s->alone);
  s->expected = malloc(s->count * sizeof *s->expected);
  assert_true(s->alone != NULL && s->expected != NULL);
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){s->gnn.vertex_count, s->width}, s->alone);
  assert_ok(clv__gnn_single_create(m->devices, 0, s->model, s->gnn.graph, &single, &error), error);
  assert_ok(clv__gnn_single_run(single, NULL, &out, &error), error);
  clv__gnn_single_destroy(single);
  for (size_t i = 0; i < s->count; ++i) s->expected[i] = s->alone[i];
}

/* Makes a scene with a random graph (gnn.h) and a random model. The vertices are distributed over the first `spread` parts, so
 * some parts may own none. */
static inline void make_scene(scene *s, machine *m, clv__gnn_type type, uint32_t layers, uint32_t n, uint64_t edges, uint32_t k,
                              uint32_t spread, uint64_t *seed) {
  uint32_t features = 1 + (uint32_t)(test_random(seed) % 14), *parts = malloc(n * sizeof *parts);
  assert_non_null(parts);
  *s = (scene){.k = k};
  test_gnn_make(&s->gnn, clv__allocator_default(), n, edges, features, test_random(seed));
  s->model = test_gnn_model(clv__allocator_default(), type, layers, features, test_random(seed));
  for (uint32_t v = 0; v < n; ++v) parts[v] = (uint32_t)(test_random(seed) % spread);
  cut_scene(s, m, k, parts);
  free(parts);
}

static inline void finish_scene(scene *s) {
  free(s->alone);
  free(s->expected);
  clv__partitioned_finish(&s->partitioned);
  clv__gnn_graph_destroy(s->looped);
  clv__gnn_model_destroy(s->model);
  test_gnn_finish(&s->gnn);
}

/* ---- A schedule ---- */

typedef struct turns {
  clv__gnn_turn items[SCENE_LAYERS][SCENE_PARTS];
  const clv__gnn_turn *layers[SCENE_LAYERS];
  clv__gnn_schedule schedule;
} turns;

/* Makes a schedule with the subgraphs in random order. The caller sets their plans. Neighbours that happen to have the same
 * plan form a cluster. */
static inline void make_turns(turns *p, const scene *s, const clv__machine *means, uint64_t *seed) {
  *p = (turns){.schedule = {means, s->model->layer_count, s->k, p->layers}};
  for (uint32_t i = 0; i < s->model->layer_count; ++i) {
    p->layers[i] = p->items[i];
    for (uint32_t k = 0; k < s->k; ++k) {
      uint32_t at = (uint32_t)(test_random(seed) % (k + 1));
      p->items[i][k] = p->items[i][at];
      p->items[i][at].subgraph = k;
    }
  }
}

static inline void check_record(const clv__gnn_run *run, const scene *s) {
  clv__gnn_record record;
  clv__gnn_run_record(run, &record);
  assert_true(record.task_count >= s->model->layer_count * s->k);
  assert_true(record.measured_ns > 0 && record.cluster_count >= s->model->layer_count);
  for (uint32_t t = 0; t < record.task_count; ++t) {
    const clv__gnn_task *task = &record.tasks[t];
    assert_true(task->begin_ns <= task->packed_ns && task->packed_ns <= task->computed_ns && task->computed_ns <= task->end_ns);
    if (task->sizes.targets > 0) assert_true(task->end_ns > 0);
    for (uint32_t u = 0; u < t; ++u) { /* a device runs one task at a time, and a block starts after the previous one has ended */
      const clv__gnn_task *before = &record.tasks[u];
      if (task->sizes.targets == 0 || before->sizes.targets == 0 || before->layer != task->layer) continue;
      if (before->device == task->device || (before->turn == task->turn && before->block < task->block))
        assert_true(before->end_ns <= task->begin_ns);
    }
  }
}

static inline bool same_bits(const float *a, const float *b, size_t count) {
  return memcmp(a, b, count * sizeof *a) == 0;
}

/* Runs the schedule `rounds` times. Every result must be close to the single device's, and have the same bits as the first
 * result and as `same_as` (may be NULL). Returns the result, which the caller frees. */
static inline float *run_turns(machine *m, const scene *s, const turns *p, uint32_t rounds, const float *same_as,
                               const char *what) {
  float *actual = malloc((s->count + 1) * sizeof *actual), *first = malloc((s->count + 1) * sizeof *first);
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){s->gnn.vertex_count, s->width}, actual);
  clv__gnn_run *run;
  clv_error error = {0};
  assert_true(actual != NULL && first != NULL);
  assert_ok(clv__gnn_run_create(m->devices, s->model, s->gnn.graph, &s->partitioned, &p->schedule, &run, &error), error);
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < s->count; ++i) actual[i] = NAN;
    assert_ok(clv__gnn_run_execute(run, NULL, &out, NULL, &error), error);
    test_gnn_compare(s->expected, actual, s->gnn.vertex_count, s->width, what);
    if (same_as != NULL && !same_bits(actual, same_as, s->count)) fail_msg("%s: the result differs from the expected bits", what);
    if (round > 0 && !same_bits(actual, first, s->count)) fail_msg("%s: the result differs from that of the first run", what);
    memcpy(first, actual, s->count * sizeof *first);
    check_record(run, s);
  }
  clv__gnn_run_destroy(run);
  free(first);
  return actual;
}

#endif
