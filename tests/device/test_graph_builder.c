/* Tests graphs that a program makes in memory (clv_graph_builder). They must equal those of the library's own builder, also if
 * nodes have bodies (graphs inside of nodes). Every error is tested. */
#include "machine.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__})
#define NODE(...) (&(clv_builder_node){.struct_size = sizeof(clv_builder_node), __VA_ARGS__})

enum { GRAPHS = 60 };

/* ---- The same graph again ---- */

/* Adds a copy of `node`, a node of `graph`. */
static void repeat_node(clv_graph_builder *builder, const clv_graph *graph, const clv__node *node) {
  clv_error error = {0};
  const char *names[16];
  assert_true(node->input_count + node->output_count <= 16);
  for (uint32_t i = 0; i < node->input_count; ++i)
    names[i] = node->inputs[i] == CLV__NO_ID ? NULL : graph->values[node->inputs[i]].name;
  for (uint32_t i = 0; i < node->output_count; ++i) names[node->input_count + i] = graph->values[node->outputs[i]].name;
  assert_ok(clv_graph_builder_node(
                builder,
                NODE(.op = node->op, .domain = node->domain, .name = node->name, .inputs = names,
                     .input_count = node->input_count, .outputs = names + node->input_count, .output_count = node->output_count,
                     .attributes = node->attributes.items, .attribute_count = node->attributes.count),
                &error),
            error);
}

/* Makes a copy of the graph through the public interface. */
static clv_status repeat(clv_context *context, const clv_graph *graph, clv_ownership ownership, clv_graph **again,
                         clv_error *error) {
  clv_graph_builder *builder;
  *again = NULL;
  CLV__TRY(clv_graph_builder_create(context, graph->imports[0].version, &builder, error));
  /* In reverse order, so each node is added before the nodes whose outputs it reads. */
  for (uint32_t n = graph->node_count; n > 0; --n) repeat_node(builder, graph, &graph->nodes[n - 1]);
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    const char *symbols[CLV_MAX_RANK] = {0};
    for (int32_t d = 0; d < value->type.rank; ++d)
      if (value->type.dims[d] < -1) symbols[d] = graph->symbols[-2 - value->type.dims[d]];
    if (!value->is_input && value->type.data != NULL)
      assert_int_equal(clv_graph_builder_weight(builder, value->name, &value->type, ownership, error), CLV_OK);
    if (value->is_input) assert_int_equal(clv_graph_builder_input(builder, value->name, &value->type, symbols, error), CLV_OK);
  }
  for (uint32_t i = 0; i < graph->output_count; ++i)
    assert_int_equal(clv_graph_builder_output(builder, clv_graph_output_name(graph, i), NULL, error), CLV_OK);
  return clv_graph_builder_finish(builder, again, error);
}

static void graphs_are_made_again(void **state) {
  (void)state;
  for (uint32_t seed = 0; seed < test_some(GRAPHS); ++seed) {
    machine m;
    clv_error error = {0};
    clv_graph *again;
    machine_open(&m, "cpu", 0, NULL);
    clv_graph *graph = seed % 3 == 0   ? test_seven_nodes(&m.counting.allocator)
                       : seed % 3 == 1 ? test_random_graph(&m.counting.allocator, seed, 3 + seed % 30)
                                       : test_random_rows(&m.counting.allocator, seed, 3 + seed % 30, true);
    assert_ok(repeat(m.context, graph, seed % 2 == 0 ? CLV_COPY : CLV_BORROW, &again, &error), error);
    clv_plan *first = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_plan *second = machine_plan(&m, again, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    char *expected = json_of(first), *actual = json_of(second);
    if (again->node_count != graph->node_count || again->input_count != graph->input_count)
      fail_msg("seed %u: %u nodes and %u inputs, expected %u and %u", seed, again->node_count, again->input_count,
               graph->node_count, graph->input_count);
    assert_int_equal(strlen(actual), strlen(expected)); /* only the lengths, because the values may be in another order */
    for (uint32_t i = 0; i < again->output_count; ++i) {
      clv_tensor inferred = first->shapes->types[graph->outputs[i]];
      assert_int_equal(clv_graph_output_type(again, i)->dtype, inferred.dtype);
      assert_int_equal(clv_graph_output_type(again, i)->rank, inferred.rank);
    }
    if (seed % 3 == 1 && again->input_count <= 2) machine_check_random(second, "made again");
    clv__release(&m.counting.allocator, expected);
    clv__release(&m.counting.allocator, actual);
    clv_plan_destroy(first);
    clv_plan_destroy(second);
    clv_graph_destroy(again);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* ---- Bodies ---- */

static clv_status add(clv_graph_builder *builder, const char *op, const char *const *inputs, uint32_t count, const char *output,
                      const clv_attribute *attributes, uint32_t attribute_count, clv_error *error) {
  return clv_graph_builder_node(builder,
                                NODE(.op = op, .inputs = inputs, .input_count = count, .outputs = &output, .output_count = 1,
                                     .attributes = attributes, .attribute_count = attribute_count),
                                error);
}

/* Makes a body, whose nodes `fill` adds, and an attribute with this body. */
static clv_status add_body(clv_graph_builder *parent, clv_status (*fill)(clv_graph_builder *body, clv_error *error),
                           const char *name, clv_attribute *attribute, clv_error *error) {
  clv_graph_builder *body;
  *attribute = (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_GRAPH, .count = 1};
  CLV__TRY(clv_graph_builder_body(parent, &body, error));
  clv_status status = fill(body, error);
  if (status == CLV_OK) return clv_graph_builder_finish_body(body, &attribute->graph, error);
  clv_graph_builder_destroy(body);
  return status;
}

static const clv_tensor vector = {.dtype = CLV_F32, .rank = 1, .dims = {4}}, flag = {.dtype = CLV_BOOL},
                        number = {.dtype = CLV_I64};

static clv_status fill_then(clv_graph_builder *body, clv_error *error) {
  CLV__TRY(add(body, "Add", LIST("x", "one"), 2, "sum", NULL, 0, error));
  return clv_graph_builder_output(body, "sum", NULL, error);
}

static clv_status fill_loop(clv_graph_builder *body, clv_error *error) {
  CLV__TRY(clv_graph_builder_input(body, "i", &number, NULL, error));
  CLV__TRY(clv_graph_builder_input(body, "go", &flag, NULL, error));
  CLV__TRY(clv_graph_builder_input(body, "before", &vector, NULL, error));
  CLV__TRY(add(body, "Add", LIST("before", "x"), 2, "after", NULL, 0, error));
  CLV__TRY(add(body, "Identity", LIST("go"), 1, "still", NULL, 0, error));
  CLV__TRY(clv_graph_builder_output(body, "still", NULL, error));
  return clv_graph_builder_output(body, "after", NULL, error);
}

static clv_status fill_else(clv_graph_builder *body, clv_error *error) {
  clv_attribute loop;
  CLV__TRY(add_body(body, fill_loop, "body", &loop, error));
  CLV__TRY(add(body, "Loop", LIST("count", NULL, "start"), 3, "total", &loop, 1, error));
  return clv_graph_builder_output(body, "total", NULL, error);
}

/* y = positive ? x + one : x added `count` times, by a Loop inside the If. Both bodies read `x` of the graph. */
static clv_status fill_graph(clv_graph_builder *builder, clv_error *error) {
  float ones[4] = {1, 1, 1, 1}, zeros[4] = {0};
  clv_tensor one = vector, start = vector;
  clv_attribute branches[2];
  one.data = ones, start.data = zeros;
  CLV__TRY(clv_graph_builder_input(builder, "positive", &flag, NULL, error));
  CLV__TRY(clv_graph_builder_input(builder, "count", &number, NULL, error));
  CLV__TRY(clv_graph_builder_input(builder, "x", &vector, NULL, error));
  CLV__TRY(clv_graph_builder_weight(builder, "one", &one, CLV_COPY, error));
  CLV__TRY(clv_graph_builder_weight(builder, "start", &start, CLV_COPY, error));
  CLV__TRY(add_body(builder, fill_then, "then_branch", &branches[0], error));
  CLV__TRY(add_body(builder, fill_else, "else_branch", &branches[1], error));
  CLV__TRY(add(builder, "If", LIST("positive"), 1, "y", branches, 2, error));
  return clv_graph_builder_output(builder, "y", NULL, error);
}

/* y = a tensor of the given shape, all of whose elements are 2.5: the tensor of an attribute. */
static clv_status fill_constant(clv_graph_builder *builder, clv_error *error) {
  float value = 2.5f;
  const clv_tensor shape = {.dtype = CLV_I64, .rank = 1, .dims = {1}},
                   element = {.dtype = CLV_F32, .rank = 1, .dims = {1}, .data = &value};
  const clv_attribute attribute = {.name = "value", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = &element};
  CLV__TRY(clv_graph_builder_input(builder, "shape", &shape, NULL, error));
  CLV__TRY(add(builder, "ConstantOfShape", LIST("shape"), 1, "y", &attribute, 1, error));
  return clv_graph_builder_output(builder, "y", NULL, error);
}

static clv_status make(clv_context *context, clv_status (*fill)(clv_graph_builder *builder, clv_error *error), clv_graph **graph,
                       clv_error *error) {
  clv_graph_builder *builder;
  *graph = NULL;
  CLV__TRY(clv_graph_builder_create(context, 17, &builder, error));
  clv_status status = fill(builder, error);
  if (status == CLV_OK) return clv_graph_builder_finish(builder, graph, error);
  clv_graph_builder_destroy(builder);
  return status;
}

static void tensors_of_attributes_are_copied(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  clv_graph *graph;
  int64_t size = 3;
  clv_tensor shape = {.dtype = CLV_I64, .rank = 1, .dims = {1}, .data = &size}, y = {0};
  machine_open(&m, "cpu", 0, NULL);
  assert_ok(make(m.context, fill_constant, &graph, &error), error);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  assert_ok(clv_session_run(session, &shape, 1, &y, 1, &error), error);
  assert_int_equal(y.dims[0], 3);
  for (int i = 0; i < 3; ++i) assert_float_equal(((float *)y.data)[i], 2.5f, 0);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void bodies_read_outer_values(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  clv_graph *graph;
  float x[4] = {1, -2, 3.5f, 0};
  machine_open(&m, "cpu", 0, NULL);
  assert_ok(make(m.context, fill_graph, &graph, &error), error);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  for (int64_t count = 0; count < 6; ++count) {
    bool positive = count % 2 != 0;
    clv_tensor inputs[] = {flag, number, vector}, y = {0};
    inputs[0].data = &positive, inputs[1].data = &count, inputs[2].data = x;
    assert_ok(clv_session_run(session, inputs, 3, &y, 1, &error), error);
    for (int i = 0; i < 4; ++i) assert_float_equal(((float *)y.data)[i], positive ? x[i] + 1 : (float)count * x[i], 1e-6);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Each allocation fails once. No memory may leak, whatever was made before the failure. */
static void lack_of_memory(void **state) {
  (void)state;
  machine m;
  clv_status status = CLV_OUT_OF_MEMORY;
  machine_open(&m, "cpu", 0, NULL);
  const size_t before = m.counting.live;
  for (size_t at = 1; status != CLV_OK; ++at) {
    clv_error error = {0};
    clv_graph *graph;
    m.counting.calls = 0, m.counting.fail_at = at;
    status = make(m.context, fill_graph, &graph, &error);
    m.counting.fail_at = 0;
    assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY);
    clv_graph_destroy(graph);
    assert_int_equal(m.counting.live, before);
    assert_true(at < 10000);
  }
  machine_close(&m);
}

/* ---- Errors ---- */

static clv_status cycle(clv_graph_builder *b, clv_error *error) {
  CLV__TRY(add(b, "Neg", LIST("z"), 1, "y", NULL, 0, error));
  CLV__TRY(add(b, "Neg", LIST("y"), 1, "z", NULL, 0, error));
  return clv_graph_builder_output(b, "y", NULL, error);
}

static clv_status reads_nothing(clv_graph_builder *b, clv_error *error) {
  CLV__TRY(add(b, "Neg", LIST("nowhere"), 1, "y", NULL, 0, error));
  return clv_graph_builder_output(b, "y", NULL, error);
}

static clv_status two_makers(clv_graph_builder *b, clv_error *error) {
  CLV__TRY(clv_graph_builder_input(b, "x", &vector, NULL, error));
  CLV__TRY(add(b, "Neg", LIST("x"), 1, "y", NULL, 0, error));
  return add(b, "Abs", LIST("x"), 1, "y", NULL, 0, error);
}

static clv_status wrong_shapes(clv_graph_builder *b, clv_error *error) {
  const clv_tensor three = {.dtype = CLV_F32, .rank = 1, .dims = {3}};
  CLV__TRY(clv_graph_builder_input(b, "x", &vector, NULL, error));
  CLV__TRY(clv_graph_builder_input(b, "z", &three, NULL, error));
  CLV__TRY(add(b, "Add", LIST("x", "z"), 2, "y", NULL, 0, error));
  return clv_graph_builder_output(b, "y", NULL, error);
}

static clv_status unknown_domain(clv_graph_builder *b, clv_error *error) {
  CLV__TRY(clv_graph_builder_input(b, "x", &vector, NULL, error));
  CLV__TRY(clv_graph_builder_node(
      b, NODE(.op = "Op", .domain = "mine", .inputs = LIST("x"), .input_count = 1, .outputs = LIST("y"), .output_count = 1),
      error));
  return clv_graph_builder_output(b, "y", NULL, error);
}

static clv_status bad_name(clv_graph_builder *b, clv_error *error) {
  return clv_graph_builder_input(b, "x\xff", &vector, NULL, error);
}

static clv_status bad_rank(clv_graph_builder *b, clv_error *error) {
  const clv_tensor type = {.dtype = CLV_F32, .rank = CLV_MAX_RANK + 1};
  return clv_graph_builder_input(b, "x", &type, NULL, error);
}

static clv_status two_values(clv_graph_builder *b, clv_error *error) {
  float zeros[4] = {0};
  clv_tensor value = vector;
  value.data = zeros;
  CLV__TRY(clv_graph_builder_weight(b, "w", &value, CLV_COPY, error));
  return clv_graph_builder_weight(b, "w", &value, CLV_COPY, error);
}

static clv_status open_weight(clv_graph_builder *b, clv_error *error) {
  float zeros[4] = {0};
  const clv_tensor value = {.dtype = CLV_F32, .rank = 1, .dims = {-1}, .data = zeros};
  return clv_graph_builder_weight(b, "w", &value, CLV_COPY, error);
}

static clv_status no_size(clv_graph_builder *b, clv_error *error) {
  return clv_graph_builder_node(b, &(clv_builder_node){.op = "Neg"}, error);
}

/* Gives an If the same body twice, as both branches. */
static clv_status body_twice(clv_graph_builder *b, clv_error *error) {
  clv_attribute branches[2];
  CLV__TRY(clv_graph_builder_input(b, "x", &vector, NULL, error));
  CLV__TRY(clv_graph_builder_input(b, "one", &vector, NULL, error));
  CLV__TRY(add_body(b, fill_then, "then_branch", &branches[0], error));
  branches[1] = branches[0];
  return add(b, "If", LIST("x"), 1, "y", branches, 2, error);
}

static clv_status import_in_body(clv_graph_builder *b, clv_error *error) {
  return clv_graph_builder_import(b, "", 17, error);
}
static clv_status body_imports(clv_graph_builder *b, clv_error *error) {
  clv_attribute body;
  return add_body(b, import_in_body, "body", &body, error);
}

static void errors_name_their_place(void **state) {
  (void)state;
  static const struct wrong {
    clv_status (*fill)(clv_graph_builder *builder, clv_error *error);
    clv_status status;
    const char *text;
  } all[] = {{cycle, CLV_INVALID_MODEL, "has a cycle"},
             {reads_nothing, CLV_INVALID_MODEL, "reads 'nowhere'"},
             {two_makers, CLV_INVALID_MODEL, "output 'y' is already an output of another node"},
             {wrong_shapes, CLV_INVALID_MODEL, "(Add)"},
             {unknown_domain, CLV_INVALID_MODEL, "domain 'mine'"},
             {bad_name, CLV_INVALID_MODEL, "byte 1 is 0xff"},
             {bad_rank, CLV_INVALID_ARGUMENT, "rank 9"},
             {two_values, CLV_INVALID_MODEL, "'w' already has a value"},
             {open_weight, CLV_INVALID_ARGUMENT, "'w': a constant needs"},
             {no_size, CLV_INVALID_ARGUMENT, "struct_size"},
             {body_twice, CLV_INVALID_ARGUMENT, "that no other attribute has"},
             {body_imports, CLV_INVALID_ARGUMENT, "a body has the imports of its graph"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    machine m;
    clv_error error = {0};
    clv_graph *graph;
    machine_open(&m, "cpu", 0, NULL);
    clv_status status = make(m.context, all[i].fill, &graph, &error);
    if (status != all[i].status || strstr(error.message, all[i].text) == NULL)
      fail_msg("case %zu: status %d, '%s'; expected %d and '%s'", i, status, error.message, all[i].status, all[i].text);
    assert_null(graph);
    machine_close(&m);
  }
}

/* A call that finishes a builder as the wrong kind, or too early, fails, and the builder stays usable. */
static void ends_in_order(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  clv_graph_builder *builder, *body;
  clv_graph *graph;
  const clv_graph_view *view;
  machine_open(&m, "cpu", 0, NULL);
  assert_int_equal(clv_graph_builder_create(m.context, 1000, &builder, &error), CLV_NOT_SUPPORTED);
  assert_ok(clv_graph_builder_create(m.context, 17, &builder, &error), error);
  assert_ok(clv_graph_builder_body(builder, &body, &error), error);
  assert_int_equal(clv_graph_builder_finish(builder, &graph, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_graph_builder_finish(body, &graph, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_graph_builder_finish_body(builder, &view, &error), CLV_INVALID_ARGUMENT);
  assert_ok(fill_then(body, &error), error);
  assert_ok(clv_graph_builder_finish_body(body, &view, &error), error); /* a body that no node uses */
  assert_ok(fill_graph(builder, &error), error);
  assert_ok(clv_graph_builder_finish(builder, &graph, &error), error);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(graphs_are_made_again),    cmocka_unit_test(tensors_of_attributes_are_copied),
      cmocka_unit_test(bodies_read_outer_values), cmocka_unit_test(lack_of_memory),
      cmocka_unit_test(errors_name_their_place),  cmocka_unit_test(ends_in_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
