/* Computes the device memory that a cut needs, and by how much that exceeds the limits. */
#include "place/optimal/optimal.h"

typedef struct tally {
  const clv__problem *problem;
  const clv__cut *cut;
  const uint16_t *streamed;
  uint16_t *resident;      /* by weight: the devices on which it is already counted */
  uint32_t *streamed_seen; /* by weight: the last partition (+ 1) that counted it */
  uint32_t *value_seen;    /* by value: the last partition (+ 1) that counted it */
} tally;

static bool is_boundary(const tally *t, uint32_t value, uint32_t partition) {
  const clv__problem *problem = t->problem;
  if (problem->is_output[value]) return true;
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    if (t->cut->partition_of[problem->readers[i]] != partition) return true;
  }
  return false;
}

static uint64_t count_weights(tally *t, uint32_t node, uint32_t partition, uint64_t *resident_bytes) {
  const clv__problem *problem = t->problem;
  uint32_t device = t->cut->devices[partition];
  uint64_t bytes = 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    if (t->streamed != NULL && (t->streamed[weight] >> device & 1u) != 0) {
      if (t->streamed_seen[weight] != partition + 1) bytes += problem->weight_bytes[weight];
      t->streamed_seen[weight] = partition + 1;
    } else if ((t->resident[weight] >> device & 1u) == 0) {
      t->resident[weight] |= (uint16_t)(1u << device);
      *resident_bytes += problem->weight_bytes[weight];
    }
  }
  return bytes;
}

/* Counts the boundary values and streamed weights of a partition. Adds its new resident weights to `resident_bytes`. */
static uint64_t count_partition(tally *t, uint32_t partition, uint64_t *resident_bytes) {
  const clv__problem *problem = t->problem;
  uint64_t bytes = 0;
  for (uint32_t i = t->cut->offsets[partition]; i < t->cut->offsets[partition + 1]; ++i) {
    uint32_t node = t->cut->nodes[i];
    bytes += count_weights(t, node, partition, resident_bytes);
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t value = problem->reads[r], producer = problem->producers[value];
      if (t->value_seen[value] == partition + 1) continue;
      t->value_seen[value] = partition + 1;
      if (producer == CLV__NONE || t->cut->partition_of[producer] != partition) bytes += problem->value_bytes[value];
    }
    for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
      if (is_boundary(t, problem->writes[w], partition)) bytes += problem->value_bytes[problem->writes[w]];
    }
  }
  return bytes;
}

clv_status clv__memory_excess(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed,
                              const clv_allocator *allocator, uint64_t *excess_bytes, uint32_t *device, uint64_t *needed,
                              clv_error *error) {
  uint64_t resident[16] = {0}, largest[16] = {0}, worst = 0;
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  tally t = {.problem = problem,
             .cut = cut,
             .streamed = streamed,
             .resident = clv__arena_allocate_zero(&arena, problem->weight_count, sizeof *t.resident),
             .streamed_seen = clv__arena_allocate_zero(&arena, problem->weight_count, sizeof *t.streamed_seen),
             .value_seen = clv__arena_allocate_zero(&arena, problem->value_count, sizeof *t.value_seen)};
  *excess_bytes = 0;
  if (t.resident == NULL || t.streamed_seen == NULL || t.value_seen == NULL) {
    clv__arena_finish(&arena);
    return clv__error_memory(error, (size_t)problem->value_count * sizeof *t.value_seen);
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    uint32_t home = problem->weight_homes == NULL ? CLV__NONE : problem->weight_homes[w];
    if (home == CLV__NONE) continue;
    t.resident[w] = (uint16_t)(1u << home);
    resident[home] += problem->weight_bytes[w];
  }
  for (uint32_t p = 0; p < cut->count; ++p) {
    uint32_t d = cut->devices[p];
    if (problem->limits[d].memory_bytes == 0) continue;
    uint64_t bytes = count_partition(&t, p, &resident[d]);
    if (bytes > largest[d]) largest[d] = bytes;
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t total = resident[d] + largest[d], limit = problem->limits[d].memory_bytes;
    if (limit == 0 || total <= limit) continue;
    *excess_bytes += total - limit;
    if (total - limit <= worst) continue;
    worst = total - limit;
    if (device != NULL) *device = d;
    if (needed != NULL) *needed = total;
  }
  clv__arena_finish(&arena);
  return CLV_OK;
}
