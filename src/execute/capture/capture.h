/* Capture and replay: a request's partitions on a device that can, recorded once for each set of shapes and issued again as one.
 */
#ifndef CLEAVE_EXECUTE_CAPTURE_CAPTURE_H
#define CLEAVE_EXECUTE_CAPTURE_CAPTURE_H

#include "cleave/session.h"
#include "execute/capture/cache.h"
#include "execute/capture/issue.h"

typedef struct clv__issue_info {
  clv__issue issue;
  const char *why; /* of EAGER: static storage */
} clv__issue_info;

/* Of partition `index` of the session's current plan, in the last run of the request that ran last, runs that are timed step by
 * step aside. No run goes on. */
void clv__session_issue(clv_session *session, uint32_t index, clv__issue_info *info);
/* The counters of the device's captured graphs, of all sessions; false where it has none. */
bool clv__session_graphs(const clv_session *session, uint32_t device, clv__graph_counters *counters);

#endif
