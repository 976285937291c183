/* The internals of a survey, which measures the nodes of a graph on one device. survey.c describes the method. */
#ifndef CLEAVE_COST_SURVEY_H
#define CLEAVE_COST_SURVEY_H

#include "cost/measure.h"

typedef struct clv__survey {
  const clv_devices *devices;
  const clv__device *device;
  const clv_graph *graph;
  const clv_graph_view *whole;
  const clv__shapes *shapes;
  const clv__measure_options *options;
  clv__profile *profile;
  clv__profile_device *tables;
  clv__arena arena;
  uint32_t *operators; /* by node: index in the tables; CLV__NO_ID: a view, or not measured */
  uint32_t *positions; /* by node: position in `list` */
  bool *is_view;
  bool *is_told; /* by operator of the tables, up to told_count: already measured alone in this survey */
  uint32_t told_count;
  clv_node_id *list; /* measurable nodes and views, one run after the other */
  uint32_t list_count;
  uint32_t *run_ends; /* by run: the position in `list` after its last node */
  uint32_t run_count;
  clv__map seen; /* text from clv__survey_look() -> index in `measures` */
  clv__measure *measures;
  size_t measure_count, measure_capacity;
  uint32_t *indices; /* operator or edge indices of the block that is being described */
  size_t index_capacity;
  clv__profile_term *terms;
  size_t term_capacity;
  uint32_t done;
  uint32_t block_limit;       /* the most blocks that may be measured */
  clv__expectation *expected; /* not NULL: blocks are counted here instead of measured */
  const uint64_t *prices_ns;  /* by node; NULL: blocks are counted without a time */
} clv__survey;

/* Calls the progress callback. */
void clv__survey_report(clv__survey *s, const char *what, uint32_t total);
/* Returns CLV_CANCELLED if the measurements should end. */
clv_status clv__survey_check(const clv__survey *s, clv_error *error);
/* Compiles and runs these nodes as one unit. `scratch_bytes` may be NULL. */
clv_status clv__survey_measure(clv__survey *s, const clv_node_id *nodes, uint32_t count, clv__measure *measure,
                               uint64_t *scratch_bytes, clv_error *error);
/* Adds an item that takes `time_ns` per run to the expectation. */
void clv__survey_expect(const clv__survey *s, uint64_t time_ns, clv__expectation *expected);
/* Counts the most blocks that clv__survey_blocks() may measure: all those of the case that no block takes as long as its nodes
 * together, so that every block is cut (survey_blocks.c). */
clv_status clv__survey_count_blocks(clv__survey *s, clv__expectation *expected, clv_error *error);
/* Measures blocks of the runs and adds their times to the profile (survey_blocks.c). */
clv_status clv__survey_blocks(clv__survey *s, clv_error *error);

/* ---- One block: list positions `from` to `to` - 1 (survey_terms.c) ---- */

/* Writes a hash, as text, of what the device runs for a block: its nodes, the edges between them, its inputs and outputs. */
void clv__survey_look(const clv__survey *s, uint32_t from, uint32_t to, char look[2 * CLV__HASH_BYTES + 1]);
/* Sets `measure` to the block's time in the profile; its `runs` is 0 if the profile does not have the block. */
clv_status clv__survey_find(clv__survey *s, uint32_t from, uint32_t to, clv__measure *measure, clv_error *error);
/* Adds a block's time to the profile, with its nodes and the edges that it cuts. */
clv_status clv__survey_put(clv__survey *s, uint32_t from, uint32_t to, const clv__measure *measure, clv_error *error);

#endif
