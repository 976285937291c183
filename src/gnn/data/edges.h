/* The interface that feeds edges into a graph. An edge source delivers its edges in chunks and is read twice, so that only the
 * resulting rows are kept in memory. */
#ifndef CLEAVE_GNN_DATA_EDGES_H
#define CLEAVE_GNN_DATA_EDGES_H

#include "base/random.h"
#include "cleave/types.h"

#define CLV__VERTICES_UNKNOWN UINT64_MAX
#define CLV__MOST_VERTICES ((uint64_t)UINT32_MAX) /* ids and their count both fit 32 bits */

typedef struct clv__edge_source clv__edge_source;
struct clv__edge_source {
  /* Some sources know the count from the start, others set it during the first pass. CLV__VERTICES_UNKNOWN: the largest id
   * determines the count. If the count is known, `next` returns only ids below it. */
  uint64_t vertex_count;
  uint64_t least_edges; /* estimated edge count, from the file size */
  clv_status (*rewind)(clv__edge_source *source, clv_error *error);
  /* Returns up to `room` edges in order; 0 edges mean the end. Ids are below CLV__MOST_VERTICES. */
  clv_status (*next)(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                     clv_error *error);
};

/* The largest vertex count accepted for a graph with `edge_count` edges, unless its file lists every vertex. It stops a file
 * of a few bytes from making the reader allocate gigabytes. */
static inline uint64_t clv__vertices_limit(uint64_t edge_count) {
  return edge_count > CLV__MOST_VERTICES / 64 ? CLV__MOST_VERTICES : (1u << 20) + 64 * edge_count;
}

#endif
