/* Prints the results of `cleave bench`. See bench.h. */
#include "cli/bench/bench.h"
#include "cli/console.h"
#include "cli/incidents.h"
#include "cli/json.h"
#include "report/label.h"
#include "report/steps.h"
#include "report/table.h"

enum { SHOWN_STEPS = 30 };

/* Returns the nearest-rank percentile of sorted numbers: the smallest one such that at least `share` of all numbers are no
 * larger. */
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

static double predicted_ms(const clv_plan *plan, const clv__step *step) {
  return (double)(step->is_transfer ? plan->price.copy_ns[step->index] : plan->price.partition_ns[step->index]) / 1e6;
}

static double runs_per_second(const bench *b) {
  return b->total_ms > 0 ? b->runs * 1e3 / b->total_ms : 0;
}

static json_t *steps_json(const bench *b) {
  const clv_plan *plan = clv__session_plan(b->session);
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
      json_object_set_new(object, "graph", bench_issue_json(b, step->index));
    }
    json_object_set_new(object, "predicted_ms", cli_json_real(predicted_ms(plan, step)));
    json_object_set_new(object, "median_ms", b->steps_ms == NULL ? json_null() : cli_json_real(b->steps_ms[s]));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *memory_json(const bench *b) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  json_t *object = json_object(), *spaces = json_array();
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    const clv__space_stats *of = &stats.spaces[s];
    json_t *space = json_object();
    json_object_set_new(space, "name", cli_json_text(of->name));
    json_object_set_new(space, "planned_bytes", json_integer((json_int_t)of->planned_bytes));
    json_object_set_new(space, "lower_bound_bytes", json_integer((json_int_t)of->bound_bytes));
    json_object_set_new(space, "scratch_bytes", json_integer((json_int_t)of->scratch_bytes));
    json_object_set_new(space, "peak_bytes", json_integer((json_int_t)of->peak_bytes));
    json_object_set_new(space, "need_bytes", of->limit_bytes == 0 ? json_null() : json_integer((json_int_t)of->need_bytes));
    json_object_set_new(space, "limit_bytes", of->limit_bytes == 0 ? json_null() : json_integer((json_int_t)of->limit_bytes));
    json_array_append_new(spaces, space);
  }
  json_object_set_new(object, "spaces", spaces);
  json_object_set_new(object, "weight_bytes", json_integer((json_int_t)stats.weight_bytes));
  json_object_set_new(object, "resident_bytes", json_integer((json_int_t)stats.resident_bytes));
  return object;
}

/* Returns where the executables came from (memory, disk, compiling), per partition and in total. */
static json_t *executables_json(const bench *b) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  json_t *object = json_object(), *list = json_array();
  json_object_set_new(object, "from_memory", json_integer(stats.executables.from_memory));
  json_object_set_new(object, "from_folder", json_integer(stats.executables.from_folder));
  json_object_set_new(object, "from_disk", json_integer(stats.executables.from_disk));
  json_object_set_new(object, "compiled", json_integer(stats.executables.compiled));
  json_object_set_new(object, "not_kept", json_integer(stats.executables.not_kept));
  json_object_set_new(object, "ms", cli_json_real(stats.executables.executables_ms));
  json_object_set_new(object, "weights_ms", cli_json_real(stats.executables.weights_ms));
  for (uint32_t p = 0; p < clv__session_plan(b->session)->partition_count; ++p) {
    const clv__origin *origin = clv__session_origin(b->session, p);
    json_t *one = json_object();
    json_object_set_new(one, "source", json_string(clv__source_word(origin->source)));
    json_object_set_new(one, "reason", cli_json_text(origin->reason));
    json_object_set_new(one, "ms", cli_json_real(origin->ms));
    json_array_append_new(list, one);
  }
  json_object_set_new(object, "partitions", list);
  return object;
}

/* Writes a line such as "executables: 2 from disk, 1 compiled (…)", with the first reason for compiling in parentheses. */
static void write_executables(const bench *b, clv__text *text) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  const clv__executables_counters *counters = &stats.executables;
  const struct {
    uint32_t count;
    const char *what;
  } parts[] = {{counters->from_memory, "from memory"},
               {counters->from_folder, "from the compiled directory"},
               {counters->from_disk, "from disk"},
               {counters->compiled, "compiled"},
               {counters->not_kept, "compiled but not cached"}};
  clv__text_append(text, "executables:");
  const char *separator = " ";
  for (uint32_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (parts[i].count == 0) continue;
    clv__text_append(text, "%s%u %s", separator, parts[i].count, parts[i].what);
    separator = ", ";
  }
  for (uint32_t p = 0; p < clv__session_plan(b->session)->partition_count; ++p) {
    const clv__origin *origin = clv__session_origin(b->session, p);
    if (origin->source != CLV__SOURCE_COMPILED || origin->reason[0] == '\0') continue;
    clv__text_append(text, " (%s)", origin->reason);
    break;
  }
  clv__text_append(text, "\n");
}

/* Writes one row per memory space. */
static void write_memory(const bench *b, clv__text *text) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  clv__table table;
  char number[CLV__LABEL_BYTES];
  clv__table_init(&table, b->cli->allocator, "lrrrrrr", true);
  static const char *const titles[] = {"memory space", "between partitions", "lower bound", "scratch",
                                       "peak",         "plan's need",        "limit"};
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    const clv__space_stats *of = &stats.spaces[s];
    clv__table_cell(&table, "%s", of->name);
    const uint64_t sizes[] = {of->planned_bytes, of->bound_bytes, of->scratch_bytes, of->peak_bytes};
    for (uint32_t i = 0; i < 4; ++i) clv__table_cell(&table, "%s", clv__label_size(sizes[i], number));
    clv__table_cell(&table, "%s", of->limit_bytes == 0 ? "–" : clv__label_size(of->need_bytes, number));
    clv__table_cell(&table, "%s", of->limit_bytes == 0 ? "none" : clv__label_size(of->limit_bytes, number));
  }
  clv__table_write(&table, 0, b->cli->color_out, text);
  clv__table_finish(&table);
  clv__text_append(
      text,
      "'between partitions': memory for values that partitions pass to each other, inputs and outputs. 'lower bound': the "
      "most of it needed at one time, if steps run one after the other. 'scratch': memory in which partitions compute. "
      "'plan's need': what the plan states for all of it, with the weights.\n");
  clv__text_append(text, "Weights on devices: %s; ", clv__label_size(stats.weight_bytes, number));
  clv__text_append(text, "other memory of executables on devices: %s.\n\n", clv__label_size(stats.resident_bytes, number));
}

clv_status bench_print_json(const bench *b, clv_error *error) {
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
  json_object_set_new(root, "interrupted", json_boolean(clv__is_stopped(b->stop)));
  json_object_set_new(root, "warmup", json_integer(b->warmup));
  json_object_set_new(root, "latency_ms", latency);
  json_object_set_new(root, "in_flight", json_integer(b->in_flight));
  json_object_set_new(root, "runs_per_second", cli_json_real(runs_per_second(b)));
  json_object_set_new(root, "predicted_ms", cli_json_real((double)clv__session_plan(b->session)->price.overlapped_ns / 1e6));
  json_object_set_new(root, "first_run_ms", cli_json_real(b->first_run_ms));
  json_object_set_new(root, "load_ms", cli_json_real(b->load_ms));
  json_object_set_new(root, "timings_ms", load);
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)b->peak_rss_bytes));
  json_object_set_new(root, "memory", memory_json(b));
  json_object_set_new(root, "executables", executables_json(b));
  json_object_set_new(root, "fallbacks", cli_incidents_json(b->session));
  json_object_set_new(root, "graphs", bench_captures_json(b));
  json_object_set_new(root, "steps", steps_json(b));
  json_object_set_new(root, "operators", bench_operators_json(b, median(b->latencies_ms, b->runs)));
  return cli_json_print(b->cli, root, error);
}

static void write_step_rows(const bench *b, clv__table *table, clv__text *note) {
  const clv_plan *plan = clv__session_plan(b->session);
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
    clv__text what, graph;
    clv__text_init(&what, b->cli->allocator);
    clv__text_init(&graph, b->cli->allocator);
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      char size[CLV__LABEL_BYTES];
      clv__text_append(&what, "'");
      clv__label_short(&what, b->job.graph->values[transfer->value].name, 32);
      clv__text_append(&what, "' %s → %s, %s", clv__label_space(plan, transfer->from, transfer->boundary),
                       clv__label_space(plan, transfer->to, transfer->boundary),
                       transfer->size_known ? clv__label_size(transfer->size_bytes, size) : "size known only at run time");
      clv__table_cell(table, "transfer");
      clv__table_cell(table, "%s", plan->devices->items[transfer->device].name);
    } else {
      const clv__partition *partition = &plan->partitions[step->index];
      clv__label_operators(&what, b->job.graph, partition->nodes, partition->node_count, 3);
      bench_issue_text(b, step->index, &graph);
      clv__table_cell(table, "partition %u", step->index);
      clv__table_cell(table, "%s", plan->devices->items[partition->device].name);
    }
    clv__table_cell(table, "%.3f", predicted_ms(plan, step));
    clv__table_cell(table, "%.3f", b->steps_ms[s]);
    clv__table_cell(table, "%.1f %%", total > 0 ? 100 * b->steps_ms[s] / total : 0);
    clv__table_cell(table, "%s", graph.data);
    clv__table_cell(table, "%s", what.data);
    clv__text_finish(&graph);
    clv__text_finish(&what);
  }
  if (left > 0) clv__text_append(note, "… and %u more steps, %.3f ms in total (-v lists them)\n", left, others);
}

clv_status bench_print_text(const bench *b, clv_error *error) {
  cli_invocation *cli = b->cli;
  char number[CLV__LABEL_BYTES];
  clv__text text, note;
  clv__text_init(&text, cli->allocator);
  clv__text_init(&note, cli->allocator);
  clv__text_append(&text, "%smedian %.3f ms%s, p90 %.3f, p99 %.3f, fastest %.3f of %u runs\n", cli_begin(cli, CLI_BOLD),
                   median(b->latencies_ms, b->runs), cli_reset(cli), percentile(b->latencies_ms, b->runs, 0.90),
                   percentile(b->latencies_ms, b->runs, 0.99), b->latencies_ms[0], b->runs);
  if (b->in_flight > 1) clv__text_append(&text, "%.1f runs per second, %u in flight\n", runs_per_second(b), b->in_flight);
  const clv_plan *plan = clv__session_plan(b->session);
  double predicted = (double)plan->price.overlapped_ns / 1e6, measured = median(b->latencies_ms, b->runs);
  clv__text_append(&text, "predicted %.3f ms (%+.0f %% relative to the measured median), prices from: ", predicted,
                   measured > 0 ? 100 * (predicted / measured - 1) : 0);
  clv__report_prices(plan, &text);
  clv__text_append(&text, "\n");
  clv__text_append(&text, "first run %.3f ms; load %.3f ms (read %.3f, plan %.3f, compile %.3f)\n", b->first_run_ms, b->load_ms,
                   b->job.load_ms, b->job.plan_ms, b->compile_ms);
  write_executables(b, &text);
  cli_incidents_write(cli, b->session, &text);
  bench_write_captures(b, &text);
  clv__text_append(&text, "peak memory of the process %s\n", clv__label_size(b->peak_rss_bytes, number));
  if (clv__is_stopped(b->stop)) clv__text_append(&text, "interrupted after %u runs\n", b->runs);
  if (!cli->quiet && b->steps_ms != NULL) {
    clv__text_append(&text, "\n");
    write_memory(b, &text);
    clv__table table;
    clv__table_init(&table, cli->allocator, "llrrrll", true);
    static const char *const titles[] = {"step", "device", "predicted ms", "measured ms", "share", "capture", "contents"};
    for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
    write_step_rows(b, &table, &note);
    clv__table_write(&table, 0, cli->color_out, &text);
    clv__table_finish(&table);
    clv__text_append_bytes(&text, note.data, note.size_bytes);
    clv__text_append(&text,
                     "Step times are medians of %u separate runs, with a wait after each step. 'capture': how the "
                     "launches of the partition were issued in the last measured run.\n",
                     b->step_runs);
  }
  if (bench_wants_operators(b) && !clv__is_stopped(b->stop)) {
    clv__text_append(&text, "\n");
    clv__efficiency_write(&b->efficiency, measured, cli->verbose, cli->color_out, &text);
  }
  clv__text_finish(&note);
  return cli_print(cli, &text, error);
}
