/* Draws a partition: its box, its description and, in CLV__FORM_NODES, its nodes. */
#include "report/label.h"
#include "report/picture/fit.h"
#include "report/picture/palette.h"
#include "report/picture/svg_parts.h"

enum { PADDING = 14, TEXT_LINE = 17, NUMBER_ROOM = 34 };

/* Appends the title element of a box, which browsers show as a tooltip. */
static void draw_tooltip(clv__picture *p, const clv__partition *partition) {
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

static void draw_values(clv__picture *p, double x, double y, double room, const char *word, const clv_graph_view *view,
                        bool outputs) {
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
    clv__fit_append(&line, name, CLV__SVG_SMALL,
                    room - clv__fit_width(line.data, CLV__SVG_SMALL) - clv__fit_width(type.data, CLV__SVG_SMALL));
    clv__text_append(&line, "%s", type.data);
  }
  if (count > 3) clv__text_append(&line, " and %u more", count - 3);
  if (count == 0) clv__text_append(&line, "nothing");
  clv__svg_text(p->text, x, y, "small", CLV__SVG_SMALL, room, line.data);
  clv__svg_finish_text(p->text, &line);
  clv__svg_finish_text(p->text, &type);
}

/* Sets `line` to the operators of a partition: at most `most`, and as many as fit into `room` pixels, but at least one. */
static void append_operators(const clv_plan *plan, const clv__partition *partition, uint32_t most, double room, clv__text *line) {
  bool failed = line->failed;
  for (uint32_t limit = most; limit > 0; --limit) {
    failed = failed || line->failed;
    clv__text_finish(line);
    clv__label_operators(line, plan->graph, partition->nodes, partition->node_count, limit);
    if (clv__fit_width(line->data, CLV__SVG_SMALL) <= room) break;
  }
  line->failed = line->failed || failed;
}

static void draw_operators(clv__picture *p, double x, double y, double room, const clv__partition *partition, uint32_t most) {
  clv__text line;
  clv__text_init(&line, p->text->allocator);
  append_operators(p->plan, partition, most, room, &line);
  clv__svg_text(p->text, x, y, "small", CLV__SVG_SMALL, room, line.data);
  clv__svg_finish_text(p->text, &line);
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
  clv__svg_finish_text(text, &op);
  clv__svg_finish_text(text, &name);
}

void clv__svg_content(const clv_plan *plan, const clv__box *box, double dx, double dy, clv__text *text) {
  for (uint32_t i = 0; i < box->wire_count; ++i) {
    clv__svg_path(text, "edge", box->wires[i].points, box->wires[i].point_count, dx, dy, false);
  }
  for (uint32_t i = 0; i < box->chip_count; ++i) draw_chip(plan, &box->chips[i], dx, dy, text);
}

void clv__svg_box(clv__picture *p, const clv__item *item) {
  const clv__diagram *d = &p->diagram;
  const clv__partition *partition = &p->plan->partitions[item->index];
  const clv__lane *lane = &d->lanes[item->from];
  double left = clv__svg_column_left(d, item) + lane->box_left, x = left + PADDING, right = left + lane->box_width - PADDING;
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
    draw_operators(p, x + NUMBER_ROOM, base, room - NUMBER_ROOM - 8 - clv__fit_width(right_text.data, CLV__SVG_SMALL), partition,
                   3);
  } else {
    clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">Partition %u</text>\n", x, base, item->index);
  }
  if (d->form == CLV__FORM_CARDS) {
    draw_operators(p, x, base + TEXT_LINE + 2, room, partition, 4);
    draw_values(p, x, base + 2 * TEXT_LINE + 2, room, "in", partition->view, false);
    draw_values(p, x, base + 3 * TEXT_LINE + 2, room, "out", partition->view, true);
  }
  clv__text_append(p->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"right\">%s</text>\n", right, base, right_text.data);
  clv__svg_finish_text(p->text, &right_text);
  draw_tooltip(p, partition);
  if (item->box != NULL) clv__svg_content(p->plan, item->box, left + (lane->box_width - item->box->width) / 2, item->y, p->text);
  clv__text_append(p->text, "</g>\n");
}
