/* See stream.h. */
#include "place/stream.h"

#include <stdlib.h>
#include <string.h>

typedef struct ranked {
  uint64_t saved_ns, bytes; /* time of its copies per run, which it saves if it stays resident; its size */
  uint32_t weight;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  unsigned __int128 p = (unsigned __int128)x->saved_ns * y->bytes, q = (unsigned __int128)y->saved_ns * x->bytes;
  if (p != q) return p > q ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
  return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static bool is_read_there(const clv__stream *s, uint32_t node, uint32_t weight, const uint16_t *streamed) {
  if (s->devices[node] != s->device || s->problem->spaces[s->device] == 0) return false;
  if (!clv__can_stream(s->problem, weight, s->device) || clv__is_hosted(s->problem, node, s->device)) return false;
  return streamed == NULL || (streamed[weight] >> s->device & 1u) == 0;
}

/* Returns the bytes of the values that the node computes. At least 1, so that a buffer of 0 bytes separates all nodes. */
static uint64_t value_bytes(const clv__problem *problem, uint32_t node) {
  uint64_t bytes = 1;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w)
    bytes += problem->value_bytes[problem->writes[w]];
  return bytes;
}

/* Counts in `seen` the readers of each weight, and finds the most bytes of weights and of values of any one node
 * (`buffer_bytes`, `value_bytes`). */
static void count_readers(clv__stream *s, const uint16_t *streamed) {
  const clv__problem *problem = s->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint64_t bytes = 0, values = s->devices[n] == s->device ? value_bytes(problem, n) : 0;
    if (values > s->value_bytes) s->value_bytes = values;
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      uint32_t weight = problem->weights[k];
      if (!is_read_there(s, n, weight, streamed)) continue;
      bytes += problem->weight_bytes[weight];
      ++s->seen[weight];
    }
    if (bytes > s->buffer_bytes) s->buffer_bytes = bytes;
  }
}

clv_status clv__stream_list(const clv__problem *problem, const uint32_t *devices, const uint16_t *streamed, uint32_t device,
                            clv__arena *arena, clv__stream *stream, clv_error *error) {
  size_t most = problem->weight_count;
  *stream = (clv__stream){.problem = problem, .devices = devices, .device = device};
  stream->weights = clv__arena_allocate(arena, most * sizeof *stream->weights);
  stream->ends = clv__arena_allocate(arena, most * sizeof *stream->ends);
  stream->positions = clv__arena_allocate(arena, most * sizeof *stream->positions);
  stream->seen = clv__arena_allocate_zero(arena, most, sizeof *stream->seen);
  stream->given = clv__arena_allocate(arena, problem->node_count * sizeof *stream->given);
  ranked *order = clv__arena_allocate(arena, most * sizeof *order);
  if (stream->given == NULL || stream->weights == NULL || stream->ends == NULL || stream->positions == NULL ||
      stream->seen == NULL || order == NULL) {
    return clv__error_memory(error, most * sizeof *order);
  }
  memset(stream->positions, 0xff, most * sizeof *stream->positions); /* CLV__NONE */
  count_readers(stream, streamed);
  for (uint32_t w = 0; w < most; ++w) {
    uint64_t in_ns = problem->weight_in_ns[(size_t)w * problem->space_count + problem->spaces[device]], bytes;
    if (stream->seen[w] == 0) continue;
    bytes = problem->weight_bytes[w] == 0 ? 1 : problem->weight_bytes[w];
    order[stream->count++] = (ranked){(in_ns == 0 ? 1 : in_ns) * stream->seen[w], bytes, w};
  }
  if (stream->count > 1) qsort(order, stream->count, sizeof *order, compare_ranked);
  uint64_t end = 0;
  for (uint32_t i = 0; i < stream->count; ++i) {
    stream->weights[i] = order[i].weight;
    stream->positions[order[i].weight] = i;
    stream->ends[i] = end += order[i].bytes;
  }
  return CLV_OK;
}

uint32_t clv__stream_kept(const clv__stream *stream, uint32_t step, uint32_t steps) {
  if (step == 0 || stream->count == 0) return 0;
  if (stream->count <= steps) return step < stream->count ? step : stream->count;
  uint64_t bytes = (uint64_t)((unsigned __int128)stream->ends[stream->count - 1] * step / steps);
  uint32_t low = 0, high = stream->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (stream->ends[middle] <= bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Returns the bytes that the node adds to group number `group`: its streamed weights that no earlier node of the group reads,
 * and, with way->is_fine, the values that it computes. */
static uint64_t fresh_bytes(const clv__stream *s, uint32_t node, const clv__stream_way *way, uint32_t group) {
  const clv__problem *problem = s->problem;
  uint64_t bytes = way->is_fine ? value_bytes(problem, node) : 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k], at = s->positions[weight];
    if (at != CLV__NONE && at >= way->kept && s->seen[weight] != group) bytes += problem->weight_bytes[weight];
  }
  return bytes;
}

/* Returns the new group number of `node`. It is that of an earlier node, from `first` on, that was in the same group before the
 * division; if there is none, it is an unused number. */
static uint32_t name_of(const clv__stream *s, uint32_t first, uint32_t node, const uint32_t *groups) {
  for (uint32_t n = node; n-- > first;) {
    if (s->devices[n] == s->device && s->given[n] == s->given[node]) return groups[n];
  }
  return s->problem->node_count + 1 + node; /* a number that no strategy and no other group uses */
}

void clv__stream_apply(const clv__stream *s, const clv__stream_way *way, uint16_t *streamed, uint32_t *groups) {
  const clv__problem *problem = s->problem;
  uint64_t filled = 0;
  uint32_t group = 1, first = 0;
  memcpy(s->given, groups, problem->node_count * sizeof *groups);
  memset(s->seen, 0, problem->weight_count * sizeof *s->seen);
  for (uint32_t i = way->kept; i < s->count; ++i) streamed[s->weights[i]] |= (uint16_t)(1u << s->device);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (s->devices[n] != s->device) continue;
    uint64_t bytes = fresh_bytes(s, n, way, group);
    if (filled > 0 && bytes > 0 && filled + bytes > way->buffer_bytes) {
      ++group;
      filled = 0;
      bytes = fresh_bytes(s, n, way, group);
      first = n;
    }
    filled += bytes;
    if (group > 1) groups[n] = name_of(s, first, n, groups); /* nodes of the first group keep the group that they have */
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) s->seen[problem->weights[k]] = group;
  }
}
