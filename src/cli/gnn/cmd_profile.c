/* `cleave gnn profile`: measures the costs from which plans are priced, or imports costs measured elsewhere. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/console.h"
#include "cli/gnn/job.h"

enum { MOST_RANGES = 16, LIMIT_S = 60 };

static const cli_gnn_option options[] = {
    CLI_GNN_JOB_OPTIONS,
    {OPTION_IMPORT, NULL, NULL},
    {OPTION_STAGES, NULL, NULL},
    {OPTION_RUNS, "how often to measure each block, size and copy; the median is used", "5"},
    {OPTION_SECONDS, NULL, NULL},
    {OPTION_OUTPUT, "write the costs, for --profile of plan and run; an existing profile is extended", NULL},
};

static bool show_progress(void *user_data, const clv_gnn_measure_progress *at) {
  char left[64] = "";
  if (at->left_s >= 120)
    snprintf(left, sizeof left, ", about %.0f min left", at->left_s / 60);
  else if (at->left_s >= 0)
    snprintf(left, sizeof left, ", about %.0f s left", at->left_s);
  cli_progress(user_data, "measuring %s, layer %u: %u of %u%s", at->device, at->layer, at->done, at->of, left);
  return true;
}

/* ---- Importing ---- */

/* Parses --stages: "npu=4-7" sets the stages that the column of the device npu covers. */
static clv_status take_stages(cli_invocation *cli, const char *text, clv_gnn_stage_range *range, char device[64],
                              clv_error *error) {
  size_t length = strcspn(text, "=");
  int used = 0;
  if (length >= 64 || sscanf(text + length, "=%3u-%3u%n", &range->first, &range->end, &used) != 2 ||
      text[length + (size_t)used] != '\0' || range->first >= range->end)
    return cli_usage(cli, error, "option '--stages': '%s' is not DEVICE=FIRST-LAST with FIRST below LAST, such as npu=4-7", text);
  snprintf(device, 64, "%.*s", (int)length, text);
  range->device = device;
  return CLV_OK;
}

static clv_status import(cli_gnn_job *job, const char *path, clv_error *error) {
  const cli_given *stages = &job->cli->options->given[OPTION_STAGES];
  clv_gnn_stage_range ranges[MOST_RANGES];
  char devices[MOST_RANGES][64];
  if (stages->count > MOST_RANGES)
    return cli_usage(job->cli, error, "option '--stages' is given %u times; at most %d are possible", stages->count, MOST_RANGES);
  for (uint32_t i = 0; i < stages->count; ++i) CLI_TRY(take_stages(job->cli, stages->values[i], &ranges[i], devices[i], error));
  clv_status status = clv_gnn_costs_import(job->costs, job->model, path, ranges, stages->count, error);
  if (status != CLV_INVALID_ARGUMENT || stages->count == 0) return status;
  const clv_error found = *error; /* the error is about a range */
  return cli_usage(job->cli, error, "option '--stages': %s", found.message);
}

/* ---- Measuring ---- */

/* Prints notes about blocks that were left out, and about blocks whose largest sizes were not measured. */
static void tell_left_out(const cli_gnn_job *job) {
  clv_gnn_costs_info info = {.struct_size = sizeof info};
  clv_gnn_costs_get_info(job->costs, &info);
  if (info.needless_count > 0 && job->cli->verbose)
    cli_note(job->cli,
             "%u of %u blocks were left out: they take longer than their whole layer on the same device, so no plan needs them",
             info.needless_count, info.wanted_count);
  if (info.cut_off_count > 0)
    cli_note(job->cli,
             "no time was left for the largest sizes of %u of %u blocks; --seconds %.0f would measure more of these sizes",
             info.cut_off_count, info.wanted_count, 4 * cli_real(job->cli, OPTION_SECONDS, LIMIT_S));
}

static clv_status measure(cli_gnn_job *job, bool only_copies, clv_error *error) {
  clv_gnn_measure_options how = CLV_GNN_MEASURE_OPTIONS_INIT;
  how.runs = (uint32_t)cli_number(job->cli, OPTION_RUNS, how.runs);
  how.limit_s = cli_real(job->cli, OPTION_SECONDS, LIMIT_S);
  how.only_copies = only_copies;
  how.progress = show_progress;
  how.user_data = job->cli;
  return clv_gnn_costs_measure(job->costs, job->model, job->graph, job->devices, &job->options, &how, error);
}

/* Reads the profile that will be extended, or starts a new one. */
static clv_status find_costs(cli_gnn_job *job, const char *path, bool imports, clv_error *error) {
  if (path == NULL || access(path, F_OK) != 0) return clv_gnn_costs_create(job->cli->context, &job->costs, error);
  clv_status status = clv_gnn_costs_read(job->cli->context, path, &job->costs, error);
  if (status != CLV_OK) {
    const clv_error found = *error;
    snprintf(error->message, sizeof error->message, "'%s' exists and cannot be extended: give another file: %.700s", path,
             found.message);
    return status;
  }
  if (imports) return CLV_OK;
  status = clv_gnn_costs_check(job->costs, job->devices, error);
  if (status != CLV_OK) {
    const clv_error found = *error;
    snprintf(error->message, sizeof error->message, "%s: %.900s", path, found.message);
  }
  return status;
}

static clv_status print(const cli_gnn_job *job, const char *path, clv_error *error) {
  char *document;
  CLI_TRY(clv_gnn_costs_report(job->costs, cli_form(job->cli), &document, error));
  clv_status status = cli_print_document(job->cli, document, error);
  clv_text_free(document);
  if (status != CLV_OK || job->cli->json || path == NULL) return status;
  printf("Written to %s: use it with 'cleave gnn plan --profile'.\n", path);
  return cli_flush(error);
}

static clv_status profile(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL), *csv = cli_text(cli, OPTION_IMPORT, NULL);
  if (csv == NULL && cli_is_given(cli, OPTION_STAGES))
    return cli_usage(cli, error, "option '--stages' describes the file of --import, which is not given");
  if (path == NULL) cli_note(cli, "the costs are not saved: give -o FILE to write them");
  CLI_TRY(cli_gnn_options(job, true, error));
  CLI_TRY(find_costs(job, path, csv != NULL, error));
  if (csv != NULL) CLI_TRY(import(job, csv, error));
  /* Imported files contain no times of copies, so copies are measured in any case. */
  CLI_TRY(measure(job, csv != NULL, error));
  tell_left_out(job);
  if (path != NULL) CLI_TRY(clv_gnn_costs_write(job->costs, path, error));
  return print(job, path, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_gnn_job job;
  clv_status status = cli_gnn_load(cli, &job, error);
  if (status == CLV_OK) status = profile(&job, error);
  cli_gnn_job_finish(&job);
  return status;
}

const cli_gnn_verb cli_gnn_verb_profile = {
    .name = "profile",
    .operands = "",
    .wanted = "--model FILE --graph FILE",
    .summary = "measure the costs that plans are based on",
    .description =
        "Measures the blocks of the model's layers that plans for these devices may contain, on the subgraphs of every k of\n"
        "--kset, and copies between devices. Plans are priced from these measurements alone. Between the measured sizes,\n"
        "prices are interpolated by fits, whose error is shown; beyond these sizes, there are no prices. Whole layers are\n"
        "measured first. Other blocks are skipped if they take longer than their whole layer. --import reads costs of\n"
        "blocks that were measured elsewhere; copies are still measured here.",
    .examples =
        "  cleave gnn profile --model sage.json --graph cora.npz --devices cpu,npu --kset 1,2,4..8 -o costs.json"
        "    # measure costs\n"
        "  cleave gnn profile --model sage.json --graph cora.npz --devices gpu,cpu --import measured.csv -o costs.json"
        "    # import costs that were measured elsewhere\n"
        "  cleave gnn profile --model sage.json --graph cora.npz --import measured.csv --stages cpu=0-4 --stages npu=4-7"
        "    # import costs of some stages only\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
