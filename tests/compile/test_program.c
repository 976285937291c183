/* Tests the lists and names for programs with a command line (cleave/program.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "machine.h"

static void test_lists(void **state) {
  (void)state;
  bool has_optimal = false, has_cache = false;
  uint32_t count = 0;
  for (const char *name; (name = clv_strategy_name(count)) != NULL; ++count) {
    has_optimal = has_optimal || strcmp(name, "optimal") == 0;
    assert_true(clv_strategy_summary(count)[0] != '\0');
  }
  assert_int_equal(count, strategy_count());
  assert_true(has_optimal);
  assert_null(clv_strategy_summary(count));
  assert_null(clv_strategy_name(UINT32_MAX));
  clv_variable_info info = {.struct_size = sizeof info};
  for (uint32_t i = 0; clv_variable(i, &info); ++i)
    has_cache = has_cache || (strcmp(info.name, "CLEAVE_CACHE_DIR") == 0 && info.help != NULL);
  assert_true(has_cache);
  assert_null(info.name);
}

static void test_devices(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 0, NULL);
  const char *reason = "old";
  assert_true(clv_context_knows_device(m.context, "npu"));
  assert_true(clv_context_knows_device(m.context, "cpu"));
  assert_false(clv_context_knows_device(m.context, "nothing"));
  assert_false(clv_context_knows_device(m.context, NULL));
  assert_string_equal(clv_devices_backend(m.devices, 0), "vnpu");
  assert_string_equal(clv_devices_backend(m.devices, 1), "cpu");
  assert_null(clv_devices_backend(m.devices, 2));
  assert_null(clv_devices_left_out(m.devices, 0, &reason));
  assert_null(reason);
  machine_close(&m);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void test_files(void **state) {
  (void)state;
  static const struct {
    const char *text;
    clv_file_kind kind;
  } files[] = {{"", CLV_FILE_MODEL},
               {"\x08\x07", CLV_FILE_MODEL},
               {"{\"graph_inputs\": []}", CLV_FILE_MODEL},
               {"{\"cleave_plan\": 1, \"graph_inputs\": []}", CLV_FILE_PLAN},
               {" {\"format\": \"cleave-profile\"}", CLV_FILE_PLAN}};
  char folder[] = "/tmp/cleave-kinds-XXXXXX", path[64], command[64];
  clv_error error = {0};
  clv_file_kind kind;
  const char *other = "old";
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/file", folder);
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    write_file(path, files[i].text);
    assert_ok(clv_file_recognise(path, &kind, NULL, &error), error);
    assert_int_equal(kind, files[i].kind);
  }
  assert_ok(clv_file_recognise(folder, &kind, &other, &error), error);
  assert_int_equal(kind, CLV_FILE_FOLDER);
  assert_null(other);
  snprintf(path, sizeof path, "%s/compiled.json", folder);
  write_file(path, "{}");
  assert_ok(clv_file_recognise(folder, &kind, &other, &error), error);
  assert_int_equal(kind, CLV_FILE_COMPILED);
  assert_int_equal(clv_file_recognise("/nowhere/file", &kind, &other, &error), CLV_NOT_FOUND);
  assert_ok(clv_file_check_writable(path, &error), error);
  snprintf(path, sizeof path, "%s/new", folder);
  assert_ok(clv_file_check_writable(path, &error), error);
  assert_int_not_equal(access(path, F_OK), 0); /* nothing is left behind */
  assert_ok(clv_file_check_writable("/dev/null", &error), error);
  assert_int_equal(clv_file_check_writable("/nowhere/file", &error), CLV_IO_ERROR);
  assert_int_equal(clv_file_check_writable(NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_file_recognise(NULL, &kind, &other, &error), CLV_INVALID_ARGUMENT);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void test_names(void **state) {
  (void)state;
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_graph_node_info node = {.struct_size = sizeof node};
  clv_graph_value_info value = {.struct_size = sizeof value};
  uint32_t constants = 0;
  assert_int_equal(clv_graph_node_count(graph), 7);
  assert_true(clv_graph_node(graph, 6, &node));
  assert_string_equal(node.name, "softmax");
  assert_string_equal(node.op, "Softmax");
  assert_string_equal(node.domain, "");
  assert_false(clv_graph_node(graph, 7, &node));
  assert_null(node.name);
  for (uint32_t i = 0; i < clv_graph_value_count(graph); ++i) {
    assert_true(clv_graph_value(graph, i, &value));
    constants += value.is_constant;
  }
  assert_true(constants > 0 && constants < clv_graph_value_count(graph));
  assert_false(clv_graph_value(graph, clv_graph_value_count(graph), &value));
  assert_null(value.name);
  clv_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_devices), cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
