/* Reads a graph as 'cleave gnn' would: npz if it begins like one, anything else both as a METIS file and as a list of edges.
 * Checks the invariants of the graph that was read. */
#ifndef CLEAVE_FUZZ_TARGET_GNN_GRAPH_H
#define CLEAVE_FUZZ_TARGET_GNN_GRAPH_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gnn/data/figures.h"
#include "gnn/data/partition.h"
#include "gnn/data/readers.h"

static inline void fuzz_gnn_check(const clv__gnn_graph *graph) {
  const clv__csr *csr = &graph->csr;
  if (csr->offsets[0] != 0 || csr->offsets[csr->vertex_count] != csr->edge_count) abort();
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    if (csr->offsets[v] > csr->offsets[v + 1]) abort();
  }
  for (uint64_t e = 0; e < csr->edge_count; ++e) {
    if (csr->sources[e] >= csr->vertex_count) abort();
  }
  if (graph->features.dtype == CLV_DTYPE_NONE) return;
  if (graph->features.dims[0] != csr->vertex_count) abort();
  size_t count;
  if (!clv__tensor_count(&graph->features, &count)) abort();
  for (size_t i = 0; i < count; ++i) {
    if (!isfinite(((const float *)graph->features.data)[i])) abort();
  }
}

static inline clv_status fuzz_gnn_graph_status(const char *name, const uint8_t *data, size_t size_bytes, clv_error *error) {
  const clv_allocator *allocator = clv__allocator_default();
  clv__gnn_graph *graph, *looped;
  clv__graph_figures figures;
  clv_status status = clv__gnn_graph_read_memory(allocator, name, data, size_bytes, &graph, error);
  if (status != CLV_OK) {
    if (graph != NULL || error->message[0] == '\0') abort();
    return status;
  }
  fuzz_gnn_check(graph);
  if (graph->csr.vertex_count < 1000) {
    if (clv__gnn_graph_with_loops(graph, &looped, error) == CLV_OK) {
      fuzz_gnn_check(looped);
      if (clv__graph_figures_make(allocator, &looped->csr, &figures, error) != CLV_OK || figures.sourceless != 0) abort();
      clv__gnn_graph_destroy(looped);
    }
  }
  clv__gnn_graph_destroy(graph);
  return CLV_OK;
}

/* Reads a list of parts, for a graph with one vertex per line. Every vertex must have a part, and every part a vertex. */
static inline void fuzz_gnn_parts(const char *name, const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  uint8_t has[1000] = {0};
  clv__membership membership;
  clv_error error = {0};
  uint32_t lines = 0;
  for (size_t i = 0; i < size_bytes && lines < sizeof has; ++i) lines += data[i] == '\n';
  if (clv__membership_read_memory(allocator, name, data, size_bytes, lines, &membership, &error) != CLV_OK) {
    if (membership.parts != NULL || error.message[0] == '\0') abort();
    return;
  }
  for (uint32_t v = 0; v < lines; ++v) {
    if (membership.parts[v] >= membership.k) abort();
    has[membership.parts[v]] = 1;
  }
  for (uint32_t p = 0; p < membership.k && lines > 0; ++p) {
    if (has[p] == 0) abort();
  }
  clv__membership_finish(allocator, &membership);
}

static inline void fuzz_gnn_graph(const uint8_t *data, size_t size_bytes) {
  static const uint8_t none;
  clv_error error = {0};
  if (data == NULL) data = &none; /* `data` is NULL if the input is empty: tests an empty file */
  (void)fuzz_gnn_graph_status("fuzz.graph", data, size_bytes, &error);
  error = (clv_error){0};
  (void)fuzz_gnn_graph_status("fuzz.txt", data, size_bytes, &error);
  fuzz_gnn_parts("fuzz.parts", data, size_bytes);
  fuzz_gnn_parts("fuzz.part.3", data, size_bytes);
}

#endif
