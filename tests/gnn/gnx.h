/* Fixtures for tests of the planner: a machine with three devices, whose costs come from the measured tables in
 * ../shared/data/gnx, completed with synthetic points, or are made from a seed; and the sizes of subgraphs that METIS made from
 * real graphs. */
#ifndef CLEAVE_TESTS_GNX_H
#define CLEAVE_TESTS_GNX_H

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "gnn/tables/synthetic.h"
#include "support.h"

enum { GNX_CPU, GNX_GPU, GNX_NPU, GNX_MOST_SUBGRAPHS = 64 };
#define GNX_FOLDER CLEAVE_SOURCE_DIR "/../shared/data/gnx/"

typedef struct gnx {
  clv__gnn_layer layer;
  clv__chain chain;
  clv__machine machine;
  clv__tables tables;
  clv__costs costs;
} gnx;

static inline void gnx_chain(gnx *g, clv__gnn_type type, uint32_t in, uint32_t out) {
  clv__stages stages;
  g->layer = (clv__gnn_layer){.in = in, .out = out, .heads = 1, .concat = true};
  clv__stages_of(type, &g->layer, CLV_F32, &stages);
  clv__chain_of(&stages, &g->chain);
}

/* The CPU works in host memory; the GPU and the NPU have their own memory. The NPU needs fixed shapes, and does not support
 * reduce-sum and reduce-count. */
static inline void gnx_machine(gnx *g) {
  g->machine = (clv__machine){.device_count = 3, .pad_step = 1000, .merge_ns = 20e3, .queue_depth = 2};
  g->machine.devices[GNX_CPU] = (clv__machine_device){.name = "cpu"};
  g->machine.devices[GNX_GPU] = (clv__machine_device){.name = "gpu", .space = 1};
  g->machine.devices[GNX_NPU] = (clv__machine_device){.name = "npu", .space = 2, .is_static = true};
  for (uint32_t d = 0; d < 3; ++d) g->machine.devices[d].switch_ns = 100e3;
  g->machine.devices[GNX_NPU].cannot = 1u << CLV__STAGE_REDUCE_SUM | 1u << CLV__STAGE_REDUCE_COUNT;
}

static inline bool gnx_text(const char *file, clv__file_map *map) {
  clv_error error;
  char path[512];
  snprintf(path, sizeof path, "%s%s", GNX_FOLDER, file);
  if (clv__file_map_open(path, map, &error) == CLV_OK) return true;
  print_message("skipped: there is no file %s\n", path);
  return false;
}

static inline clv_status gnx_import(gnx *g, const char *text, size_t size_bytes, clv_error *error) {
  static const clv__import_column columns[] = {
      {"cpu_ms", "cpu", 0, 4, true}, {"gpu_ms", "gpu", 0, 4, true}, {"npu_ms", "npu", 4, 7, false}};
  return clv__tables_import(&g->tables, g->chain.layer, columns, 3, text, size_bytes, "profile", error);
}

/* Makes the machine with the measured tables and synthetic points. Returns false if the data files do not exist. */
static inline bool gnx_open(gnx *g, const clv_allocator *allocator) {
  static const clv__synthetic_device devices[] = {{"cpu", 0, 4, 1e11}, {"gpu", 0, 4, 1e12}, {"npu", 4, 7, 2.5e11}};
  static const clv__synthetic_options options = {devices, 3, 400000, 40, 7, 1e10, 2e4, 2e10};
  clv__file_map map;
  clv_error error;
  if (!gnx_text("profile_185h_fused.csv", &map)) return false;
  gnx_chain(g, CLV__GNN_SAGE, 500, 500);
  gnx_machine(g);
  clv__tables_init(&g->tables, allocator);
  assert_ok(gnx_import(g, (const char *)map.data, map.size_bytes, &error), error);
  clv__file_map_close(&map);
  assert_ok(clv__tables_complete(&g->tables, &g->machine, &g->chain, &options, &error), error);
  assert_ok(clv__costs_init(&g->costs, &g->tables, &g->machine, &g->chain, &error), error);
  return true;
}

/* Makes devices of random speed, with tables of every block that each device can run, for sizes up to 100,000 rows. */
static inline void gnx_made(gnx *g, const clv_allocator *allocator, uint64_t seed) {
  clv_error error;
  uint64_t state = seed;
  gnx_chain(g, (clv__gnn_type)(seed % 3), 16 + 16 * (uint32_t)(seed % 4), 32);
  gnx_machine(g);
  clv__tables_init(&g->tables, allocator);
  for (uint32_t d = 0; d < g->machine.device_count; ++d) {
    const clv__machine_device *device = &g->machine.devices[d];
    double row = 20 + (double)(test_random(&state) % 200), edge = 2 + (double)(test_random(&state) % 40);
    for (uint32_t first = 0; first < g->chain.stage_count; ++first) {
      for (uint32_t last = first + 1; last <= g->chain.stage_count; ++last) {
        const clv__chain_block *block = &g->chain.blocks[first][last];
        bool runs = !block->is_empty;
        for (uint32_t s = first; s < last; ++s) runs = runs && (device->cannot >> g->chain.stages[s] & 1u) == 0;
        double some = 0.5 + (double)(test_random(&state) % 100) /
                                100; /* so that the time of a block is not the sum of the times of its stages */
        for (uint64_t n = 10; n <= 100000 && runs; n *= 10) {
          for (uint64_t density = 0; density <= (block->reads_edges ? 64 : 0); density += 16) {
            clv__table_point point = {.n = n, .m = n * density, .origin = CLV__SYNTHETIC};
            point.time_ns = 2000 + some * (last - first) * (row * (double)n + edge * (double)point.m) / 4;
            assert_ok(clv__tables_put(&g->tables, device->name, g->chain.layer, first, last, &point, &error), error);
          }
        }
      }
    }
    for (uint64_t bytes = 64; bytes <= (uint64_t)1 << 36; bytes *= 16) {
      clv__copy_point point = {.size_bytes = bytes, .time_ns = 1000 + (double)bytes * 0.02, .origin = CLV__SYNTHETIC};
      assert_ok(clv__tables_put_copy(&g->tables, CLV__TABLE_HOST, CLV__TABLE_HOST, &point, &error), error);
      point.time_ns *= 3;
      assert_ok(clv__tables_put_copy(&g->tables, CLV__TABLE_HOST, device->name, &point, &error), error);
      assert_ok(clv__tables_put_copy(&g->tables, device->name, CLV__TABLE_HOST, &point, &error), error);
    }
  }
  assert_ok(clv__tables_fit(&g->tables, &error), error);
  assert_ok(clv__costs_init(&g->costs, &g->tables, &g->machine, &g->chain, &error), error);
}

static inline void gnx_random_subgraph(uint64_t *state, clv__subgraph_sizes *subgraph) {
  *subgraph = (clv__subgraph_sizes){.owned = 2000 + test_random(state) % 8000, .halo = test_random(state) % 5000};
  subgraph->edges = subgraph->owned * (1 + test_random(state) % 12);
}

static inline void gnx_close(gnx *g) {
  clv__tables_finish(&g->tables);
}

/* Reads the sizes of the k subgraphs of a data set that was partitioned into k parts. Returns their number; 0 if the file does
 * not exist or lists none. */
static inline uint32_t gnx_subgraphs(const char *dataset, uint32_t k, clv__subgraph_sizes subgraphs[GNX_MOST_SUBGRAPHS]) {
  clv__file_map map;
  uint32_t count = 0;
  if (!gnx_text("metis_subgraphs.csv", &map)) return 0;
  for (size_t at = 0, end; at < map.size_bytes; at = end + 1) {
    char line[256], name[32];
    unsigned its_k, index;
    unsigned long long owned, halo, inner, boundary;
    for (end = at; end < map.size_bytes && map.data[end] != '\n';) ++end;
    snprintf(line, sizeof line, "%.*s", (int)(end - at), (const char *)map.data + at);
    if (sscanf(line, "%31[^,],%u,%u,%llu,%llu,%llu,%llu", name, &its_k, &index, &owned, &halo, &inner, &boundary) != 7) continue;
    if (strcmp(name, dataset) != 0 || its_k != k || count == GNX_MOST_SUBGRAPHS) continue;
    subgraphs[count++] = (clv__subgraph_sizes){.owned = owned, .halo = halo, .edges = inner + boundary};
  }
  clv__file_map_close(&map);
  return count;
}

#endif
