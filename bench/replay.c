/* Measures the host's time for one run of a graph of tiny operators, by number of nodes: eager, and replayed from a
 * capture.
 *
 *   bench_replay [--device NAME] [--samples N] [--nodes N] [--json] [--check]
 *
 * The kinds of runs:
 *
 *   - clv_session_run() with capture off and on, as one partition and as one partition per node
 *   - without a session: the backend calls of a run with one partition: copies in, execute() or capture->launch(), copy out, wait
 *   - of these calls, execute() or capture->launch() alone
 *   - on the virtual NPU: the backend calls with an idle launch, which takes as long as the real one but computes nothing. It
 *     shows the time that this machine needs to put threads to sleep and wake them
 *   - a session whose sizes depend on data, which is run node by node
 *   - the lookup: the time of a miss in the cache of captures, and of entering a capture after a hit
 *
 * Three times are measured, as medians of runs that take turns. `cpu`, the host's time, is the CPU time of the calling
 * thread, which also drives the run, until the run is over. `issued` is the part of `cpu` until the device has all of its
 * work; it includes waking the device's thread, but not sleeping until the work is done. `wall` is the wall time until the
 * run is over. The device's own threads count only in `wall`. On a device that works in its caller's thread, the kernels
 * count in all three. The time of waking and sleeping depends on whether the kernel puts both threads on one core, and may
 * change from run to run; hence the lines "only waiting" and "beyond waiting". On the CPU, an eager run already uses a
 * resolved list of calls, and replay walks the same list.
 *
 * --check: few samples, up to 1,000 nodes. Results are always compared; times are not judged (tests/python/test_overhead.py
 * counts the instructions of a replay instead). */
#include "replay.h"

#include <string.h>

enum { ONE, EACH, CALLS, ALONE, NOTHING, OPEN, KINDS };

static const struct {
  const char *text, *key;
} kinds[KINDS] = {[ONE] = {"session, one partition", "session"},
                  [EACH] = {"session, partition per node", "partition_a_node"},
                  [CALLS] = {"backend calls of one", "calls"},
                  [ALONE] = {"execute or launch alone", "call"},
                  [NOTHING] = {"backend calls, only waiting", "waiting"},
                  [OPEN] = {"session, sizes from data", "node_by_node"}};

typedef struct row {
  uint32_t nodes;
  cost eager[KINDS], replayed[KINDS]; /* 0: not measured */
  double asked, entered;
} row;

/* Measures the time that the device takes for a replay: the wall time of all calls of a replayed run, minus the wall
 * time of the same calls with nothing to compute. */
static double device_ns(calls *c, int samples) {
  cost costs[2];
  c->idle.ns = 0;
  measure((subject[]){{chain_replay, c}, {chain_nothing, c}}, 2, samples, costs);
  return without(costs[0].wall, costs[1].wall);
}

/* Measures the backend calls on the devices of the session that replays. */
static void measure_calls(row *r, calls *c, const subject *runs, int samples) {
  cost costs[5];
  bool is_virtual = strcmp(session_backend()->name, "vnpu") == 0;
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
  calls_check(&c, false, r->nodes, eager->out);
  if (c.captured != NULL) calls_check(&c, true, r->nodes, eager->out);
  measure_calls(r, &c, subjects, samples);
  calls_close(&c);
  measure_lookups(eager->plan, samples, &r->asked, &r->entered);
}

/* Measures the runs of a session that executes eagerly and of one that replays. Stores the result of the eager runs in
 * `out`. */
static void measure_kind(row *r, int kind, const clv_graph *graph, const char *device, int samples, float *out) {
  static sessions eager, replayed;
  uint32_t part_nodes = kind == EACH ? 1 : 0;
  session_open(&eager, graph, device, part_nodes, CLV_CAPTURE_OFF);
  session_open(&replayed, graph, device, part_nodes, CLV_CAPTURE_ON);
  subject subjects[] = {{session_run, &eager}, {kind == OPEN ? NULL : session_run, &replayed}};
  if (kind == ONE) {
    measure_one(r, graph, subjects, samples);
  } else {
    cost costs[2];
    measure(subjects, 2, samples, costs);
    r->eager[kind] = costs[0];
    r->replayed[kind] = costs[1];
  }
  if (kind != OPEN) need_same(eager.out, replayed.out, r->nodes, "the results of replay and execution differ");
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
  need_same(out[0], out[1], nodes, "the results of one partition per node and of one partition differ");
  need_same(out[0], out[2], nodes, "the result with sizes from data differs");
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
    printf(
        "us per run: CPU time of the calling thread, its part until all was issued, and wall time; each eager, replayed, "
        "ratio\n");
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
  printf("%6u lookup of a capture: %.0f ns for a miss, %.0f ns for entering one\n", r->nodes, r->asked, r->entered);
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
  size_t count = checks ? 3 : only > 0 ? 1 : 4;
  for (size_t i = 0; i < count; ++i) {
    const row measured = measure_nodes(only > 0 && !checks ? only : counts[i], device, samples);
    if (json)
      print_json(&measured);
    else
      print_table(&measured, i == 0);
  }
  return 0;
}
