/* Plans and their files: every plan can be written, read and written again with the same bytes, and runs. Allocations may fail
 * anywhere. Invalid edits of a file are rejected with their place. */
#include "base/text.h"
#include "execute/session.h"
#include "machine.h"
#include "plan/compare.h"

#define ADDS "{\"name\": \"adds\", \"operators\": {\"Add\": {}, \"Sub\": {}, \"Identity\": {}, \"Relu\": {}, \"Reshape\": {}}}"
#define LIMITED                                                                                                           \
  "{\"name\": \"limited\", \"operators\": \"all\", \"max_partition_nodes\": 3, \"max_partition_inputs\": 4, \"memory\": " \
  "\"24M\"}"
#define SHARED "{\"name\": \"near\", \"operators\": \"all\", \"memory_space\": \"one\"}"
#define SHARED_TOO "{\"name\": \"close\", \"operators\": {\"MatMul\": {}, \"Mul\": {}}, \"memory_space\": \"one\"}"

static const char *const splits[] = {NULL, "linear", "convex", "fewest"};
static const char *const objectives[] = {"latency", "overlap", "throughput"};
enum { SPLITS = 4, OBJECTIVES = 3 };

typedef struct way {
  const char *list;
  uint32_t spec_count;
  const char *specs[2];
} way;
static const way ways[] = {
    {"cpu", 0, {NULL}},
    {"npu,cpu", 0, {NULL}},
    {"cpu,npu", 0, {NULL}}, /* the last device does not use host memory */
    {"adds,limited,cpu", 2, {ADDS, LIMITED}},
    {"close,near,cpu", 2, {SHARED, SHARED_TOO}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void say(char text[160], const char *list, const clv_plan_options *options) {
  snprintf(text, 160, "%s, %s, split %s, %s", list, options->strategy, options->split == NULL ? "its own" : options->split,
           options->objective);
}

/* Checks that the plan's file can be read, and gives the same bytes if it is written again. */
static void check_file(machine *m, const clv_plan *plan, const char *what) {
  clv_error error = {0};
  clv_plan *again = NULL;
  char *text = json_of(plan);
  clv_status status = clv__plan_parse(plan->graph, m->devices, text, strlen(text), NULL, &again, &error);
  if (status != CLV_OK) fail_msg("%s: the file that was written from the plan is rejected: %s", what, error.message);
  char *text_again = json_of(again);
  size_t at = 0;
  while (text[at] != '\0' && text[at] == text_again[at]) ++at;
  if (text[at] != text_again[at]) {
    size_t from = at < 60 ? 0 : at - 60;
    fail_msg("%s: after reading and writing the file again, its text differs:\n%.120s\n---\n%.120s", what, text + from,
             text_again + from);
  }
  clv__release(plan->graph->allocator, text_again);
  clv__release(plan->graph->allocator, text);
  clv_plan_destroy(again);
}

/* Runs and verifies the plan. All tensors of the random graphs have 32 floats. */
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
  assert_ok(clv__session_verify(session, inputs, plan->graph->input_count, NULL, &mismatch, &error), error);
  if (mismatch.partition != CLV__NO_ID) fail_msg("%s: the results of partition %u are wrong", what, mismatch.partition);
  clv_session_destroy(session);
}

static void each_way_of_planning(machine *m, const clv_graph *graph, const char *list, clv_plan_options options, bool run) {
  for (uint32_t s = 0; s < strategy_count() * SPLITS * OBJECTIVES; ++s) {
    char what[160];
    clv_error error = {0};
    clv_plan *plan;
    options.strategy = clv__strategies[s % strategy_count()]->name;
    options.split = splits[s / strategy_count() % SPLITS];
    options.objective = objectives[s / strategy_count() / SPLITS];
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

/* ---- Streamed weights and kept values ---- */

/* Makes a chain of four matrix products, each with a weight of 1 MiB. */
static clv_graph *heavy_chain(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 512));
  for (int i = 0; i < 4; ++i) {
    char weight[16], inputs[32], output[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, DIMS(512, 512));
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  return test_graph_end(&g, "v4");
}

static clv_devices *limited_devices(clv_context *context, const char *list, const char *spec, uint32_t kibibytes) {
  clv_error error = {0};
  char option[64];
  clv_devices *opened;
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  snprintf(option, sizeof option, "npu:memory=%uK", kibibytes);
  const char *given = option;
  devices.list = list;
  devices.npu_specs = &spec;
  devices.npu_spec_count = 1;
  devices.device_options = &given;
  devices.device_option_count = 1;
  assert_ok(clv_devices_open(context, &devices, &opened, &error), error);
  return opened;
}

static void open_limited(machine *m, const char *list, const char *spec, uint32_t kibibytes) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  m->devices = limited_devices(m->context, list, spec, kibibytes);
}

/* Makes a plan with the options and checks that the row of the comparison has the same results, or also a refusal. */
static void check_row(machine *m, const clv_plan *plan, const clv_plan_options *options, const clv__comparison *row) {
  clv_error error = {0};
  clv_plan *other;
  clv_status status = clv_plan_make(plan->graph, m->devices, options, &other, &error);
  if ((status == CLV_OK) != (row->refusal == NULL))
    fail_msg("%s: planning and the comparison disagree: %s %s; the comparison: %s", row->name, clv_status_name(status),
             error.message, row->refusal == NULL ? "has a plan" : row->refusal);
  if (status != CLV_OK) {
    assert_string_not_equal(row->refusal, "");
    return;
  }
  assert_int_equal(row->partitions, other->partition_count);
  assert_int_equal(row->predicted_ns, other->predicted_ns);
  clv_plan_destroy(other);
}

/* Checks that the rows of strategies and devices state plans within the memory limits. Returns how many of the rows are
 * refused. */
static uint32_t check_comparison(machine *m, const clv_plan *plan, const clv_plan_options *given) {
  clv_error error = {0};
  clv__arena arena;
  clv__comparison *rows;
  uint32_t count, refused = 0;
  clv__arena_init(&arena, &m->counting.allocator);
  assert_ok(clv__plan_compare(plan, NULL, &arena, &rows, &count, &error), error);
  for (uint32_t i = 0; i < count; ++i) {
    clv_plan_options options = *given;
    clv_assignment pin = {"*", rows[i].name};
    options.strategy = rows[i].is_single ? "contiguous" : rows[i].name;
    if (rows[i].is_single) options.pins = &pin, options.pin_count = 1;
    check_row(m, plan, &options, &rows[i]);
    refused += rows[i].refusal != NULL;
  }
  clv__arena_finish(&arena);
  return refused;
}

static void comparisons_keep_limits(void **state) {
  (void)state;
  uint32_t refused = 0, compared = 0;
  for (uint32_t kibibytes = 16; kibibytes <= 6000; kibibytes *= 2) {
    machine m;
    clv_error error = {0};
    open_limited(&m, "npu,cpu", "all", kibibytes);
    clv_graph *graph = heavy_chain(&m.counting.allocator);
    for (uint32_t o = 0; o < OBJECTIVES; ++o) {
      clv_plan *plan;
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.objective = objectives[o];
      assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
      refused += check_comparison(&m, plan, &options);
      ++compared;
      clv_plan_destroy(plan);
    }
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  assert_true(refused > 0 && refused < compared * 2); /* only the row 'all on npu' is refused, at the smallest memories */
}

/* A plan made for a memory is refused on a device that has less than the plan needs. */
static void files_keep_limits(void **state) {
  (void)state;
  clv_error error = {0};
  clv_plan *plan, *again;
  machine m;
  open_limited(&m, "npu,cpu", "all", 4000);
  clv_graph *graph = heavy_chain(&m.counting.allocator);
  clv_assignment pin = {"*", "npu"};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.pins = &pin, options.pin_count = 1;
  assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
  char *text = json_of(plan);
  uint32_t below = (uint32_t)((plan->needs[0].total_bytes - 1) / 1024);
  for (uint32_t more = 0; more < 2; ++more) {
    clv_devices *devices = limited_devices(m.context, "npu,cpu", "all", below + more);
    clv_status status = clv__plan_parse(graph, devices, text, strlen(text), NULL, &again, &error);
    if (status != (more == 0 ? CLV_NOT_SUPPORTED : CLV_OK) || (more == 0 && strstr(error.message, "npu") == NULL))
      fail_msg("%u KiB: status %s, expected %s: %s", below + more, clv_status_name(status),
               more == 0 ? "CLV_NOT_SUPPORTED and an error that names npu" : "CLV_OK", error.message);
    clv_plan_destroy(again);
    clv_devices_close(devices);
  }
  clv__release(graph->allocator, text);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Plans and runs the chain with limited NPU memory, pinned to the NPU or not. `spec` says whether the NPU accepts weights as
 * inputs. Returns the sum of streamed_of() over all plans. */
static uint32_t with_memory(const char *spec, uint32_t kibibytes, bool pinned, uint32_t *refused) {
  float data[4 * 512];
  uint32_t streamed = 0, by_optimal = 0, by_contiguous = 0;
  uint64_t seed = 3;
  machine m;
  open_limited(&m, "npu,cpu", spec, kibibytes);
  clv_graph *graph = heavy_chain(&m.counting.allocator);
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = f32(2, DIMS(4, 512), data);
  clv_assignment pin = {"*", "npu"};
  for (uint32_t s = 0; s < strategy_count() * OBJECTIVES; ++s) {
    char what[160];
    clv_error error = {0};
    clv_plan *plan;
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = clv__strategies[s % strategy_count()]->name;
    options.objective = objectives[s / strategy_count()];
    options.pins = &pin, options.pin_count = pinned;
    say(what, spec, &options);
    clv_status status = clv_plan_make(graph, m.devices, &options, &plan, &error);
    if (status != CLV_OK) {
      if (!pinned || status != CLV_NOT_SUPPORTED)
        fail_msg("%s, %u KiB of memory: %s, expected a plan%s: %s", what, kibibytes, clv_status_name(status),
                 pinned ? " or CLV_NOT_SUPPORTED" : "", error.message);
      by_optimal += s % strategy_count() == 0;
      by_contiguous += s % strategy_count() == 1;
      ++*refused;
      continue;
    }
    streamed += streamed_of(plan);
    check_file(&m, plan, what);
    clv_session *session;
    status = clv_session_create(plan, NULL, &session, &error);
    if (status != CLV_OK)
      fail_msg("%s, %u KiB of memory: cannot create a session for the plan: %s", what, kibibytes, error.message);
    machine_check_run(session, plan, &input, what);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
  }
  assert_true(by_optimal <= by_contiguous); /* `optimal` does not fail more often than `contiguous` */
  clv_graph_destroy(graph);
  machine_close(&m);
  return streamed;
}

static void every_memory(void **state) {
  (void)state;
  static const char constant[] = "{\"operators\": {\"MatMul\": {\"constant_inputs\": [1]}}}";
  uint32_t refused = 0, streamed = 0;
  for (uint32_t kibibytes = 3300; kibibytes <= 5100; kibibytes += 600) {
    streamed += with_memory("all", kibibytes, false, &refused);
    streamed += with_memory("all", kibibytes, true, &refused);
    assert_int_equal(with_memory(constant, kibibytes, false, &refused), 0);
    assert_int_equal(with_memory(constant, kibibytes, true, &refused), 0);
  }
  assert_true(streamed > 0 && refused > 0);
}

/* The last device has less memory: what does not fit moves to the device before it. */
static void the_last_device_is_small(void **state) {
  (void)state;
  for (uint32_t kibibytes = 1; kibibytes <= 64; kibibytes *= 4) {
    machine m;
    open_limited(&m, "cpu,npu", "default", kibibytes);
    clv_graph *graph = test_random_graph(&m.counting.allocator, kibibytes, 25);
    clv_assignment weight = {"w", "npu"}, value = {"v*", "npu"};
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.weights = &weight, options.weight_count = 1;
    options.values = &value, options.value_count = 1;
    each_way_of_planning(&m, graph, "cpu,npu", options, true);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* A plan that is read from its file keeps the same values as the plan that was written. */
static void kept_values_stay(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 0, NULL);
  clv_graph *graph = test_random_graph(&m.counting.allocator, 4, 20);
  const char *keeps[] = {"v5", "v0", "v12", "v5"};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.keeps = keeps;
  options.keep_count = 4;
  each_way_of_planning(&m, graph, "kept", options, true);
  clv_error error = {0};
  clv_plan *plan, *again;
  assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
  char *text = json_of(plan);
  assert_ok(clv__plan_parse(graph, m.devices, text, strlen(text), NULL, &again, &error), error);
  assert_int_equal(again->kept_count, 4);
  for (uint32_t i = 0; i < 4; ++i) assert_int_equal(again->kept[i], plan->kept[i]);
  clv__release(graph->allocator, text);
  clv_plan_destroy(again);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Files that were edited ---- */

typedef struct edit {
  const char *from, *to; /* replaces the first `from` after `after` by `to` */
  const char *after;
  const char *message; /* the expected error; NULL: the edit is valid */
} edit;

static void try_edit(machine *m, const clv_graph *graph, const char *text, const edit *e) {
  clv_error error = {0};
  clv_plan *plan = NULL;
  const char *start = strstr(text, e->after), *at = start == NULL ? NULL : strstr(start, e->from);
  if (at == NULL) fail_msg("the plan's text does not contain '%s' after '%s'", e->from, e->after);
  clv__text edited;
  clv__text_init(&edited, graph->allocator);
  clv__text_append_bytes(&edited, text, (size_t)(at - text));
  clv__text_append(&edited, "%s%s", e->to, at + strlen(e->from));
  clv_status status = clv__plan_parse(graph, m->devices, edited.data, edited.size_bytes, NULL, &plan, &error);
  clv__text_finish(&edited);
  if (e->message == NULL) {
    if (status != CLV_OK) fail_msg("the plan with '%s' instead of '%s' is rejected: %s", e->to, e->from, error.message);
    clv_plan_destroy(plan);
    return;
  }
  if (status == CLV_OK) fail_msg("the plan with '%s' instead of '%s' is accepted", e->to, e->from);
  assert_null(plan);
  if (strstr(error.message, e->message) == NULL) {
    fail_msg("for '%s' instead of '%s', the error message '%s' does not contain '%s'", e->to, e->from, error.message, e->message);
  }
}

static void edits(void **state) {
  (void)state;
  static const char spec[] =
      "{\"operators\": {\"Conv\": {}, \"Relu\": {}, \"MatMul\": {\"constant_inputs\": [1]}, \"Add\": {}, "
      "\"Concat\": {}, \"Softmax\": {}}, \"max_partition_nodes\": 5, \"max_partition_inputs\": 1}";
  static const edit all[] = {
      {"\"partitions\": [", "\"partitions\": {}, \"was\": [", "", "\"partitions\" must be a list"},
      {"\"nodes\": [", "\"nodes\": 5, \"was\": [", "\"transfers\"", "\"nodes\" must be a list"},
      {"\"nodes\": [", "\"nodes\": {}, \"was\": [", "\"partitions\"", "partition 0: \"nodes\" must be a list"},
      {"\"nodes\": [", "\"nodes\": [], \"was\": [", "\"partitions\"", "partition 0: it has no nodes"},
      {"\"nodes\": [", "\"nodes\": [7, ", "\"partitions\"", "partition 0: \"nodes\" must list names"},
      {"\"objective\": \"latency\"", "\"objective\": 7", "", "\"objective\" must be a string"},
      {"\"objective\": \"latency\"", "\"objective\": \"speed\"", "", "unknown objective 'speed'"},
      {"\"split\": \"linear\"", "\"split\": \"soup\"", "", "unknown split 'soup'"},
      {"\"split\": \"linear\"", "\"split\": null", "", "\"split\" must be a string"},
      {"\"strategy\": \"contiguous\"", "\"strategy\": []", "", "\"strategy\" must be a string"},
      {"\"sizes\": []", "\"sizes\": 3", "", "\"sizes\" must be a list"},
      {"\"sizes\": []", "\"sizes\": [{\"dim\": \"n\", \"size\": [-1]}]", "", "must list whole numbers of at least 0"},
      {"\"sizes\": []", "\"sizes\": [{\"dim\": \"n\", \"size\": [1e3]}]", "", "must list whole numbers of at least 0"},
      {"\"sizes\": []", "\"kept\": [\"nothing\"], \"sizes\": []", "", "no value named 'nothing'"},
      {"\"sizes\": []", "\"kept\": [null], \"sizes\": []", "", "kept[0]"},
      {"\"sizes\": []", "\"kept\": [\"r\"], \"sizes\": []", "", NULL},
      {"\"device\": \"npu\"", "\"device\": 0", "\"partitions\"", "partition 0: \"device\" must be a string"},
      {"\"cause\": \"", "\"cause\": 1, \"was\": \"", "\"transfers\"", "\"cause\" must be a string"},
      {"\"partitions\": [", "\"partitions\": [3, ", "", "partition 0: must be an object"},
      {"\"nodes\": [", "\"nodes\": [[], ", "\"transfers\"", "entry of \"nodes\" 0: must be an object"},
      {"\"weight_bytes\"", "\"streamed\": {}, \"weight_bytes\"", "\"partitions\"", "partition 0: \"streamed\" must be a list"},
      {"\"weight_bytes\"", "\"streamed\": [\"v\"], \"weight_bytes\"", "\"partitions\"", "the model has no weight 'v'"},
      {"\"weight_bytes\"", "\"streamed\": [\"w\"], \"weight_bytes\"", "\"partitions\"", NULL},
      {"\"weight_bytes\"", "\"streamed\": [\"m\"], \"weight_bytes\"", "\"partitions\"",
       "partition 0: node 'matmul': npu cannot run it with its weights streamed"},
      {"\"weight_bytes\"", "\"streamed\": [\"w\"], \"weight_bytes\"", "\"id\": 1", "weights cannot be streamed to cpu"},
      {"\"predicted_ms\": ", "\"predicted_ms\": -1, \"was\": ", "\"partitions\"",
       NULL}, /* the value is ignored: it is computed again */
      {"\"predicted_ms\": ", "\"predicted_ms\": NaN, \"was\": ", "\"partitions\"", "line"},
      {"\"predicted_ms\": ", "\"predicted_ms\": 1e999, \"was\": ", "\"partitions\"", "line"},
      {"\"id\": 0", "\"id\": 1000000000", "\"partitions\"", NULL},
      {"\"id\": 0", "\"id\": 0, \"id\": 0", "\"partitions\"", "line"},
      {"\"relu2\"\n", "\"relu2\",\n\"softmax\"\n", "\"partitions\"", "node 'softmax' is in two partitions"},
      {"\"device\": \"cpu\"", "\"device\": \"npu\"", "\"id\": 1", NULL},
  };
  machine m;
  const char *specs[] = {spec};
  machine_open(&m, "npu,cpu", 1, specs);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, "concat=cpu,softmax=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  char *text = json_of(plan);
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) try_edit(&m, graph, text, &all[i]);
  const edit more = {"\"relu2\"\n", "\"relu2\",\n\"concat\"\n", "\"partitions\"",
                     "partition 0 has 6 nodes; npu supports at most 5"};
  char *moved = strdup(text), *gone = strstr(strstr(moved, "\"id\": 1"), "\"concat\",");
  assert_non_null(gone);
  memset(gone, ' ', strlen("\"concat\","));
  try_edit(&m, graph, moved, &more);
  free(moved);
  clv__release(graph->allocator, text);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* A partition that an edit moves to another device must respect that device's limit on inputs. */
static void edits_beyond_the_inputs_of_a_device(void **state) {
  (void)state;
  machine m;
  const char *specs[] = {"{\"operators\": {\"Add\": {}, \"Relu\": {}}, \"max_partition_inputs\": 1}"};
  machine_open(&m, "npu,cpu", 1, specs);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 5);
  test_graph_input(&g, "a", CLV_F32, 2, (const int64_t[]){4, 8});
  test_graph_input(&g, "b", CLV_F32, 2, (const int64_t[]){4, 8});
  test_graph_node(&g, "add", "Add", "a,b", "sum");
  test_graph_node(&g, "relu", "Relu", "sum", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan *plan = machine_plan(&m, graph, "add=cpu,relu=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  char *text = json_of(plan);
  const edit moved = {"\"device\": \"cpu\"", "\"device\": \"npu\"", "\"partitions\"",
                      "partition 0 reads 2 values from outside; npu supports at most 1"};
  try_edit(&m, graph, text, &moved);
  clv__release(graph->allocator, text);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* A node that alone reads more values than a partition may is not supported there, so every strategy places it elsewhere. If no
 * other device runs it, or it is pinned, the plan is refused. */
static void a_node_beyond_the_inputs_of_a_device(void **state) {
  (void)state;
  static const char *const strategies[] = {"contiguous", "delegate", "ready", "propagate", "propagate-graph", "optimal"};
  machine m;
  const char *specs[] = {"{\"operators\": {\"Sum\": {}, \"Relu\": {}}, \"max_partition_inputs\": 2}"};
  machine_open(&m, "npu,cpu", 1, specs);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 5);
  for (uint32_t i = 0; i < 3; ++i) test_graph_input(&g, (const char *[]){"a", "b", "c"}[i], CLV_F32, 1, (const int64_t[]){8});
  test_graph_node(&g, "relu", "Relu", "a", "r");
  test_graph_node(&g, "sum", "Sum", "r,b,c", "s");
  test_graph_node(&g, "last", "Relu", "s", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; ++i) {
    options.strategy = strategies[i];
    clv_plan *plan = machine_plan(&m, graph, NULL, options);
    assert_int_equal(plan->placement.devices[1], 1);
    const char *reason = clv__capability_reason(&plan->capability, 1, 0);
    assert_non_null(reason);
    assert_string_equal(reason, "it reads 3 values; a partition may read at most 2");
    assert_null(clv__capability_reason(&plan->capability, 0, 0));
    clv_plan_destroy(plan);
    const clv_assignment pin = {"sum", "npu"};
    options.pins = &pin;
    options.pin_count = 1;
    clv_error error;
    assert_int_equal(clv_plan_make(graph, m.devices, &options, &plan, &error), CLV_NOT_SUPPORTED);
    if (strstr(error.message, "node 'sum' reads 3 values from outside its partition; npu supports at most 2") == NULL)
      fail_msg("%s: the error must state that 'sum' reads 3 values and npu supports 2: %s", strategies[i], error.message);
    options.pin_count = 0;
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Six products in a row, the weights of three placed on each device. With offload `auto`, the default, a product of one row
 * runs where its weight is; products of many rows run on the npu, because they are worth the copies of their weights. `on` and
 * `off` force either. */
static void offload_weighs_the_weights(void **state) {
  (void)state;
  static const struct {
    const char *offload;
    int64_t rows;
    bool goes;
  } cases[] = {{NULL, 1, false},  {"auto", 1, false},   {"on", 1, true},
               {"off", 1, false}, {"auto", 4096, true}, {"off", 4096, false}};
  static const clv_assignment homes[] = {{"w0", "npu"}, {"w1", "npu"}, {"w2", "npu"},
                                         {"w3", "cpu"}, {"w4", "cpu"}, {"w5", "cpu"}};
  machine m;
  machine_open(&m, "npu,cpu", 0, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    test_graph g;
    test_graph_begin(&g, &m.counting.allocator, 6);
    test_graph_input(&g, "v0", CLV_F32, 2, (const int64_t[]){cases[i].rows, 512});
    for (int n = 0; n < 6; ++n) {
      char weight[8], inputs[16], output[8];
      snprintf(weight, sizeof weight, "w%d", n);
      snprintf(inputs, sizeof inputs, "v%d,w%d", n, n);
      snprintf(output, sizeof output, "v%d", n + 1);
      test_graph_weight(&g, weight, 2, (const int64_t[]){512, 512});
      test_graph_node(&g, weight, "MatMul", inputs, output);
    }
    clv_graph *graph = test_graph_end(&g, "v6");
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = "propagate";
    options.offload = cases[i].offload;
    options.weights = homes;
    options.weight_count = 6;
    clv_plan *plan = machine_plan(&m, graph, NULL, options);
    for (uint32_t n = 0; n < 6; ++n) {
      assert_int_equal(plan->placement.devices[n], n < 3 || cases[i].goes ? 0 : 1);
      assert_string_equal(plan->placement.causes[n], n >= 3 && cases[i].goes ? "1.off" : "1.wgt1");
    }
    if (!cases[i].goes) assert_int_equal(plan->partition_count, 2);
    clv_plan_destroy(plan);
    options.offload = "soup";
    clv_error error;
    assert_int_equal(clv_plan_make(graph, m.devices, &options, &plan, &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "offload 'soup' is unknown; expected one of: auto, on, off"));
    clv_graph_destroy(graph);
  }
  machine_close(&m);
}

/* A what-if plan can neither be run nor read back as an ordinary plan, unless the devices support all its operators anyway. */
static void supposed_plans(void **state) {
  (void)state;
  machine m;
  const char *specs[] = {ADDS};
  machine_open(&m, "adds,cpu", 1, specs);
  clv_graph *graph = test_random_graph(&m.counting.allocator, 6, 30);
  const clv_assignment supposes[] = {{"MatMul", "adds"}, {"Add", "adds"}};
  for (uint32_t i = 0; i < 2; ++i) {
    clv_error error = {0};
    clv_plan *plan, *again = NULL;
    clv_session *session = NULL;
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = "contiguous";
    options.supposes = &supposes[i], options.suppose_count = 1;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    char *text = json_of(plan);
    clv_status status = clv_session_create(plan, NULL, &session, &error);
    clv_status read = clv__plan_parse(graph, m.devices, text, strlen(text), NULL, &again, &error);
    assert_int_equal(status, i == 0 ? CLV_NOT_SUPPORTED : CLV_OK);
    assert_int_equal(read, i == 0 ? CLV_NOT_SUPPORTED : CLV_OK);
    clv_session_destroy(session);
    clv__release(graph->allocator, text);
    clv_plan_destroy(again);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Graphs with at most two nodes to run ---- */

static void nothing_to_do(void **state) {
  (void)state;
  for (uint32_t w = 0; w < WAYS; ++w) {
    machine m;
    machine_open(&m, ways[w].list, ways[w].spec_count, ways[w].specs);
    for (int kind = 0; kind < 4; ++kind) {
      test_graph g;
      test_graph_begin(&g, &m.counting.allocator, 1);
      test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
      test_graph_weight(&g, "w", 2, DIMS(4, 8));
      if (kind >= 1) test_graph_node(&g, "fold", "Add", "w,w", "w2");
      if (kind >= 2) test_graph_node(&g, "same", "Identity", "x", "y");
      if (kind >= 3) test_graph_node(&g, "add", "Add", "y,w2", "z");
      clv_graph *graph = test_graph_end(&g, kind == 0 ? "x" : kind == 1 ? "x,w2" : kind == 2 ? "y,x,w2" : "z,y,w2,z");
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      each_way_of_planning(&m, graph, ways[w].list, options, true);
      clv_graph_destroy(graph);
    }
    machine_close(&m);
  }
}

/* ---- An allocator that fails ---- */

typedef clv_status (*step_fn)(machine *m, const clv_plan *plan, clv_plan_options *options, clv_error *error);

static clv_status make(machine *m, const clv_plan *plan, clv_plan_options *options, clv_error *error) {
  clv_plan *made = NULL;
  clv_status status = clv_plan_make(plan->graph, m->devices, options, &made, error);
  assert_true((status == CLV_OK) == (made != NULL));
  clv_plan_destroy(made);
  return status;
}

static clv_status compare(machine *m, const clv_plan *plan, clv_plan_options *options, clv_error *error) {
  (void)options;
  clv__comparison *rows;
  uint32_t count;
  clv__arena arena;
  clv__arena_init(&arena, &m->counting.allocator);
  clv_status status = clv__plan_compare(plan, NULL, &arena, &rows, &count, error);
  clv__arena_finish(&arena);
  return status;
}

static clv_status what_if(machine *m, const clv_plan *plan, clv_plan_options *options, clv_error *error) {
  clv__what_if *rows;
  uint32_t count;
  clv__arena arena;
  clv__arena_init(&arena, &m->counting.allocator);
  clv_status status = clv__plan_what_if_all(plan, options, &arena, &rows, &count, error);
  if (status == CLV_OK) assert_true(count > 0);
  clv__arena_finish(&arena);
  return status;
}

static clv_status parse(machine *m, const clv_plan *plan, clv_plan_options *options, clv_error *error) {
  (void)options;
  clv_plan *again = NULL;
  size_t fail_at = m->counting.fail_at;
  m->counting.fail_at = 0;
  char *text = json_of(plan);
  m->counting.fail_at = fail_at;
  m->counting.calls = 0;
  clv_status status = clv__plan_parse(plan->graph, m->devices, text, strlen(text), NULL, &again, error);
  assert_true((status == CLV_OK) == (again != NULL));
  clv_plan_destroy(again);
  clv__release(plan->graph->allocator, text);
  return status;
}

/* Lets allocations of the step fail, one per call: first each of them, later fewer and fewer. If a device has no memory to
 * check whether it can run a node, it rejects the node, and the step may fail with `refusal` instead. */
static void sweep(machine *m, const clv_plan *plan, clv_plan_options *options, step_fn step, const char *what,
                  const char *refusal) {
  size_t live = m->counting.live;
  bool failed = true;
  for (size_t n = 1; failed; n += 1 + n / test_some(60)) {
    clv_error error = {0};
    m->counting.calls = 0;
    m->counting.fail_at = n;
    clv_status status = step(m, plan, options, &error);
    m->counting.fail_at = 0;
    failed = m->counting.calls >= n;
    assert_true(failed || status == CLV_OK);
    if (m->counting.live != live)
      fail_msg("%s: after allocation %zu failed, %zu allocations are not released", what, n, m->counting.live - live);
    bool refused = status == CLV_NOT_SUPPORTED && strstr(error.message, refusal) != NULL;
    if (status != CLV_OK && status != CLV_OUT_OF_MEMORY && !refused) {
      fail_msg("%s: after allocation %zu failed, status %s, expected CLV_OK, CLV_OUT_OF_MEMORY or a refusal with '%s': %s", what,
               n, clv_status_name(status), refusal, error.message);
    }
  }
}

static void allocations_fail(void **state) {
  (void)state;
  machine m;
  static const char *const specs[] = {ADDS, LIMITED};
  machine_open(&m, "adds,limited,cpu", 2, specs);
  clv_graph *graph = test_random_graph(&m.counting.allocator, 9, 14);
  clv_error error = {0};
  clv_assignment value = {"v1", "adds"};
  const char *keep = "v5";
  for (uint32_t s = 0; s < strategy_count() * 2; ++s) {
    clv_plan *plan;
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = clv__strategies[s % strategy_count()]->name;
    options.split = s < strategy_count() ? NULL : "convex";
    options.record_passes = true;
    options.values = &value, options.value_count = 1;
    options.keeps = &keep, options.keep_count = 1;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    sweep(&m, plan, &options, make, options.strategy, "out of memory");
    sweep(&m, plan, &options, parse, "reading", "out of memory");
    if (s == 0 || s == 2) sweep(&m, plan, &options, compare, "comparing", "out of memory");
    if (s == 1) sweep(&m, plan, &options, what_if, "what if", "out of memory");
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Allocations also fail in plans with streamed weights, which are cut several times. */
static void allocations_fail_while_streaming(void **state) {
  (void)state;
  machine m;
  open_limited(&m, "npu,cpu", "all", 4300);
  clv_graph *graph = heavy_chain(&m.counting.allocator);
  clv_assignment pin = {"*", "npu"};
  for (uint32_t s = 0; s < 2; ++s) {
    clv_error error = {0};
    clv_plan *plan;
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = clv__strategies[s]->name;
    options.pins = &pin, options.pin_count = 1;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    assert_true(streamed_of(plan) > 0);
    sweep(&m, plan, &options, make, options.strategy, "is pinned to npu");
    sweep(&m, plan, &options, parse, "reading", "cannot run it");
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_say_all),
      cmocka_unit_test(every_memory),
      cmocka_unit_test(comparisons_keep_limits),
      cmocka_unit_test(files_keep_limits),
      cmocka_unit_test(the_last_device_is_small),
      cmocka_unit_test(kept_values_stay),
      cmocka_unit_test(edits),
      cmocka_unit_test(edits_beyond_the_inputs_of_a_device),
      cmocka_unit_test(a_node_beyond_the_inputs_of_a_device),
      cmocka_unit_test(offload_weighs_the_weights),
      cmocka_unit_test(supposed_plans),
      cmocka_unit_test(nothing_to_do),
      cmocka_unit_test(allocations_fail),
      cmocka_unit_test(allocations_fail_while_streaming),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
