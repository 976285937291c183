/* Tests opening devices by name, by description and by number. Also tests rejected lists of devices and their messages, options
 * structs of other versions, and invalid calls. */
#include "backends/cpu/cpu.h"
#include "machine.h"

#define NAMED(name) "{\"name\": \"" name "\", \"operators\": \"all\"}"

static clv_context *open_context(void) {
  clv_error error = {0};
  clv_context *context;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  return context;
}

static clv_status try_open(clv_context *context, const char *list, uint32_t count, const char *const *specs, const char *option,
                           clv_error *error) {
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = list;
  options.npu_spec_count = count;
  options.npu_specs = specs;
  options.device_option_count = option != NULL;
  options.device_options = &option;
  clv_devices *devices;
  clv_status status = clv_devices_open(context, &options, &devices, error);
  if (status == CLV_OK)
    clv_devices_close(devices);
  else
    assert_null(devices);
  return status;
}

static void names(void **state) {
  (void)state;
  static const char *const specs[] = {NAMED("chip"), "all", NAMED("other")};
  static const struct {
    const char *list;
    uint32_t spec_count;
    const char *option;
    clv_status status;
    const char *text; /* part of the error message */
  } cases[] = {
      {"cpu", 0, NULL, CLV_OK, ""},
      {"npu", 0, NULL, CLV_OK, ""},
      {"chip,npu1,other,cpu", 3, NULL, CLV_OK, ""},
      {"npu2,npu", 3, "npu2:memory=4M", CLV_OK, ""},
      {"auto", 0, NULL, CLV_OK, ""},
      {NULL, 0, NULL, CLV_OK, ""},
      {"npu1", 0, NULL, CLV_NOT_FOUND, "device 'npu1': there is only 1 description of virtual NPUs;"},
      {"npu3", 3, NULL, CLV_NOT_FOUND, "device 'npu3': there are only 3 descriptions"},
      {"tpu", 0, NULL, CLV_NOT_FOUND, "device 'tpu' is unknown; the backends are: cpu, npu, opencl"},
      {"cpu,,npu", 0, NULL, CLV_INVALID_ARGUMENT, "empty name"},
      {"", 0, NULL, CLV_INVALID_ARGUMENT, "empty name"},
      {"cpu,npu,cpu", 0, NULL, CLV_INVALID_ARGUMENT, "device 'cpu' is listed twice"},
      {"cpu", 0, "npu:memory=1M", CLV_INVALID_ARGUMENT, "where DEVICE is one of the devices to open (--devices)"},
      {"npu", 0, "npu:memory", CLV_INVALID_ARGUMENT, "DEVICE:KEY=VALUE"},
      {"npu", 0, "npu:=3", CLV_INVALID_ARGUMENT, "DEVICE:KEY=VALUE"},
      {"npu", 0, "npu:colour=red", CLV_INVALID_ARGUMENT, "device 'npu': "},
  };
  clv_context *context = open_context();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_error error = {0};
    clv_status status = try_open(context, cases[i].list, cases[i].spec_count, specs, cases[i].option, &error);
    if (status != cases[i].status || strstr(error.message, cases[i].text) == NULL) {
      fail_msg("the list '%s' gives %s and '%s'; expected %s and a message with '%s'", cases[i].list, clv_status_name(status),
               error.message, clv_status_name(cases[i].status), cases[i].text);
    }
  }
  clv_error error = {0};
  static const char *const missing[] = {"/nowhere/npu.json"};
  assert_int_equal(try_open(context, "npu", 1, missing, NULL, &error), CLV_NOT_FOUND);
  clv_context_destroy(context);
}

static void information(void **state) {
  (void)state;
  static const char *const specs[] = {NAMED("chip"), "all"};
  machine m;
  machine_open(&m, "chip,npu1,cpu", 2, specs);
  clv_device_info info = {.struct_size = sizeof info};
  clv_devices_info(m.devices, 0, &info);
  assert_string_equal(info.memory_space, "chip");
  clv_devices_info(m.devices, 2, &info);
  assert_string_equal(info.memory_space, "host");
  assert_string_equal(clv_devices_name(m.devices, 1), "npu1");
  assert_null(clv_devices_name(m.devices, 3));
  assert_int_equal(clv_devices_count(NULL), 0);
  info.struct_size =
      (uint32_t)offsetof(clv_device_info, description); /* the struct size in a program built for an older version */
  info.description = "mine";
  clv_devices_info(m.devices, 0, &info);
  assert_string_equal(info.kind, "npu");
  assert_string_equal(info.description, "mine");
  assert_int_equal(info.struct_size, offsetof(clv_device_info, description));
  info.struct_size = sizeof info;
  clv_devices_info(m.devices, 99, &info);
  assert_null(info.kind);
  machine_close(&m);
}

/* clv_device_info.silicon names the chip that a device really uses. For a virtual NPU it is "cpu", or NULL if its description
 * has a speed model, because the NPU then simulates a chip of its own. */
static void silicon(void **state) {
  (void)state;
  static const char *const specs[] = {"all",
                                      "{\"name\": \"chip\", \"operators\": \"all\", \"speed\": {\"flops_per_second\": 1e9}}"};
  machine m;
  machine_open(&m, "npu,chip,cpu", 2, specs);
  const char *const expected[] = {"cpu", NULL, "cpu"};
  for (uint32_t d = 0; d < 3; ++d) {
    clv_device_info info = {.struct_size = sizeof info};
    clv_devices_info(m.devices, d, &info);
    if (expected[d] == NULL)
      assert_null(info.silicon);
    else
      assert_string_equal(info.silicon, expected[d]);
  }
  machine_close(&m);
}

/* Fields beyond struct_size, here filled with 0xa5, are not read. */
static void options_of_an_older_program(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context_options context_options;
  memset(&context_options, 0xa5, sizeof context_options);
  context_options.struct_size = (uint32_t)offsetof(clv_context_options, allocator);
  clv_context *context;
  assert_ok(clv_context_create(&context_options, &context, &error), error);
  clv_devices_options devices_options;
  memset(&devices_options, 0xa5, sizeof devices_options);
  devices_options.struct_size = (uint32_t)offsetof(clv_devices_options, npu_spec_count);
  devices_options.list = "npu,cpu";
  clv_devices *devices;
  assert_ok(clv_devices_open(context, &devices_options, &devices, &error), error);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_plan_options plan_options;
  memset(&plan_options, 0xa5, sizeof plan_options);
  plan_options.struct_size = (uint32_t)offsetof(clv_plan_options, pin_count);
  plan_options.strategy = NULL;
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, devices, &plan_options, &plan, &error), error);
  clv_session_options session_options;
  memset(&session_options, 0xa5, sizeof session_options);
  session_options.struct_size = sizeof session_options.struct_size;
  clv_session *session;
  assert_ok(clv_session_create(plan, &session_options, &session, &error), error);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  /* struct_size is 0: the program did not use the initialiser. */
  session_options.struct_size = plan_options.struct_size = devices_options.struct_size = context_options.struct_size = 0;
  assert_int_equal(clv_plan_make(graph, devices, &plan_options, &plan, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message,
                      "options have struct_size 0, which is too small: initialise them with CLV_PLAN_OPTIONS_INIT");
  clv_devices *others;
  assert_int_equal(clv_devices_open(context, &devices_options, &others, &error), CLV_INVALID_ARGUMENT);
  clv_context *other;
  assert_int_equal(clv_context_create(&context_options, &other, &error), CLV_INVALID_ARGUMENT);
  struct { /* a program built for a later version has longer structs */
    clv_session_options known;
    uint64_t unknown;
  } later = {CLV_SESSION_OPTIONS_INIT, 7};
  later.known.struct_size = sizeof later;
  assert_ok(clv_plan_make(graph, devices, NULL, &plan, &error), error);
  assert_ok(clv_session_create(plan, &later.known, &session, &error), error);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
}

static clv_status no_table(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)host;
  (void)error;
  *backend = user_data;
  return user_data == NULL ? CLV_DEVICE_ERROR : CLV_OK;
}

static void misuse(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context = open_context();
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  static const char *const none[] = {NULL};
  assert_int_equal(clv_context_create(NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_context_add_backend(context, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_context_add_backend(context, no_table, NULL, &error), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "the backend's query: device error");
  clv_backend empty = {.abi_version = CLV_ABI_VERSION, .struct_size = sizeof empty, .name = "empty"};
  assert_int_equal(clv_context_add_backend(context, no_table, &empty, &error), CLV_INVALID_ARGUMENT);
  empty.abi_version = 99;
  assert_int_equal(clv_context_add_backend(context, no_table, &empty, &error), CLV_NOT_SUPPORTED);
  const clv_allocator half = {NULL, NULL, NULL};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  context_options.allocator = &half;
  clv_context *other;
  assert_int_equal(clv_context_create(&context_options, &other, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_devices_open(NULL, NULL, &devices, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_devices_open(context, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(try_open(context, "npu", 1, none, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(try_open(context, "npu", 1, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_ok(clv_devices_open(context, NULL, &devices, &error), error);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_assignment pin = {"conv", NULL};
  clv_size size = {0};
  clv_plan_options options[] = {CLV_PLAN_OPTIONS_INIT, CLV_PLAN_OPTIONS_INIT, CLV_PLAN_OPTIONS_INIT,
                                CLV_PLAN_OPTIONS_INIT, CLV_PLAN_OPTIONS_INIT, CLV_PLAN_OPTIONS_INIT};
  options[0].pin_count = 1;
  options[1].pin_count = 1, options[1].pins = &pin;
  options[2].size_count = 1;
  options[3].size_count = 1, options[3].sizes = &size;
  options[4].keep_count = 1;
  options[5].keep_count = 1, options[5].keeps = none;
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
    assert_int_equal(clv_plan_make(graph, devices, &options[i], &plan, &error), CLV_INVALID_ARGUMENT);
    assert_null(plan);
  }
  assert_int_equal(clv_plan_make(NULL, devices, NULL, &plan, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_make(graph, NULL, NULL, &plan, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_make(graph, devices, NULL, NULL, NULL), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_write(NULL, "x", &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_read(graph, devices, "/nowhere/plan.json", NULL, &plan, &error), CLV_NOT_FOUND);
  assert_int_equal(clv_session_create(NULL, NULL, &session, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_run(NULL, NULL, 0, NULL, 0, &error), CLV_INVALID_ARGUMENT);
  assert_null(clv_graph_input_name(graph, 1));
  assert_null(clv_graph_output_name(graph, UINT32_MAX));
  assert_null(clv_graph_input_type(graph, 1));
  assert_null(clv_graph_output_type(NULL, 0));
  assert_ok(clv_plan_make(graph, devices, NULL, &plan, &error), error);
  assert_int_equal(clv_session_create(plan, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  clv_tensor input = *clv_graph_input_type(graph, 0), output = {0};
  float data[192] = {0};
  input.data = data;
  assert_int_equal(clv_session_run(session, NULL, 1, &output, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_run(session, &input, 1, NULL, 1, &error), CLV_INVALID_ARGUMENT);
  static const int32_t ranks[] = {-1, 5, 9, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; ++i) {
    clv_tensor wrong = input;
    wrong.rank = ranks[i];
    assert_int_equal(clv_session_run(session, &wrong, 1, &output, 1, &error), CLV_INVALID_ARGUMENT);
    wrong.data = data;
    assert_int_equal(clv_session_run(session, &input, 1, &wrong, 1, &error), CLV_INVALID_ARGUMENT);
  }
  clv_tensor wrong = input;
  wrong.dtype = (clv_dtype)77;
  assert_int_equal(clv_session_run(session, &wrong, 1, &output, 1, &error), CLV_INVALID_ARGUMENT);
  wrong.dtype = CLV_DTYPE_NONE;
  assert_int_equal(clv_session_run(session, &wrong, 1, &output, 1, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "input 'x' is missing and has no default");
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
}

/* The description of a virtual NPU can be given as a device option. The device name in the description is then ignored. */
static void descriptions(void **state) {
  (void)state;
  static const char *const options[] = {"npu:spec={\"operators\": \"all\", \"memory\": \"3M\"}"};
  clv_error error = {0};
  clv_context *context = open_context();
  clv_devices_options devices_options = CLV_DEVICES_OPTIONS_INIT;
  devices_options.list = "npu";
  devices_options.device_options = options;
  devices_options.device_option_count = 1;
  clv_devices *devices;
  assert_ok(clv_devices_open(context, &devices_options, &devices, &error), error);
  clv_device_info info = {.struct_size = sizeof info};
  clv_devices_info(devices, 0, &info);
  assert_int_equal(info.memory_limit_bytes, 3 << 20);
  clv_devices_close(devices);
  char spec[128];
  const char *const specs[] = {spec};
  snprintf(spec, sizeof spec, "{\"name\": \"%064d\", \"operators\": \"all\"}", 1);
  assert_int_equal(try_open(context, "npu", 1, specs, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "the device name has 64 characters; the maximum is 63"));
  clv_context_destroy(context);
}

/* A backend is rejected if a group of slots lacks a slot, unless the slot is optional in its group. */
static void groups_of_slots(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context = open_context();
  const clv_backend *cpu;
  assert_ok(clv__cpu_backend_query(clv__context_host(context), NULL, &cpu, &error), error);
  clv_backend table = *cpu;
  table.name = "parts";
  clv_capture_slots capture = *cpu->capture;
  table.capture = &capture;
  capture.destroy = NULL;
  assert_int_equal(clv_context_add_backend(context, no_table, &table, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'capture->destroy'"));
  capture.destroy = cpu->capture->destroy;
  capture.struct_size = offsetof(clv_capture_slots, size_bytes);
  assert_int_equal(clv_context_add_backend(context, no_table, &table, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'capture->"));
  capture.struct_size = sizeof capture;
  const clv_save_slots save = {.struct_size = sizeof save, .save = NULL, .load = NULL};
  table.save = &save;
  assert_int_equal(clv_context_add_backend(context, no_table, &table, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'save->save'"));
  table.save = NULL;
  capture.bind = NULL;
  assert_ok(clv_context_add_backend(context, no_table, &table, &error), error);
  clv_context_destroy(context);
}

static clv_status absent(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                         clv_error *error) {
  (void)self;
  (void)host;
  (void)device;
  if (config->option_count > 0) return clv__error_set(error, CLV_DEVICE_ERROR, "the driver failed");
  return clv__error_set(error, CLV_NOT_SUPPORTED, "there is no such card");
}

/* A listed device that this machine does not have is skipped if another device of the list can be opened. */
static void a_device_that_is_absent(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context = open_context();
  const clv_backend *cpu;
  assert_ok(clv__cpu_backend_query(clv__context_host(context), NULL, &cpu, &error), error);
  clv_backend table = *cpu;
  table.name = "card", table.open = absent, table.options = NULL;
  assert_ok(clv_context_add_backend(context, no_table, &table, &error), error);

  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv_devices *devices;
  options.list = "card,npu,card:1,cpu";
  assert_ok(clv_devices_open(context, &options, &devices, &error), error);
  assert_int_equal(devices->count, 2);
  assert_string_equal(devices->items[0].name, "npu");
  assert_int_equal(devices->left_out_count, 2);
  assert_string_equal(devices->left_out[1].name, "card:1");
  assert_string_equal(devices->left_out[0].reason, "device 'card': open: there is no such card");
  clv_devices_close(devices);

  options.no_fallback = true;
  assert_int_equal(clv_devices_open(context, &options, &devices, &error), CLV_NOT_SUPPORTED);
  assert_string_equal(error.message, "device 'card': open: there is no such card");
  assert_int_equal(try_open(context, "card", 0, NULL, NULL, &error), CLV_NOT_SUPPORTED);
  assert_string_equal(error.message, "device 'card': open: there is no such card");
  assert_int_equal(try_open(context, "card,card:1", 0, NULL, NULL, &error), CLV_NOT_SUPPORTED);
  assert_string_equal(error.message, "no device of 'card,card:1' is available: device 'card': open: there is no such card");
  /* Opening the list fails if a device's error is not CLV_NOT_SUPPORTED, or if no backend has the device's name. */
  assert_int_equal(try_open(context, "card,cpu", 0, NULL, "card:speed=1", &error), CLV_DEVICE_ERROR);
  assert_int_equal(try_open(context, "cart,cpu", 0, NULL, NULL, &error), CLV_NOT_FOUND);
  /* A device with a number is skipped, too. An option for a device that is not in the list is an error. */
  assert_ok(try_open(context, "card:1,cpu", 0, NULL, NULL, &error), error);
  assert_int_equal(try_open(context, "card:1,cpu", 0, NULL, "gpu:speed=1", &error), CLV_INVALID_ARGUMENT);
  clv_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),        cmocka_unit_test(information),
      cmocka_unit_test(silicon),      cmocka_unit_test(options_of_an_older_program),
      cmocka_unit_test(misuse),       cmocka_unit_test(groups_of_slots),
      cmocka_unit_test(descriptions), cmocka_unit_test(a_device_that_is_absent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
