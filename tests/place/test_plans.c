/* Plans and their files: whatever is planned is written, read and written again as the same bytes, runs, and survives an
 * allocator that fails anywhere; what an edit broke is refused with the place. */
#include "execute/session.h"
#include "machine.h"
#include "place/compare.h"

#define ADDS "{\"name\": \"adds\", \"operators\": {\"Add\": {}, \"Sub\": {}, \"Identity\": {}, \"Relu\": {}, \"Reshape\": {}}}"
#define LIMITED \
  "{\"name\": \"limited\", \"operators\": \"all\", \"max_partition_nodes\": 3, \"max_partition_inputs\": 4, \"memory\": \"24M\"}"
#define SHARED "{\"name\": \"near\", \"operators\": \"all\", \"memory_space\": \"one\"}"
#define SHARED_TOO "{\"name\": \"close\", \"operators\": {\"MatMul\": {}, \"Mul\": {}}, \"memory_space\": \"one\"}"

static const char *const strategies[] = {"optimal", "contiguous", "propagate", "propagate-graph", "delegate", "ready"};
static const char *const splits[] = {NULL, "linear", "convex", "fewest"};
static const char *const objectives[] = {"latency", "overlap", "throughput"};
enum { STRATEGIES = 6, SPLITS = 4, OBJECTIVES = 3 };

typedef struct way {
  const char *list;
  uint32_t spec_count;
  const char *specs[2];
} way;
static const way ways[] = {
    {"cpu", 0, {NULL}},
    {"npu,cpu", 0, {NULL}},
    {"cpu,npu", 0, {NULL}}, /* the last device is not the host's */
    {"adds,limited,cpu", 2, {ADDS, LIMITED}},
    {"close,near,cpu", 2, {SHARED, SHARED_TOO}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static char *json_of(const clv_plan *plan) {
  clv_error error = {0};
  char *text;
  assert_ok(clv__plan_to_json(plan, false, &text, &error), error);
  return text;
}

static void say(char text[160], const char *list, const clv_plan_options *options) {
  snprintf(text, 160, "%s, %s, split %s, %s", list, options->strategy, options->split == NULL ? "its own" : options->split,
           options->objective);
}

/* Written, read, written again. */
static void check_file(machine *m, const clv_plan *plan, const char *what) {
  clv_error error = {0};
  clv_plan *again = NULL;
  char *text = json_of(plan);
  clv_status status = clv__plan_parse(plan->graph, m->devices, text, strlen(text), NULL, &again, &error);
  if (status != CLV_OK) fail_msg("%s: its own file is refused: %s", what, error.message);
  char *text_again = json_of(again);
  size_t at = 0;
  while (text[at] != '\0' && text[at] == text_again[at]) ++at;
  if (text[at] != text_again[at]) {
    size_t from = at < 60 ? 0 : at - 60;
    fail_msg("%s: read and written again it differs:\n%.120s\n---\n%.120s", what, text + from, text_again + from);
  }
  clv__release(plan->graph->allocator, text_again);
  clv__release(plan->graph->allocator, text);
  clv_plan_destroy(again);
}

/* All tensors of the tests' graphs are of 32 floats. */
static void check_run(const clv_plan *plan, const char *what) {
  float data[2][32];
  uint64_t seed = 5;
  clv_tensor inputs[2];
  assert_true(plan->graph->input_count <= 2);
  for (uint32_t i = 0; i < plan->graph->input_count; ++i) {
    for (uint32_t k = 0; k < 32; ++k) data[i][k] = test_random_float(&seed);
    inputs[i] = *clv_graph_input_type(plan->graph, i);
    inputs[i].data = data[i];
  }
  clv_error error = {0};
  clv__mismatch mismatch;
  clv_session *session = machine_session(plan);
  machine_check_run(session, plan, inputs, what);
  assert_ok(clv__session_verify(session, inputs, plan->graph->input_count, &mismatch, &error), error);
  if (mismatch.partition != CLV__NO_ID) fail_msg("%s: partition %u differs", what, mismatch.partition);
  clv_session_destroy(session);
}

static void each_way_of_planning(machine *m, const clv_graph *graph, const char *list, clv_plan_options options, bool run) {
  for (uint32_t s = 0; s < STRATEGIES * SPLITS * OBJECTIVES; ++s) {
    char what[160];
    clv_error error = {0};
    clv_plan *plan;
    options.strategy = strategies[s % STRATEGIES];
    options.split = splits[s / STRATEGIES % SPLITS];
    options.objective = objectives[s / STRATEGIES / SPLITS];
    say(what, list, &options);
    clv_status status = clv_plan_make(graph, m->devices, &options, &plan, &error);
    if (status != CLV_OK) fail_msg("%s: %s", what, error.message);
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      uint32_t most = m->devices->items[plan->partitions[p].device].info.max_partition_nodes;
      assert_true(most == 0 || plan->partitions[p].node_count <= most);
    }
    check_file(m, plan, what);
    if (run) check_run(plan, what);
    clv_plan_destroy(plan);
  }
}

static void files_say_all(void **state) {
  (void)state;
  for (uint32_t w = 0; w < WAYS; ++w) {
    machine m;
    machine_open(&m, ways[w].list, ways[w].spec_count, ways[w].specs);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 12 + 12 * (uint32_t)seed);
      clv_assignment pin = {"n/1*", "cpu"}, value = {"v1", m.devices->items[0].name}, weight = {"w", m.devices->items[0].name};
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.pins = &pin, options.pin_count = seed % 2;
      options.values = &value, options.value_count = seed == 2;
      options.weights = &weight, options.weight_count = seed == 2;
      each_way_of_planning(&m, graph, ways[w].list, options, seed == 1);
      clv_graph_destroy(graph);
    }
    machine_close(&m);
  }
}

/* ---- Weights that are streamed, values that are kept ---- */

/* Four products with weights of 1 MiB, and as much to work with. */
static clv_graph *heavy_chain(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 512));
  for (int i = 0; i < 4; ++i) {
    char weight[8], inputs[24], output[8];
    snprintf(weight, sizeof weight, "w%d", i); /* one is read twice */
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, DIMS(512, 512));
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  return test_graph_end(&g, "v4");
}

static void open_limited(machine *m, const char *list, const char *spec, uint32_t kibibytes) {
  clv_error error = {0};
  char option[64];
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  snprintf(option, sizeof option, "npu:memory=%uK", kibibytes);
  const char *given = option;
  devices.list = list;
  devices.npu_specs = &spec;
  devices.npu_spec_count = 1;
  devices.device_options = &given;
  devices.device_option_count = 1;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

static uint32_t streamed_of(const clv_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->transfer_count; ++i) count += plan->transfers[i].boundary == CLV__BOUNDARY_WEIGHT;
  return count;
}

/* The specification says whether the NPU takes weights as inputs. Pinned or not, what can be planned runs. */
static uint32_t with_memory(const char *spec, uint32_t kibibytes, bool pinned, uint32_t *refused) {
  float data[4 * 512];
  uint32_t streamed = 0;
  uint64_t seed = 3;
  machine m;
  open_limited(&m, "npu,cpu", spec, kibibytes);
  clv_graph *graph = heavy_chain(&m.counting.allocator);
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = f32(2, DIMS(4, 512), data);
  clv_assignment pin = {"*", "npu"};
  for (uint32_t s = 0; s < STRATEGIES * OBJECTIVES; ++s) {
    char what[160];
    clv_error error = {0};
    clv_plan *plan;
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = strategies[s % STRATEGIES];
    options.objective = objectives[s / STRATEGIES];
    options.pins = &pin, options.pin_count = pinned;
    say(what, spec, &options);
    clv_status status = clv_plan_make(graph, m.devices, &options, &plan, &error);
    if (status != CLV_OK) {
      if (!pinned || status != CLV_NOT_SUPPORTED) fail_msg("%s, %uK: %s", what, kibibytes, error.message);
      if (pinned && s < 2) print_message("%s %uK: %s\n", what, kibibytes, error.message);
      ++*refused;
      continue;
    }
    streamed += streamed_of(plan);
    check_file(&m, plan, what);
    clv_session *session;
    status = clv_session_create(plan, NULL, &session, &error);
    if (status != CLV_OK) fail_msg("%s, %uK: planned, but: %s", what, kibibytes, error.message);
    machine_check_run(session, plan, &input, what);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
  return streamed;
}

static void every_memory(void **state) {
  (void)state;
  static const char constant[] = "{\"operators\": {\"MatMul\": {\"constant_inputs\": [1]}}}";
  uint32_t refused = 0, streamed = 0;
  for (uint32_t kibibytes = 3300; kibibytes <= 5100; kibibytes += 300) {
    uint32_t before = streamed;
    streamed += with_memory("all", kibibytes, false, &refused);
    streamed += with_memory("all", kibibytes, true, &refused);
    print_message("%uK: %u\n", kibibytes, streamed - before);
    assert_int_equal(with_memory(constant, kibibytes, false, &refused), 0);
    assert_int_equal(with_memory(constant, kibibytes, true, &refused), 0);
  }
  print_message("streamed %u, refused %u\n", streamed, refused);
  assert_true(streamed > 0 && refused > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_say_all),
      cmocka_unit_test(every_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
