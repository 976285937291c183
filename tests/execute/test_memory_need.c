/* A session takes no more memory than its plan states, and the plan states no more than the devices have. Random models on one
 * or two virtual NPUs with random memories, with and without the CPU, for all strategies. On one device, more memory never
 * makes a plan slower. On several devices, `optimal` uses the memory of all of them. */
#include "machine.h"

enum { ROWS = 8, WIDTH = 64, MOST_NODES = 24 };

/* Makes a random graph of sums, activations, and products with weights. Several products may share a weight. */
static clv_graph *random_model(const clv_allocator *allocator, uint64_t seed, uint32_t node_count) {
  test_graph g;
  char name[16], in[40], out[16];
  uint64_t state = seed;
  uint32_t weights = 0;
  test_graph_begin(&g, allocator, seed);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(ROWS, WIDTH));
  for (uint32_t i = 0; i < node_count; ++i) {
    uint32_t near = (uint32_t)(test_random(&state) % 3), a = i > near ? i - near : i;
    uint32_t b = (uint32_t)(test_random(&state) % (i + 1)), kind = (uint32_t)(test_random(&state) % 5);
    if (i + 1 == node_count) a = i;
    snprintf(name, sizeof name, "n/%u", i);
    snprintf(out, sizeof out, "v%u", i + 1);
    if (kind < 3) {
      bool is_shared = weights > 0 && test_random(&state) % 6 == 0;
      uint32_t weight = is_shared ? (uint32_t)(test_random(&state) % weights) : weights;
      snprintf(in, sizeof in, "w%u", weight);
      if (!is_shared) test_graph_weight(&g, in, 2, DIMS(WIDTH, WIDTH));
      weights += !is_shared;
      snprintf(in, sizeof in, "v%u,w%u", a, weight);
      test_graph_node(&g, name, "MatMul", in, out);
    } else if (kind == 3) {
      snprintf(in, sizeof in, "v%u,v%u", a, b);
      test_graph_node(&g, name, "Add", in, out);
    } else {
      snprintf(in, sizeof in, "v%u", a);
      test_graph_node(&g, name, "Tanh", in, out);
    }
  }
  return test_graph_end(&g, out);
}

static void open_limited(machine *m, const char *list, const uint32_t kibibytes[2]) {
  clv_error error = {0};
  char texts[2][32];
  const char *const items[] = {texts[0], texts[1]}, *const specs[] = {"all", "all"};
  bool is_two = strstr(list, "npu1") != NULL;
  snprintf(texts[0], sizeof texts[0], "npu:memory=%uK", kibibytes[0]);
  snprintf(texts[1], sizeof texts[1], "npu1:memory=%uK", kibibytes[1]);
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  devices.npu_specs = specs;
  devices.npu_spec_count = is_two ? 2 : 1;
  devices.device_options = items;
  devices.device_option_count = is_two ? 2 : 1;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

static void check_session(const clv_plan *plan, const char *what) {
  float data[ROWS * WIDTH];
  uint64_t seed = 5;
  for (size_t i = 0; i < ROWS * WIDTH; ++i) data[i] = test_random_float(&seed) / 16;
  clv_tensor input = f32(2, DIMS(ROWS, WIDTH), data);
  clv_session *session = machine_session(plan);
  for (int i = 0; i < 2; ++i) machine_check_run(session, plan, &input, what);
  machine_check_memory(session, plan, what);
  clv_session_destroy(session);
}

static void the_session_keeps_within_the_plan(void **state) {
  (void)state;
  static const char *const lists[] = {"npu", "npu,cpu", "npu,npu1", "npu,npu1,cpu"};
  uint32_t made = 0, streamed = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 240; ++seed) {
    machine m;
    uint64_t random = seed * 977;
    uint32_t nodes = 2 + (uint32_t)(test_random(&random) % (MOST_NODES - 1));
    const char *list = lists[test_random(&random) % 4];
    uint32_t memory[2] = {24 + (uint32_t)(test_random(&random) % (nodes * 12)),
                          24 + (uint32_t)(test_random(&random) % (nodes * 12))};
    open_limited(&m, list, memory);
    clv_graph *graph = random_model(&m.counting.allocator, seed, nodes);
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = clv__strategies[test_random(&random) % strategy_count()]->name;
    if (test_random(&random) % 3 == 0) options.objective = "overlap";
    char what[128];
    snprintf(what, sizeof what, "seed %u, %s, %uK and %uK, %s", (unsigned)seed, list, memory[0], memory[1], options.strategy);
    clv_plan *plan;
    clv_error error = {0};
    clv_status status = clv_plan_make(graph, m.devices, &options, &plan, &error);
    if (status == CLV_OK) {
      ++made;
      streamed += streamed_of(plan) > 0;
      check_session(plan, what);
      clv_plan_destroy(plan);
    } else if (status == CLV_NOT_SUPPORTED && strstr(list, "cpu") == NULL) {
      ++refused;
    } else {
      fail_msg("%s: %s", what, error.message);
    }
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  printf("%u plans made, %u of them streamed, %u refused\n", made, streamed, refused);
  assert_true(made > 150 && streamed > 20);
}

static void more_memory_is_never_slower(void **state) {
  (void)state;
  uint32_t made = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    uint64_t before = UINT64_MAX;
    for (uint32_t memory = 22; memory < 480; memory += 9) {
      machine m;
      open_limited(&m, "npu", (const uint32_t[]){memory, 0});
      clv_graph *graph = random_model(&m.counting.allocator, seed * 31, MOST_NODES);
      clv_plan *plan = NULL;
      clv_error error = {0};
      clv_status status = clv_plan_make(graph, m.devices, NULL, &plan, &error);
      if (status != CLV_OK && before != UINT64_MAX)
        fail_msg("seed %u: there is a plan for less memory, but not for %uK: %s", (unsigned)seed, memory, error.message);
      if (status == CLV_OK) {
        ++made;
        if (plan->predicted_ns > before) {
          fail_msg("seed %u: the plan for %uK takes %llu ns, but a plan for less memory only %llu", (unsigned)seed, memory,
                   (unsigned long long)plan->predicted_ns, (unsigned long long)before);
        }
        before = plan->predicted_ns;
      }
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
      machine_close(&m);
    }
  }
  assert_true(made > 200);
}

/* Makes a chain of `count` products, each with a weight of its own of [width, width] numbers. */
static clv_graph *chain(const clv_allocator *allocator, uint32_t count, int64_t rows, int64_t width) {
  test_graph g;
  char name[16], in[40], out[16] = "";
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(rows, width));
  for (uint32_t i = 0; i < count; ++i) {
    snprintf(in, sizeof in, "w%u", i);
    test_graph_weight(&g, in, 2, DIMS(width, width));
    snprintf(name, sizeof name, "m%u", i);
    snprintf(in, sizeof in, "v%u,w%u", i, i);
    snprintf(out, sizeof out, "v%u", i + 1);
    test_graph_node(&g, name, "MatMul", in, out);
  }
  return test_graph_end(&g, out);
}

/* Eight products with weights of 4 MiB. The first machine has an NPU with room for one of them and an NPU with room for four;
 * the second has one NPU, with room for four. `optimal` must find a plan that is at least as fast as the one with pins that
 * fill the NPUs. */
static void devices_are_filled(void **state) {
  (void)state;
  static const char *const lists[] = {"npu,npu1,cpu", "npu,cpu"};
  static const uint32_t memory[][2] = {{10240, 20480}, {20480, 0}};
  static const char *const pins[] = {"m0=npu,m1=npu1,m2=npu1,m3=npu1,m4=npu1,m5=cpu,m6=cpu,m7=cpu",
                                     "m0=npu,m1=npu,m2=npu,m3=npu,m4=cpu,m5=cpu,m6=cpu,m7=cpu"};
  for (int i = 0; i < 2; ++i) {
    machine m;
    open_limited(&m, lists[i], memory[i]);
    clv_graph *graph = chain(&m.counting.allocator, 8, 64, 1024);
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    clv_plan *pinned = machine_plan(&m, graph, pins[i], options);
    options.strategy = "optimal";
    clv_plan *plan = machine_plan(&m, graph, NULL, options);
    if (plan->predicted_ns > pinned->predicted_ns) {
      fail_msg("%s: the plan of 'optimal' takes %llu ns, but the plan with pins only %llu", lists[i],
               (unsigned long long)plan->predicted_ns, (unsigned long long)pinned->predicted_ns);
    }
    clv_plan_destroy(plan);
    clv_plan_destroy(pinned);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* 64 products with weights of 256 KiB each, on a device with 4 MiB and on one with 600 KiB, which is hardly more than one
 * product needs. Every strategy makes a plan that fits, by streaming weights. */
static void little_memory_is_enough(void **state) {
  (void)state;
  static const uint32_t memory[][2] = {{4096, 0}, {600, 0}};
  for (int i = 0; i < 2; ++i) {
    for (uint32_t s = 0; s < strategy_count(); ++s) {
      machine m;
      open_limited(&m, "npu", memory[i]);
      clv_graph *graph = chain(&m.counting.allocator, 64, 4, 256);
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.strategy = clv__strategies[s]->name;
      clv_plan *plan = machine_plan(&m, graph, NULL, options);
      assert_true(streamed_of(plan) > 0 && plan->needs[0].total_bytes <= (uint64_t)memory[i][0] << 10);
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
      machine_close(&m);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_session_keeps_within_the_plan),
      cmocka_unit_test(more_memory_is_never_slower),
      cmocka_unit_test(devices_are_filled),
      cmocka_unit_test(little_memory_is_enough),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
