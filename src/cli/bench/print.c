/* Prints the results of a single configuration as text. See bench.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/bench/bench.h"
#include "cli/bench/columns.h"
#include "cli/console.h"
#include "report/label.h"
#include "report/session.h"
#include "report/steps.h"
#include "report/table.h"

enum { SHOWN_STEPS = 30 };

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
  clv__session_report_text(b->session, CLV_REPORT_EXECUTABLES | CLV_REPORT_FALLBACKS | CLV_REPORT_CAPTURES, cli->color_out,
                           &text);
  clv__text_append(&text, "peak memory of the process %s\n", clv__label_size(b->peak_rss_bytes, number));
  if (clv__is_stopped(b->stop)) clv__text_append(&text, "interrupted after %zu runs\n", bench_runs(b));
  if (!cli->quiet && b->steps_ms != NULL) {
    clv__text_append(&text, "\n");
    clv__session_report_text(b->session, CLV_REPORT_MEMORY, cli->color_out, &text);
    clv__text_append(&text, "\n");
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
