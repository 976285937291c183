/* Graphs and parts for programs: see cleave/gnn.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "device/device.h"
#include "gnn/api/handles.h"

clv_status clv__argument_check(const void *argument, const char *name, clv_error *error) {
  return argument != NULL ? CLV_OK : clv__error_set(error, CLV_INVALID_ARGUMENT, "%s must not be NULL", name);
}

clv_gnn_graph *clv__gnn_graph_use(const clv_gnn_graph *graph) {
  clv_gnn_graph *used = (clv_gnn_graph *)(uintptr_t)graph;
  atomic_fetch_add(&used->users, 1);
  return used;
}

void clv__gnn_graph_unuse(clv_gnn_graph *graph) {
  if (graph != NULL) atomic_fetch_sub(&graph->users, 1);
}

/* Makes the handle of `made`, and takes ownership of it, also on failure. */
static clv_status give_graph(clv_context *context, clv__gnn_graph *made, const char *name, uint64_t begin_ns, clv_gnn_graph **out,
                             clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(context);
  size_t size_bytes = strlen(name) + 1;
  clv_gnn_graph *graph = clv__allocate_zero(allocator, sizeof *graph);
  if (graph != NULL) graph->name = clv__allocate(allocator, size_bytes);
  if (graph == NULL || graph->name == NULL) {
    clv__release(allocator, graph);
    clv__gnn_graph_destroy(made);
    return clv__error_memory(error, sizeof *graph + size_bytes);
  }
  memcpy(graph->name, name, size_bytes);
  graph->context = context;
  graph->graph = made;
  clv__hash_text(&made->hash, graph->hash);
  graph->load_ns = (double)(clv__clock_ns() - begin_ns);
  *out = graph;
  return CLV_OK;
}

/* ---- From arrays ---- */

static clv_status check_arrays(const clv_gnn_arrays *a, uint64_t *vertex_count, clv_error *error) {
  *vertex_count = a->vertex_count != 0 ? a->vertex_count : CLV__VERTICES_UNKNOWN;
  if (a->vertex_count == 0 && a->features != NULL && a->features->rank == 2 && a->features->dims[0] >= 0)
    *vertex_count = (uint64_t)a->features->dims[0];
  if (*vertex_count != CLV__VERTICES_UNKNOWN && *vertex_count > CLV__MOST_VERTICES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%" PRIu64 " vertices; at most %" PRIu64 " are possible", *vertex_count,
                          CLV__MOST_VERTICES);
  if (a->edge_count > 0) CLV__TRY(clv__argument_check(a->sources, "sources", error));
  if (a->edge_count > SIZE_MAX / sizeof(int64_t) / 2)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%" PRIu64 " edges do not fit the memory of any machine", a->edge_count);
  if (a->offsets != NULL && a->destinations != NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "give either destinations or offsets, not both");
  if (a->offsets == NULL && a->destinations == NULL && a->edge_count > 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "give destinations or offsets: both are NULL");
  if (a->offsets != NULL && *vertex_count == CLV__VERTICES_UNKNOWN)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "offsets need vertex_count: it is 0");
  return CLV_OK;
}

static clv_status copy_labels(clv__gnn_graph *graph, const clv_tensor *labels, clv_error *error) {
  char type[160];
  clv__tensor_text(labels, type, sizeof type);
  if (labels->dtype != CLV_I64 || labels->rank != 1 || labels->dims[0] != graph->csr.vertex_count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "labels are %s; expected i64[%u], one per vertex", type,
                          graph->csr.vertex_count);
  size_t size_bytes = (size_t)graph->csr.vertex_count * sizeof(int64_t);
  if (size_bytes > 0) CLV__TRY(clv__argument_check(labels->data, "the data of the labels", error));
  void *data = clv__allocate(graph->allocator, size_bytes);
  if (data == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(data, labels->data, size_bytes);
  graph->labels = *labels;
  graph->labels.data = data;
  return CLV_OK;
}

static clv_status make_graph(const clv_allocator *allocator, const clv_gnn_arrays *a, clv__gnn_graph **made, clv_error *error) {
  uint64_t vertex_count;
  clv__csr csr;
  *made = NULL;
  CLV__TRY(check_arrays(a, &vertex_count, error));
  if (a->offsets != NULL)
    CLV__TRY(clv__csr_from_rows(allocator, vertex_count, a->edge_count, a->offsets, a->sources, &csr, error));
  else
    CLV__TRY(clv__csr_from_pairs(allocator, vertex_count, a->edge_count, a->sources, a->destinations, &csr, error));
  CLV__TRY(clv__gnn_graph_wrap(allocator, &csr, NULL, NULL, made, error));
  clv_status status = CLV_OK;
  if (a->features != NULL) status = clv__gnn_graph_set_features(*made, a->features, a->features_ownership == CLV_BORROW, error);
  if (status == CLV_OK && a->labels != NULL) status = copy_labels(*made, a->labels, error);
  if (status == CLV_OK) return CLV_OK;
  clv__gnn_graph_destroy(*made);
  *made = NULL;
  return status;
}

clv_status clv_gnn_graph_make(clv_context *context, const clv_gnn_arrays *arrays, clv_gnn_graph **graph, clv_error *error) {
  clv_gnn_arrays a = CLV_GNN_ARRAYS_INIT;
  clv__gnn_graph *made;
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(clv__argument_check(graph, "graph", error));
  *graph = NULL;
  CLV__TRY(clv__argument_check(context, "context", error));
  CLV__TRY(clv__argument_check(arrays, "arrays", error));
  CLV__TRY(clv__options_read(&a, sizeof a, arrays, "CLV_GNN_ARRAYS_INIT", error));
  const char *name = a.name != NULL ? a.name : "graph";
  clv_status status = make_graph(clv__context_allocator(context), &a, &made, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", name);
  return give_graph(context, made, name, begin_ns, graph, error);
}

/* ---- From files, and generated ---- */

clv_status clv_gnn_graph_read(clv_context *context, const char *path, clv_gnn_graph **graph, clv_error *error) {
  clv__gnn_graph *made;
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(clv__argument_check(graph, "graph", error));
  *graph = NULL;
  CLV__TRY(clv__argument_check(context, "context", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  CLV__TRY(clv__gnn_graph_read(clv__context_allocator(context), path, &made, error));
  return give_graph(context, made, path, begin_ns, graph, error);
}

clv_status clv_gnn_graph_generate(clv_context *context, const clv_gnn_generate_options *options, clv_gnn_graph **graph,
                                  clv_error *error) {
  clv_gnn_generate_options how = CLV_GNN_GENERATE_OPTIONS_INIT;
  clv__gnn_graph *made;
  char name[80];
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(clv__argument_check(graph, "graph", error));
  *graph = NULL;
  CLV__TRY(clv__argument_check(context, "context", error));
  CLV__TRY(clv__options_read(&how, sizeof how, options, "CLV_GNN_GENERATE_OPTIONS_INIT", error));
  CLV__TRY(clv__gnn_graph_generate(clv__context_allocator(context), how.scale, how.edges_per_vertex, how.feature_count, how.seed,
                                   &made, error));
  snprintf(name, sizeof name, "R-MAT graph %u x %u, seed %" PRIu64, how.scale, how.edges_per_vertex, how.seed);
  return give_graph(context, made, name, begin_ns, graph, error);
}

clv_status clv_gnn_graph_write(const clv_gnn_graph *graph, const char *path, clv_error *error) {
  CLV__TRY(clv__argument_check(graph, "graph", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  return clv__gnn_graph_write(graph->graph, path, error);
}

/* ---- Features ---- */

static clv_status check_unused(const clv_gnn_graph *graph, clv_error *error) {
  CLV__TRY(clv__argument_check(graph, "graph", error));
  if (atomic_load(&graph->users) == 0) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT,
                        "%s: the features cannot change while plans or runs of the graph exist: destroy them first, or pass the "
                        "features to the execution of the run",
                        graph->name);
}

clv_status clv_gnn_graph_set_features(clv_gnn_graph *graph, const clv_tensor *features, clv_ownership ownership,
                                      clv_error *error) {
  CLV__TRY(check_unused(graph, error));
  CLV__TRY(clv__argument_check(features, "features", error));
  clv_status status = clv__gnn_graph_set_features(graph->graph, features, ownership == CLV_BORROW, error);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", graph->name);
}

clv_status clv_gnn_graph_read_features(clv_gnn_graph *graph, const char *path, clv_error *error) {
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(check_unused(graph, error));
  CLV__TRY(clv__argument_check(path, "path", error));
  CLV__TRY(clv__gnn_graph_read_features(graph->graph, path, error));
  graph->load_ns += (double)(clv__clock_ns() - begin_ns);
  return CLV_OK;
}

clv_status clv_gnn_graph_draw_features(clv_gnn_graph *graph, uint32_t count, uint64_t seed, clv_error *error) {
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(check_unused(graph, error));
  CLV__TRY(clv__gnn_graph_draw_features(graph->graph, count, seed, error));
  graph->load_ns += (double)(clv__clock_ns() - begin_ns);
  return CLV_OK;
}

/* ---- Reading, destroying ---- */

void clv_gnn_graph_get_info(const clv_gnn_graph *graph, clv_gnn_graph_info *info) {
  const clv__gnn_graph *g = graph->graph;
  const clv_gnn_graph_info filled = {
      .vertex_count = g->csr.vertex_count,
      .edge_count = g->csr.edge_count,
      .feature_count = g->features.dtype != CLV_DTYPE_NONE ? (uint64_t)g->features.dims[1] : 0,
      .name = graph->name,
      .hash = graph->hash,
      .offsets = g->csr.offsets,
      .sources = g->csr.sources,
      .features = g->features,
      .labels = g->labels,
  };
  clv__info_fill(info, &filled, sizeof filled);
}

void clv_gnn_graph_destroy(clv_gnn_graph *graph) {
  if (graph == NULL) return;
  const clv_allocator *allocator = clv__context_allocator(graph->context);
  clv__gnn_graph_destroy(graph->graph);
  clv__release(allocator, graph->name);
  clv__release(allocator, graph);
}
