/* Seeds for the readers of GNN cost tables and GNN plans: tables of two devices with made-up speeds, and a plan of three
 * subgraphs and two layers. They are the same every time. */
#ifndef CLEAVE_FUZZ_GNN_SEEDS_H
#define CLEAVE_FUZZ_GNN_SEEDS_H

#include <string.h>

#include "gnn/plan/plan.h"

#define FUZZ_GNN_CSV "n_nodes,n_edges,cpu_ms,npu_ms,status\n100,500,1.5,2,OK\n100,1000,None,4,OK\n200,500,-1,9,CPU_OOM\n"

static inline clv_status fuzz_gnn_put(clv__tables *tables, const clv__chain *chain, const char *device, uint32_t first,
                                      uint32_t last, double row_ns, double edge_ns, clv_error *error) {
  static const uint64_t rows[] = {50, 120, 400, 1000, 3000};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    for (uint64_t density = 1; density <= 32; density *= 32) {
      uint64_t edges = chain->blocks[first][last].reads_edges ? density * rows[i] : 0;
      clv__table_point point = {.n = rows[i], .m = edges, .origin = CLV__SYNTHETIC, .peak_bytes = 64 * rows[i]};
      point.compile_ns = strcmp(device, "npu") == 0 ? 1e8 : 0;
      point.time_ns = 3000 + row_ns * (double)rows[i] + edge_ns * (double)edges;
      CLV__TRY(clv__tables_put(tables, device, chain->layer, first, last, &point, error));
    }
  }
  return CLV_OK;
}

/* The caller must finish `tables`, even if this fails. */
static inline clv_status fuzz_gnn_make_tables(const clv__chain *chain, clv__tables *tables, clv_error *error) {
  static const char *const ends[][2] = {{CLV__TABLE_HOST, CLV__TABLE_HOST}, {CLV__TABLE_HOST, "npu"}, {"npu", CLV__TABLE_HOST}};
  uint32_t count = chain->stage_count;
  clv__tables_init(tables, clv__allocator_default());
  CLV__TRY(fuzz_gnn_put(tables, chain, "cpu", 0, count, 900, 150, error));
  CLV__TRY(fuzz_gnn_put(tables, chain, "cpu", 0, 5, 10, 150, error));
  CLV__TRY(fuzz_gnn_put(tables, chain, "npu", 5, count, 500, 0, error));
  for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
    for (uint64_t bytes = 64; bytes <= (uint64_t)1 << 30; bytes *= 256) {
      clv__copy_point point = {.size_bytes = bytes, .time_ns = 500 + 0.01 * (double)bytes, .origin = CLV__SYNTHETIC};
      CLV__TRY(clv__tables_put_copy(tables, ends[i][0], ends[i][1], &point, error));
    }
  }
  for (int kind = 0; kind < CLV__OVERHEADS; ++kind) {
    const clv__table_overhead overhead = {(clv__overhead_kind)kind, kind == CLV__OVERHEAD_SWITCH ? "npu" : "", CLV__SYNTHETIC,
                                          1000, 100};
    CLV__TRY(clv__tables_put_overhead(tables, &overhead, error));
  }
  return clv__tables_fit(tables, error);
}

static inline clv_status fuzz_gnn_make_plan(const clv__chain *chain, const clv__tables *tables, clv__text *text,
                                            clv_error *error) {
  static const clv__gnn_plan_names names = {
      .model = "m.json", .model_hash = "ab", .graph = "g.npz", .graph_hash = "cd", .seed = 9};
  static const clv__subgraph_sizes subgraphs[3] = {{.owned = 500, .halo = 100, .edges = 4000},
                                                   {.owned = 600, .halo = 200, .edges = 3000},
                                                   {.owned = 700, .halo = 50, .edges = 5000}};
  clv__machine machine = {.device_count = 2, .pad_step = 100, .merge_ns = 20e3, .queue_depth = 2};
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__choose_cut cut = {3, subgraphs};
  clv__costs costs[2];
  clv__choice choice;
  clv__arena arena;
  clv__gnn_plan *plan = NULL;
  machine.devices[0] = (clv__machine_device){.name = "cpu"};
  machine.devices[1] = (clv__machine_device){.name = "npu", .space = 1, .is_static = true, .switch_ns = 1e3};
  CLV__TRY(clv__costs_init(&costs[0], tables, &machine, chain, error));
  costs[1] = costs[0];
  clv__arena_init(&arena, clv__allocator_default());
  clv_status status = clv__choose(&arena, costs, 2, &cut, 1, &options, &choice, error);
  if (status == CLV_OK) status = clv__gnn_plan_make(clv__allocator_default(), &names, costs, &choice, 1000, &plan, error);
  if (status == CLV_OK) status = clv__gnn_plan_print(plan, text, error);
  clv__gnn_plan_destroy(plan);
  clv__arena_finish(&arena);
  return status;
}

/* Writes the tables and the plan as text to initialised texts. */
static inline clv_status fuzz_gnn_seeds(clv__text *tables_text, clv__text *plan_text, clv_error *error) {
  const clv__gnn_layer layer = {.in = 16, .out = 32, .heads = 1, .concat = true};
  clv__stages stages;
  clv__chain chain;
  clv__tables tables;
  clv__stages_of(CLV__GNN_SAGE, &layer, CLV_F32, &stages);
  clv__chain_of(&stages, &chain);
  clv_status status = fuzz_gnn_make_tables(&chain, &tables, error);
  if (status == CLV_OK) status = clv__tables_print(&tables, tables_text, error);
  if (status == CLV_OK) status = fuzz_gnn_make_plan(&chain, &tables, plan_text, error);
  clv__tables_finish(&tables);
  return status;
}

#endif
