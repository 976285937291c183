/* Tests that every plan that planning returns can run. Draws DRAWS random graphs, models, numbers of subgraphs, and memories of
 * one or two virtual NPUs, with or without a CPU. Every plan runs, gives the result of one device, and takes no more of each
 * device's memory than it states, according to the sessions and to the memory pool. A number of subgraphs without a plan is
 * refused for lack of memory. Memory that earlier runs have freed does not change what a block needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/memory_pool.h"
#include "gnn.h"
#include "gnn/measure/nominal.h"
#include "gnn/model/block_memory.h"
#include "gnn/run/single.h"
#include "machines.h"
#include "support.h"

enum { DRAWS = 200, MOST_VERTICES = 500 };

/* Counts over all plans. limited: devices in use that have a memory limit; of these, divided: devices that limit the size of
 * partitions, and tight: devices that cannot hold all of their blocks at once. */
static struct tally { uint32_t plans, of_type[3], of_parts, limited, divided, tight, refused; } tally;

static uint32_t below(uint64_t *seed, uint32_t limit) {
  return (uint32_t)(test_random(seed) % limit);
}

static bool has_limits(const clv_device_info *info) {
  return info->max_partition_nodes > 0 || info->max_partition_inputs > 0;
}

/* Opens devices with little memory: one NPU or two, which may share their memory, and perhaps the CPU. */
static machine open_small(uint64_t *seed) {
  static const char *const lists[] = {"npu,cpu", "npu", "npu,npu1", "cpu,npu,npu1"};
  char specs[2][400];
  const char *given[] = {specs[0], specs[1]};
  uint64_t memory_bytes = 0; /* of the next NPU; drawn only once if both NPUs share a memory */
  bool is_static = below(seed, 2) == 0, is_shared = below(seed, 2) == 0;
  static const char *const all_limits[] = {"", "", ", \"max_partition_nodes\": 4", ", \"max_partition_inputs\": 5"};
  const char *list = lists[below(seed, 4)], *limits = all_limits[below(seed, 4)];
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv_error error = {0};
  machine m;
  for (int i = 0; i < 2; ++i) {
    char space[64] = "";
    if (i == 0 || !is_shared) memory_bytes = (UINT64_C(4096) << below(seed, 10)) + below(seed, 4096);
    if (is_shared) strcpy(space, ", \"memory_space\": \"small\"");
    snprintf(specs[i], sizeof specs[i],
             "{\"name\": \"small%d\", \"operators\": \"all\", \"static_shapes\": %s, \"memory\": %llu%s%s}", i,
             is_static ? "true" : "false", (unsigned long long)memory_bytes, space, limits);
  }
  context.cache_directory = "";
  options.list = list;
  options.thread_count = MACHINE_THREADS;
  options.npu_specs = given;
  options.npu_spec_count = strstr(list, "npu1") != NULL ? 2 : 1;
  assert_ok(clv_context_create(&context, &m.context, &error), error);
  assert_ok(clv_devices_open(m.context, &options, &m.devices, &error), error);
  return m;
}

/* Checks the memory that a run took against its plan. `most`: by memory space, the most that any plan on this machine has stated
 * so far, because the pool's peak is over all runs. */
static void check_memory(const machine *m, const clv__gnn_plan *plan, const clv__gnn_record *record, uint64_t *most) {
  uint64_t stated[CLV__MAX_DEVICES + 1] = {0};
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    const clv__gnn_plan_memory *memory = &plan->memory[d];
    assert_int_equal(memory->limit_bytes, m->devices->items[d].info.memory_limit_bytes);
    if (memory->limit_bytes == 0) continue;
    if (record->taken_bytes[d] > memory->taken_bytes || memory->taken_bytes > memory->limit_bytes)
      fail_msg("%s took %llu bytes, the plan states %llu, the limit is %llu", plan->machine.devices[d].name,
               (unsigned long long)record->taken_bytes[d], (unsigned long long)memory->taken_bytes,
               (unsigned long long)memory->limit_bytes);
    assert_true(memory->least_bytes <= memory->taken_bytes);
    stated[m->devices->items[d].space] += memory->taken_bytes;
  }
  for (uint32_t s = 1; s < m->devices->space_count; ++s) {
    clv__memory_pool_counters counters;
    clv__memory_pool_counters_get(m->devices, s, &counters);
    if (stated[s] > most[s]) most[s] = stated[s];
    if (counters.peak_bytes > most[s])
      fail_msg("space %u: the pool gave %llu bytes, the plans state %llu", s, (unsigned long long)counters.peak_bytes,
               (unsigned long long)most[s]);
  }
}

static void run_plan(machine *m, const test_gnn *gnn, const clv__gnn_model *model, const clv__gnn_planning *planning,
                     const clv__gnn_plan *plan, const double *expected, const char *what, uint64_t *most) {
  uint32_t width = clv__gnn_layer_width(&model->layers[model->layer_count - 1]);
  float *rows = malloc(((size_t)gnn->vertex_count * width + 1) * sizeof *rows);
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){gnn->vertex_count, width}, rows);
  clv__partitioned partitioned;
  clv__gnn_schedule schedule;
  clv__gnn_run *run;
  clv__gnn_record record;
  clv__arena arena;
  clv_error error = {0};
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__gnn_planning_subgraphs(planning, plan->k, &partitioned, &error), error);
  assert_ok(clv__gnn_schedule_of(&arena, plan, &schedule, &error), error);
  if (clv__gnn_run_create(m->devices, model, gnn->graph, &partitioned, &schedule, &run, &error) != CLV_OK)
    fail_msg("%s: the plan is not accepted: %s", what, error.message);
  for (int round = 0; round < 2; ++round) {
    if (clv__gnn_run_execute(run, NULL, &out, NULL, &error) != CLV_OK) fail_msg("%s: the plan fails: %s", what, error.message);
    test_gnn_compare(expected, rows, gnn->vertex_count, width, what);
  }
  clv__gnn_run_record(run, &record);
  check_memory(m, plan, &record, most);
  clv__gnn_run_destroy(run);
  clv__partitioned_finish(&partitioned);
  clv__arena_finish(&arena);
  free(rows);
}

/* Whether a device rejects a whole layer, because its memory is too small for one of the nodes. */
static bool rejects_layer(const clv__gnn_planning *planning) {
  for (uint32_t l = 0; l < planning->model->layer_count; ++l) {
    const clv__stage_table *table = planning->runs[l];
    for (uint32_t d = 0; d < table->device_count; ++d) {
      if (!table->runs[d][0][table->stage_count]) return true;
    }
  }
  return false;
}

/* Plans for every k, and runs the plan of each. METIS makes the parts, or they are random, with many more edges between them. */
static void plan_and_run(uint64_t *seed, uint32_t number) {
  static uint32_t parts[2][MOST_VERTICES];
  uint32_t n = 20 + below(seed, MOST_VERTICES - 20), features = 1 + below(seed, 14), ks[2] = {1, 2 + below(seed, 6)};
  clv__gnn_type type = (clv__gnn_type)below(seed, 3);
  machine m = open_small(seed);
  test_gnn gnn;
  clv__gnn_planning planning;
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__membership given[2];
  clv__tables tables;
  clv__choice choice;
  clv_error error = {0};
  char what[96];
  uint64_t most[CLV__MAX_DEVICES + 1] = {0};
  options.effort = number % 4 == 0 ? CLV__EFFORT_FULL : CLV__EFFORT_QUICK;
  options.budget = 20000;
  test_gnn_make(&gnn, clv__allocator_default(), n, test_random(seed) % (8 * n), features, test_random(seed));
  clv__gnn_model *model = test_gnn_model(clv__allocator_default(), type, 1 + below(seed, 3), features, test_random(seed));
  double *expected = test_gnn_expected(&gnn, model);
  for (int c = 0; c < 2; ++c) {
    for (uint32_t v = 0; v < n; ++v) parts[c][v] = below(seed, ks[c]);
    given[c] = (clv__membership){.k = ks[c], .vertex_count = n, .parts = parts[c]};
  }
  clv__tables_init(&tables, clv__allocator_default());
  if (number % 2 == 0)
    assert_ok(clv__gnn_planning_init_parts(&planning, m.devices, model, gnn.graph, given, 2, 16, &error), error);
  else
    assert_ok(clv__gnn_planning_init(&planning, m.devices, model, gnn.graph, ks, 2, number, 16, NULL, NULL, NULL, &error), error);
  assert_ok(clv__gnn_nominal(&planning, &tables, &error), error);
  clv_status status = clv__gnn_planning_choose(&planning, &tables, &options, &choice, &error);
  bool is_rejected = rejects_layer(&planning);
  if (status != CLV_OK && status != CLV_TOO_LARGE && !is_rejected) fail_msg("draw %u: %s", number, error.message);
  for (uint32_t c = 0; c < choice.k_count; ++c) {
    clv__gnn_plan *plan;
    snprintf(what, sizeof what, "draw %u, type %d, k %u", number, (int)type, choice.items[c].k);
    if (!choice.items[c].has_plan) {
      assert_true(is_rejected || choice.items[c].least.size_bytes > 0);
      ++tally.refused;
      continue;
    }
    choice.chosen = c;
    assert_ok(clv__gnn_planning_plan(&planning, &tables, &choice, "m", "g", &plan, &error), error);
    run_plan(&m, &gnn, model, &planning, plan, expected, what, most);
    ++tally.plans;
    ++tally.of_type[type];
    tally.of_parts += plan->k > 1;
    for (uint32_t d = 0; d < plan->machine.device_count; ++d) tally.limited += plan->memory[d].taken_bytes > 0;
    for (uint32_t d = 0; d < plan->machine.device_count; ++d)
      tally.divided += plan->memory[d].taken_bytes > 0 && has_limits(&m.devices->items[d].info);
    for (uint32_t d = 0; d < plan->machine.device_count; ++d)
      tally.tight += plan->memory[d].taken_bytes > 0 && plan->memory[d].taken_bytes < planning.memory.sum_bytes[d];
    clv__gnn_plan_destroy(plan);
  }
  clv__tables_finish(&tables);
  clv__gnn_planning_finish(&planning);
  free(expected);
  clv__gnn_model_destroy(model);
  test_gnn_finish(&gnn);
  close_machine(&m);
}

static void test_feasible_plans_run(void **state) {
  (void)state;
  uint32_t draws = test_some(DRAWS);
  uint64_t seed = 16;
  for (uint32_t number = 0; number < draws; ++number) plan_and_run(&seed, number);
  print_message(
      "%u draws: %u plans ran (%u GraphSAGE, %u GCN, %u GAT; %u with several subgraphs), on %u devices with a memory limit, of "
      "which %u held blocks in turns and %u limit partitions; %u numbers of subgraphs had no plan\n",
      draws, tally.plans, tally.of_type[CLV__GNN_SAGE], tally.of_type[CLV__GNN_GCN], tally.of_type[CLV__GNN_GAT], tally.of_parts,
      tally.limited, tally.tight, tally.divided, tally.refused);
  assert_true(tally.plans > draws / 2 && tally.divided > draws / 4 && tally.tight > draws / 20 && tally.refused > draws / 20);
}

/* ---- Memory that the pool keeps ---- */

/* Memory that earlier runs have freed, and that the pool keeps, changes no need of a block. */
static void test_kept_memory(void **state) {
  (void)state;
  static const char *const specs[] = {"{\"name\": \"small\", \"operators\": \"all\", \"memory\": 60000}"};
  const clv__block_form form = clv__block_form_fixed((clv__layer_sizes){50, 50, 200});
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv__gnn_model *model = test_gnn_model(clv__allocator_default(), CLV__GNN_SAGE, 1, 8, 3);
  clv__memory_block kept = {.generation = 0};
  clv__block_need needs[2];
  clv__stages stages;
  clv__block block;
  clv_error error = {0};
  machine m;
  context.cache_directory = "";
  options.list = "npu";
  options.npu_specs = specs;
  options.npu_spec_count = 1;
  assert_ok(clv_context_create(&context, &m.context, &error), error);
  assert_ok(clv_devices_open(m.context, &options, &m.devices, &error), error);
  clv__stages_of(CLV__GNN_SAGE, model->layers, CLV_F32, &stages);
  assert_ok(clv__block_make(clv__allocator_default(), &stages, 0, stages.count, &form, &block, &error), error);
  for (int i = 0; i < 2; ++i) {
    assert_ok(clv__block_need_of(m.devices, 0, &block, 60000, &needs[i], &error), error);
    assert_true(needs[i].fits && needs[i].total_bytes == needs[0].total_bytes);
    if (i > 0) break;
    assert_ok(clv__memory_pool_allocate(m.devices, 0, 59904, &kept, &error), error);
    clv__memory_pool_free(m.devices, &kept);
  }
  clv__block_finish(&block);
  clv__gnn_model_destroy(model);
  close_machine(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_feasible_plans_run), cmocka_unit_test(test_kept_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
