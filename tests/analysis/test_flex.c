/* FlexAttention in the reference evaluator, compared with its definition in f64. Bodies modify the scores and the probabilities;
 * one of them captures a value. Also tests bodies that change the type, and failing allocations. */
#include <math.h>
#include <stdlib.h>

#include "analysis/evaluate.h"
#include "bodies.h"

enum { BATCH = 2, HEADS = 2, GROUP = 2, QUERIES = 3, KEYS = 5, SIZE = 4, WIDTH = 3, TALL = BATCH * HEADS * GROUP * QUERIES };
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* score_mod adds the captured value `bias`. prob_mod is Neg, or the operator `wrong` if it is not NULL. */
static clv_graph *flex_graph(const clv_allocator *allocator, clv_dtype dtype, clv_dtype precision, const char *wrong) {
  test_graph g, score, probability;
  clv_error error = {0};
  test_graph_begin(&g, allocator, 1);
  assert_ok(clv__builder_import(g.builder, "ai.onnx.preview", 1, &error), error);
  test_graph_input(&g, "q", dtype, 4, DIMS(BATCH, HEADS * GROUP, QUERIES, SIZE));
  test_graph_input(&g, "k", dtype, 4, DIMS(BATCH, HEADS, KEYS, SIZE));
  test_graph_input(&g, "v", dtype, 4, DIMS(BATCH, HEADS, KEYS, WIDTH));
  test_graph_input(&g, "bias", precision, 1, DIMS(KEYS));
  test_graph_begin(&score, allocator, 1);
  body_input(&score, "scores");
  test_graph_node(&score, "", "Add", "scores,bias", "scored");
  test_graph_begin(&probability, allocator, 1);
  body_input(&probability, "shares");
  test_graph_node(&probability, "", wrong != NULL ? wrong : "Neg", "shares", "shared");
  const clv_graph_view *first = body_end(&score, &g, "scored"), *second = body_end(&probability, &g, "shared");
  clv_value_id in[16], out[16];
  const clv_attribute attributes[] = {{.name = "score_mod", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = first},
                                      {.name = "prob_mod", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = second}};
  const uint32_t in_count = body_names(&g, "q,k,v", in), out_count = body_names(&g, "y", out);
  assert_ok(clv__builder_node(g.builder, "flex", "ai.onnx.preview", "FlexAttention", in, in_count, out, out_count, attributes, 2,
                              &error),
            error);
  return test_graph_end(&g, "y");
}

typedef struct operands {
  clv_tensor tensors[4];
  double storage[4][TALL * SIZE];
} operands;

static void fill(operands *o, clv_dtype dtype, clv_dtype precision) {
  static const int64_t dims[3][4] = {
      {BATCH, HEADS * GROUP, QUERIES, SIZE}, {BATCH, HEADS, KEYS, SIZE}, {BATCH, HEADS, KEYS, WIDTH}};
  uint64_t seed = 5;
  for (int t = 0; t < 4; ++t) {
    o->tensors[t] = clv__tensor_make(t < 3 ? dtype : precision, t < 3 ? 4 : 1, t < 3 ? dims[t] : DIMS(KEYS), o->storage[t]);
    size_t count;
    assert_true(clv__tensor_count(&o->tensors[t], &count));
    for (size_t i = 0; i < count; ++i) clv__tensor_put(&o->tensors[t], i, (double)test_random_float(&seed), 0, false);
  }
}

static double number(const operands *o, int tensor, int64_t index) {
  return clv__tensor_get(&o->tensors[tensor], (size_t)index);
}

static void expect(const operands *o, const clv_tensor *y, double tolerance) {
  for (int64_t row = 0; row < TALL; ++row) {
    const int64_t pair = row / QUERIES / GROUP; /* index over the batch and the heads of K and V */
    double shares[KEYS], sum = 0;
    for (int64_t k = 0; k < KEYS; ++k) {
      double score = 0;
      for (int64_t i = 0; i < SIZE; ++i) score += number(o, 0, row * SIZE + i) * number(o, 1, (pair * KEYS + k) * SIZE + i) / 2;
      sum += shares[k] = exp(score + number(o, 3, k));
    }
    for (int64_t i = 0; i < WIDTH; ++i) {
      double expected = 0;
      for (int64_t k = 0; k < KEYS; ++k) expected -= shares[k] / sum * number(o, 2, (pair * KEYS + k) * WIDTH + i);
      const double found = clv__tensor_get(y, (size_t)(row * WIDTH + i));
      if (!(fabs(found - expected) <= tolerance))
        fail_msg("row %d, column %d is %g, expected %g", (int)row, (int)i, found, expected);
    }
  }
}

static void bodies_are_run(void **state) {
  (void)state;
  static const struct {
    clv_dtype dtype, precision;
    double tolerance;
  } cases[] = {{CLV_F32, CLV_F32, 2e-6}, {CLV_F16, CLV_F32, 2e-3}, {CLV_F64, CLV_F64, 1e-14}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_graph *graph = flex_graph(clv__allocator_default(), cases[i].dtype, cases[i].precision, NULL);
    operands o;
    clv_tensor y;
    clv_error error = {0};
    char text[96];
    fill(&o, cases[i].dtype, cases[i].precision);
    assert_ok(clv__graph_evaluate(graph, o.tensors, NULL, &y, NULL, NULL, clv__allocator_default(), &error), error);
    assert_int_equal(y.dtype, cases[i].dtype);
    clv__tensor_text(&y, text, sizeof text);
    assert_non_null(strstr(text, "[2,4,3,3]"));
    expect(&o, &y, cases[i].tolerance);
    clv__release(clv__allocator_default(), y.data);
    clv__graph_destroy(graph);
  }
}

static void bodies_that_change_the_type(void **state) {
  (void)state;
  static const char *const wrong[] = {"Shape", "IsNaN", "Size"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    clv_graph *graph = flex_graph(clv__allocator_default(), CLV_F32, CLV_F32, wrong[i]);
    operands o;
    clv_tensor y;
    clv_error error = {0};
    fill(&o, CLV_F32, CLV_F32);
    assert_int_equal(clv__graph_evaluate(graph, o.tensors, NULL, &y, NULL, NULL, clv__allocator_default(), &error),
                     CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "node 'flex' (FlexAttention): its prob_mod produces"));
    clv__graph_destroy(graph);
  }
}

static void allocation_failures(void **state) {
  (void)state;
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph = flex_graph(&counting.allocator, CLV_F16, CLV_F32, NULL);
  operands o;
  fill(&o, CLV_F16, CLV_F32);
  const size_t live = counting.live;
  for (size_t k = 1;; ++k) {
    clv_error error = {0};
    clv_tensor y;
    counting.fail_at = counting.calls + k;
    const clv_status status = clv__graph_evaluate(graph, o.tensors, NULL, &y, NULL, NULL, &counting.allocator, &error);
    const bool reached = counting.calls >= counting.fail_at;
    counting.fail_at = 0;
    if (!reached) {
      assert_ok(status, error);
      clv__release(&counting.allocator, y.data);
    } else {
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
    }
    assert_int_equal(counting.live, live);
    if (!reached) break;
  }
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bodies_are_run), cmocka_unit_test(bodies_that_change_the_type),
                                     cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
