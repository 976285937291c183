/* Builds compressed rows from the 64-bit arrays of a program: edges as pairs, or rows. Every id is checked. */
#include <inttypes.h>

#include "base/error.h"
#include "base/memory.h"
#include "gnn/data/csr.h"

/* ---- Pairs ---- */

typedef struct pairs {
  clv__edge_source source; /* must be first: csr.c passes a pointer to this member, which is cast to the whole struct */
  const int64_t *sources, *destinations;
  uint64_t edge_count, at;
} pairs;

static clv_status wrong_id(const char *what, uint64_t edge, int64_t id, uint64_t vertex_count, clv_error *error) {
  if (vertex_count == CLV__VERTICES_UNKNOWN)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "edge %" PRIu64 " has the %s %" PRId64 ", but ids are 0 to %" PRIu64, edge,
                          what, id, CLV__MOST_VERTICES - 1);
  return clv__error_set(error, CLV_INVALID_ARGUMENT,
                        "edge %" PRIu64 " has the %s %" PRId64 ", but there are %" PRIu64 " vertices", edge, what, id,
                        vertex_count);
}

static clv_status rewind_pairs(clv__edge_source *source, clv_error *error) {
  (void)error;
  ((pairs *)source)->at = 0;
  return CLV_OK;
}

static clv_status next_pairs(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                             clv_error *error) {
  pairs *p = (pairs *)source;
  uint64_t left = p->edge_count - p->at;
  uint64_t limit = source->vertex_count == CLV__VERTICES_UNKNOWN ? CLV__MOST_VERTICES : source->vertex_count;
  *count = left < room ? (size_t)left : room;
  for (size_t e = 0; e < *count; ++e) {
    int64_t u = p->sources[p->at + e], v = p->destinations[p->at + e]; /* negative ids become very large */
    if ((uint64_t)u >= limit) return wrong_id("source", p->at + e, u, source->vertex_count, error);
    if ((uint64_t)v >= limit) return wrong_id("destination", p->at + e, v, source->vertex_count, error);
    sources[e] = (uint32_t)u;
    destinations[e] = (uint32_t)v;
  }
  p->at += *count;
  return CLV_OK;
}

clv_status clv__csr_from_pairs(const clv_allocator *allocator, uint64_t vertex_count, uint64_t edge_count, const int64_t *sources,
                               const int64_t *destinations, clv__csr *csr, clv_error *error) {
  pairs p = {{vertex_count, edge_count, rewind_pairs, next_pairs}, sources, destinations, edge_count, 0};
  return clv__csr_build(allocator, &p.source, csr, error);
}

/* ---- Rows ---- */

static clv_status check_offsets(uint64_t vertex_count, uint64_t edge_count, const int64_t *offsets, clv_error *error) {
  if (offsets[0] != 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "offsets[0] is %" PRId64 ", but must be 0", offsets[0]);
  for (uint64_t v = 0; v < vertex_count; ++v) {
    if (offsets[v + 1] < offsets[v])
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "offsets[%" PRIu64 "] is %" PRId64 ", which is below offsets[%" PRIu64 "] = %" PRId64, v + 1,
                            offsets[v + 1], v, offsets[v]);
  }
  if ((uint64_t)offsets[vertex_count] == edge_count) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "offsets[%" PRIu64 "] is %" PRId64 ", but there are %" PRIu64 " edges",
                        vertex_count, offsets[vertex_count], edge_count);
}

clv_status clv__csr_from_rows(const clv_allocator *allocator, uint64_t vertex_count, uint64_t edge_count, const int64_t *offsets,
                              const int64_t *sources, clv__csr *csr, clv_error *error) {
  size_t offsets_bytes, sources_bytes;
  *csr = (clv__csr){0};
  CLV__TRY(check_offsets(vertex_count, edge_count, offsets, error));
  if (!clv__multiply((size_t)vertex_count + 1, sizeof(uint64_t), &offsets_bytes) ||
      !clv__multiply((size_t)edge_count, sizeof(uint32_t), &sources_bytes))
    return clv__error_memory(error, SIZE_MAX);
  uint64_t *own_offsets = clv__allocate(allocator, offsets_bytes);
  uint32_t *own_sources = clv__allocate(allocator, sources_bytes);
  clv_status status =
      own_offsets == NULL || own_sources == NULL ? clv__error_memory(error, offsets_bytes + sources_bytes) : CLV_OK;
  for (uint64_t v = 0; status == CLV_OK && v <= vertex_count; ++v) own_offsets[v] = (uint64_t)offsets[v];
  for (uint64_t e = 0; status == CLV_OK && e < edge_count; ++e) {
    if ((uint64_t)sources[e] >= vertex_count) status = wrong_id("source", e, sources[e], vertex_count, error);
    own_sources[e] = (uint32_t)sources[e];
  }
  if (status == CLV_OK) {
    *csr = (clv__csr){(uint32_t)vertex_count, edge_count, own_offsets, own_sources};
    return CLV_OK;
  }
  clv__release(allocator, own_sources);
  clv__release(allocator, own_offsets);
  return status;
}
