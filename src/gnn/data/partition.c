/* Builds the subgraphs of a membership: each part's owned vertices, its halo, and its rows in local ids. It walks the edges
 * twice: once to find the halos and count, once to fill. The threads share the parts. */
#include "gnn/data/partition.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

typedef struct splitter {
  const clv_allocator *allocator;
  const clv__csr *csr;
  const uint32_t *parts;
  uint32_t k;
  uint64_t *begins; /* [k + 1]: where each part starts in `owned` */
  uint32_t *owned;  /* [n]: vertices by part, ascending in each */
  uint32_t *local;  /* [n]: a vertex's index in its part */
  uint32_t **halos; /* [k]: each part's halo vertices, ascending; allocated */
  clv__subgraph *subgraphs;
} splitter;

/* A thread's data for each vertex. `seen`: the last part that found the vertex in its halo, plus one. `place`: the vertex's
 * local id in the current part. */
typedef struct scratch {
  uint32_t *seen, *place;
} scratch;

static clv_status group_vertices(splitter *s, clv_error *error) {
  uint32_t n = s->csr->vertex_count;
  s->begins = clv__allocate_zero(s->allocator, ((size_t)s->k + 1) * sizeof *s->begins);
  s->owned = clv__allocate(s->allocator, (size_t)n * sizeof *s->owned);
  s->local = clv__allocate(s->allocator, (size_t)n * sizeof *s->local);
  s->halos = clv__allocate_zero(s->allocator, (size_t)s->k * sizeof *s->halos);
  if (s->begins == NULL || s->owned == NULL || s->local == NULL || s->halos == NULL) {
    return clv__error_memory(error, 2 * (size_t)n * sizeof *s->owned + 2 * (size_t)s->k * sizeof *s->begins);
  }
  for (uint32_t v = 0; v < n; ++v) {
    if (s->parts[v] >= s->k) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "vertex %u is in part %u, but there are %u parts", v, s->parts[v], s->k);
    }
    s->local[v] = s->subgraphs[s->parts[v]].owned_count++;
  }
  for (uint32_t p = 0; p < s->k; ++p) s->begins[p + 1] = s->begins[p] + s->subgraphs[p].owned_count;
  for (uint32_t v = 0; v < n; ++v) s->owned[s->begins[s->parts[v]] + s->local[v]] = v;
  return CLV_OK;
}

/* Radix-sorts the ids in O(count) time. `other` is scratch memory for `count` ids. */
static void sort_ids(uint32_t *ids, uint32_t *other, uint32_t count) {
  for (uint32_t shift = 0; shift < 32; shift += DIGIT_BITS) {
    uint32_t starts[DIGITS] = {0}, start = 0, most = 0;
    for (uint32_t i = 0; i < count; ++i) {
      ++starts[ids[i] >> shift & (DIGITS - 1)];
      most |= ids[i] >> shift;
    }
    if (most == 0) break;
    for (uint32_t d = 0; d < DIGITS; ++d) {
      uint32_t here = starts[d];
      starts[d] = start;
      start += here;
    }
    for (uint32_t i = 0; i < count; ++i) other[starts[ids[i] >> shift & (DIGITS - 1)]++] = ids[i];
    memcpy(ids, other, count * sizeof *ids);
  }
}

static int compare_ids(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Finds the halo of part p: the sources of its in-edges that are in other parts. Collects these sources in own->place, which has
 * room for all vertices. */
static clv_status find_halo(splitter *s, uint32_t p, scratch *own) {
  const clv__csr *csr = s->csr;
  clv__subgraph *sub = &s->subgraphs[p];
  uint32_t found = 0;
  for (uint64_t i = s->begins[p]; i < s->begins[p + 1]; ++i) {
    uint32_t v = s->owned[i];
    sub->edge_count += csr->offsets[v + 1] - csr->offsets[v];
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      uint32_t u = csr->sources[e];
      if (s->parts[u] == p) continue;
      ++sub->cut_edge_count;
      if (own->seen[u] == p + 1) continue;
      own->seen[u] = p + 1;
      own->place[found++] = u;
    }
  }
  sub->halo_count = found;
  if (found == 0) return CLV_OK;
  bool is_short = found < 2 * DIGITS; /* for so few ids, a radix sort would cost more than a comparison sort */
  uint32_t *halo = clv__allocate(s->allocator, (is_short ? 1 : 2) * (size_t)found * sizeof *halo);
  if (halo == NULL) return CLV_OUT_OF_MEMORY;
  memcpy(halo, own->place, found * sizeof *halo);
  if (is_short)
    qsort(halo, found, sizeof *halo, compare_ids);
  else
    sort_ids(halo, halo + found, found);
  s->halos[p] = halo;
  return CLV_OK;
}

static void fill(splitter *s, uint32_t p, scratch *own) {
  const clv__csr *csr = s->csr;
  clv__subgraph *sub = &s->subgraphs[p];
  uint32_t *vertices = (uint32_t *)sub->vertices, *sources = (uint32_t *)sub->sources;
  uint64_t *offsets = (uint64_t *)sub->offsets, filled = 0;
  if (sub->owned_count > 0) memcpy(vertices, s->owned + s->begins[p], sub->owned_count * sizeof *vertices);
  if (sub->halo_count > 0) memcpy(vertices + sub->owned_count, s->halos[p], sub->halo_count * sizeof *vertices);
  for (uint32_t h = 0; h < sub->halo_count; ++h) own->place[s->halos[p][h]] = sub->owned_count + h;
  offsets[0] = 0;
  for (uint32_t i = 0; i < sub->owned_count; ++i) {
    uint32_t v = vertices[i];
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      uint32_t u = csr->sources[e];
      sources[filled++] = s->parts[u] == p ? s->local[u] : own->place[u];
    }
    offsets[i + 1] = filled;
  }
}

static bool scratch_init(const splitter *s, scratch *own) {
  size_t size_bytes = (size_t)s->csr->vertex_count * sizeof *own->seen;
  own->seen = clv__allocate_zero(s->allocator, size_bytes);
  own->place = clv__allocate(s->allocator, size_bytes);
  return own->seen != NULL && own->place != NULL;
}

/* Walks all parts once. One thread handles each part. */
static clv_status walk(splitter *s, bool filling, clv_error *error) {
  uint32_t threads = s->csr->edge_count < 1 << 14 ? 1 : clv__edge_threads();
  bool failed = false;
  if (threads > s->k) threads = s->k;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    scratch own = {NULL, NULL};
    bool ready = scratch_init(s, &own);
#pragma omp for schedule(dynamic)
    for (uint32_t p = 0; p < s->k; ++p) {
      bool done = ready;
      if (ready && filling) fill(s, p, &own);
      if (ready && !filling) done = find_halo(s, p, &own) == CLV_OK;
      if (!done) {
#pragma omp atomic write
        failed = true;
      }
    }
    clv__release(s->allocator, own.seen);
    clv__release(s->allocator, own.place);
  }
  return failed ? clv__error_memory(error, 2 * (size_t)s->csr->vertex_count * sizeof(uint32_t)) : CLV_OK;
}

static clv_status allocate_parts(splitter *s, clv__partitioned *made, clv_error *error) {
  for (uint32_t p = 0; p < s->k; ++p) {
    clv__subgraph *sub = &s->subgraphs[p];
    size_t vertices_bytes = ((size_t)sub->owned_count + sub->halo_count) * sizeof *sub->vertices;
    size_t offsets_bytes = ((size_t)sub->owned_count + 1) * sizeof *sub->offsets;
    size_t sources_bytes =
        (size_t)sub->edge_count * sizeof *sub->sources; /* cannot overflow: the graph's own sources fit in memory */
    sub->vertices = clv__arena_allocate_data(&made->arena, vertices_bytes);
    sub->offsets = clv__arena_allocate_data(&made->arena, offsets_bytes);
    sub->sources = clv__arena_allocate_data(&made->arena, sources_bytes);
    if (sub->vertices == NULL || sub->offsets == NULL || sub->sources == NULL) {
      return clv__error_memory(error, vertices_bytes + offsets_bytes + sources_bytes);
    }
    made->communication_volume += sub->halo_count;
  }
  return CLV_OK;
}

/* Handles k = 1: local ids equal global ids, and no edges are copied. */
static clv_status take_whole(splitter *s, clv__partitioned *made, clv_error *error) {
  uint32_t n = s->csr->vertex_count;
  uint32_t *vertices = clv__arena_allocate_data(&made->arena, (size_t)n * sizeof *vertices);
  if (vertices == NULL) return clv__error_memory(error, (size_t)n * sizeof *vertices);
  for (uint32_t v = 0; v < n; ++v) {
    if (s->parts[v] != 0)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "vertex %u is in part %u, but there is 1 part", v, s->parts[v]);
    vertices[v] = v;
  }
  s->subgraphs[0] = (clv__subgraph){.owned_count = n,
                                    .edge_count = s->csr->edge_count,
                                    .vertices = vertices,
                                    .offsets = s->csr->offsets,
                                    .sources = s->csr->sources};
  return CLV_OK;
}

clv_status clv__partitioned_make(const clv_allocator *allocator, const clv__gnn_graph *graph, const clv__membership *membership,
                                 clv__partitioned *partitioned, clv_error *error) {
  clv_status status = CLV_OK;
  *partitioned =
      (clv__partitioned){.k = membership->k, .metis_seconds = membership->metis_seconds, .from_cache = membership->from_cache};
  clv__arena_init(&partitioned->arena, allocator);
  if (membership->vertex_count != graph->csr.vertex_count || membership->k < 1) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the partition has %u vertices in %u parts; expected the graph's %u vertices in at least 1 part",
                          membership->vertex_count, membership->k, graph->csr.vertex_count);
  }
  splitter s = {.allocator = allocator, .csr = &graph->csr, .parts = membership->parts, .k = membership->k};
  s.subgraphs = partitioned->subgraphs =
      clv__arena_allocate_zero(&partitioned->arena, membership->k, sizeof *partitioned->subgraphs);
  if (s.subgraphs == NULL) {
    status = clv__error_memory(error, membership->k * sizeof *partitioned->subgraphs);
    goto cleanup;
  }
  if (s.k == 1) {
    CLV__TRY_GOTO(take_whole(&s, partitioned, error));
    goto cleanup;
  }
  CLV__TRY_GOTO(group_vertices(&s, error));
  CLV__TRY_GOTO(walk(&s, false, error));
  CLV__TRY_GOTO(allocate_parts(&s, partitioned, error));
  CLV__TRY_GOTO(walk(&s, true, error));
cleanup:
  for (uint32_t p = 0; p < s.k && s.halos != NULL; ++p) clv__release(allocator, s.halos[p]);
  clv__release(allocator, s.halos);
  clv__release(allocator, s.local);
  clv__release(allocator, s.owned);
  clv__release(allocator, s.begins);
  if (status != CLV_OK) clv__partitioned_finish(partitioned);
  return status;
}

void clv__partitioned_finish(clv__partitioned *partitioned) {
  clv__arena_finish(&partitioned->arena);
  clv__gnn_graph_destroy(partitioned->graph);
  *partitioned = (clv__partitioned){0};
}
