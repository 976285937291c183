/* Prints the results of a single configuration as text. See bench.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/bench/bench.h"
#include "cli/bench/columns.h"
#include "cli/console.h"
#include "cli/incidents.h"
#include "report/label.h"
#include "report/steps.h"
#include "report/table.h"

enum { SHOWN_STEPS = 30 };

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
    clv__table_cell(table, "%.3f", bench_predicted_ms(plan, step));
    clv__table_cell(table, "%.3f", b->steps_ms[s]);
    clv__table_cell(table, "%.1f %%", total > 0 ? 100 * b->steps_ms[s] / total : 0);
    clv__table_cell(table, "%s", graph.data);
    clv__table_cell(table, "%s", what.data);
    clv__text_finish(&graph);
    clv__text_finish(&what);
  }
  if (left > 0) clv__text_append(note, "… and %u more steps, %.3f ms in total (-v lists them)\n", left, others);
}

/* Writes a line such as "median 3.210 ms, p90 3.400, p99 3.800, stddev 0.120, fastest 3.100 of 50 runs", and the throughput if
 * several requests or a batch were asked for. */
static void write_times(const bench *b, const bench_report *report, clv__text *text) {
  cli_invocation *cli = b->cli;
  const double *sorted = b->sorted_ms, deviation = bench_deviation(sorted, bench_runs(b));
  clv__text_append(text, "%smedian %.3f ms%s", cli_begin(cli, CLI_BOLD), bench_median(sorted, bench_runs(b)), cli_reset(cli));
  for (uint32_t c = 0; c < report->column_count; ++c) {
    const bench_column *column = &report->columns[c];
    if (column->percent >= 0 && column->is_shown)
      clv__text_append(text, ", %s %.3f", column->title, report->rows[0].fields[c].number);
  }
  if (!isnan(deviation)) clv__text_append(text, ", stddev %.3f", deviation);
  clv__text_append(text, ", fastest %.3f of %zu runs\n", sorted[0], bench_runs(b));
  const double rate = b->total_ms > 0 ? (double)bench_runs(b) * 1e3 / b->total_ms : 0;
  if (b->in_flight > 1) clv__text_append(text, "%.1f runs per second, %u in flight\n", rate, b->in_flight);
  if (b->setting.batch != NULL)
    clv__text_append(text, "%.1f inferences per second, batch %s\n", rate * strtod(b->setting.batch, NULL), b->setting.batch);
}

clv_status bench_print_text(const bench *b, const bench_report *report, clv_error *error) {
  cli_invocation *cli = b->cli;
  char number[CLV__LABEL_BYTES];
  clv__text text, note;
  clv__text_init(&text, cli->allocator);
  clv__text_init(&note, cli->allocator);
  write_times(b, report, &text);
  const clv_plan *plan = clv__session_plan(b->session);
  double predicted = (double)plan->price.overlapped_ns / 1e6, measured = bench_median(b->sorted_ms, bench_runs(b));
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
  if (clv__is_stopped(b->stop)) clv__text_append(&text, "interrupted after %zu runs\n", bench_runs(b));
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
