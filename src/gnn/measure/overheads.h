/* What a schedule takes beside blocks and copies: threads that wait for each other, devices that go on to another executable.
 * Between measure.c and here. */
#ifndef CLEAVE_GNN_MEASURE_OVERHEADS_H
#define CLEAVE_GNN_MEASURE_OVERHEADS_H

#include "gnn/measure/measure.h"

/* Merging: from one thread's telling that its part is done to another's going on. Values are in the host's memory by then, where
 * each part has left its own rows: nothing is copied. Exchanging: from the end of a layer's threads to the begin of the next
 * one's; rows are in the host's memory then too. */
clv_status clv__measure_threads(clv__tables *tables, uint32_t device_count, uint32_t runs, clv_error *error);
/* Switching: what a run of a small block takes longer behind one of another executable than behind one of its own. Of every
 * device of the planning. */
clv_status clv__measure_switches(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                                 clv_error *error);

#endif
