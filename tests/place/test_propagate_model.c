/* Tests the strategy `propagate` on random problems, against a simple model of the scheduler of ggml, which it follows:
 * ggml_backend_sched_split_graph() in ggml-backend.cpp. docs/placement.md, section "Where propagate differs from ggml",
 * lists the rules by which `propagate` differs. The model has a switch for each rule. With all rules on, the model and
 * `propagate` agree after every pass on all problems. With any one rule off, they disagree on at least one problem. With
 * all rules off, the model is ggml's scheduler, and agrees with `propagate` on problems to which no rule applies. */
#include <string.h>

#include "place/node.h"
#include "place/place.h"
#include "problem_checks.h"
#include "problems.h"
#include "small.h"

enum { MAX_NODES = 60, MAX_VALUES = 200, MAX_WEIGHTS = 120, SPLIT_INPUTS = 30 };

/* The rules of docs/placement.md. Each comment says what `propagate` does; ggml does not. */
typedef enum rule {
  NAMED_HOME,  /* of the devices that share a memory, the one that the user named takes the node, if it can run it */
  NEXT_WEIGHT, /* if no device in the memory of a weight can run the node, the node's next weight decides */
  UNPLACED,    /* a node that reads an unplaced weight can go to any device in host memory, or to the last device */
  LIGHT,       /* an unplaced weight of a CLV__NODE_LIGHT_WEIGHT node does not count: it is where its reader is */
  OFFLOAD,     /* if any weight of a node is in host memory, devices in other memories are asked whether they prefer the node */
  PINS,        /* a pinned node is not upgraded */
  INPUTS,      /* a graph input starts in host memory, wherever the user placed it */
  STREAMED,    /* only a placed weight is copied during a run, and never to host memory */
  STREAM_CUT,  /* a streamed weight ends a partition only if the partition has one already, and is copied for each partition */
  COPIES,      /* a copy serves all devices of its memory, and also leaves a copy in host memory */
  EXACT_LIMIT, /* a node that would exceed the limit of copies starts a partition */
  RULE_COUNT
} rule;

static const char *const rule_names[] = {
    "the named home", "the next weight",  "unplaced weights", "light weights",    "offload",        "pins",
    "graph inputs",   "streamed weights", "streamed cuts",    "copies by memory", "the exact limit"};

typedef struct model {
  const clv__problem *problem;
  uint32_t rules;                                    /* bit r: rule r holds */
  uint32_t last;                                     /* the last device; in ggml, the one in host memory */
  uint32_t devices[MAX_NODES], passes[6][MAX_NODES]; /* after the passes 1, 2a to 2d, and 3 */
  uint32_t homes[MAX_VALUES];
  uint32_t splits[MAX_NODES]; /* the number of each node's partition; unused for views */
  bool aborts;                /* ggml would abort here */
} model;

static bool has(const model *m, rule r) {
  return (m->rules >> r & 1u) != 0;
}

static bool is_view(const model *m, uint32_t node) {
  return clv__node_is_view(m->problem, node);
}

/* As ggml_backend_sched_backend_from_buffer(): returns the first device that uses the memory of device `home` and can run the
 * node; CLV__NONE if there is none. */
static uint32_t from_buffer(const model *m, uint32_t home, uint32_t node) {
  const clv__problem *problem = m->problem;
  if (has(m, NAMED_HOME) && clv__can_run(problem, node, home)) return home;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (problem->spaces[d] == problem->spaces[home] && clv__can_run(problem, node, d)) return d;
  }
  return CLV__NONE;
}

/* ---- Pass 1 ---- */

static bool is_host(const model *m, uint32_t device) {
  return m->problem->spaces[device] == 0 || device == m->last;
}

static uint32_t first_on_host(const model *m, uint32_t node) {
  for (uint32_t d = 0; d < m->problem->device_count; ++d) {
    if (is_host(m, d) && clv__can_run(m->problem, node, d)) return d;
  }
  return CLV__NONE;
}

static uint32_t offload(const model *m, uint32_t node, uint32_t home, uint32_t device) {
  const clv__problem *problem = m->problem;
  bool asks = has(m, OFFLOAD) ? is_host(m, home) : device == m->last && problem->spaces[home] == 0;
  for (uint32_t d = 0; asks && d < problem->device_count && d < device; ++d) {
    if (has(m, OFFLOAD) && is_host(m, d)) continue;
    if (clv__can_run(problem, node, d) && (problem->prefers[node] >> d & 1u) != 0) return d;
  }
  return CLV__NONE;
}

/* As ggml_backend_sched_backend_id_from_cur(): returns the device that pass 1 gives to the node; CLV__NONE if it gives none. */
static uint32_t from_current(model *m, uint32_t node) {
  const clv__problem *problem = m->problem;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t home = m->homes[problem->writes[w]], device = home == CLV__NONE ? CLV__NONE : from_buffer(m, home, node);
    if (device != CLV__NONE) return device;
    if (home != CLV__NONE) m->aborts = true;
  }
  if ((problem->flags[node] & CLV__NODE_LIGHT_WEIGHT) != 0) return CLV__NONE;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t home = problem->weight_homes[problem->weights[k]], at = home == CLV__NONE ? m->last : home;
    bool anywhere = home == CLV__NONE && has(m, UNPLACED);
    uint32_t device = anywhere ? first_on_host(m, node) : from_buffer(m, at, node);
    uint32_t other = offload(m, node, at, device);
    if (other != CLV__NONE) return other;
    if (device != CLV__NONE || !has(m, NEXT_WEIGHT)) return device;
  }
  return CLV__NONE;
}

static void first_pass(model *m) {
  const clv__problem *problem = m->problem;
  memcpy(m->homes, problem->value_homes, problem->value_count * sizeof *m->homes);
  for (uint32_t n = problem->node_count; n-- > 0;) { /* a view has the buffer of its source */
    if (!is_view(m, n)) continue;
    uint32_t source = problem->reads[problem->read_offsets[n]];
    if (m->homes[source] == CLV__NONE) m->homes[source] = m->homes[problem->writes[problem->write_offsets[n]]];
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    m->devices[n] = problem->pins[n];
    if (m->devices[n] == CLV__NONE && !is_view(m, n)) m->devices[n] = from_current(m, n);
  }
}

/* ---- Pass 2 ---- */

static void sweep(model *m, bool up, bool host) {
  uint32_t current = CLV__NONE, count = m->problem->node_count;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t n = up ? count - 1 - i : i;
    if (is_view(m, n)) continue;
    if (m->devices[n] != CLV__NONE)
      current = m->devices[n] == m->last && !host ? CLV__NONE : m->devices[n];
    else if (current != CLV__NONE && clv__can_run(m->problem, n, current))
      m->devices[n] = current;
  }
}

/* ---- Pass 3 ---- */

/* Returns the device where a value is; a view is where its source is. */
static uint32_t where(const model *m, uint32_t value) {
  const clv__problem *problem = m->problem;
  uint32_t producer = problem->producers[value];
  while (producer != CLV__NONE && is_view(m, producer)) {
    value = problem->reads[problem->read_offsets[producer]];
    producer = problem->producers[value];
  }
  if (producer != CLV__NONE) return m->devices[producer];
  return problem->value_homes[value] == CLV__NONE ? m->last : problem->value_homes[value];
}

/* Counts the operands of the node that the device can read, and those that it cannot. */
static uint32_t count_readable(const model *m, uint32_t node, uint32_t device, uint32_t *others) {
  const clv__problem *problem = m->problem;
  uint32_t count = 0, space = problem->spaces[device];
  *others = 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r)
    problem->spaces[where(m, problem->reads[r])] == space ? ++count : ++*others;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t home = problem->weight_homes[problem->weights[k]];
    if (home == CLV__NONE && has(m, LIGHT) && (problem->flags[node] & CLV__NODE_LIGHT_WEIGHT) != 0) continue;
    problem->spaces[home == CLV__NONE ? m->last : home] == space ? ++count : ++*others;
  }
  return count;
}

static void third_pass(model *m) {
  const clv__problem *problem = m->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t assigned = m->devices[n], best = 0, others;
    if (is_view(m, n) || (problem->pins[n] != CLV__NONE && has(m, PINS))) continue;
    for (uint32_t d = 0; d < (assigned == CLV__NONE ? problem->device_count : assigned); ++d) {
      if (!clv__can_run(problem, n, d)) continue;
      uint32_t count = count_readable(m, n, d, &others);
      if (assigned == CLV__NONE) {
        if (m->devices[n] == CLV__NONE || count > best) m->devices[n] = d, best = count;
      } else if (problem->spaces[d] == problem->spaces[assigned] && others == 0) {
        m->devices[n] = d;
        break;
      }
    }
  }
}

/* ---- Pass 5 ---- */

typedef struct cutting {
  uint32_t copied[MAX_VALUES], weight_copied[MAX_WEIGHTS]; /* bits of the devices or memories that have a copy */
  uint32_t count, inputs;                                  /* the number of splits, and of copies into the last split */
  bool streams;
} cutting;

static uint32_t space_of_value(const model *m, uint32_t value) {
  uint32_t root = value, producer = m->problem->producers[value];
  while (producer != CLV__NONE && is_view(m, producer)) {
    root = m->problem->reads[m->problem->read_offsets[producer]];
    producer = m->problem->producers[root];
  }
  return producer == CLV__NONE && has(m, INPUTS) ? 0 : m->problem->spaces[where(m, root)];
}

static uint32_t copy_bit(const model *m, uint32_t device) {
  return has(m, COPIES) ? 1u << m->problem->spaces[device] : 1u << device;
}

static uint32_t fresh_values(const model *m, const cutting *c, uint32_t node) {
  const clv__problem *problem = m->problem;
  uint32_t device = m->devices[node], fresh = 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r];
    fresh += space_of_value(m, value) != problem->spaces[device] && (c->copied[value] & copy_bit(m, device)) == 0;
  }
  return fresh;
}

/* Returns whether the weight must be copied to the memory of `device` during a run. */
static bool is_elsewhere(const model *m, uint32_t weight, uint32_t device) {
  const clv__problem *problem = m->problem;
  uint32_t home = problem->weight_homes[weight];
  if (has(m, STREAMED) && (home == CLV__NONE || problem->spaces[device] == 0)) return false;
  return problem->spaces[home == CLV__NONE ? m->last : home] != problem->spaces[device];
}

static uint32_t fresh_weights(const model *m, const cutting *c, uint32_t node, uint32_t *elsewhere) {
  const clv__problem *problem = m->problem;
  uint32_t device = m->devices[node], fresh = 0;
  *elsewhere = 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    if (!is_elsewhere(m, weight, device)) continue;
    ++*elsewhere;
    fresh += has(m, STREAM_CUT) ? c->weight_copied[weight] != c->count : (c->weight_copied[weight] & copy_bit(m, device)) == 0;
  }
  return fresh;
}

static bool needs_split(const model *m, const cutting *c, uint32_t node) {
  uint32_t elsewhere, weights = fresh_weights(m, c, node, &elsewhere), values = fresh_values(m, c, node);
  if (has(m, STREAM_CUT) ? c->streams && weights > 0 : c->inputs > 0 && elsewhere > 0) return true;
  if (has(m, EXACT_LIMIT)) return c->inputs + values + weights > SPLIT_INPUTS;
  return c->inputs == SPLIT_INPUTS && values + weights > 0;
}

static void add_copies(const model *m, cutting *c, uint32_t node) {
  const clv__problem *problem = m->problem;
  uint32_t device = m->devices[node], elsewhere;
  c->inputs += fresh_values(m, c, node) + fresh_weights(m, c, node, &elsewhere);
  c->streams = c->streams || elsewhere > 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r];
    if (space_of_value(m, value) != problem->spaces[device]) c->copied[value] |= copy_bit(m, device) | has(m, COPIES);
  }
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    if (is_elsewhere(m, weight, device)) {
      c->weight_copied[weight] = has(m, STREAM_CUT) ? c->count : c->weight_copied[weight] | copy_bit(m, device);
    }
  }
}

static void fifth_pass(model *m) {
  cutting c = {0};
  uint32_t current = CLV__NONE;
  for (uint32_t n = 0; n < m->problem->node_count; ++n) {
    if (is_view(m, n)) continue;
    if (m->devices[n] != current || needs_split(m, &c, n)) {
      ++c.count;
      c.inputs = 0;
      c.streams = false;
      current = m->devices[n];
    }
    add_copies(m, &c, n);
    m->splits[n] = c.count;
  }
}

static void run_model(model *m, const clv__problem *problem, uint32_t rules) {
  *m = (model){.problem = problem, .rules = rules, .last = problem->device_count - 1};
  assert_true(problem->node_count <= MAX_NODES && problem->value_count <= MAX_VALUES && problem->weight_count < MAX_WEIGHTS);
  size_t size = sizeof m->devices;
  first_pass(m);
  memcpy(m->passes[0], m->devices, size);
  for (uint32_t i = 0; i < 4; ++i) {
    sweep(m, i % 2 == 1, i >= 2);
    memcpy(m->passes[1 + i], m->devices, size);
  }
  third_pass(m);
  memcpy(m->passes[5], m->devices, size);
  fifth_pass(m);
}

/* ---- The comparison ---- */

/* Returns the name of the first pass after which the placing differs from the model; NULL if none. `cut`: compare pass 5
 * too. */
static const char *first_difference(const model *m, const clv__placing *placing, bool cut) {
  uint32_t before = CLV__NONE;
  for (uint32_t i = 0; i < 6; ++i) {
    for (uint32_t n = 0; n < m->problem->node_count; ++n) {
      if (!is_view(m, n) && placing->passes[i].devices[n] != m->passes[i][n]) return placing->passes[i].name;
    }
  }
  for (uint32_t n = 0; n < m->problem->node_count; ++n) { /* after pass 4, every view is with its source */
    if (is_view(m, n) && placing->passes[6].devices[n] != where(m, m->problem->reads[m->problem->read_offsets[n]])) return "4";
  }
  for (uint32_t n = 0; cut && n < m->problem->node_count; ++n) {
    if (is_view(m, n)) continue;
    const uint32_t *partitions = placing->cut.partition_of;
    bool together = before != CLV__NONE && partitions[before] == partitions[n];
    if (before != CLV__NONE && together != (m->splits[before] == m->splits[n])) return "5";
    before = n;
  }
  return NULL;
}

/* Changes the views to what ggml calls views: every device supports them and none is pinned. A view with several operands
 * becomes an ordinary node. */
static void make_plain_views(clv__problem *problem) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if ((problem->flags[n] & CLV__NODE_VIEW) == 0) continue;
    if (problem->read_offsets[n + 1] - problem->read_offsets[n] == 1) {
      ((uint16_t *)problem->supports)[n] = (uint16_t)((1u << problem->device_count) - 1);
      ((uint32_t *)problem->pins)[n] = CLV__NONE;
    } else {
      ((uint8_t *)problem->flags)[n] &= (uint8_t)~CLV__NODE_VIEW;
    }
  }
}

/* Changes the problem so that ggml could have it too: the last device runs every node, every weight is placed on a device that
 * can run its readers, and no value is placed. Returns false, and changes nothing, if the last device is not in host memory. */
static bool make_plain_world(clv__problem *problem) {
  uint32_t last = problem->device_count - 1;
  if (problem->spaces[last] != 0) return false;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    ((uint16_t *)problem->supports)[n] |= (uint16_t)(1u << last);
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      uint32_t *home = (uint32_t *)&problem->weight_homes[problem->weights[k]];
      if (*home == CLV__NONE || !clv__can_run(problem, n, *home)) *home = last;
    }
  }
  for (uint32_t v = 0; v < problem->value_count; ++v) ((uint32_t *)problem->value_homes)[v] = CLV__NONE;
  return true;
}

/* Returns whether any node runs in a memory other than that of one of its weights. */
static bool moves_weights(const model *m) {
  uint32_t elsewhere = 0;
  cutting c = {0};
  for (uint32_t n = 0; n < m->problem->node_count && elsewhere == 0; ++n) {
    if (!is_view(m, n)) fresh_weights(m, &c, n, &elsewhere);
  }
  return elsewhere > 0;
}

static const test_problem_options wide = {
    .min_nodes = 4, .max_nodes = MAX_NODES, .min_devices = 2, .max_devices = 4, .shape = TEST_SHAPE_COUNT};

static void place(const clv__problem *problem, clv__arena *arena, clv__placing *placing) {
  clv__place_input input = {.problem = problem, .split = CLV__SPLIT_LINEAR, .record_passes = true};
  clv_error error;
  assert_ok(clv__place_propagate(&input, arena, placing, &error), error);
  assert_int_equal(placing->pass_count, 8);
}

/* Checks that `propagate` agrees with the model with all rules. Counts in `shows`, by rule, the problems in which it differs
 * from the model without that rule. */
static void compare(const clv__problem *problem, uint64_t seed, uint32_t *shows) {
  uint32_t all = (1u << RULE_COUNT) - 1;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  test_problem_at(problem, seed, "propagate");
  clv__placing placing;
  place(problem, &arena, &placing);
  model m;
  run_model(&m, problem, all);
  const char *pass = first_difference(&m, &placing, true);
  if (pass != NULL) test_problem_fail(placing.devices, "pass %s differs from the model", pass);
  for (uint32_t r = 0; r < RULE_COUNT; ++r) {
    run_model(&m, problem, all & ~(1u << r));
    shows[r] += first_difference(&m, &placing, true) != NULL;
  }
  clv__arena_finish(&arena);
}

/* Draws a problem of many inputs, some of them placed, and of nodes that read many values, so that the limit of copies is
 * reached. It has no weights and no views. */
static const clv__problem *draw_wide(small *s, uint64_t seed) {
  static const uint32_t spaces[][3] = {{1, 0, 0}, {1, 2, 0}, {1, 1, 0}};
  uint64_t random = seed;
  uint32_t device_count = 2 + seed % 2, inputs = 20 + (uint32_t)(test_random(&random) % 30);
  small_begin(s, device_count, device_count == 2 ? spaces[0] : spaces[1 + test_random(&random) % 2], inputs);
  for (uint32_t v = 0; v < inputs; ++v) {
    if (test_random(&random) % 2 == 0) s->value_homes[v] = (uint32_t)(test_random(&random) % device_count);
  }
  for (uint32_t n = 0; n < 30; ++n) {
    uint32_t reads[12], count = 0, most = 1 + (uint32_t)(test_random(&random) % 12), known = inputs + n;
    for (uint32_t i = 0; i < most; ++i) {
      uint32_t value = (uint32_t)(test_random(&random) % known), at = 0;
      while (at < count && reads[at] != value) ++at;
      if (at == count) reads[count++] = value;
    }
    uint32_t runs = test_random(&random) % 8 == 0 ? SMALL_ALL : 1u << test_random(&random) % 8 % device_count;
    small_node_of(s, n % 6 == 0 ? runs : SMALL_ALL, count, reads);
    if (test_random(&random) % 10 == 0) small_pin(s, (uint32_t)__builtin_ctz(s->supports[n]));
  }
  return small_end(s);
}

static void each_difference_is_named(void **state) {
  (void)state;
  uint32_t shows[RULE_COUNT] = {0};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    test_problem_options options = wide;
    options.features = TEST_ALL & ~(uint32_t)(TEST_LIMITS | TEST_HOSTED);
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    make_plain_views(problem);
    compare(problem, seed, shows);
    clv__arena_finish(&arena);
    small s;
    compare(draw_wide(&s, seed), seed, shows);
  }
  for (uint32_t r = 0; r < RULE_COUNT; ++r) {
    print_message("%s: shows in %u of 6000 problems\n", rule_names[r], shows[r]);
    assert_true(shows[r] > 0);
  }
}

static void without_rules_in_its_own_world(void **state) {
  (void)state;
  uint32_t placed = 0, cut = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    test_problem_options options = wide;
    options.features = TEST_PARTIAL | TEST_VIEWS | TEST_WEIGHTS | TEST_HOMES;
    clv__problem *problem = test_problem_make(seed, &options, &arena);
    make_plain_views(problem);
    if (make_plain_world(problem)) {
      test_problem_at(problem, seed, "propagate");
      clv__placing placing;
      place(problem, &arena, &placing);
      model m;
      run_model(&m, problem, 0);
      bool compares_cut = !moves_weights(&m);
      const char *pass = first_difference(&m, &placing, compares_cut);
      if (pass != NULL) test_problem_fail(placing.devices, "pass %s differs from ggml's", pass);
      ++placed;
      cut += compares_cut && placing.cut.count > 1;
    }
    clv__arena_finish(&arena);
  }
  print_message("%u problems, %u of them with a cut to compare\n", placed, cut);
  assert_true(placed > 1000 && cut > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_difference_is_named),
      cmocka_unit_test(without_rules_in_its_own_world),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
