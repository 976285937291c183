/* Streams weights that do not fit (place/stream.h): for one device after the other, tries several sizes of the buffer, each with
 * as many resident weights as fit. */
#include "place/stream.h"

#include <string.h>

#include "place/optimal/optimal.h"

/* How many numbers of resident weights and how many buffer sizes are tried; FEW_* for problems whose evaluation takes more than
 * FEW_EFFORT. */
enum { STEPS = 64, BUFFERS = 7, FEW_STEPS = 16, FEW_BUFFERS = 4 };
#define FEW_EFFORT ((uint64_t)20000)

typedef struct streamer {
  clv__optimal *o;
  const uint32_t *devices;
  clv__stream stream;
  const clv__placing *from; /* the decisions for the devices handled before this one */
  clv__placing trial;
  clv__placing best;
  clv__score score; /* of `best` */
} streamer;

static clv_status make_arrays(const clv__optimal *o, clv__arena *arena, clv__placing *placing) {
  placing->streamed = clv__arena_allocate_zero(arena, o->problem->weight_count, sizeof *placing->streamed);
  placing->groups = clv__arena_allocate(arena, o->problem->node_count * sizeof *placing->groups);
  if (placing->streamed == NULL || placing->groups == NULL) return clv__error_memory(o->error, o->problem->node_count);
  memset(placing->groups, 0xff, o->problem->node_count * sizeof *placing->groups); /* CLV__NONE */
  return CLV_OK;
}

static void copy(const clv__problem *problem, const clv__placing *from, clv__placing *to) {
  memcpy(to->streamed, from->streamed, problem->weight_count * sizeof *to->streamed);
  memcpy(to->groups, from->groups, problem->node_count * sizeof *to->groups);
}

static clv_status evaluate(streamer *s, const clv__placing *placing, clv__score *score) {
  clv__evaluator *evaluator = &s->o->evaluator;
  evaluator->streamed = placing->streamed;
  evaluator->groups = placing->groups;
  clv_status status = clv__evaluate(evaluator, s->devices, score, s->o->error);
  evaluator->streamed = NULL;
  evaluator->groups = NULL;
  return status;
}

/* Returns whether the device, and every device that shares its memory, needs no more than its limit. */
static bool fits(const streamer *s) {
  const clv__problem *problem = s->o->problem;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t limit = problem->limits[d].memory_bytes;
    if (limit == 0 || problem->spaces[d] != problem->spaces[s->stream.device]) continue;
    if (clv__memory_needed(problem, &s->o->evaluator.memory, NULL, d) > limit) return false;
  }
  return true;
}

/* Tries a way. Keeps it if it is the best so far. */
static clv_status try_way(streamer *s, const clv__stream_way *way, bool *is_fitting) {
  clv__score score;
  copy(s->o->problem, s->from, &s->trial);
  clv__stream_apply(&s->stream, way, s->trial.streamed, s->trial.groups);
  CLV__TRY(evaluate(s, &s->trial, &score));
  *is_fitting = score.time_ns != UINT64_MAX && fits(s);
  if (!clv__score_less(&score, &s->score)) return CLV_OK;
  s->score = score;
  copy(s->o->problem, &s->trial, &s->best);
  return CLV_OK;
}

/* For one buffer size, finds the most resident weights with which the device's memory suffices. */
static clv_status try_buffer(streamer *s, uint64_t buffer_bytes, bool is_fine, uint32_t steps, bool *is_fitting) {
  uint32_t low = 0, high = steps; /* low fits, high does not */
  clv__stream_way way = {.buffer_bytes = buffer_bytes, .is_fine = is_fine};
  CLV__TRY(try_way(s, &way, is_fitting));
  while (*is_fitting && high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    bool is;
    way.kept = clv__stream_kept(&s->stream, middle, steps);
    CLV__TRY(try_way(s, &way, &is));
    *(is ? &low : &high) = middle;
  }
  return CLV_OK;
}

static clv_status stream_device(streamer *s) {
  bool is_large = s->o->evaluator.effort > FEW_EFFORT;
  uint32_t steps = is_large ? FEW_STEPS : STEPS, buffers = is_large ? FEW_BUFFERS : BUFFERS;
  const uint64_t total = s->stream.count == 0 ? 0 : s->stream.ends[s->stream.count - 1];
  if (steps > s->stream.count) steps = s->stream.count;
  for (uint32_t b = 0; b < 2 * buffers; ++b) { /* fine cuts come last, and the finest at the end */
    bool is_fitting = false, is_fine = b >= buffers;
    uint32_t index = is_fine ? 2 * buffers - 1 - b : b;
    clv__stream_way way = {
        .kept = s->stream.count, .buffer_bytes = clv__stream_buffer(&s->stream, index, is_fine), .is_fine = is_fine};
    if (is_fine) CLV__TRY(try_way(s, &way, &is_fitting));
    if (is_fitting) return CLV_OK;
    if (steps == 0 || (index > 1 && !is_fine && clv__stream_buffer(&s->stream, index - 1, false) >= total)) continue;
    CLV__TRY(try_buffer(s, way.buffer_bytes, is_fine, steps, &is_fitting));
  }
  return CLV_OK;
}

clv_status clv__optimal_stream(clv__optimal *o, const uint32_t *devices, clv__arena *arena, clv__placing *placing,
                               clv__score *score) {
  const clv__problem *problem = o->problem;
  clv__placing from = {0};
  streamer s = {.o = o, .devices = devices, .from = &from};
  CLV__TRY(make_arrays(o, arena, &from));
  CLV__TRY(make_arrays(o, arena, &s.trial));
  CLV__TRY(make_arrays(o, arena, &s.best));
  CLV__TRY(evaluate(&s, &from, &s.score));
  for (uint32_t d = 0; d < problem->device_count && s.score.excess_bytes > 0; ++d) {
    if (problem->limits[d].memory_bytes == 0) continue;
    CLV__TRY(clv__stream_list(problem, devices, NULL, d, arena, &s.stream, o->error));
    CLV__TRY(stream_device(&s));
    copy(problem, &s.best, &from);
  }
  *placing = (clv__placing){.streamed = s.best.streamed, .groups = s.best.groups};
  *score = s.score;
  return CLV_OK;
}
