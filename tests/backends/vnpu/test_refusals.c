/* Tests that the virtual NPU rejects nodes that its description does not support, partitions that are too large for its memory,
 * and damaged programs, each with the right error message. Also lets each allocation fail once. */
#include "backends/vnpu/npubin.h"
#include "base/hash.h"
#include "fake_graphs.h"

/* ---- Groups ---- */

static clv_graph *square_graph(void);

/* compile() may get nodes that supports() rejects. It checks each node again, and names the unsupported one in its error. */
static void groups_with_an_unsupported_node_are_refused(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "{\"operators\": {\"Mul\": {}}}");
  clv_error error = {0};
  clv_graph *graph = square_graph();
  clv__shapes *shapes = shapes_of(graph);
  clv_graph_view whole = *graph->whole;
  whole.types = shapes->types;
  clv_executable *executable = NULL;
  assert_int_equal(b->compile(device, &whole, NULL, &executable, &error), CLV_NOT_SUPPORTED);
  assert_null(executable);
  assert_non_null(strstr(error.message, "(Relu)"));
  b->close(device);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* ---- Memory ---- */

/* Three elementwise operators over [40, 40]. x, w, y and the two intermediate values have 6,400 bytes each. */
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
  clv_option option = {"memory", "20000"}; /* enough memory for each node alone, but not for all three */
  clv_device_config config = {.struct_size = sizeof config, .name = "npu", .option_count = 1, .options = &option};
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
  assert_non_null(
      strstr(error.message, "weights (6.2 KiB), constants (0 bytes), scratch (12.5 KiB), inputs and outputs (12.5 KiB)"));
  assert_non_null(strstr(error.message, "memory of 19.5 KiB"));
  b->close(device);
  option.value = "19000";
  assert_ok(b->open(NULL, &fake.host, &config, &device, &error), error);
  b->supports(device, &whole, 0, &verdict);
  assert_false(verdict.supported);
  assert_non_null(strstr(verdict.reason, "needs 18.8 KiB of memory, but the device has 18.6 KiB"));
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
  const char *spec, *op, *inputs, *outputs, *says; /* `says`: expected in the reason; NULL: supported */
} verdict_case;

static void verdicts_have_reasons(void **state) {
  (void)state;
  static const verdict_case cases[] = {
      {"default", "Relu", "f", "o", NULL},
      {"default", "Relu", "h", "o", NULL},
      {"default", "Relu", "d", "o", "dtype f64"},
      {"default", "Relu", "five", "o", "rank 5, above the maximum of 4"},
      {"default", "Relu", "dynamic", "o", "dynamic shape f32[N,3]"},
      {"default", "Einsum", "f f", "o", "operator Einsum is not in the device's description"},
      {"default", "Relu", "nothing_known", "o", "unknown dtype"},
      {"default", "Reshape", "f asked", "o", "its shape depends on data"},
      {"default", "Reshape", "f kept", "o", NULL},
      {"default", "Conv", "image kernel", "o", NULL},
      {"{\"operators\": {\"Conv\": {\"max_kernel\": 3}}}", "Conv", "image kernel", "o",
       "kernel extent 5, above the maximum of 3"},
      {"{\"operators\": {\"Conv\": {\"constant_inputs\": [1]}}}", "Conv", "image kernel", "o",
       "input 1 'kernel' is not a constant"},
      {"{\"operators\": {\"Conv\": {\"attributes\": {\"group\": {\"max\": 0, \"default\": 1}}}}}", "Conv", "image kernel", "o",
       "group 1 above 0"},
      {"{\"operators\": {\"Conv\": {\"attributes\": {\"auto_pad\": {\"in\": [\"VALID\"], \"default\": \"NOTSET\"}}}}}", "Conv",
       "image kernel", "o", "auto_pad 'NOTSET' (supported: VALID)"},
      {"{\"operators\": {\"Add\": {\"inputs\": {\"1\": [\"f16\"]}}}}", "Add", "f f", "o",
       "dtype f32 (input 1 'f'; supported: f16)"},
      {"{\"operators\": {\"Concat\": {\"max_inputs\": 2}}}", "Concat", "f f f", "o", "3 inputs; the maximum is 2"},
      {"{\"operators\": {\"Concat\": {\"max_inputs\": 3}}}", "Concat", "f f f", "o", NULL},
      {"all", "Relu", "dynamic", "o", NULL},
      {"all", "Relu", "five", "o", NULL},
      {"all", "NoSuchOperator", "f", "o", "unknown dtype"},
      {"{\"operators\": \"all\", \"memory\": 100}", "Relu", "f", "o", "needs 128 bytes of memory, but the device has 100 bytes"},
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
      /* The graph declares a shape that cannot be checked before the run, so the device must not rely on it. */
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
        fail_msg("case %zu: expected a rejection with '%s' or 'dtype i64', but the node is %s: '%s'", i, c->says,
                 verdict.supported ? "supported" : "rejected", verdict.reason);
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
    if (c->says == NULL && !verdict.supported)
      fail_msg("case %zu: the node must be supported, but is rejected: %s", i, verdict.reason);
    if (c->says != NULL && (verdict.supported || strstr(verdict.reason, c->says) == NULL)) {
      fail_msg("case %zu: expected a rejection with '%s', but the node is %s: '%s'", i, c->says,
               verdict.supported ? "supported" : "rejected", verdict.reason);
    }
    if (verdict.supported) { /* then a program of that node alone must compile */
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
  clv__hasher_update(&hasher, b->data + CLV__SEALED_HEADER_BYTES, b->size_bytes - CLV__SEALED_HEADER_BYTES);
  clv__hasher_finish(&hasher, &hash);
  memcpy(b->data + CLV__SEALED_HASH_AT, hash.bytes, sizeof hash.bytes);
}

/* Tries to load a program. If that succeeds, tries to run it, which may fail, but must not crash. */
static void try_blob(const clv_backend *b, clv_device *device, const clv_graph *graph, const blob *bytes, int *loads) {
  clv_error error = {0};
  clv_executable *executable = NULL;
  if (b->save->load(device, bytes->data, bytes->size_bytes, &executable, &error) != CLV_OK) {
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
    /* The device has little memory, so that a damaged dimension cannot make it allocate a lot. */
    const clv_option options[] = {{"spec", specs[k]}, {"memory", "8M"}};
    clv_device_config config = {.struct_size = sizeof config, .name = "npu", .option_count = 2, .options = options};
    clv_device *device = NULL;
    assert_ok(b->open(NULL, &fake.host, &config, &device, &error), error);
    clv_executable *executable = NULL;
    compile_whole(&fake, device, graph, shapes->types, &executable);
    good.size_bytes = 0;
    assert_ok(b->save->save(device, executable, blob_write, &good, &error), error);
    b->executable_destroy(device, executable);
    int loads = 0;
    try_blob(b, device, graph, &good, &loads);
    assert_int_equal(loads, 1);
    for (size_t cut = 0; cut < good.size_bytes;
         ++cut) { /* a truncated file, first with the old header, then with a correct one */
      bad = good;
      bad.size_bytes = cut;
      loads = 0;
      try_blob(b, device, graph, &bad, &loads);
      assert_int_equal(loads, 0);
      if (cut < CLV__SEALED_HEADER_BYTES) continue;
      uint64_t payload = cut - CLV__SEALED_HEADER_BYTES;
      for (int i = 0; i < 8; ++i) bad.data[16 + i] = (uint8_t)(payload >> (8 * i));
      seal(&bad);
      try_blob(b, device, graph, &bad, &loads);
      assert_int_equal(loads, 0);
    }
    bad = good; /* one byte too many, with a correct header */
    bad.data[bad.size_bytes++] = 0;
    uint64_t longer = bad.size_bytes - CLV__SEALED_HEADER_BYTES;
    for (int i = 0; i < 8; ++i) bad.data[16 + i] = (uint8_t)(longer >> (8 * i));
    seal(&bad);
    loads = 0;
    try_blob(b, device, graph, &bad, &loads);
    assert_int_equal(loads, 0);
    for (int round = 0; round < 6000; ++round) {
      bad = good;
      int changes = 1 + (int)(test_random(&seed) % 3);
      for (int i = 0; i < changes; ++i) {
        size_t at = test_random(&seed) % bad.size_bytes;
        bad.data[at] =
            test_random(&seed) % 2 ? (uint8_t)(1u << test_random(&seed) % 8) ^ bad.data[at] : (uint8_t)test_random(&seed);
      }
      if (memcmp(bad.data, good.data, good.size_bytes) == 0) continue;
      loads = 0;
      try_blob(b, device, graph, &bad, &loads);
      assert_int_equal(loads, 0); /* the checksum detects the change */
      seal(&bad);
      try_blob(b, device, graph, &bad, &loads); /* with a correct checksum it may load or not, but must not crash */
    }
    b->close(device);
  }
  clv_device *other = fake_device(&fake, "{\"operators\": {\"MatMul\": {}, \"Add\": {}, \"Relu\": {}}}");
  clv_executable *executable = NULL;
  assert_int_equal(b->save->load(other, good.data, good.size_bytes, &executable, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "another device"));
  good.data[8] = 9;
  assert_int_equal(b->save->load(other, good.data, good.size_bytes, &executable, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "version 9"));
  b->close(other);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* The numbers of inputs of MatMul, Add and Relu, the instructions of small_graph(). Each has one output. save_small() saves the
 * program and returns the offset of the instruction stream, which is at the end of the file. */
static const uint32_t stream_inputs[] = {2, 2, 1};

static size_t save_small(fake_host *fake, clv_device *device, blob *good) {
  clv_graph *graph = small_graph(heap(), CLV_F32);
  clv__shapes *shapes = shapes_of(graph);
  clv_executable *executable = NULL;
  clv_error error = {0};
  good->size_bytes = 0;
  compile_whole(fake, device, graph, shapes->types, &executable);
  const clv_backend *b = fake_backend(fake);
  assert_ok(b->save->save(device, executable, blob_write, good, &error), error);
  b->executable_destroy(device, executable);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  size_t at = good->size_bytes;
  for (int n = 0; n < 3; ++n) at -= 24 + 16 * (stream_inputs[n] + 1);
  return at;
}

static void expect_damaged(const clv_backend *b, clv_device *device, blob *bad, const char *what) {
  clv_executable *executable = NULL;
  clv_error error = {0};
  seal(bad);
  assert_int_equal(b->save->load(device, bad->data, bad->size_bytes, &executable, &error), CLV_INVALID_MODEL);
  if (strstr(error.message, what) == NULL) fail_msg("the error message '%s' does not contain '%s'", error.message, what);
}

/* Changes each number of each operand in the instruction stream: the file is rejected, because the operand no longer matches the
 * graph. An instruction may store its output at another scratch offset, but then the operands that read it do not match. */
static void operands_are_where_the_graph_has_them(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "default");
  static blob good, bad;
  size_t at = save_small(&fake, device, &good);
  for (int n = 0; n < 3; ++n) {
    at += 24;
    for (uint32_t i = 0; i <= stream_inputs[n]; ++i, at += 16) {
      for (int field = 0; field < 3; ++field) { /* the fields are kind, index and offset */
        bad = good;
        bad.data[at + (size_t)field * 4] ^= 64;
        expect_damaged(b, device, &bad, "an operand's location differs from the one that its graph implies");
      }
    }
  }
  assert_int_equal(at, good.size_bytes);
  b->close(device);
}

/* The operands in the file match, but two that are live at the same time overlap, or one exceeds the scratch. */
static void layouts_are_checked_on_load(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "default");
  static blob good, bad;
  const size_t matmul = save_small(&fake, device, &good), add = matmul + 24 + 48, relu = add + 24 + 48;
  /* Positions in the file: where the scratch offsets of the outputs of MatMul and Add, and of the input of Relu, are stored. */
  const size_t product = matmul + 24 + 32 + 8, sum = add + 24 + 32 + 8, relu_reads = relu + 24 + 8;
  assert_memory_equal(good.data + sum - 8, good.data + relu_reads - 8, 16); /* the Relu reads the output of the Add */
  assert_memory_not_equal(good.data + sum, good.data + product, 8);
  bad = good;
  memcpy(bad.data + sum, good.data + product, 8);
  memcpy(bad.data + relu_reads, good.data + product, 8);
  expect_damaged(b, device, &bad, "overlaps");
  bad = good;
  memset(bad.data + matmul - 12, 0, 8); /* sets the size of the scratch to 0 */
  expect_damaged(b, device, &bad, "scratch");
  b->close(device);
}

/* Opens a device, compiles a graph, saves the program, loads and runs it. Returns whether all of this succeeded. */
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
  if (*failure == CLV_OK) *failure = b->save->save(device, executable, blob_write, &saved, &error);
  b->executable_destroy(device, executable);
  executable = NULL;
  if (*failure == CLV_OK) *failure = b->save->load(device, saved.data, saved.size_bytes, &executable, &error);
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
  /* The second time the shapes are dynamic, so that the same operators run with inference and allocation at run time. */
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
      if (counting.live != before)
        fail_msg("after allocation %zu failed, %zu allocations are live, %zu before", fail_at, counting.live, before);
      if (done && counting.calls < fail_at) break; /* fewer allocations than `fail_at`: none of them failed */
      if (!done && failure != CLV_OUT_OF_MEMORY)
        fail_msg("after allocation %zu failed, the status is %s", fail_at, clv_status_name(failure));
      assert_true(fail_at < 5000);
    }
    counting.fail_at = 0;
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
    assert_int_equal(counting.live, 0);
  }
}

/* A device that accepts every operator also accepts unknown ones, with the types that the graph declares. They compile, but
 * running them gives an error: there is no kernel. */
static void unknown_operators_are_for_planning(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "all"), *picky = fake_device(&fake, "default");
  fake_graph g = fake_graph_begin(heap());
  clv_value_id in, out;
  fake_input(&g, "x", CLV_F32, 2, (int64_t[]){2, 3});
  fake_type(&g, "m", CLV_F32, 1, (int64_t[]){4});
  in = fake_value(&g, "x");
  out = fake_value(&g, "m");
  assert_ok(clv__builder_import(g.builder, "aten", 1, &g.error), g.error);
  assert_ok(clv__builder_node(g.builder, "odd", "aten", "mystery", &in, 1, &out, 1, NULL, 0, &g.error), g.error);
  fake_node(&g, "Relu", "m", "y", NULL, 0);
  fake_output(&g, "y");
  clv_graph *graph = fake_graph_end(&g);
  clv__shapes *shapes = shapes_of(graph);
  clv_graph_view view = *graph->whole;
  view.types = shapes->types;
  clv_verdict verdict;
  b->supports(picky, &view, 0, &verdict);
  assert_false(verdict.supported);
  b->supports(device, &view, 0, &verdict);
  if (!verdict.supported) fail_msg("the node must be supported, but is rejected: %s", verdict.reason);
  clv_error error = {0};
  clv_executable *executable = NULL;
  assert_ok(b->compile(device, &view, NULL, &executable, &error), error);
  float x[6] = {0};
  clv_tensor input = clv__tensor_make(CLV_F32, 2, (int64_t[]){2, 3}, x), output = output_type(graph, shapes, 0);
  fake_session session;
  assert_ok(fake_session_open(&session, b, device, executable, graph, &input, 1, &error), error);
  assert_int_equal(fake_session_run(&session, heap(), &input, 1, &output, 1, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "aten.mystery"));
  release_tensors(heap(), &output, 1);
  fake_session_close(&session);
  b->close(picky);
  b->close(device);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

/* A weight counts as a constant even if its data is not loaded yet. */
static void unbound_weights_are_constants(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, heap());
  const clv_backend *b = fake_backend(&fake);
  clv_device *device = fake_device(&fake, "{\"operators\": {\"MatMul\": {\"constant_inputs\": [1]}}}");
  for (int weight = 0; weight < 2; ++weight) {
    fake_graph g = fake_graph_begin(heap());
    fake_input(&g, "x", CLV_F32, 2, (int64_t[]){2, 3});
    fake_type(&g, "w", CLV_F32, 2, (int64_t[]){3, 4});
    if (weight)
      clv__builder_unbound(g.builder, fake_value(&g, "w"));
    else
      fake_input(&g, "w", CLV_F32, 2, (int64_t[]){3, 4});
    fake_node(&g, "MatMul", "x w", "y", NULL, 0);
    fake_output(&g, "y");
    clv_graph *graph = fake_graph_end(&g);
    clv__shapes *shapes = shapes_of(graph);
    clv_graph_view view = *graph->whole;
    view.types = shapes->types;
    clv_verdict verdict;
    b->supports(device, &view, 0, &verdict);
    if (verdict.supported != (weight == 1))
      fail_msg("MatMul whose second input is %s must be %s, but is not: '%s'", weight == 1 ? "a weight" : "a graph input",
               weight == 1 ? "supported" : "rejected", verdict.reason);
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
  b->close(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unknown_operators_are_for_planning),
      cmocka_unit_test(unbound_weights_are_constants),
      cmocka_unit_test(groups_with_an_unsupported_node_are_refused),
      cmocka_unit_test(memory_limits_are_told),
      cmocka_unit_test(verdicts_have_reasons),
      cmocka_unit_test(mutated_files_are_refused_or_run),
      cmocka_unit_test(operands_are_where_the_graph_has_them),
      cmocka_unit_test(layouts_are_checked_on_load),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
