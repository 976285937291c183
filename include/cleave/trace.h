/* Timelines of a session's runs, for https://ui.perfetto.dev and chrome://tracing. Unstable: may change until 1.0.
 *
 *   clv_session_trace_start(session)
 *   clv_session_run(session, ...)
 *   clv_session_trace_stop(session)
 *   clv_session_trace_write(session, NULL, "trace.json", NULL, NULL, &error)
 *
 * These functions must not overlap with each other or with runs of the session. */
#ifndef CLEAVE_TRACE_H
#define CLEAVE_TRACE_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records the following runs, and discards what was recorded before. Recording takes memory for each step of each run, and a
 * little time. If a device is removed, the record starts again, with the repetition of the run on the other devices. NULL is
 * ignored. */
CLV_API void clv_session_trace_start(clv_session *session);
/* Ends the recording, and keeps the record. NULL is ignored. */
CLV_API void clv_session_trace_stop(clv_session *session);

typedef struct clv_trace_options {
  uint32_t struct_size;
  /* If not NULL, one more run, with these inputs, measures the operators inside partitions on devices that report them. They are
   * drawn inside the recorded partitions. It executes everything anew, without captures, and is not recorded itself. Outputs in
   * the session's own memory become invalid. */
  const clv_tensor *inputs;
  uint32_t input_count;
} clv_trace_options;
#define CLV_TRACE_OPTIONS_INIT \
  { sizeof(clv_trace_options), NULL, 0 }

/* Writes the record in the Trace Event Format (JSON), to the file `path`, completely or not at all, or to `write`: one of them
 * must be NULL. `user_data` is passed to `write`. `options` may be NULL.
 *
 * Each device has a row for partitions and one for copies; each request in flight has a row for the host thread that drives it.
 * Partitions and copies also state their predicted time.
 *
 * Errors: CLV_INVALID_ARGUMENT if nothing was recorded, or for inputs that do not fit; CLV_IO_ERROR; CLV_CANCELLED by `write`;
 * CLV_OUT_OF_MEMORY; those of clv_session_run() if options->inputs is given. */
CLV_API CLV_MUST_USE clv_status clv_session_trace_write(clv_session *session, const clv_trace_options *options, const char *path,
                                                        clv_emit_fn write, void *user_data, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
