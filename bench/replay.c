/* The host's time for one run of a graph of tiny operators, by number of nodes: executed, and replayed from a captured graph.
 * For a whole session (clv_session_run() with capture off and on), as one partition and as one a node; for the backend's calls
 * that one partition comes to (execute() and captured_launch(), without what is around them), and, on the virtual NPU, for
 * handing over a launch that does nothing. And what it takes to find out whether there is a graph: a run's question to the cache
 * of graphs where there is none, and entering one where there is.
 *
 *   bench_replay [--device NAME] [--samples N] [--json] [--check]
 *
 * Times are CPU times of the calling thread, medians: what the device's own threads do is not the host's; on a device that works
 * in its caller's thread kernels are in them. In a session's times is waking the device's threads and sleeping until they are
 * done, which varies with the machine. --check: few samples, up to 1,000 nodes, where launching must take less than a fifth of
 * executing, replaying a partition a node too, and a lookup no longer than with 10 nodes. Results are always compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backends/vnpu/device.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "execute/graph_cache.h"
#include "graph/view.h"
#include "ops/shapes.h"
#include "split/plan.h"

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

/* ---- Whether there is a graph ---- */

typedef struct lookups {
  clv__graph_cache *cache;
  clv__graph_key key;
  clv__graph_entry *entry;
} lookups;

enum { LOOKUPS = 64 };

static void destroy_nothing(void *content) {
  (void)content;
}

static double ask(void *cookie) {
  const lookups *l = cookie;
  double begin = now_ns();
  for (int i = 0; i < LOOKUPS; ++i) (void)clv__graph_cache_ask(l->cache, &l->key, NULL, 0);
  return now_ns() - begin;
}

static double enter(void *cookie) {
  const lookups *l = cookie;
  double begin = now_ns();
  for (int i = 0; i < LOOKUPS; ++i) {
    (void)clv__graph_entry_enter(l->cache, l->entry);
    clv__graph_entry_leave(l->entry);
  }
  return now_ns() - begin;
}

static void measure_lookups(const clv_plan *plan, int samples, double *asked, double *entered) {
  clv_error error = {0};
  clv__arena arena;
  lookups l;
  clv__arena_init(&arena, clv__allocator_default());
  bool *captured = clv__arena_allocate(&arena, plan->partition_count * sizeof *captured);
  if (captured == NULL) check(CLV_OUT_OF_MEMORY, &error, "lookups");
  memset(captured, true, plan->partition_count * sizeof *captured);
  check(clv__graph_key_make(plan, 0, captured, plan->shapes->types, NULL, &arena, &l.key, &error), &error, "key");
  check(clv__graph_cache_create(clv__allocator_default(), 12, UINT64_MAX, true, &l.cache, &error), &error, "cache");
  check(clv__graph_cache_insert(l.cache, &l.key, &l, 1, destroy_nothing, &l.entry, &error), &error, "cache");
  clv__graph_entry_leave(l.entry);
  *asked = measure(ask, &l, samples) / LOOKUPS;
  *entered = measure(enter, &l, samples) / LOOKUPS;
  clv__graph_entry_remove(l.cache, l.entry);
  clv__graph_cache_destroy(l.cache);
  clv__arena_finish(&arena);
}

/* ---- All of it ---- */

typedef struct pair {
  double executed, replayed; /* ns */
} pair;

typedef struct row {
  uint32_t nodes;
  pair one, each; /* a session, with one partition and with one a node */
  pair calls;
  double nothing, asked, entered;
} row;

static void need_same(const float *a, const float *b, uint32_t nodes, const char *what) {
  if (memcmp(a, b, VALUE_BYTES) == 0) return;
  fprintf(stderr, "replay: %u nodes: %s\n", nodes, what);
  exit(1);
}

/* `out`: the result. */
static pair measure_sessions(const clv_graph *graph, const char *device, uint32_t part_nodes, int samples, row *asked,
                             float *out) {
  static sessions eager, replay;
  session_open(&eager, graph, device, part_nodes, CLV_GRAPH_OFF);
  session_open(&replay, graph, device, part_nodes, CLV_GRAPH_ON);
  pair p;
  p.executed = measure(session_run, &eager, samples);
  p.replayed = measure(session_run, &replay, samples);
  need_same(eager.out, replay.out, graph->node_count, "replay gives another result than execution");
  memcpy(out, eager.out, sizeof eager.out);
  if (asked != NULL) measure_lookups(eager.plan, samples, &asked->asked, &asked->entered);
  session_close(&replay);
  session_close(&eager);
  return p;
}

static void measure_calls(row *r, const clv_graph *graph, const char *device, int samples, const float *wanted) {
  static sessions s;
  calls c;
  float out[ELEMENTS];
  clv_error error = {0};
  session_open(&s, graph, device, 0, CLV_GRAPH_OFF);
  calls_open(&c, &s, graph);
  for (int i = 0; i < 2; ++i) {
    if (i == 0) r->calls.executed = measure(call_execute, &c, samples);
    if (i == 1 && c.captured != NULL) r->calls.replayed = measure(call_replay, &c, samples);
    check(c.b->copy_out(c.device, c.stream, out, c.bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
    synchronize(&c);
    need_same(out, wanted, r->nodes, "the backend's calls give another result than the session");
  }
  if (strcmp(cut.inner->name, "vnpu") == 0) r->nothing = measure(call_nothing, &c, samples);
  calls_close(&c);
  session_close(&s);
}

static row measure_nodes(uint32_t nodes, const char *device, int samples) {
  row r = {.nodes = nodes};
  clv_graph *graph = make_graph(nodes);
  float out[2][ELEMENTS];
  r.one = measure_sessions(graph, device, 0, samples, &r, out[0]);
  r.each = measure_sessions(graph, device, 1, samples, NULL, out[1]);
  need_same(out[0], out[1], nodes, "a partition a node gives another result than one");
  measure_calls(&r, graph, device, samples, out[0]);
  clv_graph_destroy(graph);
  return r;
}

static void print_row(const row *r, bool json, bool first) {
  const pair pairs[] = {r->one, r->each, r->calls};
  static const char *const names[] = {"session", "partition_a_node", "calls"};
  if (json) {
    printf("{\"nodes\": %u", r->nodes);
    for (int i = 0; i < 3; ++i) {
      printf(", \"%s\": {\"executed_us\": %.3f, \"replayed_us\": %.3f}", names[i], pairs[i].executed * 1e-3,
             pairs[i].replayed * 1e-3);
    }
    printf(", \"nothing_us\": %.3f, \"ask_ns\": %.0f, \"enter_ns\": %.0f}\n", r->nothing * 1e-3, r->asked, r->entered);
    return;
  }
  if (first) {
    printf("us a run executed, replayed, ratio; ns a lookup\n%6s%27s%27s%27s %9s %6s %6s\n", "nodes", "session",
           "partition a node", "calls", "nothing", "ask", "enter");
  }
  printf("%6u", r->nodes);
  for (int i = 0; i < 3; ++i) {
    printf(" %9.2f %9.2f %6.1f", pairs[i].executed * 1e-3, pairs[i].replayed * 1e-3,
           pairs[i].replayed > 0 ? pairs[i].executed / pairs[i].replayed : 0);
  }
  printf(" %9.2f %6.0f %6.0f\n", r->nothing * 1e-3, r->asked, r->entered);
}

static bool check_rows(const row *few, const row *many) {
  const char *wrong = NULL;
  if (many->calls.replayed * 5 > many->calls.executed) wrong = "a launch takes more than a fifth of an execution";
  if (many->each.replayed * 5 > many->each.executed) wrong = "replaying a partition a node takes more than a fifth of executing";
  if (many->asked > 2 * few->asked + 200 || many->entered > 2 * few->entered + 200) wrong = "lookups take longer with more nodes";
  if (wrong != NULL) fprintf(stderr, "replay: %s\n", wrong);
  return wrong == NULL;
}

int main(int argument_count, char **arguments) {
  static const uint32_t counts[] = {10, 100, 1000, 10000};
  const char *device = "npu";
  int samples = 201;
  bool json = false, checks = false;
  for (int i = 1; i < argument_count; ++i) {
    const char *a = arguments[i];
    if (strcmp(a, "--json") == 0)
      json = true;
    else if (strcmp(a, "--check") == 0)
      checks = true;
    else if (strcmp(a, "--device") == 0 && i + 1 < argument_count)
      device = arguments[++i];
    else if (strcmp(a, "--samples") == 0 && i + 1 < argument_count)
      samples = atoi(arguments[++i]);
    else {
      fprintf(stderr, "usage: bench_replay [--device NAME] [--samples N] [--json] [--check]\n");
      return 2;
    }
  }
  if (checks) samples = 31;
  if (samples < 3 || samples > MAX_SAMPLES) samples = 201;
  row rows[4];
  size_t count = checks ? 3 : 4;
  for (size_t i = 0; i < count; ++i) {
    rows[i] = measure_nodes(counts[i], device, samples);
    print_row(&rows[i], json, i == 0);
  }
  for (int again = 0; checks; ++again) { /* on a busy machine */
    if (check_rows(&rows[0], &rows[count - 1])) break;
    if (again == 4) return 1;
    rows[count - 1] = measure_nodes(counts[count - 1], device, samples);
  }
  return 0;
}
