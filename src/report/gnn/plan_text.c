/* A plan of GNN inference as text, and next to it the results of a run. */
#include <math.h>
#include <string.h>

#include "report/gnn/own.h"
#include "report/label.h"
#include "report/table.h"

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

void clv__report_gnn_choice(const clv__gnn_plan *plan, bool bold, clv__text *text) {
  static const char *const heads[] = {"",     "k",        "makespan, ms", "bound, ms",    "gap",
                                      "gain", "switches", "halo rows",    "padding rows", "padding edges"};
  enum { HEADS = sizeof heads / sizeof *heads };
  char alignments[HEADS + CLV__PEP_DEVICES + 1] = "l";
  memset(alignments + 1, 'r', HEADS + plan->machine.device_count - 1);
  clv__table table;
  clv__table_init(&table, text->allocator, alignments, true);
  for (size_t i = 0; i < HEADS; ++i) clv__table_cell(&table, "%s", heads[i]);
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) clv__table_cell(&table, "%s busy", plan->machine.devices[d].name);
  for (uint32_t i = 0; i < plan->per_k_count; ++i) {
    if (plan->per_k[i].reason == NULL) k_cells(plan, &plan->per_k[i], &table);
  }
  finish_table(&table, bold, text);
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

static void append_layers(const clv__gnn_account *account, bool detailed, clv__text *text) {
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
    if (detailed) append_merges(account, l, text);
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

void clv__report_gnn_blocks(const clv__gnn_account *account, bool detailed, bool bold, clv__text *text) {
  const clv__gnn_overhead *overhead = &account->overhead;
  append_layers(account, detailed, text);
  append_blocks(account, bold, text);
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
