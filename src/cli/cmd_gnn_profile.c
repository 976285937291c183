/* `cleave gnn profile`: measures what plans are priced with, or takes over what was measured elsewhere. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/console.h"
#include "cli/gnn_job.h"
#include "cli/json.h"
#include "gnn/measure.h"

enum { MOST_COLUMNS = 16 };

static const cli_option_id options[] = {CLI_GNN_JOB_OPTIONS, OPTION_OUTPUT, OPTION_RUNS, OPTION_IMPORT};

static bool tell(void *user_data, const char *device, uint32_t layer, uint32_t done, uint32_t of) {
  cli_progress(user_data, "measuring %s, layer %u: %u of %u", device, layer, done, of);
  return true;
}

/* The columns of the file's first line that end with "_ms" are of devices, each a whole layer. */
static clv_status find_columns(cli_gnn_job *job, const clv__file_map *map, clv__import_column *columns, uint32_t *count,
                               clv_error *error) {
  const char *at = (const char *)map->data, *end = memchr(at, '\n', map->size_bytes);
  *count = 0;
  if (end == NULL) end = at + map->size_bytes;
  while (at < end) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    size_t length = (size_t)((comma != NULL ? comma : end) - at);
    if (length > 0 && at[length - 1] == '\r') --length;
    if (length > 3 && memcmp(at + length - 3, "_ms", 3) == 0) {
      if (*count == MOST_COLUMNS)
        return clv__error_set(error, CLV_INVALID_MODEL, "more than %d columns of devices", MOST_COLUMNS);
      const char *column = clv__arena_string(&job->cli->arena, at, length);
      const char *device = clv__arena_string(&job->cli->arena, at, length - 3);
      if (column == NULL || device == NULL) return clv__error_memory(error, 2 * length);
      columns[(*count)++] = (clv__import_column){column, device, 0, 0, true};
    }
    at = comma != NULL ? comma + 1 : end;
  }
  return CLV_OK;
}

static clv_status import(cli_gnn_job *job, const char *path, clv_error *error) {
  clv__import_column columns[MOST_COLUMNS];
  clv__file_map map;
  uint32_t count;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = map.size_bytes > 0 ? find_columns(job, &map, columns, &count, error)
                                         : clv__error_set(error, CLV_INVALID_MODEL, "it is empty");
  for (uint32_t l = 0; status == CLV_OK && l < job->model->layer_count; ++l) {
    for (uint32_t c = 0; c < count; ++c) columns[c].last = job->planning.chains[l].stage_count;
    status = clv__tables_import(&job->tables, job->planning.chains[l].layer, columns, count, (const char *)map.data,
                                map.size_bytes, path, error);
  }
  clv__file_map_close(&map);
  if (status == CLV_OK) return clv__tables_fit(&job->tables, error);
  return strncmp(error->message, path, strlen(path)) == 0 ? status : clv__error_prefix(error, status, "%s", path);
}

static clv_status measure(cli_gnn_job *job, clv_error *error) {
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  how.runs = (uint32_t)cli_number(job->cli, OPTION_RUNS, how.runs);
  how.seed = cli_number(job->cli, OPTION_SEED, 0);
  how.progress = tell;
  how.user_data = job->cli;
  return clv__gnn_measure(&job->planning, &how, &job->tables, error);
}

static clv_status print(const cli_gnn_job *job, const char *path, clv_error *error) {
  const clv__tables *tables = &job->tables;
  if (job->cli->json) {
    json_t *root = json_object(), *list = json_array();
    for (uint32_t t = 0; t < tables->table_count; ++t) {
      json_t *object = json_object();
      json_object_set_new(object, "device", cli_json_text(tables->tables[t].device));
      json_object_set_new(object, "layer", cli_json_text(tables->tables[t].layer));
      json_object_set_new(object, "first", json_integer(tables->tables[t].first));
      json_object_set_new(object, "last", json_integer(tables->tables[t].last));
      json_object_set_new(object, "points", json_integer(tables->tables[t].point_count));
      json_object_set_new(object, "error", cli_json_real(tables->tables[t].time.error));
      json_array_append_new(list, object);
    }
    json_object_set_new(root, "file", cli_json_text(path));
    json_object_set_new(root, "tables", list);
    return cli_json_print(job->cli, root, error);
  }
  clv__text text;
  clv__text_init(&text, job->cli->allocator);
  clv__text_append(&text, "device       layer                          stages  points  error  worst  spread\n");
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    const clv__table *table = &tables->tables[t];
    clv__text_append(&text, "%-12s %-30s %3u-%-3u  %6u  ", table->device, table->layer, table->first, table->last,
                     table->point_count);
    if (table->time.is_good)
      clv__text_append(&text, "%4.0f %%  %3.0f %%  %4.0f %%\n", 100 * table->time.error, 100 * table->time.worst_error,
                       100 * table->time.spread);
    else
      clv__text_append(&text, "no fit\n");
  }
  return cli_print(job->cli, &text, error);
}

static clv_status profile(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL), *csv = cli_text(cli, OPTION_IMPORT, NULL);
  CLV__TRY(cli_gnn_cut(job, "1,2,4,8", error));
  clv__tables_init(&job->tables, clv__context_allocator(cli->context));
  if (path != NULL && access(path, F_OK) == 0) { /* extended */
    clv_status status = clv__tables_read(&job->tables, path, error);
    if (status != CLV_OK)
      return clv__error_prefix(error, status, "'%s' is there and cannot be extended: name another file", path);
  }
  CLV__TRY(csv != NULL ? import(job, csv, error) : measure(job, error));
  if (path != NULL) CLV__TRY(clv__tables_write(&job->tables, path, error));
  return print(job, path, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_gnn_job job;
  clv_status status = cli_gnn_load(cli, &job, error);
  if (status == CLV_OK) status = profile(&job, error);
  cli_gnn_job_finish(&job);
  return status;
}

const cli_gnn_verb cli_gnn_verb_profile = {"profile", "", options, sizeof options / sizeof *options, execute};
