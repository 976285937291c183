/* Writes the trace of a session to a file for Chrome and Perfetto. */
#ifndef CLEAVE_REPORT_TRACE_H
#define CLEAVE_REPORT_TRACE_H

#include "execute/session.h"

/* Writes a file in the Trace Event Format (JSON). Each device has a row for partitions and one for copies; each request in flight
 * has a row for the host thread that drives it. Partitions and copies also state their predicted time. The file is written
 * completely or not at all. */
clv_status clv__report_trace(const clv_plan *plan, const clv__trace_event *events, size_t count, const char *path,
                             clv_error *error);

#endif
