/* The phase of a run (prefill, decode or none: execute/capture/phase.h), on generated graphs with attention in many forms, and
 * with patterns that only resemble attention. */
#include "execute/capture/phase.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/shapes.h"
#include "models.h"
#include "support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

typedef struct writer {
  test_graph graph;
  uint64_t seed;
  uint32_t count;   /* number of names generated */
  char last[32];    /* the value computed last */
  uint32_t softmax; /* node names: "softmax<N>" */
} writer;

static uint32_t draw(writer *w, uint32_t below) {
  return (uint32_t)(test_random(&w->seed) % below);
}

/* Adds a node that computes a new value from `inputs`, in which "$" is the last value. */
static void then(writer *w, const char *op, const char *inputs) {
  char in[128], out[32], name[32];
  const char *dollar = strchr(inputs, '$');
  if (dollar == NULL)
    snprintf(in, sizeof in, "%s", inputs);
  else
    snprintf(in, sizeof in, "%.*s%s%s", (int)(dollar - inputs), inputs, w->last, dollar + 1);
  snprintf(out, sizeof out, "v%u", ++w->count);
  snprintf(name, sizeof name, "n%u", w->count);
  if (strcmp(op, "Softmax") == 0) {
    snprintf(name, sizeof name, "softmax%u", ++w->softmax);
    test_graph_node_ints(&w->graph, name, op, in, out, "axis", false, 1, DIMS(draw(w, 2) == 0 ? -1 : 3));
  } else if (strcmp(op, "Cast") == 0) {
    test_graph_node_ints(&w->graph, name, op, in, out, "to", false, 1, DIMS(CLV_F32));
  } else if (strcmp(op, "Concat") == 0) {
    test_graph_node_ints(&w->graph, name, op, in, out, "axis", false, 1, DIMS(-1));
  } else {
    test_graph_node(&w->graph, name, op, in, out);
  }
  snprintf(w->last, sizeof w->last, "%s", out);
}

static void begin(writer *w, uint64_t seed) {
  *w = (writer){.seed = seed};
  test_graph_begin(&w->graph, clv__allocator_default(), seed);
  test_graph_weight(&w->graph, "scale", 1, DIMS(1));
  test_graph_weight(&w->graph, "matrix", 2, DIMS(6, 6));
}

/* Adds attention with two heads of width 4, of `queries` queries over 6 keys. The names of its inputs begin with `name`. */
static void attend(writer *w, const char *name, int64_t queries) {
  char q[32], k[32], v[32], mask[32], inputs[80];
  snprintf(q, sizeof q, "%s_q", name);
  snprintf(k, sizeof k, "%s_k", name);
  snprintf(v, sizeof v, "%s_v", name);
  snprintf(mask, sizeof mask, "%s_mask", name);
  test_graph_input(&w->graph, q, CLV_F32, 4, DIMS(1, 2, queries, 4));
  test_graph_input(&w->graph, k, CLV_F32, 4, DIMS(1, 2, 4, 6));
  test_graph_input(&w->graph, v, CLV_F32, 4, DIMS(1, 2, 6, 4));
  test_graph_input(&w->graph, mask, CLV_BOOL, 4, DIMS(1, 1, queries, 6));
  snprintf(inputs, sizeof inputs, "%s,%s", q, k);
  then(w, "MatMul", inputs);
  snprintf(inputs, sizeof inputs, "%s,$,scale", mask);
  for (uint32_t i = draw(w, 6); i > 0; --i) {
    static const char *const ops[] = {"Mul", "Div", "Add", "Cast", "Identity", "Tanh", "Where"};
    uint32_t op = draw(w, 7);
    then(w, ops[op], op < 3 ? (draw(w, 2) == 0 ? "$,scale" : "scale,$") : op < 6 ? "$" : inputs);
  }
  then(w, "Softmax", "$");
  for (uint32_t i = draw(w, 3); i > 0; --i) then(w, draw(w, 2) == 0 ? "Identity" : "Cast", "$");
  snprintf(inputs, sizeof inputs, "$,%s", v);
  then(w, "MatMul", inputs);
}

/* Adds nodes that match only a part of the attention pattern. */
static void distract(writer *w, const char *name) {
  char inputs[80];
  test_graph_input(&w->graph, name, CLV_F32, 4, DIMS(1, 2, 6, 6));
  snprintf(inputs, sizeof inputs, "%s,matrix", name);
  switch (draw(w, 5)) {
    case 0: /* a layer and its softmax, then another layer */
      then(w, "MatMul", inputs);
      then(w, "Add", "$,scale");
      then(w, "Softmax", "$");
      then(w, "MatMul", "$,matrix");
      break;
    case 1: /* a product of computed values, but no product after it */
      snprintf(inputs, sizeof inputs, "%s,%s", name, name);
      then(w, "MatMul", inputs);
      then(w, "Softmax", "$");
      then(w, "Relu", "$");
      break;
    case 2: /* no product before the softmax */
      then(w, "Relu", name);
      then(w, "Softmax", "$");
      snprintf(inputs, sizeof inputs, "$,%s", name);
      then(w, "MatMul", inputs);
      break;
    case 3: /* a sigmoid instead of the softmax */
      snprintf(inputs, sizeof inputs, "%s,%s", name, name);
      then(w, "MatMul", inputs);
      then(w, "Sigmoid", "$");
      snprintf(inputs, sizeof inputs, "$,%s", name);
      then(w, "MatMul", inputs);
      break;
    default: /* a softmax along another axis */
      snprintf(inputs, sizeof inputs, "%s,%s", name, name);
      then(w, "MatMul", inputs);
      test_graph_node_ints(&w->graph, name, "Softmax", w->last, "other_axis", "axis", false, 1, DIMS(1));
      snprintf(w->last, sizeof w->last, "other_axis");
      snprintf(inputs, sizeof inputs, "$,%s", name);
      then(w, "MatMul", inputs);
      break;
  }
}

static clv__phase read_phase(clv_graph *graph) {
  clv_error error = {0};
  clv__shapes *shapes;
  clv__phase phase;
  assert_ok(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error), error);
  clv__phase_read(graph, shapes->types, &phase);
  clv__shapes_destroy(shapes);
  return phase;
}

static void generated(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    writer w;
    begin(&w, seed);
    uint32_t layers = draw(&w, 4);
    int64_t most = 0;
    char outputs[128] = "", most_name[32] = "";
    for (uint32_t i = 0; i < layers; ++i) {
      char name[16];
      int64_t queries = draw(&w, 3) == 0 ? 1 + draw(&w, 16) : draw(&w, 2) == 0 ? 1 : 16;
      snprintf(name, sizeof name, "a%u", i);
      attend(&w, name, queries);
      if (queries > most) snprintf(most_name, sizeof most_name, "softmax%u", w.softmax);
      most = queries > most ? queries : most;
      snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", i > 0 ? "," : "", w.last);
    }
    if (layers == 0 || draw(&w, 2) == 0) {
      distract(&w, "d");
      snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", layers > 0 ? "," : "", w.last);
    }
    clv_graph *graph = test_graph_end(&w.graph, outputs);
    clv__phase phase = read_phase(graph);
    clv__phase_kind kind = layers == 0 ? CLV__PHASE_NONE : most > 1 ? CLV__PHASE_PREFILL : CLV__PHASE_DECODE;
    if (phase.kind != kind || phase.attention_count != layers || (layers > 0 && phase.query_length != most)) {
      fail_msg("seed %llu: phase %d, %u attentions of up to %lld queries; expected phase %d, %u attentions of up to %lld",
               (unsigned long long)seed, (int)phase.kind, phase.attention_count, (long long)phase.query_length, (int)kind, layers,
               (long long)most);
    }
    if (layers > 0) assert_string_equal(graph->nodes[phase.node].name, most_name);
    clv__graph_destroy(graph);
  }
}

/* Returns the phase of a graph with one node of the given domain, operator and source format, with an attribute that is 1, and
 * with a first input of the given shape. Its keys and values are graph inputs, as if from a cache, if they are inputs of the
 * operator. */
static clv__phase of_node(const char *domain, const char *op, const char *source, const char *attribute, int32_t rank,
                          const int64_t *dims) {
  clv_error error = {0};
  test_graph g;
  clv_value_id in[3], out;
  static const char *const names[] = {"q", "k", "v"};
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "q", CLV_F32, rank, dims);
  test_graph_input(&g, "k", CLV_F32, 3, DIMS(1, 6, 8));
  test_graph_input(&g, "v", CLV_F32, 3, DIMS(1, 6, 8));
  for (int i = 0; i < 3; ++i) assert_ok(clv__builder_value(g.builder, names[i], &in[i], &error), error);
  assert_ok(clv__builder_value(g.builder, "y", &out, &error), error);
  if (domain[0] != '\0') assert_ok(clv__builder_import(g.builder, domain, 1, &error), error);
  if (source != NULL) assert_ok(clv__builder_source(g.builder, "its_source", source, &error), error);
  const int64_t one = 1;
  clv_attribute set = {.name = attribute, .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &one};
  assert_ok(clv__builder_node(g.builder, "node", domain, op, in, strcmp(op, "Softmax") == 0 ? 1 : 3, &out, 1, &set,
                              attribute != NULL, &error),
            error);
  clv_graph *graph = test_graph_end(&g, "y");
  clv__phase phase;
  /* The types are not inferred, because the operator may be missing in the table of operators. */
  clv_tensor *types = calloc(graph->value_count, sizeof *types);
  for (uint32_t i = 0; i < graph->value_count; ++i) types[i] = graph->values[i].type;
  clv__phase_read(graph, types, &phase);
  free(types);
  clv__graph_destroy(graph);
  return phase;
}

static void whole_operators(void **state) {
  (void)state;
  static const struct {
    const char *domain, *op, *source, *attribute;
    int32_t rank;
    int64_t dims[5];
    clv__phase_kind kind;
    int64_t length;
  } cases[] = {
      {"", "Attention", NULL, NULL, 3, {1, 16, 8}, CLV__PHASE_PREFILL, 16},
      {"", "Attention", NULL, NULL, 4, {1, 2, 1, 8}, CLV__PHASE_DECODE, 1},
      {"", "Attention", NULL, "is_causal", 3, {1, 16, 8}, CLV__PHASE_PREFILL, 16},
      {"com.microsoft", "Attention", NULL, NULL, 3, {4, 9, 8}, CLV__PHASE_NONE, 0},
      {"com.microsoft", "Attention", NULL, "unidirectional", 3, {4, 9, 8}, CLV__PHASE_PREFILL, 9},
      {"com.microsoft", "Attention", NULL, "unidirectional", 3, {4, 1, 8}, CLV__PHASE_DECODE, 1},
      {"com.microsoft", "MultiHeadAttention", NULL, NULL, 5, {1, 7, 2, 3, 4}, CLV__PHASE_PREFILL, 7},
      {"com.microsoft", "GroupQueryAttention", NULL, NULL, 3, {1, 1, 24}, CLV__PHASE_DECODE, 1},
      {"com.microsoft", "GroupQueryAttention", NULL, NULL, 3, {1, CLV_DIM_UNKNOWN, 24}, CLV__PHASE_PREFILL, CLV_DIM_UNKNOWN},
      {"com.microsoft", "GroupQueryAttention", NULL, NULL, CLV_RANK_UNKNOWN, {0}, CLV__PHASE_PREFILL, CLV_DIM_UNKNOWN},
      {"com.microsoft", "BiasGelu", NULL, NULL, 3, {1, 16, 24}, CLV__PHASE_NONE, 0},
      {"own", "Attention", NULL, "is_causal", 3, {1, 16, 24}, CLV__PHASE_NONE, 0},
      {"aten",
       "scaled_dot_product_attention.default",
       "aten.scaled_dot_product_attention.default",
       NULL,
       4,
       {1, 2, 9, 4},
       CLV__PHASE_PREFILL,
       9},
      {"aten",
       "_scaled_dot_product_flash_attention.default",
       "aten._scaled_dot_product_flash_attention.default",
       "is_causal",
       4,
       {1, 2, 1, 4},
       CLV__PHASE_DECODE,
       1},
      {"", "Softmax", "aten.scaled_dot_product_attention.default", NULL, 4, {1, 2, 5, 9}, CLV__PHASE_NONE, 0},
      {"", "MatMul", "aten.scaled_dot_product_attention.default", NULL, 4, {1, 2, 5, 9}, CLV__PHASE_NONE, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv__phase phase = of_node(cases[i].domain, cases[i].op, cases[i].source, cases[i].attribute, cases[i].rank, cases[i].dims);
    if (phase.kind != cases[i].kind || phase.query_length != cases[i].length) {
      fail_msg("case %zu, %s: phase %d with %lld queries, expected phase %d with %lld queries", i, cases[i].op, (int)phase.kind,
               (long long)phase.query_length, (int)cases[i].kind, (long long)cases[i].length);
    }
  }
}

/* Attention in which a column is added to the scores and removed after the softmax. It is recognised, unless the chain of
 * operators between the product and the softmax is too long. */
static void chains(void **state) {
  (void)state;
  for (uint32_t length = 1; length < 40; length += 19) {
    writer w;
    begin(&w, length);
    test_graph_ints(&w.graph, "zero", 1, DIMS(0));
    test_graph_ints(&w.graph, "six", 1, DIMS(6));
    test_graph_ints(&w.graph, "last", 1, DIMS(3));
    test_graph_input(&w.graph, "q", CLV_F32, 4, DIMS(1, 2, 1, 4));
    test_graph_input(&w.graph, "k", CLV_F32, 4, DIMS(1, 2, 4, 6));
    test_graph_input(&w.graph, "sink", CLV_F32, 4, DIMS(1, 2, 1, 1));
    then(&w, "MatMul", "q,k");
    for (uint32_t i = 0; i < length; ++i) then(&w, "Identity", "$");
    then(&w, "Concat", "$,sink");
    then(&w, "Softmax", "$");
    then(&w, "Slice", "$,zero,six,last");
    then(&w, "MatMul", "$,k_t");
    test_graph_input(&w.graph, "k_t", CLV_F32, 4, DIMS(1, 2, 6, 4));
    clv_graph *graph = test_graph_end(&w.graph, w.last);
    clv__phase phase = read_phase(graph);
    assert_int_equal(phase.kind, length == 1 ? CLV__PHASE_DECODE : CLV__PHASE_NONE);
    clv__graph_destroy(graph);
  }
}

/* ---- What gives an attention a phase ---- */

enum { QUERIES = 5, OTHER_KEYS = 3 };

typedef enum mask_kind {
  UNMASKED,
  PADDING,       /* from an input: which keys exist */
  LENGTHS,       /* positions compared with lengths from an input */
  BIAS,          /* a constant that is added, but is no triangle */
  LOCAL,         /* distances between queries and keys compared with a constant */
  TRIANGLE,      /* a constant triangle that is added to the scores */
  BOOL_TRIANGLE, /* a constant triangle of bools that selects scores */
  LONG_TRIANGLE, /* a triangle cut from a larger constant */
  TRILU,
  POSITIONS, /* positions of queries compared with those of keys, which gives a triangle */
  MASK_KINDS
} mask_kind;

static void constant_mask(test_graph *g, const char *name, bool is_bool, int64_t size, bool is_triangle) {
  clv_tensor t = clv__tensor_make(is_bool ? CLV_BOOL : CLV_F32, 2, DIMS(size, size), NULL);
  float numbers[4 * QUERIES * QUERIES];
  bool bools[4 * QUERIES * QUERIES];
  for (int64_t i = 0; i < size * size; ++i) {
    bool seen = i % size <= i / size;
    numbers[i] = !is_triangle ? (float)(i % size - i / size) / 8 : seen ? 0 : -INFINITY;
    bools[i] = seen;
  }
  t.data = is_bool ? (void *)bools : (void *)numbers;
  test_graph_constant(g, name, &t);
}

/* Adds "selected", a bool mask, or "added", a float mask. */
static void add_mask(test_graph *g, mask_kind kind) {
  test_graph_ints(g, "rows", 1, DIMS(1));
  test_graph_ints(g, "columns", 1, DIMS(0));
  test_graph_node(g, "as_rows", "Unsqueeze", "range,rows", "row");
  test_graph_node(g, "as_columns", "Unsqueeze", "range,columns", "column");
  if (kind == PADDING) test_graph_input(g, "selected", CLV_BOOL, 4, DIMS(1, 1, 1, QUERIES));
  if (kind == LENGTHS) {
    test_graph_input(g, "lengths", CLV_I64, 2, DIMS(1, 1));
    test_graph_node(g, "compare", "Less", "column,lengths", "selected");
  }
  if (kind == BIAS || kind == TRIANGLE) constant_mask(g, "added", false, QUERIES, kind == TRIANGLE);
  if (kind == LOCAL) {
    test_graph_ints(g, "width", 1, DIMS(2));
    test_graph_node(g, "distance", "Sub", "row,column", "far");
    test_graph_node(g, "compare", "Less", "far,width", "selected");
  }
  if (kind == BOOL_TRIANGLE) constant_mask(g, "selected", true, QUERIES, true);
  if (kind == LONG_TRIANGLE) {
    constant_mask(g, "all", true, 2 * QUERIES, true);
    test_graph_ints(g, "from", 2, DIMS(0, 0));
    test_graph_ints(g, "to", 2, DIMS(QUERIES, QUERIES));
    test_graph_node(g, "cut", "Slice", "all,from,to", "selected");
  }
  if (kind == TRILU) {
    test_graph_input(g, "ones", CLV_BOOL, 2, DIMS(QUERIES, QUERIES));
    test_graph_node_ints(g, "lower", "Trilu", "ones", "selected", "upper", false, 1, DIMS(0));
  }
  if (kind == POSITIONS) test_graph_node(g, "compare", "GreaterOrEqual", "row,column", "selected");
}

/* Self-attention over an input x, as in an encoder. With a cache, other keys and values, from inputs, come first. */
static clv__phase of_self_attention(mask_kind kind, bool has_cache) {
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 4);
  test_graph_input(&g, "x", CLV_F32, 4, DIMS(1, 2, QUERIES, 4));
  test_graph_input(&g, "past_k", CLV_F32, 4, DIMS(1, 2, OTHER_KEYS, 4));
  test_graph_input(&g, "past_v", CLV_F32, 4, DIMS(1, 2, OTHER_KEYS, 4));
  int64_t positions[QUERIES] = {0, 1, 2, 3, 4};
  test_graph_ints(&g, "range", QUERIES, positions);
  for (int i = 0; i < 3; ++i) {
    static const char *const weights[] = {"wq", "wk", "wv"}, *const inputs[] = {"x,wq", "x,wk", "x,wv"},
                             *const outputs[] = {"q", "new_k", "new_v"};
    test_graph_weight(&g, weights[i], 2, DIMS(4, 4));
    test_graph_node(&g, outputs[i], "MatMul", inputs[i], outputs[i]);
  }
  test_graph_node_ints(&g, "join_k", "Concat", "past_k,new_k", "all_k", "axis", false, 1, DIMS(2));
  test_graph_node_ints(&g, "join_v", "Concat", "past_v,new_v", "all_v", "axis", false, 1, DIMS(2));
  test_graph_node_ints(&g, "turn", "Transpose", has_cache ? "all_k" : "new_k", "k", "perm", true, 4, DIMS(0, 1, 3, 2));
  test_graph_node(&g, "product", "MatMul", "q,k", "scores");
  test_graph_weight(&g, "lowest", 1, DIMS(1));
  bool is_added = kind == BIAS || kind == TRIANGLE;
  if (kind != UNMASKED) {
    add_mask(&g, kind);
    test_graph_node(&g, "mask", is_added ? "Add" : "Where", is_added ? "scores,added" : "selected,scores,lowest", "masked");
  }
  test_graph_node_ints(&g, "softmax", "Softmax", kind != UNMASKED ? "masked" : "scores", "weights", "axis", false, 1, DIMS(-1));
  test_graph_node(&g, "mix", "MatMul", has_cache ? "weights,all_v" : "weights,new_v", "y");
  clv_graph *graph = test_graph_end(&g, "y,all_k,all_v");
  clv__phase phase = read_phase(graph);
  clv__graph_destroy(graph);
  return phase;
}

static void encoders_have_none(void **state) {
  (void)state;
  for (int kind = 0; kind < MASK_KINDS; ++kind) {
    clv__phase phase = of_self_attention((mask_kind)kind, false);
    clv__phase_kind wanted = kind >= TRIANGLE ? CLV__PHASE_PREFILL : CLV__PHASE_NONE;
    if (phase.kind != wanted) fail_msg("mask kind %d: the phase is %d, expected %d", kind, (int)phase.kind, (int)wanted);
  }
  assert_int_equal(of_self_attention(UNMASKED, true).kind, CLV__PHASE_PREFILL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(generated),
      cmocka_unit_test(whole_operators),
      cmocka_unit_test(chains),
      cmocka_unit_test(encoders_have_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
