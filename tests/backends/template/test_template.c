/* Tests the template backend as a plugin: its operators against the reference with random shapes, sizes that change, saved
 * programs loaded again, damaged programs, and failing allocations. */
#include "../../cache/folder.h"
#include "machine.h"

#include "device/device.h"

#define PLUGIN PLUGINS "/template/cleave_template.so"

static void open_machine(machine *m, const char *list, const char *directory) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  context.cache_directory = directory;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  assert_ok(clv_context_load_plugin(m->context, PLUGIN, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

/* Runs the whole graph on the template device and compares the outputs with the reference. Planning fails if the device does not
 * support a node. */
static void check(machine *m, const clv_graph *graph, clv_tensor *inputs, const char *what) {
  clv_plan *plan = machine_plan(m, graph, "*=template", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 1);
  clv_session *session = machine_session(plan);
  machine_check_run(session, plan, inputs, what);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
}

/* Makes a random shape that broadcasts to `dims`: each extent is that of `dims` or 1, and leading axes may be missing. Returns
 * its rank. */
static int32_t operand(uint64_t *seed, const int64_t *dims, int32_t rank, int64_t *of) {
  const int32_t own = (int32_t)(test_random(seed) % (uint64_t)(rank + 1));
  for (int32_t i = 0; i < own; ++i) of[i] = test_random(seed) % 4 == 0 ? 1 : dims[rank - own + i];
  return own;
}

static void fill(clv_tensor *tensor, float *data, size_t room, uint64_t *seed) {
  size_t count;
  assert_true(clv__tensor_count(tensor, &count) && count <= room);
  for (size_t i = 0; i < count; ++i) data[i] = test_random_float(seed);
  tensor->data = data;
}

static void operators(void **state) {
  (void)state;
  enum { ROUNDS = 150, ROOM = 20000 };
  static float data[2][ROOM];
  machine m;
  open_machine(&m, "template,cpu", "");
  uint64_t seed = 17;
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    int64_t dims[CLV_MAX_RANK], a[CLV_MAX_RANK], b[CLV_MAX_RANK];
    const int32_t rank = (int32_t)(test_random(&seed) % 5);
    for (int32_t i = 0; i < rank; ++i) dims[i] = (int64_t)(test_random(&seed) % 6); /* 0 is a valid size */
    int32_t rank_a = operand(&seed, dims, rank, a), rank_b = operand(&seed, dims, rank, b);
    const char *op = round % 3 == 0 ? "Add" : round % 3 == 1 ? "Mul" : "MatMul";
    if (round % 3 == 2) { /* [.., m, k] x [.., k, n]; sometimes, one of them is a vector */
      const int64_t m_ = (int64_t)(test_random(&seed) % 5), k = (int64_t)(test_random(&seed) % 5),
                    n = (int64_t)(test_random(&seed) % 5);
      const bool row = rank_a == 0 && round % 2 == 0, column = rank_b == 0 && round % 4 == 1;
      if (!row) a[rank_a++] = m_;
      a[rank_a++] = k;
      b[rank_b++] = k;
      if (!column) b[rank_b++] = n;
    }
    const bool is_constant = round % 5 == 0;
    test_graph g;
    char what[64];
    test_graph_begin(&g, &m.counting.allocator, seed);
    test_graph_input(&g, "a", CLV_F32, rank_a, a);
    if (is_constant)
      test_graph_weight(&g, "b", rank_b, b);
    else
      test_graph_input(&g, "b", CLV_F32, rank_b, b);
    test_graph_node(&g, "n", op, "a,b", "c");
    test_graph_node(&g, "r", "Relu", "c", "d");
    test_graph_node(&g, "s", "Add", "c,d", "e");
    clv_graph *graph = test_graph_end(&g, round % 2 == 0 ? "e" : "e,c"); /* sometimes, an inner value is an output, too */
    clv_tensor inputs[2];
    for (uint32_t i = 0; i < graph->input_count; ++i) {
      inputs[i] = graph->values[graph->inputs[i]].type;
      fill(&inputs[i], data[i], ROOM, &seed);
    }
    snprintf(what, sizeof what, "round %u: %s of ranks %d and %d", round, op, (int)rank_a, (int)rank_b);
    check(&m, graph, inputs, what);
    clv_graph_destroy(graph);
  }
  machine_close(&m);
}

/* A model with a symbolic size, planned once and run with several sizes, so that instance_resize() is called. */
static void sizes_that_change(void **state) {
  (void)state;
  enum { WIDTH = 12, MOST = 9 };
  static float data[MOST * WIDTH];
  machine m;
  test_graph g;
  open_machine(&m, "template,cpu", "");
  test_graph_begin(&g, &m.counting.allocator, 5);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(test_graph_symbol(&g, "batch"), WIDTH));
  test_graph_weight(&g, "w", 2, DIMS(WIDTH, WIDTH));
  test_graph_weight(&g, "bias", 1, DIMS(WIDTH));
  test_graph_node(&g, "n0", "MatMul", "x,w", "a");
  test_graph_node(&g, "n1", "Add", "a,bias", "b");
  test_graph_node(&g, "n2", "Relu", "b", "c");
  test_graph_node(&g, "n3", "Mul", "c,x", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan *plan = machine_plan(&m, graph, "*=template", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  static const int64_t batches[] = {3, 9, 1, 0, 9, 4};
  uint64_t seed = 1;
  for (size_t i = 0; i < sizeof batches / sizeof *batches; ++i) {
    clv_tensor input = clv__tensor_make(CLV_F32, 2, DIMS(batches[i], WIDTH), NULL);
    char what[32];
    fill(&input, data, MOST * WIDTH, &seed);
    snprintf(what, sizeof what, "batch %d", (int)batches[i]);
    machine_check_run(session, plan, &input, what);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Files ---- */

typedef struct bytes {
  uint8_t data[4096];
  size_t size_bytes;
} bytes;

static clv_status collect(void *cookie, const void *data, size_t size_bytes) {
  bytes *b = cookie;
  if (size_bytes > sizeof b->data - b->size_bytes) return CLV_IO_ERROR;
  if (size_bytes > 0) memcpy(b->data + b->size_bytes, data, size_bytes);
  b->size_bytes += size_bytes;
  return CLV_OK;
}

/* Corrects the checksum, as an attacker would. save.c defines where it is stored and which bytes it covers. */
static void correct_checksum(bytes *b) {
  enum { SUM_AT = 8, SUMMED_AT = 16 };
  uint64_t sum = UINT64_C(0xcbf29ce484222325);
  for (size_t i = SUMMED_AT; i < b->size_bytes; ++i) sum = (sum ^ b->data[i]) * UINT64_C(0x100000001b3);
  if (b->size_bytes >= SUMMED_AT) memcpy(b->data + SUM_AT, &sum, sizeof sum);
}

static clv_graph *small_graph(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 5);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(3, 4));
  test_graph_weight(&g, "w", 2, DIMS(4, 4));
  test_graph_node(&g, "n0", "MatMul", "x,w", "a");
  test_graph_node(&g, "n1", "Relu", "a", "b");
  test_graph_node(&g, "n2", "Add", "b,x", "y");
  return test_graph_end(&g, "y,a");
}

/* A damaged file must be rejected, or run without accessing memory that does not belong to it (the sanitizers detect that). */
static void damaged_files(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  open_machine(&m, "template", "");
  clv__device *d = &m.devices->items[0];
  const clv_backend *b = d->backend;
  clv_graph *graph = small_graph(&m.counting.allocator);
  const clv_compile_options options = {.struct_size = sizeof options};
  clv_executable *executable;
  bytes whole = {.size_bytes = 0};
  assert_ok(b->compile(d->handle, graph->whole, &options, &executable, &error), error);
  assert_ok(b->save->save(d->handle, executable, collect, &whole, &error), error);
  b->executable_destroy(d->handle, executable);
  assert_ok(b->save->load(d->handle, whole.data, whole.size_bytes, &executable, &error), error);
  b->executable_destroy(d->handle, executable);
  float data[12] = {0}, results[2][16];
  clv_tensor input = clv__tensor_make(CLV_F32, 2, DIMS(3, 4), data), type = clv__tensor_make(CLV_F32, 2, DIMS(4, 4), NULL);
  float weight_data[16] = {0};
  type.data = weight_data;
  clv_weight *weight;
  assert_ok(b->weight_upload(d->handle, "w", &type, &weight, &error), error);
  uint64_t seed = 3;
  uint32_t loaded = 0, refused = 0;
  for (uint32_t round = 0; round < 6000; ++round) {
    bytes other = whole;
    const bool is_corrected = round % 8 != 0;
    if (round < whole.size_bytes) {
      other.size_bytes = round; /* truncates the file */
    } else {
      for (uint64_t k = 1 + test_random(&seed) % 3; k > 0; --k) {
        uint8_t value = (uint8_t)(test_random(&seed) % 5 == 0 ? test_random(&seed) : test_random(&seed) % 6);
        other.data[test_random(&seed) % other.size_bytes] = value;
      }
    }
    if (is_corrected) correct_checksum(&other);
    const bool is_changed = other.size_bytes != whole.size_bytes || memcmp(other.data, whole.data, whole.size_bytes) != 0;
    /* The copy has the exact size, so that sanitizers detect reads beyond its end. */
    uint8_t *exact = malloc(other.size_bytes > 0 ? other.size_bytes : 1);
    memcpy(exact, other.data, other.size_bytes);
    const size_t before = m.counting.live;
    clv_status status = b->save->load(d->handle, exact, other.size_bytes, &executable, &error);
    free(exact);
    if (status != CLV_OK) {
      ++refused;
      assert_null(executable);
      assert_int_equal(m.counting.live, before);
      continue;
    }
    ++loaded;
    assert_true(is_corrected || !is_changed); /* damage is detected unless the checksum was corrected */
    clv_executable_info info = {.struct_size = sizeof info};
    b->executable_info(d->handle, executable, &info);
    clv_instance *instance = NULL;
    if (info.weight_count == 1 && b->instance_create(d->handle, executable, &input, 1, &weight, 1, &instance, &error) == CLV_OK) {
      clv_binding in = {.type = input}, out[2] = {{.type = input}, {.type = input}};
      out[0].type.data = results[0];
      out[1].type.data = results[1];
      clv_execute_args args = {.struct_size = sizeof args, .input_count = 1, .output_count = 2, .inputs = &in, .outputs = out};
      status = b->execute(d->handle, instance, NULL, &args, &error);
      assert_true(status == CLV_OK || status == CLV_INVALID_ARGUMENT);
      b->instance_destroy(d->handle, instance);
    }
    b->executable_destroy(d->handle, executable);
    assert_int_equal(m.counting.live, before);
  }
  assert_true(loaded > 100 && refused > 1000);
  b->weight_release(d->handle, weight);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void from_the_cache(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  static float data[12] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
  for (int again = 0; again < 2; ++again) {
    machine m;
    open_machine(&m, "template,cpu", f.path);
    clv_graph *graph = small_graph(&m.counting.allocator);
    clv_tensor input = graph->values[graph->inputs[0]].type;
    input.data = data;
    check(&m, graph, &input, again ? "from the cache" : "compiled");
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  folder_remove(f.path);
}

/* Lets each allocation of creating and running a session fail once. The calls must then succeed or return CLV_OUT_OF_MEMORY,
 * and leak nothing. */
static void without_memory(void **state) {
  (void)state;
  static float data[12];
  machine m;
  open_machine(&m, "template,cpu", "");
  clv_graph *graph = small_graph(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, "*=template", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.no_fallback = true;
  for (size_t fail_at = 1;; ++fail_at) {
    clv_error error = {0};
    clv_session *session = NULL;
    clv_tensor input = graph->values[graph->inputs[0]].type, outputs[2] = {{0}};
    input.data = data;
    const size_t before = m.counting.live;
    m.counting.calls = 0;
    m.counting.fail_at = fail_at;
    clv_status status = clv_session_create(plan, &options, &session, &error);
    if (status == CLV_OK) status = clv_session_run(session, &input, 1, outputs, 2, &error);
    clv_session_destroy(session);
    m.counting.fail_at = 0;
    if (m.counting.calls < fail_at) {
      assert_ok(status, error);
      break;
    }
    if (status != CLV_OK && status != CLV_OUT_OF_MEMORY)
      fail_msg("after allocation %zu failed, unexpected error: %s", fail_at, error.message);
    if (fail_at > 1) assert_true(m.counting.live <= before + 16); /* the memory pools of the device set keep a few blocks */
  }
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operators),      cmocka_unit_test(sizes_that_change), cmocka_unit_test(damaged_files),
      cmocka_unit_test(from_the_cache), cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
