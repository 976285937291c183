/* See svg.h. Draws the layout of diagram.h: lanes, lines and boxes, from back to front. */
#include "report/picture/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/label.h"
#include "report/picture/fit.h"
#include "report/picture/palette.h"
#include "report/picture/svg_parts.h"

enum { NARROWEST = 640 };
static const double CORNER = 6;

void clv__svg_finish_text(clv__text *into, clv__text *text) {
  into->failed = into->failed || text->failed;
  clv__text_finish(text);
}

void clv__svg_text(clv__text *text, double x, double y, const char *style, double size, double width, const char *content) {
  clv__text fitted;
  clv__text_init(&fitted, text->allocator);
  clv__fit_append(&fitted, content, size, width);
  clv__text_append(text, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
  clv__label_xml(text, fitted.data);
  clv__text_append(text, "</text>\n");
  clv__svg_finish_text(text, &fitted);
}

/* ---- Lines ---- */

static bool is_curve(const double *from, const double *to) {
  return to[1] - from[1] > 9 && fabs(to[0] - from[0]) > 0.5;
}

/* Returns the radius with which to round the corner at `at`, or 0 if there is no right angle. */
static double corner_of(const double *before, const double *at, const double *after) {
  if (is_curve(before, at) || is_curve(at, after)) return 0;
  bool flat_before = fabs(at[0] - before[0]) > 0.5, flat_after = fabs(after[0] - at[0]) > 0.5;
  double shorter = fmin(fabs(at[0] - before[0]) + fabs(at[1] - before[1]), fabs(after[0] - at[0]) + fabs(after[1] - at[1]));
  return flat_before == flat_after || shorter < 1 ? 0 : fmin(CORNER, shorter / 2);
}

static double sign_of(double number) {
  return number > 0 ? 1 : number < 0 ? -1 : 0;
}

void clv__svg_path(clv__text *text, const char *style, const double *points, uint32_t count, double dx, double dy, bool arrow) {
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

static void draw_lines(clv__picture *p) {
  const clv__diagram *d = &p->diagram;
  for (uint32_t i = 0; i < d->line_count; ++i) {
    const clv__line *line = &d->lines[i];
    clv__svg_path(p->text,
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

/* Appends the label of a transfer, such as "relu · 3.1 MiB · 0.31 ms". */
static void append_transfer(const clv__picture *p, const clv__item *item, double width, clv__text *line) {
  clv__text rest;
  char label[CLV__LABEL_BYTES];
  clv__text_init(&rest, p->text->allocator);
  if (item->kind == CLV__ITEM_SHARED) {
    clv__text_append(&rest, "in shared memory");
  } else {
    clv__text_append(&rest, " · %s", item->size_known ? clv__label_size(item->size_bytes, label) : "open size");
    clv__text_append(&rest, " · %s", clv__label_time(item->time_ns, label));
  }
  if (item->count > 1) {
    clv__text_append(line, "%u values", item->count);
  } else if (item->kind == CLV__ITEM_TRANSFER) {
    const clv__transfer *transfer = &p->plan->transfers[item->index];
    if (transfer->boundary == CLV__BOUNDARY_WEIGHT) clv__text_append(line, "weight ");
    clv__fit_append(line, p->plan->graph->values[transfer->value].name, CLV__SVG_SMALL,
                    width - clv__fit_width(rest.data, CLV__SVG_SMALL) - clv__fit_width(line->data, CLV__SVG_SMALL));
  }
  clv__text_append(line, "%s", rest.data);
  clv__svg_finish_text(line, &rest);
}

static void draw_label(clv__picture *p, const clv__item *item) {
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
  clv__svg_text(p->text, clv__svg_column_left(d, item) + (left + right) / 2, item->y - 5, "label", CLV__SVG_SMALL, right - left,
                line.data);
  clv__svg_finish_text(p->text, &line);
}

/* ---- The picture ---- */

static void draw_lanes(clv__picture *p) {
  const clv__diagram *d = &p->diagram;
  for (uint32_t c = 0; c < d->column_count; ++c) {
    for (uint32_t l = 0; l < d->lane_count; ++l) {
      const clv__lane *lane = &d->lanes[l];
      double x = CLV__SVG_MARGIN + c * d->column_width + lane->left;
      uint32_t color = clv__palette_index(lane->device);
      clv__text_append(p->text, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"10\" class=\"lane d%u\"/>\n", x,
                       d->top, lane->width, d->height - d->top - 14, color);
      char style[32];
      snprintf(style, sizeof style, "lane-name ink d%u", color);
      clv__svg_text(p->text, x + 14, d->top + 26, style, CLV__SVG_BOLD * 15, lane->width - 28,
                    lane->device == CLV__NO_ID ? "host" : p->plan->devices->items[lane->device].name);
    }
  }
}

static void draw_items(clv__picture *p) {
  const clv__diagram *d = &p->diagram;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    const clv__item *item = &d->items[i];
    if (item->kind == CLV__ITEM_PARTITION) {
      clv__svg_box(p, item);
    } else if (item->kind == CLV__ITEM_GAP) {
      char number[CLV__LABEL_BYTES];
      double width = d->lanes[d->lane_count - 1].left + d->lanes[d->lane_count - 1].width;
      clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"middle\">… %s more steps …</text>\n",
                       clv__svg_column_left(d, item) + width / 2, item->y + 25, clv__label_grouped(item->count, number));
    } else {
      draw_label(p, item);
    }
  }
}

static void draw_body(clv__picture *p) {
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
  clv__picture p = {.plan = plan, .text = text};
  if (clv__diagram_make(plan, false, clv__svg_head_height(plan), &arena, &p.diagram)) {
    double width = fmax(p.diagram.width, NARROWEST);
    clv__text_append(
        text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<style>\n",
        width, p.diagram.height, width, p.diagram.height);
    clv__svg_fonts(text);
    clv__svg_colors(false, text);
    clv__text_append(text, "@media (prefers-color-scheme: dark) {\n");
    clv__svg_colors(true, text);
    clv__text_append(text, "}\n</style>\n<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n");
    clv__svg_head(&p, width);
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
  clv__picture p = {.plan = plan, .text = text};
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
