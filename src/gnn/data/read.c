/* Reads a graph: detects the file's format and calls its reader. */
#include <string.h>

#include "base/error.h"
#include "gnn/data/readers.h"

static bool ends_with(const char *text, size_t length, const char *end) {
  size_t end_length = strlen(end);
  return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

static clv_status read_bytes(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                             clv_error *error) {
  uint8_t head[4];
  size_t head_bytes = 0, length = strlen(bytes->path);
  *graph = NULL;
  CLV__TRY(clv__bytes_peek(bytes, head, sizeof head, &head_bytes, error));
  if (head_bytes == 4 && head[0] == 'P' && head[1] == 'K') return clv__graph_read_npz(allocator, bytes, graph, error);
  if (ends_with(bytes->path, length, ".npz")) {
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: not an npz file: it does not start like a zip archive", bytes->path);
  }
  if (ends_with(bytes->path, length, ".gz")) length -= 3;
  bool is_metis = ends_with(bytes->path, length, ".graph") || ends_with(bytes->path, length, ".metis");
  return (is_metis ? clv__graph_read_metis : clv__graph_read_edges)(allocator, bytes, graph, error);
}

clv_status clv__gnn_graph_read(const clv_allocator *allocator, const char *path, clv__gnn_graph **graph, clv_error *error) {
  return read_bytes(allocator, &(clv__bytes_at){path, NULL, 0}, graph, error);
}

clv_status clv__gnn_graph_read_memory(const clv_allocator *allocator, const char *name, const void *data, size_t size_bytes,
                                      clv__gnn_graph **graph, clv_error *error) {
  return read_bytes(allocator, &(clv__bytes_at){name, data, size_bytes}, graph, error);
}
