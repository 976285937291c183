/* The host's time for one run of a graph of tiny operators, by number of nodes: eager, and replayed from a captured graph.
 *
 *   bench_replay [--device NAME] [--samples N] [--nodes N] [--json] [--check]
 *
 * What is run: clv_session_run() with capture off and on, as one partition and as one a node; without a session, the calls of the
 * backend that one partition comes to (copies in, execute() or captured_launch(), copy out, wait), and of them execute() or
 * captured_launch() alone; on the virtual NPU, such calls with a launch that only takes as long: what the machine asks for waking
 * a thread, sleeping, and being woken, of anybody who hands over work and waits; a session whose sizes follow from data, which is
 * walked node by node; and what it takes to find out whether there is a graph: a run's question to the cache of graphs where
 * there is none, and entering one where there is.
 *
 * Three times, medians of runs that take turns: `cpu`, the CPU time of the calling thread, which is also the driver of its run,
 * until the run is over: the host's time; `issued`, of that what went by until the device had all it was to do (waking it is in
 * it, sleeping until it is done is not); and `wall`, until it was over. What the device's own threads do is in `wall` alone; on a
 * device that works in its caller's thread kernels are in all three. How much waking and sleeping take depends on whether the
 * kernel puts both threads on one core, and may change from run to run: so the lines "only waiting" and "beyond waiting". On the
 * CPU eager is a resolved list already, which replay walks again.
 *
 * --check: few samples, up to 1,000 nodes, where launching must take less than a fifth of executing, and replaying a partition a
 * node too, and a lookup no longer than with 10 nodes. Results are always compared. */
#include <string.h>
#include <time.h>

#define BENCH "replay"
#include "../backends/vnpu/device.h"
#include "chain.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "execute/graph_cache.h"
#include "graph/view.h"
#include "ops/shapes.h"
#include "split/plan.h"
#include "turns.h"

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

/* The driver asks to be told when it has nothing else to hand over. */
static clv_status cut_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  clv_status status = cut.inner->event_notify(device, event, notify, cookie, error);
  issued_ns = now_ns();
  return status;
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
  if (cut.inner->event_notify != NULL) cut.table.event_notify = cut_notify;
  cut.nodes = nodes;
  check(clv_context_add_backend(context, cut_query, NULL, &error), &error, "backend");
}

/* ---- A session ---- */

typedef struct sessions {
  clv_context *context;
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  clv_tensor inputs[3], output;
  uint32_t input_count;
  float in[2][ELEMENTS], out[ELEMENTS];
  int64_t dims[2];
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
  const int64_t dims[2] = {ROWS, COLUMNS}, rank = 2;
  memcpy(s->dims, dims, sizeof dims);
  for (int i = 0; i < ELEMENTS; ++i) {
    s->in[0][i] = (float)(i * 7 % 13) - 5.5f;
    s->in[1][i] = (float)(i * 3 % 11) * 0.25f - 1;
  }
  for (int i = 0; i < 2; ++i) s->inputs[i] = clv__tensor_make(CLV_F32, 2, dims, s->in[i]);
  s->inputs[2] = clv__tensor_make(CLV_I64, 1, &rank, s->dims);
  s->input_count = graph->input_count;
  s->output = clv__tensor_make(CLV_F32, 2, dims, s->out);
}

static void session_close(sessions *s) {
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_devices_close(s->devices);
  clv_context_destroy(s->context);
}

static cost session_run(void *cookie) {
  sessions *s = cookie;
  clv_error error = {0};
  cost c = begin();
  check(clv_session_run(s->session, s->inputs, s->input_count, &s->output, 1, &error), &error, "run");
  return end(c);
}

/* ---- The backend's calls of such a run ---- */

/* A launch that only takes its time. */
typedef struct idle {
  clv__vnpu_launch launch;
  double ns;
} idle;

typedef struct calls {
  const clv_backend *b;
  clv_device *device;
  clv_stream *stream;
  clv_executable *executable;
  clv_instance *instance;
  clv_captured *captured;
  clv_binding bindings[3];
  clv_execute_args args;
  const float *in[2];
  float out[ELEMENTS];
  bool is_synchronous;
  idle idle;
} calls;

static void calls_open(calls *c, const sessions *s, const clv_graph *graph) {
  clv_error error = {0};
  clv__arena arena;
  clv__shapes *shapes;
  clv_graph_view *view;
  *c = (calls){.b = s->devices->items[0].backend,
               .device = s->devices->items[0].handle,
               .in = {s->in[0], s->in[1]},
               .is_synchronous = s->devices->items[0].info.is_synchronous};
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

static clv_status execute(calls *c, clv_error *error) {
  return c->b->execute(c->device, c->instance, c->stream, &c->args, error);
}
static clv_status replay(calls *c, clv_error *error) {
  return c->b->captured_launch(c->device, c->captured, c->stream, error);
}

static clv_status pass_time(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  double until = read_clock(CLOCK_MONOTONIC) + ((const idle *)launch)->ns;
  (void)error;
  *seconds = 0;
  while (read_clock(CLOCK_MONOTONIC) < until) continue;
  return CLV_OK;
}
static clv_status launch_nothing(calls *c, clv_error *error) {
  c->idle.launch.run = pass_time;
  return clv__vnpu_stream_launch(&c->device->queue, c->stream, &c->idle.launch, error);
}

static cost run_alone(calls *c, clv_status (*call)(calls *c, clv_error *error)) {
  clv_error error = {0};
  cost begun = begin();
  check(call(c, &error), &error, "call");
  begun = end(begun);
  synchronize(c);
  return begun;
}

/* What a session asks of the backend in one run, on a stream of its own. */
static cost run_all(calls *c, clv_status (*call)(calls *c, clv_error *error)) {
  clv_error error = {0};
  bool copies = !c->is_synchronous; /* else a session binds the caller's memory */
  cost begun = begin();
  for (int i = 0; i < 2 && copies; ++i)
    check(c->b->copy_in(c->device, c->stream, c->bindings[i].buffer, 0, c->in[i], VALUE_BYTES, &error), &error, "copy");
  check(call(c, &error), &error, "call");
  if (copies) {
    check(c->b->copy_out(c->device, c->stream, c->out, c->bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
    issued_ns = now_ns();
  }
  synchronize(c);
  return end(begun);
}

static cost call_execute(void *cookie) {
  return run_alone(cookie, execute);
}
static cost call_replay(void *cookie) {
  return run_alone(cookie, replay);
}
static cost chain_execute(void *cookie) {
  return run_all(cookie, execute);
}
static cost chain_replay(void *cookie) {
  return run_all(cookie, replay);
}
static cost chain_nothing(void *cookie) {
  return run_all(cookie, launch_nothing);
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

static cost ask(void *cookie) {
  const lookups *l = cookie;
  cost begun = begin();
  for (int i = 0; i < LOOKUPS; ++i) (void)clv__graph_cache_ask(l->cache, &l->key, NULL, 0);
  return end(begun);
}

static cost enter(void *cookie) {
  const lookups *l = cookie;
  cost begun = begin();
  for (int i = 0; i < LOOKUPS; ++i) {
    (void)clv__graph_entry_enter(l->cache, l->entry);
    clv__graph_entry_leave(l->entry);
  }
  return end(begun);
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
  cost costs[2];
  measure((subject[]){{ask, &l}, {enter, &l}}, 2, samples, costs);
  *asked = costs[0].cpu / LOOKUPS;
  *entered = costs[1].cpu / LOOKUPS;
  clv__graph_entry_remove(l.cache, l.entry);
  clv__graph_cache_destroy(l.cache);
  clv__arena_finish(&arena);
}

/* ---- All of it ---- */

enum { ONE, EACH, CALLS, ALONE, NOTHING, OPEN, KINDS };

static const struct {
  const char *text, *key;
} kinds[KINDS] = {
    [ONE] = {"session, one partition", "session"},       [EACH] = {"session, a partition a node", "partition_a_node"},
    [CALLS] = {"the backend's calls of one", "calls"},   [ALONE] = {"of them execute or launch", "call"},
    [NOTHING] = {"such calls, only waiting", "waiting"}, [OPEN] = {"session, sizes from data", "node_by_node"}};

typedef struct row {
  uint32_t nodes;
  cost eager[KINDS], replayed[KINDS]; /* 0: there is none */
  double asked, entered;
} row;

static void need_same(const float *a, const float *b, uint32_t nodes, const char *what) {
  if (memcmp(a, b, VALUE_BYTES) == 0) return;
  fprintf(stderr, "replay: %u nodes: %s\n", nodes, what);
  exit(1);
}

static void check_calls(calls *c, clv_status (*call)(calls *c, clv_error *error), const row *r, const float *wanted) {
  float out[ELEMENTS];
  clv_error error = {0};
  check(call(c, &error), &error, "call");
  check(c->b->copy_out(c->device, c->stream, out, c->bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
  synchronize(c);
  need_same(out, wanted, r->nodes, "the backend's calls give another result than the session");
}

/* How long the device is at the captured graph, as seen from here. */
static double device_ns(calls *c, int samples) {
  cost costs[2];
  c->idle.ns = 0;
  measure((subject[]){{chain_replay, c}, {chain_nothing, c}}, 2, samples, costs);
  return without(costs[0].wall, costs[1].wall);
}

/* On the devices of the session that replays. */
static void measure_calls(row *r, calls *c, const subject *runs, int samples) {
  cost costs[5];
  bool is_virtual = strcmp(cut.inner->name, "vnpu") == 0;
  if (is_virtual) c->idle.ns = device_ns(c, samples);
  subject subjects[] = {runs[0],
                        runs[1],
                        {chain_execute, c},
                        {c->captured != NULL ? chain_replay : NULL, c},
                        {is_virtual ? chain_nothing : NULL, c}};
  measure(subjects, 5, samples, costs);
  r->eager[ONE] = costs[0];
  r->replayed[ONE] = costs[1];
  r->eager[CALLS] = costs[2];
  r->replayed[CALLS] = costs[3];
  r->replayed[NOTHING] = costs[4];
  measure((subject[]){{call_execute, c}, {c->captured != NULL ? call_replay : NULL, c}}, 2, samples, costs);
  r->eager[ALONE] = costs[0];
  r->replayed[ALONE] = costs[1];
}

static void measure_one(row *r, const clv_graph *graph, const subject *subjects, int samples) {
  static calls c;
  sessions *eager = subjects[0].cookie, *replayed = subjects[1].cookie;
  session_run(eager);
  calls_open(&c, replayed, graph);
  check_calls(&c, execute, r, eager->out);
  if (c.captured != NULL) check_calls(&c, replay, r, eager->out);
  measure_calls(r, &c, subjects, samples);
  calls_close(&c);
  measure_lookups(eager->plan, samples, &r->asked, &r->entered);
}

/* `out`: the result. */
static void measure_kind(row *r, int kind, const clv_graph *graph, const char *device, int samples, float *out) {
  static sessions eager, replayed;
  uint32_t part_nodes = kind == EACH ? 1 : 0;
  session_open(&eager, graph, device, part_nodes, CLV_GRAPH_OFF);
  session_open(&replayed, graph, device, part_nodes, CLV_GRAPH_ON);
  subject subjects[] = {{session_run, &eager}, {kind == OPEN ? NULL : session_run, &replayed}};
  if (kind == ONE) {
    measure_one(r, graph, subjects, samples);
  } else {
    cost costs[2];
    measure(subjects, 2, samples, costs);
    r->eager[kind] = costs[0];
    r->replayed[kind] = costs[1];
  }
  if (kind != OPEN) need_same(eager.out, replayed.out, r->nodes, "replay gives another result than execution");
  memcpy(out, eager.out, sizeof eager.out);
  session_close(&replayed);
  session_close(&eager);
}

static row measure_nodes(uint32_t nodes, const char *device, int samples) {
  row r = {.nodes = nodes};
  clv_graph *graph = make_graph(nodes, false), *open = make_graph(nodes, true);
  float out[3][ELEMENTS];
  measure_kind(&r, ONE, graph, device, samples, out[0]);
  measure_kind(&r, EACH, graph, device, samples, out[1]);
  measure_kind(&r, OPEN, open, device, samples, out[2]);
  need_same(out[0], out[1], nodes, "a partition a node gives another result than one");
  need_same(out[0], out[2], nodes, "sizes from data give another result");
  clv_graph_destroy(open);
  clv_graph_destroy(graph);
  return r;
}

/* ---- Output ---- */

static void print_json(const row *r) {
  printf("{\"nodes\": %u", r->nodes);
  for (int k = 0; k < KINDS; ++k) {
    const cost *pair[] = {&r->eager[k], &r->replayed[k]};
    printf(", \"%s\": {", kinds[k].key);
    bool first = true;
    for (int i = 0; i < 2; ++i) {
      if (!(pair[i]->wall > 0)) continue;
      printf("%s\"%s\": {\"cpu_us\": %.3f, \"issued_us\": %.3f, \"wall_us\": %.3f}", first ? "" : ", ",
             i == 0 ? "eager" : "replayed", pair[i]->cpu * 1e-3, pair[i]->issued * 1e-3, pair[i]->wall * 1e-3);
      first = false;
    }
    printf("}");
  }
  printf(", \"ask_ns\": %.0f, \"enter_ns\": %.0f}\n", r->asked, r->entered);
}

static void print_number(double ns) {
  if (ns > 0)
    printf(" %9.2f", ns * 1e-3);
  else
    printf(" %9s", "-");
}

static void print_pair(double eager, double replayed) {
  print_number(eager);
  print_number(replayed);
  if (eager > 0 && replayed > 0)
    printf(" %5.1f", eager / replayed);
  else
    printf(" %5s", "-");
}

static void print_table(const row *r, bool first) {
  if (first) {
    printf("us a run: the calling thread's CPU time, of that until all was issued, and wall time; each eager, replayed, ratio\n");
    printf("%6s %-27s%26s%26s%26s\n", "nodes", "", "cpu", "issued", "wall");
  }
  for (int k = 0; k < KINDS; ++k) {
    const cost *a = &r->eager[k], *b = &r->replayed[k];
    if (!(a->wall > 0) && !(b->wall > 0)) continue;
    printf("%6u %-27s", r->nodes, kinds[k].text);
    print_pair(a->cpu, b->cpu);
    print_pair(a->issued, b->issued);
    print_pair(a->wall, b->wall);
    printf("\n");
  }
  const cost *floor = &r->replayed[NOTHING];
  if (floor->wall > 0) {
    printf("%6u %-27s", r->nodes, "session beyond waiting");
    print_pair(r->eager[ONE].cpu - floor->cpu, r->replayed[ONE].cpu - floor->cpu);
    print_pair(r->eager[ONE].issued - floor->issued, r->replayed[ONE].issued - floor->issued);
    print_pair(r->eager[ONE].wall - floor->wall, r->replayed[ONE].wall - floor->wall);
    printf("\n");
  }
  printf("%6u is there a graph: %.0f ns where there is none, %.0f ns where there is one\n", r->nodes, r->asked, r->entered);
}

static bool check_rows(const row *few, const row *many) {
  const char *wrong = NULL;
  if (many->replayed[ALONE].cpu * 5 > many->eager[ALONE].cpu) wrong = "a launch takes more than a fifth of an execution";
  if (many->replayed[EACH].cpu * 5 > many->eager[EACH].cpu)
    wrong = "replaying a partition a node takes more than a fifth of executing";
  if (many->asked > 2 * few->asked + 200 || many->entered > 2 * few->entered + 200) wrong = "lookups take longer with more nodes";
  if (wrong != NULL) fprintf(stderr, "replay: %s\n", wrong);
  return wrong == NULL;
}

int main(int argument_count, char **arguments) {
  static const uint32_t counts[] = {10, 100, 1000, 10000};
  const char *device = "npu";
  int samples = 201;
  uint32_t only = 0;
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
    else if (strcmp(a, "--nodes") == 0 && i + 1 < argument_count)
      only = (uint32_t)strtoul(arguments[++i], NULL, 10);
    else {
      fprintf(stderr, "usage: bench_replay [--device NAME] [--samples N] [--nodes N] [--json] [--check]\n");
      return 2;
    }
  }
  if (checks) samples = 31;
  if (samples < 3 || samples > MAX_SAMPLES) samples = 201;
  judges = checks;
  row rows[4];
  size_t count = checks ? 3 : only > 0 ? 1 : 4;
  for (size_t i = 0; i < count; ++i) {
    rows[i] = measure_nodes(only > 0 && !checks ? only : counts[i], device, samples);
    if (json)
      print_json(&rows[i]);
    else
      print_table(&rows[i], i == 0);
  }
  for (int again = 0; checks; ++again) { /* on a busy machine */
    if (check_rows(&rows[0], &rows[count - 1])) break;
    if (again == 4) return 1;
    rows[count - 1] = measure_nodes(counts[count - 1], device, samples);
  }
  return 0;
}
