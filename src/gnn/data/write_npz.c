/* Writes graphs as npz: `edge_index` (i64, as Python's libraries expect), `num_nodes`, and `x` and `y` if present. Edges are
 * written row by row, so that reading them restores the same rows. */
#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "formats/arrays/npz.h"
#include "gnn/data/graph.h"

enum { BATCH = 1 << 16 };

static clv_status write_sources(clv__npz_writer *writer, const clv__csr *csr, int64_t *batch, clv_error *error) {
  for (uint64_t e = 0; e < csr->edge_count;) {
    size_t some = csr->edge_count - e < BATCH ? (size_t)(csr->edge_count - e) : BATCH;
    for (size_t i = 0; i < some; ++i) batch[i] = csr->sources[e + i];
    CLV__TRY(clv__npz_writer_append(writer, batch, some * sizeof *batch, error));
    e += some;
  }
  return CLV_OK;
}

static clv_status write_destinations(clv__npz_writer *writer, const clv__csr *csr, int64_t *batch, clv_error *error) {
  size_t filled = 0;
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      batch[filled++] = v;
      if (filled < BATCH) continue;
      CLV__TRY(clv__npz_writer_append(writer, batch, filled * sizeof *batch, error));
      filled = 0;
    }
  }
  return clv__npz_writer_append(writer, batch, filled * sizeof *batch, error);
}

static clv_status write_graph(clv__npz_writer *writer, const clv__gnn_graph *graph, int64_t *batch, clv_error *error) {
  const int64_t dims[] = {2, (int64_t)graph->csr.edge_count};
  clv_tensor edges = clv__tensor_make(CLV_I64, 2, dims, NULL);
  int64_t vertex_count = graph->csr.vertex_count;
  clv_tensor count = clv__tensor_make(CLV_I64, 0, NULL, &vertex_count);
  CLV__TRY(clv__npz_writer_put(writer, "num_nodes", &count, error));
  CLV__TRY(clv__npz_writer_begin(writer, "edge_index", &edges, error));
  CLV__TRY(write_sources(writer, &graph->csr, batch, error));
  CLV__TRY(write_destinations(writer, &graph->csr, batch, error));
  CLV__TRY(clv__npz_writer_end(writer, error));
  if (graph->features.dtype != CLV_DTYPE_NONE) CLV__TRY(clv__npz_writer_put(writer, "x", &graph->features, error));
  if (graph->labels.dtype != CLV_DTYPE_NONE) CLV__TRY(clv__npz_writer_put(writer, "y", &graph->labels, error));
  return CLV_OK;
}

clv_status clv__gnn_graph_write(const clv__gnn_graph *graph, const char *path, clv_error *error) {
  clv__npz_writer *writer;
  int64_t *batch = clv__allocate(graph->allocator, BATCH * sizeof *batch);
  if (batch == NULL) return clv__error_memory(error, BATCH * sizeof *batch);
  clv_status status = clv__npz_writer_open(graph->allocator, path, false, &writer, error);
  if (status == CLV_OK) status = write_graph(writer, graph, batch, error);
  if (status == CLV_OK) status = clv__npz_writer_commit(writer, error);
  clv__npz_writer_close(writer);
  clv__release(graph->allocator, batch);
  return status;
}
