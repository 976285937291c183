/* Small models whose constants would fill the memory if planning computed them all: constants of gigabytes, chains that
 * double, products, repetitions, in the graph and in the branches of an If. Inference must keep its limit on the bytes of
 * computed constants, and must still compute the small constants. */
#include <malloc.h>
#include <stdlib.h>

#include "analysis/shapes.h"
#include "bodies.h"
#include "cleave/cleave.h"
#include "models.h"
#include "support.h"

enum { MODELS = 100, MOST_BYTES = 200 * 1000 * 1000 };

/* Counts the bytes that are allocated, and their peak. */
typedef struct meter {
  size_t live, peak;
} meter;

static void *allocate(void *user_data, size_t size_bytes, size_t alignment) {
  meter *m = user_data;
  void *made = aligned_alloc(alignment, (size_bytes + alignment) / alignment * alignment);
  if (made == NULL) return NULL;
  m->live += malloc_usable_size(made);
  if (m->live > m->peak) m->peak = m->live;
  return made;
}

static void release(void *user_data, void *pointer) {
  meter *m = user_data;
  m->live -= pointer != NULL ? malloc_usable_size(pointer) : 0;
  free(pointer);
}

static void constant(test_graph *g, const char *name, int64_t value) {
  test_graph_ints(g, name, 1, &value);
}

/* Adds nodes that compute the large value `to` from small constants, by a random method. Returns the method's name. */
static const char *add_large(test_graph *g, uint64_t *random, const char *to) {
  const int64_t mega = 1 << 20, many = mega * (int64_t)(1 + test_random(random) % 2000);
  char name[32], last[32], list[64];
  switch (test_random(random) % 8) {
    case 0:
      constant(g, "n", many);
      test_graph_node(g, "", "ConstantOfShape", "n", "filled");
      test_graph_node(g, "", "Neg", "filled", "negative");
      test_graph_node(g, "", "Abs", "negative", to);
      return "ConstantOfShape";
    case 1:
      constant(g, "n", mega);
      test_graph_node(g, "", "ConstantOfShape", "n", "d0");
      for (int i = 0; i < 40; ++i) {
        snprintf(last, sizeof last, "d%d,d%d", i, i);
        snprintf(name, sizeof name, "d%d", i + 1);
        test_graph_node_ints(g, "", "Concat", last, i == 39 ? to : name, "axis", false, 1, (const int64_t[]){0});
      }
      return "doubling Concats";
    case 2:
      constant(g, "n", 3);
      constant(g, "times", many);
      test_graph_node(g, "", "ConstantOfShape", "n", "few");
      test_graph_node(g, "", "Tile", "few,times", to);
      return "Tile";
    case 3: {
      const int64_t shape[] = {many / 1024, 1024};
      test_graph_weight(g, "w", 1, (const int64_t[]){1024});
      test_graph_ints(g, "shape", 2, shape);
      test_graph_node(g, "", "Expand", "w,shape", "wide");
      test_graph_node(g, "", "Relu", "wide", to);
      return "Expand";
    }
    case 4: {
      const int64_t rows[] = {20000, 1}, columns[] = {1, 30000};
      test_graph_weight(g, "a", 2, rows);
      test_graph_weight(g, "b", 2, columns);
      test_graph_node(g, "", "MatMul", "a,b", to);
      return "an outer product";
    }
    case 5: {
      const int64_t pads[] = {0, many};
      constant(g, "n", 7);
      test_graph_node(g, "", "ConstantOfShape", "n", "few");
      test_graph_ints(g, "pads", 2, pads);
      test_graph_node(g, "", "Pad", "few,pads", to);
      return "Pad";
    }
    case 6: {
      const int64_t shape[] = {mega, 64};
      test_graph_ints(g, "shape", 2, shape);
      test_graph_node(g, "", "ConstantOfShape", "shape", "filled");
      test_graph_node(g, "", "NonZero", "filled", "places");
      test_graph_node(g, "", "Exp", "filled", to);
      return "NonZero";
    }
    default:
      constant(g, "n", mega * 12);
      test_graph_node(g, "", "ConstantOfShape", "n", "s0");
      for (int i = 0; i < 30; ++i) {
        snprintf(last, sizeof last, "s%d", i);
        snprintf(name, sizeof name, "s%d", i + 1);
        snprintf(list, sizeof list, "%s", i == 29 ? to : name);
        test_graph_node(g, "", i % 2 == 0 ? "Sigmoid" : "Sqrt", last, list);
      }
      return "a chain of large values";
  }
}

/* Adds an If with a known condition, both branches of which compute a large value by add_large(). */
static const char *add_branches(test_graph *g, uint64_t *random, const clv_allocator *allocator) {
  const bool truth = true;
  const clv_tensor condition = {.dtype = CLV_BOOL, .rank = 0, .data = (void *)&truth};
  uint64_t again = *random;
  test_graph first, second;
  test_graph_constant(g, "condition", &condition);
  test_graph_begin(&first, allocator, 1);
  add_large(&first, random, "made");
  const clv_graph_view *then_view = body_end(&first, g, "made");
  test_graph_begin(&second, allocator, 1);
  const char *what = add_large(&second, &again, "other");
  body_node(g, "If", "condition", "large", "then_branch", then_view, "else_branch", body_end(&second, g, "other"), 0);
  return what;
}

static void hostile_models(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_some(MODELS); ++seed) {
    meter m = {0};
    const clv_allocator allocator = {&m, allocate, release};
    uint64_t random = seed;
    test_graph g;
    clv_error error = {0};
    clv__shapes *shapes;
    test_graph_begin(&g, &allocator, seed + 1);
    test_graph_input(&g, "x", CLV_F32, 1, (const int64_t[]){1});
    const bool in_branch = test_random(&random) % 3 == 0;
    const char *what = in_branch ? add_branches(&g, &random, &allocator) : add_large(&g, &random, "large");
    const int64_t four[] = {1, 2, 3, 4};
    test_graph_ints(&g, "four", 4, four);
    test_graph_node(&g, "small", "Mul", "four,four", "squares");
    test_graph_node(&g, "y", "Add", "x,x", "y");
    clv_graph *graph = test_graph_end(&g, "y,large,squares");
    const size_t before = m.live;
    m.peak = before;
    assert_ok(clv__shapes_infer(graph, NULL, 0, CLV__FOLD_ALL, &shapes, &error), error);
    if (m.peak - before > MOST_BYTES)
      fail_msg("seed %llu, %s%s: inference allocates %zu bytes, more than the maximum of %zu", (unsigned long long)seed, what,
               in_branch ? " in a branch" : "", m.peak - before, (size_t)MOST_BYTES);
    const clv_node_id small = graph->values[graph->outputs[2]].producer;
    assert_true(shapes->node_folded[small]);
    const int64_t *squares = shapes->types[graph->outputs[2]].data;
    for (int i = 0; i < 4; ++i) assert_int_equal(squares[i], four[i] * four[i]);
    clv__shapes_destroy(shapes);
    clv_graph_destroy(graph);
    assert_int_equal(m.live, 0);
  }
}

/* Infers a graph with a constant of `count` floats and a Neg of it, with `fold_bytes` as the limit on computed constants
 * (0: the default). Sets `is_filled` to whether inference computes the constant, and `is_negated` to whether it computes
 * the Neg. */
static void fill_and_negate(uint64_t fold_bytes, int64_t count, bool *is_filled, bool *is_negated) {
  test_graph g;
  clv_error error = {0};
  clv__shapes *shapes;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, (const int64_t[]){1});
  constant(&g, "n", count);
  test_graph_node(&g, "fill", "ConstantOfShape", "n", "filled");
  test_graph_node(&g, "neg", "Neg", "filled", "negative");
  test_graph_node(&g, "y", "Add", "x,x", "y");
  clv_graph *graph = test_graph_end(&g, "y,negative");
  graph->fold_bytes = fold_bytes;
  assert_ok(clv__shapes_infer(graph, NULL, 0, CLV__FOLD_ALL, &shapes, &error), error);
  const clv_node_id neg = graph->values[graph->outputs[1]].producer;
  *is_negated = shapes->node_folded[neg];
  *is_filled = shapes->node_folded[graph->values[graph->nodes[neg].inputs[0]].producer];
  clv__shapes_destroy(shapes);
  clv_graph_destroy(graph);
}

/* The option fold_bytes changes the limit on the bytes of computed constants. A constant that repeats one element counts
 * little towards the limit, because it occupies only 2^-10 of its size in memory. */
static void the_limit_is_an_option(void **state) {
  (void)state;
  static const struct {
    uint64_t fold_bytes;
    int64_t count;
    bool is_filled, is_negated;
  } cases[] = {{0, 10 << 20, true, true},
               {8 << 20, 10 << 20, true, false},
               {0, 20 << 20, true, false},
               {100 << 20, 20 << 20, true, true},
               {0, (int64_t)1 << 36, false, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    bool is_filled, is_negated;
    fill_and_negate(cases[i].fold_bytes, cases[i].count, &is_filled, &is_negated);
    if (is_filled != cases[i].is_filled || is_negated != cases[i].is_negated)
      fail_msg("case %zu: constant computed: %d, expected %d; its Neg computed: %d, expected %d", i, is_filled,
               cases[i].is_filled, is_negated, cases[i].is_negated);
  }
}

/* The limit on the bytes of computed constants grows with the weights, so weights of any size are transposed and converted
 * when a model is planned, and not in every run. */
static void weights_fold(void **state) {
  (void)state;
  const int64_t dims[] = {3000, 3000};
  test_allocator counting;
  test_graph g;
  clv_error error = {0};
  clv__shapes *shapes;
  test_allocator_init(&counting);
  test_graph_begin(&g, &counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, (const int64_t[]){1, 3000});
  for (int i = 0; i < 3; ++i) {
    char weight[16], transposed[16], inputs[40], made[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(transposed, sizeof transposed, "t%d", i);
    snprintf(made, sizeof made, "h%d", i);
    test_graph_weight(&g, weight, 2, dims);
    test_graph_node(&g, transposed, "Transpose", weight, transposed);
    if (i == 0)
      snprintf(inputs, sizeof inputs, "x,%s", transposed);
    else
      snprintf(inputs, sizeof inputs, "h%d,%s", i - 1, transposed);
    test_graph_node(&g, made, "MatMul", inputs, made);
  }
  clv_graph *graph = test_graph_end(&g, "h2");
  assert_ok(clv__shapes_infer(graph, NULL, 0, CLV__FOLD_ALL, &shapes, &error), error);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    assert_int_equal(shapes->node_folded[n], strcmp(graph->nodes[n].op, "Transpose") == 0);
  }
  clv__shapes_destroy(shapes);
  clv_graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_models), cmocka_unit_test(the_limit_is_an_option),
                                     cmocka_unit_test(weights_fold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
