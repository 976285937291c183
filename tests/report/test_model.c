/* Tests the page of `cleave inspect --html`: statistics of weights, the layout of graphs, the page's data and document. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "../analysis/bodies.h"
#include "planned.h"
#include "report/label.h"
#include "report/model/data.h"
#include "report/model/layout.h"
#include "report/model/page.h"
#include "report/model/statistics.h"
#include "report/picture/layers.h"

/* ---- Statistics ---- */

static clv__statistics statistics_of(clv_dtype dtype, size_t count, const void *data) {
  clv_graph graph = {.allocator = clv__allocator_default()};
  clv_tensor tensor = clv__tensor_make(dtype, 1, (const int64_t[]){(int64_t)count}, (void *)(uintptr_t)data);
  clv__statistics s;
  clv_error error = {0};
  assert_ok(clv__statistics_find(&graph, &tensor, &s, &error), error);
  assert_int_equal(s.count, count);
  return s;
}

static void check_statistics(const clv__statistics *s, double least, double largest, double mean, double deviation) {
  assert_true(s->least == least && s->largest == largest);
  assert_true(fabs(s->mean - mean) <= 1e-9 * (1 + fabs(mean)));
  assert_true(fabs(s->deviation - deviation) <= 1e-9 * (1 + deviation));
}

static void test_statistics(void **state) {
  (void)state;
  clv__statistics s = statistics_of(CLV_F32, 7, (const float[]){1, NAN, 0, -3, INFINITY, 4, -0.0f});
  check_statistics(&s, -3, 4, 0.4, sqrt((1 + 9 + 16) / 5.0 - 0.16));
  assert_true(s.zeros == 2 && s.nans == 1 && s.infinities == 1);
  s = statistics_of(CLV_F32, 2, (const float[]){NAN, -INFINITY});
  check_statistics(&s, 0, 0, 0, 0);
  s = statistics_of(CLV_F32, 0, NULL);
  check_statistics(&s, 0, 0, 0, 0);
  s = statistics_of(CLV_I64, 3, (const int64_t[]){-5, 0, 8});
  check_statistics(&s, -5, 8, 1, sqrt((25 + 64) / 3.0 - 1));
  s = statistics_of(CLV_BOOL, 4, (const bool[]){true, false, true, true});
  check_statistics(&s, 0, 1, 0.75, sqrt(0.1875));
  s = statistics_of(CLV_BF16, 2, (const uint16_t[]){clv__f32_to_bf16(2), clv__f32_to_bf16(-2)});
  check_statistics(&s, -2, 2, 0, 2);
  s = statistics_of(CLV_I4, 3, (const uint8_t[]){0x7f, 0x08}); /* -1, 7, -8 */
  check_statistics(&s, -8, 7, -2.0 / 3, sqrt(114 / 3.0 - 4.0 / 9));
  unsigned char bytes[9]; /* unaligned */
  memcpy(bytes + 1, (const float[]){6, 8}, 8);
  s = statistics_of(CLV_F32, 2, bytes + 1);
  check_statistics(&s, 6, 8, 7, 1);
}

/* The statistics of many elements are computed from those of small parts. The elements have a large mean and a small
 * deviation, for which a sum of squares would be too inexact. */
static void test_many_elements(void **state) {
  (void)state;
  enum { COUNT = 50001 };
  double *numbers = malloc(COUNT * sizeof *numbers), sum = 0, squares = 0;
  uint64_t seed = 3;
  for (size_t i = 0; i < COUNT; ++i) sum += numbers[i] = 1e6 + (double)(test_random(&seed) % 1000) / 1000;
  for (size_t i = 0; i < COUNT; ++i) squares += (numbers[i] - sum / COUNT) * (numbers[i] - sum / COUNT);
  clv__statistics s = statistics_of(CLV_F64, COUNT, numbers);
  assert_true(fabs(s.mean - sum / COUNT) < 1e-7);
  assert_true(fabs(s.deviation - sqrt(squares / COUNT)) < 1e-7);
  free(numbers);
}

/* ---- Layers ---- */

/* A node that depends on an input alone is drawn just above its reader, even if it could be computed long before. */
static void test_late_nodes(void **state) {
  (void)state;
  /* A chain of LENGTH nodes. Each of the last LATE also reads a value that two nodes compute from an input. */
  enum { LENGTH = 60, LATE = 5 };
  uint32_t from[400], to[400], edges = 0, nodes = 0, inputs[LATE], made[LATE];
  double widths[200];
  for (uint32_t i = 0; i < LATE; ++i) inputs[i] = nodes++;
  for (uint32_t i = 0; i < LATE; ++i) {
    from[edges] = inputs[i];
    to[edges++] = nodes;
    from[edges] = nodes;
    to[edges++] = nodes + 1;
    made[i] = nodes + 1;
    nodes += 2;
  }
  for (uint32_t i = 0; i < LENGTH; ++i, ++nodes) {
    if (i > 0) {
      from[edges] = nodes - 1;
      to[edges++] = nodes;
    }
    if (i >= LENGTH - LATE) {
      from[edges] = made[i - (LENGTH - LATE)];
      to[edges++] = nodes;
    }
  }
  for (uint32_t v = 0; v < nodes; ++v) widths[v] = 50;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv__layers_input input = {nodes, edges, widths, from, to, 14};
  clv__layers layers;
  assert_true(clv__layers_make(&input, &arena, &layers));
  assert_int_equal(layers.rank_count, LENGTH);
  for (uint32_t e = 0; e < edges; ++e) assert_int_equal(layers.ranks[to[e]], layers.ranks[from[e]] + 1);
  clv__arena_finish(&arena);
}

/* The main path of a network with skip connections is straight. */
static void test_skips(void **state) {
  (void)state;
  enum { BLOCKS = 40, DEPTH = 6 };
  uint32_t from[BLOCKS * (DEPTH + 2)], to[BLOCKS * (DEPTH + 2)], edges = 0, nodes = 1;
  double widths[BLOCKS * DEPTH + 1];
  for (uint32_t block = 0; block < BLOCKS; ++block) {
    from[edges] = nodes - 1;
    to[edges++] = nodes - 1 + DEPTH;
    for (uint32_t i = 0; i < DEPTH; ++i, ++nodes) {
      from[edges] = nodes - 1;
      to[edges++] = nodes;
    }
  }
  for (uint32_t v = 0; v < nodes; ++v) widths[v] = 60 + 40 * (v % 3);
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv__layers_input input = {nodes, edges, widths, from, to, 14};
  clv__layers layers;
  assert_true(clv__layers_make(&input, &arena, &layers));
  for (uint32_t v = 1; v < nodes; ++v) assert_true(fabs(layers.x[v] - layers.x[0]) < 5);
  clv__arena_finish(&arena);
}

/* ---- The layout ---- */

static void check_boxes(const clv__model_layout *l) {
  for (uint32_t b = 0; b < l->box_count; ++b) {
    const clv__model_box *box = &l->boxes[b];
    assert_true(box->x - box->width / 2 >= 0 && box->x + box->width / 2 <= l->width);
    assert_true(l->tops[box->rank] + box->height <= l->bottoms[box->rank] + 0.01 && l->bottoms[box->rank] <= l->height);
    for (uint32_t c = 0; c < b; ++c) {
      const clv__model_box *other = &l->boxes[c];
      if (other->rank == box->rank) assert_true(fabs(other->x - box->x) >= (other->width + box->width) / 2);
    }
  }
}

/* Checks that every value that a node reads is a wire from its producer, or a line in the box. */
static void check_operands(const planned *p, const clv__model_layout *l) {
  uint32_t lines = 0;
  for (uint32_t b = 0; b < l->box_count; ++b) {
    const clv__model_box *box = &l->boxes[b];
    const clv__node *node = &p->graph->nodes[box->kind == CLV__MODEL_NODE ? box->id : 0];
    uint32_t count = box->kind == CLV__MODEL_NODE ? node->input_count : box->kind == CLV__MODEL_OUTPUT ? 1 : 0;
    for (uint32_t i = 0; i < count; ++i) {
      clv_value_id value = box->kind == CLV__MODEL_NODE ? node->inputs[i] : box->id;
      bool found = false;
      for (uint32_t k = 0; k < box->line_count; ++k) found = found || l->lines[box->line_first + k].value == value;
      for (uint32_t w = 0; w < l->wire_count; ++w) {
        const clv__model_wire *wire = &l->wires[w];
        if (wire->to != b || l->ports[wire->port].value != value) continue;
        const clv__model_box *from = &l->boxes[wire->from];
        assert_true(wire->port >= from->port_first && wire->port < from->port_first + from->port_count);
        assert_true(from->kind == CLV__MODEL_NODE ? p->graph->values[value].producer == from->id : from->id == value);
        assert_int_equal(wire->bend_count, box->rank - from->rank - 1);
        assert_false(found);
        found = true;
      }
      assert_true(found);
    }
    lines += box->line_count;
  }
  assert_true(lines == l->line_count && l->wire_count > 0);
}

static void test_layout(void **state) {
  (void)state;
  for (uint32_t round = 0; round < 12; ++round) {
    clv_graph *graph = round == 0 ? test_seven_nodes(clv__allocator_default())
                                  : test_random_graph(clv__allocator_default(), round, 20 + 30 * round);
    planned p = make_plan(graph, false);
    clv__arena arena;
    clv__model_layout layout;
    clv__model_texts texts = {p.graph, p.graph, p.plan->shapes->types, 2};
    clv__arena_init(&arena, clv__allocator_default());
    assert_true(clv__model_lay_out(&texts, &arena, &layout));
    if (round == 0) assert_int_equal(layout.box_count, 9);
    check_boxes(&layout);
    check_operands(&p, &layout);
    clv__arena_finish(&arena);
    finish(&p);
  }
}

/* ---- The page ---- */

static clv__model model_of(const planned *p, double *flops) {
  for (clv_node_id n = 0; n < p->graph->node_count; ++n) flops[n] = n % 2 == 0 ? (double)n : -1;
  return (clv__model){.title = "<title>",
                      .graph = p->graph,
                      .shapes = p->plan->shapes,
                      .devices = p->devices,
                      .capability = &p->plan->capability,
                      .flops = flops,
                      .parameter_count = 5,
                      .parameter_bytes = 20,
                      .flops_complete = true};
}

static json_t *data_of(const planned *p) {
  double *flops = calloc(p->graph->node_count + 1, sizeof *flops);
  clv__model model = model_of(p, flops);
  clv_error error = {0};
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  assert_ok(clv__model_data(&model, &text, &error), error);
  assert_false(text.failed);
  assert_null(strchr(text.data, '<'));
  json_error_t wrong;
  json_t *root = json_loads(text.data, 0, &wrong);
  if (root == NULL) fail_msg("the embedded JSON is invalid in line %d: %s", wrong.line, wrong.text);
  clv__text_finish(&text);
  free(flops);
  return root;
}

static const json_t *at(const json_t *list, size_t index) {
  const json_t *found = json_array_get(list, index);
  assert_non_null(found);
  return found;
}
static const json_t *graph_of(const json_t *root, size_t index) {
  return at(json_object_get(root, "graphs"), index);
}
static const char *text_of(const json_t *root, const json_t *index) {
  return json_string_value(at(json_object_get(root, "texts"), (size_t)json_integer_value(index)));
}

/* The data has the operators, attributes, types, verdicts, and the statistics and first elements of weights. */
static void test_data(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), false);
  json_t *root = data_of(&p);
  const json_t *nodes = json_object_get(graph_of(root, 0), "nodes"), *values = json_object_get(graph_of(root, 0), "values");
  assert_int_equal(json_array_size(nodes), 7);
  const json_t *conv = at(nodes, 0), *pads = at(at(conv, 8), 0);
  assert_string_equal(json_string_value(at(conv, 0)), "conv");
  assert_string_equal(text_of(root, at(conv, 1)), "Conv");
  assert_string_equal(json_string_value(at(pads, 0)), "pads");
  assert_string_equal(json_string_value(at(pads, 1)), "[1, 1, 1, 1]");
  assert_string_equal(json_string_value(at(at(at(at(nodes, 6), 8), 0), 1)), "-1");
  assert_true(json_number_value(at(at(nodes, 1), 9)) == -1 && json_number_value(at(at(nodes, 2), 9)) == 2);
  assert_int_equal(json_array_size(at(conv, 10)), 2);
  for (uint32_t d = 0; d < 2; ++d) assert_int_equal(json_integer_value(at(at(conv, 10), d)), 0);
  for (clv_value_id v = 0; v < p.graph->value_count; ++v) {
    const clv_tensor *type = &p.plan->shapes->types[v];
    const json_t *value = at(values, v), *s = at(value, 4);
    assert_string_equal(json_string_value(at(value, 0)), p.graph->values[v].name);
    assert_int_equal(json_is_array(s), type->data != NULL);
    if (type->data == NULL) continue;
    size_t count;
    assert_true(clv__tensor_count(type, &count));
    assert_int_equal(json_integer_value(at(s, 0)), count);
    assert_int_equal(json_array_size(at(s, 9)), count < 16 ? count : 16);
    for (size_t i = 0; i < json_array_size(at(s, 9)); ++i) {
      assert_true(fabs(atof(json_string_value(at(at(s, 9), i))) - clv__tensor_get(type, i)) < 1e-5);
    }
    assert_true(json_number_value(at(s, 5)) <= json_number_value(at(s, 7)) &&
                json_number_value(at(s, 7)) <= json_number_value(at(s, 6)));
  }
  json_decref(root);
  finish(&p);
}

/* A device's reason reaches the page, whatever characters it contains. */
static void test_reasons(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), false);
  p.plan->capability.reasons[1] = "no kernel </script> for 'x'";
  json_t *root = data_of(&p);
  const json_t *verdicts = at(at(json_object_get(graph_of(root, 0), "nodes"), 0), 10);
  assert_string_equal(text_of(root, at(verdicts, 0)), "");
  assert_string_equal(text_of(root, at(verdicts, 1)), "no kernel </script> for 'x'");
  json_decref(root);
  finish(&p);
}

/* The bodies of nodes are graphs of their own. */
static void test_bodies(void **state) {
  (void)state;
  test_graph g, then, otherwise;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "which", CLV_BOOL, 0, NULL);
  test_graph_input(&g, "x", CLV_F32, 1, (const int64_t[]){3});
  test_graph_begin(&then, clv__allocator_default(), 1);
  test_graph_node(&then, "neg", "Neg", "x", "a");
  test_graph_node(&then, "abs", "Abs", "a", "b");
  test_graph_begin(&otherwise, clv__allocator_default(), 1);
  test_graph_node(&otherwise, "relu", "Relu", "x", "c");
  const clv_graph_view *first = body_end(&then, &g, "b"), *second = body_end(&otherwise, &g, "c");
  body_node(&g, "If", "which", "y", "then_branch", first, "else_branch", second, 0);
  planned p = make_plan(test_graph_end(&g, "y"), false);
  json_t *root = data_of(&p);
  assert_int_equal(json_array_size(json_object_get(root, "graphs")), 3);
  const json_t *attributes = at(at(json_object_get(graph_of(root, 0), "nodes"), 0), 8);
  for (size_t i = 0; i < 2; ++i) {
    const json_t *body = graph_of(root, (size_t)json_integer_value(at(at(attributes, i), 2)));
    assert_string_equal(json_string_value(at(at(attributes, i), 1)), i == 0 ? "graph of 2 nodes" : "graph of 1 node");
    assert_int_equal(json_array_size(json_object_get(body, "nodes")), i == 0 ? 2 : 1);
    assert_int_equal(json_integer_value(json_object_get(body, "parent")), 0);
    assert_int_equal(json_integer_value(json_object_get(body, "node")), 0);
    assert_int_equal(json_array_size(json_object_get(body, "boxes")), i == 0 ? 4 : 3); /* the captured x, nodes, output */
    const json_t *captured = at(json_object_get(body, "values"), 0);
    assert_string_equal(json_string_value(at(captured, 0)), "x");
    assert_string_equal(text_of(root, at(captured, 1)), "f32[3]");
  }
  json_decref(root);
  finish(&p);
}

static void report_page(const clv_plan *plan, clv__text *text) {
  planned p = {.devices = (clv_devices *)(uintptr_t)plan->devices,
               .graph = (clv_graph *)(uintptr_t)plan->graph,
               .plan = (clv_plan *)(uintptr_t)plan};
  double flops[64];
  assert_true(plan->graph->node_count <= 64);
  clv__model model = model_of(&p, flops);
  clv_error error = {0};
  clv_status status = clv__report_model(&model, text, &error);
  assert_int_equal(status != CLV_OK, text->failed);
}

/* No name can end the HTML element that contains it, and the page loads nothing from elsewhere. */
static void test_page(void **state) {
  (void)state;
  planned p = make_plan(odd_graph(), true);
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  report_page(p.plan, &text);
  assert_false(text.failed);
  assert_int_equal(count_of(text.data, "<script"), 2);
  assert_int_equal(count_of(text.data, "</script>"), 2);
  assert_int_equal(count_of(text.data, "</html>"), 1);
  assert_non_null(strstr(text.data, "<h1>&lt;title&gt;</h1>"));
  assert_null(strstr(text.data, "<link"));
  assert_null(strstr(text.data, "src="));
  assert_int_equal(count_of(text.data, "http"),
                   count_of(text.data, "http://www.w3.org/2000/svg") + count_of(text.data, "http-equiv"));
  clv__text_finish(&text);
  finish(&p);
}

static void test_out_of_memory(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  check_out_of_memory(&p, report_page);
  finish(&p);
}

/* Strings of tensors are quoted, and escaped like names. Numbers are exact. */
static void test_elements(void **state) {
  (void)state;
  const clv_string strings[] = {{"a\n<b>\x1b", 7}, {"zero\0end", 8}, {NULL, 0}};
  const uint64_t large = UINT64_MAX;
  clv_tensor tensor = clv__tensor_make(CLV_STRING, 1, (const int64_t[]){3}, (void *)(uintptr_t)strings);
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  for (size_t i = 0; i < 3; ++i) clv__label_element(&text, &tensor, i);
  tensor = clv__tensor_make(CLV_U64, 0, NULL, (void *)(uintptr_t)&large);
  clv__label_element(&text, &tensor, 0);
  assert_string_equal(text.data, "\"a\\n<b>\\x1b\"\"zero\"\"\"18446744073709551615");
  clv__text_finish(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_statistics), cmocka_unit_test(test_many_elements), cmocka_unit_test(test_late_nodes),
      cmocka_unit_test(test_skips),      cmocka_unit_test(test_layout),        cmocka_unit_test(test_data),
      cmocka_unit_test(test_reasons),    cmocka_unit_test(test_bodies),        cmocka_unit_test(test_page),
      cmocka_unit_test(test_elements),   cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
