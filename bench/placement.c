/* Measures only placement and splitting: from verdicts and costs in arrays (split/problem.h) to partitions and transfers.
 * It prints three tables: ns and bytes per node of the fast strategies, by number of splits; how time and memory of all
 * strategies grow with the size of the graph; `optimal` for two devices.
 *
 *   bench_placement [--json] [--check]
 *
 * --check: few runs and no table; fails if results are wrong or memory exceeds its limit. Times are not judged. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "place/place.h"

enum { LIMIT_BYTES_A_NODE = 500, MAX_RUNS = 201 };

/* ---- An allocator that counts bytes in use ---- */

typedef struct counter {
  clv_allocator allocator;
  size_t live_bytes, peak_bytes;
} counter;

enum { HEADER_BYTES = 64 }; /* keeps the alignment */

static void *allocate(void *user_data, size_t size_bytes, size_t alignment) {
  counter *c = user_data;
  const clv_allocator *base = clv__allocator_default();
  if (alignment > HEADER_BYTES || size_bytes > SIZE_MAX - HEADER_BYTES) return NULL;
  uint8_t *memory = base->allocate(base->user_data, size_bytes + HEADER_BYTES, HEADER_BYTES);
  if (memory == NULL) return NULL;
  memcpy(memory, &size_bytes, sizeof size_bytes);
  c->live_bytes += size_bytes;
  if (c->live_bytes > c->peak_bytes) c->peak_bytes = c->live_bytes;
  return memory + HEADER_BYTES;
}

static void release(void *user_data, void *pointer) {
  counter *c = user_data;
  const clv_allocator *base = clv__allocator_default();
  size_t size_bytes;
  if (pointer == NULL) return;
  uint8_t *memory = (uint8_t *)pointer - HEADER_BYTES;
  memcpy(&size_bytes, memory, sizeof size_bytes);
  c->live_bytes -= size_bytes;
  base->release(base->user_data, memory);
}

/* ---- Problems ---- */

static uint64_t random_state;

static uint32_t below(uint32_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % limit;
}

static void *array(clv__arena *arena, size_t count, size_t element_bytes) {
  void *memory = clv__arena_allocate_zero(arena, count, element_bytes);
  if (memory == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

/* Makes a graph like that of a typical network: a chain in which every third node also reads a slightly older value. Each node
 * has one output, every other node a weight, every tenth is a view. Device 0 has a memory of its own, device 1 uses the
 * host's. */
static clv__problem *make_graph(clv__arena *arena, uint32_t nodes) {
  clv__problem *problem = array(arena, 1, sizeof *problem);
  uint32_t values = nodes + 1;
  *problem = (clv__problem){
      .node_count = nodes, .value_count = values, .weight_count = (nodes + 1) / 2, .device_count = 2, .space_count = 2};
  uint32_t *spaces = array(arena, 2, sizeof *spaces), *pins = array(arena, nodes, sizeof *pins);
  uint32_t *read_offsets = array(arena, nodes + 1, sizeof *read_offsets), *reads = array(arena, 2 * (size_t)nodes, sizeof *reads);
  uint32_t *write_offsets = array(arena, nodes + 1, sizeof *write_offsets), *writes = array(arena, nodes, sizeof *writes);
  uint32_t *producers = array(arena, values, sizeof *producers), *homes = array(arena, values, sizeof *homes);
  uint32_t *reader_offsets = array(arena, values + 2, sizeof *reader_offsets),
           *readers = array(arena, 2 * (size_t)nodes, sizeof *readers);
  uint32_t *weight_offsets = array(arena, nodes + 1, sizeof *weight_offsets), *weights = array(arena, nodes, sizeof *weights);
  uint32_t *weight_homes = array(arena, problem->weight_count, sizeof *weight_homes);
  uint64_t *value_bytes = array(arena, values, sizeof *value_bytes), *weight_bytes = array(arena, nodes, sizeof *weight_bytes);
  uint64_t *weight_in = array(arena, 2 * (size_t)problem->weight_count, sizeof *weight_in);
  uint8_t *is_output = array(arena, values, 1), *flags = array(arena, nodes, 1);
  spaces[0] = 1;
  producers[0] = CLV__NONE;
  for (uint32_t n = 0; n < nodes; ++n) {
    uint32_t end = read_offsets[n];
    reads[end++] = n; /* node n - 1 produces value n */
    if (n % 3 == 2) reads[end++] = n - 1 - below(n < 8 ? n : 8);
    read_offsets[n + 1] = end;
    for (uint32_t r = read_offsets[n]; r < end; ++r) ++reader_offsets[reads[r] + 2];
    writes[n] = n + 1;
    producers[n + 1] = write_offsets[n] = n;
    weight_offsets[n + 1] = weight_offsets[n];
    if (n % 2 == 0) weights[weight_offsets[n + 1]++] = n / 2;
    pins[n] = CLV__NONE;
    if (n % 10 == 9) flags[n] = CLV__NODE_VIEW;
  }
  write_offsets[nodes] = nodes;
  for (uint32_t v = 1; v <= values; ++v) reader_offsets[v + 1] += reader_offsets[v];
  for (uint32_t n = 0; n < nodes; ++n) {
    for (uint32_t r = read_offsets[n]; r < read_offsets[n + 1]; ++r) readers[reader_offsets[reads[r] + 1]++] = n;
  }
  for (uint32_t v = 0; v < values; ++v) value_bytes[v] = 1024 * (1 + (uint64_t)below(64)), homes[v] = CLV__NONE;
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    weight_bytes[w] = 4096, weight_homes[w] = CLV__NONE, weight_in[2 * w + 1] = 1000;
  }
  is_output[nodes] = 1;
  problem->spaces = spaces, problem->limits = array(arena, 2, sizeof(clv__limits)), problem->pins = pins, problem->flags = flags;
  problem->read_offsets = read_offsets, problem->reads = reads, problem->write_offsets = write_offsets, problem->writes = writes;
  problem->producers = producers, problem->reader_offsets = reader_offsets, problem->readers = readers;
  problem->is_output = is_output, problem->value_bytes = value_bytes, problem->value_homes = homes;
  problem->weight_offsets = weight_offsets, problem->weights = weights, problem->weight_bytes = weight_bytes;
  problem->weight_homes = weight_homes, problem->weight_in_ns = weight_in;
  return problem;
}

/* Adds verdicts and prices. If `splits` is above 0, the list of nodes is cut into that many runs: only device 0 supports
 * the first run, only device 1 the second, and so on in turn. Each weight is on the device of its node. If `splits` is 0,
 * device 1 supports all nodes, and device 0 nine of ten, which it runs three times as fast, so that the best placement is
 * not obvious. */
static clv__problem *make_problem(clv__arena *arena, uint32_t nodes, uint32_t splits) {
  random_state = nodes + splits;
  clv__problem *problem = make_graph(arena, nodes);
  uint16_t *supports = array(arena, nodes, sizeof *supports);
  uint32_t *weight_homes = array(arena, problem->weight_count, sizeof *weight_homes);
  uint64_t *node_ns = array(arena, 2 * (size_t)nodes, sizeof *node_ns), *launch_ns = array(arena, 2, sizeof *launch_ns);
  uint64_t *in_ns = array(arena, 2 * (size_t)problem->value_count, sizeof *in_ns);
  uint64_t *out_ns = array(arena, 2 * (size_t)problem->value_count, sizeof *out_ns);
  uint64_t *saving_ns = array(arena, 4 * (size_t)nodes, sizeof *saving_ns);
  launch_ns[0] = 20000, launch_ns[1] = 2000;
  for (uint32_t n = 0; n < nodes; ++n) {
    uint32_t run = (uint32_t)((uint64_t)n * splits / nodes) % 2;
    uint64_t time = (problem->flags[n] & CLV__NODE_VIEW) != 0 ? 0 : 500 + below(20000);
    supports[n] = splits > 0 ? (uint16_t)(1u << run) : below(10) > 0 ? 3 : 2;
    node_ns[2 * n] = (supports[n] & 1u) != 0 ? time / 3 : CLV__NO_TIME;
    node_ns[2 * n + 1] = (supports[n] & 2u) != 0 ? time : CLV__NO_TIME;
    if (n % 2 == 0) weight_homes[n / 2] = run;
    for (uint32_t d = 0; supports[n] == 3 && n > 0 && supports[n - 1] == 3 && d < 2; ++d) {
      uint64_t before = node_ns[2 * (n - 1) + d], here = node_ns[2 * n + d];
      saving_ns[2 * problem->read_offsets[n] + d] = (before < here ? before : here) / 2;
    }
  }
  for (uint32_t v = 0; v < problem->value_count; ++v) in_ns[2 * v + 1] = out_ns[2 * v + 1] = 5000 + problem->value_bytes[v] / 8;
  problem->supports = supports, problem->prefers = supports;
  problem->node_ns = node_ns, problem->launch_ns = launch_ns, problem->saving_ns = saving_ns;
  problem->in_ns = in_ns, problem->out_ns = out_ns;
  if (splits > 0) problem->weight_homes = weight_homes;
  return problem;
}

/* ---- Measuring ---- */

typedef struct result {
  const char *strategy;
  uint32_t nodes, splits, partitions, copies;
  double median_ns, fastest_ns; /* of one run */
  double bytes_a_node;          /* the peak of memory in use, per node */
} result;

/* Returns the CPU time of the process, so that other programs do not count. Nothing that is measured waits. */
static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Places and splits once: from arrays to partitions and transfers. Only this is measured. */
static clv_status place_once(const clv__problem *problem, const clv__strategy *strategy, clv__arena *arena, clv__cut *cut,
                             clv__copies *copies, clv_error *error) {
  clv__placing placing;
  clv__place_input input = {.problem = problem, .split = strategy->split};
  CLV__TRY(strategy->place(&input, arena, &placing, error));
  if (placing.has_cut)
    *cut = placing.cut;
  else
    CLV__TRY(clv__split(problem, placing.devices, placing.groups, strategy->split, arena, cut, error));
  return clv__split_copies(problem, cut, placing.streamed, arena, copies, error);
}

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static bool measure(const clv__problem *problem, const char *name, uint32_t runs, result *r) {
  const clv__strategy *strategy = clv__strategy_find(name);
  uint64_t times[MAX_RUNS];
  *r = (result){.strategy = name, .nodes = problem->node_count};
  for (uint32_t run = 0; run <= runs; ++run) { /* the first run warms up and measures memory */
    counter c = {{&c, allocate, release}, 0, 0};
    clv__arena arena;
    clv__cut cut;
    clv__copies copies;
    clv_error error = {0};
    clv__arena_init(&arena, run == 0 ? &c.allocator : clv__allocator_default());
    uint64_t start = now_ns();
    clv_status status = place_once(problem, strategy, &arena, &cut, &copies, &error);
    if (run > 0) times[run - 1] = now_ns() - start;
    r->partitions = status == CLV_OK ? cut.count : 0;
    r->copies = status == CLV_OK ? copies.count : 0;
    clv__arena_finish(&arena);
    if (run == 0) r->bytes_a_node = (double)c.peak_bytes / problem->node_count;
    if (status != CLV_OK) {
      fprintf(stderr, "%s, %u nodes: %s: %s\n", name, problem->node_count, clv_status_name(status), error.message);
      return false;
    }
  }
  qsort(times, runs, sizeof *times, compare_times);
  r->median_ns = (double)times[runs / 2];
  r->fastest_ns = (double)times[0];
  return true;
}

/* ---- The tables ---- */

typedef struct options {
  bool json, check;
} options;

static bool first_row = true;

static bool report(const options *o, const result *r, uint32_t expected_partitions) {
  if (o->json) {
    printf(
        "%s  {\"strategy\": \"%s\", \"nodes\": %u, \"splits\": %u, \"partitions\": %u, \"transfers\": %u, \"median_ms\": %.4f, "
        "\"ns_a_node\": %.1f, \"bytes_a_node\": %.0f}",
        first_row ? "" : ",\n", r->strategy, r->nodes, r->splits, r->partitions, r->copies, r->median_ns / 1e6,
        r->median_ns / r->nodes, r->bytes_a_node);
    first_row = false;
  } else if (!o->check) {
    printf("%-16s %7u %7u %10u %9u %9.3f %9.1f %9.1f %8.0f\n", r->strategy, r->nodes, r->splits, r->partitions, r->copies,
           r->median_ns / 1e6, r->median_ns / r->nodes, r->fastest_ns / r->nodes, r->bytes_a_node);
  }
  bool quick = strcmp(r->strategy, "optimal") != 0;
  if (expected_partitions > 0 && r->partitions != expected_partitions) {
    fprintf(stderr, "%s, %u nodes: %u partitions instead of %u\n", r->strategy, r->nodes, r->partitions, expected_partitions);
    return false;
  }
  if (quick && r->nodes >= 1000 && r->bytes_a_node >= LIMIT_BYTES_A_NODE) {
    fprintf(stderr, "%s, %u nodes: %.0f bytes per node, limit 500\n", r->strategy, r->nodes, r->bytes_a_node);
    return false;
  }
  return true;
}

static void heading(const options *o, const char *text) {
  if (o->json || o->check) return;
  printf("\n%s\n%-16s %7s %7s %10s %9s %9s %9s %9s %8s\n", text, "strategy", "nodes", "splits", "partitions", "transfers", "ms",
         "ns/node", "fastest", "B/node");
}

static bool run_one(const options *o, const char *strategy, uint32_t nodes, uint32_t splits, uint32_t runs) {
  clv__arena arena;
  result r;
  clv__arena_init(&arena, clv__allocator_default());
  const clv__problem *problem = make_problem(&arena, nodes, splits);
  bool good = measure(problem, strategy, o->check ? 1 : runs, &r);
  r.splits = splits;
  /* Each run of nodes has one possible device, so the number of partitions is known. */
  if (good) good = report(o, &r, splits);
  clv__arena_finish(&arena);
  return good;
}

static bool run_all(const options *o) {
  static const char *const quick[] = {"contiguous", "propagate", "ready"};
  static const uint32_t splits[] = {1, 100, 1000, 10000}, sizes[] = {1000, 10000, 100000};
  bool good = true;
  heading(o, "10,000 nodes by number of splits");
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 4; ++k) good = run_one(o, quick[i], 10000, splits[k], MAX_RUNS) && good;
  }
  heading(o, "growth: a split every hundred nodes");
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 3; ++k) good = run_one(o, quick[i], sizes[k], sizes[k] / 100, k < 2 ? MAX_RUNS : 21) && good;
  }
  heading(o, "optimal for two devices, nine of ten nodes on either");
  for (size_t k = 0; k < (o->check ? 2 : 3); ++k)
    good = run_one(o, "optimal", sizes[k], 0, k == 0 ? 51 : k == 1 ? 11 : 3) && good;
  return good;
}

int main(int argument_count, char **arguments) {
  options o = {0};
  for (int i = 1; i < argument_count; ++i) {
    if (strcmp(arguments[i], "--json") == 0) {
      o.json = true;
    } else if (strcmp(arguments[i], "--check") == 0) {
      o.check = true;
    } else {
      fprintf(stderr, "usage: bench_placement [--json] [--check]\n");
      return 2;
    }
  }
  if (o.json) printf("[\n");
  bool good = run_all(&o);
  if (o.json) printf("\n]\n");
  return good ? 0 : 1;
}
