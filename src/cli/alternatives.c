/* See alternatives.h. */
#include "cli/alternatives.h"

#include <string.h>

#include "cli/console.h"

clv_status cli_alternatives_compare(cli_invocation *cli, const cli_job *job, clv_comparison **comparison, clv_error *error) {
  *comparison = NULL;
  if (!cli_is_given(cli, OPTION_COMPARE) && !cli_is_given(cli, OPTION_HTML)) return CLV_OK;
  cli_progress(cli, "comparing strategies for %s", job->model_path);
  return clv_plan_compare(job->plan, NULL, comparison, error);
}

static clv_status parse_supposes(cli_invocation *cli, const cli_given *given, clv_assignment *supposes, clv_error *error) {
  for (uint32_t i = 0; i < given->count; ++i) {
    const char *text = given->values[i], *at = strrchr(text, '@');
    if (at == NULL || at == text || at[1] == '\0') {
      return cli_usage(cli, error, "option '--what-if': '%s' is neither OP@DEV nor 'all'", text);
    }
    supposes[i].pattern = cli_arena_string(&cli->arena, text, (size_t)(at - text));
    supposes[i].device = at + 1;
    if (supposes[i].pattern == NULL) return cli_error_memory(error, strlen(text));
  }
  return CLV_OK;
}

clv_status cli_alternatives_what_if(cli_invocation *cli, const cli_job *job, clv_form form, char **document, clv_error *error) {
  const cli_given *given = &cli->options->given[OPTION_WHAT_IF];
  *document = NULL;
  if (!cli_is_given(cli, OPTION_WHAT_IF)) return CLV_OK;
  if (job->from_plan_file)
    return cli_usage(cli, error, "option '--what-if' makes new plans, so it needs the model instead of a plan file");
  cli_progress(cli, "planning variants of %s", job->model_path);
  if (given->count == 1 && strcmp(given->values[0], "all") == 0)
    return clv_plan_what_if(job->plan, &job->options, NULL, 0, form, document, error);
  clv_assignment *supposes = cli_arena_allocate_zero(&cli->arena, given->count, sizeof *supposes);
  if (supposes == NULL) return cli_error_memory(error, given->count * sizeof *supposes);
  CLI_TRY(parse_supposes(cli, given, supposes, error));
  clv_status status = clv_plan_what_if(job->plan, &job->options, supposes, given->count, form, document, error);
  return status == CLV_OK ? status : cli_suggest(cli, job, OPTION_WHAT_IF, supposes, given->count, error);
}
