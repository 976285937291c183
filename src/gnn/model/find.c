/* See find.h. */
#include "gnn/model/find.h"

enum { DEEPEST = 16 };

static clv_status find_inputs(clv__finder *f) {
  const clv_graph *graph = f->graph;
  f->features = f->edges = CLV__NO_ID;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_value_id id = graph->inputs[i];
    const clv_tensor *type = &f->shapes->types[id];
    if (graph->values[id].type.data != NULL) continue; /* an input with a default is a weight */
    bool is_float = type->dtype == CLV_F32 && type->rank == 2, is_index = type->dtype == CLV_I64 || type->dtype == CLV_I32;
    clv_value_id *place = is_float ? &f->features : &f->edges;
    if ((!is_float && (!is_index || type->rank != 2)) || *place != CLV__NO_ID) {
      char text[96];
      clv__graph_type_text(graph, type, text, sizeof text);
      return clv__error_set(f->error, CLV_NOT_SUPPORTED,
                            "input '%.120s' (%s) is not one of the two expected inputs, features f32[n,F] and edges i64[2,m]",
                            graph->values[id].name, text);
    }
    *place = id;
  }
  if (f->features == CLV__NO_ID || f->edges == CLV__NO_ID)
    return clv__error_set(f->error, CLV_NOT_SUPPORTED, "not a GNN: expected inputs for features, f32[n,F], and edges, i64[2,m]");
  if (graph->output_count != 1)
    return clv__error_set(f->error, CLV_NOT_SUPPORTED, "it has %u outputs; expected one", graph->output_count);
  return CLV_OK;
}

clv_status clv__finder_init(clv__finder *f, const clv_allocator *allocator, const clv_graph *graph, clv_error *error) {
  *f = (clv__finder){.allocator = allocator, .graph = graph, .error = error};
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &f->shapes, error));
  CLV__TRY(find_inputs(f));
  f->of_features = clv__allocate_zero(allocator, graph->value_count + 1);
  if (f->of_features == NULL) return clv__error_memory(error, graph->value_count);
  f->of_features[f->features] = true;
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    const clv__node *node = &graph->nodes[n];
    bool depends = false;
    /* The result depends on the input's shape, not on its values. */
    if (clv__find_is(node, "Shape") || clv__find_is(node, "Size")) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) depends |= node->inputs[i] != CLV__NO_ID && f->of_features[node->inputs[i]];
    for (uint32_t o = 0; o < node->output_count; ++o) {
      if (node->outputs[o] != CLV__NO_ID) f->of_features[node->outputs[o]] = depends;
    }
  }
  return CLV_OK;
}

void clv__finder_finish(clv__finder *f) {
  clv__shapes_destroy(f->shapes);
  clv__release(f->allocator, f->of_features);
}

const clv__node *clv__find_maker(const clv__finder *f, clv_value_id value) {
  if (value == CLV__NO_ID) return NULL;
  clv_node_id producer = f->graph->values[value].producer;
  return producer == CLV__NO_ID ? NULL : &f->graph->nodes[producer];
}

bool clv__find_is(const clv__node *node, const char *op) {
  return node->domain[0] == '\0' && strcmp(node->op, op) == 0;
}

const clv_tensor *clv__find_constant(const clv__finder *f, clv_value_id value) {
  if (value == CLV__NO_ID || !clv__value_is_constant(f->graph, f->shapes->types, value)) return NULL;
  const clv_tensor *type = &f->shapes->types[value];
  return type->data != NULL && clv__tensor_is_static(type) ? type : NULL;
}

bool clv__find_of_features(const clv__finder *f, clv_value_id value) {
  return value != CLV__NO_ID && f->of_features[value];
}

static clv_value_id through(const clv__finder *f, clv_value_id value, bool shapes) {
  static const char *const passing[] = {"Identity", "Dropout", "Cast"};
  static const char *const shaping[] = {"Reshape", "Unsqueeze", "Squeeze", "Flatten", "Expand", "Slice"};
  for (;;) {
    const clv__node *node = clv__find_maker(f, value);
    bool passes = false;
    for (size_t i = 0; node != NULL && i < sizeof passing / sizeof *passing; ++i) passes |= clv__find_is(node, passing[i]);
    for (size_t i = 0; node != NULL && shapes && i < sizeof shaping / sizeof *shaping; ++i)
      passes |= clv__find_is(node, shaping[i]);
    if (!passes || node->input_count == 0 || node->inputs[0] == CLV__NO_ID) return value;
    value = node->inputs[0];
  }
}

clv_value_id clv__find_through(const clv__finder *f, clv_value_id value) {
  return through(f, value, false);
}

clv_value_id clv__find_through_shapes(const clv__finder *f, clv_value_id value) {
  return through(f, value, true);
}

static bool same_constant(const clv_tensor *a, const clv_tensor *b) {
  size_t size_bytes;
  return a != NULL && b != NULL && clv__tensor_same_type(a, b) && clv__tensor_size_bytes(a, &size_bytes) &&
         memcmp(a->data, b->data, size_bytes) == 0;
}

bool clv__find_same(const clv__finder *f, clv_value_id a, clv_value_id b, int depth) {
  if (a == b) return true;
  if (a == CLV__NO_ID || b == CLV__NO_ID || depth > DEEPEST) return false;
  const clv_tensor *known = clv__find_constant(f, a), *other = clv__find_constant(f, b);
  if (known != NULL || other != NULL) return same_constant(known, other);
  const clv__node *x = clv__find_maker(f, a), *y = clv__find_maker(f, b);
  if (x == NULL || y == NULL || strcmp(x->op, y->op) != 0 || x->input_count != y->input_count) return false;
  if (x == y) return false; /* `a` and `b` are two different outputs of one node */
  for (uint32_t o = 0; o < x->output_count; ++o) {
    if (x->outputs[o] == a && (o >= y->output_count || y->outputs[o] != b)) return false;
  }
  for (uint32_t i = 0; i < x->input_count; ++i) {
    if (!clv__find_same(f, x->inputs[i], y->inputs[i], depth + 1)) return false;
  }
  return true;
}

clv_status clv__find_refuse(const clv__finder *f, const clv__node *node, const char *why) {
  if (node == NULL) return clv__error_set(f->error, CLV_NOT_SUPPORTED, "not a known kind of GNN: %s", why);
  return clv__error_set(f->error, CLV_NOT_SUPPORTED, "not a known kind of GNN: node '%.200s' (%s): %s", node->name, node->op,
                        why);
}
