/* Keeps the rows between two layers in a file during a run. The file has a magic number, a key, the number of completed
 * layers, the count of numbers, their hash, and the numbers. The key hashes graph, features, model, subgraphs and plan: only
 * the same run can use the state. */
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/file_writer.h"
#include "gnn/run/own.h"

typedef struct header {
  char magic[8];
  clv__hash key;
  uint32_t layers_done, reserved;
  uint64_t count;
  clv__hash content;
} header;

static const char magic[8] = "CLVGNNS1";

static void hash_pep(clv__hasher *hasher, const clv__pep *pep) {
  clv__hasher_u64(hasher, pep->block_count);
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    const clv__pep_block *block = &pep->blocks[b];
    const uint64_t numbers[] = {block->first, block->last, block->part_count};
    clv__hasher_update(hasher, numbers, sizeof numbers);
    for (uint32_t i = 0; i < block->part_count; ++i) {
      const uint64_t part[] = {block->parts[i].device, block->parts[i].from, block->parts[i].to};
      clv__hasher_update(hasher, part, sizeof part);
    }
  }
}

void clv__run_state_key(const clv__gnn_run *run, const clv_tensor *features, clv__hash *key) {
  const clv__gnn_schedule *schedule = run->schedule;
  clv__hasher hasher;
  clv__hash hash;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, &run->graph->hash, sizeof run->graph->hash);
  clv__hasher_tensor(&hasher, features);
  clv__gnn_model_hash(run->model, &hash);
  clv__hasher_update(&hasher, &hash, sizeof hash);
  /* Includes the mapping of vertices to rows in the hash. */
  clv__hash_bytes(run->rows, (size_t)run->vertex_count * sizeof *run->rows, &hash);
  clv__hasher_update(&hasher, &hash, sizeof hash);
  clv__hasher_u64(&hasher, schedule->k);
  for (uint32_t d = 0; d < schedule->machine->device_count; ++d) clv__hasher_string(&hasher, schedule->machine->devices[d].name);
  for (uint32_t i = 0; i < schedule->layer_count; ++i) {
    for (uint32_t p = 0; p < schedule->k; ++p) {
      clv__hasher_u64(&hasher, schedule->layers[i][p].subgraph);
      hash_pep(&hasher, schedule->layers[i][p].pep);
    }
  }
  clv__hasher_finish(&hasher, key);
}

clv_status clv__run_state_write(const char *path, const clv__hash *key, uint32_t layers_done, const float *rows, size_t count,
                                clv_error *error) {
  header head = {.key = *key, .layers_done = layers_done, .count = count};
  clv__file_writer writer;
  memcpy(head.magic, magic, sizeof magic);
  clv__hash_bytes(rows, count * sizeof *rows, &head.content);
  clv_status status = clv__file_writer_open(path, &writer, error);
  if (status == CLV_OK) status = clv__file_writer_append(&writer, &head, sizeof head, error);
  if (status == CLV_OK) status = clv__file_writer_append(&writer, rows, count * sizeof *rows, error);
  if (status == CLV_OK) status = clv__file_writer_commit(&writer, error);
  clv__file_writer_abandon(&writer);
  if (status == CLV_OK) return CLV_OK;
  return clv__error_prefix(error, status, "saving the rows after layer %u", layers_done - 1);
}

static clv_status refuse(const char *path, const char *why, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: %s; run without --resume to start again", path, why);
}

clv_status clv__run_state_parse(const clv__gnn_run *run, const char *path, const void *data, size_t size_bytes,
                                const clv__hash *key, uint32_t *layers_done, float *rows, clv_error *error) {
  header head;
  clv__hash content;
  *layers_done = 0;
  if (size_bytes < sizeof head) return refuse(path, "too short to be the state of a run", error);
  const uint8_t *kept = (const uint8_t *)data + sizeof head;
  memcpy(&head, data, sizeof head);
  if (memcmp(head.magic, magic, sizeof magic) != 0) return refuse(path, "not the state of a run", error);
  if (memcmp(&head.key, key, sizeof *key) != 0) return refuse(path, "it belongs to another graph, model or plan", error);
  if (head.layers_done == 0 || head.layers_done >= run->schedule->layer_count) return refuse(path, "it is damaged", error);
  uint64_t count = (uint64_t)run->vertex_count * clv__gnn_layer_width(&run->model->layers[head.layers_done - 1]);
  if (head.count != count || size_bytes - sizeof head != count * sizeof *rows) return refuse(path, "it is damaged", error);
  clv__hash_bytes(kept, (size_t)count * sizeof *rows, &content);
  if (memcmp(&content, &head.content, sizeof content) != 0) return refuse(path, "its rows are damaged", error);
  if (count > 0) memcpy(rows, kept, (size_t)count * sizeof *rows);
  *layers_done = head.layers_done;
  return CLV_OK;
}

clv_status clv__run_state_read(const clv__gnn_run *run, const char *path, const clv__hash *key, uint32_t *layers_done,
                               float *rows, clv_error *error) {
  clv__file_map map;
  *layers_done = 0;
  clv_status status = clv__file_map_open(path, &map, error);
  if (status == CLV_NOT_FOUND) {
    clv__error_clear(error);
    return CLV_OK;
  }
  if (status != CLV_OK) return status;
  status = clv__run_state_parse(run, path, map.data, map.size_bytes, key, layers_done, rows, error);
  clv__file_map_close(&map);
  return status;
}
