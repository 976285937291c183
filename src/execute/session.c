/* Creates, runs and destroys sessions. */
#include "execute/session.h"

#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "execute/session_own.h"

enum { PREPARED_SHAPES = 16, BUCKET_MULTIPLE = 64 };

static clv_status read_options(const clv_session_options *given, clv_session_options *options, clv_error *error) {
  *options = (clv_session_options)CLV_SESSION_OPTIONS_INIT;
  CLV__TRY(clv__options_read(options, sizeof *options, given, "CLV_SESSION_OPTIONS_INIT", error));
  if (options->in_flight == 0) options->in_flight = 1;
  if (options->prepared_shapes == 0) options->prepared_shapes = PREPARED_SHAPES;
  if (options->bucket_multiple == 0) options->bucket_multiple = BUCKET_MULTIPLE;
  if (options->in_flight > CLV_MAX_IN_FLIGHT) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u requests in flight; the maximum is %d", options->in_flight,
                          CLV_MAX_IN_FLIGHT);
  }
  if (!(options->device_time_limit_s >= 0) || options->device_time_limit_s > 1e9) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "device time limit of %g s: expected 0 (none) to 1e9",
                          options->device_time_limit_s);
  }
  if (options->precision == CLV_F32) options->precision = CLV_DTYPE_NONE; /* the same meaning, so the same cache key */
  if (options->precision != CLV_DTYPE_NONE && options->precision != CLV_BF16) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "precision %s: expected f32 or bf16", clv_dtype_name(options->precision));
  }
  return CLV_OK;
}

static void init_locks(clv_session *session) {
  pthread_mutex_init(&session->lock, NULL);
  clv__condition_init(&session->freed);
  pthread_mutex_init(&session->replacing, NULL);
  pthread_mutex_init(&session->turn_lock, NULL);
  clv__condition_init(&session->turn_ended);
}

static clv_status prepare_first(clv__request *request, const void *cookie, clv_error *error) {
  (void)cookie;
  CLV__TRY(clv__request_prepare(request, NULL, error));
  return clv__request_check_share(request, error);
}

static clv_status prepare_types(clv__request *request, const void *cookie, clv_error *error) {
  return clv__request_prepare(request, cookie, error);
}

clv_status clv__session_prepare(clv_session *session, const clv_tensor *types, uint32_t count, clv_error *error) {
  uint32_t wanted = session->plan->graph->input_count;
  if (count != wanted)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the model has %u input%s, not %u", wanted, CLV__S(wanted), count);
  return clv__session_attempt(session, prepare_types, types, error);
}

static clv_status resize_request(clv__request *request, const void *cookie, clv_error *error) {
  return clv__request_resize(request, cookie, error);
}

static bool has_request(clv_session *session, uint32_t index) {
  pthread_mutex_lock(&session->lock);
  bool has = session->requests[index] != NULL;
  pthread_mutex_unlock(&session->lock);
  return has;
}

clv_status clv_session_resize(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  if (session == NULL || (inputs == NULL && input_count > 0)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "session and inputs must not be NULL");
  }
  CLV__TRY(clv__inputs_check(session->plan, inputs, input_count, false, error));
  for (uint32_t i = 0; i < session->options.in_flight; ++i) { /* the next run may take any free request */
    if (i == 0 || has_request(session, i)) CLV__TRY(clv__session_attempt_at(session, i, NULL, resize_request, inputs, error));
  }
  return CLV_OK;
}

static clv_status create(clv_session *session, clv_error *error) {
  if (session->options.device_time_limit_s > 0) CLV__TRY(clv__alarm_start(session, error));
  CLV__TRY(clv__session_begin(session, error));
  return clv__session_attempt(session, prepare_first, NULL, error);
}

clv_status clv_session_create(const clv_plan *plan, const clv_session_options *given, clv_session **out, clv_error *error) {
  if (plan == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan and session must not be NULL");
  *out = NULL;
  if (plan->is_supposed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "this is a what-if plan, with operators that its devices do not support: it cannot be run");
  }
  clv_session_options options;
  CLV__TRY(read_options(given, &options, error));
  CLV__TRY(clv__graph_check_bound(plan->graph, error));
  const clv_allocator *allocator = plan->graph->allocator;
  clv_session *session = clv__allocate_zero(allocator, sizeof *session);
  if (session == NULL) return clv__error_memory(error, sizeof *session);
  *session = (clv_session){.plan = plan, .devices = plan->devices, .allocator = allocator, .options = options};
  init_locks(session);
  if (options.device_time_limit_s > 0) plan->devices->is_timed = true;
  uint64_t start = clv__clock_ns();
  clv_status status = create(session, error);
  session->compile_ms = (double)(clv__clock_ns() - start) / 1e6;
  if (status != CLV_OK)
    clv_session_destroy(session);
  else
    *out = session;
  return status;
}

void clv_session_destroy(clv_session *session) {
  if (session == NULL) return;
  clv__owned owned = session->owned;
  clv__alarm_destroy(session->alarm);
  clv__async_destroy(session->async);
  for (uint32_t i = 0; i < CLV_MAX_IN_FLIGHT; ++i) clv__request_destroy(session->requests[i]);
  clv__engine_release(session, session->engine);
  pthread_cond_destroy(&session->turn_ended);
  pthread_mutex_destroy(&session->turn_lock);
  pthread_mutex_destroy(&session->replacing);
  pthread_cond_destroy(&session->freed);
  pthread_mutex_destroy(&session->lock);
  clv__release(session->allocator, session->trace);
  clv__release(session->allocator, session->checks);
  clv__release(session->allocator, session);
  clv__owned_destroy(&owned);
}

/* ---- Runs ---- */

static clv_status run_request(clv__request *request, const void *cookie, clv_error *error) {
  const clv__order *order = cookie;
  clv_session *session = request->session;
  uint64_t begin_ns = session->is_traced ? clv__clock_ns() : 0;
  bool reads_files = request->engine->reads_files;
  if (reads_files) CLV__TRY(clv__graph_check_files(request->engine->plan->graph, error));
  CLV__TRY(clv__request_bind_inputs(request, order->inputs, order->input_count, error));
  CLV__TRY(clv__request_bind_outputs(request, order, error));
  CLV__TRY(session->time_steps ? clv__request_drive_timed(request, request->engine->step_times_ns, error)
                               : clv__request_drive(request, order, error));
  clv_status status = clv__request_hand_over(request, order, error);
  if (status == CLV_OK && reads_files) status = clv__graph_check_files(request->engine->plan->graph, error);
  if (session->is_traced) {
    clv__trace_add(
        request, (clv__trace_event){.kind = CLV__TRACE_RUN, .step = CLV__NO_ID, .begin_ns = begin_ns, .end_ns = clv__clock_ns()});
  }
  return status;
}

clv_status clv__session_run(clv_session *session, const clv__order *order, clv_error *error) {
  return clv__session_attempt_at(session, CLV__NO_ID, order, run_request, order, error);
}

clv_status clv_session_run_with(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                                uint32_t output_count, const clv_run_options *options, clv_error *error) {
  clv__order order;
  CLV__TRY(clv__order_make(session, inputs, input_count, outputs, output_count, options, &order, error));
  return clv__session_run(session, &order, error);
}

clv_status clv_session_run(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                           uint32_t output_count, clv_error *error) {
  return clv_session_run_with(session, inputs, input_count, outputs, output_count, NULL, error);
}

clv_status clv__order_make(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                           uint32_t output_count, const clv_run_options *options, clv__order *order, clv_error *error) {
  *order = (clv__order){inputs, outputs, input_count, output_count, CLV_RUN_OPTIONS_INIT, NULL, UINT64_MAX};
  if (session == NULL || (inputs == NULL && input_count > 0) || (outputs == NULL && output_count > 0)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "session, inputs and outputs must not be NULL");
  }
  CLV__TRY(clv__options_read(&order->options, sizeof order->options, options, "CLV_RUN_OPTIONS_INIT", error));
  double limit_s = order->options.time_limit_s;
  if (!(limit_s >= 0) || limit_s > 1e9) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "time limit of %g s: expected 0 (none) to 1e9", limit_s);
  }
  if (limit_s == 0) return CLV_OK;
  order->deadline_ns = clv__clock_ns() + (uint64_t)(limit_s * 1e9);
  return clv__alarm_start(session, error);
}

/* ---- Queries of the command and the tests ---- */

const clv_plan *clv__session_plan(clv_session *session) {
  pthread_mutex_lock(&session->lock);
  const clv_plan *plan = session->engine->plan;
  pthread_mutex_unlock(&session->lock);
  return plan;
}

const clv_session_options *clv__session_options(const clv_session *session) {
  return &session->options;
}

void clv__session_time_steps(clv_session *session, bool on) {
  session->time_steps = on;
}
uint64_t clv__session_step_time_ns(const clv_session *session, uint32_t index) {
  return index < session->engine->plan->step_count ? session->engine->step_times_ns[index] : 0;
}
