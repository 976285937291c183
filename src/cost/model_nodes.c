/* Prepares the nodes of a graph for the cost model: the work of each node, classes of nodes with equal costs, and the edges
 * between them that may save time. */
#include <stdlib.h>
#include <string.h>

#include "cost/cost_own.h"
#include "cost/signature.h"

enum { FAMILY_BYTES = 96 };

static clv_status read_nodes(clv__making *m) {
  clv_status status = CLV_OK;
  uint32_t count = m->model->node_count;
  m->classes = clv__making_allocate(m, &m->arena, count, sizeof *m->classes, &status);
  m->is_view = clv__making_allocate(m, &m->arena, count, sizeof *m->is_view, &status);
  m->flops = clv__making_allocate(m, &m->arena, count, sizeof *m->flops, &status);
  m->bytes = clv__making_allocate(m, &m->arena, count, sizeof *m->bytes, &status);
  if (status != CLV_OK) return status;
  for (uint32_t n = 0; n < count; ++n) {
    clv__work work;
    m->classes[n] = CLV__NO_ID;
    m->is_view[n] = clv__node_is_view(&m->whole->graph->nodes[n]);
    if (m->is_view[n] || clv__making_is_folded(m, n)) continue;
    if (!clv__node_work(m->whole, n, &work)) return clv__error_memory(m->error, sizeof work);
    m->flops[n] = (float)work.flops;
    m->bytes[n] = (float)work.bytes;
  }
  return CLV_OK;
}

/* Puts nodes with equal signatures into one class, and looks up each class in the tables of every device. */
static clv_status classify(clv__making *m) {
  uint32_t count = m->model->node_count;
  clv_status status = CLV_OK;
  clv__map index;
  clv__text text;
  const char **signatures = clv__making_allocate(m, &m->arena, count, sizeof *signatures, &status);
  m->families = clv__making_allocate(m, &m->arena, count, sizeof *m->families, &status);
  clv__map_init(&index, m->arena.allocator);
  clv__text_init(&text, m->arena.allocator);
  for (uint32_t n = 0; n < count && status == CLV_OK; ++n) {
    char family[FAMILY_BYTES];
    if (m->is_view[n] || clv__making_is_folded(m, n) || !clv__signature_is_static(m->whole, n)) continue;
    clv__signature_write(m->whole, n, &text);
    uint32_t found = text.failed ? CLV__MAP_NONE : clv__map_find(&index, text.data);
    if (found == CLV__MAP_NONE) {
      found = m->class_count;
      signatures[found] = text.failed ? NULL : clv__arena_string(&m->arena, text.data, text.size_bytes);
      if (signatures[found] != NULL) clv__signature_family(signatures[found], family, sizeof family);
      m->families[found] = signatures[found] == NULL ? NULL : clv__arena_string(&m->arena, family, strlen(family));
      if (m->families[found] == NULL || !clv__map_set(&index, signatures[found], found))
        status = clv__error_memory(m->error, text.size_bytes);
      ++m->class_count;
    }
    m->classes[n] = found;
  }
  for (uint32_t i = 0; i < m->model->device_count && status == CLV_OK; ++i) {
    clv__model_device *d = &m->model->devices[i];
    if (d->tables == NULL) continue;
    d->operators = clv__making_allocate(m, &m->arena, m->class_count, sizeof *d->operators, &status);
    for (uint32_t c = 0; c < m->class_count && status == CLV_OK; ++c)
      d->operators[c] = clv__profile_find_operator(d->tables, signatures[c]);
  }
  clv__text_finish(&text);
  clv__map_finish(&index);
  return status;
}

static int compare_edges(const void *a, const void *b) {
  const clv__model_edge *x = a, *y = b;
  if (x->producer != y->producer) return x->producer < y->producer ? -1 : 1;
  return x->input < y->input ? -1 : x->input > y->input;
}

/* Collects the edges between nodes that do work, sorted by reader, then by producer. */
static clv_status read_edges(clv__making *m) {
  clv__cost_model *model = m->model;
  const clv_graph *graph = m->whole->graph;
  clv_status status = CLV_OK;
  uint64_t total = 0;
  for (uint32_t n = 0; n < model->node_count; ++n) total += graph->nodes[n].input_count;
  if (total >= UINT32_MAX) return clv__error_memory(m->error, SIZE_MAX);
  model->edge_offsets =
      clv__making_allocate(m, &model->arena, (size_t)model->node_count + 1, sizeof *model->edge_offsets, &status);
  clv__model_edge *edges = clv__making_allocate(m, &m->arena, total, sizeof *edges, &status);
  uint32_t at = 0;
  for (uint32_t n = 0; n < model->node_count && status == CLV_OK; ++n) {
    for (uint32_t k = 0; k < graph->nodes[n].input_count && !m->is_view[n] && !clv__making_is_folded(m, n); ++k) {
      clv_node_id producer = clv__node_producer(m->whole, n, k);
      if (producer == CLV__NO_ID || m->is_view[producer] || clv__making_is_folded(m, producer)) continue;
      edges[at++] = (clv__model_edge){producer, k, (float)clv__value_bytes(m->whole, graph->nodes[n].inputs[k])};
    }
    uint32_t first = model->edge_offsets[n];
    if (at - first > 1) qsort(edges + first, at - first, sizeof *edges, compare_edges);
    model->edge_offsets[n + 1] = at;
  }
  if (status != CLV_OK) return status;
  model->edges = clv__arena_copy(&model->arena, edges, at * sizeof *edges);
  model->savings = clv__making_allocate(m, &model->arena, (size_t)at * model->device_count, sizeof *model->savings, &status);
  return model->edges == NULL ? clv__error_memory(m->error, at * sizeof *edges) : status;
}

clv_status clv__making_read(clv__making *m, bool any_tables) {
  CLV__TRY(read_nodes(m));
  if (any_tables) CLV__TRY(classify(m));
  return read_edges(m);
}
