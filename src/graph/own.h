/* Resources of a graph outside its arena: the file mappings of its initializers, and the hashes of its constants. */
#ifndef CLEAVE_GRAPH_OWN_H
#define CLEAVE_GRAPH_OWN_H

#include "graph/graph.h"

/* Gives `map`, a mapping of the file at `path`, to the graph, which closes it when the graph is destroyed. On failure the caller
 * still owns `map`. */
clv_status clv__graph_own_map(clv_graph *graph, const clv__file_map *map, const char *path, clv_error *error);
/* Returns the pages behind `data` to the system if they belong to a mapped file. Used for weights that a device has copied. */
void clv__graph_drop_pages(const clv_graph *graph, const void *data, size_t size_bytes);
/* Frees the hashes of the constants (content.c); for clv__graph_destroy(). */
void clv__graph_content_finish(clv_graph *graph);

#endif
