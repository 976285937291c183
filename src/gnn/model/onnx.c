/* Recognises models in ONNX graphs. From the output backwards, a layer is
 *
 *   an activation (Relu, Elu or none) of a sum (Add) of
 *     biases: constants;
 *     GraphSAGE's own part: a product (Gemm, MatMul) of the layer's input and a constant;
 *     an aggregate: ScatterElements or ScatterND with reduction "add" (or SparseAggregate) of gathered rows. Edge
 *     coefficients may multiply the rows, and a division may follow. The product with the weight comes before or after.
 *     GAT: the coefficients depend on features, through two sums (ReduceSum) of products with constants, gathered for
 *     both ends of the edge.
 *
 * The recogniser looks through reshapes, casts, expansions and slices. It does not examine how the graph computes indices,
 * degrees and the softmax. Instead, prove.c compares the recognised model with the graph, number by number. */
#include <stdio.h>

#include "formats/onnx/onnx.h"
#include "gnn/model/find.h"
#include "gnn/model/model_own.h"

enum { MOST_TERMS = 6 };

typedef struct product {
  clv_value_id x;
  const clv_tensor *weight; /* [out, in], or [in, out] if transposed */
  bool is_transposed;
  const clv_tensor *bias; /* NULL: none */
} product;

/* The recognised parts of a layer. */
typedef struct found {
  clv__gnn_type type;
  clv_value_id x;
  clv__gnn_activation activation;
  product neighbour, self;
  bool has_self, is_averaged; /* is_averaged: the heads are averaged */
  const clv_tensor *biases[MOST_TERMS];
  uint32_t bias_count;
  const clv_tensor *att_src, *att_dst;
} found;

typedef struct aggregate {
  const clv__node *scatter;
  clv_value_id rows, index, coefficients; /* the gathered rows, their indices, and the edges' coefficients (CLV__NO_ID: none) */
  bool is_averaged;
} aggregate;

/* ---- Pieces ---- */

static bool match_product(const clv__finder *f, clv_value_id value, product *p) {
  const clv__node *node = clv__find_maker(f, value);
  *p = (product){0};
  if (node == NULL || node->input_count < 2) return false;
  p->weight = clv__find_constant(f, node->inputs[1]);
  p->x = clv__find_through(f, node->inputs[0]);
  if (p->weight == NULL || p->weight->rank != 2) return false;
  if (clv__find_is(node, "MatMul")) {
    p->is_transposed = true;
    return true;
  }
  if (!clv__find_is(node, "Gemm") || clv__attribute_int(node->attributes, "transA", 0) != 0 ||
      clv__attribute_float(node->attributes, "alpha", 1) != 1 || clv__attribute_float(node->attributes, "beta", 1) != 1)
    return false;
  p->is_transposed = clv__attribute_int(node->attributes, "transB", 0) == 0;
  if (node->input_count < 3 || node->inputs[2] == CLV__NO_ID) return true;
  p->bias = clv__find_constant(f, node->inputs[2]);
  return p->bias != NULL;
}

static bool is_sparse(const clv__node *node) {
  return strcmp(node->domain, "ai.cleave") == 0 && strcmp(node->op, "SparseAggregate") == 0;
}

static bool is_scatter(const clv__finder *f, const clv__node *node) {
  if (node == NULL) return false;
  if (is_sparse(node)) return clv__find_of_features(f, node->inputs[0]);
  if (!clv__find_is(node, "ScatterElements") && !clv__find_is(node, "ScatterND")) return false;
  return clv__attribute_is(node->attributes, "reduction", "add", false) && clv__find_of_features(f, node->inputs[2]);
}

/* Finds the scatter behind reshapes, a mean over heads and a division. */
static const clv__node *find_scatter(const clv__finder *f, clv_value_id value, bool *is_averaged, int depth) {
  const clv__node *node = clv__find_maker(f, clv__find_through_shapes(f, value));
  if (node == NULL || depth > 4) return NULL;
  if (is_scatter(f, node)) return node;
  if (clv__find_is(node, "ReduceMean")) {
    *is_averaged = true;
    return find_scatter(f, node->inputs[0], is_averaged, depth + 1);
  }
  if (!clv__find_is(node, "Div") && !clv__find_is(node, "Mul")) return NULL;
  const clv__node *first = find_scatter(f, node->inputs[0], is_averaged, depth + 1);
  return first != NULL || clv__find_is(node, "Div") ? first : find_scatter(f, node->inputs[1], is_averaged, depth + 1);
}

static const clv__node *find_gather(const clv__finder *f, clv_value_id value) {
  const clv__node *node = clv__find_maker(f, clv__find_through_shapes(f, value));
  if (node == NULL || !clv__find_is(node, "Gather") || !clv__find_of_features(f, node->inputs[0])) return NULL;
  int64_t axis = clv__attribute_int(node->attributes, "axis", 0), rank = f->shapes->types[node->inputs[0]].rank;
  return axis == 0 || (rank > 0 && axis + rank == 0) ? node : NULL;
}

static bool match_aggregate(const clv__finder *f, clv_value_id value, aggregate *a) {
  *a = (aggregate){.coefficients = CLV__NO_ID, .index = CLV__NO_ID};
  a->scatter = find_scatter(f, value, &a->is_averaged, 0);
  if (a->scatter == NULL) return false;
  if (is_sparse(a->scatter)) {
    a->rows = clv__find_through_shapes(f, a->scatter->inputs[0]);
    return true;
  }
  clv_value_id updates = clv__find_through_shapes(f, a->scatter->inputs[2]);
  const clv__node *node = clv__find_maker(f, updates), *gather = find_gather(f, updates);
  if (gather == NULL && node != NULL && clv__find_is(node, "Mul")) {
    gather = find_gather(f, node->inputs[1]);
    a->coefficients = node->inputs[0];
    if (gather == NULL || find_gather(f, node->inputs[0]) != NULL) {
      gather = find_gather(f, node->inputs[0]);
      a->coefficients = node->inputs[1];
    }
  }
  if (gather == NULL) return false;
  a->rows = clv__find_through_shapes(f, gather->inputs[0]);
  a->index = gather->inputs[1];
  return true;
}

/* ---- Attention ---- */

/* Returns the constant, [1, heads, out], whose product with `rows` is summed and then gathered. NULL if there is none. */
static const clv_tensor *match_score(const clv__finder *f, const clv__node *gather, clv_value_id rows) {
  const clv__node *sum = clv__find_maker(f, clv__find_through_shapes(f, gather->inputs[0]));
  if (sum == NULL || !clv__find_is(sum, "ReduceSum")) return NULL;
  const clv__node *times = clv__find_maker(f, clv__find_through(f, sum->inputs[0]));
  if (times == NULL || !clv__find_is(times, "Mul")) return NULL;
  for (uint32_t side = 0; side < 2; ++side) {
    const clv_tensor *constant = clv__find_constant(f, times->inputs[side]);
    if (constant != NULL && constant->rank >= 2 && clv__find_through_shapes(f, times->inputs[1 - side]) == rows) return constant;
  }
  return NULL;
}

/* Finds the two sums that the coefficients are computed from. Nodes are in topological order, so one backward pass over the
 * relevant nodes suffices. */
static clv_status find_scores(const clv__finder *f, const aggregate *a, found *layer) {
  bool *wanted = clv__allocate_zero(f->allocator, f->graph->value_count + 1);
  uint32_t count = 0;
  if (wanted == NULL) return clv__error_memory(f->error, f->graph->value_count);
  wanted[a->coefficients] = true;
  for (uint32_t n = f->graph->node_count; n-- > 0;) {
    const clv__node *node = &f->graph->nodes[n];
    bool is_wanted = false;
    for (uint32_t o = 0; o < node->output_count; ++o) is_wanted |= node->outputs[o] != CLV__NO_ID && wanted[node->outputs[o]];
    if (!is_wanted) continue;
    const clv_tensor *constant = clv__find_is(node, "Gather") ? match_score(f, node, a->rows) : NULL;
    if (constant != NULL) {
      const clv_tensor **side = clv__find_same(f, node->inputs[1], a->index, 0) ? &layer->att_src : &layer->att_dst;
      count += *side == NULL || *side == constant ? *side == NULL : 3;
      *side = constant;
      continue;
    }
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != CLV__NO_ID && clv__find_of_features(f, node->inputs[i])) wanted[node->inputs[i]] = true;
    }
  }
  clv__release(f->allocator, wanted);
  if (count == 2) return CLV_OK;
  return clv__find_refuse(
      f, a->scatter,
      "its messages have weights that depend on the features, but not as in GAT. A GAT layer computes them from two "
      "ReduceSums of products with constants, one for each end of an edge");
}

/* ---- Layers ---- */

static clv_status add_term(const clv__finder *f, clv_value_id value, found *layer, aggregate *a) {
  const clv_tensor *constant = clv__find_constant(f, value);
  const clv__node *node = clv__find_maker(f, value);
  aggregate inner;
  product p;
  if (constant != NULL && layer->bias_count < MOST_TERMS) {
    layer->biases[layer->bias_count++] = constant;
    return CLV_OK;
  }
  if (match_product(f, value, &p)) {
    bool is_neighbour = match_aggregate(f, p.x, &inner);
    if (is_neighbour ? a->scatter != NULL : layer->has_self)
      return clv__find_refuse(
          f, node, "the layer multiplies its neighbours' rows, or its own rows, by two weights; expected one for each at most");
    *(is_neighbour ? &layer->neighbour : &layer->self) = p;
    if (is_neighbour) {
      *a = inner;
      layer->x = inner.rows;
    } else {
      layer->has_self = true;
    }
    if (p.bias != NULL && layer->bias_count < MOST_TERMS) layer->biases[layer->bias_count++] = p.bias;
    return CLV_OK;
  }
  if (a->scatter != NULL || !match_aggregate(f, value, a))
    return clv__find_refuse(f, node, "it is not part of a known kind of layer");
  if (!match_product(f, a->rows, &layer->neighbour))
    return clv__find_refuse(f, a->scatter, "neither the terms that it sums nor its sum is a product with a constant weight");
  if (layer->neighbour.bias != NULL)
    return clv__find_refuse(f, clv__find_maker(f, a->rows),
                            "it adds a bias before the rows are summed; expected a bias only after the sum");
  layer->x = layer->neighbour.x;
  return CLV_OK;
}

/* Appends the terms of the sum `value` to `values`, which has `count` items. Returns the new count, at most MOST_TERMS. */
static uint32_t flatten(const clv__finder *f, clv_value_id value, clv_value_id *values, uint32_t count) {
  clv_value_id at = clv__find_constant(f, value) == NULL ? clv__find_through_shapes(f, value) : value;
  const clv__node *node = clv__find_maker(f, at);
  bool is_sum = node != NULL && clv__find_is(node, "Add") && clv__find_constant(f, at) == NULL;
  if (is_sum && count + 2 <= MOST_TERMS) return flatten(f, node->inputs[1], values, flatten(f, node->inputs[0], values, count));
  if (count < MOST_TERMS) values[count++] = at;
  return count;
}

static clv_status find_layer(const clv__finder *f, clv_value_id value, found *layer) {
  clv_value_id terms[MOST_TERMS];
  aggregate a = {0};
  const clv__node *node = clv__find_maker(f, value);
  *layer = (found){.activation = CLV__GNN_NONE};
  if (node == NULL) return clv__find_refuse(f, NULL, "the layers do not connect the output to the input for features");
  if (clv__find_is(node, "Relu")) layer->activation = CLV__GNN_RELU;
  if (clv__find_is(node, "Elu") && clv__attribute_float(node->attributes, "alpha", 1) == 1) layer->activation = CLV__GNN_ELU;
  uint32_t count = flatten(f, layer->activation == CLV__GNN_NONE ? value : node->inputs[0], terms, 0);
  for (uint32_t i = 0; i < count; ++i) CLV__TRY(add_term(f, terms[i], layer, &a));
  if (a.scatter == NULL) return clv__find_refuse(f, node, "its layer has no sum over edges (ScatterElements or ScatterND)");
  layer->is_averaged = a.is_averaged;
  layer->type = layer->has_self ? CLV__GNN_SAGE : CLV__GNN_GCN;
  if (layer->has_self && clv__find_through_shapes(f, layer->self.x) != clv__find_through_shapes(f, layer->x))
    return clv__find_refuse(f, node, "its two products do not have the same input");
  if (layer->has_self || a.coefficients == CLV__NO_ID || !clv__find_of_features(f, a.coefficients)) return CLV_OK;
  layer->type = CLV__GNN_GAT;
  return find_scores(f, &a, layer);
}

/* ---- Weights ---- */

/* Copies the weight in state_dict's layout, whichever layout the graph uses. */
static clv_status take_product(const clv__finder *f, clv__gnn_model *model, const char *name, const product *p,
                               clv_tensor *weight) {
  const int64_t dims[] = {p->weight->dims[p->is_transposed], p->weight->dims[!p->is_transposed]};
  CLV__TRY(clv__gnn_weight_copy(model, name, p->weight, 2, p->weight->dims, weight, f->error));
  if (!p->is_transposed) return CLV_OK;
  const float *from = weight->data;
  size_t count = (size_t)(dims[0] * dims[1]);
  float *to = clv__arena_allocate_data(&model->arena, count * sizeof *to);
  if (to == NULL) return clv__error_memory(f->error, count * sizeof *to);
  for (int64_t o = 0; o < dims[0]; ++o) {
    for (int64_t i = 0; i < dims[1]; ++i) to[o * dims[1] + i] = from[i * dims[0] + o];
  }
  *weight = clv__tensor_make(CLV_F32, 2, dims, to);
  return CLV_OK;
}

static clv_status take_biases(const clv__finder *f, clv__gnn_model *model, const found *from, clv__gnn_layer *layer) {
  const int64_t width = clv__gnn_layer_width(layer);
  for (uint32_t b = 0; b < from->bias_count; ++b) {
    clv_tensor bias;
    CLV__TRY(clv__gnn_weight_copy(model, "bias", from->biases[b], 1, &width, &bias, f->error));
    float *sum = layer->bias.data;
    for (int64_t i = 0; sum != NULL && i < width; ++i) sum[i] += ((const float *)bias.data)[i];
    if (sum == NULL) layer->bias = bias;
  }
  return CLV_OK;
}

static clv_status take_layer(const clv__finder *f, clv__gnn_model *model, const found *from, clv__gnn_layer *layer) {
  layer->activation = from->activation;
  layer->heads = 1;
  layer->concat = true;
  CLV__TRY(take_product(f, model, "neighbour", &from->neighbour, &layer->neighbour));
  int64_t rows = layer->neighbour.dims[0], columns = layer->neighbour.dims[1];
  if (rows < 1 || rows > CLV__MOST_WIDTH || columns < 1 || columns > CLV__MOST_WIDTH)
    return clv__error_set(f->error, CLV_NOT_SUPPORTED, "a weight has an unsupported shape of %lld times %lld", (long long)rows,
                          (long long)columns);
  layer->in = (uint32_t)columns;
  layer->out = (uint32_t)rows;
  if (from->type == CLV__GNN_SAGE) {
    clv_tensor wanted = layer->neighbour;
    CLV__TRY(take_product(f, model, "self", &from->self, &layer->self));
    if (layer->self.dims[0] != wanted.dims[0] || layer->self.dims[1] != wanted.dims[1])
      return clv__error_set(
          f->error, CLV_INVALID_MODEL,
          "the weights of neighbours are [%lld,%lld], those of the vertex itself [%lld,%lld]; their shapes must be equal",
          (long long)wanted.dims[0], (long long)wanted.dims[1], (long long)layer->self.dims[0], (long long)layer->self.dims[1]);
  } else if (from->type == CLV__GNN_GAT) {
    const int64_t *dims = from->att_src->dims + from->att_src->rank - 2;
    if (dims[0] < 1 || dims[0] > CLV__MOST_HEADS || dims[1] < 1 || dims[1] > CLV__MOST_WIDTH || dims[0] * dims[1] != rows)
      return clv__error_set(f->error, CLV_INVALID_MODEL,
                            "the scores have %lld heads of %lld columns, but the weight produces %lld columns",
                            (long long)dims[0], (long long)dims[1], (long long)rows);
    layer->heads = (uint32_t)dims[0];
    layer->out = (uint32_t)dims[1];
    layer->concat = !from->is_averaged;
    CLV__TRY(clv__gnn_weight_copy(model, "att_src", from->att_src, 2, dims, &layer->att_src, f->error));
    CLV__TRY(clv__gnn_weight_copy(model, "att_dst", from->att_dst, 2, dims, &layer->att_dst, f->error));
  }
  return take_biases(f, model, from, layer);
}

/* ---- Models ---- */

static clv_status find_layers(const clv__finder *f, found **layers, size_t *count, size_t *capacity) {
  clv_value_id at = clv__find_through(f, f->graph->outputs[0]);
  while (at != f->features) {
    if (*count == CLV__MOST_LAYERS) return clv__error_set(f->error, CLV_NOT_SUPPORTED, "more than %d layers", CLV__MOST_LAYERS);
    if (!clv__array_reserve(f->allocator, (void **)layers, capacity, *count + 1, sizeof **layers, *count))
      return clv__error_memory(f->error, sizeof **layers);
    found *layer = &(*layers)[*count];
    CLV__TRY(find_layer(f, at, layer));
    if (*count > 0 && layer->type != (*layers)[0].type)
      return clv__find_refuse(f, clv__find_maker(f, at), "the type of its layer differs from that of the last layer");
    ++*count;
    at = clv__find_through(f, layer->x);
  }
  if (*count > 0) return CLV_OK;
  return clv__error_set(f->error, CLV_NOT_SUPPORTED, "the output is the input: the model has no layers");
}

static clv_status read_model(const clv__finder *f, clv__gnn_model **model) {
  found *layers = NULL;
  size_t count = 0, capacity = 0;
  clv_status status = find_layers(f, &layers, &count, &capacity);
  if (status == CLV_OK) status = clv__gnn_model_create(f->allocator, layers[0].type, (uint32_t)count, model, f->error);
  for (size_t i = 0; status == CLV_OK && i < count; ++i) {
    status = take_layer(f, *model, &layers[count - 1 - i], &(*model)->layers[i]);
    if (status != CLV_OK) clv__error_prefix(f->error, status, "layer %zu", i);
  }
  clv__release(f->allocator, layers);
  if (status == CLV_OK) status = clv__gnn_model_check_chain(*model, f->error);
  return status == CLV_OK ? clv__gnn_model_prove(f, *model) : status;
}

/* Recognises the model in `graph`, and destroys the graph. */
static clv_status recognise(const clv_allocator *allocator, clv_graph *graph, const char *name, clv__gnn_model **model,
                            clv_error *error) {
  clv__finder finder;
  clv_status status = clv__finder_init(&finder, allocator, graph, error);
  if (status == CLV_OK) status = read_model(&finder, model);
  if (status != CLV_OK) {
    clv__gnn_model_destroy(*model);
    *model = NULL;
    clv__error_prefix(error, status, "%s", name);
  }
  clv__finder_finish(&finder);
  clv__graph_destroy(graph);
  return status;
}

clv_status clv__gnn_model_read_onnx(const clv_allocator *allocator, const char *path, clv__gnn_model **model, clv_error *error) {
  clv_graph *graph;
  *model = NULL;
  CLV__TRY(clv__onnx_load_file(allocator, path, &graph, error));
  return recognise(allocator, graph, path, model, error);
}

clv_status clv__gnn_model_read_onnx_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, const char *name,
                                           clv__gnn_model **model, clv_error *error) {
  clv_graph *graph;
  *model = NULL;
  clv_status status = clv__onnx_load_memory(allocator, data, size_bytes, false, &graph, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", name);
  return recognise(allocator, graph, name, model, error);
}
