/* How partitions are issued to a device that can capture. */
#ifndef CLEAVE_EXECUTE_CAPTURE_ISSUE_H
#define CLEAVE_EXECUTE_CAPTURE_ISSUE_H

/* How a partition was issued in the last run of its request. */
typedef enum clv__issue {
  CLV__ISSUE_NONE,     /* not yet */
  CLV__ISSUE_EAGER,    /* launch by launch; clv__session_issue() has the reason */
  CLV__ISSUE_CAPTURED, /* recorded in this run, then launched */
  CLV__ISSUE_REPLAYED  /* launched from an earlier recording */
} clv__issue;

#endif
