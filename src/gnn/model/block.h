/* Blocks of a layer as graphs, which any device compiles and any session runs: the inputs are what the block reads, the outputs
 * what it makes (stage.h), both in the order of clv__layer_value, named by clv__layer_value_name(). Weights are the model's own
 * bytes: it must outlive the graph. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_H
#define CLEAVE_GNN_MODEL_BLOCK_H

#include "cleave/session.h"
#include "device/device.h"
#include "gnn/data/partition.h"
#include "gnn/model/stage.h"

/* What sizes a block is made for.
 *
 * Open: any, in one graph: dimensions "rows", "targets", "edges". Fixed: these. The padded form, for devices of fixed shapes, is
 * fixed with same_rows: n_pad rows and as many targets, m_pad edges. Behind the rows that there are come zeros, of which the last
 * is the dummy vertex that padded edges belong to; offsets repeat the last one; sources and destinations are the dummy vertex.
 * What is made of the padding is to be dropped. */
typedef struct clv__block_form {
  bool is_fixed;
  bool same_rows; /* targets are the rows: sizes.targets == sizes.rows where they are fixed */
  clv__layer_sizes sizes;
} clv__block_form;

static inline clv__block_form clv__block_form_open(bool same_rows) {
  return (clv__block_form){.same_rows = same_rows};
}
static inline clv__block_form clv__block_form_fixed(clv__layer_sizes sizes) {
  return (clv__block_form){.is_fixed = true, .same_rows = sizes.rows == sizes.targets, .sizes = sizes};
}
/* Rows and edges rounded up to multiples of `step` (1: none but the dummy vertex); one row more is asked for where edges are
 * padded. */
clv__block_form clv__block_form_padded(uint64_t rows, uint64_t edges, uint64_t step);

typedef struct clv__block {
  clv_graph *graph;
  clv__stages stages;
  uint32_t first, last; /* of its stages */
  clv__block_form form;
  clv__value_set reads, makes;
  uint32_t input_count, output_count;
  clv__layer_value inputs[CLV__LAYER_VALUES], outputs[CLV__LAYER_VALUES];
} clv__block;

clv_status clv__block_make(const clv_allocator *allocator, const clv__stages *stages, uint32_t first, uint32_t last,
                           const clv__block_form *form, clv__block *block, clv_error *error);
void clv__block_finish(clv__block *block); /* accepts a zeroed one */

/* Whether a device runs all of a block; otherwise `reason` names the first node that it does not, and why. Devices of fixed
 * shapes are asked about fixed ones: an open form is judged as they would be given it. */
clv_status clv__block_ask(clv_devices *devices, uint32_t device, const clv__block *block, bool *runs, char reason[200],
                          clv_error *error);

/* What each device says of each block of a layer. */
typedef struct clv__stage_table {
  uint32_t stage_count, device_count;
  bool runs[CLV__MAX_DEVICES][CLV__MOST_STAGES][CLV__MOST_STAGES + 1]; /* [device][first][last] */
  char reasons[CLV__MAX_DEVICES][CLV__MOST_STAGES][200];               /* [device][stage alone]; "": it runs */
} clv__stage_table;
clv_status clv__stage_table_make(clv_devices *devices, const clv__stages *stages, clv__stage_table *table, clv_error *error);

/* ---- Running ---- */

/* All values of a layer at work, by kind. dtype none: not there (yet). */
typedef struct clv__layer_values {
  clv_tensor items[CLV__LAYER_VALUES];
} clv__layer_values;

/* A block compiled for one device of a set, or (device CLV__NO_ID) for all of it, placed as any model is. */
typedef struct clv__block_run {
  clv__block block; /* its own */
  clv_plan *plan;
  clv_session *session;
} clv__block_run;

/* Takes `block` over, whatever this comes to. A device that does not run all of it is an error with the reason. */
clv_status clv__block_open(clv_devices *devices, uint32_t device, clv__block *block, const clv_session_options *options,
                           clv__block_run *run, clv_error *error);
void clv__block_close(clv__block_run *run); /* accepts a zeroed one */

/* Prepares for a run with these sizes, so that the first one takes no longer than the next. */
clv_status clv__block_prepare(clv__block_run *run, clv__layer_sizes sizes, clv_error *error);

/* Runs once: reads values->items of what the block reads, and writes those of what it makes: where these have data, there (their
 * types must be right); otherwise into the session's memory, valid until the next run, before which they must be cleared. */
clv_status clv__block_execute(clv__block_run *run, clv__layer_values *values, clv_error *error);

#endif
