/* A session's trace as Chrome and Perfetto read it. */
#ifndef CLEAVE_REPORT_TRACE_H
#define CLEAVE_REPORT_TRACE_H

#include "execute/session.h"

/* Writes the Trace Event Format (JSON): a row a device and one for its copies, a row for what each request's driver does; every
 * partition and copy with its predicted time. Whole, or not at all. */
clv_status clv__report_trace(const clv_plan *plan, const clv__trace_event *events, size_t count, const char *path,
                             clv_error *error);

#endif
