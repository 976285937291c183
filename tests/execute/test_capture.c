/* Capture and replay as a device sees it: which calls come in which run, over the CPU's and the virtual NPU's table; and what is
 * said of it. Every output is compared with the reference. */
#include "../backends/cpu/cpu.h"
#include "../backends/vnpu/vnpu.h"
#include "execute/capture.h"
#include "machine.h"

/* Of the log, what the scenes are about. */
#define SCENE                                                                                                                \
  (INTERPOSER_BIT(execute) | INTERPOSER_BIT(capture_begin) | INTERPOSER_BIT(capture_end) | INTERPOSER_BIT(captured_launch) | \
   INTERPOSER_BIT(captured_bind) | INTERPOSER_BIT(captured_destroy))
#define CAPTURES "capture_begin execute capture_end captured_launch"

enum { MOST = 64, MOST_OBJECTS = 32 };

typedef struct scene_options {
  bool is_npu, is_asynchronous;
  uint64_t without;
  clv_graph_mode mode;
  int32_t entries; /* 0: as many as there are when nothing is said */
  clv_switch prefill;
  uint32_t multiple; /* of buckets; 0: each shape is one */
  const char *spec;  /* of the NPU; NULL: one of fixed shapes */
} scene_options;

/* A context, and a device "logged" beside the CPU. */
typedef struct scene {
  scene_options options;
  interposer *logged;
  test_allocator counting;
  clv_context *context;
  clv_devices *devices;
  char said[256];          /* the last capture's reason */
  interposer_slot failing; /* the slot that fails when `fails_at` comes to 0 */
  uint32_t fails_at;       /* 0: none */
  interposer_action action;
  const void *launched, *destroyed; /* the last one */
} scene;

static void listen(void *user_data, int level, const char *text) {
  scene *s = user_data;
  const char *at = strstr(text, "logged: captured: ");
  if (level == 3 && at != NULL) snprintf(s->said, sizeof s->said, "%s", at + strlen("logged: captured: "));
}

static interposer_fate watch(void *user_data, const interposer_call *call) {
  scene *s = user_data;
  if (call->slot == INTERPOSER_captured_launch) s->launched = call->object;
  if (call->slot == INTERPOSER_captured_destroy) s->destroyed = call->object;
  if (call->slot != s->failing || s->fails_at == 0 || --s->fails_at > 0) return (interposer_fate){0};
  return (interposer_fate){.action = s->action};
}

/* A virtual NPU captures programs that know their shapes when they are compiled. */
static const char fixed_shapes[] = "{\"static_shapes\": true, \"operators\": \"all\"}";

static void open_scene(scene *s, scene_options options) {
  clv_error error = {0};
  *s = (scene){.options = options};
  test_allocator_init(&s->counting);
  s->logged =
      interposer_create(&(interposer_options){.name = "logged",
                                              .query = options.is_npu ? clv__vnpu_backend_query : clv__cpu_backend_query,
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
  context.graph = options.mode;
  if (options.entries != 0) context.graph_cache_entries = options.entries;
  context.prefill_graph = options.prefill;
  assert_ok(clv_context_create(&context, &s->context, &error), error);
  assert_ok(clv_context_add_backend(s->context, interposer_query, s->logged, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "logged,cpu";
  devices.thread_count = 1;
  assert_ok(clv_devices_open(s->context, &devices, &s->devices, &error), error);
}

static void close_scene(scene *s) {
  char misuse[200];
  clv_devices_close(s->devices);
  clv_context_destroy(s->context);
  assert_int_equal(interposer_left(s->logged), 0);
  if (interposer_misused(s->logged, misuse, sizeof misuse)) fail_msg("%s", misuse);
  assert_int_equal(s->counting.live, 0);
  interposer_destroy(s->logged);
}

/* A model in a scene. */
typedef struct part {
  scene *s;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  float data[3][MOST * 8], out[MOST * 8];
} part;

static void open_part_with(part *p, scene *s, clv_graph *graph, const char *pins, clv_session_options options) {
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

static void open_part(part *p, scene *s, clv_graph *graph, const char *pins) {
  open_part_with(p, s, graph, pins, (clv_session_options)CLV_SESSION_OPTIONS_INIT);
}

static void close_part(part *p) {
  clv_session_destroy(p->session);
  clv_plan_destroy(p->plan);
  clv_graph_destroy(p->graph);
}

/* One run with open first dims of `n`, into `out`; the log since. */
static void run_into(part *p, int64_t n, float *out) {
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
  memset(out, 0xee, sizeof p->out);
  interposer_log_clear(p->s->logged);
  p->s->said[0] = '\0';
  assert_ok(clv_session_run(p->session, inputs, p->graph->input_count, &output, 1, &error), error);
  assert_same_values(&output, &expected, "a run");
  clv__release(p->graph->allocator, expected.data);
}

static void expect_log(const scene *s, uint64_t slots, const char *wanted) {
  char text[512];
  interposer_log_text(s->logged, slots, text, sizeof text);
  assert_string_equal(text, wanted);
}

static void run(part *p, int64_t n, const char *wanted) {
  run_into(p, n, p->out);
  expect_log(p->s, SCENE, wanted);
}

static clv__graph_counters counters(const part *p) {
  clv__graph_counters c = {0};
  (void)clv__session_graphs(p->session, 0, &c);
  return c;
}

static void expect_issue(const part *p, uint32_t partition, clv__issue issue, const char *why) {
  clv__issue_info info;
  clv__session_issue(p->session, partition, &info);
  assert_int_equal(info.issue, issue);
  assert_string_equal(info.why, why);
}

/* ---- Models ---- */

/* y = Neg(op(x, b)), N open or 4. */
static clv_graph *make_small(const scene *s, const char *op, bool is_open, int64_t columns) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  int64_t rows = is_open ? test_graph_symbol(&g, "N") : 4;
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(rows, columns));
  test_graph_weight(&g, "b", 1, &columns);
  test_graph_node(&g, "act", op, "x,b", "t");
  test_graph_node(&g, "neg", "Neg", "t", "y");
  return test_graph_end(&g, "y");
}

/* "first" and "last" with "middle" between, which may be put elsewhere. */
static clv_graph *make_split(const scene *s, bool is_open) {
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

static clv_graph *make_softmax(const scene *s, int64_t axis) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_node_ints(&g, "soft", "Softmax", "x", "y", "axis", false, 1, &axis);
  return test_graph_end(&g, "y");
}

static clv_graph *make_attention(const scene *s) {
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

typedef struct failure {
  interposer_slot slot;
  uint32_t at; /* which of its calls in that run */
  bool is_replay;
  interposer_action action;
  const char *log;
  uint32_t destroyed;
} failure;

/* ---- The scenes ---- */

static void first_run_and_second(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    assert_int_equal(p.plan->partition_count, 1);
    run(&p, 4, CAPTURES);
    assert_string_equal(s.said, "no graph is captured");
    expect_issue(&p, 0, CLV__ISSUE_CAPTURED, "");
    for (int i = 0; i < 3; ++i) {
      run(&p, 4, "captured_launch");
      if (!options.is_asynchronous) expect_log(&s, ~UINT64_C(0), "captured_launch");
      expect_issue(&p, 0, CLV__ISSUE_REPLAYED, "");
    }
    clv__graph_counters c = counters(&p);
    assert_int_equal(c.misses, 1);
    assert_int_equal(c.captures, 1);
    assert_int_equal(c.hits, 3);
    assert_int_equal(c.entries, 1);
    assert_true(c.bytes > 0);
    interposer_log_clear(s.logged);
    close_part(&p);
    expect_log(&s, SCENE | INTERPOSER_BIT(instance_destroy), "captured_destroy instance_destroy");
    close_scene(&s);
  }
}

/* All partitions of a device are one entry, also where others run elsewhere in between. */
static void partitions_on_both_sides_of_the_cpu(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_ON;
    options.entries = 1;
    open_scene(&s, options);
    open_part(&p, &s, make_split(&s, false), "middle=cpu");
    assert_int_equal(p.plan->partition_count, 3);
    run(&p, 4, CAPTURES " " CAPTURES);
    run(&p, 4, "captured_launch*2");
    run(&p, 4, "captured_launch*2");
    for (uint32_t i = 0; i < 3; ++i) expect_issue(&p, i, CLV__ISSUE_REPLAYED, ""); /* the CPU as well */
    assert_int_equal(counters(&p).entries, 1);
    assert_int_equal(counters(&p).hits, 2);
    close_part(&p);
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), 2);
    close_scene(&s);
  }
}

static const char one_node_each[] = "{\"static_shapes\": true, \"max_partition_nodes\": 1, \"operators\": \"all\"}";

/* Partitions that follow each other on a device, with nothing to wait for in between, are one graph. */
static void partitions_one_after_the_other(void **state) {
  (void)state;
  scene s;
  part p, split;
  open_scene(&s, (scene_options){.is_npu = true, .is_asynchronous = true, .mode = CLV_GRAPH_ON, .spec = one_node_each});
  open_part(&p, &s, make_split(&s, true), NULL);
  assert_int_equal(p.plan->partition_count, 3);
  run(&p, 4, "capture_begin execute*3 capture_end captured_launch");
  for (uint32_t i = 0; i < 3; ++i) expect_issue(&p, i, CLV__ISSUE_CAPTURED, "");
  run(&p, 4, "captured_launch");
  for (uint32_t i = 0; i < 3; ++i) expect_issue(&p, i, CLV__ISSUE_REPLAYED, "");
  run(&p, 9, "capture_begin execute*3 capture_end captured_launch"); /* memory grows: what is bound to it is told of */
  run(&p, 4, "captured_bind*3 captured_launch");
  run(&p, 4, "captured_launch");
  for (int i = 0; i < 3; ++i) { /* each with the graph of its own shape */
    run(&p, 9, "captured_launch");
    run(&p, 4, "captured_launch");
  }
  close_part(&p);
  open_part(&split, &s, make_split(&s, false), "middle=cpu"); /* the CPU waits for the first alone */
  run(&split, 4, CAPTURES " " CAPTURES);
  run(&split, 4, "captured_launch*2");
  close_part(&split);
  close_scene(&s);
}

/* The same, failing at each call: nothing of the graph has run by then, all of it is executed. */
static void graphs_of_several_that_fail(void **state) {
  (void)state;
  static const failure several[] = {
      {INTERPOSER_capture_begin, 1, false, INTERPOSER_FAIL, "capture_begin execute*3", 0},
      {INTERPOSER_execute, 1, false, INTERPOSER_FAIL, "capture_begin execute capture_end execute*3", 0},
      {INTERPOSER_execute, 3, false, INTERPOSER_FAIL, "capture_begin execute*3 capture_end execute*3", 0},
      {INTERPOSER_capture_end, 1, false, INTERPOSER_FAIL, "capture_begin execute*3 capture_end execute*3", 0},
      {INTERPOSER_captured_launch, 1, false, INTERPOSER_FAIL,
       "capture_begin execute*3 capture_end captured_launch execute*3 captured_destroy", 1},
      {INTERPOSER_captured_launch, 1, true, INTERPOSER_FAIL, "captured_launch execute*3 captured_destroy", 1},
      {INTERPOSER_captured_launch, 1, true, INTERPOSER_FAIL_LATER, "captured_launch captured_destroy execute*3", 1},
  };
  for (size_t i = 0; i < sizeof several / sizeof *several; ++i) {
    scene s;
    part p;
    open_scene(&s, (scene_options){.is_npu = true, .is_asynchronous = true, .mode = CLV_GRAPH_ON, .spec = one_node_each});
    open_part(&p, &s, make_split(&s, false), NULL);
    if (several[i].is_replay) run(&p, 4, "capture_begin execute*3 capture_end captured_launch");
    s.failing = several[i].slot;
    s.fails_at = several[i].at;
    s.action = several[i].action;
    run(&p, 4, several[i].log);
    assert_int_equal(s.fails_at, 0);
    for (int k = 0; k < 2; ++k) run(&p, 4, "execute*3");
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), several[i].destroyed);
    close_part(&p);
    close_scene(&s);
  }
}

static void a_changed_graph(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part add, same, mul, wide, open, soft[2];
    options.mode = CLV_GRAPH_ON;
    open_scene(&s, options);
    open_part(&add, &s, make_small(&s, "Add", false, 8), NULL);
    run(&add, 4, CAPTURES);
    open_part(&same, &s, make_small(&s, "Add", false, 8), NULL); /* the same graph, but memory of its own */
    run(&same, 4, CAPTURES);
    assert_string_equal(s.said, "it is captured for another request");
    open_part(&mul, &s, make_small(&s, "Mul", false, 8), NULL);
    run(&mul, 4, CAPTURES);
    assert_string_equal(s.said, "node 0 'act': Mul, was Add");
    run(&mul, 4, "captured_launch");
    open_part(&wide, &s, make_small(&s, "Mul", false, 6), NULL);
    run(&wide, 4, CAPTURES);
    assert_string_equal(s.said, "value 'x': f32[4,6], was f32[4,8]");
    open_part(&open, &s, make_small(&s, "Mul", true, 6), NULL);
    run(&open, 5, CAPTURES);
    assert_string_equal(s.said, "value 'x': f32[5,6], was f32[4,6]");
    run(&open, 3, CAPTURES);
    assert_string_equal(s.said, "value 'x': f32[3,6], was f32[5,6]");
    run(&open, 5, "captured_launch");
    open_part(&soft[0], &s, make_softmax(&s, 0), NULL);
    run(&soft[0], 4, CAPTURES);
    open_part(&soft[1], &s, make_softmax(&s, 1), NULL);
    run(&soft[1], 4, CAPTURES);
    if (strstr(s.said, "node 0 'soft'") == NULL || strstr(s.said, "axis") == NULL) fail_msg("it says: %s", s.said);
    run(&add, 4, "captured_launch");
    run(&soft[0], 4, "captured_launch");
    close_part(&soft[0]);
    close_part(&soft[1]);
    close_part(&open);
    close_part(&wide);
    close_part(&mul);
    close_part(&same);
    close_part(&add);
    close_scene(&s);
  }
}

static void the_thirteenth_shape(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    const void *graphs[14];
    options.mode = CLV_GRAPH_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", true, 8), NULL);
    for (int64_t n = 13; n >= 2; --n) {
      run(&p, n, CAPTURES);
      graphs[n] = s.launched;
    }
    run(&p, 13, "captured_launch");
    run(&p, 1, "execute"); /* seen no more often than those that are there */
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "the cache is full");
    run(&p, 1, CAPTURES " captured_destroy");
    assert_ptr_equal(s.destroyed, graphs[12]); /* the one used least recently */
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), 1);
    assert_int_equal(counters(&p).evictions, 1);
    assert_int_equal(counters(&p).entries, 12);
    run(&p, 1, "captured_launch");
    for (int64_t n = 11; n >= 2; --n) run(&p, n, "captured_launch");
    run(&p, 13, "captured_launch");
    run(&p, 12, "execute"); /* what went is no hit */
    close_part(&p);
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), 13);
    close_scene(&s);
  }
}

static void prefill_and_decode(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    for (int prefill_too = 0; prefill_too < 2; ++prefill_too) {
      scene s;
      part p;
      options.mode = CLV_GRAPH_ON;
      options.prefill = prefill_too ? CLV_SWITCH_ON : CLV_SWITCH_UNSET;
      open_scene(&s, options);
      open_part(&p, &s, make_attention(&s), NULL);
      run(&p, 16, prefill_too ? CAPTURES : "execute");
      if (!prefill_too) expect_issue(&p, 0, CLV__ISSUE_EAGER, "prefill");
      run(&p, 1, CAPTURES);
      run(&p, 1, "captured_launch");
      run(&p, 16, prefill_too ? "captured_launch" : "execute");
      run(&p, 1, "captured_launch");
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* One set of shapes serves both lengths: which of them it is, is read every time. */
static void prefill_and_decode_in_a_bucket(void **state) {
  (void)state;
  scene s;
  part p;
  open_scene(&s, (scene_options){.is_npu = true, .mode = CLV_GRAPH_ON, .multiple = 32});
  open_part(&p, &s, make_attention(&s), NULL);
  assert_true(p.plan->partitions[0].is_bucketed);
  run(&p, 40, "execute");
  run(&p, 16, "execute");
  run(&p, 1, CAPTURES);
  run(&p, 1, "captured_launch");
  run(&p, 16, "execute");
  run(&p, 40, "execute");
  run(&p, 1, "captured_launch");
  close_part(&p);
  close_scene(&s);
}

/* All shapes of a bucket are one graph. */
static void shapes_of_a_bucket(void **state) {
  (void)state;
  scene s;
  part p;
  open_scene(&s, (scene_options){.is_npu = true, .mode = CLV_GRAPH_ON, .multiple = 16});
  open_part(&p, &s, make_split(&s, true), "middle=cpu");
  run(&p, 17, CAPTURES " " CAPTURES);
  run(&p, 3, CAPTURES " " CAPTURES);
  for (int64_t n = 1; n <= 32; ++n) run(&p, n, "captured_launch*2");
  /* On the CPU they are not padded: its graph is of one of them, made when that comes twice in a row. */
  expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes are not those of the run before");
  run(&p, 32, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_CAPTURED, "");
  for (int i = 0; i < 3; ++i) {
    run(&p, 32, "captured_launch*2");
    expect_issue(&p, 1, CLV__ISSUE_REPLAYED, "");
  }
  run(&p, 2, "captured_launch*2"); /* of another bucket */
  run(&p, 32, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_REPLAYED, "");
  run(&p, 31, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes are not those of the run before");
  run(&p, 32, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes are not those of the run before");
  assert_int_equal(counters(&p).captures, 2);
  close_part(&p);
  close_scene(&s);
}

static void off_and_auto(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_OFF;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    for (int i = 0; i < 4; ++i) run(&p, 4, "execute");
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "capture is off");
    close_part(&p);
    close_scene(&s);
    options.mode = CLV_GRAPH_AUTO;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    run(&p, 4, "execute");
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "not seen often enough");
    run(&p, 4, CAPTURES);
    run(&p, 4, "captured_launch");
    close_part(&p);
    close_scene(&s);
    options.without = INTERPOSER_CAPTURE;
    options.mode = CLV_GRAPH_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    for (int i = 0; i < 2; ++i) run(&p, 4, "execute");
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "the device does not capture");
    close_part(&p);
    close_scene(&s);
  }
}

/* ---- What goes wrong ---- */

#define RECORDS "capture_begin execute capture_end"
static const failure failures[] = {
    {INTERPOSER_capture_begin, 1, false, INTERPOSER_FAIL, "capture_begin execute*2", 0},
    {INTERPOSER_execute, 1, false, INTERPOSER_FAIL, RECORDS " execute*2", 0},
    {INTERPOSER_capture_end, 1, false, INTERPOSER_FAIL, RECORDS " execute*2", 0},
    {INTERPOSER_captured_launch, 1, false, INTERPOSER_FAIL, CAPTURES " execute*2 captured_destroy", 1},
    {INTERPOSER_capture_begin, 2, false, INTERPOSER_FAIL, CAPTURES " capture_begin execute captured_destroy", 1},
    {INTERPOSER_execute, 2, false, INTERPOSER_FAIL, CAPTURES " " RECORDS " execute captured_destroy", 1},
    {INTERPOSER_capture_end, 2, false, INTERPOSER_FAIL, CAPTURES " " RECORDS " execute captured_destroy", 1},
    {INTERPOSER_captured_launch, 2, false, INTERPOSER_FAIL, CAPTURES " " CAPTURES " execute captured_destroy*2", 2},
    {INTERPOSER_captured_launch, 1, true, INTERPOSER_FAIL, "captured_launch execute*2 captured_destroy*2", 2},
    {INTERPOSER_captured_launch, 2, true, INTERPOSER_FAIL, "captured_launch*2 execute captured_destroy*2", 2},
};

static void captures_that_fail(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    for (size_t i = 0; i < sizeof failures / sizeof *failures; ++i) {
      const failure *f = &failures[i];
      scene s;
      part p, again;
      options.mode = CLV_GRAPH_ON;
      open_scene(&s, options);
      open_part(&p, &s, make_split(&s, false), "middle=cpu");
      if (f->is_replay) run(&p, 4, CAPTURES " " CAPTURES);
      s.failing = f->slot;
      s.fails_at = f->at;
      s.action = f->action;
      run(&p, 4, f->log);
      assert_int_equal(s.fails_at, 0);
      assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), f->destroyed);
      for (int k = 0; k < 3; ++k) run(&p, 4, "execute*2"); /* no second try */
      expect_issue(&p, 0, CLV__ISSUE_EAGER, "its capture failed");
      assert_int_equal(counters(&p).failures, 1);
      assert_int_equal(counters(&p).entries, 0);
      open_part(&again, &s, make_split(&s, false), "middle=cpu"); /* nor in another session */
      run(&again, 4, "execute*2");
      close_part(&again);
      close_part(&p);
      assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), f->destroyed);
      close_scene(&s);
    }
  }
}

/* The launch is accepted, and fails on the device: the run is repeated without graphs, and the device stays. */
static void a_launch_that_fails_later(void **state) {
  (void)state;
  for (int is_npu = 0; is_npu < 2; ++is_npu) {
    for (int is_replay = 0; is_replay < 2; ++is_replay) {
      scene s;
      part p;
      open_scene(&s, (scene_options){.is_npu = is_npu, .is_asynchronous = true, .mode = CLV_GRAPH_ON});
      open_part(&p, &s, make_split(&s, false), "middle=cpu");
      if (is_replay) run(&p, 4, CAPTURES " " CAPTURES);
      s.failing = INTERPOSER_captured_launch;
      s.fails_at = 1;
      s.action = INTERPOSER_FAIL_LATER;
      uint64_t before = interposer_count(s.logged, INTERPOSER_captured_destroy);
      run_into(&p, 4, p.out);
      assert_int_equal(s.fails_at, 0);
      assert_true(interposer_count(s.logged, INTERPOSER_captured_destroy) > before);
      run(&p, 4, "execute*2");
      assert_int_equal(counters(&p).failures, 1);
      assert_int_equal(counters(&p).entries, 0);
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* Memory that is not to be had for a graph is no reason to fail; nothing is lost where a run does. */
static void memory_runs_out(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    options.mode = CLV_GRAPH_ON;
    bool done = false;
    for (size_t at = 1; !done; ++at) {
      scene s;
      part p;
      open_scene(&s, options);
      open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
      clv_tensor input = *clv_graph_input_type(p.graph, 0), output = input, expected = {0};
      input.data = p.data[0];
      output.data = p.out;
      clv_error error = {0};
      assert_ok(clv__graph_evaluate(p.graph, &input, NULL, &expected, NULL, NULL, p.graph->allocator, &error), error);
      for (int run = 0; run < 3; ++run) {
        s.counting.fail_at = run == 0 ? s.counting.calls + at : 0;
        clv_status status = clv_session_run(p.session, &input, 1, &output, 1, &error);
        if (run > 0 || status != CLV_OUT_OF_MEMORY) assert_ok(status, error); /* a stream is not to be had either */
        if (status == CLV_OK) assert_same_values(&output, &expected, "a run short of memory");
        if (run == 0) done = s.counting.calls < s.counting.fail_at;
      }
      clv__release(p.graph->allocator, expected.data);
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* ---- What moves ---- */

/* The caller's output is elsewhere: the graph is told, or captured again where the device cannot be told, once that pays. */
static void outputs_that_move(void **state) {
  (void)state;
  static float other[MOST * 8];
  for (int can_bind = 0; can_bind < 2; ++can_bind) {
    scene s;
    part p;
    open_scene(&s, (scene_options){.mode = CLV_GRAPH_ON, .without = can_bind ? 0 : INTERPOSER_BIT(captured_bind)});
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    run(&p, 4, CAPTURES);
    if (can_bind) {
      for (int i = 0; i < 4; ++i) {
        run_into(&p, 4, i % 2 == 0 ? other : p.out);
        expect_log(&s, ~UINT64_C(0), "captured_bind captured_launch");
      }
      run(&p, 4, "captured_launch");
      assert_int_equal(counters(&p).patches, 4);
    } else {
      run_into(&p, 4, other);
      expect_log(&s, SCENE, "execute");
      expect_issue(&p, 0, CLV__ISSUE_EAGER, "its memory moved, and the device cannot follow");
      for (int i = 0; i < 6; ++i) run(&p, 4, "captured_launch"); /* it was not told of that */
      run_into(&p, 4, other);
      expect_log(&s, SCENE, "captured_destroy " CAPTURES);
      expect_issue(&p, 0, CLV__ISSUE_CAPTURED, "");
      for (int i = 0; i < 20; ++i) run_into(&p, 4, i % 2 == 0 ? other : p.out); /* checks results */
      assert_int_equal(counters(&p).recaptures, 3);
      assert_int_equal(counters(&p).failures, 0);
    }
    close_part(&p);
    close_scene(&s);
  }
}

/* Scratch grows with each shape, and so does memory of values: graphs keep the one and are told of the other. */
static void memory_that_grows(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_ON;
    options.prefill = CLV_SWITCH_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_attention(&s), NULL);
    uint64_t patches = 0;
    for (int64_t n = 1; n <= 10; ++n) {
      run(&p, n * 5, CAPTURES);
      for (int64_t k = 1; k < n; ++k) {
        run_into(&p, k * 5, p.out);
        expect_issue(&p, 0, CLV__ISSUE_REPLAYED, "");
      }
      patches += (uint64_t)n - 1;
    }
    clv__graph_counters c = counters(&p);
    assert_int_equal(c.entries, 10);
    assert_int_equal(c.captures, 10);
    assert_true(c.patches <= patches);
    close_part(&p);
    close_scene(&s);
  }
}

/* A graph keeps its set of shapes, whatever else comes by. */
static void sets_stay_while_their_graphs_do(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_ON;
    options.entries = 3;
    open_scene(&s, options);
    clv_session_options session = CLV_SESSION_OPTIONS_INIT;
    session.prepared_shapes = 1;
    open_part_with(&p, &s, make_split(&s, true), "middle=cpu", session);
    for (int64_t n = 9; n >= 7; --n) run(&p, n, CAPTURES " " CAPTURES);
    for (int64_t n = 6; n >= 1; --n) run(&p, n, "execute*2");
    for (int64_t n = 9; n >= 7; --n) run(&p, n, "captured_launch*2");
    run(&p, 3, "execute*2");
    run(&p, 3, CAPTURES " " CAPTURES " captured_destroy*2");
    /* Of the four sets, that of 9 has no graph any more: it goes when another one comes. */
    uint64_t instances = interposer_count(s.logged, INTERPOSER_instance_destroy);
    run(&p, 2, "execute*2");
    assert_int_equal(interposer_count(s.logged, INTERPOSER_instance_destroy), instances + 2);
    run(&p, 3, "captured_launch*2");
    close_part(&p);
    close_scene(&s);
  }
}

/* Requests of one session have memory of their own, and so graphs. */
static void several_in_flight(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_ON;
    open_scene(&s, options);
    clv_session_options session = CLV_SESSION_OPTIONS_INIT;
    session.in_flight = 3;
    open_part_with(&p, &s, make_split(&s, true), "middle=cpu", session);
    static float outs[3][MOST * 8];
    for (int round = 0; round < 12; ++round) {
      clv_error error = {0};
      clv_run *runs[3];
      clv_tensor inputs[3], outputs[3], expected = {0};
      for (int i = 0; i < 3; ++i) {
        inputs[i] = f32(2, DIMS(3, 8), p.data[i]);
        outputs[i] = f32(2, DIMS(3, 8), memset(outs[i], 0xee, sizeof outs[i]));
        assert_ok(clv_session_start(p.session, &inputs[i], 1, &outputs[i], 1, NULL, &runs[i], &error), error);
      }
      for (int i = 0; i < 3; ++i) assert_ok(clv_run_wait(runs[i], &error), error);
      for (int i = 0; i < 3; ++i) {
        assert_ok(clv__graph_evaluate(p.graph, &inputs[i], NULL, &expected, NULL, NULL, p.graph->allocator, &error), error);
        assert_same_values(&outputs[i], &expected, "in flight");
        clv__release(p.graph->allocator, expected.data);
      }
    }
    clv__graph_counters c = counters(&p);
    assert_true(c.entries >= 1 && c.entries <= 3);
    assert_int_equal(c.captures, c.entries);
    assert_int_equal(c.hits + c.misses, 36);
    assert_int_equal(c.misses, c.captures);
    close_part(&p);
    close_scene(&s);
  }
}

/* A model that says of a size what is not so: the shapes that come out are not those that were prepared for. */
static void sizes_that_were_not_told(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_GRAPH_ON;
    open_scene(&s, options);
    test_graph g;
    test_graph_begin(&g, &s.counting.allocator, 3);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
    test_graph_node(&g, "where", "NonZero", "x", "t");
    test_graph_node(&g, "flip", "Neg", "t", "u");
    test_graph_node(&g, "back", "Abs", "u", "v");
    test_graph_node(&g, "cast", "Neg", "v", "y");
    open_part(&p, &s, test_graph_end(&g, "y"), "flip=cpu");
    for (int i = 0; i < 6; ++i) {
      memset(p.data[0], 0, (size_t)(i * 7 % 5) * 16);
      run_into(&p, 4, p.out);
    }
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "sizes follow from data");
    close_part(&p);
    close_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_run_and_second),
      cmocka_unit_test(partitions_on_both_sides_of_the_cpu),
      cmocka_unit_test(partitions_one_after_the_other),
      cmocka_unit_test(graphs_of_several_that_fail),
      cmocka_unit_test(a_changed_graph),
      cmocka_unit_test(the_thirteenth_shape),
      cmocka_unit_test(prefill_and_decode),
      cmocka_unit_test(prefill_and_decode_in_a_bucket),
      cmocka_unit_test(shapes_of_a_bucket),
      cmocka_unit_test(off_and_auto),
      cmocka_unit_test(captures_that_fail),
      cmocka_unit_test(a_launch_that_fails_later),
      cmocka_unit_test(memory_runs_out),
      cmocka_unit_test(outputs_that_move),
      cmocka_unit_test(memory_that_grows),
      cmocka_unit_test(sets_stay_while_their_graphs_do),
      cmocka_unit_test(several_in_flight),
      cmocka_unit_test(sizes_that_were_not_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
