/* A graph cut into k subgraphs by METIS, each with what it must read: owned vertices, and the halo, the sources outside that
 * in-edges of owned ones come from. m is always the in-edges of owned vertices: the work. */
#ifndef CLEAVE_GNN_DATA_PARTITION_H
#define CLEAVE_GNN_DATA_PARTITION_H

#include "cache/cache.h"
#include "gnn/data/graph.h"

typedef struct clv__membership {
  uint32_t k;
  uint32_t vertex_count;
  const uint32_t *parts; /* [vertex_count], each below k */
  double metis_seconds;  /* 0: METIS was not asked */
  bool from_cache;
} clv__membership;

/* METIS_PartGraphKway with objective communication volume over the symmetrised, deduplicated graph without loops; a vertex weighs
 * 1 + its in-edges. One call at a time, in a process of its own (metis_part.c says why). The membership is kept in `cache` (may
 * be NULL) under graph hash, k and seed. k = 1, and graphs without an edge between two vertices, ask nobody: metis_seconds is 0
 * then too. k above the number of vertices, and graphs beyond METIS's 32-bit indices, are CLV_INVALID_ARGUMENT with the limit. A
 * part may be empty. Other errors: those of clv__metis_part(). */
clv_status clv__membership_make(const clv_allocator *allocator, const clv__gnn_graph *graph, uint32_t k, uint64_t seed,
                                clv__cache *cache, clv__membership *membership, clv_error *error);
/* From a text file, packed by gzip or not: one part number a line, vertex after vertex, as gpmetis writes it. k is what the name
 * says where it ends with ".part.K", otherwise the largest part and one more. CLV_INVALID_MODEL, with the line, where it is not
 * that, has another number of vertices, or where a part has none; errors of opening it. */
clv_status clv__membership_read(const clv_allocator *allocator, const char *path, uint32_t vertex_count,
                                clv__membership *membership, clv_error *error);
/* The same of bytes in memory, called `name`. */
clv_status clv__membership_read_memory(const clv_allocator *allocator, const char *name, const void *data, size_t size_bytes,
                                       uint32_t vertex_count, clv__membership *membership, clv_error *error);
void clv__membership_finish(const clv_allocator *allocator, clv__membership *membership);

/* One subgraph, in local ids: owned vertices first, ascending by global id, then the halo, ascending. */
typedef struct clv__subgraph {
  uint32_t owned_count, halo_count;
  uint64_t edge_count;      /* in-edges of owned vertices */
  uint64_t cut_edge_count;  /* of these, from the halo */
  const uint32_t *vertices; /* [owned_count + halo_count]: global ids */
  const uint64_t *offsets;  /* [owned_count + 1] */
  const uint32_t *sources;  /* [edge_count]: local ids; rows in the graph's order */
} clv__subgraph;

typedef struct clv__partitioned {
  clv__arena arena;
  uint32_t k;
  clv__subgraph *subgraphs;
  uint64_t communication_volume; /* rows that cross between parts: the sum of halos */
  clv__gnn_graph *graph;         /* what the rows are of, where it dies with them; NULL: somebody else has it */
  double metis_seconds;          /* as the membership says */
  bool from_cache;
} clv__partitioned;

/* In time of order n + m for all parts. Of k = 1 the rows are the graph's own, which must outlive them. CLV_INVALID_ARGUMENT
 * where the membership is not of this graph. */
clv_status clv__partitioned_make(const clv_allocator *allocator, const clv__gnn_graph *graph, const clv__membership *membership,
                                 clv__partitioned *partitioned, clv_error *error);
void clv__partitioned_finish(clv__partitioned *partitioned);

/* `count` rounded up to a multiple of `step`, for devices of fixed shapes; one vertex more is asked for where edges are padded:
 * the dummy that they belong to. */
static inline uint64_t clv__pad_up(uint64_t count, uint64_t step) {
  return (count + step - 1) / step * step;
}

#endif
