/* The reference evaluator: the order and lifetime of values, bodies and their captures, and errors that name the node. */
#include "analysis/evaluate.h"

#include <stdio.h>

#include "bodies.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static clv_tensor floats(int32_t rank, const int64_t *dims, const float *data) {
  return clv__tensor_make(CLV_F32, rank, dims, (void *)data);
}

static void free_outputs(clv_tensor *outputs, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) clv__release(clv__allocator_default(), outputs[i].data);
}

static void evaluate(const clv_graph *graph, const clv_tensor *inputs, clv_tensor *outputs) {
  clv_error error = {0};
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, outputs, NULL, NULL, clv__allocator_default(), &error), error);
}

static void expect_floats(const clv_tensor *tensor, const char *type, size_t count, const float *expected) {
  char text[96];
  clv__tensor_text(tensor, text, sizeof text);
  assert_string_equal(text, type);
  for (size_t i = 0; i < count; ++i) {
    if (((const float *)tensor->data)[i] != expected[i]) {
      fail_msg("element %zu is %g, %g expected", i, (double)((const float *)tensor->data)[i], (double)expected[i]);
    }
  }
}

/* ---- Plain graphs -------------------------------------------------------------------------------------------------------- */

static clv_status count_values(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error) {
  (void)error;
  assert_non_null(tensor->data);
  ((int *)cookie)[value]++;
  return CLV_OK;
}

/* Unusual outputs of a graph must have the right values and survive as long as needed: an input, an initializer, a value
 * listed twice, a value that a node also reads, and a value that no node reads. Also tests a node with an omitted output. */
static void odd_outputs(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(3));
  test_graph_ints(&g, "c", 2, DIMS(7, 8));
  test_graph_ints(&g, "k", 1, DIMS(2));
  test_graph_node(&g, "", "Relu", "x", "r");
  test_graph_node(&g, "", "Neg", "r", "n");
  test_graph_node(&g, "", "TopK", "n,k", ",places");
  test_graph_node(&g, "", "Abs", "x", "unread");
  clv_graph *graph = test_graph_end(&g, "x,c,r,n,r,places");
  const float x[] = {-1, 2, 3};
  clv_tensor input = floats(1, DIMS(3), x), outputs[6];
  int seen[16] = {0};
  clv_error error = {0};
  assert_ok(clv__graph_evaluate(graph, &input, NULL, outputs, count_values, seen, clv__allocator_default(), &error), error);
  expect_floats(&outputs[0], "f32[3]", 3, x);
  assert_ptr_not_equal(outputs[0].data, x);
  assert_int_equal(((int64_t *)outputs[1].data)[1], 8);
  expect_floats(&outputs[2], "f32[3]", 3, (const float[]){0, 2, 3});
  expect_floats(&outputs[3], "f32[3]", 3, (const float[]){0, -2, -3});
  expect_floats(&outputs[4], "f32[3]", 3, (const float[]){0, 2, 3});
  assert_ptr_not_equal(outputs[2].data, outputs[4].data);
  assert_int_equal(((int64_t *)outputs[5].data)[1], 1);
  for (clv_value_id v = 0; v < graph->value_count; ++v) assert_int_equal(seen[v], 1);
  free_outputs(outputs, 6);
  clv__graph_destroy(graph);
}

/* A MaxPool must run if only its second output, the indices, is used. A node whose only output is omitted is an error. */
static void first_output_left_out(void **state) {
  (void)state;
  const float x[] = {1, 4, 2, 3, 0, 9};
  clv_tensor input = floats(3, DIMS(1, 1, 6), x), outputs[1];
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 3, DIMS(1, 1, 6));
  test_graph_node_ints(&g, "", "MaxPool", "x", ",places", "kernel_shape", true, 1, DIMS(2));
  clv_graph *graph = test_graph_end(&g, "places");
  evaluate(graph, &input, outputs);
  const int64_t places[] = {1, 1, 3, 3, 5};
  assert_memory_equal(outputs[0].data, places, sizeof places);
  free_outputs(outputs, 1);
  clv__graph_destroy(graph);

  clv_error error = {0};
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 3, DIMS(1, 1, 6));
  clv_value_id value, nobody = CLV__NO_ID;
  assert_ok(clv__builder_value(g.builder, "x", &value, &error), error);
  assert_ok(clv__builder_node(g.builder, "idle", "", "Relu", &value, 1, &nobody, 1, NULL, 0, &error), error);
  graph = test_graph_end(&g, "x");
  outputs[0].data = NULL;
  assert_int_equal(clv__graph_evaluate(graph, &input, NULL, outputs, NULL, NULL, clv__allocator_default(), &error),
                   CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, "node 'idle' (Relu): its only output is omitted"));
  clv__graph_destroy(graph);
}

static void empty_and_scalar(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "e", CLV_F32, 2, DIMS(0, 4));
  test_graph_input(&g, "s", CLV_F32, 0, NULL);
  test_graph_node(&g, "", "Add", "e,s", "a");
  test_graph_node(&g, "", "Transpose", "a", "t");
  test_graph_node_ints(&g, "", "Concat", "t,t", "c", "axis", false, 1, DIMS(1));
  test_graph_ints(&g, "shape", 2, DIMS(1, 1));
  test_graph_node(&g, "", "Reshape", "s,shape", "r");
  test_graph_node(&g, "", "Squeeze", "r", "q");
  test_graph_node(&g, "", "NonZero", "s", "z");
  clv_graph *graph = test_graph_end(&g, "c,q,z");
  const float value = 5;
  clv_tensor inputs[] = {floats(2, DIMS(0, 4), NULL), floats(0, NULL, &value)}, outputs[3];
  evaluate(graph, inputs, outputs);
  expect_floats(&outputs[0], "f32[4,0]", 0, NULL);
  expect_floats(&outputs[1], "f32[]", 1, &value);
  char text[64];
  clv__tensor_text(&outputs[2], text, sizeof text);
  assert_string_equal(text, "i64[0,1]");
  free_outputs(outputs, 3);
  clv__graph_destroy(graph);
}

static void expect_error(const clv_graph *graph, const clv_tensor *inputs, clv_status status, const char *text) {
  clv_error error = {0};
  clv_tensor outputs[4];
  assert_int_equal(clv__graph_evaluate(graph, inputs, NULL, outputs, NULL, NULL, clv__allocator_default(), &error), status);
  if (strstr(error.message, text) == NULL) fail_msg("the error message '%s' does not contain '%s'", error.message, text);
  assert_null(outputs[0].data);
}

static void errors_name_the_node(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(3));
  test_graph_input(&g, "i", CLV_I64, 1, DIMS(1));
  test_graph_node(&g, "pick", "Gather", "x,i", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  const float x[] = {1, 2, 3};
  int64_t index = 4;
  clv_tensor inputs[] = {floats(1, DIMS(3), x), clv__tensor_make(CLV_I64, 1, DIMS(1), &index)};
  expect_error(graph, inputs, CLV_INVALID_ARGUMENT, "node 'pick' (Gather): index 4 is out of range for axis 0 of size 3");
  inputs[0] = floats(1, DIMS(2), x);
  expect_error(graph, inputs, CLV_INVALID_ARGUMENT, "input 'x' is given as f32[2], but declared as f32[3]");
  inputs[0] = (clv_tensor){.dtype = CLV_DTYPE_NONE};
  expect_error(graph, inputs, CLV_INVALID_ARGUMENT, "input 'x' is not given");
  inputs[0] = clv__tensor_make(CLV_I32, 1, DIMS(3), (void *)x);
  expect_error(graph, inputs, CLV_INVALID_ARGUMENT, "is given as i32[3]");
  clv__graph_destroy(graph);
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(3));
  test_graph_node(&g, "", "Mystery", "x", "y");
  graph = test_graph_end(&g, "y");
  inputs[0] = floats(1, DIMS(3), x);
  expect_error(graph, inputs, CLV_NOT_SUPPORTED, "node 'Mystery#0' (Mystery): operator Mystery (opset 21) is unknown");
  clv__graph_destroy(graph);
}

/* A caller may leave out an input that has an initializer: its default. The data of initializers and inputs need not be
 * aligned. */
static void defaults_and_alignment(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2));
  char *bytes = clv__arena_allocate_zero(clv__builder_arena(g.builder), 1, 16);
  const float weight[] = {10, 20}, x[] = {1, 2};
  memcpy(bytes + 1, weight, sizeof weight);
  clv_tensor type = floats(1, DIMS(2), (const float *)(const void *)(bytes + 1));
  clv__builder_type(g.builder, test_graph_value(&g, "w"), &type);
  body_input(&g, "w");
  test_graph_node(&g, "", "Add", "x,w", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_tensor inputs[] = {floats(1, DIMS(2), x), {.dtype = CLV_DTYPE_NONE}}, output;
  evaluate(graph, inputs, &output);
  expect_floats(&output, "f32[2]", 2, (const float[]){11, 22});
  free_outputs(&output, 1);
  inputs[1] = floats(1, DIMS(2), x);
  evaluate(graph, inputs, &output);
  expect_floats(&output, "f32[2]", 2, (const float[]){2, 4});
  free_outputs(&output, 1);
  clv__graph_destroy(graph);
}

/* ---- Bodies -------------------------------------------------------------------------------------------------------------- */

/* if c: y = x + x, z = x; else: y = (if d: -x else |x|), z = w. The inner bodies read x of the outermost graph, so the body
 * that contains them must capture x too. */
static clv_graph *nested_ifs(const clv_allocator *allocator) {
  test_graph g, yes, no, inner_yes, inner_no;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2));
  test_graph_input(&g, "w", CLV_F32, 1, DIMS(3));
  test_graph_input(&g, "c", CLV_BOOL, 0, NULL);
  test_graph_input(&g, "d", CLV_BOOL, 1, DIMS(1));
  test_graph_begin(&yes, allocator, 1);
  test_graph_node(&yes, "", "Add", "x,x", "sum");
  test_graph_begin(&no, allocator, 1);
  test_graph_begin(&inner_yes, allocator, 1);
  test_graph_node(&inner_yes, "", "Neg", "x", "n");
  test_graph_begin(&inner_no, allocator, 1);
  test_graph_node(&inner_no, "", "Abs", "x", "n");
  const clv_graph_view *inner_then = body_end(&inner_yes, &no, "n"), *inner_else = body_end(&inner_no, &no, "n");
  body_node(&no, "If", "d", "inner", "then_branch", inner_then, "else_branch", inner_else, 0);
  const clv_graph_view *then_body = body_end(&yes, &g, "sum,x"), *else_body = body_end(&no, &g, "inner,w");
  body_node(&g, "If", "c", "y,z", "then_branch", then_body, "else_branch", else_body, 0);
  return test_graph_end(&g, "y,z");
}

static void ifs(void **state) {
  (void)state;
  clv_graph *graph = nested_ifs(clv__allocator_default());
  const float x[] = {-1, 2}, w[] = {7, 8, 9};
  for (int round = 0; round < 4; ++round) {
    uint8_t c = round & 1, d = round >> 1;
    clv_tensor outputs[2], inputs[] = {floats(1, DIMS(2), x), floats(1, DIMS(3), w), clv__tensor_make(CLV_BOOL, 0, NULL, &c),
                                       clv__tensor_make(CLV_BOOL, 1, DIMS(1), &d)};
    evaluate(graph, inputs, outputs);
    expect_floats(&outputs[0], "f32[2]", 2, c ? (const float[]){-2, 4} : d ? (const float[]){1, -2} : (const float[]){1, 2});
    expect_floats(&outputs[1], c ? "f32[2]" : "f32[3]", c ? 2 : 3, c ? x : w);
    free_outputs(outputs, 2);
  }
  clv__graph_destroy(graph);
}

/* Each iteration does sum += step, appends the pair (old sum, new sum) to an output, and goes on while sum < limit. The body
 * reads `step` and `limit` of the outer graph. */
static clv_graph *summing_loop(const clv_allocator *allocator, const char *inputs) {
  test_graph g, body;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "trips", CLV_I64, 0, NULL);
  test_graph_input(&g, "go", CLV_BOOL, 0, NULL);
  test_graph_input(&g, "start", CLV_F32, 1, DIMS(1));
  test_graph_input(&g, "step", CLV_F32, 1, DIMS(1));
  test_graph_input(&g, "limit", CLV_F32, 1, DIMS(1));
  test_graph_begin(&body, allocator, 1);
  body_input(&body, "i");
  body_input(&body, "before");
  body_input(&body, "sum");
  test_graph_node(&body, "", "Add", "sum,step", "next");
  test_graph_node(&body, "", "Less", "next,limit", "less");
  test_graph_node_ints(&body, "", "Concat", "sum,next", "pair", "axis", false, 1, DIMS(0));
  body_node(&g, "Loop", inputs, "last,all", "body", body_end(&body, &g, "less,next,pair"), NULL, NULL, 0);
  return test_graph_end(&g, "last,all");
}

typedef struct sum_case {
  const char *inputs;
  int64_t trips;
  uint8_t go;
  float limit;
  int64_t iterations;
} sum_case;

static void loops(void **state) {
  (void)state;
  static const sum_case cases[] = {
      {"trips,-,start", 4, 0, 0, 4}, /* without a condition input, the body's condition is ignored */
      {"trips,-,start", 0, 0, 0, 0},   {"trips,-,start", -3, 0, 0, 0},
      {"-,go,start", 0, 1, 30, 3}, /* the sums are 11, 21, 31: the body's condition ends the loop */
      {"-,go,start", 0, 0, 30, 0},     {"trips,go,start", 2, 1, 30, 2},
      {"trips,go,start", 9, 1, 30, 3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    sum_case s = cases[i];
    clv_graph *graph = summing_loop(clv__allocator_default(), s.inputs);
    const float start = 1, step = 10;
    clv_tensor outputs[2], inputs[] = {clv__tensor_make(CLV_I64, 0, NULL, &s.trips), clv__tensor_make(CLV_BOOL, 0, NULL, &s.go),
                                       floats(1, DIMS(1), &start), floats(1, DIMS(1), &step), floats(1, DIMS(1), &s.limit)};
    evaluate(graph, inputs, outputs);
    float last = start + (float)s.iterations * step, all[32];
    char type[32];
    for (int64_t k = 0; k < s.iterations; ++k) {
      all[2 * k] = start + (float)k * step;
      all[2 * k + 1] = all[2 * k] + step;
    }
    expect_floats(&outputs[0], "f32[1]", 1, &last);
    snprintf(type, sizeof type, "f32[%d,2]", (int)s.iterations);
    expect_floats(&outputs[1], type, 2 * (size_t)s.iterations, all);
    free_outputs(outputs, 2);
    clv__graph_destroy(graph);
  }
  clv_graph *graph = summing_loop(clv__allocator_default(), "-,-,start");
  const float one = 1;
  int64_t trips = 1;
  uint8_t go = 1;
  clv_tensor inputs[] = {clv__tensor_make(CLV_I64, 0, NULL, &trips), clv__tensor_make(CLV_BOOL, 0, NULL, &go),
                         floats(1, DIMS(1), &one), floats(1, DIMS(1), &one), floats(1, DIMS(1), &one)};
  expect_error(graph, inputs, CLV_INVALID_MODEL,
               "node 'Loop' (Loop): it has neither a trip count nor a condition, so it would never end");
  clv__graph_destroy(graph);
}

/* A Scan: running sums over the slices of x, forwards and backwards. */
static clv_graph *running_sum(const clv_allocator *allocator) {
  test_graph g, body;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "zero", CLV_F32, 1, DIMS(2));
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(-1, 2));
  test_graph_begin(&body, allocator, 1);
  body_input(&body, "sum");
  body_input(&body, "slice");
  test_graph_node(&body, "", "Add", "sum,slice", "next");
  test_graph_node(&body, "", "Identity", "next", "out");
  body_node(&g, "Scan", "zero,x", "total,sums", "body", body_end(&body, &g, "next,out"), NULL, NULL, 1);
  return test_graph_end(&g, "total,sums");
}

static void scans(void **state) {
  (void)state;
  clv_graph *graph = running_sum(clv__allocator_default());
  const float zero[] = {0, 0}, x[] = {1, 10, 2, 20, 3, 30};
  clv_tensor outputs[2], inputs[] = {floats(1, DIMS(2), zero), floats(2, DIMS(3, 2), x)};
  evaluate(graph, inputs, outputs);
  expect_floats(&outputs[0], "f32[2]", 2, (const float[]){6, 60});
  expect_floats(&outputs[1], "f32[3,2]", 6, (const float[]){1, 10, 3, 30, 6, 60});
  free_outputs(outputs, 2);
  inputs[1] = floats(2, DIMS(0, 2), x);
  evaluate(graph, inputs, outputs);
  expect_floats(&outputs[0], "f32[2]", 2, zero);
  expect_floats(&outputs[1], "f32[0,2]", 0, NULL);
  free_outputs(outputs, 2);
  clv__graph_destroy(graph);
}

/* The error of a failing body names the iteration, the node in the body and the node that has the body. */
static void errors_in_bodies(void **state) {
  (void)state;
  test_graph g, body;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2));
  test_graph_input(&g, "trips", CLV_I64, 0, NULL);
  test_graph_begin(&body, clv__allocator_default(), 1);
  body_input(&body, "i");
  body_input(&body, "go");
  test_graph_node(&body, "pick", "Gather", "x,i", "y");
  body_node(&g, "Loop", "trips,-", "ys", "body", body_end(&body, &g, "go,y"), NULL, NULL, 0);
  clv_graph *graph = test_graph_end(&g, "ys");
  const float x[] = {4, 5};
  int64_t trips = 2;
  clv_tensor output, inputs[] = {floats(1, DIMS(2), x), clv__tensor_make(CLV_I64, 0, NULL, &trips)};
  evaluate(graph, inputs, &output);
  expect_floats(&output, "f32[2]", 2, x);
  free_outputs(&output, 1);
  trips = 3;
  expect_error(graph, inputs, CLV_INVALID_ARGUMENT,
               "node 'Loop' (Loop): iteration 2: node 'pick' (Gather): index 2 is out of range");
  clv__graph_destroy(graph);
}

static void allocation_failures(void **state) {
  (void)state;
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graphs[] = {nested_ifs(&counting.allocator), summing_loop(&counting.allocator, "trips,go,start"),
                         running_sum(&counting.allocator)};
  const float x[] = {1, 10, 2, 20, 3, 30}, limit = 1000;
  int64_t trips = 3;
  uint8_t truth = 1, lie = 0;
  clv_tensor two = floats(1, DIMS(2), x), three = floats(1, DIMS(3), x), one = floats(1, DIMS(1), x);
  clv_tensor yes = clv__tensor_make(CLV_BOOL, 0, NULL, &truth), no = clv__tensor_make(CLV_BOOL, 0, NULL, &lie);
  clv_tensor inputs[3][5] = {{two, three, no, clv__tensor_make(CLV_BOOL, 1, DIMS(1), &truth)},
                             {clv__tensor_make(CLV_I64, 0, NULL, &trips), yes, one, one, floats(1, DIMS(1), &limit)},
                             {two, floats(2, DIMS(3, 2), x)}};
  for (int s = 0; s < 3; ++s) {
    size_t live = counting.live;
    for (size_t k = 1;; ++k) {
      clv_error error = {0};
      clv_tensor outputs[2];
      counting.fail_at = counting.calls + k;
      clv_status status = clv__graph_evaluate(graphs[s], inputs[s], NULL, outputs, NULL, NULL, &counting.allocator, &error);
      bool reached = counting.calls >= counting.fail_at;
      counting.fail_at = 0;
      if (!reached) {
        assert_ok(status, error);
        for (int i = 0; i < 2; ++i) clv__release(&counting.allocator, outputs[i].data);
      } else {
        assert_int_equal(status, CLV_OUT_OF_MEMORY);
      }
      assert_int_equal(counting.live, live);
      if (!reached) break;
    }
    clv__graph_destroy(graphs[s]);
  }
  assert_int_equal(counting.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(odd_outputs),
      cmocka_unit_test(first_output_left_out),
      cmocka_unit_test(empty_and_scalar),
      cmocka_unit_test(errors_name_the_node),
      cmocka_unit_test(defaults_and_alignment),
      cmocka_unit_test(ifs),
      cmocka_unit_test(loops),
      cmocka_unit_test(scans),
      cmocka_unit_test(errors_in_bodies),
      cmocka_unit_test(allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
