/* The graph file readers, one per format. */
#ifndef CLEAVE_GNN_DATA_READERS_H
#define CLEAVE_GNN_DATA_READERS_H

#include <string.h>

#include "base/error.h"
#include "gnn/data/graph.h"
#include "gnn/data/text_blocks.h"

typedef clv_status (*clv__graph_reader)(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                                        clv_error *error);

clv_status clv__graph_read_npz(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                               clv_error *error);
clv_status clv__graph_read_metis(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                                 clv_error *error);
clv_status clv__graph_read_edges(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                                 clv_error *error);

/* Like clv__gnn_graph_read(), but from bytes in memory. The ending of `name` selects the format, as that of a path does. */
clv_status clv__gnn_graph_read_memory(const clv_allocator *allocator, const char *name, const void *data, size_t size_bytes,
                                      clv__gnn_graph **graph, clv_error *error);

/* Prepends the file name to the message, unless the failed function already gave it. */
static inline clv_status clv__error_name(clv_error *error, clv_status status, const char *path) {
  if (error != NULL && strncmp(error->message, path, strlen(path)) == 0) return status;
  return clv__error_prefix(error, status, "%s", path);
}

/* The length of the word at `text`, for messages. At most 40 characters. */
static inline int clv__word_length(const char *text, const char *end) {
  int length = 0;
  while (length < 40 && text + length < end && (unsigned char)text[length] > ' ' && text[length] != ',') ++length;
  return length;
}

#endif
