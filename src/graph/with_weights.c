/* A graph with other weights: everything but these bytes is that of the first graph. See graph.h. */
#include <stddef.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/view.h"

/* Copies strings with their texts. Returns NULL if out of memory. */
static void *copy_strings(clv__arena *arena, const clv_string *strings, size_t count) {
  clv_string *copy = clv__arena_allocate_zero(arena, count + 1, sizeof *copy);
  for (size_t i = 0; copy != NULL && i < count; ++i) {
    const char *text = clv__arena_string(arena, strings[i].data != NULL ? strings[i].data : "", strings[i].size_bytes);
    if (text == NULL) return NULL;
    copy[i] = (clv_string){text, strings[i].size_bytes};
  }
  return copy;
}

static clv_status set_weight(clv_graph *graph, clv__value *value, const clv_tensor *tensor, clv_error *error) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(tensor, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' has an unknown size", value->name);
  }
  if (tensor->dtype == CLV_STRING) {
    value->type.data = copy_strings(&graph->arena, tensor->data, size_bytes / sizeof(clv_string));
  } else {
    value->type.data = clv__arena_allocate_data(&graph->arena, size_bytes);
    if (value->type.data != NULL && size_bytes > 0) memcpy(value->type.data, tensor->data, size_bytes);
  }
  if (value->type.data == NULL) return clv__error_memory(error, size_bytes);
  value->is_unbound = false;
  return CLV_OK;
}

static clv_status fill(clv_graph *graph, const clv_graph *old, const clv_tensor *tensors, clv_error *error) {
  const clv_graph *first = graph->origin;
  clv__value *values = clv__arena_copy(&graph->arena, first->values, first->value_count * sizeof *values);
  if (values == NULL) return clv__error_memory(error, first->value_count * sizeof *values);
  graph->values = values;
  for (clv_value_id v = 0; v < first->value_count; ++v) {
    const clv_tensor *now = &old->values[v].type;
    if (tensors[v].dtype != CLV_DTYPE_NONE)
      CLV__TRY(set_weight(graph, &values[v], &tensors[v], error));
    else if (now->data != first->values[v].type.data)
      CLV__TRY(set_weight(graph, &values[v], now, error));
  }
  clv_graph_view *whole;
  CLV__TRY(clv__view_create_whole(graph, NULL, &graph->arena, &whole, error));
  graph->whole = whole;
  return CLV_OK;
}

clv_status clv__graph_with_weights(const clv_graph *old, const clv_tensor *tensors, clv_graph **out, clv_error *error) {
  const clv_graph *first = old->origin != NULL ? old->origin : old;
  *out = NULL;
  clv_graph *graph = clv__allocate_zero(first->allocator, sizeof *graph);
  if (graph == NULL) return clv__error_memory(error, sizeof *graph);
  memcpy(graph, first, offsetof(clv_graph, memo)); /* without the hashes, which other threads may be adding to */
  graph->origin = first;
  clv__arena_init(&graph->arena, first->allocator);
  clv_status status = fill(graph, old, tensors, error);
  if (status == CLV_OK)
    *out = graph;
  else
    clv__graph_destroy(graph);
  return status;
}
