/* Makes a configuration ready to run. See bench.h. */
#include <string.h>

#include "base/clock.h"
#include "base/trim.h"
#include "cli/bench/bench.h"
#include "cli/console.h"
#include "cli/interrupt.h"

enum { STEP_RUNS_LEAST = 3, STEP_RUNS_MOST = 20, RUNS = 50 };

/* ---- Options ---- */

static clv_status set_option(cli_invocation *cli, cli_options *options, cli_option_id id, const char *value, clv_error *error) {
  options->given[id] = (cli_given){0};
  if (value == NULL) return CLV_OK;
  options->given[id].values = clv__arena_copy(&cli->arena, &value, sizeof value);
  options->given[id].count = 1;
  return options->given[id].values == NULL ? clv__error_memory(error, sizeof value) : CLV_OK;
}

/* Returns whether the device option "DEV:KEY=VALUE" is for a device of the list. */
static bool is_for(const char *option, const char *list) {
  for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
    length = strcspn(list, ",");
    if (strncmp(option, list, length) == 0 && option[length] == ':') return true;
  }
  return false;
}

/* Leaves out options of devices that only other configurations have. */
static clv_status spare_device_options(cli_invocation *cli, const bench_setting *setting, cli_options *options,
                                       clv_error *error) {
  const cli_given *lists = &options->given[OPTION_DEVICES], all = options->given[OPTION_DEVICE_OPTION];
  const char **kept = clv__arena_allocate_zero(&cli->arena, all.count, sizeof *kept);
  uint32_t count = 0;
  if (kept == NULL) return clv__error_memory(error, all.count * sizeof *kept);
  for (uint32_t i = 0; i < all.count; ++i) {
    bool is_of_other = false;
    for (uint32_t k = 0; k < lists->count; ++k) is_of_other = is_of_other || is_for(all.values[i], lists->values[k]);
    if (setting->devices == NULL || is_for(all.values[i], setting->devices) || !is_of_other) kept[count++] = all.values[i];
  }
  options->given[OPTION_DEVICE_OPTION] = (cli_given){count, kept};
  return CLV_OK;
}

/* Sets the options to those of one configuration. A peer (a device of --compare-with) runs the whole model, so the options that
 * shape the plan of the compared configuration do not apply to it. */
static clv_status narrow(cli_invocation *cli, const bench_setting *setting, cli_options *options, clv_error *error) {
  static const cli_option_id of_plans[] = {OPTION_STRATEGY, OPTION_SPLIT,   OPTION_PIN,     OPTION_PINS,
                                           OPTION_FORCE,    OPTION_WEIGHTS, OPTION_OFFLOAD, OPTION_VALUE};
  options->operand_count = 1;
  options->operands = clv__arena_copy(&cli->arena, &setting->model, sizeof setting->model);
  if (options->operands == NULL) return clv__error_memory(error, sizeof setting->model);
  CLV__TRY(spare_device_options(cli, setting, options, error));
  CLV__TRY(set_option(cli, options, OPTION_DEVICES, setting->devices, error));
  CLV__TRY(set_option(cli, options, OPTION_THREADS, setting->threads, error));
  CLV__TRY(set_option(cli, options, OPTION_BATCH, setting->batch, error));
  CLV__TRY(set_option(cli, options, OPTION_IN_FLIGHT, setting->in_flight, error));
  for (size_t i = 0; setting->is_peer && i < sizeof of_plans / sizeof *of_plans; ++i)
    options->given[of_plans[i]] = (cli_given){0};
  return CLV_OK;
}

/* ---- The configuration ---- */

clv_status bench_run_once(bench *b, double *time_ms, clv_error *error) {
  clv_tensor *outputs = b->rooms != NULL ? b->rooms : b->outputs;
  if (b->rooms == NULL) memset(outputs, 0, b->output_count * sizeof *outputs);
  uint64_t start = clv__clock_ns();
  CLV__TRY(clv_session_run(b->session, b->job.inputs.tensors, b->job.inputs.count, outputs, b->output_count, error));
  *time_ms = cli_ms(start, clv__clock_ns());
  return CLV_OK;
}

static void read_numbers(bench *b) {
  const cli_invocation *cli = b->cli;
  const double duration_s = cli_seconds(cli, OPTION_DURATION, 0);
  b->extent.duration_ns = (uint64_t)(duration_s * 1e9);
  b->extent.runs = (uint32_t)cli_number(cli, OPTION_RUNS, duration_s > 0 ? 0 : RUNS);
  b->warmup = (uint32_t)cli_number(cli, OPTION_WARMUP, 5);
  b->step_runs = b->extent.runs == 0 || b->extent.runs > STEP_RUNS_MOST ? STEP_RUNS_MOST : b->extent.runs;
  if (b->step_runs < STEP_RUNS_LEAST) b->step_runs = STEP_RUNS_LEAST;
}

static clv_status open(bench *b, clv_error *error) {
  cli_invocation *cli = b->cli;
  CLV__TRY(cli_job_load(cli, cli->options->operands[0], &b->job, error));
  CLV__TRY(cli_job_plan(cli, &b->job, true, error));
  clv_session_options options;
  cli_job_session_options(cli, &b->job, &options);
  b->in_flight = options.in_flight;
  cli_progress(cli, "compiling %s", b->job.path);
  uint64_t start = clv__clock_ns();
  CLV__TRY(clv_session_create(b->job.plan, &options, &b->session, error));
  cli_job_note_compiled(cli, &b->job, b->session);
  (void)clv__memory_trim();
  b->compile_ms = cli_ms(start, clv__clock_ns());
  b->load_ms = b->job.load_ms + b->job.plan_ms + b->compile_ms;
  CLV__TRY(cli_inputs_fill(cli, &b->job, cli_number(cli, OPTION_SEED, 0), error));
  b->output_count = b->job.graph->output_count + b->job.plan->kept_count;
  b->outputs = clv__arena_allocate_zero(&b->arena, b->output_count, sizeof *b->outputs);
  if (b->outputs == NULL) return clv__error_memory(error, b->output_count * sizeof *b->outputs);
  return b->in_flight > 1 ? bench_make_rooms(b, error) : CLV_OK;
}

static clv_status warm_up(bench *b, clv_error *error) {
  double ignored;
  cli_progress(b->cli, "%s: first run", b->label);
  CLV__TRY(bench_run_once(b, &b->first_run_ms, error));
  for (uint32_t i = 0; i < b->warmup; ++i) CLV__TRY(bench_run_once(b, &ignored, error));
  return CLV_OK;
}

clv_status bench_prepare(cli_invocation *cli, const bench_setting *setting, const char *label, bench *b, clv_error *error) {
  const cli_options *all = cli->options;
  cli_options own = *all;
  *b = (bench){.cli = cli, .setting = *setting, .label = label};
  clv__arena_init(&b->arena, cli->allocator);
  clv_status status = narrow(cli, setting, &own, error);
  cli->options = &own;
  read_numbers(b);
  if (status == CLV_OK) status = open(b, error);
  if (status == CLV_OK) status = warm_up(b, error);
  if (status == CLV_OK) b->stop = cli_interrupt_keep();
  cli->options = all;
  return status;
}

void bench_finish(bench *b) {
  clv__efficiency_finish(&b->efficiency);
  clv_session_destroy(b->session);
  if (b->cli == NULL) return;
  bench_samples_finish(&b->samples, b->cli->allocator);
  cli_job_finish(b->cli, &b->job);
  clv__arena_finish(&b->arena);
}
