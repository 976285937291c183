/* Makes a configuration ready to run. See bench.h. */
#include <stdlib.h>
#include <string.h>

#include "cleave/session_info.h"
#include "cli/bench/bench.h"
#include "cli/console.h"

/* ---- Options ---- */

static clv_status set_option(cli_invocation *cli, cli_options *options, cli_option_id id, const char *value, clv_error *error) {
  options->given[id] = (cli_given){0};
  if (value == NULL) return CLV_OK;
  options->given[id].values = cli_arena_copy(&cli->arena, &value, sizeof value);
  options->given[id].count = 1;
  return options->given[id].values == NULL ? cli_error_memory(error, sizeof value) : CLV_OK;
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
  const char **kept = cli_arena_allocate_zero(&cli->arena, all.count, sizeof *kept);
  uint32_t count = 0;
  if (kept == NULL) return cli_error_memory(error, all.count * sizeof *kept);
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
  options->operands = cli_arena_copy(&cli->arena, &setting->model, sizeof setting->model);
  if (options->operands == NULL) return cli_error_memory(error, sizeof setting->model);
  CLI_TRY(spare_device_options(cli, setting, options, error));
  CLI_TRY(set_option(cli, options, OPTION_DEVICES, setting->devices, error));
  CLI_TRY(set_option(cli, options, OPTION_THREADS, setting->threads, error));
  CLI_TRY(set_option(cli, options, OPTION_BATCH, setting->batch, error));
  CLI_TRY(set_option(cli, options, OPTION_IN_FLIGHT, setting->in_flight, error));
  for (size_t i = 0; setting->is_peer && i < sizeof of_plans / sizeof *of_plans; ++i)
    options->given[of_plans[i]] = (cli_given){0};
  return CLV_OK;
}

/* ---- The configuration ---- */

static clv_status open(cli_invocation *cli, bench_config *c, clv_error *error) {
  CLI_TRY(cli_job_load(cli, cli->options->operands[0], &c->job, error));
  CLI_TRY(cli_job_plan(cli, &c->job, true, error));
  clv_session_options options;
  cli_job_session_options(cli, &c->job, &options);
  cli_progress(cli, "compiling %s", c->job.path);
  uint64_t start = cli_now_ns();
  CLI_TRY(clv_session_create(c->job.plan, &options, &c->session, error));
  cli_job_note_compiled(cli, &c->job, c->session);
  (void)clv_memory_trim();
  c->compile_ms = cli_ms(start, cli_now_ns());
  return cli_inputs_fill(cli, &c->job, cli_number(cli, OPTION_SEED, 0), error);
}

clv_status bench_open(cli_invocation *cli, const bench_setting *setting, bench_config *config, clv_error *error) {
  const cli_options *all = cli->options;
  cli_options own = *all;
  *config = (bench_config){0};
  clv_status status = narrow(cli, setting, &own, error);
  cli->options = &own;
  if (status == CLV_OK) status = open(cli, config, error);
  cli->options = all;
  return status;
}

static uint32_t number_of(const char *text) {
  return text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 10);
}

clv_bench_subject bench_subject_of(const bench_setting *setting, const bench_config *config) {
  clv_bench_subject subject = CLV_BENCH_SUBJECT_INIT;
  subject.session = config->session;
  subject.inputs = config->job.inputs.tensors;
  subject.input_count = config->job.inputs.count;
  subject.label = setting->label;
  subject.model = setting->model;
  subject.model_path = config->job.model_path;
  subject.devices = setting->devices;
  subject.thread_count = number_of(setting->threads);
  subject.batch = number_of(setting->batch);
  subject.in_flight = number_of(setting->in_flight);
  subject.load_ms = config->job.load_ms;
  subject.plan_ms = config->job.plan_ms;
  subject.compile_ms = config->compile_ms;
  return subject;
}

void bench_close(cli_invocation *cli, bench_config *config) {
  clv_session_destroy(config->session);
  cli_job_finish(cli, &config->job);
  *config = (bench_config){0};
}
