/* Tests plugins: loading by path, by device name, and all at once; rejected plugins and their messages; unknown keys of
 * options; lists of devices, also "auto". The plugins are in tests/plugins. */
#include "../cache/folder.h"
#include "device/device.h"
#include "machine.h"

#include <pthread.h>

#define GOOD PLUGINS "/good"
#define BAD PLUGINS "/bad"

static clv_context *open_context(test_allocator *counting, const char *plugin_path) {
  clv_error error = {0};
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  clv_context *context;
  test_allocator_init(counting);
  options.allocator = &counting->allocator;
  options.cache_directory = "";
  options.plugin_path = plugin_path;
  assert_ok(clv_context_create(&options, &context, &error), error);
  return context;
}

static void close_context(clv_context *context, const test_allocator *counting) {
  clv_context_destroy(context);
  assert_int_equal(counting->live, 0);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fputs(text, file) >= 0, 1);
  assert_int_equal(fclose(file), 0);
}

static clv_devices *open_list(clv_context *context, const char *list, const char *option, clv_status status, const char *says) {
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv_error error = {0};
  clv_devices *devices;
  options.list = list;
  options.device_option_count = option != NULL;
  options.device_options = &option;
  clv_status came = clv_devices_open(context, &options, &devices, &error);
  if (came != status || (says != NULL && strstr(error.message, says) == NULL)) {
    fail_msg("devices %s, option '%s': status %s and '%s'; expected %s and a message with '%s'", list,
             option != NULL ? option : "", clv_status_name(came), error.message, clv_status_name(status),
             says != NULL ? says : "");
  }
  return devices;
}

/* Runs a model with Relu on the plugin's device and the other nodes on the CPU. */
static void run_on(clv_context *context, const char *list) {
  clv_error error = {0};
  machine m = {.context = context, .devices = open_list(context, list, NULL, CLV_OK, NULL)};
  clv_graph *graph = test_seven_nodes(clv__context_allocator(context));
  clv_plan *plan;
  char device[64];
  snprintf(device, sizeof device, "%.*s", (int)strcspn(list, ","), list);
  clv_assignment force = {"Relu", device};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.force_count = 1;
  options.forces = &force;
  assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
  clv_session *session = machine_session(plan);
  clv_tensor input = graph->values[graph->inputs[0]].type;
  float data[192];
  uint64_t seed = 9;
  for (int i = 0; i < 192; ++i) data[i] = test_random_float(&seed);
  input.data = data;
  machine_check_run(session, plan, &input, list);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(m.devices);
}

static void by_path(void **state) {
  (void)state;
  static const char *const names[] = {"right", "older", "newer", "lists"};
  test_allocator counting;
  clv_context *context = open_context(&counting, "");
  clv_error error = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    char path[512], list[64];
    snprintf(list, sizeof list, "%s,cpu", names[i]);
    open_list(context, list, NULL, CLV_NOT_FOUND, "unknown; the backends are");
    snprintf(path, sizeof path, GOOD "/cleave_%s.so", names[i]);
    assert_ok(clv_context_load_plugin(context, path, &error), error);
    assert_ok(clv_context_load_plugin(context, path, &error), error); /* loading it again has no effect */
    run_on(context, list);
  }
  close_context(context, &counting);
}

static void refused(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  char text[512], folder_path[512], open_to_all[512], away[512];
  snprintf(text, sizeof text, "%s/cleave_text.so", f.path);
  snprintf(open_to_all, sizeof open_to_all, "%s/cleave_open.so", f.path);
  snprintf(folder_path, sizeof folder_path, "%s", f.path);
  snprintf(away, sizeof away, "%s/cleave_away.so", f.path);
  write_file(text, "this is no library");
  write_file(open_to_all, "nor is this");
  assert_int_equal(chmod(open_to_all, 0666), 0);
  const struct {
    const char *path;
    clv_status status;
    const char *says;
  } cases[] = {
      {"cleave_right.so", CLV_INVALID_ARGUMENT, "plugins in the current directory need a path: write ./cleave_right.so"},
      {"", CLV_INVALID_ARGUMENT, "need a path"},
      {away, CLV_NOT_FOUND, "No such file"},
      {folder_path, CLV_INVALID_ARGUMENT, "not a file"},
      {open_to_all, CLV_INVALID_ARGUMENT, "any user can write to it"},
      {text, CLV_NOT_SUPPORTED, "it cannot be loaded: "},
      {BAD "/cleave_unresolved.so", CLV_NOT_SUPPORTED, "nobody_has_this_function"},
      {BAD "/cleave_no_symbol.so", CLV_NOT_SUPPORTED, "it has no symbol 'clv_backend_query'"},
      {BAD "/cleave_other_abi.so", CLV_NOT_SUPPORTED, "backend has plugin ABI version 4, but this library has 3"},
      {BAD "/cleave_too_short.so", CLV_NOT_SUPPORTED, "at least"},
      {BAD "/cleave_lacks_slot.so", CLV_INVALID_ARGUMENT, "lacks the slot 'compile'"},
      {BAD "/cleave_fails.so", CLV_DEVICE_ERROR, "the backend's query: driver 7 is asleep"},
      {BAD "/cleave_needs_newer.so", CLV_NOT_SUPPORTED, "needs a host with ABI version 3 and "},
      {BAD "/cleave_cpu.so", CLV_INVALID_ARGUMENT, "a backend named 'cpu' already exists"},
      {BAD "/cleave_auto.so", CLV_INVALID_ARGUMENT, "this name is reserved"},
  };
  test_allocator counting;
  clv_context *context = open_context(&counting, "");
  size_t before = counting.live;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_error error = {0};
    clv_status status = clv_context_load_plugin(context, cases[i].path, &error);
    bool names_it = strstr(error.message, cases[i].path) != NULL;
    if (status != cases[i].status || !names_it || strstr(error.message, cases[i].says) == NULL) {
      fail_msg("loading %s gives %s and '%s'; expected %s and a message with the path and '%s'", cases[i].path,
               clv_status_name(status), error.message, clv_status_name(cases[i].status), cases[i].says);
    }
    assert_int_equal(error.status, status);
    assert_int_equal(counting.live, before);
  }
  assert_int_equal(clv_context_load_plugin(context, NULL, NULL), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_context_load_plugin(NULL, text, NULL), CLV_INVALID_ARGUMENT);
  close_context(context, &counting);
  folder_remove(f.path);
}

/* If no backend has the name, a plugin is searched for in the plugin folders and nowhere else. */
static void by_name(void **state) {
  (void)state;
  test_allocator counting;
  clv_context *context = open_context(&counting, "/nowhere::" GOOD ":" BAD);
  run_on(context, "right,cpu");
  run_on(context, "older:0,cpu");
  run_on(context, "newer,right,cpu");
  run_on(context, "lists:fast,lists:slow,cpu");
  clv_devices *devices = open_list(context, "right1,right:2,right:GPU.3,right", NULL, CLV_OK, NULL);
  static const char *const numbers[] = {"number 1", "number 2", "number 0", "number 0"};
  for (uint32_t d = 0; d < 4; ++d) {
    clv_device_info info = {.struct_size = sizeof info};
    clv_devices_info(devices, d, &info);
    assert_non_null(strstr(info.description, numbers[d]));
  }
  clv_devices_close(devices);
  open_list(context, "fails,cpu", NULL, CLV_DEVICE_ERROR,
            "device 'fails': plugin " BAD "/cleave_fails.so: the backend's query: ");
  open_list(context, "file,cpu", NULL, CLV_INVALID_ARGUMENT, "its backend is named 'other'");
  open_list(context, "other,cpu", NULL, CLV_NOT_FOUND, "no plugin cleave_other.so");
  open_list(context, "../good/cleave_right", NULL, CLV_NOT_FOUND, "unknown; the backends are");
  open_list(context, "tpu:0", NULL, CLV_NOT_FOUND, "no plugin cleave_tpu.so");
  close_context(context, &counting);
  char *here = getcwd(NULL, 0); /* plugins in the current directory must not be found */
  assert_int_equal(chdir(GOOD), 0);
  static const char *const paths[] = {"", ".", "good:./good", ":"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) {
    context = open_context(&counting, paths[i]);
    open_list(context, "right", NULL, CLV_NOT_FOUND, "no plugin cleave_right.so");
    close_context(context, &counting);
  }
  assert_int_equal(chdir(here), 0);
  free(here);
}

static void from_the_environment(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context;
  assert_int_equal(setenv("CLEAVE_PLUGIN_PATH", "/nowhere:" GOOD, 1), 0);
  assert_ok(clv_context_create(NULL, &context, &error), error);
  assert_int_equal(unsetenv("CLEAVE_PLUGIN_PATH"), 0);
  clv_devices_close(open_list(context, "right,cpu", NULL, CLV_OK, NULL));
  clv_context_destroy(context);
  assert_ok(clv_context_create(NULL, &context, &error), error);
  open_list(context, "right,cpu", NULL, CLV_NOT_FOUND, "no plugin cleave_right.so");
  clv_context_destroy(context);
}

static void folders_that_anyone_may_write_to(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  char link[512];
  snprintf(link, sizeof link, "%s/cleave_right.so", f.path);
  assert_int_equal(symlink(GOOD "/cleave_right.so", link), 0);
  test_allocator counting;
  clv_context *context = open_context(&counting, f.path);
  clv_devices_close(open_list(context, "right", NULL, CLV_OK, NULL));
  close_context(context, &counting);
  assert_int_equal(chmod(f.path, 01777), 0);
  context = open_context(&counting, f.path);
  open_list(context, "right", NULL, CLV_NOT_FOUND, "there is no plugin");
  close_context(context, &counting);
  assert_int_equal(chmod(f.path, 0700), 0);
  folder_remove(f.path);
}

/* "auto" opens accelerators, then the device `cpu`, then other devices that compute on the CPU. It lists skipped backends and
 * plugins with reasons. */
static void all_there_are(void **state) {
  (void)state;
  test_allocator counting;
  clv_context *context = open_context(&counting, GOOD ":" BAD ":relative");
  clv_devices *devices = open_list(context, "auto", NULL, CLV_OK, NULL);
  uint32_t at[5] = {0};
  static const char *const names[] = {"lists:fast", "cpu", "lists:slow", "older", "right"};
  for (size_t i = 0; i < 5; ++i) {
    at[i] = clv__devices_find(devices, names[i]);
    if (at[i] == CLV__NO_ID) fail_msg("'%s' was not opened", names[i]);
    if (i < 3 && i > 0) assert_true(at[i] > at[i - 1]);
    if (i > 1) assert_true(at[i] > at[1]);
  }
  static const struct {
    const char *name, *says;
  } left_out[] = {{"vnpu", "request one by name"},       {"fails", "driver 7 is asleep"}, {"unresolved", "nobody_has"},
                  {"other_abi", "plugin ABI version 4"}, {"cpu", "named 'cpu' already"},  {"no_symbol", "not a plugin"},
                  {"needs_newer", "needs a host"},       {"too_short", "at least"},       {"lacks_slot", "compile"},
                  {"file", "is named 'other'"},          {"relative", "must start with"}, {"auto", "is reserved"}};
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; ++i) {
    bool is_told = false;
    for (uint32_t k = 0; k < devices->left_out_count; ++k) {
      is_told = is_told || (strcmp(devices->left_out[k].name, left_out[i].name) == 0 &&
                            strstr(devices->left_out[k].reason, left_out[i].says) != NULL);
    }
    if (!is_told) fail_msg("the reason why '%s' was skipped is missing", left_out[i].name);
  }
  clv_devices_close(devices);
  devices = open_list(context, "auto", NULL, CLV_OK, NULL); /* the second time, all plugins are already loaded */
  clv_devices_close(devices);
  /* "auto" skips a device that cannot be opened. But if there is an option for that device, opening fails. */
  open_list(context, "auto", "lists:fast:speed=none", CLV_NOT_SUPPORTED,
            "device 'lists:fast': open: speed=none is not supported");
  open_list(context, "auto", "lists:fast:sped=none", CLV_INVALID_ARGUMENT, "option 'sped' is unknown");
  close_context(context, &counting);
}

static void keys(void **state) {
  (void)state;
  static const struct {
    const char *list, *option, *says;
  } cases[] = {
      {"lists:slow", "lists:slow:colour=red",
       "device 'lists:slow': option 'colour' is unknown; the options of lists are: speed (high or none)"},
      {"cpu", "cpu:colour=red", "option 'colour' is unknown; the options of cpu are: profile (on or off); fuse"},
      {"npu", "npu:colour=red", "option 'colour' is unknown; the options of vnpu are: frequency (a number above 0)"},
      {"opencl", "opencl:colour=red", "option 'colour' is unknown; the options of opencl are: capture"},
      {"npu", "npu:frequency=0", "device option frequency=0: must be a number above 0"},
      {"cpu", "cpu:fuse=maybe", "option fuse=maybe: expected on or off"},
      {"cpu:cores=0", NULL, "device 'cpu:cores=0': open: 'cores=0' is not a device number; give options separately"},
      {"cpu:", NULL, "device 'cpu:': open: '' is not a device number"},
  };
  test_allocator counting;
  clv_context *context = open_context(&counting, GOOD);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    open_list(context, cases[i].list, cases[i].option, CLV_INVALID_ARGUMENT, cases[i].says);
  }
  clv_devices_close(open_list(context, "lists:slow", "lists:slow:speed=high", CLV_OK, NULL));
  clv_devices_close(open_list(context, "right", "right:anything=goes", CLV_OK,
                              NULL)); /* this backend has no list of options, so all are accepted */
  close_context(context, &counting);
}

static void *open_often(void *context) {
  for (int i = 0; i < 20; ++i) {
    clv_devices_close(open_list(context, i % 2 == 0 ? "right,newer,cpu" : "older,lists:fast", NULL, CLV_OK, NULL));
  }
  return NULL;
}

static void threads(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT; /* not the counting allocator, which is for one thread only */
  clv_context *context;
  options.plugin_path = GOOD;
  assert_ok(clv_context_create(&options, &context, &error), error);
  pthread_t others[3];
  for (int i = 0; i < 3; ++i) assert_int_equal(pthread_create(&others[i], NULL, open_often, context), 0);
  for (int i = 0; i < 3; ++i) assert_int_equal(pthread_join(others[i], NULL), 0);
  clv_context_destroy(context);
}

/* Each allocation fails in turn. Opening must then return CLV_OUT_OF_MEMORY, and nothing may leak. */
static void without_memory(void **state) {
  (void)state;
  for (size_t fail_at = 1;; ++fail_at) {
    test_allocator counting;
    clv_error error = {0};
    clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
    clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
    clv_context *context = NULL;
    clv_devices *devices = NULL;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    context_options.allocator = &counting.allocator;
    context_options.cache_directory = "";
    context_options.plugin_path = GOOD ":" BAD;
    options.list = "right,lists:fast,newer";
    clv_status status = clv_context_create(&context_options, &context, &error);
    if (status == CLV_OK) status = clv_devices_open(context, &options, &devices, &error);
    clv_devices_close(devices);
    clv_context_destroy(context);
    assert_int_equal(counting.live, 0);
    if (counting.calls < fail_at) {
      assert_ok(status, error);
      break;
    }
    if (status != CLV_OUT_OF_MEMORY)
      fail_msg("allocation %zu failed: status %s, expected CLV_OUT_OF_MEMORY: %s", fail_at, clv_status_name(status),
               error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_path),
      cmocka_unit_test(refused),
      cmocka_unit_test(by_name),
      cmocka_unit_test(from_the_environment),
      cmocka_unit_test(folders_that_anyone_may_write_to),
      cmocka_unit_test(all_there_are),
      cmocka_unit_test(keys),
      cmocka_unit_test(threads),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
