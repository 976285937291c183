/* Writes the trace of a session for Chrome and Perfetto. */
#ifndef CLEAVE_REPORT_TRACE_H
#define CLEAVE_REPORT_TRACE_H

#include "base/text.h"
#include "execute/session.h"

/* A step inside a partition, such as a kernel, with its time in one run. */
typedef struct clv__trace_operator {
  uint32_t partition;
  const char *label;          /* the operators of its nodes or, without nodes, the device's name for the step */
  const char *implementation; /* may be "" */
  const char *node;           /* the name of its first node; "" if it has none */
  uint64_t time_ns;
} clv__trace_operator;

typedef struct clv__trace_operators {
  clv__arena arena;
  clv__trace_operator *items; /* by partition, in the order in which they run */
  size_t count, capacity;
} clv__trace_operators;

/* Measures the steps inside the partitions, on devices that report them, in an additional run of the session, which the
 * callback `run` makes. That run executes everything anew, without captures. The session must have run before. Call
 * clv__trace_operators_finish() afterwards, also on failure. */
clv_status clv__trace_operators_measure(clv_session *session, clv_status (*run)(void *user_data, clv_error *error),
                                        void *user_data, clv__trace_operators *operators, clv_error *error);
void clv__trace_operators_finish(clv__trace_operators *operators); /* accepts one that is all zero */

/* Appends a document in the Trace Event Format (JSON). Each device has a row for partitions and one for copies; each request in
 * flight has a row for the host thread that drives it. Partitions and copies also state their predicted time. Operators (NULL:
 * none) are drawn inside their partitions, one after the other, shortened if they took longer than the partition. */
void clv__report_trace(const clv_plan *plan, const clv__trace_event *events, size_t count, const clv__trace_operators *operators,
                       clv__text *text);

#endif
