/* See svg.h. The picture is laid out once into rows (layout), then drawn back to front: lanes, arrows, boxes. */
#include "report/svg.h"

#include <stdio.h>
#include <string.h>

#include "report/fit.h"
#include "report/label.h"
#include "report/palette.h"
#include "report/steps.h"

enum {
  MARGIN = 28,
  NUMBER_WIDTH = 48, /* of the step numbers, at the left */
  LANE_WIDTH = 330,
  LANE_GAP = 24,
  NARROWEST = 560, /* picture: its title wants room */
  TITLE_HEIGHT = 100,
  LANE_HEADER = 58,
  BOX_INSET = 18,
  LINE = 17,
  COMPACT_ROWS = 40, /* more rows than this are drawn small */
  MOST_ROWS = 320,   /* more than this lose their middle */
  KEPT_HEAD = 220,
  KEPT_TAIL = 60,
  BOX_PADDING = 14,
  COMPACT_INDENT = 36, /* of the operators in a small box: room for the partition's number */
  MERGED_TRANSFERS = 3 /* longer runs of arrows between the same lanes become one */
};

/* A row is a partition, or transfers that follow each other between the same two lanes. */
typedef struct row {
  bool is_transfer;
  bool own;        /* of the graph's inputs or outputs */
  bool gap;        /* stands for `count` rows that are left out */
  uint32_t index;  /* of the partition, or of the first transfer in plan->transfers */
  uint32_t count;  /* transfers */
  uint32_t number; /* of the step; not of own transfers */
  uint64_t size_bytes;
  bool size_known;
  uint32_t from, to; /* lanes */
  double y, height;
} row;

typedef struct picture {
  const clv_plan *plan;
  clv__text *text;
  uint32_t lane_count; /* devices, and the host where none of them works in its memory */
  row *rows;
  uint32_t row_count;
  bool compact, has_own;
  double width, height;
} picture;

static double lane_left(uint32_t lane) {
  return MARGIN + NUMBER_WIDTH + lane * (double)(LANE_WIDTH + LANE_GAP);
}
static double lane_middle(uint32_t lane) {
  return lane_left(lane) + LANE_WIDTH / 2.0;
}

static const clv__colors *lane_colors(const picture *p, uint32_t lane) {
  return lane < p->plan->devices->count ? clv__palette(lane) : clv__palette_host();
}

/* The lane of a memory space as a device's partition sees it: of several devices that share it, the first. */
static uint32_t lane_of_space(const clv_plan *plan, uint32_t space) {
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (plan->devices->items[d].space == space) return d;
  }
  return plan->devices->count;
}

/* ---- Layout ---- */

static void add_step_row(picture *p, const clv__step *step, uint32_t number) {
  const clv_plan *plan = p->plan;
  row next = {.is_transfer = step->is_transfer, .index = step->index, .count = 1, .number = number};
  if (step->is_transfer) {
    const clv__transfer *transfer = &plan->transfers[step->index];
    next.own = transfer->boundary != CLV__BOUNDARY_INNER;
    p->has_own = p->has_own || next.own;
    next.from = lane_of_space(plan, transfer->from);
    next.to = lane_of_space(plan, transfer->to);
    next.size_bytes = transfer->size_bytes;
    next.size_known = transfer->size_known;
  }
  p->rows[p->row_count++] = next;
}

/* Runs of more than MERGED_TRANSFERS transfers between the same lanes become one row each. */
static void merge_rows(picture *p) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->row_count;) {
    uint32_t end = i + 1;
    row *first = &p->rows[i];
    while (end < p->row_count && first->is_transfer && p->rows[end].is_transfer && p->rows[end].from == first->from &&
           p->rows[end].to == first->to && p->rows[end].own == first->own) {
      ++end;
    }
    if (end - i > MERGED_TRANSFERS) {
      row merged = *first;
      for (uint32_t k = i + 1; k < end; ++k) {
        merged.size_bytes += p->rows[k].size_bytes;
        merged.size_known = merged.size_known && p->rows[k].size_known;
        ++merged.count;
      }
      p->rows[kept++] = merged;
    } else {
      for (uint32_t k = i; k < end; ++k) p->rows[kept++] = p->rows[k];
    }
    i = end;
  }
  p->row_count = kept;
}

static void drop_middle(picture *p) {
  if (p->row_count <= MOST_ROWS) return;
  uint32_t dropped = p->row_count - KEPT_HEAD - KEPT_TAIL;
  p->rows[KEPT_HEAD] = (row){.gap = true, .count = dropped};
  memmove(&p->rows[KEPT_HEAD + 1], &p->rows[p->row_count - KEPT_TAIL], KEPT_TAIL * sizeof *p->rows);
  p->row_count = KEPT_HEAD + 1 + KEPT_TAIL;
}

static void place_rows(picture *p) {
  double y = MARGIN + TITLE_HEIGHT + LANE_HEADER + 14;
  p->compact = p->row_count > COMPACT_ROWS;
  for (uint32_t i = 0; i < p->row_count; ++i) {
    row *r = &p->rows[i];
    r->y = y;
    if (r->gap)
      r->height = 44;
    else if (r->is_transfer)
      r->height = p->compact ? 24 : 38;
    else
      r->height = p->compact ? 26 : 22 + 4 * LINE;
    y += r->height + (p->compact ? 4 : 10);
  }
  p->height = y + 14;
  p->width = lane_left(p->lane_count) - LANE_GAP + MARGIN;
}

/* ---- Drawing ---- */

/* Text of at most `width` pixels in a style whose font has `size`. */
static void draw_text(picture *p, double x, double y, const char *style, double size, double width, const char *content) {
  clv__text fitted;
  clv__text_init(&fitted, p->text->allocator);
  clv__fit_append(&fitted, content, size, width);
  clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
  clv__label_xml(p->text, fitted.data);
  clv__text_append(p->text, "</text>\n");
  p->text->failed = p->text->failed || fitted.failed;
  clv__text_finish(&fitted);
}

static const char *file_name(const clv_graph *graph) {
  const char *slash = strrchr(graph->path, '/');
  const char *name = slash != NULL ? slash + 1 : graph->path;
  return name[0] != '\0' ? name : graph->name != NULL && graph->name[0] != '\0' ? graph->name : "model";
}

static void draw_head(picture *p) {
  const clv_plan *plan = p->plan;
  double width = p->width < NARROWEST ? NARROWEST : p->width, room = width - 2 * MARGIN;
  clv__text_append(p->text,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n"
                   "<style>\n"
                   "text { font-family: Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #23272e; }\n"
                   ".title { font-size: 20px; font-weight: 600; }\n"
                   ".sub { font-size: 12.5px; fill: #5b616b; }\n"
                   ".lane { font-size: 15px; font-weight: 600; }\n"
                   ".name { font-size: 13px; font-weight: 600; }\n"
                   ".small { font-size: 11.5px; fill: #444a54; }\n"
                   ".device { font-size: 11px; fill: #5b616b; }\n"
                   ".number { font-size: 11px; fill: #8a909a; text-anchor: end; }\n"
                   ".arrow { font-size: 11.5px; text-anchor: middle; paint-order: stroke; stroke: #fff; stroke-width: 4px; "
                   "stroke-linejoin: round; }\n"
                   ".right { font-size: 11.5px; fill: #444a54; text-anchor: end; }\n"
                   ".middle { font-size: 13px; fill: #5b616b; text-anchor: middle; }\n"
                   "</style>\n"
                   "<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" "
                   "orient=\"auto-start-reverse\"><path d=\"M0,1 L10,5 L0,9 z\" fill=\"#5b616b\"/></marker></defs>\n"
                   "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                   width, p->height, width, p->height);
  clv__text totals;
  clv__text_init(&totals, p->text->allocator);
  clv__text_append(&totals, "%s on ", file_name(plan->graph));
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    clv__text_append(&totals, "%s%s", d == 0 ? "" : d + 1 < plan->devices->count ? ", " : " and ", plan->devices->items[d].name);
  }
  draw_text(p, MARGIN, MARGIN + 18, "title", 1.1 * 20, room, totals.data); /* bold is a tenth wider */
  p->text->failed = p->text->failed || totals.failed;
  clv__text_finish(&totals);
  clv__report_totals(plan, &totals);
  if (p->has_own) clv__text_append(&totals, "Dashed: the graph's own inputs and outputs. Numbers at the left are the steps.\n");
  double y = MARGIN + 40;
  for (char *line = totals.data, *end; line[0] != '\0' && (end = strchr(line, '\n')) != NULL; line = end + 1, y += LINE) {
    *end = '\0';
    draw_text(p, MARGIN, y, "sub", 12.5, room, line);
  }
  p->text->failed = p->text->failed || totals.failed;
  clv__text_finish(&totals);
}

static void draw_lanes(picture *p) {
  const clv_devices *devices = p->plan->devices;
  double top = MARGIN + TITLE_HEIGHT;
  for (uint32_t lane = 0; lane < p->lane_count; ++lane) {
    const clv__colors *colors = lane_colors(p, lane);
    clv__text_append(p->text, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" rx=\"10\" fill=\"%s\"/>\n",
                     lane_left(lane), top, LANE_WIDTH, p->height - top - 10, colors->lane);
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"lane\" style=\"fill:%s\">", lane_left(lane) + BOX_INSET,
                     top + 25, colors->stroke);
    clv__label_xml(p->text, lane < devices->count ? devices->items[lane].name : "host");
    clv__text_append(p->text, "</text>\n");
    draw_text(p, lane_left(lane) + BOX_INSET, top + 43, "device", 11, LANE_WIDTH - 2 * BOX_INSET,
              lane < devices->count ? devices->items[lane].info.description : "memory of the machine; nothing runs here");
  }
}

/* Content of a box beyond its first line. */
static void draw_values(picture *p, double x, double y, const char *word, const clv_graph_view *view, bool outputs) {
  const double room = LANE_WIDTH - 2 * (BOX_INSET + BOX_PADDING);
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
    clv__fit_append(&line, name, 11.5, room - clv__fit_width(line.data, 11.5) - clv__fit_width(type.data, 11.5));
    clv__text_append(&line, "%s", type.data);
  }
  if (count > 3) clv__text_append(&line, " and %u more", count - 3);
  if (count == 0) clv__text_append(&line, "nothing");
  draw_text(p, x, y, "small", 11.5, room, line.data);
  p->text->failed = p->text->failed || line.failed || type.failed;
  clv__text_finish(&line);
  clv__text_finish(&type);
}

/* What a browser shows when the pointer rests on the box. */
static void draw_tooltip(picture *p, const clv__partition *partition) {
  enum { SHOWN = 40 };
  clv__text_append(p->text, "<title>");
  for (uint32_t i = 0; i < partition->node_count && i < SHOWN; ++i) {
    const clv__node *node = &p->plan->graph->nodes[partition->nodes[i]];
    if (i > 0) clv__text_append(p->text, "\n");
    clv__label_xml(p->text, node->name);
    clv__text_append(p->text, " (");
    clv__label_xml(p->text, node->op);
    clv__text_append(p->text, ")");
  }
  if (partition->node_count > SHOWN) clv__text_append(p->text, "\nand %u more", partition->node_count - SHOWN);
  clv__text_append(p->text, "</title>\n");
}

/* As many operators, `most` at most, as fit without being cut. */
static void append_operators(picture *p, const clv__partition *partition, uint32_t most, double room, clv__text *line) {
  for (uint32_t limit = most; limit > 0; --limit) {
    p->text->failed = p->text->failed || line->failed;
    clv__text_finish(line);
    clv__label_operators(line, p->plan->graph, partition->nodes, partition->node_count, limit);
    if (clv__fit_width(line->data, 11.5) <= room) return;
  }
}

static void draw_partition(picture *p, const row *r) {
  const clv__partition *partition = &p->plan->partitions[r->index];
  const clv__colors *colors = lane_colors(p, partition->device);
  double left = lane_left(partition->device) + BOX_INSET, x = left + BOX_PADDING;
  double right = left + LANE_WIDTH - 2 * BOX_INSET - BOX_PADDING;
  clv__text_append(p->text,
                   "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" rx=\"%d\" fill=\"%s\" stroke=\"%s\" "
                   "stroke-width=\"1.2\"/>\n",
                   left, r->y, LANE_WIDTH - 2 * BOX_INSET, r->height, p->compact ? 5 : 8, colors->fill, colors->stroke);
  clv__text line, nodes;
  clv__text_init(&line, p->text->allocator);
  clv__text_init(&nodes, p->text->allocator);
  clv__label_plural(&nodes, partition->node_count, "node");
  double room = right - x;
  if (p->compact) room -= COMPACT_INDENT + clv__fit_width(nodes.data, 11.5) + 8;
  append_operators(p, partition, p->compact ? 3 : 4, room, &line);
  if (p->compact) {
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">%u</text>\n", x, r->y + LINE, r->index);
    draw_text(p, x + COMPACT_INDENT, r->y + LINE, "small", 11.5, room, line.data);
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"right\">%s</text>\n", right, r->y + LINE, nodes.data);
  } else {
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">Partition %u</text>\n", x, r->y + 22, r->index);
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"right\">%s</text>\n", right, r->y + 22, nodes.data);
    draw_text(p, x, r->y + 22 + LINE, "small", 11.5, room, line.data);
    draw_values(p, x, r->y + 22 + 2 * LINE, "in", partition->view, false);
    draw_values(p, x, r->y + 22 + 3 * LINE, "out", partition->view, true);
  }
  p->text->failed = p->text->failed || line.failed || nodes.failed;
  clv__text_finish(&line);
  clv__text_finish(&nodes);
  draw_tooltip(p, partition);
  clv__text_append(p->text, "</g>\n");
}

static void draw_transfer(picture *p, const row *r) {
  double y = r->y + r->height - (p->compact ? 6 : 9), from = lane_middle(r->from), to = lane_middle(r->to);
  clv__text_append(p->text,
                   "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#5b616b\" stroke-width=\"1.4\"%s "
                   "marker-end=\"url(#head)\"/>\n<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"#5b616b\"/>\n",
                   from, y, to, y, r->own ? " stroke-dasharray=\"5 4\"" : "", from, y);
  clv__text line;
  clv__text_init(&line, p->text->allocator);
  if (r->count > 1) {
    clv__text_append(&line, "%u values", r->count);
  } else {
    clv__label_short(&line, p->plan->graph->values[p->plan->transfers[r->index].value].name, 34);
  }
  char size[CLV__LABEL_BYTES];
  clv__text_append(&line, "  ·  %s", r->size_known ? clv__label_size(r->size_bytes, size) : "size known when it runs");
  double between = to > from ? to - from : from - to;
  draw_text(p, (from + to) / 2, y - 6, "arrow", 11.5, between, line.data);
  p->text->failed = p->text->failed || line.failed;
  clv__text_finish(&line);
}

static void draw_rows(picture *p) {
  for (uint32_t i = 0; i < p->row_count; ++i) {
    const row *r = &p->rows[i];
    if (r->gap) {
      clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"middle\">… %u more rows …</text>\n",
                       (lane_left(0) + lane_left(p->lane_count) - LANE_GAP) / 2, r->y + 27, r->count);
      continue;
    }
    if (!r->own) {
      char last[16] = "";
      if (r->count > 1) snprintf(last, sizeof last, "–%u", r->number + r->count - 1);
      clv__text_append(p->text, "<text x=\"%d\" y=\"%.1f\" class=\"number\">%u%s</text>\n", MARGIN + NUMBER_WIDTH - 8,
                       r->is_transfer ? r->y + r->height - 5 : r->y + (p->compact ? LINE : 22), r->number, last);
    }
    if (r->is_transfer)
      draw_transfer(p, r);
    else
      draw_partition(p, r);
  }
}

void clv__report_svg(const clv_plan *plan, clv__text *text) {
  picture p = {.plan = plan, .text = text, .lane_count = plan->devices->count};
  p.rows = clv__allocate_zero(text->allocator, ((size_t)plan->step_count + 1) * sizeof *p.rows);
  if (p.rows == NULL) {
    text->failed = true;
    return;
  }
  for (uint32_t i = 0; i < plan->transfer_count; ++i) {
    const clv__transfer *transfer = &plan->transfers[i];
    if (lane_of_space(plan, transfer->from) == plan->devices->count ||
        lane_of_space(plan, transfer->to) == plan->devices->count) {
      p.lane_count = plan->devices->count + 1;
    }
  }
  uint32_t number = 0;
  for (uint32_t i = 0; i < plan->step_count; ++i) {
    add_step_row(&p, &plan->steps[i], number);
    number += !clv__step_is_own(plan, &plan->steps[i]);
  }
  merge_rows(&p);
  drop_middle(&p);
  place_rows(&p);
  draw_head(&p);
  draw_lanes(&p);
  draw_rows(&p);
  clv__text_append(text, "</svg>\n");
  clv__release(text->allocator, p.rows);
}
