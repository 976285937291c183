/* Tests the IR JSON reader: structure, source names, weights without data, operators that are kept, and invalid files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "base/files/file.h"
#include "base/text.h"
#include "formats/irjson/irjson.h"
#include "formats/onnx/onnx.h"
#include "graph/view.h"
#include "irjson_text.h"
#include "support.h"

static clv_graph *load(const char *text) {
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_ok(clv__irjson_load(clv__allocator_default(), "m.json", text, strlen(text), NULL, &graph, &error), error);
  return graph;
}

static void refused(const char *text, clv_status wanted, const char *said) {
  clv_error error = {0};
  clv_graph *graph = NULL;
  clv_status status = clv__irjson_load(clv__allocator_default(), "m.json", text, strlen(text), NULL, &graph, &error);
  if (status == CLV_OK) fail_msg("the model is accepted, but should be rejected: %.200s", text);
  if (status != wanted || strstr(error.message, said) == NULL) {
    fail_msg("the error is '%s' (%s), which must contain '%s'", error.message, clv_status_name(status), said);
  }
  assert_null(graph);
  assert_memory_equal(error.message, "m.json: ", 8);
}

/* ---- Structure ---- */

static void a_layer(void **state) {
  (void)state;
  clv_graph *graph = load(IR_LAYER);
  static const char *const ops[] = {"Reshape", "Gemm", "Reshape", "Relu"};
  static const char *const names[] = {"linear/0", "linear/1", "linear/2", "relu"};
  assert_int_equal(graph->node_count, 4);
  for (uint32_t n = 0; n < 4; ++n) {
    assert_string_equal(graph->nodes[n].op, ops[n]);
    assert_string_equal(graph->nodes[n].name, names[n]);
    assert_string_equal(graph->nodes[n].source_name, n < 3 ? "linear" : "relu");
    assert_string_equal(graph->nodes[n].source_op, n < 3 ? "aten.linear.default" : "aten.relu.default");
  }
  assert_int_equal(clv__attribute_int(graph->nodes[1].attributes, "transB", 0), 1);
  assert_string_equal(graph->name, "m");
  assert_int_equal(graph->input_count, 1);
  assert_int_equal(graph->output_count, 1);
  assert_string_equal(graph->values[graph->outputs[0]].name, "relu");
  clv__graph_destroy(graph);
}

static void source_patterns(void **state) {
  (void)state;
  clv_graph *graph = load(IR_LAYER);
  const clv__node *gemm = &graph->nodes[1];
  static const char *const match[] = {"Gemm", "aten.linear", "aten.linear.default", "aten.lin*", "*.default", "G*"};
  static const char *const differ[] = {"aten", "linear", "aten.linear.out", "Reshape", "aten.relu", ""};
  for (size_t i = 0; i < sizeof match / sizeof *match; ++i) {
    if (!clv__node_matches_op(gemm, match[i])) fail_msg("the pattern '%s' does not match the operator", match[i]);
  }
  for (size_t i = 0; i < sizeof differ / sizeof *differ; ++i) {
    if (clv__node_matches_op(gemm, differ[i])) fail_msg("the pattern '%s' matches the operator, but should not", differ[i]);
  }
  assert_true(clv__node_matches_name(gemm, "linear"));
  assert_true(clv__node_matches_name(gemm, "linear/1"));
  assert_false(clv__node_matches_name(gemm, "relu"));
  clv__graph_destroy(graph);
}

/* ---- Weights without data ---- */

static void unbound_weights(void **state) {
  (void)state;
  clv_error error = {0};
  clv_graph *graph = load(IR_LAYER);
  clv_value_id weight = clv__graph_find_value(graph, "fc.weight");
  assert_int_not_equal(weight, CLV__NO_ID);
  assert_true(graph->values[weight].is_unbound);
  assert_null(graph->values[weight].type.data);
  clv__shapes *shapes;
  assert_ok(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error), error);
  assert_true(clv__value_is_constant(graph, shapes->types, weight));
  assert_true(clv__value_is_constant(graph, NULL, weight));
  assert_int_equal(shapes->types[weight].rank, 2);
  for (uint32_t n = 0; n < graph->node_count; ++n) assert_false(shapes->node_folded[n]);

  /* The inputs of a view of the layer do not include the weight. */
  clv__arena arena;
  clv_graph_view *view;
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__view_create(graph, shapes->types, (clv_node_id[]){0, 1}, 2, NULL, &arena, &view, &error), error);
  assert_int_equal(view->input_count, 1);
  assert_string_equal(graph->values[view->values[view->inputs[0]]].name, "x");

  /* If the view is written as ONNX, the weight becomes an input after the view's own. */
  void *onnx;
  size_t onnx_bytes;
  clv_graph *again;
  assert_ok(clv__onnx_write(view, SIZE_MAX, clv__allocator_default(), &onnx, &onnx_bytes, &error), error);
  assert_ok(clv__onnx_load_memory(clv__allocator_default(), onnx, onnx_bytes, true, &again, &error), error);
  assert_int_equal(again->input_count, 2);
  assert_string_equal(again->values[again->inputs[1]].name, "fc.weight");
  clv__graph_destroy(again);
  clv__release(clv__allocator_default(), onnx);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);

  float x[6] = {0};
  clv_tensor input = clv__tensor_make(CLV_F32, 3, (int64_t[]){1, 2, 3}, x), output;
  clv_status status = clv__graph_evaluate(graph, &input, NULL, &output, NULL, NULL, clv__allocator_default(), &error);
  assert_int_equal(status, CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "'fc.weight'"));
  assert_non_null(strstr(error.message, "no weights"));
  clv__graph_destroy(graph);
}

static void hashes(void **state) {
  (void)state;
  clv__hash a, b;
  clv_graph *graph = load(IR_LAYER);
  clv__graph_hash(graph, &a);
  clv__graph_destroy(graph);
  graph = load(IR_LAYER);
  clv__graph_hash(graph, &b);
  assert_memory_equal(&a, &b, sizeof a);
  clv__graph_destroy(graph);
  graph = load(IR_MODEL(IR_TENSOR("x", "1,2,3", "float32"), IR_FROM("relu", "1,2,3", "float32", "relu", "0"), "", "",
                        IR_NODE("relu", "aten.relu.default", IR_FROM("x", "1,2,3", "float32", "x", "0"),
                                IR_TENSOR("relu", "1,2,3", "float32"), "")));
  clv__graph_hash(graph, &b);
  assert_memory_not_equal(&a, &b, sizeof a);
  clv__graph_destroy(graph);
}

/* ---- Operators that are kept ---- */

static void check_texts(const clv__node *node, const char *name, const char *const *texts, size_t count) {
  const clv_attribute *attribute = clv__attribute_find(node->attributes, name);
  assert_non_null(attribute);
  assert_int_equal(attribute->kind, CLV_ATTRIBUTE_STRINGS);
  assert_int_equal(attribute->count, count);
  for (size_t i = 0; i < count; ++i) {
    assert_int_equal(attribute->strings[i].size_bytes, strlen(texts[i]));
    assert_memory_equal(attribute->strings[i].data, texts[i], strlen(texts[i]));
  }
}

#define SEARCH(call)                                                                                                        \
  IR_MODEL(IR_TENSOR("a", "3", "float32") "," IR_TENSOR("v", "2", "float32"), IR_FROM("i", "2", "int64", "i", "0"), "", "", \
           "{\"name\":\"i\",\"op_type\":\"aten.searchsorted.Tensor\",\"inputs\":[" IR_FROM(                                 \
               "a", "3", "float32", "a",                                                                                    \
               "0") "," IR_FROM("v", "2", "float32", "v",                                                                   \
                                "0") "],\"outputs\":[" IR_TENSOR("i", "2", "int64") "],\"attrs\":{},\"call\":[" call        \
                                                                                    "],\"returns\":[\"Tensor\"]}")

/* A kept node has the call exactly as in the file. */
static void kept_call(void **state) {
  (void)state;
  clv_graph *graph =
      load(SEARCH("\"Tensor sorted_sequence=%0\",\"Tensor self=%1\",\"bool right=True\",\"str? side=\\\"%7\\\"\""));
  static const char *const call[] = {"Tensor sorted_sequence=%0", "Tensor self=%1", "bool right=True", "str? side=\"%7\""};
  static const char *const returns[] = {"Tensor"};
  assert_string_equal(graph->nodes[0].op, "searchsorted.Tensor");
  check_texts(&graph->nodes[0], "call", call, 4);
  check_texts(&graph->nodes[0], "returns", returns, 1);
  clv__graph_destroy(graph);
}

static void wrong_calls(void **state) {
  (void)state;
  refused(SEARCH("\"Tensor a=%0\",\"Tensor b=%2\""), CLV_INVALID_MODEL, "call[1] is Tensor b=%2; expected");
  refused(SEARCH("\"Tensor a=%0\",\"Tensor b=%\""), CLV_INVALID_MODEL, "call[1] is Tensor b=%; expected");
  refused(SEARCH("\"Tensor a=%0\",\"Tensor b=%99999999999999999999\""), CLV_INVALID_MODEL, "call[1] is");
  refused(SEARCH("\"Tensor a=%0\""), CLV_INVALID_MODEL, "call: no argument uses input 1");
  refused(SEARCH("\"Tensor a=%0\",3"), CLV_INVALID_MODEL, "call[1] is an integer; expected");
  refused(SEARCH("\"Tensor a=%0\",\"b=%1\""), CLV_INVALID_MODEL, "call[1] is b=%1; expected");
  refused(SEARCH("\"Tensor a=%0\",\"str b=\\\"%1\""), CLV_INVALID_MODEL, "call[1] is");
}

static void kept_operator(void **state) {
  (void)state;
  clv_graph *graph = load(IR_MODEL(IR_TENSOR("x", "2", "float32"), IR_FROM("b", "3", "bfloat16", "pick", "0"), "", "",
                                   IR_NODE("both", "wrap_with_something", IR_FROM("x", "2", "float32", "x", "0"),
                                           IR_TENSOR("both_0", "2", "float32") "," IR_TENSOR("both_1", "3", "bfloat16"),
                                           "\"k\":3,\"on\":true,\"f\":0.5,\"s\":\"text\",\"list\":[1,2],\"none\":null,\"deep\":[["
                                           "1]]") "," IR_NODE("pick", "<built-in function getitem>",
                                                              IR_FROM("both_0", "2", "float32", "both", "0") "," IR_FROM(
                                                                  "both_1", "3", "bfloat16", "both", "1"),
                                                              IR_TENSOR("b", "3", "bfloat16"), "\"index\":1")));
  assert_int_equal(graph->node_count, 2);
  const clv__node *kept = &graph->nodes[0];
  assert_string_equal(kept->domain, "aten");
  assert_string_equal(kept->op, "wrap_with_something");
  assert_string_equal(kept->source_op, "wrap_with_something");
  static const char *const call[] = {"%0", "k=3", "on=true", "f=0.5", "s=\"text\"", "list=[1,2]", "none=null", "deep=[[1]]"};
  check_texts(kept, "call", call, sizeof call / sizeof *call);
  assert_null(clv__attribute_find(kept->attributes, "returns"));
  assert_string_equal(graph->nodes[1].op, "Identity");
  assert_int_equal(graph->nodes[1].inputs[0], kept->outputs[1]);
  clv_error error = {0};
  clv__shapes *shapes;
  assert_ok(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error), error);
  assert_int_equal(shapes->types[graph->outputs[0]].dtype, CLV_BF16);
  assert_int_equal(shapes->types[graph->outputs[0]].dims[0], 3);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

#define IN_PLACE(before, after_reads)                                                                                          \
  IR_MODEL(                                                                                                                    \
      IR_TENSOR("x", "2", "float32"), IR_FROM("z", "2", "float32", "z", "0"), "", "",                                          \
      IR_NODE("a", before, IR_FROM("x", "2", "float32", "x", "0"), IR_TENSOR("a", "2", "float32"), "\"other\":1") "," IR_NODE( \
          "b", "aten.relu_.default", IR_FROM("a", "2", "float32", "a", "0"), IR_TENSOR("b", "2", "float32"),                   \
          "") "," IR_NODE("z", "aten.add.Tensor", IR_FROM("b", "2", "float32", "b", "0") "," after_reads,                      \
                          IR_TENSOR("z", "2", "float32"), ""))

/* relu_ overwrites its input. It becomes Relu if nothing else can see the input, and is kept otherwise, because no operator
 * of ONNX overwrites its input. */
static void in_place(void **state) {
  (void)state;
  clv_graph *graph = load(IN_PLACE("aten.add.Tensor", IR_FROM("x", "2", "float32", "x", "0")));
  assert_string_equal(graph->nodes[1].op, "Relu");
  assert_string_equal(graph->nodes[1].source_op, "aten.relu_.default");
  clv__graph_destroy(graph);
  graph = load(IN_PLACE("aten.add.Tensor", IR_FROM("a", "2", "float32", "a", "0")));
  assert_string_equal(graph->nodes[1].domain, "aten");
  clv__graph_destroy(graph);
  graph = load(IN_PLACE("aten.alias.default", IR_FROM("x", "2", "float32", "x", "0")));
  assert_string_equal(graph->nodes[1].domain, "aten");
  clv__graph_destroy(graph);
}

/* The file has names that the reader would also generate, and its nodes are not in topological order. It must be read
 * correctly. */
static void names_and_order(void **state) {
  (void)state;
  clv_graph *graph = load(
      IR_MODEL(IR_TENSOR("f32(2)", "2", "float32"), IR_FROM("y", "2", "float32", "y", "0"), "", "",
               IR_NODE("y", "aten.mul.Tensor", IR_FROM("y#0", "2", "float32", "y#0", "0"), IR_TENSOR("y", "2", "float32"),
                       "\"other\":2") "," IR_NODE("y#0", "aten.rsqrt.default", IR_FROM("f32(2)", "2", "float32", "f32(2)", "0"),
                                                  IR_TENSOR("y#0", "2", "float32"), "")));
  assert_int_equal(graph->node_count, 3);
  assert_string_equal(graph->nodes[0].op, "Sqrt");
  assert_string_equal(graph->nodes[2].op, "Mul");
  clv_error error = {0};
  float x[2] = {0.25f, 4};
  clv_tensor input = clv__tensor_make(CLV_F32, 1, (int64_t[]){2}, x), output;
  assert_ok(clv__graph_evaluate(graph, &input, NULL, &output, NULL, NULL, clv__allocator_default(), &error), error);
  assert_true(((float *)output.data)[0] == 4 && ((float *)output.data)[1] == 1);
  clv__release(clv__allocator_default(), output.data);
  clv__graph_destroy(graph);
}

/* Python's json module writes infinity as the word Infinity, which JSON does not allow. The reader must accept it. */
static void bare_infinity(void **state) {
  (void)state;
  clv_graph *graph = load("{\"graph_inputs\":[], \"graph_outputs\":[" IR_FROM(
      "y", "", "float32", "y", "0") "], \"nodes\":[" IR_NODE("y", "aten.full.default", "", IR_TENSOR("y", "", "float32"),
                                                             "\"fill_value\": -Infinity, \"note\": \"\\\"Infinity\"") "]}");
  clv_error error = {0};
  clv_tensor output;
  assert_ok(clv__graph_evaluate(graph, NULL, NULL, &output, NULL, NULL, clv__allocator_default(), &error), error);
  assert_true(*(float *)output.data < -3e38f);
  clv__release(clv__allocator_default(), output.data);
  clv__graph_destroy(graph);
}

/* ---- Hostile files ---- */

#define ONE(inputs, outputs, attrs, op)                                                        \
  IR_MODEL(IR_TENSOR("x", "2,3", "float32"), IR_FROM("y", "2,3", "float32", "y", "0"), "", "", \
           IR_NODE("y", op, inputs, outputs, attrs))
#define X IR_FROM("x", "2,3", "float32", "x", "0")
#define Y IR_TENSOR("y", "2,3", "float32")

static void hostile(void **state) {
  (void)state;
  refused("", CLV_INVALID_MODEL, "line 1, column 0");
  refused("{", CLV_INVALID_MODEL, "line 1");
  refused("{\"cleave_plan\": 1}", CLV_INVALID_MODEL, "this is a plan");
  refused("{}", CLV_INVALID_MODEL, "\"graph_inputs\" is missing");
  refused("{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":{}}", CLV_INVALID_MODEL, "\"nodes\" is an object");
  refused("{\"graph_inputs\":[],\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[]}", CLV_INVALID_MODEL, "duplicate");
  refused("{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[NaN]}", CLV_INVALID_MODEL, "line 1, column");
  refused("{\"graph_inputs\":[1],\"graph_outputs\":[],\"nodes\":[]}", CLV_INVALID_MODEL, "graph_inputs[0] is an integer");
  refused("{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[7]}", CLV_INVALID_MODEL, "nodes[0]: name is missing");
  refused("{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[],\"weights\":{}}", CLV_INVALID_MODEL, "weights is an object");
  refused("{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[],\"constants\":[]}", CLV_INVALID_MODEL, "constants is a list");
  refused("{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[],\"weight_name_mapping\":{\"p\":\"q\"}}", CLV_INVALID_MODEL,
          "weight_name_mapping.p is q, which is not a weight");
  refused(IR_MODEL(IR_TENSOR("x", "2,-3", "float32"), "", "", "", ""), CLV_INVALID_MODEL, "graph_inputs[0].shape[1] is -3");
  refused(IR_MODEL(IR_TENSOR("x", "2.5", "float32"), "", "", "", ""), CLV_INVALID_MODEL, "shape[0] is a fraction");
  refused(IR_MODEL(IR_TENSOR("x", "\"s0\"", "float32"), "", "", "", ""), CLV_INVALID_MODEL, "shape[0] is a string");
  refused(IR_MODEL(IR_TENSOR("x", "1,1,1,1,1,1,1,1,1", "float32"), "", "", "", ""), CLV_NOT_SUPPORTED, "9 entries");
  refused(IR_MODEL(IR_TENSOR("x", "1", "complex64"), "", "", "", ""), CLV_NOT_SUPPORTED, "'complex64'");
  refused(IR_MODEL(IR_TENSOR("x", "4000000000,4000000000", "float32"), "", "", "", ""), CLV_INVALID_MODEL,
          "too large for any memory");
  refused(IR_MODEL(IR_TENSOR("x", "99999999999999999999", "float32"), "", "", "", ""), CLV_INVALID_MODEL, "line 1");
  refused(IR_MODEL(IR_TENSOR("", "1", "float32"), "", "", "", ""), CLV_INVALID_MODEL, "name is empty");
  refused(IR_MODEL(IR_TENSOR("x", "1", "float32") "," IR_TENSOR("x", "1", "float32"), "", "", "", ""), CLV_INVALID_MODEL,
          "graph_inputs[1]: the name 'x' is already used by a graph input");
  refused(IR_MODEL(IR_TENSOR("x", "1", "float32"), "", IR_TENSOR("x", "1", "float32"), "", ""), CLV_INVALID_MODEL,
          "weights[0]: the name 'x' is already used by a graph input");
  refused(IR_MODEL(IR_TENSOR("x", "1", "float32"), "", IR_TENSOR("w", "1", "float32"), "\"x\":\"w\"", ""), CLV_INVALID_MODEL,
          "weight_name_mapping.x: the name 'x' is already used");
}

static void hostile_nodes(void **state) {
  (void)state;
  refused(ONE(X, IR_TENSOR("x", "2,3", "float32"), "", "aten.relu.default"), CLV_INVALID_MODEL, "the name 'x' is already used");
  refused(ONE(X, Y "," Y, "", "aten.relu.default"), CLV_INVALID_MODEL, "outputs[1]: the name 'y' is already used");
  refused(ONE(IR_FROM("x", "2,3", "float32", "nobody", "0"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL,
          "node 'y' (aten.relu.default): inputs[0] ('x'): its producer 'nobody'");
  refused(ONE(IR_FROM("x", "2,3", "float32", "x", "1"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL,
          "producer_output_idx must be 0");
  refused(ONE(IR_FROM("y", "2,3", "float32", "y", "1"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL,
          "output 1 of node 'y', which has 1");
  refused(ONE(IR_FROM("y", "2,3", "float32", "y", "-1"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL, "output -1");
  refused(ONE(IR_FROM("y", "2,3", "float32", "y", "0"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL, "a cycle");
  refused(ONE(IR_FROM("x", "2,3", "float32", "x", "\"a\""), Y, "", "aten.relu.default"), CLV_INVALID_MODEL,
          "producer_output_idx is a string");
  refused(ONE(IR_FROM("x", "3,2", "float32", "x", "0"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL,
          "is f32[3,2] here, but was declared as f32[2,3]");
  refused(ONE(IR_TENSOR("stranger", "1", "float32"), Y, "", "aten.relu.default"), CLV_INVALID_MODEL,
          "'stranger'): no graph input, weight or node's output");
  refused(ONE(X, IR_TENSOR("y", "2,4", "float32"), "", "aten.relu.default"), CLV_INVALID_MODEL,
          "is f32[2,3] here, but was declared as f32[2,4]");
  refused(ONE("", Y, "", "aten.relu.default"), CLV_INVALID_MODEL, "it has 0 inputs; expected 1 or more");
  refused(ONE(X, Y, "\"dim\":2", "aten.softmax.int"), CLV_INVALID_MODEL, "attrs.dim is 2, out of range for rank 2");
  refused(ONE(X, Y, "\"dim\":\"a\"", "aten.softmax.int"), CLV_INVALID_MODEL, "attrs.dim is a string; expected an integer");
  refused(ONE(X, Y, "\"dim\":[0,0]", "aten.mean.dim"), CLV_INVALID_MODEL, "names axis 0 twice");
  refused(ONE(X, Y, "\"dims\":[0,0]", "aten.permute.default"), CLV_INVALID_MODEL, "names axis 0 twice");
  refused(ONE(X, Y, "\"other\":[1]", "aten.add.Tensor"), CLV_INVALID_MODEL, "attrs.other is a list; expected a number");
  refused(ONE(X, Y, "\"dtype\":\"torch.quint8\"", "aten.softmax.int"), CLV_INVALID_MODEL, "'torch.quint8'");
  refused(ONE(X, Y, "\"index\":1", "<built-in function getitem>"), CLV_INVALID_MODEL, "attrs.index is 1, but the node has 1");
}

/* A declared shape that differs from the one that the operator produces is an error. */
static void wrong_shapes(void **state) {
  (void)state;
#define CLAIMS(shape, op, attrs)                                                               \
  IR_MODEL(IR_TENSOR("x", "2,3", "float32"), IR_FROM("y", shape, "float32", "y", "0"), "", "", \
           IR_NODE("y", op, X, IR_TENSOR("y", shape, "float32"), attrs))
  refused(CLAIMS("2", "aten.relu.default", ""), CLV_INVALID_MODEL,
          "node 'y' (aten.relu.default): output 'y' is declared as f32[2], but is f32[2,3]");
  refused(CLAIMS("2,4", "aten.view.default", "\"size\":[2,4]"), CLV_INVALID_MODEL, "node 'y'");
  refused(CLAIMS("5,3", "aten.slice.Tensor", "\"start\":1"), CLV_INVALID_MODEL, "declared as f32[5,3], but is f32[1,3]");
  refused(CLAIMS("1000000000,3", "aten.expand.default", ""), CLV_INVALID_MODEL, "node 'y'");
  refused(CLAIMS("2,3", "aten.constant_pad_nd.default", "\"pad\":[9223372036854775807,1]"), CLV_INVALID_MODEL, "node 'y'");
  refused(CLAIMS("2,3", "aten.repeat.default", "\"repeats\":[9223372036854775807,9223372036854775807]"), CLV_INVALID_MODEL,
          "node 'y'");
  refused(CLAIMS("2,3", "aten.max_pool2d.default", ""), CLV_INVALID_MODEL, "attrs.kernel_size is missing");
}

static void hostile_constants(void **state) {
  (void)state;
#define CONSTANT(name, json)                                                        \
  "{\"graph_inputs\":[],\"graph_outputs\":[],\"nodes\":[],\"weights\":[" IR_TENSOR( \
      "w", "2,2", "int32") "],\"constants\":{\"" name "\":" json "}}"
  refused(CONSTANT("w", "3"), CLV_INVALID_MODEL, "constants.w is an integer");
  refused(CONSTANT("w", "{\"data\":[[1,2],[3]]}"), CLV_INVALID_MODEL, "contains 3 numbers, but its tensor is i32[2,2]");
  refused(CONSTANT("w", "{\"data\":[[1,2,3],[4]]}"), CLV_INVALID_MODEL, "a list of 2");
  refused(CONSTANT("w", "{\"data\":[[1,2],[3,\"a\"]]}"), CLV_INVALID_MODEL, "element 3 is a string");
  refused(CONSTANT("w", "{\"data\":[[1,2],[3,4.5]]}"), CLV_INVALID_MODEL, "element 3 is a fraction, but its dtype is i32");
  refused(CONSTANT("w", "{\"data\":[[1,2],[3,4000000000]]}"), CLV_INVALID_MODEL,
          "element 3 is 4000000000, which does not fit its dtype i32");
  refused(CONSTANT("w", "{\"data\":[1,2,3,4],\"dtype\":\"float32\"}"), CLV_INVALID_MODEL, "the weight is i32");
  refused(CONSTANT("v", "{\"data\":[1]}"), CLV_INVALID_MODEL, "constants.v.dtype is missing");
  refused(CONSTANT("v", "{\"data\":[[[[[[[[[1]]]]]]]]],\"dtype\":\"int64\"}"), CLV_NOT_SUPPORTED,
          "nested more than 8 levels deep");
  clv_graph *graph = load(CONSTANT("w", "{\"data\":[1,2,3,4]}"));
  clv_value_id weight = clv__graph_find_value(graph, "w");
  assert_false(graph->values[weight].is_unbound);
  assert_int_equal(((int32_t *)graph->values[weight].type.data)[3], 4);
  clv__graph_destroy(graph);
}

/* Every prefix of a file, and every file with one changed byte, gives an error or a graph, but never a crash. */
static void damaged(void **state) {
  (void)state;
  static const char text[] = IR_LAYER;
  uint64_t seed = 11;
  char copy[sizeof text];
  for (size_t i = 0; i < 3 * sizeof text; ++i) {
    size_t size_bytes = i < sizeof text ? i : sizeof text - 1;
    memcpy(copy, text, sizeof text);
    if (i >= sizeof text) copy[test_random(&seed) % size_bytes] = "{}[]\",:0-9ax."[test_random(&seed) % 13];
    clv_error error = {0};
    clv_graph *graph = NULL;
    clv_status status = clv__irjson_load(clv__allocator_default(), NULL, copy, size_bytes, NULL, &graph, &error);
    if (status != CLV_OK) assert_true(error.message[0] != '\0');
    clv__graph_destroy(graph);
  }
}

/* Makes each allocation fail once. This must give an error, and all memory must be released. Allocations by jansson do not fail.
 */
static void fail_each_allocation(const void *text, size_t size_bytes) {
  test_allocator counting;
  test_allocator_init(&counting);
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_ok(clv__irjson_load(&counting.allocator, NULL, text, size_bytes, NULL, &graph, &error), error);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
  size_t calls = counting.calls;
  for (size_t at = 1; at <= calls; ++at) {
    test_allocator_init(&counting);
    counting.fail_at = at;
    clv_status status = clv__irjson_load(&counting.allocator, NULL, text, size_bytes, NULL, &graph, &error);
    if (status == CLV_OK) fail_msg("allocation %zu of %zu failed, but loading succeeded", at, calls);
    assert_int_equal(status, CLV_OUT_OF_MEMORY);
    assert_null(graph);
    assert_int_equal(counting.live, 0);
  }
}

static void no_memory(void **state) {
  (void)state;
  static const char *const names[] = {"scaled_dot_product_attention", "batch_norm", "index_put", "split"};
  fail_each_allocation(IR_LAYER, strlen(IR_LAYER));
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    char path[200];
    clv_error error = {0};
    clv__file_map map;
    snprintf(path, sizeof path, "%s/fuzz/corpus/irjson/%s", CLEAVE_SOURCE_DIR, names[i]);
    assert_ok(clv__file_map_open(path, &map, &error), error);
    fail_each_allocation(map.data, map.size_bytes);
    clv__file_map_close(&map);
  }
}

/* ---- A real model ---- */

static void decoder(void **state) {
  (void)state;
  const char *path = CLEAVE_SOURCE_DIR "/../shared/data/irjson/qwen2_decode_ir.json";
  clv_error error = {0};
  clv__file_map map;
  if (access(path, R_OK) != 0) {
    print_message("skipped: %s does not exist\n", path);
    skip();
  }
  assert_ok(clv__file_map_open(path, &map, &error), error);
  clv_graph *graph;
  assert_ok(clv__irjson_load(clv__allocator_default(), path, map.data, map.size_bytes, NULL, &graph, &error), error);
  clv__file_map_close(&map);
  assert_int_equal(graph->input_count, 60);
  assert_int_equal(graph->output_count, 57);
  /* The file has 2,060 nodes, of which 142 are assertions. Each of the others became at least one node, in the same order and
   * with the same name. */
  uint32_t sources = 0, kept = 0, cats = 0, linears = 0;
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    const clv__node *node = &graph->nodes[n];
    sources += n == 0 || strcmp(node->source_name, graph->nodes[n - 1].source_name) != 0;
    kept += strcmp(node->domain, "aten") == 0;
    cats += clv__node_matches_op(node, "aten.cat");
    linears += strcmp(node->op, "Gemm") == 0 && clv__node_matches_op(node, "aten.linear");
  }
  assert_int_equal(sources, 2060 - 142);
  assert_int_equal(kept, 1);
  assert_int_equal(cats, 56);
  assert_int_equal(linears, 197);
  uint32_t weights = 0;
  for (uint32_t v = 0; v < graph->value_count; ++v) weights += graph->values[v].is_unbound;
  assert_int_equal(weights, 341);
  clv__graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_layer),       cmocka_unit_test(source_patterns),   cmocka_unit_test(unbound_weights),
      cmocka_unit_test(hashes),        cmocka_unit_test(kept_operator),     cmocka_unit_test(kept_call),
      cmocka_unit_test(wrong_calls),   cmocka_unit_test(in_place),          cmocka_unit_test(names_and_order),
      cmocka_unit_test(bare_infinity), cmocka_unit_test(hostile),           cmocka_unit_test(hostile_nodes),
      cmocka_unit_test(wrong_shapes),  cmocka_unit_test(hostile_constants), cmocka_unit_test(damaged),
      cmocka_unit_test(no_memory),     cmocka_unit_test(decoder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
