/* See portion.h. */
#include "gnn/plan/portion.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

uint32_t clv__subgraph_vertex_at(const clv__subgraph *subgraph, double share) {
  uint32_t low = 0, high = subgraph->owned_count;
  if (share <= 0) return 0;
  if (share >= 1) return high;
  if (subgraph->edge_count == 0) return (uint32_t)llround(share * high);
  double wanted = share * (double)subgraph->edge_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if ((double)subgraph->offsets[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Numbers the vertices that the portion needs: first its targets, then the other sources of their in-edges. Sets places[u] to the
 * number of the subgraph's vertex u in the portion, or to CLV__NO_ID if the portion does not need u. */
static clv_status number_rows(clv__arena *arena, clv__portion *portion, uint32_t *places, clv_error *error) {
  const clv__subgraph *sub = portion->subgraph;
  uint32_t count = sub->owned_count + sub->halo_count, used = portion->to - portion->from;
  const uint32_t *sources = sub->sources + portion->first_edge;
  memset(places, 0xff, (size_t)count * sizeof *places);
  for (uint64_t e = 0; e < portion->sizes.edges; ++e) places[sources[e]] = 0;
  for (uint32_t u = 0; u < count; ++u) {
    if (u >= portion->from && u < portion->to)
      places[u] = u - portion->from;
    else if (places[u] != CLV__NO_ID)
      places[u] = used++;
  }
  uint32_t *rows = clv__arena_allocate_zero(arena, used, sizeof *rows);
  uint32_t *vertices = clv__arena_allocate_zero(arena, used, sizeof *vertices);
  if (rows == NULL || vertices == NULL) return clv__error_memory(error, 2 * (size_t)used * sizeof *rows);
  for (uint32_t u = 0; u < count; ++u) {
    if (places[u] == CLV__NO_ID) continue;
    rows[places[u]] = u;
    vertices[places[u]] = sub->vertices[u];
  }
  portion->sizes.rows = used;
  portion->rows = rows;
  portion->vertices = vertices;
  return CLV_OK;
}

static clv_status number_edges(clv__arena *arena, clv__portion *portion, const uint32_t *places, clv_error *error) {
  const clv__subgraph *sub = portion->subgraph;
  uint64_t targets = portion->sizes.targets, edges = portion->sizes.edges;
  uint64_t *offsets = clv__arena_allocate_zero(arena, targets + 1, sizeof *offsets);
  uint32_t *sources = clv__arena_allocate_zero(arena, edges, sizeof *sources);
  if (offsets == NULL || sources == NULL)
    return clv__error_memory(error, (size_t)(targets * sizeof *offsets + edges * sizeof *sources));
  for (uint64_t v = 0; v <= targets; ++v) offsets[v] = sub->offsets[portion->from + v] - portion->first_edge;
  for (uint64_t e = 0; e < edges; ++e) sources[e] = places[sub->sources[portion->first_edge + e]];
  portion->offsets = offsets;
  portion->sources = sources;
  return CLV_OK;
}

clv_status clv__portion_make(clv__arena *arena, const clv__subgraph *sub, uint32_t from, uint32_t to, clv__portion *portion,
                             clv_error *error) {
  uint32_t count = sub->owned_count + sub->halo_count;
  *portion = (clv__portion){.subgraph = sub, .from = from, .to = to, .first_edge = sub->offsets[from]};
  portion->sizes = (clv__layer_sizes){count, to - from, sub->offsets[to] - sub->offsets[from]};
  portion->is_whole = from == 0 && to == sub->owned_count;
  portion->vertices = sub->vertices;
  portion->offsets = sub->offsets;
  portion->sources = sub->sources;
  if (from == to) portion->sizes.rows = 0;
  if (portion->is_whole || from == to) return CLV_OK;
  uint32_t *places = clv__allocate(arena->allocator, (size_t)count * sizeof *places);
  if (places == NULL) return clv__error_memory(error, (size_t)count * sizeof *places);
  clv_status status = number_rows(arena, portion, places, error);
  if (status == CLV_OK) status = number_edges(arena, portion, places, error);
  clv__release(arena->allocator, places);
  return status;
}
