/* `cleave gnn run`: runs a model over a graph, either by a plan or on the whole graph in one piece. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/console.h"
#include "cli/gnn/job.h"

/* Predictions are of warm runs. Without --runs, a plan whose first run is short runs again, until WARM_RUNS more runs were
 * measured or ENOUGH_NS have passed. */
enum { WARM_RUNS = 4 };
#define ENOUGH_NS 1e9

static const cli_gnn_option options[] = {
    {OPTION_GNN_PLAN, NULL, NULL},
    CLI_GNN_JOB_OPTIONS,
    CLI_GNN_CHOICE_OPTIONS,
    {OPTION_VERIFY, "compare the result with that of the whole graph in one piece", NULL},
    {OPTION_RUNS, "number of runs; the blocks of the last one are reported",
     "1; with a plan, up to 4 more if they take less than a second"},
    {OPTION_RESUME, NULL, NULL},
    {OPTION_TRACE, NULL, NULL},
    {OPTION_HTML, CLI_GNN_HTML_HELP, NULL},
    {OPTION_OUTPUT, "write the result to FILE, as npz: array 'out' [n, classes], in the graph's vertex order", NULL},
};

typedef struct running {
  cli_gnn_job job;
  const char *output;
  char *state_path; /* the file for --resume, next to the output; NULL: none */
  clv_gnn_run *run;
  clv_tensor out;
  uint32_t runs; /* 0: not given */
} running;

static bool tell_progress(void *user_data, const clv_gnn_progress *progress) {
  char left[64] = "";
  if (progress->left_s >= 120)
    snprintf(left, sizeof left, ", %.0f min left", progress->left_s / 60);
  else if (progress->left_s >= 0)
    snprintf(left, sizeof left, ", %.1f s left", progress->left_s);
  cli_progress(user_data, "layer %u of %u: %u of %u tasks%s", progress->layer + 1, progress->layer_count, progress->done,
               progress->of, left);
  return true;
}

static clv_status create(running *r, bool has_plan, clv_error *error) {
  cli_gnn_job *job = &r->job;
  const char *path = cli_text(job->cli, OPTION_GNN_PLAN, NULL);
  clv_gnn_model_info info = {.struct_size = sizeof info};
  if (path != NULL) {
    CLI_TRY(cli_gnn_options(job, false, error));
    CLI_TRY(clv_gnn_plan_read(job->model, job->graph, job->devices, path, &job->options, &job->plan, error));
  } else if (has_plan) {
    CLI_TRY(cli_gnn_plan(job, error));
  }
  clv_gnn_model_get_info(job->model, &info);
  cli_progress(job->cli, "compiling %u layers", info.layer_count);
  if (has_plan) return clv_gnn_run_create(job->plan, &r->run, error);
  return clv_gnn_run_create_whole(job->model, job->graph, job->devices, CLV_GNN_ANY_DEVICE, &r->run, error);
}

/* ---- Executing ---- */

static bool runs_again(const running *r, uint32_t count, double sum_ns, bool is_resumed) {
  if (r->runs > 0) return count < r->runs;
  if (count == 0 || is_resumed || r->job.plan == NULL) return count < 1;
  return count <= WARM_RUNS && sum_ns < ENOUGH_NS;
}

static clv_status execute_runs(running *r, clv_error *error) {
  cli_invocation *cli = r->job.cli;
  clv_gnn_execute_options how = CLV_GNN_EXECUTE_OPTIONS_INIT;
  clv_gnn_run_info info = {.struct_size = sizeof info};
  const bool is_resumed = cli_is_given(cli, OPTION_RESUME);
  double sum_ns = 0;
  how.progress = tell_progress;
  how.user_data = cli;
  how.state_path = r->job.plan != NULL ? r->state_path : NULL;
  how.resume = is_resumed && how.state_path != NULL;
  for (uint32_t count = 0; runs_again(r, count, sum_ns, is_resumed); ++count) {
    if (r->job.plan == NULL) cli_progress(cli, "running");
    CLI_TRY(clv_gnn_run_execute(r->run, NULL, &r->out, &how, error));
    clv_gnn_run_get_info(r->run, &info);
    sum_ns += info.last_ns;
    how.state_path = NULL; /* the first run has saved the layers */
    how.resume = false;
  }
  return CLV_OK;
}

/* Writes the files of --html and --trace. */
static clv_status write_pictures(running *r, clv_error *error) {
  const char *page = cli_text(r->job.cli, OPTION_HTML, NULL), *trace = cli_text(r->job.cli, OPTION_TRACE, NULL);
  if (page != NULL) CLI_TRY(clv_gnn_run_page(r->run, page, NULL, NULL, error));
  return trace != NULL ? clv_gnn_run_trace(r->run, trace, NULL, NULL, error) : CLV_OK;
}

static clv_status report(const running *r, clv_error *error) {
  cli_invocation *cli = r->job.cli;
  clv_gnn_report_options how = CLV_GNN_REPORT_OPTIONS_INIT;
  char *document;
  if (cli->quiet && !cli->json) return CLV_OK;
  how.detailed = cli->verbose;
  CLI_TRY(clv_gnn_run_report(r->run, &how, cli_form(cli), &document, error));
  clv_status status = cli_print_document(cli, document, error);
  clv_text_free(document);
  return status;
}

/* ---- The command ---- */

/* Names the file that keeps the rows between layers for --resume: the output's name with ".state". No such file is written unless
 * the output is a regular file. */
static clv_status find_state(running *r, clv_error *error) {
  struct stat about;
  cli_invocation *cli = r->job.cli;
  if (r->output == NULL) {
    if (cli_is_given(cli, OPTION_RESUME))
      return cli_usage(cli, error, "option '--resume' needs --output, with the file of the interrupted run");
    return CLV_OK;
  }
  if (stat(r->output, &about) == 0 && !S_ISREG(about.st_mode)) return CLV_OK;
  size_t size_bytes = strlen(r->output) + sizeof ".state";
  r->state_path = malloc(size_bytes);
  if (r->state_path == NULL) return cli_no_memory(error);
  snprintf(r->state_path, size_bytes, "%s.state", r->output);
  return CLV_OK;
}

static clv_status check_options(const running *r, bool has_plan, clv_error *error) {
  cli_invocation *cli = r->job.cli;
  if (cli_is_given(cli, OPTION_GNN_PLAN) && (cli_is_given(cli, OPTION_KSET) || cli_is_given(cli, OPTION_PROFILE)))
    return cli_usage(cli, error, "option '--plan' cannot be combined with --kset or --profile, which make a new plan");
  bool wants_plan = cli_is_given(cli, OPTION_RESUME) || cli_is_given(cli, OPTION_TRACE) || cli_is_given(cli, OPTION_HTML);
  if (has_plan || !wants_plan) return CLV_OK;
  return cli_usage(cli, error,
                   "options '--resume', '--trace' and '--html' need a plan: give --plan, or --kset or --profile to make one");
}

static clv_status run(running *r, clv_error *error) {
  cli_invocation *cli = r->job.cli;
  bool has_plan = cli_is_given(cli, OPTION_GNN_PLAN) || cli_is_given(cli, OPTION_KSET) || cli_is_given(cli, OPTION_PROFILE) ||
                  cli_is_given(cli, OPTION_GNN_PARTS);
  CLI_TRY(check_options(r, has_plan, error));
  CLI_TRY(find_state(r, error));
  CLI_TRY(create(r, has_plan, error));
  CLI_TRY(execute_runs(r, error));
  CLI_TRY(write_pictures(r, error));
  if (cli_is_given(cli, OPTION_VERIFY)) CLI_TRY(clv_gnn_run_verify(r->run, NULL, &r->out, CLV_GNN_TOLERANCE, NULL, error));
  if (r->output != NULL) {
    cli_progress(cli, "writing %s", r->output);
    CLI_TRY(clv_gnn_run_write(r->run, &r->out, r->output, error));
    if (r->state_path != NULL && has_plan) unlink(r->state_path); /* no longer needed: the result is saved */
  }
  return report(r, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  running r = {.output = cli_text(cli, OPTION_OUTPUT, NULL), .runs = (uint32_t)cli_number(cli, OPTION_RUNS, 0)};
  clv_status status = cli_gnn_load(cli, &r.job, error);
  if (status == CLV_OK) status = run(&r, error);
  clv_gnn_run_destroy(r.run);
  free(r.state_path);
  cli_gnn_job_finish(&r.job);
  return status;
}

const cli_gnn_verb cli_gnn_verb_run = {
    .name = "run",
    .operands = "",
    .wanted = "--model FILE --graph FILE",
    .summary = "run a model on a graph",
    .description =
        "With --plan, runs that plan. With --kset, --parts or --profile, makes a plan first; without --profile, its prices are\n"
        "nominal. Otherwise, runs the whole graph in one piece on the given devices. A run with a plan shows the predicted and "
        "the\n"
        "measured time of each block. Predictions are of warm runs: a first run also allocates memory and fills caches, so "
        "short\n"
        "runs are repeated, and both times are shown.",
    .examples =
        "  cleave gnn run --model sage.json --graph cora.npz --output out.npz    # run without a plan\n"
        "  cleave gnn run --model sage.json --graph cora.npz --devices npu,cpu --plan plan.json --output out.npz --html run.html"
        "    # also write a web page\n"
        "  cleave gnn run --model sage.json --graph cora.npz --devices npu,cpu --plan plan.json --output out.npz --resume"
        "    # continue an interrupted run\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
