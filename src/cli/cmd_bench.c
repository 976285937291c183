/* `cleave bench`: how long a model takes, as a whole and step by step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "execute/session.h"
#include "report/label.h"
#include "report/steps.h"
#include "report/table.h"
#include "report/trace.h"

enum { STEP_RUNS_LEAST = 3, STEP_RUNS_MOST = 20, SHOWN_STEPS = 30, TRACED_RUNS = 3 };

typedef struct bench {
  cli_invocation *cli;
  cli_job job;
  clv_session *session;
  clv_tensor *outputs;
  uint32_t output_count;
  uint32_t runs, warmup, step_runs;
  double load_ms, compile_ms, first_run_ms;
  double *latencies_ms; /* sorted after the runs */
  double *steps_ms;     /* median, by step of the plan */
  uint64_t peak_rss_bytes;
} bench;

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The nearest rank of sorted numbers: the least that `share` of them do not exceed. */
static double percentile(const double *sorted, uint32_t count, double share) {
  double rank = share * count;
  uint32_t index = (uint32_t)rank;
  if ((double)index == rank && index > 0) --index;
  return sorted[index < count ? index : count - 1];
}

static double median(const double *sorted, uint32_t count) {
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static double mean(const double *numbers, uint32_t count) {
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += numbers[i];
  return sum / count;
}

/* One run; outputs lie in the session's memory, as a program that reads them at once would have it. */
static clv_status run_once(bench *b, double *time_ms, clv_error *error) {
  memset(b->outputs, 0, b->output_count * sizeof *b->outputs);
  uint64_t start = cli_now_ns();
  CLV__TRY(clv_session_run(b->session, b->job.inputs.tensors, b->job.inputs.count, b->outputs, b->output_count, error));
  *time_ms = cli_ms(start, cli_now_ns());
  return CLV_OK;
}

static clv_status prepare(bench *b, clv_error *error) {
  cli_invocation *cli = b->cli;
  b->runs = (uint32_t)cli_number(cli, OPTION_RUNS, 50);
  b->warmup = (uint32_t)cli_number(cli, OPTION_WARMUP, 5);
  b->step_runs = b->runs < STEP_RUNS_LEAST ? STEP_RUNS_LEAST : b->runs > STEP_RUNS_MOST ? STEP_RUNS_MOST : b->runs;
  CLV__TRY(cli_job_load(cli, cli->options->operands[0], &b->job, error));
  CLV__TRY(cli_job_plan(cli, &b->job, true, error));
  clv_session_options options;
  cli_session_options(cli, &options);
  cli_progress(cli, "compiling %s", b->job.path);
  uint64_t start = cli_now_ns();
  CLV__TRY(clv_session_create(b->job.plan, &options, &b->session, error));
  b->compile_ms = cli_ms(start, cli_now_ns());
  b->load_ms = b->job.load_ms + b->job.plan_ms + b->compile_ms;
  CLV__TRY(cli_inputs_fill(cli, b->job.plan, cli_number(cli, OPTION_SEED, 0), &b->job.inputs, error));
  b->output_count = b->job.graph->output_count + b->job.plan->kept_count;
  b->outputs = clv__arena_allocate_zero(&cli->arena, b->output_count, sizeof *b->outputs);
  b->latencies_ms = clv__arena_allocate_zero(&cli->arena, b->runs, sizeof *b->latencies_ms);
  b->steps_ms = clv__arena_allocate_zero(&cli->arena, b->job.plan->step_count, sizeof *b->steps_ms);
  if (b->outputs == NULL || b->latencies_ms == NULL || b->steps_ms == NULL)
    return clv__error_memory(error, b->runs * sizeof(double));
  return CLV_OK;
}

/* The high-water mark of this program alone: getrusage() would say that of whoever started it where that was more. */
static uint64_t peak_rss_bytes(void) {
  FILE *file = fopen("/proc/self/status", "r");
  unsigned long long kibibytes = 0;
  char line[256];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmHWM: %llu", &kibibytes) == 1) break;
  }
  if (file != NULL) fclose(file);
  return kibibytes * 1024;
}

static clv_status measure_runs(bench *b, clv_error *error) {
  double ignored;
  cli_progress(b->cli, "%s: first run", b->job.path);
  CLV__TRY(run_once(b, &b->first_run_ms, error));
  for (uint32_t i = 0; i < b->warmup; ++i) CLV__TRY(run_once(b, &ignored, error));
  for (uint32_t i = 0; i < b->runs; ++i) {
    CLV__TRY(run_once(b, &b->latencies_ms[i], error));
    cli_progress(b->cli, "%s: run %u of %u", b->job.path, i + 1, b->runs);
  }
  qsort(b->latencies_ms, b->runs, sizeof *b->latencies_ms, compare_reals);
  b->peak_rss_bytes = peak_rss_bytes();
  return CLV_OK;
}

/* Runs of their own: waiting after each step would lengthen those above. */
static clv_status measure_steps(bench *b, clv_error *error) {
  uint32_t steps = b->job.plan->step_count;
  double *samples = clv__arena_allocate_zero(&b->cli->arena, (size_t)steps * b->step_runs, sizeof *samples), ignored;
  if (samples == NULL) return clv__error_memory(error, (size_t)steps * b->step_runs * sizeof *samples);
  clv__session_time_steps(b->session, true);
  for (uint32_t run = 0; run < b->step_runs; ++run) {
    CLV__TRY(run_once(b, &ignored, error));
    for (uint32_t s = 0; s < steps; ++s) {
      samples[(size_t)s * b->step_runs + run] = (double)clv__session_step_time_ns(b->session, s) / 1e6;
    }
  }
  clv__session_time_steps(b->session, false);
  for (uint32_t s = 0; s < steps; ++s) {
    double *of_step = samples + (size_t)s * b->step_runs;
    qsort(of_step, b->step_runs, sizeof *of_step, compare_reals);
    b->steps_ms[s] = median(of_step, b->step_runs);
  }
  return CLV_OK;
}

/* Runs of their own as well. */
static clv_status trace_runs(bench *b, clv_error *error) {
  const char *path = cli_text(b->cli, OPTION_TRACE, NULL);
  if (path == NULL) return CLV_OK;
  double ignored;
  size_t count;
  clv__session_trace(b->session, true);
  for (uint32_t i = 0; i < TRACED_RUNS; ++i) CLV__TRY(run_once(b, &ignored, error));
  clv__session_trace(b->session, false);
  const clv__trace_event *events = clv__session_trace_events(b->session, &count);
  return clv__report_trace(clv__session_plan(b->session), events, count, path, error);
}

/* ---- What is printed ---- */

static double predicted_ms(const clv_plan *plan, const clv__step *step) {
  return (double)(step->is_transfer ? plan->price.move_ns[step->index] : plan->price.partition_ns[step->index]) / 1e6;
}

static json_t *steps_json(const bench *b) {
  const clv_plan *plan = b->job.plan;
  json_t *list = json_array();
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    json_t *object = json_object();
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      json_object_set_new(object, "transfer", json_integer(step->index));
      json_object_set_new(object, "value", cli_json_text(b->job.graph->values[transfer->value].name));
      json_object_set_new(object, "from", cli_json_text(plan->devices->spaces[transfer->from]));
      json_object_set_new(object, "to", cli_json_text(plan->devices->spaces[transfer->to]));
      json_object_set_new(object, "bytes", transfer->size_known ? json_integer((json_int_t)transfer->size_bytes) : json_null());
    } else {
      const clv__partition *partition = &plan->partitions[step->index];
      json_object_set_new(object, "partition", json_integer(step->index));
      json_object_set_new(object, "device", cli_json_text(plan->devices->items[partition->device].name));
      json_object_set_new(object, "nodes", json_integer(partition->node_count));
    }
    json_object_set_new(object, "predicted_ms", cli_json_real(predicted_ms(plan, step)));
    json_object_set_new(object, "median_ms", cli_json_real(b->steps_ms[s]));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *memory_json(const bench *b) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  json_t *object = json_object();
  json_object_set_new(object, "boundary_bytes", json_integer((json_int_t)stats.boundary_bytes));
  json_object_set_new(object, "boundary_bound_bytes", json_integer((json_int_t)stats.boundary_bound_bytes));
  json_object_set_new(object, "weight_bytes", json_integer((json_int_t)stats.weight_bytes));
  json_object_set_new(object, "resident_bytes", json_integer((json_int_t)stats.resident_bytes));
  json_object_set_new(object, "scratch_bytes", json_integer((json_int_t)stats.scratch_bytes));
  return object;
}

static clv_status print_json(const bench *b, clv_error *error) {
  const clv_devices *devices = b->job.devices;
  json_t *root = json_object(), *latency = json_object(), *names = json_array(), *load = json_object();
  for (uint32_t d = 0; d < devices->count; ++d) json_array_append_new(names, cli_json_text(devices->items[d].name));
  json_object_set_new(latency, "median", cli_json_real(median(b->latencies_ms, b->runs)));
  json_object_set_new(latency, "p90", cli_json_real(percentile(b->latencies_ms, b->runs, 0.90)));
  json_object_set_new(latency, "p99", cli_json_real(percentile(b->latencies_ms, b->runs, 0.99)));
  json_object_set_new(latency, "min", cli_json_real(b->latencies_ms[0]));
  json_object_set_new(latency, "max", cli_json_real(b->latencies_ms[b->runs - 1]));
  json_object_set_new(latency, "mean", cli_json_real(mean(b->latencies_ms, b->runs)));
  json_object_set_new(load, "load", cli_json_real(b->job.load_ms));
  json_object_set_new(load, "plan", cli_json_real(b->job.plan_ms));
  json_object_set_new(load, "compile", cli_json_real(b->compile_ms));
  json_object_set_new(root, "model", cli_json_text(b->job.model_path));
  json_object_set_new(root, "devices", names);
  json_object_set_new(root, "strategy", cli_json_text(b->job.plan->placement.strategy));
  json_object_set_new(root, "runs", json_integer(b->runs));
  json_object_set_new(root, "warmup", json_integer(b->warmup));
  json_object_set_new(root, "latency_ms", latency);
  json_object_set_new(root, "predicted_ms", cli_json_real((double)b->job.plan->price.serial_ns / 1e6));
  json_object_set_new(root, "first_run_ms", cli_json_real(b->first_run_ms));
  json_object_set_new(root, "load_ms", cli_json_real(b->load_ms));
  json_object_set_new(root, "timings_ms", load);
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)b->peak_rss_bytes));
  json_object_set_new(root, "memory", memory_json(b));
  json_object_set_new(root, "steps", steps_json(b));
  return cli_json_print(b->cli, root, error);
}

static void write_step_rows(const bench *b, clv__table *table, clv__text *note) {
  const clv_plan *plan = b->job.plan;
  double total = 0, others = 0;
  uint32_t shown = 0, left = 0;
  for (uint32_t s = 0; s < plan->step_count; ++s) total += b->steps_ms[s];
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    if (shown >= SHOWN_STEPS && !b->cli->verbose) {
      others += b->steps_ms[s];
      ++left;
      continue;
    }
    ++shown;
    clv__text what;
    clv__text_init(&what, b->cli->allocator);
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      char size[CLV__LABEL_BYTES];
      clv__text_append(&what, "'");
      clv__label_short(&what, b->job.graph->values[transfer->value].name, 32);
      clv__text_append(&what, "' %s → %s, %s", clv__label_space(plan, transfer->from, transfer->boundary),
                       clv__label_space(plan, transfer->to, transfer->boundary),
                       transfer->size_known ? clv__label_size(transfer->size_bytes, size) : "size known when it runs");
      clv__table_cell(table, "transfer");
      clv__table_cell(table, "%s", plan->devices->items[transfer->device].name);
    } else {
      const clv__partition *partition = &plan->partitions[step->index];
      clv__label_operators(&what, b->job.graph, partition->nodes, partition->node_count, 3);
      clv__table_cell(table, "partition %u", step->index);
      clv__table_cell(table, "%s", plan->devices->items[partition->device].name);
    }
    clv__table_cell(table, "%.3f", predicted_ms(plan, step));
    clv__table_cell(table, "%.3f", b->steps_ms[s]);
    clv__table_cell(table, "%.1f %%", total > 0 ? 100 * b->steps_ms[s] / total : 0);
    clv__table_cell(table, "%s", what.data);
    clv__text_finish(&what);
  }
  if (left > 0) clv__text_append(note, "… and %u more steps, %.3f ms together (-v lists them)\n", left, others);
}

static clv_status print_text(const bench *b, clv_error *error) {
  cli_invocation *cli = b->cli;
  char number[CLV__LABEL_BYTES];
  clv__text text, note;
  clv__text_init(&text, cli->allocator);
  clv__text_init(&note, cli->allocator);
  clv__text_append(&text, "%smedian %.3f ms%s, p90 %.3f, p99 %.3f, fastest %.3f of %u runs\n", cli_begin(cli, CLI_BOLD),
                   median(b->latencies_ms, b->runs), cli_reset(cli), percentile(b->latencies_ms, b->runs, 0.90),
                   percentile(b->latencies_ms, b->runs, 0.99), b->latencies_ms[0], b->runs);
  const clv_plan *plan = b->job.plan;
  double predicted = (double)plan->price.serial_ns / 1e6, measured = median(b->latencies_ms, b->runs);
  clv__text_append(&text, "predicted %.3f ms (%+.0f %%), prices: ", predicted,
                   measured > 0 ? 100 * (predicted / measured - 1) : 0);
  clv__report_prices(plan, &text);
  clv__text_append(&text, "\n");
  clv__text_append(&text, "first run %.3f ms; load %.3f ms (read %.3f, plan %.3f, compile %.3f)\n", b->first_run_ms, b->load_ms,
                   b->job.load_ms, b->job.plan_ms, b->compile_ms);
  clv__text_append(&text, "peak memory of the process %s\n\n", clv__label_size(b->peak_rss_bytes, number));
  if (!cli->quiet) {
    clv__table table;
    clv__table_init(&table, cli->allocator, "llrrrl", true);
    static const char *const titles[] = {"step", "device", "predicted", "ms", "share", "what"};
    for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
    write_step_rows(b, &table, &note);
    clv__table_write(&table, 0, cli->color_out, &text);
    clv__table_finish(&table);
    clv__text_append_bytes(&text, note.data, note.size_bytes);
    clv__text_append(&text, "Steps are medians of %u runs of their own, with a wait after each step.\n", b->step_runs);
  }
  clv__text_finish(&note);
  return cli_print(cli, &text, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  bench b = {.cli = cli};
  clv_status status = prepare(&b, error);
  if (status == CLV_OK) status = measure_runs(&b, error);
  if (status == CLV_OK) status = measure_steps(&b, error);
  if (status == CLV_OK) status = trace_runs(&b, error);
  if (status == CLV_OK) status = cli->json ? print_json(&b, error) : print_text(&b, error);
  clv_session_destroy(b.session);
  cli_job_finish(cli, &b.job);
  return status;
}

const cli_command cli_command_bench = {
    .name = "bench",
    .operands = "MODEL|PLAN",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "how long a model takes, as a whole and by step",
    .description =
        "Loads, plans, compiles, runs once (the first run), warms up, and then measures --runs runs on inputs that were\n"
        "prepared once. load_ms is everything before the first run. Times of partitions and transfers come from runs of\n"
        "their own, because waiting after each step takes time itself.",
    .examples =
        "  cleave bench resnet50.onnx --runs 100\n"
        "  cleave bench plan.json --threads 2 --json\n",
    .execute = execute,
};
