/* The public trace of a session: see cleave/trace.h. */
#include "cleave/trace.h"

#include "base/document.h"
#include "base/options.h"
#include "report/trace.h"

void clv_session_trace_start(clv_session *session) {
  if (session == NULL) return;
  clv__session_trace_discard(session);
  clv__session_trace(session, true);
}

void clv_session_trace_stop(clv_session *session) {
  if (session != NULL) clv__session_trace(session, false);
}

/* One more run, whose outputs are discarded. */
typedef struct extra {
  clv_session *session;
  const clv_trace_options *options;
  clv__arena *arena;
} extra;

static void *allocate_output(void *user_data, uint32_t output, const clv_tensor *type) {
  size_t size_bytes;
  (void)output;
  return clv__tensor_size_bytes(type, &size_bytes) ? clv__arena_allocate_data(user_data, size_bytes) : NULL;
}

static clv_status run_extra(void *user_data, clv_error *error) {
  const extra *e = user_data;
  const clv_plan *plan = clv__session_plan(e->session);
  const uint32_t count = plan->graph->output_count + plan->kept_count;
  clv_tensor *outputs = clv__arena_allocate_zero(e->arena, count, sizeof *outputs);
  if (outputs == NULL) return clv__error_memory(error, count * sizeof *outputs);
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.allocate = allocate_output;
  options.user_data = e->arena;
  return clv_session_run_with(e->session, e->options->inputs, e->options->input_count, outputs, count, &options, error);
}

static clv_status measure(clv_session *session, const clv_trace_options *options, clv__trace_operators *operators,
                          clv_error *error) {
  clv__arena arena;
  if (options->inputs == NULL) return CLV_OK;
  clv__arena_init(&arena, clv__session_plan(session)->graph->allocator);
  extra e = {session, options, &arena};
  clv_status status = clv__trace_operators_measure(session, run_extra, &e, operators, error);
  clv__arena_finish(&arena);
  return status;
}

static clv_status check_recorded(const clv_session *session, clv_error *error) {
  size_t count;
  (void)clv__session_trace_events(session, &count);
  if (count > 0) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "no run was recorded: call clv_session_trace_start() before the runs");
}

clv_status clv_session_trace_write(clv_session *session, const clv_trace_options *options, const char *path, clv_emit_fn write,
                                   void *user_data, clv_error *error) {
  if (session == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "session must not be NULL");
  clv_trace_options read = CLV_TRACE_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&read, sizeof read, options, "CLV_TRACE_OPTIONS_INIT", error));
  CLV__TRY(clv__document_check_target(path, write, error));
  CLV__TRY(check_recorded(session, error));
  clv__session_trace(session, false);
  clv__trace_operators operators = {0};
  clv__text text;
  clv_status status = measure(session, &read, &operators, error);
  size_t count;
  const clv__trace_event *events = clv__session_trace_events(session, &count);
  if (status == CLV_OK && count == 0)
    status = clv__error_set(error, CLV_DEVICE_ERROR,
                            "the record is gone, because a device was removed while operators were measured: record again");
  if (status == CLV_OK) {
    const clv_plan *plan = clv__session_plan(session);
    clv__text_init(&text, plan->graph->allocator);
    clv__report_trace(plan, events, count, &operators, &text);
    status = clv__document_write(&text, path, write, user_data, error);
  }
  clv__trace_operators_finish(&operators);
  return status;
}
