/* Measures configurations by turns, so that other work of the machine affects all of them alike,
 * and compares their outputs. See runner.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor/compare.h"
#include "bench/columns.h"
#include "bench/runner.h"

enum { ROUNDS = 10 };

/* One of the configurations that take turns. */
typedef struct turn {
  clv__runner b;
  clv_bench_subject subject;
  bool is_begun;     /* false: the bench was stopped before */
  clv_error failure; /* why the configuration does not run; status CLV_OK: it runs */
  double medians_ms[ROUNDS];
  clv__comparison_of_runs comparison;
  bool is_compared;
} turn;

static bool runs(const turn *t) {
  return t->failure.status == CLV_OK;
}

/* ---- Outputs ---- */

static clv_tensor *last_outputs(clv__runner *b) {
  return b->rooms != NULL ? b->rooms : b->outputs;
}

/* Compares one output. If it differs, writes `text`. */
static bool agrees(const turn *base, uint32_t output, const clv_tensor *expected, const clv_tensor *actual, char text[400]) {
  const clv__runner *b = &base->b;
  const char *name = b->graph->values[b->graph->outputs[output]].name;
  const bool is_coarse = clv__session_options(b->session)->precision == CLV_BF16 && expected->dtype == CLV_F32;
  const clv__tolerance tolerance = {.share = clv__dtype_tolerance(is_coarse ? CLV_BF16 : expected->dtype)};
  clv__difference worst;
  if (!clv__tensor_same_type(expected, actual)) {
    snprintf(text, 400, "differ: '%.100s' has another type or shape", name);
    return false;
  }
  if (clv__tensor_agrees_within(expected, actual, &tolerance, &worst)) return true;
  snprintf(text, 400, "differ: '%.100s' element %zu is %.6g, but %.6g on %.60s (tolerance %.3g)", name, worst.element,
           worst.actual, worst.expected, base->subject.devices, worst.tolerance);
  return false;
}

/* Compares the outputs of the last runs. Sets the text and the verdict of the comparison. */
static clv_status compare_outputs(turn *base, turn *t, clv_error *error) {
  const uint32_t count = base->b.graph->output_count, other = t->b.graph->output_count;
  const clv_tensor *expected = last_outputs(&base->b), *actual = last_outputs(&t->b);
  char text[400] = "agree";
  t->is_compared = true;
  t->comparison.agrees = count == other;
  if (count != other) snprintf(text, sizeof text, "differ: %u output%s, not %u", other, other == 1 ? "" : "s", count);
  for (uint32_t i = 0; i < count && t->comparison.agrees; ++i)
    t->comparison.agrees = agrees(base, i, &expected[i], &actual[i], text);
  t->comparison.text = clv__arena_string(&base->b.bench->arena, text, strlen(text));
  return t->comparison.text == NULL ? clv__error_memory(error, strlen(text)) : CLV_OK;
}

/* ---- Rounds ---- */

/* Makes one burst. The run before it is not measured, because it loads the configuration's weights into caches and wakes its
 * threads. */
static clv_status take_turn(turn *t, const clv__bench_extent *extent, double *median_ms, clv_error *error) {
  clv__runner *b = &t->b;
  const size_t before = clv__runner_runs(b);
  double ignored;
  CLV__TRY(clv__runner_run(b, &ignored, error));
  CLV__TRY(clv__runner_burst(b, extent, error));
  const size_t count = clv__runner_runs(b) - before;
  double *times = clv__allocate(b->arena.allocator, (count + 1) * sizeof *times);
  if (times == NULL) return clv__error_memory(error, count * sizeof *times);
  if (count > 0) {
    memcpy(times, b->samples.items + before, count * sizeof *times);
    clv__sample_sort(times, count);
    *median_ms = clv__sample_median(times, count);
  }
  clv__release(b->arena.allocator, times);
  return CLV_OK;
}

/* Returns the number of complete rounds. */
static uint32_t play_rounds(turn *turns, uint32_t count) {
  const turn *any = NULL;
  uint32_t done = 0;
  for (uint32_t i = 0; i < count; ++i) any = runs(&turns[i]) ? &turns[i] : any;
  if (any == NULL) return 0;
  const clv__bench_extent all = any->b.bench->extent;
  const uint32_t rounds = all.runs > 0 && all.runs < ROUNDS ? all.runs : ROUNDS;
  for (uint32_t r = 0; r < rounds; ++r, ++done) {
    const uint64_t first = (uint64_t)all.runs * r / rounds, end = (uint64_t)all.runs * (r + 1) / rounds;
    const clv__bench_extent extent = {(uint32_t)(end - first), all.duration_ns / rounds};
    for (uint32_t i = 0; i < count; ++i) {
      turn *t = &turns[i];
      if (!runs(t)) continue;
      clv_status status = take_turn(t, &extent, &t->medians_ms[r], &t->failure);
      t->failure.status = status;
      if (clv__poll_stops(&t->b.bench->poll)) return done;
    }
  }
  return done;
}

static void set_ratio(const turn *base, turn *t, uint32_t rounds) {
  double ratios[ROUNDS];
  if (rounds == 0) {
    t->comparison.ratio = t->comparison.low = t->comparison.high = clv__sample_deviation(NULL, 0); /* unknown */
    return;
  }
  for (uint32_t r = 0; r < rounds; ++r) ratios[r] = t->medians_ms[r] / base->medians_ms[r];
  clv__sample_sort(ratios, rounds);
  t->comparison.ratio = clv__sample_median(ratios, rounds);
  t->comparison.low = clv__sample_percentile(ratios, rounds, 25);
  t->comparison.high = clv__sample_percentile(ratios, rounds, 75);
}

/* ---- All of it ---- */

static void prepare_all(clv_bench *bench, turn *turns, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    turn *t = &turns[i];
    t->is_begun = true;
    if (t->subject.session == NULL)
      clv__error_set(&t->failure, CLV_NOT_SUPPORTED, "%s", t->subject.failure);
    else
      t->failure.status = clv__runner_begin(bench, &t->subject, &t->b, &t->failure);
    if (clv__poll_stops(&bench->poll)) return;
  }
}

static clv_status conclude(clv_bench *bench, turn *turns, uint32_t count, uint32_t rounds, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    turn *t = &turns[i];
    if (!t->is_begun || (runs(t) && clv__runner_runs(&t->b) == 0)) continue;
    if (runs(t)) CLV__TRY(clv__runner_conclude(&t->b, error));
    if (t->is_compared) set_ratio(&turns[0], t, runs(&turns[0]) ? rounds : 0);
    const clv__result result = {bench, &t->subject, runs(t) ? &t->b : NULL, t->is_compared && runs(t) ? &t->comparison : NULL,
                                runs(t) ? NULL : t->failure.message};
    CLV__TRY(clv__bench_add_row(bench, &result, error));
  }
  return CLV_OK;
}

/* Notes that other configurations are compared with these devices. */
static void note_base(clv_bench *bench, const char *devices) {
  if (bench->compare_count == 0)
    bench->base = devices;
  else if (bench->base != NULL && strcmp(bench->base, devices) != 0)
    bench->base = NULL;
  ++bench->compare_count;
}

static clv_status take_turns(clv_bench *bench, turn *turns, uint32_t count, clv_error *error) {
  clv_status status = CLV_OK;
  if (count > 1) {
    bench->is_compared = true;
    note_base(bench, turns[0].subject.devices);
  }
  prepare_all(bench, turns, count);
  for (uint32_t i = 1; i < count && status == CLV_OK && runs(&turns[0]); ++i) {
    if (turns[i].is_begun && runs(&turns[i])) status = compare_outputs(&turns[0], &turns[i], error);
  }
  uint32_t rounds = status == CLV_OK && !clv__poll_stops(&bench->poll) ? play_rounds(turns, count) : 0;
  return status == CLV_OK ? conclude(bench, turns, count, rounds, error) : status;
}

clv_status clv_bench_compare(clv_bench *bench, const clv_bench_subject *subjects, uint32_t count, clv_error *error) {
  if (bench == NULL || subjects == NULL || count == 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "bench and subjects must not be NULL, and there must be a subject");
  turn *turns = clv__allocate_zero(bench->allocator, count * sizeof *turns);
  if (turns == NULL) return clv__error_memory(error, count * sizeof *turns);
  clv_status status = CLV_OK;
  const char *at = (const char *)subjects; /* the caller's structs may be shorter or longer */
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i, at += subjects[0].struct_size)
    status = clv__bench_read_subject(bench, (const clv_bench_subject *)(const void *)at, &turns[i].subject, error);
  if (status == CLV_OK) status = take_turns(bench, turns, count, error);
  for (uint32_t i = 0; i < count; ++i) clv__runner_finish(&turns[i].b);
  clv__release(bench->allocator, turns);
  return status;
}
