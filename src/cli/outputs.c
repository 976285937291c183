/* Checks that a command's output files can be written and are not its inputs, before the command starts work that may take hours.
 */
#include <string.h>
#include <sys/stat.h>

#include "cleave/program.h"
#include "cli/job.h"

clv_status cli_outputs_check(const cli_invocation *cli, clv_error *error) {
  static const cli_option_id written[] = {OPTION_OUTPUT, OPTION_SVG, OPTION_DOT, OPTION_HTML, OPTION_TRACE};
  for (size_t i = 0; i < sizeof written / sizeof *written; ++i) {
    if (cli_is_given(cli, written[i])) CLI_TRY(clv_file_check_writable(cli_text(cli, written[i], NULL), error));
  }
  return CLV_OK;
}

clv_status cli_job_check_target(cli_invocation *cli, const cli_job *job, cli_option_id option, clv_error *error) {
  const char *path = cli_text(cli, option, NULL), *name = cli_option_table[option].name;
  if (path == NULL) return CLV_OK;
  if (strcmp(path, "-") == 0)
    return cli_usage(cli, error, "option '--%s' needs a file name, not '-'; use /dev/stdout for standard output", name);
  struct stat target, model, plan;
  if (stat(path, &target) != 0) return CLV_OK;
  bool is_model = stat(job->model_path, &model) == 0 && target.st_dev == model.st_dev && target.st_ino == model.st_ino;
  bool is_plan = job->from_plan_file && option != OPTION_OUTPUT && stat(job->path, &plan) == 0 && target.st_dev == plan.st_dev &&
                 target.st_ino == plan.st_ino;
  if (!is_model && !is_plan) return CLV_OK;
  return cli_usage(cli, error, "option '--%s': '%s' is the %s itself; give another file", name, path,
                   is_model ? "model" : "plan");
}
