/* Draws random problems: see problems.h. The parts of a problem are drawn in this order: devices, nodes and the values they read,
 * verdicts, times, weights, limits. */
#include "problems.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MAX_READS = 8, MAX_OUTPUTS = 3, MAX_DEVICES = 4 };

/* The problem that is being drawn, and the state that its parts share. */
typedef struct draft {
  clv__problem *problem;
  clv__arena *arena;
  const test_problem_options *options;
  uint64_t random;
  uint32_t features; /* the features that this problem has, a selection of those in the options */
  test_shape shape;
  uint32_t input_count;
  uint32_t hub, lanes; /* a node whose output many nodes read (CLV__NONE: there is none); number of parallel chains */
  uint32_t (*reads)[MAX_READS];
  uint8_t *read_counts;
  uint32_t *first_values; /* indexed by node: its first output; [node_count]: the number of values */
  bool *is_read;
} draft;

static uint32_t below(draft *d, uint32_t limit) {
  return (uint32_t)(test_random(&d->random) % limit);
}

static bool chance(draft *d, uint32_t percent) {
  return below(d, 100) < percent;
}

static uint32_t between(draft *d, uint32_t least, uint32_t most) {
  return least + below(d, most - least + 1);
}

static bool has(const draft *d, uint32_t feature) {
  return (d->features & feature) != 0;
}

static void *array(draft *d, size_t count, size_t element_bytes) {
  void *memory = clv__arena_allocate_zero(d->arena, count + 1, element_bytes);
  if (memory == NULL) abort(); /* the test cannot continue without memory */
  return memory;
}

/* ---- Devices ---- */

static void draw_devices(draft *d) {
  clv__problem *problem = d->problem;
  problem->device_count = between(d, d->options->min_devices, d->options->max_devices);
  uint32_t *spaces = array(d, problem->device_count, sizeof *spaces);
  uint32_t host = chance(d, 50) ? problem->device_count - 1 : below(d, problem->device_count + (chance(d, 10) ? 1 : 0));
  problem->space_count = 1;
  for (uint32_t i = 0; i < problem->device_count; ++i) {
    if (i == host) continue;
    bool shares = has(d, TEST_SHARED) && chance(d, 40);
    spaces[i] = shares ? below(d, problem->space_count) : problem->space_count++;
  }
  problem->spaces = spaces;
  uint64_t *launches = array(d, problem->device_count, sizeof *launches);
  static const uint32_t scales[] = {1, 10, 1000, 1000000};
  uint32_t scale = scales[below(d, 4)];
  for (uint32_t i = 0; has(d, TEST_LAUNCHES) && i < problem->device_count; ++i) launches[i] = below(d, scale + 1);
  problem->launch_ns = launches;
}

/* ---- Nodes ---- */

/* Adds a read of a value. Does nothing if the node already reads it, or has MAX_READS reads. */
static void add_read(draft *d, uint32_t node, uint32_t value) {
  for (uint32_t r = 0; r < d->read_counts[node]; ++r) {
    if (d->reads[node][r] == value) return;
  }
  if (d->read_counts[node] == MAX_READS) return;
  d->reads[node][d->read_counts[node]++] = value;
  d->is_read[value] = true;
}

/* A random output of the node that is `back` nodes before `node`, or a graph input if there is no such node. */
static uint32_t value_before(draft *d, uint32_t node, uint32_t back) {
  if (back > node || back == 0) return below(d, d->input_count);
  uint32_t producer = node - back, first = d->first_values[producer];
  return first + below(d, d->first_values[producer + 1] - first);
}

/* An earlier value that no node reads yet. If none is found quickly, an output of the previous node. */
static uint32_t unread_before(draft *d, uint32_t node) {
  for (uint32_t tries = 0; tries < 8; ++tries) {
    uint32_t value = below(d, d->first_values[node]);
    if (!d->is_read[value]) return value;
  }
  return value_before(d, node, 1);
}

static void draw_reads(draft *d, uint32_t node) {
  switch (d->shape) {
    case TEST_CHAIN:
      add_read(d, node, value_before(d, node, 1));
      break;
    case TEST_TREE_IN:
      for (uint32_t count = between(d, 1, 2); count > 0; --count) add_read(d, node, unread_before(d, node));
      break;
    case TEST_TREE_OUT:
      add_read(d, node, value_before(d, node, between(d, 1, node < 6 ? node + 1 : 6)));
      break;
    case TEST_DIAMONDS:
      add_read(d, node, value_before(d, node, node % 4 == 2 ? 2 : 1));
      if (node % 4 == 3) add_read(d, node, value_before(d, node, 2));
      break;
    case TEST_SKIPS:
      add_read(d, node, value_before(d, node, 1));
      if (chance(d, 40)) add_read(d, node, value_before(d, node, between(d, 2, 7)));
      break;
    case TEST_COMPONENTS:
      add_read(d, node, value_before(d, node, d->lanes));
      break;
    case TEST_LADDER:
      add_read(d, node, value_before(d, node, 2));
      if (node % 2 == 0 && chance(d, 50)) add_read(d, node, value_before(d, node, 1));
      break;
    default: /* TEST_RANDOM, TEST_OUTPUTS */
      for (uint32_t count = between(d, 1, 3); count > 0; --count) add_read(d, node, below(d, d->first_values[node]));
  }
  if (d->hub < node && chance(d, 30)) add_read(d, node, d->first_values[d->hub]);
  if (chance(d, 10)) add_read(d, node, below(d, d->input_count));
  if (chance(d, 3)) d->read_counts[node] = 0; /* a node without inputs, such as a random number generator */
}

static void draw_nodes(draft *d) {
  clv__problem *problem = d->problem;
  uint32_t count = problem->node_count = between(d, d->options->min_nodes, d->options->max_nodes);
  d->shape = d->options->shape == TEST_SHAPE_COUNT ? (test_shape)below(d, TEST_SHAPE_COUNT) : d->options->shape;
  d->input_count = between(d, 1, 3);
  d->lanes = between(d, 2, 4);
  d->hub = chance(d, 25) ? below(d, count) : CLV__NONE;
  d->reads = array(d, count, sizeof *d->reads);
  d->read_counts = array(d, count, 1);
  d->first_values = array(d, count, sizeof *d->first_values);
  d->first_values[0] = d->input_count;
  for (uint32_t n = 0; n < count; ++n) {
    bool several = d->shape == TEST_OUTPUTS ? chance(d, 60) : chance(d, 5);
    d->first_values[n + 1] = d->first_values[n] + (several ? between(d, 2, MAX_OUTPUTS) : 1);
  }
  problem->value_count = d->first_values[count];
  d->is_read = array(d, problem->value_count, 1);
  for (uint32_t n = 0; n < count; ++n) draw_reads(d, n);
  memset(d->is_read, 0, problem->value_count);
  for (uint32_t n = 0; n < count; ++n) {
    for (uint32_t r = 0; r < d->read_counts[n]; ++r) d->is_read[d->reads[n][r]] = true;
  }
  for (uint32_t v = 0; v < d->input_count; ++v) { /* every graph input must be read by at least one node */
    for (uint32_t n = below(d, count); !d->is_read[v]; n = (n + 1) % count) add_read(d, n, v);
  }
}

/* Fills the arrays of reads, readers and writes. */
static void finish_nodes(draft *d) {
  clv__problem *problem = d->problem;
  uint32_t nodes = problem->node_count, values = problem->value_count, reads = 0;
  uint32_t *read_offsets = array(d, nodes, sizeof *read_offsets), *reader_offsets = array(d, values + 1, sizeof *reader_offsets);
  uint32_t *write_offsets = array(d, nodes, sizeof *write_offsets), *writes = array(d, values, sizeof *writes);
  uint32_t *producers = array(d, values, sizeof *producers);
  for (uint32_t n = 0; n < nodes; ++n) reads += d->read_counts[n];
  uint32_t *all = array(d, reads, sizeof *all), *readers = array(d, reads, sizeof *readers);
  for (uint32_t v = 0; v < d->input_count; ++v) producers[v] = CLV__NONE;
  for (uint32_t n = 0; n < nodes; ++n) {
    memcpy(all + read_offsets[n], d->reads[n], d->read_counts[n] * sizeof *all);
    read_offsets[n + 1] = read_offsets[n] + d->read_counts[n];
    for (uint32_t v = d->first_values[n]; v < d->first_values[n + 1]; ++v) {
      producers[v] = n;
      writes[write_offsets[n] + v - d->first_values[n]] = v;
    }
    write_offsets[n + 1] = write_offsets[n] + d->first_values[n + 1] - d->first_values[n];
    for (uint32_t r = 0; r < d->read_counts[n]; ++r) ++reader_offsets[d->reads[n][r] + 2];
  }
  for (uint32_t v = 1; v <= values; ++v) reader_offsets[v + 1] += reader_offsets[v];
  for (uint32_t n = 0; n < nodes; ++n) {
    for (uint32_t r = 0; r < d->read_counts[n]; ++r) readers[reader_offsets[d->reads[n][r] + 1]++] = n;
  }
  problem->read_offsets = read_offsets, problem->reads = all;
  problem->write_offsets = write_offsets, problem->writes = writes;
  problem->reader_offsets = reader_offsets, problem->readers = readers;
  problem->producers = producers;
  uint8_t *is_output = array(d, values, 1);
  for (uint32_t v = 0; v < values; ++v) is_output[v] = chance(d, d->is_read[v] ? 8 : 90);
  problem->is_output = is_output;
}

/* ---- Verdicts ---- */

static void draw_verdicts(draft *d) {
  clv__problem *problem = d->problem;
  uint32_t nodes = problem->node_count, all = (1u << problem->device_count) - 1;
  uint16_t *supports = array(d, nodes, sizeof *supports), *prefers = array(d, nodes, sizeof *prefers);
  uint32_t *pins = array(d, nodes, sizeof *pins);
  uint8_t *flags = array(d, nodes, 1);
  static const uint32_t densities[] = {30, 60, 80, 95};
  uint32_t density = densities[below(d, 4)], pinned = has(d, TEST_PINS) ? (chance(d, 50) ? 5 : 40) : 0;
  uint32_t everything = chance(d, 50) ? below(d, problem->device_count) : MAX_DEVICES; /* a device that supports all nodes */
  for (uint32_t n = 0; n < nodes; ++n) {
    for (uint32_t i = 0; i < problem->device_count; ++i) supports[n] |= (uint16_t)(chance(d, density) << i);
    if (supports[n] == 0) supports[n] = (uint16_t)(1u << below(d, problem->device_count));
    if (everything < MAX_DEVICES) supports[n] |= (uint16_t)(1u << everything);
    if (!has(d, TEST_PARTIAL)) supports[n] = (uint16_t)all;
    for (uint32_t i = 0; i < problem->device_count; ++i) prefers[n] |= (uint16_t)((supports[n] >> i & 1u & chance(d, 20)) << i);
    pins[n] = CLV__NONE;
    if (chance(d, pinned)) {
      do pins[n] = below(d, problem->device_count);
      while ((supports[n] >> pins[n] & 1u) == 0);
    }
    bool one_output = d->first_values[n + 1] - d->first_values[n] == 1;
    if (has(d, TEST_VIEWS) && one_output && d->read_counts[n] > 0 && chance(d, 20)) flags[n] |= CLV__NODE_VIEW;
    if (has(d, TEST_VIEWS) && chance(d, 10)) flags[n] |= CLV__NODE_LIGHT_WEIGHT;
  }
  problem->supports = supports, problem->prefers = prefers;
  problem->pins = pins, problem->flags = flags;
}

static void draw_limits(draft *d) {
  clv__problem *problem = d->problem;
  clv__limits *limits = array(d, problem->device_count, sizeof *limits);
  uint64_t weights = 0, largest = 0;
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    weights += problem->weight_bytes[w];
    if (problem->weight_bytes[w] > largest) largest = problem->weight_bytes[w];
  }
  for (uint32_t i = 0; i < problem->device_count; ++i) {
    uint32_t most = 1;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      if (clv__can_run(problem, n, i) && d->read_counts[n] > most) most = d->read_counts[n];
    }
    if (has(d, TEST_LIMITS) && chance(d, 60)) limits[i].max_inputs = between(d, most, most + 3);
    if (has(d, TEST_LIMITS) && chance(d, 60)) limits[i].max_nodes = between(d, 1, 6);
    if (has(d, TEST_MEMORY) && weights > 0 && chance(d, 60)) limits[i].memory_bytes = largest + weights * below(d, 100) / 100;
  }
  problem->limits = limits;
}

/* Draws which weights each device can stream. A device takes its other weights only as constants. */
static void draw_streams(draft *d) {
  if (!has(d, TEST_MEMORY) || chance(d, 50)) return;
  uint16_t *streams = array(d, d->problem->weight_count, sizeof *streams);
  for (uint32_t w = 0; w < d->problem->weight_count; ++w) {
    for (uint32_t i = 0; i < d->problem->device_count; ++i) streams[w] |= (uint16_t)(chance(d, 80) << i);
  }
  d->problem->streams = streams;
}

/* ---- Times ---- */

/* A random time up to `scale`. `style` 0 to 2 give equal times, many zeros, and few distinct times (ties). */
static uint64_t draw_time(draft *d, uint32_t scale, uint32_t style) {
  switch (style) {
    case 0:
      return scale; /* equal times */
    case 1:
      return chance(d, 30) ? 0 : below(d, scale + 1); /* many zeros */
    case 2:
      return (uint64_t)below(d, 4) * scale / 4; /* few distinct times, so that ties are common */
    default:
      return below(d, scale + 1);
  }
}

static uint32_t draw_scale(draft *d) {
  static const uint32_t scales[] = {0, 2, 10, 100, 10000, 1000000, 1000000000};
  return scales[below(d, 7)];
}

static void draw_times(draft *d) {
  clv__problem *problem = d->problem;
  uint64_t *times = array(d, (size_t)problem->node_count * problem->device_count, sizeof *times);
  uint32_t scale = draw_scale(d), style = below(d, 4), factors[MAX_DEVICES];
  for (uint32_t i = 0; i < problem->device_count; ++i) factors[i] = between(d, 1, 8);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t i = 0; i < problem->device_count; ++i) {
      uint64_t *time = &times[(size_t)n * problem->device_count + i];
      *time = draw_time(d, scale, style) * factors[i] / 4;
      if ((problem->flags[n] & CLV__NODE_VIEW) != 0) *time = 0;
      if (!clv__can_run(problem, n, i)) *time = CLV__NO_TIME;
    }
  }
  problem->node_ns = times;
}

static void draw_copies(draft *d) {
  clv__problem *problem = d->problem;
  uint32_t values = problem->value_count, scale = draw_scale(d), style = below(d, 4);
  uint64_t *bytes = array(d, values, sizeof *bytes), *in = array(d, (size_t)values * problem->space_count, sizeof *in);
  uint64_t *out = array(d, (size_t)values * problem->space_count, sizeof *out);
  for (uint32_t v = 0; v < values; ++v) {
    bytes[v] = chance(d, 5) ? 0 : draw_time(d, 1000, style);
    for (uint32_t s = 1; s < problem->space_count; ++s) {
      in[(size_t)v * problem->space_count + s] = draw_time(d, scale, style);
      out[(size_t)v * problem->space_count + s] = draw_time(d, scale, style);
    }
  }
  problem->value_bytes = bytes, problem->in_ns = in, problem->out_ns = out;
}

/* Draws savings so that no set of nodes saves more time than it takes. A saving between two nodes is at most 2 t / k for each
 * of them, where t is the node's time and k the number of its fusions. If each node counts for half of its savings, these
 * halves add up to at most t. */
static void draw_savings(draft *d) {
  clv__problem *problem = d->problem;
  if (!has(d, TEST_SAVINGS)) return;
  uint32_t reads = problem->read_offsets[problem->node_count], percent = between(d, 10, 90);
  uint64_t *savings = array(d, (size_t)reads * problem->device_count, sizeof *savings);
  uint32_t *degrees = array(d, problem->node_count, sizeof *degrees);
  bool *fuses = array(d, reads, 1);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      fuses[r] = producer != CLV__NONE && chance(d, percent);
      if (fuses[r]) ++degrees[n], ++degrees[producer];
    }
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      for (uint32_t i = 0; fuses[r] && i < problem->device_count; ++i) {
        uint32_t producer = problem->producers[problem->reads[r]];
        if (!clv__can_run(problem, n, i) || !clv__can_run(problem, producer, i)) continue;
        uint64_t a = 2 * clv__node_ns(problem, n, i) / degrees[n], b = 2 * clv__node_ns(problem, producer, i) / degrees[producer];
        uint64_t most = a < b ? a : b;
        savings[(size_t)r * problem->device_count + i] = chance(d, 30) ? most : test_random(&d->random) % (most + 1);
      }
    }
  }
  problem->saving_ns = savings;
}

/* ---- Weights ---- */

static uint32_t draw_home(draft *d) {
  return has(d, TEST_HOMES) && chance(d, 20) ? below(d, d->problem->device_count) : CLV__NONE;
}

static void draw_weights(draft *d) {
  clv__problem *problem = d->problem;
  uint32_t nodes = problem->node_count;
  uint32_t *offsets = array(d, nodes, sizeof *offsets), *weights = array(d, 2 * (size_t)nodes, sizeof *weights);
  for (uint32_t n = 0; n < nodes; ++n) {
    uint32_t count = 0;
    if (has(d, TEST_WEIGHTS) && (problem->flags[n] & CLV__NODE_VIEW) == 0) count = below(d, 3);
    for (uint32_t i = 0; i < count; ++i) {
      bool shared = problem->weight_count > 0 && chance(d, 20);
      uint32_t weight = shared ? below(d, problem->weight_count) : problem->weight_count++;
      if (i == 1 && weights[offsets[n]] == weight) break;
      weights[offsets[n] + i] = weight;
      offsets[n + 1] = i + 1;
    }
    offsets[n + 1] += offsets[n];
  }
  uint64_t *bytes = array(d, problem->weight_count, sizeof *bytes);
  uint32_t *homes = array(d, problem->weight_count, sizeof *homes);
  for (uint32_t w = 0; w < problem->weight_count; ++w) bytes[w] = below(d, 1000), homes[w] = draw_home(d);
  uint32_t *value_homes = array(d, problem->value_count, sizeof *value_homes);
  for (uint32_t v = 0; v < problem->value_count; ++v) value_homes[v] = draw_home(d);
  uint64_t *in = array(d, (size_t)problem->weight_count * problem->space_count, sizeof *in);
  uint32_t scale = draw_scale(d);
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    for (uint32_t s = 1; s < problem->space_count; ++s) in[(size_t)w * problem->space_count + s] = draw_time(d, scale, 3);
  }
  problem->weight_offsets = offsets, problem->weights = weights;
  problem->weight_bytes = bytes, problem->weight_homes = homes, problem->weight_in_ns = in;
  problem->value_homes = value_homes;
}

/* Makes some views hosted on some devices (clv__is_hosted()), whether or not these devices supported them, and changes their
 * sizes, times and savings to match. Uses random numbers of its own, so that a seed draws the same devices, nodes and times
 * with and without TEST_HOSTED. */
static void draw_hosted(draft *d, uint64_t seed) {
  clv__problem *problem = d->problem;
  uint16_t *hosted = array(d, problem->node_count, sizeof *hosted);
  problem->hosted = hosted;
  d->random = ~seed;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if ((problem->flags[n] & CLV__NODE_VIEW) == 0 || d->read_counts[n] != 1) continue;
    uint32_t from = problem->reads[problem->read_offsets[n]], to = problem->writes[problem->write_offsets[n]];
    ((uint64_t *)problem->value_bytes)[to] = problem->value_bytes[from];
    for (uint32_t i = 0; i < problem->device_count; ++i) {
      if (!chance(d, 40)) continue;
      hosted[n] |= (uint16_t)(1u << i);
      ((uint16_t *)problem->supports)[n] |= (uint16_t)(1u << i);
      ((uint64_t *)problem->node_ns)[(size_t)n * problem->device_count + i] = 0;
    }
  }
  for (uint32_t n = 0; problem->saving_ns != NULL && n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      for (uint32_t i = 0; producer != CLV__NONE && i < problem->device_count; ++i) {
        if (clv__is_hosted(problem, n, i) || clv__is_hosted(problem, producer, i))
          ((uint64_t *)problem->saving_ns)[(size_t)r * problem->device_count + i] = 0;
      }
    }
  }
}

clv__problem *test_problem_make(uint64_t seed, const test_problem_options *options, clv__arena *arena) {
  draft d = {.arena = arena, .options = options, .random = seed};
  d.problem = array(&d, 1, sizeof *d.problem);
  /* Keeps three of four features on average. */
  d.features = options->features & (uint32_t)(test_random(&d.random) | test_random(&d.random));
  draw_devices(&d);
  draw_nodes(&d);
  finish_nodes(&d);
  draw_verdicts(&d);
  draw_times(&d);
  draw_copies(&d);
  draw_savings(&d);
  draw_weights(&d);
  draw_limits(&d);
  draw_streams(&d);
  if (has(&d, TEST_HOSTED)) draw_hosted(&d, seed);
  return d.problem;
}

/* ---- Printing ---- */

static void print_node(FILE *file, const clv__problem *problem, uint32_t n, const uint32_t *devices) {
  fprintf(file, "  node %u%s%s:", n, (problem->flags[n] & CLV__NODE_VIEW) != 0 ? " view" : "",
          (problem->flags[n] & CLV__NODE_LIGHT_WEIGHT) != 0 ? " light" : "");
  if (devices != NULL) fprintf(file, " on %d", (int)devices[n]);
  if (problem->pins[n] != CLV__NONE) fprintf(file, " pinned %u", problem->pins[n]);
  fprintf(file, " ns");
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (clv__can_run(problem, n, d))
      fprintf(file, " %llu%s%s", (unsigned long long)clv__node_ns(problem, n, d), (problem->prefers[n] >> d & 1u) != 0 ? "+" : "",
              clv__is_hosted(problem, n, d) ? "h" : "");
    else
      fprintf(file, " -");
  }
  fprintf(file, "; reads");
  for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
    fprintf(file, " v%u", problem->reads[r]);
    for (uint32_t d = 0; problem->saving_ns != NULL && d < problem->device_count; ++d) {
      fprintf(file, "%s%llu%s", d == 0 ? "(" : " ", (unsigned long long)clv__saving_ns(problem, r, d),
              d + 1 == problem->device_count ? ")" : "");
    }
  }
  fprintf(file, "; writes");
  for (uint32_t w = problem->write_offsets[n]; w < problem->write_offsets[n + 1]; ++w) fprintf(file, " v%u", problem->writes[w]);
  for (uint32_t w = problem->weight_offsets[n]; w < problem->weight_offsets[n + 1]; ++w) {
    fprintf(file, " w%u", problem->weights[w]);
  }
  fprintf(file, "\n");
}

void test_problem_print(FILE *file, uint64_t seed, const clv__problem *problem, const uint32_t *devices) {
  fprintf(file, "seed %llu: %u nodes, %u values, %u weights, %u devices, %u spaces\n", (unsigned long long)seed,
          problem->node_count, problem->value_count, problem->weight_count, problem->device_count, problem->space_count);
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    const clv__limits *limits = &problem->limits[d];
    fprintf(file, "  device %u: space %u, launch %llu, limits: %u inputs, %u nodes, %llu bytes\n", d, problem->spaces[d],
            (unsigned long long)problem->launch_ns[d], limits->max_inputs, limits->max_nodes,
            (unsigned long long)limits->memory_bytes);
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) print_node(file, problem, n, devices);
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    fprintf(file, "  value %u%s%s: %llu bytes, home %d, in/out", v, problem->producers[v] == CLV__NONE ? " input" : "",
            problem->is_output[v] ? " output" : "", (unsigned long long)problem->value_bytes[v], (int)problem->value_homes[v]);
    for (uint32_t s = 1; s < problem->space_count; ++s) {
      fprintf(file, " %llu/%llu", (unsigned long long)clv__in_ns(problem, v, s), (unsigned long long)clv__out_ns(problem, v, s));
    }
    fprintf(file, "\n");
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    fprintf(file, "  weight %u: %llu bytes, home %d\n", w, (unsigned long long)problem->weight_bytes[w],
            (int)problem->weight_homes[w]);
  }
}
