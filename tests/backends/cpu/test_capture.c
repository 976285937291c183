/* Tests captures, which the CPU stores as launch lists. A replayed capture must give the same bits as eager execution: for
 * random graphs, whole and split into partitions, also after changes of bindings (some unaligned) and scratch. Also tests
 * executions that cannot be captured, failures, and recordings that are dropped. */
#include <pthread.h>

#include "../../analysis/bodies.h"
#include "cpu_host.h"

enum { MOST_PARTS = 64, MOST_VALUES = 512 };

/* ---- A graph split into partitions, with its values in the test's own memory. ---- */

typedef struct part {
  clv_executable *executable;
  clv_instance *instance;
  uint32_t input_count, output_count;
  clv_value_id ids[40]; /* value ids in the graph: inputs, then outputs */
} part;

typedef struct parts {
  cpu_host *cpu;
  clv_graph *graph;
  clv__arena arena;
  clv__shapes *shapes;
  part parts[MOST_PARTS];
  uint32_t count;
} parts;

static void parts_open(parts *p, cpu_host *cpu, clv_graph *graph, uint32_t nodes_each) {
  clv_error error = {0};
  clv_node_id nodes[MOST_VALUES];
  *p = (parts){.cpu = cpu, .graph = graph};
  clv__arena_init(&p->arena, cpu->allocator);
  assert_ok(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &p->shapes, &error), error);
  for (uint32_t at = 0; at < graph->node_count; at += nodes_each) {
    const uint32_t count = graph->node_count - at < nodes_each ? graph->node_count - at : nodes_each;
    part *made = &p->parts[p->count++];
    clv_graph_view *view;
    clv_tensor types[40];
    assert_true(p->count <= MOST_PARTS);
    for (uint32_t i = 0; i < count; ++i) nodes[i] = at + i;
    assert_ok(clv__view_create(graph, p->shapes->types, nodes, count, NULL, &p->arena, &view, &error), error);
    assert_true(view->input_count + view->output_count <= 40);
    const clv_compile_options options = {.struct_size = sizeof options};
    assert_ok(cpu->backend->compile(cpu->device, view, &options, &made->executable, &error), error);
    made->input_count = view->input_count;
    made->output_count = view->output_count;
    for (uint32_t i = 0; i < view->input_count; ++i) {
      made->ids[i] = view->values[view->inputs[i]];
      types[i] = p->shapes->types[made->ids[i]];
      types[i].data = NULL;
    }
    for (uint32_t i = 0; i < view->output_count; ++i) made->ids[made->input_count + i] = view->values[view->outputs[i]];
    assert_ok(
        cpu->backend->instance_create(cpu->device, made->executable, types, view->input_count, NULL, 0, &made->instance, &error),
        error);
  }
}

static void parts_close(parts *p) {
  for (uint32_t i = 0; i < p->count; ++i) {
    p->cpu->backend->instance_destroy(p->cpu->device, p->parts[i].instance);
    p->cpu->backend->executable_destroy(p->cpu->device, p->parts[i].executable);
  }
  clv__shapes_destroy(p->shapes);
  clv__arena_finish(&p->arena);
}

/* Memory for all values of the graph. memory_make() places each value `shift` bytes after an aligned address. */
typedef struct memory {
  uint8_t *block;
  size_t offsets[MOST_VALUES], size_bytes;
} memory;

static memory memory_make(const parts *p, size_t shift) {
  memory m = {0};
  for (clv_value_id id = 0; id < p->graph->value_count; ++id) {
    size_t size_bytes = 0;
    assert_true(id < MOST_VALUES);
    (void)clv__tensor_size_bytes(&p->shapes->types[id], &size_bytes);
    m.offsets[id] = m.size_bytes + shift;
    m.size_bytes += clv__align_up(size_bytes + shift, 64);
  }
  m.block = clv__allocate(clv__allocator_default(), m.size_bytes);
  assert_non_null(m.block);
  memset(m.block, 0x5a, m.size_bytes);
  return m;
}

static void memory_drop(memory *m) {
  clv__release(clv__allocator_default(), m->block);
}

static void fill_inputs(const parts *p, const memory *m, uint64_t seed) {
  for (uint32_t i = 0; i < p->graph->input_count; ++i) {
    const clv_value_id id = p->graph->inputs[i];
    size_t count;
    assert_true(clv__tensor_count(&p->shapes->types[id], &count));
    for (size_t k = 0; k < count; ++k) {
      const float number = test_random_float(&seed);
      memcpy(m->block + m->offsets[id] + 4 * k, &number, 4);
    }
  }
}

static clv_execute_args args_of(const parts *p, const part *of, const memory *m, clv_binding bindings[40]) {
  memset(bindings, 0, 40 * sizeof *bindings);
  for (uint32_t i = 0; i < of->input_count + of->output_count; ++i) {
    bindings[i].type = p->shapes->types[of->ids[i]];
    bindings[i].type.data = m->block + m->offsets[of->ids[i]];
  }
  return (clv_execute_args){.struct_size = sizeof(clv_execute_args),
                            .input_count = of->input_count,
                            .output_count = of->output_count,
                            .inputs = bindings,
                            .outputs = bindings + of->input_count};
}

static clv_status execute_all(const parts *p, clv_stream *stream, const memory *m, clv_error *error) {
  for (uint32_t i = 0; i < p->count; ++i) {
    clv_binding bindings[40];
    clv_execute_args args = args_of(p, &p->parts[i], m, bindings);
    CLV__TRY(p->cpu->backend->execute(p->cpu->device, p->parts[i].instance, stream, &args, error));
  }
  return CLV_OK;
}

static void bind_all(const parts *p, clv_captured *captured, const memory *m) {
  clv_error error = {0};
  for (uint32_t i = 0; i < p->count; ++i) {
    clv_binding bindings[40];
    const clv_execute_args args = args_of(p, &p->parts[i], m, bindings);
    assert_ok(p->cpu->backend->capture->bind(p->cpu->device, captured, i, &args, &error), error);
  }
}

static clv_captured *capture_all(const parts *p, clv_stream *stream, const memory *m) {
  clv_error error = {0};
  clv_captured *captured;
  assert_ok(p->cpu->backend->capture->begin(p->cpu->device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_ok(execute_all(p, stream, m, &error), error);
  assert_ok(p->cpu->backend->capture->end(p->cpu->device, stream, &captured, &error), error);
  assert_non_null(captured);
  return captured;
}

static void assert_outputs(const parts *p, const memory *a, const memory *b, const char *what) {
  for (uint32_t i = 0; i < p->graph->output_count; ++i) {
    const clv_value_id id = p->graph->outputs[i];
    size_t size_bytes;
    assert_true(clv__tensor_size_bytes(&p->shapes->types[id], &size_bytes));
    if (memcmp(a->block + a->offsets[id], b->block + b->offsets[id], size_bytes) == 0) continue;
    fail_msg("%s: the bits of output '%s' differ between the two runs", what, p->graph->values[id].name);
  }
}

/* Runs the graph eagerly in one memory, replays its capture in another, and compares the outputs, several times with other
 * inputs, bindings and scratch. */
static void compare_ways(parts *p, uint64_t seed, const char *what) {
  const clv_backend *backend = p->cpu->backend;
  clv_device *device = p->cpu->device;
  clv_error error = {0};
  clv_stream *stream;
  memory eager = memory_make(p, 0), replay = memory_make(p, 0), other = memory_make(p, seed % 4);
  assert_ok(backend->stream_create(device, &stream, &error), error);
  fill_inputs(p, &eager, seed);
  fill_inputs(p, &replay, seed);
  assert_ok(execute_all(p, stream, &eager, &error), error);
  clv_captured *captured = capture_all(p, stream, &replay);
  assert_true(backend->capture->size_bytes(device, captured) > 0);
  assert_ok(backend->capture->launch(device, captured, stream, &error), error);
  assert_outputs(p, &eager, &replay, what);
  /* Inputs are new in every round. Round 2 binds other memory, and round 3 the first memory again. */
  for (uint64_t round = 1; round < 4; ++round) {
    memory *to = round == 2 ? &other : &replay;
    if (round > 1) bind_all(p, captured, to);
    fill_inputs(p, &eager, seed + round);
    fill_inputs(p, to, seed + round);
    assert_ok(execute_all(p, stream, &eager, &error), error);
    assert_ok(backend->capture->launch(device, captured, stream, &error), error);
    assert_outputs(p, &eager, to, what);
  }
  /* Bind all instances to one scratch buffer: the capture must use that buffer. */
  uint64_t most = 0;
  for (uint32_t i = 0; i < p->count; ++i) {
    const uint64_t bytes = backend->scratch->size_bytes(device, p->parts[i].instance);
    if (bytes > most) most = bytes;
  }
  clv_buffer *scratch[2];
  for (int k = 0; k < 2; ++k) {
    assert_ok(backend->buffer_alloc(device, most + 64, &scratch[k], &error), error);
    memset(backend->buffer_host_pointer(device, scratch[k]), 0xff, most + 64);
    for (uint32_t i = 0; i < p->count; ++i) {
      assert_ok(backend->scratch->bind(device, p->parts[i].instance, scratch[k], k == 0 ? 64 : 0, &error), error);
    }
    if (k == 1) backend->buffer_free(device, scratch[0]);
    fill_inputs(p, &eager, seed + 9);
    fill_inputs(p, &replay, seed + 9);
    assert_ok(backend->capture->launch(device, captured, stream, &error), error);
    assert_ok(execute_all(p, stream, &eager, &error), error);
    assert_outputs(p, &eager, &replay, what);
  }
  backend->capture->destroy(device, captured);
  backend->stream_destroy(device, stream);
  memory_drop(&eager);
  memory_drop(&replay);
  memory_drop(&other);
  backend->buffer_free(device, scratch[1]);
}

static void test_random_graphs(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host_threads = 1;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    static const uint32_t sizes[] = {1, 3, 12, 40, 120};
    clv_graph *graph = test_random_graph(clv__allocator_default(), seed, sizes[seed % 5]);
    cpu_host cpu;
    assert_ok(cpu_host_open(&cpu, graph->allocator,
                            seed % 7 == 0   ? "profile"
                            : seed % 5 == 0 ? "fuse"
                                            : NULL,
                            seed % 7 == 0 ? "1" : "0", &error),
              error);
    static const uint32_t cuts[] = {MOST_VALUES, 2, 5, 1};
    uint32_t cut = cuts[seed % 4];
    if (graph->node_count > cut * MOST_PARTS) cut = 2;
    parts p;
    char what[32];
    snprintf(what, sizeof what, "seed %d, %u nodes per part", (int)seed, cut);
    parts_open(&p, &cpu, graph, cut);
    compare_ways(&p, seed * 77, what);
    parts_close(&p);
    assert_int_equal(cpu.retreats, 0);
    cpu_host_close(&cpu);
    clv__graph_destroy(graph);
  }
}

/* A graph with steps that the random graphs lack: broadcasting over several axes, i64, portable kernels, oneDNN primitives in
 * blocked layouts, row steps, and fused functions after small steps. The graph is also compared with the reference
 * evaluator. */
static clv_graph *mixed(const clv_allocator *allocator) {
  test_graph t;
  const int64_t image[4] = {1, 16, 6, 5}, kernel[4] = {16, 16, 3, 3}, channel[4] = {1, 16, 1, 1}, line[4] = {1, 1, 1, 5};
  const int64_t column[4] = {1, 1, 6, 1}, square[2] = {5, 5}, wide[2] = {16, 80}, flat[2] = {16, 30}, bias[1] = {7};
  const int64_t narrow[2] = {7, 30};
  const int64_t pads[4] = {1, 1, 1, 1}, perm[4] = {0, 2, 3, 1}, axis = 1, one = 1;
  test_graph_begin(&t, allocator, 3);
  test_graph_input(&t, "x", CLV_F32, 4, image);
  test_graph_weight(&t, "w", 4, kernel);
  test_graph_weight(&t, "c", 4, channel);
  test_graph_weight(&t, "l", 4, line);
  test_graph_weight(&t, "r", 4, column);
  test_graph_weight(&t, "s", 2, square);
  test_graph_weight(&t, "wide", 2, wide);
  test_graph_weight(&t, "narrow", 2, narrow);
  test_graph_weight(&t, "bias", 1, bias);
  test_graph_ints(&t, "flat", 2, flat);
  test_graph_node_ints(&t, "conv", "Conv", "x,w", "a", "pads", true, 4, pads);
  test_graph_node(&t, "relu", "Relu", "a", "b");
  test_graph_node(&t, "bychannel", "Mul", "b,c", "d");
  test_graph_node(&t, "lines", "Add", "l,r", "e"); /* both operands are broadcast */
  test_graph_node(&t, "both", "Sub", "x,e", "f");
  test_graph_node(&t, "product", "MatMul", "f,s", "g");
  test_graph_node(&t, "after", "Sigmoid", "g", "h");
  test_graph_node(&t, "plus", "Add", "h,x", "i");
  test_graph_node_ints(&t, "turn", "Transpose", "i", "j", "perm", true, 4, perm);
  test_graph_node(&t, "soft", "Softmax", "j", "k");
  test_graph_node(&t, "above", "Greater", "x,e", "m");
  test_graph_node(&t, "where", "Where", "m,x,e", "n");
  test_graph_node(&t, "shape", "Reshape", "n,flat", "o");
  test_graph_node_ints(&t, "gemm", "Gemm", "o,narrow,bias", "p", "transB", false, 1, &one);
  test_graph_node(&t, "gelu", "Gelu", "p", "q");
  test_graph_node_ints(&t, "best", "ArgMax", "p", "u", "axis", false, 1, &axis);
  test_graph_node(&t, "twice", "Add", "u,u", "v"); /* u and v have dtype i64 */
  test_graph_node_ints(&t, "first", "ReduceMax", "x", "y", "keepdims", false, 1, &one);
  test_graph_node(&t, "sum", "Add", "x,y", "z");
  test_graph_node(&t, "relu2", "Relu", "z", "z2");
  test_graph_node_ints(&t, "join", "Concat", "z2,i", "z3", "axis", false, 1, &axis);
  return test_graph_end(&t, "d,k,q,v,z3,x,e");
}

static void test_mixed_steps(void **state) {
  (void)state;
  static const char *const options[] = {NULL, "fuse", "onednn"};
  clv_error error = {0};
  uint64_t seed = 5;
  const int64_t image[4] = {1, 16, 6, 5};
  cpu_host_threads = 1;
  for (int i = 0; i < 3; ++i) {
    clv_graph *graph = mixed(clv__allocator_default());
    clv_tensor x = random_tensor(graph->allocator, &seed, 4, image);
    assert_int_equal(compare_with_reference(graph, &x, options[i], "0", "mixed"), 0);
    clv__release(graph->allocator, x.data);
    cpu_host cpu;
    assert_ok(cpu_host_open(&cpu, graph->allocator, options[i], "0", &error), error);
    for (uint32_t cut = 1; cut < 40; cut = cut * 3 + 1) {
      parts p;
      parts_open(&p, &cpu, graph, cut);
      compare_ways(&p, 40 + cut, "mixed");
      parts_close(&p);
    }
    cpu_host_close(&cpu);
    clv__graph_destroy(graph);
  }
}

/* ---- One instance recorded twice; dropped recordings; launches without allocations. ---- */

static clv_graph *chain(const clv_allocator *allocator) {
  test_graph t;
  const int64_t dims[2] = {4, 8}, square[2] = {8, 8};
  test_graph_begin(&t, allocator, 1);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_weight(&t, "w", 2, square);
  test_graph_node(&t, "product", "MatMul", "x,w", "a");
  test_graph_node(&t, "tanh", "Tanh", "a", "b");
  test_graph_node(&t, "sum", "Add", "b,x", "c");
  return test_graph_end(&t, "c");
}

static void test_recorded_twice(void **state) {
  (void)state;
  clv_error error = {0};
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph = chain(&counting.allocator); /* cpu_host_open() gives the host the same allocator */
  cpu_host cpu;
  parts p;
  clv_stream *stream;
  clv_captured *captured, *none = (clv_captured *)(void *)&error;
  assert_ok(cpu_host_open(&cpu, &counting.allocator, NULL, NULL, &error), error);
  parts_open(&p, &cpu, graph, MOST_VALUES);
  const clv_backend *backend = cpu.backend;
  assert_ok(backend->stream_create(cpu.device, &stream, &error), error);
  memory a = memory_make(&p, 0), b = memory_make(&p, 0), c = memory_make(&p, 0);
  fill_inputs(&p, &a, 1);
  /* Record two executions of one instance: the second reads the output of the first. */
  clv_binding bindings[40];
  clv_execute_args args = args_of(&p, &p.parts[0], &a, bindings);
  assert_int_equal(args.input_count + args.output_count, 2);
  const size_t live = counting.live;
  for (int drop = 0; drop < 3; ++drop) { /* dropped recordings leak nothing, and run nothing */
    memcpy(b.block, a.block, a.size_bytes);
    assert_ok(backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
    assert_int_equal(backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), CLV_INVALID_ARGUMENT);
    for (int i = 0; i < drop; ++i) assert_ok(execute_all(&p, stream, &a, &error), error);
    assert_ok(backend->capture->end(cpu.device, stream, NULL, &error), error);
    assert_memory_equal(a.block, b.block, a.size_bytes);
    assert_true(counting.live <= live + 1); /* at most the instance's own memory has been added */
  }
  assert_int_equal(backend->capture->end(cpu.device, stream, &none, &error), CLV_INVALID_ARGUMENT);
  assert_null(none);
  assert_ok(backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_ok(backend->execute(cpu.device, p.parts[0].instance, stream, &args, &error), error);
  bindings[0].type.data = a.block + a.offsets[p.parts[0].ids[1]];
  bindings[1].type.data = b.block;
  assert_ok(backend->execute(cpu.device, p.parts[0].instance, stream, &args, &error), error);
  assert_ok(backend->capture->end(cpu.device, stream, &captured, &error), error);
  const size_t calls = counting.calls;
  assert_ok(backend->capture->launch(cpu.device, captured, stream, &error), error);
  /* Make the same two executions eagerly, as a reference. */
  fill_inputs(&p, &c, 1);
  args = args_of(&p, &p.parts[0], &c, bindings);
  assert_ok(backend->execute(cpu.device, p.parts[0].instance, stream, &args, &error), error);
  bindings[0].type.data = bindings[1].type.data;
  bindings[1].type.data = c.block + c.offsets[p.parts[0].ids[0]];
  assert_ok(backend->execute(cpu.device, p.parts[0].instance, stream, &args, &error), error);
  assert_memory_equal(b.block, bindings[1].type.data, 4 * 8 * 4);
  /* Bind other memory to the output of the second execution only. */
  uint8_t elsewhere[4 * 8 * 4];
  args = args_of(&p, &p.parts[0], &a, bindings);
  bindings[0].type.data = bindings[1].type.data;
  bindings[1].type.data = elsewhere;
  assert_ok(backend->capture->bind(cpu.device, captured, 1, &args, &error), error);
  assert_int_equal(backend->capture->bind(cpu.device, captured, 2, &args, &error), CLV_INVALID_ARGUMENT);
  memset(b.block, 0, b.size_bytes);
  assert_ok(backend->capture->launch(cpu.device, captured, stream, &error), error);
  assert_memory_equal(elsewhere, c.block + c.offsets[p.parts[0].ids[0]], sizeof elsewhere);
  assert_int_equal(b.block[0], 0);
  assert_int_equal(counting.calls, calls); /* neither launching nor binding allocates */
  backend->capture->destroy(cpu.device, captured);
  backend->capture->destroy(cpu.device, NULL);
  /* Destroy a stream that is capturing. */
  assert_ok(backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_ok(execute_all(&p, stream, &a, &error), error);
  backend->stream_destroy(cpu.device, stream);
  memory_drop(&a);
  memory_drop(&b);
  memory_drop(&c);
  parts_close(&p);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

/* ---- Failures. ---- */

static void test_failing_kernel(void **state) {
  (void)state;
  clv_error error = {0};
  const int64_t dims[2] = {4, 3}, count[1] = {2};
  static const char *const names[] = {"rows", "other rows"};
  clv_graph *graphs[2];
  for (int i = 0; i < 2; ++i) {
    test_graph t;
    test_graph_begin(&t, clv__allocator_default(), 1);
    test_graph_input(&t, "x", CLV_F32, 2, dims);
    test_graph_input(&t, "at", CLV_I64, 1, count);
    test_graph_node(&t, "before", "Relu", "x", "a");
    test_graph_node(&t, names[i], "Gather", "a,at", "b");
    test_graph_node(&t, "after", "Neg", "b", "c");
    graphs[i] = test_graph_end(&t, "c");
  }
  cpu_host cpu;
  cpu_program first, second;
  clv_stream *stream;
  clv_captured *captured;
  assert_ok(cpu_host_open(&cpu, graphs[0]->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&first, &cpu, graphs[0], NULL, &error), error);
  assert_ok(cpu_program_open(&second, &cpu, graphs[1], NULL, &error), error);
  assert_ok(cpu.backend->stream_create(cpu.device, &stream, &error), error);
  float x[12], y[2][6];
  int64_t at[2][2] = {{3, 1}, {0, 2}};
  for (int i = 0; i < 12; ++i) x[i] = (float)i;
  clv_binding in[2] = {{0}}, out = {0};
  clv_execute_args args = {.struct_size = sizeof args, .input_count = 2, .output_count = 1, .inputs = in, .outputs = &out};
  const int64_t made[2] = {2, 3};
  in[0].type = clv__tensor_make(CLV_F32, 2, dims, x);
  assert_ok(cpu.backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
  for (int i = 0; i < 2; ++i) {
    in[1].type = clv__tensor_make(CLV_I64, 1, count, at[i]);
    out.type = clv__tensor_make(CLV_F32, 2, made, y[i]);
    assert_ok(cpu.backend->execute(cpu.device, (i == 0 ? &first : &second)->instance, stream, &args, &error), error);
  }
  assert_ok(cpu.backend->capture->end(cpu.device, stream, &captured, &error), error);
  assert_ok(cpu.backend->capture->launch(cpu.device, captured, stream, &error), error);
  assert_true(y[0][0] == -9.0f && y[0][5] == -5.0f && y[1][3] == -6.0f);
  for (int i = 0; i < 2; ++i) {
    at[i][1] = 7; /* out of range, which is detected only at run time */
    assert_int_equal(cpu.backend->capture->launch(cpu.device, captured, stream, &error), CLV_INVALID_ARGUMENT);
    char wanted[32];
    snprintf(wanted, sizeof wanted, "node '%s' (Gather)", names[i]);
    assert_non_null(strstr(error.message, wanted));
    at[i][1] = i;
    assert_ok(cpu.backend->capture->launch(cpu.device, captured, stream, &error), error);
    assert_true(y[i][3] == (i == 0 ? 0.0f : -3.0f));
  }
  /* A capture cannot be launched on a stream that is capturing. */
  assert_ok(cpu.backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_int_equal(cpu.backend->capture->launch(cpu.device, captured, stream, &error), CLV_INVALID_ARGUMENT);
  /* After an execution with wrong shapes, end() returns no capture. A capture made before a resize cannot be launched. */
  in[0].type.dims[0] = 5;
  assert_int_equal(cpu.backend->execute(cpu.device, first.instance, stream, &args, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'x'"));
  clv_captured *none;
  assert_int_equal(cpu.backend->capture->end(cpu.device, stream, &none, &error), CLV_NOT_SUPPORTED);
  assert_null(none);
  clv_tensor types[2] = {in[0].type, in[1].type};
  types[0].data = types[1].data = NULL;
  assert_ok(cpu.backend->instance_resize(cpu.device, first.instance, types, 2, &error), error);
  assert_int_equal(cpu.backend->capture->launch(cpu.device, captured, stream, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "resized"));
  cpu.backend->capture->destroy(cpu.device, captured);
  cpu.backend->stream_destroy(cpu.device, stream);
  cpu_program_close(&first);
  cpu_program_close(&second);
  cpu_host_close(&cpu);
  for (int i = 0; i < 2; ++i) clv__graph_destroy(graphs[i]);
}

/* ---- Timing. ---- */

typedef struct times {
  uint32_t steps;
  uint64_t executions, time_ns; /* executions of the step reported last; time of all steps */
} times;

static clv_status count_step(void *cookie, const clv_step_info *info) {
  times *t = cookie;
  t->steps++;
  t->executions = info->executions;
  t->time_ns += info->time_ns;
  return CLV_OK;
}

/* While steps are timed, launches of a capture count as executions of its steps, and so do executions node by node. */
static void test_times(void **state) {
  (void)state;
  for (int walked = 0; walked < 2; ++walked) {
    test_graph t;
    const int64_t dims[2] = {4, 300};
    clv_error error = {0};
    cpu_host cpu;
    cpu_program program;
    clv_stream *stream;
    clv_captured *captured = NULL;
    times found = {0};
    uint64_t seed = 3;
    clv_tensor made[1] = {{.rank = CLV_RANK_UNKNOWN}};
    test_graph_begin(&t, clv__allocator_default(), 1);
    test_graph_input(&t, "x", CLV_F32, 2, dims);
    test_graph_node(&t, "first", "Tanh", "x", "a");
    test_graph_node(&t, "second", walked ? "NonZero" : "Sin", "a", "y");
    clv_graph *graph = test_graph_end(&t, "y");
    clv_tensor x = random_tensor(graph->allocator, &seed, 2, dims), y = random_tensor(graph->allocator, &seed, 2, dims);
    assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
    assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
    assert_ok(cpu.backend->stream_create(cpu.device, &stream, &error), error);
    assert_ok(cpu.backend->timing->enable(cpu.device, program.instance, true, &error), error);
    clv_binding in = {.type = x}, out = {.type = y};
    clv_execute_args args = {.struct_size = sizeof args, .input_count = 1, .output_count = 1, .inputs = &in, .outputs = &out};
    if (!walked) {
      assert_ok(cpu.backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
      assert_ok(cpu.backend->execute(cpu.device, program.instance, stream, &args, &error), error);
      assert_ok(cpu.backend->capture->end(cpu.device, stream, &captured, &error), error);
    }
    for (int i = 0; i < 3; ++i) {
      if (!walked) {
        assert_ok(cpu.backend->capture->launch(cpu.device, captured, stream, &error), error);
        continue;
      }
      made[0] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
      assert_ok(cpu_program_run(&program, &x, made, &error), error);
      clv__release(graph->allocator, made[0].data);
    }
    assert_ok(cpu.backend->timing->steps(cpu.device, program.instance, count_step, &found, &error), error);
    assert_int_equal(found.steps, 2);
    assert_int_equal(found.executions, 3);
    assert_true(found.time_ns > 0);
    cpu.backend->capture->destroy(cpu.device, captured);
    cpu.backend->stream_destroy(cpu.device, stream);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__release(graph->allocator, x.data);
    clv__release(graph->allocator, y.data);
    clv__graph_destroy(graph);
  }
}

/* An execution cannot be captured if the size of an output is unknown. Nodes with bodies, such as If, are recorded, and
 * launches run their bodies node by node. */
static void test_node_by_node(void **state) {
  (void)state;
  clv_error error = {0};
  test_graph t, then_body, else_body;
  const int64_t dims[2] = {2, 2};
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_input(&t, "which", CLV_BOOL, 0, NULL);
  test_graph_node(&t, "relu", "Relu", "x", "a");
  test_graph_begin(&then_body, clv__allocator_default(), 6);
  test_graph_node(&then_body, "neg", "Neg", "a", "r");
  const clv_graph_view *then_view = body_end(&then_body, &t, "r");
  test_graph_begin(&else_body, clv__allocator_default(), 7);
  test_graph_node(&else_body, "sum", "Add", "a,x", "r");
  const clv_graph_view *else_view = body_end(&else_body, &t, "r");
  body_node(&t, "If", "which", "b", "then_branch", then_view, "else_branch", else_view, 0);
  clv_graph *graph = test_graph_end(&t, "b");
  cpu_host cpu;
  cpu_program program;
  clv_stream *stream;
  clv_captured *captured;
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(cpu.backend->stream_create(cpu.device, &stream, &error), error);
  float x[4] = {1, 2, -3, 4}, y[4] = {0};
  bool which = true;
  clv_binding in[2] = {{.type = clv__tensor_make(CLV_F32, 2, dims, x)}, {.type = clv__tensor_make(CLV_BOOL, 0, NULL, &which)}};
  clv_binding out = {.type = {.dtype = CLV_F32, .rank = CLV_RANK_UNKNOWN}};
  clv_execute_args args = {.struct_size = sizeof args, .input_count = 2, .output_count = 1, .inputs = in, .outputs = &out};
  assert_ok(cpu.backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_int_equal(cpu.backend->execute(cpu.device, program.instance, stream, &args, &error), CLV_NOT_SUPPORTED);
  assert_ok(cpu.backend->capture->end(cpu.device, stream, NULL, &error), error);
  out.type = clv__tensor_make(CLV_F32, 2, dims, y);
  assert_ok(cpu.backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_ok(cpu.backend->execute(cpu.device, program.instance, stream, &args, &error), error);
  assert_ok(cpu.backend->capture->end(cpu.device, stream, &captured, &error), error);
  assert_ok(cpu.backend->capture->launch(cpu.device, captured, stream, &error), error);
  assert_true(y[0] == -1.0f && y[3] == -4.0f);
  which = false;
  float z[4];
  out.type.data = z;
  assert_ok(cpu.backend->capture->bind(cpu.device, captured, 0, &args, &error), error);
  assert_ok(cpu.backend->capture->launch(cpu.device, captured, stream, &error), error);
  assert_true(z[0] == 2.0f && z[2] == -3.0f && y[0] == -1.0f);
  cpu.backend->capture->destroy(cpu.device, captured);
  cpu.backend->stream_destroy(cpu.device, stream);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

/* ---- Scratch. ---- */

static void test_scratch(void **state) {
  (void)state;
  clv_error error = {0};
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph = mixed(&counting.allocator);
  cpu_host cpu;
  parts p;
  assert_ok(cpu_host_open(&cpu, &counting.allocator, NULL, NULL, &error), error);
  parts_open(&p, &cpu, graph, 8);
  const clv_backend *backend = cpu.backend;
  uint64_t most = 0;
  for (uint32_t i = 0; i < p.count; ++i) {
    const uint64_t bytes = backend->scratch->size_bytes(cpu.device, p.parts[i].instance);
    assert_true(bytes > 0);
    if (bytes > most) most = bytes;
  }
  clv_buffer *buffer, *small;
  assert_ok(backend->buffer_alloc(cpu.device, most, &buffer, &error), error);
  assert_ok(backend->buffer_alloc(cpu.device, 8, &small, &error), error);
  assert_int_equal(backend->scratch->bind(cpu.device, p.parts[0].instance, small, 0, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(backend->scratch->bind(cpu.device, p.parts[0].instance, NULL, 0, &error), CLV_INVALID_ARGUMENT);
  backend->buffer_free(cpu.device, small);
  assert_ok(backend->buffer_alloc(cpu.device, most + 64, &small, &error), error);
  assert_int_equal(backend->scratch->bind(cpu.device, p.parts[0].instance, small, 8, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "aligned"));
  backend->buffer_free(cpu.device, small);
  memory m = memory_make(&p, 0), own = memory_make(&p, 0);
  fill_inputs(&p, &m, 4);
  fill_inputs(&p, &own, 4);
  for (uint32_t i = 0; i < p.count; ++i) {
    assert_ok(backend->scratch->bind(cpu.device, p.parts[i].instance, buffer, 0, &error), error);
  }
  const size_t live = counting.live;
  assert_ok(execute_all(&p, NULL, &m, &error), error);
  assert_int_equal(counting.live, live); /* the instances have allocated no memory of their own */
  parts q;
  parts_open(&q, &cpu, graph, 8);
  assert_ok(execute_all(&q, NULL, &own, &error), error);
  assert_outputs(&p, &m, &own, "scratch");
  parts_close(&q);
  parts_close(&p);
  backend->buffer_free(cpu.device, buffer);
  memory_drop(&m);
  memory_drop(&own);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

/* ---- Failing allocations. ---- */

static void test_failing_memory(void **state) {
  (void)state;
  clv_error error = {0};
  test_allocator failing;
  test_allocator_init(&failing);
  clv_graph *graph = mixed(&failing.allocator);
  cpu_host cpu;
  parts p;
  assert_ok(cpu_host_open(&cpu, &failing.allocator, NULL, NULL, &error), error);
  parts_open(&p, &cpu, graph, 6);
  clv_stream *stream;
  assert_ok(cpu.backend->stream_create(cpu.device, &stream, &error), error);
  memory m = memory_make(&p, 0), unaligned = memory_make(&p, 1);
  fill_inputs(&p, &m, 4);
  assert_ok(execute_all(&p, stream, &m, &error), error);
  const size_t live = failing.live;
  bool done = false;
  for (size_t fail_after = 1; !done && fail_after < 5000; ++fail_after) {
    clv_captured *captured = NULL;
    failing.fail_at = failing.calls + fail_after;
    clv_status status = cpu.backend->capture->begin(cpu.device, stream, CLV_CAPTURE_THREAD, &error);
    if (status == CLV_OK) {
      status = execute_all(&p, stream, &m, &error);
      const clv_status ended = cpu.backend->capture->end(cpu.device, stream, status == CLV_OK ? &captured : NULL, &error);
      if (status == CLV_OK) status = ended;
    }
    for (uint32_t i = 0; i < p.count && status == CLV_OK; ++i) {
      clv_binding bindings[40];
      const clv_execute_args args = args_of(&p, &p.parts[i], &unaligned, bindings);
      status = cpu.backend->capture->bind(cpu.device, captured, i, &args, &error);
    }
    done = status == CLV_OK && failing.calls < failing.fail_at;
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    failing.fail_at = 0;
    cpu.backend->capture->destroy(cpu.device, captured);
    assert_int_equal(failing.live, live);
  }
  assert_true(done);
  cpu.backend->stream_destroy(cpu.device, stream);
  parts_close(&p);
  memory_drop(&m);
  memory_drop(&unaligned);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

/* ---- Events, and streams of several threads. ---- */

static void count_up(void *cookie) {
  ++*(int *)cookie;
}

static void test_events(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host cpu;
  clv_event *event;
  clv_device_info info = {.struct_size = sizeof info};
  int called = 0;
  assert_ok(cpu_host_open(&cpu, clv__allocator_default(), NULL, NULL, &error), error);
  cpu.backend->info(cpu.device, &info);
  assert_true(info.is_synchronous);
  assert_ok(cpu.backend->event_create(cpu.device, &event, &error), error);
  assert_ok(cpu.backend->event_notify(cpu.device, event, count_up, &called, &error), error);
  assert_int_equal(called, 1);
  cpu.backend->event_destroy(cpu.device, event);
  cpu_host_close(&cpu);
}

typedef struct worker {
  parts p;
  uint64_t seed;
} worker;

static void *work(void *cookie) {
  worker *w = cookie;
  const clv_backend *backend = w->p.cpu->backend;
  clv_device *device = w->p.cpu->device;
  clv_error error = {0};
  clv_stream *stream;
  if (backend->stream_create(device, &stream, &error) != CLV_OK) return "cannot create a stream";
  memory eager = memory_make(&w->p, 0), replay = memory_make(&w->p, 0);
  clv_captured *captured = NULL;
  const char *wrong = NULL;
  fill_inputs(&w->p, &eager, w->seed);
  fill_inputs(&w->p, &replay, w->seed);
  for (int i = 0; i < 20 && wrong == NULL; ++i) {
    if (backend->capture->begin(device, stream, CLV_CAPTURE_THREAD, &error) != CLV_OK ||
        execute_all(&w->p, stream, &replay, &error) != CLV_OK ||
        backend->capture->end(device, stream, &captured, &error) != CLV_OK) {
      wrong = "a capture failed";
    }
    for (int k = 0; k < 5 && wrong == NULL; ++k) {
      if (backend->capture->launch(device, captured, stream, &error) != CLV_OK) wrong = "a launch failed";
      if (wrong == NULL && execute_all(&w->p, stream, &eager, &error) != CLV_OK) wrong = "an eager execution failed";
    }
    const clv_value_id id = w->p.graph->outputs[0];
    if (wrong == NULL && memcmp(eager.block + eager.offsets[id], replay.block + replay.offsets[id], 64) != 0)
      wrong = "the replayed output differs from the eager one";
    backend->capture->destroy(device, captured);
    captured = NULL;
  }
  backend->stream_destroy(device, stream);
  memory_drop(&eager);
  memory_drop(&replay);
  return (void *)(uintptr_t)wrong;
}

static void test_threads(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host cpu;
  pthread_t threads[3];
  static worker workers[3];
  clv_graph *graph = mixed(clv__allocator_default());
  cpu_host_threads = 1;
  assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
  for (int i = 0; i < 3; ++i) {
    parts_open(&workers[i].p, &cpu, graph, (uint32_t)(4 + i));
    workers[i].seed = (uint64_t)i + 1;
  }
  for (int i = 0; i < 3; ++i) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < 3; ++i) {
    void *wrong;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    if (wrong != NULL) fail_msg("thread %d: %s", i, (const char *)wrong);
    parts_close(&workers[i].p);
  }
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_graphs),  cmocka_unit_test(test_mixed_steps),  cmocka_unit_test(test_recorded_twice),
      cmocka_unit_test(test_failing_kernel), cmocka_unit_test(test_node_by_node), cmocka_unit_test(test_scratch),
      cmocka_unit_test(test_failing_memory), cmocka_unit_test(test_events),       cmocka_unit_test(test_threads),
      cmocka_unit_test(test_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
