/* Tests the signatures of nodes: their text, what they ignore and what they distinguish; also the work and the producers of
 * nodes. */
#include "models.h"
#include "support.h"

#include <string.h>

#include "cost/signature.h"
#include "inferred.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

typedef struct looked {
  inferred at;
  clv__text text;
} looked;

static void look(looked *l, clv_graph *graph) {
  infer_whole(&l->at, graph);
  clv__text_init(&l->text, graph->allocator);
}

static void done(looked *l) {
  clv__text_finish(&l->text);
  inferred_done(&l->at);
}

static const char *signature(looked *l, const char *name) {
  clv__signature_write(l->at.whole, clv__graph_find_node(l->at.graph, name), &l->text);
  assert_false(l->text.failed);
  return l->text.data;
}

static void texts(void **state) {
  (void)state;
  looked l;
  look(&l, test_seven_nodes(clv__allocator_default()));
  assert_string_equal(signature(&l, "conv"), "Conv(f32[1,3,8,8],f32[4,3,3,3]*)>f32[1,4,8,8]{pads=1,1,1,1}");
  assert_string_equal(signature(&l, "relu"), "Relu(f32[1,4,8,8])>f32[1,4,8,8]");
  assert_string_equal(signature(&l, "add"), "Add(f32[1,4,8,8],f32[8]*)>f32[1,4,8,8]");
  assert_string_equal(signature(&l, "softmax"), "Softmax(f32[1,8,8,8])>f32[1,8,8,8]{axis=-1}");
  done(&l);
}

static void families(void **state) {
  (void)state;
  char family[32], tiny[6];
  clv__signature_family("Conv(f32[1,3,8,8],f32[4,3,3,3]*)>f32[1,4,8,8]", family, sizeof family);
  assert_string_equal(family, "Conv f32");
  clv__signature_family("ConstantOfShape()>f32[1]", family, sizeof family);
  assert_string_equal(family, "ConstantOfShape ");
  clv__signature_family("no parenthesis", family, sizeof family);
  assert_string_equal(family, " ");
  clv__signature_family("Conv(f32[1])>f32[1]", tiny, sizeof tiny);
  assert_string_equal(tiny, "Conv ");
}

/* Nodes that differ only in the names of the nodes and values have equal signatures. A constant exponent is part of the
 * signature. Unusual characters in an operator's name are escaped. */
static void sameness(void **state) {
  (void)state;
  test_graph g;
  looked l;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_weight(&g, "two", 0, NULL);
  test_graph_weight(&g, "three", 0, NULL);
  test_graph_node(&g, "a", "Relu", "x", "p");
  test_graph_node(&g, "b", "Relu", "p", "q");
  test_graph_node(&g, "square", "Pow", "q,two", "r");
  test_graph_node(&g, "cube", "Pow", "r,three", "s");
  test_graph_node(&g, "odd", "No \"such\"\xff op", "s", "y");
  look(&l, test_graph_end(&g, "y"));
  char first[256];
  strcpy(first, signature(&l, "a"));
  assert_string_equal(signature(&l, "b"), first);
  strcpy(first, signature(&l, "square"));
  assert_string_not_equal(signature(&l, "cube"), first); /* the weights are random, so the exponents differ */
  assert_non_null(strstr(first, "f32[]*="));
  assert_string_equal(signature(&l, "odd"), "No%20%22such%22%ff%20op(f32[4,8])>none[?]");
  assert_false(clv__signature_is_static(l.at.whole, clv__graph_find_node(l.at.graph, "odd")));
  assert_true(clv__signature_is_static(l.at.whole, clv__graph_find_node(l.at.graph, "cube")));
  done(&l);
}

static void work_and_producers(void **state) {
  (void)state;
  looked l;
  clv__work work;
  look(&l, test_seven_nodes(clv__allocator_default()));
  clv_node_id conv = clv__graph_find_node(l.at.graph, "conv"), relu = clv__graph_find_node(l.at.graph, "relu"),
              concat = clv__graph_find_node(l.at.graph, "concat"), relu2 = clv__graph_find_node(l.at.graph, "relu2");
  assert_true(clv__node_work(l.at.whole, conv, &work));
  assert_float_equal(work.flops, 2.0 * 4 * 8 * 8 * 27, 0.5);
  assert_float_equal(work.bytes, 4.0 * (3 * 64 + 4 * 27 + 4 * 64), 0.5);
  assert_int_equal(clv__node_producer(l.at.whole, conv, 0), CLV__NO_ID); /* a graph input */
  assert_int_equal(clv__node_producer(l.at.whole, conv, 1), CLV__NO_ID); /* a constant */
  assert_int_equal(clv__node_producer(l.at.whole, relu, 0), conv);
  assert_int_equal(clv__node_producer(l.at.whole, concat, 0), relu2);
  assert_int_equal(clv__node_producer(l.at.whole, concat, 1), CLV__NO_ID); /* reads the same value as input 0 */
  done(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts),
      cmocka_unit_test(families),
      cmocka_unit_test(sameness),
      cmocka_unit_test(work_and_producers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
