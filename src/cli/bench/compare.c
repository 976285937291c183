/* `cleave bench --compare-with`: measures configurations by turns, so that other work of the machine affects all of them alike,
 * and compares their outputs. See bench.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor/compare.h"
#include "cli/bench/bench.h"
#include "cli/bench/columns.h"
#include "cli/interrupt.h"

enum { ROUNDS = 10 };

/* One of the configurations that take turns. */
typedef struct turn {
  bench b;
  clv_error failure; /* why the configuration does not run; status CLV_OK: it runs */
  double medians_ms[ROUNDS];
  bench_comparison comparison;
  bool is_compared;
} turn;

static bool runs(const turn *t) {
  return t->failure.status == CLV_OK;
}

/* Keeps the error of one configuration, for its row. Such an error does not end the command, and does not change its exit
 * status: `exit_status` is the value from before the error. */
static void keep_failure(cli_invocation *cli, turn *t, clv_status status, int exit_status) {
  cli->exit_status = exit_status;
  t->failure.status = status;
}

/* ---- Outputs ---- */

static clv_tensor *last_outputs(bench *b) {
  return b->rooms != NULL ? b->rooms : b->outputs;
}

/* Compares the outputs of the last runs. Sets the text and the verdict of the comparison. */
static clv_status compare_outputs(turn *base, turn *t, clv_error *error) {
  const bench *b = &base->b;
  const clv_tensor *expected = last_outputs(&base->b), *actual = last_outputs(&t->b);
  const bool is_bf16 = strcmp(cli_text(b->cli, OPTION_PRECISION, ""), "bf16") == 0;
  char text[400] = "agree";
  t->is_compared = t->comparison.agrees = true;
  for (uint32_t i = 0; i < b->job.graph->output_count && t->comparison.agrees; ++i) {
    const char *name = b->job.graph->values[b->job.graph->outputs[i]].name;
    clv__difference worst;
    clv__tolerance tolerance = {.share =
                                    clv__dtype_tolerance(is_bf16 && expected[i].dtype == CLV_F32 ? CLV_BF16 : expected[i].dtype)};
    if (!clv__tensor_same_type(&expected[i], &actual[i])) {
      t->comparison.agrees = false;
      snprintf(text, sizeof text, "differ: '%.100s' has another type or shape", name);
    } else if (!clv__tensor_agrees_within(&expected[i], &actual[i], &tolerance, &worst)) {
      t->comparison.agrees = false;
      snprintf(text, sizeof text, "differ: '%.100s' element %zu is %.6g, but %.6g on %.60s (tolerance %.3g)", name, worst.element,
               worst.actual, worst.expected, b->setting.devices != NULL ? b->setting.devices : "cpu", worst.tolerance);
    }
  }
  t->comparison.text = clv__arena_string(&b->cli->arena, text, strlen(text));
  return t->comparison.text == NULL ? clv__error_memory(error, strlen(text)) : CLV_OK;
}

/* ---- Rounds ---- */

/* Makes one burst. The run before it is not measured, because it loads the configuration's weights into caches and wakes its
 * threads. */
static clv_status take_turn(turn *t, const bench_extent *extent, double *median_ms, clv_error *error) {
  bench *b = &t->b;
  const size_t before = bench_runs(b);
  double ignored;
  CLV__TRY(bench_run_once(b, &ignored, error));
  CLV__TRY(bench_burst(b, extent, error));
  const size_t count = bench_runs(b) - before;
  double *times = clv__allocate(b->cli->allocator, (count + 1) * sizeof *times);
  if (times == NULL) return clv__error_memory(error, count * sizeof *times);
  if (count > 0) {
    memcpy(times, b->samples.items + before, count * sizeof *times);
    bench_sort(times, count);
    *median_ms = bench_median(times, count);
  }
  clv__release(b->cli->allocator, times);
  return CLV_OK;
}

/* Returns the number of complete rounds. */
static uint32_t play_rounds(turn *turns, uint32_t count) {
  const turn *any = NULL;
  uint32_t done = 0;
  for (uint32_t i = 0; i < count; ++i) any = runs(&turns[i]) ? &turns[i] : any;
  if (any == NULL) return 0;
  const bench_extent all = any->b.extent;
  const uint32_t rounds = all.runs > 0 && all.runs < ROUNDS ? all.runs : ROUNDS;
  for (uint32_t r = 0; r < rounds; ++r, ++done) {
    const uint64_t first = (uint64_t)all.runs * r / rounds, end = (uint64_t)all.runs * (r + 1) / rounds;
    const bench_extent extent = {(uint32_t)(end - first), all.duration_ns / rounds};
    for (uint32_t i = 0; i < count; ++i) {
      turn *t = &turns[i];
      if (!runs(t)) continue;
      clv_status status = take_turn(t, &extent, &t->medians_ms[r], &t->failure);
      t->failure.status = status;
      if (clv__is_stopped(t->b.stop)) return done;
    }
  }
  return done;
}

static void set_ratio(const turn *base, turn *t, uint32_t rounds) {
  double ratios[ROUNDS];
  if (rounds == 0) {
    t->comparison.ratio = t->comparison.low = t->comparison.high = bench_deviation(NULL, 0); /* unknown */
    return;
  }
  for (uint32_t r = 0; r < rounds; ++r) ratios[r] = t->medians_ms[r] / base->medians_ms[r];
  bench_sort(ratios, rounds);
  t->comparison.ratio = bench_median(ratios, rounds);
  t->comparison.low = bench_percentile(ratios, rounds, 25);
  t->comparison.high = bench_percentile(ratios, rounds, 75);
}

/* ---- All of it ---- */

static void prepare_all(cli_invocation *cli, const bench_setting *settings, const char *const *labels, turn *turns,
                        uint32_t count) {
  const int exit_status = cli->exit_status;
  for (uint32_t i = 0; i < count; ++i) {
    bench_setting setting = settings[i];
    /* A plan file is only for the devices that it names, so peers get the model of the plan. */
    if (setting.is_peer && turns[0].b.job.from_plan_file) setting.model = turns[0].b.job.model_path;
    clv_status status = bench_prepare(cli, &setting, labels[i], &turns[i].b, &turns[i].failure);
    if (status != CLV_OK) keep_failure(cli, &turns[i], status, exit_status);
    if (cli_is_interrupted()) return;
  }
}

static clv_status conclude(turn *turns, uint32_t count, uint32_t rounds, const bench_setting *settings, bench_report *report,
                           clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    turn *t = &turns[i];
    if (t->b.cli == NULL) continue; /* interrupted before it was prepared */
    if (runs(t) && bench_runs(&t->b) == 0) continue;
    if (runs(t)) CLV__TRY(bench_conclude(&t->b, error));
    if (t->is_compared) set_ratio(&turns[0], t, runs(&turns[0]) ? rounds : 0);
    const bench_result result = {report->cli, &settings[i], runs(t) ? &t->b : NULL,
                                 t->is_compared && runs(t) ? &t->comparison : NULL, runs(t) ? NULL : &t->failure};
    CLV__TRY(bench_report_add(report, &result, error));
    report->differs = report->differs || (t->is_compared && !t->comparison.agrees);
  }
  return CLV_OK;
}

clv_status bench_compare(cli_invocation *cli, const bench_setting *settings, const char *const *labels, uint32_t count,
                         bench_report *report, clv_error *error) {
  turn *turns = clv__arena_allocate_zero(&cli->arena, count, sizeof *turns);
  if (turns == NULL) return clv__error_memory(error, count * sizeof *turns);
  clv_status status = CLV_OK;
  prepare_all(cli, settings, labels, turns, count);
  for (uint32_t i = 1; i < count && status == CLV_OK && runs(&turns[0]); ++i) {
    if (turns[i].b.session != NULL && runs(&turns[i])) status = compare_outputs(&turns[0], &turns[i], error);
  }
  uint32_t rounds = status == CLV_OK && !cli_is_interrupted() ? play_rounds(turns, count) : 0;
  if (status == CLV_OK) status = conclude(turns, count, rounds, settings, report, error);
  for (uint32_t i = 0; i < count; ++i) bench_finish(&turns[i].b);
  return status;
}
