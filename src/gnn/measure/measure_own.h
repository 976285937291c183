/* Shared by the files of a measurement. blocks.c decides which blocks are measured, in which order, and for how long. */
#ifndef CLEAVE_GNN_MEASURE_MEASURE_OWN_H
#define CLEAVE_GNN_MEASURE_MEASURE_OWN_H

#include "gnn/measure/measure.h"
#include "gnn/measure/sizes.h"

/* A block of a layer to measure on a device. With a time limit, only the blocks that some plan may contain have entries (other
 * devices then run the stages before and after them). Without one, all blocks that the device can run have entries. */
typedef struct clv__measure_entry {
  uint32_t layer, device, first, last;
  bool is_first; /* the longest block of the layer that its device runs, usually the whole layer; measured before all others */
  bool is_needless, is_cut_off; /* sizes are omitted: see clv__gnn_measured */
  uint32_t trial;               /* index of the size for the trial; CLV__NO_ID: none */
  uint64_t done;                /* the sizes that are measured: one bit per size */
  double spent_ns, work;        /* the time spent on the measured sizes, and their work (work_of()) */
  clv__layer_sizes too_large;   /* the smallest size that ran out of memory; rows 0: no size did */
  clv__measure_sizes sizes;
} clv__measure_entry;

typedef struct clv__measuring {
  const clv__gnn_planning *planning;
  const clv__gnn_measure_options *options;
  clv__tables *tables;
  uint64_t begin_ns;
  uint32_t strangers; /* number of devices in the tables that are not open */
  uint32_t count;
  clv__measure_entry *entries; /* sorted: is_first entries first, then by bytes read or computed */
  clv__gnn_measured *measured;
} clv__measuring;

/* Finds the entries. Uses the planning's allocator. */
clv_status clv__measure_entries_find(clv__measuring *m, clv_error *error);
void clv__measure_entries_finish(clv__measuring *m); /* accepts a struct without entries */
/* Returns the largest number of bytes that a measurement at one size copies or packs. Considers the entries that are not
 * needless: with `all`, every size; otherwise every size of the is_first entries, and the trial size of the other entries. */
uint64_t clv__measure_entries_bytes(const clv__measuring *m, bool all);

/* Measures the sizes of the is_first entries; a size that no fit needs is measured only if time allows. Then measures one size
 * of each other entry, its trial, which shows whether the block is needless. */
clv_status clv__measure_entries_try(clv__measuring *m, clv_error *error);
/* Measures the remaining sizes of the entries that are not needless, smaller sizes first, until time runs out. */
clv_status clv__measure_entries_rest(clv__measuring *m, clv_error *error);

/* ---- Schedule costs besides blocks and copies: waiting threads, devices that switch executables (overheads.c) ---- */

/* Measures two costs. Merging: the time from one thread's signal that its part is done until another thread continues. Nothing
 * is copied, because each part has already left its rows in host memory. Exchanging: the time from the end of one layer's
 * threads to the start of the next layer's; the rows are in host memory then, too. */
clv_status clv__measure_threads(clv__tables *tables, uint32_t device_count, uint32_t runs, clv_error *error);
/* Switching: the extra time of a small block's run after a run of another executable, compared with one after its own.
 * Measured for every device of the planning. */
clv_status clv__measure_switches(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                                 clv_error *error);

#endif
