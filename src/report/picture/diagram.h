/* The layout of a plan's picture: one lane per device, partitions as boxes in the lanes from top to bottom, transfers between
 * the lanes. Steps that can run at the same time may be side by side. A tall picture continues in further columns. Small plans
 * show their nodes; larger plans show one box per partition. For very many steps the middle is omitted and counted. */
#ifndef CLEAVE_REPORT_PICTURE_DIAGRAM_H
#define CLEAVE_REPORT_PICTURE_DIAGRAM_H

#include "report/picture/box.h"

typedef enum clv__form {
  CLV__FORM_NODES, /* partitions as boxes around their nodes */
  CLV__FORM_CARDS, /* partitions as boxes that summarise their content */
  CLV__FORM_LINES  /* the same in one line each */
} clv__form;

typedef enum clv__item_kind {
  CLV__ITEM_PARTITION,
  CLV__ITEM_TRANSFER, /* `count` consecutive transfers between the same lanes */
  CLV__ITEM_SHARED,   /* a value in memory shared by two devices: no copy */
  CLV__ITEM_GAP       /* stands for `count` omitted steps */
} clv__item_kind;

typedef struct clv__item {
  clv__item_kind kind;
  bool own;       /* of the graph's own inputs or outputs */
  uint32_t index; /* of the partition, or of the first transfer in plan->transfers */
  uint32_t count;
  uint64_t size_bytes, time_ns;
  bool size_known;
  uint32_t from, to; /* lanes; equal for a partition */
  uint32_t column;
  double y, height; /* for items other than boxes, y is that of the line */
  const clv__box *box;
} clv__item;

typedef struct clv__lane {
  uint32_t device;    /* CLV__NO_ID: host memory, if no listed device works in it */
  uint32_t tracks[2]; /* number of tracks for lines to the left and right of the boxes */
  double left, width; /* relative to the column */
  double box_left, box_width;
} clv__lane;

/* A line between items, made of horizontal and vertical segments. */
typedef struct clv__line {
  uint32_t point_count;
  const double *points; /* x, y pairs */
  bool arrow, dashed, dotted;
} clv__line;

/* Replaces lines that would be too long, or that find no track: the numbers of the partitions that they come from. `count` may
 * exceed the numbers kept. */
typedef struct clv__mark {
  double x, y;
  bool right; /* on the right of the box: text starts at x, otherwise it ends there */
  uint32_t count;
  uint32_t numbers[3];
} clv__mark;

typedef struct clv__diagram {
  const clv_plan *plan;
  clv__form form;
  uint32_t lane_count;
  clv__lane *lanes; /* from left to right */
  uint32_t lane_of_device[CLV__MAX_DEVICES];
  uint32_t item_count;
  clv__item *items;
  uint32_t *source_offsets, *sources; /* CSR by item: the items that it depends on */
  uint32_t column_count;
  double column_width, gutter; /* gutter: the space between two lanes */
  uint32_t line_count, mark_count;
  clv__line *lines;
  clv__mark *marks;
  double top, width, height; /* `top`: the top of the lanes, below the space for a head */
  double lane_head;
} clv__diagram;

/* `collapse`: one box per partition even if the nodes could be shown. `head`: space at the top. False if out of memory. */
bool clv__diagram_make(const clv_plan *plan, bool collapse, double head, clv__arena *arena, clv__diagram *diagram);
/* The later steps: position the items (positions.c), then draw the lines between them (wires.c). */
bool clv__diagram_position(clv__diagram *diagram, clv__arena *arena);
bool clv__diagram_connect(clv__diagram *diagram, clv__arena *arena);

/* The offset from the top of a box at which a line enters and leaves it. In CLV__FORM_LINES the offsets are chosen so that
 * straight lines connect boxes that alternate between two lanes, each half a box lower. */
static inline double clv__item_entry(const clv__diagram *d) {
  return d->form == CLV__FORM_LINES ? 5.5 : 20;
}
static inline double clv__item_exit(const clv__diagram *d, const clv__item *item) {
  return item->height - (d->form == CLV__FORM_LINES ? 5.5 : 16);
}
static inline bool clv__item_is_box(const clv__item *item) {
  return item->kind == CLV__ITEM_PARTITION;
}

#endif
