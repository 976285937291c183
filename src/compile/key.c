/* See key.h. */
#include "compile/key.h"

#include <string.h>

#include "graph/content.h"

/* ---- Structure. Names are not hashed, except those of operators, domains and attributes. ---- */

/* Symbols are numbered in the order in which a view uses them, because their own numbers and names differ between equal models. A
 * view has few of them. */
enum { MOST_SYMBOLS = 256 };
typedef struct symbols {
  int64_t dims[MOST_SYMBOLS];
  uint32_t count;
} symbols;

static uint64_t number_of(symbols *known, int64_t dim) {
  for (uint32_t i = 0; i < known->count; ++i) {
    if (known->dims[i] == dim) return i;
  }
  if (known->count == MOST_SYMBOLS) return (uint64_t)dim; /* keeps its own number; equal models may then have different keys */
  known->dims[known->count] = dim;
  return known->count++;
}

static void hash_type(clv__hasher *hasher, const clv_tensor *type, symbols *known) {
  clv__hasher_u64(hasher, type->dtype);
  clv__hasher_u64(hasher, (uint64_t)(int64_t)type->rank);
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t dim = type->dims[i];
    clv__hasher_u64(hasher, dim >= 0 ? 0 : dim == CLV_DIM_UNKNOWN ? 1 : 2);
    clv__hasher_u64(hasher, dim >= CLV_DIM_UNKNOWN ? (uint64_t)dim : number_of(known, dim));
  }
}

static void hash_data(clv__hasher *hasher, const clv_tensor *tensor) {
  size_t size_bytes;
  bool there = tensor->data != NULL && clv__tensor_size_bytes(tensor, &size_bytes);
  clv__hasher_u64(hasher, there);
  if (!there) return;
  if (tensor->dtype != CLV_STRING) {
    clv__hash content;
    clv__hash_bytes(tensor->data, size_bytes, &content);
    clv__hasher_update(hasher, content.bytes, sizeof content.bytes);
    return;
  }
  const clv_string *strings = tensor->data;
  for (size_t i = 0; i < size_bytes / sizeof *strings; ++i) {
    clv__hasher_u64(hasher, strings[i].size_bytes);
    clv__hasher_update(hasher, strings[i].data, strings[i].size_bytes);
  }
}

static void hash_body(clv__hasher *hasher, const clv_graph *body);

static void hash_attribute(clv__hasher *hasher, const clv_attribute *attribute) {
  symbols none = {.count = 0};
  clv__hasher_string(hasher, attribute->name);
  clv__hasher_u64(hasher, attribute->kind);
  clv__hasher_u64(hasher, attribute->is_list);
  clv__hasher_u64(hasher, attribute->count);
  switch (attribute->kind) {
    case CLV_ATTRIBUTE_INTS:
      clv__hasher_update(hasher, attribute->ints, attribute->count * sizeof *attribute->ints);
      break;
    case CLV_ATTRIBUTE_FLOATS:
      clv__hasher_update(hasher, attribute->floats, attribute->count * sizeof *attribute->floats);
      break;
    case CLV_ATTRIBUTE_STRINGS:
      for (size_t i = 0; i < attribute->count; ++i) {
        clv__hasher_u64(hasher, attribute->strings[i].size_bytes);
        clv__hasher_update(hasher, attribute->strings[i].data, attribute->strings[i].size_bytes);
      }
      break;
    case CLV_ATTRIBUTE_TENSOR:
      hash_type(hasher, attribute->tensor, &none);
      hash_data(hasher, attribute->tensor);
      break;
    case CLV_ATTRIBUTE_GRAPH:
      hash_body(hasher, attribute->graph->graph);
      break;
  }
}

static void hash_node(clv__hasher *hasher, const clv__node *node, const uint32_t *operands) {
  clv__hasher_string(hasher, node->domain);
  clv__hasher_string(hasher, node->op);
  clv__hasher_u64(hasher, (uint64_t)(int64_t)node->opset);
  clv__hasher_u64(hasher, node->capture_count);
  clv__hasher_u64(hasher, node->input_count);
  clv__hasher_u64(hasher, node->output_count);
  clv__hasher_update(hasher, operands, ((size_t)node->input_count + node->output_count) * sizeof *operands);
  clv__hasher_u64(hasher, node->attributes.count);
  for (uint32_t i = 0; i < node->attributes.count; ++i) hash_attribute(hasher, &node->attributes.items[i]);
}

static void hash_ids(clv__hasher *hasher, const uint32_t *ids, uint32_t count) {
  clv__hasher_u64(hasher, count);
  clv__hasher_update(hasher, ids, (size_t)count * sizeof *ids);
}

/* Hashes everything in a body, including constants. Symbols are hashed by name, because the body shares them with the graph
 * outside. */
static void hash_body(clv__hasher *hasher, const clv_graph *body) {
  symbols none = {.count = 0};
  clv__hasher_u64(hasher, body->symbol_count);
  for (uint32_t i = 0; i < body->symbol_count; ++i) clv__hasher_string(hasher, body->symbols[i]);
  clv__hasher_u64(hasher, body->node_count);
  for (uint32_t n = 0; n < body->node_count; ++n) {
    hash_node(hasher, &body->nodes[n], body->whole->operands + body->whole->operand_offsets[n]);
  }
  clv__hasher_u64(hasher, body->value_count);
  for (uint32_t v = 0; v < body->value_count; ++v) {
    hash_type(hasher, &body->values[v].type, &none);
    hash_data(hasher, &body->values[v].type);
  }
  hash_ids(hasher, body->inputs, body->input_count);
  hash_ids(hasher, body->outputs, body->output_count);
  hash_ids(hasher, body->captures, body->capture_count);
  hash_ids(hasher, body->capture_index, body->capture_count);
}

static void hash_structure(const clv_graph_view *view, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_u64(&hasher, view->node_count);
  for (uint32_t n = 0; n < view->node_count; ++n) {
    hash_node(&hasher, clv__view_node(view, n), view->operands + view->operand_offsets[n]);
  }
  clv__hasher_u64(&hasher, view->value_count);
  hash_ids(&hasher, view->inputs, view->input_count);
  hash_ids(&hasher, view->outputs, view->output_count);
  clv__hasher_finish(&hasher, hash);
}

/* ---- The other parts ---- */

static void hash_types(const clv_graph_view *view, clv__hash *hash) {
  clv__hasher hasher;
  symbols known = {.count = 0};
  clv__hasher_init(&hasher);
  for (uint32_t v = 0; v < view->value_count; ++v) {
    hash_type(&hasher, clv__view_type(view, v), &known);
    clv__hasher_u64(&hasher, clv__key_has_bytes(view, v));
  }
  clv__hasher_finish(&hasher, hash);
}

void clv__key_make_graph(const clv_graph_view *view, clv__key *key) {
  *key = (clv__key){0};
  hash_structure(view, &key->parts[CLV__KEY_STRUCTURE]);
  hash_types(view, &key->parts[CLV__KEY_TYPES]);
}

void clv__key_make(const clv_graph_view *view, const clv__device *device, const clv_compile_options *options, clv__key *key) {
  clv__hasher hasher;
  clv__key_make_graph(view, key);
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, device->backend->name);
  clv__hasher_string(&hasher, device->backend->version);
  clv__hasher_string(&hasher, device->info.fingerprint);
  clv__hasher_finish(&hasher, &key->parts[CLV__KEY_DEVICE]);
  clv__hasher_init(&hasher);
  clv__hasher_u64(&hasher, options->deterministic);
  clv__hasher_u64(&hasher, options->tune);
  clv__hasher_u64(&hasher, options->precision);
  clv__hasher_finish(&hasher, &key->parts[CLV__KEY_OPTIONS]);
}

clv_status clv__key_add_constants(const clv_graph_view *view, clv__key *key, clv_error *error) {
  const clv_allocator *allocator = view->graph->allocator;
  size_t count = 0;
  clv_value_id *values = clv__allocate(allocator, (size_t)view->value_count * sizeof *values);
  clv__hash *hashes = clv__allocate(allocator, (size_t)view->value_count * sizeof *hashes);
  clv_status status = CLV_OK;
  if (values == NULL || hashes == NULL) status = clv__error_memory(error, view->value_count * sizeof *hashes);
  for (uint32_t v = 0; status == CLV_OK && v < view->value_count; ++v) {
    if (clv__key_has_bytes(view, v)) values[count++] = view->values[v];
  }
  if (status == CLV_OK) status = clv__graph_content(view->graph, view->types, values, count, hashes, error);
  if (status == CLV_OK) {
    clv__hasher hasher;
    clv__hasher_init(&hasher);
    clv__hasher_update(&hasher, hashes, count * sizeof *hashes);
    clv__hasher_finish(&hasher, &key->parts[CLV__KEY_CONSTANTS]);
  }
  clv__release(allocator, hashes);
  clv__release(allocator, values);
  return status;
}
