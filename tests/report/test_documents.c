/* Tests the documents and pictures that cleave/report.h gives to programs. */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "planned.h"

static const clv_form forms[] = {CLV_FORM_TEXT, CLV_FORM_JSON, CLV_FORM_TERMINAL};

static planned make(const char *strategy) {
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  if (strategy == NULL) return p;
  clv_error error;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = strategy;
  options.record_passes = true;
  clv_plan_destroy(p.plan);
  assert_ok(clv_plan_make(p.graph, p.devices, &options, &p.plan, &error), error);
  return p;
}

/* Parses a document and frees it. */
static json_t *parse(char *document) {
  json_error_t where;
  json_t *root = json_loads(document, JSON_REJECT_DUPLICATES, &where);
  if (root == NULL) fail_msg("line %d: %s: %s", where.line, where.text, document);
  clv_text_free(document);
  return root;
}

static json_int_t integer(const json_t *object, const char *key) {
  const json_t *number = json_object_get(object, key);
  assert_true(json_is_integer(number));
  return json_integer_value(number);
}

static void test_report(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), false);
  clv_error error = {0};
  char *all, *some, *none, *document;
  assert_ok(clv_plan_report(p.plan, CLV_STEPS_ALL, CLV_FORM_TEXT, &all, &error), error);
  assert_ok(clv_plan_report(p.plan, CLV_STEPS_SOME, CLV_FORM_TEXT, &some, &error), error);
  assert_ok(clv_plan_report(p.plan, CLV_STEPS_NONE, CLV_FORM_TEXT, &none, &error), error);
  assert_non_null(strstr(all, "Inputs of the graph\n"));
  assert_null(strstr(some, "Inputs of the graph"));
  assert_non_null(strstr(some, "Step 0: "));
  assert_null(strstr(none, "Step 0"));
  assert_non_null(strstr(none, "predicted "));
  assert_string_equal(some + strlen(some) - strlen(none), none);
  clv_text_free(all);
  clv_text_free(some);
  clv_text_free(none);

  assert_ok(clv_plan_report(p.plan, CLV_STEPS_NONE, CLV_FORM_JSON, &document, &error), error);
  json_t *root = parse(document), *totals = json_object_get(root, "totals");
  assert_int_equal(integer(root, "cleave_plan"), 1);
  assert_int_equal(json_array_size(json_object_get(root, "nodes")), p.graph->node_count);
  assert_int_equal(integer(totals, "partitions"), p.plan->partition_count - p.plan->hosted_count);
  assert_true(json_is_object(json_object_get(root, "timings_ms")));
  json_decref(root);

  document = (char *)"old";
  assert_int_equal(clv_plan_report(p.plan, (clv_steps_shown)9, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_null(document);
  assert_int_equal(clv_plan_report(p.plan, CLV_STEPS_ALL, (clv_form)9, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_report(NULL, CLV_STEPS_ALL, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_report(p.plan, CLV_STEPS_ALL, CLV_FORM_TEXT, NULL, &error), CLV_INVALID_ARGUMENT);
  finish(&p);
}

/* Both forms explain the same nodes, and the JSON has the device, the rule and every device's answer. */
static void test_explain(void **state) {
  (void)state;
  planned p = make(NULL);
  clv_error error = {0};
  char *document;
  assert_ok(clv_plan_explain(p.plan, "relu*", CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "\n    reads "), 2);
  clv_text_free(document);
  assert_ok(clv_plan_explain(p.plan, "relu*", CLV_FORM_JSON, &document, &error), error);
  json_t *list = parse(document);
  assert_int_equal(json_array_size(list), 2);
  for (size_t i = 0; i < 2; ++i) {
    json_t *node = json_array_get(list, i), *answers = json_object_get(node, "devices");
    clv_placed_node_info info = {.struct_size = sizeof info};
    uint32_t index = 0;
    do assert_true(clv_plan_node(p.plan, index++, &info));
    while (strcmp(info.name, json_string_value(json_object_get(node, "name"))) != 0);
    assert_string_equal(json_string_value(json_object_get(node, "op")), "Relu");
    assert_string_equal(json_string_value(json_object_get(node, "device")), clv_devices_name(p.devices, info.device));
    assert_string_equal(json_string_value(json_object_get(node, "cause")), info.cause);
    assert_int_equal(integer(node, "partition"), info.partition);
    assert_int_equal(json_array_size(json_object_get(node, "inputs")), 1);
    assert_int_equal(json_array_size(answers), 2);
    for (uint32_t d = 0; d < 2; ++d) {
      const json_t *answer = json_array_get(answers, d);
      int64_t move_ns;
      assert_string_equal(json_string_value(json_object_get(answer, "device")), clv_devices_name(p.devices, d));
      assert_true(json_is_real(json_object_get(answer, "predicted_ms")));
      if (d == info.device) continue;
      assert_true(clv_plan_move_ns(p.plan, index - 1, d, &move_ns));
      assert_true(json_real_value(json_object_get(answer, "move_ms")) == (double)move_ns / 1e6);
    }
  }
  json_decref(list);
  assert_ok(clv_plan_explain(p.plan, NULL, CLV_FORM_JSON, &document, &error), error);
  list = parse(document);
  assert_int_equal(json_array_size(list), p.graph->node_count);
  json_decref(list);
  for (size_t i = 0; i < 3; ++i) {
    assert_int_equal(clv_plan_explain(p.plan, "Reluu", forms[i], &document, &error), CLV_NOT_FOUND);
    assert_non_null(strstr(error.message, "'Reluu'"));
    assert_null(document);
  }
  finish(&p);
}

static void test_passes(void **state) {
  (void)state;
  planned p = make("propagate");
  clv_error error = {0};
  char *document;
  assert_ok(clv_plan_passes(p.plan, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "\nafter pass "), p.plan->pass_count);
  clv_text_free(document);
  assert_ok(clv_plan_passes(p.plan, CLV_FORM_JSON, &document, &error), error);
  json_t *list = parse(document);
  assert_int_equal(json_array_size(list), p.plan->pass_count);
  json_decref(list);
  finish(&p);
  p = make(NULL);
  assert_int_equal(clv_plan_passes(p.plan, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'contiguous'"));
  finish(&p);
}

static bool count_down(void *user_data) {
  uint32_t *left = user_data;
  if (*left == 0) return false;
  --*left;
  return true;
}

/* A comparison stops whenever go_on() says so, and is whole otherwise. */
static void test_compare(void **state) {
  (void)state;
  planned p = make("optimal");
  clv_error error = {0};
  clv_comparison *comparison;
  clv_compare_options options = CLV_COMPARE_OPTIONS_INIT;
  char *document;
  assert_ok(clv_plan_compare(p.plan, NULL, &comparison, &error), error);
  assert_ok(clv_comparison_text(comparison, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "this plan"), 1);
  assert_int_equal(count_of(document, "all on "), 2);
  clv_text_free(document);
  assert_ok(clv_comparison_text(comparison, CLV_FORM_JSON, &document, &error), error);
  json_t *list = parse(document);
  bool has_plan = false;
  for (size_t i = 0; i < json_array_size(list); ++i) {
    const json_t *row = json_array_get(list, i);
    const char *strategy = json_string_value(json_object_get(row, "strategy"));
    if (strategy == NULL || strcmp(strategy, "optimal") != 0) continue;
    has_plan = true;
    assert_true(json_real_value(json_object_get(row, "predicted_ms")) == (double)p.plan->predicted_ns / 1e6);
  }
  assert_true(has_plan);
  json_decref(list);
  assert_int_equal(clv_comparison_text(NULL, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  clv_comparison_destroy(comparison);
  clv_comparison_destroy(NULL);

  options.go_on = count_down;
  uint32_t most = 1000000, asked = most;
  options.go_on_user_data = &asked;
  assert_ok(clv_plan_compare(p.plan, &options, &comparison, &error), error);
  clv_comparison_destroy(comparison);
  const uint32_t questions = most - asked;
  assert_true(questions > 4);
  for (uint32_t k = 0; k < questions; ++k) {
    uint32_t left = k;
    options.go_on_user_data = &left;
    assert_int_equal(clv_plan_compare(p.plan, &options, &comparison, &error), CLV_CANCELLED);
    assert_null(comparison);
  }
  options.struct_size = 0;
  assert_int_equal(clv_plan_compare(p.plan, &options, &comparison, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_compare(NULL, NULL, &comparison, &error), CLV_INVALID_ARGUMENT);
  finish(&p);
}

static void test_what_if(void **state) {
  (void)state;
  planned p = make("optimal");
  clv_error error = {0};
  char *document;
  const clv_assignment supposes[] = {{"Softmax", "npu"}, {"Re*", "npu"}};
  assert_ok(clv_plan_what_if(p.plan, NULL, supposes, 2, CLV_FORM_JSON, &document, &error), error);
  json_t *list = parse(document);
  assert_int_equal(json_array_size(list), 3);
  assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "op")), "Softmax");
  assert_string_equal(json_string_value(json_object_get(json_array_get(list, 2), "op")), "all together");
  assert_true(json_is_null(json_object_get(json_array_get(list, 2), "device")));
  json_decref(list);
  assert_ok(clv_plan_what_if(p.plan, NULL, supposes, 1, CLV_FORM_TEXT, &document, &error), error);
  assert_non_null(strstr(document, "\nSoftmax@npu "));
  clv_text_free(document);
  assert_ok(clv_plan_what_if(p.plan, NULL, NULL, 0, CLV_FORM_TEXT, &document, &error), error);
  clv_text_free(document);
  const clv_assignment wrong[] = {{"Softmax", "gpu7"}, {NULL, "npu"}};
  assert_int_equal(clv_plan_what_if(p.plan, NULL, wrong, 1, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "gpu7"));
  assert_int_equal(clv_plan_what_if(p.plan, NULL, wrong + 1, 1, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_what_if(p.plan, NULL, NULL, 1, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  uint32_t left = 0;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.go_on = count_down;
  options.go_on_user_data = &left;
  assert_int_equal(clv_plan_what_if(p.plan, &options, supposes, 2, CLV_FORM_TEXT, &document, &error), CLV_CANCELLED);
  assert_null(document);
  finish(&p);
}

static bool append(void *user_data, const char *bytes, size_t size) {
  clv__text_append_bytes(user_data, bytes, size);
  return true;
}
static bool refuse(void *user_data, const char *bytes, size_t size) {
  (void)user_data;
  (void)bytes;
  (void)size;
  return false;
}

static void test_draw(void **state) {
  (void)state;
  static const char *const begins[] = {"<svg", "digraph", "<!doctype html>"};
  planned p = make(NULL), other = make(NULL);
  clv_error error = {0};
  clv_comparison *comparison;
  char path[] = "/tmp/cleave-picture-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (int k = 0; k < 3; ++k) {
    clv__text emitted;
    char written[32] = "";
    clv__text_init(&emitted, clv__allocator_default());
    assert_ok(clv_plan_draw(p.plan, (clv_picture)k, NULL, NULL, append, &emitted, &error), error);
    assert_ok(clv_plan_draw(p.plan, (clv_picture)k, NULL, path, NULL, NULL, &error), error);
    assert_int_equal(strncasecmp(emitted.data, begins[k], strlen(begins[k])), 0);
    FILE *read = fopen(path, "r");
    assert_non_null(read);
    assert_int_equal(fread(written, 1, sizeof written, read), sizeof written);
    assert_memory_equal(written, emitted.data, sizeof written);
    fseek(read, 0, SEEK_END);
    assert_int_equal(ftell(read), emitted.size_bytes);
    fclose(read);
    clv__text_finish(&emitted);
  }
  unlink(path);
  assert_ok(clv_plan_compare(p.plan, NULL, &comparison, &error), error);
  clv__text emitted;
  clv__text_init(&emitted, clv__allocator_default());
  assert_ok(clv_plan_draw(p.plan, CLV_PICTURE_PAGE, comparison, NULL, append, &emitted, &error), error);
  assert_int_equal(count_of(emitted.data, "<tr class=\"this\">"), 1);
  clv__text_finish(&emitted);
  assert_int_equal(clv_plan_draw(other.plan, CLV_PICTURE_PAGE, comparison, path, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  clv_comparison_destroy(comparison);
  assert_int_equal(clv_plan_draw(p.plan, CLV_PICTURE_SVG, NULL, NULL, refuse, NULL, &error), CLV_CANCELLED);
  assert_int_equal(clv_plan_draw(p.plan, CLV_PICTURE_SVG, NULL, NULL, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_draw(p.plan, CLV_PICTURE_SVG, NULL, path, append, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_draw(p.plan, (clv_picture)5, NULL, path, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_draw(NULL, CLV_PICTURE_SVG, NULL, path, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_draw(p.plan, CLV_PICTURE_SVG, NULL, "/nowhere/x.svg", NULL, NULL, &error), CLV_IO_ERROR);
  finish(&p);
  finish(&other);
}

static void test_devices(void **state) {
  (void)state;
  planned p = make(NULL);
  clv_error error = {0};
  char *document;
  assert_ok(clv_devices_report(p.devices, false, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(strncmp(document, "device", 6), 0);
  assert_non_null(strstr(document, "\nnpu "));
  assert_null(strstr(document, "supports these operators"));
  clv_text_free(document);
  assert_ok(clv_devices_report(p.devices, true, CLV_FORM_TERMINAL, &document, &error), error);
  assert_int_equal(count_of(document, " supports these operators"), 2);
  assert_int_equal(strncmp(document, "\033[1m", 4), 0);
  clv_text_free(document);
  assert_ok(clv_devices_report(p.devices, false, CLV_FORM_JSON, &document, &error), error);
  json_t *root = parse(document), *list = json_object_get(root, "devices");
  assert_int_equal(json_array_size(list), 2);
  for (size_t d = 0; d < 2; ++d) {
    const json_t *device = json_array_get(list, d), *operators = json_object_get(device, "operators");
    assert_string_equal(json_string_value(json_object_get(device, "name")), clv_devices_name(p.devices, (uint32_t)d));
    assert_int_equal(integer(device, "operator_count"), json_array_size(operators));
    bool has_conv = false;
    for (size_t i = 0; i < json_array_size(operators); ++i)
      has_conv = has_conv || strcmp(json_string_value(json_array_get(operators, i)), "Conv") == 0;
    assert_true(has_conv);
  }
  json_decref(root);
  assert_int_equal(clv_devices_report(NULL, false, CLV_FORM_JSON, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_devices_report(p.devices, false, (clv_form)-1, &document, &error), CLV_INVALID_ARGUMENT);
  finish(&p);
}

/* Nodes with open sizes count for devices with static shapes only. */
static void test_open_nodes(void **state) {
  (void)state;
  planned p = make_plan(test_random_rows(clv__allocator_default(), 3, 12, true), false);
  const clv_plan *plan = p.plan;
  uint32_t expected = 0;
  for (uint32_t n = 0; n < plan->graph->node_count; ++n)
    expected += plan->open != NULL && plan->open->is_open[n] && clv_plan_node_refusal(plan, n, 0) != NULL;
  assert_true(clv_plan_open_nodes(plan, 0) <= expected);
  assert_int_equal(clv_plan_open_nodes(plan, 1), 0);
  assert_int_equal(clv_plan_open_nodes(plan, 2), 0);
  finish(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_report),  cmocka_unit_test(test_explain),
                                     cmocka_unit_test(test_passes),  cmocka_unit_test(test_compare),
                                     cmocka_unit_test(test_what_if), cmocka_unit_test(test_draw),
                                     cmocka_unit_test(test_devices), cmocka_unit_test(test_open_nodes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
