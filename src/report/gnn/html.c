/* See html.h. Writes the tables, which need no script. page/gnn.js draws the timeline from the data at the end. */
#include "report/gnn/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/label.h"
#include "report/page/html_data.h"
#include "report/page/html_json.h"
#include "report/page/page.h"
#include "report/picture/palette.h"

static const char *time_text(double ns, char label[CLV__LABEL_BYTES]) {
  return clv__label_time(ns > 0 && ns < 1e19 ? (uint64_t)ns : 0, label);
}

static double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

static void append_badge(const clv__gnn_plan *plan, uint32_t device, clv__text *text) {
  clv__text_append(text, "<span class=\"badge d%u\">", clv__palette_index(device));
  clv__label_xml(text, plan->machine.devices[device].name);
  clv__text_append(text, "</span>");
}

static void append_time_cell(double ns, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  clv__text_append(text, "<td class=\"number\">%s</td>", isfinite(ns) ? time_text(ns, label) : "–");
}

/* ---- Header ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void append_title(const clv__gnn_plan *plan, clv__text *text) {
  clv__text_append(text, "%s over %s on ", base_name(plan->model), base_name(plan->graph));
  for (uint32_t d = 0; d < plan->machine.device_count; ++d)
    clv__text_append(text, "%s%s",
                     d == 0                                ? ""
                     : d + 1 == plan->machine.device_count ? " and "
                                                           : ", ",
                     plan->machine.devices[d].name);
}

static void append_tiles(const clv__gnn_account *account, clv__text *text) {
  const clv__gnn_plan *plan = account->plan;
  char label[CLV__LABEL_BYTES], value[3 * CLV__LABEL_BYTES];
  clv__text_append(text, "<dl class=\"tiles\">\n");
  clv__html_tile(text, "predicted", time_text(plan->makespan_ns, label));
  if (account->record != NULL) {
    clv__html_tile(text, "measured", time_text(account->record->measured_ns, label));
    if (account->record->first_layer == 0 && plan->makespan_ns > 0) {
      snprintf(value, sizeof value, "×%.2f", account->record->measured_ns / plan->makespan_ns);
      clv__html_tile(text, "measured / predicted", value);
    }
  }
  clv__html_tile(text, "lower bound for this k", time_text(plan->bound_ns, label));
  clv__html_tile(text, "gap", clv__label_gap(clv__gnn_plan_gap(plan), label));
  snprintf(value, sizeof value, "%u", plan->k);
  clv__html_tile(text, "subgraphs (k)", value);
  if (isfinite(plan->best_single_ns) && plan->makespan_ns > 0) {
    snprintf(value, sizeof value, "×%.2f", plan->best_single_ns / plan->makespan_ns);
    clv__html_tile(text, "gain over the best device alone", value);
  }
  snprintf(value, sizeof value, "%u", account->switches);
  clv__html_tile(text, "switches between plans", value);
  snprintf(value, sizeof value, "%.1f %%", share((double)account->overhead.halo_rows, (double)account->rows));
  clv__html_tile(text, "halo rows", value);
  snprintf(value, sizeof value, "%.1f %%", share((double)account->overhead.padding_edges, (double)account->edges));
  clv__html_tile(text, "padding edges", value);
  clv__text_append(text, "</dl>\n");
}

static void append_header(const clv__gnn_account *account, const char *title, clv__text *text) {
  const clv__gnn_plan *plan = account->plan;
  clv__text_append(text, "<header>\n<h1>");
  clv__label_xml(text, title);
  clv__text_append(text, "</h1>\n<p class=\"soft why\">");
  clv__label_xml(text, plan->why);
  clv__text_append(text, "</p>\n");
  if (plan->origin != CLV__MEASURED)
    clv__text_append(text, "<p class=\"warning\">Predicted times are from %s costs, not from measured ones.</p>\n",
                     clv__table_origin_name(plan->origin));
  if (account->record != NULL && account->record->first_layer > 0)
    clv__text_append(text, "<p class=\"warning\">The run was resumed at layer %u, so earlier layers are not measured.</p>\n",
                     account->record->first_layer);
  append_tiles(account, text);
  clv__text_append(text, "</header>\n");
}

/* ---- Timeline ---- */

static void append_timeline(const clv__gnn_account *account, clv__text *text) {
  clv__text_append(text,
                   "<section aria-label=\"timeline\">\n"
                   "<div class=\"bar-of-tools\"><h2>Timeline</h2>\n"
                   "<button type=\"button\" id=\"farther\" aria-label=\"zoom out\">−</button>\n"
                   "<button type=\"button\" id=\"fit\">fit</button>\n"
                   "<button type=\"button\" id=\"closer\" aria-label=\"zoom in\">+</button></div>\n"
                   "<div class=\"gnn-timeline\"><div class=\"lane-names\"></div><div class=\"timeline\" role=\"group\" "
                   "aria-label=\"tasks of the devices\"></div></div>\n"
                   "<p class=\"soft\">One row per device: %s. Keys: <kbd>Tab</kbd> into the timeline, <kbd>←</kbd> <kbd>→</kbd> "
                   "along a row, <kbd>↑</kbd> <kbd>↓</kbd> between rows, <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom.</p>\n"
                   "<div class=\"details\" aria-live=\"polite\"><p class=\"soft\">Select a task in the timeline to see what it "
                   "does.</p></div>\n"
                   "</section>\n",
                   account->record != NULL
                       ? "predicted times above measured times; paler parts are gathering, padding and layout changes"
                       : "predicted times");
}

/* ---- Every k ---- */

static void append_load(const clv__gnn_plan_k *item, uint32_t d, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  double load = fmin(100, share(item->busy_ns[d], item->makespan_ns));
  clv__text_append(text,
                   "<td class=\"load\"><span class=\"track\"><span class=\"bar-fill d%u\" style=\"width: %.1f%%\"></span></span>"
                   "<span class=\"load-text\">%.0f %%",
                   clv__palette_index(d), load, load);
  clv__text_append(text, "<span class=\"soft\">, idle %s</span></span></td>", time_text(item->idle_ns[d], label));
}

static void append_k(const clv__gnn_plan *plan, const clv__gnn_plan_k *item, double most_ns, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  clv__text_append(text, "<tr%s><td class=\"number\">%u</td>", item->k == plan->k ? " class=\"this\"" : "", item->k);
  if (item->reason != NULL) {
    clv__text_append(text, "<td colspan=\"%u\" class=\"soft\">no plan: ", 9 + plan->machine.device_count);
    clv__label_xml(text, item->reason);
    clv__text_append(text, "</td></tr>\n");
    return;
  }
  append_time_cell(item->makespan_ns, text);
  clv__text_append(text,
                   "<td class=\"meter-cell\"><span class=\"bound-meter\"><span class=\"meter\" style=\"width: %.1f%%\"></span>"
                   "<span class=\"bound\" style=\"left: %.1f%%\"></span></span></td>",
                   share(item->makespan_ns, most_ns), share(item->bound_ns, most_ns));
  append_time_cell(item->bound_ns, text);
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_gap(clv__gnn_plan_k_gap(item), label));
  if (isfinite(plan->best_single_ns) && item->makespan_ns > 0)
    clv__text_append(text, "<td class=\"number\">×%.2f</td>", plan->best_single_ns / item->makespan_ns);
  else
    clv__text_append(text, "<td class=\"number\">–</td>");
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) append_load(item, d, text);
  clv__text_append(text, "<td class=\"number\">%u</td>", item->switches);
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_grouped(item->overhead.halo_rows, label));
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_grouped(item->overhead.padding_rows, label));
  clv__text_append(text, "<td class=\"number\">%s</td></tr>\n", clv__label_grouped(item->overhead.padding_edges, label));
}

static void append_per_k(const clv__gnn_plan *plan, clv__text *text) {
  double most_ns = 0;
  for (uint32_t i = 0; i < plan->per_k_count; ++i) {
    if (plan->per_k[i].reason == NULL) most_ns = fmax(most_ns, plan->per_k[i].makespan_ns);
  }
  clv__text_append(text,
                   "<section aria-label=\"every k\" class=\"per-k\">\n"
                   "<div class=\"bar-of-tools\"><h2>Every number of subgraphs (k)</h2></div>\n"
                   "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table of every k\"><table>\n"
                   "<thead><tr><th class=\"number\">k</th><th class=\"number\">makespan</th><th></th><th class=\"number\">lower "
                   "bound</th><th class=\"number\">gap</th><th class=\"number\">gain</th>");
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    clv__text_append(text, "<th>");
    append_badge(plan, d, text);
    clv__text_append(text, "</th>");
  }
  clv__text_append(text,
                   "<th class=\"number\">switches</th><th class=\"number\">halo rows</th><th class=\"number\">padding "
                   "rows</th><th class=\"number\">padding edges</th></tr></thead>\n<tbody>\n");
  for (uint32_t i = 0; i < plan->per_k_count; ++i) append_k(plan, &plan->per_k[i], most_ns, text);
  clv__text_append(text,
                   "</tbody></table></div>\n"
                   "<p class=\"soft\">'gain' is the least makespan of a single device, for any k, divided by the makespan. The "
                   "mark on a bar is the lower bound.</p>\n"
                   "</section>\n");
}

/* ---- Devices, layers, blocks ---- */

static const clv__gnn_plan_k *chosen_k(const clv__gnn_plan *plan) {
  for (uint32_t i = 0; i < plan->per_k_count; ++i) {
    if (plan->per_k[i].k == plan->k && plan->per_k[i].reason == NULL) return &plan->per_k[i];
  }
  return NULL;
}

static void append_devices(const clv__gnn_account *account, clv__text *text) {
  const clv__gnn_plan *plan = account->plan;
  const clv__gnn_plan_k *item = chosen_k(plan);
  bool has_run = account->record != NULL;
  clv__text_append(text,
                   "<section aria-label=\"devices\">\n"
                   "<div class=\"bar-of-tools\"><h2>Devices</h2></div>\n"
                   "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table of devices\"><table>\n"
                   "<thead><tr><th></th><th class=\"number\">busy, predicted</th><th class=\"number\">idle, predicted</th>%s<th "
                   "class=\"number\">makespan of this device alone</th></tr></thead>\n"
                   "<tbody>\n",
                   has_run ? "<th class=\"number\">busy, measured</th><th class=\"number\">idle, measured</th>" : "");
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    const clv__gnn_device_sum *sum = &account->devices[d];
    clv__text_append(text, "<tr><td>");
    append_badge(plan, d, text);
    clv__text_append(text, "</td>");
    append_time_cell(sum->predicted_ns, text);
    append_time_cell(plan->makespan_ns - sum->predicted_ns, text);
    if (has_run) {
      append_time_cell(sum->measured_ns, text);
      append_time_cell(account->record->measured_ns - sum->measured_ns, text);
    }
    append_time_cell(item != NULL ? item->single_ns[d] : INFINITY, text);
    clv__text_append(text, "</tr>\n");
  }
  clv__text_append(text, "</tbody></table></div>\n</section>\n");
}

static void append_measured(bool has_run, double measured_ns, double predicted_ns, clv__text *text) {
  if (!has_run || predicted_ns <= 0) {
    clv__text_append(text, "<td class=\"number\">–</td><td class=\"number\">–</td><td></td>");
    return;
  }
  double ratio = measured_ns / predicted_ns, width = 50 * fmin(1, fabs(log2(fmax(ratio, 1e-9))) / 2);
  append_time_cell(measured_ns, text);
  clv__text_append(text,
                   "<td class=\"number\">×%.2f</td><td class=\"off-cell\"><span class=\"off\"><span class=\"%s\" "
                   "style=\"width: %.1f%%\"></span></span></td>",
                   ratio, ratio >= 1 ? "slower" : "quicker", width);
}

static void append_layers(const clv__gnn_account *account, clv__text *text) {
  const clv__gnn_plan *plan = account->plan;
  bool has_run = account->record != NULL;
  clv__text_append(text,
                   "<section aria-label=\"layers\">\n<div class=\"bar-of-tools\"><h2>Layers</h2></div>\n<div class=\"wide\" "
                   "tabindex=\"0\" role=\"region\" aria-label=\"table of layers\"><table>\n<thead><tr><th>layer</th><th "
                   "class=\"number\">predicted</th>%s<th>subgraphs, and how they run</th></tr></thead>\n<tbody>\n",
                   has_run ? "<th class=\"number\">measured</th><th class=\"number\">ratio</th><th></th>" : "");
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    const clv__gnn_plan_layer *planned = &plan->layers[l];
    const clv__gnn_layer_sum *sum = &account->layers[l];
    clv__text_append(text, "<tr><td>%u</td>", l);
    append_time_cell(sum->predicted_ns, text);
    if (has_run) append_measured(sum->has_run, sum->measured_ns, sum->predicted_ns, text);
    clv__text_append(text, "<td><ul class=\"clusters\">");
    for (uint32_t c = 0; c < planned->cluster_count; ++c) {
      clv__text pep;
      clv__text_init(&pep, text->allocator);
      clv__pep_describe(&planned->peps[planned->sequence[planned->clusters[c].first]], &plan->machine, &pep);
      clv__text_append(text, "<li>%u × ", planned->clusters[c].count);
      clv__label_xml(text, pep.failed ? "" : pep.data);
      clv__text_append(text, "</li>");
      text->failed = text->failed || pep.failed;
      clv__text_finish(&pep);
    }
    clv__text_append(text, "</ul></td></tr>\n");
  }
  clv__text_append(text, "</tbody></table></div>\n</section>\n");
}

static void append_blocks(const clv__gnn_account *account, clv__text *text) {
  bool has_run = account->record != NULL;
  clv__text_append(
      text,
      "<section aria-label=\"blocks\" class=\"blocks\">\n<div class=\"bar-of-tools\"><h2>Blocks%s</h2></div>\n"
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table of blocks\"><table>\n<thead><tr><th>layer</th>"
      "<th>cluster</th><th>device</th><th>stages</th><th class=\"number\">tasks</th><th class=\"number\">predicted</th>%s"
      "</tr></thead>\n<tbody>\n",
      has_run ? ": predicted against measured" : "",
      has_run ? "<th class=\"number\">measured</th><th class=\"number\">ratio</th><th></th><th class=\"number\">packing</th>"
              : "");
  for (uint32_t b = 0; b < account->block_count; ++b) {
    const clv__gnn_block_sum *sum = &account->blocks[b];
    char name[80];
    clv__gnn_block_name(&account->stages[sum->layer], sum->first, sum->last, name, sizeof name);
    clv__text_append(text, "<tr><td>%u</td><td>%u</td><td>", sum->layer, sum->cluster);
    append_badge(account->plan, sum->device, text);
    clv__text_append(text, "</td><td>%s</td><td class=\"number\">%u</td>", name, sum->tasks);
    append_time_cell(sum->predicted_ns, text);
    if (has_run) {
      append_measured(sum->has_run > 0, sum->measured_ns, sum->predicted_ns, text);
      append_time_cell(sum->has_run > 0 ? sum->packing_ns : INFINITY, text);
    }
    clv__text_append(text, "</tr>\n");
  }
  clv__text_append(text, "</tbody></table></div>\n</section>\n");
}

/* ---- Data of the timeline ---- */

/* Appends a span as [layer, subgraph, cluster, block, part, device, name, start, end, rows, targets, edges, padded rows, padded
 * edges]. If the task ran, the times begin, packed, computed and done follow. Times are whole nanoseconds. */
static void append_span(const clv__gnn_account *account, const clv__gnn_span *span, clv__text *text) {
  char name[80];
  clv__gnn_block_name(&account->stages[span->layer], span->first, span->last, name, sizeof name);
  clv__text_append(text, "[%u,%u,%u,%u,%u,%u,\"%s\",%.0f,%.0f,%llu,%llu,%llu,%llu,%llu", span->layer, span->subgraph,
                   span->cluster, span->block, span->part, span->device, name, span->start_ns, span->end_ns,
                   (unsigned long long)span->sizes.rows, (unsigned long long)span->sizes.targets,
                   (unsigned long long)span->sizes.edges, (unsigned long long)span->padded.rows,
                   (unsigned long long)span->padded.edges);
  if (span->has_run)
    clv__text_append(text, ",%.0f,%.0f,%.0f,%.0f", span->begin_ns, span->packed_ns, span->computed_ns, span->done_ns);
  clv__text_append(text, "]");
}

static void append_data(const clv__gnn_account *account, clv__text *text) {
  const clv__gnn_plan *plan = account->plan;
  bool is_first = true;
  clv__text_append(text, "{\"has_run\":%s,\"predicted\":%.0f,\"measured\":%.0f,\n\"devices\":[",
                   account->record != NULL ? "true" : "false", plan->makespan_ns,
                   account->record != NULL ? account->record->measured_ns : 0.0);
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    clv__text_append(text, "%s{\"name\":", d > 0 ? "," : "");
    clv__html_json_string(text, plan->machine.devices[d].name);
    clv__text_append(text, ",\"color\":%u,\"static\":%s}", clv__palette_index(d),
                     plan->machine.devices[d].is_static ? "true" : "false");
  }
  clv__text_append(text, "],\n\"layers\":[");
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    const clv__gnn_layer_sum *sum = &account->layers[l];
    clv__text_append(text, "%s[%.0f,%.0f,%.0f,%.0f]", l > 0 ? "," : "", sum->start_ns, sum->start_ns + sum->predicted_ns,
                     sum->has_run ? sum->begin_ns : -1.0, sum->has_run ? sum->begin_ns + sum->measured_ns : -1.0);
  }
  clv__text_append(text, "],\n\"spans\":[");
  for (uint32_t s = 0; s < account->span_count; ++s) {
    if (account->spans[s].sizes.targets == 0) continue;
    clv__text_append(text, "%s", is_first ? "" : ",\n");
    append_span(account, &account->spans[s], text);
    is_first = false;
  }
  clv__text_append(text, "]}");
}

void clv__report_gnn_html(const clv__gnn_account *account, clv__text *text) {
  clv__text title;
  clv__text_init(&title, text->allocator);
  append_title(account->plan, &title);
  clv__html_head(title.failed ? "" : title.data, clv__page_gnn_style, text);
  append_header(account, title.failed ? "" : title.data, text);
  text->failed = text->failed || title.failed;
  clv__text_finish(&title);
  clv__text_append(text, "<main class=\"gnn\">\n");
  append_timeline(account, text);
  append_per_k(account->plan, text);
  append_devices(account, text);
  append_layers(account, text);
  append_blocks(account, text);
  clv__text_append(text, "</main>\n<script type=\"application/json\" id=\"plan\">");
  append_data(account, text);
  clv__text_append(text, "</script>\n<script>\n%s%s</script>\n</body>\n</html>\n", clv__page_write_script, clv__page_gnn_script);
}
