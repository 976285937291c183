/* Makes plans for the tests of reports and pictures, and checks documents. */
#ifndef CLEAVE_TESTS_REPORT_PLANNED_H
#define CLEAVE_TESTS_REPORT_PLANNED_H

#include <stdio.h>
#include <string.h>

#include "cleave/cleave.h"
#include "models.h"
#include "plan/plan.h"
#include "support.h"

typedef struct planned {
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  clv_plan *plan;
} planned;

/* Makes a plan for the devices npu and cpu. With `alternate`, the nodes are on cpu and npu in turn. */
static inline planned make_plan(clv_graph *graph, bool alternate) {
  planned p = {.graph = graph};
  clv_error error = {0};
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  const char *spec = "all";
  devices.list = "npu,cpu";
  devices.npu_spec_count = 1;
  devices.npu_specs = &spec;
  assert_ok(clv_context_create(NULL, &p.context, &error), error);
  assert_ok(clv_devices_open(p.context, &devices, &p.devices, &error), error);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment *pins = clv__allocate(clv__allocator_default(), (graph->node_count + 1) * sizeof *pins);
  for (uint32_t n = 0; alternate && n < graph->node_count; ++n) {
    pins[options.pin_count++] = (clv_assignment){graph->nodes[n].name, n % 2 == 0 ? "cpu" : "npu"};
  }
  options.pins = pins;
  assert_ok(clv_plan_make(graph, p.devices, &options, &p.plan, &error), error);
  clv__release(clv__allocator_default(), pins);
  return p;
}

static inline void finish(planned *p) {
  clv_plan_destroy(p->plan);
  clv_graph_destroy(p->graph);
  clv_devices_close(p->devices);
  clv_context_destroy(p->context);
}

/* Checks that every element is closed, in the right order, and that the document is one element. This is not a full XML parser.
 */
static inline void assert_well_formed(const char *document) {
  char open[32][32];
  int depth = 0, roots = 0;
  for (const char *at = document; (at = strchr(at, '<')) != NULL;) {
    const char *end = strchr(at, '>');
    assert_non_null(end);
    assert_true(memchr(at + 1, '<', (size_t)(end - at - 1)) == NULL);
    char name[32] = "";
    bool closes = at[1] == '/';
    sscanf(at + 1 + closes, "%31[a-z]", name);
    if (closes) {
      assert_true(depth > 0);
      assert_string_equal(open[--depth], name);
    } else if (end[-1] != '/') {
      assert_true(depth < 32);
      roots += depth == 0;
      strcpy(open[depth++], name);
    }
    at = end;
  }
  assert_int_equal(depth, 0);
  assert_int_equal(roots, 1);
}

static inline size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  while ((text = strstr(text, part)) != NULL) {
    ++count;
    text += strlen(part);
  }
  return count;
}

static inline clv_graph *odd_graph(void) {
  test_graph graph;
  test_graph_begin(&graph, clv__allocator_default(), 1);
  test_graph_input(&graph, "<x> & \"y\"", CLV_F32, 2, (const int64_t[]){2, 3});
  test_graph_node(&graph, "</text><script>\n", "Relu", "<x> & \"y\"", "a\\\"b");
  test_graph_node(&graph, "&amp;", "Neg", "a\\\"b", "out]]>");
  return test_graph_end(&graph, "out]]>");
}

/* Makes every allocation of a report fail once. The text must then be marked as failed, and all memory must be released. */
static inline void check_out_of_memory(const planned *p, void (*report)(const clv_plan *plan, clv__text *text)) {
  bool failed = true;
  for (size_t at = 1; failed; ++at) {
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = at;
    clv__text text;
    clv__text_init(&text, &counting.allocator);
    report(p->plan, &text);
    failed = text.failed;
    assert_true(failed || counting.calls < at);
    clv__text_finish(&text);
    assert_int_equal(counting.live, 0);
  }
}

#endif
