/* Builds the undirected graph for METIS: adds both directions of every edge, then removes duplicates. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "gnn/data/metis.h"

typedef struct maker {
  const clv__csr *csr;
  uint64_t *cursors; /* [n + 1]: next write position in row v */
  uint32_t *seen;    /* [n], per vertex: the last row that had it as a neighbour, plus one; 0: none */
  int32_t *neighbours;
} maker;

/* Counts both ends of every edge except self loops. Sets cursors[v] to the start of row v. */
static uint64_t count_ends(maker *m) {
  const clv__csr *csr = m->csr;
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      uint32_t u = csr->sources[e];
      if (u == v) continue;
      ++m->cursors[u];
      ++m->cursors[v];
    }
  }
  uint64_t start = 0;
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    uint64_t count = m->cursors[v];
    m->cursors[v] = start;
    start += count;
  }
  return start;
}

static void place_ends(maker *m) {
  const clv__csr *csr = m->csr;
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      uint32_t u = csr->sources[e];
      if (u == v) continue;
      m->neighbours[m->cursors[u]++] = (int32_t)v;
      m->neighbours[m->cursors[v]++] = (int32_t)u;
    }
  }
}

/* Compacts each row to the first occurrence of every neighbour, and sets `offsets`. Expects cursors[v] at the end of row v,
 * where place_ends() leaves it. Returns false if more than INT32_MAX neighbours remain. */
static bool keep_first(maker *m, int32_t *offsets) {
  uint64_t kept = 0, begin = 0;
  for (uint32_t v = 0; v < m->csr->vertex_count; ++v) {
    offsets[v] = (int32_t)kept;
    for (uint64_t e = begin; e < m->cursors[v]; ++e) {
      int32_t u = m->neighbours[e];
      if (m->seen[u] == v + 1) continue;
      m->seen[u] = v + 1;
      if (kept == INT32_MAX) return false;
      m->neighbours[kept++] = u;
    }
    begin = m->cursors[v];
  }
  offsets[m->csr->vertex_count] = (int32_t)kept;
  return true;
}

static clv_status check_limits(const clv__csr *csr, clv_error *error) {
  if (csr->vertex_count <= INT32_MAX - 1 && csr->edge_count <= (uint64_t)INT32_MAX - csr->vertex_count) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT,
                        "METIS counts in 32 bits: %u vertices and %llu edges exceed %d in total; use k = 1", csr->vertex_count,
                        (unsigned long long)csr->edge_count, INT32_MAX);
}

clv_status clv__metis_graph_make(const clv_allocator *allocator, const clv__csr *csr, clv__metis_graph *graph, clv_error *error) {
  *graph = (clv__metis_graph){0};
  CLV__TRY(check_limits(csr, error));
  size_t n = csr->vertex_count;
  maker m = {.csr = csr};
  uint64_t ends = 0;
  clv_status status = CLV_OK;
  graph->vertex_count = (int32_t)n;
  graph->offsets = clv__allocate(allocator, (n + 1) * sizeof *graph->offsets);
  graph->weights = clv__allocate(allocator, n * sizeof *graph->weights);
  m.cursors = clv__allocate_zero(allocator, (n + 1) * sizeof *m.cursors);
  m.seen = clv__allocate_zero(allocator, n * sizeof *m.seen);
  if (graph->offsets == NULL || graph->weights == NULL || m.cursors == NULL || m.seen == NULL) {
    status = clv__error_memory(error, (n + 1) * (2 * sizeof *graph->offsets + sizeof *m.cursors + sizeof *m.seen));
    goto cleanup;
  }
  ends = count_ends(&m);
  m.neighbours = clv__allocate(allocator, (size_t)ends * sizeof *m.neighbours);
  if (m.neighbours == NULL) {
    status = clv__error_memory(error, (size_t)ends * sizeof *m.neighbours);
    goto cleanup;
  }
  graph->neighbours = m.neighbours;
  place_ends(&m);
  for (size_t v = 0; v < n; ++v) graph->weights[v] = 1 + (int32_t)(csr->offsets[v + 1] - csr->offsets[v]);
  if (!keep_first(&m, graph->offsets)) {
    status =
        clv__error_set(error, CLV_INVALID_ARGUMENT, "METIS counts in 32 bits: both directions of %llu edges exceed %d; use k = 1",
                       (unsigned long long)csr->edge_count, INT32_MAX);
  }
cleanup:
  clv__release(allocator, m.seen);
  clv__release(allocator, m.cursors);
  if (status != CLV_OK) clv__metis_graph_finish(allocator, graph);
  return status;
}

void clv__metis_graph_finish(const clv_allocator *allocator, clv__metis_graph *graph) {
  clv__release(allocator, graph->neighbours);
  clv__release(allocator, graph->weights);
  clv__release(allocator, graph->offsets);
  *graph = (clv__metis_graph){0};
}
