/* Exports every block of random layers of each type as ONNX, for tests/python/test_gnn_blocks.py: `write_blocks DIR DIR2
 * SEED`. DIR/TYPE has the files with functions, DIR2/TYPE those with standard operators. Each type has two layers; a device
 * that accepts any sizes and one that needs fixed sizes have the same blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "gnn.h"
#include "gnn/export.h"

enum { FEATURES = 7, LAYERS = 2, ROWS = 24, EDGES = 60 };

/* Makes a plan of up to three blocks, which end before stage `first`, before stage `last`, and after the last of `stages`.
 * A block without stages is left out. */
static clv__pep pep_with(uint32_t first, uint32_t last, uint32_t stages, bool is_static) {
  const uint32_t ends[] = {0, first, last, stages};
  const clv__layer_sizes sizes = {ROWS, ROWS, EDGES};
  clv__pep pep = {.block_count = 0};
  for (int i = 0; i < 3; ++i) {
    if (ends[i] == ends[i + 1]) continue;
    clv__pep_block *block = &pep.blocks[pep.block_count++];
    *block = (clv__pep_block){.first = ends[i], .last = ends[i + 1], .part_count = 1};
    block->parts[0] = (clv__pep_part){.is_static = is_static, .to = CLV__PEP_SHARES, .sizes = sizes, .padded = sizes};
  }
  return pep;
}

static clv_status export_layer(const clv__gnn_planning *planning, uint32_t layer, const char *folders[2], clv_error *error) {
  uint32_t stages = planning->stages[layer].count, count;
  for (uint32_t first = 0; first < stages; ++first) {
    for (uint32_t last = first + 1; last <= stages; ++last) {
      for (int is_static = 0; is_static < 2; ++is_static) {
        const clv__pep pep = pep_with(first, last, stages, is_static != 0);
        clv__gnn_turn turns[LAYERS] = {{.pep = &pep}, {.pep = &pep}};
        const clv__gnn_turn *layers[LAYERS] = {&turns[0], &turns[1]};
        clv__machine machine = {.device_count = 1, .pad_step = 1, .queue_depth = 1};
        const clv__gnn_schedule schedule = {&machine, layer + 1, 1, layers};
        for (int f = 0; f < 2; ++f)
          CLV__TRY(clv__gnn_export(clv__allocator_default(), planning->stages, &schedule, folders[f], f == 1, &count, error));
      }
    }
  }
  return CLV_OK;
}

static clv_status export_type(clv__gnn_type type, const char *name, char **to, uint64_t seed, clv_error *error) {
  char paths[2][512];
  const char *folders[2] = {paths[0], paths[1]};
  clv__gnn_model *model = test_gnn_model(clv__allocator_default(), type, LAYERS, FEATURES, seed);
  clv__stages stages[LAYERS];
  clv__gnn_planning planning = {.model = model, .stages = stages};
  clv_status status = CLV_OK;
  clv__arena_init(&planning.arena, clv__allocator_default());
  for (int f = 0; f < 2; ++f) snprintf(paths[f], sizeof paths[f], "%s/%s", to[f], name);
  for (uint32_t i = 0; i < LAYERS; ++i) clv__stages_of(type, &model->layers[i], CLV_F32, &stages[i]);
  for (uint32_t i = 0; i < LAYERS && status == CLV_OK; ++i) status = export_layer(&planning, i, folders, error);
  clv__arena_finish(&planning.arena);
  clv__gnn_model_destroy(model);
  return status;
}

int main(int argc, char **argv) {
  static const char *const names[] = {[CLV__GNN_SAGE] = "graphsage", [CLV__GNN_GCN] = "gcn", [CLV__GNN_GAT] = "gat"};
  clv_error error = {0};
  clv_status status = CLV_OK;
  if (argc != 4) {
    fprintf(stderr, "usage: write_blocks DIR DIR2 SEED\n");
    return 2;
  }
  for (int f = 1; f < 3; ++f) mkdir(argv[f], 0777);
  for (int type = 0; type < 3 && status == CLV_OK; ++type)
    status = export_type((clv__gnn_type)type, names[type], argv + 1, strtoull(argv[3], NULL, 10), &error);
  if (status != CLV_OK) fprintf(stderr, "%s\n", error.message);
  return status == CLV_OK ? 0 : 1;
}
