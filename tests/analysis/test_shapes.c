/* Shape inference of whole graphs: symbols in shape arithmetic, given sizes, folding, bodies and contradictions. */
#include <stdio.h>

#include "analysis/shapes.h"

#include "analysis/evaluate.h"
#include "bodies.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
enum { N = -2, M = -3 }; /* CLV_DIM_SYMBOL(0) and CLV_DIM_SYMBOL(1) */

static void symbol(test_graph *g, const char *name) {
  clv_error error = {0};
  uint32_t index;
  assert_ok(clv__builder_symbol(g->builder, name, &index, &error), error);
}

static clv__shapes *infer_given(const clv_graph *graph, const clv__shape_given *given, uint32_t count, size_t limit) {
  clv_error error = {0};
  clv__shapes *shapes;
  assert_ok(clv__shapes_infer(graph, given, count, limit, &shapes, &error), error);
  return shapes;
}

static const clv_tensor *type_of(const clv_graph *graph, const clv__shapes *shapes, const char *name) {
  clv_value_id id = clv__graph_find_value(graph, name);
  assert_int_not_equal(id, CLV__NO_ID);
  return &shapes->types[id];
}

/* Checks the type of value `name`. `text` is in the format of clv__tensor_text(). */
static void expect(const clv_graph *graph, const clv__shapes *shapes, const char *name, const char *text) {
  char have[128];
  clv__tensor_text(type_of(graph, shapes, name), have, sizeof have);
  if (strcmp(have, text) != 0) fail_msg("%s is %s, %s expected", name, have, text);
}

static void scalar(test_graph *g, const char *name, int64_t value) {
  int64_t *data = clv__arena_copy(clv__builder_arena(g->builder), &value, sizeof value);
  assert_non_null(data);
  clv_tensor type = clv__tensor_make(CLV_I64, 0, NULL, data);
  clv__builder_type(g->builder, test_graph_value(g, name), &type);
}

/* x[N,3,M,64] -> Shape -> Gather 0 -> Unsqueeze -> Concat with -1 -> Reshape */
static clv_graph *flatten_by_hand(void) {
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  symbol(&g, "N");
  symbol(&g, "M");
  test_graph_input(&g, "x", CLV_F32, 4, DIMS(N, 3, M, 64));
  scalar(&g, "zero", 0);
  test_graph_ints(&g, "axes", 1, DIMS(0));
  test_graph_ints(&g, "rest", 1, DIMS(-1));
  test_graph_node(&g, "", "Shape", "x", "s");
  test_graph_node(&g, "", "Gather", "s,zero", "n");
  test_graph_node(&g, "", "Unsqueeze", "n,axes", "n1");
  test_graph_node_ints(&g, "", "Concat", "n1,rest", "t", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "", "Reshape", "x,t", "y");
  test_graph_node(&g, "", "Relu", "y", "z");
  return test_graph_end(&g, "z");
}

static void symbols_travel(void **state) {
  (void)state;
  clv_graph *graph = flatten_by_hand();
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  expect(graph, shapes, "z", "f32[s0,s2]"); /* 3 * M * 64 is no symbol of the model, so it gets a new one */
  assert_int_equal(shapes->symbol_count, 3);
  clv__shapes_destroy(shapes);
  clv__shape_given m = {"M", true, 0, {2}};
  shapes = infer_given(graph, &m, 1, SIZE_MAX);
  expect(graph, shapes, "x", "f32[s0,3,2,64]");
  expect(graph, shapes, "z", "f32[s0,384]");
  clv__shapes_destroy(shapes);
  clv__shape_given x = {"x", false, 4, {5, -1, 2, 64}};
  shapes = infer_given(graph, &x, 1, SIZE_MAX);
  expect(graph, shapes, "z", "f32[5,384]");
  assert_non_null(type_of(graph, shapes, "t")->data);
  for (clv_node_id n = 0; n < 4; ++n) assert_true(shapes->node_folded[n]);
  assert_false(shapes->node_folded[4]);
  assert_false(shapes->node_folded[5]);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* Inference must know the elements of a shape tensor after each operator that exporters put between Shape and Reshape;
 * otherwise it could not find the shape after the Reshape. */
static void content_passes(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  symbol(&g, "N");
  test_graph_input(&g, "x", CLV_F32, 3, DIMS(N, 12, 64));
  test_graph_ints(&g, "from", 1, DIMS(0));
  test_graph_ints(&g, "to", 1, DIMS(1));
  test_graph_ints(&g, "back", 1, DIMS(-1));
  test_graph_ints(&g, "far", 1, DIMS(INT64_MIN));
  test_graph_ints(&g, "one", 1, DIMS(1));
  test_graph_ints(&g, "two_one", 2, DIMS(2, 1));
  test_graph_ints(&g, "parts", 2, DIMS(1, 2));
  test_graph_node(&g, "", "Shape", "x", "s");
  test_graph_node(&g, "", "Slice", "s,from,to", "n");
  test_graph_node_ints(&g, "", "Concat", "n,back", "t", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "", "Reshape", "x,t", "flat"); /* N is a factor of both shapes, so -1 becomes 768 */
  test_graph_node(&g, "", "Slice", "s,back,far,from,back", "turned");
  test_graph_node(&g, "", "ConstantOfShape", "turned", "reversed");
  test_graph_node(&g, "", "Split", "s,parts", "head,tail");
  test_graph_node(&g, "", "Identity", "head", "h2");
  test_graph_node_ints(&g, "", "Concat", "one,h2", "e", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "", "Expand", "one,e", "expanded");
  test_graph_node(&g, "", "Squeeze", "n", "n0");
  scalar(&g, "zero", 0);
  scalar(&g, "step", 1);
  test_graph_node(&g, "", "Range", "zero,n0,step", "count");
  test_graph_node(&g, "", "Tile", "x,s3", "tiled");
  test_graph_node_ints(&g, "", "Concat", "one,one,two", "s3", "axis", false, 1, DIMS(0));
  test_graph_ints(&g, "two", 1, DIMS(2));
  test_graph_node_ints(&g, "", "Flatten", "x", "f0", "axis", false, 1, DIMS(1));
  test_graph_node_ints(&g, "", "Gather", "s,two_one", "picked", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "", "ConstantOfShape", "picked", "from_picked");
  test_graph_node(&g, "", "Size", "count", "size");
  test_graph_node(&g, "", "Reshape", "count,size1", "same");
  test_graph_node(&g, "", "Unsqueeze", "size,from", "size1");
  clv_graph *graph = test_graph_end(&g, "flat,reversed,expanded,count,tiled,f0,from_picked,same");
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  expect(graph, shapes, "flat", "f32[s0,768]");
  expect(graph, shapes, "reversed", "f32[64,12,s0]");
  expect(graph, shapes, "expanded", "i64[1,s0]");
  expect(graph, shapes, "count", "i64[s0]");
  expect(graph, shapes, "tiled", "f32[s0,12,128]");
  expect(graph, shapes, "f0", "f32[s0,768]");
  expect(graph, shapes, "from_picked", "f32[64,12]");
  expect(graph, shapes, "same", "i64[s0]");
  assert_non_null(type_of(graph, shapes, "from_picked")->data);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* Sizes that a caller gives for symbolic dimensions or inputs, and that inference must reject with the expected message. */
static void given_refused(void **state) {
  (void)state;
  static const struct {
    clv__shape_given given[2];
    uint32_t count;
    clv_status status;
    const char *text;
  } cases[] = {
      {{{"X", true, 0, {2}}}, 1, CLV_NOT_FOUND, "the symbolic dimensions are: N, M"},
      {{{"y", false, 1, {2}}}, 1, CLV_NOT_FOUND, "the inputs are: x"},
      {{{"x", false, 4, {1, 4, 2, 64}}}, 1, CLV_INVALID_ARGUMENT, "f32[1,4,2,64]"},
      {{{"x", false, 3, {1, 3, 2}}}, 1, CLV_INVALID_ARGUMENT, "f32[1,3,2]"},
      {{{"x", false, 3, {1, 3, 2}}}, 1, CLV_INVALID_ARGUMENT, "declared as f32[N,3,M,64], so"},
      {{{"N", true, 0, {INT64_MAX / 2}}, {"M", true, 0, {9}}}, 2, CLV_INVALID_ARGUMENT, "too large for any machine"},
      {{{"x", false, 99, {1, 3, 2}}}, 1, CLV_INVALID_ARGUMENT, "input 'x'"},
      {{{"N", true, 0, {2}}, {"x", false, 4, {3, 3, 2, 64}}},
       2,
       CLV_INVALID_ARGUMENT,
       "dimension 'N' is 2 according to 'N', but 3 according to 'x'"},
      {{{"N", true, 0, {-2}}}, 1, CLV_INVALID_ARGUMENT, "must not be negative, but is set to -2"},
  };
  clv_graph *graph = flatten_by_hand();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_error error = {0};
    clv__shapes *shapes;
    assert_int_equal(clv__shapes_infer(graph, cases[i].given, cases[i].count, 0, &shapes, &error), cases[i].status);
    assert_null(shapes);
    if (strstr(error.message, cases[i].text) == NULL) fail_msg("'%s' lacks '%s'", error.message, cases[i].text);
  }
  clv__graph_destroy(graph);
}

static void folding(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_ints(&g, "shape", 2, DIMS(64, 32));
  test_graph_node(&g, "", "ConstantOfShape", "shape", "w");
  test_graph_node(&g, "", "Relu", "w", "v");
  test_graph_ints(&g, "flat", 1, DIMS(-1));
  test_graph_node(&g, "", "Reshape", "v,flat", "u");
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2048));
  test_graph_node(&g, "", "Add", "x,u", "y");
  test_graph_ints(&g, "i", 1, DIMS(9));
  test_graph_node(&g, "", "Gather", "flat,i",
                  "bad"); /* the index is out of range: folding skips the node, and running it fails */
  clv_graph *graph = test_graph_end(&g, "y,bad");
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  const clv_tensor *w = type_of(graph, shapes, "w"), *v = type_of(graph, shapes, "v"), *u = type_of(graph, shapes, "u");
  assert_non_null(w->data);
  assert_int_equal((uintptr_t)w->data % 64, 0);
  assert_ptr_equal(v->data, u->data); /* a view of a constant is not copied */
  assert_null(type_of(graph, shapes, "y")->data);
  assert_null(type_of(graph, shapes, "bad")->data);
  for (clv_node_id n = 0; n < 3; ++n) assert_true(shapes->node_folded[n]);
  for (clv_node_id n = 3; n < 5; ++n) assert_false(shapes->node_folded[n]);
  clv__shapes_destroy(shapes);
  shapes = infer_given(graph, NULL, 0, 64 * 32 * 4 - 1);
  assert_null(type_of(graph, shapes, "w")->data);
  expect(graph, shapes, "u", "f32[2048]");
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* Large constants that repeat the same element share one mapping of memory, whatever their shapes. Small constants do not, and
 * constants of different values do not share with each other. */
static void repeated_values(void **state) {
  (void)state;
  const struct {
    const char *name;
    int64_t rows;
    float value;
  } fills[] = {{"a", 64, 0.5f}, {"b", 100, 0.5f}, {"c", 64, -0.5f}, {"d", 4, 0.5f}, {"e", 30000, 0.5f}, {"f", 90, 0.5f}};
  enum { COLUMNS = 256, COUNT = 6 };
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  for (int i = 0; i < COUNT; ++i) {
    char shape[8];
    clv_error error = {0};
    clv__arena *arena = clv__builder_arena(g.builder);
    const clv_tensor one = clv__tensor_make(CLV_F32, 1, DIMS(1), clv__arena_copy(arena, &fills[i].value, sizeof(float)));
    const clv_attribute value = {
        .name = "value", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = clv__arena_copy(arena, &one, sizeof one)};
    snprintf(shape, sizeof shape, "%s_", fills[i].name);
    test_graph_ints(&g, shape, 2, DIMS(fills[i].rows, COLUMNS));
    const clv_value_id in = test_graph_value(&g, shape), out = test_graph_value(&g, fills[i].name);
    assert_ok(clv__builder_node(g.builder, "", "", "ConstantOfShape", &in, 1, &out, 1, &value, 1, &error), error);
  }
  clv_graph *graph = test_graph_end(&g, "a,b,c,d,e,f");
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  const clv_tensor *made[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    made[i] = type_of(graph, shapes, fills[i].name);
    const float *data = made[i]->data;
    assert_non_null(data);
    assert_int_equal((uintptr_t)data % 64, 0);
    for (int64_t k = 0; k < fills[i].rows * COLUMNS; ++k) {
      if (data[k] != fills[i].value)
        fail_msg("'%s': element %lld is %g, expected %g", fills[i].name, (long long)k, (double)data[k], (double)fills[i].value);
    }
  }
  assert_ptr_equal(made[0]->data, made[1]->data);
  assert_ptr_not_equal(made[0]->data, made[2]->data);
  assert_ptr_not_equal(made[0]->data, made[3]->data);
  assert_ptr_not_equal(made[0]->data, made[4]->data); /* "e" is larger than the existing mapping, so it gets a new one */
  assert_ptr_equal(made[4]->data, made[5]->data);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* From IR version 4 on, an input's initializer is only a default, so the value is not a constant. */
static void overridable(void **state) {
  (void)state;
  for (int64_t version = 3; version <= 4; ++version) {
    test_graph g;
    test_graph_begin(&g, clv__allocator_default(), 1);
    clv__builder_info(g.builder, "test", "", version);
    test_graph_ints(&g, "shape", 1, DIMS(7));
    body_input(&g, "shape");
    test_graph_node(&g, "", "ConstantOfShape", "shape", "y");
    clv_graph *graph = test_graph_end(&g, "y");
    clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
    expect(graph, shapes, "y", version == 3 ? "f32[7]" : "f32[s0]");
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
}

static void unaligned_and_declared(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  symbol(&g, "N");
  char *bytes = clv__arena_allocate_zero(clv__builder_arena(g.builder), 1, 40);
  const int64_t want[] = {2, -1};
  memcpy(bytes + 3, want, sizeof want);
  clv_tensor type = clv__tensor_make(CLV_I64, 1, DIMS(2), bytes + 3);
  clv__builder_type(g.builder, test_graph_value(&g, "t"), &type);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 6));
  test_graph_node(&g, "", "Reshape", "x,t", "y");
  test_graph_node(&g, "", "Mystery", "x",
                  "m"); /* an unknown operator: its output has the type declared for it, otherwise no type */
  test_graph_node(&g, "", "Relu", "m", "r");
  test_graph_node(&g, "", "Mystery", "x", "q");
  test_graph_node(&g, "", "Relu", "q", "p");
  clv_tensor declared = clv__tensor_make(CLV_F32, 2, DIMS(N, 8), NULL), wrong = clv__tensor_make(CLV_I32, 1, DIMS(9), NULL);
  clv__builder_type(g.builder, test_graph_value(&g, "m"), &declared);
  clv__builder_type(g.builder, test_graph_value(&g, "y"), &wrong); /* contradicts inference, which wins */
  clv_graph *graph = test_graph_end(&g, "y,r,p");
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  expect(graph, shapes, "y", "f32[2,12]");
  expect(graph, shapes, "r", "f32[s0,8]");
  expect(graph, shapes, "p", "none[...]");
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

static void contradictions(void **state) {
  (void)state;
  static const struct {
    const char *op, *inputs, *attribute;
    int64_t value;
    const char *text;
  } cases[] = {
      {"Reshape", "x,five", NULL, 0, "node 'bad' (Reshape): f32[4,6] cannot be reshaped to f32[5]"},
      {"Reshape", "x,minus", NULL, 0, "new dimension 0 is -2"},
      {"Transpose", "x", "perm", 0, "attribute perm has 1 entries, but the input has rank 2"},
      {"Concat", "x,x", "axis", 5, "5 is out of range for rank 2"},
      {"Squeeze", "x,zero", NULL, 0, "axis 0 cannot be squeezed: its size is 4, not 1"},
      {"Unsqueeze", "x,five", NULL, 0, "5 is out of range for rank 3"},
      {"Split", "x", "num_outputs", 3, "num_outputs is 3, but the node has 1"},
      {"Expand", "x,five", NULL, 0, "does not broadcast"},
      {"Tile", "x,five", NULL, 0, "repeats has 1 element, but the input has rank 2"},
      {"Gather", "x,x", NULL, 0, "indices are f32"},
      {"Slice", "x,five,five,five", NULL, 0, "5 is out of range for rank 2"},
      {"TopK", "x,huge", NULL, 0, "k is 7, but axis 1 has size 6"},
      {"ConstantOfShape", "minus", NULL, 0, "dimension 0 is -2"},
      {"Reshape", "x", NULL, 0, "it has 1 input; expected 2"},
      {"Add", "open,w", NULL, 0, "input 1, f32[5], does not broadcast with the inputs before it (input 0 is f32[rows,6])"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    test_graph g;
    test_graph_begin(&g, clv__allocator_default(), 1);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 6));
    test_graph_input(&g, "open", CLV_F32, 2, DIMS(test_graph_symbol(&g, "rows"), 6));
    test_graph_weight(&g, "w", 1, DIMS(5));
    test_graph_ints(&g, "five", 1, DIMS(5));
    test_graph_ints(&g, "zero", 1, DIMS(0));
    test_graph_ints(&g, "minus", 1, DIMS(-2));
    test_graph_ints(&g, "huge", 1, DIMS(7));
    bool is_list = cases[i].attribute != NULL && strcmp(cases[i].attribute, "perm") == 0;
    test_graph_node_ints(&g, "bad", cases[i].op, cases[i].inputs, "y", cases[i].attribute, is_list, 1, &cases[i].value);
    clv_graph *graph = test_graph_end(&g, "y");
    clv_error error = {0};
    clv__shapes *shapes;
    assert_int_not_equal(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error), CLV_OK);
    if (strstr(error.message, cases[i].text) == NULL) fail_msg("'%s' lacks '%s'", error.message, cases[i].text);
    clv__graph_destroy(graph);
  }
}

/* Before opset 18, Split needs equal parts. From opset 18 on, the last part may be smaller. */
static void uneven_parts(void **state) {
  (void)state;
  for (int32_t opset = 17; opset <= 18; ++opset) {
    test_graph g;
    clv_error error = {0};
    clv__shapes *shapes;
    test_graph_begin(&g, clv__allocator_default(), 1);
    assert_ok(clv__builder_import(g.builder, "", opset, &error), error);
    test_graph_input(&g, "x", CLV_F32, 1, DIMS(5));
    test_graph_node_ints(&g, "cut", "Split", "x", "y,z", opset < 18 ? "axis" : "num_outputs", false, 1, DIMS(opset < 18 ? 0 : 2));
    clv_graph *graph = test_graph_end(&g, "y,z");
    clv_status status = clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error);
    if (opset < 18) {
      assert_int_equal(status, CLV_INVALID_MODEL);
      assert_non_null(strstr(error.message, "node 'cut' (Split): 5 elements cannot be split into 2 equal parts"));
    } else {
      assert_ok(status, error);
      expect(graph, shapes, "y", "f32[3]");
      expect(graph, shapes, "z", "f32[2]");
      clv__shapes_destroy(shapes);
    }
    clv__graph_destroy(graph);
  }
}

/* ---- Bodies -------------------------------------------------------------------------------------------------------------- */

/* If x has one column, the result is x without this axis, otherwise x. */
static clv_graph *squeeze_if_one(int64_t columns) {
  test_graph g, yes, no;
  const clv_allocator *allocator = clv__allocator_default();
  test_graph_begin(&g, allocator, 1);
  symbol(&g, "N");
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(3, columns));
  test_graph_ints(&g, "one", 1, DIMS(1));
  test_graph_node_ints(&g, "", "Shape", "x", "s", "start", false, 1, DIMS(1));
  test_graph_node(&g, "", "Equal", "s,one", "is_one");
  test_graph_begin(&yes, allocator, 1);
  test_graph_node(&yes, "", "Squeeze", "x,one", "a");
  test_graph_begin(&no, allocator, 1);
  test_graph_node(&no, "", "Identity", "x", "b");
  const clv_graph_view *then_body = body_end(&yes, &g, "a"), *else_body = body_end(&no, &g, "b");
  body_node(&g, "If", "is_one", "y", "then_branch", then_body, "else_branch", else_body, 0);
  return test_graph_end(&g, "y");
}

static void branches(void **state) {
  (void)state;
  clv_graph *graph = squeeze_if_one(1);
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  expect(graph, shapes, "y", "f32[3]"); /* the condition is known */
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  graph = squeeze_if_one(5);
  shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  expect(graph, shapes, "y", "f32[3,5]"); /* the branch not taken does not fit the shapes, which is not an error */
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  graph = squeeze_if_one(N);
  shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  expect(graph, shapes, "y", "f32[...]");
  clv__shapes_destroy(shapes);
  clv__shape_given n = {"N", true, 0, {1}};
  shapes = infer_given(graph, &n, 1, SIZE_MAX);
  expect(graph, shapes, "y", "f32[3]");
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* A loop with two carried values, one to which each iteration appends the rows of x and one that does not change. Each
 * iteration also appends x + x to another output. */
static clv_graph *growing_loop(const clv_allocator *allocator, bool trips_known, test_graph *g) {
  test_graph body;
  test_graph_begin(g, allocator, 1);
  symbol(g, "N");
  symbol(g, "M");
  test_graph_input(g, "x", CLV_F32, 2, DIMS(N, 5));
  test_graph_input(g, "w", CLV_F32, 1, DIMS(M));
  if (trips_known)
    test_graph_ints(g, "trips", 1, DIMS(3));
  else
    test_graph_input(g, "trips", CLV_I64, 0, NULL);
  test_graph_begin(&body, allocator, 1);
  body_input(&body, "i");
  body_input(&body, "go");
  body_input(&body, "state");
  body_input(&body, "kept");
  test_graph_node(&body, "", "Identity", "go", "go2");
  test_graph_node_ints(&body, "", "Concat", "state,x", "state2", "axis", false, 1, DIMS(0));
  test_graph_node(&body, "", "Identity", "kept", "kept2");
  test_graph_node(&body, "", "Add", "x,x", "slice");
  body_node(g, "Loop", "trips,-,x,w", "grown,same,stacked", "body", body_end(&body, g, "go2,state2,kept2,slice"), NULL, NULL, 0);
  return test_graph_end(g, "grown,same,stacked");
}

static void loops(void **state) {
  (void)state;
  test_graph g;
  clv_graph *graph = growing_loop(clv__allocator_default(), true, &g);
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  const clv_tensor *grown = type_of(graph, shapes, "grown");
  assert_int_equal(grown->rank, 2);
  assert_true(grown->dims[0] <= CLV_DIM_SYMBOL(graph->symbol_count)); /* the size changes, so it gets a new symbol instead of N */
  assert_int_equal(grown->dims[1], 5);
  expect(graph, shapes, "same", "f32[s1]");
  expect(graph, shapes, "stacked", "f32[3,s0,5]");
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  graph = growing_loop(clv__allocator_default(), false, &g);
  shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  const clv_tensor *stacked = type_of(graph, shapes, "stacked");
  assert_int_equal(stacked->rank, 3);
  assert_true(stacked->dims[0] <= CLV_DIM_SYMBOL(graph->symbol_count));
  assert_int_equal(stacked->dims[1], N);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* Deeply nested loops. Each level infers its body more than once, but the total time must stay bounded. */
static void deep_bodies(void **state) {
  (void)state;
  enum { DEPTH = 40 };
  test_graph levels[DEPTH];
  const clv_allocator *allocator = clv__allocator_default();
  for (int d = 0; d < DEPTH; ++d) test_graph_begin(&levels[d], allocator, 1);
  test_graph_input(&levels[0], "x", CLV_F32, 1, DIMS(4));
  test_graph_input(&levels[0], "trips", CLV_I64, 0, NULL);
  for (int d = 1; d < DEPTH; ++d) {
    body_input(&levels[d], "i");
    body_input(&levels[d], "go");
    body_input(&levels[d], "x");
    test_graph_node(&levels[d], "", "Identity", "go", "go2");
  }
  test_graph_node_ints(&levels[DEPTH - 1], "", "Concat", "x,x", "y", "axis", false, 1, DIMS(0));
  for (int d = DEPTH - 1; d > 0; --d) {
    body_node(&levels[d - 1], "Loop", "trips,-,x", "y", "body", body_end(&levels[d], &levels[d - 1], "go2,y"), NULL, NULL, 0);
  }
  clv_graph *graph = test_graph_end(&levels[0], "y");
  clv__shapes *shapes = infer_given(graph, NULL, 0, SIZE_MAX);
  assert_int_not_equal(type_of(graph, shapes, "y")->dims[0], 4);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* Add of opset 6 is rejected, because its attribute `axis` selects the dims to broadcast, which is not supported. Not has had
 * the same meaning since opset 1. */
static void old_opsets(void **state) {
  (void)state;
  static const struct {
    const char *op, *inputs;
    clv_dtype dtype;
    int32_t opset;
    clv_status status;
  } cases[] = {
      {"Add", "x,x", CLV_F32, 6, CLV_NOT_SUPPORTED}, {"Add", "x,x", CLV_F32, 7, CLV_OK}, {"Not", "x", CLV_BOOL, 1, CLV_OK}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    test_graph g;
    clv_error error = {0};
    clv__shapes *shapes = NULL;
    test_graph_begin(&g, clv__allocator_default(), 1);
    assert_ok(clv__builder_import(g.builder, "", cases[i].opset, &error), error);
    test_graph_input(&g, "x", cases[i].dtype, 1, DIMS(4));
    test_graph_node(&g, "node", cases[i].op, cases[i].inputs, "y");
    clv_graph *graph = test_graph_end(&g, "y");
    assert_int_equal(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error), cases[i].status);
    if (cases[i].status != CLV_OK) assert_non_null(strstr(error.message, "Add of opset 6"));
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
}

static void allocation_failures(void **state) {
  (void)state;
  clv_graph *samples[3] = {NULL};
  test_allocator counting;
  test_allocator_init(&counting);
  test_graph g;
  samples[0] = growing_loop(&counting.allocator, true, &g);
  clv_graph *plain = flatten_by_hand(), *branch = squeeze_if_one(5);
  plain->allocator = branch->allocator = &counting.allocator; /* used by inference; the graphs' own arenas keep their allocator */
  samples[1] = plain;
  samples[2] = branch;
  for (int s = 0; s < 3; ++s) {
    size_t live = counting.live;
    for (size_t k = 1;; ++k) {
      clv_error error = {0};
      clv__shapes *shapes;
      counting.fail_at = counting.calls + k;
      clv_status status = clv__shapes_infer(samples[s], NULL, 0, SIZE_MAX, &shapes, &error);
      bool reached = counting.calls >= counting.fail_at;
      counting.fail_at = 0;
      clv__shapes_destroy(shapes);
      assert_int_equal(counting.live, live);
      if (!reached) {
        assert_ok(status, error);
        break;
      }
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
    }
  }
  plain->allocator = branch->allocator = clv__allocator_default();
  for (int s = 0; s < 3; ++s) clv__graph_destroy(samples[s]);
  assert_int_equal(counting.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(symbols_travel),
      cmocka_unit_test(content_passes),
      cmocka_unit_test(given_refused),
      cmocka_unit_test(folding),
      cmocka_unit_test(repeated_values),
      cmocka_unit_test(overridable),
      cmocka_unit_test(unaligned_and_declared),
      cmocka_unit_test(contradictions),
      cmocka_unit_test(uneven_parts),
      cmocka_unit_test(branches),
      cmocka_unit_test(loops),
      cmocka_unit_test(deep_bodies),
      cmocka_unit_test(old_opsets),
      cmocka_unit_test(allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
