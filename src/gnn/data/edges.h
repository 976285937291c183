/* Edges on their way into a graph: whatever has them gives them in pieces, twice, so that nothing beside the rows is kept. */
#ifndef CLEAVE_GNN_DATA_EDGES_H
#define CLEAVE_GNN_DATA_EDGES_H

#include "base/random.h"
#include "cleave/types.h"

#define CLV__VERTICES_UNKNOWN UINT64_MAX
#define CLV__MOST_VERTICES ((uint64_t)UINT32_MAX) /* so that ids and their count both fit 32 bits */

typedef struct clv__edge_source clv__edge_source;
struct clv__edge_source {
  /* Known from the begin, set by the end of the first pass, or CLV__VERTICES_UNKNOWN: as many as the largest id says. Where it is
   * known, `next` gives only ids below it. */
  uint64_t vertex_count;
  uint64_t least_edges; /* an estimate of how many there will be, from the size of the file */
  clv_status (*rewind)(clv__edge_source *source, clv_error *error);
  /* Up to `room` edges, in their order; none: that was all. Ids are below CLV__MOST_VERTICES. */
  clv_status (*next)(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                     clv_error *error);
};

/* The most vertices that a graph of so many edges may claim without naming each of them: a few bytes must not make gigabytes. */
static inline uint64_t clv__vertices_limit(uint64_t edge_count) {
  return edge_count > CLV__MOST_VERTICES / 64 ? CLV__MOST_VERTICES : (1u << 20) + 64 * edge_count;
}

#endif
