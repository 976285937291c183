/* Documents about a plan, for callers: see cleave/report.h. */
#include "cleave/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/document.h"
#include "report/compare.h"
#include "report/explain.h"
#include "report/json.h"
#include "report/page/html.h"
#include "report/passes.h"
#include "report/picture/dot.h"
#include "report/picture/svg.h"
#include "report/steps.h"

static clv_status check(const clv_plan *plan, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  return plan != NULL ? CLV_OK : clv__error_set(error, CLV_INVALID_ARGUMENT, "plan must not be NULL");
}

/* ---- Steps and totals ---- */

static json_t *totals_json(const clv_plan *plan) {
  json_t *sums = json_object();
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  json_object_set_new(sums, "partitions", json_integer(plan->partition_count - plan->hosted_count));
  json_object_set_new(sums, "transfers", json_integer(totals.inner_transfers));
  json_object_set_new(sums, "transfer_bytes", json_integer((json_int_t)totals.inner_bytes));
  json_object_set_new(sums, "own_transfers", json_integer(totals.own_transfers));
  json_object_set_new(sums, "own_transfer_bytes", json_integer((json_int_t)totals.own_bytes));
  json_object_set_new(sums, "bytes_known", json_boolean(totals.bytes_known));
  json_object_set_new(sums, "folded_nodes", json_integer(totals.folded_nodes));
  return sums;
}

/* Adds data that plan files do not contain to the JSON of a plan file. */
static clv_status report_json(const clv_plan *plan, char **out, clv_error *error) {
  char *file;
  CLV__TRY(clv__graph_check_files(plan->graph, error)); /* the hash of the model is computed from its files */
  CLV__TRY(clv__plan_to_json(plan, true, &file, error));
  json_t *root = json_loads(file, 0, NULL);
  clv__release(plan->graph->allocator, file);
  if (root == NULL) return clv__error_set(error, CLV_INTERNAL_ERROR, "the JSON written for the plan cannot be parsed");
  json_object_set_new(root, "totals", totals_json(plan));
  return clv__json_give(root, plan->graph->allocator, out, error);
}

clv_status clv_plan_report(const clv_plan *plan, clv_steps_shown steps, clv_form form, char **out, clv_error *error) {
  CLV__TRY(check(plan, form, out, error));
  if (steps != CLV_STEPS_SOME && steps != CLV_STEPS_ALL && steps != CLV_STEPS_NONE)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "steps is %d, but must be one of the values of clv_steps_shown",
                          (int)steps);
  if (form == CLV_FORM_JSON) return report_json(plan, out, error);
  clv__text text;
  clv__text_init(&text, plan->graph->allocator);
  if (steps != CLV_STEPS_NONE) {
    clv__report_steps(plan, steps == CLV_STEPS_ALL, &text);
    if (plan->step_count > 0) clv__text_append(&text, "\n");
  }
  clv__report_totals(plan, &text);
  return clv__document_give(&text, out, error);
}

/* ---- Explanations ---- */

static clv_status no_match(const clv_plan *plan, const char *pattern, clv_error *error) {
  const char *path = plan->graph->path != NULL ? plan->graph->path : "";
  return clv__error_set(error, CLV_NOT_FOUND, "%s%sno node or operator is named '%s'", path, path[0] != '\0' ? ": " : "",
                        pattern);
}

static clv_status explain_json(const clv_plan *plan, const char *pattern, char **out, clv_error *error) {
  json_t *list = json_array();
  if (!clv__report_explain_json(plan, pattern, list)) {
    json_decref(list);
    return clv__error_memory(error, plan->graph->node_count * sizeof(uint32_t));
  }
  if (json_array_size(list) > 0 || pattern == NULL) return clv__json_give(list, plan->graph->allocator, out, error);
  json_decref(list);
  return no_match(plan, pattern, error);
}

clv_status clv_plan_explain(const clv_plan *plan, const char *pattern, clv_form form, char **out, clv_error *error) {
  CLV__TRY(check(plan, form, out, error));
  if (form == CLV_FORM_JSON) return explain_json(plan, pattern, out, error);
  clv__text text;
  clv__text_init(&text, plan->graph->allocator);
  const uint32_t matched = clv__report_explain(plan, pattern, &text);
  if (matched > 0 || pattern == NULL || text.failed) return clv__document_give(&text, out, error);
  clv__text_finish(&text);
  return no_match(plan, pattern, error);
}

clv_status clv_plan_passes(const clv_plan *plan, clv_form form, char **out, clv_error *error) {
  CLV__TRY(check(plan, form, out, error));
  if (plan->pass_count == 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the plan has no record of its passes: make it with the strategy 'propagate' or 'propagate-graph', not "
                          "'%s', and with record_passes",
                          plan->placement.strategy);
  if (form == CLV_FORM_JSON) return clv__json_give(clv__report_passes_json(plan), plan->graph->allocator, out, error);
  clv__text text;
  clv__text_init(&text, plan->graph->allocator);
  clv__report_passes(plan, &text);
  return clv__document_give(&text, out, error);
}

uint32_t clv_plan_open_nodes(const clv_plan *plan, uint32_t device) {
  uint32_t nodes = 0;
  if (plan == NULL || plan->open == NULL || device >= plan->devices->count) return 0;
  if (!plan->devices->items[device].info.static_shapes_only) return 0;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    bool is_asked = !plan->shapes->node_folded[n] && plan->open->is_open[n];
    nodes += is_asked && (plan->open->reasons[n] != NULL || plan->open->typical == NULL);
  }
  return nodes;
}

bool clv_plan_has_open_inputs(const clv_plan *plan) {
  return plan != NULL && clv__plan_has_open_inputs(plan);
}

/* ---- Pictures ---- */

clv_status clv_plan_draw(const clv_plan *plan, clv_picture picture, const clv_comparison *comparison, const char *path,
                         clv_emit_fn emit, void *user_data, clv_error *error) {
  if (plan == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan must not be NULL");
  if (comparison != NULL && comparison->plan != plan)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the comparison is of another plan");
  clv__text text;
  clv__text_init(&text, plan->graph->allocator);
  switch (picture) {
    case CLV_PICTURE_SVG:
      clv__report_svg(plan, &text);
      break;
    case CLV_PICTURE_DOT:
      clv__report_dot(plan, &text);
      break;
    case CLV_PICTURE_PAGE:
      clv__report_html(plan, comparison != NULL ? comparison->rows : NULL, comparison != NULL ? comparison->count : 0, &text);
      break;
    default:
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "picture is %d, but must be one of the values of clv_picture",
                            (int)picture);
  }
  return clv__document_write(&text, path, emit, user_data, error);
}
