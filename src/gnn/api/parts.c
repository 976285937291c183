/* Parts for programs: see cleave/gnn.h. */
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "device/device.h"
#include "gnn/api/handles.h"

/* Makes the handle of `membership`, and takes ownership of it, also on failure. */
static clv_status give_parts(const clv_allocator *allocator, clv__membership *membership, clv_gnn_parts **out, clv_error *error) {
  clv_gnn_parts *parts = clv__allocate(allocator, sizeof *parts);
  if (parts == NULL) {
    clv__membership_finish(allocator, membership);
    return clv__error_memory(error, sizeof *parts);
  }
  *parts = (clv_gnn_parts){allocator, *membership};
  *out = parts;
  return CLV_OK;
}

static clv_status begin(const clv_gnn_graph *graph, clv_gnn_parts **parts, clv_error *error) {
  CLV__TRY(clv__argument_check(parts, "parts", error));
  *parts = NULL;
  return clv__argument_check(graph, "graph", error);
}

clv_status clv_gnn_parts_make(const clv_gnn_graph *graph, uint32_t k, uint64_t seed, clv_gnn_parts **parts, clv_error *error) {
  const char *reason;
  clv__membership membership;
  CLV__TRY(begin(graph, parts, error));
  if (k == 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: k is 0; a graph has at least 1 part", graph->name);
  const clv_allocator *allocator = clv__context_allocator(graph->context);
  clv_status status =
      clv__membership_make(allocator, graph->graph, k, seed, clv__context_cache(graph->context, &reason), &membership, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", graph->name);
  return give_parts(allocator, &membership, parts, error);
}

/* Checks that every part is below k and that none is empty. `is_used` has room for k parts and is zero. */
static clv_status check_parts(const clv_gnn_graph *graph, const uint32_t *part_of, uint32_t k, bool *is_used, clv_error *error) {
  for (uint32_t v = 0; v < graph->graph->csr.vertex_count; ++v) {
    if (part_of[v] >= k)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: vertex %u is in part %u, but there are %u parts", graph->name, v,
                            part_of[v], k);
    is_used[part_of[v]] = true;
  }
  for (uint32_t p = 0; p < k; ++p) {
    if (!is_used[p]) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: no vertex is in part %u of %u", graph->name, p, k);
  }
  return CLV_OK;
}

clv_status clv_gnn_parts_from(const clv_gnn_graph *graph, const uint32_t *part_of, uint32_t k, clv_gnn_parts **parts,
                              clv_error *error) {
  CLV__TRY(begin(graph, parts, error));
  CLV__TRY(clv__argument_check(part_of, "part_of", error));
  const clv_allocator *allocator = clv__context_allocator(graph->context);
  uint32_t count = graph->graph->csr.vertex_count;
  if (k == 0 || k > count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: k is %u, but a graph with %u vertices has 1 to %u parts", graph->name,
                          k, count, count);
  bool *is_used = clv__allocate_zero(allocator, k);
  if (is_used == NULL) return clv__error_memory(error, k);
  clv_status status = check_parts(graph, part_of, k, is_used, error);
  clv__release(allocator, is_used);
  if (status != CLV_OK) return status;
  uint32_t *own = clv__allocate(allocator, (size_t)count * sizeof *own);
  if (own == NULL) return clv__error_memory(error, (size_t)count * sizeof *own);
  memcpy(own, part_of, (size_t)count * sizeof *own);
  return give_parts(allocator, &(clv__membership){.k = k, .vertex_count = count, .parts = own}, parts, error);
}

clv_status clv_gnn_parts_read(const clv_gnn_graph *graph, const char *path, clv_gnn_parts **parts, clv_error *error) {
  clv__membership membership;
  CLV__TRY(begin(graph, parts, error));
  CLV__TRY(clv__argument_check(path, "path", error));
  const clv_allocator *allocator = clv__context_allocator(graph->context);
  CLV__TRY(clv__membership_read(allocator, path, graph->graph->csr.vertex_count, &membership, error));
  return give_parts(allocator, &membership, parts, error);
}

void clv_gnn_parts_get_info(const clv_gnn_parts *parts, clv_gnn_parts_info *info) {
  const clv_gnn_parts_info filled = {.k = parts->membership.k,
                                     .vertex_count = parts->membership.vertex_count,
                                     .is_from_cache = parts->membership.from_cache,
                                     .part_of = parts->membership.parts,
                                     .metis_seconds = parts->membership.metis_seconds};
  clv__info_fill(info, &filled, sizeof filled);
}

void clv_gnn_parts_destroy(clv_gnn_parts *parts) {
  if (parts == NULL) return;
  const clv_allocator *allocator = parts->allocator;
  clv__membership_finish(allocator, &parts->membership);
  clv__release(allocator, parts);
}
