/* Derives the prices of nodes and edges from measured blocks: the non-negative least-squares solution (relative errors) of
 *
 *     launch + sum of within_ns of its nodes + half of saving_ns of the edges it cuts = measured time of the block
 *
 * over all blocks, by coordinate descent. The weight of a block grows with the square of its node count. Large blocks count
 * more because plans consist of them, and because a small node whose data stays in a cache when it runs alone is slower among
 * other nodes. A block that contradicts the others gets less weight. Unknowns that no block determines stay near the time of the
 * node alone. */
#include "cost/profile.h"

#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 2000, ROUNDS = 5 };
#define BELIEVED 0.05  /* relative error above which the weight of a block is reduced */
#define SHAKY 20.0     /* a spread of 1/SHAKY of the time halves the weight */
#define HOLD 1e-4      /* weight of an unknown's start value, relative to the weight of the blocks that contain it */
#define CONVERGED 1e-7 /* iteration ends if a sweep changes the unknowns by less than this, relative to their sum */
#define TIMER_NS 200.0 /* added to each time, so that errors below the timer's accuracy have little effect */

/* Rows are blocks; columns are unknowns: operators, then edges. Stored by column. */
typedef struct system {
  uint32_t row_count, column_count;
  double *weights, *trust, *rests; /* by row (block); rests: measured minus predicted time */
  uint32_t *offsets, *rows;        /* by column: its first entry; by entry: its row */
  double *coefficients;            /* by entry */
  double *begin, *values, *hold;
} system;

static void *allocate_array(clv__arena *arena, size_t count, size_t element_bytes, bool *failed) {
  void *made = clv__arena_allocate_zero(arena, count, element_bytes);
  *failed = *failed || made == NULL;
  return made;
}

static bool allocate(system *s, const clv__profile_device *device, clv__arena *arena) {
  bool failed = false;
  size_t entries = 0;
  for (uint32_t b = 0; b < device->block_count; ++b) entries += device->blocks[b].node_count + device->blocks[b].edge_count;
  s->row_count = device->block_count;
  s->column_count = device->operator_count + device->saving_count;
  s->weights = allocate_array(arena, s->row_count, sizeof(double), &failed);
  s->trust = allocate_array(arena, s->row_count, sizeof(double), &failed);
  s->rests = allocate_array(arena, s->row_count, sizeof(double), &failed);
  s->offsets = allocate_array(arena, (size_t)s->column_count + 2, sizeof(uint32_t), &failed);
  s->rows = allocate_array(arena, entries, sizeof(uint32_t), &failed);
  s->coefficients = allocate_array(arena, entries, sizeof(double), &failed);
  s->begin = allocate_array(arena, s->column_count, sizeof(double), &failed);
  s->values = allocate_array(arena, s->column_count, sizeof(double), &failed);
  s->hold = allocate_array(arena, s->column_count, sizeof(double), &failed);
  return !failed && entries <= UINT32_MAX;
}

static double without_launch(const clv__profile_device *device, const clv__measure *measure) {
  return measure->time_ns > device->launch.time_ns ? (double)(measure->time_ns - device->launch.time_ns) : 0;
}

static void put_entry(system *s, uint32_t row, uint32_t column, double coefficient) {
  uint32_t at = s->offsets[column + 1]++;
  s->rows[at] = row;
  s->coefficients[at] = coefficient;
  s->hold[column] += s->weights[row] * coefficient * coefficient;
  s->rests[row] -= coefficient * s->values[column];
}

static void fill(system *s, const clv__profile_device *device) {
  uint32_t operators = device->operator_count;
  for (uint32_t b = 0; b < device->block_count; ++b) {
    const clv__profile_block *block = &device->blocks[b];
    for (uint32_t i = 0; i < block->node_count; ++i) ++s->offsets[block->nodes[i].index + 2];
    for (uint32_t i = 0; i < block->edge_count; ++i) ++s->offsets[operators + block->edges[i].index + 2];
  }
  for (uint32_t c = 0; c < s->column_count; ++c) s->offsets[c + 2] += s->offsets[c + 1];
  for (uint32_t i = 0; i < operators; ++i) s->values[i] = s->begin[i] = without_launch(device, &device->operators[i].alone);
  for (uint32_t b = 0; b < device->block_count; ++b) {
    const clv__profile_block *block = &device->blocks[b];
    double nodes = 0, time = (double)block->total.time_ns + TIMER_NS;
    for (uint32_t i = 0; i < block->node_count; ++i) nodes += block->nodes[i].count;
    double apart = SHAKY * (double)block->total.spread_ns / time; /* blocks whose runs are widely spread count less */
    s->weights[b] = nodes * nodes / (time * time * (1 + apart * apart));
    s->trust[b] = 1;
    s->rests[b] = without_launch(device, &block->total);
    for (uint32_t i = 0; i < block->node_count; ++i) put_entry(s, b, block->nodes[i].index, block->nodes[i].count);
    for (uint32_t i = 0; i < block->edge_count; ++i)
      put_entry(s, b, operators + block->edges[i].index, 0.5 * block->edges[i].count);
  }
}

/* Sets one unknown to its best value with the others fixed. Returns the change. */
static double improve(system *s, uint32_t column) {
  double slope = 0, old = s->values[column], square = s->hold[column];
  if (!(square > 0)) return 0;
  for (uint32_t e = s->offsets[column]; e < s->offsets[column + 1]; ++e) {
    uint32_t row = s->rows[e];
    slope += s->weights[row] * s->trust[row] * s->coefficients[e] * s->rests[row];
  }
  double hold = HOLD * square, value = old + (slope + hold * (s->begin[column] - old)) / (square + hold);
  if (value < 0) value = 0;
  if (value == old) return 0;
  s->values[column] = value;
  for (uint32_t e = s->offsets[column]; e < s->offsets[column + 1]; ++e) {
    s->rests[s->rows[e]] -= s->coefficients[e] * (value - old);
  }
  return fabs(value - old);
}

static void sweep_until_converged(system *s) {
  for (uint32_t sweep = 0; sweep < MOST_SWEEPS; ++sweep) {
    double moved = 0, all = 0;
    for (uint32_t c = 0; c < s->column_count; ++c) {
      moved += improve(s, c);
      all += s->values[c];
    }
    if (moved <= CONVERGED * all) return;
  }
}

/* Solves in rounds. After each round, a block whose error is large gets less trust, because another program probably ran while
 * it was measured. */
static void solve(system *s, const clv__profile_device *device) {
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    sweep_until_converged(s);
    memset(s->hold, 0, s->column_count * sizeof *s->hold);
    for (uint32_t b = 0; b < s->row_count; ++b) {
      double time = (double)device->blocks[b].total.time_ns + TIMER_NS, off = fabs(s->rests[b]) / time;
      s->trust[b] = off <= BELIEVED ? 1 : BELIEVED / off;
    }
    for (uint32_t c = 0; c < s->column_count; ++c) {
      for (uint32_t e = s->offsets[c]; e < s->offsets[c + 1]; ++e) {
        s->hold[c] += s->weights[s->rows[e]] * s->trust[s->rows[e]] * s->coefficients[e] * s->coefficients[e];
      }
    }
  }
}

clv_status clv__profile_solve(clv__profile_device *device, const clv_allocator *allocator, clv_error *error) {
  system s = {0};
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  bool made = allocate(&s, device, &arena);
  if (made) {
    fill(&s, device);
    solve(&s, device);
    for (uint32_t i = 0; i < device->operator_count; ++i) {
      clv__profile_operator *entry = &device->operators[i];
      entry->has_within = s.offsets[i] != s.offsets[i + 1];
      entry->within_ns = entry->has_within ? (uint64_t)(s.values[i] + 0.5) : 0;
    }
    for (uint32_t i = 0; i < device->saving_count;
         ++i) { /* rounds to an even number, because each of the two nodes is charged half */
      device->savings[i].saving_ns = 2 * (uint64_t)(s.values[device->operator_count + i] / 2 + 0.5);
    }
  }
  clv__arena_finish(&arena);
  return made ? CLV_OK : clv__error_memory(error, (size_t)device->block_count * sizeof(clv__profile_block));
}

double clv__profile_block_ns(const clv__profile_device *device, const clv__profile_block *block) {
  double sum = (double)device->launch.time_ns;
  for (uint32_t i = 0; i < block->node_count; ++i)
    sum += (double)device->operators[block->nodes[i].index].within_ns * block->nodes[i].count;
  for (uint32_t i = 0; i < block->edge_count; ++i)
    sum += 0.5 * (double)device->savings[block->edges[i].index].saving_ns * block->edges[i].count;
  return sum;
}
