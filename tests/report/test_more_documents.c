/* Tests the documents of inspections, caches, compiled folders and conformance reports. */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "planned.h"

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

static bool append(void *user_data, const char *bytes, size_t size) {
  clv__text_append_bytes(user_data, bytes, size);
  return true;
}

/* ---- Inspections ---- */

static void test_inspection(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), false);
  clv_error error = {0};
  clv_inspection *inspection;
  clv_inspection_options options = CLV_INSPECTION_OPTIONS_INIT;
  char *document;
  assert_ok(clv_graph_inspect(p.graph, p.devices, NULL, &inspection, &error), error);
  options.name = "seven";
  assert_ok(clv_inspection_text(inspection, &options, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(strncmp(document, "seven\n", 6), 0);
  assert_non_null(strstr(document, "\n7 nodes\n"));
  assert_int_equal(count_of(document, "\nRelu "), 1);
  clv_text_free(document);
  options.nodes = true;
  assert_ok(clv_inspection_text(inspection, &options, CLV_FORM_TERMINAL, &document, &error), error);
  assert_int_equal(strncmp(document, "\033[1mseven\033[0m\n", 14), 0);
  assert_int_equal(count_of(document, "relu2"), 1);
  clv_text_free(document);
  assert_ok(clv_inspection_text(inspection, &options, CLV_FORM_JSON, &document, &error), error);
  json_t *root = parse(document), *rows = json_object_get(root, "operators");
  json_int_t nodes = 0;
  for (size_t i = 0; i < json_array_size(rows); ++i) nodes += integer(json_array_get(rows, i), "nodes");
  assert_int_equal(nodes, 7);
  assert_int_equal(json_array_size(json_object_get(root, "nodes")), 7);
  assert_true(json_is_true(json_object_get(root, "flops_complete")));
  json_decref(root);
  clv__text page;
  clv__text_init(&page, clv__allocator_default());
  assert_ok(clv_inspection_draw(inspection, NULL, append, &page, &error), error);
  assert_int_equal(count_of(page.data, "</html>"), 1);
  clv__text_finish(&page);
  assert_int_equal(clv_inspection_draw(inspection, NULL, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_inspection_draw(inspection, "/nowhere/x.html", NULL, NULL, &error), CLV_IO_ERROR);
  assert_int_equal(clv_inspection_text(inspection, NULL, (clv_form)9, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_inspection_text(NULL, NULL, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  clv_inspection_destroy(inspection);
  clv_inspection_destroy(NULL);
  finish(&p);
}

static bool never(void *user_data) {
  (void)user_data;
  return false;
}

/* Sizes make the FLOPs of an open graph known. */
static void test_sizes(void **state) {
  (void)state;
  planned p = make_plan(test_random_rows(clv__allocator_default(), 3, 12, true), false);
  clv_error error = {0};
  clv_inspection *inspection;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_size size = {.name = clv_graph_symbol_name(p.graph, 0), .is_symbol = true, .rank = 1, .dims = {4}};
  char *document;
  for (uint32_t given = 0; given < 2; ++given) {
    options.size_count = given;
    options.sizes = &size;
    assert_ok(clv_graph_inspect(p.graph, p.devices, &options, &inspection, &error), error);
    assert_ok(clv_inspection_text(inspection, NULL, CLV_FORM_JSON, &document, &error), error);
    json_t *root = parse(document);
    assert_int_equal(json_is_true(json_object_get(root, "flops_complete")), given);
    json_decref(root);
    clv_inspection_destroy(inspection);
  }
  options.go_on = never;
  assert_int_equal(clv_graph_inspect(p.graph, p.devices, &options, &inspection, &error), CLV_CANCELLED);
  assert_null(inspection);
  options.go_on = NULL;
  size.name = "nothing";
  assert_int_equal(clv_graph_inspect(p.graph, p.devices, &options, &inspection, &error), CLV_NOT_FOUND);
  size.name = NULL;
  assert_int_equal(clv_graph_inspect(p.graph, p.devices, &options, &inspection, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_graph_inspect(NULL, p.devices, NULL, &inspection, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_graph_inspect(p.graph, NULL, NULL, &inspection, &error), CLV_INVALID_ARGUMENT);
  finish(&p);
}

/* ---- The cache ---- */

static json_t *list_of(clv_context *context, const char *directory) {
  clv_error error = {0};
  clv_cache_options options = CLV_CACHE_OPTIONS_INIT;
  char *document;
  options.directory = directory;
  assert_ok(clv_cache_list(context, &options, CLV_FORM_JSON, &document, &error), error);
  return parse(document);
}

/* Writes the executables of a plan to a new cache directory. */
static void fill_cache(const char *directory) {
  clv_error error = {0};
  clv_context *context;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options list = CLV_DEVICES_OPTIONS_INIT;
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  options.cache_directory = directory;
  list.list = "npu";
  assert_ok(clv_context_create(&options, &context, &error), error);
  assert_ok(clv_devices_open(context, &list, &devices, &error), error);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  assert_ok(clv_plan_make(graph, devices, NULL, &plan, &error), error);
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
}

static void test_cache(void **state) {
  (void)state;
  char directory[] = "/tmp/cleave-cache-XXXXXX", command[128], *document;
  assert_non_null(mkdtemp(directory));
  clv_error error = {0};
  clv_context *context;
  clv_context_options none = CLV_CONTEXT_OPTIONS_INIT;
  none.cache_directory = "";
  assert_ok(clv_context_create(&none, &context, &error), error);
  fill_cache(directory);
  json_t *root = list_of(context, directory), *entries = json_object_get(root, "entries");
  assert_int_equal(json_array_size(entries), 1);
  assert_string_equal(json_string_value(json_object_get(root, "directory")), directory);
  char path[256];
  snprintf(path, sizeof path, "%s/%s", directory, json_string_value(json_object_get(json_array_get(entries, 0), "file")));
  json_decref(root);

  clv_cache_options options = CLV_CACHE_OPTIONS_INIT;
  clv_cache_prune_options prune = CLV_CACHE_PRUNE_OPTIONS_INIT;
  uint64_t damaged = 7;
  options.directory = prune.directory = directory;
  assert_ok(clv_cache_verify(context, &options, &damaged, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(damaged, 0);
  assert_int_equal(strncmp(document, "1 executable intact, 0 damaged, in ", 35), 0);
  clv_text_free(document);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, -8, SEEK_END);
  fputs("damaged!", file);
  fclose(file);
  assert_ok(clv_cache_verify(context, &options, &damaged, CLV_FORM_JSON, &document, &error), error);
  assert_int_equal(damaged, 1);
  root = parse(document);
  assert_int_equal(json_array_size(json_object_get(root, "bad")), 1);
  json_decref(root);
  prune.age_limit_s = 3600;
  assert_ok(clv_cache_prune(context, &prune, CLV_FORM_JSON, &document, &error), error);
  root = parse(document);
  assert_int_equal(integer(root, "damaged"), 1);
  assert_int_equal(integer(root, "removed"), 1);
  assert_int_equal(integer(root, "kept"), 0);
  json_decref(root);

  fill_cache(directory);
  assert_ok(clv_cache_prune(context, &prune, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(strncmp(document, "0 files removed, 0 B; 1 left, ", 30), 0);
  clv_text_free(document);
  prune.limit_bytes = 1;
  assert_ok(clv_cache_prune(context, &prune, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(strncmp(document, "1 file removed, ", 16), 0);
  clv_text_free(document);
  fill_cache(directory);
  prune.limit_bytes = 0;
  prune.all = true;
  assert_ok(clv_cache_prune(context, &prune, CLV_FORM_TEXT, &document, &error), error);
  clv_text_free(document);
  assert_ok(clv_cache_list(context, &options, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(strncmp(document, "0 executables, 0 B, in ", 23), 0);
  clv_text_free(document);

  assert_int_equal(clv_cache_list(context, NULL, CLV_FORM_TEXT, &document, &error), CLV_NOT_SUPPORTED);
  assert_int_equal(clv_cache_prune(context, NULL, CLV_FORM_TEXT, &document, &error), CLV_NOT_SUPPORTED);
  assert_int_equal(clv_cache_list(NULL, &options, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_cache_verify(context, &options, NULL, (clv_form)9, &document, &error), CLV_INVALID_ARGUMENT);
  options.directory = "/etc/passwd";
  assert_int_equal(clv_cache_list(context, &options, CLV_FORM_TEXT, &document, &error), CLV_IO_ERROR);
  options.directory = "/nowhere/cache";
  assert_ok(clv_cache_list(context, &options, CLV_FORM_TEXT, &document, &error), error);
  assert_non_null(strstr(document, "(which does not exist)"));
  clv_text_free(document);
  clv_context_destroy(context);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
}

/* ---- Compiled folders ---- */

static void test_compiled(void **state) {
  (void)state;
  planned p = make_plan(test_seven_nodes(clv__allocator_default()), true);
  char directory[] = "/tmp/cleave-compiled-XXXXXX", command[128], *document;
  assert_non_null(mkdtemp(directory));
  clv_error error = {0};
  clv_compiled *compiled;
  assert_false(clv_compiled_recognise(directory));
  assert_ok(clv_compiled_check(directory, &error), error);
  assert_ok(clv_compiled_write(p.plan, NULL, directory, &error), error);
  assert_true(clv_compiled_recognise(directory));
  assert_ok(clv_compiled_check(directory, &error), error); /* a folder of this kind is replaced */
  assert_ok(clv_compiled_open(p.context, directory, &compiled, &error), error);
  assert_string_equal(clv_compiled_directory(compiled), directory);
  assert_ok(clv_compiled_text(compiled, false, CLV_FORM_JSON, &document, &error), error);
  json_t *root = parse(document), *list = json_object_get(root, "partitions");
  assert_int_equal(json_array_size(list), p.plan->partition_count);
  for (size_t i = 0; i < json_array_size(list); ++i) {
    const json_t *partition = json_array_get(list, i);
    const bool is_npu = strcmp(json_string_value(json_object_get(partition, "device")), "npu") == 0;
    assert_int_equal(json_array_size(json_object_get(partition, "executables")), is_npu);
    assert_int_equal(json_is_string(json_object_get(partition, "reason")), !is_npu);
  }
  json_decref(root);
  assert_ok(clv_compiled_text(compiled, true, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "\n"), 1);
  clv_text_free(document);
  assert_ok(clv_compiled_text(compiled, false, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "partition-"), p.plan->partition_count + 3); /* three have an executable, too */
  clv_text_free(document);
  assert_int_equal(clv_compiled_text(NULL, false, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_compiled_text(compiled, false, (clv_form)9, &document, &error), CLV_INVALID_ARGUMENT);
  clv_compiled_close(compiled);
  assert_int_equal(clv_compiled_check(NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_compiled_check("/tmp", &error), CLV_INVALID_ARGUMENT);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
  finish(&p);
}

/* ---- Conformance ---- */

static void test_check(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context;
  clv_check_report *report;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  clv_check_text_options shown = CLV_CHECK_TEXT_OPTIONS_INIT;
  const char *const section = "operators";
  char *document;
  options.sections = &section;
  options.section_count = 1;
  options.seed = 5;
  options.every = 400;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  assert_ok(clv_check_backend(context, "npu", NULL, &options, &report, &error), error);
  assert_ok(clv_check_report_text(report, NULL, CLV_FORM_JSON, &document, &error), error);
  json_t *root = parse(document);
  assert_int_equal(integer(root, "seed"), 5);
  assert_int_equal(integer(root, "passed"), report->passed);
  assert_int_equal(json_array_size(json_object_get(root, "sections")), 1);
  json_decref(root);
  assert_ok(clv_check_report_text(report, NULL, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "\noperators "), 1);
  assert_null(strstr(document, "SKIP"));
  clv_text_free(document);
  shown.skips = shown.brief = true;
  assert_ok(clv_check_report_text(report, &shown, CLV_FORM_TEXT, &document, &error), error);
  assert_int_equal(count_of(document, "SKIP operators: "), report->sections[0].skip_count);
  assert_true(report->sections[0].skip_count > 0);
  assert_int_equal(count_of(document, "\noperators "), 0);
  clv_text_free(document);
  assert_int_equal(clv_check_report_text(NULL, NULL, CLV_FORM_TEXT, &document, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_check_report_text(report, NULL, (clv_form)9, &document, &error), CLV_INVALID_ARGUMENT);
  clv_check_report_destroy(report);
  clv_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_inspection), cmocka_unit_test(test_sizes),
                                     cmocka_unit_test(test_cache), cmocka_unit_test(test_compiled), cmocka_unit_test(test_check)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
