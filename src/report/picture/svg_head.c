/* Draws the head of a picture: title, figures and legend. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/label.h"
#include "report/picture/fit.h"
#include "report/picture/palette.h"
#include "report/picture/svg.h"
#include "report/picture/svg_parts.h"
#include "report/steps.h"

enum { TILES = 6, LEGEND_LINE = 21 };

static const char *file_name(const clv_graph *graph) {
  const char *slash = strrchr(graph->path, '/');
  const char *name = slash != NULL ? slash + 1 : graph->path;
  return name[0] != '\0' ? name : graph->name != NULL && graph->name[0] != '\0' ? graph->name : "model";
}

void clv__plan_title(const clv_plan *plan, clv__text *text) {
  clv__text_append(text, "%s on ", file_name(plan->graph));
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    clv__text_append(text, "%s%s", d == 0 ? "" : d + 1 < plan->devices->count ? ", " : " and ", plan->devices->items[d].name);
  }
}

double clv__svg_head_height(const clv_plan *plan) {
  return CLV__SVG_MARGIN + 26 + 20 + 58 + plan->devices->count * (double)LEGEND_LINE + 32;
}

static void draw_tile(clv__picture *p, uint32_t index, double width, const char *what, const char *value) {
  double x = CLV__SVG_MARGIN + index * width, y = CLV__SVG_MARGIN + 26 + 40;
  clv__svg_text(p->text, x, y, "sub", 12, width - 8, what);
  clv__svg_text(p->text, x, y + 21, "tile", CLV__SVG_BOLD * 16, width - 8, value);
}

static void draw_tiles(clv__picture *p, double width) {
  const clv_plan *plan = p->plan;
  char label[CLV__LABEL_BYTES], value[2 * CLV__LABEL_BYTES];
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  double tile = fmin((width - 2 * CLV__SVG_MARGIN) / TILES, 180);
  draw_tile(p, 0, tile, "predicted", clv__label_time(plan->predicted_ns, label));
  draw_tile(p, 1, tile, "lower bound", clv__label_time(plan->lower_bound_ns, label));
  draw_tile(p, 2, tile, "gap", clv__label_gap(clv__plan_gap(plan), label));
  draw_tile(p, 3, tile, "partitions", clv__label_grouped(plan->partition_count - plan->hosted_count, label));
  draw_tile(p, 4, tile, "transfers", clv__label_grouped(totals.inner_transfers, label));
  snprintf(value, sizeof value, "%s%s", totals.bytes_known ? "" : "≥ ", clv__label_size(totals.inner_bytes, label));
  draw_tile(p, 5, tile, "bytes copied", value);
}

/* Appends a device's share of the plan: "3 partitions, 173 nodes, 3.12 ms". */
static void append_share(const clv_plan *plan, uint32_t device, clv__text *text) {
  uint64_t nodes = 0, time_ns = 0;
  uint32_t partitions = 0;
  char label[CLV__LABEL_BYTES];
  for (uint32_t i = 0; i < plan->partition_count; ++i) {
    if (plan->partitions[i].device != device) continue;
    partitions += !plan->partitions[i].is_hosted;
    nodes += plan->partitions[i].node_count;
    if (plan->price.partition_ns != NULL) time_ns += plan->price.partition_ns[i];
  }
  clv__label_plural(text, partitions, "partition");
  clv__text_append(text, ", ");
  clv__label_plural(text, nodes, "node");
  clv__text_append(text, ", %s", clv__label_time(time_ns, label));
}

static void draw_legend(clv__picture *p, double width) {
  const clv_devices *devices = p->plan->devices;
  double y = CLV__SVG_MARGIN + 26 + 20 + 62, names = 0;
  for (uint32_t d = 0; d < devices->count; ++d) names = fmax(names, clv__fit_width(devices->items[d].name, CLV__SVG_BOLD * 13));
  names = fmin(names, 160);
  for (uint32_t d = 0; d < devices->count; ++d, y += LEGEND_LINE) {
    clv__text line;
    clv__text_init(&line, p->text->allocator);
    append_share(p->plan, d, &line);
    clv__text_append(&line, "  ·  ");
    clv__label_name(&line, devices->items[d].info.description);
    clv__text_append(p->text, "<rect x=\"%d\" y=\"%.1f\" width=\"13\" height=\"13\" rx=\"3\" class=\"box d%u\"/>\n",
                     CLV__SVG_MARGIN, y - 11, clv__palette_index(d));
    clv__svg_text(p->text, CLV__SVG_MARGIN + 21, y, "name", CLV__SVG_BOLD * 13, names, devices->items[d].name);
    clv__svg_text(p->text, CLV__SVG_MARGIN + 21 + names + 12, y, "small", CLV__SVG_SMALL,
                  width - 2 * CLV__SVG_MARGIN - names - 33, line.data);
    clv__svg_finish_text(p->text, &line);
  }
  clv__svg_text(p->text, CLV__SVG_MARGIN, y + 1, "sub", 12, width - 2 * CLV__SVG_MARGIN,
                p->diagram.mark_count > 0
                    ? "Arrows are copies, dashed for inputs and outputs of the model. “3 ▸” replaces a line from partition 3."
                    : "Arrows between the lanes are copies, dashed for inputs and outputs of the model.");
}

static const char *objective_words(const clv_plan *plan) {
  return plan->objective == CLV__LATENCY   ? "steps that run one after the other"
         : plan->objective == CLV__OVERLAP ? "devices that work at the same time"
                                           : "many requests at once";
}

void clv__svg_head(clv__picture *p, double width) {
  clv__text title, sub;
  clv__text_init(&title, p->text->allocator);
  clv__text_init(&sub, p->text->allocator);
  clv__plan_title(p->plan, &title);
  clv__text_append(&sub, "strategy %s; predicted for %s", p->plan->placement.strategy, objective_words(p->plan));
  clv__svg_text(p->text, CLV__SVG_MARGIN, CLV__SVG_MARGIN + 18, "title", CLV__SVG_BOLD * 20, width - 2 * CLV__SVG_MARGIN,
                title.data);
  clv__svg_text(p->text, CLV__SVG_MARGIN, CLV__SVG_MARGIN + 38, "sub", 12, width - 2 * CLV__SVG_MARGIN, sub.data);
  clv__svg_finish_text(p->text, &title);
  clv__svg_finish_text(p->text, &sub);
  draw_tiles(p, width);
  draw_legend(p, width);
}
