/* Reports a plan. Most data comes from the plan itself, so a plan from a file gives the same report as a new plan. How the graph
 * was partitioned is known only for a new plan, and reported if known. See report.h. */
#include "cli/gnn/report.h"

#include <math.h>
#include <string.h>

#include "base/files/file.h"
#include "cli/console.h"
#include "cli/json.h"
#include "report/gnn/html.h"
#include "report/label.h"
#include "report/table.h"

static json_t *ms(double ns) {
  return cli_json_real(1e-6 * ns);
}

static json_t *count(uint64_t number) {
  return json_integer((json_int_t)number);
}

static const clv__gnn_cut *cut_of(const cli_gnn_job *job, uint32_t k) {
  for (uint32_t c = 0; c < job->planning.cut_count; ++c) {
    if (job->planning.cuts[c].membership.k == k) return &job->planning.cuts[c];
  }
  return NULL;
}

/* ---- JSON ---- */

static json_t *device_json(const clv__gnn_plan *plan, const clv__gnn_plan_k *item, uint32_t d) {
  json_t *object = json_object();
  json_object_set_new(object, "device", cli_json_text(plan->machine.devices[d].name));
  json_object_set_new(object, "busy_ms", ms(item->busy_ns[d]));
  json_object_set_new(object, "idle_ms", ms(item->idle_ns[d]));
  json_object_set_new(object, "alone_ms", ms(item->single_ns[d]));
  return object;
}

static void overhead_json(const clv__gnn_overhead *overhead, json_t *object) {
  json_object_set_new(object, "halo_rows", count(overhead->halo_rows));
  json_object_set_new(object, "padding_rows", count(overhead->padding_rows));
  json_object_set_new(object, "padding_edges", count(overhead->padding_edges));
}

static json_t *k_json(const cli_gnn_job *job, const clv__gnn_plan_k *item) {
  const clv__gnn_plan *plan = job->plan;
  const clv__gnn_cut *cut = cut_of(job, item->k);
  bool has_plan = item->reason == NULL;
  json_t *object = json_object();
  json_object_set_new(object, "k", json_integer(item->k));
  json_object_set_new(object, "makespan_ms", has_plan ? ms(item->makespan_ns) : json_null());
  json_object_set_new(object, "lower_bound_ms", has_plan ? ms(item->bound_ns) : json_null());
  if (!has_plan) json_object_set_new(object, "reason", cli_json_text(item->reason));
  if (has_plan) {
    json_object_set_new(object, "gap", cli_json_real(clv__gnn_plan_k_gap(item)));
    json_object_set_new(object, "gain", cli_json_real(plan->best_single_ns / item->makespan_ns));
    json_object_set_new(object, "switches", json_integer(item->switches));
    overhead_json(&item->overhead, object);
    json_t *devices = json_array();
    for (uint32_t d = 0; d < plan->machine.device_count; ++d) json_array_append_new(devices, device_json(plan, item, d));
    json_object_set_new(object, "devices", devices);
  }
  if (cut != NULL) {
    json_object_set_new(object, "cut_edges", count(cut->cut_edges));
    json_object_set_new(object, "communication_volume", count(cut->communication_volume));
    json_object_set_new(object, "metis_seconds", cli_json_real(cut->membership.metis_seconds));
    json_object_set_new(object, "from_cache", json_boolean(cut->membership.from_cache));
  }
  return object;
}

static json_t *block_json(const clv__gnn_account *account, const clv__gnn_block_sum *sum) {
  const clv__stages *stages = &account->stages[sum->layer];
  json_t *object = json_object();
  json_object_set_new(object, "layer", json_integer(sum->layer));
  json_object_set_new(object, "cluster", json_integer(sum->cluster));
  json_object_set_new(object, "device", cli_json_text(account->plan->machine.devices[sum->device].name));
  json_object_set_new(object, "from", cli_json_text(clv__stage_name(stages->items[sum->first])));
  json_object_set_new(object, "to", cli_json_text(clv__stage_name(stages->items[sum->last - 1])));
  json_object_set_new(object, "tasks", json_integer(sum->tasks));
  json_object_set_new(object, "predicted_ms", ms(sum->predicted_ns));
  if (account->record != NULL) {
    json_object_set_new(object, "measured_ms", sum->has_run > 0 ? ms(sum->measured_ns) : json_null());
    json_object_set_new(object, "packing_ms", sum->has_run > 0 ? ms(sum->packing_ns) : json_null());
  }
  return object;
}

static json_t *merges_json(const clv__gnn_plan *plan, const clv__gnn_plan_layer *planned) {
  json_t *merged = json_array();
  for (uint32_t i = 0; i < planned->merge_count; ++i) {
    const clv__bucket_merge *merge = &planned->merges[i];
    json_t *object = json_object();
    json_object_set_new(object, "device", cli_json_text(plan->machine.devices[merge->device].name));
    json_object_set_new(object, "rows", count(merge->into.rows));
    json_object_set_new(object, "edges", count(merge->into.edges));
    json_object_set_new(object, "parts", json_integer(merge->parts));
    json_object_set_new(object, "padding_ms", ms(merge->added_ns));
    json_object_set_new(object, "compiling_ms", ms(merge->saved_ns));
    json_array_append_new(merged, object);
  }
  return merged;
}

static json_t *layer_json(const clv__gnn_account *account, uint32_t l) {
  const clv__gnn_plan_layer *planned = &account->plan->layers[l];
  const clv__gnn_layer_sum *sum = &account->layers[l];
  json_t *object = json_object(), *clusters = json_array();
  for (uint32_t c = 0; c < planned->cluster_count; ++c) {
    clv__text text;
    json_t *cluster = json_object();
    clv__text_init(&text, account->plan->arena.allocator);
    clv__pep_describe(&planned->peps[planned->sequence[planned->clusters[c].first]], &account->plan->machine, &text);
    json_object_set_new(cluster, "subgraphs", json_integer(planned->clusters[c].count));
    json_object_set_new(cluster, "pep", cli_json_text(text.failed ? NULL : text.data));
    json_array_append_new(clusters, cluster);
    clv__text_finish(&text);
  }
  json_object_set_new(object, "layer", json_integer(l));
  json_object_set_new(object, "predicted_ms", ms(sum->predicted_ns));
  json_object_set_new(object, "lower_bound_ms", ms(planned->bound_ns));
  if (account->record != NULL) json_object_set_new(object, "measured_ms", sum->has_run ? ms(sum->measured_ns) : json_null());
  json_object_set_new(object, "clusters", clusters);
  json_object_set_new(object, "merged", merges_json(account->plan, planned));
  return object;
}

static json_t *memory_json(const clv__gnn_account *account) {
  json_t *list = json_array();
  for (uint32_t d = 0; d < account->plan->machine.device_count; ++d) {
    const clv__gnn_plan_memory *memory = &account->plan->memory[d];
    if (memory->limit_bytes == 0) continue;
    json_t *object = json_object();
    json_object_set_new(object, "device", cli_json_text(account->plan->machine.devices[d].name));
    json_object_set_new(object, "limit_bytes", count(memory->limit_bytes));
    json_object_set_new(object, "planned_bytes", count(memory->taken_bytes));
    json_object_set_new(object, "least_bytes", count(memory->least_bytes));
    if (account->record != NULL) json_object_set_new(object, "taken_bytes", count(account->record->taken_bytes[d]));
    json_array_append_new(list, object);
  }
  return list;
}

static void record_json(const clv__gnn_account *account, json_t *root) {
  const clv__gnn_record *record = account->record;
  json_t *layers = json_array(), *devices = json_array();
  for (uint32_t l = 0; l < account->plan->layer_count; ++l) json_array_append_new(layers, ms(record->layer_ns[l]));
  for (uint32_t d = 0; d < account->plan->machine.device_count; ++d) {
    json_t *object = json_object();
    json_object_set_new(object, "device", cli_json_text(account->plan->machine.devices[d].name));
    json_object_set_new(object, "measured_busy_ms", ms(account->devices[d].measured_ns));
    json_array_append_new(devices, object);
  }
  json_object_set_new(root, "measured_ms", ms(record->measured_ns));
  json_object_set_new(root, "layers_ms", layers);
  json_object_set_new(root, "resumed_at_layer", json_integer(record->first_layer));
  json_object_set_new(root, "state_ms", ms(record->state_ns));
  json_object_set_new(root, "measured_devices", devices);
  json_object_set_new(root, "executables", json_integer(record->executables));
}

void cli_gnn_report_json(const cli_gnn_job *job, const clv__gnn_account *account, json_t *root) {
  const clv__gnn_plan *plan = job->plan;
  json_t *per_k = json_array(), *layers = json_array(), *blocks = json_array();
  bool has_single = isfinite(plan->best_single_ns);
  for (uint32_t i = 0; i < plan->per_k_count; ++i) json_array_append_new(per_k, k_json(job, &plan->per_k[i]));
  for (uint32_t l = 0; l < plan->layer_count; ++l) json_array_append_new(layers, layer_json(account, l));
  for (uint32_t b = 0; b < account->block_count; ++b) json_array_append_new(blocks, block_json(account, &account->blocks[b]));
  json_object_set_new(root, "per_k", per_k);
  json_object_set_new(root, "k", json_integer(plan->k));
  json_object_set_new(root, "makespan_ms", ms(plan->makespan_ns));
  json_object_set_new(root, "predicted_run", cli_json_text("warm"));
  json_object_set_new(root, "lower_bound_ms", ms(plan->bound_ns));
  json_object_set_new(root, "gap", cli_json_real(clv__gnn_plan_gap(plan)));
  json_object_set_new(root, "best_single_device_ms", ms(plan->best_single_ns));
  json_object_set_new(root, "best_single_device", has_single ? cli_json_text(plan->best_single_device) : json_null());
  json_object_set_new(root, "gain", has_single ? cli_json_real(plan->best_single_ns / plan->makespan_ns) : json_null());
  json_object_set_new(root, "tables", cli_json_text(clv__table_origin_name(plan->origin)));
  json_object_set_new(root, "why", cli_json_text(plan->why));
  json_object_set_new(root, "by_layer", layers);
  json_object_set_new(root, "memory", memory_json(account));
  json_object_set_new(root, "blocks", blocks);
  json_object_set_new(root, "clusters", json_integer(account->cluster_count));
  json_object_set_new(root, "switches", json_integer(account->switches));
  overhead_json(&account->overhead, root);
  json_object_set_new(root, "rows", count(account->rows));
  json_object_set_new(root, "edges_worked_on", count(account->edges));
  json_object_set_new(root, "load_ms", cli_json_real(job->load_ms));
  json_object_set_new(root, "cut_ms", cli_json_real(job->cut_ms));
  json_object_set_new(root, "plan_ms", cli_json_real(job->plan_ms));
  if (account->record != NULL) record_json(account, root);
}

/* ---- Text ---- */

static void finish_table(clv__table *table, bool bold, clv__text *text) {
  clv__table_write(table, 0, bold, text);
  clv__table_finish(table);
}

static void k_cells(const clv__gnn_plan *plan, const clv__gnn_plan_k *item, clv__table *table) {
  clv__table_cell(table, "%s", item->k == plan->k ? "*" : "");
  clv__table_cell(table, "%u", item->k);
  clv__table_cell(table, "%.3f", 1e-6 * item->makespan_ns);
  clv__table_cell(table, "%.3f", 1e-6 * item->bound_ns);
  clv__table_cell(table, "%.2f %%", 100 * clv__gnn_plan_k_gap(item));
  if (isfinite(plan->best_single_ns))
    clv__table_cell(table, "%.2f", plan->best_single_ns / item->makespan_ns);
  else
    clv__table_cell(table, "-");
  clv__table_cell(table, "%u", item->switches);
  clv__table_cell(table, "%llu", (unsigned long long)item->overhead.halo_rows);
  clv__table_cell(table, "%llu", (unsigned long long)item->overhead.padding_rows);
  clv__table_cell(table, "%llu", (unsigned long long)item->overhead.padding_edges);
  for (uint32_t d = 0; d < plan->machine.device_count; ++d)
    clv__table_cell(table, "%.0f %%", item->makespan_ns > 0 ? 100 * item->busy_ns[d] / item->makespan_ns : 0);
}

void cli_gnn_report_choice(const cli_gnn_job *job, clv__text *text) {
  static const char *const heads[] = {"",     "k",        "makespan, ms", "bound, ms",    "gap",
                                      "gain", "switches", "halo rows",    "padding rows", "padding edges"};
  enum { HEADS = sizeof heads / sizeof *heads };
  const clv__gnn_plan *plan = job->plan;
  char alignments[HEADS + CLV__PEP_DEVICES + 1] = "l";
  memset(alignments + 1, 'r', HEADS + plan->machine.device_count - 1);
  clv__table table;
  clv__table_init(&table, text->allocator, alignments, true);
  for (size_t i = 0; i < HEADS; ++i) clv__table_cell(&table, "%s", heads[i]);
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) clv__table_cell(&table, "%s busy", plan->machine.devices[d].name);
  for (uint32_t i = 0; i < plan->per_k_count; ++i) {
    if (plan->per_k[i].reason == NULL) k_cells(plan, &plan->per_k[i], &table);
  }
  finish_table(&table, job->cli->color_out, text);
  for (uint32_t i = 0; i < plan->per_k_count; ++i) {
    if (plan->per_k[i].reason != NULL)
      clv__text_append(text, "k = %u has no plan: %s\n", plan->per_k[i].k, plan->per_k[i].reason);
  }
  clv__text_append(text, "%s\n", plan->why);
  if (plan->origin != CLV__MEASURED) clv__text_append(text, "prices are from %s costs\n", clv__table_origin_name(plan->origin));
}

static void ratio_cell(double measured_ns, double predicted_ns, clv__table *table) {
  if (predicted_ns > 0)
    clv__table_cell(table, "%.2f", measured_ns / predicted_ns);
  else
    clv__table_cell(table, "-");
}

/* Reports which executables were merged, and the gain. */
static void append_merges(const clv__gnn_account *account, uint32_t l, clv__text *text) {
  const clv__gnn_plan_layer *planned = &account->plan->layers[l];
  for (uint32_t i = 0; i < planned->merge_count; ++i) {
    const clv__bucket_merge *merge = &planned->merges[i];
    char name[80];
    clv__gnn_block_name(&account->stages[l], merge->first, merge->last, name, sizeof name);
    clv__text_append(text,
                     "  %s, %s: the padded sizes %llu x %llu and %llu x %llu (rows x edges) share the executable for %llu x "
                     "%llu: padding %u parts adds ",
                     account->plan->machine.devices[merge->device].name, name, (unsigned long long)merge->from[0].rows,
                     (unsigned long long)merge->from[0].edges, (unsigned long long)merge->from[1].rows,
                     (unsigned long long)merge->from[1].edges, (unsigned long long)merge->into.rows,
                     (unsigned long long)merge->into.edges, merge->parts);
    clv__text_append(text, "%.3f ms, compiling one executable fewer saves %.3f ms\n", 1e-6 * merge->added_ns,
                     1e-6 * merge->saved_ns);
  }
}

static void append_layers(const clv__gnn_account *account, bool verbose, clv__text *text) {
  const clv__gnn_plan *plan = account->plan;
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    const clv__gnn_plan_layer *planned = &plan->layers[l];
    const clv__gnn_layer_sum *sum = &account->layers[l];
    clv__text_append(text, "layer %u: %.3f ms predicted", l, 1e-6 * sum->predicted_ns);
    if (account->record != NULL && sum->has_run)
      clv__text_append(text, ", %.3f ms measured", 1e-6 * sum->measured_ns);
    else if (account->record != NULL)
      clv__text_append(text, ", done in an earlier run");
    clv__text_append(text, "\n");
    for (uint32_t c = 0; c < planned->cluster_count; ++c) {
      clv__text_append(text, "  %4u of the subgraphs: ", planned->clusters[c].count);
      clv__pep_describe(&planned->peps[planned->sequence[planned->clusters[c].first]], &plan->machine, text);
      clv__text_append(text, "\n");
    }
    if (verbose) append_merges(account, l, text);
  }
}

static void append_blocks(const clv__gnn_account *account, bool bold, clv__text *text) {
  static const char *const heads[] = {
      "layer", "cluster", "device", "block", "tasks", "predicted, ms", "measured, ms", "measured/predicted", "packing, ms"};
  bool has_run = account->record != NULL;
  clv__table table;
  clv__table_init(&table, text->allocator, has_run ? "rrllrrrrr" : "rrllrr", true);
  for (size_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", heads[i]);
  for (uint32_t b = 0; b < account->block_count; ++b) {
    const clv__gnn_block_sum *sum = &account->blocks[b];
    char name[80];
    clv__gnn_block_name(&account->stages[sum->layer], sum->first, sum->last, name, sizeof name);
    clv__table_cell(&table, "%u", sum->layer);
    clv__table_cell(&table, "%u", sum->cluster);
    clv__table_cell(&table, "%s", account->plan->machine.devices[sum->device].name);
    clv__table_cell(&table, "%s", name);
    clv__table_cell(&table, "%u", sum->tasks);
    clv__table_cell(&table, "%.3f", 1e-6 * sum->predicted_ns);
    if (!has_run) continue;
    if (sum->has_run > 0) {
      clv__table_cell(&table, "%.3f", 1e-6 * sum->measured_ns);
      ratio_cell(sum->measured_ns, sum->predicted_ns, &table);
      clv__table_cell(&table, "%.3f", 1e-6 * sum->packing_ns);
    } else {
      for (int i = 0; i < 3; ++i) clv__table_cell(&table, "-");
    }
  }
  finish_table(&table, bold, text);
}

/* Reports the memory of the devices that have a limit. */
static void append_memory(const clv__gnn_account *account, clv__text *text) {
  char taken[CLV__LABEL_BYTES], planned[CLV__LABEL_BYTES], least[CLV__LABEL_BYTES], limit[CLV__LABEL_BYTES];
  for (uint32_t d = 0; d < account->plan->machine.device_count; ++d) {
    const clv__gnn_plan_memory *memory = &account->plan->memory[d];
    if (memory->limit_bytes == 0) continue;
    clv__text_append(text, "%s: the plan takes up to %s of %s of memory; its largest block needs %s",
                     account->plan->machine.devices[d].name, clv__label_size(memory->taken_bytes, planned),
                     clv__label_size(memory->limit_bytes, limit), clv__label_size(memory->least_bytes, least));
    if (account->record != NULL)
      clv__text_append(text, "; this run took %s", clv__label_size(account->record->taken_bytes[d], taken));
    clv__text_append(text, "\n");
  }
}

static double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

void cli_gnn_report_blocks(const cli_gnn_job *job, const clv__gnn_account *account, clv__text *text) {
  const clv__gnn_overhead *overhead = &account->overhead;
  append_layers(account, job->cli->verbose, text);
  append_blocks(account, job->cli->color_out, text);
  clv__text_append(text, "%u clusters, %u device switches", account->cluster_count, account->switches);
  if (account->record != NULL) clv__text_append(text, ", %u executables", account->record->executables);
  clv__text_append(
      text,
      "; %llu rows and %llu edges are processed; overhead: halo %llu rows (%.1f %%), padding %llu rows (%.1f %%) and %llu "
      "edges (%.1f %%)\n",
      (unsigned long long)account->rows, (unsigned long long)account->edges, (unsigned long long)overhead->halo_rows,
      share(overhead->halo_rows, account->rows), (unsigned long long)overhead->padding_rows,
      share(overhead->padding_rows, account->rows), (unsigned long long)overhead->padding_edges,
      share(overhead->padding_edges, account->edges));
  append_memory(account, text);
}

/* ---- Page ---- */

clv_status cli_gnn_report_html(const cli_gnn_job *job, const clv__gnn_account *account, clv_error *error) {
  const char *path = cli_text(job->cli, OPTION_HTML, NULL);
  clv__text text;
  if (path == NULL) return CLV_OK;
  clv__text_init(&text, job->cli->allocator);
  clv__report_gnn_html(account, &text);
  clv_status status =
      text.failed ? clv__error_memory(error, text.size_bytes) : clv__file_write(path, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status;
}
