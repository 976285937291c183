/* Tests rooflines: the work of groups of nodes, compared with a plain count over sets of values; the bandwidth between
 * measured sizes; and the measured peaks of the host. */
#include "cost/roofline.h"
#include "cost/signature.h"
#include "inferred.h"
#include "machine.h"

typedef struct counted {
  inferred on;
  clv__tally tally;
} counted;

static void count_graph(counted *c, clv_graph *graph) {
  clv_error error = {0};
  infer_whole(&c->on, graph);
  assert_ok(clv__tally_init(&c->tally, c->on.whole, &c->on.arena, &error), error);
}

static clv__group_work work_of(counted *c, const char *names) {
  clv_node_id nodes[16];
  char text[128];
  uint32_t count = 0;
  clv__group_work work;
  clv_error error = {0};
  snprintf(text, sizeof text, "%s", names);
  for (char *at = strtok(text, ","); at != NULL; at = strtok(NULL, ",")) {
    nodes[count] = clv__graph_find_node(c->on.graph, at);
    assert_int_not_equal(nodes[count++], CLV__NO_ID);
  }
  assert_ok(clv__tally_count(&c->tally, nodes, count, &work, &error), error);
  return work;
}

static void expect_work(counted *c, const char *names, double flops, double weights, double moved, clv__peak peak) {
  const clv__group_work work = work_of(c, names);
  if (!work.is_known || work.flops != flops || work.weight_bytes != weights || work.moved_bytes != moved || work.peak != peak)
    fail_msg("%s: the work%s is %g FLOPs, %g weight bytes, %g moved bytes, peak of %s; expected %g, %g, %g, %s", names,
             work.is_known ? "" : " (unknown)", work.flops, work.weight_bytes, work.moved_bytes, clv__peak_name(work.peak), flops,
             weights, moved, clv__peak_name(peak));
}

/* y = relu(x @ w + b) and z = y * y are outputs of the graph. Every value that enters or leaves a group counts once. */
static void counts_by_hand(void **state) {
  (void)state;
  counted c;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_weight(&g, "w", 2, DIMS(8, 16));
  test_graph_weight(&g, "b", 1, DIMS(16));
  test_graph_node(&g, "mm", "MatMul", "x,w", "t");
  test_graph_node(&g, "add", "Add", "t,b", "s");
  test_graph_node(&g, "relu", "Relu", "s", "y");
  test_graph_node(&g, "square", "Mul", "y,y", "z");
  count_graph(&c, test_graph_end(&g, "y,z"));
  expect_work(&c, "mm", 2 * 4 * 8 * 16, 512, 128 + 256, CLV__PEAK_F32);
  expect_work(&c, "add", 64, 64, 256 + 256, CLV__PEAK_F32);
  expect_work(&c, "mm,add,relu", 1024 + 128, 512 + 64, 128 + 256, CLV__PEAK_F32);
  expect_work(&c, "square", 64, 0, 256 + 256, CLV__PEAK_F32);             /* y is read twice, but counts once */
  expect_work(&c, "relu,square", 128, 0, 256 + 256 + 256, CLV__PEAK_F32); /* y is also an output of the graph */
  inferred_done(&c.on);
}

/* Special cases: a Gather reads only the rows that it selects, a product of dequantized integers has the int8 peak, and the
 * work of a node with an unknown size is unknown. */
static void counts_what_is_odd(void **state) {
  (void)state;
  counted c;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_weight(&g, "table", 2, DIMS(1000, 8));
  test_graph_input(&g, "ids", CLV_I64, 1, DIMS(3));
  test_graph_input(&g, "q", CLV_U8, 2, DIMS(4, 8));
  test_graph_input(&g, "mystery", CLV_F32, 2, DIMS(test_graph_symbol(&g, "N"), 8));
  test_graph_weight(&g, "scale", 0, NULL);
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  test_graph_node(&g, "rows", "Gather", "table,ids", "r");
  test_graph_node(&g, "dequantize", "DequantizeLinear", "q,scale", "f");
  test_graph_node(&g, "mm", "MatMul", "f,w", "m");
  test_graph_node(&g, "open", "Relu", "mystery", "o");
  count_graph(&c, test_graph_end(&g, "r,m,o"));
  expect_work(&c, "rows", 0, 3 * 8 * 4, 3 * 8 + 3 * 8 * 4, CLV__PEAK_F32);
  expect_work(&c, "mm", 512, 256, 128 + 128, CLV__PEAK_F32);
  assert_int_equal(work_of(&c, "dequantize,mm").peak, CLV__PEAK_INT8);
  assert_false(work_of(&c, "open").is_known);
  assert_false(work_of(&c, "rows,open").is_known);
  inferred_done(&c.on);
}

/* Compares the work with a count over sets of values, for random groups of nodes in random graphs. */
static void counts_like_sets(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    counted c;
    uint64_t random = seed;
    clv_error error = {0};
    count_graph(&c, test_random_graph(clv__allocator_default(), seed, 6 + (uint32_t)(seed % 30)));
    const clv_graph *graph = c.on.graph;
    uint32_t group_of[64];
    double flops = 0, wanted_flops = 0;
    for (uint32_t n = 0; n < graph->node_count; ++n) group_of[n] = (uint32_t)(test_random(&random) % 5);
    for (uint32_t k = 0; k < 5; ++k) {
      clv_node_id nodes[64];
      uint32_t count = 0;
      double weights = 0, moved = 0;
      for (uint32_t n = 0; n < graph->node_count; ++n) {
        if (group_of[n] == k) nodes[count++] = n;
      }
      for (uint32_t v = 0; v < graph->value_count; ++v) {
        const clv_node_id producer = graph->values[v].producer;
        const bool is_made = producer != CLV__NO_ID && group_of[producer] == k;
        const bool is_constant = clv__value_is_constant(graph, c.on.shapes->types, v);
        bool reads = false, others = graph->values[v].is_output;
        for (uint32_t u = graph->use_offsets[v]; u < graph->use_offsets[v + 1]; ++u) {
          reads |= group_of[graph->use_nodes[u]] == k;
          others |= group_of[graph->use_nodes[u]] != k;
        }
        const double size_bytes = clv__value_bytes(c.on.whole, v);
        if (reads && is_constant) weights += size_bytes;
        if (reads && !is_constant && !is_made) moved += size_bytes;
        if (is_made && others) moved += size_bytes;
      }
      clv__group_work work;
      assert_ok(clv__tally_count(&c.tally, nodes, count, &work, &error), error);
      assert_int_equal(work.is_known, count > 0);
      if (work.weight_bytes != weights || work.moved_bytes != moved)
        fail_msg("seed %d, group %u: %g weight bytes and %g moved bytes, expected %g and %g", (int)seed, k, work.weight_bytes,
                 work.moved_bytes, weights, moved);
      flops += work.flops;
    }
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      clv__work work;
      assert_true(clv__node_work(c.on.whole, n, &work));
      wanted_flops += work.flops;
    }
    assert_true(fabs(flops - wanted_flops) <= 1e-9 * wanted_flops);
    inferred_done(&c.on);
  }
}

static void rooflines_by_hand(void **state) {
  (void)state;
  const clv__peaks peaks = {.flops_per_second = {0, 100, 0, 0, 0},
                            .size_count = 3,
                            .sizes_bytes = {100, 1000, 10000},
                            .read_bytes_per_second = {80, 40, 10},
                            .copy_bytes_per_second = {70, 50, 5}};
  assert_true(clv__peaks_bandwidth(&peaks, 1) == 80);
  assert_true(clv__peaks_bandwidth(&peaks, 100) == 80);
  assert_true(clv__peaks_bandwidth(&peaks, 1000) == 50); /* the higher of the rates of reading (40) and copying (50) */
  assert_true(clv__peaks_bandwidth(&peaks, 1e9) == 10);
  assert_true(fabs(clv__peaks_bandwidth(&peaks, sqrt(100.0 * 1000)) - 65) <
              1e-9); /* halfway between the sizes by their logarithms */
  const clv__peaks none = {.flops_per_second = {0, 100, 0, 0, 0}};
  assert_true(clv__peaks_bandwidth(&none, 5) == 0);

  bool by_compute;
  clv__group_work work = {.is_known = true, .peak = CLV__PEAK_F32, .flops = 200, .weight_bytes = 20, .moved_bytes = 8};
  assert_true(fabs(clv__roofline_seconds(&peaks, &work, 10000, &by_compute) - (20 / 10.0 + 8 / 80.0)) < 1e-9);
  assert_false(by_compute);
  assert_true(fabs(clv__roofline_seconds(&peaks, &work, 50, &by_compute) - 2) <
              1e-9); /* with 50 resident bytes, the weights stay in a cache and are read faster */
  assert_true(by_compute);
  assert_true(clv__roofline_seconds(&none, &work, 50, &by_compute) < 0);
  work.peak = CLV__PEAK_INT8;
  assert_true(clv__roofline_seconds(&peaks, &work, 50, &by_compute) < 0); /* the int8 peak is unknown */
  work.flops = 0;
  assert_true(fabs(clv__roofline_seconds(&peaks, &work, 50, &by_compute) - 28 / 80.0) < 1e-9);
  work.is_known = false;
  assert_true(clv__roofline_seconds(&peaks, &work, 50, &by_compute) < 0);
}

/* The measured peaks of the host must be plausible. The limits are wide, because other programs may use the machine. */
static void the_hosts_own(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    clv__peaks peaks;
    clv_error error = {0};
    test_allocator counting;
    test_allocator_init(&counting);
    assert_ok(clv__peaks_of_host(threads, &counting.allocator, &peaks, &error), error);
    assert_int_equal(counting.live, 0);
    assert_int_equal(peaks.thread_count, threads);
    assert_true(peaks.flops_per_second[CLV__PEAK_F32] > 1e8 && peaks.flops_per_second[CLV__PEAK_F32] < 1e15);
    assert_true(peaks.flops_per_second[CLV__PEAK_F64] > 1e8);
    assert_true(peaks.flops_per_second[CLV__PEAK_F64] < peaks.flops_per_second[CLV__PEAK_F32] * 1.5);
    assert_int_equal(peaks.size_count, CLV__PEAK_SIZES);
    for (uint32_t i = 0; i < peaks.size_count; ++i) {
      assert_true(i == 0 || peaks.sizes_bytes[i] > peaks.sizes_bytes[i - 1]);
      assert_true(peaks.read_bytes_per_second[i] > 1e7 && peaks.read_bytes_per_second[i] < 1e14);
      assert_true(peaks.copy_bytes_per_second[i] > 1e7 && peaks.copy_bytes_per_second[i] < 1e14);
    }
  }
}

static void no_memory_for_it(void **state) {
  (void)state;
  for (size_t k = 1; k <= 9; k += 2) {
    clv__peaks peaks;
    clv_error error = {0};
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = k;
    assert_int_equal(clv__peaks_of_host(1, &counting.allocator, &peaks, &error), CLV_OUT_OF_MEMORY);
    assert_int_equal(counting.live, 0);
  }
}

/* The peaks of a device other than a CPU are measured by running nodes. They stay unknown if the device supports none of these
 * nodes. */
static void of_another_device(void **state) {
  (void)state;
  static const char only_relu[] = "{\"operators\": {\"Gather\": {}}}";
  static const char *const all[] = {"all"}, *const few[] = {only_relu};
  for (uint32_t i = 0; i < 2; ++i) {
    machine m;
    clv__peaks peaks;
    clv_error error = {0};
    machine_open(&m, "npu,cpu", 1, i == 0 ? all : few);
    assert_ok(clv__peaks_measure(m.devices, 0, 1, &peaks, &error), error);
    assert_int_equal(peaks.thread_count, 0);
    assert_int_equal(peaks.flops_per_second[CLV__PEAK_F32] > 0, i == 0);
    assert_int_equal(peaks.size_count, i == 0 ? 1 : 0);
    machine_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_by_hand),    cmocka_unit_test(counts_what_is_odd), cmocka_unit_test(counts_like_sets),
      cmocka_unit_test(rooflines_by_hand), cmocka_unit_test(the_hosts_own),      cmocka_unit_test(no_memory_for_it),
      cmocka_unit_test(of_another_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
