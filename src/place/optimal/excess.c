/* Computes by how much a cut exceeds the devices' memories. */
#include "place/optimal/optimal.h"

/* Adds the weights that the user placed in the memory of a device that does not read them. `read` (by weight, zero at first)
 * gets a bit for each device that reads the weight. */
static void add_homes(const clv__problem *problem, const clv__cut *cut, uint32_t *read, clv__memory *memory) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k)
      read[problem->weights[k]] |= 1u << cut->devices[cut->partition_of[n]];
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    uint32_t home = problem->weight_homes[w];
    if (home != CLV__NONE && (read[w] >> home & 1u) == 0) memory->weight_bytes[home] += problem->weight_bytes[w];
  }
}

clv_status clv__memory_excess(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies,
                              const uint16_t *streamed, const clv_allocator *allocator, clv__memory *memory,
                              uint64_t *excess_bytes, clv_error *error) {
  *excess_bytes = 0;
  CLV__TRY(clv__memory_count(problem, cut, copies, streamed, false, allocator, memory, error));
  if (problem->weight_homes != NULL && problem->weight_count > 0) {
    uint32_t *read = clv__allocate_zero(allocator, problem->weight_count * sizeof *read);
    if (read == NULL) return clv__error_memory(error, problem->weight_count * sizeof *read);
    add_homes(problem, cut, read, memory);
    clv__release(allocator, read);
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t total = clv__memory_needed(problem, memory, NULL, d), limit = problem->limits[d].memory_bytes;
    if (limit > 0 && total > limit) *excess_bytes = clv__add_ns(*excess_bytes, total - limit);
  }
  return CLV_OK;
}
