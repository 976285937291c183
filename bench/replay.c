/* The host's time for one run of a graph of tiny operators, by number of nodes: executed, and replayed from a captured graph.
 * For a whole session (clv_session_run() with capture off and on), for the backend's calls that such a run comes to (execute()
 * and captured_launch(), without what is around them), and, on the virtual NPU, for handing over a launch that does nothing.
 *
 *   bench_replay [--device NAME] [--samples N] [--json] [--check]
 *
 * Times are CPU times of the calling thread, medians: what the device's own threads do is not the host's. --check: few samples,
 * up to 1,000 nodes, where launching must take less than a fifth of executing. A session's times are not judged: waking the
 * device's threads and sleeping until they are done is in them, and varies with the machine. Results are always compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backends/vnpu/device.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "graph/view.h"
#include "ops/shapes.h"

enum { ROWS = 4, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS, VALUE_BYTES = ELEMENTS * 4, MAX_SAMPLES = 1001 };

static void check(clv_status status, const clv_error *error, const char *what) {
  if (status == CLV_OK) return;
  fprintf(stderr, "replay: %s: %s: %s\n", what, clv_status_name(status), error->message);
  exit(1);
}

/* ---- The graph: a chain of small steps, each also reading one of the two inputs or nothing else ---- */

static clv_value_id value(clv__builder *builder, const char *name) {
  clv_error error = {0};
  clv_value_id id;
  check(clv__builder_value(builder, name, &id, &error), &error, name);
  return id;
}

static clv_graph *make_graph(uint32_t nodes) {
  static const char *const ops[] = {"Add", "Relu", "Sub", "Neg", "Max", "Abs"};
  const int64_t dims[2] = {ROWS, COLUMNS};
  const clv_tensor type = clv__tensor_make(CLV_F32, 2, dims, NULL);
  clv_error error = {0};
  clv__builder *builder;
  clv_graph *graph;
  check(clv__builder_create(clv__allocator_default(), &builder, &error), &error, "builder");
  check(clv__builder_import(builder, "", 17, &error), &error, "builder");
  for (int i = 0; i < 2; ++i) {
    clv_value_id input = value(builder, i == 0 ? "v0" : "side");
    clv__builder_type(builder, input, &type);
    check(clv__builder_input(builder, input, &error), &error, "input");
  }
  for (uint32_t n = 0; n < nodes; ++n) {
    char name[24];
    snprintf(name, sizeof name, "v%u", n);
    clv_value_id in[2] = {value(builder, name), value(builder, "side")};
    snprintf(name, sizeof name, "v%u", n + 1);
    clv_value_id out = value(builder, name);
    const char *op = ops[n % 6];
    check(clv__builder_node(builder, "", "", op, in, n % 2 == 0 ? 2 : 1, &out, 1, NULL, 0, &error), &error, "node");
    if (n + 1 == nodes) check(clv__builder_output(builder, out, &error), &error, "output");
  }
  check(clv__builder_finish(builder, &graph, &error), &error, "graph");
  return graph;
}

/* ---- Time ---- */

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* With --check: the first decile is taken, which a busy machine moves least. */
static bool judges;

/* Median ns of `run`, which says how long it took itself, beyond what asking the clock twice takes. */
static double measure(double (*run)(void *cookie), void *cookie, int samples) {
  int at = samples / (judges ? 10 : 2);
  static double taken[MAX_SAMPLES];
  for (int i = 0; i < 3; ++i) (void)run(cookie);
  for (int i = 0; i < samples; ++i) {
    double begin = now_ns();
    taken[i] = now_ns() - begin;
  }
  qsort(taken, (size_t)samples, sizeof *taken, compare);
  double clock_ns = taken[samples / 2];
  for (int i = 0; i < samples; ++i) taken[i] = run(cookie);
  qsort(taken, (size_t)samples, sizeof *taken, compare);
  return taken[at] > clock_ns ? taken[at] - clock_ns : 0;
}

/* ---- A device that takes so many nodes a partition ---- */

typedef struct pieces {
  clv_backend table;
  const clv_backend *inner;
  uint32_t nodes;
} pieces;

static pieces cut; /* info() is not told whose table it is in */

static void cut_info(clv_device *device, clv_device_info *info) {
  cut.inner->info(device, info);
  info->max_partition_nodes = cut.nodes;
}

static clv_status cut_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                           clv_error *error) {
  clv_device_config all = *config;
  all.spec = "all";
  return cut.inner->open(self, host, &all, device, error);
}

static clv_status cut_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)host;
  (void)user_data;
  (void)error;
  *backend = &cut.table;
  return CLV_OK;
}

static void cut_add(clv_context *context, const char *device, uint32_t nodes) {
  clv_error error = {0};
  cut.inner = clv__context_find(context, device);
  if (cut.inner == NULL) check(CLV_NOT_SUPPORTED, &error, device);
  cut.table = *cut.inner;
  cut.table.name = "cut";
  cut.table.info = cut_info;
  cut.table.open = cut_open;
  cut.nodes = nodes;
  check(clv_context_add_backend(context, cut_query, NULL, &error), &error, "backend");
}

/* ---- A session ---- */

typedef struct sessions {
  clv_context *context;
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  clv_tensor inputs[2], output;
  float in[2][ELEMENTS], out[ELEMENTS];
} sessions;

static void session_open(sessions *s, const clv_graph *graph, const char *device, uint32_t part_nodes, clv_graph_mode mode) {
  clv_error error = {0};
  memset(s, 0, sizeof *s);
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.graph = mode;
  options.cache_directory = "";
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "cut";
  devices.thread_count = 1;
  check(clv_context_create(&options, &s->context, &error), &error, "context");
  cut_add(s->context, device, part_nodes);
  check(clv_devices_open(s->context, &devices, &s->devices, &error), &error, device);
  check(clv_plan_make(graph, s->devices, NULL, &s->plan, &error), &error, "plan");
  check(clv_session_create(s->plan, NULL, &s->session, &error), &error, "session");
  const int64_t dims[2] = {ROWS, COLUMNS};
  for (int i = 0; i < ELEMENTS; ++i) {
    s->in[0][i] = (float)(i * 7 % 13) - 5.5f;
    s->in[1][i] = (float)(i * 3 % 11) * 0.25f - 1;
  }
  for (int i = 0; i < 2; ++i) s->inputs[i] = clv__tensor_make(CLV_F32, 2, dims, s->in[i]);
  s->output = clv__tensor_make(CLV_F32, 2, dims, s->out);
}

static void session_close(sessions *s) {
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_devices_close(s->devices);
  clv_context_destroy(s->context);
}

static double session_run(void *cookie) {
  sessions *s = cookie;
  clv_error error = {0};
  double begin = now_ns();
  check(clv_session_run(s->session, s->inputs, 2, &s->output, 1, &error), &error, "run");
  return now_ns() - begin;
}

/* ---- The backend's calls of such a run ---- */

typedef struct calls {
  const clv_backend *b;
  clv_device *device;
  clv_stream *stream;
  clv_executable *executable;
  clv_instance *instance;
  clv_captured *captured;
  clv_binding bindings[3];
  clv_execute_args args;
} calls;

static void calls_open(calls *c, const sessions *s, const clv_graph *graph) {
  clv_error error = {0};
  clv__arena arena;
  clv__shapes *shapes;
  clv_graph_view *view;
  *c = (calls){.b = s->devices->items[0].backend, .device = s->devices->items[0].handle};
  clv__arena_init(&arena, clv__allocator_default());
  check(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), &error, "shapes");
  check(clv__view_create_whole(graph, shapes->types, &arena, &view, &error), &error, "view");
  clv_compile_options options = {.struct_size = sizeof options};
  check(c->b->compile(c->device, view, &options, &c->executable, &error), &error, "compile");
  check(c->b->instance_create(c->device, c->executable, s->inputs, 2, NULL, 0, &c->instance, &error), &error, "instance");
  check(c->b->stream_create(c->device, &c->stream, &error), &error, "stream");
  for (int i = 0; i < 3; ++i) {
    c->bindings[i].type = i < 2 ? s->inputs[i] : s->output;
    check(c->b->buffer_alloc(c->device, VALUE_BYTES, &c->bindings[i].buffer, &error), &error, "buffer");
    c->bindings[i].type.data = c->b->buffer_host_pointer(c->device, c->bindings[i].buffer);
    if (i < 2)
      check(c->b->copy_in(c->device, c->stream, c->bindings[i].buffer, 0, s->in[i], VALUE_BYTES, &error), &error, "copy");
  }
  c->args = (clv_execute_args){
      .struct_size = sizeof c->args, .input_count = 2, .output_count = 1, .inputs = c->bindings, .outputs = &c->bindings[2]};
  if (c->b->capture_begin != NULL) {
    check(c->b->capture_begin(c->device, c->stream, &error), &error, "capture");
    check(c->b->execute(c->device, c->instance, c->stream, &c->args, &error), &error, "capture");
    check(c->b->capture_end(c->device, c->stream, &c->captured, &error), &error, "capture");
  }
  clv__shapes_destroy(shapes);
  clv__arena_finish(&arena);
}

static void calls_close(calls *c) {
  if (c->captured != NULL) c->b->captured_destroy(c->device, c->captured);
  c->b->instance_destroy(c->device, c->instance);
  c->b->executable_destroy(c->device, c->executable);
  c->b->stream_destroy(c->device, c->stream);
  for (int i = 0; i < 3; ++i) c->b->buffer_free(c->device, c->bindings[i].buffer);
}

static void synchronize(calls *c) {
  clv_error error = {0};
  check(c->b->stream_synchronize(c->device, c->stream, &error), &error, "synchronize");
}

static double call_execute(void *cookie) {
  calls *c = cookie;
  clv_error error = {0};
  double begin = now_ns();
  check(c->b->execute(c->device, c->instance, c->stream, &c->args, &error), &error, "execute");
  double taken = now_ns() - begin;
  synchronize(c);
  return taken;
}

static double call_replay(void *cookie) {
  calls *c = cookie;
  clv_error error = {0};
  double begin = now_ns();
  check(c->b->captured_launch(c->device, c->captured, c->stream, &error), &error, "launch");
  double taken = now_ns() - begin;
  synchronize(c);
  return taken;
}

static clv_status do_nothing(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  (void)launch;
  (void)error;
  *seconds = 0;
  return CLV_OK;
}

static double call_nothing(void *cookie) {
  calls *c = cookie;
  clv_error error = {0};
  clv__vnpu_launch launch = {.run = do_nothing};
  double begin = now_ns();
  check(clv__vnpu_stream_launch(&c->device->queue, c->stream, &launch, &error), &error, "launch");
  double taken = now_ns() - begin;
  synchronize(c);
  return taken;
}

/* ---- All of it ---- */

typedef struct row {
  uint32_t nodes;
  double session_eager, session_replay, execute, replay, nothing; /* ns */
} row;

static row measure_nodes(uint32_t nodes, const char *device, uint32_t part_nodes, int samples) {
  row r = {.nodes = nodes};
  clv_graph *graph = make_graph(nodes);
  static sessions eager, replay;
  session_open(&eager, graph, device, part_nodes, CLV_GRAPH_OFF);
  session_open(&replay, graph, device, part_nodes, CLV_GRAPH_ON);
  r.session_eager = measure(session_run, &eager, samples);
  r.session_replay = measure(session_run, &replay, samples);
  if (memcmp(eager.out, replay.out, sizeof eager.out) != 0) {
    fprintf(stderr, "replay: %u nodes: replay gives another result than execution\n", nodes);
    exit(1);
  }
  calls c;
  calls_open(&c, &eager, graph);
  r.execute = measure(call_execute, &c, samples);
  float out[2][ELEMENTS];
  clv_error error = {0};
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && c.captured != NULL) r.replay = measure(call_replay, &c, samples);
    check(c.b->copy_out(c.device, c.stream, out[i], c.bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
    synchronize(&c);
    if (memcmp(out[i], eager.out, sizeof out[i]) != 0) {
      fprintf(stderr, "replay: %u nodes: the backend's calls give another result than the session\n", nodes);
      exit(1);
    }
  }
  if (strcmp(c.b->name, "vnpu") == 0) r.nothing = measure(call_nothing, &c, samples);
  calls_close(&c);
  session_close(&replay);
  session_close(&eager);
  clv_graph_destroy(graph);
  return r;
}

static void print_row(const row *r, bool json) {
  if (json) {
    printf(
        "{\"nodes\": %u, \"session_eager_us\": %.3f, \"session_replay_us\": %.3f, \"execute_us\": %.3f, \"launch_us\": %.3f, "
        "\"empty_us\": %.3f}\n",
        r->nodes, r->session_eager * 1e-3, r->session_replay * 1e-3, r->execute * 1e-3, r->replay * 1e-3, r->nothing * 1e-3);
    return;
  }
  printf(
      "%6u nodes  session: executed %9.2f us, replayed %8.2f us (1/%.1f)   calls: execute %9.2f us, launch %6.2f us, nothing "
      "%5.2f us\n",
      r->nodes, r->session_eager * 1e-3, r->session_replay * 1e-3, r->session_eager / r->session_replay, r->execute * 1e-3,
      r->replay * 1e-3, r->nothing * 1e-3);
}

int main(int argument_count, char **arguments) {
  static const uint32_t counts[] = {10, 100, 1000, 10000};
  const char *device = "npu";
  int samples = 201;
  uint32_t part_nodes = 0;
  bool json = false;
  for (int i = 1; i < argument_count; ++i) {
    const char *a = arguments[i];
    if (strcmp(a, "--json") == 0)
      json = true;
    else if (strcmp(a, "--check") == 0)
      judges = true;
    else if (strcmp(a, "--device") == 0 && i + 1 < argument_count)
      device = arguments[++i];
    else if (strcmp(a, "--part-nodes") == 0 && i + 1 < argument_count)
      part_nodes = (uint32_t)atoi(arguments[++i]);
    else if (strcmp(a, "--samples") == 0 && i + 1 < argument_count)
      samples = atoi(arguments[++i]);
    else {
      fprintf(stderr, "usage: bench_replay [--device NAME] [--samples N] [--json] [--check]\n");
      return 2;
    }
  }
  if (judges) samples = 31;
  if (samples < 3 || samples > MAX_SAMPLES) samples = 201;
  for (size_t i = 0; i < (judges ? 3 : 4); ++i) {
    row r = measure_nodes(counts[i], device, part_nodes, samples);
    print_row(&r, json);
    bool judged = judges && r.nodes == 1000 && strcmp(device, "npu") == 0;
    if (judged && r.replay * 5 > r.execute) {
      fprintf(stderr, "replay: replaying takes too much of the time of executing\n");
      return 1;
    }
  }
  return 0;
}
