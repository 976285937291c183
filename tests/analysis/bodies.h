/* Helpers for nodes with bodies (If, Loop, Scan) in test graphs. Begin a body with test_graph_begin() and end it with
 * body_end(). */
#ifndef CLEAVE_TESTS_BODIES_H
#define CLEAVE_TESTS_BODIES_H

#include <string.h>

#include "models.h"
#include "support.h"

/* Adds an input without a declared type to a body. */
static inline void body_input(test_graph *graph, const char *name) {
  clv_error error = {0};
  assert_ok(clv__builder_input(graph->builder, test_graph_value(graph, name), &error), error);
}

static inline uint32_t body_names(test_graph *graph, const char *list, clv_value_id ids[16]) {
  uint32_t count = 0;
  while (*list != '\0') {
    char name[64] = "";
    size_t length = strcspn(list, ",");
    memcpy(name, list, length);
    ids[count++] = strcmp(name, "-") == 0 ? CLV__NO_ID : test_graph_value(graph, name);
    list += length + (list[length] == ',');
  }
  return count;
}

static inline const clv_graph_view *body_end(test_graph *body, const test_graph *parent, const char *outputs) {
  clv_error error = {0};
  clv_value_id ids[16];
  const clv_graph_view *view;
  uint32_t count = body_names(body, outputs, ids);
  for (uint32_t i = 0; i < count; ++i) assert_ok(clv__builder_output(body->builder, ids[i], &error), error);
  assert_ok(clv__builder_finish_body(body->builder, parent->builder, &view, &error), error);
  return view;
}

/* Adds a node with one or two bodies. In the lists of inputs and outputs, "-" is an absent operand. If `scanned` is above 0, the
 * node gets it as its attribute num_scan_inputs. */
static inline void body_node(test_graph *graph, const char *op, const char *inputs, const char *outputs, const char *first_name,
                             const clv_graph_view *first, const char *second_name, const clv_graph_view *second,
                             int64_t scanned) {
  clv_error error = {0};
  clv_value_id in[16], out[16];
  clv_attribute attributes[3] = {{.name = first_name, .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = first}};
  uint32_t count = 1, in_count = body_names(graph, inputs, in), out_count = body_names(graph, outputs, out);
  if (second != NULL) {
    attributes[count++] = (clv_attribute){.name = second_name, .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = second};
  }
  if (scanned > 0) {
    const int64_t *ints = clv__arena_copy(clv__builder_arena(graph->builder), &scanned, sizeof scanned);
    assert_non_null(ints);
    attributes[count++] = (clv_attribute){.name = "num_scan_inputs", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = ints};
  }
  assert_ok(clv__builder_node(graph->builder, op, "", op, in, in_count, out, out_count, attributes, count, &error), error);
}

#endif
