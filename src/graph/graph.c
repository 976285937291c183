/* Destroys, searches and hashes a graph. See graph.h.
 * circle-ok: a graph holds the bodies of its nodes as views, and a view refers to a graph. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/own.h"
#include "graph/view.h"

struct clv__graph_owned {
  clv__graph_owned *next;
  clv__file_map map;
  const char *path;
};

clv_status clv__graph_own_map(clv_graph *graph, const clv__file_map *map, const char *path, clv_error *error) {
  clv__graph_owned *owned = clv__arena_allocate(&graph->arena, sizeof *owned);
  const char *copy = clv__arena_string(&graph->arena, path, strlen(path));
  if (owned == NULL || copy == NULL) return clv__error_memory(error, sizeof *owned + strlen(path));
  *owned = (clv__graph_owned){graph->owned, *map, copy};
  graph->owned = owned;
  return CLV_OK;
}

clv_status clv__graph_check_files(const clv_graph *graph, clv_error *error) {
  for (const clv__graph_owned *owned = graph->owned; owned != NULL; owned = owned->next) {
    if (clv__file_map_check(&owned->map)) continue;
    return clv__error_set(error, CLV_IO_ERROR,
                          "%s: the file was changed after it was loaded: load the model again (a new file that is renamed over "
                          "the old one can replace it at any time)",
                          owned->path);
  }
  return CLV_OK;
}

const char *clv__graph_symbol_name(const void *graph, uint32_t symbol) {
  const clv_graph *of = graph;
  return symbol < of->symbol_count ? of->symbols[symbol] : NULL;
}

static const clv__graph_owned *find_file(const clv_graph *graph, const void *data) {
  const uint8_t *at = data;
  const clv__graph_owned *owned = graph->owned;
  while (owned != NULL && (owned->map.data == NULL || at < owned->map.data || at >= owned->map.data + owned->map.size_bytes)) {
    owned = owned->next;
  }
  return owned;
}

bool clv__graph_is_in_file(const clv_graph *graph, const void *data) {
  return data != NULL && find_file(graph, data) != NULL;
}

clv_status clv__graph_read_file(const clv_graph *graph, const void *data, size_t size_bytes, void *to, clv_error *error) {
  const clv__graph_owned *owned = find_file(graph, data);
  clv_status status = clv__file_map_read(&owned->map, data, size_bytes, to, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "%s", owned->path);
}

void clv__graph_drop_pages(const clv_graph *graph, const void *data, size_t size_bytes) {
  for (const clv__graph_owned *owned = graph->owned; owned != NULL; owned = owned->next) {
    clv__file_map_drop(&owned->map, data, size_bytes);
  }
}

static void destroy_owned(clv_graph *graph) {
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    const clv__attributes *attributes = &graph->nodes[n].attributes;
    for (uint32_t i = 0; i < attributes->count; ++i) {
      if (attributes->items[i].kind == CLV_ATTRIBUTE_GRAPH) clv__graph_destroy((clv_graph *)attributes->items[i].graph->graph);
    }
  }
  for (clv__graph_owned *owned = graph->owned; owned != NULL; owned = owned->next) clv__file_map_close(&owned->map);
}

void clv__graph_destroy(clv_graph *graph) {
  if (graph == NULL) return;
  if (graph->origin == NULL) destroy_owned(graph);
  clv__graph_content_finish(graph);
  const clv_allocator *allocator = graph->allocator;
  clv__arena_finish(&graph->arena);
  clv__release(allocator, graph);
}

clv_value_id clv__graph_find_value(const clv_graph *graph, const char *name) {
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    if (strcmp(graph->values[v].name, name) == 0) return v;
  }
  return CLV__NO_ID;
}

clv_node_id clv__graph_find_node(const clv_graph *graph, const char *name) {
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    if (strcmp(graph->nodes[n].name, name) == 0) return n;
  }
  return CLV__NO_ID;
}

clv_status clv__graph_check_bound(const clv_graph *graph, clv_error *error) {
  clv_value_id first = CLV__NO_ID;
  uint32_t count = 0;
  for (uint32_t v = graph->value_count; v-- > 0;) {
    bool read = graph->values[v].is_output || graph->use_offsets[v] != graph->use_offsets[v + 1];
    if (!graph->values[v].is_unbound || !read) continue;
    first = v;
    ++count;
  }
  if (count == 0) return CLV_OK;
  char others[40] = "";
  if (count > 1) snprintf(others, sizeof others, " (and %u more)", count - 1);
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "weight '%.200s'%s has no data: the model file has no weights. You can inspect and plan the model; to "
                        "run it, give a weight file (--params FILE, safetensors or npz; clv_graph_load_params())",
                        graph->values[first].name, others);
}

bool clv__node_matches_op(const clv__node *node, const char *pattern) {
  if (clv__pattern_match(pattern, node->op)) return true;
  if (node->source_op[0] == '\0') return false;
  if (clv__pattern_match(pattern, node->source_op)) return true;
  const char *dot = strrchr(node->source_op, '.'); /* namespace.operator.overload */
  char stem[128];
  if (dot == NULL || dot == strchr(node->source_op, '.') || (size_t)(dot - node->source_op) >= sizeof stem) return false;
  memcpy(stem, node->source_op, (size_t)(dot - node->source_op));
  stem[dot - node->source_op] = '\0';
  return clv__pattern_match(pattern, stem);
}

bool clv__node_matches_name(const clv__node *node, const char *pattern) {
  return clv__pattern_match(pattern, node->name) || clv__pattern_match(pattern, node->source_name);
}

static void hash_tensor(clv__hasher *hasher, const clv_graph *graph, const clv_tensor *tensor) {
  clv__hasher_u64(hasher, tensor->dtype);
  clv__hasher_u64(hasher, (uint64_t)tensor->rank);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    int64_t dim = tensor->dims[i];
    clv__hasher_u64(hasher, (uint64_t)dim);
    uint64_t symbol = (uint64_t)(-2 - dim);
    if (dim < CLV_DIM_UNKNOWN && symbol < graph->symbol_count) clv__hasher_string(hasher, graph->symbols[symbol]);
  }
  size_t size_bytes;
  if (tensor->data == NULL || !clv__tensor_size_bytes(tensor, &size_bytes)) return;
  if (tensor->dtype == CLV_STRING) {
    const clv_string *strings = tensor->data;
    for (size_t i = 0; i < size_bytes / sizeof *strings; ++i) {
      clv__hasher_u64(hasher, strings[i].size_bytes);
      clv__hasher_update(hasher, strings[i].data, strings[i].size_bytes);
    }
    return;
  }
  enum { PARALLEL_BYTES = 1 << 20 }; /* below this, waking threads costs more than it saves */
  if (size_bytes < PARALLEL_BYTES) {
    clv__hasher_update(hasher, tensor->data, size_bytes);
    return;
  }
  clv__hash bulk;
  clv__hash_bytes(tensor->data, size_bytes, &bulk);
  clv__hasher_update(hasher, bulk.bytes, sizeof bulk.bytes);
}

static void hash_graph(clv__hasher *hasher, const clv_graph *graph);

static void hash_attribute(clv__hasher *hasher, const clv_graph *graph, const clv_attribute *attribute) {
  clv__hasher_string(hasher, attribute->name);
  clv__hasher_u64(hasher, attribute->kind);
  clv__hasher_u64(hasher, attribute->count);
  switch (attribute->kind) {
    case CLV_ATTRIBUTE_INTS:
      clv__hasher_update(hasher, attribute->ints, attribute->count * sizeof(int64_t));
      break;
    case CLV_ATTRIBUTE_FLOATS:
      clv__hasher_update(hasher, attribute->floats, attribute->count * sizeof(float));
      break;
    case CLV_ATTRIBUTE_STRINGS:
      for (size_t i = 0; i < attribute->count; ++i) {
        clv__hasher_u64(hasher, attribute->strings[i].size_bytes);
        clv__hasher_update(hasher, attribute->strings[i].data, attribute->strings[i].size_bytes);
      }
      break;
    case CLV_ATTRIBUTE_TENSOR:
      hash_tensor(hasher, graph, attribute->tensor);
      break;
    case CLV_ATTRIBUTE_GRAPH:
      hash_graph(hasher, attribute->graph->graph);
      break;
  }
}

static void hash_graph(clv__hasher *hasher, const clv_graph *graph) {
  clv__hasher_u64(hasher, graph->node_count);
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    const clv__node *node = &graph->nodes[n];
    clv__hasher_string(hasher, node->name);
    clv__hasher_string(hasher, node->domain);
    clv__hasher_string(hasher, node->op);
    clv__hasher_u64(hasher, (uint64_t)node->opset);
    clv__hasher_u64(hasher, node->input_count);
    clv__hasher_update(hasher, node->inputs, node->input_count * sizeof *node->inputs);
    clv__hasher_u64(hasher, node->output_count);
    clv__hasher_update(hasher, node->outputs, node->output_count * sizeof *node->outputs);
    clv__hasher_u64(hasher, node->attributes.count);
    for (uint32_t i = 0; i < node->attributes.count; ++i) hash_attribute(hasher, graph, &node->attributes.items[i]);
    if (node->source_op[0] == '\0') continue; /* a node of an ONNX model has no source operator */
    clv__hasher_string(hasher, node->source_name);
    clv__hasher_string(hasher, node->source_op);
  }
  clv__hasher_u64(hasher, graph->value_count);
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    clv__hasher_string(hasher, graph->values[v].name);
    hash_tensor(hasher, graph, &graph->values[v].type);
    if (graph->values[v].is_unbound) clv__hasher_string(hasher, "unbound");
  }
  clv__hasher_u64(hasher, graph->input_count);
  clv__hasher_update(hasher, graph->inputs, graph->input_count * sizeof *graph->inputs);
  clv__hasher_u64(hasher, graph->output_count);
  clv__hasher_update(hasher, graph->outputs, graph->output_count * sizeof *graph->outputs);
}

void clv__graph_hash(const clv_graph *graph, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  hash_graph(&hasher, graph);
  clv__hasher_finish(&hasher, hash);
}
