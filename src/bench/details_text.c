/* Writes the results of a single configuration as text. See runner.h. */
#include <math.h>

#include "bench/columns.h"
#include "bench/runner.h"
#include "report/label.h"
#include "report/session.h"
#include "report/steps.h"
#include "report/table.h"

enum { SHOWN_STEPS = 30 };

const char *clv__launch_word(clv_launch_state state) {
  static const char *const words[] = {"none", "eager", "captured", "replayed"};
  return words[state];
}

bool clv__runner_launch(const clv__runner *b, uint32_t partition, clv_launch_info *info) {
  *info = (clv_launch_info){.struct_size = sizeof *info};
  if (clv__session_plan(b->session) != b->plan) return false;
  return clv_session_launch(b->session, partition, info) && info->state != CLV_LAUNCH_UNKNOWN;
}

static void append_launch(const clv__runner *b, uint32_t partition, clv__text *text) {
  clv_launch_info info;
  if (!clv__runner_launch(b, partition, &info)) return;
  clv__text_append(text, "%s", clv__launch_word(info.state));
  if (info.state == CLV_LAUNCH_EAGER) clv__text_append(text, ": %s", info.reason);
}

static void write_step_rows(const clv__runner *b, bool all, clv__table *table, clv__text *note) {
  const clv_plan *plan = clv__session_plan(b->session);
  double total = 0, others = 0;
  uint32_t shown = 0, left = 0;
  for (uint32_t s = 0; s < plan->step_count; ++s) total += b->steps_ms[s];
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    if (shown >= SHOWN_STEPS && !all) {
      others += b->steps_ms[s];
      ++left;
      continue;
    }
    ++shown;
    clv__text what, graph;
    clv__text_init(&what, b->arena.allocator);
    clv__text_init(&graph, b->arena.allocator);
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      char size[CLV__LABEL_BYTES];
      clv__text_append(&what, "'");
      clv__label_short(&what, b->graph->values[transfer->value].name, 32);
      clv__text_append(&what, "' %s → %s, %s", clv__label_space(plan, transfer->from, transfer->boundary),
                       clv__label_space(plan, transfer->to, transfer->boundary),
                       transfer->size_known ? clv__label_size(transfer->size_bytes, size) : "size known only at run time");
      clv__table_cell(table, "transfer");
      clv__table_cell(table, "%s", plan->devices->items[transfer->device].name);
    } else {
      const clv__partition *partition = &plan->partitions[step->index];
      clv__label_operators(&what, b->graph, partition->nodes, partition->node_count, 3);
      append_launch(b, step->index, &graph);
      clv__table_cell(table, "partition %u", step->index);
      clv__table_cell(table, "%s", plan->devices->items[partition->device].name);
    }
    clv__table_cell(table, "%.3f", clv__predicted_ms(plan, step));
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
static void write_times(const clv__runner *b, bool is_terminal, clv__text *text) {
  const clv_bench *bench = b->bench;
  const double *sorted = b->sorted_ms, deviation = clv__sample_deviation(sorted, clv__runner_runs(b));
  clv__text_append(text, "%smedian %.3f ms%s", is_terminal ? "\033[1m" : "", clv__sample_median(sorted, clv__runner_runs(b)),
                   is_terminal ? "\033[0m" : "");
  for (uint32_t c = 0; c < bench->column_count; ++c) {
    const clv__column *column = &bench->columns[c];
    if (column->percent >= 0 && column->shown == CLV__SHOWN_ALWAYS) {
      clv__text_append(text, ", %s %.3f", column->title, clv__sample_percentile(sorted, clv__runner_runs(b), column->percent));
    }
  }
  if (!isnan(deviation)) clv__text_append(text, ", stddev %.3f", deviation);
  clv__text_append(text, ", fastest %.3f of %zu runs\n", sorted[0], clv__runner_runs(b));
  const double rate = b->total_ms > 0 ? (double)clv__runner_runs(b) * 1e3 / b->total_ms : 0;
  if (b->in_flight > 1) clv__text_append(text, "%.1f runs per second, %u in flight\n", rate, b->in_flight);
  if (b->subject.batch > 0)
    clv__text_append(text, "%.1f inferences per second, batch %u\n", rate * b->subject.batch, b->subject.batch);
}

static void write_steps(const clv__runner *b, bool all, bool is_terminal, clv__text *text) {
  static const char *const titles[] = {"step", "device", "predicted ms", "measured ms", "share", "capture", "contents"};
  clv__table table;
  clv__text note;
  clv__text_init(&note, text->allocator);
  clv__table_init(&table, text->allocator, "llrrrll", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  write_step_rows(b, all, &table, &note);
  clv__table_write(&table, 0, is_terminal, text);
  clv__table_finish(&table);
  clv__text_append_bytes(text, note.data, note.size_bytes);
  clv__text_finish(&note);
  clv__text_append(text,
                   "Step times are medians of %u separate runs, with a wait after each step. 'capture': how the "
                   "launches of the partition were issued in the last measured run.\n",
                   b->step_runs);
}

void clv__runner_details_text(const clv__runner *b, clv_bench_level level, bool is_terminal, clv__text *text) {
  char number[CLV__LABEL_BYTES];
  const bool all = level == CLV_BENCH_ALL;
  const clv_plan *plan = clv__session_plan(b->session);
  double predicted = (double)plan->price.overlapped_ns / 1e6, measured = clv__sample_median(b->sorted_ms, clv__runner_runs(b));
  write_times(b, is_terminal, text);
  clv__text_append(text, "predicted %.3f ms (%+.0f %% relative to the measured median), prices from: ", predicted,
                   measured > 0 ? 100 * (predicted / measured - 1) : 0);
  clv__report_prices(plan, text);
  clv__text_append(text, "\n");
  clv__text_append(text, "first run %.3f ms; load %.3f ms (read %.3f, plan %.3f, compile %.3f)\n", b->first_run_ms, b->load_ms,
                   b->subject.load_ms, b->subject.plan_ms, b->subject.compile_ms);
  clv__session_report_text(b->session, CLV_REPORT_EXECUTABLES | CLV_REPORT_FALLBACKS | CLV_REPORT_CAPTURES, is_terminal, text);
  clv__text_append(text, "peak memory of the process %s\n", clv__label_size(b->peak_rss_bytes, number));
  if (b->bench->poll.is_stopped) clv__text_append(text, "interrupted after %zu runs\n", clv__runner_runs(b));
  if (level != CLV_BENCH_BRIEF && b->steps_ms != NULL) {
    clv__text_append(text, "\n");
    clv__session_report_text(b->session, CLV_REPORT_MEMORY, is_terminal, text);
    clv__text_append(text, "\n");
    write_steps(b, all, is_terminal, text);
  }
  if (!b->has_operators) return;
  clv__text_append(text, "\n");
  clv__efficiency_write(&b->efficiency, measured, all, is_terminal, text);
}
