/* Generates R-MAT graphs. Each edge descends through the adjacency matrix, one quadrant per level. The seed and the edge's
 * position determine every random number. Any number of threads can therefore generate the edges twice instead of keeping
 * them. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gnn/data/graph.h"

enum { MOST_SCALE = 31, SCRAMBLE_ROUNDS = 4 };

/* The quadrants a, b, c and d have the probabilities 0.57, 0.19, 0.19 and 0.05. These are the sums at which b, c and d begin,
 * scaled by 2^32. */
static const uint32_t to_b = 2448131359u, to_c = 3264175145u, to_d = 4080218931u;

typedef struct generator {
  clv__edge_source source; /* must be first: csr.c passes a pointer to this member, which is cast to the whole struct */
  uint32_t scale;
  uint64_t edge_count, at, key;
  uint32_t scramble[SCRAMBLE_ROUNDS][2]; /* per round: an odd factor and an offset */
} generator;

/* Permutes the ids, because R-MAT's low ids are its hubs. Each round is invertible modulo 2^scale. */
static uint32_t scrambled(const generator *g, uint32_t id) {
  uint32_t mask = (uint32_t)(((uint64_t)1 << g->scale) - 1), shift = g->scale / 2 + 1;
  for (uint32_t r = 0; r < SCRAMBLE_ROUNDS; ++r) {
    id = (id * g->scramble[r][0] + g->scramble[r][1]) & mask;
    if (shift < g->scale) id ^= id >> shift;
  }
  return id;
}

static void make_edge(const generator *g, uint64_t edge, uint32_t *u, uint32_t *v) {
  uint64_t state = clv__mix64(g->key ^ edge * 0xd1342543de82ef95u), bits = 0;
  uint32_t row = 0, column = 0;
  for (uint32_t level = 0; level < g->scale; ++level) {
    if ((level & 1) == 0) bits = clv__mix64(state += 0x9e3779b97f4a7c15u);
    uint32_t draw = (uint32_t)(bits >> ((level & 1) * 32));
    row = row << 1 | (draw >= to_c);
    column = column << 1 | ((draw >= to_b && draw < to_c) || draw >= to_d);
  }
  *u = scrambled(g, row);
  *v = scrambled(g, column);
}

static clv_status rewind_edges(clv__edge_source *source, clv_error *error) {
  (void)error;
  ((generator *)source)->at = 0;
  return CLV_OK;
}

static clv_status next_edges(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                             clv_error *error) {
  generator *g = (generator *)source;
  uint64_t left = g->edge_count - g->at;
  (void)error;
  *count = left < room ? (size_t)left : room;
#pragma omp parallel for num_threads(clv__threads_available()) if (*count > 1 << 12) schedule(static)
  for (size_t e = 0; e < *count; ++e) make_edge(g, g->at + e, &sources[e], &destinations[e]);
  g->at += *count;
  return CLV_OK;
}

static clv_status make_features(const clv_allocator *allocator, uint32_t vertex_count, uint32_t feature_count, uint64_t key,
                                clv_tensor *features, clv_error *error) {
  const int64_t dims[] = {vertex_count, feature_count};
  clv_tensor made = clv__tensor_make(CLV_F32, 2, dims, NULL);
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&made, &size_bytes)) size_bytes = SIZE_MAX;
  float *data = clv__allocate(allocator, size_bytes);
  if (data == NULL) return clv__error_memory(error, size_bytes);
  size_t count = size_bytes / sizeof *data;
#pragma omp parallel for num_threads(clv__threads_available()) if (count > 1 << 14) schedule(static)
  for (size_t i = 0; i < count; ++i) { /* random numbers of 24 bits, which f32 represents exactly */
    data[i] = (float)(int32_t)(clv__mix64(key + i) >> 40) / 8388608.0f - 1.0f;
  }
  made.data = data;
  *features = made;
  return CLV_OK;
}

clv_status clv__gnn_graph_draw_features(clv__gnn_graph *graph, uint32_t count, uint64_t seed, clv_error *error) {
  clv_tensor drawn;
  /* The key of clv__gnn_graph_generate(), so that equal seeds give equal features. */
  const uint64_t key = clv__mix64(~clv__mix64(seed));
  CLV__TRY(make_features(graph->allocator, graph->csr.vertex_count, count, key, &drawn, error));
  if (!graph->borrows_features) clv__release(graph->allocator, graph->features.data);
  graph->features = drawn;
  graph->borrows_features = false;
  return CLV_OK;
}

clv_status clv__gnn_graph_generate(const clv_allocator *allocator, uint32_t scale, uint32_t edges_per_vertex,
                                   uint32_t feature_count, uint64_t seed, clv__gnn_graph **graph, clv_error *error) {
  *graph = NULL;
  if (scale > MOST_SCALE) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "scale %u is above the maximum of %d (2^%d vertices)", scale, MOST_SCALE,
                          MOST_SCALE);
  }
  uint64_t vertex_count = (uint64_t)1 << scale, key = clv__mix64(seed);
  generator g = {.source = {vertex_count, 0, rewind_edges, next_edges}, .scale = scale, .key = key};
  g.edge_count = vertex_count * edges_per_vertex;
  for (uint32_t r = 0; r < SCRAMBLE_ROUNDS; ++r) {
    uint64_t drawn = clv__mix64(key ^ (0xabcd + r));
    g.scramble[r][0] = (uint32_t)drawn | 1;
    g.scramble[r][1] = (uint32_t)(drawn >> 32);
  }
  clv__csr csr;
  clv_tensor features = {0};
  CLV__TRY(clv__csr_build(allocator, &g.source, &csr, error));
  if (feature_count > 0) {
    clv_status status = make_features(allocator, (uint32_t)vertex_count, feature_count, clv__mix64(~key), &features, error);
    if (status != CLV_OK) {
      clv__csr_finish(allocator, &csr);
      return status;
    }
  }
  return clv__gnn_graph_wrap(allocator, &csr, &features, NULL, graph, error);
}
