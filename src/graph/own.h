/* What a graph holds besides its arena: the file mappings its initializers point into, and the hashes of its constants. */
#ifndef CLEAVE_GRAPH_OWN_H
#define CLEAVE_GRAPH_OWN_H

#include "graph/graph.h"

/* The graph closes `map` when it is destroyed. On failure the map stays the caller's. */
clv_status clv__graph_own_map(clv_graph *graph, const clv__file_map *map, clv_error *error);
/* Gives the pages behind `data` back to the system where they are a mapped file's: for weights that a device has its own copy of.
 */
void clv__graph_drop_pages(const clv_graph *graph, const void *data, size_t size_bytes);
/* Frees the hashes of its constants (content.c); for clv__graph_destroy(). */
void clv__graph_content_finish(clv_graph *graph);

#endif
