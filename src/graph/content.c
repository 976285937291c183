/* See content.h. */
#include "graph/content.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "graph/own.h"

struct clv__graph_memo {
  pthread_mutex_t lock;
  bool *known; /* by value id */
  clv__hash *hashes;
};

/* Returns the graph's cache of hashes; creates it on first use. It is the only mutable part of a graph. NULL if out of memory. */
static clv__graph_memo *memo_of(const clv_graph *graph) {
  _Atomic(clv__graph_memo *) *place = &((clv_graph *)graph)->memo;
  clv__graph_memo *memo = atomic_load(place);
  if (memo != NULL) return memo;
  size_t count = graph->value_count;
  memo = clv__allocate_zero(graph->allocator, sizeof *memo + count * (sizeof *memo->hashes + sizeof *memo->known));
  if (memo == NULL) return NULL;
  pthread_mutex_init(&memo->lock, NULL);
  memo->hashes = (clv__hash *)(memo + 1);
  memo->known = (bool *)(memo->hashes + count);
  clv__graph_memo *other = NULL;
  if (atomic_compare_exchange_strong(place, &other, memo)) return memo;
  pthread_mutex_destroy(&memo->lock);
  clv__release(graph->allocator, memo);
  return other;
}

void clv__graph_content_finish(clv_graph *graph) {
  clv__graph_memo *memo = atomic_load(&graph->memo);
  if (memo == NULL) return;
  pthread_mutex_destroy(&memo->lock);
  clv__release(graph->allocator, memo);
}

/* Whether the graph owns the bytes; if so, the value's id identifies them. */
static bool is_of_graph(const clv_graph *graph, clv_value_id value, const void *data) {
  const clv__value *v = &graph->values[value];
  if (v->type.data == data) return true;
  if (v->producer == CLV__NO_ID) return false;
  const clv__node *node = &graph->nodes[v->producer];
  if (strcmp(node->op, "Constant") != 0 || node->domain[0] != '\0') return false;
  for (uint32_t i = 0; i < node->attributes.count; ++i) {
    const clv_attribute *attribute = &node->attributes.items[i];
    if (attribute->kind == CLV_ATTRIBUTE_TENSOR && attribute->tensor->data == data) return true;
  }
  return false;
}

static void hash_strings(const clv_string *strings, size_t count, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  for (size_t i = 0; i < count; ++i) {
    clv__hasher_u64(&hasher, strings[i].size_bytes);
    clv__hasher_update(&hasher, strings[i].data, strings[i].size_bytes);
  }
  clv__hasher_finish(&hasher, hash);
}

/* Sets the hashes that are cached, and those of string tensors. Fills `blocks` with the data of all other values, which the
 * caller hashes. */
static clv_status collect(const clv_graph *graph, const clv_tensor *types, const clv_value_id *values, size_t count,
                          clv__graph_memo *memo, clv__hash *hashes, clv__hash_block *blocks, size_t *block_of,
                          size_t *block_count, clv_error *error) {
  *block_count = 0;
  for (size_t i = 0; i < count; ++i) {
    const clv_tensor *type = types != NULL ? &types[values[i]] : &graph->values[values[i]].type;
    block_of[i] = SIZE_MAX;
    if (is_of_graph(graph, values[i], type->data) && memo->known[values[i]]) {
      hashes[i] = memo->hashes[values[i]];
      continue;
    }
    size_t size_bytes;
    if (!clv__tensor_size_bytes(type, &size_bytes)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "constant '%s' has an unknown size", graph->values[values[i]].name);
    }
    if (type->dtype == CLV_STRING) {
      hash_strings(type->data, size_bytes / sizeof(clv_string), &hashes[i]);
      continue;
    }
    block_of[i] = *block_count;
    blocks[*block_count].data = type->data;
    blocks[(*block_count)++].size_bytes = size_bytes;
  }
  return CLV_OK;
}

clv_status clv__graph_content(const clv_graph *graph, const clv_tensor *types, const clv_value_id *values, size_t count,
                              clv__hash *hashes, clv_error *error) {
  clv__graph_memo *memo = memo_of(graph);
  size_t block_count, size_bytes;
  clv__hash_block *blocks = NULL;
  size_t *block_of = NULL;
  if (memo != NULL && clv__multiply(count, sizeof *blocks, &size_bytes)) {
    blocks = clv__allocate(graph->allocator, size_bytes);
    block_of = clv__allocate(graph->allocator, count * sizeof *block_of);
  }
  clv_status status = CLV_OK;
  if (blocks == NULL || block_of == NULL) {
    status = clv__error_memory(error, count * sizeof *blocks);
    goto cleanup;
  }
  pthread_mutex_lock(&memo->lock);
  status = collect(graph, types, values, count, memo, hashes, blocks, block_of, &block_count, error);
  pthread_mutex_unlock(&memo->lock);
  if (status != CLV_OK) goto cleanup;
  clv__hash_blocks(blocks, block_count);
  pthread_mutex_lock(&memo->lock);
  for (size_t i = 0; i < count; ++i) {
    if (block_of[i] == SIZE_MAX) continue;
    hashes[i] = blocks[block_of[i]].hash;
    if (!is_of_graph(graph, values[i], blocks[block_of[i]].data)) continue;
    memo->hashes[values[i]] = hashes[i];
    memo->known[values[i]] = true;
  }
  pthread_mutex_unlock(&memo->lock);
cleanup:
  clv__release(graph->allocator, block_of);
  clv__release(graph->allocator, blocks);
  return status;
}

bool clv__content_equal(const clv_tensor *a, const clv_tensor *b) {
  size_t size_bytes;
  if (a->data == b->data) return true;
  if (!clv__tensor_size_bytes(a, &size_bytes)) return false;
  if (a->dtype != CLV_STRING) return memcmp(a->data, b->data, size_bytes) == 0;
  const clv_string *x = a->data, *y = b->data;
  for (size_t i = 0; i < size_bytes / sizeof *x; ++i) {
    if (x[i].size_bytes != y[i].size_bytes) return false;
    if (x[i].size_bytes > 0 && memcmp(x[i].data, y[i].data, x[i].size_bytes) != 0) return false;
  }
  return true;
}
