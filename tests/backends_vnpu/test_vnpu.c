/* Programs of the virtual NPU: the same bits as direct evaluation, compiled or loaded, whole or in parts; verdicts with their reasons;
 * limits; files from strangers; every allocation failing once. */
#include "../backends/vnpu/npubin.h"

#include <time.h>

#include "base/hash.h"
#include "fake_host.h"

static const clv_allocator *heap(void) { return clv__allocator_default(); }

/* ---- Random graphs over f32, f16 or bf16 matrices [4, 40]; weights [40, 40] are above the limit for program constants ---- */

enum { ROWS = 4, COLUMNS = 40 };

static void store(clv_dtype dtype, void *data, size_t index, float value) {
  if (dtype == CLV_F32) ((float *)data)[index] = value;
  if (dtype == CLV_F16) ((uint16_t *)data)[index] = clv__f32_to_f16(value);
  if (dtype == CLV_BF16) ((uint16_t *)data)[index] = clv__f32_to_bf16(value);
}

static void random_constant(fake_graph *g, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims, uint64_t *seed) {
  float buffer[COLUMNS * COLUMNS];
  size_t count = 1;
  for (int32_t i = 0; i < rank; ++i) count *= (size_t)dims[i];
  for (size_t i = 0; i < count; ++i) store(dtype, buffer, i, test_random_float(seed) * 0.3f);
  fake_constant(g, name, dtype, rank, dims, buffer);
}

static void binary(fake_graph *g, const char *op, int a, int b, int made) {
  char in[64], out[32];
  snprintf(in, sizeof in, "v%d v%d", a, b);
  snprintf(out, sizeof out, "v%d", made);
  fake_node(g, op, in, out, NULL, 0);
}

/* Appends nodes that make the value v<made> (and maybe more, of other names). */
static void random_step(fake_graph *g, clv_dtype dtype, int made, uint64_t *seed) {
  int x = (int)(test_random(seed) % (uint64_t)made), y = (int)(test_random(seed) % (uint64_t)made);
  char in[64], out[64], w[32];
  snprintf(in, sizeof in, "v%d", x);
  snprintf(out, sizeof out, "v%d", made);
  snprintf(w, sizeof w, "w%d", made);
  switch (test_random(seed) % 8) {
    case 0: fake_node(g, "Relu", in, out, NULL, 0); break;
    case 1: binary(g, "Add", x, y, made); break;
    case 2:
      random_constant(g, w, dtype, 1, (int64_t[]){COLUMNS}, seed); /* small: inside the program */
      snprintf(in, sizeof in, "v%d %s", x, w);
      fake_node(g, "Mul", in, out, NULL, 0);
      break;
    case 3:
    case 4:
      random_constant(g, w, dtype, 2, (int64_t[]){COLUMNS, COLUMNS}, seed); /* large: a weight */
      snprintf(in, sizeof in, "v%d %s", x, w);
      fake_node(g, "MatMul", in, out, NULL, 0);
      break;
    case 5: {
      snprintf(in, sizeof in, "v%d shape", x);
      fake_node(g, "Reshape", in, w, NULL, 0);
      snprintf(in, sizeof in, "%s shape_back", w);
      fake_node(g, "Reshape", in, out, NULL, 0);
      break;
    }
    case 6: { /* a join and a split of which one half is never read */
      clv_attribute axis = fake_ints(g, "axis", false, 1, (int64_t[]){0});
      snprintf(in, sizeof in, "v%d v%d", x, y);
      fake_node(g, "Concat", in, w, &axis, 1);
      snprintf(out, sizeof out, "v%d %s_rest", made, w);
      fake_node(g, "Split", w, out, &axis, 1);
      break;
    }
    default: {
      clv_attribute perm = fake_ints(g, "perm", true, 2, (int64_t[]){1, 0});
      fake_node(g, "Transpose", in, w, &perm, 1);
      fake_node(g, "Transpose", w, out, &perm, 1);
    }
  }
}

static clv_graph *random_graph(const clv_allocator *allocator, clv_dtype dtype, int nodes, uint64_t *seed) {
  fake_graph g = fake_graph_begin(allocator);
  fake_input(&g, "v0", dtype, 2, (int64_t[]){ROWS, COLUMNS});
  fake_input(&g, "v1", dtype, 2, (int64_t[]){ROWS, COLUMNS});
  fake_constant(&g, "shape", CLV_I64, 1, (int64_t[]){3}, (int64_t[]){2, ROWS, COLUMNS / 2});
  fake_constant(&g, "shape_back", CLV_I64, 1, (int64_t[]){2}, (int64_t[]){ROWS, COLUMNS});
  for (int i = 2; i < nodes + 2; ++i) random_step(&g, dtype, i, seed);
  char name[16];
  for (int i = 2; i < nodes + 2; ++i) { /* the last, and some that are also read inside */
    if (i < nodes + 1 && test_random(seed) % 5 != 0) continue;
    snprintf(name, sizeof name, "v%d", i);
    fake_output(&g, name);
  }
  return fake_graph_end(&g);
}

static void random_inputs(const clv_graph *graph, clv_tensor *inputs, uint64_t *seed) {
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    inputs[i] = graph->values[graph->inputs[i]].type;
    size_t count;
    assert_true(clv__tensor_count(&inputs[i], &count));
    inputs[i].data = clv__allocate(heap(), count * 4);
    for (size_t k = 0; k < count; ++k) store(inputs[i].dtype, inputs[i].data, k, test_random_float(seed));
  }
}

static clv_tensor output_type(const clv_graph *graph, const clv__shapes *shapes, uint32_t index) {
  clv_tensor type = shapes->types[graph->outputs[index]];
  type.data = NULL;
  return type;
}

static clv__shapes *shapes_of(const clv_graph *graph) {
  clv__shapes *shapes = NULL;
  clv_error error = {0};
  assert_ok(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), error);
  return shapes;
}

static void evaluate(const clv_graph *graph, const clv_tensor *inputs, clv_tensor *outputs) {
  clv_error error = {0};
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, outputs, NULL, NULL, heap(), &error), error);
}

/* The program in memory, growing. */
typedef struct blob {
  uint8_t data[1 << 17];
  size_t size_bytes;
} blob;

static clv_status blob_write(void *cookie, const void *data, size_t size_bytes) {
  blob *b = cookie;
  if (size_bytes > sizeof b->data - b->size_bytes) return CLV_IO_ERROR;
  memcpy(b->data + b->size_bytes, data, size_bytes);
  b->size_bytes += size_bytes;
  return CLV_OK;
}

static void compile_whole(const fake_host *fake, clv_device *device, const clv_graph *graph, const clv_tensor *types,
                          clv_executable **executable) {
  clv__arena arena;
  clv__arena_init(&arena, heap());
  clv_graph_view *view = NULL;
  clv_error error = {0};
  assert_ok(clv__view_create_whole(graph, types, &arena, &view, &error), error);
  assert_ok(fake_backend(fake)->compile(device, view, NULL, executable, &error), error);
  clv__arena_finish(&arena);
}

static void programs_equal_evaluation(void **state) {
  (void)state;
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_BF16};
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  const clv_backend *b = fake_backend(&fake);
  uint64_t seed = 1;
  static blob saved;
  for (int round = 0; round < 60; ++round) {
    clv_graph *graph = random_graph(heap(), dtypes[round % 3], 1 + round % 17, &seed);
    clv__shapes *shapes = shapes_of(graph);
    clv_tensor inputs[2], expected[FAKE_MAX_IO], got[FAKE_MAX_IO];
    random_inputs(graph, inputs, &seed);
    evaluate(graph, inputs, expected);
    clv_executable *executable = NULL;
    clv_error error = {0};
    compile_whole(&fake, device, graph, shapes->types, &executable);
    saved.size_bytes = 0;
    assert_ok(b->executable_save(device, executable, blob_write, &saved, &error), error);
    for (int loaded = 0; loaded < 2; ++loaded) {
      if (loaded) assert_ok(b->executable_load(device, saved.data, saved.size_bytes, &executable, &error), error);
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
  b->close(device);
}

/* Node ranges as programs of their own, values carried through the host: what the library does with partitions. */
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

/* ---- One small graph for everything else: y = Relu(x W + b) ---- */

static clv_graph *small_graph(const clv_allocator *allocator, clv_dtype dtype) {
  uint64_t seed = 3;
  fake_graph g = fake_graph_begin(allocator);
  fake_input(&g, "x", dtype, 2, (int64_t[]){ROWS, COLUMNS});
  random_constant(&g, "w", dtype, 2, (int64_t[]){COLUMNS, COLUMNS}, &seed);
  random_constant(&g, "b", dtype, 1, (int64_t[]){COLUMNS}, &seed);
  fake_node(&g, "MatMul", "x w", "xw", NULL, 0);
  fake_node(&g, "Add", "xw b", "xwb", NULL, 0);
  fake_node(&g, "Relu", "xwb", "y", NULL, 0);
  fake_output(&g, "y");
  return fake_graph_end(&g);
}

static void what_was_not_transferred_is_poison(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  clv_device *device = fake_device(&fake, "default");
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  clv_executable_info info = {.struct_size = sizeof info};
  b->executable_info(device, executable, &info);
  assert_int_equal(info.weight_count, 1);
  assert_string_equal(info.weights[0], "w");
  assert_true(info.resident_bytes >= COLUMNS * 4 && info.scratch_bytes >= 2 * ROWS * COLUMNS * 4);
  clv_tensor x = graph->values[graph->inputs[0]].type;
  fake_session session;
  assert_ok(fake_session_open(&session, b, device, executable, graph, &x, 1, &error), error);
  clv_binding in = {.type = x}, out = {.type = output_type(graph, shapes, 0)};
  assert_ok(b->buffer_alloc(device, ROWS * COLUMNS * 4, &in.buffer, &error), error);
  assert_ok(b->buffer_alloc(device, ROWS * COLUMNS * 4, &out.buffer, &error), error);
  clv_execute_args args = {.struct_size = sizeof args, .input_count = 1, .output_count = 1, .inputs = &in, .outputs = &out};
  float y[ROWS * COLUMNS] = {0};
  assert_ok(b->execute(device, session.instance, session.stream, &args, &error), error);
  assert_ok(b->copy_out(device, session.stream, y, out.buffer, 0, sizeof y, &error), error);
  assert_ok(b->stream_synchronize(device, session.stream, &error), error);
  for (int i = 0; i < ROWS * COLUMNS; ++i) assert_true(y[i] != y[i]);

  /* Host memory, a buffer too small, an odd offset, another shape: refused before anything runs. */
  clv_binding wrong = {.type = x};
  wrong.type.data = y;
  args.inputs = &wrong;
  assert_int_equal(b->execute(device, session.instance, session.stream, &args, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'x' is bound to host memory"));
  wrong = in;
  wrong.offset_bytes = 64;
  assert_int_equal(b->execute(device, session.instance, session.stream, &args, &error), CLV_INVALID_ARGUMENT);
  wrong = in;
  wrong.type.dims[0] = 1;
  assert_int_equal(b->execute(device, session.instance, session.stream, &args, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "f32[1,40]"));
  wrong.offset_bytes = 2;
  assert_int_equal(b->execute(device, session.instance, session.stream, &args, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(b->copy_out(device, session.stream, y, out.buffer, 4, sizeof y, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(b->instance_resize(device, session.instance, &x, 1, &error), CLV_NOT_SUPPORTED);
  clv_instance *instance = NULL;
  x.dims[0] = 5;
  assert_int_equal(b->instance_create(device, executable, &x, 1, session.weights, 1, &instance, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "f32[5,40]"));
  x.dims[0] = ROWS;
  assert_int_equal(b->instance_create(device, executable, &x, 1, session.weights, 0, &instance, &error), CLV_INVALID_ARGUMENT);
  b->buffer_free(device, in.buffer);
  b->buffer_free(device, out.buffer);
  fake_session_close(&session);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
}

static void steady_state_takes_no_memory(void **state) {
  (void)state;
  test_allocator counting;
  test_allocator_init(&counting);
  fake_host fake;
  fake_host_init(&fake, &counting.allocator);
  clv_device *device = fake_device(&fake, "default");
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = small_graph(&counting.allocator, CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  compile_whole(&fake, device, graph, shapes->types, &executable);
  clv_tensor x = graph->values[graph->inputs[0]].type;
  fake_session session;
  assert_ok(fake_session_open(&session, b, device, executable, graph, &x, 1, &error), error);
  clv_binding in = {.type = x}, out = {.type = output_type(graph, shapes, 0)};
  assert_ok(b->buffer_alloc(device, ROWS * COLUMNS * 4, &in.buffer, &error), error);
  assert_ok(b->buffer_alloc(device, ROWS * COLUMNS * 4, &out.buffer, &error), error);
  clv_execute_args args = {.struct_size = sizeof args, .input_count = 1, .output_count = 1, .inputs = &in, .outputs = &out};
  float y[ROWS * COLUMNS] = {0};
  size_t before = counting.calls;
  for (int run = 0; run < 300; ++run) { /* many in flight: launches wait for room */
    assert_ok(b->copy_in(device, session.stream, in.buffer, 0, y, sizeof y, &error), error);
    assert_ok(b->execute(device, session.instance, session.stream, &args, &error), error);
  }
  assert_ok(b->stream_synchronize(device, session.stream, &error), error);
  assert_int_equal(counting.calls, before);
  b->buffer_free(device, in.buffer);
  b->buffer_free(device, out.buffer);
  fake_session_close(&session);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  b->close(device);
  assert_int_equal(counting.live, 0);
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
  b->close(device); /* releases what is left */
}

/* Three element by element operators over [40, 40]: x, w, y, and two values between have 6,400 bytes each. */
static clv_graph *square_graph(void) {
  uint64_t seed = 4;
  int64_t dims[] = {COLUMNS, COLUMNS};
  fake_graph g = fake_graph_begin(heap());
  fake_input(&g, "x", CLV_F32, 2, dims);
  random_constant(&g, "w", CLV_F32, 2, dims, &seed);
  fake_node(&g, "Mul", "x w", "xw", NULL, 0);
  fake_node(&g, "Relu", "xw", "r", NULL, 0);
  fake_node(&g, "Relu", "r", "y", NULL, 0);
  fake_output(&g, "y");
  return fake_graph_end(&g);
}

static void memory_limits_are_told(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = square_graph();
  clv__shapes *shapes = shapes_of(graph);
  clv_option option = {"memory", "20000"}; /* enough for each node alone, not for all */
  clv_device_config config = {.struct_size = sizeof config, .name = "npu", .spec = "default", .option_count = 1, .options = &option};
  clv_device *device = NULL;
  assert_ok(b->open(NULL, &fake.host, &config, &device, &error), error);
  clv_verdict verdict;
  clv_graph_view whole = *graph->whole;
  whole.types = shapes->types;
  b->supports(device, &whole, 0, &verdict);
  assert_true(verdict.supported);
  clv_executable *executable = NULL;
  assert_int_equal(b->compile(device, &whole, NULL, &executable, &error), CLV_TOO_LARGE);
  assert_null(executable);
  assert_non_null(strstr(error.message, "weights 6.2 KiB, constants 0 bytes, scratch 12.5 KiB, inputs and outputs 12.5 KiB"));
  assert_non_null(strstr(error.message, "memory of 19.5 KiB"));
  b->close(device);
  option.value = "19000";
  assert_ok(b->open(NULL, &fake.host, &config, &device, &error), error);
  b->supports(device, &whole, 0, &verdict);
  assert_false(verdict.supported);
  assert_non_null(strstr(verdict.reason, "needs 18.8 KiB, its memory is 18.6 KiB"));
  clv_buffer *buffer = NULL;
  assert_int_equal(b->buffer_alloc(device, 19001, &buffer, &error), CLV_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, "18.6 KiB"));
  b->close(device);
  option.value = "32000";
  assert_ok(b->open(NULL, &fake.host, &config, &device, &error), error);
  assert_ok(b->compile(device, &whole, NULL, &executable, &error), error);
  b->executable_destroy(device, executable);
  b->close(device);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* ---- Verdicts ---- */

typedef struct verdict_case {
  const char *spec, *op, *inputs, *outputs, *says; /* says NULL: supported */
} verdict_case;

static void verdicts_have_reasons(void **state) {
  (void)state;
  static const verdict_case cases[] = {
      {"default", "Relu", "f", "o", NULL},
      {"default", "Relu", "h", "o", NULL},
      {"default", "Relu", "d", "o", "dtype f64"},
      {"default", "Relu", "five", "o", "rank 5 above 4"},
      {"default", "Relu", "dynamic", "o", "dynamic shape f32[s0,3]"},
      {"default", "Einsum", "f f", "o", "operator Einsum not in its list"},
      {"default", "Relu", "nothing_known", "o", "unknown dtype"},
      {"default", "Reshape", "f asked", "o", "its shape depends on data"},
      {"default", "Reshape", "f kept", "o", NULL},
      {"default", "Conv", "image kernel", "o", NULL},
      {"{\"operators\": {\"Conv\": {\"max_kernel\": 3}}}", "Conv", "image kernel", "o", "kernel extent 5 above 3"},
      {"{\"operators\": {\"Conv\": {\"constant_inputs\": [1]}}}", "Conv", "image kernel", "o", "input 1 'kernel' is not a constant"},
      {"{\"operators\": {\"Conv\": {\"attributes\": {\"group\": {\"max\": 0, \"default\": 1}}}}}", "Conv", "image kernel", "o", "group 1 above 0"},
      {"{\"operators\": {\"Conv\": {\"attributes\": {\"auto_pad\": {\"in\": [\"VALID\"], \"default\": \"NOTSET\"}}}}}", "Conv",
       "image kernel", "o", "auto_pad 'NOTSET' (it takes VALID)"},
      {"{\"operators\": {\"Add\": {\"inputs\": {\"1\": [\"f16\"]}}}}", "Add", "f f", "o", "dtype f32 (input 1 'f'; it takes f16)"},
      {"{\"operators\": {\"Concat\": {\"max_inputs\": 2}}}", "Concat", "f f f", "o", "3 inputs above 2"},
      {"all", "Relu", "dynamic", "o", NULL},
      {"all", "Relu", "five", "o", NULL},
      {"all", "NoSuchOperator", "f", "o", "operator NoSuchOperator has no kernel"},
      {"{\"operators\": \"all\", \"memory\": 100}", "Relu", "f", "o", "needs 128 bytes, its memory is 100 bytes"},
  };
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const verdict_case *c = &cases[i];
    fake_graph g = fake_graph_begin(heap());
    fake_input(&g, "f", CLV_F32, 2, (int64_t[]){2, 3});
    fake_input(&g, "h", CLV_F16, 2, (int64_t[]){2, 3});
    fake_input(&g, "d", CLV_F64, 2, (int64_t[]){2, 3});
    fake_input(&g, "five", CLV_F32, 5, (int64_t[]){1, 1, 1, 2, 3});
    fake_input(&g, "image", CLV_F32, 4, (int64_t[]){1, 2, 9, 9});
    fake_input(&g, "kernel", CLV_F32, 4, (int64_t[]){3, 2, 5, 5});
    fake_input(&g, "asked", CLV_I64, 1, (int64_t[]){2});
    fake_constant(&g, "kept", CLV_I64, 1, (int64_t[]){2}, (int64_t[]){3, 2});
    uint32_t symbol;
    assert_ok(clv__builder_symbol(g.builder, "N", &symbol, &g.error), g.error);
    fake_input(&g, "dynamic", CLV_F32, 2, (int64_t[]){CLV_DIM_SYMBOL(symbol), 3});
    fake_input(&g, "nothing_known", CLV_DTYPE_NONE, 0, NULL);
    clv_attribute axis = fake_ints(&g, "axis", false, 1, (int64_t[]){0});
    fake_node(&g, c->op, c->inputs, c->outputs, &axis, strcmp(c->op, "Concat") == 0 ? 1 : 0);
    fake_output(&g, "o");
    if (strcmp(c->inputs, "f asked") == 0) {
      /* The file states a shape that nothing can check before the run: not to be relied upon. */
      clv_graph *graph = fake_graph_end(&g);
      clv_device *device = fake_device(&fake, c->spec);
      clv_tensor types[32];
      for (uint32_t v = 0; v < graph->value_count; ++v) types[v] = graph->values[v].type;
      types[clv__graph_find_value(graph, "o")] = clv__tensor_make(CLV_F32, 2, (int64_t[]){3, 2}, NULL);
      clv_graph_view view = *graph->whole;
      view.types = types;
      clv_verdict verdict;
      b->supports(device, &view, 0, &verdict);
      if (verdict.supported || (strstr(verdict.reason, c->says) == NULL && strstr(verdict.reason, "dtype i64") == NULL)) {
        fail_msg("case %zu: '%s'", i, verdict.reason);
      }
      b->close(device);
      clv__graph_destroy(graph);
      continue;
    }
    clv_graph *graph = fake_graph_end(&g);
    clv_device *device = fake_device(&fake, c->spec);
    clv_verdict verdict;
    clv_graph_view view = *graph->whole;
    clv__shapes *shapes = NULL;
    clv_error error = {0};
    if (strcmp(c->op, "NoSuchOperator") != 0 && clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error) == CLV_OK) {
      view.types = shapes->types;
    }
    b->supports(device, &view, 0, &verdict);
    if (c->says == NULL && !verdict.supported) fail_msg("case %zu: refused: %s", i, verdict.reason);
    if (c->says != NULL && (verdict.supported || strstr(verdict.reason, c->says) == NULL)) {
      fail_msg("case %zu: '%s' does not say '%s'", i, verdict.reason, c->says);
    }
    if (verdict.supported) { /* then that node alone compiles */
      clv__arena arena;
      clv__arena_init(&arena, heap());
      clv_graph_view *alone = NULL;
      clv_executable *executable = NULL;
      assert_ok(clv__view_create(graph, view.types, &(clv_node_id){0}, 1, NULL, &arena, &alone, &error), error);
      assert_ok(b->compile(device, alone, NULL, &executable, &error), error);
      b->executable_destroy(device, executable);
      clv__arena_finish(&arena);
    }
    b->close(device);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
}

/* ---- Files ---- */

static void seal(blob *b) {
  clv__hasher hasher;
  clv__hash hash;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, b->data + CLV__NPUBIN_HEADER_BYTES, b->size_bytes - CLV__NPUBIN_HEADER_BYTES);
  clv__hasher_finish(&hasher, &hash);
  memcpy(b->data + CLV__NPUBIN_HASH_AT, hash.bytes, sizeof hash.bytes);
}

/* Loads; what loads must run or say why not. */
static void try_blob(const clv_backend *b, clv_device *device, const clv_graph *graph, const blob *bytes, int *loads) {
  clv_error error = {0};
  clv_executable *executable = NULL;
  if (b->executable_load(device, bytes->data, bytes->size_bytes, &executable, &error) != CLV_OK) {
    assert_null(executable);
    assert_true(error.message[0] != '\0');
    return;
  }
  ++*loads;
  clv_executable_info info = {.struct_size = sizeof info};
  b->executable_info(device, executable, &info);
  bool known = info.weight_count <= 1;
  for (uint32_t i = 0; i < info.weight_count; ++i) known = known && clv__graph_find_value(graph, info.weights[i]) != CLV__NO_ID;
  if (!known) {
    b->executable_destroy(device, executable);
    return;
  }
  clv_tensor x = graph->values[graph->inputs[0]].type, y = x;
  float data[ROWS * COLUMNS] = {0};
  x.data = data;
  fake_session session;
  if (fake_session_open(&session, b, device, executable, graph, &x, 1, &error) != CLV_OK) return;
  (void)!fake_session_run(&session, heap(), &x, 1, &y, 1, &error);
  if (y.data != data) clv__release(heap(), y.data);
  fake_session_close(&session);
}

static void mutated_files_are_refused_or_run(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  static const char *const specs[] = {"default", "all"};
  static blob good, bad;
  uint64_t seed = 11;
  for (int k = 0; k < 2; ++k) {
    /* A small memory: what a changed dimension asks for beyond it is refused, not taken from the machine. */
    clv_option option = {"memory", "8M"};
    clv_device_config config = {.struct_size = sizeof config, .name = "npu", .spec = specs[k], .option_count = 1, .options = &option};
    clv_device *device = NULL;
    assert_ok(b->open(NULL, &fake.host, &config, &device, &error), error);
    clv_executable *executable = NULL;
    compile_whole(&fake, device, graph, shapes->types, &executable);
    good.size_bytes = 0;
    assert_ok(b->executable_save(device, executable, blob_write, &good, &error), error);
    b->executable_destroy(device, executable);
    int loads = 0;
    try_blob(b, device, graph, &good, &loads);
    assert_int_equal(loads, 1);
    for (size_t cut = 0; cut < good.size_bytes; ++cut) { /* truncated; and truncated with a header that fits */
      bad = good;
      bad.size_bytes = cut;
      loads = 0;
      try_blob(b, device, graph, &bad, &loads);
      assert_int_equal(loads, 0);
      if (cut < CLV__NPUBIN_HEADER_BYTES) continue;
      uint64_t payload = cut - CLV__NPUBIN_HEADER_BYTES;
      for (int i = 0; i < 8; ++i) bad.data[16 + i] = (uint8_t)(payload >> (8 * i));
      seal(&bad);
      try_blob(b, device, graph, &bad, &loads);
      assert_int_equal(loads, 0);
    }
    for (int round = 0; round < 6000; ++round) {
      bad = good;
      int changes = 1 + (int)(test_random(&seed) % 3);
      for (int i = 0; i < changes; ++i) {
        size_t at = test_random(&seed) % bad.size_bytes;
        bad.data[at] = test_random(&seed) % 2 ? (uint8_t)(1u << test_random(&seed) % 8) ^ bad.data[at] : (uint8_t)test_random(&seed);
      }
      if (memcmp(bad.data, good.data, good.size_bytes) == 0) continue;
      loads = 0;
      try_blob(b, device, graph, &bad, &loads);
      assert_int_equal(loads, 0); /* the checksum sees it */
      seal(&bad);
      try_blob(b, device, graph, &bad, &loads); /* and without it nothing worse than a status happens */
    }
    b->close(device);
  }
  clv_device *other = fake_device(&fake, "{\"operators\": {\"MatMul\": {}, \"Add\": {}, \"Relu\": {}}}");
  clv_executable *executable = NULL;
  assert_int_equal(b->executable_load(other, good.data, good.size_bytes, &executable, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "another device"));
  good.data[8] = 9;
  assert_int_equal(b->executable_load(other, good.data, good.size_bytes, &executable, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "version 9"));
  b->close(other);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
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
  assert_ok(b->executable_save(device, executable, blob_write, &saved, &error), error);
  for (int loaded = 0; loaded < 2; ++loaded) {
    if (loaded) assert_ok(b->executable_load(device, saved.data, saved.size_bytes, &executable, &error), error);
    fake_session session;
    assert_ok(fake_session_open(&session, b, device, executable, graph, inputs, input_count, &error), error);
    for (int again = 0; again < 2; ++again) {
      for (uint32_t i = 0; i < graph->output_count; ++i) { /* sized by the host, or by the device where `again` */
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
                     CLV_INVALID_ARGUMENT); /* a size that is not the data's */
    fake_session_close(&session);
  }
  release_tensors(heap(), expected, graph->output_count);
  clv__shapes_destroy(shapes);
  b->close(device);
}

static void dynamic_programs_equal_evaluation(void **state) {
  (void)state;
  fake_graph g = fake_graph_begin(heap());
  uint32_t symbol;
  uint64_t seed = 5;
  assert_ok(clv__builder_symbol(g.builder, "N", &symbol, &g.error), g.error);
  fake_input(&g, "x", CLV_F32, 2, (int64_t[]){CLV_DIM_SYMBOL(symbol), COLUMNS});
  random_constant(&g, "w", CLV_F32, 2, (int64_t[]){COLUMNS, COLUMNS}, &seed);
  fake_node(&g, "MatMul", "x w", "xw", NULL, 0);
  fake_node(&g, "Relu", "xw", "r", NULL, 0);
  fake_node(&g, "NonZero", "r", "where", NULL, 0); /* as many as the data says */
  fake_node(&g, "Shape", "r", "shape", NULL, 0);
  fake_node(&g, "Reshape", "xw shape", "again", NULL, 0);
  fake_output(&g, "where");
  fake_output(&g, "again");
  fake_output(&g, "x"); /* an input that is an output */
  clv_graph *graph = fake_graph_end(&g);
  float data[6 * COLUMNS];
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  for (int64_t rows = 0; rows <= 6; rows += 3) {
    clv_tensor x = clv__tensor_make(CLV_F32, 2, (int64_t[]){rows, COLUMNS}, data);
    run_on_all(graph, &x, 1);
  }
  clv__graph_destroy(graph);
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
    assert_non_null(strstr(verdict.reason, "If not in its list"));
    fake_backend(&fake)->close(device);
    device = fake_device(&fake, "{\"operators\": {\"If\": {}, \"Add\": {}, \"Relu\": {}}, \"control_flow\": true}");
    fake_backend(&fake)->supports(device, &view, 1, &verdict);
    assert_false(verdict.supported);
    assert_non_null(strstr(verdict.reason, "its body: operator Mul not in its list"));
    fake_backend(&fake)->close(device);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
}

/* ---- The rest ---- */

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
    if (k == 1) { /* faster than this machine can compute: said once */
      assert_int_equal(fake.logged, 1);
      assert_non_null(strstr(fake.log, "its speed model says"));
    }
  }
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* Open, ask, compile, save, load, run: with every allocation failing in turn. */
static bool whole_life(const clv_allocator *allocator, const clv_graph *graph, const clv_tensor *types, const char *spec,
                       clv_status *failure) {
  static blob saved;
  fake_host fake;
  fake_host_init(&fake, allocator);
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_device *device = NULL;
  clv_executable *executable = NULL;
  clv_graph_view view = *graph->whole;
  view.types = types;
  *failure = fake_device_open(&fake, "npu", spec, &device, &error);
  if (*failure != CLV_OK) return false;
  *failure = b->compile(device, &view, NULL, &executable, &error);
  saved.size_bytes = 0;
  if (*failure == CLV_OK) *failure = b->executable_save(device, executable, blob_write, &saved, &error);
  b->executable_destroy(device, executable);
  executable = NULL;
  if (*failure == CLV_OK) *failure = b->executable_load(device, saved.data, saved.size_bytes, &executable, &error);
  if (*failure == CLV_OK) {
    float data[ROWS * COLUMNS] = {0};
    clv_tensor x = graph->values[graph->inputs[0]].type, y = x;
    x.data = data;
    y.data = NULL;
    fake_session session;
    *failure = fake_session_open(&session, b, device, executable, graph, &x, 1, &error);
    if (*failure == CLV_OK) {
      *failure = fake_session_run(&session, heap(), &x, 1, &y, 1, &error);
      clv__release(heap(), y.data);
      fake_session_close(&session);
    }
  }
  b->close(device);
  return *failure == CLV_OK;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  /* Dynamic shapes in the second graph make the same operators run by inference and allocation. */
  for (int dynamic = 0; dynamic < 2; ++dynamic) {
    test_allocator counting;
    test_allocator_init(&counting);
    clv_graph *graph = small_graph(&counting.allocator, CLV_F32);
    clv__shapes *shapes = shapes_of(graph);
    if (dynamic) shapes->types[graph->inputs[0]].dims[0] = CLV_DIM_UNKNOWN;
    size_t before = counting.live;
    for (size_t fail_at = 1;; ++fail_at) {
      counting.calls = 0;
      counting.fail_at = fail_at;
      clv_status failure;
      bool done = whole_life(&counting.allocator, graph, shapes->types, dynamic ? "all" : "default", &failure);
      if (counting.live != before) fail_msg("allocation %zu: %zu live, %zu before", fail_at, counting.live, before);
      if (done && counting.calls < fail_at) break; /* beyond the last allocation */
      if (!done && failure != CLV_OUT_OF_MEMORY) fail_msg("allocation %zu: %s", fail_at, clv_status_name(failure));
      assert_true(fail_at < 5000);
    }
    counting.fail_at = 0;
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
    assert_int_equal(counting.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_equal_evaluation),
      cmocka_unit_test(partitions_equal_evaluation),
      cmocka_unit_test(what_was_not_transferred_is_poison),
      cmocka_unit_test(steady_state_takes_no_memory),
      cmocka_unit_test(weights_are_shared_by_id_and_bytes),
      cmocka_unit_test(memory_limits_are_told),
      cmocka_unit_test(verdicts_have_reasons),
      cmocka_unit_test(mutated_files_are_refused_or_run),
      cmocka_unit_test(dynamic_programs_equal_evaluation),
      cmocka_unit_test(bodies_run),
      cmocka_unit_test(results_have_the_compute_dtype),
      cmocka_unit_test(launches_take_the_modelled_time),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
