/* Documents about the alternatives to a plan, for callers: see cleave/report.h. */
#include "cleave/report.h"

#include <string.h>

#include "base/document.h"
#include "base/options.h"
#include "report/compare.h"
#include "report/json.h"

/* ---- Other strategies ---- */

clv_status clv_plan_compare(const clv_plan *plan, const clv_compare_options *given, clv_comparison **out, clv_error *error) {
  if (plan == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan and comparison must not be NULL");
  *out = NULL;
  clv_compare_options options = CLV_COMPARE_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_COMPARE_OPTIONS_INIT", error));
  clv__poll poll = {options.go_on, options.go_on_user_data, false};
  clv_comparison *comparison = clv__allocate_zero(plan->graph->allocator, sizeof *comparison);
  if (comparison == NULL) return clv__error_memory(error, sizeof *comparison);
  comparison->plan = plan;
  clv__arena_init(&comparison->arena, plan->graph->allocator);
  clv_status status = clv__plan_compare(plan, &poll, &comparison->arena, &comparison->rows, &comparison->count, error);
  if (status == CLV_OK)
    *out = comparison;
  else
    clv_comparison_destroy(comparison);
  return status;
}

clv_status clv_comparison_text(const clv_comparison *comparison, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (comparison == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "comparison must not be NULL");
  const clv_allocator *allocator = comparison->plan->graph->allocator;
  if (form == CLV_FORM_JSON)
    return clv__json_give(clv__report_comparison_json(comparison->rows, comparison->count), allocator, out, error);
  clv__text text;
  clv__text_init(&text, allocator);
  clv__report_comparison(comparison->plan, comparison->rows, comparison->count, &text);
  return clv__document_give(&text, out, error);
}

void clv_comparison_destroy(clv_comparison *comparison) {
  if (comparison == NULL) return;
  const clv_allocator *allocator = comparison->arena.allocator;
  clv__arena_finish(&comparison->arena);
  clv__release(allocator, comparison);
}

/* ---- Operators that a device does not run yet ---- */

static clv_status check_supposes(const clv_assignment *supposes, uint32_t count, clv_error *error) {
  CLV__TRY(clv__options_list(supposes, count, "supposed operators", error));
  for (uint32_t i = 0; i < count; ++i) {
    if (supposes[i].pattern == NULL || supposes[i].device == NULL)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "supposed operator %u: the pattern and the device must not be NULL", i);
  }
  return CLV_OK;
}

static clv_status find_rows(const clv_plan *plan, const clv_plan_options *options, const clv_assignment *supposes, uint32_t count,
                            clv__arena *arena, clv__what_if **rows, uint32_t *row_count, clv_error *error) {
  if (count == 0) return clv__plan_what_if_all(plan, options, arena, rows, row_count, error);
  *rows = clv__arena_allocate_zero(arena, (size_t)count + 1, sizeof **rows);
  if (*rows == NULL) return clv__error_memory(error, ((size_t)count + 1) * sizeof **rows);
  for (uint32_t i = 0; i < count; ++i)
    CLV__TRY(clv__plan_what_if(plan, options, &supposes[i], 1, arena, &(*rows)[(*row_count)++], error));
  if (count == 1) return CLV_OK;
  clv__what_if *together = &(*rows)[(*row_count)++];
  CLV__TRY(clv__plan_what_if(plan, options, supposes, count, arena, together, error));
  together->op = "all together";
  together->device = CLV__NO_ID;
  return CLV_OK;
}

clv_status clv_plan_what_if(const clv_plan *plan, const clv_plan_options *given, const clv_assignment *supposes,
                            uint32_t suppose_count, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (plan == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan must not be NULL");
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_PLAN_OPTIONS_INIT", error));
  CLV__TRY(check_supposes(supposes, suppose_count, error));
  options.struct_size = sizeof options;
  clv__arena arena;
  clv__arena_init(&arena, plan->graph->allocator);
  clv__what_if *rows = NULL;
  uint32_t count = 0;
  clv__text text;
  clv__text_init(&text, plan->graph->allocator);
  clv_status status;
  CLV__TRY_GOTO(find_rows(plan, &options, supposes, suppose_count, &arena, &rows, &count, error));
  if (form == CLV_FORM_JSON) {
    status = clv__json_give(clv__report_what_if_json(plan, rows, count), plan->graph->allocator, out, error);
  } else {
    clv__report_what_if(plan, rows, count, &text);
    status = clv__document_give(&text, out, error);
  }
cleanup:
  clv__text_finish(&text);
  clv__arena_finish(&arena);
  return status;
}
