/* Constructs and destroys graphs: from edges in memory, from rows, and with self loops. Every reader and generator uses these
 * functions. */
#include "gnn/data/graph.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "formats/arrays/npy.h"

/* Several threads hash chunks of the offsets and sources. The chunk hashes are then combined with the counts. */
static void hash_rows(const clv__csr *csr, clv__hash *hash) {
  clv__hash_block blocks[2] = {{.data = csr->offsets, .size_bytes = ((size_t)csr->vertex_count + 1) * sizeof *csr->offsets},
                               {.data = csr->sources, .size_bytes = (size_t)csr->edge_count * sizeof *csr->sources}};
  clv__hasher hasher;
  clv__hash_blocks(blocks, 2);
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, "graph by destination");
  clv__hasher_u64(&hasher, csr->vertex_count);
  clv__hasher_u64(&hasher, csr->edge_count);
  for (size_t i = 0; i < 2; ++i) clv__hasher_update(&hasher, blocks[i].hash.bytes, CLV__HASH_BYTES);
  clv__hasher_finish(&hasher, hash);
}

clv_status clv__gnn_graph_wrap(const clv_allocator *allocator, clv__csr *csr, clv_tensor *features, clv_tensor *labels,
                               clv__gnn_graph **out, clv_error *error) {
  *out = NULL;
  clv__gnn_graph *graph = clv__allocate_zero(allocator, sizeof *graph);
  if (graph == NULL) {
    clv__csr_finish(allocator, csr);
    if (features != NULL) clv__release(allocator, features->data);
    if (labels != NULL) clv__release(allocator, labels->data);
    return clv__error_memory(error, sizeof *graph);
  }
  graph->allocator = allocator;
  graph->csr = *csr;
  if (features != NULL) graph->features = *features;
  if (labels != NULL) graph->labels = *labels;
  hash_rows(&graph->csr, &graph->hash);
  *csr = (clv__csr){0};
  *out = graph;
  return CLV_OK;
}

void clv__gnn_graph_destroy(clv__gnn_graph *graph) {
  if (graph == NULL) return;
  const clv_allocator *allocator = graph->allocator;
  clv__csr_finish(allocator, &graph->csr);
  if (!graph->borrows_features) clv__release(allocator, graph->features.data);
  if (!graph->borrows_labels) clv__release(allocator, graph->labels.data);
  clv__release(allocator, graph);
}

static bool are_features(const clv__gnn_graph *graph, const clv_tensor *tensor) {
  const unsigned allowed = CLV__DTYPES_NUMBER | CLV__DTYPE_BIT(CLV_BOOL);
  return (allowed & CLV__DTYPE_BIT(tensor->dtype)) != 0 && tensor->rank == 2 && tensor->dims[0] == graph->csr.vertex_count &&
         tensor->dims[1] >= 0;
}

static clv_status wrong_features(const clv__gnn_graph *graph, const clv_tensor *tensor, clv_status status, clv_error *error) {
  char type[160];
  clv__tensor_text(tensor, type, sizeof type);
  return clv__error_set(error, status, "it is %s; expected numbers [%u, F], one row per vertex", type, graph->csr.vertex_count);
}

/* Returns the index of the first number that is not finite in f32, or `count`. Writes the others to `to` unless it is NULL. */
static size_t first_infinite(const clv_tensor *from, size_t count, float *to) {
  const float *numbers = from->dtype == CLV_F32 ? from->data : NULL;
  for (size_t i = 0; i < count; ++i) {
    float number = numbers != NULL ? numbers[i] : (float)clv__tensor_get(from, i);
    if (!isfinite(number)) return i;
    if (to != NULL) to[i] = number;
  }
  return count;
}

static clv_status take_features(clv__gnn_graph *graph, const clv_tensor *given, bool borrows, clv_status wrong,
                                clv_error *error) {
  clv_tensor features = *given;
  size_t count, size_bytes;
  if (!are_features(graph, given)) return wrong_features(graph, given, wrong, error);
  features.dtype = CLV_F32;
  if (!clv__tensor_count(&features, &count) || !clv__tensor_size_bytes(&features, &size_bytes))
    return clv__error_memory(error, SIZE_MAX);
  if (count > 0 && given->data == NULL) return clv__error_set(error, wrong, "the features have no data");
  if (!borrows) features.data = clv__allocate(graph->allocator, size_bytes);
  if (!borrows && features.data == NULL) return clv__error_memory(error, size_bytes);
  size_t bad = first_infinite(given, count, borrows ? NULL : features.data);
  if (bad < count) {
    if (!borrows) clv__release(graph->allocator, features.data);
    size_t columns = (size_t)given->dims[1];
    return clv__error_set(error, wrong, "vertex %zu: feature %zu is %g, but must be finite in f32", bad / columns, bad % columns,
                          clv__tensor_get(given, bad));
  }
  if (!graph->borrows_features) clv__release(graph->allocator, graph->features.data);
  graph->features = features;
  graph->borrows_features = borrows;
  return CLV_OK;
}

clv_status clv__gnn_graph_set_features(clv__gnn_graph *graph, const clv_tensor *features, bool borrows, clv_error *error) {
  if (borrows && (features->dtype != CLV_F32 || (uintptr_t)features->data % _Alignof(float) != 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "features of dtype %s%s cannot be borrowed, only aligned f32: pass CLV_COPY to convert them",
                          clv_dtype_name(features->dtype), features->dtype == CLV_F32 ? " at an odd address" : "");
  clv_status status = take_features(graph, features, borrows, CLV_INVALID_ARGUMENT, error);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "features");
}

clv_status clv__gnn_graph_read_features(clv__gnn_graph *graph, const char *path, clv_error *error) {
  clv_tensor read;
  CLV__TRY(clv__npy_read(graph->allocator, path, &read, error));
  clv_status status = take_features(graph, &read, false, CLV_INVALID_MODEL, error);
  clv__release(graph->allocator, read.data);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", path);
}

/* ---- From edges in memory ---- */

typedef struct given {
  clv__edge_source source; /* must be first: csr.c passes a pointer to this member, which is cast to the whole struct */
  const uint32_t *sources, *destinations;
  uint64_t edge_count, at;
} given;

static clv_status rewind_given(clv__edge_source *source, clv_error *error) {
  (void)error;
  ((given *)source)->at = 0;
  return CLV_OK;
}

static clv_status next_given(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                             clv_error *error) {
  given *g = (given *)source;
  uint64_t left = g->edge_count - g->at;
  *count = left < room ? (size_t)left : room;
  for (size_t e = 0; e < *count; ++e) {
    uint32_t u = g->sources[g->at + e], v = g->destinations[g->at + e];
    if (u >= g->source.vertex_count || v >= g->source.vertex_count) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "edge %llu goes from %u to %u, but there are %llu vertices",
                            (unsigned long long)(g->at + e), u, v, (unsigned long long)g->source.vertex_count);
    }
    sources[e] = u;
    destinations[e] = v;
  }
  g->at += *count;
  return CLV_OK;
}

/* Returns a tensor with its own copy of the data. */
static clv_status copy_tensor(const clv_allocator *allocator, const clv_tensor *from, clv_tensor *to, clv_error *error) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(from, &size_bytes))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the size of the features or labels is unknown or too large");
  *to = *from;
  to->data = clv__allocate(allocator, size_bytes);
  if (to->data == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(to->data, from->data, size_bytes);
  return CLV_OK;
}

static clv_status check_attached(const char *what, const clv_tensor *tensor, clv_dtype dtype, int32_t rank, uint32_t vertex_count,
                                 clv_error *error) {
  if (tensor->dtype == dtype && tensor->rank == rank && tensor->dims[0] == vertex_count) return CLV_OK;
  char type[160];
  clv__tensor_text(tensor, type, sizeof type);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s are %s; expected %s[%u%s]", what, type, clv_dtype_name(dtype),
                        vertex_count, rank == 2 ? ",F" : "");
}

clv_status clv__gnn_graph_make(const clv_allocator *allocator, uint32_t vertex_count, uint64_t edge_count,
                               const uint32_t *sources, const uint32_t *destinations, const clv_tensor *features,
                               const clv_tensor *labels, clv__gnn_graph **graph, clv_error *error) {
  given g = {{vertex_count, edge_count, rewind_given, next_given}, sources, destinations, edge_count, 0};
  clv_tensor own_features = {0}, own_labels = {0};
  clv__csr csr = {0};
  clv_status status = CLV_OK;
  *graph = NULL;
  if (features != NULL) {
    CLV__TRY(check_attached("features", features, CLV_F32, 2, vertex_count, error));
    CLV__TRY_GOTO(copy_tensor(allocator, features, &own_features, error));
  }
  if (labels != NULL) {
    CLV__TRY_GOTO(check_attached("labels", labels, CLV_I64, 1, vertex_count, error));
    CLV__TRY_GOTO(copy_tensor(allocator, labels, &own_labels, error));
  }
  CLV__TRY_GOTO(clv__csr_build(allocator, &g.source, &csr, error));
  return clv__gnn_graph_wrap(allocator, &csr, &own_features, &own_labels, graph, error);
cleanup:
  clv__release(allocator, own_labels.data);
  clv__release(allocator, own_features.data);
  return status;
}

/* ---- Self loops ---- */

/* Counts the edges of row v except self loops. Copies their sources to `to` unless it is NULL. */
static uint64_t other_sources(const clv__csr *csr, uint32_t v, uint32_t *to) {
  uint64_t count = 0;
  for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
    if (csr->sources[e] == v) continue;
    if (to != NULL) to[count] = csr->sources[e];
    ++count;
  }
  return count;
}

clv_status clv__gnn_graph_with_loops(const clv__gnn_graph *graph, clv__gnn_graph **looped, clv_error *error) {
  const clv_allocator *allocator = graph->allocator;
  const clv__csr *from = &graph->csr;
  size_t offsets_bytes = ((size_t)from->vertex_count + 1) * sizeof(uint64_t), sources_bytes;
  *looped = NULL;
  uint64_t *offsets = clv__allocate(allocator, offsets_bytes);
  if (offsets == NULL) return clv__error_memory(error, offsets_bytes);
  int64_t row_count = from->vertex_count;
#pragma omp parallel for num_threads(clv__threads_available()) schedule(dynamic, 4096)
  for (int64_t v = 0; v < row_count; ++v) offsets[v + 1] = other_sources(from, (uint32_t)v, NULL) + 1;
  offsets[0] = 0;
  for (int64_t v = 0; v < row_count; ++v) offsets[v + 1] += offsets[v];
  clv__csr csr = {from->vertex_count, offsets[row_count], offsets, NULL};
  uint32_t *sources =
      clv__multiply((size_t)csr.edge_count, sizeof *sources, &sources_bytes) ? clv__allocate(allocator, sources_bytes) : NULL;
  if (sources == NULL) {
    clv__release(allocator, offsets);
    return clv__error_memory(error, (size_t)csr.edge_count * sizeof *sources);
  }
  csr.sources = sources;
#pragma omp parallel for num_threads(clv__threads_available()) schedule(dynamic, 4096)
  for (int64_t v = 0; v < row_count; ++v) {
    sources[offsets[v] + other_sources(from, (uint32_t)v, sources + offsets[v])] = (uint32_t)v;
  }
  CLV__TRY(clv__gnn_graph_wrap(allocator, &csr, NULL, NULL, looped, error));
  (*looped)->features = graph->features;
  (*looped)->labels = graph->labels;
  (*looped)->borrows_features = (*looped)->borrows_labels = true;
  return CLV_OK;
}
