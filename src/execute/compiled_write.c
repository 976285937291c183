/* Compiles ahead of time: writes a model, its plan, and the executables of a session into a folder (cleave/compiled.h). The
 * session uses the model as written, so its executables are exactly those that a user of the folder will request. */
#include <string.h>

#include "base/options.h"
#include "compile/folder.h"
#include "execute/session_own.h"

/* The state of one clv_compiled_write(). */
typedef struct writing {
  const clv_plan *given;
  clv_compiled_options options;
  clv_session_options session_options;
  clv__folder_writer *writer;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} writing;

static clv_status read_options(writing *w, const clv_compiled_options *options, clv_error *error) {
  w->options = (clv_compiled_options)CLV_COMPILED_OPTIONS_INIT;
  w->session_options = (clv_session_options)CLV_SESSION_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&w->options, sizeof w->options, options, "CLV_COMPILED_OPTIONS_INIT", error));
  CLV__TRY(clv__options_list(w->options.inputs, w->options.input_count, "types of inputs", error));
  CLV__TRY(
      clv__options_read(&w->session_options, sizeof w->session_options, w->options.session, "CLV_SESSION_OPTIONS_INIT", error));
  /* If a device fails, report the error instead of moving its nodes to other devices. */
  w->session_options.no_fallback = true;
  w->session_options.in_flight = 1;
  w->options.session = &w->session_options;
  return CLV_OK;
}

/* ---- Checking the written model ---- */

/* Returns whether the names are the same, in the same order. */
static bool same_values(const clv_graph *a, const clv_value_id *x, const clv_graph *b, const clv_value_id *y, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if ((x[i] == CLV__NO_ID) != (y[i] == CLV__NO_ID)) return false;
    if (x[i] != CLV__NO_ID && strcmp(a->values[x[i]].name, b->values[y[i]].name) != 0) return false;
  }
  return true;
}

static bool same_node(const clv_graph *a, const clv__node *x, const clv_graph *b, const clv__node *y) {
  return strcmp(x->name, y->name) == 0 && strcmp(x->op, y->op) == 0 && strcmp(x->domain, y->domain) == 0 &&
         x->opset == y->opset && x->input_count == y->input_count && x->output_count == y->output_count &&
         x->attributes.count == y->attributes.count && same_values(a, x->inputs, b, y->inputs, x->input_count) &&
         same_values(a, x->outputs, b, y->outputs, x->output_count);
}

/* The plan refers to nodes by name, so the written model must match the original. */
static clv_status check_same(const clv_graph *a, const clv_graph *b, clv_error *error) {
  if (a->node_count != b->node_count || a->input_count != b->input_count || a->output_count != b->output_count ||
      !same_values(a, a->inputs, b, b->inputs, a->input_count) || !same_values(a, a->outputs, b, b->outputs, a->output_count))
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the model cannot be written as ONNX: its inputs or outputs would change");
  for (clv_node_id n = 0; n < a->node_count; ++n) {
    if (same_node(a, &a->nodes[n], b, &b->nodes[n])) continue;
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the model cannot be written as ONNX: node '%s' (%s) would change",
                          a->nodes[n].name, a->nodes[n].op);
  }
  return CLV_OK;
}

/* Writes the models and the plan, and reads them back, as users of the folder will. */
static clv_status write_plan(writing *w, const char *directory, clv_error *error) {
  const clv_plan *given = w->given;
  CLV__TRY(clv__folder_begin(given, directory, &w->writer, error));
  CLV__TRY(clv__graph_check_files(given->graph, error));
  CLV__TRY(clv__folder_write_models(w->writer, error));
  CLV__TRY(clv__graph_check_files(given->graph, error));
  const char *path = clv__folder_path(w->writer, CLV__FOLDER_MODEL, error);
  if (path == NULL) return CLV_OUT_OF_MEMORY;
  CLV__TRY(clv_graph_load(given->devices->context, path, &w->graph, error));
  CLV__TRY(check_same(given->graph, w->graph, error));
  CLV__TRY(clv__folder_write_plan(w->writer, w->graph, error));
  path = clv__folder_path(w->writer, CLV__FOLDER_PLAN, error);
  if (path == NULL) return CLV_OUT_OF_MEMORY;
  return clv_plan_read(w->graph, given->devices, path, NULL, &w->plan, error);
}

/* ---- Executables that a session compiles ---- */

static clv_status add_executables(writing *w, clv_error *error) {
  const clv__engine *engine = w->session->engine;
  const clv__request *request = w->session->requests[0];
  for (uint32_t p = 0; p < w->plan->partition_count; ++p) {
    const clv__compiled *first = &engine->executables.partitions[p];
    if (w->plan->partitions[p].is_hosted) continue;
    CLV__TRY(clv__folder_add_executable(w->writer, p, first, error));
    const clv__prepared *prepared = request != NULL ? request->prepared : NULL;
    const clv__compiled *own = prepared != NULL ? &prepared->partitions[p].own : NULL;
    if (own != NULL && own->use != NULL && own->use->of != first->use->of)
      CLV__TRY(clv__folder_add_executable(w->writer, p, own, error));
  }
  return CLV_OK;
}

/* Adds the executables of the session. */
static clv_status compile(writing *w, clv_error *error) {
  if (w->options.input_count > 0) CLV__TRY(clv__session_prepare(w->session, w->options.inputs, w->options.input_count, error));
  clv__devices_lock(w->plan->devices);
  clv_status status = add_executables(w, error);
  clv__devices_unlock(w->plan->devices);
  return status;
}

static void finish(writing *w) {
  clv_session_destroy(w->session);
  clv_plan_destroy(w->plan);
  clv_graph_destroy(w->graph);
  clv__folder_end(w->writer);
}

/* Writes everything and compiles. Sets `divided` to whether devices found partitions too large, so that the session divided
 * them. The folder then has the wrong partitions, and the caller must start again with the session's plan. */
static clv_status write_once(writing *w, const char *directory, bool *divided, clv_error *error) {
  CLV__TRY(write_plan(w, directory, error));
  CLV__TRY(clv_session_create(w->plan, &w->session_options, &w->session, error));
  *divided = w->session->engine->plan != w->plan;
  return *divided ? CLV_OK : compile(w, error);
}

clv_status clv_compiled_write(const clv_plan *plan, const clv_compiled_options *options, const char *directory,
                              clv_error *error) {
  if (plan == NULL || directory == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan and directory must not be NULL");
  if (plan->is_supposed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "this is a what-if plan, with operators that its devices do not support: it cannot be compiled");
  }
  writing first = {.given = plan}, again = {0};
  bool divided;
  CLV__TRY(clv__graph_check_bound(plan->graph, error));
  CLV__TRY(read_options(&first, options, error));
  clv_status status = write_once(&first, directory, &divided, error);
  writing *last = &first;
  if (status == CLV_OK && divided) { /* again, with the plan of the session */
    clv__folder_end(first.writer);
    first.writer = NULL;
    again = (writing){.given = first.session->engine->plan, .options = first.options, .session_options = first.session_options};
    again.options.session = &again.session_options;
    last = &again;
    status = write_once(last, directory, &divided, error);
    if (status == CLV_OK && divided)
      status = clv__error_set(error, CLV_DEVICE_ERROR,
                              "a device compiled a partition, and found it too large when it compiled it a second time");
  }
  if (status == CLV_OK) status = clv__folder_commit(last->writer, &last->options, error);
  finish(&again);
  finish(&first);
  return status;
}
