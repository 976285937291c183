/* Tests planning from a graph to a run: the shares of subgraphs against a count; tables measured by the test, the plan made
 * from them and its file; plans with nominal prices; the result of the plan's run; and the export of its blocks as ONNX. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/onnx/onnx.h"
#include "gnn.h"
#include "gnn/export.h"
#include "gnn/measure/nominal.h"
#include "gnn/measure/point.h"
#include "gnn/plan/portion.h"
#include "gnn/plan/subgraph_sizes.h"
#include "gnn/run/single.h"
#include "gnn/run/sweep.h"
#include "machines.h"
#include "support.h"

/* ---- Shares ---- */

static void check_share(const clv__subgraph_sizes *piece, const clv__subgraph *sub, uint32_t from, uint32_t to) {
  clv__arena arena;
  clv__share share;
  clv__portion portion;
  clv_error error = {0};
  double low = (double)from / CLV__PEP_SHARES, high = (double)to / CLV__PEP_SHARES;
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(
      clv__portion_make(&arena, sub, clv__subgraph_vertex_at(sub, low), clv__subgraph_vertex_at(sub, high), &portion, &error),
      error);
  clv__subgraph_share(piece, low, high, &share);
  assert_int_equal(share.targets, portion.sizes.targets);
  assert_int_equal(share.edges, portion.sizes.edges);
  if (portion.sizes.targets > 0) assert_int_equal(share.targets + share.halo, portion.sizes.rows);
  clv__arena_finish(&arena);
}

static void test_shares(void **state) {
  (void)state;
  uint64_t seed = 3;
  for (int round = 0; round < 12; ++round) {
    test_gnn gnn;
    clv__partitioned partitioned;
    clv__arena arena;
    clv_error error = {0};
    uint32_t n = 1 + (uint32_t)(test_random(&seed) % 90), *parts = malloc(n * sizeof *parts);
    assert_non_null(parts);
    test_gnn_make(&gnn, clv__allocator_default(), n, test_random(&seed) % 500, 1, test_random(&seed));
    for (uint32_t v = 0; v < n; ++v) parts[v] = (uint32_t)(test_random(&seed) % 2);
    clv__membership membership = {.k = 3, .vertex_count = n, .parts = parts}; /* the third part owns no vertices */
    assert_ok(clv__partitioned_make(clv__allocator_default(), gnn.graph, &membership, &partitioned, &error), error);
    clv__arena_init(&arena, clv__allocator_default());
    for (uint32_t i = 0; i < 3; ++i) {
      const clv__subgraph *sub = &partitioned.subgraphs[i];
      clv__subgraph_sizes piece;
      assert_ok(clv__subgraph_sizes_of(&arena, sub, &piece, &error), error);
      assert_int_equal(piece.owned, sub->owned_count);
      assert_int_equal(piece.halo, sub->halo_count);
      for (uint32_t from = 0; from < CLV__PEP_SHARES; ++from) {
        for (uint32_t to = from + 1; to <= CLV__PEP_SHARES; ++to)
          if (from > 0 || to < CLV__PEP_SHARES) check_share(&piece, sub, from, to);
      }
      uint64_t targets = 0, edges = 0; /* sums over adjacent shares, which must neither overlap nor leave gaps */
      for (double at = 0; at < 1; at += 0.037) {
        clv__share share;
        clv__subgraph_share(&piece, at, fmin(1, at + 0.037), &share);
        targets += share.targets, edges += share.edges;
      }
      assert_int_equal(targets, sub->owned_count);
      assert_int_equal(edges, sub->edge_count);
    }
    clv__arena_finish(&arena);
    clv__partitioned_finish(&partitioned);
    test_gnn_finish(&gnn);
    free(parts);
  }
}

/* ---- From planning to a run ---- */

static void count_told(void *user_data, uint32_t k) {
  assert_true(k > 0);
  ++*(uint32_t *)user_data;
}

/* Reads every exported file, then removes the folder. Returns the number of files. */
static uint32_t check_folder(const char *folder) {
  DIR *open = opendir(folder);
  uint32_t count = 0;
  assert_non_null(open);
  for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
    char path[512];
    clv_graph *graph;
    clv_error error = {0};
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    assert_ok(clv__onnx_load_file(clv__allocator_default(), path, &graph, &error), error);
    assert_true(clv_graph_input_count(graph) > 0 && clv_graph_output_count(graph) > 0);
    clv_graph_destroy(graph);
    unlink(path);
    ++count;
  }
  closedir(open);
  rmdir(folder);
  return count;
}

static void check_run(machine *m, const test_gnn *gnn, const clv__gnn_model *model, const clv__gnn_plan *plan,
                      const double *expected) {
  uint32_t width = clv__gnn_layer_width(&model->layers[model->layer_count - 1]);
  float *rows = malloc((size_t)gnn->vertex_count * width * sizeof *rows);
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){gnn->vertex_count, width}, rows);
  clv__partitioned partitioned;
  clv__gnn_schedule schedule;
  clv__gnn_run *run;
  clv__arena arena;
  clv_error error = {0};
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__gnn_plan_subgraphs(clv__allocator_default(), plan, model, gnn->graph, NULL, NULL, &partitioned, &error), error);
  assert_ok(clv__gnn_schedule_of(&arena, plan, &schedule, &error), error);
  assert_ok(clv__gnn_run_create(m->devices, model, gnn->graph, &partitioned, &schedule, &run, &error), error);
  assert_ok(clv__gnn_run_execute(run, NULL, &out, NULL, &error), error);
  test_gnn_compare(expected, rows, gnn->vertex_count, width, "planned");
  clv__gnn_record record;
  clv__gnn_run_record(run, &record);
  for (uint32_t t = 0; t < record.task_count; ++t) { /* the sizes that ran are those that were priced */
    const clv__gnn_task *task = &record.tasks[t];
    const clv__pep_part *part = &schedule.layers[task->layer][task->turn].pep->blocks[task->block].parts[task->part];
    assert_int_equal(task->sizes.targets, part->sizes.targets);
    if (part->sizes.targets == 0) continue;
    assert_int_equal(task->sizes.rows, part->sizes.rows);
    assert_int_equal(task->sizes.edges, part->sizes.edges);
    assert_int_equal(task->padded.rows, part->padded.rows);
    assert_int_equal(task->padded.edges, part->padded.edges);
  }
  clv__gnn_run_destroy(run);
  clv__partitioned_finish(&partitioned);
  clv__arena_finish(&arena);
  free(rows);
}

/* Checks that the overheads of schedules were measured, and compile times exactly for devices that need fixed shapes. */
static void check_overheads(const machine *m, const clv__gnn_planning *planning, const clv__tables *tables) {
  assert_non_null(clv__tables_find_overhead(tables, CLV__OVERHEAD_MERGE, ""));
  assert_non_null(clv__tables_find_overhead(tables, CLV__OVERHEAD_EXCHANGE, ""));
  for (uint32_t d = 0; d < m->devices->count; ++d) {
    const clv__table_overhead *overhead = clv__tables_find_overhead(tables, CLV__OVERHEAD_SWITCH, m->devices->items[d].name);
    assert_true(overhead != NULL && overhead->origin == CLV__MEASURED && overhead->time_ns >= 0);
  }
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    const clv__block_table *table = &tables->tables[t];
    uint32_t device = 0;
    while (strcmp(planning->machine.devices[device].name, table->device) != 0) ++device;
    assert_int_equal(table->compile_ns > 0, planning->machine.devices[device].is_static);
  }
}

/* Checks that the plan has the costs from the tables. */
static void check_times(const clv__tables *tables, const clv__gnn_plan *plan) {
  double sum = 0;
  assert_true(plan->machine.merge_ns == round(clv__tables_find_overhead(tables, CLV__OVERHEAD_MERGE, "")->time_ns));
  assert_true(plan->exchange_ns == round(clv__tables_find_overhead(tables, CLV__OVERHEAD_EXCHANGE, "")->time_ns));
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    const clv__machine_device *device = &plan->machine.devices[d];
    assert_true(device->switch_ns == round(clv__tables_find_overhead(tables, CLV__OVERHEAD_SWITCH, device->name)->time_ns));
  }
  for (uint32_t l = 0; l < plan->layer_count; ++l) sum += plan->layers[l].timeline.makespan_ns + (l > 0 ? plan->exchange_ns : 0);
  assert_true(fabs(sum - plan->makespan_ns) <= 1);
}

static void plan_and_run(machine *m, clv__gnn_type type, uint64_t seed) {
  static const uint32_t ks[] = {1, 2, 3};
  test_gnn gnn, stranger;
  clv__gnn_planning planning;
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__tables tables;
  clv__choice choice;
  clv__gnn_plan *plan, *again;
  clv__gnn_schedule schedule;
  clv_error error = {0};
  uint32_t told = 0, written;
  char path[] = "/tmp/cleave-gnn-plan-XXXXXX", folder[] = "/tmp/cleave-gnn-blocks-XXXXXX";
  test_gnn_make(&gnn, clv__allocator_default(), 120, 700, 6, seed);
  clv__gnn_model *model = test_gnn_model(clv__allocator_default(), type, 2, 6, seed + 1);
  double *expected = test_gnn_expected(&gnn, model);
  assert_ok(clv__gnn_planning_init(&planning, m->devices, model, gnn.graph, ks, 3, 0, 16, NULL, count_told, &told, &error),
            error);
  assert_int_equal(told, 3);
  clv__tables_init(&tables, clv__allocator_default());
  assert_int_equal(clv__gnn_planning_choose(&planning, &tables, &options, &choice, &error),
                   CLV_NOT_FOUND); /* the tables are empty */
  how.runs = 1;
  assert_ok(clv__gnn_measure(&planning, &how, &tables, NULL, &error), error);
  check_overheads(m, &planning, &tables);
  for (uint32_t k = 0; k < 3; ++k) { /* chooses each k in turn, so that a plan of every k runs */
    assert_ok(clv__gnn_planning_choose(&planning, &tables, &options, &choice, &error), error);
    if (!choice.items[k].has_plan) continue; /* times of microseconds may vary too much for a good fit */
    choice.chosen = k;
    assert_ok(clv__gnn_planning_plan(&planning, &tables, &choice, "m", "g", &plan, &error), error);
    check_times(&tables, plan);
    check_run(m, &gnn, model, plan, expected);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(clv__gnn_plan_write(plan, path, &error), error);
    assert_ok(clv__gnn_plan_read(clv__allocator_default(), path, &again, &error), error);
    check_run(m, &gnn, model, again, expected);
    unlink(path);
    strcpy(path, "/tmp/cleave-gnn-plan-XXXXXX");
    test_gnn_make(&stranger, clv__allocator_default(), 120, 700, 6, seed + 9);
    clv__partitioned partitioned;
    assert_int_equal(
        clv__gnn_plan_subgraphs(clv__allocator_default(), again, model, stranger.graph, NULL, NULL, &partitioned, &error),
        CLV_INVALID_ARGUMENT); /* the plan is for another graph */
    test_gnn_finish(&stranger);
    assert_non_null(mkdtemp(folder));
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    assert_ok(clv__gnn_schedule_of(&arena, again, &schedule, &error), error);
    assert_ok(clv__gnn_export(clv__allocator_default(), planning.stages, &schedule, folder, k == 1, &written, &error), error);
    assert_true(written > 0);
    assert_int_equal(check_folder(folder), written);
    strcpy(folder, "/tmp/cleave-gnn-blocks-XXXXXX");
    clv__arena_finish(&arena);
    clv__gnn_plan_destroy(again);
    clv__gnn_plan_destroy(plan);
  }
  clv__tables_finish(&tables);
  clv__gnn_planning_finish(&planning);
  free(expected);
  clv__gnn_model_destroy(model);
  test_gnn_finish(&gnn);
}

static void test_plans(void **state) {
  (void)state;
  machine m = open_machine("cpu,npu");
  for (int type = 0; type < 3; ++type) plan_and_run(&m, (clv__gnn_type)type, 40 + (uint64_t)type);
  close_machine(&m);
}

/* ---- Large parts ---- */

enum { LARGE_VERTICES = 5000, LARGE_FEATURES = 1024 };

/* Makes a model with one layer that gathers before it transforms: its large parts run piece by piece. */
static clv__gnn_model *large_model(uint64_t seed) {
  clv__gnn_model *model = NULL;
  clv__stages stages;
  do {
    clv__gnn_model_destroy(model);
    model = test_gnn_model(clv__allocator_default(), CLV__GNN_SAGE, 1, LARGE_FEATURES, ++seed);
    clv__stages_of(CLV__GNN_SAGE, model->layers, CLV_F32, &stages);
  } while (stages.transform_first);
  return model;
}

/* A large block is measured as a run executes it, piece by piece: intermediate values have the size of a piece, and a speed
 * model counts one launch per piece. If the device does not run it in pieces (`is_swept` is false), intermediate values have
 * their whole size, and the speed model counts one launch. */
static void price_large(machine *m, const clv__gnn_measure_options *how, bool is_swept) {
  static const uint32_t one = 1;
  test_gnn gnn;
  clv__gnn_planning planning;
  clv__tables tables;
  clv_error error = {0};
  clv__gnn_model *model = large_model(7);
  test_gnn_make(&gnn, clv__allocator_default(), LARGE_VERTICES, 3 * LARGE_VERTICES, LARGE_FEATURES, 5);
  assert_ok(clv__gnn_planning_init(&planning, m->devices, model, gnn.graph, &one, 1, 0, 1000, NULL, NULL, NULL, &error), error);
  clv__tables_init(&tables, clv__allocator_default());
  clv__csr even = {LARGE_VERTICES, 3 * LARGE_VERTICES, NULL, NULL};
  uint64_t *offsets = malloc((LARGE_VERTICES + 1) * sizeof *offsets);
  assert_non_null(offsets);
  for (uint64_t v = 0; v <= LARGE_VERTICES; ++v) offsets[v] = 3 * v;
  even.offsets = offsets;
  uint32_t stages = planning.chains[0].stage_count;
  const clv__sweep sweep = clv__sweep_find(&planning.stages[0], 0, stages, &even);
  uint64_t pieces = clv__sweep_pieces(&sweep, LARGE_VERTICES);
  assert_true(sweep.piece > 0 && sweep.piece_edges == 3 * sweep.piece && pieces > 4);
  const clv__measured_block block = {&planning, how, &tables, 0, 0, 0, stages};
  const clv__layer_sizes whole = {LARGE_VERTICES, LARGE_VERTICES, 3 * LARGE_VERTICES};
  const clv__layer_sizes piece = clv__sweep_sizes(&sweep, LARGE_VERTICES);
  clv__table_point all = {.n = 0}, part = {.n = 0};
  assert_ok(how->asks_models ? clv__model_block(&block, whole, &all, &error) : clv__measure_block(&block, whole, &all, &error),
            error);
  assert_ok(how->asks_models ? clv__model_block(&block, piece, &part, &error) : clv__measure_block(&block, piece, &part, &error),
            error);
  assert_false(all.infeasible || part.infeasible);
  assert_true(all.time_ns > 0 && part.time_ns > 0);
  uint64_t between = LARGE_VERTICES * LARGE_FEATURES * sizeof(float); /* bytes of the sums of all targets */
  if (how->asks_models && is_swept)
    assert_true(fabs(all.time_ns - (double)pieces * part.time_ns) < 1e-6 * all.time_ns);
  else if (how->asks_models)
    assert_true(all.time_ns < (double)pieces * part.time_ns - 0.9e6 * (double)(pieces - 1)); /* one launch, which takes 1 ms */
  else if (is_swept)
    assert_true(all.peak_bytes < part.peak_bytes + between / 2 && all.peak_bytes >= part.peak_bytes);
  else
    assert_true(all.peak_bytes > part.peak_bytes + between / 2);
  free(offsets);
  clv__tables_finish(&tables);
  clv__gnn_planning_finish(&planning);
  clv__gnn_model_destroy(model);
  test_gnn_finish(&gnn);
}

/* A speed model with 1 ms per launch and little time for the work. */
#define SPEED                                                                                                            \
  "\"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 1000, \"bytes_per_second\": 1e10, \"flops_per_second\": " \
  "1e11}}"

static void test_large_parts(void **state) {
  (void)state;
  static const char *const specs[] = {"{\"name\": \"v\", \"memory_space\": \"host\", " SPEED,
                                      "{\"name\": \"v\", \"memory_space\": \"own\", " SPEED,
                                      "{\"name\": \"v\", \"memory_space\": \"host\", \"static_shapes\": true, " SPEED};
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  how.runs = 1;
  machine m = open_machine("cpu");
  price_large(&m, &how, true);
  close_machine(&m);
  how.asks_models = true;
  for (int which = 0; which < 3; ++which) { /* only the first of these devices runs blocks in pieces */
    clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
    clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
    clv_error error = {0};
    context.cache_directory = "";
    options.list = "v";
    options.npu_specs = &specs[which];
    options.npu_spec_count = 1;
    assert_ok(clv_context_create(&context, &m.context, &error), error);
    assert_ok(clv_devices_open(m.context, &options, &m.devices, &error), error);
    price_large(&m, &how, which == 0);
    close_machine(&m);
  }
}

/* ---- Nominal prices ---- */

/* Without measurements, every k has a plan, and every size that a plan can contain has a price. Two calls give the same tables.
 */
static void plan_nominally(machine *m, clv__gnn_type type, uint64_t seed) {
  static const uint32_t ks[] = {1, 2, 5};
  test_gnn gnn;
  clv__gnn_planning planning;
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__tables tables, again;
  clv__text text, same;
  clv__choice choice;
  clv__gnn_plan *plan;
  clv_error error = {0};
  test_gnn_make(&gnn, clv__allocator_default(), 400, 3000, 6, seed);
  clv__gnn_model *model = test_gnn_model(clv__allocator_default(), type, 2, 6, seed + 1);
  double *expected = test_gnn_expected(&gnn, model);
  assert_ok(clv__gnn_planning_init(&planning, m->devices, model, gnn.graph, ks, 3, 0, 16, NULL, NULL, NULL, &error), error);
  clv__tables_init(&tables, clv__allocator_default());
  clv__tables_init(&again, clv__allocator_default());
  clv__text_init(&text, clv__allocator_default());
  clv__text_init(&same, clv__allocator_default());
  assert_ok(clv__gnn_nominal(&planning, &tables, &error), error);
  assert_ok(clv__gnn_nominal(&planning, &again, &error), error);
  assert_ok(clv__tables_print(&tables, &text, &error), error);
  assert_ok(clv__tables_print(&again, &same, &error), error);
  assert_string_equal(text.data, same.data);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    if (!tables.tables[t].time.is_good)
      fail_msg("%s: stages %u to %u have no good fit", tables.tables[t].device, tables.tables[t].first, tables.tables[t].last);
    assert_int_equal(tables.tables[t].origin, CLV__NOMINAL);
  }
  assert_ok(clv__gnn_planning_choose(&planning, &tables, &options, &choice, &error), error);
  assert_int_equal(choice.origin, CLV__NOMINAL);
  for (uint32_t k = 0; k < 3; ++k) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    assert_true(choice.items[k].has_plan);
    for (uint32_t i = 0; i < ks[k]; ++i) {
      clv__pep_list list;
      assert_ok(clv__peps_make(&arena, &planning.costs[0], &planning.cuts[k].subgraphs[i], &options.peps, &list, &error), error);
      assert_int_equal(list.unknown, 0);
    }
    clv__arena_finish(&arena);
    choice.chosen = k;
    assert_ok(clv__gnn_planning_plan(&planning, &tables, &choice, "m", "g", &plan, &error), error);
    check_run(m, &gnn, model, plan, expected);
    clv__gnn_plan_destroy(plan);
  }
  clv__text_finish(&same);
  clv__text_finish(&text);
  clv__tables_finish(&again);
  clv__tables_finish(&tables);
  clv__gnn_planning_finish(&planning);
  free(expected);
  clv__gnn_model_destroy(model);
  test_gnn_finish(&gnn);
}

static void test_nominal(void **state) {
  (void)state;
  machine m = open_machine("cpu,npu,npu1");
  for (int type = 0; type < 3; ++type) plan_nominally(&m, (clv__gnn_type)type, 60 + (uint64_t)type);
  close_machine(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nominal),
      cmocka_unit_test(test_large_parts),
      cmocka_unit_test(test_shares),
      cmocka_unit_test(test_plans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
