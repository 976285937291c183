/* `cleave profile`: measures devices, alone or with the nodes of models, and writes a file of costs. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/json.h"
#include "cost/measure.h"
#include "report/label.h"
#include "report/table.h"

enum {
  DEFAULT_RUNS = 15,
  MOST_MODELS = 64,
  SHAKY = 8,     /* a measurement is shaky if its relative spread is above 1 / SHAKY */
  MOST_SHAKY = 8 /* a note is printed if more than 1 / MOST_SHAKY of the measurements are shaky */
};

typedef struct profiling {
  cli_invocation *cli;
  clv_devices *devices;
  clv__profile *profile;
  clv__measure_options options;
  char day[16];
  const char *subject; /* the current model, or "" */
  uint32_t measured[CLV__MAX_DEVICES];
  uint32_t device;     /* the current device */
  bool is_expecting;   /* models are not measured; what they need is added to `expected` */
  bool has_told_sizes; /* the note that sizes are open has been printed */
  bool is_short;       /* the budget ended before everything was measured */
  uint64_t end_ns;     /* the end of the budget; 0: there is no budget */
  clv__expectation expected;
  clv_status status;
  clv_error *error;
} profiling;

static void progress(void *user_data, const char *device, const char *what, uint32_t done, uint32_t total) {
  const profiling *p = user_data;
  const char *space = p->subject[0] != '\0' ? ": " : "";
  if (total > 0)
    cli_progress(p->cli, "%s%s%s: %s %u of %u", p->subject, space, device, what, done, total);
  else if (done > 0)
    cli_progress(p->cli, "%s%s%s: %s %u", p->subject, space, device, what, done);
  else
    cli_progress(p->cli, "%s%s%s: %s", p->subject, space, device, what);
}

/* ---- Measuring ---- */

static clv_status begin(profiling *p, clv_error *error) {
  const char *path = cli_text(p->cli, OPTION_OUTPUT, NULL);
  const double seconds = cli_real(p->cli, OPTION_SECONDS, 0);
  time_t now = time(NULL);
  struct tm day;
  if (seconds > 0 && seconds < 1e9) p->end_ns = clv__clock_ns() + (uint64_t)(1e9 * seconds);
  p->options = (clv__measure_options){.runs = (uint32_t)cli_number(p->cli, OPTION_RUNS, DEFAULT_RUNS),
                                      .day = p->day,
                                      .progress = progress,
                                      .user_data = p,
                                      .goes_on = cli_is_given(p->cli, OPTION_CONTINUE)};
  if (gmtime_r(&now, &day) == NULL || strftime(p->day, sizeof p->day, "%Y-%m-%d", &day) == 0) p->day[0] = '\0';
  if (path == NULL && p->options.goes_on)
    return cli_usage(p->cli, error, "option '--continue' needs -o FILE, the profile to go on with");
  if (path != NULL && strcmp(path, "-") == 0)
    return cli_usage(p->cli, error, "option '--output' needs a file name, not '-'; use /dev/stdout for standard output");
  if (path != NULL && access(path, F_OK) == 0) {
    clv_status status = clv__profile_read(path, p->cli->allocator, &p->profile, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "'%s' exists and cannot be extended: give another file", path);
  } else {
    CLV__TRY(clv__profile_create(p->cli->allocator, &p->profile, error));
  }
  CLV__TRY(cli_devices_open(p->cli, NULL, &p->devices, error));
  return clv__measure_host(p->profile, error);
}

static clv_status measure_graph(profiling *p, const clv_graph *graph, const clv__shapes *shapes, clv_error *error) {
  uint32_t measured;
  for (uint32_t d = 0; p->is_expecting && d < p->devices->count; ++d)
    CLV__TRY(clv__measure_expect(p->devices, d, graph, shapes, &p->options, p->profile, &p->expected, error));
  if (p->is_expecting) return CLV_OK;
  CLV__TRY(clv__measure_graph(p->devices, p->device, graph, shapes, &p->options, p->profile, &measured, error));
  p->measured[p->device] += measured;
  return CLV_OK;
}

static clv_status measure_model(profiling *p, const char *path, clv_error *error) {
  cli_invocation *cli = p->cli;
  cli_inputs inputs = {0};
  clv_graph *graph = NULL;
  clv__shapes *shapes = NULL;
  clv__shape_given *given = NULL;
  clv_size *sizes;
  uint32_t count;
  clv_status status;
  p->subject = path;
  cli_progress(cli, "loading %s", path);
  CLV__TRY_GOTO(cli_graph_load(cli, path, &graph, error));
  CLV__TRY_GOTO(cli_inputs_read(cli, graph, &inputs, error));
  bool quiet = cli->quiet;
  cli->quiet = quiet || p->has_told_sizes;
  status = cli_inputs_sizes(cli, graph, &inputs, true, &sizes, &count, error);
  cli->quiet = quiet;
  p->has_told_sizes = true;
  if (status != CLV_OK) goto cleanup;
  given = clv__allocate_zero(cli->allocator, (count + 1) * sizeof *given);
  if (given == NULL) {
    status = clv__error_memory(error, count * sizeof *given);
    goto cleanup;
  }
  for (uint32_t i = 0; i < count; ++i) {
    given[i] = (clv__shape_given){.name = sizes[i].name, .is_symbol = sizes[i].is_symbol, .rank = sizes[i].rank};
    memcpy(given[i].dims, sizes[i].dims, sizeof given[i].dims);
  }
  status = clv__shapes_infer(graph, given, count, SIZE_MAX, &shapes, error);
  if (status != CLV_OK) clv__error_prefix(error, status, "%s", path);
  if (status == CLV_OK) status = measure_graph(p, graph, shapes, error);
cleanup:
  clv__shapes_destroy(shapes);
  clv__release(cli->allocator, given);
  cli_inputs_finish(cli, &inputs);
  clv_graph_destroy(graph);
  return status;
}

static clv_status measure_common(profiling *p, clv_error *error) {
  p->subject = "common operators";
  for (uint32_t i = 0;; ++i) {
    clv_graph *graph;
    clv__shapes *shapes;
    CLV__TRY(clv__measure_common(clv__context_allocator(p->cli->context), i, &graph, error));
    if (graph == NULL) return CLV_OK;
    clv_status status = clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, error);
    if (status == CLV_OK) {
      status = measure_graph(p, graph, shapes, error);
      clv__shapes_destroy(shapes);
    }
    clv_graph_destroy(graph);
    CLV__TRY(status);
  }
}

static clv_status measure_models(profiling *p, clv_error *error) {
  const cli_options *options = p->cli->options;
  if (options->operand_count == 0) return measure_common(p, error);
  for (uint32_t i = 0; i < options->operand_count; ++i) CLV__TRY(measure_model(p, options->operands[i], error));
  return CLV_OK;
}

static void *measure_device(void *argument) {
  profiling *p = argument;
  p->subject = "";
  p->status = clv__measure_device(p->devices, p->device, &p->options, p->profile, p->error);
  return NULL;
}

static void *measure_nodes(void *argument) {
  profiling *p = argument;
  p->status = measure_models(p, p->error);
  return NULL;
}

/* Gives the current device its share of what is left of the budget. */
static void share_budget(profiling *p, uint32_t devices_left) {
  const uint64_t now_ns = clv__clock_ns();
  if (p->end_ns > 0) p->options.end_ns = p->end_ns <= now_ns ? now_ns : now_ns + (p->end_ns - now_ns) / devices_left;
}

/* Calls `measure` for each device on a thread of its own: the worker threads of its parallel loops end with that thread and do
 * not compete with the next device for cores. Host devices come first, because the drivers of other devices keep threads until
 * the devices are closed. */
static clv_status for_each_device(profiling *p, void *(*measure)(void *), clv_error *error) {
  uint32_t left = p->devices->count;
  p->error = error;
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (p->device = 0; p->device < p->devices->count; ++p->device) {
      pthread_t thread;
      if ((p->devices->items[p->device].space == CLV__SPACE_HOST) != (pass == 0)) continue;
      share_budget(p, left--);
      int code = pthread_create(&thread, NULL, measure, p);
      if (code != 0) return clv__error_set(error, CLV_OUT_OF_MEMORY, "pthread_create: %s", strerror(code));
      pthread_join(thread, NULL);
      if (p->status == CLV_CANCELLED && !clv__is_stopped(p->options.stop)) {
        p->is_short = true; /* the device's share of the budget is spent */
        clv__error_clear(error);
        p->status = CLV_OK;
      }
      CLV__TRY(p->status);
    }
  }
  return CLV_OK;
}

/* Reports how long measuring the nodes of the models will take, from the rates of the devices that were just measured. */
static clv_status tell_expected(profiling *p, clv_error *error) {
  char time[CLV__LABEL_BYTES], budget[64] = "";
  p->is_expecting = true;
  clv_status status = measure_models(p, error);
  p->is_expecting = false;
  CLV__TRY(status);
  if (p->end_ns > 0) snprintf(budget, sizeof budget, "; it ends after %g s (--seconds)", cli_real(p->cli, OPTION_SECONDS, 0));
  cli_note(p->cli, "measuring %u kinds of nodes and up to %u blocks of them takes about %s%s", p->expected.nodes,
           p->expected.blocks, clv__label_time((uint64_t)(1e9 * p->expected.seconds), time), budget);
  return CLV_OK;
}

static clv_status measure_all(profiling *p, clv_error *error) {
  CLV__TRY(for_each_device(p, measure_device, error));
  CLV__TRY(tell_expected(p, error));
  if (p->devices->count > 1) { /* closing ends the drivers' threads, which would compete for cores */
    clv_devices_close(p->devices);
    p->devices = NULL;
    CLV__TRY(cli_devices_open(p->cli, NULL, &p->devices, error));
  }
  return for_each_device(p, measure_nodes, error);
}

/* ---- Output ---- */

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the median relative difference between the predicted and the measured times of the blocks, or -1 if there are none. */
static double median_error(const profiling *p, const clv__profile_device *tables) {
  double *errors = clv__arena_allocate_zero(&p->cli->arena, (size_t)tables->block_count + 1, sizeof *errors);
  if (errors == NULL || tables->block_count == 0) return -1;
  for (uint32_t b = 0; b < tables->block_count; ++b) {
    double measured = (double)tables->blocks[b].total.time_ns;
    errors[b] = fabs(clv__profile_block_ns(tables, &tables->blocks[b]) - measured) / (measured > 0 ? measured : 1);
  }
  qsort(errors, tables->block_count, sizeof *errors, compare_reals);
  return errors[tables->block_count / 2];
}

static const clv__profile_device *tables_of(const profiling *p, uint32_t device) {
  return p->profile->devices[clv__profile_find_device(p->profile, p->devices->items[device].info.fingerprint)];
}

/* Prints a note if many repeated measurements differ widely, a sign that other programs disturbed them. */
static void note_disturbed(profiling *p) {
  uint32_t disturbed = 0, total = 0;
  for (uint32_t d = 0; d < p->devices->count; ++d) {
    const clv__profile_device *tables = tables_of(p, d);
    for (uint32_t b = 0; b < tables->block_count; ++b)
      disturbed += tables->blocks[b].total.spread_ns * SHAKY > tables->blocks[b].total.time_ns;
    total += tables->block_count;
  }
  if (disturbed * MOST_SHAKY <= total) return;
  cli_note(
      p->cli,
      "%u of %u measurements vary widely, perhaps because other programs are running: measure again when the machine is idle",
      disturbed, total);
}

/* Returns the measured rate, in bytes per second, of the largest copy of a kind, or 0 if none was measured. */
static double copy_rate(const clv__profile_device *tables, clv__copy_kind kind) {
  if (tables->copy_counts[kind] == 0) return 0;
  const clv__profile_copy *last = &tables->copies[kind][tables->copy_counts[kind] - 1];
  return last->time.time_ns > 0 ? (double)last->size_bytes / (double)last->time.time_ns * 1e9 : 0;
}

static clv_status print_json(profiling *p, clv_error *error) {
  json_t *root = json_object(), *list = json_array();
  for (uint32_t d = 0; d < p->devices->count; ++d) {
    const clv__profile_device *tables = tables_of(p, d);
    json_t *object = json_object();
    json_object_set_new(object, "name", cli_json_text(p->devices->items[d].name));
    json_object_set_new(object, "fingerprint", cli_json_text(tables->fingerprint));
    json_object_set_new(object, "launch_us", cli_json_real((double)tables->launch.time_ns / 1e3));
    json_object_set_new(object, "flops_per_second", cli_json_real(tables->flops_per_second));
    json_object_set_new(object, "bytes_per_second", cli_json_real(tables->bytes_per_second));
    json_object_set_new(object, "copy_in_bytes_per_second", cli_json_real(copy_rate(tables, CLV__COPY_IN)));
    json_object_set_new(object, "copy_out_bytes_per_second", cli_json_real(copy_rate(tables, CLV__COPY_OUT)));
    json_object_set_new(object, "nodes_measured", json_integer(p->measured[d]));
    json_object_set_new(object, "signatures", json_integer(tables->operator_count));
    json_object_set_new(object, "edges", json_integer(tables->saving_count));
    json_object_set_new(object, "blocks", json_integer(tables->block_count));
    json_object_set_new(object, "median_error", tables->block_count > 0 ? cli_json_real(median_error(p, tables)) : json_null());
    json_array_append_new(list, object);
  }
  json_object_set_new(root, "file", cli_json_text(cli_text(p->cli, OPTION_OUTPUT, NULL)));
  json_object_set_new(root, "runs", json_integer(p->options.runs));
  json_object_set_new(root, "expected_seconds", cli_json_real(p->expected.seconds));
  json_object_set_new(root, "partial", json_boolean(p->is_short));
  json_object_set_new(root, "devices", list);
  return cli_json_print(p->cli, root, error);
}

static clv_status print_text(profiling *p, clv_error *error) {
  static const char *const titles[] = {"device", "launch",     "FLOP/s", "B/s",  "to device B/s",
                                       "nodes",  "signatures", "blocks", "error"};
  cli_invocation *cli = p->cli;
  char number[CLV__LABEL_BYTES];
  clv__text text;
  clv__table table;
  clv__text_init(&text, cli->allocator);
  clv__table_init(&table, cli->allocator, "lrrrrrrrr", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t d = 0; d < p->devices->count; ++d) {
    const clv__profile_device *tables = tables_of(p, d);
    clv__table_cell(&table, "%s", p->devices->items[d].name);
    clv__table_cell(&table, "%s", clv__label_time(tables->launch.time_ns, number));
    clv__table_cell(&table, "%s", clv__label_count(tables->flops_per_second, number));
    clv__table_cell(&table, "%s", clv__label_count(tables->bytes_per_second, number));
    clv__table_cell(&table, "%s",
                    copy_rate(tables, CLV__COPY_IN) > 0 ? clv__label_count(copy_rate(tables, CLV__COPY_IN), number) : "-");
    clv__table_cell(&table, "%u", p->measured[d]);
    clv__table_cell(&table, "%u", tables->operator_count);
    clv__table_cell(&table, "%u", tables->block_count);
    clv__table_cell(&table, tables->block_count > 0 ? "%.1f %%" : "-", 100 * median_error(p, tables));
  }
  clv__table_write(&table, 0, cli->color_out, &text);
  clv__table_finish(&table);
  if (!cli->quiet) {
    clv__text_append(
        &text,
        "'nodes': nodes measured in this run. 'signatures': distinct operators with their shapes in the profile. 'blocks': "
        "measured groups of nodes.\n"
        "The column 'error' is the median difference between the predicted and the measured times of the blocks.\n");
    const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
    if (path != NULL) clv__text_append(&text, "Written to %s: use it with 'cleave plan MODEL --profile %s'.\n", path, path);
  }
  return cli_print(cli, &text, error);
}

/* Measures everything, and writes the profile. If the user interrupts, writes what was measured, marked as partial. */
static clv_status measure_and_write(profiling *p, clv_error *error) {
  const char *path = cli_text(p->cli, OPTION_OUTPUT, NULL);
  if (path == NULL) {
    cli_note(p->cli, "the profile is not saved: give -o FILE to write it");
    CLV__TRY(measure_all(p, error));
    if (p->is_short) cli_note(p->cli, "the budget was spent before everything was measured");
    return CLV_OK;
  }
  p->options.stop = cli_interrupt_keep();
  clv_status status = measure_all(p, error);
  p->profile->is_partial = status == CLV_CANCELLED || p->is_short;
  if (status == CLV_OK || status == CLV_CANCELLED) {
    clv_status written = clv__profile_update(p->profile, path, error);
    if (written != CLV_OK) status = written;
  }
  cli_interrupt_keep_end();
  if (status == CLV_OK && p->is_short) {
    cli_note(p->cli, "the budget was spent before everything was measured; the same command with --continue measures the rest");
  }
  if (status != CLV_CANCELLED) return status;
  p->cli->exit_status = cli_interrupt_status();
  return clv__error_set(error, status,
                        "interrupted: %s has what was measured; the same command with --continue measures the rest", path);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  profiling p = {.cli = cli, .subject = ""};
  clv_status status = begin(&p, error);
  if (status == CLV_OK) status = measure_and_write(&p, error);
  if (status == CLV_OK) note_disturbed(&p);
  if (status == CLV_OK) status = cli->json ? print_json(&p, error) : print_text(&p, error);
  clv__profile_destroy(p.profile);
  clv_devices_close(p.devices);
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
