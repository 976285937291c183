/* A session's trace for Chrome and Perfetto. */
#ifndef CLEAVE_REPORT_TRACE_H
#define CLEAVE_REPORT_TRACE_H

#include "execute/session.h"

/* Writes the Trace Event Format (JSON): one row per device, one for its copies, and one per request for its driver. Every
 * partition and copy has its predicted time. The file is written completely or not at all. */
clv_status clv__report_trace(const clv_plan *plan, const clv__trace_event *events, size_t count, const char *path,
                             clv_error *error);

#endif
