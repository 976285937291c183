/* Blocks of a layer as graphs. Any device can compile them and any session can run them. The graph's inputs are the values
 * that the block reads and its outputs are those that it computes (stage.h). Both are in clv__layer_value order and named by
 * clv__layer_value_name(). The weights point into the model, which must outlive the graph. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_H
#define CLEAVE_GNN_MODEL_BLOCK_H

#include "analysis/shapes.h"
#include "cleave/session.h"
#include "device/device.h"
#include "gnn/data/partition.h"
#include "gnn/model/stage.h"

/* The sizes that a block is built for.
 *
 * Open: one graph for any sizes, with symbolic dimensions "rows", "targets", "edges". Fixed: exactly `sizes`. The padded form,
 * for devices that need fixed shapes, is fixed with same_rows: n_pad rows, as many targets, m_pad edges. Padding rows are
 * zero; the last one is the dummy vertex that padding edges belong to. Padding offsets repeat the last offset. Padding sources
 * and destinations are the dummy vertex. Callers must discard the results of the padding. */
typedef struct clv__block_form {
  bool is_fixed;
  bool same_rows; /* the targets are all rows; in a fixed form, sizes.targets == sizes.rows */
  clv__layer_sizes sizes;
} clv__block_form;

static inline clv__block_form clv__block_form_open(bool same_rows) {
  return (clv__block_form){.same_rows = same_rows};
}
static inline clv__block_form clv__block_form_fixed(clv__layer_sizes sizes) {
  return (clv__block_form){.is_fixed = true, .same_rows = sizes.rows == sizes.targets, .sizes = sizes};
}
/* Rounds rows and edges up to multiples of `step`. If that pads the edges, it adds the dummy vertex to the rows before rounding.
 */
clv__block_form clv__block_form_padded(uint64_t rows, uint64_t edges, uint64_t step);

typedef struct clv__block {
  clv_graph *graph;
  clv__stages stages;
  uint32_t first, last; /* stages [first, last) */
  clv__block_form form;
  clv__value_set reads, makes;
  uint32_t input_count, output_count;
  clv__layer_value inputs[CLV__LAYER_VALUES], outputs[CLV__LAYER_VALUES];
} clv__block;

clv_status clv__block_make(const clv_allocator *allocator, const clv__stages *stages, uint32_t first, uint32_t last,
                           const clv__block_form *form, clv__block *block, clv_error *error);
void clv__block_finish(clv__block *block); /* accepts a zeroed struct */

/* A block's graph as one view, with the types inferred from the block's form. */
typedef struct clv__block_view {
  clv__arena arena;
  clv__shapes *shapes;
  clv_graph_view *view;
} clv__block_view;
clv_status clv__block_view_make(const clv__block *block, clv__block_view *view, clv_error *error);
void clv__block_view_finish(clv__block_view *view); /* accepts the result of a failed call */

/* Returns whether a device can run the whole block. If not, `reason` names the first unsupported node and the cause. If the
 * device needs fixed shapes, an open form is first converted to the padded form that the device would receive. */
clv_status clv__block_ask(clv_devices *devices, uint32_t device, const clv__block *block, bool *runs, char reason[200],
                          clv_error *error);

/* The blocks of a layer that each device can run. */
typedef struct clv__stage_table {
  uint32_t stage_count, device_count;
  bool runs[CLV__MAX_DEVICES][CLV__MOST_STAGES][CLV__MOST_STAGES + 1]; /* [device][first][last] */
  char reasons[CLV__MAX_DEVICES][CLV__MOST_STAGES][200];               /* [device][single stage]; "": supported */
} clv__stage_table;
clv_status clv__stage_table_make(clv_devices *devices, const clv__stages *stages, clv__stage_table *table, clv_error *error);

/* ---- Running ---- */

/* All values of a layer during a run, by kind. dtype none: not available (yet). */
typedef struct clv__layer_values {
  clv_tensor items[CLV__LAYER_VALUES];
} clv__layer_values;

/* A compiled block: for one device, or for all open devices, among which it is placed like any model (clv__block_open()). */
typedef struct clv__block_run {
  clv__block block; /* the compiled block; owned */
  clv_plan *plan;
  clv_session *session;
} clv__block_run;

/* Compiles `block` for the device, or for all devices if `device` is CLV__NO_ID. Takes ownership of `block`, even on failure.
 * Returns an error with the reason if the device cannot run the whole block. */
clv_status clv__block_open(clv_devices *devices, uint32_t device, clv__block *block, const clv_session_options *options,
                           clv__block_run *run, clv_error *error);
void clv__block_close(clv__block_run *run); /* accepts a zeroed struct */

/* Prepares a run with these sizes, so that the first run takes no longer than later ones. */
clv_status clv__block_prepare(clv__block_run *run, clv__layer_sizes sizes, clv_error *error);

/* Runs the block once. Reads the block's inputs from values->items and writes its outputs there. An output item that has data
 * receives the result in place; its type must be correct. Any other output item is set to the session's memory, which is valid
 * until the next run; clear the item before that run. */
clv_status clv__block_execute(clv__block_run *run, clv__layer_values *values, clv_error *error);

#endif
