/* Tests the cost model: the source and the value of each price, with and without a profile, and that creating a model is fast. */
#include "machine.h"
#include "profiles.h"

#include <time.h>

#include "cost/cost.h"
#include "cost/signature.h"

static const char timed_spec[] =
    "{\"name\": \"npu\", \"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 30, \"flops_per_second\": 1e9, "
    "\"bytes_per_second\": 1e8, \"copy_latency_us\": 7, \"copy_bytes_per_second\": 1e9}}";
static const char *const timed[] = {timed_spec}, *const untimed[] = {"all"};

typedef struct priced {
  machine m;
  clv_graph *graph;
  clv__shapes *shapes;
  clv__arena arena;
  clv_graph_view *whole;
  clv__cost_model *model;
} priced;

static void price(priced *p, const char *devices, const char *const *specs, clv_graph *(*make)(const clv_allocator *),
                  const clv__profile *profile) {
  clv_error error = {0};
  machine_open(&p->m, devices, specs == NULL ? 0 : 1, specs);
  p->graph = make(&p->m.counting.allocator);
  clv__arena_init(&p->arena, p->graph->allocator);
  assert_ok(clv__shapes_infer(p->graph, NULL, 0, SIZE_MAX, &p->shapes, &error), error);
  assert_ok(clv__view_create_whole(p->graph, p->shapes->types, &p->arena, &p->whole, &error), error);
  assert_ok(clv__cost_model_create(p->m.devices, p->whole, p->shapes->node_folded, profile, &p->model, &error), error);
}

static void done(priced *p) {
  clv__cost_model_destroy(p->model);
  clv__shapes_destroy(p->shapes);
  clv__arena_finish(&p->arena);
  clv__graph_destroy(p->graph);
  machine_close(&p->m);
}

static clv__cost cost_of(const priced *p, const char *node, uint32_t device) {
  return clv__cost_node(p->model, clv__graph_find_node(p->graph, node), device);
}
static uint64_t saving_of(const priced *p, const char *producer, const char *consumer, uint32_t device) {
  return clv__cost_saving(p->model, clv__graph_find_node(p->graph, producer), clv__graph_find_node(p->graph, consumer), device);
}

static void stated_by_the_device(void **state) {
  (void)state;
  priced p;
  price(&p, "npu,cpu", timed, test_seven_nodes, NULL);
  clv__cost conv = cost_of(&p, "conv", 0), relu = cost_of(&p, "relu", 0);
  assert_int_equal(conv.source, CLV__COST_STATED);
  assert_int_equal(conv.time_ns, 22240); /* (192 + 108 + 256) * 4 bytes at 100 MB/s; the arithmetic takes 13.8 us */
  assert_int_equal(relu.time_ns, 20480); /* 2 * 256 * 4 bytes */
  assert_int_equal(clv__cost_launch(p.model, 0), 30000);
  assert_int_equal(clv__cost_copy(p.model, 0, true, 1000), 8000);
  assert_int_equal(clv__cost_copy(p.model, 1, true, 1000), 0); /* the device works in host memory: no copy */
  assert_string_equal(clv__cost_origin(p.model, 0), "stated by the device");
  assert_string_equal(clv__cost_origin(p.model, 1), "nominal figures, because no profile is given");
  assert_int_equal(saving_of(&p, "conv", "relu", 0), 0);
  done(&p);
}

static void nominal_figures(void **state) {
  (void)state;
  priced p;
  price(&p, "npu,cpu", untimed, test_seven_nodes, NULL);
  for (uint32_t d = 0; d < 2; ++d) {
    clv__cost relu = cost_of(&p, "relu", d);
    assert_int_equal(relu.source, CLV__COST_NOMINAL);
    assert_true(relu.time_ns > 0 && !relu.infeasible);
    uint64_t saved = saving_of(&p, "conv", "relu", d);
    assert_true(saved > 0 && saved <= 2 * relu.time_ns); /* the elementwise node is fused into the convolution before it */
    assert_int_equal(saving_of(&p, "relu", "matmul", d), 0);
  }
  assert_true(clv__cost_launch(p.model, 0) > clv__cost_launch(p.model, 1));
  assert_true(clv__cost_copy(p.model, 0, false, 1u << 20) > clv__cost_copy(p.model, 0, false, 1));
  done(&p);
}

static clv_graph *open_sizes(const clv_allocator *allocator) {
  test_graph g;
  clv_error error = {0};
  uint32_t symbol;
  test_graph_begin(&g, allocator, 1);
  assert_ok(clv__builder_symbol(g.builder, "N", &symbol, &error), error);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(CLV_DIM_SYMBOL(symbol), 8));
  test_graph_node(&g, "relu", "Relu", "x", "r");
  test_graph_node(&g, "view", "Identity", "r", "v");
  return test_graph_end(&g, "v");
}

static void unknown_sizes_say_so(void **state) {
  (void)state;
  priced p;
  price(&p, "npu,cpu", timed, open_sizes, NULL);
  for (uint32_t d = 0; d < 2; ++d) {
    assert_int_equal(cost_of(&p, "relu", d).source, CLV__COST_UNKNOWN);
    assert_int_equal(cost_of(&p, "relu", d).time_ns, 0);
    assert_int_equal(cost_of(&p, "view", d).time_ns, 0);
  }
  done(&p);
}

/* ---- With a profile ---- */

static const char *cpu_fingerprint(char text[256]) {
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  snprintf(text, 256, "%s", m.devices->items[0].info.fingerprint);
  machine_close(&m);
  return text;
}

/* Inside a partition, conv takes 7000 ns and relu 0 ns; the edge between them saves 4000 ns. The price of each node alone
 * includes half of that: 9000 ns and 2000 ns. matmul and add are not in the profile. */
static void measured_ones(void **state) {
  (void)state;
  char fingerprint[256];
  made_profile made;
  priced p;
  profile_begin(&made, clv__allocator_default(), cpu_fingerprint(fingerprint));
  uint32_t conv = profile_operator(&made, "Conv(f32[1,3,8,8],f32[4,3,3,3]*)>f32[1,4,8,8]{pads=1,1,1,1}", 12000, 7000);
  uint32_t relu = profile_operator(&made, "Relu(f32[1,4,8,8])>f32[1,4,8,8]", 4000, 0);
  profile_saving(&made, conv, relu, 4000);
  uint32_t softmax = profile_operator(&made, "Softmax(f32[1,8,8,8])>f32[1,8,8,8]{axis=-1}", 9000, 0);
  made.device->operators[softmax].has_within = false; /* measured only alone, not in blocks */
  uint32_t concat = profile_operator(&made, "Concat(f32[1,4,8,8],f32[1,4,8,8])>f32[1,8,8,8]{axis=1}", 0, 0);
  made.device->operators[concat] =
      (clv__profile_operator){.signature = made.device->operators[concat].signature, .infeasible = true};
  price(&p, "cpu", NULL, test_seven_nodes, made.profile);
  clv__profile_destroy(made.profile); /* the model does not use the profile after its creation */
  assert_int_equal(cost_of(&p, "conv", 0).time_ns, 9000);
  assert_int_equal(cost_of(&p, "conv", 0).source, CLV__COST_MEASURED);
  assert_int_equal(cost_of(&p, "relu", 0).time_ns, 2000);
  assert_int_equal(saving_of(&p, "conv", "relu", 0), 4000);
  assert_int_equal(saving_of(&p, "relu", "matmul", 0), 0);
  assert_int_equal(cost_of(&p, "softmax", 0).time_ns, 7000); /* 9000 minus the launch of 2000 */
  assert_int_equal(cost_of(&p, "add", 0).source, CLV__COST_ROOFLINE);
  assert_int_equal(cost_of(&p, "add", 0).time_ns, (256 * 2 + 8) * 4); /* 520 elements of 4 bytes, at the measured 1 GB/s */
  assert_true(cost_of(&p, "concat", 0).infeasible);
  assert_int_equal(clv__cost_launch(p.model, 0), 2000);
  assert_string_equal(clv__cost_origin(p.model, 0), "profile of 2026-11-21");
  done(&p);
}

static void of_another_device(void **state) {
  (void)state;
  made_profile made;
  priced p;
  profile_begin(&made, clv__allocator_default(), "someone else");
  price(&p, "npu,cpu", timed, test_seven_nodes, made.profile);
  clv__profile_destroy(made.profile);
  assert_int_equal(cost_of(&p, "conv", 1).source, CLV__COST_NOMINAL);
  assert_string_equal(clv__cost_origin(p.model, 0), "stated by the device, because the profile is for other devices");
  done(&p);
}

/* Within the measured sizes the price comes from the fit, outside from the roofline. The edge from conv to relu has no saving,
 * although such edges were measured: the price of conv comes from a roofline. */
static void fitted_ones(void **state) {
  (void)state;
  char fingerprint[256], signature[128];
  made_profile made;
  priced p;
  uint32_t last = CLV__NONE;
  profile_begin(&made, clv__allocator_default(), cpu_fingerprint(fingerprint));
  for (uint32_t i = 1; i <= 8; ++i) {
    snprintf(signature, sizeof signature, "Relu(f32[%u])>f32[%u]", 100 * i, 100 * i);
    uint32_t at = profile_operator(&made, signature, 0, 1000 + 100 * i);
    made.device->operators[at].flops = 100 * i;
    made.device->operators[at].bytes = 800 * i;
    snprintf(signature, sizeof signature, "Conv(f32[%u])>f32[%u]", i, i);
    last = profile_operator(&made, signature, 0, 500);
    profile_saving(&made, last, at, 2048); /* 2 ns per byte */
  }
  price(&p, "cpu", NULL, test_seven_nodes, made.profile);
  clv__profile_destroy(made.profile);
  clv__cost relu = cost_of(&p, "relu", 0), conv = cost_of(&p, "conv", 0);
  assert_int_equal(relu.source, CLV__COST_FITTED);
  assert_int_equal(conv.source, CLV__COST_ROOFLINE); /* outside the measured sizes */
  assert_int_equal(saving_of(&p, "conv", "relu", 0), 0);
  assert_true(llabs((long long)relu.time_ns - 1256) <= 30);
  done(&p);
}

/* ---- Size ---- */

static clv_graph *large_graph(const clv_allocator *allocator) {
  enum { NODES = 100000 };
  test_graph g;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 8));
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  for (uint32_t n = 0; n < NODES; ++n) {
    char in[64], out[32];
    snprintf(in, sizeof in, n % 3 == 0 ? "v%u,w" : n % 3 == 1 ? "v%u" : "v%u,v%u", n, n / 2);
    snprintf(out, sizeof out, "v%u", n + 1);
    test_graph_node(&g, "", n % 3 == 0 ? "MatMul" : n % 3 == 1 ? "Relu" : "Add", in, out);
  }
  char last[32];
  snprintf(last, sizeof last, "v%u", NODES);
  return test_graph_end(&g, last);
}

static void is_quick_and_small(void **state) {
  (void)state;
  char fingerprint[256];
  made_profile made;
  priced p;
  clv_error error = {0};
  profile_begin(&made, clv__allocator_default(), cpu_fingerprint(fingerprint));
  profile_saving(&made, profile_operator(&made, "MatMul(f32[4,8],f32[8,8]*)>f32[4,8]", 900, 800),
                 profile_operator(&made, "Relu(f32[4,8])>f32[4,8]", 900, 100), 50);
  price(&p, "npu,cpu", timed, large_graph, made.profile);
  clock_t start = clock(); /* CPU time of this process only: other programs may be running */
  clv__cost_model *again;
  assert_ok(clv__cost_model_create(p.m.devices, p.whole, NULL, made.profile, &again, &error), error);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  clv__cost_model_destroy(again);
  clv__profile_destroy(made.profile);
  print_message("100,000 nodes, two devices: %.3f s\n", seconds);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  assert_true(seconds < 1);
#endif
  assert_int_equal(clv__cost_node(p.model, 99999, 1).source, CLV__COST_MEASURED);
  done(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stated_by_the_device), cmocka_unit_test(nominal_figures),   cmocka_unit_test(unknown_sizes_say_so),
      cmocka_unit_test(measured_ones),        cmocka_unit_test(of_another_device), cmocka_unit_test(fitted_ones),
      cmocka_unit_test(is_quick_and_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
