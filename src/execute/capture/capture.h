/* Capture and replay: records a request's partitions once for each set of shapes, and issues them again as one, on capable
 * devices. */
#ifndef CLEAVE_EXECUTE_CAPTURE_CAPTURE_H
#define CLEAVE_EXECUTE_CAPTURE_CAPTURE_H

#include "cleave/session.h"
#include "execute/capture/cache.h"
#include "execute/capture/issue.h"

typedef struct clv__issue_info {
  clv__issue issue;
  const char *why; /* the reason for EAGER: static storage */
} clv__issue_info;

/* Describes partition `index` of the session's current plan in the last run of the request that ran last. Runs that are timed
 * step by step do not count. No run may be in progress. */
void clv__session_issue(clv_session *session, uint32_t index, clv__issue_info *info);
/* Returns the counters of the device's captures over all sessions; false if it has none. */
bool clv__session_captures(const clv_session *session, uint32_t device, clv__capture_counters *counters);

#endif
