/* clv_session_open(): a session that owns everything that it needs. */
#include "base/options.h"
#include "execute/session_own.h"
#include "plan/plan.h"

static clv_status load_graph(clv__owned *owned, const char *path, const clv_open_options *options, clv_error *error) {
  if (path == NULL) {
    return clv_graph_load_memory(owned->context, options->model, options->model_bytes, options->ownership, &owned->graph, error);
  }
  return clv_graph_load_params(owned->context, path, options->params, options->param_count, &owned->graph, error);
}

static clv_status open_parts(clv__owned *owned, const char *path, const clv_open_options *options, clv_session **session,
                             clv_error *error) {
  CLV__TRY(clv_context_create(options->context, &owned->context, error));
  CLV__TRY(clv_devices_open(owned->context, options->devices, &owned->devices, error));
  CLV__TRY(load_graph(owned, path, options, error));
  CLV__TRY(clv_plan_make(owned->graph, owned->devices, options->plan, &owned->plan, error));
  return clv_session_create(owned->plan, options->session, session, error);
}

void clv__owned_destroy(clv__owned *owned) {
  clv_plan_destroy(owned->plan);
  clv_graph_destroy(owned->graph);
  clv_devices_close(owned->devices);
  clv_context_destroy(owned->context);
  *owned = (clv__owned){0};
}

clv_status clv_session_open(const char *path, const clv_open_options *given, clv_session **session, clv_error *error) {
  clv_open_options options = CLV_OPEN_OPTIONS_INIT;
  clv__owned owned = {0};
  if (session == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "session must not be NULL");
  *session = NULL;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_OPEN_OPTIONS_INIT", error));
  if ((path == NULL) == (options.model == NULL)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "expected either a path or a model in memory, got %s",
                          path == NULL ? "neither" : "both");
  }
  if (path == NULL && options.param_count > 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "params are for a model from a file, not from memory");
  clv_status status = open_parts(&owned, path, &options, session, error);
  if (status == CLV_OK)
    (*session)->owned = owned;
  else
    clv__owned_destroy(&owned);
  return status;
}

const clv_graph *clv_session_graph(const clv_session *session) {
  return session == NULL ? NULL : session->plan->graph;
}

const clv_plan *clv_session_plan(const clv_session *session) {
  return session == NULL ? NULL : session->plan;
}
