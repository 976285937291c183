/* Tests the output for people: labels, tables, and plans as text. test_pictures.c tests pictures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "cleave/cleave.h"
#include "place/place.h"
#include "planned.h"
#include "report/explain.h"
#include "report/label.h"
#include "report/picture/dot.h"
#include "report/picture/fit.h"
#include "report/steps.h"
#include "report/table.h"
#include "report/trace.h"
#include "support.h"

static void assert_label(void (*append)(clv__text *, const char *), const char *name, const char *expected) {
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  append(&text, name);
  assert_string_equal(text.data, expected);
  clv__text_finish(&text);
}

static void test_sizes(void **state) {
  (void)state;
  char label[CLV__LABEL_BYTES];
  assert_string_equal(clv__label_size(0, label), "0 B");
  assert_string_equal(clv__label_size(1023, label), "1023 B");
  assert_string_equal(clv__label_size(1024, label), "1.0 KiB");
  assert_string_equal(clv__label_size(1048575, label), "1.0 MiB");
  assert_string_equal(clv__label_size(UINT64_MAX, label), "16384.0 PiB");
  assert_string_equal(clv__label_count(832, label), "832");
  assert_string_equal(clv__label_count(999999, label), "1.0 M");
  assert_string_equal(clv__label_count(4.1e9, label), "4.1 G");
  assert_string_equal(clv__label_gap(0, label), "0.0 %");
  assert_string_equal(clv__label_gap(0.0271, label), "2.7 %");
  assert_string_equal(clv__label_gap(2.81, label), "281 %");
  assert_string_equal(clv__label_gap(9, label), "×10");
  assert_string_equal(clv__label_gap(27.8, label), "×29");
  assert_string_equal(clv__label_gap(1e300, label), "×1e+300");
  assert_string_equal(clv__label_gap(-1, label), "–");
  assert_string_equal(clv__label_grouped(0, label), "0");
  assert_string_equal(clv__label_grouped(1234567, label), "1,234,567");
  assert_string_equal(clv__label_grouped(UINT64_MAX, label), "18,446,744,073,709,551,615");
}

static void append_short(clv__text *text, const char *name) {
  clv__label_short(text, name, 9);
}

/* Names from files cannot control a terminal, and cannot break a line, a table or a document. */
static void test_names(void **state) {
  (void)state;
  assert_label(clv__label_name, "layer4/conv.1", "layer4/conv.1");
  assert_label(clv__label_name, "a\nb\t\033[31m\x7f", "a\\nb\\t\\x1b[31m\\x7f");
  assert_label(clv__label_name, "\xff ok \xc3\xa9 \xe2\x80\xae", "\\xff ok \xc3\xa9 \\u202e");
  assert_label(clv__label_name, "\xc3", "\\xc3");
  assert_label(clv__label_name, "\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half of a surrogate pair */
  assert_label(clv__label_xml, "<a href=\"x\">&'\x01", "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\xef\xbf\xbd");
  assert_label(append_short, "123456789", "123456789");
  assert_label(append_short, "1234567890", "1234…7890");
  assert_label(append_short, "数数数数数数", "数数…数数");
  assert_int_equal(clv__label_columns("数é…"), 4);
  assert_int_equal(clv__label_columns("e\xcc\x81"), 1); /* a letter and a combining accent */
}

static void test_table(void **state) {
  (void)state;
  clv__table table;
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__table_init(&table, clv__allocator_default(), "lrl", true);
  static const char *const cells[] = {"name", "n", "x", "数", "10", "", "long name", "7", "y\n"};
  for (size_t i = 0; i < sizeof cells / sizeof *cells; ++i) clv__table_cell(&table, "%s", cells[i]);
  clv__table_write(&table, 1, false, &text);
  assert_string_equal(text.data,
                      " name        n  x\n"
                      " 数         10\n"
                      " long name   7  y\\n\n");
  clv__table_finish(&table);
  clv__text_finish(&text);
}

static void test_fit(void **state) {
  (void)state;
  static const char *const names[] = {"Conv",
                                      "WWWWWWWWWWWWWWWWWWWWWWWW",
                                      "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii",
                                      "Conv ×52, BatchNormalization ×52, Relu ×48, Add ×16",
                                      "日本語日本語日本語日本語日本語",
                                      ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    for (double width = -5; width < 300; width += 37) {
      clv__text text;
      clv__text_init(&text, clv__allocator_default());
      clv__fit_append(&text, names[i], 11.5, width);
      assert_false(text.failed);
      assert_true(text.size_bytes == 0 || clv__fit_width(text.data, 11.5) <= width);
      if (clv__fit_width(names[i], 11.5) <= width) assert_string_equal(text.data, names[i]);
      clv__text_finish(&text);
    }
  }
}

static void test_dot(void **state) {
  (void)state;
  planned p = make_plan(odd_graph(), true);
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__report_dot(p.plan, &text);
  assert_int_equal(count_of(text.data, "subgraph cluster_"), 2);
  assert_non_null(strstr(text.data, "a\\\\\\\"b")); /* a\"b, quoted */
  assert_non_null(strstr(
      text.data,
      "</text><script>\\\\n\\nRelu")); /* the newline in the name is escaped twice; the other one separates name and operator */
  clv__text_finish(&text);
  finish(&p);
}

static void test_steps(void **state) {
  (void)state;
  planned p = make_plan(test_random_graph(clv__allocator_default(), 3, 900), true);
  clv__text text;
  clv__plan_totals totals;
  clv__text_init(&text, clv__allocator_default());
  clv__plan_totals_get(p.plan, &totals);
  assert_int_equal(totals.inner_transfers + totals.own_transfers, p.plan->transfer_count);
  clv__report_steps(p.plan, false, &text);
  assert_true(count_of(text.data, "\n") < 60);
  assert_int_equal(count_of(text.data, "more steps"), 1);
  clv__text_finish(&text);
  clv__report_steps(p.plan, true, &text);
  assert_int_equal(count_of(text.data, "Step "), totals.steps);
  clv__text_finish(&text);
  assert_int_equal(clv__report_explain(p.plan, NULL, &text), p.graph->node_count);
  clv__text_finish(&text);
  finish(&p);
}

/* Times in a trace count from the earliest event, which need not be the first in the list. */
static void test_trace(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  const clv__trace_event events[] = {{.kind = CLV__TRACE_WAIT, .step = CLV__NO_ID, .begin_ns = 9000, .end_ns = 9500},
                                     {.kind = CLV__TRACE_RUN, .step = CLV__NO_ID, .begin_ns = 4000, .end_ns = 10000},
                                     {.kind = CLV__TRACE_STEP, .step = 0, .begin_ns = 5250, .end_ns = 8000}};
  clv__trace_operator inside[] = {{.label = "Conv", .implementation = "jit", .node = "c", .time_ns = 1000},
                                  {.label = "Relu", .implementation = "", .node = "r", .time_ns = 500},
                                  {.label = "elsewhere", .implementation = "", .node = "", .time_ns = 700}};
  const uint32_t at = p.plan->steps[0].index;
  inside[0].partition = inside[1].partition = at;
  inside[2].partition = at + 1;
  const clv__trace_operators operators = {.items = inside, .count = 3};
  clv__text text;
  assert_false(p.plan->steps[0].is_transfer);
  assert_true(p.plan->partition_count > at + 1);
  clv__text_init(&text, clv__allocator_default());
  clv__report_trace(p.plan, events, sizeof events / sizeof *events, &operators, &text);
  assert_int_equal(count_of(text.data, "\"ts\":5.000,\"dur\":0.500"), 1);
  assert_int_equal(count_of(text.data, "\"ts\":0.000,\"dur\":6.000"), 1);
  assert_int_equal(count_of(text.data, "\"ts\":1.250,\"dur\":2.750"), 1);
  assert_int_equal(count_of(text.data, "\"ts\":1.250,\"dur\":1.000,\"cat\":\"operator\",\"name\":\"Conv\""), 1);
  assert_int_equal(count_of(text.data, "\"ts\":2.250,\"dur\":0.500,\"cat\":\"operator\",\"name\":\"Relu\""), 1);
  assert_int_equal(count_of(text.data, "\"ts\":"), 5);
  clv__text_finish(&text);
  finish(&p);
}

/* A text that cannot grow is marked as failed, and all memory is released. */
static void test_out_of_memory(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  check_out_of_memory(&p, clv__report_dot);
  check_out_of_memory(&p, clv__report_totals);
  finish(&p);
}

/* Returns whether the documentation has the cause in backquotes. The number of a weight after "1.wgt" is ignored. */
static bool is_documented(const char *page, const char *cause) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "`%.*s`", strncmp(cause, "1.wgt", 5) == 0 ? 5 : (int)strlen(cause), cause);
  return strstr(page, quoted) != NULL;
}

/* For every cause that a strategy gives, clv__cause_meaning() has a text, and docs/placement.md has a description. */
static void test_causes(void **state) {
  (void)state;
  clv__file_map page;
  clv_error opened = {0};
  assert_ok(clv__file_map_open(CLEAVE_SOURCE_DIR "/docs/placement.md", &page, &opened), opened);
  char *text = strndup((const char *)page.data, page.size_bytes);
  assert_non_null(text);
  clv__file_map_close(&page);
  for (uint32_t at = 0; clv__strategies[at] != NULL; ++at) {
    const clv__strategy *strategy = clv__strategies[at];
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      planned p = {.graph = test_random_graph(clv__allocator_default(), seed, 80)};
      clv_error error = {0};
      clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
      devices.list = seed % 2 == 0 ? "npu,cpu" : "cpu,npu";
      assert_ok(clv_context_create(NULL, &p.context, &error), error);
      assert_ok(clv_devices_open(p.context, &devices, &p.devices, &error), error);
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      clv_assignment pin = {p.graph->nodes[seed].name, "cpu"};
      options.strategy = strategy->name;
      options.pins = &pin;
      options.pin_count = seed < 4;
      assert_ok(clv_plan_make(p.graph, p.devices, &options, &p.plan, &error), error);
      for (clv_node_id n = 0; n < p.graph->node_count; ++n) {
        const char *cause = p.plan->placement.causes[n];
        if (clv__cause_meaning(cause) == NULL)
          fail_msg("%s: clv__cause_meaning() does not know the cause '%s'", strategy->name, cause);
        if (!is_documented(text, cause)) fail_msg("%s: docs/placement.md has no cause '%s'", strategy->name, cause);
      }
      finish(&p);
    }
  }
  free(text);
  assert_non_null(clv__cause_meaning("1.wgt12"));
  assert_null(clv__cause_meaning("1.wgtx"));
  assert_null(clv__cause_meaning("firs"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),  cmocka_unit_test(test_names), cmocka_unit_test(test_table),
      cmocka_unit_test(test_fit),    cmocka_unit_test(test_dot),   cmocka_unit_test(test_steps),
      cmocka_unit_test(test_causes), cmocka_unit_test(test_trace), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
