/* How partitions are issued to a device that can capture. */
#ifndef CLEAVE_EXECUTE_CAPTURE_ISSUE_H
#define CLEAVE_EXECUTE_CAPTURE_ISSUE_H

/* How a partition was issued in the last run of its request. */
typedef enum clv__issue {
  CLV__ISSUE_NONE,     /* not yet */
  CLV__ISSUE_EAGER,    /* launch by launch; why: clv__session_issue() */
  CLV__ISSUE_CAPTURED, /* recorded in this run, then launched */
  CLV__ISSUE_REPLAYED  /* launched as it was recorded before */
} clv__issue;

#endif
