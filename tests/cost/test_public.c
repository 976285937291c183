/* Tests the profiles of programs (cleave/profile.h): measuring, stopping, budgets, files and tables. Exact times are not checked,
 * because other programs may be running. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "machine.h"

typedef struct scene {
  machine m;
  clv_graph *graph;
  clv_profile *profile;
  clv_profile_graph given;
  clv_profile_options options;
} scene;

static void begin(scene *s) {
  clv_error error = {0};
  const char *const spec = "default";
  machine_open(&s->m, "npu,cpu", 1, &spec);
  s->graph = test_seven_nodes(&s->m.counting.allocator);
  s->given = (clv_profile_graph){s->graph, 0, NULL};
  s->options = (clv_profile_options)CLV_PROFILE_OPTIONS_INIT;
  s->options.runs = 1;
  assert_ok(clv_profile_create(s->m.context, &s->profile, &error), error);
}

static void finish(scene *s) {
  clv_profile_destroy(s->profile);
  clv_graph_destroy(s->graph);
  machine_close(&s->m);
}

static clv_profile_info info_of(const scene *s) {
  clv_profile_info info = {.struct_size = sizeof info};
  clv_profile_get_info(s->profile, s->m.devices, &info);
  return info;
}

static json_t *table_of(const scene *s, const clv_devices *devices) {
  char *text;
  clv_error error = {0};
  assert_ok(clv_profile_text(s->profile, devices, false, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL);
  assert_non_null(root);
  clv_text_free(text);
  return root;
}

typedef struct seen {
  pthread_t caller;
  uint32_t questions, stops_after, news;
} seen;

static bool go_on(void *user_data) {
  seen *at = user_data;
  assert_true(pthread_equal(at->caller, pthread_self()));
  return at->questions++ < at->stops_after;
}

static void progress(void *user_data, const char *model, const char *device, const char *what, uint32_t done, uint32_t total) {
  seen *at = user_data;
  assert_true(pthread_equal(at->caller, pthread_self()));
  assert_true(strcmp(device, "npu") == 0 || strcmp(device, "cpu") == 0);
  assert_true(what[0] != '\0' && model != NULL && (total == 0 || done <= total));
  ++at->news;
}

static void test_measure(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  begin(&s);
  seen at = {.caller = pthread_self(), .stops_after = UINT32_MAX};
  s.options.go_on = go_on;
  s.options.progress = progress;
  s.options.user_data = &at;
  assert_ok(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), error);
  assert_true(at.questions >= 4); /* at least once per device and part */
  clv_profile_info info = info_of(&s);
  assert_false(info.is_partial);
  assert_int_equal(info.device_count, 2);
  assert_true(info.block_count >= 16 && info.shaky_count <= info.block_count);
  json_t *root = table_of(&s, s.m.devices), *list = json_object_get(root, "devices");
  assert_int_equal(json_array_size(list), 2);
  for (size_t d = 0; d < 2; ++d) {
    const json_t *device = json_array_get(list, d);
    assert_string_equal(json_string_value(json_object_get(device, "name")), d == 0 ? "npu" : "cpu");
    assert_int_equal(json_integer_value(json_object_get(device, "nodes_measured")), 7);
    assert_int_equal(json_integer_value(json_object_get(device, "signatures")), 6);
    assert_true(json_number_value(json_object_get(device, "launch_us")) > 0);
  }
  json_decref(root);

  /* What is there is not expected again. */
  clv_profile_expectation expected = {.struct_size = sizeof expected};
  s.options.continues = true;
  assert_ok(clv_profile_expect(s.profile, s.m.devices, &s.given, 1, &s.options, &expected, &error), error);
  assert_int_equal(expected.node_count, 0);
  s.options.continues = false;
  assert_ok(clv_profile_expect(s.profile, s.m.devices, &s.given, 1, &s.options, &expected, &error), error);
  assert_int_equal(expected.node_count, 12);
  assert_true(expected.seconds > 0);
  finish(&s);
}

/* go_on() stops the measurements. The profile stays valid, and measuring goes on later. */
static void test_stop(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  begin(&s);
  for (uint32_t k = 0; k < 3; ++k) {
    seen at = {.caller = pthread_self(), .stops_after = k};
    s.options.go_on = go_on;
    s.options.user_data = &at;
    assert_int_equal(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), CLV_CANCELLED);
    assert_true(info_of(&s).is_partial);
    json_decref(table_of(&s, s.m.devices));
  }
  s.options.go_on = NULL;
  s.options.continues = true;
  assert_ok(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), error);
  assert_false(info_of(&s).is_partial);
  assert_true(info_of(&s).block_count >= 16);
  finish(&s);
}

/* A budget that is too short is no error. The flag stays until the devices are measured again. */
static void test_budget(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  begin(&s);
  s.options.budget_seconds = 1e-9;
  s.options.parts = CLV_PROFILE_DEVICES;
  assert_ok(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), error);
  assert_true(info_of(&s).is_partial);
  assert_int_equal(info_of(&s).block_count, 0);
  s.options.budget_seconds = 0;
  s.options.parts = CLV_PROFILE_NODES;
  assert_ok(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), error);
  assert_true(info_of(&s).is_partial);
  assert_true(info_of(&s).block_count > 0);
  s.options.parts = CLV_PROFILE_DEVICES;
  assert_ok(clv_profile_measure(s.profile, s.m.devices, NULL, 0, &s.options, &error), error);
  assert_false(info_of(&s).is_partial);
  finish(&s);
}

/* A profile that was written and read, or merged into an empty one, is the same. */
static void test_files(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  char path[] = "/tmp/cleave-profile-XXXXXX", *first, *second;
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  begin(&s);
  clv_profile *read, *merged;
  assert_ok(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), error);
  assert_ok(clv_profile_write(s.profile, path, &error), error);
  assert_ok(clv_profile_json(s.profile, &first, &error), error);
  assert_ok(clv_profile_read(s.m.context, path, &read, &error), error);
  assert_ok(clv_profile_json(read, &second, &error), error);
  assert_string_equal(first, second);
  clv_text_free(second);
  assert_ok(clv_profile_create(s.m.context, &merged, &error), error);
  assert_ok(clv_profile_merge(merged, read, &error), error);
  assert_ok(clv_profile_merge(merged, merged, &error), error);
  clv_profile_info info = {.struct_size = sizeof info};
  clv_profile_get_info(merged, NULL, &info);
  assert_int_equal(info.block_count, info_of(&s).block_count);
  clv_profile_destroy(merged);
  assert_ok(clv_profile_create(s.m.context, &merged, &error), error);
  assert_ok(clv_profile_update(merged, path, &error), error); /* takes over what the file has */
  clv_profile_get_info(merged, NULL, &info);
  assert_int_equal(info.block_count, info_of(&s).block_count);

  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_plan *plan;
  options.profile = path;
  assert_ok(clv_plan_make(s.graph, s.m.devices, &options, &plan, &error), error);
  clv_plan_destroy(plan);

  json_t *root = table_of(&s, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "devices")), 2);
  json_decref(root);
  clv_text_free(first);
  assert_ok(clv_profile_text(read, s.m.devices, true, CLV_FORM_TEXT, &first, &error), error);
  assert_ok(clv_profile_text(read, s.m.devices, false, CLV_FORM_TERMINAL, &second, &error), error);
  assert_null(strstr(first, "'nodes'"));
  assert_non_null(strstr(second, "'nodes'"));
  assert_int_equal(strncmp(second, "\033[1m", 4), 0);
  clv_text_free(first);
  clv_text_free(second);
  clv_profile_destroy(read);
  clv_profile_destroy(merged);

  FILE *bad = fopen(path, "w");
  assert_non_null(bad);
  fputs("{\"format\": \"cleave-profile\", \"version\": 9}", bad);
  fclose(bad);
  assert_int_equal(clv_profile_read(s.m.context, path, &read, &error), CLV_INVALID_MODEL);
  assert_null(read);
  unlink(path);
  assert_int_equal(clv_profile_read(s.m.context, path, &read, &error), CLV_NOT_FOUND);
  assert_int_equal(clv_profile_write(s.profile, "/nowhere/costs.json", &error), CLV_IO_ERROR);
  finish(&s);
}

static void test_bad_arguments(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  char *text;
  clv_profile *profile;
  begin(&s);
  const clv_profile_options good = s.options;
  assert_int_equal(clv_profile_create(NULL, &profile, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_measure(NULL, s.m.devices, &s.given, 1, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_measure(s.profile, NULL, &s.given, 1, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_measure(s.profile, s.m.devices, NULL, 1, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_measure(s.profile, s.m.devices, &(clv_profile_graph){NULL, 0, NULL}, 1, NULL, &error),
                   CLV_INVALID_ARGUMENT);
  clv_size size = {.name = "nothing", .is_symbol = true, .rank = 1, .dims = {3}};
  const clv_profile_graph sized = {s.graph, 1, &size};
  assert_int_equal(clv_profile_measure(s.profile, s.m.devices, &sized, 1, &good, &error), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "nothing"));
  size.rank = CLV_MAX_RANK + 1;
  assert_int_equal(clv_profile_measure(s.profile, s.m.devices, &sized, 1, &good, &error), CLV_INVALID_ARGUMENT);
  s.options.parts = (clv_profile_parts)7;
  assert_int_equal(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), CLV_INVALID_ARGUMENT);
  s.options = good;
  s.options.budget_seconds = -1;
  assert_int_equal(clv_profile_measure(s.profile, s.m.devices, &s.given, 1, &s.options, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_text(s.profile, NULL, false, (clv_form)4, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_text(NULL, NULL, false, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_merge(s.profile, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_profile_expect(s.profile, s.m.devices, &s.given, 1, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  finish(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_measure), cmocka_unit_test(test_stop), cmocka_unit_test(test_budget),
                                     cmocka_unit_test(test_files), cmocka_unit_test(test_bad_arguments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
