/* Capture and replay: records the launches of a request's partitions once for each set of shapes, and then issues them as one
 * launch, on devices that can capture. */
#ifndef CLEAVE_EXECUTE_CAPTURE_CAPTURE_H
#define CLEAVE_EXECUTE_CAPTURE_CAPTURE_H

#include "cleave/session.h"
#include "execute/capture/cache.h"
#include "execute/capture/issue.h"

typedef struct clv__issue_info {
  clv__issue issue;
  const char *why; /* the reason for EAGER: static storage */
} clv__issue_info;

/* Describes how partition `index` of the session's current plan was issued in the last run, not counting runs that are timed step
 * by step. No run may be in progress. */
void clv__session_issue(clv_session *session, uint32_t index, clv__issue_info *info);
/* Sets `counters` to those of the device's captures over all sessions. Returns false, and leaves `counters` as they are, if the
 * device has no cache of captures. */
bool clv__session_captures(const clv_session *session, uint32_t device, clv__capture_counters *counters);

#endif
