/* `cleave gnn run`: runs a model over a graph, either by a plan or on the whole graph in one piece. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files/file_writer.h"
#include "cli/console.h"
#include "cli/gnn/report.h"
#include "cli/json.h"
#include "cost/measure.h"
#include "formats/arrays/npz.h"
#include "gnn/run/single.h"
#include "report/gnn/trace.h"
#include "report/label.h"

/* Predictions are of warm runs. Without --runs, a plan whose first run is short runs again, until WARM_RUNS more runs were
 * measured or ENOUGH_MS have passed. */
enum { WARM_RUNS = 4 };
#define ENOUGH_MS 1000.0

#define TOLERANCE 1e-5 /* of --verify, relative to the largest number of the result: f32 sums are added in another order */

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

/* The times of all runs: the first, and the others, which are warm. */
typedef struct timing {
  uint32_t count;
  double first_ms, last_ms, sum_ms;
  uint64_t *warm_ns; /* [count - 1] */
} timing;

typedef struct running {
  cli_gnn_job job;
  const char *output;
  char *state_path;           /* the file for --resume, next to the output; NULL: none */
  clv__gnn_schedule schedule; /* of the plan; empty if the graph runs in one piece, without a plan */
  clv__stages *stages;
  clv__partitioned partitioned;
  clv__gnn_run *run;
  clv__gnn_record record;
  clv__gnn_account account;
  clv_tensor out;
  double compile_ms, state_ms, worst; /* worst: relative difference found by --verify; -1: not verified */
  timing times;
  uint32_t runs; /* 0: not given */
} running;

static clv_status make_rows(const running *r, clv_tensor *rows, clv_error *error) {
  const clv__gnn_model *model = r->job.model;
  const int64_t dims[] = {r->job.graph->csr.vertex_count, clv__gnn_layer_width(&model->layers[model->layer_count - 1])};
  size_t size_bytes;
  *rows = clv__tensor_make(CLV_F32, 2, dims, NULL);
  if (!clv__tensor_size_bytes(rows, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  rows->data = clv__allocate(r->job.cli->allocator, size_bytes);
  return rows->data != NULL ? CLV_OK : clv__error_memory(error, size_bytes);
}

/* ---- Times ---- */

static clv_status init_times(running *r, clv_error *error) {
  uint32_t most = r->runs > WARM_RUNS ? r->runs : WARM_RUNS;
  r->times.warm_ns = clv__arena_allocate(&r->job.cli->arena, most * sizeof *r->times.warm_ns);
  return r->times.warm_ns != NULL ? CLV_OK : clv__error_memory(error, most * sizeof *r->times.warm_ns);
}

static void add_time(timing *times, double ms) {
  if (times->count == 0)
    times->first_ms = ms;
  else
    times->warm_ns[times->count - 1] = (uint64_t)(1e6 * ms);
  times->last_ms = ms;
  times->sum_ms += ms;
  ++times->count;
}

/* The median of the warm runs; -1 if there was only the first run. */
static double warm_ms(const timing *times) {
  if (times->count < 2) return -1;
  return 1e-6 * (double)clv__measure_of(times->warm_ns, times->count - 1).time_ns;
}

static bool runs_again(const running *r, bool is_resumed) {
  const timing *times = &r->times;
  if (r->runs > 0 || times->count == 0 || is_resumed) return times->count < (r->runs > 0 ? r->runs : 1);
  return times->count <= WARM_RUNS && times->sum_ms < ENOUGH_MS;
}

/* ---- In one piece ---- */

static clv_status run_single(running *r, clv_tensor *out, uint32_t runs, double *compile_ms, timing *times, clv_error *error) {
  cli_gnn_job *job = &r->job;
  clv__gnn_single *single;
  uint64_t begin_ns = clv__clock_ns();
  cli_progress(job->cli, "compiling %u layers", job->model->layer_count);
  CLV__TRY(clv__gnn_single_create(job->devices, CLV__NO_ID, job->model, job->graph, &single, error));
  *compile_ms = cli_ms(begin_ns, clv__clock_ns());
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < runs && status == CLV_OK; ++i) {
    cli_progress(job->cli, "running");
    begin_ns = clv__clock_ns();
    status = clv__gnn_single_run(single, NULL, out, error);
    add_time(times, cli_ms(begin_ns, clv__clock_ns()));
  }
  clv__gnn_single_destroy(single);
  return status;
}

/* ---- By a plan ---- */

static bool tell_progress(void *user_data, const clv__gnn_progress *progress) {
  char left[CLV__LABEL_BYTES] = "";
  if (progress->left_s >= 0) clv__label_time((uint64_t)(1e9 * progress->left_s), left);
  cli_progress(user_data, "layer %u of %u: %u of %u tasks%s%s%s", progress->layer + 1, progress->layer_count, progress->done,
               progress->of, left[0] != '\0' ? ", " : "", left, left[0] != '\0' ? " left" : "");
  return true;
}

static clv_status read_plan(running *r, const char *path, clv_error *error) {
  cli_gnn_job *job = &r->job;
  const char *reason;
  const clv__membership *given = NULL;
  clv__membership beside = {.k = 0};
  CLV__TRY(clv__gnn_plan_read(job->cli->allocator, path, &job->plan, error));
  CLV__TRY(cli_gnn_parts_read(job, error));
  for (uint32_t i = 0; i < job->part_count; ++i) {
    if (job->parts[i].k == job->plan->k) given = &job->parts[i];
  }
  if (job->part_count > 0 && given == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "%s: the plan has %u subgraphs, but no --parts file has this number of parts", path, job->plan->k);
  if (given == NULL && job->plan->membership[0] != '\0') {
    clv_status found = clv__gnn_plan_read_membership(job->plan, path, job->cli->allocator, &beside, error);
    if (found != CLV_OK && found != CLV_NOT_FOUND) return found;
    if (found == CLV_OK) given = &beside;
    if (found != CLV_OK && job->cli->verbose)
      cli_note(job->cli, "%s is not beside the plan: partitioning the graph again", job->plan->membership);
    if (found != CLV_OK) clv__error_clear(error);
  }
  cli_progress(job->cli, "partitioning into %u subgraphs", job->plan->k);
  uint64_t begin_ns = clv__clock_ns();
  clv_status status = clv__gnn_plan_subgraphs(job->cli->allocator, job->plan, job->model, job->graph, given,
                                              clv__context_cache(job->cli->context, &reason), &r->partitioned, error);
  clv__membership_finish(job->cli->allocator, &beside);
  job->cut_ms = cli_ms(begin_ns, clv__clock_ns());
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", path);
}

static clv_status make_plan(running *r, clv_error *error) {
  CLV__TRY(cli_gnn_cut(&r->job, error));
  CLV__TRY(cli_gnn_choose(&r->job, error));
  return clv__gnn_planning_subgraphs(&r->job.planning, r->job.plan->k, &r->partitioned, error);
}

static clv_status find_stages(running *r, clv_error *error) {
  const clv__gnn_model *model = r->job.model;
  r->stages = clv__arena_allocate_zero(&r->job.cli->arena, model->layer_count, sizeof *r->stages);
  if (r->stages == NULL) return clv__error_memory(error, model->layer_count * sizeof *r->stages);
  for (uint32_t i = 0; i < model->layer_count; ++i) clv__stages_of(model->type, &model->layers[i], CLV_F32, &r->stages[i]);
  return CLV_OK;
}

static clv_status run_plan(running *r, clv_error *error) {
  cli_gnn_job *job = &r->job;
  const char *path = cli_text(job->cli, OPTION_GNN_PLAN, NULL);
  clv__gnn_run_options how = CLV__GNN_RUN_OPTIONS_INIT;
  how.progress = tell_progress;
  how.user_data = job->cli;
  how.state_path = r->state_path;
  how.resume = cli_is_given(job->cli, OPTION_RESUME);
  CLV__TRY(path != NULL ? read_plan(r, path, error) : make_plan(r, error));
  CLV__TRY(find_stages(r, error));
  CLV__TRY(clv__gnn_schedule_of(&job->cli->arena, job->plan, &r->schedule, error));
  cli_progress(job->cli, "compiling %u layers", job->model->layer_count);
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(clv__gnn_run_create(job->devices, job->model, job->graph, &r->partitioned, &r->schedule, &r->run, error));
  r->compile_ms = cli_ms(begin_ns, clv__clock_ns());
  while (runs_again(r, cli_is_given(job->cli, OPTION_RESUME))) {
    CLV__TRY(clv__gnn_run_execute(r->run, NULL, &r->out, &how, error));
    clv__gnn_run_record(r->run, &r->record);
    add_time(&r->times, 1e-6 * r->record.measured_ns);
    r->state_ms += 1e-6 * r->record.state_ns;
    how.state_path = NULL; /* the first run has saved the layers */
    how.resume = false;
  }
  CLV__TRY(clv__gnn_account_make(&job->cli->arena, job->plan, r->stages, &r->record, &r->account, error));
  CLV__TRY(cli_gnn_report_html(job, &r->account, error));
  path = cli_text(job->cli, OPTION_TRACE, NULL);
  if (path == NULL) return CLV_OK;
  return clv__report_gnn_trace(job->cli->allocator, &r->record, r->schedule.machine, r->stages, path, error);
}

/* ---- Verifying ---- */

static clv_status verify(running *r, clv_error *error) {
  clv_tensor expected = {.data = NULL};
  double compile_ms, largest = 0, worst = 0;
  timing times = {0};
  size_t count, at = 0, columns = (size_t)r->out.dims[1];
  const float *actual = r->out.data;
  clv__gnn_run_close(r->run); /* two open runs would need the devices' memory at the same time */
  clv_status status = make_rows(r, &expected, error);
  if (status == CLV_OK) status = run_single(r, &expected, 1, &compile_ms, &times, error);
  if (status == CLV_OK && clv__tensor_count(&expected, &count)) {
    const float *rows = expected.data;
    for (size_t i = 0; i < count; ++i) {
      double off = fabs((double)rows[i] - (double)actual[i]);
      largest = fmax(largest, fabs((double)rows[i]));
      if (off <= worst) continue;
      worst = isnan(off) ? INFINITY : off;
      at = i;
    }
    r->worst = largest > 0 ? worst / largest : worst;
    if (!(r->worst <= TOLERANCE))
      status = clv__error_set(error, CLV_INTERNAL_ERROR,
                              "vertex %zu, column %zu is %.9g, but %.9g if the graph is run in one piece: the difference is %.3g "
                              "of the largest value; %.0e is allowed",
                              at / columns, at % columns, (double)actual[at], (double)rows[at], r->worst, TOLERANCE);
  }
  clv__release(r->job.cli->allocator, expected.data);
  return status;
}

/* ---- Output ---- */

static clv_status tell_json(const running *r, clv_error *error) {
  const cli_gnn_job *job = &r->job;
  json_t *root = json_object(), *devices = json_array();
  for (uint32_t d = 0; d < job->devices->count; ++d) json_array_append_new(devices, cli_json_text(job->devices->items[d].name));
  json_object_set_new(root, "model", cli_json_text(job->model_path));
  json_object_set_new(root, "graph", cli_json_text(job->graph_path));
  json_object_set_new(root, "devices", devices);
  json_object_set_new(root, "layers", json_integer(job->model->layer_count));
  json_object_set_new(root, "vertices", json_integer(job->graph->csr.vertex_count));
  json_object_set_new(root, "edges", json_integer((json_int_t)job->graph->csr.edge_count));
  if (job->plan != NULL) {
    cli_gnn_report_json(job, &r->account, root);
    json_object_set_new(root, "cut_from_cache", json_boolean(r->partitioned.from_cache));
    json_object_set_new(root, "cut_metis_seconds", cli_json_real(r->partitioned.metis_seconds));
  }
  json_object_set_new(root, "load_ms", cli_json_real(job->load_ms));
  json_object_set_new(root, "compile_ms", cli_json_real(r->compile_ms));
  json_object_set_new(root, "measured_ms", cli_json_real(r->times.last_ms));
  json_object_set_new(root, "first_ms", cli_json_real(r->times.first_ms));
  json_object_set_new(root, "warm_ms", r->times.count > 1 ? cli_json_real(warm_ms(&r->times)) : json_null());
  json_object_set_new(root, "warm_runs", json_integer(r->times.count - 1));
  if (job->plan != NULL) json_object_set_new(root, "state_ms", cli_json_real(r->state_ms));
  if (r->worst >= 0) json_object_set_new(root, "worst_difference", cli_json_real(r->worst));
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)cli_peak_rss_bytes()));
  return cli_json_print(job->cli, root, error);
}

/* Appends the times of the first and of warm runs, and the prediction, which is for a warm run. */
static void append_times(const running *r, clv__text *text) {
  const timing *times = &r->times;
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  clv__text_append(text, "%s in %s", times->count > 1 ? "first run" : "run",
                   clv__label_time((uint64_t)(1e6 * times->first_ms), first));
  if (times->count > 1)
    clv__text_append(text, ", warm in %s (median of %u)", clv__label_time((uint64_t)(1e6 * warm_ms(times)), second),
                     times->count - 1);
  clv__text_append(text, "; ");
  if (r->job.plan == NULL) return;
  clv__text_append(text, "predicted %s for a warm run%s; ", clv__label_time((uint64_t)r->job.plan->makespan_ns, first),
                   times->count > 1 ? "" : " (this was the first; --runs measures more)");
}

static clv_status report(const running *r, clv_error *error) {
  const cli_gnn_job *job = &r->job;
  if (job->cli->json) return tell_json(r, error);
  if (job->cli->quiet) return CLV_OK;
  clv__text text;
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  clv__text_init(&text, job->cli->allocator);
  if (job->plan != NULL && job->cli->verbose) cli_gnn_report_choice(job, &text);
  if (job->plan != NULL) cli_gnn_report_blocks(job, &r->account, &text);
  clv__label_name(&text, job->model_path);
  clv__text_append(&text, " over ");
  clv__label_name(&text, job->graph_path);
  clv__text_append(&text, ": loaded in %s, compiled in %s, ", clv__label_time((uint64_t)(1e6 * job->load_ms), first),
                   clv__label_time((uint64_t)(1e6 * r->compile_ms), second));
  append_times(r, &text);
  if (r->state_ms > 0)
    clv__text_append(&text, "%s more to save layers for --resume; ", clv__label_time((uint64_t)(1e6 * r->state_ms), first));
  if (r->worst >= 0) clv__text_append(&text, "verified: the largest difference is %.1e of the largest value; ", r->worst);
  clv__text_append(&text, "peak memory %s\n", clv__label_size(cli_peak_rss_bytes(), first));
  return cli_print(job->cli, &text, error);
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
  size_t length = strlen(r->output);
  r->state_path = clv__arena_allocate(&cli->arena, length + sizeof ".state");
  if (r->state_path == NULL) return clv__error_memory(error, length + sizeof ".state");
  memcpy(r->state_path, r->output, length);
  memcpy(r->state_path + length, ".state", sizeof ".state");
  clv__file_writer_sweep(r->output); /* removes temporary files of runs that were killed while writing the output */
  return CLV_OK;
}

static clv_status run(running *r, clv_error *error) {
  static const char *const names[] = {"out"};
  cli_invocation *cli = r->job.cli;
  bool has_plan = cli_is_given(cli, OPTION_GNN_PLAN) || cli_is_given(cli, OPTION_KSET) || cli_is_given(cli, OPTION_PROFILE) ||
                  cli_is_given(cli, OPTION_GNN_PARTS);
  if (cli_is_given(cli, OPTION_GNN_PLAN) && (cli_is_given(cli, OPTION_KSET) || cli_is_given(cli, OPTION_PROFILE)))
    return cli_usage(cli, error, "option '--plan' cannot be combined with --kset or --profile, which make a new plan");
  bool wants_plan = cli_is_given(cli, OPTION_RESUME) || cli_is_given(cli, OPTION_TRACE) || cli_is_given(cli, OPTION_HTML);
  if (!has_plan && wants_plan)
    return cli_usage(cli, error,
                     "options '--resume', '--trace' and '--html' need a plan: give --plan, or --kset or --profile to make one");
  CLV__TRY(find_state(r, error));
  CLV__TRY(make_rows(r, &r->out, error));
  CLV__TRY(init_times(r, error));
  if (has_plan)
    CLV__TRY(run_plan(r, error));
  else
    CLV__TRY(run_single(r, &r->out, r->runs > 0 ? r->runs : 1, &r->compile_ms, &r->times, error));
  if (cli_is_given(cli, OPTION_VERIFY)) CLV__TRY(verify(r, error));
  if (r->output != NULL) {
    cli_progress(cli, "writing %s", r->output);
    CLV__TRY(clv__npz_write(cli->allocator, r->output, names, &r->out, 1, false, error));
    if (r->state_path != NULL && has_plan) clv__gnn_run_forget(r->state_path); /* no longer needed: the result is saved */
  }
  return report(r, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  running r = {.output = cli_text(cli, OPTION_OUTPUT, NULL), .worst = -1, .runs = (uint32_t)cli_number(cli, OPTION_RUNS, 0)};
  clv_status status = cli_gnn_load(cli, &r.job, error);
  if (status == CLV_OK) status = run(&r, error);
  clv__gnn_run_destroy(r.run);
  if (r.partitioned.subgraphs != NULL) clv__partitioned_finish(&r.partitioned);
  clv__release(cli->allocator, r.out.data);
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
