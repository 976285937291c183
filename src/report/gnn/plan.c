/* The documents of plans for programs: see cleave/gnn.h. */
#include "base/document.h"
#include "base/error.h"
#include "base/options.h"
#include "report/gnn/html.h"
#include "report/gnn/own.h"
#include "report/json.h"

static clv_status give_json(const clv_gnn_plan *plan, const clv_gnn_report_options *how, char **text, clv_error *error) {
  json_t *root = json_object();
  clv_status status = CLV_OK;
  clv__report_gnn_json(plan, &plan->account, root);
  if (how->list_candidates) {
    json_t *list = json_array();
    status = clv__report_gnn_candidates_json(plan, list, error);
    json_object_set_new(root, "peps", list);
  }
  if (status == CLV_OK) return clv__json_give(root, plan->allocator, text, error);
  json_decref(root);
  return status;
}

clv_status clv_gnn_plan_report(const clv_gnn_plan *plan, const clv_gnn_report_options *options, clv_form form, char **text,
                               clv_error *error) {
  clv_gnn_report_options how = CLV_GNN_REPORT_OPTIONS_INIT;
  clv__text written;
  CLV__TRY(clv__document_check(form, text, error));
  CLV__TRY(clv__argument_check(plan, "plan", error));
  CLV__TRY(clv__options_read(&how, sizeof how, options, "CLV_GNN_REPORT_OPTIONS_INIT", error));
  if (form == CLV_FORM_JSON) return give_json(plan, &how, text, error);
  clv__text_init(&written, plan->allocator);
  clv__report_gnn_choice(plan->plan, form == CLV_FORM_TERMINAL, &written);
  clv__report_gnn_blocks(&plan->account, how.detailed, form == CLV_FORM_TERMINAL, &written);
  clv_status status = how.list_candidates ? clv__report_gnn_candidates(plan, &written, error) : CLV_OK;
  if (status == CLV_OK) return clv__document_give(&written, text, error);
  clv__text_finish(&written);
  return status;
}

clv_status clv_gnn_plan_page(const clv_gnn_plan *plan, const char *path, clv_emit_fn write, void *user_data, clv_error *error) {
  clv__text written;
  CLV__TRY(clv__argument_check(plan, "plan", error));
  clv__text_init(&written, plan->allocator);
  clv__report_gnn_html(&plan->account, &written);
  return clv__document_write(&written, path, write, user_data, error);
}
