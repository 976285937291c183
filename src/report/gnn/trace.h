/* Writes the timeline of a GNN run for Chrome and Perfetto. */
#ifndef CLEAVE_REPORT_GNN_TRACE_H
#define CLEAVE_REPORT_GNN_TRACE_H

#include "gnn/run/run.h"

/* Appends a document in the Trace Event Format (JSON) with one row per device. Each task states its predicted time. Nested in the
 * task are spans for gathering and padding its input and for laying out its result. `stages` has the stages of each layer. */
void clv__report_gnn_trace(const clv__gnn_record *record, const clv__machine *machine, const clv__stages *stages,
                           clv__text *text);

#endif
