/* Measures the cost of running graphs of tiny operators on a device: the host's time per node for eager runs (one execute() per
 * partition) and for replay (one launch of the capture). For the CPU it also measures the same kernel calls without Cleave: the
 * calls of its launch list through an array of function pointers ("raw calls"), and each call alone, repeated with warm caches
 * ("bodies"). The columns `+eager` and `+replay` are the times beyond the bodies. The graphs are chains and random graphs of
 * [4, 8] values, as one partition and as one partition per node. A column shows -1 if it does not apply: replay on a device
 * without captures, raw calls and bodies on devices other than the CPU.
 *
 *   bench_launch_list [--device NAME] [--nodes N] [--samples N] [--json] [--check]
 *
 * Times are medians of the thread's CPU time. --check: few samples; times are not judged. Results are always compared: replay
 * with eager bit for bit, and both with the reference. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define BENCH "launch_list"
#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "backends/cpu/run/executable.h"
#include "backends/cpu/run/list.h"
#include "bench.h"
#include "device/device.h"
#include "graph/view.h"

enum { ROWS = 4, COLUMNS = 8, VALUE_BYTES = ROWS * COLUMNS * 4, MAX_SAMPLES = 1001, STRIDE = 192 };
#define SAMPLE_NS 200000.0 /* the shortest duration of a sample */

static void need(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, BENCH ": %s\n", what);
  exit(1);
}

/* ---- Graphs. ---- */

static uint64_t random_state;

static uint32_t below(uint32_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % limit;
}

static void weight(clv__builder *builder, const char *name, int32_t rank, int64_t rows) {
  const int64_t dims[2] = {rank == 2 ? rows : COLUMNS, COLUMNS};
  clv_tensor type = clv__tensor_make(CLV_F32, rank, dims, NULL);
  const size_t count = (size_t)clv__dims_product(&type, 0, rank);
  float *data = clv__arena_allocate_data(clv__builder_arena(builder), count * sizeof *data);
  need(data != NULL, "out of memory");
  for (size_t i = 0; i < count; ++i) data[i] = (float)below(2000) / 3000.0f - 0.33f;
  type.data = data;
  clv__builder_type(builder, value(builder, name), &type);
}

/* Makes a chain, or a random graph whose nodes read any of the last sixteen values and the oldest value that has no reader, so
 * that almost every node contributes to the result. */
static clv_graph *make_graph(uint32_t node_count, bool chain) {
  static const char *const unary[] = {"Relu", "Tanh", "Sigmoid", "Abs", "Neg"};
  static const char *const binary[] = {"Add", "Sub", "Max", "Min"};
  const int64_t dims[2] = {ROWS, COLUMNS};
  const clv_tensor type = clv__tensor_make(CLV_F32, 2, dims, NULL);
  clv_error error = {0};
  clv__builder *builder;
  clv_graph *graph;
  random_state = node_count + chain;
  check(clv__builder_create(clv__allocator_default(), &builder, &error), &error, "builder");
  clv__builder_info(builder, "tiny", "", 10);
  check(clv__builder_import(builder, "", 21, &error), &error, "builder");
  for (int i = 0; i < 2; ++i) {
    const clv_value_id input = value(builder, i == 0 ? "v0" : "v1");
    clv__builder_type(builder, input, &type);
    check(clv__builder_input(builder, input, &error), &error, "input");
  }
  bool *read = calloc(node_count + 2, sizeof *read);
  need(read != NULL, "out of memory");
  uint32_t oldest = 0;
  weight(builder, "matrix", 2, COLUMNS);
  weight(builder, "row", 1, 1);
  weight(builder, "column", 2, ROWS);
  for (uint32_t n = 0; n < node_count; ++n) {
    char name[32];
    clv_value_id in[2], out;
    const uint32_t reach = n + 2 < 16 ? n + 2 : 16;
    const uint32_t kind = below(8), first = chain || kind < 3 || kind > 5 ? oldest : n + 1 - below(reach);
    snprintf(name, sizeof name, "v%u", chain ? n + 1 : first);
    in[0] = value(builder, name);
    read[chain ? n + 1 : first] = true;
    snprintf(name, sizeof name, "v%u", chain ? n + 1 - below(reach) : oldest);
    in[1] = value(builder, name);
    if (!chain) read[oldest] = true;
    while (read[oldest] && oldest < n + 1) ++oldest;
    const char *op = kind < 3 ? unary[below(5)] : kind == 7 ? "MatMul" : binary[below(4)];
    if (kind == 7) in[1] = value(builder, "matrix");
    if (kind == 6) in[1] = value(builder, below(2) == 0 ? "row" : "column");
    snprintf(name, sizeof name, "v%u", n + 2);
    out = value(builder, name);
    snprintf(name, sizeof name, "n%u", n);
    check(clv__builder_node(builder, name, "", op, in, kind < 3 ? 1 : 2, &out, 1, NULL, 0, &error), &error, "node");
    if (n + 1 == node_count) check(clv__builder_output(builder, out, &error), &error, "output");
  }
  free(read);
  check(clv__builder_finish(builder, &graph, &error), &error, "graph");
  return graph;
}

/* ---- A graph on a device. ---- */

typedef struct part {
  clv_executable *executable;
  clv_instance *instance;
  clv_execute_args args;
} part;

typedef struct program {
  const clv_backend *backend;
  clv_device *device;
  clv_graph *graph;
  clv__arena arena;
  clv__shapes *shapes;
  clv_buffer *buffer;
  clv_stream *stream;
  clv_captured *captured;
  part *parts;
  uint32_t part_count;
  float input[2][ROWS * COLUMNS];
} program;

static clv_binding place(program *p, clv_value_id id) {
  clv_binding binding = {.buffer = p->buffer, .offset_bytes = (uint64_t)id * STRIDE, .type = p->shapes->types[id]};
  uint8_t *host = p->backend->buffer_host_pointer(p->device, p->buffer);
  binding.type.data = host != NULL ? host + binding.offset_bytes : NULL;
  return binding;
}

static void open_part(program *p, part *made, const clv_node_id *nodes, uint32_t count) {
  clv_error error = {0};
  clv_graph_view *view;
  check(clv__view_create(p->graph, p->shapes->types, nodes, count, NULL, &p->arena, &view, &error), &error, "view");
  const clv_compile_options options = {.struct_size = sizeof options};
  check(p->backend->compile(p->device, view, &options, &made->executable, &error), &error, "compile");
  clv_executable_info info = {.struct_size = sizeof info};
  p->backend->executable_info(p->device, made->executable, &info);
  clv_weight *weights[4];
  need(info.weight_count <= 4, "the executable requests more weights than the graph has");
  for (uint32_t w = 0; w < info.weight_count; ++w) {
    for (clv_value_id id = 0; id < p->graph->value_count; ++id) {
      if (strcmp(p->graph->values[id].name, info.weights[w]) != 0) continue;
      check(p->backend->weight_upload(p->device, info.weights[w], &p->graph->values[id].type, &weights[w], &error), &error,
            "weight");
    }
  }
  clv_binding *bindings = clv__arena_allocate_zero(&p->arena, view->input_count + view->output_count, sizeof *bindings);
  clv_tensor *types = clv__arena_allocate_zero(&p->arena, view->input_count, sizeof *types);
  need(bindings != NULL && types != NULL, "out of memory");
  for (uint32_t i = 0; i < view->input_count; ++i) {
    bindings[i] = place(p, view->values[view->inputs[i]]);
    types[i] = bindings[i].type;
    types[i].data = NULL;
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    bindings[view->input_count + i] = place(p, view->values[view->outputs[i]]);
  }
  check(p->backend->instance_create(p->device, made->executable, types, view->input_count, weights, info.weight_count,
                                    &made->instance, &error),
        &error, "instance");
  made->args = (clv_execute_args){.struct_size = sizeof made->args,
                                  .input_count = view->input_count,
                                  .output_count = view->output_count,
                                  .inputs = bindings,
                                  .outputs = bindings + view->input_count};
}

static void open_program(program *p, const clv_backend *backend, clv_device *device, clv_graph *graph, uint32_t part_nodes) {
  clv_error error = {0};
  *p = (program){.backend = backend, .device = device, .graph = graph};
  clv__arena_init(&p->arena, clv__allocator_default());
  check(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &p->shapes, &error), &error, "shapes");
  check(backend->buffer_alloc(device, (uint64_t)graph->value_count * STRIDE, &p->buffer, &error), &error, "buffer");
  check(backend->stream_create(device, &p->stream, &error), &error, "stream");
  p->part_count = (graph->node_count + part_nodes - 1) / part_nodes;
  p->parts = clv__arena_allocate_zero(&p->arena, p->part_count, sizeof *p->parts);
  clv_node_id *nodes = clv__arena_allocate_zero(&p->arena, graph->node_count, sizeof *nodes);
  need(p->parts != NULL && nodes != NULL, "out of memory");
  for (uint32_t n = 0; n < graph->node_count; ++n) nodes[n] = n;
  for (uint32_t i = 0, at = 0; i < p->part_count; ++i, at += part_nodes) {
    open_part(p, &p->parts[i], nodes + at, graph->node_count - at < part_nodes ? graph->node_count - at : part_nodes);
  }
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < ROWS * COLUMNS; ++i) p->input[k][i] = (float)below(1000) / 500.0f - 1.0f;
    check(backend->copy_in(device, p->stream, p->buffer, (uint64_t)graph->inputs[k] * STRIDE, p->input[k], VALUE_BYTES, &error),
          &error, "copy");
  }
}

static void close_program(program *p) {
  if (p->captured != NULL) p->backend->capture->destroy(p->device, p->captured);
  for (uint32_t i = 0; i < p->part_count; ++i) {
    p->backend->instance_destroy(p->device, p->parts[i].instance);
    p->backend->executable_destroy(p->device, p->parts[i].executable);
  }
  p->backend->stream_destroy(p->device, p->stream);
  p->backend->buffer_free(p->device, p->buffer);
  clv__shapes_destroy(p->shapes);
  clv__arena_finish(&p->arena);
}

static void finish_stream(program *p) {
  clv_error error = {0};
  check(p->backend->stream_synchronize(p->device, p->stream, &error), &error, "synchronize");
}

static void run_eager(void *cookie) {
  program *p = cookie;
  clv_error error = {0};
  for (uint32_t i = 0; i < p->part_count; ++i) {
    const clv_status status = p->backend->execute(p->device, p->parts[i].instance, p->stream, &p->parts[i].args, &error);
    if (status != CLV_OK) check(status, &error, "execute");
  }
  finish_stream(p);
}

static void run_replay(void *cookie) {
  program *p = cookie;
  clv_error error = {0};
  check(p->backend->capture->launch(p->device, p->captured, p->stream, &error), &error, "launch");
  finish_stream(p);
}

static void capture(program *p) {
  clv_error error = {0};
  check(p->backend->capture->begin(p->device, p->stream, CLV_CAPTURE_THREAD, &error), &error, "capture");
  for (uint32_t i = 0; i < p->part_count; ++i) {
    check(p->backend->execute(p->device, p->parts[i].instance, p->stream, &p->parts[i].args, &error), &error, "execute");
  }
  check(p->backend->capture->end(p->device, p->stream, &p->captured, &error), &error, "capture");
}

static void read_result(program *p, float *result) {
  clv_error error = {0};
  check(
      p->backend->copy_out(p->device, p->stream, result, p->buffer, (uint64_t)p->graph->outputs[0] * STRIDE, VALUE_BYTES, &error),
      &error, "copy");
  finish_stream(p);
}

/* Runs eagerly and by replay, and compares the results with each other and with the reference. */
static void check_results(program *p) {
  float eager[ROWS * COLUMNS], replay[ROWS * COLUMNS];
  static const float nothing[ROWS * COLUMNS];
  clv_error error = {0};
  run_eager(p);
  read_result(p, eager);
  if (p->captured != NULL) {
    check(p->backend->copy_in(p->device, p->stream, p->buffer, (uint64_t)p->graph->outputs[0] * STRIDE, nothing, VALUE_BYTES,
                              &error),
          &error, "copy");
    run_replay(p);
    read_result(p, replay);
    need(memcmp(eager, replay, sizeof eager) == 0, "the results of replay and eager runs differ");
  }
  clv_tensor inputs[2], wanted = {0};
  for (int k = 0; k < 2; ++k) {
    inputs[k] = p->shapes->types[p->graph->inputs[k]];
    inputs[k].data = p->input[k];
  }
  check(clv__graph_evaluate(p->graph, inputs, NULL, &wanted, NULL, NULL, clv__allocator_default(), &error), &error, "reference");
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    const double a = (double)eager[i], b = (double)((const float *)wanted.data)[i];
    need(fabs(a - b) <= 1e-3 * (1 + fabs(b)), "the result differs from the reference");
  }
  clv__release(clv__allocator_default(), wanted.data);
}

/* ---- Timing ---- */

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Median ns of one call of `run`. */
static double measure(void (*run)(void *cookie), void *cookie, int samples) {
  static double taken[MAX_SAMPLES];
  double begin = now_ns();
  run(cookie);
  run(cookie);
  const double once = (now_ns() - begin) / 2;
  const int calls = once > SAMPLE_NS ? 1 : (int)(SAMPLE_NS / (once > 10 ? once : 10)) + 1;
  for (int s = 0; s < samples; ++s) {
    begin = now_ns();
    for (int i = 0; i < calls; ++i) run(cookie);
    taken[s] = (now_ns() - begin) / calls;
  }
  qsort(taken, (size_t)samples, sizeof *taken, compare);
  return taken[samples / 2];
}

/* ---- The CPU's calls without Cleave. ---- */

typedef struct raw_calls {
  const clv__cpu_call **calls;
  size_t count, repeats;
} raw_calls;

static void run_call(const clv__cpu_call *call) {
  if (call->is_row)
    call->function.row((const clv__row *)(const void *)call->arguments);
  else
    (void)call->function.run(call, NULL, NULL);
}

static void run_raw(void *cookie) {
  const raw_calls *raw = cookie;
  for (size_t i = 0; i < raw->count; ++i) run_call(raw->calls[i]);
}

static void run_repeated(void *cookie) {
  const raw_calls *raw = cookie;
  for (size_t i = 0; i < raw->count; ++i) {
    for (size_t r = 0; r < raw->repeats; ++r) run_call(raw->calls[i]);
  }
}

static raw_calls collect(program *p) {
  raw_calls raw = {.repeats = 32};
  for (uint32_t i = 0; i < p->part_count; ++i) {
    const clv__cpu_list *list = p->parts[i].instance->run->list;
    for (size_t at = 0; at < list->size_bytes; ++raw.count) at += ((const clv__cpu_call *)(void *)(list->block + at))->size_bytes;
  }
  raw.calls = clv__arena_allocate_zero(&p->arena, raw.count, sizeof *raw.calls);
  need(raw.calls != NULL, "out of memory");
  size_t n = 0;
  for (uint32_t i = 0; i < p->part_count; ++i) {
    const clv__cpu_list *list = p->parts[i].instance->run->list;
    for (size_t at = 0; at < list->size_bytes; at += raw.calls[n++]->size_bytes) {
      raw.calls[n] = (const clv__cpu_call *)(void *)(list->block + at);
    }
  }
  return raw;
}

/* ---- The tables. ---- */

typedef struct settings {
  const char *device;
  uint32_t nodes; /* 0: one after the other, the sizes listed in main() */
  int samples;
  bool json, check;
} settings;

typedef struct row {
  const char *shape;
  uint32_t nodes, parts;
  size_t calls;
  double eager, replay, raw, bodies; /* ns per node; negative: not measured */
} row;

static double over(const row *r, double taken) {
  return r->bodies >= 0 && taken >= 0 ? taken - r->bodies : -1;
}

static void print_row(const settings *set, const row *r, bool first) {
  if (set->json) {
    printf(
        "%s{\"shape\": \"%s\", \"nodes\": %u, \"partitions\": %u, \"calls\": %zu, \"eager_ns\": %.1f, \"replay_ns\": %.1f, "
        "\"raw_ns\": %.1f, \"bodies_ns\": %.1f, \"eager_overhead_ns\": %.1f, \"replay_overhead_ns\": %.1f}",
        first ? "" : ",\n ", r->shape, r->nodes, r->parts, r->calls, r->eager, r->replay, r->raw, r->bodies, over(r, r->eager),
        over(r, r->replay));
    return;
  }
  if (first) {
    printf("%-7s %6s %6s %6s %9s %9s %9s %9s %9s %9s %7s\n", "shape", "nodes", "parts", "calls", "eager", "replay", "raw calls",
           "bodies", "+eager", "+replay", "ratio");
  }
  printf("%-7s %6u %6u %6zu %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %6.2fx\n", r->shape, r->nodes, r->parts, r->calls, r->eager,
         r->replay, r->raw, r->bodies, over(r, r->eager), over(r, r->replay), r->replay > 0 ? r->eager / r->replay : 0.0);
}

static void run_row(const settings *set, const clv_backend *backend, clv_device *device, uint32_t nodes, bool chain, bool a_node,
                    bool first) {
  clv_graph *graph = make_graph(nodes, chain);
  program p;
  open_program(&p, backend, device, graph, a_node ? 1 : nodes);
  row r = {.shape = chain ? "chain" : "random", .nodes = nodes, .parts = p.part_count, .replay = -1, .raw = -1, .bodies = -1};
  if (backend->capture != NULL) capture(&p);
  check_results(&p);
  r.eager = measure(run_eager, &p, set->samples) / nodes;
  if (p.captured != NULL) r.replay = measure(run_replay, &p, set->samples) / nodes;
  if (strcmp(backend->name, "cpu") == 0) {
    raw_calls raw = collect(&p);
    r.calls = raw.count;
    r.raw = measure(run_raw, &raw, set->samples) / nodes;
    r.bodies = measure(run_repeated, &raw, (set->samples + 4) / 5) / (double)raw.repeats / nodes;
  }
  check_results(&p); /* once more, after the timed runs */
  print_row(set, &r, first);
  close_program(&p);
  clv__graph_destroy(graph);
}

static settings read_settings(int argc, char **argv) {
  settings set = {.device = "cpu", .samples = 51};
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      set.json = true;
    } else if (strcmp(argv[i], "--check") == 0) {
      set.check = true;
      set.samples = 3;
    } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      set.device = argv[++i];
    } else if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc) {
      set.nodes = (uint32_t)strtoul(argv[++i], NULL, 10);
      need(set.nodes > 0 && set.nodes <= 1000000, "--nodes must be 1 to 1000000");
    } else if (strcmp(argv[i], "--samples") == 0 && i + 1 < argc) {
      set.samples = atoi(argv[++i]);
      need(set.samples > 0 && set.samples <= MAX_SAMPLES, "--samples must be 1 to 1001");
    } else {
      fprintf(stderr, "launch_list: unknown argument '%s'\n", argv[i]);
      exit(2);
    }
  }
  return set;
}

int main(int argc, char **argv) {
  static const uint32_t sizes[] = {10, 100, 1000, 10000};
  const settings set = read_settings(argc, argv);
  clv_error error = {0};
  clv_context *context;
  clv_device *device;
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() |
             0x8040); /* flush denormals to zero: repeated calls may make numbers so small that they would take longer */
#endif
  check(clv_context_create(NULL, &context, &error), &error, "context");
  const clv_backend *backend = clv__context_find(context, set.device);
  need(backend != NULL, "there is no such device");
  const clv_option spec = {"spec", "all"};
  const clv_device_config config = {.struct_size = sizeof config,
                                    .name = set.device,
                                    .option_count = strcmp(backend->name, "vnpu") == 0,
                                    .options = &spec,
                                    .thread_count = 1};
  check(backend->open(backend->self, clv__context_host(context), &config, &device, &error), &error, "open");
  if (set.json) printf("[");
  bool first = true;
  for (int size = 0; size < 4; ++size) {
    const uint32_t nodes = set.nodes > 0 ? set.nodes : sizes[size];
    if ((set.check && nodes > 1000) || (set.nodes > 0 && size > 0)) break;
    for (int kind = 0; kind < 4; ++kind) {
      run_row(&set, backend, device, nodes, kind % 2 == 0, kind >= 2, first);
      first = false;
    }
  }
  if (set.json) printf("]\n");
  backend->close(device);
  clv_context_destroy(context);
  return 0;
}
