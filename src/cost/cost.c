/* The cost model of a plan: every node on every device, priced once when it is made; looked up while placing and splitting. */
#include "cost/cost.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/fit.h"
#include "cost/nominal.h"
#include "cost/signature.h"

enum { FAMILY_BYTES = 96 };

/* One price a node and device, packed: plans of 100,000 nodes have as many. */
typedef struct price {
  uint64_t time_ns : 56;
  uint64_t source : 7;
  uint64_t infeasible : 1;
} price;

/* An edge that could save something: a value that a node reads from another. */
typedef struct edge {
  uint32_t producer, input;
  float bytes;
} edge;

typedef struct device_model {
  const clv__device *device;
  const clv__profile_device *tables; /* NULL: not in the profile. The profile may go once the model is made, and with it this, */
  clv__fits *fits;                   /* this */
  uint32_t *operators;               /* and this: by class of signatures: of the tables, or CLV__MAP_NONE */
  const clv__nominal *nominal;
  uint32_t copy_counts[2]; /* in, out; 0: not measured */
  const clv__profile_copy *copies[2];
  double flops_per_second, bytes_per_second;
  clv__cost_source peak_source;
  uint64_t launch_ns;
  char origin[160];
} device_model;

struct clv__cost_model {
  clv__arena arena;
  uint32_t node_count, device_count;
  device_model devices[CLV__MAX_DEVICES];
  price *prices;          /* [node * device_count + device] */
  uint32_t *edge_offsets; /* CSR by node: what it reads from other nodes */
  edge *edges;
  uint64_t *savings; /* [edge * device_count + device] */
};

/* What is known while the model is made, and not kept. */
typedef struct making {
  clv__cost_model *model;
  const clv_graph_view *whole;
  const bool *folded;
  clv__arena arena;
  uint32_t class_count;
  uint32_t *classes;     /* by node: of equal signatures; CLV__NO_ID: views, folded nodes, unknown sizes, or nobody asks */
  const char **families; /* by class */
  bool *is_view;         /* by node */
  float *flops, *bytes;  /* by node */
  clv_error *error;
} making;

const char *clv__cost_source_name(clv__cost_source source) {
  static const char *const names[] = {"measured", "fitted", "stated", "roofline", "nominal", "sizes unknown"};
  return (size_t)source < sizeof names / sizeof *names ? names[source] : "?";
}

static uint64_t to_ns(double ns) {
  if (!(ns > 0)) return 0;
  return ns >= (double)CLV__PROFILE_MAX_NS ? CLV__PROFILE_MAX_NS : (uint64_t)(ns + 0.5);
}

static void *take(making *m, clv__arena *arena, size_t count, size_t element_bytes, clv_status *status) {
  void *made = clv__arena_allocate_zero(arena, count, element_bytes);
  if (made == NULL) *status = clv__error_memory(m->error, count * element_bytes);
  return made;
}

/* ---- Devices ---- */

/* Slots that a backend does not know count as absent, and those of a device that was given up. */
#define SLOT(device, slot)                                                                                               \
  (!(device)->is_lost && (device)->backend->struct_size >= offsetof(clv_backend, slot) + sizeof((device)->backend->slot) \
       ? (device)->backend->slot                                                                                         \
       : NULL)

static double stated_node(const clv__device *device, const clv_graph_view *whole, uint32_t node) {
  double (*slot)(clv_device *, const clv_graph_view *, uint32_t) = SLOT(device, node_seconds);
  return slot == NULL ? -1 : slot(device->handle, whole, node);
}
static double stated_copy(const clv__device *device, uint64_t size_bytes) {
  double (*slot)(clv_device *, uint64_t) = SLOT(device, copy_seconds);
  return slot == NULL ? -1 : slot(device->handle, size_bytes);
}
static double stated_launch(const clv__device *device) {
  double (*slot)(clv_device *) = SLOT(device, launch_seconds);
  return slot == NULL ? -1 : slot(device->handle);
}

static void describe_origin(device_model *d, bool has_profile) {
  if (d->tables != NULL) {
    snprintf(d->origin, sizeof d->origin, "profile of %.40s", d->tables->measured);
  } else {
    snprintf(d->origin, sizeof d->origin, "%s%s", stated_launch(d->device) >= 0 ? "stated by the device" : "nominal",
             has_profile                     ? ": the profile is of other devices"
             : stated_launch(d->device) >= 0 ? ""
                                             : ": no profile");
  }
}

static clv_status keep_copies(making *m, device_model *d) {
  for (uint32_t way = 0; way < 2; ++way) {
    d->copy_counts[way] = d->tables->copy_counts[CLV__COPY_IN + way];
    size_t size_bytes = d->copy_counts[way] * sizeof *d->copies[way];
    d->copies[way] = clv__arena_copy(&m->model->arena, d->tables->copies[CLV__COPY_IN + way], size_bytes);
    if (d->copies[way] == NULL) return clv__error_memory(m->error, size_bytes);
  }
  return CLV_OK;
}

static clv_status prepare_device(making *m, device_model *d, const clv__device *device, const clv__profile *profile) {
  uint32_t found = profile == NULL ? CLV__NO_ID : clv__profile_find_device(profile, device->info.fingerprint);
  d->device = device;
  d->nominal = clv__nominal_find(device->info.kind);
  d->tables = found == CLV__NO_ID ? NULL : profile->devices[found];
  if (d->tables != NULL) {
    CLV__TRY(clv__fits_create(d->tables, m->arena.allocator, &d->fits, m->error));
    CLV__TRY(keep_copies(m, d));
  }
  bool measured = d->tables != NULL && d->tables->flops_per_second > 0 && d->tables->bytes_per_second > 0;
  d->flops_per_second = measured ? d->tables->flops_per_second : d->nominal->flops_per_second;
  d->bytes_per_second = measured ? d->tables->bytes_per_second : d->nominal->bytes_per_second;
  d->peak_source = measured ? CLV__COST_ROOFLINE : CLV__COST_NOMINAL;
  double stated = stated_launch(device);
  d->launch_ns = d->tables != NULL && d->tables->launch.runs > 0 ? d->tables->launch.time_ns
                 : stated >= 0                                   ? to_ns(stated * 1e9)
                                                                 : d->nominal->launch_ns;
  describe_origin(d, profile != NULL);
  return CLV_OK;
}

/* ---- Nodes: work, classes, edges ---- */

static bool is_folded(const making *m, uint32_t node) {
  return m->folded != NULL && m->folded[node];
}

static clv_status read_nodes(making *m) {
  clv_status status = CLV_OK;
  uint32_t count = m->model->node_count;
  m->classes = take(m, &m->arena, count, sizeof *m->classes, &status);
  m->is_view = take(m, &m->arena, count, sizeof *m->is_view, &status);
  m->flops = take(m, &m->arena, count, sizeof *m->flops, &status);
  m->bytes = take(m, &m->arena, count, sizeof *m->bytes, &status);
  if (status != CLV_OK) return status;
  for (uint32_t n = 0; n < count; ++n) {
    clv__work work;
    m->classes[n] = CLV__NO_ID;
    m->is_view[n] = clv__node_is_view(&m->whole->graph->nodes[n]);
    if (m->is_view[n] || is_folded(m, n)) continue;
    if (!clv__node_work(m->whole, n, &work)) return clv__error_memory(m->error, sizeof work);
    m->flops[n] = (float)work.flops;
    m->bytes[n] = (float)work.bytes;
  }
  return CLV_OK;
}

/* Nodes of equal signatures share what the tables say of them. */
static clv_status classify(making *m) {
  uint32_t count = m->model->node_count;
  clv_status status = CLV_OK;
  clv__map index;
  clv__text text;
  const char **signatures = take(m, &m->arena, count, sizeof *signatures, &status);
  m->families = take(m, &m->arena, count, sizeof *m->families, &status);
  clv__map_init(&index, m->arena.allocator);
  clv__text_init(&text, m->arena.allocator);
  for (uint32_t n = 0; n < count && status == CLV_OK; ++n) {
    char family[FAMILY_BYTES];
    if (m->is_view[n] || is_folded(m, n) || !clv__signature_is_static(m->whole, n)) continue;
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
    device_model *d = &m->model->devices[i];
    if (d->tables == NULL) continue;
    d->operators = take(m, &m->arena, m->class_count, sizeof *d->operators, &status);
    for (uint32_t c = 0; c < m->class_count && status == CLV_OK; ++c)
      d->operators[c] = clv__profile_find_operator(d->tables, signatures[c]);
  }
  clv__text_finish(&text);
  clv__map_finish(&index);
  return status;
}

static int compare_edges(const void *a, const void *b) {
  const edge *x = a, *y = b;
  if (x->producer != y->producer) return x->producer < y->producer ? -1 : 1;
  return x->input < y->input ? -1 : x->input > y->input;
}

/* The edges between nodes that do work, by reader, then by producer. */
static clv_status read_edges(making *m) {
  clv__cost_model *model = m->model;
  const clv_graph *graph = m->whole->graph;
  clv_status status = CLV_OK;
  uint64_t total = 0;
  for (uint32_t n = 0; n < model->node_count; ++n) total += graph->nodes[n].input_count;
  if (total >= UINT32_MAX) return clv__error_memory(m->error, SIZE_MAX);
  model->edge_offsets = take(m, &model->arena, (size_t)model->node_count + 1, sizeof *model->edge_offsets, &status);
  edge *edges = take(m, &m->arena, total, sizeof *edges, &status);
  uint32_t at = 0;
  for (uint32_t n = 0; n < model->node_count && status == CLV_OK; ++n) {
    for (uint32_t k = 0; k < graph->nodes[n].input_count && !m->is_view[n] && !is_folded(m, n); ++k) {
      clv_node_id producer = clv__node_producer(m->whole, n, k);
      if (producer == CLV__NO_ID || m->is_view[producer] || is_folded(m, producer)) continue;
      edges[at++] = (edge){producer, k, (float)clv__value_bytes(m->whole, graph->nodes[n].inputs[k])};
    }
    uint32_t first = model->edge_offsets[n];
    if (at - first > 1) qsort(edges + first, at - first, sizeof *edges, compare_edges);
    model->edge_offsets[n + 1] = at;
  }
  if (status != CLV_OK) return status;
  model->edges = clv__arena_copy(&model->arena, edges, at * sizeof *edges);
  model->savings = take(m, &model->arena, (size_t)at * model->device_count, sizeof *model->savings, &status);
  return model->edges == NULL ? clv__error_memory(m->error, at * sizeof *edges) : status;
}

/* ---- Prices ---- */

static const clv__profile_operator *measured_operator(const making *m, const device_model *d, uint32_t node) {
  uint32_t class = m->classes[node];
  if (d->tables == NULL || class == CLV__NO_ID || d->operators[class] == CLV__MAP_NONE) return NULL;
  return &d->tables->operators[d->operators[class]];
}

/* What the node takes inside a partition. `least` is set where that is measured alone only: then edges save from it. */
static price price_within(const making *m, const device_model *d, uint32_t node, bool *is_alone) {
  const clv__profile_operator *entry = measured_operator(m, d, node);
  const clv__fit *fit = NULL;
  double time;
  *is_alone = true;
  if (entry != NULL && entry->is_settled && !entry->infeasible) {
    *is_alone = false;
    return (price){entry->within_ns, CLV__COST_MEASURED, 0};
  }
  if (entry != NULL && entry->alone.runs > 0 && !entry->infeasible) {
    uint64_t launch = d->tables->launch.time_ns;
    return (price){entry->alone.time_ns > launch ? entry->alone.time_ns - launch : 0, CLV__COST_MEASURED, 0};
  }
  bool infeasible = entry != NULL && entry->infeasible;
  if (d->tables != NULL && m->classes[node] != CLV__NO_ID) fit = clv__fits_find(d->fits, m->families[m->classes[node]]);
  if (!infeasible && fit != NULL && clv__fit_time(fit, m->flops[node], m->bytes[node], &time)) {
    *is_alone = false;
    return (price){to_ns(time), CLV__COST_FITTED, 0};
  }
  time = stated_node(d->device, m->whole, node);
  if (time >= 0) return (price){to_ns(time * 1e9), CLV__COST_STATED, infeasible};
  if (!(m->bytes[node] > 0)) return (price){0, CLV__COST_UNKNOWN, infeasible};
  time = fmax(m->flops[node] / d->flops_per_second, m->bytes[node] / d->bytes_per_second);
  return (price){to_ns(time * 1e9), d->peak_source, infeasible};
}

static bool is_product(const clv__node *node) {
  return strcmp(node->op, "Conv") == 0 || strcmp(node->op, "MatMul") == 0 || strcmp(node->op, "Gemm") == 0 ||
         strcmp(node->op, "ConvTranspose") == 0;
}

/* Supposed: an elementwise node that reads a product rides on it, and its memory traffic is saved. */
static uint64_t nominal_saving(const making *m, const device_model *d, const edge *e, uint32_t consumer) {
  const clv__node *node = &m->whole->graph->nodes[consumer];
  const clv__op *op = clv__op_find(node->domain, node->op);
  if (!d->nominal->fuses || op == NULL || (op->flags & CLV__OP_ELEMENTWISE) == 0) return 0;
  if (!is_product(&m->whole->graph->nodes[e->producer])) return 0;
  return to_ns(2.0 * e->bytes / d->bytes_per_second * 1e9);
}

static bool is_supposed(clv__cost_source source) {
  return source == CLV__COST_ROOFLINE || source == CLV__COST_NOMINAL;
}

static uint64_t price_edge(const making *m, const device_model *d, const price *producer, const edge *e, const price *consumer,
                           uint32_t consumer_node) {
  clv__cost_source a = (clv__cost_source)producer->source, b = (clv__cost_source)consumer->source;
  if (d->tables == NULL) return is_supposed(a) && is_supposed(b) ? nominal_saving(m, d, e, consumer_node) : 0;
  uint32_t from = m->classes[e->producer], to = m->classes[consumer_node];
  if (from == CLV__NO_ID || to == CLV__NO_ID || a > CLV__COST_FITTED || b > CLV__COST_FITTED) return 0;
  if (d->operators[from] != CLV__MAP_NONE && d->operators[to] != CLV__MAP_NONE) {
    uint32_t found = clv__profile_find_saving(d->tables, d->operators[from], d->operators[to]);
    if (found != CLV__MAP_NONE) return d->tables->savings[found].saving_ns;
  }
  return to_ns(clv__fits_saving_rate(d->fits, m->families[from], m->families[to]) * e->bytes);
}

/* Sums end at the longest time there is: profiles come from files. */
static uint64_t sum_ns(uint64_t a, uint64_t b) {
  return a + b > CLV__PROFILE_MAX_NS ? CLV__PROFILE_MAX_NS : a + b;
}

/* Prices the edges of one device, and adds to each node what it bears of them when it is alone. */
static void price_device(making *m, uint32_t index, bool *is_alone, uint64_t *halves) {
  clv__cost_model *model = m->model;
  const device_model *d = &model->devices[index];
  uint32_t stride = model->device_count;
  for (uint32_t n = 0; n < model->node_count; ++n) {
    halves[n] = 0;
    is_alone[n] = false;
    if (!m->is_view[n] && !is_folded(m, n)) model->prices[(size_t)n * stride + index] = price_within(m, d, n, &is_alone[n]);
  }
  for (uint32_t n = 0; n < model->node_count; ++n) {
    for (uint32_t e = model->edge_offsets[n]; e < model->edge_offsets[n + 1]; ++e) {
      const price *from = &model->prices[(size_t)model->edges[e].producer * stride + index];
      uint64_t saving = price_edge(m, d, from, &model->edges[e], &model->prices[(size_t)n * stride + index], n) / 2;
      model->savings[(size_t)e * stride + index] = 2 * saving;
      halves[n] = sum_ns(halves[n], saving);
      halves[model->edges[e].producer] = sum_ns(halves[model->edges[e].producer], saving);
    }
  }
  for (uint32_t n = 0; n < model->node_count; ++n) {
    price *p = &model->prices[(size_t)n * stride + index];
    if (!is_alone[n])
      p->time_ns = sum_ns(p->time_ns, halves[n]);
    else if (p->time_ns < halves[n])
      p->time_ns = halves[n];
  }
}

static clv_status make_prices(making *m) {
  clv__cost_model *model = m->model;
  clv_status status = CLV_OK;
  bool any_tables = false;
  for (uint32_t d = 0; d < model->device_count; ++d) any_tables = any_tables || model->devices[d].tables != NULL;
  model->prices = take(m, &model->arena, (size_t)model->node_count * model->device_count, sizeof *model->prices, &status);
  bool *is_alone = take(m, &m->arena, model->node_count, sizeof *is_alone, &status);
  uint64_t *halves = take(m, &m->arena, model->node_count, sizeof *halves, &status);
  if (status == CLV_OK) status = read_nodes(m);
  if (status == CLV_OK && any_tables) status = classify(m);
  if (status == CLV_OK) status = read_edges(m);
  for (uint32_t d = 0; status == CLV_OK && d < model->device_count; ++d) price_device(m, d, is_alone, halves);
  return status;
}

clv_status clv__cost_model_create(const clv_devices *devices, const clv_graph_view *whole, const bool *folded,
                                  const clv__profile *profile, clv__cost_model **out, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  *out = NULL;
  clv__cost_model *model = clv__allocate_zero(allocator, sizeof *model);
  if (model == NULL) return clv__error_memory(error, sizeof *model);
  model->node_count = whole->node_count;
  model->device_count = devices->count;
  clv__arena_init(&model->arena, allocator);
  making m = {.model = model, .whole = whole, .folded = folded, .error = error};
  clv__arena_init(&m.arena, allocator);
  clv_status status = CLV_OK;
  for (uint32_t d = 0; status == CLV_OK && d < devices->count; ++d) {
    status = prepare_device(&m, &model->devices[d], &devices->items[d], profile);
    if (status == CLV_OK && profile != NULL && model->devices[d].tables == NULL) {
      clv__context_log(devices->context, 1, "%s: not in the profile (measure it with 'cleave profile'); its prices are %s",
                       devices->items[d].name, model->devices[d].origin);
    }
  }
  if (status == CLV_OK) status = make_prices(&m);
  clv__arena_finish(&m.arena);
  for (uint32_t d = 0; d < devices->count; ++d) {
    clv__fits_destroy(model->devices[d].fits); /* and what else belongs to the profile, or was only needed to make prices */
    model->devices[d].fits = NULL;
    model->devices[d].operators = NULL;
    model->devices[d].tables = NULL;
  }
  if (status == CLV_OK)
    *out = model;
  else
    clv__cost_model_destroy(model);
  return status;
}

void clv__cost_model_destroy(clv__cost_model *model) {
  if (model == NULL) return;
  const clv_allocator *allocator = model->arena.allocator;
  clv__arena_finish(&model->arena);
  clv__release(allocator, model);
}

/* ---- Looking up ---- */

clv__cost clv__cost_node(const clv__cost_model *model, uint32_t node, uint32_t device) {
  price p = model->prices[(size_t)node * model->device_count + device];
  return (clv__cost){p.time_ns, (clv__cost_source)p.source, p.infeasible};
}

uint64_t clv__cost_saving(const clv__cost_model *model, uint32_t producer, uint32_t consumer, uint32_t device) {
  uint32_t low = model->edge_offsets[consumer], high = model->edge_offsets[consumer + 1], end = high;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (model->edges[middle].producer < producer) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == end || model->edges[low].producer != producer) return 0;
  return model->savings[(size_t)low * model->device_count + device];
}

uint64_t clv__cost_launch(const clv__cost_model *model, uint32_t device) {
  return model->devices[device].launch_ns;
}

uint64_t clv__cost_copy(const clv__cost_model *model, uint32_t device, bool to_device, uint64_t size_bytes) {
  const device_model *d = &model->devices[device];
  uint32_t way = to_device ? 0 : 1;
  if (d->device->space == CLV__SPACE_HOST) return 0;
  if (d->copy_counts[way] > 0) return to_ns(clv__copy_time(d->copies[way], d->copy_counts[way], size_bytes));
  double stated = stated_copy(d->device, size_bytes);
  if (stated >= 0) return to_ns(stated * 1e9);
  return d->nominal->copy_latency_ns + to_ns((double)size_bytes / d->nominal->copy_bytes_per_second * 1e9);
}

const char *clv__cost_origin(const clv__cost_model *model, uint32_t device) {
  return model->devices[device].origin;
}
