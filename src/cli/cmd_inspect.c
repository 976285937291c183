/* `cleave inspect`: shows the contents of a model, and which devices support its nodes. */
#include "cleave/inspect.h"
#include "cli/console.h"
#include "cli/job.h"

static clv_status inspect(cli_invocation *cli, const cli_job *job, clv_inspection **inspection, clv_error *error) {
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_size *sizes;
  CLI_TRY(cli_inputs_sizes(cli, job->graph, &job->inputs, false, &sizes, &options.size_count, error));
  options.sizes = sizes;
  clv_status status = clv_graph_inspect(job->graph, job->devices, &options, inspection, error);
  return status == CLV_OK ? status : cli_error_prefix(error, status, "%s", job->path);
}

static clv_status print(cli_invocation *cli, const cli_job *job, const clv_inspection *inspection, clv_error *error) {
  clv_inspection_options options = CLV_INSPECTION_OPTIONS_INIT;
  const char *page = cli_text(cli, OPTION_HTML, NULL);
  char *document;
  options.name = job->path;
  options.nodes = cli_is_given(cli, OPTION_NODES);
  options.all_reasons = cli->verbose;
  if (page != NULL) CLI_TRY(clv_inspection_draw(inspection, page, NULL, NULL, error));
  CLI_TRY(clv_inspection_text(inspection, &options, cli_form(cli), &document, error));
  clv_status status = cli_print_document(cli, document, error);
  clv_text_free(document);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_job job = {0};
  clv_inspection *inspection = NULL;
  clv_status status = cli_job_load(cli, cli->options->operands[0], &job, error);
  if (status == CLV_OK) status = cli_job_check_target(cli, &job, OPTION_HTML, error);
  if (status == CLV_OK) status = inspect(cli, &job, &inspection, error);
  if (status == CLV_OK) status = print(cli, &job, inspection, error);
  clv_inspection_destroy(inspection);
  cli_job_finish(cli, &job);
  return status;
}

const cli_command cli_command_inspect = {
    .name = "inspect",
    .operands = "MODEL|PLAN",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show a model's operators, and which devices support them",
    .description =
        "Shows nodes, parameters, FLOPs (a multiply-add is two of them), inputs and outputs. For every operator, shows how\n"
        "many of its nodes each device of --devices can run, and the reasons why it cannot run the others. In the\n"
        "tables, 'const' means computed when planning, and '?' that sizes are unknown. Given a plan file, inspects its model.\n"
        "--html draws the graph. On the page, click a node for its attributes, its inputs and outputs, the statistics and first\n"
        "values of its weights, and what every device says about it.",
    .examples =
        "  cleave inspect resnet50.onnx --devices npu,cpu                       # which operators each device can run\n"
        "  cleave inspect bert.onnx --dim batch=1 --dim sequence=128 --nodes    # set the open sizes, and list every node\n"
        "  cleave inspect resnet50.onnx --devices npu,cpu --html resnet50.html  # draw the graph on a page\n",
    .execute = execute,
};
