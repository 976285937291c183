/* `cleave bench`: measures the time of models: of one configuration in detail, or of several side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/console.h"
#include "cli/interrupt.h"

enum { MOST_ROWS = 4096, MOST_PERCENTILES = 14 };

/* ---- Which configurations ---- */

/* The values of an option that takes several: one NULL if it is not given. */
typedef struct axis {
  const char **values;
  uint32_t count;
} axis;

typedef struct sweep {
  cli_invocation *cli;
  axis models, devices, threads, batches, in_flight, peers;
  uint32_t count; /* of configurations */
} sweep;

static clv_status read_axis(cli_invocation *cli, cli_option_id id, bool is_split, axis *a, clv_error *error) {
  static const char *none[] = {NULL};
  const cli_given *given = &cli->options->given[id];
  *a = given->count == 0 ? (axis){none, 1} : (axis){given->values, given->count};
  if (given->count > 0 && is_split) a->values = cli_split(cli, given->values[given->count - 1], &a->count);
  return a->values == NULL ? cli_error_memory(error, sizeof *a->values) : CLV_OK;
}

static clv_status read_sweep(cli_invocation *cli, sweep *s, clv_error *error) {
  *s = (sweep){.cli = cli, .models = {cli->options->operands, cli->options->operand_count}};
  CLI_TRY(read_axis(cli, OPTION_DEVICES, false, &s->devices, error));
  CLI_TRY(read_axis(cli, OPTION_THREADS, true, &s->threads, error));
  CLI_TRY(read_axis(cli, OPTION_BATCH, true, &s->batches, error));
  CLI_TRY(read_axis(cli, OPTION_IN_FLIGHT, true, &s->in_flight, error));
  CLI_TRY(read_axis(cli, OPTION_COMPARE_WITH, true, &s->peers, error));
  if (!cli_is_given(cli, OPTION_COMPARE_WITH)) s->peers.count = 0;
  for (uint32_t i = 0; i < s->in_flight.count; ++i) {
    const char *text = s->in_flight.values[i];
    if (text != NULL && strtoull(text, NULL, 10) > CLV_MAX_IN_FLIGHT)
      return cli_usage(cli, error, "option '--in-flight': '%s' is not a whole number from 1 to %d", text, CLV_MAX_IN_FLIGHT);
  }
  const uint64_t count = (uint64_t)s->models.count * s->devices.count * s->threads.count * s->batches.count * s->in_flight.count;
  if (count * (1 + s->peers.count) > MOST_ROWS)
    return cli_usage(cli, error, "these options ask for %llu configurations; at most %d are possible",
                     (unsigned long long)(count * (1 + s->peers.count)), MOST_ROWS);
  s->count = (uint32_t)count;
  return CLV_OK;
}

/* Returns the setting of configuration `index`. The number of requests in flight varies fastest, and the model slowest. */
static bench_setting setting_of(const sweep *s, uint32_t index) {
  bench_setting setting = {0};
  setting.in_flight = s->in_flight.values[index % s->in_flight.count];
  index /= s->in_flight.count;
  setting.batch = s->batches.values[index % s->batches.count];
  index /= s->batches.count;
  setting.threads = s->threads.values[index % s->threads.count];
  index /= s->threads.count;
  setting.devices = s->devices.values[index % s->devices.count];
  setting.model = s->models.values[index / s->devices.count];
  return setting;
}

static const char *label_for(const sweep *s, uint32_t number, const bench_setting *setting) {
  char text[256];
  const uint32_t all = s->count * (1 + s->peers.count);
  size_t used = 0;
  const char *name = strrchr(setting->model, '/');
  if (all > 1) used = (size_t)snprintf(text, sizeof text, "[%u/%u] ", number + 1, all);
  used += (size_t)snprintf(text + used, sizeof text - used, "%.60s", name != NULL ? name + 1 : setting->model);
  if (setting->devices != NULL) used += (size_t)snprintf(text + used, sizeof text - used, ", %.60s", setting->devices);
  if (setting->threads != NULL) used += (size_t)snprintf(text + used, sizeof text - used, ", threads %.12s", setting->threads);
  if (setting->batch != NULL) used += (size_t)snprintf(text + used, sizeof text - used, ", batch %.12s", setting->batch);
  if (setting->in_flight != NULL)
    used += (size_t)snprintf(text + used, sizeof text - used, ", in flight %.12s", setting->in_flight);
  const char *label = cli_arena_string(&s->cli->arena, text, used);
  return label != NULL ? label : setting->model;
}

/* ---- The library's bench ---- */

static bool go_on(void *user_data) {
  (void)user_data;
  return !cli_is_interrupted();
}

/* Once runs are measured, a signal ends the measurement, and not the command. */
static void show_progress(void *user_data, const clv_bench_progress *now) {
  cli_invocation *cli = user_data;
  const unsigned long long done = now->done, of = now->of;
  if (now->phase == CLV_BENCH_RUNS) cli_interrupt_keep();
  if (now->phase == CLV_BENCH_FIRST_RUN)
    cli_progress(cli, "%s: first run", now->label);
  else if (now->phase == CLV_BENCH_OPERATORS)
    cli_progress(cli, "%s: measuring operators, run %llu of %llu", now->label, done, of);
  else if (now->phase == CLV_BENCH_PEAKS)
    cli_progress(cli, "peaks");
  else if (now->of_seconds > 0)
    cli_progress(cli, "%s: %.1f of %.1f s, %llu runs", now->label, now->seconds, now->of_seconds, done);
  else
    cli_progress(cli, "%s: run %llu of %llu", now->label, done, of);
}

static clv_status read_percentiles(cli_invocation *cli, clv_bench_options *options, clv_error *error) {
  uint32_t count;
  const char *given = cli_text(cli, OPTION_PERCENTILES, NULL);
  if (given == NULL) return CLV_OK;
  const char **texts = cli_split(cli, given, &count);
  double *percents = texts == NULL ? NULL : cli_arena_allocate_zero(&cli->arena, count, sizeof *percents);
  if (percents == NULL) return cli_error_memory(error, sizeof *percents);
  if (count > MOST_PERCENTILES)
    return cli_usage(cli, error, "option '--percentiles': at most %d, not %u", MOST_PERCENTILES, count);
  for (uint32_t i = 0; i < count; ++i) {
    percents[i] = strtod(texts[i], NULL);
    if (percents[i] > 100) return cli_usage(cli, error, "option '--percentiles': '%s' is above 100", texts[i]);
  }
  options->percentiles = percents;
  options->percentile_count = count;
  return CLV_OK;
}

static clv_status create_bench(const sweep *s, bool is_one, clv_bench **bench, clv_error *error) {
  cli_invocation *cli = s->cli;
  clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
  CLI_TRY(read_percentiles(cli, &options, error));
  options.duration_s = cli_seconds(cli, OPTION_DURATION, 0);
  options.runs = (uint32_t)cli_number(cli, OPTION_RUNS, 0);
  options.warmup = (uint32_t)cli_number(cli, OPTION_WARMUP, options.warmup);
  options.steps = is_one;
  options.operators = is_one && cli_is_given(cli, OPTION_OPERATORS);
  options.trace_path = is_one ? cli_text(cli, OPTION_TRACE, NULL) : NULL;
  options.configuration_count = s->count * (1 + s->peers.count);
  options.show_model = s->models.count > 1;
  options.go_on = go_on;
  options.progress = show_progress;
  options.user_data = cli;
  return clv_bench_create(cli->context, &options, bench, error);
}

static clv_status print_document(cli_invocation *cli, clv_status status, char *document, clv_error *error) {
  if (status == CLV_OK) status = cli_print_document(cli, document, error);
  clv_text_free(document);
  return status;
}

/* ---- Several configurations ---- */

/* Opens the configurations of a group. A configuration that cannot be opened becomes a row with the reason, and does not change
 * the exit status. Returns how many were opened before an interruption. */
static uint32_t open_group(const sweep *s, const bench_setting *settings, bench_config *configs, clv_bench_subject *subjects,
                           clv_error *failures, uint32_t count) {
  const int exit_status = s->cli->exit_status;
  for (uint32_t i = 0; i < count; ++i) {
    bench_setting setting = settings[i];
    /* A plan file is only for the devices that it names, so peers get the model of the plan. */
    if (setting.is_peer && configs[0].job.from_plan_file) setting.model = configs[0].job.model_path;
    const clv_status status = bench_open(s->cli, &setting, &configs[i], &failures[i]);
    subjects[i] = bench_subject_of(&settings[i], &configs[i]);
    if (status != CLV_OK) {
      s->cli->exit_status = exit_status;
      subjects[i].session = NULL;
      subjects[i].failure = failures[i].message;
    }
    if (cli_is_interrupted()) return i;
  }
  return count;
}

/* Measures one configuration of the sweep, and those that it is compared with. */
static clv_status measure_group(const sweep *s, uint32_t index, clv_bench *bench, clv_error *error) {
  const uint32_t count = 1 + s->peers.count;
  cli_arena *arena = &s->cli->arena;
  bench_setting *settings = cli_arena_allocate_zero(arena, count, sizeof *settings);
  bench_config *configs = cli_arena_allocate_zero(arena, count, sizeof *configs);
  clv_bench_subject *subjects = cli_arena_allocate_zero(arena, count, sizeof *subjects);
  clv_error *failures = cli_arena_allocate_zero(arena, count, sizeof *failures);
  if (settings == NULL || configs == NULL || subjects == NULL || failures == NULL)
    return cli_error_memory(error, count * sizeof *configs);
  for (uint32_t i = 0; i < count; ++i) {
    settings[i] = setting_of(s, index);
    if (i > 0) {
      settings[i].devices = s->peers.values[i - 1];
      settings[i].is_peer = true;
    }
    settings[i].label = label_for(s, index * count + i, &settings[i]);
  }
  const uint32_t opened = open_group(s, settings, configs, subjects, failures, count);
  const clv_status status = opened == count ? clv_bench_compare(bench, subjects, count, error) : CLV_OK;
  for (uint32_t i = 0; i < count; ++i) bench_close(s->cli, &configs[i]);
  return status;
}

static clv_status refuse(cli_invocation *cli, cli_option_id option, clv_error *error) {
  if (!cli_is_given(cli, option)) return CLV_OK;
  return cli_usage(cli, error, "option '--%s' is for a single configuration, without --csv, --markdown and --compare-with",
                   cli_option_table[option].name);
}

/* Sets the exit status. If nothing was measured, and all for the same reason, this reason is the error. */
static clv_status judge(cli_invocation *cli, const clv_bench *bench, clv_error *error) {
  clv_bench_figures row = {.struct_size = sizeof row};
  bool any = false, differs = false;
  const char *reason = NULL;
  for (uint32_t r = 0; clv_bench_row(bench, r, &row); ++r) {
    any = any || row.is_measured;
    differs = differs || (row.is_compared && !row.outputs_agree);
    if (r == 0)
      reason = row.failure;
    else if (reason != NULL && (row.failure == NULL || strcmp(row.failure, reason) != 0))
      reason = NULL;
  }
  if (!any && reason != NULL) return cli_error_set(error, CLV_INVALID_ARGUMENT, "%s", reason);
  if (!any || differs) cli->exit_status = CLI_EXIT_FAILED;
  return CLV_OK;
}

static clv_status execute_several(const sweep *s, clv_bench *bench, clv_error *error) {
  cli_invocation *cli = s->cli;
  const clv_bench_form form = cli_is_given(cli, OPTION_CSV)        ? CLV_BENCH_CSV
                              : cli_is_given(cli, OPTION_MARKDOWN) ? CLV_BENCH_MARKDOWN
                                                                   : (clv_bench_form)cli_form(cli);
  char *document = NULL;
  CLI_TRY(refuse(cli, OPTION_OPERATORS, error));
  CLI_TRY(refuse(cli, OPTION_TRACE, error));
  for (uint32_t i = 0; i < s->count && !cli_is_interrupted(); ++i) CLI_TRY(measure_group(s, i, bench, error));
  CLI_TRY(judge(cli, bench, error));
  const clv_status status = clv_bench_table(bench, form, &document, error);
  return print_document(cli, status, document, error);
}

/* ---- One configuration ---- */

static clv_status execute_one(const sweep *s, clv_bench *bench, clv_error *error) {
  cli_invocation *cli = s->cli;
  bench_setting setting = setting_of(s, 0);
  bench_config config;
  char *document = NULL;
  setting.label = label_for(s, 0, &setting);
  clv_status status = bench_open(cli, &setting, &config, error);
  const clv_bench_subject subject = bench_subject_of(&setting, &config);
  const clv_bench_level level = cli->verbose ? CLV_BENCH_ALL : cli->quiet ? CLV_BENCH_BRIEF : CLV_BENCH_USUAL;
  if (status == CLV_OK) status = clv_bench_measure(bench, &subject, error);
  if (status == CLV_OK) {
    status = clv_bench_details(bench, level, cli_form(cli), &document, error);
    status = print_document(cli, status, document, error);
  }
  bench_close(cli, &config);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  sweep s;
  clv_bench *bench = NULL;
  const int formats = cli->json + cli_is_given(cli, OPTION_CSV) + cli_is_given(cli, OPTION_MARKDOWN);
  if (formats > 1) return cli_usage(cli, error, "give one of --json, --csv and --markdown");
  CLI_TRY(read_sweep(cli, &s, error));
  cli->has_other_devices = s.devices.count > 1 || s.peers.count > 0;
  const bool is_one = s.count == 1 && s.peers.count == 0 && (formats == 0 || cli->json);
  clv_status status = create_bench(&s, is_one, &bench, error);
  if (status == CLV_OK) status = is_one ? execute_one(&s, bench, error) : execute_several(&s, bench, error);
  clv_bench_destroy(bench);
  if (cli_is_interrupted()) cli->exit_status = cli_interrupt_status();
  cli_interrupt_keep_end();
  return status;
}

const cli_command cli_command_bench = {
    .name = "bench",
    .operands = "MODEL|PLAN|DIR...",
    .min_operands = 1,
    .max_operands = 1024,
    .summary = "measure the time of models, in total and per step",
    .description =
        "Loads, plans and compiles the model, runs it once (the first run), warms up, and then measures --runs runs on the same\n"
        "inputs, or runs for a --duration. The load time is everything before the first run. The times of partitions and\n"
        "transfers are measured in separate runs, because waiting after each step takes time. With --operators, further runs\n"
        "measure each operator on devices that report operator times, and the peak compute and memory speed of this machine.\n"
        "Operators that take long and are far from their roofline are the ones worth optimising.\n"
        "Several models, several --devices, and lists for --threads, --batch and --in-flight make a table with a row for each\n"
        "combination, measured one after the other. A combination that cannot run has a row with the reason.\n"
        "--compare-with measures by turns instead: each round gives every device a burst of runs, so that all of them see the\n"
        "same machine. Ratios are printed only if the outputs agree within the tolerance of their dtype.\n"
        "Ctrl-C ends the measurement, and what was measured is printed. The exit status is 1 if no configuration ran, or if\n"
        "outputs differ.",
    .examples =
        "  cleave bench resnet50.onnx --runs 100                 # measure 100 runs\n"
        "  cleave bench resnet50.onnx --duration 10s --percentiles 50,90,95,99,99.9    # measure for 10 s\n"
        "  cleave bench resnet50.onnx --threads 2 --operators    # also measure each operator\n"
        "  cleave bench bert.onnx --devices cpu --devices npu,cpu --threads 1,2 --batch 1,4    # one table of 8 rows\n"
        "  cleave bench resnet50.onnx --devices npu,cpu --in-flight 1,4,16 --csv    # throughput, for a spreadsheet\n"
        "  cleave bench resnet50.onnx --threads 2 --compare-with onnxruntime,openvino    # who is faster?\n"
        "  cleave bench plan.json --threads 2 --json             # measure a plan; print JSON, with every sample\n",
    .execute = execute,
};
