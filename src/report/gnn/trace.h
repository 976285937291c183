/* Writes the timeline of a GNN run to a file for Chrome and Perfetto. */
#ifndef CLEAVE_REPORT_GNN_TRACE_H
#define CLEAVE_REPORT_GNN_TRACE_H

#include "gnn/run/run.h"

/* Writes a file in the Trace Event Format (JSON) with one row per device. Each task states its predicted time. Nested in the task
 * are spans for gathering and padding its input and for laying out its result. The file is written completely or not at all.
 * `stages` has the stages of each layer. */
clv_status clv__report_gnn_trace(const clv_allocator *allocator, const clv__gnn_record *record, const clv__machine *machine,
                                 const clv__stages *stages, const char *path, clv_error *error);

#endif
