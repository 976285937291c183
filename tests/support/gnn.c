/* Random graphs and GNN models, and their expected results: see gnn.h. */
#include "gnn.h"

#include <math.h>
#include <stdlib.h>

#include "support.h"

/* ---- Graphs ---- */

void test_gnn_make(test_gnn *gnn, const clv_allocator *allocator, uint32_t vertex_count, uint64_t edge_count,
                   uint32_t feature_count, uint64_t seed) {
  uint32_t connected = vertex_count - vertex_count / 5, hub = (uint32_t)(seed % connected);
  clv_error error = {0};
  *gnn = (test_gnn){.vertex_count = vertex_count, .edge_count = edge_count};
  gnn->sources = malloc((edge_count + 1) * sizeof *gnn->sources);
  gnn->destinations = malloc((edge_count + 1) * sizeof *gnn->destinations);
  float *features = malloc(((size_t)vertex_count * feature_count + 1) * sizeof *features);
  assert_true(gnn->sources != NULL && gnn->destinations != NULL && features != NULL);
  for (uint64_t e = 0; e < edge_count; ++e) {
    uint64_t kind = test_random(&seed) % 8;
    gnn->sources[e] = (uint32_t)(test_random(&seed) % connected);
    gnn->destinations[e] = kind < (vertex_count < 2000 ? 4 : 1) ? hub : (uint32_t)(test_random(&seed) % connected);
    if (kind == 4) gnn->destinations[e] = gnn->sources[e];
    if (kind != 5 || e == 0) continue;
    gnn->sources[e] = gnn->sources[e - 1];
    gnn->destinations[e] = gnn->destinations[e - 1];
  }
  for (size_t i = 0; i < (size_t)vertex_count * feature_count; ++i) features[i] = test_random_float(&seed);
  gnn->features = clv__tensor_make(CLV_F32, 2, (const int64_t[]){vertex_count, feature_count}, features);
  assert_ok(clv__gnn_graph_make(allocator, vertex_count, edge_count, gnn->sources, gnn->destinations, &gnn->features, NULL,
                                &gnn->graph, &error),
            error);
}

void test_gnn_finish(test_gnn *gnn) {
  clv__gnn_graph_destroy(gnn->graph);
  free(gnn->sources);
  free(gnn->destinations);
  free(gnn->features.data);
}

/* ---- Models ---- */

static clv_tensor random_weight(clv__arena *arena, uint32_t rows, uint32_t columns, uint64_t *seed) {
  const int64_t dims[] = {rows, columns};
  size_t count = (size_t)rows * (columns == 0 ? 1 : columns);
  float *data = clv__arena_allocate_data(arena, count * sizeof *data);
  assert_non_null(data);
  for (size_t i = 0; i < count; ++i) data[i] = test_random_float(seed) / sqrtf((float)(columns == 0 ? 1 : columns));
  return clv__tensor_make(CLV_F32, columns == 0 ? 1 : 2, dims, data);
}

clv__gnn_model *test_gnn_model(const clv_allocator *allocator, clv__gnn_type type, uint32_t layer_count, uint32_t feature_count,
                               uint64_t seed) {
  clv__gnn_model *model = clv__allocate_zero(allocator, sizeof *model);
  assert_non_null(model);
  clv__arena_init(&model->arena, allocator);
  model->type = type;
  model->layer_count = layer_count;
  model->layers = clv__arena_allocate_zero(&model->arena, layer_count, sizeof *model->layers);
  assert_non_null(model->layers);
  for (uint32_t i = 0; i < layer_count; ++i) {
    clv__gnn_layer *layer = &model->layers[i];
    bool is_gat = type == CLV__GNN_GAT;
    layer->in = i == 0 ? feature_count : clv__gnn_layer_width(layer - 1);
    layer->out = 1 + (uint32_t)(test_random(&seed) % 12);
    /* The library multiplies by the weights after the aggregation if a layer is wider than its input. Draw such layers, too. */
    if (test_random(&seed) % 3 == 0) layer->out = layer->in + 1;
    layer->heads = is_gat ? 1 + (uint32_t)(test_random(&seed) % 3) : 1;
    layer->concat = !is_gat || test_random(&seed) % 2 == 0;
    layer->activation = (clv__gnn_activation)(test_random(&seed) % 3);
    layer->neighbour = random_weight(&model->arena, layer->heads * layer->out, layer->in, &seed);
    if (type == CLV__GNN_SAGE) layer->self = random_weight(&model->arena, layer->out, layer->in, &seed);
    if (is_gat) layer->att_src = random_weight(&model->arena, layer->heads, layer->out, &seed);
    if (is_gat) layer->att_dst = random_weight(&model->arena, layer->heads, layer->out, &seed);
    if (test_random(&seed) % 4 != 0) layer->bias = random_weight(&model->arena, clv__gnn_layer_width(layer), 0, &seed);
  }
  return model;
}

/* ---- Expected results ---- */

typedef struct edge_list {
  uint64_t count;
  uint32_t *from, *to;
} edge_list;

/* Lists the edges. For GCN and GAT every vertex gets exactly one self-loop. */
static edge_list edges_of(const test_gnn *gnn, clv__gnn_type type) {
  edge_list list = {.from = calloc(gnn->edge_count + gnn->vertex_count + 1, sizeof *list.from),
                    .to = calloc(gnn->edge_count + gnn->vertex_count + 1, sizeof *list.to)};
  assert_true(list.from != NULL && list.to != NULL);
  for (uint64_t e = 0; e < gnn->edge_count; ++e) {
    if (type != CLV__GNN_SAGE && gnn->sources[e] == gnn->destinations[e]) continue;
    list.from[list.count] = gnn->sources[e];
    list.to[list.count] = gnn->destinations[e];
    ++list.count;
  }
  for (uint32_t v = 0; v < gnn->vertex_count && type != CLV__GNN_SAGE; ++v) {
    list.from[list.count] = list.to[list.count] = v;
    ++list.count;
  }
  return list;
}

static double *zeros(size_t count) {
  double *made = calloc(count + 1, sizeof *made);
  assert_non_null(made);
  return made;
}

/* y[v] += W x[v] for all n vertices */
static void add_product(double *y, const clv_tensor *weight, const double *x, size_t n) {
  size_t out = (size_t)weight->dims[0], in = (size_t)weight->dims[1];
  for (size_t v = 0; v < n; ++v) {
    for (size_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < in; ++i) y[v * out + o] += (double)((const float *)weight->data)[o * in + i] * x[v * in + i];
    }
  }
}

/* For each vertex, the sum of the rows of x over its incoming edges, each multiplied by the weight of the edge. */
static double *weighted_sum(const edge_list *edges, const double *weights, const double *x, size_t n, size_t columns) {
  double *sum = zeros(n * columns);
  for (uint64_t e = 0; e < edges->count; ++e) {
    for (size_t c = 0; c < columns; ++c) sum[edges->to[e] * columns + c] += weights[e] * x[edges->from[e] * columns + c];
  }
  return sum;
}

static double *edge_weights(const edge_list *edges, size_t n, bool is_mean) {
  double *degree = zeros(n), *weights = zeros(edges->count);
  for (uint64_t e = 0; e < edges->count; ++e) degree[edges->to[e]] += 1;
  for (uint64_t e = 0; e < edges->count; ++e)
    weights[e] = is_mean ? 1 / degree[edges->to[e]] : 1 / sqrt(degree[edges->to[e]] * degree[edges->from[e]]);
  free(degree);
  return weights;
}

static double score(const clv__gnn_layer *layer, const clv_tensor *attention, const double *h, size_t v, size_t head) {
  double sum = 0;
  for (size_t c = 0; c < layer->out; ++c)
    sum += (double)((const float *)attention->data)[head * layer->out + c] * h[(v * layer->heads + head) * layer->out + c];
  return sum;
}

static double *attend(const clv__gnn_layer *layer, const edge_list *edges, const double *x, size_t n) {
  size_t heads = layer->heads, out = layer->out, width = clv__gnn_layer_width(layer);
  double *h = zeros(n * heads * out), *made = zeros(n * width), *power = zeros(edges->count), *largest = zeros(n);
  double *total = zeros(n);
  add_product(h, &layer->neighbour, x, n);
  for (size_t head = 0; head < heads; ++head) {
    for (size_t v = 0; v < n; ++v) {
      largest[v] = -INFINITY;
      total[v] = 0;
    }
    for (uint64_t e = 0; e < edges->count; ++e) {
      double s = score(layer, &layer->att_src, h, edges->from[e], head) + score(layer, &layer->att_dst, h, edges->to[e], head);
      power[e] = s < 0 ? 0.2 * s : s;
      largest[edges->to[e]] = fmax(largest[edges->to[e]], power[e]);
    }
    for (uint64_t e = 0; e < edges->count; ++e) total[edges->to[e]] += exp(power[e] - largest[edges->to[e]]);
    for (uint64_t e = 0; e < edges->count; ++e) {
      double share = exp(power[e] - largest[edges->to[e]]) / total[edges->to[e]];
      for (size_t c = 0; c < out; ++c) {
        double part = share * h[(edges->from[e] * heads + head) * out + c];
        made[edges->to[e] * width + (layer->concat ? head * out + c : c)] += layer->concat ? part : part / (double)heads;
      }
    }
  }
  free(h), free(power), free(largest), free(total);
  return made;
}

static double activate(clv__gnn_activation activation, double x) {
  if (activation == CLV__GNN_NONE || x > 0) return x;
  return activation == CLV__GNN_RELU ? 0 : exp(x) - 1;
}

static double *layer_result(const clv__gnn_model *model, const clv__gnn_layer *layer, const edge_list *edges, const double *x,
                            size_t n) {
  size_t width = clv__gnn_layer_width(layer);
  double *made;
  if (model->type == CLV__GNN_GAT) {
    made = attend(layer, edges, x, n);
  } else {
    double *weights = edge_weights(edges, n, model->type == CLV__GNN_SAGE);
    double *sum = weighted_sum(edges, weights, x, n, layer->in);
    made = zeros(n * width);
    add_product(made, &layer->neighbour, sum, n);
    if (model->type == CLV__GNN_SAGE) add_product(made, &layer->self, x, n);
    free(weights), free(sum);
  }
  for (size_t i = 0; i < n * width; ++i) {
    if (layer->bias.dtype != CLV_DTYPE_NONE) made[i] += (double)((const float *)layer->bias.data)[i % width];
    made[i] = activate(layer->activation, made[i]);
  }
  return made;
}

double *test_gnn_expected(const test_gnn *gnn, const clv__gnn_model *model) {
  edge_list edges = edges_of(gnn, model->type);
  size_t n = gnn->vertex_count, count = n * (size_t)gnn->features.dims[1];
  double *x = zeros(count);
  for (size_t i = 0; i < count; ++i) x[i] = (double)((const float *)gnn->features.data)[i];
  for (uint32_t i = 0; i < model->layer_count; ++i) {
    double *next = layer_result(model, &model->layers[i], &edges, x, n);
    free(x);
    x = next;
  }
  free(edges.from), free(edges.to);
  return x;
}

void test_gnn_compare(const double *expected, const float *actual, size_t rows, size_t columns, const char *what) {
  double largest = 0, worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < rows * columns; ++i) {
    largest = fmax(largest, fabs(expected[i]));
    double off = fabs(expected[i] - (double)actual[i]);
    if (off <= worst && !isnan(off)) continue;
    worst = isnan(off) ? INFINITY : off;
    at = i;
  }
  if (worst <= 1e-5 * largest) return;
  fail_msg("%s: row %zu, column %zu is %.9g, expected %.9g (largest expected magnitude: %.3g)", what, at / columns, at % columns,
           (double)actual[at], expected[at], largest);
}
