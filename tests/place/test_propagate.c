// size-ok: one small graph per rule, read beside docs/placement.md
/* `propagate` and `propagate-graph`, pass by pass: worked examples with all devices and causes, and properties of each pass on
 * random problems. */
#include "place/propagate/propagate.h"

#include "place/list_cut.h"
#include "problem_checks.h"
#include "small.h"

enum { GPU, CPU };
static const uint32_t gpu_and_cpu[] = {1, 0}, three_of_two[] = {1, 0, 0};

typedef struct outcome {
  clv__arena arena;
  const clv__problem *problem;
  clv__placing placing;
  clv_status status;
  clv_error error;
} outcome;

static void propagate(outcome *o, const clv__problem *problem, bool on_edges) {
  clv__place_input input = {.problem = problem, .split = CLV__SPLIT_LINEAR, .record_passes = true};
  *o = (outcome){.problem = problem};
  clv__arena_init(&o->arena, clv__allocator_default());
  o->status = (on_edges ? clv__place_propagate_graph : clv__place_propagate)(&input, &o->arena, &o->placing, &o->error);
}

static void propagate_ok(outcome *o, const clv__problem *problem, bool on_edges) {
  propagate(o, problem, on_edges);
  assert_ok(o->status, o->error);
  assert_int_equal(o->placing.pass_count, 8);
}

static const clv__pass *pass_of(const outcome *o, const char *name) {
  for (uint32_t i = 0; i < o->placing.pass_count; ++i) {
    if (strcmp(o->placing.passes[i].name, name) == 0) return &o->placing.passes[i];
  }
  fail_msg("there is no pass '%s'", name);
  return NULL;
}

/* Compares the devices of all nodes after a pass, as in "01-" (- for none). */
static void expect_pass(const outcome *o, const char *name, const char *devices) {
  char text[SMALL_NODES + 1];
  const char *is = small_devices(pass_of(o, name)->devices, o->problem->node_count, text);
  if (strcmp(is, devices) != 0) fail_msg("after pass %s, the devices of the nodes are %s, expected %s", name, is, devices);
}

static void expect_cause(const outcome *o, uint32_t node, const char *cause) {
  assert_string_equal(o->placing.causes[node], cause);
}

static void expect_partition(const outcome *o, uint32_t partition, uint32_t device, uint32_t count, const uint32_t *nodes) {
  const clv__cut *cut = &o->placing.cut;
  assert_true(o->placing.has_cut && partition < cut->count);
  assert_int_equal(cut->devices[partition], device);
  assert_int_equal(cut->offsets[partition + 1] - cut->offsets[partition], count);
  for (uint32_t i = 0; i < count; ++i) assert_int_equal(cut->nodes[cut->offsets[partition] + i], nodes[i]);
}
#define NODES(...)                                                     \
  sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]) { \
    __VA_ARGS__                                                        \
  }

/* Compares the values that are copied for a partition according to pass 5. */
static void expect_inputs(const outcome *o, uint32_t partition, uint32_t count, const uint32_t *values) {
  const clv__pass *pass = pass_of(o, "5");
  uint32_t found = 0;
  for (uint32_t i = 0; i < pass->copies->count; ++i) {
    const clv__copy *move = &pass->copies->items[i];
    if (move->before != partition || partition == pass->cut->count) continue;
    assert_true(found < count);
    assert_int_equal(move->value, values[found++]);
  }
  assert_int_equal(found, count);
}

/* ---- Worked examples ---- */

static void two_splits_of_six_nodes(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  for (uint32_t n = 0, value = 0; n < 6; ++n) {
    value = small_node(&s, SMALL_ALL, value);
    small_weight(&s, 1, n < 3 ? GPU : CPU);
  }
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  for (uint32_t n = 0; n < 6; ++n) expect_cause(&o, n, "1.wgt1");
  assert_int_equal(o.placing.cut.count, 2);
  expect_partition(&o, 0, GPU, NODES(0, 1, 2));
  expect_partition(&o, 1, CPU, NODES(3, 4, 5));
  clv__arena_finish(&o.arena);
}

static void inputs_of_the_second_split(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  uint32_t x = small_node(&s, 1u << GPU, 0);
  uint32_t node2 = x = small_node(&s, 1u << GPU, x);
  x = small_node(&s, 1u << CPU, x);
  small_node(&s, 1u << CPU, x);
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 2);
  expect_partition(&o, 0, GPU, NODES(0, 1));
  expect_partition(&o, 1, CPU, NODES(2, 3));
  expect_inputs(&o, 0, 1, (uint32_t[]){0});
  expect_inputs(&o, 1, 1, &node2);
  clv__arena_finish(&o.arena);
}

static void sweeps_fill_the_gaps(void **state) {
  (void)state;
  for (int on_edges = 0; on_edges < 2; ++on_edges) {
    small s;
    small_begin(&s, 2, gpu_and_cpu, 1);
    for (uint32_t n = 0, value = 0; n < 5; ++n) {
      value = small_node(&s, SMALL_ALL, value);
      if (n == 2 || n == 4) small_weight(&s, 1, GPU);
    }
    outcome o;
    propagate_ok(&o, small_end(&s), on_edges);
    expect_pass(&o, "1", "--0-0");
    expect_pass(&o, "2a", "--000");
    expect_pass(&o, "2b", "00000");
    expect_cause(&o, 0, "2b.up");
    expect_cause(&o, 1, "2b.up");
    expect_cause(&o, 2, "1.wgt1");
    expect_cause(&o, 3, "2a.down");
    assert_int_equal(o.placing.cut.count, 1);
    clv__arena_finish(&o.arena);
  }
}

static void nothing_allocated(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 2);
  small_node(&s, SMALL_ALL, 0, 1);
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  for (uint32_t i = 0; i < o.placing.pass_count; ++i) {
    const clv__pass *pass = &o.placing.passes[i];
    bool is_settled = strcmp(pass->name, "3") >= 0;
    for (uint32_t v = 0; v < 2; ++v) {
      assert_int_equal(pass->value_devices[v], CPU);
      assert_string_equal(pass->value_causes[v], "1.inp");
    }
    assert_int_equal(pass->devices[0], is_settled ? CPU : CLV__NONE);
    assert_string_equal(pass->causes[0], is_settled ? "3.best" : "");
    assert_int_equal(pass->value_devices[2], pass->devices[0]);
  }
  clv__arena_finish(&o.arena);
}

/* The last device spreads only after the others. A device also spreads across a node that it does not support. */
static void the_four_sweeps(void **state) {
  (void)state;
  for (int on_edges = 0; on_edges < 2; ++on_edges) {
    small s;
    small_begin(&s, 2, gpu_and_cpu, 1);
    uint32_t x = small_node(&s, 1u << CPU, 0); /* node 0: sweep d gives it the cpu of node 1 */
    x = small_node(&s, SMALL_ALL, x);          /* node 1: on the cpu, because its weight is there */
    small_weight(&s, 0, CPU);
    x = small_node(&s, SMALL_ALL, x); /* node 2: sweep b gives it the gpu of node 3 */
    x = small_node(&s, SMALL_ALL, x); /* node 3: on the gpu, because its weight is there */
    small_weight(&s, 2, GPU);
    x = small_node(&s, 1u << CPU, x); /* node 4: the gpu does not support it */
    x = small_node(&s, SMALL_ALL, x); /* node 5: sweep a gives it the gpu of node 3, across node 4 */
    x = small_node(&s, SMALL_ALL, x); /* node 6: pinned to the cpu */
    small_pin(&s, CPU);
    small_node(&s, SMALL_ALL, x); /* node 7: sweep c gives it the cpu of node 6 */
    outcome o;
    propagate_ok(&o, small_end(&s), on_edges);
    expect_pass(&o, "1", "-1-0--1-");
    expect_pass(&o, "2a", "-1-0-01-");
    expect_pass(&o, "2b", "-100-01-");
    expect_pass(&o, "2c", "-100-011");
    expect_pass(&o, "2d", on_edges ? "1100-011" : "1100-011");
    expect_pass(&o, "3", "11001011");
    static const char *const causes[] = {"2d.up", "1.wgt0", "2b.up", "1.wgt2", "3.best", "2a.down", "usr", "2c.down"};
    for (uint32_t n = 0; n < 8; ++n) expect_cause(&o, n, causes[n]);
    clv__arena_finish(&o.arena);
  }
}

/* Two chains alternate in the list of nodes, so neighbours in the list are not neighbours in the graph. `propagate` spreads
 * devices along the list, `propagate-graph` along the edges. */
static void edges_and_not_neighbours(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 2);
  uint32_t a = small_node(&s, SMALL_ALL, 0);
  small_weight(&s, 1, GPU);
  uint32_t b = small_node(&s, SMALL_ALL, 1);
  small_weight(&s, 1, CPU);
  a = small_node(&s, SMALL_ALL, a);
  b = small_node(&s, SMALL_ALL, b);
  b = small_node(&s, SMALL_ALL, b);
  a = small_node(&s, SMALL_ALL, a);
  small_node(&s, SMALL_ALL, a, b);
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  expect_pass(&o, "2d", "0111111");
  clv__arena_finish(&o.arena);
  propagate_ok(&o, &s.problem, true);
  expect_pass(&o, "2a", "010--00"); /* the gpu spreads along its own chain, and into the join */
  expect_pass(&o, "2d", "0100000");
  expect_cause(&o, 3, "2b.up");
  clv__arena_finish(&o.arena);
}

/* If several devices arrive along edges, the node gets the one that arrives most often among those that can run it; among ties,
 * the first. */
static void the_strongest_flow(void **state) {
  (void)state;
  static const uint32_t spaces[] = {1, 2, 0};
  small s;
  small_begin(&s, 3, spaces, 1);
  uint32_t a = small_node(&s, SMALL_ALL, 0);
  small_pin(&s, 0);
  uint32_t b = small_node(&s, SMALL_ALL, 0);
  small_pin(&s, 1);
  uint32_t c = small_node(&s, SMALL_ALL, 0);
  small_pin(&s, 1);
  small_node(&s, SMALL_ALL, a, b, c);        /* node 3: device 1 arrives twice, device 0 once */
  small_node(&s, SMALL_ALL, a, b);           /* node 4: a tie of devices 0 and 1 */
  small_node(&s, 1 | 4, a, b, c);            /* node 5: device 1 arrives most often, but cannot run it */
  uint32_t d = small_node(&s, 4, a, b, c);   /* node 6: neither can run it, so device 1 is passed on */
  uint32_t v = small_view(&s, SMALL_ALL, d); /* node 7: device 1 is passed on through a view, too */
  small_node(&s, SMALL_ALL, v);              /* node 8 */
  outcome o;
  propagate_ok(&o, small_end(&s), true);
  expect_pass(&o, "2a", "011100--1");
  clv__arena_finish(&o.arena);
}

static void buffers_weights_and_offload(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  uint32_t x = small_node(&s, SMALL_ALL, 0); /* node 0: the user put its output on the gpu */
  s.value_homes[x] = GPU;
  x = small_node(&s, 1u << CPU, x); /* node 1: the user put its output on the gpu, which cannot run it */
  s.value_homes[x] = GPU;
  x = small_node(&s, SMALL_ALL, x); /* node 2: its weight is in host memory */
  small_weight(&s, 1, CLV__NONE);
  x = small_node(&s, SMALL_ALL, x); /* node 3: its weight is in host memory, and the gpu prefers to run it */
  small_weight(&s, 1, CLV__NONE);
  s.prefers[3] = 1u << GPU;
  x = small_node(&s, SMALL_ALL, x); /* node 4: the gpu prefers to run it, which is ignored for a node without weights */
  s.prefers[4] = 1u << GPU;
  small_pin(&s, CPU);
  x = small_node(&s, SMALL_ALL, x); /* node 5: its weight is so small that it is ignored */
  small_weight(&s, 1, GPU);
  s.flags[5] = CLV__NODE_LIGHT_WEIGHT;
  x = small_node(&s, 1u << CPU, x); /* node 6: the device of its first weight cannot run it */
  small_weight(&s, 1, GPU);
  small_weight(&s, 2, CPU);
  x = small_node(&s, SMALL_ALL, x); /* node 7: the user put a view of its output on the gpu */
  x = small_view(&s, SMALL_ALL, x);
  s.value_homes[x] = GPU;
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  expect_pass(&o, "1", "0-101-10-");
  static const char *const causes[] = {"1.dst", "2d.up", "1.wgt1", "1.off", "usr", "2c.down", "1.wgt2", "1.dst", "4.vsrc"};
  for (uint32_t n = 0; n < 9; ++n) expect_cause(&o, n, causes[n]);
  clv__arena_finish(&o.arena);
}

static void prefers_asks_only_devices_before_the_host(void **state) {
  (void)state;
  small s;
  static const uint32_t spaces[] = {0, 1, 0}; /* devices: 0 works in host memory, 1 is a gpu, 2 is the cpu */
  small_begin(&s, 3, spaces, 1);
  uint32_t x = small_node(&s, SMALL_ALL, 0); /* runs on device 0, the first one in host memory */
  small_weight(&s, 1, CLV__NONE);
  s.prefers[0] = SMALL_ALL;
  small_node(&s, 6, x); /* device 0 cannot run it */
  small_weight(&s, 1, CLV__NONE);
  s.prefers[1] = SMALL_ALL;
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  expect_pass(&o, "1", "01");
  expect_cause(&o, 0, "1.wgt1");
  expect_cause(&o, 1, "1.off");
  clv__arena_finish(&o.arena);
}

/* A light weight that the user did not place goes to its reader. Other weights are in host memory, or where the user put
 * them. */
static void weights_after_each_pass(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  uint32_t x = small_node(&s, SMALL_ALL, 0);
  small_weight(&s, 1, GPU);
  x = small_node(&s, SMALL_ALL, x);
  small_weight(&s, 1, CLV__NONE);
  s.flags[1] = CLV__NODE_LIGHT_WEIGHT;
  small_node(&s, SMALL_ALL, x);
  small_weight(&s, 1, CLV__NONE);
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  char text[4];
  assert_string_equal(small_devices(pass_of(&o, "1")->weight_devices, 3, text), "0-1");
  assert_string_equal(small_devices(pass_of(&o, "3")->weight_devices, 3, text), "0-1");
  assert_string_equal(small_devices(pass_of(&o, "4")->weight_devices, 3, text), "001");
  assert_string_equal(pass_of(&o, "3")->weight_causes[1], "");
  assert_string_equal(pass_of(&o, "4")->weight_causes[1], "4.cur");
  assert_string_equal(pass_of(&o, "5")->weight_causes[0], "1.dst");
  clv__arena_finish(&o.arena);
}

/* Pass 3: a node goes to the device that can read most of its inputs (a view counts where its source is). Among ties, or if
 * none can read any, it goes to the first. */
static void best_supported_inputs(void **state) {
  (void)state;
  small s;
  static const uint32_t spaces[] = {1, 2, 3, 0};
  small_begin(&s, 4, spaces, 1);
  uint32_t a = small_node(&s, SMALL_ALL, 0);
  small_pin(&s, 0);
  uint32_t b = small_node(&s, SMALL_ALL, 0);
  small_pin(&s, 1);
  uint32_t view = small_view(&s, SMALL_ALL, b);
  small_node(&s, 6, a, b, view); /* node 3: device 1 has two of its three inputs, one of them through a view */
  small_pin(&s, CLV__NONE);
  outcome o;
  const clv__problem *problem = small_end(&s);
  propagate_ok(&o, problem, false);
  expect_pass(&o, "2d", "01-1"); /* device 1 spread from a neighbour in the list */
  clv__arena_finish(&o.arena);
  for (int i = 0; i < 4; ++i) { /* pass 3 alone, without the sweeps of pass 2 */
    static const uint16_t supports[] = {7, 5, 4 | 8, 8 | 4};
    static const uint32_t expected[] = {1, 0, 2, 2};
    uint32_t devices[] = {0, 1, CLV__NONE, CLV__NONE};
    const char *causes[] = {"usr", "usr", "", ""};
    s.supports[3] = supports[i];
    clv__propagation p = {problem, devices, causes, 3, 1};
    clv_error error;
    assert_ok(clv__propagate_best(&p, &error), error);
    assert_int_equal(devices[3], expected[i]);
    assert_string_equal(causes[3], "3.best");
    assert_string_equal(causes[2], "");
    clv__propagate_views(&p);
    assert_int_equal(devices[2], 1);
    assert_string_equal(causes[2], "4.vsrc");
  }
}

/* With the devices gpu, fast host device, and cpu: nodes on the cpu that read only host memory move to the fast host device,
 * unless they are pinned. */
static void upgrade_in_one_memory(void **state) {
  (void)state;
  static const uint32_t spaces[] = {1, 0, 0};
  small s;
  small_begin(&s, 3, spaces, 1);
  uint32_t x = small_node(&s, SMALL_ALL, 0); /* node 0: stays, because it is pinned */
  small_pin(&s, 2);
  uint32_t y = small_node(&s, 4 | 2, x); /* node 1: upgraded */
  uint32_t z = small_node(&s, 1, y);     /* node 2: only the gpu can run it */
  small_node(&s, 4 | 2, y, z);           /* node 3: stays, because it reads gpu memory */
  small_node(&s, 4, y);                  /* node 4: stays, because only the cpu supports it */
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  expect_pass(&o, "2d", "22-22");
  expect_pass(&o, "3", "21022");
  expect_cause(&o, 0, "usr");
  expect_cause(&o, 1, "3.upg");
  expect_cause(&o, 3, "2c.down");
  clv__arena_finish(&o.arena);
}

static void views_make_no_boundary(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  uint32_t lead = small_view(&s, SMALL_ALL, 0); /* node 0: as the first in the list, it joins the first partition, on the gpu */
  uint32_t a = small_node(&s, 1, lead);         /* node 1: on the gpu */
  uint32_t b = small_node(&s, 2, a);            /* node 2: on the cpu */
  uint32_t late = small_view(&s, SMALL_ALL, a); /* node 3: between nodes of the cpu, but its source is on the gpu */
  b = small_node(&s, 2, b, late);               /* node 4: on the cpu */
  uint32_t mid = small_view(&s, 2, b);          /* node 5: on the cpu */
  uint32_t c = small_node(&s, 1, mid);          /* node 6: on the gpu */
  uint32_t own = small_view(&s, 2, c);          /* node 7: its source's device cannot run it, so it is a partition by itself */
  small_node(&s, 1, own);                       /* node 8: on the gpu */
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 5);
  expect_partition(&o, 0, GPU, NODES(0, 1, 3));
  expect_partition(&o, 1, CPU, NODES(2, 4, 5));
  expect_partition(&o, 2, GPU, NODES(6));
  expect_partition(&o, 3, CPU, NODES(7));
  expect_partition(&o, 4, GPU, NODES(8));
  expect_cause(&o, 0, "5.cur");
  expect_cause(&o, 3, "4.vsrc");
  expect_cause(&o, 7, "3.best");
  expect_pass(&o, "3", "-01-1-010");
  expect_pass(&o, "4", "101011010");
  expect_pass(&o, "5", "001011010");
  clv__arena_finish(&o.arena);
}

/* Inputs start in host memory. Their views stay there if a host node reads them, and join a device only if no host node
 * does. */
static void views_of_inputs_follow_their_readers(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 2);
  uint32_t a = small_node(&s, 1, 0);            /* 0: gpu */
  uint32_t late = small_view(&s, SMALL_ALL, 1); /* 1: within the gpu's run, but only the cpu reads it */
  a = small_node(&s, 1, a);                     /* 2: gpu */
  small_node(&s, 2, a, late);                   /* 3: cpu */
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 2);
  expect_partition(&o, 0, GPU, NODES(0, 2));
  expect_partition(&o, 1, CPU, NODES(1, 3));
  expect_cause(&o, 1, "4.vsrc");
  expect_inputs(&o, 1, 1, &a);
  clv__arena_finish(&o.arena);

  small_begin(&s, 2, gpu_and_cpu, 2);
  a = small_node(&s, 2, 0); /* 0: cpu */
  uint32_t view = small_view(&s, SMALL_ALL, 1);
  uint32_t again = small_view(&s, SMALL_ALL, view);
  a = small_node(&s, 2, a);    /* 3: cpu */
  small_node(&s, 1, a, again); /* 4: gpu */
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 2);
  expect_partition(&o, 0, CPU, NODES(0, 3));
  expect_partition(&o, 1, GPU, NODES(1, 2, 4));
  expect_cause(&o, 1, "5.cur");
  expect_inputs(&o, 1, 2, (uint32_t[]){1, a}); /* the view's source is copied, and the view is not */
  clv__arena_finish(&o.arena);

  small_begin(&s, 2, gpu_and_cpu, 1);
  view = small_view(&s, SMALL_ALL, 0); /* 0: first read by the gpu, then by the cpu */
  a = small_node(&s, 1, view);
  small_node(&s, 2, a, view);
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 3);
  expect_partition(&o, 0, CPU, NODES(0));
  expect_inputs(&o, 1, 1, &view);
  expect_inputs(&o, 2, 1, &a);
  clv__arena_finish(&o.arena);
}

/* ---- Pass 5: limits and streaming ---- */

/* A graph input starts in host memory even if the user placed it on a device. So it counts as a copied value of a partition
 * on that device, but not of a partition on the host. */
static void placed_inputs_are_copied(void **state) {
  (void)state;
  for (uint32_t device = GPU; device <= CPU; ++device) {
    small s;
    outcome o;
    small_begin(&s, 2, gpu_and_cpu, 35);
    uint32_t x = small_node(&s, 1u << device, 0);
    for (uint32_t n = 1; n < 35; ++n) x = small_node(&s, 1u << device, x, n);
    for (uint32_t v = 0; v < 35; ++v) s.value_homes[v] = GPU;
    propagate_ok(&o, small_end(&s), false);
    assert_int_equal(o.placing.cut.count, device == GPU ? 2 : 1);
    if (device == GPU) assert_int_equal(o.placing.cut.offsets[1], 30);
    clv__arena_finish(&o.arena);
  }
}

/* The shape operand of a view is not data: it does not attract a view that its source's device cannot run. */
static void shapes_attract_no_view(void **state) {
  (void)state;
  static const uint32_t spaces[] = {1, 2, 0};
  small s;
  outcome o;
  small_begin(&s, 3, spaces, 1);
  uint32_t x = small_node(&s, 1, 0);
  small_view(&s, 6, x);
  small_weight(&s, 1, CLV__NONE);
  propagate_ok(&o, small_end(&s), false);
  expect_pass(&o, "3", "01"); /* no device that can run the view can read its source, so the first of them gets the view */
  clv__arena_finish(&o.arena);
}

/* Makes a problem of `width` nodes on the cpu, and of gpu nodes that read their values, `reads` values each. */
static void feed(small *s, uint32_t width, uint32_t reads) {
  uint32_t values[SMALL_NODES];
  small_begin(s, 2, gpu_and_cpu, 1);
  for (uint32_t n = 0; n < width; ++n) values[n] = small_node(s, 1u << CPU, 0);
  for (uint32_t n = 0; n < width; n += reads) small_node_of(s, 1u << GPU, n + reads > width ? width - n : reads, &values[n]);
}

static void thirty_inputs(void **state) {
  (void)state;
  small s;
  outcome o;
  feed(&s, 30, 30);
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 2);
  clv__arena_finish(&o.arena);

  feed(&s, 32, 31); /* one node alone exceeds the default limit of 30 inputs; its device states no limit */
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 3);
  expect_partition(&o, 1, GPU, NODES(32));
  expect_partition(&o, 2, GPU, NODES(33));
  clv__arena_finish(&o.arena);

  feed(&s, 36, 6); /* five nodes with six inputs fill a partition exactly */
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 3);
  expect_partition(&o, 1, GPU, NODES(36, 37, 38, 39, 40));
  expect_partition(&o, 2, GPU, NODES(41));
  clv__arena_finish(&o.arena);

  feed(&s, 35, 7); /* four nodes have 28 inputs: no room for 7 more */
  propagate_ok(&o, small_end(&s), false);
  expect_partition(&o, 1, GPU, NODES(35, 36, 37, 38));
  clv__arena_finish(&o.arena);

  feed(&s, 40, 40); /* the device states a higher limit */
  s.limits[GPU].max_inputs = 40;
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 2);
  clv__arena_finish(&o.arena);
  s.limits[GPU].max_inputs = 39;
  propagate(&o, &s.problem, false);
  assert_int_equal(o.status, CLV_NOT_SUPPORTED);
  clv__arena_finish(&o.arena);
}

/* The limit on inputs does not apply to a value that was copied before, or that was computed in the same memory. */
static void copies_are_shared(void **state) {
  (void)state;
  small s;
  uint32_t values[30];
  small_begin(&s, 2, gpu_and_cpu, 1);
  for (uint32_t n = 0; n < 30; ++n) values[n] = small_node(&s, 1u << CPU, 0);
  small_node_of(&s, 1u << GPU, 30, values);
  uint32_t last = small_node_of(&s, 1u << GPU, 30, values);
  last = small_node(&s, 1u << CPU, last);
  values[29] = last;
  small_node_of(&s, 1u << GPU, 30, values); /* reads one new value, and 29 that are already on the gpu */
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 4);
  expect_partition(&o, 1, GPU, NODES(30, 31));
  expect_inputs(&o, 3, 1, &last);
  clv__arena_finish(&o.arena);
}

/* A limit that the device states counts each value from outside the partition once, and no value computed inside it. */
static void stated_limits_are_exact(void **state) {
  (void)state;
  small s;
  outcome o;
  small_begin(&s, 2, gpu_and_cpu, 4);
  s.limits[GPU].max_inputs = 3;
  uint32_t x = small_node(&s, 1, 0, 1, 2);
  x = small_node(&s, 1, x, 2, 1, 0);
  x = small_node(&s, 1, x, 0);
  x = small_node(&s, 1, x, 3); /* a fourth value from outside: begins a partition */
  small_node(&s, 1, x, 3, 0);
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 2);
  expect_partition(&o, 0, GPU, NODES(0, 1, 2));
  expect_partition(&o, 1, GPU, NODES(3, 4));
  clv__arena_finish(&o.arena);
}

static void streamed_weights_share_a_buffer(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  uint32_t x = small_node(&s, 1u << GPU, 0); /* node 0: reads no streamed weight */
  x = small_node(&s, 1u << GPU, x);          /* node 1 */
  uint32_t shared = small_weight(&s, 1, CPU);
  x = small_node(&s, 1u << GPU, x); /* node 2: reads the same weight, which is already there */
  s.weights[s.weight_offsets[s.problem.node_count]++] = shared;
  x = small_node(&s, 1u << GPU, x); /* node 3: another streamed weight begins a partition */
  small_weight(&s, 1, CPU);
  x = small_node(&s, 1u << GPU, x); /* node 4: the user has not placed its weight, which is therefore uploaded only once */
  small_weight(&s, 1, CLV__NONE);
  small_node(&s, 1u << GPU, x); /* node 5 */
  small_weight(&s, 1, CPU);
  outcome o;
  propagate_ok(&o, small_end(&s), false);
  assert_int_equal(o.placing.cut.count, 3);
  expect_partition(&o, 0, GPU, NODES(0, 1, 2));
  expect_partition(&o, 1, GPU, NODES(3, 4));
  expect_partition(&o, 2, GPU, NODES(5));
  assert_non_null(o.placing.streamed);
  char text[5];
  for (uint32_t w = 0; w < 4; ++w) text[w] = (char)('0' + o.placing.streamed[w]);
  text[4] = '\0';
  assert_string_equal(text, "1101");
  clv__arena_finish(&o.arena);
}

static void the_last_device_counts_as_host(void **state) {
  (void)state;
  static const uint32_t none_in_host[] = {1, 2};
  static const char *const names[] = {"gpu", "npu"}, *const usual[] = {"gpu", "cpu"};
  small s;
  outcome o;
  for (int i = 0; i < 4; ++i) {
    small_begin(&s, 2, i == 0 ? none_in_host : gpu_and_cpu, 1);
    small_node(&s, SMALL_ALL, 0);
    small_weight(&s, 1, CLV__NONE);
    small_end(&s);
    s.problem.device_names = i == 3 ? NULL : i == 2 ? usual : names;
    propagate_ok(&o, &s.problem, false);
    expect_pass(&o, "1", "1");
    if (i >= 2) {
      assert_null(o.placing.note);
    } else {
      assert_non_null(strstr(o.placing.note, "npu"));
      assert_int_equal(strstr(o.placing.note, "does not use host memory") != NULL, i == 0);
    }
    clv__arena_finish(&o.arena);
  }
}

static void another_split_is_left_to_others(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  small_node(&s, SMALL_ALL, 0);
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv__place_input input = {.problem = small_end(&s), .split = CLV__SPLIT_CONVEX, .record_passes = true};
  clv__placing placing;
  clv_error error;
  assert_ok(clv__place_propagate(&input, &arena, &placing, &error), error);
  assert_false(placing.has_cut);
  assert_int_equal(placing.pass_count, 7);
  clv__arena_finish(&arena);
}

static void unsupported_is_named(void **state) {
  (void)state;
  small s;
  small_begin(&s, 2, gpu_and_cpu, 1);
  uint32_t x = small_node(&s, SMALL_ALL, 0);
  small_node(&s, 0, x);
  outcome o;
  propagate(&o, small_end(&s), false);
  assert_int_equal(o.status, CLV_NOT_SUPPORTED);
  assert_non_null(strstr(o.error.message, "'#1'"));
  clv__arena_finish(&o.arena);
}

/* ---- Properties ---- */

static const test_problem_options any = {
    .min_nodes = 1, .max_nodes = 60, .min_devices = 1, .max_devices = 4, .features = TEST_ALL, .shape = TEST_SHAPE_COUNT};

/* Checks that nodes keep their devices, except for upgrades and views that join a run, and that devices and causes match the
 * passes. */
static void check_passes(const clv__problem *problem, const clv__placing *placing) {
  for (uint32_t i = 0; i < placing->pass_count; ++i) {
    const clv__pass *pass = &placing->passes[i], *before = i == 0 ? NULL : &placing->passes[i - 1];
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      uint32_t device = pass->devices[n];
      bool is_view = clv__node_is_view(problem, n), is_pinned = problem->pins[n] != CLV__NONE;
      if ((device == CLV__NONE) != (pass->causes[n][0] == '\0'))
        test_problem_fail(placing->devices, "pass %s: node %u has a cause without a device, or a device without a cause",
                          pass->name, n);
      if (is_pinned && (device != problem->pins[n] || strcmp(pass->causes[n], "usr") != 0))
        test_problem_fail(placing->devices, "pass %s: node %u is pinned to device %u, but has device %d and cause '%s'",
                          pass->name, n, problem->pins[n], (int)device, pass->causes[n]);
      if (device == CLV__NONE) {
        if (pass->name[0] >= '4' || (pass->name[0] == '3' && !is_view))
          test_problem_fail(placing->devices, "pass %s: node %u has no device", pass->name, n);
        continue;
      }
      if (!clv__can_run(problem, n, device))
        test_problem_fail(placing->devices, "pass %s: node %u cannot run on its device", pass->name, n);
      if (is_view && !is_pinned && pass->name[0] < '3')
        test_problem_fail(placing->devices, "pass %s: node %u is a view, but has a device", pass->name, n);
      if (before == NULL) continue;
      bool is_new = before->devices[n] == CLV__NONE;
      size_t length = strlen(pass->name);
      if (is_new && strncmp(pass->causes[n], pass->name, length) != 0)
        test_problem_fail(placing->devices, "pass %s: node %u has the cause '%s' of another pass", pass->name, n,
                          pass->causes[n]);
      if (is_new || before->devices[n] == device) continue;
      bool upgraded = strcmp(pass->causes[n], "3.upg") == 0 && problem->spaces[device] == problem->spaces[before->devices[n]] &&
                      device < before->devices[n];
      bool joined = strcmp(pass->causes[n], "5.cur") == 0 && is_view;
      if (!upgraded && !joined)
        test_problem_fail(placing->devices, "pass %s: node %u moved, but not by an upgrade or as a view that joins a run",
                          pass->name, n);
    }
  }
}

/* Checks that no partition has only views that could have been elsewhere, and that it has at most 30 inputs if the device
 * states no limit. */
static void check_own_cut(const clv__problem *problem, const clv__placing *placing) {
  const clv__pass *last = &placing->passes[placing->pass_count - 1];
  for (uint32_t p = 0; p < placing->cut.count; ++p) {
    uint32_t copies = 0, device = placing->cut.devices[p], space = problem->spaces[device];
    if (clv__cut_is_hosted(problem, &placing->cut, p)) continue;
    for (uint32_t i = 0; i < last->copies->count; ++i)
      copies += last->copies->items[i].before == p && last->copies->items[i].to == space;
    bool may_be_apart = false;
    for (uint32_t i = placing->cut.offsets[p]; i < placing->cut.offsets[p + 1]; ++i) {
      uint32_t n = placing->cut.nodes[i];
      may_be_apart = may_be_apart || !clv__node_is_view(problem, n) || problem->pins[n] != CLV__NONE ||
                     problem->supports[n] != (1u << problem->device_count) - 1;
    }
    bool is_limited = false;
    for (uint32_t n = 0; n < problem->node_count; ++n) /* hosted views end partitions as limits do */
      is_limited = is_limited || clv__is_hosted(problem, n, placing->devices[n]);
    for (uint32_t d = 0; d < problem->device_count; ++d)
      is_limited = is_limited || problem->limits[d].max_inputs > 0 || problem->limits[d].max_nodes > 0;
    /* A first or last partition on the host may have only views of graph inputs: those that a device reads later, or
     * outputs. */
    bool is_end = (p == 0 || p + 1 == placing->cut.count) && space == 0;
    if (!may_be_apart && !is_limited && placing->cut.count > 1 && !is_end)
      test_problem_fail(placing->devices, "partition %u has only views", p);
    if (problem->limits[device].max_inputs == 0 && copies > 30)
      test_problem_fail(placing->devices, "partition %u has %u copied inputs", p, copies);
  }
}

/* Checks that no view of a graph input is computed on a device and then copied back to host memory, where its bytes already
 * are. */
static void check_input_views(const clv__problem *problem, const clv__placing *placing, const clv__copies *copies) {
  uint32_t host = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) host |= problem->spaces[d] == 0 ? 1u << d : 0;
  for (uint32_t i = 0; i < copies->count; ++i) {
    uint32_t view = copies->items[i].is_weight ? CLV__NONE : problem->producers[copies->items[i].value];
    if (copies->items[i].to != 0 || view == CLV__NONE || !clv__node_is_view(problem, view)) continue;
    bool is_plain = problem->read_offsets[view + 1] - problem->read_offsets[view] == 1; /* other views may wait for a shape */
    if (!is_plain || problem->pins[view] != CLV__NONE || (problem->supports[view] & host) == 0) continue;
    if (clv__node_source(problem, view) == CLV__NONE)
      test_problem_fail(placing->devices, "node %u, a view of a graph input, is copied back to host memory", view);
  }
}

static void random_problems(void **state) {
  (void)state;
  uint32_t parted = 0, many = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    clv__arena arena;
    clv__arena_init(&arena, clv__allocator_default());
    const clv__problem *problem = test_problem_make(seed, &any, &arena);
    for (int on_edges = 0; on_edges < 2; ++on_edges) {
      outcome o;
      test_problem_at(problem, seed, on_edges ? "propagate-graph" : "propagate");
      propagate(&o, problem, on_edges);
      if (o.status != CLV_OK) test_problem_fail(NULL, "%s", o.error.message);
      test_check_placement(problem, o.placing.devices);
      check_passes(problem, &o.placing);
      test_check_cut(problem, o.placing.devices, NULL, &o.placing.cut);
      clv__copies copies;
      assert_ok(clv__split_copies(problem, &o.placing.cut, o.placing.streamed, &arena, &copies, &o.error), o.error);
      test_check_moves(problem, &o.placing.cut, o.placing.streamed, &copies);
      check_own_cut(problem, &o.placing);
      check_input_views(problem, &o.placing, &copies);
      outcome again;
      propagate(&again, problem, on_edges);
      assert_memory_equal(again.placing.devices, o.placing.devices, problem->node_count * sizeof(uint32_t));
      assert_memory_equal(again.placing.cut.partition_of, o.placing.cut.partition_of, problem->node_count * sizeof(uint32_t));
      clv__arena_finish(&again.arena);
      clv__arena_finish(&o.arena);
      many += o.placing.cut.count > 3;
      ++parted;
    }
    clv__arena_finish(&arena);
  }
  print_message("%u placements were split; %u of them have more than 3 partitions\n", parted, many);
  assert_true(many > parted / 4);
}

/* On a chain, neighbours in the list are neighbours in the graph, so both strategies give the same result. */
static void a_chain_is_a_list(void **state) {
  (void)state;
  uint64_t random = 5;
  for (int round = 0; round < 300; ++round) {
    small s;
    small_begin(&s, 3, three_of_two, 1);
    for (uint32_t n = 0, value = 0; n < 40; ++n) {
      uint32_t supports = 1 + (uint32_t)(test_random(&random) % 7);
      bool is_view = test_random(&random) % 6 == 0;
      value = is_view ? small_view(&s, SMALL_ALL, value) : small_node(&s, supports, value);
      if (!is_view && test_random(&random) % 5 == 0) small_pin(&s, (uint32_t)__builtin_ctz(supports));
    }
    outcome list, edges;
    propagate_ok(&list, small_end(&s), false);
    propagate_ok(&edges, &s.problem, true);
    for (uint32_t i = 0; i < list.placing.pass_count; ++i) {
      for (uint32_t n = 0; n < 40; ++n) {
        assert_int_equal(list.placing.passes[i].devices[n], edges.placing.passes[i].devices[n]);
        assert_string_equal(list.placing.passes[i].causes[n], edges.placing.passes[i].causes[n]);
      }
    }
    clv__arena_finish(&list.arena);
    clv__arena_finish(&edges.arena);
  }
}

static void every_allocation_fails(void **state) {
  (void)state;
  clv__arena own;
  clv__arena_init(&own, clv__allocator_default());
  const clv__problem *problem = test_problem_make(77, &any, &own);
  for (int on_edges = 0; on_edges < 2; ++on_edges) {
    size_t failures = 0;
    for (size_t fail_at = 1;; ++fail_at) {
      test_allocator counting;
      test_allocator_init(&counting);
      counting.fail_at = fail_at;
      clv__arena arena;
      clv__arena_init(&arena, &counting.allocator);
      clv__place_input input = {.problem = problem, .split = CLV__SPLIT_LINEAR, .record_passes = true};
      clv__placing placing;
      clv_error error = {0};
      clv_status status = (on_edges ? clv__place_propagate_graph : clv__place_propagate)(&input, &arena, &placing, &error);
      bool is_through = counting.calls < fail_at;
      clv__arena_finish(&arena);
      assert_int_equal(counting.live, 0);
      if (is_through) {
        assert_ok(status, error);
        break;
      }
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
      ++failures;
    }
    assert_true(failures > 4);
  }
  clv__arena_finish(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_splits_of_six_nodes),
      cmocka_unit_test(inputs_of_the_second_split),
      cmocka_unit_test(sweeps_fill_the_gaps),
      cmocka_unit_test(nothing_allocated),
      cmocka_unit_test(the_four_sweeps),
      cmocka_unit_test(edges_and_not_neighbours),
      cmocka_unit_test(the_strongest_flow),
      cmocka_unit_test(buffers_weights_and_offload),
      cmocka_unit_test(prefers_asks_only_devices_before_the_host),
      cmocka_unit_test(weights_after_each_pass),
      cmocka_unit_test(best_supported_inputs),
      cmocka_unit_test(upgrade_in_one_memory),
      cmocka_unit_test(views_make_no_boundary),
      cmocka_unit_test(views_of_inputs_follow_their_readers),
      cmocka_unit_test(placed_inputs_are_copied),
      cmocka_unit_test(shapes_attract_no_view),
      cmocka_unit_test(thirty_inputs),
      cmocka_unit_test(copies_are_shared),
      cmocka_unit_test(stated_limits_are_exact),
      cmocka_unit_test(streamed_weights_share_a_buffer),
      cmocka_unit_test(the_last_device_counts_as_host),
      cmocka_unit_test(another_split_is_left_to_others),
      cmocka_unit_test(unsupported_is_named),
      cmocka_unit_test(random_problems),
      cmocka_unit_test(a_chain_is_a_list),
      cmocka_unit_test(every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
