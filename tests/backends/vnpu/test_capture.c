/* Captures of the virtual NPU: a replay has the same results as execution, for any contents of the buffers and after rebinding. A
 * failed capture changes nothing. */
#include <pthread.h>

#include "backends/vnpu/captured.h"
#include "fake_rig.h"

/* The program of a random graph, with two instances and several sets of input and output buffers. */
enum { SETS = 3, INSTANCES = 2 };

typedef struct rig {
  const clv_backend *b;
  clv_device *device;
  clv_graph *graph;
  clv__shapes *shapes;
  fake_session session;
  clv_instance *instances[INSTANCES]; /* `session` owns instances[0] */
  clv_binding in[SETS][2], out[SETS][FAKE_MAX_IO];
} rig;

static void rig_open(rig *r, const fake_host *fake, clv_device *device, uint64_t *seed) {
  clv_error error = {0};
  memset(r, 0, sizeof *r);
  r->b = fake_backend(fake);
  r->device = device;
  r->graph = random_graph(heap(), CLV_F32, 1 + (int)(test_random(seed) % 14), seed);
  r->shapes = shapes_of(r->graph);
  clv_executable *executable = NULL;
  compile_whole(fake, device, r->graph, r->shapes->types, &executable);
  clv_tensor inputs[2] = {r->graph->values[r->graph->inputs[0]].type, r->graph->values[r->graph->inputs[1]].type};
  assert_ok(fake_session_open(&r->session, r->b, device, executable, r->graph, inputs, 2, &error), error);
  r->instances[0] = r->session.instance;
  assert_ok(
      r->b->instance_create(device, executable, inputs, 2, r->session.weights, r->session.weight_count, &r->instances[1], &error),
      error);
  for (int s = 0; s < SETS; ++s) {
    for (uint32_t i = 0; i < 2 + r->graph->output_count; ++i) {
      clv_binding *at = i < 2 ? &r->in[s][i] : &r->out[s][i - 2];
      at->type = i < 2 ? inputs[i] : output_type(r->graph, r->shapes, i - 2);
      at->type.data = NULL;
      at->offset_bytes = 64 * (test_random(seed) % 3);
      assert_ok(r->b->buffer_alloc(device, ROWS * COLUMNS * 4 + 128, &at->buffer, &error), error);
    }
  }
}

static void rig_close(rig *r) {
  r->b->stream_synchronize(r->device, r->session.stream, NULL);
  for (int s = 0; s < SETS; ++s) {
    for (uint32_t i = 0; i < 2 + r->graph->output_count; ++i)
      r->b->buffer_free(r->device, i < 2 ? r->in[s][i].buffer : r->out[s][i - 2].buffer);
  }
  r->b->instance_destroy(r->device, r->instances[1]);
  fake_session_close(&r->session);
  clv__shapes_destroy(r->shapes);
  clv__graph_destroy(r->graph);
}

static clv_execute_args args_of(rig *r, int in, int out) {
  return (clv_execute_args){.struct_size = sizeof(clv_execute_args),
                            .input_count = 2,
                            .output_count = r->graph->output_count,
                            .inputs = r->in[in],
                            .outputs = r->out[out]};
}

/* Writes new random numbers to the inputs of `set`, and poison to the outputs of all sets. */
static void refill(rig *r, int set, clv_tensor inputs[2], uint64_t *seed) {
  clv_error error = {0};
  random_inputs(r->graph, inputs, seed);
  static uint8_t poison[ROWS * COLUMNS * 4];
  memset(poison, 0xff, sizeof poison);
  for (int i = 0; i < 2; ++i) {
    assert_ok(r->b->copy_in(r->device, r->session.stream, r->in[set][i].buffer, r->in[set][i].offset_bytes, inputs[i].data,
                            sizeof poison, &error),
              error);
  }
  for (int s = 0; s < SETS; ++s) {
    for (uint32_t i = 0; i < r->graph->output_count; ++i) {
      assert_ok(r->b->copy_in(r->device, r->session.stream, r->out[s][i].buffer, r->out[s][i].offset_bytes, poison, sizeof poison,
                              &error),
                error);
    }
  }
  assert_ok(r->b->stream_synchronize(r->device, r->session.stream, &error), error);
}

/* Checks that the outputs of `set` are the results for `inputs`, or, if `inputs` is NULL, that they are still poison. */
static void assert_outputs(rig *r, int set, const clv_tensor *inputs) {
  clv_error error = {0};
  clv_tensor expected[FAKE_MAX_IO];
  static float got[ROWS * COLUMNS];
  if (inputs != NULL) evaluate(r->graph, inputs, expected);
  for (uint32_t i = 0; i < r->graph->output_count; ++i) {
    assert_ok(
        r->b->copy_out(r->device, r->session.stream, got, r->out[set][i].buffer, r->out[set][i].offset_bytes, sizeof got, &error),
        error);
    assert_ok(r->b->stream_synchronize(r->device, r->session.stream, &error), error);
    if (inputs != NULL)
      assert_memory_equal(got, expected[i].data, sizeof got);
    else
      for (int k = 0; k < ROWS * COLUMNS; ++k) assert_true(got[k] != got[k]);
  }
  if (inputs != NULL) release_tensors(heap(), expected, r->graph->output_count);
}

static clv_captured *capture(rig *r, int executions) {
  clv_error error = {0};
  clv_captured *captured = NULL;
  assert_ok(r->b->capture->begin(r->device, r->session.stream, CLV_CAPTURE_THREAD, &error), error);
  for (int x = 0; x < executions; ++x) {
    clv_execute_args args = args_of(r, x % SETS, x % SETS);
    assert_ok(r->b->execute(r->device, r->instances[x % INSTANCES], r->session.stream, &args, &error), error);
  }
  assert_ok(r->b->capture->end(r->device, r->session.stream, &captured, &error), error);
  return captured;
}

static void replay(rig *r, clv_captured *captured, int times) {
  clv_error error = {0};
  for (int i = 0; i < times; ++i) assert_ok(r->b->capture->launch(r->device, captured, r->session.stream, &error), error);
  assert_ok(r->b->stream_synchronize(r->device, r->session.stream, &error), error);
}

/* Fills the inputs of every set, then checks that a replay of `captured` computes the outputs of every set. The execution that
 * writes set s reads the inputs of set ins[s]. */
static void check_replay(rig *r, clv_captured *captured, const int ins[SETS], uint64_t *seed) {
  clv_tensor inputs[SETS][2];
  for (int s = 0; s < SETS; ++s) refill(r, s, inputs[s], seed);
  for (int s = 0; s < SETS; ++s) assert_outputs(r, s, NULL);
  replay(r, captured, 1 + (int)(test_random(seed) % 3));
  for (int s = 0; s < SETS; ++s) assert_outputs(r, s, inputs[ins[s]]);
  for (int s = 0; s < SETS; ++s) release_tensors(heap(), inputs[s], 2);
}

static void replay_equals_execution(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  uint64_t seed = 21;
  for (int round = 0; round < 30; ++round) {
    static rig r;
    clv_error error = {0};
    rig_open(&r, &fake, device, &seed);
    clv_buffer *scratch = NULL;
    uint64_t needed = r.b->scratch->size_bytes(device, r.instances[0]);
    if (round % 3 > 0) { /* both instances use the same scratch buffer, at offset 64 or 128 */
      assert_ok(r.b->buffer_alloc(device, needed + 128, &scratch, &error), error);
      for (int i = 0; i < INSTANCES; ++i)
        assert_ok(r.b->scratch->bind(device, r.instances[i], scratch, 64 * (uint64_t)(round % 3), &error), error);
    }
    clv_captured *captured = capture(&r, SETS);
    assert_true(r.b->capture->size_bytes(device, captured) > SETS * sizeof(clv__vnpu_list));
    check_replay(&r, captured, (const int[]){0, 1, 2}, &seed);
    /* An execution between replays gives the right results, too. */
    clv_tensor inputs[2];
    refill(&r, 1, inputs, &seed);
    clv_execute_args args = args_of(&r, 1, 0);
    assert_ok(r.b->capture->launch(device, captured, r.session.stream, &error), error);
    assert_ok(r.b->execute(device, r.instances[1], r.session.stream, &args, &error), error);
    assert_outputs(&r, 0, inputs);
    assert_outputs(&r, 1, inputs);
    release_tensors(heap(), inputs, 2);
    /* Rebind single executions to other buffers. */
    args = args_of(&r, 2, 0);
    assert_ok(r.b->capture->bind(device, captured, 0, &args, &error), error);
    check_replay(&r, captured, (const int[]){2, 1, 2}, &seed);
    args = args_of(&r, 0, 0);
    assert_ok(r.b->capture->bind(device, captured, 0, &args, &error), error);
    args = args_of(&r, 0, 1);
    assert_ok(r.b->capture->bind(device, captured, 1, &args, &error), error);
    check_replay(&r, captured, (const int[]){0, 0, 2}, &seed);
    /* Bind other scratch memory, and free the old one. */
    clv_buffer *fresh = NULL;
    assert_ok(r.b->buffer_alloc(device, needed, &fresh, &error), error);
    for (int i = 0; i < INSTANCES; ++i) assert_ok(r.b->scratch->bind(device, r.instances[i], fresh, 0, &error), error);
    r.b->buffer_free(device, scratch);
    check_replay(&r, captured, (const int[]){0, 0, 2}, &seed);
    r.b->capture->destroy(device, captured);
    r.b->capture->destroy(device, NULL);
    rig_close(&r);
    r.b->buffer_free(device, fresh);
  }
  fake_backend(&fake)->close(device);
}

static void wrong_bindings_change_nothing(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  uint64_t seed = 22;
  static rig r;
  clv_error error = {0};
  rig_open(&r, &fake, device, &seed);
  clv_captured *captured = capture(&r, SETS);
  clv_execute_args args = args_of(&r, 1, 1);
  assert_int_equal(r.b->capture->bind(device, captured, SETS, &args, &error), CLV_INVALID_ARGUMENT);
  clv_binding wrong[FAKE_MAX_IO];
  memcpy(wrong, r.out[1], sizeof wrong);
  args.outputs = wrong;
  uint32_t last = r.graph->output_count - 1; /* the last output, which is checked after the others */
  wrong[last].offset_bytes = 192;
  assert_int_equal(r.b->capture->bind(device, captured, 0, &args, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "do not fit"));
  wrong[last] = r.out[1][last];
  wrong[last].type.dims[0] = 1;
  assert_int_equal(r.b->capture->bind(device, captured, 0, &args, &error), CLV_INVALID_ARGUMENT);
  args.output_count = 0;
  assert_int_equal(r.b->capture->bind(device, captured, 0, &args, &error), CLV_INVALID_ARGUMENT);
  check_replay(&r, captured, (const int[]){0, 1, 2}, &seed);
  /* Scratch memory that is too small, not aligned or absent. */
  clv_buffer *small = NULL;
  uint64_t needed = r.b->scratch->size_bytes(device, r.instances[0]);
  assert_true(needed > 0);
  assert_ok(r.b->buffer_alloc(device, needed + 63, &small, &error), error);
  assert_int_equal(r.b->scratch->bind(device, r.instances[0], small, 64, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(r.b->scratch->bind(device, r.instances[0], small, 32, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(r.b->scratch->bind(device, r.instances[0], NULL, 0, &error), CLV_INVALID_ARGUMENT);
  r.b->buffer_free(device, small);
  check_replay(&r, captured, (const int[]){0, 1, 2}, &seed);
  r.b->capture->destroy(device, captured);
  rig_close(&r);
  fake_backend(&fake)->close(device);
}

static void captures_end_where_they_began(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  uint64_t seed = 23;
  static rig r;
  clv_error error = {0};
  rig_open(&r, &fake, device, &seed);
  clv_stream *stream = r.session.stream;
  clv_captured *captured = NULL;
  clv_event *event = NULL;
  clv_tensor inputs[2];
  refill(&r, 0, inputs, &seed);
  assert_ok(r.b->event_create(device, &event, &error), error);
  assert_int_equal(r.b->capture->end(device, stream, &captured, &error), CLV_INVALID_ARGUMENT);
  assert_ok(r.b->capture->begin(device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_int_equal(r.b->capture->begin(device, stream, CLV_CAPTURE_THREAD, &error), CLV_INVALID_ARGUMENT);
  clv_execute_args args = args_of(&r, 0, 0);
  assert_ok(r.b->execute(device, r.instances[0], stream, &args, &error), error);
  assert_int_equal(r.b->copy_in(device, stream, r.in[0][0].buffer, 0, &seed, 8, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(r.b->event_record(device, event, stream, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(r.b->event_wait(device, stream, event, &error), CLV_INVALID_ARGUMENT);
  assert_ok(r.b->capture->end(device, stream, NULL, &error), error);
  assert_outputs(&r, 0, NULL); /* nothing ran */
  /* If one execution is refused, the whole capture fails. */
  assert_ok(r.b->capture->begin(device, stream, CLV_CAPTURE_THREAD, &error), error);
  args.input_count = 1;
  assert_int_equal(r.b->execute(device, r.instances[0], stream, &args, &error), CLV_INVALID_ARGUMENT);
  args.input_count = 2;
  assert_ok(r.b->execute(device, r.instances[0], stream, &args, &error), error);
  assert_int_equal(r.b->capture->end(device, stream, &captured, &error), CLV_INVALID_ARGUMENT);
  assert_null(captured);
  assert_ok(r.b->execute(device, r.instances[0], stream, &args, &error), error);
  assert_outputs(&r, 0, inputs);
  /* Destroying a stream during its capture also frees the recording. */
  clv_stream *other = NULL;
  assert_ok(r.b->stream_create(device, &other, &error), error);
  assert_ok(r.b->capture->begin(device, other, CLV_CAPTURE_THREAD, &error), error);
  r.b->stream_destroy(device, other);
  release_tensors(heap(), inputs, 2);
  r.b->event_destroy(device, event);
  rig_close(&r);
  fake_backend(&fake)->close(device);
}

static void programs_that_find_their_shapes_are_not_captured(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "all");
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  fake_graph g = fake_graph_begin(heap());
  fake_input(&g, "x", CLV_F32, 1, (int64_t[]){6});
  fake_node(&g, "NonZero", "x", "where", NULL, 0);
  fake_output(&g, "where");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  float data[6] = {0, 1, 0, 2, 3, 0};
  clv_tensor x = clv__tensor_make(CLV_F32, 1, (int64_t[]){6}, data), where = {.dtype = CLV_I64, .rank = CLV_RANK_UNKNOWN};
  fake_session s;
  assert_ok(fake_session_open(&s, b, device, executable, graph, &x, 1, &error), error);
  clv_binding in = {.type = x}, out = {.type = where};
  fake_outputs cookie = {b, device};
  assert_ok(b->buffer_alloc(device, 24, &in.buffer, &error), error);
  clv_execute_args args = {sizeof args, 1, 1, &in, &out, &cookie, fake_allocate_output};
  assert_int_equal(b->scratch->size_bytes(device, s.instance), 0);
  assert_ok(b->scratch->bind(device, s.instance, NULL, 0, &error), error);
  assert_ok(b->capture->begin(device, s.stream, CLV_CAPTURE_THREAD, &error), error);
  assert_int_equal(b->execute(device, s.instance, s.stream, &args, &error), CLV_NOT_SUPPORTED);
  assert_ok(b->capture->end(device, s.stream, NULL, &error), error);
  assert_ok(fake_session_run(&s, heap(), &x, 1, &where, 1, &error), error);
  assert_int_equal(where.dims[1], 3);
  assert_true(((int64_t *)where.data)[0] == 1 && ((int64_t *)where.data)[2] == 4);
  clv__release(heap(), where.data);
  b->buffer_free(device, in.buffer);
  fake_session_close(&s);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
}

/* A value that is two outputs is computed in the first one and copied to the second, also after rebinding. */
static void a_value_that_leaves_twice(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "all");
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  fake_graph g = fake_graph_begin(heap());
  fake_input(&g, "x", CLV_F32, 1, (int64_t[]){4});
  fake_node(&g, "Relu", "x", "y", NULL, 0);
  fake_output(&g, "y");
  fake_output(&g, "y");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  float data[4] = {-1, 2, -3, 4}, got[4];
  clv_tensor x = clv__tensor_make(CLV_F32, 1, (int64_t[]){4}, data);
  fake_session s;
  assert_ok(fake_session_open(&s, b, device, executable, graph, &x, 1, &error), error);
  assert_int_equal(executable->output_count, 2);
  clv_binding in = {.type = x}, out[2] = {{.type = x}, {.type = x}};
  clv_execute_args args = {sizeof args, 1, 2, &in, out, NULL, NULL};
  clv_captured *captured = NULL;
  assert_ok(b->buffer_alloc(device, 16, &in.buffer, &error), error);
  assert_ok(b->copy_in(device, s.stream, in.buffer, 0, data, 16, &error), error);
  clv_buffer *buffers[4];
  for (int i = 0; i < 4; ++i) assert_ok(b->buffer_alloc(device, 16, &buffers[i], &error), error);
  for (int bound = 0; bound < 2; ++bound) {
    for (int i = 0; i < 2; ++i) out[i].buffer = buffers[2 * bound + i];
    if (bound == 0) {
      assert_ok(b->capture->begin(device, s.stream, CLV_CAPTURE_THREAD, &error), error);
      assert_ok(b->execute(device, s.instance, s.stream, &args, &error), error);
      assert_ok(b->capture->end(device, s.stream, &captured, &error), error);
    } else {
      assert_ok(b->capture->bind(device, captured, 0, &args, &error), error);
    }
    assert_ok(b->capture->launch(device, captured, s.stream, &error), error);
    for (int i = 0; i < 2; ++i) {
      assert_ok(b->copy_out(device, s.stream, got, out[i].buffer, 0, 16, &error), error);
      assert_ok(b->stream_synchronize(device, s.stream, &error), error);
      assert_true(got[0] == 0 && got[1] == 2 && got[2] == 0 && got[3] == 4);
    }
    if (bound == 0) b->buffer_free(device, buffers[0]); /* the capture no longer uses it after rebinding */
  }
  b->capture->destroy(device, captured);
  for (int i = 1; i < 4; ++i) b->buffer_free(device, buffers[i]);
  b->buffer_free(device, in.buffer);
  fake_session_close(&s);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
}

/* According to the speed model, launching a capture has the overhead of one launch. */
static void a_graph_is_one_launch(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device =
      fake_device(&fake, "{\"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 100, \"bytes_per_second\": 1e9}}");
  uint64_t seed = 24;
  static rig r;
  rig_open(&r, &fake, device, &seed);
  clv_captured *captured = capture(&r, SETS);
  double one = r.instances[0]->program->seconds;
  assert_true(one > 1e-4);
  double difference = captured->seconds - (SETS * (one - 1e-4) + 1e-4);
  assert_true(difference < 1e-9 && difference > -1e-9);
  r.b->capture->destroy(device, captured);
  rig_close(&r);
  fake_backend(&fake)->close(device);
}

/* ---- Threads, each with its own stream, instances and capture ---- */

typedef struct worker {
  rig rig;
  clv_captured *captured;
  pthread_mutex_t lock;
  pthread_cond_t reached;
  int notices;
} worker;

static void notice(void *cookie) {
  worker *w = cookie;
  pthread_mutex_lock(&w->lock);
  ++w->notices;
  pthread_cond_signal(&w->reached);
  pthread_mutex_unlock(&w->lock);
}

static void *work(void *argument) {
  worker *w = argument;
  rig *r = &w->rig;
  clv_event *event = NULL;
  if (r->b->event_create(r->device, &event, NULL) != CLV_OK) return "event";
  for (int run = 0; run < 120; ++run) {
    clv_execute_args args = args_of(r, run % SETS, (run + 1) % SETS);
    bool eager = run % 4 == 0;
    if (!eager && r->b->capture->bind(r->device, w->captured, 0, &args, NULL) != CLV_OK) return "bind";
    clv_status status = eager ? r->b->execute(r->device, r->instances[run % INSTANCES], r->session.stream, &args, NULL)
                              : r->b->capture->launch(r->device, w->captured, r->session.stream, NULL);
    if (status != CLV_OK) return "launch";
    if (r->b->event_record(r->device, event, r->session.stream, NULL) != CLV_OK) return "record";
    if (r->b->event_notify(r->device, event, notice, w, NULL) != CLV_OK) return "notify";
    pthread_mutex_lock(&w->lock);
    while (w->notices <= run) pthread_cond_wait(&w->reached, &w->lock);
    pthread_mutex_unlock(&w->lock);
    if (r->b->event_synchronize(r->device, event, NULL) != CLV_OK) return "event";
  }
  r->b->event_destroy(r->device, event);
  return NULL;
}

static void threads_replay_on_one_device(void **state) {
  (void)state;
  enum { WORKERS = 3 };
  static worker workers[WORKERS];
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  pthread_t threads[WORKERS];
  clv_tensor inputs[WORKERS][SETS][2];
  uint64_t seed = 25;
  for (int t = 0; t < WORKERS; ++t) {
    rig_open(&workers[t].rig, &fake, device, &seed);
    pthread_mutex_init(&workers[t].lock, NULL);
    pthread_cond_init(&workers[t].reached, NULL);
    workers[t].captured = capture(&workers[t].rig, 1);
    for (int s = 0; s < SETS; ++s) refill(&workers[t].rig, s, inputs[t][s], &seed);
    assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  }
  for (int t = 0; t < WORKERS; ++t) {
    void *failed;
    pthread_join(threads[t], &failed);
    if (failed != NULL) fail_msg("worker %d: a call failed: %s", t, (char *)failed);
    for (int s = 0; s < SETS; ++s) assert_outputs(&workers[t].rig, (s + 1) % SETS, inputs[t][s]);
    for (int s = 0; s < SETS; ++s) release_tensors(heap(), inputs[t][s], 2);
    fake_backend(&fake)->capture->destroy(device, workers[t].captured);
    rig_close(&workers[t].rig);
    pthread_mutex_destroy(&workers[t].lock);
    pthread_cond_destroy(&workers[t].reached);
  }
  fake_backend(&fake)->close(device);
}

/* ---- Memory ---- */

/* Captures with each allocation failing once. The result is an error or a capture, no memory leaks, and execution works
 * afterwards. */
static void every_allocation_may_fail(void **state) {
  (void)state;
  bool failed = true;
  for (size_t at = 1; failed; ++at) {
    fake_rig r;
    clv_error error = {0};
    fake_rig_open(&r, NULL, NULL);
    clv_captured *captured = NULL;
    r.counting.fail_at = r.counting.calls + at;
    clv_status status = r.b->capture->begin(r.device, r.session.stream, CLV_CAPTURE_THREAD, &error);
    if (status == CLV_OK) {
      clv_status executed = r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error);
      status = r.b->capture->end(r.device, r.session.stream, &captured, &error);
      assert_int_equal(executed, status);
    }
    failed = r.counting.calls >= r.counting.fail_at;
    assert_int_equal(status, failed ? CLV_OUT_OF_MEMORY : CLV_OK);
    assert_true(failed == (captured == NULL));
    r.counting.fail_at = 0;
    if (!failed) { /* launching and rebinding allocate nothing */
      size_t before = r.counting.calls;
      assert_ok(r.b->capture->launch(r.device, captured, r.session.stream, &error), error);
      assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
      assert_ok(r.b->capture->bind(r.device, captured, 0, &r.args, &error), error);
      assert_int_equal(r.counting.calls, before);
    }
    assert_ok(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), error);
    assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
    r.b->capture->destroy(r.device, captured);
    fake_rig_finish(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replay_equals_execution),       cmocka_unit_test(wrong_bindings_change_nothing),
      cmocka_unit_test(captures_end_where_they_began), cmocka_unit_test(programs_that_find_their_shapes_are_not_captured),
      cmocka_unit_test(a_value_that_leaves_twice),     cmocka_unit_test(a_graph_is_one_launch),
      cmocka_unit_test(threads_replay_on_one_device),  cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
