/* `cleave gnn profile`: measures the costs from which plans are priced, or imports costs measured elsewhere. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "cli/console.h"
#include "cli/gnn/job.h"
#include "cli/json.h"
#include "gnn/measure/measure.h"
#include "report/label.h"

enum { MOST_COLUMNS = 16, LIMIT_S = 60 };

static const cli_gnn_option options[] = {
    CLI_GNN_JOB_OPTIONS,
    {OPTION_IMPORT, NULL, NULL},
    {OPTION_STAGES, NULL, NULL},
    {OPTION_RUNS, "how often to measure each block, size and copy; the median is used", "5"},
    {OPTION_SECONDS, NULL, NULL},
    {OPTION_OUTPUT, "write the costs, for --profile of plan and run; an existing profile is extended", NULL},
};

static bool show_progress(void *user_data, const clv__gnn_measure_progress *at) {
  char left[64] = "";
  if (at->left_s >= 120)
    snprintf(left, sizeof left, ", about %.0f min left", at->left_s / 60);
  else if (at->left_s >= 0)
    snprintf(left, sizeof left, ", about %.0f s left", at->left_s);
  cli_progress(user_data, "measuring %s, layer %u: %u of %u%s", at->device, at->layer, at->done, at->of, left);
  return true;
}

/* Finds the columns of devices: those whose name in the file's header line ends with "_ms". */
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
      if (*count == MOST_COLUMNS) return clv__error_set(error, CLV_INVALID_MODEL, "more than %d device columns", MOST_COLUMNS);
      const char *column = clv__arena_string(&job->cli->arena, at, length);
      const char *device = clv__arena_string(&job->cli->arena, at, length - 3);
      if (column == NULL || device == NULL) return clv__error_memory(error, 2 * length);
      columns[(*count)++] = (clv__import_column){column, device, 0, 0, true};
    }
    at = comma != NULL ? comma + 1 : end;
  }
  if (*count == 0)
    return clv__error_set(error, CLV_INVALID_MODEL, "line 1: no device column; expected n_nodes,n_edges,DEVICE_ms,...,status");
  return CLV_OK;
}

/* Parses --stages: "npu=4-7" sets the stages that the column of the device npu covers. */
static clv_status take_stages(cli_gnn_job *job, const char *text, clv__import_column *columns, uint32_t count, clv_error *error) {
  size_t length = strcspn(text, "=");
  unsigned first, last;
  int used = 0;
  if (sscanf(text + length, "=%3u-%3u%n", &first, &last, &used) != 2 || text[length + (size_t)used] != '\0' || first >= last)
    return cli_usage(job->cli, error, "option '--stages': '%s' is not DEVICE=FIRST-LAST with FIRST below LAST, such as npu=4-7",
                     text);
  for (uint32_t c = 0; c < count; ++c) {
    if (strlen(columns[c].device) != length || strncmp(columns[c].device, text, length) != 0) continue;
    columns[c].first = first, columns[c].last = last;
    return CLV_OK;
  }
  return cli_usage(job->cli, error, "option '--stages': the imported file has no column for device '%.*s'", (int)length, text);
}

/* Copies the columns for one layer: completes their stages, and sets whether the times depend on the number of edges. */
static clv_status place_columns(const cli_gnn_job *job, uint32_t layer, const clv__import_column *columns, uint32_t count,
                                clv__import_column *placed, clv_error *error) {
  const clv__chain *chain = &job->planning.chains[layer];
  for (uint32_t c = 0; c < count; ++c) {
    placed[c] = columns[c];
    if (placed[c].last == 0) placed[c].last = chain->stage_count;
    if (placed[c].last > chain->stage_count)
      return cli_usage(job->cli, error, "option '--stages': %s: layer %u has %u stages, so %u-%u is out of range",
                       placed[c].device, layer, chain->stage_count, placed[c].first, placed[c].last);
    placed[c].has_edges = chain->blocks[placed[c].first][placed[c].last].reads_edges;
  }
  return CLV_OK;
}

static clv_status import(cli_gnn_job *job, const char *path, clv_error *error) {
  const cli_given *stages = &job->cli->options->given[OPTION_STAGES];
  clv__import_column columns[MOST_COLUMNS], placed[MOST_COLUMNS];
  clv__file_map map;
  uint32_t count;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = map.size_bytes > 0 ? find_columns(job, &map, columns, &count, error)
                                         : clv__error_set(error, CLV_INVALID_MODEL, "the file is empty");
  for (uint32_t i = 0; status == CLV_OK && i < stages->count; ++i)
    status = take_stages(job, stages->values[i], columns, count, error);
  for (uint32_t l = 0; status == CLV_OK && l < job->model->layer_count; ++l) {
    status = place_columns(job, l, columns, count, placed, error);
    if (status == CLV_OK)
      status = clv__tables_import(&job->tables, job->planning.chains[l].layer, placed, count, (const char *)map.data,
                                  map.size_bytes, path, error);
  }
  clv__file_map_close(&map);
  if (status == CLV_OK) return clv__tables_fit(&job->tables, error);
  if (job->cli->exit_status == CLI_EXIT_USAGE) return status;
  return strncmp(error->message, path, strlen(path)) == 0 ? status : clv__error_prefix(error, status, "%s", path);
}

/* Prints notes about blocks that were left out, and about blocks whose largest sizes were not measured. */
static void tell_left_out(const cli_gnn_job *job, const clv__gnn_measured *measured) {
  if (measured->needless > 0 && job->cli->verbose)
    cli_note(job->cli,
             "%u of %u blocks were left out: they take longer than their whole layer on the same device, so no plan needs them",
             measured->needless, measured->blocks);
  if (measured->cut_off > 0)
    cli_note(job->cli,
             "no time was left for the largest sizes of %u of %u blocks; --seconds %.0f would measure more of these sizes",
             measured->cut_off, measured->blocks, 4 * cli_real(job->cli, OPTION_SECONDS, LIMIT_S));
}

static clv_status measure(cli_gnn_job *job, bool only_copies, clv__gnn_measured *measured, clv_error *error) {
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  how.runs = (uint32_t)cli_number(job->cli, OPTION_RUNS, how.runs);
  how.seed = cli_number(job->cli, OPTION_SEED, 0);
  how.only_copies = only_copies;
  how.limit_s = cli_real(job->cli, OPTION_SECONDS, LIMIT_S);
  how.progress = show_progress;
  how.user_data = job->cli;
  return clv__gnn_measure(&job->planning, &how, &job->tables, measured, error);
}

static json_t *overheads_json(const clv__tables *tables) {
  json_t *list = json_array();
  for (uint32_t o = 0; o < tables->overhead_count; ++o) {
    const clv__table_overhead *overhead = &tables->overheads[o];
    json_t *object = json_object();
    json_object_set_new(object, "kind", cli_json_text(clv__overhead_name(overhead->kind)));
    json_object_set_new(object, "device", overhead->device[0] != '\0' ? cli_json_text(overhead->device) : json_null());
    json_object_set_new(object, "time_ms", cli_json_real(1e-6 * overhead->time_ns));
    json_object_set_new(object, "spread_ms", cli_json_real(1e-6 * overhead->spread_ns));
    json_array_append_new(list, object);
  }
  return list;
}

static clv_status print(const cli_gnn_job *job, const char *path, const clv__gnn_measured *measured, clv_error *error) {
  const clv__tables *tables = &job->tables;
  if (job->cli->json) {
    json_t *root = json_object(), *list = json_array();
    char reason[240];
    for (uint32_t t = 0; t < tables->table_count; ++t) {
      json_t *object = json_object();
      json_object_set_new(object, "device", cli_json_text(tables->tables[t].device));
      json_object_set_new(object, "layer", cli_json_text(tables->tables[t].layer));
      json_object_set_new(object, "first", json_integer(tables->tables[t].first));
      json_object_set_new(object, "last", json_integer(tables->tables[t].last));
      json_object_set_new(object, "points", json_integer(tables->tables[t].point_count));
      json_object_set_new(object, "error", cli_json_real(tables->tables[t].time.error));
      clv__table_fit_reason(&tables->tables[t], reason, sizeof reason);
      json_object_set_new(object, "reason", reason[0] != '\0' ? cli_json_text(reason) : json_null());
      json_array_append_new(list, object);
    }
    json_object_set_new(root, "file", cli_json_text(path));
    json_object_set_new(root, "tables", list);
    json_object_set_new(root, "blocks", json_integer(measured->blocks));
    json_object_set_new(root, "needless_blocks", json_integer(measured->needless));
    json_object_set_new(root, "cut_off_blocks", json_integer(measured->cut_off));
    json_object_set_new(root, "overheads", overheads_json(tables));
    return cli_json_print(job->cli, root, error);
  }
  clv__text text;
  char taken[CLV__LABEL_BYTES], spread[CLV__LABEL_BYTES];
  clv__text_init(&text, job->cli->allocator);
  char reason[240];
  clv__text_append(&text, "device       layer                          stages  points  error  worst  spread\n");
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    const clv__block_table *table = &tables->tables[t];
    clv__text_append(&text, "%-12s %-30s %3u-%-3u  %6u  ", table->device, table->layer, table->first, table->last,
                     table->point_count);
    if (table->time.is_good)
      clv__text_append(&text, "%4.0f %%  %3.0f %%  %4.0f %%\n", 100 * table->time.error, 100 * table->time.worst_error,
                       100 * table->time.spread);
    else
      clv__text_append(&text, "no fit\n");
    clv__table_fit_reason(table, reason, sizeof reason);
    if (reason[0] != '\0') clv__text_append(&text, "    %s\n", reason);
  }
  for (uint32_t o = 0; o < tables->overhead_count; ++o) {
    const clv__table_overhead *overhead = &tables->overheads[o];
    clv__text_append(&text, "%s%s%s: %s, spread %s\n", clv__overhead_name(overhead->kind),
                     overhead->device[0] != '\0' ? " on " : "", overhead->device,
                     clv__label_time((uint64_t)overhead->time_ns, taken), clv__label_time((uint64_t)overhead->spread_ns, spread));
  }
  clv__text_append(
      &text,
      "'stages': the first stage, and the one after the last. 'points': the number of measured sizes. 'error' and 'worst': the "
      "median and the largest error of the fit, at sizes that were left out of it. 'spread': the variation of repeated "
      "measurements.\n"
      "Plans do not use blocks with 'no fit'.\n"
      "'merge': joining the parts of a block that devices share. 'switch': a device's change to another executable. "
      "'exchange': ending a layer on all devices and starting the next.\n");
  if (path != NULL) {
    clv__text_append(&text, "Written to ");
    clv__label_name(&text, path);
    clv__text_append(&text, ": use it with 'cleave gnn plan --profile'.\n");
  }
  return cli_print(job->cli, &text, error);
}

static clv_status profile(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL), *csv = cli_text(cli, OPTION_IMPORT, NULL);
  clv__gnn_measured measured;
  if (csv == NULL && cli_is_given(cli, OPTION_STAGES))
    return cli_usage(cli, error, "option '--stages' describes the file of --import, which is not given");
  if (path == NULL) cli_note(cli, "the costs are not saved: give -o FILE to write them");
  CLV__TRY(cli_gnn_cut(job, error));
  clv__tables_init(&job->tables, clv__context_allocator(cli->context));
  if (path != NULL && access(path, F_OK) == 0) { /* extend the existing file */
    clv_status status = clv__tables_read(&job->tables, path, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "'%s' exists and cannot be extended: give another file", path);
    for (uint32_t d = 0; csv == NULL && d < job->planning.machine.device_count; ++d) {
      const clv__device *device = &job->devices->items[d];
      status = clv__tables_check_device(&job->tables, device->name, device->info.fingerprint, error);
      if (status != CLV_OK) return clv__error_prefix(error, status, "%s", path);
    }
  }
  if (csv != NULL) CLV__TRY(import(job, csv, error));
  /* Imported files contain no times of copies, so copies are measured in any case. */
  CLV__TRY(measure(job, csv != NULL, &measured, error));
  tell_left_out(job, &measured);
  if (path != NULL) CLV__TRY(clv__tables_write(&job->tables, path, error));
  return print(job, path, &measured, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_gnn_job job;
  clv_status status = cli_gnn_load(cli, &job, error);
  if (status == CLV_OK) status = profile(&job, error);
  cli_gnn_job_finish(&job);
  return status;
}

const cli_gnn_verb cli_gnn_verb_profile = {
    .name = "profile",
    .operands = "",
    .wanted = "--model FILE --graph FILE",
    .summary = "measure the costs that plans are based on",
    .description =
        "Measures the blocks of the model's layers that plans for these devices may contain, on the subgraphs of every k of\n"
        "--kset, and copies between devices. Plans are priced from these measurements alone. Between the measured sizes,\n"
        "prices are interpolated by fits, whose error is shown; beyond these sizes, there are no prices. Whole layers are\n"
        "measured first. Other blocks are skipped if they take longer than their whole layer. --import reads costs of\n"
        "blocks that were measured elsewhere; copies are still measured here.",
    .examples =
        "  cleave gnn profile --model sage.json --graph cora.npz --devices cpu,npu --kset 1,2,4..8 -o costs.json"
        "    # measure costs\n"
        "  cleave gnn profile --model sage.json --graph cora.npz --devices gpu,cpu --import measured.csv -o costs.json"
        "    # import costs that were measured elsewhere\n"
        "  cleave gnn profile --model sage.json --graph cora.npz --import measured.csv --stages cpu=0-4 --stages npu=4-7"
        "    # import costs of some stages only\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
