/* `cleave gnn plan`: determines the number of subgraphs, the devices of their blocks, and the predicted time. */
#include "cli/console.h"
#include "cli/gnn/job.h"

static const cli_gnn_option options[] = {
    CLI_GNN_JOB_OPTIONS,
    CLI_GNN_CHOICE_OPTIONS,
    {OPTION_LIST_PEPS, NULL, NULL},
    {OPTION_EXPORT_DIR, NULL, NULL},
    {OPTION_INLINE, NULL, NULL},
    {OPTION_HTML, CLI_GNN_HTML_HELP, NULL},
    {OPTION_OUTPUT, "write the plan, for 'cleave gnn run --plan'", NULL},
};

static clv_status print(cli_gnn_job *job, clv_error *error) {
  clv_gnn_report_options how = CLV_GNN_REPORT_OPTIONS_INIT;
  char *document;
  how.detailed = job->cli->verbose;
  how.list_candidates = cli_is_given(job->cli, OPTION_LIST_PEPS);
  CLI_TRY(clv_gnn_plan_report(job->plan, &how, cli_form(job->cli), &document, error));
  clv_status status = cli_print_document(job->cli, document, error);
  clv_text_free(document);
  return status;
}

static clv_status export(cli_gnn_job *job, clv_error *error) {
  const char *folder = cli_text(job->cli, OPTION_EXPORT_DIR, NULL);
  uint32_t count;
  if (folder == NULL) return CLV_OK;
  CLI_TRY(clv_gnn_plan_export(job->plan, folder, cli_is_given(job->cli, OPTION_INLINE), &count, error));
  cli_note(job->cli, "%s: %u blocks written as ONNX", folder, count);
  return CLV_OK;
}

static clv_status plan(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *page = cli_text(cli, OPTION_HTML, NULL);
  CLI_TRY(cli_gnn_plan(job, error));
  if (cli_is_given(cli, OPTION_OUTPUT)) CLI_TRY(clv_gnn_plan_write(job->plan, cli_text(cli, OPTION_OUTPUT, NULL), error));
  CLI_TRY(export(job, error));
  if (page != NULL) CLI_TRY(clv_gnn_plan_page(job->plan, page, NULL, NULL, error));
  return print(job, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_gnn_job job;
  if (cli_is_given(cli, OPTION_INLINE) && !cli_is_given(cli, OPTION_EXPORT_DIR))
    return cli_usage(cli, error, "option '--inline' needs --export-dir");
  clv_status status = cli_gnn_load(cli, &job, error);
  if (status == CLV_OK) status = plan(&job, error);
  cli_gnn_job_finish(&job);
  return status;
}

const cli_gnn_verb cli_gnn_verb_plan = {
    .name = "plan",
    .operands = "",
    .wanted = "--model FILE --graph FILE",
    .summary = "choose the number of subgraphs and their devices",
    .description =
        "Partitions the graph into k subgraphs, for k = 1 and every k of --kset, and plans each subgraph and layer: blocks\n"
        "of stages, each on one device or divided among several. Shows for every k the predicted time (makespan), a lower\n"
        "bound for any plan with that k, the gap to it, the gain over the best single device, and the load of each device.\n"
        "A switch is a device's change to another executable. The line '3 of the subgraphs: cpu 0-4 | npu 4-7' means that\n"
        "in 3 subgraphs cpu runs the layer's stages 0 to 3, and then npu its stages 4 to 6. Without --profile, prices are\n"
        "nominal: they rank plans but do not predict times.",
    .examples =
        "  cleave gnn plan --model sage.json --graph cora.npz --devices npu,cpu --kset 1,2,4 --profile costs.json -o plan.json"
        "    # save the plan\n"
        "  cleave gnn plan --model sage.json --graph cora.npz --devices npu,cpu --profile costs.json --html plan.html"
        "    # write a web page\n"
        "  cleave gnn plan --model sage.json --graph cora.npz --profile costs.json --effort quick -v    # show each move\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
