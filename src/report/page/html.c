/* See html.h. Writes the parts of the page that need no script: totals, devices, the comparison. Also writes the pictures as
 * templates, and the data for page/page.js. The page's security policy forbids loading anything. */
#include "report/page/html.h"

#include <stdio.h>

#include "report/label.h"
#include "report/page/html_data.h"
#include "report/page/page.h"
#include "report/picture/palette.h"
#include "report/picture/svg.h"
#include "report/steps.h"

static void finish_text(clv__text *into, clv__text *text) {
  into->failed = into->failed || text->failed;
  clv__text_finish(text);
}

/* ---- Head ---- */

static void append_badge_colors(bool dark, clv__text *text) {
  for (uint32_t i = 0; i <= CLV__PALETTE_SIZE; ++i) {
    const clv__colors *c = clv__palette(i, dark);
    clv__text_append(text, ".badge.d%u { background: %s; color: %s; border-color: %s; }\n", i, c->fill, c->stroke, c->stroke);
    clv__text_append(text, ".bar-fill.d%u { background: %s; }\n", i, c->stroke);
  }
}

void clv__html_head(const char *title, const char *style, clv__text *text) {
  clv__text_append(
      text,
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'unsafe-inline'\">\n<title>");
  clv__label_xml(text, title);
  clv__text_append(text, "</title>\n<style>\n%s%s", clv__page_style, style);
  clv__svg_fonts(text);
  clv__svg_colors(false, text);
  append_badge_colors(false, text);
  clv__text_append(text, "@media (prefers-color-scheme: dark) {\n");
  clv__svg_colors(true, text);
  append_badge_colors(true, text);
  clv__text_append(text, "}\n</style>\n</head>\n<body>\n");
}

void clv__html_tile(clv__text *text, const char *what, const char *value) {
  clv__text_append(text, "<div><dt>%s</dt><dd>%s</dd></div>\n", what, value);
}

static void append_tiles(const clv_plan *plan, clv__text *text) {
  char label[CLV__LABEL_BYTES], value[3 * CLV__LABEL_BYTES];
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  clv__text_append(text, "<dl class=\"tiles\">\n");
  clv__html_tile(text, "predicted", clv__label_time(plan->predicted_ns, label));
  clv__html_tile(text, "lower bound", clv__label_time(plan->lower_bound_ns, label));
  clv__html_tile(text, "gap", clv__label_gap(clv__plan_gap(plan), label));
  clv__html_tile(text, "nodes", clv__label_grouped(plan->graph->node_count, label));
  clv__html_tile(text, "partitions", clv__label_grouped(plan->partition_count - plan->hosted_count, label));
  clv__html_tile(text, "transfers", clv__label_grouped(totals.inner_transfers, label));
  snprintf(value, sizeof value, "%s%s", totals.bytes_known ? "" : "≥ ", clv__label_size(totals.inner_bytes, label));
  clv__html_tile(text, "bytes copied", value);
  clv__html_tile(text, "time, one step after the other", clv__label_time(plan->price.serial_ns, label));
  clv__html_tile(text, "time, devices at the same time", clv__label_time(plan->price.overlapped_ns, label));
  clv__text_append(text, "</dl>\n");
}

static void append_header(const clv_plan *plan, const char *title, clv__text *text) {
  static const char *const words[] = {"steps that run one after the other", "devices that work at the same time",
                                      "many requests at once"};
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  clv__text_append(text, "<header>\n<h1>");
  clv__label_xml(text, title);
  clv__text_append(text, "</h1>\n<p class=\"soft\">strategy ");
  clv__label_xml(text, plan->placement.strategy);
  clv__text_append(text, "; predicted for %s",
                   (size_t)plan->objective < sizeof words / sizeof *words ? words[plan->objective] : "this objective");
  if (totals.folded_nodes > 0) {
    clv__text_append(text, "; ");
    clv__label_plural(text, totals.folded_nodes, "node");
    clv__text_append(text, " computed when planning");
  }
  clv__text_append(text, "</p>\n");
  append_tiles(plan, text);
  clv__text_append(text, "</header>\n");
}

/* ---- Sections ---- */

static void append_picture(clv__text *text) {
  clv__text_append(
      text,
      "<section aria-label=\"picture\">\n"
      "<div class=\"bar-of-tools\"><h2 id=\"shown\">Picture</h2>\n"
      "<button type=\"button\" id=\"fold\">fold all</button>\n"
      "<button type=\"button\" id=\"unfold\">unfold all</button>\n"
      "<button type=\"button\" data-by=\"0\">by name</button>\n"
      "<button type=\"button\" data-by=\"1\">by partition</button>\n"
      "<button type=\"button\" data-form=\"nodes\">nodes</button>\n"
      "<button type=\"button\" data-form=\"layers\">layers</button>\n"
      "<button type=\"button\" data-form=\"partitions\">partitions</button>\n"
      "<button type=\"button\" id=\"farther\" aria-label=\"zoom out\">−</button>\n"
      "<button type=\"button\" id=\"fit\">fit</button>\n"
      "<button type=\"button\" id=\"closer\" aria-label=\"zoom in\">+</button></div>\n"
      "<div class=\"picture\"></div>\n"
      "<p class=\"soft\">Arrows between the lanes are copies. Dashed arrows are inputs and outputs of the graph. “3 ▸” "
      "replaces a line from partition 3. In layers, <kbd>+</kbd> or a double click unfolds a group, <kbd>−</kbd> folds it, and "
      "coloured lines lead to another device. Click a box for its explanation. Keys: <kbd>Tab</kbd> into the picture, arrows, "
      "<kbd>Enter</kbd>; <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom; <kbd>/</kbd> searches.</p>\n"
      "</section>\n");
}

static void append_timeline(clv__text *text) {
  clv__text_append(text,
                   "<section aria-label=\"timeline\">\n<div class=\"bar-of-tools\"><h2>Timeline: <span id=\"span\"></span></h2>\n"
                   "<button type=\"button\" data-schedule=\"overlapped\">devices at the same time</button>\n"
                   "<button type=\"button\" data-schedule=\"serial\">one step after the other</button>\n"
                   "<button type=\"button\" id=\"shorter\" aria-label=\"compress the timeline\">−</button>\n"
                   "<button type=\"button\" id=\"longer\" aria-label=\"stretch the timeline\">+</button></div>\n"
                   "<div class=\"timeline\" tabindex=\"0\"></div>\n</section>\n");
}

static void append_row(const clv__comparison *row, uint64_t most_ns, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  clv__text_append(text, "<tr%s><td>%s", row->is_plan ? " class=\"this\"" : "", row->is_single ? "all on " : "");
  clv__label_xml(text, row->name);
  clv__text_append(text, "%s</td>", row->is_plan ? " (this plan)" : "");
  if (row->refusal != NULL) {
    clv__text_append(text, "<td colspan=\"7\" class=\"soft\">");
    clv__label_xml(text, row->refusal);
    clv__text_append(text, "</td></tr>\n");
    return;
  }
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_grouped(row->partitions, label));
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_grouped(row->transfers, label));
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_size(row->transfer_bytes, label));
  clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_time(row->predicted_ns, label));
  clv__text_append(text,
                   "<td class=\"meter-cell\"><span class=\"meter\" style=\"width: %.1f%%\"></span></td><td class=\"number\">",
                   most_ns > 0 ? 100.0 * (double)row->predicted_ns / (double)most_ns : 0.0);
  clv__text_append(text, "%s</td>", clv__label_gap(row->gap, label));
  clv__text_append(text, "<td class=\"number\">%s</td></tr>\n", clv__label_time(row->overlapped_ns, label));
}

static void append_comparison(const clv__comparison *rows, uint32_t count, clv__text *text) {
  if (rows == NULL || count == 0) return;
  uint64_t most_ns = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (rows[i].refusal == NULL && rows[i].predicted_ns > most_ns) most_ns = rows[i].predicted_ns;
  }
  clv__text_append(
      text,
      "<section aria-label=\"comparison\" class=\"comparison\">\n"
      "<div class=\"bar-of-tools\"><h2>Alternatives</h2></div>\n"
      "<div class=\"wide\"><table>\n"
      "<thead><tr><th>strategy, or all on one device</th><th class=\"number\">partitions</th><th "
      "class=\"number\">transfers</th><th class=\"number\">bytes</th><th class=\"number\">predicted</th><th></th><th "
      "class=\"number\">gap</th><th class=\"number\">devices at the same time</th></tr></thead>\n"
      "<tbody>\n");
  for (uint32_t i = 0; i < count; ++i) append_row(&rows[i], most_ns, text);
  clv__text_append(text, "</tbody></table></div>\n</section>\n");
}

static void append_devices(const clv_plan *plan, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  clv__text_append(
      text,
      "<section aria-label=\"devices\">\n<div class=\"bar-of-tools\"><h2>Devices</h2></div>\n<div class=\"wide\"><table>\n<thead>"
      "<tr><th></th><th></th><th class=\"number\">partitions</th><th class=\"number\">nodes</th><th class=\"number\">busy</th>"
      "<th>prices</th></tr></thead>\n<tbody>\n");
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    const clv__device *device = &plan->devices->items[d];
    uint64_t nodes = 0, busy_ns = 0;
    uint32_t partitions = 0;
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      if (plan->partitions[p].device != d) continue;
      partitions += !plan->partitions[p].is_hosted;
      nodes += plan->partitions[p].node_count;
      if (plan->price.partition_ns != NULL) busy_ns += plan->price.partition_ns[p];
    }
    clv__text_append(text, "<tr><td><span class=\"badge d%u\">", clv__palette_index(d));
    clv__label_xml(text, device->name);
    clv__text_append(text, "</span></td><td>");
    clv__label_xml(text, device->info.description);
    clv__text_append(text, "</td><td class=\"number\">%s</td>", clv__label_grouped(partitions, label));
    clv__text_append(text, "<td class=\"number\">%s</td>", clv__label_grouped(nodes, label));
    clv__text_append(text, "<td class=\"number\">%s</td><td>", clv__label_time(busy_ns, label));
    clv__label_xml(text, plan->costs != NULL ? clv__cost_origin(plan->costs, d) : "");
    clv__text_append(text, "</td></tr>\n");
  }
  clv__text_append(text, "</tbody></table></div>\n");
  if (plan->note != NULL) {
    clv__text_append(text, "<p class=\"soft\">");
    clv__label_xml(text, plan->note);
    clv__text_append(text, "</p>\n");
  }
  clv__text_append(text, "</section>\n");
}

static void append_aside(clv__text *text) {
  clv__text_append(
      text,
      "<aside>\n"
      "<div class=\"search\" role=\"search\"><input id=\"search\" type=\"search\" placeholder=\"Find a node by name or "
      "operator\" aria-label=\"find a node\" role=\"combobox\" aria-expanded=\"false\" aria-controls=\"results\" "
      "autocomplete=\"off\" spellcheck=\"false\">\n"
      "<ul class=\"results\" id=\"results\" role=\"listbox\" hidden></ul></div>\n"
      "<div class=\"details\" aria-live=\"polite\"><p class=\"soft\">Click a node or a partition, in the picture or in the "
      "timeline, or search for one, to see why it is on its device and what it would cost elsewhere.</p></div>\n"
      "</aside>\n");
}

/* ---- Pictures ---- */

static void append_template(const char *id, clv__text *text) {
  clv__text_append(text, "<template id=\"%s\">", id);
}

static void append_templates(const clv_plan *plan, clv__text *text) {
  clv__text picture;
  clv__text_init(&picture, text->allocator);
  if (clv__svg_embed(plan, false, &picture)) {
    append_template("form-nodes", text);
    clv__text_append_bytes(text, picture.data, picture.size_bytes);
    clv__text_append(text, "</template>\n");
  }
  finish_text(text, &picture);
  append_template("form-partitions", text);
  (void)clv__svg_embed(plan, true, text);
  clv__text_append(text, "</template>\n");
}

void clv__report_html(const clv_plan *plan, const clv__comparison *rows, uint32_t row_count, clv__text *text) {
  clv__text title;
  clv__text_init(&title, text->allocator);
  clv__plan_title(plan, &title);
  clv__html_head(title.data, "", text);
  append_header(plan, title.data, text);
  finish_text(text, &title);
  clv__text_append(text, "<main>\n<div>\n");
  append_picture(text);
  append_timeline(text);
  append_comparison(rows, row_count, text);
  append_devices(plan, text);
  clv__text_append(text, "</div>\n");
  append_aside(text);
  clv__text_append(text, "</main>\n");
  append_templates(plan, text);
  clv__text_append(text, "<script type=\"application/json\" id=\"plan\">");
  clv__html_data(plan, text);
  clv__text_append(text, "</script>\n<script>\n%s%s%s%s%s</script>\n</body>\n</html>\n", clv__page_write_script,
                   clv__page_view_script, clv__page_layers_script, clv__page_fold_script, clv__page_script);
}
