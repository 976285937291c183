/* Lists and names for programs with a command line: see cleave/program.h. */
#define _GNU_SOURCE /* memmem */
#include "cleave/program.h"
#include "cleave/graph_contents.h"

#include <string.h>
#include <sys/stat.h>

#include "base/environment.h"
#include "base/files/file.h"
#include "base/files/file_writer.h"
#include "base/files/temporaries.h"
#include "base/options.h"
#include "compile/folder.h"
#include "device/backends.h"
#include "formats/foreign.h"
#include "formats/irjson/irjson.h"
#include "place/place.h"

static const clv__strategy *strategy_at(uint32_t index) {
  for (uint32_t i = 0; clv__strategies[i] != NULL; ++i) {
    if (i == index) return clv__strategies[i];
  }
  return NULL;
}

const char *clv_strategy_name(uint32_t index) {
  const clv__strategy *strategy = strategy_at(index);
  return strategy != NULL ? strategy->name : NULL;
}

const char *clv_strategy_summary(uint32_t index) {
  const clv__strategy *strategy = strategy_at(index);
  return strategy != NULL ? strategy->summary : NULL;
}

bool clv_variable(uint32_t index, clv_variable_info *info) {
  clv_variable_info filled = {0};
  const bool exists = index < CLV__VARIABLE_COUNT;
  if (exists)
    filled = (clv_variable_info){
        .name = clv__variables[index].name, .values = clv__variables[index].values, .help = clv__variables[index].help};
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

bool clv_context_knows_device(clv_context *context, const char *name) {
  const char *rest;
  return context != NULL && name != NULL && clv__backends_find(clv__context_backends(context), name, &rest) != NULL;
}

const char *clv_devices_backend(const clv_devices *devices, uint32_t index) {
  if (index >= clv_devices_count(devices)) return NULL;
  const clv_backend *backend = devices->items[index].backend;
  return backend->name;
}

const char *clv_devices_left_out(const clv_devices *devices, uint32_t index, const char **reason) {
  const bool exists = devices != NULL && index < devices->left_out_count;
  if (reason != NULL) *reason = exists ? devices->left_out[index].reason : NULL;
  return exists ? devices->left_out[index].name : NULL;
}

/* ---- Files ---- */

static bool has_key(const clv__file_map *map, const char *quoted) {
  return memmem(map->data, map->size_bytes, quoted, strlen(quoted)) != NULL;
}

/* Distinguishes plan files from models in JSON by their keys: a model has "graph_inputs" and not "cleave_plan". Searches the text
 * for the quoted key, which cannot occur inside a JSON string, because quotes are escaped there. */
static bool is_plan(const clv__file_map *map) {
  return clv__irjson_recognise(map->data, map->size_bytes) &&
         (has_key(map, "\"cleave_plan\"") || !has_key(map, "\"graph_inputs\""));
}

clv_status clv_file_recognise(const char *path, clv_file_kind *kind, const char **other, clv_error *error) {
  struct stat info;
  clv__file_map map;
  if (path == NULL || kind == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "path and kind must not be NULL");
  *kind = CLV_FILE_MODEL;
  if (other != NULL) *other = NULL;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    *kind = clv__folder_recognise(path) ? CLV_FILE_COMPILED : CLV_FILE_FOLDER;
    if (*kind == CLV_FILE_FOLDER && other != NULL) *other = clv__foreign_folder(path);
    return CLV_OK;
  }
  CLV__TRY(clv__file_map_open(path, &map, error));
  if (is_plan(&map)) *kind = CLV_FILE_PLAN;
  clv__file_map_close(&map);
  return CLV_OK;
}

clv_status clv_file_check_writable(const char *path, clv_error *error) {
  struct stat about;
  clv__file_writer writer;
  if (path == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "path must not be NULL");
  /* the program at the other end of a special file would notice that it was opened */
  if (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return CLV_OK;
  clv_status status = clv__file_writer_open(path, &writer, error);
  clv__file_writer_abandon(&writer);
  return status;
}

void clv_temporaries_remove(void) {
  clv__temporaries_remove();
}

/* ---- Names of a graph: cleave/graph_contents.h ---- */

uint32_t clv_graph_node_count(const clv_graph *graph) {
  return graph->node_count;
}

bool clv_graph_node(const clv_graph *graph, uint32_t index, clv_graph_node_info *info) {
  clv_graph_node_info filled = {0};
  const bool exists = index < graph->node_count;
  if (exists) {
    const clv__node *node = &graph->nodes[index];
    filled = (clv_graph_node_info){.name = node->name,
                                   .op = node->op,
                                   .domain = node->domain,
                                   .source_name = node->source_name,
                                   .source_op = node->source_op};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

uint32_t clv_graph_value_count(const clv_graph *graph) {
  return graph->value_count;
}

bool clv_graph_value(const clv_graph *graph, uint32_t index, clv_graph_value_info *info) {
  clv_graph_value_info filled = {0};
  const bool exists = index < graph->value_count;
  if (exists) {
    const clv__value *value = &graph->values[index];
    filled = (clv_graph_value_info){.is_constant = value->is_unbound || value->type.data != NULL, .name = value->name};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}
