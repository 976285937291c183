/* Verification finds a wrong partition and names it. Errors of a backend begin with the partition and the device, and nothing
 * leaks. The backend "broken" is the virtual NPU with some of its functions replaced. */
#include <jansson.h>

#include "machine.h"

#include "backends/cpu/cpu.h"
#include "backends/vnpu/vnpu.h"
#include "execute/session.h"

enum { CORRUPT_NOTHING, CORRUPT_ELEMENT, FAIL_EXECUTE, FAIL_COMPILE, FAIL_INSTANCE, FAIL_SILENTLY, FAIL_UPLOAD, FAIL_BUFFER };

static const clv_backend *sound; /* the virtual NPU's table */
static clv_backend broken;
static int fault;
static const char *victim;        /* the first node of the partition that fails or is wrong */
static clv_executable *marked[8]; /* executables of that partition */
static uint32_t marked_count;
static clv_instance *marked_instance;
static const clv_host *services;

static clv_status broken_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                              clv_error *error) {
  (void)self;
  const clv_option spec = {"spec", "all"};
  clv_device_config all = *config;
  all.options = &spec;
  all.option_count = 1;
  services = host;
  return sound->open(sound->self, host, &all, device, error);
}

static clv_status broken_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                                 clv_executable **executable, clv_error *error) {
  clv_node_info node = {.struct_size = sizeof node};
  services->graph_node(graph, 0, &node);
  bool is_victim = strcmp(node.name, victim) == 0;
  if (is_victim && fault == FAIL_COMPILE) return clv__error_set(error, CLV_DEVICE_ERROR, "compiler(): code 7");
  clv_status status = sound->compile(device, graph, options, executable, error);
  if (status == CLV_OK && is_victim) marked[marked_count++ % 8] = *executable;
  return status;
}

static bool is_marked(const clv_executable *executable) {
  for (uint32_t i = 0; i < 8; ++i) {
    if (marked[i] == executable) return true;
  }
  return false;
}

static clv_status broken_instance(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                  clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error) {
  if (is_marked(executable) && fault == FAIL_INSTANCE) return clv__error_set(error, CLV_DEVICE_ERROR, "instance(): code 8");
  if (is_marked(executable) && fault == FAIL_SILENTLY) return CLV_DEVICE_ERROR;
  clv_status status = sound->instance_create(device, executable, inputs, input_count, weights, weight_count, instance, error);
  if (status == CLV_OK && is_marked(executable)) marked_instance = *instance;
  return status;
}

static clv_status broken_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                 clv_error *error) {
  if (instance == marked_instance && fault == FAIL_EXECUTE) return clv__error_set(error, CLV_DEVICE_ERROR, "launch(): code 9");
  CLV__TRY(sound->execute(device, instance, stream, args, error));
  if (instance != marked_instance || fault != CORRUPT_ELEMENT) return CLV_OK;
  static const float wrong = 1234.5f;
  CLV__TRY(sound->stream_synchronize(device, stream, error));
  return sound->copy_in(device, stream, args->outputs[0].buffer, args->outputs[0].offset_bytes + 5 * sizeof wrong, &wrong,
                        sizeof wrong, error);
}

static clv_status broken_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                clv_error *error) {
  if (fault == FAIL_UPLOAD) return clv__error_set(error, CLV_DEVICE_ERROR, "upload(): code 10");
  return sound->weight_upload(device, id, data, weight, error);
}

static clv_status broken_buffer(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error) {
  if (fault == FAIL_BUFFER) return clv__error_set(error, CLV_OUT_OF_MEMORY, "alloc(): code 11");
  return sound->buffer_alloc(device, size_bytes, buffer, error);
}

static clv_status broken_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
  CLV__TRY(clv__vnpu_backend_query(host, NULL, &sound, error));
  broken = *sound;
  broken.name = "broken";
  broken.open = broken_open;
  broken.compile = broken_compile;
  broken.instance_create = broken_instance;
  broken.execute = broken_execute;
  broken.weight_upload = broken_upload;
  broken.buffer_alloc = broken_buffer;
  *backend = &broken;
  return CLV_OK;
}

/* Without fallback, so that the device's errors are returned. */
static const clv_session_options strict = {.struct_size = sizeof strict, .no_fallback = true};

typedef struct fixture {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
} fixture;

/* conv … relu2 on the broken device, concat on the CPU, softmax on the broken one: partitions 0, 1 and 2. */
static void begin(fixture *f, int what) {
  clv_error error = {0};
  test_allocator_init(&f->m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &f->m.counting.allocator;
  assert_ok(clv_context_create(&context, &f->m.context, &error), error);
  assert_ok(clv_context_add_backend(f->m.context, broken_query, NULL, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "broken,cpu";
  assert_ok(clv_devices_open(f->m.context, &devices, &f->m.devices, &error), error);
  fault = what;
  victim = "softmax";
  memset(marked, 0, sizeof marked);
  marked_instance = NULL;
  f->graph = test_seven_nodes(&f->m.counting.allocator);
  f->plan = machine_plan(&f->m, f->graph, "concat=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(f->plan->partition_count, 3);
}

static void end(fixture *f) {
  clv_plan_destroy(f->plan);
  clv_graph_destroy(f->graph);
  machine_close(&f->m);
}

static clv_tensor input_of(const fixture *f) {
  static float data[3 * 8 * 8];
  uint64_t seed = 3;
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = *clv_graph_input_type(f->graph, 0);
  input.data = data;
  return input;
}

static void a_wrong_element_is_named(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_ELEMENT);
  clv_session *session = machine_session(f.plan);
  clv_error error = {0};
  clv_tensor input = input_of(&f), expected = {0};
  assert_ok(clv__graph_evaluate(f.graph, &input, NULL, &expected, NULL, NULL, f.graph->allocator, &error), error);
  clv__mismatch mismatch;
  for (int i = 0; i < 2; ++i) { /* runs and verification do not affect each other */
    assert_ok(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), error);
    assert_int_equal(mismatch.partition, 2);
    assert_int_equal(mismatch.value, clv__graph_find_value(f.graph, "y"));
    assert_int_equal(mismatch.element, 5);
    assert_float_equal(mismatch.expected, clv__tensor_get(&expected, 5), 0);
    assert_float_equal(mismatch.actual, 1234.5, 0);
    assert_int_equal(mismatch.partitions_checked, 3);
    assert_int_equal(mismatch.checks[2].value, mismatch.value);
    for (uint32_t p = 0; p < 2; ++p) {
      const clv__difference *worst = &mismatch.checks[p].difference;
      assert_true(worst->tolerance > 0 && worst->difference <= worst->tolerance && worst->beyond == 0);
    }
    clv_tensor output = {0};
    assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
    assert_float_equal(clv__tensor_get(&output, 5), 1234.5, 0);
  }
  fault = CORRUPT_NOTHING;
  assert_ok(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), error);
  assert_int_equal(mismatch.partition, CLV__NO_ID);
  assert_int_equal(mismatch.partitions_checked, 3);
  clv__release(f.graph->allocator, expected.data);
  clv_session_destroy(session);
  end(&f);
}

/* The first partition is wrong, and the others read its values. Only the first is reported. */
static void the_first_wrong_partition_is_named(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_ELEMENT);
  victim = "conv";
  clv_session *session = machine_session(f.plan);
  clv_error error = {0};
  clv_tensor input = input_of(&f);
  clv__mismatch mismatch;
  assert_ok(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), error);
  assert_int_equal(mismatch.partition, 0);
  assert_int_equal(mismatch.value, clv__graph_find_value(f.graph, "r2"));
  assert_int_equal(mismatch.element, 5);
  clv_session_destroy(session);
  end(&f);
}

/* ---- A device that overwrites its input, or is a few quantisation steps off ---- */

static const clv_backend *cpu;
static clv_backend scribbler;
static bool scribbles;
static int32_t shift;    /* added to some elements of output 0, which is quantised */
static uint32_t shifted; /* to how many elements `shift` is added */

static clv_status scribble(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                           clv_error *error) {
  CLV__TRY(cpu->execute(device, instance, stream, args, error));
  if (scribbles) ((float *)args->inputs[0].type.data)[1] += 1;
  uint8_t *quantised = args->outputs[0].type.data;
  for (uint32_t i = 0; shift != 0 && i < shifted; ++i) quantised[i] = (uint8_t)(quantised[i] + shift);
  return CLV_OK;
}

static clv_status scribbler_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  CLV__TRY(clv__cpu_backend_query(host, user_data, &cpu, error));
  scribbler = *cpu;
  scribbler.name = "scribbler";
  scribbler.execute = scribble;
  scribbler.capture = NULL;
  *backend = &scribbler;
  return CLV_OK;
}

static void open_scribbler(machine *m) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  assert_ok(clv_context_create(NULL, &m->context, &error), error);
  assert_ok(clv_context_add_backend(m->context, scribbler_query, NULL, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "scribbler";
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

/* A quantised value may be off by one step, and one of 100 elements by two. */
static void quantised_values_are_held_to_steps(void **state) {
  (void)state;
  static const struct {
    int32_t shift;
    uint32_t shifted;
    bool agrees;
  } cases[] = {{0, 0, true}, {1, 200, true}, {2, 2, true}, {2, 3, false}, {3, 1, false}, {20, 1, false}, {-2, 1, true}};
  machine m;
  clv_error error = {0};
  open_scribbler(&m);
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(200));
  float scale = 0.02f, x[200];
  uint8_t zero = 128;
  test_graph_constant(&g, "scale", &(clv_tensor){CLV_F32, 0, {0}, &scale});
  test_graph_constant(&g, "zero", &(clv_tensor){CLV_U8, 0, {0}, &zero});
  test_graph_node(&g, "quantise", "QuantizeLinear", "x,scale,zero", "q");
  clv_graph *graph = test_graph_end(&g, "q");
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  for (int i = 0; i < 200; ++i) x[i] = (float)(i - 100) * 0.02f;
  clv_tensor input = f32(1, DIMS(200), x);
  clv__mismatch mismatch;
  scribbles = false;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    shift = cases[i].shift;
    shifted = cases[i].shifted;
    assert_ok(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), error);
    if ((mismatch.partition == CLV__NO_ID) != cases[i].agrees)
      fail_msg("verification must %s an output with %u elements off by %d steps", cases[i].agrees ? "accept" : "report", shifted,
               (int)shift);
    const clv__partition_check *check = &mismatch.checks[0];
    assert_int_equal(check->value, clv__graph_find_value(graph, "q"));
    assert_int_equal(check->allowed.steps, 1);
    assert_float_equal(check->difference.tolerance, 1, 0);
    assert_float_equal(check->difference.difference, shift < 0 ? -shift : shift, 0);
    assert_int_equal(check->difference.beyond, shift > 1 || shift < -1 ? shifted : 0);
  }
  shift = 0;
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void an_input_that_is_written_is_told(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  open_scribbler(&m);
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(2, 3));
  test_graph_node(&g, "relu", "Relu", "x", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  float x[6] = {1, -2, 3, -4, 5, -6};
  clv_tensor input = f32(2, DIMS(2, 3), x);
  clv__mismatch mismatch;
  scribbles = false;
  assert_ok(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), error);
  assert_int_equal(mismatch.partition, CLV__NO_ID);
  scribbles = true;
  assert_int_equal(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), CLV_INTERNAL_ERROR);
  assert_non_null(strstr(error.message, "partition 0 on scribbler overwrote one of its inputs"));
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void verify_refuses_wrong_inputs(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_NOTHING);
  clv_session *session = machine_session(f.plan);
  clv_error error = {0};
  clv_tensor input = input_of(&f), wrong = input;
  clv__mismatch mismatch;
  wrong.data = NULL;
  assert_int_equal(clv__session_verify(session, &wrong, 1, NULL, &mismatch, &error), CLV_INVALID_ARGUMENT);
  wrong = input;
  wrong.dims[3] = 7;
  assert_int_equal(clv__session_verify(session, &wrong, 1, NULL, &mismatch, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv__session_verify(session, &input, 0, NULL, &mismatch, &error), CLV_INVALID_ARGUMENT);
  clv_session_destroy(session);
  end(&f);
}

/* ---- The public functions of cleave/verify.h ---- */

static clv_verification *verify_public(clv_session *session, const clv_tensor *input) {
  clv_error error = {0};
  clv_verification *verification;
  assert_ok(clv_session_verify(session, input, 1, NULL, &verification, &error), error);
  return verification;
}

static char *text_of(const clv_verification *verification, clv_form form, bool brief) {
  clv_error error = {0};
  char *text;
  assert_ok(clv_verification_text(verification, form, brief, &text, &error), error);
  return text;
}

/* The structs, the text and the JSON must say the same. They must not need the session and the plan any more. */
static void a_program_reads_what_differs(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_ELEMENT);
  clv_session *session = machine_session(f.plan);
  const clv_tensor input = input_of(&f);
  clv_verification *verification = verify_public(session, &input);
  clv_session_destroy(session);
  clv_plan_destroy(f.plan);
  f.plan = NULL;
  clv_verify_result result = {.struct_size = sizeof result};
  clv_verification_get_result(verification, &result);
  assert_false(result.equal);
  assert_int_equal(result.compared_count, 3);
  assert_int_equal(result.unknown_count, 0);
  assert_int_equal(result.partition, 2);
  assert_string_equal(result.device, "broken");
  assert_string_equal(result.value, "y");
  assert_int_equal(result.element, 5);
  assert_float_equal(result.actual, 1234.5, 0);
  assert_true(result.tolerance > 0 && result.tolerance < 1);
  char *text = text_of(verification, CLV_FORM_TEXT, false), *brief = text_of(verification, CLV_FORM_TEXT, true), sentence[200];
  snprintf(sentence, sizeof sentence, "differs: partition 2 on broken: value 'y' %s is 1234.5, expected %.9g", result.position,
           result.expected);
  assert_true(strncmp(brief, sentence, strlen(sentence)) == 0);
  assert_true(strncmp(text, "partition  device  worst output", 31) == 0);
  assert_string_equal(text + strlen(text) - strlen(brief), brief);
  json_error_t where;
  char *dumped = text_of(verification, CLV_FORM_JSON, false);
  json_t *root = json_loads(dumped, 0, &where);
  assert_non_null(root);
  assert_true(json_is_false(json_object_get(root, "equal")));
  assert_int_equal(json_integer_value(json_object_get(root, "element")), 5);
  assert_float_equal(json_real_value(json_object_get(root, "expected")), result.expected, 1e-8);
  assert_int_equal(json_array_size(json_object_get(root, "partitions")), 3);
  for (uint32_t i = 0; i < 4; ++i) {
    clv_partition_result one = {.struct_size = sizeof one};
    const json_t *object = json_array_get(json_object_get(root, "partitions"), i);
    assert_int_equal(clv_verification_partition(verification, i, &one), i < 3);
    if (i == 3) assert_null(one.device);
    if (i == 3) break;
    assert_int_equal(one.partition, i);
    assert_string_equal(one.device, json_string_value(json_object_get(object, "device")));
    assert_string_equal(one.value, json_string_value(json_object_get(object, "value")));
    assert_int_equal(one.element_count, json_integer_value(json_object_get(object, "elements")));
    assert_int_equal(one.beyond_count, i == 2 ? 1 : 0);
    assert_int_equal(one.difference > one.tolerance, i == 2);
  }
  json_decref(root);
  clv_text_free(dumped);
  clv_text_free(brief);
  clv_text_free(text);
  clv_verification_destroy(verification);
  end(&f);
}

static void a_program_reads_that_all_agree(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_NOTHING);
  clv_session *session = machine_session(f.plan);
  const clv_tensor input = input_of(&f);
  clv_verification *verification = verify_public(session, &input);
  clv_verify_result result = {.struct_size = sizeof result, .partition = 77};
  result.struct_size = offsetof(clv_verify_result, partition); /* a program that was built with an earlier header */
  clv_verification_get_result(verification, &result);
  assert_true(result.equal && result.partition == 77);
  result.struct_size = sizeof result;
  clv_verification_get_result(verification, &result);
  assert_true(result.partition == CLV_NO_INDEX && result.value == NULL && result.device == NULL && result.position == NULL);
  char *text = text_of(verification, CLV_FORM_TERMINAL, true);
  assert_string_equal(text, "\033[32mverified\033[0m 3 partitions: all match the reference within tolerance\n");
  clv_text_free(text);
  clv_verification_destroy(verification);
  clv_session_destroy(session);
  end(&f);
}

static bool go_on_twice(void *user_data) {
  return ++*(int *)user_data <= 2;
}

static void bad_arguments_and_cancelling(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_NOTHING);
  clv_session *session = machine_session(f.plan);
  const clv_tensor input = input_of(&f);
  clv_tensor wrong = input;
  clv_error error = {0};
  int asked = 0;
  char *text = (char *)&asked;
  clv_verify_options options = CLV_VERIFY_OPTIONS_INIT;
  clv_verification *verification = (clv_verification *)&asked;
  options.go_on = go_on_twice;
  options.user_data = &asked;
  assert_int_equal(clv_session_verify(session, &input, 1, &options, &verification, &error), CLV_CANCELLED);
  assert_string_equal(error.message, "verify: stopped before partition 2 of 3");
  assert_null(verification);
  assert_int_equal(asked, 3);
  options.struct_size = 1;
  assert_int_equal(clv_session_verify(session, &input, 1, &options, &verification, &error), CLV_INVALID_ARGUMENT);
  wrong.dims[3] = 7;
  assert_int_equal(clv_session_verify(session, &wrong, 1, NULL, &verification, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_verify(session, NULL, 1, NULL, &verification, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_verify(NULL, &input, 1, NULL, &verification, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_verify(session, &input, 1, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  verification = verify_public(session, &input);
  assert_int_equal(clv_verification_text(verification, (clv_form)9, false, &text, &error), CLV_INVALID_ARGUMENT);
  assert_null(text);
  assert_int_equal(clv_verification_text(NULL, CLV_FORM_JSON, false, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_verification_text(verification, CLV_FORM_JSON, false, NULL, &error), CLV_INVALID_ARGUMENT);
  clv_verification_destroy(verification);
  clv_verification_destroy(NULL);
  clv_session_destroy(session);
  end(&f);
}

static void failures_at_creation(void **state) {
  (void)state;
  static const struct {
    int fault;
    clv_status status;
    const char *text;
  } cases[] = {
      {FAIL_COMPILE, CLV_DEVICE_ERROR, "partition 2 on broken: compile: compiler(): code 7"},
      {FAIL_INSTANCE, CLV_DEVICE_ERROR, "partition 2 on broken: node 'softmax' (Softmax): instance_create: instance(): code 8"},
      {FAIL_SILENTLY, CLV_DEVICE_ERROR, "partition 2 on broken: node 'softmax' (Softmax): instance_create: device error"},
      {FAIL_BUFFER, CLV_OUT_OF_MEMORY,
       "memory for values between partitions: cannot allocate 4096 bytes (0 bytes are in use; freeing 0 unused bytes did not "
       "help): broken: buffer_alloc: alloc(): code 11"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    fixture f;
    begin(&f, cases[i].fault);
    clv_error error = {CLV_OK, "of an earlier call"};
    clv_session *session = (clv_session *)&f;
    clv_status status = clv_session_create(f.plan, &strict, &session, &error);
    if (status != cases[i].status)
      fail_msg("case %zu: status %s, expected %s: %s", i, clv_status_name(status), clv_status_name(cases[i].status),
               error.message);
    assert_null(session);
    assert_int_equal(error.status, cases[i].status);
    assert_string_equal(error.message, cases[i].text);
    end(&f);
  }
}

static void a_failed_upload_names_the_weight(void **state) {
  (void)state;
  fixture f;
  begin(&f, FAIL_UPLOAD);
  clv_plan_destroy(f.plan);
  clv_graph_destroy(f.graph);
  test_graph g;
  test_graph_begin(&g, &f.m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(64, 64));
  test_graph_weight(&g, "w", 2, DIMS(64, 64));
  test_graph_node(&g, "y", "Add", "x,w", "y");
  f.graph = test_graph_end(&g, "y");
  f.plan = machine_plan(&f.m, f.graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_error error = {0};
  clv_session *session;
  assert_int_equal(clv_session_create(f.plan, &strict, &session, &error), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "partition 0 on broken: weight 'w': weight_upload: upload(): code 10");
  end(&f);
}

static void failures_in_a_run(void **state) {
  (void)state;
  fixture f;
  begin(&f, CORRUPT_NOTHING);
  clv_session *session;
  clv_error error = {0};
  assert_ok(clv_session_create(f.plan, &strict, &session, &error), error);
  clv_tensor input = input_of(&f), output = {0};
  clv__mismatch mismatch;
  fault = FAIL_EXECUTE;
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(clv_session_run(session, &input, 1, &output, 1, &error), CLV_DEVICE_ERROR);
    assert_string_equal(error.message, "partition 2 on broken: node 'softmax' (Softmax): execute: launch(): code 9");
    assert_null(output.data);
    assert_int_equal(clv__session_verify(session, &input, 1, NULL, &mismatch, &error), CLV_DEVICE_ERROR);
    assert_string_equal(error.message, "verify: partition 2 on broken: node 'softmax' (Softmax): execute: launch(): code 9");
  }
  fault = CORRUPT_NOTHING; /* the session remains usable */
  machine_check_run(session, f.plan, &input, "after failures");
  clv_session_destroy(session);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wrong_element_is_named),
      cmocka_unit_test(the_first_wrong_partition_is_named),
      cmocka_unit_test(verify_refuses_wrong_inputs),
      cmocka_unit_test(a_program_reads_what_differs),
      cmocka_unit_test(a_program_reads_that_all_agree),
      cmocka_unit_test(bad_arguments_and_cancelling),
      cmocka_unit_test(failures_at_creation),
      cmocka_unit_test(failures_in_a_run),
      cmocka_unit_test(a_failed_upload_names_the_weight),
      cmocka_unit_test(an_input_that_is_written_is_told),
      cmocka_unit_test(quantised_values_are_held_to_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
