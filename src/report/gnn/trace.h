/* The timeline of the devices in a GNN run, for Chrome and Perfetto. */
#ifndef CLEAVE_REPORT_GNN_TRACE_H
#define CLEAVE_REPORT_GNN_TRACE_H

#include "gnn/run/run.h"

/* Writes the Trace Event Format (JSON) with one row per device. Each task has its predicted time. Inside it are the times of
 * gathering and padding before the block, and of writing the layout after it. The file is written completely or not at all.
 * `stages` are those of the layers. */
clv_status clv__report_gnn_trace(const clv_allocator *allocator, const clv__gnn_record *record, const clv__machine *machine,
                                 const clv__stages *stages, const char *path, clv_error *error);

#endif
