/* Helpers for tests of capture and replay: a context with the CPU and a device "logged" that records its calls, models, and runs
 * whose calls and outputs are checked. Outputs are compared with the reference evaluator. */
#ifndef CLEAVE_TESTS_SCENE_H
#define CLEAVE_TESTS_SCENE_H

#include <pthread.h>

#include "backends/cpu/cpu.h"
#include "backends/vnpu/vnpu.h"
#include "execute/capture/capture.h"
#include "machine.h"

/* The slots of the backend whose calls are recorded and checked. */
#define SCENE                                                                                                                \
  (INTERPOSER_BIT(execute) | INTERPOSER_BIT(capture_begin) | INTERPOSER_BIT(capture_end) | INTERPOSER_BIT(captured_launch) | \
   INTERPOSER_BIT(captured_bind) | INTERPOSER_BIT(captured_destroy))
#define CAPTURES "capture_begin execute capture_end captured_launch"

enum { MOST = 64, MOST_OBJECTS = 32 };

typedef struct scene_options {
  bool is_npu, is_asynchronous;
  uint64_t without;
  clv_capture_policy mode;
  int32_t entries; /* capacity of the capture cache; 0: the default */
  clv_switch prefill;
  uint32_t multiple;          /* bucket sizes are multiples of this; 0: every shape is its own bucket */
  const char *spec;           /* JSON description of the virtual NPU; NULL: an NPU with fixed shapes */
  clv_backend_query_fn query; /* NULL: the query function of the virtual NPU or the CPU */
} scene_options;

/* A context with two devices: "logged", whose calls are recorded, and the CPU. */
typedef struct scene {
  scene_options options;
  interposer *logged;
  test_allocator counting;
  clv_context *context;
  clv_devices *devices;
  char said[256];          /* the reason logged with the last capture */
  char failed[256];        /* the log's last line about a capture that failed */
  interposer_slot failing; /* the backend slot to fail: its `fails_at`-th call from now */
  uint32_t fails_at;       /* 0: no call fails */
  interposer_action action;
  const void *launched, *destroyed; /* the captures last launched and last destroyed */
  pthread_mutex_t lock;             /* protects `launched`, `destroyed`, `fails_at`, `said` and `failed` */
} scene;

static inline void listen(void *user_data, int level, const char *text) {
  scene *s = user_data;
  const char *at = strstr(text, "logged: captured: ");
  pthread_mutex_lock(&s->lock);
  if (level == 3 && at != NULL) snprintf(s->said, sizeof s->said, "%s", at + strlen("logged: captured: "));
  if (level == 2 && strstr(text, "captur") != NULL) snprintf(s->failed, sizeof s->failed, "%s", text);
  pthread_mutex_unlock(&s->lock);
}

static inline interposer_fate watch(void *user_data, const interposer_call *call) {
  scene *s = user_data;
  interposer_fate fate = {0};
  pthread_mutex_lock(&s->lock);
  if (call->slot == INTERPOSER_captured_launch) s->launched = call->object;
  if (call->slot == INTERPOSER_captured_destroy) s->destroyed = call->object;
  if (call->slot == s->failing && s->fails_at > 0 && --s->fails_at == 0) fate.action = s->action;
  pthread_mutex_unlock(&s->lock);
  return fate;
}

/* The virtual NPU can only capture programs compiled for fixed shapes. */
static const char fixed_shapes[] = "{\"static_shapes\": true, \"operators\": \"all\"}";
static const char one_node_each[] = "{\"static_shapes\": true, \"max_partition_nodes\": 1, \"operators\": \"all\"}";

static inline void open_scene(scene *s, scene_options options) {
  clv_error error = {0};
  *s = (scene){.options = options};
  pthread_mutex_init(&s->lock, NULL);
  test_allocator_init(&s->counting);
  s->logged =
      interposer_create(&(interposer_options){.name = "logged",
                                              .query = options.query != NULL ? options.query
                                                       : options.is_npu      ? clv__vnpu_backend_query
                                                                             : clv__cpu_backend_query,
                                              .spec = !options.is_npu        ? NULL
                                                      : options.spec != NULL ? options.spec
                                                                             : fixed_shapes,
                                              .memory_space = options.is_asynchronous && !options.is_npu ? "far" : NULL,
                                              .order = options.is_asynchronous ? INTERPOSER_ASYNCHRONOUS : INTERPOSER_AS_IT_IS,
                                              .without = options.without,
                                              .hook = watch,
                                              .user_data = s});
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &s->counting.allocator;
  context.log = listen;
  context.log_user_data = s;
  context.cache_directory = "";
  context.capture = options.mode;
  if (options.entries != 0) context.capture_cache_entries = options.entries;
  context.capture_prefill = options.prefill;
  assert_ok(clv_context_create(&context, &s->context, &error), error);
  assert_ok(clv_context_add_backend(s->context, interposer_query, s->logged, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "logged,cpu";
  devices.thread_count = 1;
  assert_ok(clv_devices_open(s->context, &devices, &s->devices, &error), error);
}

static inline void close_scene(scene *s) {
  char misuse[200];
  clv_devices_close(s->devices);
  clv_context_destroy(s->context);
  assert_int_equal(interposer_left(s->logged), 0);
  if (interposer_misused(s->logged, misuse, sizeof misuse)) fail_msg("%s", misuse);
  assert_int_equal(s->counting.live, 0);
  interposer_destroy(s->logged);
  pthread_mutex_destroy(&s->lock);
}

/* A model with its plan and session on the devices of a scene. */
typedef struct part {
  scene *s;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  float data[3][MOST * 8], out[MOST * 8];
} part;

static inline void open_part_with(part *p, scene *s, clv_graph *graph, const char *pins, clv_session_options options) {
  clv_error error = {0};
  memset(p, 0, sizeof *p);
  p->s = s;
  p->graph = graph;
  machine m = {.devices = s->devices};
  options.bucket_multiple = s->options.multiple == 0 ? 1 : s->options.multiple;
  p->plan = machine_plan(&m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_ok(clv_session_create(p->plan, &options, &p->session, &error), error);
  uint64_t random = 5;
  for (size_t i = 0; i < sizeof p->data / sizeof(float); ++i) (&p->data[0][0])[i] = test_random_float(&random);
}

static inline void open_part(part *p, scene *s, clv_graph *graph, const char *pins) {
  open_part_with(p, s, graph, pins, (clv_session_options)CLV_SESSION_OPTIONS_INIT);
}

static inline void close_part(part *p) {
  clv_session_destroy(p->session);
  clv_plan_destroy(p->plan);
  clv_graph_destroy(p->graph);
}

/* Clears the log and makes one run, in which all open dimensions are `n`, with the output in `out` (NULL: in the session's
 * memory). Checks the output. */
static inline void run_into(part *p, int64_t n, float *out) {
  clv_error error = {0};
  clv_tensor inputs[3], expected = {0};
  assert_true(p->graph->input_count <= 3 && n <= MOST);
  for (uint32_t i = 0; i < p->graph->input_count; ++i) {
    inputs[i] = *clv_graph_input_type(p->graph, i);
    for (int32_t k = 0; k < inputs[i].rank; ++k) {
      if (inputs[i].dims[k] < 0) inputs[i].dims[k] = n;
    }
    inputs[i].data = p->data[i];
  }
  assert_ok(clv__graph_evaluate(p->graph, inputs, NULL, &expected, NULL, NULL, p->graph->allocator, &error), error);
  clv_tensor output = expected;
  output.data = out;
  if (out != NULL) memset(out, 0xee, sizeof p->out);
  interposer_log_clear(p->s->logged);
  p->s->said[0] = '\0';
  assert_ok(clv_session_run(p->session, inputs, p->graph->input_count, &output, 1, &error), error);
  assert_same_values(&output, &expected, "a run");
  clv__release(p->graph->allocator, expected.data);
}

static inline void expect_log(const scene *s, uint64_t slots, const char *wanted) {
  char text[512];
  interposer_log_text(s->logged, slots, text, sizeof text);
  assert_string_equal(text, wanted);
}

static inline void run(part *p, int64_t n, const char *wanted) {
  run_into(p, n, p->out);
  expect_log(p->s, SCENE, wanted);
}

static inline clv__capture_counters counters(const part *p) {
  clv__capture_counters c = {0};
  (void)clv__session_captures(p->session, 0, &c);
  return c;
}

static inline void expect_issue(const part *p, uint32_t partition, clv__issue issue, const char *why) {
  clv__issue_info info;
  clv__session_issue(p->session, partition, &info);
  assert_int_equal(info.issue, issue);
  assert_string_equal(info.why, why);
}

/* ---- Models ---- */

/* y = Neg(op(x, b)) with x [N, columns], where N is open or 4. */
static inline clv_graph *make_small(const scene *s, const char *op, bool is_open, int64_t columns) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  int64_t rows = is_open ? test_graph_symbol(&g, "N") : 4;
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(rows, columns));
  test_graph_weight(&g, "b", 1, &columns);
  test_graph_node(&g, "act", op, "x,b", "t");
  test_graph_node(&g, "neg", "Neg", "t", "y");
  return test_graph_end(&g, "y");
}

/* Three nodes in a chain: "first", "middle" and "last". Tests may pin "middle" to another device. */
static inline clv_graph *make_split(const scene *s, bool is_open) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  int64_t rows = is_open ? test_graph_symbol(&g, "N") : 4;
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(rows, 8));
  test_graph_weight(&g, "b", 1, DIMS(8));
  test_graph_node(&g, "first", "Add", "x,b", "t");
  test_graph_node(&g, "middle", "Tanh", "t", "u");
  test_graph_node(&g, "last", "Mul", "u,b", "y");
  return test_graph_end(&g, "y");
}

static inline clv_graph *make_softmax(const scene *s, int64_t axis) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_node_ints(&g, "soft", "Softmax", "x", "y", "axis", false, 1, &axis);
  return test_graph_end(&g, "y");
}

static inline clv_graph *make_attention(const scene *s) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  int64_t queries = test_graph_symbol(&g, "Q");
  test_graph_input(&g, "q", CLV_F32, 2, DIMS(queries, 8));
  test_graph_input(&g, "k", CLV_F32, 2, DIMS(8, 12));
  test_graph_input(&g, "v", CLV_F32, 2, DIMS(12, 8));
  test_graph_node(&g, "scores", "MatMul", "q,k", "s");
  test_graph_node(&g, "weights", "Softmax", "s", "w");
  test_graph_node(&g, "mix", "MatMul", "w,v", "y");
  return test_graph_end(&g, "y");
}

#define FOR_EACH_DEVICE(options)                                                                                         \
  for (int device = 0; device < 3; ++device)                                                                             \
    for (scene_options options = {.is_npu = device == 1, .is_asynchronous = device > 0}, *once = &options; once != NULL; \
         once = NULL)

#endif
