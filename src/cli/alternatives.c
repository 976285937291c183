/* See alternatives.h. */
#include "cli/alternatives.h"

#include <string.h>

#include "cli/console.h"
#include "cli/json.h"
#include "report/compare.h"

static clv_status parse_supposes(cli_invocation *cli, const cli_given *given, clv_assignment *supposes, clv_error *error) {
  for (uint32_t i = 0; i < given->count; ++i) {
    const char *text = given->values[i], *at = strrchr(text, '@');
    if (at == NULL || at == text || at[1] == '\0') {
      return cli_usage(cli, error, "option '--what-if': '%s' is neither OP@DEV nor 'all'", text);
    }
    supposes[i].pattern = clv__arena_string(&cli->arena, text, (size_t)(at - text));
    supposes[i].device = at + 1;
    if (supposes[i].pattern == NULL) return clv__error_memory(error, strlen(text));
  }
  return CLV_OK;
}

static clv_status find_what_if(cli_invocation *cli, const cli_job *job, cli_alternatives *a, clv_error *error) {
  const cli_given *given = &cli->options->given[OPTION_WHAT_IF];
  if (job->from_plan_file)
    return cli_usage(cli, error, "option '--what-if' makes new plans, so it needs the model instead of a plan file");
  cli_progress(cli, "planning variants of %s", job->model_path);
  a->has_what_if = true;
  if (given->count == 1 && strcmp(given->values[0], "all") == 0) {
    return clv__plan_what_if_all(job->plan, &job->options, &a->arena, &a->what_if, &a->what_if_count, error);
  }
  clv_assignment *supposes = clv__arena_allocate_zero(&cli->arena, given->count, sizeof *supposes);
  a->what_if = clv__arena_allocate_zero(&a->arena, given->count + 1, sizeof *a->what_if);
  if (supposes == NULL || a->what_if == NULL) return clv__error_memory(error, given->count * sizeof *supposes);
  CLV__TRY(parse_supposes(cli, given, supposes, error));
  for (uint32_t i = 0; i < given->count; ++i) {
    clv_status status =
        clv__plan_what_if(job->plan, &job->options, &supposes[i], 1, &a->arena, &a->what_if[a->what_if_count++], error);
    if (status != CLV_OK) return cli_suggest(cli, job, OPTION_WHAT_IF, &supposes[i], 1, error);
  }
  if (given->count == 1) return CLV_OK;
  clv__what_if *together = &a->what_if[a->what_if_count++];
  CLV__TRY(clv__plan_what_if(job->plan, &job->options, supposes, given->count, &a->arena, together, error));
  together->op = "all together";
  together->device = CLV__NO_ID;
  return CLV_OK;
}

clv_status cli_alternatives_find(cli_invocation *cli, const cli_job *job, bool always_compare, cli_alternatives *a,
                                 clv_error *error) {
  *a = (cli_alternatives){0};
  clv__arena_init(&a->arena, cli->allocator);
  if (always_compare || cli_is_given(cli, OPTION_COMPARE)) {
    cli_progress(cli, "comparing strategies for %s", job->model_path);
    a->has_comparison = cli_is_given(cli, OPTION_COMPARE);
    CLV__TRY(clv__plan_compare(job->plan, &a->arena, &a->comparison, &a->comparison_count, error));
  }
  return cli_is_given(cli, OPTION_WHAT_IF) ? find_what_if(cli, job, a, error) : CLV_OK;
}

void cli_alternatives_text(const cli_job *job, const cli_alternatives *a, clv__text *text) {
  if (a->has_comparison) {
    clv__text_append(text, "\n");
    clv__report_comparison(job->plan, a->comparison, a->comparison_count, text);
  }
  if (a->has_what_if) {
    clv__text_append(text, "\n");
    clv__report_what_if(job->plan, a->what_if, a->what_if_count, text);
  }
}

static json_t *milliseconds(double time_ns) {
  return cli_json_real(time_ns / 1e6);
}

static json_t *comparison_json(const clv__comparison *row) {
  json_t *object = json_object();
  json_object_set_new(object, row->is_single ? "device" : "strategy", cli_json_text(row->name));
  if (row->refusal != NULL) {
    json_object_set_new(object, "refused", cli_json_text(row->refusal));
    return object;
  }
  json_object_set_new(object, "partitions", json_integer(row->partitions));
  json_object_set_new(object, "transfers", json_integer(row->transfers));
  json_object_set_new(object, "transfer_bytes", json_integer((json_int_t)row->transfer_bytes));
  json_object_set_new(object, "predicted_ms", milliseconds((double)row->predicted_ns));
  json_object_set_new(object, "serial_ms", milliseconds((double)row->serial_ns));
  json_object_set_new(object, "overlapped_ms", milliseconds((double)row->overlapped_ns));
  json_object_set_new(object, "throughput_ms", milliseconds((double)row->throughput_ns));
  json_object_set_new(object, "gap", row->gap < 0 ? json_null() : cli_json_real(row->gap));
  return object;
}

static json_t *what_if_json(const cli_job *job, const clv__what_if *row) {
  json_t *object = json_object();
  json_object_set_new(object, "op", cli_json_text(row->op));
  json_object_set_new(object, "device",
                      row->device == CLV__NO_ID ? json_null() : cli_json_text(job->devices->items[row->device].name));
  json_object_set_new(object, "nodes", json_integer(row->nodes));
  if (row->refusal != NULL) {
    json_object_set_new(object, "refused", cli_json_text(row->refusal));
    return object;
  }
  json_object_set_new(object, "partitions", json_integer(row->partitions));
  json_object_set_new(object, "predicted_ms", milliseconds((double)row->predicted_ns));
  json_object_set_new(object, "saved_ms", milliseconds((double)row->saved_ns));
  return object;
}

void cli_alternatives_json(const cli_job *job, const cli_alternatives *a, json_t *root) {
  json_t *comparison = json_array(), *what_if = json_array();
  for (uint32_t i = 0; i < a->comparison_count; ++i) json_array_append_new(comparison, comparison_json(&a->comparison[i]));
  for (uint32_t i = 0; i < a->what_if_count; ++i) json_array_append_new(what_if, what_if_json(job, &a->what_if[i]));
  if (a->has_comparison) json_object_set(root, "comparison", comparison);
  if (a->has_what_if) json_object_set(root, "what_if", what_if);
  json_decref(comparison);
  json_decref(what_if);
}

void cli_alternatives_finish(cli_alternatives *a) {
  if (a->arena.allocator != NULL) clv__arena_finish(&a->arena);
}
