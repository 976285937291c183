/* A graph divided into k subgraphs. Each subgraph has its owned vertices and its halo: the vertices of other parts that are
 * sources of owned vertices' in-edges. m is always the number of in-edges of owned vertices; it measures the work. */
#ifndef CLEAVE_GNN_DATA_PARTITION_H
#define CLEAVE_GNN_DATA_PARTITION_H

#include "cache/cache.h"
#include "gnn/data/graph.h"

typedef struct clv__membership {
  uint32_t k;
  uint32_t vertex_count;
  const uint32_t *parts; /* [vertex_count], each below k */
  double metis_seconds;  /* 0: METIS did not run */
  bool from_cache;
} clv__membership;

/* Partitions with METIS_PartGraphKway and the communication-volume objective, over the symmetrised, deduplicated graph without
 * self loops. A vertex weighs 1 + its in-edges. Calls run one at a time, each in its own process (metis_part.c gives the
 * reason). Takes the membership from `cache` (may be NULL) if it is there under graph hash, k and seed; otherwise stores it
 * there. METIS does not run if the membership is cached, if k = 1, or if no edge joins two vertices; metis_seconds is then 0.
 * Returns CLV_INVALID_ARGUMENT, naming the limit, if k exceeds the vertex count or the graph exceeds METIS's 32-bit indices. A
 * part may be empty. Other errors: those of clv__metis_part(). */
clv_status clv__membership_make(const clv_allocator *allocator, const clv__gnn_graph *graph, uint32_t k, uint64_t seed,
                                clv__cache *cache, clv__membership *membership, clv_error *error);
/* Reads a membership from a text file, which may be gzip-compressed: one part number per line, in vertex order, as gpmetis
 * writes it. A file name that ends with ".part.K" determines k; otherwise k is the largest part number plus one. Returns
 * CLV_INVALID_MODEL, with the line, if the format is wrong, the vertex count differs, or a part has no vertex. Also returns
 * the errors of opening the file. */
clv_status clv__membership_read(const clv_allocator *allocator, const char *path, uint32_t vertex_count,
                                clv__membership *membership, clv_error *error);
/* Like clv__membership_read(), but from bytes in memory. `name` replaces the path, in messages and for the ".part.K" ending. */
clv_status clv__membership_read_memory(const clv_allocator *allocator, const char *name, const void *data, size_t size_bytes,
                                       uint32_t vertex_count, clv__membership *membership, clv_error *error);
void clv__membership_finish(const clv_allocator *allocator, clv__membership *membership);

/* One subgraph in local ids: first the owned vertices, ascending by global id, then the halo, ascending by global id. */
typedef struct clv__subgraph {
  uint32_t owned_count, halo_count;
  uint64_t edge_count;      /* in-edges of owned vertices */
  uint64_t cut_edge_count;  /* in-edges whose source is in the halo */
  const uint32_t *vertices; /* [owned_count + halo_count]: global ids */
  const uint64_t *offsets;  /* [owned_count + 1] */
  const uint32_t *sources;  /* [edge_count]: local ids; rows keep the graph's order */
} clv__subgraph;

typedef struct clv__partitioned {
  clv__arena arena;
  uint32_t k;
  clv__subgraph *subgraphs;
  uint64_t communication_volume; /* rows that cross between parts: the sum of the halo sizes */
  clv__gnn_graph *graph; /* the graph that the rows belong to, if it is destroyed with this struct; NULL: the caller owns it */
  double metis_seconds;  /* copied from the membership */
  bool from_cache;
} clv__partitioned;

/* Builds all subgraphs in O(n + m) time. If k = 1, the rows are the graph's own, and the graph must outlive them. Returns
 * CLV_INVALID_ARGUMENT if the membership belongs to another graph. */
clv_status clv__partitioned_make(const clv_allocator *allocator, const clv__gnn_graph *graph, const clv__membership *membership,
                                 clv__partitioned *partitioned, clv_error *error);
void clv__partitioned_finish(clv__partitioned *partitioned);

/* Rounds `count` up to a multiple of `step`, for devices that need fixed shapes. If edges are padded, callers request one more
 * vertex: the dummy vertex that the padding edges belong to. */
static inline uint64_t clv__pad_up(uint64_t count, uint64_t step) {
  return (count + step - 1) / step * step;
}

#endif
