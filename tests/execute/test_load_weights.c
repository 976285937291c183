/* Weights that a session replaces: its outputs must be those of a new session of a model with these weights, bit for bit, whether
 * weights are packed, folded, streamed, captured, defaults of inputs or outputs. Errors leave the session as it was. Also run
 * this test under ThreadSanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "../analysis/bodies.h"
#include "../cache/folder.h"
#include "backends/vnpu/vnpu.h"
#include "machine.h"

enum { WEIGHTS = 6, MOST_NODES = 18, MOST_OUTPUTS = 16, ELEMENTS = 32 };

/* ---- Random graphs ---- */

/* Which random numbers each weight has. */
typedef struct versions {
  uint32_t of[WEIGHTS];
} versions;

static const struct {
  const char *name;
  int32_t rank;
  int64_t dims[4];
} kinds[WEIGHTS] = {{"w0", 2, {8, 8}},     {"w1", 2, {8, 8}},      {"b0", 1, {8}},
                    {"table", 2, {16, 8}}, {"k", 4, {8, 8, 1, 3}}, {"v1", 2, {4, 8}} /* also an input */};

static size_t count_of(uint32_t weight) {
  size_t count = 1;
  for (int32_t i = 0; i < kinds[weight].rank; ++i) count *= (size_t)kinds[weight].dims[i];
  return count;
}

static void fill_weight(uint32_t weight, uint32_t version, float *data) {
  uint64_t seed = weight * 1000 + version + 1;
  for (size_t i = 0; i < count_of(weight); ++i) data[i] = test_random_float(&seed) * 0.5f;
}

static void add_weight(test_graph *g, uint32_t weight, uint32_t version) {
  float data[512];
  assert_true(count_of(weight) <= 512);
  fill_weight(weight, version, data);
  clv_tensor tensor = f32(kinds[weight].rank, kinds[weight].dims, data);
  test_graph_constant(g, kinds[weight].name, &tensor);
}

/* Adds a node on values [4,8]. Some read weights, some a value that is folded from weights, and one has a body that does. */
static void add_node(test_graph *g, uint32_t n, uint64_t *state) {
  static const char *const unary[] = {"Relu", "Tanh", "Sigmoid", "Neg"}, *const binary[] = {"Add", "Mul", "Sub", "Max"};
  static const char *const weighted[] = {"v%u,w0", "v%u,w1", "v%u,w0t", "v%u,w01"};
  char name[16], out[16], in[64], middle[24];
  uint32_t a = (uint32_t)(test_random(state) % (n + 2)), b = (uint32_t)(test_random(state) % (n + 2));
  if (test_random(state) % 3 == 0) a = n + 1;
  snprintf(name, sizeof name, "n%u", n);
  snprintf(out, sizeof out, "v%u", n + 2);
  snprintf(middle, sizeof middle, "m%u", n);
  switch (test_random(state) % 8) {
    case 0:
      snprintf(in, sizeof in, "v%u", a);
      test_graph_node(g, name, unary[test_random(state) % 4], in, out);
      break;
    case 1:
      snprintf(in, sizeof in, "v%u,v%u", a, b);
      test_graph_node(g, name, binary[test_random(state) % 4], in, out);
      break;
    case 2:
      snprintf(in, sizeof in, "v%u,b0", a);
      test_graph_node(g, name, binary[test_random(state) % 4], in, out);
      break;
    case 3: /* rows of a table */
      snprintf(in, sizeof in, "table,rows");
      test_graph_node(g, "", "Gather", in, middle);
      snprintf(in, sizeof in, "%s,v%u", middle, a);
      test_graph_node(g, name, "Add", in, out);
      break;
    case 4: /* a convolution */
      snprintf(in, sizeof in, "v%u,image", a);
      test_graph_node(g, "", "Reshape", in, middle);
      snprintf(in, sizeof in, "%s,k", middle);
      snprintf(middle, sizeof middle, "c%u", n);
      test_graph_node_ints(g, name, "Conv", in, middle, "pads", true, 4, DIMS(0, 1, 0, 1));
      snprintf(in, sizeof in, "%s,flat", middle);
      test_graph_node(g, "", "Reshape", in, out);
      break;
    case 5: { /* an If whose branches capture a weight */
      test_graph yes, no;
      test_graph_begin(&yes, clv__builder_arena(g->builder)->allocator, 1);
      test_graph_begin(&no, clv__builder_arena(g->builder)->allocator, 2);
      snprintf(in, sizeof in, "v%u,w1", a);
      test_graph_node(&yes, "", "MatMul", in, "r");
      snprintf(in, sizeof in, "v%u,b0", a);
      test_graph_node(&no, "", "Mul", in, "r");
      const clv_graph_view *then_branch = body_end(&yes, g, "r"), *else_branch = body_end(&no, g, "r");
      body_node(g, "If", "on", out, "then_branch", then_branch, "else_branch", else_branch, 0);
      break;
    }
    default:
      snprintf(in, sizeof in, weighted[test_random(state) % 4], a);
      test_graph_node(g, name, "MatMul", in, out);
  }
}

/* Values v0 (an input), v1 (an input with a default) and v2, v3, … of one node each. The output "w01" is a constant. */
static clv_graph *make_random(const clv_allocator *allocator, uint64_t seed, const versions *is) {
  test_graph g;
  uint64_t state = seed * 7919 + 5;
  char outputs[100] = "w01,b0";
  test_graph_begin(&g, allocator, seed);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 8));
  test_graph_input(&g, "on", CLV_BOOL, 0, NULL);
  for (uint32_t w = 0; w < WEIGHTS; ++w) add_weight(&g, w, is->of[w]);
  clv_error error = {0};
  assert_ok(clv__builder_input(g.builder, test_graph_value(&g, "v1"), &error), error);
  test_graph_ints(&g, "rows", 4, DIMS(3, 0, 15, 7));
  test_graph_ints(&g, "image", 4, DIMS(1, 8, 1, 4));
  test_graph_ints(&g, "flat", 2, DIMS(4, 8));
  test_graph_node_ints(&g, "", "Transpose", "w0", "w0t", "perm", true, 2, DIMS(1, 0));
  test_graph_node(&g, "", "MatMul", "w0,w1", "w01");
  uint32_t count = 6 + (uint32_t)(seed % (MOST_NODES - 6));
  for (uint32_t n = 0; n < count; ++n) {
    add_node(&g, n, &state);
    if (n + 1 < count && test_random(&state) % 6 != 0) continue;
    size_t used = strlen(outputs);
    if (used < 60 || n + 1 == count) snprintf(outputs + used, sizeof outputs - used, ",v%u", n + 2);
  }
  return test_graph_end(&g, outputs);
}

/* ---- Scenes ---- */

/* How a session is made. */
typedef struct way {
  const char *list, *spec;
  clv_backend_query_fn query; /* of the interposer "faulty"; NULL: there is none */
  interposer_hook hook;
  void *user_data;
  uint32_t in_flight;
  clv_capture_policy capture;
  bool is_free; /* no node is pinned */
} way;

typedef struct scene {
  way how;
  interposer *faulty;
  machine m;
  uint64_t seed;
  versions is;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} scene;

static void open_machine(scene *s) {
  clv_error error = {0};
  test_allocator_init(&s->m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &s->m.counting.allocator;
  context.cache_directory = "";
  context.capture = s->how.capture;
  assert_ok(clv_context_create(&context, &s->m.context, &error), error);
  if (s->how.query != NULL) {
    s->faulty = interposer_create(&(interposer_options){
        .name = "faulty", .query = s->how.query, .spec = "all", .hook = s->how.hook, .user_data = s->how.user_data});
    assert_ok(clv_context_add_backend(s->m.context, interposer_query, s->faulty, &error), error);
  }
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = s->how.list;
  devices.thread_count = 1;
  devices.npu_specs = &s->how.spec;
  devices.npu_spec_count = s->how.spec != NULL;
  assert_ok(clv_devices_open(s->m.context, &devices, &s->m.devices, &error), error);
}

/* Plans with random pins, the same for every graph of one seed. */
static clv_plan *plan_of(scene *s, const clv_graph *graph) {
  clv_assignment pins[3 * MOST_NODES + 2];
  uint32_t count = 0;
  uint64_t random = s->seed + 17;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    uint32_t device = (uint32_t)(test_random(&random) % clv_devices_count(s->m.devices));
    if (graph->nodes[n].name[0] == 'n' && !s->how.is_free)
      pins[count++] = (clv_assignment){graph->nodes[n].name, clv_devices_name(s->m.devices, device)};
  }
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.pins = pins;
  options.pin_count = count;
  clv_error error = {0};
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, s->m.devices, &options, &plan, &error), error);
  return plan;
}

static void begin(scene *s, uint64_t seed, way how) {
  clv_error error = {0};
  *s = (scene){.how = how, .seed = seed};
  open_machine(s);
  s->graph = make_random(&s->m.counting.allocator, seed, &s->is);
  s->plan = plan_of(s, s->graph);
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.in_flight = how.in_flight;
  assert_ok(clv_session_create(s->plan, &options, &s->session, &error), error);
}

static void end(scene *s) {
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_graph_destroy(s->graph);
  machine_close(&s->m);
  interposer_destroy(s->faulty);
}

/* The inputs of a run and its outputs in memory of their own. */
typedef struct job {
  float x[ELEMENTS], v1[ELEMENTS];
  bool on;
  clv_tensor inputs[3], outputs[MOST_OUTPUTS];
} job;

static void make_job(const clv_graph *graph, const clv_plan *plan, job *j, uint64_t seed) {
  *j = (job){.on = seed % 2 == 0};
  for (uint32_t i = 0; i < ELEMENTS; ++i) j->x[i] = test_random_float(&seed), j->v1[i] = test_random_float(&seed);
  j->inputs[0] = f32(2, DIMS(4, 8), j->x);
  j->inputs[1] = clv__tensor_make(CLV_BOOL, 0, NULL, &j->on);
  if (seed % 3 == 0) j->inputs[2] = f32(2, DIMS(4, 8), j->v1); /* otherwise the default, a weight */
  assert_true(graph->output_count <= MOST_OUTPUTS);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    size_t size_bytes;
    j->outputs[i] = plan->shapes->types[graph->outputs[i]];
    assert_true(clv__tensor_size_bytes(&j->outputs[i], &size_bytes));
    j->outputs[i].data = calloc(1, size_bytes);
  }
}

static void finish_job(const clv_graph *graph, job *j) {
  for (uint32_t i = 0; i < graph->output_count; ++i) free(j->outputs[i].data);
}

static void run_job(clv_session *session, const clv_graph *graph, job *j) {
  clv_error error = {0};
  assert_ok(clv_session_run(session, j->inputs, 3, j->outputs, graph->output_count, &error), error);
}

/* Returns the index of the first output that differs, or CLV__NO_ID. */
static uint32_t first_difference(const clv_graph *graph, const job *a, const job *b) {
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    size_t size_bytes;
    assert_true(clv__tensor_size_bytes(&a->outputs[i], &size_bytes));
    if (memcmp(a->outputs[i].data, b->outputs[i].data, size_bytes) != 0) return i;
  }
  return CLV__NO_ID;
}

/* Runs with the same inputs the scene's session and a new session of a model with the same weights. */
static void check(scene *s, uint64_t input_seed) {
  clv_graph *graph = make_random(&s->m.counting.allocator, s->seed, &s->is);
  clv_plan *plan = plan_of(s, graph);
  clv_session *fresh = machine_session(plan);
  for (uint64_t r = 0; r < 4; ++r) { /* the later ones may be replayed */
    job a, b;
    make_job(graph, plan, &a, input_seed + r);
    make_job(graph, plan, &b, input_seed + r);
    run_job(s->session, graph, &a);
    run_job(fresh, graph, &b);
    uint32_t wrong = first_difference(graph, &a, &b);
    if (wrong != CLV__NO_ID)
      fail_msg("%s, seed %llu, run %llu: output '%s' differs from that of a new session", s->how.list,
               (unsigned long long)s->seed, (unsigned long long)r, clv_graph_output_name(graph, wrong));
    finish_job(graph, &a);
    finish_job(graph, &b);
  }
  clv_session_destroy(fresh);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
}

/* Loads the weights of `which` (bits) in new versions. */
static clv_status load(scene *s, uint32_t which, uint32_t version, clv_error *error) {
  float data[WEIGHTS][512];
  const char *names[WEIGHTS];
  clv_tensor tensors[WEIGHTS];
  uint32_t count = 0;
  for (uint32_t w = 0; w < WEIGHTS; ++w) {
    if ((which >> w & 1u) == 0) continue;
    fill_weight(w, version, data[count]);
    names[count] = kinds[w].name;
    tensors[count] = f32(kinds[w].rank, kinds[w].dims, data[count]);
    ++count;
  }
  clv_status status = clv_session_load_weights(s->session, names, tensors, count, error);
  for (uint32_t w = 0; w < WEIGHTS && status == CLV_OK; ++w) s->is.of[w] = (which >> w & 1u) != 0 ? version : s->is.of[w];
  memset(data, 0xff, sizeof data); /* the session has copied them */
  return status;
}

static void check_verified(scene *s) {
  clv_error error = {0};
  clv__mismatch mismatch;
  job j;
  make_job(s->graph, s->plan, &j, 8);
  assert_ok(clv__session_verify(s->session, j.inputs, 3, NULL, &mismatch, &error), error);
  if (mismatch.partition != CLV__NO_ID) fail_msg("%s, seed %llu: not verified", s->how.list, (unsigned long long)s->seed);
  finish_job(s->graph, &j);
}

#define ANY "{\"operators\": \"all\", \"control_flow\": true}"
#define FIXED "{\"operators\": \"all\", \"static_shapes\": true}"
#define FIXED_ONE "{\"operators\": \"all\", \"static_shapes\": true, \"max_partition_nodes\": 1}"

static void random_graphs(void **state) {
  (void)state;
  const way ways[] = {{.list = "cpu"},
                      {.list = "npu", .spec = ANY},
                      {.list = "npu,cpu", .spec = "all"},
                      {.list = "npu,cpu", .spec = FIXED, .capture = CLV_CAPTURE_ON},
                      {.list = "npu,cpu", .spec = FIXED_ONE, .capture = CLV_CAPTURE_ON, .in_flight = 2},
                      {.list = "cpu,npu", .spec = "all", .in_flight = 3}};
  for (uint64_t seed = 0; seed < test_some(60); ++seed) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
      scene s;
      uint64_t random = seed * 31 + i;
      clv_error error = {0};
      begin(&s, seed, ways[i]);
      if (seed % 2 == 0) check(&s, seed); /* otherwise weights are loaded before the first run */
      for (uint32_t round = 1; round <= 3; ++round) {
        uint32_t which = round == 3 ? (1u << WEIGHTS) - 1 : (uint32_t)(test_random(&random) % (1u << WEIGHTS));
        assert_ok(load(&s, which, round, &error), error);
        check(&s, seed + round);
      }
      check_verified(&s);
      end(&s);
    }
  }
}

/* ---- Errors ---- */

static void refuse(scene *s, const char *name, const clv_tensor *tensor, clv_status status, const char *message) {
  clv_error error = {0};
  const char *names[] = {"b0", name};
  float b0[8] = {7};
  const clv_tensor tensors[] = {f32(1, DIMS(8), b0), *tensor};
  assert_int_equal(clv_session_load_weights(s->session, names, tensors, 2, &error), status);
  assert_string_equal(error.message, message);
  check(s, 3); /* b0 was not loaded either */
}

static void errors_change_nothing(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  float data[512] = {0};
  int64_t ints[4] = {4, 8, 1, 1};
  begin(&s, 4, (way){.list = "npu,cpu", .spec = "all"});
  const clv_tensor right = f32(2, DIMS(8, 8), data), wrong = f32(2, DIMS(8, 4), data), none = f32(2, DIMS(8, 8), NULL);
  const clv_tensor other = clv__tensor_make(CLV_F64, 2, DIMS(8, 8), data), values = f32(2, DIMS(4, 8), data);
  const clv_tensor shape = clv__tensor_make(CLV_I64, 1, DIMS(2), ints);
  refuse(&s, "w9", &right, CLV_NOT_FOUND, "the model has no weight 'w9'");
  refuse(&s, "w0", &wrong, CLV_INVALID_ARGUMENT, "weight 'w0' is f32[8,8], not f32[8,4]");
  refuse(&s, "w0", &other, CLV_INVALID_ARGUMENT, "weight 'w0' is f32[8,8], not f64[8,8]");
  refuse(&s, "w0", &none, CLV_INVALID_ARGUMENT, "weight 'w0' has no data");
  refuse(&s, "v0", &values, CLV_INVALID_ARGUMENT, "'v0' is not a weight, but an input of the model");
  refuse(&s, "w0t", &right, CLV_INVALID_ARGUMENT, "'w0t' is not a weight: node 'Transpose#0' (Transpose) computes it");
  refuse(&s, NULL, &right, CLV_INVALID_ARGUMENT, "weight 1 has no name");
  refuse(&s, "b0", &right, CLV_INVALID_ARGUMENT, "weight 'b0' is given twice");
  ints[0] = 8, ints[1] = 4; /* the same number of elements, but other sizes */
  const char *names[] = {"flat"};
  assert_int_equal(clv_session_load_weights(s.session, names, &shape, 1, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "with these weights '"));
  assert_non_null(strstr(error.message, "plan again"));
  check(&s, 5);
  ints[0] = 4, ints[1] = 8; /* the value that it has */
  assert_ok(clv_session_load_weights(s.session, names, &shape, 1, &error), error);
  check(&s, 6);
  assert_int_equal(clv_session_load_weights(NULL, names, &shape, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_load_weights(s.session, NULL, &shape, 1, NULL), CLV_INVALID_ARGUMENT);
  assert_ok(clv_session_load_weights(s.session, NULL, NULL, 0, &error), error);
  check(&s, 7);
  end(&s);
}

/* Every allocation fails once. */
static void without_memory(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  begin(&s, 3, (way){.list = "npu,cpu", .spec = "all"});
  check(&s, 1);
  uint32_t failed = 0;
  bool is_reached = true;
  for (size_t at = 1; is_reached; ++at) {
    size_t last = s.m.counting.fail_at = s.m.counting.calls + at;
    clv_status status = load(&s, (1u << WEIGHTS) - 1, (uint32_t)at, &error);
    s.m.counting.fail_at = 0;
    is_reached = s.m.counting.calls >= last;
    /* A value is not folded if there is no memory for it, so the plan does not hold. The second attempt may succeed. */
    assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY || status == CLV_NOT_SUPPORTED);
    failed += status != CLV_OK;
    if (at % 16 == 0) check(&s, at);
  }
  assert_true(failed > 20);
  check(&s, 9);
  end(&s);
}

/* ---- Devices that fail ---- */

static interposer_fate fail_when_told(void *user_data, const interposer_call *call) {
  const interposer_slot *slot = user_data;
  return (interposer_fate){.action = call->slot == *slot ? INTERPOSER_FAIL : INTERPOSER_PASS};
}

/* A device that cannot take the weights is not removed. One that failed in a run stays removed. */
static void failing_devices(void **state) {
  (void)state;
  static const interposer_slot slots[] = {INTERPOSER_compile, INTERPOSER_weight_upload};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; ++i) {
    scene s;
    clv_error error = {0};
    interposer_slot failing = INTERPOSER_SLOT_COUNT;
    begin(&s, 5, (way){.list = "faulty,cpu", .query = clv__vnpu_backend_query, .hook = fail_when_told, .user_data = &failing});
    check(&s, 1);
    failing = slots[i];
    clv_status status = load(&s, 3, 1, &error);
    if (slots[i] == INTERPOSER_compile) assert_int_equal(status, CLV_DEVICE_ERROR);
    failing = INTERPOSER_SLOT_COUNT;
    assert_int_equal(clv__session_incident_count(s.session), 0);
    check(&s, 2);
    end(&s);
  }
}

static void after_a_device_was_removed(void **state) {
  (void)state;
  scene s;
  clv_error error = {0};
  interposer_slot failing = INTERPOSER_SLOT_COUNT;
  begin(&s, 5,
        (way){.list = "faulty,cpu",
              .query = clv__vnpu_backend_query,
              .hook = fail_when_told,
              .user_data = &failing,
              .capture = CLV_CAPTURE_OFF,
              .is_free = true});
  assert_ok(load(&s, 5, 1, &error), error);
  check(&s, 1);
  failing = INTERPOSER_execute;
  job j;
  make_job(s.graph, s.plan, &j, 1);
  run_job(s.session, s.graph, &j);
  finish_job(s.graph, &j);
  assert_int_equal(clv__session_incident_count(s.session), 1);
  for (uint32_t round = 2; round < 5; ++round) {
    if (round > 2) assert_ok(load(&s, round, round, &error), error);
    assert_int_equal(clv__session_incident_count(s.session), 1);
    assert_true((clv__session_plan(s.session)->gone & 1u) != 0);
    clv_graph *graph = make_random(&s.m.counting.allocator, s.seed, &s.is);
    make_job(s.graph, s.plan, &j, round);
    clv_tensor expected[MOST_OUTPUTS] = {{0}};
    clv_tensor inputs[3] = {j.inputs[0], j.inputs[1], f32(2, DIMS(4, 8), j.v1)};
    j.inputs[2] = inputs[2];
    run_job(s.session, s.graph, &j);
    assert_ok(clv__graph_evaluate(graph, inputs, NULL, expected, NULL, NULL, graph->allocator, &error), error);
    for (uint32_t i = 0; i < graph->output_count; ++i) {
      assert_same_values(&j.outputs[i], &expected[i], "after a device was removed");
      clv__release(graph->allocator, expected[i].data);
    }
    finish_job(s.graph, &j);
    clv_graph_destroy(graph);
  }
  end(&s);
}

/* ---- Streamed weights, and a device with little memory ---- */

enum { LAYERS = 4, WIDTH = 512 };

static clv_graph *make_chain(const clv_allocator *allocator, uint64_t seed) {
  test_graph g;
  test_graph_begin(&g, allocator, seed);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, WIDTH));
  for (int i = 0; i < LAYERS; ++i) {
    char weight[8], inputs[16], output[8];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, DIMS(WIDTH, WIDTH));
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  return test_graph_end(&g, "v4");
}

static void with_limit(const char *spec, bool is_streamed) {
  machine m;
  clv_error error = {0};
  machine_open(&m, "npu,cpu", 1, &spec);
  clv_graph *first = make_chain(&m.counting.allocator, 1);
  clv_plan *plan = machine_plan(&m, first, "v*=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  static float data[4 * WIDTH];
  uint64_t seed = 3;
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = f32(2, DIMS(4, WIDTH), data);
  assert_true(is_streamed == (streamed_of(plan) > 0));
  for (uint64_t version = 2; version < 5; ++version) {
    machine_check_run(session, plan, &input, "before");
    clv_graph *other = make_chain(&m.counting.allocator, version);
    const char *names[] = {"w0", "w1", "w2", "w3"};
    clv_tensor tensors[LAYERS], outputs[1] = {{0}}, expected[1] = {{0}};
    for (int i = 0; i < LAYERS; ++i) tensors[i] = other->values[clv__graph_find_value(other, names[i])].type;
    assert_ok(clv_session_load_weights(session, names, tensors, LAYERS, &error), error);
    for (int run = 0; run < 3; ++run) {
      assert_ok(clv_session_run(session, &input, 1, outputs, 1, &error), error);
      assert_ok(clv__graph_evaluate(other, &input, NULL, expected, NULL, NULL, other->allocator, &error), error);
      assert_same_values(&outputs[0], &expected[0], spec);
      clv__release(other->allocator, expected[0].data);
    }
    assert_int_equal(clv__session_incident_count(session), 0);
    for (int i = 0; i < LAYERS; ++i) tensors[i] = first->values[clv__graph_find_value(first, names[i])].type;
    assert_ok(clv_session_load_weights(session, names, tensors, LAYERS, &error), error);
    clv_graph_destroy(other);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(first);
  machine_close(&m);
}

static void streamed_weights(void **state) {
  (void)state;
  with_limit("{\"operators\": \"all\", \"memory\": \"3000K\"}", true);
  with_limit("{\"operators\": \"all\", \"memory\": \"3000K\", \"static_shapes\": true}", true);
}

/* Old and new weights do not fit together. */
static void little_memory(void **state) {
  (void)state;
  with_limit("{\"operators\": \"all\", \"memory\": \"5500K\"}", false);
  with_limit("{\"operators\": \"all\", \"memory\": \"5500K\", \"static_shapes\": true}", false);
}

/* ---- Open sizes, and a folder compiled ahead of time ---- */

/* Makes inputs of the graph: values of N rows, T deep; indices below 16. */
static void make_open_inputs(const clv_graph *graph, int64_t n, int64_t depth, uint64_t seed, clv_tensor *inputs) {
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_tensor *input = &inputs[i];
    size_t count;
    *input = *clv_graph_input_type(graph, i);
    input->dims[0] = n;
    if (input->rank == 3) input->dims[1] = depth;
    assert_true(clv__tensor_count(input, &count));
    input->data = calloc(count + 1, 8);
    for (size_t k = 0; k < count; ++k)
      clv__tensor_put(input, k, test_random_float(&seed), (int64_t)(test_random(&seed) % 16), false);
  }
}

static void compare_open(clv_session *session, clv_session *fresh, const clv_graph *graph, uint64_t seed) {
  clv_error error = {0};
  for (int run = 0; run < 3; ++run) {
    clv_tensor inputs[4], outputs[2][2] = {{{0}}};
    make_open_inputs(graph, 1 + (int64_t)(seed % 9) + run, 2 + run, seed + (uint64_t)run, inputs);
    assert_ok(clv_session_run(session, inputs, graph->input_count, outputs[0], graph->output_count, &error), error);
    assert_ok(clv_session_run(fresh, inputs, graph->input_count, outputs[1], graph->output_count, &error), error);
    for (uint32_t i = 0; i < graph->output_count; ++i) {
      size_t size_bytes;
      assert_true(clv__tensor_size_bytes(&outputs[1][i], &size_bytes));
      assert_true(clv__tensor_same_type(&outputs[0][i], &outputs[1][i]));
      if (memcmp(outputs[0][i].data, outputs[1][i].data, size_bytes) != 0)
        fail_msg("seed %llu: output %u differs from that of a new session", (unsigned long long)seed, i);
    }
    for (uint32_t i = 0; i < graph->input_count; ++i) free(inputs[i].data);
  }
}

static void open_sizes(void **state) {
  (void)state;
  static const char *const specs[] = {ANY, FIXED}, *const lists[] = {"cpu", "npu,cpu"};
  for (uint64_t seed = 0; seed < test_some(40); ++seed) {
    for (size_t w = 0; w < 3; ++w) {
      machine m;
      clv_error error = {0};
      machine_open(&m, lists[w > 0], 1, &specs[w == 2]);
      clv_graph *graph = test_random_open_graph(&m.counting.allocator, seed, 4 + (uint32_t)(seed % 12), true);
      clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
      clv_session *session = machine_session(plan);
      for (uint64_t version = 1; version <= 2; ++version) {
        static const char *const names[] = {"w", "scale", "table"};
        float data[3][128];
        clv_tensor weights[3], *by_value = calloc(graph->value_count, sizeof *by_value);
        uint64_t random = seed + 99 * version;
        for (int i = 0; i < 3; ++i) {
          clv_value_id v = clv__graph_find_value(graph, names[i]);
          for (int k = 0; k < 128; ++k) data[i][k] = test_random_float(&random);
          weights[i] = graph->values[v].type;
          weights[i].data = data[i];
          by_value[v] = weights[i];
        }
        clv_graph *other;
        assert_ok(clv_session_load_weights(session, names, weights, 3, &error), error);
        assert_ok(clv__graph_with_weights(graph, by_value, &other, &error), error);
        clv_plan *fresh_plan = machine_plan(&m, other, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
        clv_session *fresh = machine_session(fresh_plan);
        compare_open(session, fresh, graph, seed);
        clv_session_destroy(fresh);
        clv_plan_destroy(fresh_plan);
        clv__graph_destroy(other);
        free(by_value);
      }
      clv_session_destroy(session);
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
      machine_close(&m);
    }
  }
}

/* A session of a folder compiled ahead of time: the folder's executables hold the old weights. */
static void compiled_folder(void **state) {
  (void)state;
  const way ways[] = {{.list = "cpu"}, {.list = "npu,cpu", .spec = ANY}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    scene s;
    folder f;
    clv_error error = {0};
    clv_compiled *compiled;
    clv_graph *graph;
    clv_plan *plan;
    begin(&s, 8, ways[i]);
    folder_make(&f);
    char path[512];
    snprintf(path, sizeof path, "%s/compiled", f.path);
    assert_ok(clv_compiled_write(s.plan, NULL, path, &error), error);
    assert_ok(clv_compiled_open(s.m.context, path, &compiled, &error), error);
    assert_ok(clv_graph_load(s.m.context, clv_compiled_model_path(compiled), &graph, &error), error);
    assert_ok(clv_plan_read(graph, s.m.devices, clv_compiled_plan_path(compiled), NULL, &plan, &error), error);
    clv_session *direct = s.session;
    assert_ok(clv_session_create(plan, clv_compiled_session_options(compiled), &s.session, &error), error);
    check(&s, 2);
    assert_ok(load(&s, 11, 4, &error), error);
    check(&s, 3);
    clv_session_destroy(s.session);
    s.session = direct;
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_compiled_close(compiled);
    snprintf(path, sizeof path, "rm -r '%s/compiled'", f.path);
    assert_int_equal(system(path), 0);
    folder_remove(f.path);
    end(&s);
  }
}

/* ---- Threads ---- */

typedef struct runner {
  scene *s;
  atomic_bool *is_over;
  const job *expected; /* by version */
  uint32_t version_count, wrong;
  atomic_uint runs;
} runner;

static void *run_often(void *argument) {
  runner *r = argument;
  clv_error error;
  job j;
  make_job(r->s->graph, r->s->plan, &j, 6);
  while (!atomic_load(r->is_over)) {
    if (clv_session_run(r->s->session, j.inputs, 3, j.outputs, r->s->graph->output_count, &error) != CLV_OK) ++r->wrong;
    bool is_one = false;
    for (uint32_t v = 0; v < r->version_count; ++v)
      is_one = is_one || first_difference(r->s->graph, &j, &r->expected[v]) == CLV__NO_ID;
    r->wrong += !is_one;
    atomic_fetch_add(&r->runs, 1);
  }
  finish_job(r->s->graph, &j);
  return NULL;
}

/* While other threads run, each run has the outputs of one version of all weights. */
static void other_threads_run(void **state) {
  (void)state;
  enum { VERSIONS = 4, THREADS = 3 };
  const uint32_t all = (1u << WEIGHTS) - 1;
  const way ways[] = {{.list = "cpu", .in_flight = 2},
                      {.list = "npu,cpu", .spec = FIXED, .capture = CLV_CAPTURE_ON, .in_flight = 2}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    scene s;
    clv_error error = {0};
    atomic_bool is_over = false;
    job expected[VERSIONS];
    runner runners[THREADS];
    pthread_t threads[THREADS];
    begin(&s, 6, ways[i]);
    for (uint32_t v = 0; v < VERSIONS; ++v) {
      assert_ok(load(&s, all, v, &error), error);
      make_job(s.graph, s.plan, &expected[v], 6);
      run_job(s.session, s.graph, &expected[v]);
    }
    for (uint32_t t = 0; t < THREADS; ++t) {
      runners[t] = (runner){.s = &s, .is_over = &is_over, .expected = expected, .version_count = VERSIONS};
      assert_int_equal(pthread_create(&threads[t], NULL, run_often, &runners[t]), 0);
    }
    for (uint32_t round = 0, t = 0; t < THREADS; ++round) { /* until every thread has run often enough */
      assert_ok(load(&s, all, round % VERSIONS, &error), error);
      while (t < THREADS && round >= test_some(60) && atomic_load(&runners[t].runs) >= 20) ++t;
    }
    atomic_store(&is_over, true);
    for (uint32_t t = 0; t < THREADS; ++t) {
      pthread_join(threads[t], NULL);
      assert_int_equal(runners[t].wrong, 0);
    }
    check(&s, 3);
    for (uint32_t v = 0; v < VERSIONS; ++v) finish_job(s.graph, &expected[v]);
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs),
                                     cmocka_unit_test(errors_change_nothing),
                                     cmocka_unit_test(without_memory),
                                     cmocka_unit_test(failing_devices),
                                     cmocka_unit_test(after_a_device_was_removed),
                                     cmocka_unit_test(streamed_weights),
                                     cmocka_unit_test(little_memory),
                                     cmocka_unit_test(open_sizes),
                                     cmocka_unit_test(compiled_folder),
                                     cmocka_unit_test(other_threads_run)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
