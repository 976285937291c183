/* `cleave profile`: measures devices, alone or with the nodes of models, and writes a file of costs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/profile.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/json.h"

enum {
  DEFAULT_RUNS = 15,
  MOST_MODELS = 64,
  MOST_SHAKY = 8 /* a note is printed if more than 1 / MOST_SHAKY of the measurements vary widely */
};

typedef struct profiling {
  cli_invocation *cli;
  clv_devices *devices;
  clv_profile *profile;
  clv_profile_graph graphs[MOST_MODELS];
  clv_graph *loaded[MOST_MODELS]; /* the same graphs, to be destroyed */
  uint32_t graph_count;
  clv_profile_options options;
  uint64_t end_ns; /* the end of the budget; 0: there is no budget */
  clv_profile_expectation expected;
} profiling;

static void show_progress(void *user_data, const char *model, const char *device, const char *what, uint32_t done,
                          uint32_t total) {
  cli_invocation *cli = user_data;
  const char *space = model[0] != '\0' ? ": " : "";
  if (total > 0)
    cli_progress(cli, "%s%s%s: %s %u of %u", model, space, device, what, done, total);
  else if (done > 0)
    cli_progress(cli, "%s%s%s: %s %u", model, space, device, what, done);
  else
    cli_progress(cli, "%s%s%s: %s", model, space, device, what);
}

static bool go_on(void *user_data) {
  (void)user_data;
  return !cli_is_interrupted();
}

/* ---- Measuring ---- */

static clv_status load_model(profiling *p, const char *path, clv_error *error) {
  cli_invocation *cli = p->cli;
  cli_inputs inputs = {0};
  clv_graph *graph = NULL;
  clv_size *sizes;
  uint32_t count;
  cli_progress(cli, "loading %s", path);
  CLI_TRY(cli_graph_load(cli, path, &graph, error));
  p->loaded[p->graph_count] = graph;
  clv_status status = cli_inputs_read(cli, graph, &inputs, error);
  const bool quiet = cli->quiet;
  cli->quiet = quiet || p->graph_count > 0; /* the note that sizes are open is printed once */
  if (status == CLV_OK) status = cli_inputs_sizes(cli, graph, &inputs, true, &sizes, &count, error);
  cli->quiet = quiet;
  if (status == CLV_OK) p->graphs[p->graph_count] = (clv_profile_graph){graph, count, sizes};
  ++p->graph_count;
  cli_inputs_finish(&inputs);
  return status;
}

static clv_status begin(profiling *p, clv_error *error) {
  cli_invocation *cli = p->cli;
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
  const double seconds = cli_real(cli, OPTION_SECONDS, 0);
  if (seconds > 0 && seconds < 1e9) p->end_ns = cli_now_ns() + (uint64_t)(1e9 * seconds);
  p->options = (clv_profile_options)CLV_PROFILE_OPTIONS_INIT;
  p->options.runs = (uint32_t)cli_number(cli, OPTION_RUNS, DEFAULT_RUNS);
  p->options.continues = cli_is_given(cli, OPTION_CONTINUE);
  p->options.progress = show_progress;
  p->options.user_data = cli;
  if (path == NULL && p->options.continues)
    return cli_usage(cli, error, "option '--continue' needs -o FILE, the profile to go on with");
  if (path != NULL && strcmp(path, "-") == 0)
    return cli_usage(cli, error, "option '--output' needs a file name, not '-'; use /dev/stdout for standard output");
  if (path != NULL && access(path, F_OK) == 0) {
    clv_status status = clv_profile_read(cli->context, path, &p->profile, error);
    if (status != CLV_OK) return cli_error_prefix(error, status, "'%s' exists and cannot be extended: give another file", path);
  } else {
    CLI_TRY(clv_profile_create(cli->context, &p->profile, error));
  }
  for (uint32_t i = 0; i < cli->options->operand_count; ++i) CLI_TRY(load_model(p, cli->options->operands[i], error));
  return cli_devices_open(cli, NULL, &p->devices, error);
}

static clv_status measure(profiling *p, clv_profile_parts parts, clv_error *error) {
  p->options.parts = parts;
  if (p->end_ns > 0) {
    const uint64_t now_ns = cli_now_ns();
    p->options.budget_seconds = p->end_ns > now_ns ? 1e-9 * (double)(p->end_ns - now_ns) : 1e-9;
  }
  return clv_profile_measure(p->profile, p->devices, p->graphs, p->graph_count, &p->options, error);
}

/* A time with about three digits: "812 ms", "3.42 s", "120 s". */
static const char *time_text(double seconds, char text[32]) {
  const bool is_short = seconds < 0.9995;
  const double amount = is_short ? seconds * 1e3 : seconds;
  const int digits = amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
  snprintf(text, 32, "%.*f %s", digits, amount, is_short ? "ms" : "s");
  return text;
}

/* Reports how long measuring the nodes of the models will take, from the rates of the devices that were just measured. */
static clv_status tell_expected(profiling *p, clv_error *error) {
  char time[32], budget[64] = "";
  p->expected.struct_size = sizeof p->expected;
  CLI_TRY(clv_profile_expect(p->profile, p->devices, p->graphs, p->graph_count, &p->options, &p->expected, error));
  if (p->end_ns > 0) snprintf(budget, sizeof budget, "; it ends after %g s (--seconds)", cli_real(p->cli, OPTION_SECONDS, 0));
  cli_note(p->cli, "measuring %u kinds of nodes and up to %u blocks of them takes about %s%s", p->expected.node_count,
           p->expected.block_count, time_text(p->expected.seconds, time), budget);
  return CLV_OK;
}

static clv_status measure_all(profiling *p, clv_error *error) {
  CLI_TRY(measure(p, CLV_PROFILE_DEVICES, error));
  CLI_TRY(tell_expected(p, error));
  if (clv_devices_count(p->devices) > 1) { /* closing ends the drivers' threads, which would compete for cores */
    clv_devices_close(p->devices);
    p->devices = NULL;
    CLI_TRY(cli_devices_open(p->cli, NULL, &p->devices, error));
  }
  return measure(p, CLV_PROFILE_NODES, error);
}

/* ---- Output ---- */

static clv_profile_info info_of(const profiling *p) {
  clv_profile_info info = {.struct_size = sizeof info};
  clv_profile_get_info(p->profile, p->devices, &info);
  return info;
}

/* Prints a note if many repeated measurements differ widely, a sign that other programs disturbed them. */
static void note_disturbed(profiling *p) {
  const clv_profile_info info = info_of(p);
  if (info.shaky_count * MOST_SHAKY <= info.block_count) return;
  cli_note(
      p->cli,
      "%u of %u measurements vary widely, perhaps because other programs are running: measure again when the machine is idle",
      info.shaky_count, info.block_count);
}

static clv_status print_json(profiling *p, clv_error *error) {
  char *document;
  CLI_TRY(clv_profile_text(p->profile, p->devices, false, CLV_FORM_JSON, &document, error));
  json_t *root = json_object(), *tables = cli_json_parse(document);
  json_object_set_new(root, "file", cli_json_text(cli_text(p->cli, OPTION_OUTPUT, NULL)));
  json_object_set_new(root, "runs", json_integer(p->options.runs));
  json_object_set_new(root, "expected_seconds", cli_json_real(p->expected.seconds));
  json_object_update(root, tables);
  json_decref(tables);
  return cli_json_print(p->cli, root, error);
}

static clv_status print_text(profiling *p, clv_error *error) {
  cli_invocation *cli = p->cli;
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
  char *document;
  CLI_TRY(clv_profile_text(p->profile, p->devices, cli->quiet, cli_form(cli), &document, error));
  clv_status status = cli_print_document(cli, document, error);
  clv_text_free(document);
  if (status == CLV_OK && path != NULL && !cli->quiet)
    printf("Written to %s: use it with 'cleave plan MODEL --profile %s'.\n", path, path);
  return status;
}

/* Measures everything, and writes the profile. If the user interrupts, writes what was measured, marked as partial. */
static clv_status measure_and_write(profiling *p, clv_error *error) {
  const char *path = cli_text(p->cli, OPTION_OUTPUT, NULL);
  if (path == NULL) {
    cli_note(p->cli, "the profile is not saved: give -o FILE to write it");
    CLI_TRY(measure_all(p, error));
    if (info_of(p).is_partial) cli_note(p->cli, "the budget was spent before everything was measured");
    return CLV_OK;
  }
  cli_interrupt_keep();
  p->options.go_on = go_on;
  clv_status status = measure_all(p, error);
  if (status == CLV_OK || status == CLV_CANCELLED) {
    clv_status written = clv_profile_update(p->profile, path, error);
    if (written != CLV_OK) status = written;
  }
  cli_interrupt_keep_end();
  if (status == CLV_OK && info_of(p).is_partial) {
    cli_note(p->cli, "the budget was spent before everything was measured; the same command with --continue measures the rest");
  }
  if (status != CLV_CANCELLED) return status;
  p->cli->exit_status = cli_interrupt_status();
  return cli_error_set(error, status, "interrupted: %s has what was measured; the same command with --continue measures the rest",
                       path);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  profiling p = {.cli = cli};
  clv_status status = begin(&p, error);
  if (status == CLV_OK) status = measure_and_write(&p, error);
  if (status == CLV_OK) note_disturbed(&p);
  if (status == CLV_OK) status = cli->json ? print_json(&p, error) : print_text(&p, error);
  clv_profile_destroy(p.profile);
  clv_devices_close(p.devices);
  for (uint32_t i = 0; i < p.graph_count; ++i) clv_graph_destroy(p.loaded[i]);
  return status;
}

const cli_command cli_command_profile = {
    .name = "profile",
    .operands = "[MODEL...]",
    .min_operands = 0,
    .max_operands = MOST_MODELS,
    .summary = "measure the costs of the devices, for planning",
    .description =
        "Measures, for each device of --devices, the time to launch a partition, to copy data, to run every distinct node\n"
        "of the models, and to run blocks of nodes, which shows how much time nodes save by running together. Each time is\n"
        "the median of several runs after a warm-up. Without a model, measures common operators in several sizes. An\n"
        "existing profile is extended, so several models and devices can share one file. Measure on an idle machine, with\n"
        "the same --threads and --npu-spec as for the runs: with another number of threads, the CPU counts as another\n"
        "device. The command says how long it will take, once the rates of the devices are known. --seconds limits the time,\n"
        "which the devices share. Ctrl-C writes what was measured so far, too; --continue goes on.",
    .examples =
        "  cleave profile resnet50.onnx --devices npu,cpu -o costs.json                  # measure the nodes of a model\n"
        "  cleave profile bert.onnx --dim sequence=128 -o costs.json                     # add another model to the file\n"
        "  cleave profile resnet50.onnx -o costs.json --seconds 10 --continue            # measure for 10 s what is missing\n"
        "  cleave plan resnet50.onnx --devices npu,cpu --profile costs.json --compare    # plan with the measured costs\n",
    .execute = execute,
};
