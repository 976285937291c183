/* See figures.h. */
#include "gnn/data/figures.h"

#include "base/error.h"
#include "base/memory.h"

static void widen(clv__range *range, uint64_t number, bool is_first) {
  if (is_first || number < range->least) range->least = number;
  if (is_first || number > range->most) range->most = number;
}

clv_status clv__graph_figures_make(const clv_allocator *allocator, const clv__csr *csr, clv__graph_figures *figures,
                                   clv_error *error) {
  size_t n = csr->vertex_count;
  *figures = (clv__graph_figures){.rows_bytes = (n + 1) * sizeof *csr->offsets + csr->edge_count * sizeof *csr->sources};
  /* Per vertex: the last row that had it as a source, plus one; 0: none. */
  uint32_t *seen = clv__allocate_zero(allocator, n * sizeof *seen);
  uint64_t *out = clv__allocate_zero(allocator, n * sizeof *out);
  bool *joined = clv__allocate_zero(allocator, n * sizeof *joined);
  clv_status status = CLV_OK;
  if (seen == NULL || out == NULL || joined == NULL) {
    status = clv__error_memory(error, n * (sizeof *seen + sizeof *out + sizeof *joined));
    goto cleanup;
  }
  for (uint32_t v = 0; v < n; ++v) {
    uint64_t begin = csr->offsets[v], end = csr->offsets[v + 1];
    widen(&figures->in_degree, end - begin, v == 0);
    figures->sourceless += begin == end;
    for (uint64_t e = begin; e < end; ++e) {
      uint32_t u = csr->sources[e];
      ++out[u];
      figures->loops += u == v;
      figures->repeated += seen[u] == v + 1;
      seen[u] = v + 1;
      if (u != v) joined[u] = joined[v] = true;
    }
  }
  for (uint32_t v = 0; v < n; ++v) {
    widen(&figures->out_degree, out[v], v == 0);
    figures->isolated += !joined[v];
  }
cleanup:
  clv__release(allocator, joined);
  clv__release(allocator, out);
  clv__release(allocator, seen);
  return status;
}

void clv__cut_figures_make(const clv__partitioned *partitioned, clv__cut_figures *figures) {
  *figures = (clv__cut_figures){.communication_volume = partitioned->communication_volume};
  for (uint32_t p = 0; p < partitioned->k; ++p) {
    const clv__subgraph *sub = &partitioned->subgraphs[p];
    widen(&figures->owned, sub->owned_count, p == 0);
    widen(&figures->halo, sub->halo_count, p == 0);
    widen(&figures->in_edges, sub->edge_count, p == 0);
    figures->cut_edges += sub->cut_edge_count;
    figures->empty += sub->owned_count == 0;
  }
}
