/* Lays out the picture of a plan. Each device has a lane, in which its partitions are boxes from top to bottom. Transfers are
 * lines between lanes. Steps that can run at the same time may be side by side. A tall picture continues in further columns.
 * Small plans show their nodes, larger plans one box per partition. In very long plans, the middle is replaced by the number of
 * omitted steps. */
#ifndef CLEAVE_REPORT_PICTURE_DIAGRAM_H
#define CLEAVE_REPORT_PICTURE_DIAGRAM_H

#include "report/picture/box.h"

typedef enum clv__form {
  CLV__FORM_NODES, /* partitions as boxes around their nodes */
  CLV__FORM_CARDS, /* partitions as boxes that summarise their content */
  CLV__FORM_LINES  /* partitions as boxes with one line of text */
} clv__form;

typedef enum clv__item_kind {
  CLV__ITEM_PARTITION,
  CLV__ITEM_TRANSFER, /* `count` consecutive transfers between the same lanes */
  CLV__ITEM_SHARED,   /* a value that a device reads in memory shared with its producer, without a copy */
  CLV__ITEM_GAP       /* `count` omitted steps */
} clv__item_kind;

typedef struct clv__item {
  clv__item_kind kind;
  bool own;       /* a transfer of the graph's inputs or outputs */
  uint32_t index; /* of the partition, or of the first transfer in plan->transfers */
  uint32_t count;
  uint64_t size_bytes, time_ns;
  bool size_known;
  uint32_t from, to; /* indices of lanes; equal for a partition */
  uint32_t column;
  double y, height; /* y is the top of a box, or the position of a transfer's line */
  const clv__box *box;
} clv__item;

typedef struct clv__lane {
  uint32_t device;    /* CLV__NO_ID: the lane of host memory, which exists if no device of the list works in it */
  uint32_t tracks[2]; /* number of vertical tracks for lines, to the left and to the right of the boxes */
  double left, width; /* `left` is relative to the column */
  double box_left, box_width;
} clv__lane;

/* A line between items, made of horizontal and vertical segments. */
typedef struct clv__line {
  uint32_t point_count;
  const double *points; /* x, y pairs */
  bool arrow, dashed, dotted;
} clv__line;

/* A mark beside an item, with the numbers of the partitions that its inputs come from. It replaces lines that would be too long
 * or for which no track is free. `numbers` has the first of `count` numbers. */
typedef struct clv__mark {
  double x, y;
  bool right; /* the text starts at x, otherwise it ends there */
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
  double top, width, height; /* of the picture; `top` is the top of the lanes, below the space for a head */
  double lane_head;          /* height of a lane's name */
} clv__diagram;

/* Lays out a plan. `collapse`: draws one box per partition even if there are few nodes. `head`: height of the space at the top.
 * Returns false if memory runs out. */
bool clv__diagram_make(const clv_plan *plan, bool collapse, double head, clv__arena *arena, clv__diagram *diagram);
/* The later steps of clv__diagram_make(): position the items (positions.c), then route the lines between them (wires.c). */
bool clv__diagram_position(clv__diagram *diagram, clv__arena *arena);
bool clv__diagram_connect(clv__diagram *diagram, clv__arena *arena);

/* The offsets from the top of a box at which the first line enters it and at which lines leave it. In CLV__FORM_LINES they allow
 * straight lines between boxes that alternate between two lanes, each half a box lower than the one before. */
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
