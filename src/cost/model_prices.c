/* Prices every node on every device from the best source available, and every edge by its saving if both its nodes run in the
 * same partition. The price of a node is its time alone: its time inside a partition plus half the saving of each of its
 * edges. */
#include <math.h>
#include <string.h>

#include "cost/cost_own.h"

static double stated_node(const clv__device *device, const clv_graph_view *whole, uint32_t node) {
  double (*slot)(clv_device *, const clv_graph_view *, uint32_t) = device->backend->node_seconds;
  return slot == NULL ? -1 : slot(device->handle, whole, node);
}
static const clv__profile_operator *measured_operator(const clv__making *m, const clv__model_device *d, uint32_t node) {
  uint32_t class = m->classes[node];
  if (d->tables == NULL || class == CLV__NO_ID || d->operators[class] == CLV__MAP_NONE) return NULL;
  return &d->tables->operators[d->operators[class]];
}

/* The best known time of a node. Clears `is_alone` if it is the time inside a partition: price_device() then adds the half
 * savings of the node's edges. Otherwise it is the time of the node alone, which includes them. */
static clv__model_price price_within(const clv__making *m, const clv__model_device *d, uint32_t node, bool *is_alone) {
  const clv__profile_operator *entry = measured_operator(m, d, node);
  const clv__fit *fit = NULL;
  double time;
  *is_alone = true;
  if (entry != NULL && entry->has_within && !entry->infeasible) {
    *is_alone = false;
    return (clv__model_price){entry->within_ns, CLV__COST_MEASURED, 0};
  }
  if (entry != NULL && entry->alone.runs > 0 && !entry->infeasible) {
    uint64_t launch = d->tables->launch.time_ns;
    return (clv__model_price){entry->alone.time_ns > launch ? entry->alone.time_ns - launch : 0, CLV__COST_MEASURED, 0};
  }
  bool infeasible = entry != NULL && entry->infeasible;
  if (d->tables != NULL && m->classes[node] != CLV__NO_ID) fit = clv__fits_find(d->fits, m->families[m->classes[node]]);
  if (!infeasible && fit != NULL && clv__fit_time(fit, m->flops[node], m->bytes[node], &time)) {
    *is_alone = false;
    return (clv__model_price){clv__cost_ns(time), CLV__COST_FITTED, 0};
  }
  time = stated_node(d->device, m->whole, node);
  if (time >= 0) return (clv__model_price){clv__cost_ns(time * 1e9), CLV__COST_STATED, infeasible};
  if (!(m->bytes[node] > 0)) return (clv__model_price){0, CLV__COST_UNKNOWN, infeasible};
  time = fmax(m->flops[node] / d->flops_per_second, m->bytes[node] / d->bytes_per_second);
  return (clv__model_price){clv__cost_ns(time * 1e9), d->peak_source, infeasible};
}

static bool is_product(const clv__node *node) {
  return strcmp(node->op, "Conv") == 0 || strcmp(node->op, "MatMul") == 0 || strcmp(node->op, "Gemm") == 0 ||
         strcmp(node->op, "ConvTranspose") == 0;
}

/* Assumes that an elementwise node is fused into the product whose result it reads. That saves writing the result and reading
 * it again. */
static uint64_t nominal_saving(const clv__making *m, const clv__model_device *d, const clv__model_edge *e, uint32_t consumer) {
  const clv__node *node = &m->whole->graph->nodes[consumer];
  const clv__op *op = clv__op_find(node->domain, node->op);
  if (!d->nominal->fuses || op == NULL || (op->flags & CLV__OP_ELEMENTWISE) == 0) return 0;
  if (!is_product(&m->whole->graph->nodes[e->producer])) return 0;
  return clv__cost_ns(2.0 * e->bytes / d->bytes_per_second * 1e9);
}

static bool is_supposed(clv__cost_source source) {
  return source == CLV__COST_ROOFLINE || source == CLV__COST_NOMINAL;
}

static uint64_t price_edge(const clv__making *m, const clv__model_device *d, const clv__model_price *producer,
                           const clv__model_edge *e, const clv__model_price *consumer, uint32_t consumer_node) {
  clv__cost_source a = (clv__cost_source)producer->source, b = (clv__cost_source)consumer->source;
  if (d->tables == NULL) return is_supposed(a) && is_supposed(b) ? nominal_saving(m, d, e, consumer_node) : 0;
  uint32_t from = m->classes[e->producer], to = m->classes[consumer_node];
  if (from == CLV__NO_ID || to == CLV__NO_ID || a > CLV__COST_FITTED || b > CLV__COST_FITTED) return 0;
  if (d->operators[from] != CLV__MAP_NONE && d->operators[to] != CLV__MAP_NONE) {
    uint32_t found = clv__profile_find_saving(d->tables, d->operators[from], d->operators[to]);
    if (found != CLV__MAP_NONE) return d->tables->savings[found].saving_ns;
  }
  return clv__cost_ns(clv__fits_saving_rate(d->fits, m->families[from], m->families[to]) * e->bytes);
}

/* Saturates at CLV__PROFILE_MAX_NS, because the times in a profile file may be that large. */
static uint64_t sum_ns(uint64_t a, uint64_t b) {
  return a + b > CLV__PROFILE_MAX_NS ? CLV__PROFILE_MAX_NS : a + b;
}

/* Prices the nodes and edges on one device. The price of a node includes half of the saving of each of its edges, because a node
 * that runs alone loses these savings. */
static void price_device(clv__making *m, uint32_t index, bool *is_alone, uint64_t *halves) {
  clv__cost_model *model = m->model;
  const clv__model_device *d = &model->devices[index];
  uint32_t stride = model->device_count;
  for (uint32_t n = 0; n < model->node_count; ++n) {
    halves[n] = 0;
    is_alone[n] = false;
    if (!m->is_view[n] && !clv__making_is_folded(m, n))
      model->prices[(size_t)n * stride + index] = price_within(m, d, n, &is_alone[n]);
  }
  for (uint32_t n = 0; n < model->node_count; ++n) {
    for (uint32_t e = model->edge_offsets[n]; e < model->edge_offsets[n + 1]; ++e) {
      const clv__model_price *from = &model->prices[(size_t)model->edges[e].producer * stride + index];
      uint64_t saving = price_edge(m, d, from, &model->edges[e], &model->prices[(size_t)n * stride + index], n) / 2;
      model->savings[(size_t)e * stride + index] = 2 * saving;
      halves[n] = sum_ns(halves[n], saving);
      halves[model->edges[e].producer] = sum_ns(halves[model->edges[e].producer], saving);
    }
  }
  for (uint32_t n = 0; n < model->node_count; ++n) {
    clv__model_price *p = &model->prices[(size_t)n * stride + index];
    if (!is_alone[n])
      p->time_ns = sum_ns(p->time_ns, halves[n]);
    else if (p->time_ns < halves[n])
      p->time_ns = halves[n];
  }
}

clv_status clv__making_price(clv__making *m) {
  clv__cost_model *model = m->model;
  clv_status status = CLV_OK;
  model->prices =
      clv__making_allocate(m, &model->arena, (size_t)model->node_count * model->device_count, sizeof *model->prices, &status);
  bool *is_alone = clv__making_allocate(m, &m->arena, model->node_count, sizeof *is_alone, &status);
  uint64_t *halves = clv__making_allocate(m, &m->arena, model->node_count, sizeof *halves, &status);
  for (uint32_t d = 0; status == CLV_OK && d < model->device_count; ++d) price_device(m, d, is_alone, halves);
  return status;
}
