/* See svg.h. The picture is laid out by diagram.h, then drawn back to front: lanes, lines, boxes. */
#include "report/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/fit.h"
#include "report/label.h"
#include "report/palette.h"
#include "report/steps.h"

enum { MARGIN = 28, NARROWEST = 640, TILES = 6, LEGEND_LINE = 21, PADDING = 14, TEXT_LINE = 17, NUMBER_ROOM = 34 };
static const double SMALL = 11.5, BOLD = 1.1, CORNER = 6;

typedef struct picture {
  const clv_plan *plan;
  clv__text *text;
  clv__diagram diagram;
} picture;

static void finish_text(clv__text *into, clv__text *text) {
  into->failed = into->failed || text->failed;
  clv__text_finish(text);
}

/* Text of at most `width` pixels in a style whose font has `size`. */
static void draw_text(clv__text *text, double x, double y, const char *style, double size, double width, const char *content) {
  clv__text fitted;
  clv__text_init(&fitted, text->allocator);
  clv__fit_append(&fitted, content, size, width);
  clv__text_append(text, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
  clv__label_xml(text, fitted.data);
  clv__text_append(text, "</text>\n");
  finish_text(text, &fitted);
}

/* ---- Head ---- */

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

static double head_height(const clv_plan *plan) {
  return MARGIN + 26 + 20 + 58 + plan->devices->count * (double)LEGEND_LINE + 32;
}

static void draw_tile(picture *p, uint32_t index, double width, const char *what, const char *value) {
  double x = MARGIN + index * width, y = MARGIN + 26 + 40;
  draw_text(p->text, x, y, "sub", 12, width - 8, what);
  draw_text(p->text, x, y + 21, "tile", BOLD * 16, width - 8, value);
}

static void draw_tiles(picture *p, double width) {
  const clv_plan *plan = p->plan;
  char label[CLV__LABEL_BYTES], value[2 * CLV__LABEL_BYTES];
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  double tile = fmin((width - 2 * MARGIN) / TILES, 180), gap = clv__plan_gap(plan);
  draw_tile(p, 0, tile, "predicted", clv__label_time(plan->predicted_ns, label));
  draw_tile(p, 1, tile, "no plan is below", clv__label_time(plan->lower_bound_ns, label));
  snprintf(value, sizeof value, gap < 0 ? "–" : "%.1f %%", gap * 100);
  draw_tile(p, 2, tile, "gap", value);
  draw_tile(p, 3, tile, "partitions", clv__label_grouped(plan->partition_count, label));
  draw_tile(p, 4, tile, "transfers between", clv__label_grouped(totals.inner_transfers, label));
  snprintf(value, sizeof value, "%s%s", totals.bytes_known ? "" : "≥ ", clv__label_size(totals.inner_bytes, label));
  draw_tile(p, 5, tile, "bytes copied", value);
}

/* What a device does in the plan: "3 partitions, 173 nodes, 3.12 ms". */
static void append_share(const clv_plan *plan, uint32_t device, clv__text *text) {
  uint64_t nodes = 0, time_ns = 0;
  uint32_t partitions = 0;
  char label[CLV__LABEL_BYTES];
  for (uint32_t i = 0; i < plan->partition_count; ++i) {
    if (plan->partitions[i].device != device) continue;
    ++partitions;
    nodes += plan->partitions[i].node_count;
    if (plan->price.partition_ns != NULL) time_ns += plan->price.partition_ns[i];
  }
  clv__label_plural(text, partitions, "partition");
  clv__text_append(text, ", ");
  clv__label_plural(text, nodes, "node");
  clv__text_append(text, ", %s", clv__label_time(time_ns, label));
}

static void draw_legend(picture *p, double width) {
  const clv_devices *devices = p->plan->devices;
  double y = MARGIN + 26 + 20 + 62, names = 0;
  for (uint32_t d = 0; d < devices->count; ++d) names = fmax(names, clv__fit_width(devices->items[d].name, BOLD * 13));
  names = fmin(names, 160);
  for (uint32_t d = 0; d < devices->count; ++d, y += LEGEND_LINE) {
    clv__text line;
    clv__text_init(&line, p->text->allocator);
    append_share(p->plan, d, &line);
    clv__text_append(&line, "  ·  ");
    clv__label_name(&line, devices->items[d].info.description);
    clv__text_append(p->text, "<rect x=\"%d\" y=\"%.1f\" width=\"13\" height=\"13\" rx=\"3\" class=\"box d%u\"/>\n", MARGIN,
                     y - 11, clv__palette_index(d));
    draw_text(p->text, MARGIN + 21, y, "name", BOLD * 13, names, devices->items[d].name);
    draw_text(p->text, MARGIN + 21 + names + 12, y, "small", SMALL, width - 2 * MARGIN - names - 33, line.data);
    finish_text(p->text, &line);
  }
  draw_text(p->text, MARGIN, y + 1, "sub", 12, width - 2 * MARGIN,
            p->diagram.mark_count > 0
                ? "Arrows are copies between memories; dashed: the graph's own inputs and outputs. “3 ▸”: also from partition 3."
                : "Arrows between the lanes are copies; dashed: the graph's own inputs and outputs.");
}

static const char *objective_words(const clv_plan *plan) {
  return plan->objective == CLV__LATENCY   ? "steps one after the other"
         : plan->objective == CLV__OVERLAP ? "devices at the same time"
                                           : "many requests at once";
}

static void draw_head(picture *p, double width) {
  clv__text title, sub;
  clv__text_init(&title, p->text->allocator);
  clv__text_init(&sub, p->text->allocator);
  clv__plan_title(p->plan, &title);
  clv__text_append(&sub, "strategy %s; predicted for %s", p->plan->placement.strategy, objective_words(p->plan));
  draw_text(p->text, MARGIN, MARGIN + 18, "title", BOLD * 20, width - 2 * MARGIN, title.data);
  draw_text(p->text, MARGIN, MARGIN + 38, "sub", 12, width - 2 * MARGIN, sub.data);
  finish_text(p->text, &title);
  finish_text(p->text, &sub);
  draw_tiles(p, width);
  draw_legend(p, width);
}

/* ---- Lines ---- */

static bool is_curve(const double *from, const double *to) {
  return to[1] - from[1] > 9 && fabs(to[0] - from[0]) > 0.5;
}

/* A right angle at `at`, to be rounded: how much of it. */
static double corner_of(const double *before, const double *at, const double *after) {
  if (is_curve(before, at) || is_curve(at, after)) return 0;
  bool flat_before = fabs(at[0] - before[0]) > 0.5, flat_after = fabs(after[0] - at[0]) > 0.5;
  double shorter = fmin(fabs(at[0] - before[0]) + fabs(at[1] - before[1]), fabs(after[0] - at[0]) + fabs(after[1] - at[1]));
  return flat_before == flat_after || shorter < 1 ? 0 : fmin(CORNER, shorter / 2);
}

static double sign_of(double number) {
  return number > 0 ? 1 : number < 0 ? -1 : 0;
}

/* Pieces that lead down and aside are curves, all others straight with round corners. */
static void draw_path(clv__text *text, const char *style, const double *points, uint32_t count, double dx, double dy,
                      bool arrow) {
  clv__text_append(text, "<path class=\"%s\" d=\"M%.1f,%.1f", style, points[0] + dx, points[1] + dy);
  for (uint32_t i = 1; i < count; ++i) {
    const double *before = &points[2 * i - 2], *at = &points[2 * i];
    double x = at[0] + dx, y = at[1] + dy;
    if (is_curve(before, at)) {
      double bend = (at[1] - before[1]) / 2;
      clv__text_append(text, "C%.1f,%.1f %.1f,%.1f %.1f,%.1f", before[0] + dx, y - bend, x, y - bend, x, y);
      continue;
    }
    double r = i + 1 < count ? corner_of(before, at, at + 2) : 0;
    clv__text_append(text, "L%.1f,%.1f", x - r * sign_of(at[0] - before[0]), y - r * sign_of(at[1] - before[1]));
    if (r > 0) {
      clv__text_append(text, "Q%.1f,%.1f %.1f,%.1f", x, y, x + r * sign_of(at[2] - at[0]), y + r * sign_of(at[3] - at[1]));
    }
  }
  clv__text_append(text, "\"%s/>\n", arrow ? " marker-end=\"url(#tip)\"" : "");
}

static void draw_lines(picture *p) {
  const clv__diagram *d = &p->diagram;
  for (uint32_t i = 0; i < d->line_count; ++i) {
    const clv__line *line = &d->lines[i];
    draw_path(p->text,
              line->dashed   ? "wire own"
              : line->dotted ? "wire shared"
                             : "wire",
              line->points, line->point_count, 0, 0, line->arrow);
  }
  for (uint32_t i = 0; i < d->mark_count; ++i) {
    const clv__mark *mark = &d->marks[i];
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"mark%s\">%s", mark->x + (mark->right ? 4 : -4), mark->y + 3.5,
                     mark->right ? "" : " right", mark->right ? "◂ " : "");
    for (uint32_t k = 0; k < mark->count && k < 2; ++k) clv__text_append(p->text, "%s%u", k > 0 ? "," : "", mark->numbers[k]);
    clv__text_append(p->text, "%s%s</text>\n", mark->count > 2 ? "…" : "", mark->right ? "" : " ▸");
  }
}

/* What a transfer is: "relu  ·  3.1 MiB  ·  0.31 ms". */
static void append_transfer(const picture *p, const clv__item *item, double width, clv__text *line) {
  clv__text rest;
  char label[CLV__LABEL_BYTES];
  clv__text_init(&rest, p->text->allocator);
  if (item->kind == CLV__ITEM_SHARED) {
    clv__text_append(&rest, "in shared memory");
  } else {
    clv__text_append(&rest, " · %s", item->size_known ? clv__label_size(item->size_bytes, label) : "size open");
    clv__text_append(&rest, " · %s", clv__label_time(item->time_ns, label));
  }
  if (item->count > 1) {
    clv__text_append(line, "%u values", item->count);
  } else if (item->kind == CLV__ITEM_TRANSFER) {
    const clv__transfer *transfer = &p->plan->transfers[item->index];
    if (transfer->boundary == CLV__BOUNDARY_WEIGHT) clv__text_append(line, "weight ");
    clv__fit_append(line, p->plan->graph->values[transfer->value].name, SMALL,
                    width - clv__fit_width(rest.data, SMALL) - clv__fit_width(line->data, SMALL));
  }
  clv__text_append(line, "%s", rest.data);
  finish_text(line, &rest);
}

static double column_left(const clv__diagram *d, const clv__item *item) {
  return MARGIN + item->column * d->column_width;
}

static void draw_label(picture *p, const clv__item *item) {
  const clv__diagram *d = &p->diagram;
  uint32_t low = item->from < item->to ? item->from : item->to, high = item->from + item->to - low;
  double left = d->lanes[low].left + d->lanes[low].width, right = d->lanes[high].left;
  if (low == high) {
    left = d->lanes[low].box_left;
    right = left + d->lanes[low].box_width;
  }
  clv__text line;
  clv__text_init(&line, p->text->allocator);
  append_transfer(p, item, right - left - 6, &line);
  draw_text(p->text, column_left(d, item) + (left + right) / 2, item->y - 5, "label", SMALL, right - left, line.data);
  finish_text(p->text, &line);
}

/* ---- Boxes ---- */

/* What a browser shows when the pointer rests on the box. */
static void draw_tooltip(picture *p, const clv__partition *partition) {
  enum { SHOWN = 24 };
  clv__text_append(p->text, "<title>");
  for (uint32_t i = 0; i < partition->node_count && i < SHOWN; ++i) {
    const clv__node *node = &p->plan->graph->nodes[partition->nodes[i]];
    if (i > 0) clv__text_append(p->text, "\n");
    clv__label_xml(p->text, node->name);
    clv__text_append(p->text, " (");
    clv__label_xml(p->text, clv__label_op(node));
    clv__text_append(p->text, ")");
  }
  if (partition->node_count > SHOWN) clv__text_append(p->text, "\nand %u more", partition->node_count - SHOWN);
  clv__text_append(p->text, "</title>\n");
}

static void draw_values(picture *p, double x, double y, double room, const char *word, const clv_graph_view *view, bool outputs) {
  clv__text line, type;
  clv__text_init(&line, p->text->allocator);
  clv__text_init(&type, p->text->allocator);
  uint32_t count = outputs ? view->output_count : view->input_count;
  clv__text_append(&line, "%s ", word);
  for (uint32_t i = 0; i < count && i < 3; ++i) {
    clv_value_id value = view->values[outputs ? view->outputs[i] : view->inputs[i]];
    const char *name = view->graph->values[value].name;
    clv__text_append(&line, "%s", i > 0 ? ", " : "");
    if (count > 1) {
      clv__label_short(&line, name, 14);
      continue;
    }
    clv__text_append(&type, " ");
    clv__label_type(&type, view->graph, &p->plan->shapes->types[value]);
    clv__fit_append(&line, name, SMALL, room - clv__fit_width(line.data, SMALL) - clv__fit_width(type.data, SMALL));
    clv__text_append(&line, "%s", type.data);
  }
  if (count > 3) clv__text_append(&line, " and %u more", count - 3);
  if (count == 0) clv__text_append(&line, "nothing");
  draw_text(p->text, x, y, "small", SMALL, room, line.data);
  finish_text(p->text, &line);
  finish_text(p->text, &type);
}

/* As many operators, `most` at most, as fit without being cut. */
static void append_operators(const clv_plan *plan, const clv__partition *partition, uint32_t most, double room, clv__text *line) {
  bool failed = line->failed;
  for (uint32_t limit = most; limit > 0; --limit) {
    failed = failed || line->failed;
    clv__text_finish(line);
    clv__label_operators(line, plan->graph, partition->nodes, partition->node_count, limit);
    if (clv__fit_width(line->data, SMALL) <= room) break;
  }
  line->failed = line->failed || failed;
}

static void draw_operators(picture *p, double x, double y, double room, const clv__partition *partition, uint32_t most) {
  clv__text line;
  clv__text_init(&line, p->text->allocator);
  append_operators(p->plan, partition, most, room, &line);
  draw_text(p->text, x, y, "small", SMALL, room, line.data);
  finish_text(p->text, &line);
}

static void draw_chip(const clv_plan *plan, const clv__chip *chip, double dx, double dy, clv__text *text) {
  double left = chip->x - chip->width / 2 + dx, top = chip->y + dy;
  clv__text op, name;
  clv__text_init(&op, text->allocator);
  clv__text_init(&name, text->allocator);
  clv__chip_label(plan, chip, &op, &name);
  if (chip->kind == CLV__CHIP_NODE) {
    uint32_t color = clv__palette_index(plan->placement.devices[chip->id]);
    clv__text_append(text,
                     "<g class=\"node\" data-n=\"%u\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"5\" "
                     "class=\"chip d%u\"/>",
                     chip->id, left, top, chip->width, CLV__CHIP_HEIGHT, color);
  } else {
    clv__text_append(text, "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"10\" class=\"pill d%u\"/>", left,
                     top + 2, chip->width, CLV__CHIP_HEIGHT - 4, (uint32_t)CLV__PALETTE_SIZE);
  }
  clv__text_append(text, "<text x=\"%.1f\" y=\"%.1f\" class=\"chip-text\">", chip->x + dx, top + 16);
  if (op.size_bytes > 0) {
    clv__text_append(text, "<tspan class=\"op\">");
    clv__label_xml(text, op.data);
    clv__text_append(text, "</tspan>");
  }
  if (name.size_bytes > 0) {
    clv__text_append(text, "<tspan class=\"chip-name\"%s>", op.size_bytes > 0 ? " dx=\"6\"" : "");
    clv__label_xml(text, name.data);
    clv__text_append(text, "</tspan>");
  }
  clv__text_append(text, "</text><title>");
  if (chip->kind == CLV__CHIP_NODE) {
    clv__label_xml(text, plan->graph->nodes[chip->id].name);
    clv__text_append(text, " (");
    clv__label_xml(text, clv__label_op(&plan->graph->nodes[chip->id]));
    clv__text_append(text, ")");
  } else {
    clv__label_xml(text, plan->graph->values[chip->id].name);
  }
  clv__text_append(text, "</title></g>\n");
  finish_text(text, &op);
  finish_text(text, &name);
}

static void draw_content(const clv_plan *plan, const clv__box *box, double dx, double dy, clv__text *text) {
  for (uint32_t i = 0; i < box->wire_count; ++i) {
    draw_path(text, "edge", box->wires[i].points, box->wires[i].point_count, dx, dy, false);
  }
  for (uint32_t i = 0; i < box->chip_count; ++i) draw_chip(plan, &box->chips[i], dx, dy, text);
}

static void draw_partition(picture *p, const clv__item *item) {
  const clv__diagram *d = &p->diagram;
  const clv__partition *partition = &p->plan->partitions[item->index];
  const clv__lane *lane = &d->lanes[item->from];
  double left = column_left(d, item) + lane->box_left, x = left + PADDING, right = left + lane->box_width - PADDING;
  char time[CLV__LABEL_BYTES];
  clv__text right_text;
  clv__text_init(&right_text, p->text->allocator);
  clv__label_plural(&right_text, partition->node_count, "node");
  clv__text_append(&right_text, " · %s", clv__label_time(item->time_ns, time));
  clv__text_append(p->text,
                   "<g class=\"part\" data-p=\"%u\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\" "
                   "class=\"box d%u\"/>\n",
                   item->index, left, item->y, lane->box_width, item->height, d->form == CLV__FORM_LINES ? 5 : 8,
                   clv__palette_index(partition->device));
  double room = right - x, base = item->y + (d->form == CLV__FORM_LINES ? 19.5 : 22);
  if (d->form == CLV__FORM_LINES) {
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">%u</text>\n", x - 4, base, item->index);
    draw_operators(p, x + NUMBER_ROOM, base, room - NUMBER_ROOM - 8 - clv__fit_width(right_text.data, SMALL), partition, 3);
  } else {
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">Partition %u</text>\n", x, base, item->index);
  }
  if (d->form == CLV__FORM_CARDS) {
    draw_operators(p, x, base + TEXT_LINE + 2, room, partition, 4);
    draw_values(p, x, base + 2 * TEXT_LINE + 2, room, "in", partition->view, false);
    draw_values(p, x, base + 3 * TEXT_LINE + 2, room, "out", partition->view, true);
  }
  clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"right\">%s</text>\n", right, base, right_text.data);
  finish_text(p->text, &right_text);
  draw_tooltip(p, partition);
  if (item->box != NULL) draw_content(p->plan, item->box, left + (lane->box_width - item->box->width) / 2, item->y, p->text);
  clv__text_append(p->text, "</g>\n");
}

/* ---- All of it ---- */

static void draw_lanes(picture *p) {
  const clv__diagram *d = &p->diagram;
  for (uint32_t c = 0; c < d->column_count; ++c) {
    for (uint32_t l = 0; l < d->lane_count; ++l) {
      const clv__lane *lane = &d->lanes[l];
      double x = MARGIN + c * d->column_width + lane->left;
      uint32_t color = clv__palette_index(lane->device);
      clv__text_append(p->text, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"10\" class=\"lane d%u\"/>\n", x,
                       d->top, lane->width, d->height - d->top - 14, color);
      char style[32];
      snprintf(style, sizeof style, "lane-name ink d%u", color);
      draw_text(p->text, x + 14, d->top + 26, style, BOLD * 15, lane->width - 28,
                lane->device == CLV__NO_ID ? "host" : p->plan->devices->items[lane->device].name);
    }
  }
}

static void draw_items(picture *p) {
  const clv__diagram *d = &p->diagram;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    const clv__item *item = &d->items[i];
    if (item->kind == CLV__ITEM_PARTITION) {
      draw_partition(p, item);
    } else if (item->kind == CLV__ITEM_GAP) {
      char number[CLV__LABEL_BYTES];
      double width = d->lanes[d->lane_count - 1].left + d->lanes[d->lane_count - 1].width;
      clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"middle\">… %s more steps …</text>\n",
                       column_left(d, item) + width / 2, item->y + 25, clv__label_grouped(item->count, number));
    } else {
      draw_label(p, item);
    }
  }
}

static void draw_body(picture *p) {
  clv__text_append(p->text,
                   "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" "
                   "orient=\"auto-start-reverse\"><path d=\"M0,1 L10,5 L0,9 z\" class=\"tip\"/></marker></defs>\n");
  draw_lanes(p);
  draw_lines(p);
  draw_items(p);
}

void clv__report_svg(const clv_plan *plan, clv__text *text) {
  clv__arena arena;
  clv__arena_init(&arena, text->allocator);
  picture p = {.plan = plan, .text = text};
  if (clv__diagram_make(plan, false, head_height(plan), &arena, &p.diagram)) {
    double width = fmax(p.diagram.width, NARROWEST);
    clv__text_append(
        text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<style>\n",
        width, p.diagram.height, width, p.diagram.height);
    clv__svg_fonts(text);
    clv__svg_colors(false, text);
    clv__text_append(text, "</style>\n<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n");
    draw_head(&p, width);
    draw_body(&p);
    clv__text_append(text, "</svg>\n");
  } else {
    text->failed = true;
  }
  clv__arena_finish(&arena);
}

bool clv__svg_embed(const clv_plan *plan, bool collapse, clv__text *text) {
  clv__arena arena;
  clv__arena_init(&arena, text->allocator);
  picture p = {.plan = plan, .text = text};
  bool made = clv__diagram_make(plan, collapse, 14, &arena, &p.diagram);
  bool drawn = made && (collapse || p.diagram.form == CLV__FORM_NODES);
  text->failed = text->failed || !made;
  if (drawn) {
    clv__text_append(text,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
                     p.diagram.width, p.diagram.height, p.diagram.width, p.diagram.height);
    draw_body(&p);
    clv__text_append(text, "</svg>\n");
  }
  clv__arena_finish(&arena);
  return drawn;
}

void clv__svg_partition(clv__boxes *boxes, uint32_t partition, clv__text *text) {
  enum { PAGE_RANKS = 40 };
  clv__box box;
  if (!clv__box_make(boxes, &boxes->plan->partitions[partition], PAGE_RANKS, &box)) {
    text->failed = true;
    return;
  }
  clv__text_append(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 22 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
                   box.width, box.height - 22, box.width, box.height - 22);
  draw_content(boxes->plan, &box, 0, 0, text);
  clv__text_append(text, "</svg>\n");
}
