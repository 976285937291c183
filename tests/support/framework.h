/* Shared by the tests of the frameworks' devices: the path of the library, machines whose devices are opened with an option,
 * and the tests that are the same for every framework. */
#ifndef CLEAVE_TESTS_FRAMEWORK_H
#define CLEAVE_TESTS_FRAMEWORK_H

#include <glob.h>

#include "machine.h"

static const char *library_folder; /* NULL: the library is not installed */

/* Sets library_folder: to the path in the environment variable `variable`, otherwise to the folder `wheel` in the site-packages
 * of the tests' Python environment. */
static inline void framework_find(const char *variable, const char *wheel) {
  static char found[4096];
  char pattern[256];
  glob_t matches = {0};
  const char *said = getenv(variable);
  snprintf(pattern, sizeof pattern, "%s/.venv/lib/python3*/site-packages/%s", CLEAVE_SOURCE_DIR, wheel);
  if (said != NULL && said[0] != '\0') {
    library_folder = said;
  } else if (glob(pattern, 0, NULL, &matches) == 0) {
    snprintf(found, sizeof found, "%s", matches.gl_pathv[0]);
    library_folder = found;
  }
  globfree(&matches);
}

static inline bool framework_skipped(const char *name, const char *variable) {
  if (library_folder == NULL)
    print_message("skipped: %s is not installed: run 'tools/setup test', or set %s to the folder of its library\n", name,
                  variable);
  return library_folder == NULL;
}

static inline clv_status open_devices(clv_context *context, const char *list, const char *option, clv_devices **devices,
                                      clv_error *error) {
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = list;
  options.device_options = &option;
  options.device_option_count = option != NULL;
  options.thread_count = 1;
  return clv_devices_open(context, &options, devices, error);
}

static inline void open_machine_with_cache(machine *m, const char *list, const char *option, const char *cache) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  context.cache_directory = cache;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  assert_ok(open_devices(m->context, list, option, &m->devices, &error), error);
}

static inline void open_machine(machine *m, const char *list, const char *option) {
  open_machine_with_cache(m, list, option, "");
}

static inline void check_graph(machine *m, clv_graph *graph, const clv_tensor *inputs, const char *what) {
  clv_plan *plan = machine_plan(m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  for (int i = 0; i < 3; ++i) machine_check_run(session, plan, inputs, what);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
}

/* Checks an output whose size depends on the input's values, in synchronous and asynchronous runs. */
static inline void check_sized_by_data(const char *device) {
  char async[64];
  snprintf(async, sizeof async, "%s:async=yes", device);
  for (int i = 0; i < 2; ++i) {
    machine m;
    test_graph g;
    float x[8] = {0, 1, 0, 0, -2, 3, 0, 4};
    open_machine(&m, device, i == 1 ? async : NULL);
    test_graph_begin(&g, &m.counting.allocator, 1);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(2, 4));
    test_graph_node(&g, "relu", "Relu", "x", "y");
    test_graph_node(&g, "places", "NonZero", "y", "p");
    clv_graph *graph = test_graph_end(&g, "y,p");
    clv_tensor input = f32(2, DIMS(2, 4), x);
    clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session *session = machine_session(plan);
    for (int k = 0; k < 8; ++k) {
      x[k] = k % 3 == 0 ? 0 : 1;
      machine_check_run(session, plan, &input, "places");
    }
    memset(x, 0, sizeof x);
    machine_check_run(session, plan, &input, "no nonzero elements");
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* Checks one session whose sizes change from run to run, including size 0. */
static inline void check_open_sizes(const char *devices) {
  machine m;
  test_graph g;
  static float x[64 * 4];
  for (int i = 0; i < 256; ++i) x[i] = (float)(i % 17) - 8;
  open_machine(&m, devices, NULL);
  test_graph_begin(&g, &m.counting.allocator, 1);
  int64_t n = test_graph_symbol(&g, "N");
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(n, 4));
  test_graph_weight(&g, "w", 2, DIMS(4, 4));
  test_graph_node(&g, "product", "MatMul", "x,w", "a");
  test_graph_node(&g, "relu", "Relu", "a", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  static const int64_t sizes[] = {3, 64, 1, 3, 0, 17, 64};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    clv_tensor input = f32(2, DIMS(sizes[i], 4), x);
    machine_check_run(session, plan, &input, "an open size");
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Checks options of a device: each of `good` must be accepted and give a working session; each of `bad` must be rejected with
 * an error that names the device. */
static inline void check_options(const char *device, const char *const *good, size_t good_count, const char *const *bad,
                                 size_t bad_count) {
  char text[128];
  for (size_t i = 0; i < good_count; ++i) {
    machine m;
    snprintf(text, sizeof text, "%s:%s", device, good[i]);
    open_machine(&m, device, text);
    clv_graph *graph = test_seven_nodes(&m.counting.allocator);
    clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session_destroy(machine_session(plan));
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  for (size_t i = 0; i < bad_count; ++i) {
    machine m;
    clv_error error = {0};
    clv_devices *devices = NULL;
    open_machine(&m, "cpu", NULL);
    snprintf(text, sizeof text, "%s:%s", device, bad[i]);
    assert_int_equal(open_devices(m.context, device, text, &devices, &error), CLV_INVALID_ARGUMENT);
    assert_null(devices);
    assert_non_null(strstr(error.message, device));
    machine_close(&m);
  }
}

/* Checks that the library at the path `said`, given by the environment variable `variable`, is rejected with the message
 * `expected`. Call it before this process has loaded a library of the framework, because a loaded library is kept. */
static inline void check_wrong_library(const char *device, const char *variable, const char *said, const char *expected) {
  machine m;
  clv_error error = {0};
  clv_devices *devices = NULL;
  setenv(variable, said, 1);
  open_machine(&m, "cpu", NULL);
  assert_int_equal(open_devices(m.context, device, NULL, &devices, &error), CLV_NOT_SUPPORTED);
  assert_null(devices);
  if (strstr(error.message, expected) == NULL) fail_msg("the error message '%s' does not contain '%s'", error.message, expected);
  assert_null(strchr(error.message, '\n'));
  machine_close(&m);
}

#endif
