/* What the files of a measurement share: which blocks are measured, in which order, and for how long (blocks.c). */
#ifndef CLEAVE_GNN_MEASURE_MEASURE_OWN_H
#define CLEAVE_GNN_MEASURE_MEASURE_OWN_H

#include "gnn/measure/measure.h"
#include "gnn/measure/sizes.h"

/* A block of a layer on a device that some plan may hold: what is before and behind it others run. Where nothing is to be left
 * out, any block that the device runs. */
typedef struct clv__measure_entry {
  uint32_t layer, device, first, last;
  bool is_first; /* the longest that its device runs of the layer, mostly all of it: what others must be better than */
  bool is_needless, is_cut_off;
  uint32_t trial;             /* the size that it is tried at; CLV__NO_ID: none */
  uint64_t done;              /* a bit for each size */
  double spent_ns, work;      /* of these sizes */
  clv__layer_sizes too_large; /* what ran out of memory; 0 rows: nothing has */
  clv__measure_sizes sizes;
} clv__measure_entry;

typedef struct clv__measuring {
  const clv__gnn_planning *planning;
  const clv__gnn_measure_options *options;
  clv__tables *tables;
  uint64_t begin_ns;
  uint32_t strangers; /* other devices that the tables have */
  uint32_t count;
  clv__measure_entry *entries; /* the first ones first, then by what they move */
  clv__gnn_measured *measured;
} clv__measuring;

/* Finds the entries, in the allocator of the planning. */
clv_status clv__measure_entries_find(clv__measuring *m, clv_error *error);
void clv__measure_entries_finish(clv__measuring *m); /* accepts one without */
/* The most bytes that copies and packing move for what is, or may yet be, measured; `all`: at every size of every block, tried
 * or not. */
uint64_t clv__measure_entries_bytes(const clv__measuring *m, bool all);

/* The first ones, all sizes; then each other one at one size, by which those that no plan would hold are left out. */
clv_status clv__measure_entries_try(clv__measuring *m, clv_error *error);
/* All that is left, smaller sizes first, until the time is over. */
clv_status clv__measure_entries_rest(clv__measuring *m, clv_error *error);

/* ---- Schedule costs besides blocks and copies: waiting threads, devices that switch executables (overheads.c) ---- */

/* Merging: from one thread's telling that its part is done to another's going on. Values are in the host's memory by then, where
 * each part has left its own rows: nothing is copied. Exchanging: from the end of a layer's threads to the begin of the next
 * one's; rows are in the host's memory then too. */
clv_status clv__measure_threads(clv__tables *tables, uint32_t device_count, uint32_t runs, clv_error *error);
/* Switching: what a run of a small block takes longer behind one of another executable than behind one of its own. Of every
 * device of the planning. */
clv_status clv__measure_switches(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                                 clv_error *error);

#endif
