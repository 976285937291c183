/* Lays out the nodes of one partition as a graph. Nodes are drawn as chips, the partition's input and output values as pills. */
#ifndef CLEAVE_REPORT_PICTURE_BOX_H
#define CLEAVE_REPORT_PICTURE_BOX_H

#include "plan/plan.h"
#include "report/picture/layers.h"

enum { CLV__CHIP_HEIGHT = 24, CLV__RANK_HEIGHT = 40 };

typedef enum clv__chip_kind { CLV__CHIP_NODE, CLV__CHIP_INPUT, CLV__CHIP_OUTPUT } clv__chip_kind;

typedef struct clv__chip {
  clv__chip_kind kind;
  uint32_t id; /* id of the graph's node or value */
  double x, y; /* x of its centre and y of its top, relative to the upper left corner of the box */
  double width;
} clv__chip;

/* An edge from the bottom of one chip to the top of another. Segments that lead down may be drawn as curves. Segments that lead
 * sideways or up are straight; they occur only between the columns of a tall drawing. */
typedef struct clv__wire {
  uint32_t from, to; /* indices of chips */
  uint32_t point_count;
  const double *points; /* x, y pairs, including both ends */
} clv__wire;

typedef struct clv__box {
  uint32_t chip_count, wire_count;
  clv__chip *chips;
  clv__wire *wires;
  double width, height;
} clv__box;

/* State shared by the layouts of a plan's partitions. */
typedef struct clv__boxes {
  const clv_plan *plan;
  clv__arena *arena;
  uint32_t *chip_of_node, *chip_of_value; /* chips of the current partition */
} clv__boxes;

/* clv__boxes_init() and clv__box_make() return false if memory runs out. A layout with more than `most_ranks` ranks is divided
 * into columns side by side. */
bool clv__boxes_init(clv__boxes *boxes, const clv_plan *plan, clv__arena *arena);
bool clv__box_make(clv__boxes *boxes, const clv__partition *partition, uint32_t most_ranks, clv__box *box);

/* Appends the two texts of a chip: the operator, only for nodes, to `bold`, and the name, shortened to fit the chip, to `name`.
 */
void clv__chip_label(const clv_plan *plan, const clv__chip *chip, clv__text *bold, clv__text *name);

#endif
