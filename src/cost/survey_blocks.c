/* Chooses and measures the blocks of a survey: whole runs (sequences of nodes, see survey.c) first. Runs whose time differs
 * from the sum of their nodes' times are cut in halves, down to pairs. Only one of several equal blocks is measured. */
#include <math.h>
#include <string.h>

#include "cost/signature.h"
#include "cost/survey.h"

#define ADDITIVE 0.03 /* a block is not cut further if its nodes' times add up to its time with at most this relative error */

static uint32_t count_work(const clv__survey *s, uint32_t from, uint32_t to) {
  uint32_t count = 0;
  for (uint32_t i = from; i < to; ++i) count += s->operators[s->list[i]] != CLV__NO_ID;
  return count;
}

static clv_status remember(clv__survey *s, const char *look, uint32_t index, clv_error *error) {
  char *key = clv__arena_string(&s->arena, look, strlen(look));
  return key != NULL && clv__map_set(&s->seen, key, index) ? CLV_OK : clv__error_memory(error, strlen(look));
}

/* Counts a block that was not counted before, unless the profile has it already. */
static clv_status count_block(clv__survey *s, uint32_t from, uint32_t to, bool *is_new, clv_error *error) {
  char look[2 * CLV__HASH_BYTES + 1];
  clv__measure measure = {0};
  uint64_t time_ns = 0;
  const uint32_t limit = s->device->info.max_partition_nodes;
  clv__survey_look(s, from, to, look);
  *is_new = clv__map_find(&s->seen, look) == CLV__MAP_NONE;
  if (!*is_new) return CLV_OK;
  CLV__TRY(remember(s, look, 0, error));
  if (s->options->goes_on) CLV__TRY(clv__survey_find(s, from, to, &measure, error));
  if (measure.runs > 0 || (limit > 0 && to - from > limit)) return CLV_OK;
  ++s->expected->blocks;
  for (uint32_t i = from; s->prices_ns != NULL && i < to; ++i) time_ns += s->prices_ns[s->list[i]];
  clv__survey_expect(s, time_ns, s->expected);
  return CLV_OK;
}

/* Measures a block, or takes the time of an equal block measured before (`is_new` is false). measure->runs is 0 if the block
 * cannot run as one unit. */
static clv_status measure_block(clv__survey *s, uint32_t from, uint32_t to, clv__measure *measure, bool *is_new,
                                clv_error *error) {
  char look[2 * CLV__HASH_BYTES + 1];
  *measure = (clv__measure){0};
  if (s->expected != NULL) return count_block(s, from, to, is_new, error);
  clv__survey_look(s, from, to, look);
  uint32_t known = clv__map_find(&s->seen, look);
  *is_new = known == CLV__MAP_NONE;
  if (*is_new) {
    clv_error reason = {0};
    uint32_t limit = s->device->info.max_partition_nodes;
    if (s->options->goes_on) CLV__TRY(clv__survey_find(s, from, to, measure, error));
    if (measure->runs == 0 && (limit == 0 || to - from <= limit)) {
      CLV__TRY(clv__survey_check(s, error));
      clv_status status = clv__survey_measure(s, s->list + from, to - from, measure, NULL, &reason);
      if (status != CLV_OK) {
        *measure = (clv__measure){0};
        clv__context_log(s->devices->context, 2, "%s: a block of %u nodes was not measured: %s", s->device->name, to - from,
                         reason.message);
      }
    }
    if (!clv__array_reserve(s->arena.allocator, (void **)&s->measures, &s->measure_capacity, s->measure_count + 1,
                            sizeof *s->measures, s->measure_count))
      return clv__error_memory(error, sizeof *s->measures);
    CLV__TRY(remember(s, look, (uint32_t)s->measure_count, error));
    s->measures[s->measure_count++] = *measure;
    ++s->done;
    clv__survey_report(s, "blocks", s->block_limit);
  } else {
    *measure = s->measures[known];
  }
  return measure->runs == 0 ? CLV_OK : clv__survey_put(s, from, to, measure, error);
}

/* Whether the time of the block is about the sum of the times of its nodes, each measured alone, with a single launch. */
static bool is_additive(const clv__survey *s, uint32_t from, uint32_t to, const clv__measure *measure) {
  if (measure->runs == 0) return false;
  double launch = (double)s->tables->launch.time_ns, sum = launch;
  for (uint32_t i = from; i < to; ++i) {
    uint32_t index = s->operators[s->list[i]];
    if (index == CLV__NO_ID) continue;
    double alone = (double)s->tables->operators[index].alone.time_ns;
    if (alone > launch) sum += alone - launch;
  }
  return fabs(sum - (double)measure->time_ns) <= ADDITIVE * (double)measure->time_ns;
}

static clv_status measure_halves(clv__survey *s, uint32_t from, uint32_t to, clv_error *error) {
  if (count_work(s, from, to) < 2) return CLV_OK; /* single nodes are already measured */
  clv__measure measure;
  bool is_new;
  CLV__TRY(measure_block(s, from, to, &measure, &is_new, error));
  if (!is_new || to - from == 2 || is_additive(s, from, to, &measure)) return CLV_OK;
  uint32_t middle = from + (to - from) / 2;
  CLV__TRY(measure_halves(s, from, middle, error));
  return measure_halves(s, middle, to, error);
}

/* Measures pairs of consecutive nodes if the second reads from the first: such pairs show best which edges save time. */
static clv_status measure_pairs(clv__survey *s, uint32_t from, uint32_t to, clv_error *error) {
  for (uint32_t i = from; i + 1 < to; ++i) {
    const clv__node *node = &s->graph->nodes[s->list[i + 1]];
    bool feeds = false, is_new;
    clv__measure measure;
    if (s->operators[s->list[i]] == CLV__NO_ID || s->operators[s->list[i + 1]] == CLV__NO_ID) continue;
    for (uint32_t k = 0; k < node->input_count && !feeds; ++k)
      feeds = clv__node_producer(s->whole, s->list[i + 1], k) == s->list[i];
    if (feeds) CLV__TRY(measure_block(s, i, i + 2, &measure, &is_new, error));
  }
  return CLV_OK;
}

/* Measures a whole run again some time after the first measurement and keeps the lower time. Plans consist mostly of whole
 * runs. */
static clv_status measure_again(clv__survey *s, uint32_t from, uint32_t to, const clv__measure *first, clv_error *error) {
  clv__measure second;
  clv_error ignored;
  if (first->runs == 0) return CLV_OK;
  CLV__TRY(clv__survey_check(s, error));
  clv__survey_report(s, "blocks", s->block_limit);
  clv_status status = clv__survey_measure(s, s->list + from, to - from, &second, NULL, &ignored);
  return status == CLV_OK && second.time_ns < first->time_ns ? clv__survey_put(s, from, to, &second, error) : CLV_OK;
}

static clv_status measure_runs(clv__survey *s, clv_error *error) {
  uint32_t begin = 0;
  for (uint32_t r = 0; r < s->run_count; ++r) {
    uint32_t end = s->run_ends[r];
    clv__measure measure = {0};
    bool is_new = false;
    if (count_work(s, begin, end) > 1) {
      CLV__TRY(measure_block(s, begin, end, &measure, &is_new, error));
      if (is_new && !is_additive(s, begin, end, &measure)) {
        CLV__TRY(measure_halves(s, begin, begin + (end - begin) / 2, error));
        CLV__TRY(measure_halves(s, begin + (end - begin) / 2, end, error));
        CLV__TRY(measure_pairs(s, begin, end, error));
        CLV__TRY(measure_again(s, begin, end, &measure, error));
      }
    }
    begin = end;
  }
  return CLV_OK;
}

clv_status clv__survey_count_blocks(clv__survey *s, clv__expectation *expected, clv_error *error) {
  s->expected = expected;
  clv_status status = measure_runs(s, error);
  s->expected = NULL;
  const clv_allocator *allocator = s->seen.allocator;
  clv__map_finish(&s->seen);
  clv__map_init(&s->seen, allocator);
  return status;
}

clv_status clv__survey_blocks(clv__survey *s, clv_error *error) {
  clv__expectation counted = {0};
  for (uint32_t i = 0; i < s->list_count; ++i) { /* adds each node as a block of its own, with the edges to its neighbours */
    uint32_t index = s->operators[s->list[i]];
    if (index != CLV__NO_ID) CLV__TRY(clv__survey_put(s, i, i + 1, &s->tables->operators[index].alone, error));
  }
  CLV__TRY(clv__survey_count_blocks(s, &counted, error));
  s->block_limit = counted.blocks;
  return measure_runs(s, error);
}
