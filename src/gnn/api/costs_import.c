/* Imports prices from CSV for every layer of a model: see cleave/gnn_costs.h. */
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "cleave/gnn_costs.h"
#include "gnn/api/costs.h"
#include "gnn/api/handles.h"

enum { MOST_COLUMNS = 16 };

typedef struct importing {
  clv__arena arena;
  uint32_t count;
  clv__import_column columns[MOST_COLUMNS];
  clv_error *error;
} importing;

/* Finds the columns of devices: those whose name in the file's header line ends with "_ms". */
static clv_status find_columns(importing *in, const clv__file_map *map) {
  const char *at = (const char *)map->data, *end = memchr(at, '\n', map->size_bytes);
  if (end == NULL) end = at + map->size_bytes;
  while (at < end) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    size_t length = (size_t)((comma != NULL ? comma : end) - at);
    if (length > 0 && at[length - 1] == '\r') --length;
    if (length > 3 && memcmp(at + length - 3, "_ms", 3) == 0) {
      if (in->count == MOST_COLUMNS)
        return clv__error_set(in->error, CLV_INVALID_MODEL, "more than %d device columns", MOST_COLUMNS);
      const char *column = clv__arena_string(&in->arena, at, length);
      const char *device = clv__arena_string(&in->arena, at, length - 3);
      if (column == NULL || device == NULL) return clv__error_memory(in->error, 2 * length);
      in->columns[in->count++] = (clv__import_column){column, device, 0, 0, true};
    }
    at = comma != NULL ? comma + 1 : end;
  }
  if (in->count > 0) return CLV_OK;
  return clv__error_set(in->error, CLV_INVALID_MODEL, "line 1: no device column; expected n_nodes,n_edges,DEVICE_ms,...,status");
}

static clv_status take_range(importing *in, const clv_gnn_stage_range *range, uint32_t index) {
  if (range->device == NULL || range->first >= range->end)
    return clv__error_set(in->error, CLV_INVALID_ARGUMENT,
                          "ranges[%u] is not a device with its first stage and the one after its last", index);
  for (uint32_t c = 0; c < in->count; ++c) {
    if (strcmp(in->columns[c].device, range->device) != 0) continue;
    in->columns[c].first = range->first;
    in->columns[c].last = range->end;
    return CLV_OK;
  }
  return clv__error_set(in->error, CLV_INVALID_ARGUMENT, "the imported file has no column for device '%s'", range->device);
}

/* Copies the columns for one layer: completes their stages, and sets whether the times depend on the number of edges. */
static clv_status place_columns(const importing *in, uint32_t layer, const clv__chain *chain, clv__import_column *placed) {
  for (uint32_t c = 0; c < in->count; ++c) {
    placed[c] = in->columns[c];
    if (placed[c].last == 0) placed[c].last = chain->stage_count;
    if (placed[c].last > chain->stage_count)
      return clv__error_set(in->error, CLV_INVALID_ARGUMENT, "%s: layer %u has %u stages, so %u-%u is out of range",
                            placed[c].device, layer, chain->stage_count, placed[c].first, placed[c].last);
    placed[c].has_edges = chain->blocks[placed[c].first][placed[c].last].reads_edges;
  }
  return CLV_OK;
}

static clv_status import_layers(importing *in, const clv_gnn_model *model, const clv__file_map *map, const char *path,
                                clv__tables *tables) {
  clv__import_column placed[MOST_COLUMNS];
  clv__chain chain;
  for (uint32_t l = 0; l < model->model->layer_count; ++l) {
    clv__chain_of(&model->stages[l], &chain);
    CLV__TRY(place_columns(in, l, &chain, placed));
    CLV__TRY(
        clv__tables_import(tables, chain.layer, placed, in->count, (const char *)map->data, map->size_bytes, path, in->error));
  }
  return CLV_OK;
}

clv_status clv_gnn_costs_import(clv_gnn_costs *costs, const clv_gnn_model *model, const char *path,
                                const clv_gnn_stage_range *ranges, uint32_t range_count, clv_error *error) {
  clv_error own; /* its text says whether the message already begins with the path */
  clv__file_map map;
  CLV__TRY(clv__argument_check(costs, "costs", error));
  CLV__TRY(clv__argument_check(model, "model", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  if (range_count > 0) CLV__TRY(clv__argument_check(ranges, "ranges", error));
  CLV__TRY(clv__file_map_open(path, &map, error));
  importing in = {.error = error != NULL ? error : &own};
  clv__arena_init(&in.arena, costs->allocator);
  clv_status status =
      map.size_bytes > 0 ? find_columns(&in, &map) : clv__error_set(in.error, CLV_INVALID_MODEL, "the file is empty");
  for (uint32_t i = 0; status == CLV_OK && i < range_count; ++i) status = take_range(&in, &ranges[i], i);
  if (status == CLV_OK) status = import_layers(&in, model, &map, path, &costs->tables);
  clv__file_map_close(&map);
  clv__arena_finish(&in.arena);
  clv_status fitted = clv__tables_fit(&costs->tables, status == CLV_OK ? error : NULL);
  if (status == CLV_OK) return fitted;
  if (status == CLV_INVALID_ARGUMENT || strncmp(in.error->message, path, strlen(path)) == 0) return status;
  return clv__error_prefix(error, status, "%s", path);
}
