/* What the devices of a GNN's run did when, as Chrome and Perfetto read it. */
#ifndef CLEAVE_REPORT_GNN_TRACE_H
#define CLEAVE_REPORT_GNN_TRACE_H

#include "gnn/run/run.h"

/* Writes the Trace Event Format (JSON): a row a device; each task with its predicted time, and in it what was spent on gathering
 * and padding before, and on laying out behind the block. Whole, or not at all. `stages` are the layers'. */
clv_status clv__report_gnn_trace(const clv_allocator *allocator, const clv__gnn_record *record, const clv__machine *machine,
                                 const clv__stages *stages, const char *path, clv_error *error);

#endif
