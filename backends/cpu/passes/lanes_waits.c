/* Waits between lanes: the smallest set that vector clocks require. */
#include <string.h>

#include "base/error.h"
#include "lanes.h"

typedef struct waits {
  uint32_t lane_count;
  const uint8_t *lanes;
  uint32_t *clocks;    /* by step: the clock when it begins */
  uint32_t *positions; /* by step: how many steps of its lane precede it */
  uint32_t *now;       /* the clock of the current step */
} waits;

/* Whether step `b` is sure to be complete at the clock `now`. */
static bool is_over(const waits *w, uint32_t b) {
  return w->now[w->lanes[b]] > w->positions[b];
}

/* Updates the clock with what the completion of step `b` implies. */
static void learn(const waits *w, uint32_t b) {
  const uint32_t *other = w->clocks + (size_t)b * w->lane_count;
  for (uint32_t l = 0; l < w->lane_count; ++l) {
    if (other[l] > w->now[l]) w->now[l] = other[l];
  }
  if (w->now[w->lanes[b]] <= w->positions[b]) w->now[w->lanes[b]] = w->positions[b] + 1;
}

/* The latest of the preceding steps that is not known to be complete; UINT32_MAX: all are. Steps implied by the latest one need
 * no wait. */
static uint32_t latest_open(const waits *w, const uint32_t *before, uint32_t count) {
  uint32_t latest = UINT32_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_over(w, before[i]) && (latest == UINT32_MAX || before[i] > latest)) latest = before[i];
  }
  return latest;
}

clv_status clv__cpu_waits_make(uint32_t count, const uint8_t *lanes, uint32_t lane_count, const uint32_t *offsets,
                               const uint32_t *before, clv__arena *arena, uint32_t *clocks, clv__cpu_wait **waits_out,
                               uint32_t *wait_counts, clv_error *error) {
  uint32_t done[CLV__CPU_MAX_LANES] = {0}, last[CLV__CPU_MAX_LANES];
  clv__cpu_wait found[CLV__CPU_MAX_LANES];
  waits w = {.lane_count = lane_count, .lanes = lanes, .clocks = clocks};
  w.positions = clv__arena_allocate_zero(arena, count, sizeof *w.positions);
  if (w.positions == NULL) return clv__error_memory(error, count * sizeof *w.positions);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t lane = lanes[i];
    uint32_t wait_count = 0;
    w.now = clocks + (size_t)i * lane_count;
    memset(w.now, 0, lane_count * sizeof *w.now);
    if (done[lane] > 0) learn(&w, last[lane]);
    for (;;) { /* each iteration handles another lane: the latest step of a lane implies its earlier ones */
      const uint32_t b = latest_open(&w, before + offsets[i], offsets[i + 1] - offsets[i]);
      if (b == UINT32_MAX) break;
      found[wait_count++] = (clv__cpu_wait){.lane = lanes[b], .done = w.positions[b] + 1};
      learn(&w, b);
    }
    w.positions[i] = done[lane]++;
    last[lane] = i;
    wait_counts[i] = wait_count;
    waits_out[i] = clv__arena_copy(arena, found, wait_count * sizeof *found);
    if (waits_out[i] == NULL) return clv__error_memory(error, sizeof found);
  }
  return CLV_OK;
}
