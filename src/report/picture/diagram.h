/* A plan as a picture, before it is drawn: a lane a device, partitions as boxes in them from top to bottom, transfers between the
 * lanes. What can run at the same time may stand side by side. A tall picture goes on in further columns. Small plans show their
 * nodes, larger ones a box a partition; of very many steps the middle is left out and counted. */
#ifndef CLEAVE_REPORT_PICTURE_DIAGRAM_H
#define CLEAVE_REPORT_PICTURE_DIAGRAM_H

#include "report/picture/box.h"

typedef enum clv__form {
  CLV__FORM_NODES, /* partitions as boxes around their nodes */
  CLV__FORM_CARDS, /* partitions as boxes that tell what is in them */
  CLV__FORM_LINES  /* the same in one line each */
} clv__form;

typedef enum clv__item_kind {
  CLV__ITEM_PARTITION,
  CLV__ITEM_TRANSFER, /* `count` of them that follow each other between the same lanes */
  CLV__ITEM_SHARED,   /* a value in memory that two devices share: no copy */
  CLV__ITEM_GAP       /* stands for `count` steps that are left out */
} clv__item_kind;

typedef struct clv__item {
  clv__item_kind kind;
  bool own;       /* of the graph's inputs or outputs */
  uint32_t index; /* of the partition, or of the first transfer in plan->transfers */
  uint32_t count;
  uint64_t size_bytes, time_ns;
  bool size_known;
  uint32_t from, to; /* lanes; of a partition the same */
  uint32_t column;
  double y, height; /* of the others than boxes: y is that of the line */
  const clv__box *box;
} clv__item;

typedef struct clv__lane {
  uint32_t device;    /* CLV__NO_ID: host memory, where no device of the list works in it */
  uint32_t tracks[2]; /* beside the boxes, left and right: room for lines */
  double left, width; /* within a column */
  double box_left, box_width;
} clv__lane;

/* A line between items, horizontal and vertical pieces. */
typedef struct clv__line {
  uint32_t point_count;
  const double *points; /* x, y pairs */
  bool arrow, dashed, dotted;
} clv__line;

/* Where a line would be too long, the number of the step it comes from. */
typedef struct clv__mark {
  double x, y;
  bool right; /* of the box: text begins at x, else it ends there */
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
  uint32_t *source_offsets, *sources; /* CSR by item: items it waits for */
  uint32_t column_count;
  double column_width, gutter; /* the room between two lanes */
  uint32_t line_count, mark_count;
  clv__line *lines;
  clv__mark *marks;
  double top, width, height; /* `top`: where the lanes begin; above it there is room for a head */
  double lane_head;
} clv__diagram;

/* `collapse`: a box a partition even where the nodes could be shown. `head`: room above. False when memory is out. */
bool clv__diagram_make(const clv_plan *plan, bool collapse, double head, clv__arena *arena, clv__diagram *diagram);
/* Its further parts: where items stand (places.c), and then the lines between them (wires.c). */
bool clv__diagram_place(clv__diagram *diagram, clv__arena *arena);
bool clv__diagram_connect(clv__diagram *diagram, clv__arena *arena);

/* Where a line enters and leaves a box, from its top. Of one line each: so that boxes which alternate between two lanes, each
 * half a box lower, are joined by straight lines. */
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
