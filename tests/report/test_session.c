/* What programs read about a session: cleave/session_info.h and cleave/trace.h. The structs and the JSON must say the same. */
#include <jansson.h>

#include "machine.h"

typedef struct fixture {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  float data[3 * 8 * 8];
  clv_tensor input;
} fixture;

static void begin(fixture *f, uint32_t in_flight) {
  static const char *const spec = "all";
  clv_error error = {0};
  uint64_t seed = 3;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  machine_open(&f->m, "npu,cpu", 1, &spec);
  f->graph = test_seven_nodes(&f->m.counting.allocator);
  f->plan = machine_plan(&f->m, f->graph, "concat=cpu,softmax=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  options.in_flight = in_flight;
  assert_ok(clv_session_create(f->plan, &options, &f->session, &error), error);
  for (size_t i = 0; i < sizeof f->data / sizeof *f->data; ++i) f->data[i] = test_random_float(&seed);
  f->input = *clv_graph_input_type(f->graph, 0);
  f->input.data = f->data;
}

static void end(fixture *f) {
  clv_session_destroy(f->session);
  clv_plan_destroy(f->plan);
  clv_graph_destroy(f->graph);
  machine_close(&f->m);
}

static void run(fixture *f) {
  clv_error error = {0};
  clv_tensor output = {0};
  assert_ok(clv_session_run(f->session, &f->input, 1, &output, 1, &error), error);
}

static char *report(const fixture *f, uint32_t parts, clv_form form) {
  clv_error error = {0};
  char *text;
  assert_ok(clv_session_report(f->session, parts, form, &text, &error), error);
  return text;
}

static json_int_t number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) fail_msg("'%s' is not an integer", key);
  return json_integer_value(value);
}

static void check_executables(const fixture *f, const json_t *executables) {
  static const char *const words[] = {"memory", "folder", "disk", "compiled", "not kept", "hosted"};
  clv_session_stats stats = {.struct_size = sizeof stats};
  clv_executable_origin origin = {.struct_size = sizeof origin};
  clv_session_get_stats(f->session, &stats);
  assert_int_equal(number(executables, "compiled"), stats.compiled);
  assert_int_equal(number(executables, "not_kept"), stats.not_kept);
  assert_int_equal(stats.compiled + stats.not_kept + stats.from_disk + stats.from_memory + stats.from_folder,
                   f->plan->partition_count);
  assert_true(stats.compile_ms > 0);
  const json_t *partitions = json_object_get(executables, "partitions");
  assert_int_equal(json_array_size(partitions), f->plan->partition_count);
  for (uint32_t p = 0; p < f->plan->partition_count; ++p) {
    const json_t *one = json_array_get(partitions, p);
    assert_true(clv_session_executable(f->session, p, &origin));
    assert_string_equal(words[origin.source], json_string_value(json_object_get(one, "source")));
    assert_string_equal(origin.reason, json_string_value(json_object_get(one, "reason")));
    assert_false(origin.is_missed);
  }
  assert_false(clv_session_executable(f->session, f->plan->partition_count, &origin));
  assert_null(origin.reason);
}

static void check_memory(const fixture *f, const json_t *memory) {
  clv_session_stats stats = {.struct_size = sizeof stats};
  const json_t *spaces = json_object_get(memory, "spaces");
  clv_session_get_stats(f->session, &stats);
  assert_int_equal(json_array_size(spaces), stats.space_count);
  assert_int_equal(number(memory, "weight_bytes"), stats.weight_bytes);
  for (uint32_t s = 0; s <= stats.space_count; ++s) {
    clv_space_info space = {.struct_size = sizeof space};
    const json_t *one = json_array_get(spaces, s);
    assert_int_equal(clv_session_space(f->session, s, &space), s < stats.space_count);
    if (s == stats.space_count) assert_null(space.name);
    if (s == stats.space_count) break;
    assert_string_equal(space.name, json_string_value(json_object_get(one, "name")));
    assert_int_equal(number(one, "planned_bytes"), space.planned_bytes);
    assert_int_equal(number(one, "peak_bytes"), space.peak_bytes);
    assert_true(space.planned_bytes >= space.bound_bytes && space.peak_bytes > 0);
  }
}

/* In automatic mode, the second run captures and the third replays. */
static void check_launches(fixture *f) {
  clv_launch_info launch = {.struct_size = sizeof launch};
  assert_true(clv_session_launch(f->session, 0, &launch));
  assert_int_equal(launch.state, CLV_LAUNCH_UNKNOWN);
  for (int i = 0; i < 3; ++i) {
    static const clv_launch_state states[] = {CLV_LAUNCH_EAGER, CLV_LAUNCH_CAPTURED, CLV_LAUNCH_REPLAYED};
    run(f);
    assert_true(clv_session_launch(f->session, 0, &launch));
    assert_int_equal(launch.state, states[i]);
    assert_int_equal(launch.reason != NULL && launch.reason[0] != '\0', i == 0);
  }
  assert_false(clv_session_launch(f->session, f->plan->partition_count, &launch));
}

static void check_captures(const fixture *f, const json_t *graphs) {
  clv_capture_info info = {.struct_size = sizeof info};
  assert_true(clv_session_captures(f->session, 0, &info));
  const json_t *npu = json_object_get(graphs, "npu");
  assert_true(info.captures > 0 && info.hits > 0 && info.failures == 0);
  assert_int_equal(number(npu, "captures"), info.captures);
  assert_int_equal(number(npu, "hits"), info.hits);
  assert_int_equal(number(npu, "bytes"), info.size_bytes);
  assert_false(clv_session_captures(f->session, 2, &info));
  assert_int_equal(info.captures, 0);
}

static void structs_and_json_say_the_same(void **state) {
  (void)state;
  fixture f;
  clv_fallback_info fallback = {.struct_size = sizeof fallback};
  begin(&f, 1);
  assert_ptr_equal(clv_session_current_plan(f.session), f.plan);
  assert_false(clv_session_fallback(f.session, 0, &fallback));
  check_launches(&f);
  char *dumped =
      report(&f, CLV_REPORT_EXECUTABLES | CLV_REPORT_FALLBACKS | CLV_REPORT_CAPTURES | CLV_REPORT_MEMORY, CLV_FORM_JSON);
  json_t *root = json_loads(dumped, 0, NULL);
  assert_non_null(root);
  assert_int_equal(json_object_size(root), 4);
  assert_int_equal(json_array_size(json_object_get(root, "fallbacks")), 0);
  check_executables(&f, json_object_get(root, "executables"));
  check_memory(&f, json_object_get(root, "memory"));
  check_captures(&f, json_object_get(root, "graphs"));
  json_decref(root);
  clv_text_free(dumped);
  end(&f);
}

static void texts_have_the_parts(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  begin(&f, 1);
  char *text = report(&f, CLV_REPORT_FALLBACKS, CLV_FORM_TEXT);
  assert_string_equal(text, "");
  clv_text_free(text);
  text = report(&f, CLV_REPORT_EXECUTABLES | CLV_REPORT_MEMORY, CLV_FORM_TEXT);
  assert_true(strncmp(text, "executables: ", 13) == 0 && strstr(text, "\nmemory space  between partitions") != NULL);
  clv_text_free(text);
  assert_int_equal(clv_session_report(f.session, 16, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT);
  assert_null(text);
  assert_int_equal(clv_session_report(f.session, 1, (clv_form)7, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_report(NULL, 1, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT);
  end(&f);
}

/* ---- Traces ---- */

typedef struct received {
  char *text;
  size_t size_bytes;
  bool refuses;
} received;

static bool receive(void *user_data, const char *bytes, size_t size) {
  received *r = user_data;
  if (r->refuses) return false;
  r->text = realloc(r->text, r->size_bytes + size + 1);
  memcpy(r->text + r->size_bytes, bytes, size);
  r->text[r->size_bytes += size] = '\0';
  return true;
}

static size_t count_events(const char *text, const char *category) {
  json_t *root = json_loads(text, 0, NULL);
  assert_non_null(root);
  size_t count = 0, index;
  json_t *event;
  json_array_foreach(json_object_get(root, "traceEvents"), index, event) {
    const char *of = json_string_value(json_object_get(event, "cat"));
    const bool is_step = json_object_get(json_object_get(event, "args"), "predicted_ms") != NULL;
    count += category == NULL ? is_step : of != NULL && strcmp(of, category) == 0;
  }
  json_decref(root);
  return count;
}

static void a_trace_has_each_step(void **state) {
  (void)state;
  for (uint32_t in_flight = 1; in_flight <= 2; ++in_flight) {
    fixture f;
    clv_error error = {0};
    received got = {0};
    clv_trace_options options = CLV_TRACE_OPTIONS_INIT;
    begin(&f, in_flight);
    float room[1024];
    clv_tensor output = f.plan->shapes->types[f.graph->outputs[0]];
    output.data = room;
    clv_session_trace_start(f.session);
    assert_ok(clv_session_run(f.session, &f.input, 1, &output, 1, &error), error);
    clv_session_trace_start(f.session); /* discards the first run */
    assert_ok(clv_session_run(f.session, &f.input, 1, &output, 1, &error), error);
    clv_session_trace_stop(f.session);
    assert_ok(clv_session_run(f.session, &f.input, 1, &output, 1, &error), error);
    assert_ok(clv_session_trace_write(f.session, NULL, NULL, receive, &got, &error), error);
    const size_t steps = count_events(got.text, NULL);
    assert_true(steps > 0 && steps <= f.plan->step_count); /* a capture is one event for several partitions */
    assert_int_equal(count_events(got.text, "operator"), 0);
    free(got.text);
    got = (received){0};
    options.inputs = &f.input;
    options.input_count = 1;
    assert_ok(clv_session_trace_write(f.session, &options, NULL, receive, &got, &error), error);
    assert_int_equal(count_events(got.text, NULL), steps); /* the run that measures operators is not recorded */
    assert_true(count_events(got.text, "operator") > 0);
    char path[64], *read = calloc(1, got.size_bytes + 1);
    snprintf(path, sizeof path, "/tmp/cleave-trace-%d.json", (int)getpid());
    assert_ok(clv_session_trace_write(f.session, NULL, path, NULL, NULL, &error), error);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(read, 1, got.size_bytes, file) > 0);
    fclose(file);
    unlink(path);
    assert_int_equal(count_events(read, NULL), steps);
    free(read);
    free(got.text);
    end(&f);
  }
}

static void bad_traces(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  received got = {.refuses = true};
  clv_trace_options options = CLV_TRACE_OPTIONS_INIT;
  begin(&f, 1);
  assert_int_equal(clv_session_trace_write(f.session, NULL, NULL, receive, &got, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "no run was recorded"));
  clv_session_trace_start(f.session);
  run(&f);
  assert_int_equal(clv_session_trace_write(f.session, NULL, NULL, receive, &got, &error), CLV_CANCELLED);
  assert_int_equal(clv_session_trace_write(f.session, NULL, NULL, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_trace_write(f.session, NULL, "x", receive, &got, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_trace_write(f.session, NULL, "/no/such/folder/x", NULL, NULL, &error), CLV_IO_ERROR);
  assert_int_equal(clv_session_trace_write(NULL, NULL, "x", NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  clv_tensor wrong = f.input;
  wrong.dims[1] = 5;
  options.inputs = &wrong;
  options.input_count = 1;
  assert_int_equal(clv_session_trace_write(f.session, &options, NULL, receive, &got, &error), CLV_INVALID_ARGUMENT);
  options.struct_size = 2;
  assert_int_equal(clv_session_trace_write(f.session, &options, NULL, receive, &got, &error), CLV_INVALID_ARGUMENT);
  clv_session_trace_start(NULL);
  clv_session_trace_stop(NULL);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(structs_and_json_say_the_same),
      cmocka_unit_test(texts_have_the_parts),
      cmocka_unit_test(a_trace_has_each_step),
      cmocka_unit_test(bad_traces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
