/* Programs of the virtual NPU have bit for bit the same results as direct evaluation: compiled or loaded, whole graphs or
 * partitions, with static or dynamic shapes. */
#include "backends/vnpu/instance.h"

#include <time.h>

#include "fake_rig.h"

static void programs_equal_evaluation(void **state) {
  (void)state;
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_BF16};
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *devices[] = {fake_device(&fake, "default"), fake_device(&fake, "{\"operators\": \"all\", \"alignment\": 2048}")};
  const clv_backend *b = fake_backend(&fake);
  uint64_t seed = 1;
  static blob saved;
  for (int round = 0; round < 60; ++round) {
    clv_device *device = devices[round % 2];
    clv_graph *graph = random_graph(heap(), dtypes[round % 3], 1 + round % 17, &seed);
    clv__shapes *shapes = shapes_of(graph);
    clv_tensor inputs[2], expected[FAKE_MAX_IO], got[FAKE_MAX_IO];
    random_inputs(graph, inputs, &seed);
    evaluate(graph, inputs, expected);
    clv_executable *executable = NULL;
    clv_error error = {0};
    compile_whole(&fake, device, graph, shapes->types, &executable);
    saved.size_bytes = 0;
    assert_ok(b->save->save(device, executable, blob_write, &saved, &error), error);
    for (int loaded = 0; loaded < 2; ++loaded) {
      if (loaded) assert_ok(b->save->load(device, saved.data, saved.size_bytes, &executable, &error), error);
      fake_session session;
      assert_ok(fake_session_open(&session, b, device, executable, graph, inputs, 2, &error), error);
      for (int again = 0; again < 2; ++again) {
        for (uint32_t i = 0; i < graph->output_count; ++i) got[i] = output_type(graph, shapes, i);
        assert_ok(fake_session_run(&session, heap(), inputs, 2, got, graph->output_count, &error), error);
        for (uint32_t i = 0; i < graph->output_count; ++i) {
          assert_same(&expected[i], &got[i], graph->values[graph->outputs[i]].name);
        }
        release_tensors(heap(), got, graph->output_count);
      }
      fake_session_close(&session);
    }
    release_tensors(heap(), inputs, 2);
    release_tensors(heap(), expected, graph->output_count);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
  for (int i = 0; i < 2; ++i) b->close(devices[i]);
}

/* Runs ranges of nodes as separate programs, and copies values between them through the host, as the library does with
 * partitions. */
static void partitions_equal_evaluation(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  const clv_backend *b = fake_backend(&fake);
  uint64_t seed = 2;
  for (int round = 0; round < 20; ++round) {
    clv_graph *graph = random_graph(heap(), CLV_F32, 12, &seed);
    clv__shapes *shapes = shapes_of(graph);
    clv_tensor inputs[2], expected[FAKE_MAX_IO];
    clv_tensor *values = clv__allocate_zero(heap(), graph->value_count * sizeof *values);
    random_inputs(graph, inputs, &seed);
    evaluate(graph, inputs, expected);
    for (int i = 0; i < 2; ++i) values[graph->inputs[i]] = inputs[i];
    for (clv_node_id from = 0; from < graph->node_count;) {
      clv_node_id nodes[64], count = 0;
      clv_node_id size = 1 + (clv_node_id)(test_random(&seed) % 5);
      while (count < size && from < graph->node_count) nodes[count++] = from++;
      clv__arena arena;
      clv__arena_init(&arena, heap());
      clv_graph_view *view = NULL;
      clv_error error = {0};
      clv_executable *executable = NULL;
      fake_session session;
      clv_tensor in[FAKE_MAX_IO], out[FAKE_MAX_IO];
      assert_ok(clv__view_create(graph, shapes->types, nodes, count, NULL, &arena, &view, &error), error);
      assert_ok(b->compile(device, view, NULL, &executable, &error), error);
      for (uint32_t i = 0; i < view->input_count; ++i) in[i] = values[view->values[view->inputs[i]]];
      for (uint32_t i = 0; i < view->output_count; ++i) out[i] = *clv__view_type(view, view->outputs[i]);
      assert_ok(fake_session_open(&session, b, device, executable, graph, in, view->input_count, &error), error);
      assert_ok(fake_session_run(&session, heap(), in, view->input_count, out, view->output_count, &error), error);
      for (uint32_t i = 0; i < view->output_count; ++i) values[view->values[view->outputs[i]]] = out[i];
      fake_session_close(&session);
      clv__arena_finish(&arena);
    }
    for (uint32_t i = 0; i < graph->output_count; ++i) {
      assert_same(&expected[i], &values[graph->outputs[i]], graph->values[graph->outputs[i]].name);
    }
    release_tensors(heap(), values, graph->value_count);
    release_tensors(heap(), expected, graph->output_count);
    clv__release(heap(), values);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
  b->close(device);
}

/* Compiles the first `count` nodes of `graph` for a device whose description sets the limit `limit` to `most`. */
static clv_status compile_sum(const clv_graph *graph, const clv_tensor *types, uint32_t count, const char *limit, uint32_t most,
                              clv_error *error) {
  static const clv_node_id nodes[] = {0, 1, 2};
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  char spec[80];
  snprintf(spec, sizeof spec, "{\"operators\": \"all\", \"%s\": %u}", limit, most);
  clv_device *device = fake_device(&fake, spec);
  clv_executable *executable;
  clv_graph_view *view;
  clv__arena arena;
  clv__arena_init(&arena, heap());
  assert_ok(clv__view_create(graph, types, nodes, count, NULL, &arena, &view, error), *error);
  clv_status status = b->compile(device, view, NULL, &executable, error);
  b->executable_destroy(device, executable);
  b->close(device);
  clv__arena_finish(&arena);
  return status;
}

/* A program has at most as many nodes and inputs as the description says. A single node may read more inputs, because
 * supports() accepts it. Constants do not count as inputs. */
static void larger_programs_are_refused(void **state) {
  (void)state;
  clv_error error = {0};
  fake_graph g = fake_graph_begin(heap());
  for (int i = 0; i < 4; ++i) fake_input(&g, (char[]){(char)('a' + i), 0}, CLV_F32, 1, (int64_t[]){2});
  fake_constant(&g, "k", CLV_F32, 1, (int64_t[]){2}, (float[]){1, 2});
  fake_node(&g, "Sum", "a b k", "ab", NULL, 0);
  fake_node(&g, "Add", "ab c", "abc", NULL, 0);
  fake_node(&g, "Add", "abc d", "abcd", NULL, 0);
  fake_output(&g, "abcd");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  assert_int_equal(compile_sum(graph, shapes->types, 3, "max_partition_nodes", 2, &error), CLV_TOO_LARGE);
  assert_non_null(strstr(error.message, "3 nodes, but a program has at most 2 ('max_partition_nodes')"));
  assert_ok(compile_sum(graph, shapes->types, 3, "max_partition_nodes", 3, &error), error);
  assert_int_equal(compile_sum(graph, shapes->types, 3, "max_partition_inputs", 3, &error), CLV_TOO_LARGE);
  assert_non_null(strstr(error.message, "4 inputs, but a program has at most 3 ('max_partition_inputs')"));
  assert_ok(compile_sum(graph, shapes->types, 3, "max_partition_inputs", 4, &error), error);
  assert_int_equal(compile_sum(graph, shapes->types, 2, "max_partition_inputs", 2, &error), CLV_TOO_LARGE);
  assert_ok(compile_sum(graph, shapes->types, 1, "max_partition_inputs", 1, &error), error);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* ---- Alignment ---- */

static void expect_misaligned(fake_rig *r, const char *name) {
  clv_error error = {0};
  char wanted[32];
  snprintf(wanted, sizeof wanted, "'%s': device address 0x4", name);
  assert_int_equal(r->b->execute(r->device, r->session.instance, r->session.stream, &r->args, &error), CLV_INVALID_ARGUMENT);
  if (strstr(error.message, wanted) == NULL || strstr(error.message, "not a multiple of the device's alignment of 512") == NULL)
    fail_msg("the error message '%s' does not name the operand '%s', its address and the alignment", error.message, name);
}

/* Every operand must be aligned as the description says: inputs, outputs, weights, constants and scratch. An error names the
 * operand, its address and the alignment. */
static void operands_are_aligned(void **state) {
  (void)state;
  fake_rig r;
  clv_error error = {0};
  clv_buffer *wide[2], *scratch;
  fake_rig_open(&r, "spec", "{\"operators\": \"all\", \"alignment\": 512}");
  clv_instance *instance = r.session.instance;
  const uint64_t needed = r.b->scratch->size_bytes(r.device, instance);
  for (int i = 0; i < 2; ++i) assert_ok(r.b->buffer_alloc(r.device, ROWS * COLUMNS * 4 + 512, &wide[i], &error), error);
  assert_ok(r.b->buffer_alloc(r.device, needed + 512, &scratch, &error), error);
  assert_int_equal(r.b->scratch->bind(r.device, instance, scratch, 256, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "scratch: device address 0x4"));
  assert_ok(r.b->scratch->bind(r.device, instance, scratch, 512, &error), error);
  clv_buffer *in = r.in.buffer, *out = r.out.buffer;
  r.in = (clv_binding){.buffer = wide[0], .offset_bytes = 256, .type = r.in.type};
  expect_misaligned(&r, "x");
  r.in.offset_bytes = 512;
  r.out = (clv_binding){.buffer = wide[1], .offset_bytes = 64, .type = r.out.type};
  expect_misaligned(&r, "y");
  r.out.offset_bytes = 512;
  instance->weights[0] += 256;
  expect_misaligned(&r, "w");
  instance->weights[0] -= 256;
  r.session.executable->constants += 64;
  expect_misaligned(&r, "b");
  r.session.executable->constants -= 64;
  instance->scratch += 128;
  expect_misaligned(&r, "xw");
  instance->scratch -= 128;
  assert_ok(r.b->execute(r.device, instance, r.session.stream, &r.args, &error), error);
  assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
  r.in.buffer = in, r.out.buffer = out;
  for (int i = 0; i < 2; ++i) r.b->buffer_free(r.device, wide[i]);
  r.b->buffer_free(r.device, scratch);
  fake_rig_finish(&r);
}

/* A program that stays dynamic checks the alignment of its operands as it runs. */
static void dynamic_operands_are_aligned(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "{\"operators\": \"all\", \"alignment\": 512}");
  clv_error error = {0};
  float data[2] = {1, 2};
  fake_graph g = fake_graph_begin(heap());
  fake_input(&g, "x", CLV_F32, 1, (int64_t[]){2});
  fake_constant(&g, "k", CLV_F32, 1, (int64_t[]){2}, data);
  fake_node(&g, "Sub", "x k", "d", NULL, 0);
  fake_node(&g, "NonZero", "d", "y", NULL, 0);
  fake_output(&g, "y");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  clv_tensor x = graph->values[graph->inputs[0]].type, y = {.dtype = CLV_I64, .rank = CLV_RANK_UNKNOWN};
  x.data = data;
  clv_executable *executable = NULL;
  fake_session session;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  assert_false(executable->is_static);
  assert_ok(fake_session_open(&session, b, device, executable, graph, &x, 1, &error), error);
  executable->constants += 256;
  assert_int_equal(fake_session_run(&session, heap(), &x, 1, &y, 1, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'k': device address 0x4"));
  executable->constants -= 256;
  y.rank = CLV_RANK_UNKNOWN;
  assert_ok(fake_session_run(&session, heap(), &x, 1, &y, 1, &error), error);
  clv__release(heap(), y.data);
  fake_session_close(&session);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
}

/* ---- Poison ---- */

/* If the memory is guarded, discarding a buffer poisons the buffer and nothing else. Otherwise the bytes stay. */
static void discarded_buffers_are_poisoned(void **state) {
  (void)state;
  enum { BYTES = 1000 };
  for (int guarded = 0; guarded < 2; ++guarded) {
    fake_rig r;
    clv_error error = {0};
    uint8_t bytes[BYTES];
    clv_buffer *buffers[3];
    fake_rig_open(&r, "guard", guarded ? "1" : "0");
    memset(bytes, 7, sizeof bytes);
    for (int i = 0; i < 3; ++i) {
      assert_ok(r.b->buffer_alloc(r.device, BYTES, &buffers[i], &error), error);
      assert_ok(r.b->copy_in(r.device, r.session.stream, buffers[i], 0, bytes, BYTES, &error), error);
    }
    assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
    r.b->buffer_discard(r.device, buffers[1]);
    for (int i = 0; i < 3; ++i) {
      assert_ok(r.b->copy_out(r.device, r.session.stream, bytes, buffers[i], 0, BYTES, &error), error);
      assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
      for (int k = 0; k < BYTES; ++k) assert_int_equal(bytes[k], guarded && i == 1 ? CLV__VNPU_POISON : 7);
    }
    for (int i = 0; i < 3; ++i) r.b->buffer_free(r.device, buffers[i]);
    fake_rig_finish(&r);
  }
}

static void what_was_not_transferred_is_poison(void **state) {
  (void)state;
  fake_rig r;
  clv_error error = {0};
  fake_rig_open(&r, NULL, NULL);
  clv_executable_info info = {.struct_size = sizeof info};
  r.b->executable_info(r.device, r.session.executable, &info);
  assert_int_equal(info.weight_count, 1);
  assert_string_equal(info.weights[0], "w");
  assert_true(info.resident_bytes >= COLUMNS * 4 && info.scratch_bytes >= 2 * ROWS * COLUMNS * 4);
  clv_tensor x = r.in.type;
  float y[ROWS * COLUMNS] = {0};
  assert_ok(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), error);
  assert_ok(r.b->copy_out(r.device, r.session.stream, y, r.out.buffer, 0, sizeof y, &error), error);
  assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
  for (int i = 0; i < ROWS * COLUMNS; ++i) assert_true(y[i] != y[i]);

  /* Bindings to host memory, a buffer that is too small, a misaligned offset, another shape: each is rejected before anything
   * runs. */
  clv_binding wrong = {.type = x};
  wrong.type.data = y;
  r.args.inputs = &wrong;
  assert_int_equal(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'x' is bound to no memory that the device can reach"));
  wrong = r.in;
  wrong.offset_bytes = 64;
  assert_int_equal(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), CLV_INVALID_ARGUMENT);
  wrong = r.in;
  wrong.type.dims[0] = 1;
  assert_int_equal(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "f32[1,40]"));
  wrong.offset_bytes = 2;
  assert_int_equal(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(r.b->copy_out(r.device, r.session.stream, y, r.out.buffer, 4, sizeof y, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(r.b->instance_resize(r.device, r.session.instance, &x, 1, &error), CLV_NOT_SUPPORTED);
  clv_instance *instance = NULL;
  x.dims[0] = 5;
  assert_int_equal(r.b->instance_create(r.device, r.session.executable, &x, 1, r.session.weights, 1, &instance, &error),
                   CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "f32[5,40]"));
  x.dims[0] = ROWS;
  assert_int_equal(r.b->instance_create(r.device, r.session.executable, &x, 1, r.session.weights, 0, &instance, &error),
                   CLV_INVALID_ARGUMENT);
  fake_rig_finish(&r);
}

static void scratch_is_poisoned_before_every_run(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  fake_graph g = fake_graph_begin(heap());
  fake_input(&g, "x", CLV_F32, 1, (int64_t[]){1});
  fake_node(&g, "Relu", "x", "r", NULL, 0);
  fake_node(&g, "Relu", "r", "y", NULL, 0);
  fake_output(&g, "y");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  float one = 1;
  clv_tensor x = graph->values[graph->inputs[0]].type, y = output_type(graph, shapes, 0);
  x.data = &one;
  fake_session session;
  assert_ok(fake_session_open(&session, b, device, executable, graph, &x, 1, &error), error);
  assert_int_equal(executable->scratch_bytes, 64);                            /* the intermediate value uses four bytes */
  assert_ok(fake_session_run(&session, heap(), &x, 1, &y, 1, &error), error); /* the instance allocates its own scratch */
  clv__release(heap(), y.data);
  uint8_t *scratch = clv__vnpu_space_translate(device->space, session.instance->scratch, 64);
  assert_non_null(scratch);
  clv__vnpu_space_enter(device->space);
  memset(scratch, 0, 64);
  assert_ok(fake_session_run(&session, heap(), &x, 1, &y, 1, &error), error);
  assert_true(*(float *)y.data == 1);
  for (int i = 4; i < 64; ++i) assert_int_equal(scratch[i], CLV__VNPU_POISON);
  clv__vnpu_space_leave(device->space);
  clv__release(heap(), y.data);
  fake_session_close(&session);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
}

/* Two devices in one memory space: one reads the other's buffer without a copy. In the space "host", host memory can be bound. */
static void devices_share_memory_spaces(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  float data[ROWS * COLUMNS], y[ROWS * COLUMNS];
  uint64_t seed = 9;
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor x = graph->values[graph->inputs[0]].type, expected;
  x.data = data;
  evaluate(graph, &x, &expected);
  static const char *const specs[] = {"{\"operators\": \"all\", \"memory_space\": \"pool\"}",
                                      "{\"operators\": \"all\", \"memory_space\": \"host\"}"};
  for (int k = 0; k < 2; ++k) {
    clv_device *holds = NULL, *runs = NULL;
    assert_ok(fake_device_open(&fake, "npu", specs[k], &holds, &error), error);
    assert_ok(fake_device_open(&fake, "npu1", specs[k], &runs, &error), error);
    clv_executable *executable = NULL;
    compile_whole(&fake, runs, graph, shapes->types, &executable);
    fake_session session;
    assert_ok(fake_session_open(&session, b, runs, executable, graph, &x, 1, &error), error);
    clv_stream *stream = NULL;
    assert_ok(b->stream_create(holds, &stream, &error), error);
    clv_binding in = {.type = x}, out = {.type = output_type(graph, shapes, 0)};
    memset(y, 0, sizeof y);
    if (k == 0) {
      assert_ok(b->buffer_alloc(holds, sizeof data, &in.buffer, &error), error);
      assert_ok(b->buffer_alloc(holds, sizeof data, &out.buffer, &error), error);
      assert_ok(b->copy_in(holds, stream, in.buffer, 0, data, sizeof data, &error), error);
      assert_ok(b->stream_synchronize(holds, stream, &error), error);
    } else {
      out.type.data = y;
    }
    clv_execute_args args = {.struct_size = sizeof args, .input_count = 1, .output_count = 1, .inputs = &in, .outputs = &out};
    assert_ok(b->execute(runs, session.instance, session.stream, &args, &error), error);
    assert_ok(b->stream_synchronize(runs, session.stream, &error), error);
    if (k == 0) {
      assert_ok(b->copy_out(holds, stream, y, out.buffer, 0, sizeof y, &error), error);
      assert_ok(b->stream_synchronize(holds, stream, &error), error);
    }
    assert_memory_equal(y, expected.data, sizeof y);
    b->buffer_free(holds, in.buffer);
    b->buffer_free(holds, out.buffer);
    b->stream_destroy(holds, stream);
    fake_session_close(&session);
    b->close(holds);
    b->close(runs);
  }
  clv__release(heap(), expected.data);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

static void steady_state_takes_no_memory(void **state) {
  (void)state;
  fake_rig r;
  clv_error error = {0};
  fake_rig_open(&r, NULL, NULL);
  float y[ROWS * COLUMNS] = {0};
  /* The first run allocates scratch and starts the threads. */
  assert_ok(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), error);
  assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
  size_t before = r.counting.calls;
  for (int run = 0; run < 300; ++run) { /* more launches than may be in flight: execute() waits until one ends */
    assert_ok(r.b->copy_in(r.device, r.session.stream, r.in.buffer, 0, y, sizeof y, &error), error);
    assert_ok(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), error);
  }
  assert_ok(r.b->stream_synchronize(r.device, r.session.stream, &error), error);
  assert_int_equal(r.counting.calls, before);
  fake_rig_finish(&r);
}

static void weights_are_shared_by_id_and_bytes(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  float data[100] = {1, 2, 3};
  clv_tensor tensor = clv__tensor_make(CLV_F32, 1, (int64_t[]){100}, data);
  clv_weight *first, *second, *third, *odd;
  assert_ok(b->weight_upload(device, "w", &tensor, &first, &error), error);
  assert_ok(b->weight_upload(device, "w", &tensor, &second, &error), error);
  assert_ptr_equal(first, second);
  data[99] = 7;
  assert_ok(b->weight_upload(device, "w", &tensor, &third, &error), error);
  assert_ptr_not_equal(first, third);
  clv_tensor misaligned = clv__tensor_make(CLV_F32, 1, (int64_t[]){20}, (uint8_t *)data + 3);
  assert_ok(b->weight_upload(device, "m", &misaligned, &odd, &error), error);
  b->weight_release(device, first);
  b->weight_release(device, third);
  b->weight_release(device, second);
  tensor.data = NULL;
  assert_int_equal(b->weight_upload(device, "w", &tensor, &first, &error), CLV_INVALID_ARGUMENT);
  b->close(device); /* also frees the remaining weights */
}

/* ---- Dynamic programs ---- */

static void run_on_all(const clv_graph *graph, const clv_tensor *inputs, uint32_t input_count) {
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "all");
  clv_error error = {0};
  clv_tensor expected[4], got[4];
  evaluate(graph, inputs, expected);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  static blob saved;
  saved.size_bytes = 0;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  assert_ok(b->save->save(device, executable, blob_write, &saved, &error), error);
  for (int loaded = 0; loaded < 2; ++loaded) {
    if (loaded) assert_ok(b->save->load(device, saved.data, saved.size_bytes, &executable, &error), error);
    fake_session session;
    assert_ok(fake_session_open(&session, b, device, executable, graph, inputs, input_count, &error), error);
    for (int again = 0; again < 2; ++again) {
      for (uint32_t i = 0; i < graph->output_count; ++i) { /* the second time the device determines the sizes */
        got[i] = expected[i];
        got[i].data = NULL;
        if (again) got[i].rank = CLV_RANK_UNKNOWN;
      }
      assert_ok(fake_session_run(&session, heap(), inputs, input_count, got, graph->output_count, &error), error);
      for (uint32_t i = 0; i < graph->output_count; ++i) assert_same(&expected[i], &got[i], "output");
      release_tensors(heap(), got, graph->output_count);
    }
    got[0] = clv__tensor_make(expected[0].dtype, 1, (int64_t[]){77}, NULL);
    for (uint32_t i = 1; i < graph->output_count; ++i) got[i] = expected[i];
    assert_int_equal(fake_session_run(&session, heap(), inputs, input_count, got, graph->output_count, &error),
                     CLV_INVALID_ARGUMENT); /* the bound size differs from the computed one */
    fake_session_close(&session);
  }
  release_tensors(heap(), expected, graph->output_count);
  clv__shapes_destroy(shapes);
  b->close(device);
}

static clv_graph *make_open(bool is_sized_by_data, uint64_t *seed) {
  fake_graph g = fake_graph_begin(heap());
  uint32_t symbol;
  assert_ok(clv__builder_symbol(g.builder, "N", &symbol, &g.error), g.error);
  fake_input(&g, "x", CLV_F32, 2, (int64_t[]){CLV_DIM_SYMBOL(symbol), COLUMNS});
  random_constant(&g, "w", CLV_F32, 2, (int64_t[]){COLUMNS, COLUMNS}, seed);
  fake_node(&g, "MatMul", "x w", "xw", NULL, 0);
  fake_node(&g, "Relu", "xw", "r", NULL, 0);
  if (is_sized_by_data) {
    fake_node(&g, "NonZero", "r", "where", NULL, 0);
    fake_node(&g, "Shape", "where", "size", NULL, 0); /* the sizes of a value whose sizes are unknown */
    fake_node(&g, "Expand", "one size", "ones", NULL, 0);
    random_constant(&g, "one", CLV_F32, 1, (int64_t[]){1}, seed);
  }
  fake_node(&g, "Shape", "r", "shape", NULL, 0);
  fake_node(&g, "Reshape", "xw shape", "again", NULL, 0);
  if (is_sized_by_data) fake_output(&g, "where");
  if (is_sized_by_data) fake_output(&g, "ones");
  fake_output(&g, "again");
  fake_output(&g, "x"); /* an input that is an output */
  return fake_graph_end(&g);
}

/* Programs for any number of rows: an instance has a static program of its own, unless a size depends on the data. */
static void dynamic_programs_equal_evaluation(void **state) {
  (void)state;
  for (int is_sized_by_data = 0; is_sized_by_data < 2; ++is_sized_by_data) {
    uint64_t seed = 5;
    clv_graph *graph = make_open(is_sized_by_data != 0, &seed);
    float data[6 * COLUMNS];
    for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
    for (int64_t rows = 0; rows <= 6; rows += 3) {
      clv_tensor x = clv__tensor_make(CLV_F32, 2, (int64_t[]){rows, COLUMNS}, data);
      run_on_all(graph, &x, 1);
    }
    clv__graph_destroy(graph);
  }
}

static void bodies_run(void **state) {
  (void)state;
  clv_error error = {0};
  for (int taken = 0; taken < 2; ++taken) {
    fake_graph g = fake_graph_begin(heap());
    fake_input(&g, "condition", CLV_BOOL, 0, NULL);
    fake_input(&g, "x", CLV_F32, 2, (int64_t[]){ROWS, COLUMNS});
    fake_node(&g, "Relu", "x", "captured", NULL, 0);
    const clv_graph_view *bodies[2];
    for (int k = 0; k < 2; ++k) {
      fake_graph body = {0};
      assert_ok(clv__builder_create(heap(), &body.builder, &error), error);
      fake_node(&body, k == 0 ? "Add" : "Mul", "captured x", "inner", NULL, 0);
      fake_output(&body, "inner");
      assert_ok(clv__builder_finish_body(body.builder, g.builder, &bodies[k], &error), error);
    }
    clv_attribute attributes[] = {{.name = "then_branch", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = bodies[0]},
                                  {.name = "else_branch", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = bodies[1]}};
    fake_node(&g, "If", "condition", "chosen", attributes, 2);
    fake_node(&g, "Relu", "chosen", "y", NULL, 0);
    fake_output(&g, "y");
    fake_output(&g, "chosen");
    clv_graph *graph = fake_graph_end(&g);
    bool condition = taken == 1;
    float data[ROWS * COLUMNS];
    uint64_t seed = 6;
    for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
    clv_tensor inputs[] = {clv__tensor_make(CLV_BOOL, 0, NULL, &condition),
                           clv__tensor_make(CLV_F32, 2, (int64_t[]){ROWS, COLUMNS}, data)};
    run_on_all(graph, inputs, 2);
    fake_host fake;
    fake_host_init(&fake, heap());
    clv_device *device = fake_device(&fake, "default");
    clv_verdict verdict;
    clv__shapes *shapes = shapes_of(graph);
    clv_graph_view view = *graph->whole;
    view.types = shapes->types;
    fake_backend(&fake)->supports(device, &view, 1, &verdict);
    assert_false(verdict.supported);
    assert_non_null(strstr(verdict.reason, "If is not in the device's description"));
    fake_backend(&fake)->close(device);
    device = fake_device(&fake, "{\"operators\": {\"If\": {}, \"Add\": {}, \"Relu\": {}}, \"control_flow\": true}");
    fake_backend(&fake)->supports(device, &view, 1, &verdict);
    assert_false(verdict.supported);
    assert_non_null(strstr(verdict.reason, "its body: operator Mul is not in the device's description"));
    fake_backend(&fake)->close(device);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
}

/* ---- Rounding and speed ---- */

static void results_have_the_compute_dtype(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  clv_device *device = fake_device(&fake, "{\"operators\": \"all\", \"compute_dtype\": \"bf16\"}");
  clv_executable *executable = NULL;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  float data[ROWS * COLUMNS];
  uint64_t seed = 8;
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor x = graph->values[graph->inputs[0]].type, y = output_type(graph, shapes, 0);
  x.data = data;
  fake_session session;
  assert_ok(fake_session_open(&session, b, device, executable, graph, &x, 1, &error), error);
  assert_ok(fake_session_run(&session, heap(), &x, 1, &y, 1, &error), error);
  for (size_t i = 0; i < ROWS * COLUMNS; ++i) {
    float value = ((float *)y.data)[i];
    assert_true(clv__bf16_to_f32(clv__f32_to_bf16(value)) == value);
  }
  clv__release(heap(), y.data);
  fake_session_close(&session);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
}

static void launches_take_the_modelled_time(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  static const char *const specs[] = {"{\"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 20000}}",
                                      "{\"operators\": \"all\", \"speed\": {\"flops_per_second\": 1e18}}"};
  for (int k = 0; k < 2; ++k) {
    clv_device *device = fake_device(&fake, specs[k]);
    clv_executable *executable = NULL;
    compile_whole(&fake, device, graph, shapes->types, &executable);
    float data[ROWS * COLUMNS] = {0};
    clv_tensor x = graph->values[graph->inputs[0]].type, y = output_type(graph, shapes, 0);
    x.data = data;
    fake_session session;
    assert_ok(fake_session_open(&session, b, device, executable, graph, &x, 1, &error), error);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int run = 0; run < 2; ++run) {
      y = output_type(graph, shapes, 0);
      assert_ok(fake_session_run(&session, heap(), &x, 1, &y, 1, &error), error);
      clv__release(heap(), y.data);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    if (k == 0) assert_true(seconds >= 0.04);
    fake_session_close(&session);
    b->close(device);
    if (k == 1) { /* the speed model is faster than the real computation, so there is one warning */
      assert_int_equal(fake.logged, 1);
      assert_non_null(strstr(fake.log, "of its speed model"));
    }
  }
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_equal_evaluation),
      cmocka_unit_test(partitions_equal_evaluation),
      cmocka_unit_test(larger_programs_are_refused),
      cmocka_unit_test(operands_are_aligned),
      cmocka_unit_test(dynamic_operands_are_aligned),
      cmocka_unit_test(discarded_buffers_are_poisoned),
      cmocka_unit_test(what_was_not_transferred_is_poison),
      cmocka_unit_test(scratch_is_poisoned_before_every_run),
      cmocka_unit_test(devices_share_memory_spaces),
      cmocka_unit_test(steady_state_takes_no_memory),
      cmocka_unit_test(weights_are_shared_by_id_and_bytes),
      cmocka_unit_test(dynamic_programs_equal_evaluation),
      cmocka_unit_test(bodies_run),
      cmocka_unit_test(results_have_the_compute_dtype),
      cmocka_unit_test(launches_take_the_modelled_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
