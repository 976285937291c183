/* `cleave bench`: measures the time of models: of one configuration in detail, or of several side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/bench/columns.h"
#include "cli/console.h"
#include "cli/interrupt.h"

enum { MOST_ROWS = 4096 };

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
  return a->values == NULL ? clv__error_memory(error, sizeof *a->values) : CLV_OK;
}

static clv_status read_sweep(cli_invocation *cli, sweep *s, clv_error *error) {
  *s = (sweep){.cli = cli, .models = {cli->options->operands, cli->options->operand_count}};
  CLV__TRY(read_axis(cli, OPTION_DEVICES, false, &s->devices, error));
  CLV__TRY(read_axis(cli, OPTION_THREADS, true, &s->threads, error));
  CLV__TRY(read_axis(cli, OPTION_BATCH, true, &s->batches, error));
  CLV__TRY(read_axis(cli, OPTION_IN_FLIGHT, true, &s->in_flight, error));
  CLV__TRY(read_axis(cli, OPTION_COMPARE_WITH, true, &s->peers, error));
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

static const char *label_of(const sweep *s, uint32_t number, const bench_setting *setting) {
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
  const char *label = clv__arena_string(&s->cli->arena, text, used);
  return label != NULL ? label : setting->model;
}

/* ---- Several configurations ---- */

/* Measures one configuration of the sweep, and those that it is compared with. */
static clv_status measure_group(const sweep *s, uint32_t index, bench_report *report, clv_error *error) {
  const uint32_t count = 1 + s->peers.count;
  bench_setting *settings = clv__arena_allocate_zero(&s->cli->arena, count, sizeof *settings);
  const char **labels = clv__arena_allocate_zero(&s->cli->arena, count, sizeof *labels);
  if (settings == NULL || labels == NULL) return clv__error_memory(error, count * sizeof *settings);
  for (uint32_t i = 0; i < count; ++i) {
    settings[i] = setting_of(s, index);
    if (i > 0) {
      settings[i].devices = s->peers.values[i - 1];
      settings[i].is_peer = true;
    }
    labels[i] = label_of(s, index * count + i, &settings[i]);
  }
  return bench_compare(s->cli, settings, labels, count, report, error);
}

static clv_status refuse(cli_invocation *cli, cli_option_id option, clv_error *error) {
  if (!cli_is_given(cli, option)) return CLV_OK;
  return cli_usage(cli, error, "option '--%s' is for a single configuration, without --csv, --markdown and --compare-with",
                   cli_option_table[option].name);
}

static clv_status execute_several(sweep *s, bench_report *report, clv_error *error) {
  cli_invocation *cli = s->cli;
  CLV__TRY(refuse(cli, OPTION_OPERATORS, error));
  CLV__TRY(refuse(cli, OPTION_TRACE, error));
  for (uint32_t i = 0; i < s->count && !cli_is_interrupted(); ++i) CLV__TRY(measure_group(s, i, report, error));
  report->interrupted = cli_is_interrupted();
  report->base = s->devices.count == 1 ? (s->devices.values[0] != NULL ? s->devices.values[0] : "cpu") : NULL;
  const bool any = bench_report_has_results(report);
  const char *reason = any ? NULL : bench_report_common_failure(report);
  if (reason != NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s", reason);
  if (!any || report->differs) cli->exit_status = CLI_EXIT_FAILED;
  return bench_report_print(report, error);
}

/* ---- One configuration ---- */

static clv_status print_json(const bench *b, bench_report *report, clv_error *error) {
  json_t *root = json_object();
  bench_row_json(report, 0, root);
  bench_details_json(b, root);
  return cli_json_print(b->cli, root, error);
}

static clv_status execute_one(sweep *s, bench_report *report, clv_error *error) {
  cli_invocation *cli = s->cli;
  const bench_setting setting = setting_of(s, 0);
  bench b;
  clv_status status = bench_prepare(cli, &setting, label_of(s, 0, &setting), &b, error);
  if (status == CLV_OK) status = bench_burst(&b, &b.extent, error);
  if (status == CLV_OK) status = bench_conclude(&b, error);
  if (status == CLV_OK) status = bench_measure_details(&b, error);
  const bench_result result = {.cli = cli, .setting = &setting, .measured = &b};
  if (status == CLV_OK) status = bench_report_add(report, &result, error);
  if (status == CLV_OK) status = cli->json ? print_json(&b, report, error) : bench_print_text(&b, report, error);
  bench_finish(&b);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  sweep s;
  bench_report report;
  const int formats = cli->json + cli_is_given(cli, OPTION_CSV) + cli_is_given(cli, OPTION_MARKDOWN);
  if (formats > 1) return cli_usage(cli, error, "give one of --json, --csv and --markdown");
  CLV__TRY(read_sweep(cli, &s, error));
  cli->has_other_devices = s.devices.count > 1 || s.peers.count > 0;
  const bool is_one = s.count == 1 && s.peers.count == 0 && (formats == 0 || cli->json);
  const bench_shown shown = {.model = s.models.count > 1,
                             .threads = cli_is_given(cli, OPTION_THREADS),
                             .batch = cli_is_given(cli, OPTION_BATCH),
                             .in_flight = cli_is_given(cli, OPTION_IN_FLIGHT),
                             .comparison = s.peers.count > 0};
  CLV__TRY(bench_report_init(&report, cli, &shown, s.count * (1 + s.peers.count), error));
  clv_status status = is_one ? execute_one(&s, &report, error) : execute_several(&s, &report, error);
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
