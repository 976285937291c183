/* Lays out a whole graph, or the body of a node, from top to bottom: a box for each node, pills for inputs and outputs, and wires
 * with the shapes of the values. Constants are lines in the boxes that read them. So are values from far above, because their
 * wires would cross the whole picture. */
#ifndef CLEAVE_REPORT_MODEL_LAYOUT_H
#define CLEAVE_REPORT_MODEL_LAYOUT_H

#include "base/text.h"
#include "graph/graph.h"

typedef enum clv__model_kind { CLV__MODEL_NODE, CLV__MODEL_INPUT, CLV__MODEL_OUTPUT } clv__model_kind;

/* The point at the bottom of a box where the wires of one value begin, with the value's type below it. */
typedef struct clv__model_port {
  clv_value_id value;
  double x;
} clv__model_port;

typedef struct clv__model_line {
  clv_value_id value;
  bool far; /* the value is computed far above; otherwise it is a constant */
} clv__model_line;

typedef struct clv__model_box {
  clv__model_kind kind;
  uint32_t id; /* of the node or of the value */
  uint32_t rank;
  double x, width, height; /* x is the centre; the top of the box is the top of its rank */
  uint32_t port_first, port_count;
  uint32_t line_first, line_count;
} clv__model_box;

typedef struct clv__model_wire {
  uint32_t from, to; /* boxes */
  uint32_t port;     /* index in `ports` */
  uint32_t bend_count;
  const double *bends; /* the x at which the wire crosses each rank between its ends */
} clv__model_wire;

typedef struct clv__model_layout {
  uint32_t box_count, port_count, line_count, wire_count, rank_count;
  clv__model_box *boxes;
  clv__model_port *ports;
  clv__model_line *lines;
  clv__model_wire *wires;
  double *tops, *bottoms; /* indexed by rank */
  double width, height;
} clv__model_layout;

enum { CLV__MODEL_PORTS = 4, CLV__MODEL_LINES = 6 }; /* most ports and lines of a box that are drawn */

/* Texts of the picture. The layout asks for them to measure boxes; the page prints the same texts. */
typedef struct clv__model_texts {
  const clv_graph *graph;
  const clv_graph *model; /* owns the files that hold the constants of `graph` */
  const clv_tensor *types;
  uint32_t marks; /* boxes have room for this many marks of devices */
} clv__model_texts;

/* Append the texts of a box, shortened to its width: the operator (nodes only) to `bold`, the name to `name`. */
void clv__model_box_text(const clv__model_texts *texts, const clv__model_box *box, clv__text *bold, clv__text *name);
/* Appends the text of a line, shortened to the width of its box: "W f32[64,3,7,7]", "axes = -1". */
void clv__model_line_text(const clv__model_texts *texts, const clv__model_box *box, const clv__model_line *line, clv__text *text);
/* Returns whether a value is a constant that is drawn as a line in the boxes of its readers, without a box of its own: an
 * initializer that is not also a graph input, or the only output of a node without inputs, if the data of that output is known.
 */
bool clv__model_is_inlined(const clv_graph *graph, const clv_tensor *types, clv_value_id value);

/* Returns false if memory runs out. */
bool clv__model_lay_out(const clv__model_texts *texts, clv__arena *arena, clv__model_layout *layout);

#endif
