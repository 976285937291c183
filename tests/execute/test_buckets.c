/* Open sizes on devices with fixed shapes: values are padded to buckets on the way in and cut on the way out, with all kinds of
 * plans, memory, captures and failures. Every run is compared with the reference, bit for bit if the same kernels run. */
#include <pthread.h>

#include "backends/vnpu/vnpu.h"
#include "execute/capture/capture.h"
#include "execute/session_own.h"
#include "fast_evaluate.h"
#include "machine.h"

#define FIXED "\"static_shapes\": true, \"operators\": \"all\""
static const char fixed[] = "{" FIXED "}", in_host_memory[] = "{" FIXED ", \"memory_space\": \"host\"}",
                  in_common_memory[] = "{" FIXED ", \"memory_space\": \"common\"}",
                  any_in_common_memory[] = "{\"operators\": \"all\", \"memory_space\": \"common\"}", any_shape[] = "all";

/* ---- A model, its devices and its session ---- */

typedef struct way {
  const char *devices, *specs[2];
  clv_capture_policy mode;
  uint32_t multiple, in_flight;
  uint32_t refuse; /* the first device rejects one in so many nodes; 0: none */
  bool products;
  clv_session_options session; /* the remaining options */
} way;

typedef struct part {
  machine m;
  way how;
  uint64_t seed, state;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  uint32_t logged; /* compilations for other shapes that were logged */
} part;

static void listen(void *user_data, int level, const char *text) {
  part *p = user_data;
  if (level == 2 && strstr(text, "compiled for other shapes") != NULL) ++p->logged;
}

static bool allow(void *user_data, const char *device, const clv_node_info *node, char reason[160]) {
  part *p = user_data;
  (void)device, (void)reason;
  uint64_t hash = p->seed * 31;
  for (const char *c = node->name; *c != '\0'; ++c) hash = hash * 131 + (uint64_t)*c;
  return strcmp(device, "npu") != 0 || p->how.refuse == 0 || test_random(&hash) % p->how.refuse != 0;
}

static void open_devices(part *p) {
  clv_error error = {0};
  test_allocator_init(&p->m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &p->m.counting.allocator;
  context.capture = p->how.mode;
  context.cache_directory = "";
  context.log = listen;
  context.log_user_data = p;
  assert_ok(clv_context_create(&context, &p->m.context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = p->how.devices;
  devices.npu_specs = p->how.specs;
  devices.npu_spec_count = p->how.specs[1] != NULL ? 2 : 1;
  devices.thread_count = 1;
  assert_ok(clv_devices_open(p->m.context, &devices, &p->m.devices, &error), error);
}

/* For every third random graph, chooses an intermediate value that is kept as an additional output. Returns NULL for the others.
 */
static const char *choose_kept(const part *p) {
  const clv_graph *graph = p->graph;
  if (p->seed % 3 != 0) return NULL;
  clv_value_id value = graph->nodes[p->seed % graph->node_count].outputs[0];
  for (uint32_t o = 0; o < graph->output_count; ++o) {
    if (graph->outputs[o] == value) return NULL;
  }
  return graph->values[value].name;
}

/* Makes a graph (a random one if `make` is NULL), its plan and a session. */
static void open_part(part *p, way how, uint64_t seed, clv_graph *(*make)(const clv_allocator *)) {
  static const char *const strategies[] = {"contiguous", "propagate", "ready", "delegate"};
  clv_error error = {0};
  *p = (part){.how = how, .seed = seed, .state = seed + 77};
  open_devices(p);
  p->graph = make != NULL ? make(&p->m.counting.allocator)
                          : test_random_open_graph(&p->m.counting.allocator, seed, 4 + (uint32_t)(seed % 16), how.products);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = strategies[seed % 4];
  options.support = allow;
  options.support_user_data = p;
  const char *kept = make == NULL ? choose_kept(p) : NULL;
  options.keep_count = kept != NULL;
  options.keeps = &kept;
  p->plan = machine_plan(&p->m, p->graph, NULL, options);
  clv_session_options session = how.session;
  session.struct_size = sizeof session;
  session.bucket_multiple = how.multiple;
  session.in_flight = how.in_flight;
  session.no_fallback = true; /* if a device fails, the run must fail instead of moving its nodes */
  assert_ok(clv_session_create(p->plan, &session, &p->session, &error), error);
}

static void close_part(part *p) {
  clv_session_destroy(p->session);
  clv_plan_destroy(p->plan);
  clv_graph_destroy(p->graph);
  machine_close(&p->m);
}

static uint32_t bucketed_nodes(const part *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->plan->partition_count; ++i) {
    if (p->plan->partitions[i].is_bucketed) count += p->plan->partitions[i].node_count;
  }
  return count;
}

/* Returns the number of compilations so far. */
static uint32_t compiled(const part *p) {
  clv__session_stats stats;
  clv__session_stats_get(p->session, &stats);
  return stats.executables.compiled + stats.executables.not_kept;
}

/* ---- One run ---- */

enum { MOST_VALUES = 8 };

typedef struct values {
  clv_tensor inputs[MOST_VALUES], outputs[MOST_VALUES], expected[MOST_VALUES];
  uint32_t output_count;
  int64_t n, depth;
  bool products;
} values;

static clv_tensor make_room(clv_tensor type) {
  size_t size_bytes;
  assert_true(clv__tensor_size_bytes(&type, &size_bytes));
  type.data = malloc(size_bytes + 1);
  memset(type.data, 0xee, size_bytes + 1);
  return type;
}

/* Where keep_value() stores the expected values of kept outputs. */
typedef struct keeping {
  const clv_plan *plan;
  values *v;
} keeping;

static clv_status keep_value(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error) {
  keeping *k = cookie;
  size_t size_bytes;
  (void)error;
  for (uint32_t i = 0; i < k->plan->kept_count; ++i) {
    if (k->plan->kept[i] != value) continue;
    clv_tensor *to = &k->v->expected[k->plan->graph->output_count + i];
    *to = make_room(*tensor);
    if (clv__tensor_size_bytes(tensor, &size_bytes) && size_bytes > 0) memcpy(to->data, tensor->data, size_bytes);
  }
  return CLV_OK;
}

/* Makes random inputs with the sizes N = `n` and T = `depth`, and the expected outputs. */
static void make_values(part *p, int64_t n, int64_t depth, values *v) {
  clv_error error = {0};
  const clv_graph *graph = p->graph;
  *v = (values){.output_count = graph->output_count + p->plan->kept_count, .n = n, .depth = depth, .products = p->how.products};
  assert_true(graph->input_count <= MOST_VALUES && v->output_count <= MOST_VALUES);
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_tensor type = *clv_graph_input_type(graph, i);
    for (int32_t d = 0; d < type.rank; ++d) {
      if (type.dims[d] < 0) type.dims[d] = strcmp(graph->symbols[-2 - type.dims[d]], "N") == 0 ? n : depth;
    }
    v->inputs[i] = make_room(type);
    size_t count;
    assert_true(clv__tensor_count(&type, &count));
    for (size_t k = 0; k < count; ++k) {
      clv__tensor_put(&v->inputs[i], k, test_random_float(&p->state), (int64_t)(test_random(&p->state) % 16), false);
    }
  }
  keeping keep = {p->plan, v};
  assert_ok(evaluate_fast(graph, v->inputs, v->expected, keep_value, &keep, graph->allocator, &error), error);
}

static void free_values(part *p, values *v) {
  for (uint32_t i = 0; i < p->graph->input_count; ++i) free(v->inputs[i].data);
  for (uint32_t i = 0; i < v->output_count; ++i) {
    if (i < p->graph->output_count)
      clv__release(p->graph->allocator, v->expected[i].data);
    else
      free(v->expected[i].data);
  }
}

/* Compares outputs with the expected values: bit for bit, except on the CPU, whose kernels differ from the reference, and with
 * matrix products, whose algorithm depends on the number of rows. */
static void check_values(const part *p, const values *v, const clv_tensor *outputs) {
  bool is_loose = v->products || strstr(p->how.devices, "cpu") != NULL;
  for (uint32_t o = 0; o < v->output_count; ++o) {
    const clv_tensor *is = &outputs[o], *should = &v->expected[o];
    size_t count, bytes = clv_dtype_size_bytes(should->dtype);
    assert_true(clv__same_dims(is, should));
    assert_true(clv__tensor_count(should, &count));
    for (size_t i = 0; i < count; ++i) {
      if (memcmp((char *)is->data + i * bytes, (char *)should->data + i * bytes, bytes) == 0) continue;
      double a = clv__tensor_get(is, i), b = clv__tensor_get(should, i);
      if (isnan(a) && isnan(b)) continue;
      if (is_loose && (fabs(a - b) <= 1e-3 * fmax(1, fabs(b)) || !(fabs(b) < 1e3))) continue;
      fail_msg("seed %u, %s, multiple %u, N %d, T %d: output %u, element %zu is %.9g, expected %.9g", (unsigned)p->seed,
               p->how.devices, p->how.multiple, (int)v->n, (int)v->depth, o, i, a, b);
    }
  }
}

/* Makes and checks a run, with outputs in the caller's memory if `bound`, otherwise in the session's. */
static void run(part *p, int64_t n, int64_t depth, bool bound) {
  clv_error error = {0};
  values v;
  make_values(p, n, depth, &v);
  clv_tensor outputs[MOST_VALUES] = {{0}};
  for (uint32_t o = 0; bound && o < v.output_count; ++o) outputs[o] = make_room(v.expected[o]);
  clv_status status = clv_session_run(p->session, v.inputs, p->graph->input_count, outputs, v.output_count, &error);
  if (status != CLV_OK)
    fail_msg("seed %u, %s, multiple %u, N %d, T %d: %s", (unsigned)p->seed, p->how.devices, p->how.multiple, (int)n, (int)depth,
             error.message);
  check_values(p, &v, outputs);
  for (uint32_t o = 0; bound && o < v.output_count; ++o) {
    size_t size_bytes;
    assert_true(clv__tensor_size_bytes(&v.expected[o], &size_bytes));
    assert_int_equal(((uint8_t *)outputs[o].data)[size_bytes], 0xee); /* nothing is written past the end */
    free(outputs[o].data);
  }
  free_values(p, &v);
}

static void verify(part *p, int64_t n, int64_t depth) {
  clv_error error = {0};
  clv__mismatch mismatch;
  values v;
  make_values(p, n, depth, &v);
  assert_ok(clv__session_verify(p->session, v.inputs, p->graph->input_count, NULL, &mismatch, &error), error);
  if (mismatch.partition != CLV__NO_ID) {
    fail_msg("seed %u, %s, N %d, T %d: verification reports partition %u: an element is %.9g, expected %.9g", (unsigned)p->seed,
             p->how.devices, (int)n, (int)depth, mismatch.partition, mismatch.actual, mismatch.expected);
  }
  free_values(p, &v);
}

/* ---- Random graphs on many combinations of devices ---- */

static void run_sequence(part *p) {
  static const int64_t edges[] = {63, 64, 65, 64, 63, 0, 1, 65, 128, 129, 0};
  for (int64_t n = 1; n < 12; n += 2) run(p, n, 3, n % 4 == 1); /* growing */
  for (int64_t n = 9; n >= 0; n -= 3) run(p, n, 2, n % 2 == 0); /* shrinking */
  for (size_t i = 0; i < sizeof edges / sizeof *edges; ++i) run(p, edges[i], 1 + (int64_t)i % 3, i % 2 == 0);
  for (int64_t t = 0; t < 4; ++t) run(p, 5, 62 + t, false);
  for (int i = 0; i < 12; ++i) {
    int64_t n = (int64_t)(test_random(&p->state) % 20), depth = (int64_t)(test_random(&p->state) % 9);
    run(p, n, depth, i % 3 == 0);
  }
}

static void run_ways(const way *ways, size_t count, uint64_t seeds, uint32_t enough) {
  static const uint32_t multiples[] = {1, 4, 64, 0};
  static const clv_capture_policy modes[] = {CLV_CAPTURE_AUTO, CLV_CAPTURE_OFF, CLV_CAPTURE_ON};
  uint32_t bucketed = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    way how = ways[seed % count];
    part p;
    how.multiple = multiples[seed / count % 4];
    how.mode = modes[seed % 3];
    how.products = seed % 5 == 0;
    how.refuse = seed % 4 == 1 ? 0 : 2 + (uint32_t)(seed % 4);
    open_part(&p, how, seed, NULL);
    bucketed += bucketed_nodes(&p);
    run_sequence(&p);
    if (!how.products) verify(&p, (int64_t)(seed % 70), 3);
    run(&p, 7, 5, true); /* verification must not affect later runs */
    clv__session_time_steps(p.session, true);
    run(&p, 9, 2, true); /* timed runs execute one step after the other */
    close_part(&p);
  }
  if (bucketed < enough) fail_msg("only %u nodes were padded to buckets, expected at least %u", bucketed, enough);
}

static void random_graphs(void **state) {
  (void)state;
  static const way ways[] = {
      {.devices = "npu,npu1", .specs = {fixed, any_shape}}, /* two NPUs, with the same kernels */
      {.devices = "npu,cpu", .specs = {fixed}},
      {.devices = "npu,npu1,cpu", .specs = {fixed, fixed}},
      {.devices = "npu,npu1,cpu", .specs = {in_common_memory, in_common_memory}},
  };
  run_ways(ways, sizeof ways / sizeof *ways, 40, 200);
}

/* Devices with fixed shapes share memory with devices that use exact sizes, so the same value exists there with and without
 * padding. */
static void shared_memory(void **state) {
  (void)state;
  static const way ways[] = {
      {.devices = "npu,npu1", .specs = {in_host_memory, any_shape}},
      {.devices = "npu,npu1", .specs = {in_common_memory, any_in_common_memory}},
      {.devices = "npu,cpu", .specs = {in_host_memory}},
      {.devices = "npu,npu1,cpu", .specs = {in_host_memory, in_host_memory}},
      {.devices = "npu,npu1,cpu", .specs = {in_common_memory, any_in_common_memory}},
  };
  run_ways(ways, sizeof ways / sizeof *ways, 40, 200);
}

/* ---- Several requests in flight ---- */

static void two_in_flight(void **state) {
  (void)state;
  static const way ways[] = {
      {.devices = "npu,npu1", .specs = {fixed, any_shape}, .in_flight = 2, .multiple = 16, .refuse = 3},
      {.devices = "npu,npu1", .specs = {in_host_memory, any_shape}, .in_flight = 2, .multiple = 4, .refuse = 3},
      {.devices = "npu,cpu", .specs = {fixed}, .in_flight = 2, .multiple = 4, .refuse = 3},
  };
  for (uint64_t seed = 1; seed <= 18; ++seed) {
    part p;
    way how = ways[seed % 3];
    how.mode = seed % 2 == 0 ? CLV_CAPTURE_ON : CLV_CAPTURE_AUTO;
    open_part(&p, how, seed, NULL);
    values v[4];
    clv_tensor outputs[4][MOST_VALUES];
    for (int round = 0; round < 4; ++round) {
      clv_error error = {0};
      clv_run *runs[4];
      for (int i = 0; i < 4; ++i) {
        make_values(&p, (int64_t)(test_random(&p.state) % 20), (int64_t)(test_random(&p.state) % 20), &v[i]);
        for (uint32_t o = 0; o < v[i].output_count; ++o) outputs[i][o] = make_room(v[i].expected[o]);
      }
      for (int i = 0; i < 4; ++i) {
        assert_ok(clv_session_start(p.session, v[i].inputs, p.graph->input_count, outputs[i], v[i].output_count, NULL, &runs[i],
                                    &error),
                  error);
      }
      for (int i = 0; i < 4; ++i) assert_ok(clv_run_wait(runs[i], &error), error);
      for (int i = 0; i < 4; ++i) {
        check_values(&p, &v[i], outputs[i]);
        for (uint32_t o = 0; o < v[i].output_count; ++o) free(outputs[i][o].data);
        free_values(&p, &v[i]);
      }
    }
    close_part(&p);
  }
}

/* ---- Compilations and memory ---- */

/* z = tanh(relu(a @ w)) + scale, where a is [N,8]; e = d * scale, where d is [N,T,8]. */
static clv_graph *rows(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 5);
  int64_t n = test_graph_symbol(&g, "N"), t = test_graph_symbol(&g, "T");
  test_graph_input(&g, "a", CLV_F32, 2, DIMS(n, 8));
  test_graph_input(&g, "d", CLV_F32, 3, DIMS(n, t, 8));
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  test_graph_weight(&g, "scale", 1, DIMS(8));
  test_graph_node(&g, "mm", "MatMul", "a,w", "m");
  test_graph_node(&g, "relu", "Relu", "m", "y");
  test_graph_node(&g, "tanh", "Tanh", "y", "t");
  test_graph_node(&g, "add", "Add", "t,scale", "z");
  test_graph_node(&g, "mul", "Mul", "d,scale", "e");
  return test_graph_end(&g, "z,e");
}

/* A cache that grows: concatenates functions of "past" [T,8] and "now" [N,8], and scales the result. */
static clv_graph *joined(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 5);
  int64_t n = test_graph_symbol(&g, "N"), t = test_graph_symbol(&g, "T");
  test_graph_input(&g, "past", CLV_F32, 2, DIMS(t, 8));
  test_graph_input(&g, "now", CLV_F32, 2, DIMS(n, 8));
  test_graph_weight(&g, "scale", 1, DIMS(8));
  test_graph_node(&g, "neg", "Neg", "now", "b");
  test_graph_node(&g, "relu", "Relu", "past", "p");
  test_graph_node_ints(&g, "cat", "Concat", "p,b", "all", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "mul", "Mul", "all,scale", "y");
  return test_graph_end(&g, "y");
}

static void compilers_work_once_a_bucket(void **state) {
  (void)state;
  part p;
  open_part(&p, (way){.devices = "npu,cpu", .specs = {fixed}, .multiple = 16}, 4, rows);
  assert_int_equal(bucketed_nodes(&p), 5);
  uint32_t before = compiled(&p), partitions = 0;
  for (uint32_t i = 0; i < p.plan->partition_count; ++i) partitions += p.plan->partitions[i].is_bucketed;
  run(&p, 17, 3, false); /* buckets: N = 32, T = 16 */
  uint32_t first = compiled(&p) - before;
  assert_true(first > 0 && first <= partitions);
  assert_int_equal(p.logged, first);
  for (int64_t n = 17; n <= 32; ++n) run(&p, n, 1 + n % 16, false);
  assert_int_equal(p.session->requests[0]->prepared_count, 1); /* all of these runs use one prepared set */
  assert_int_equal(compiled(&p) - before, first);
  run(&p, 33, 16, false); /* buckets: N = 48, T = 16 */
  assert_true(compiled(&p) - before > first);
  assert_int_equal(compiled(&p) - before, p.logged);
  uint32_t second = compiled(&p);
  for (int i = 0; i < 6; ++i) run(&p, 20 + i % 2 * 20, 5, false); /* the sets of both buckets are kept */
  assert_int_equal(compiled(&p), second);
  close_part(&p);
}

/* The sizes T and T + 1 move to the next bucket at different values of T. Runs that cross this edge back and forth compile
 * nothing again. */
static void to_and_fro_over_an_edge(void **state) {
  (void)state;
  static const char *const specs[] = {fixed, in_host_memory};
  for (int i = 0; i < 2; ++i) {
    part p;
    open_part(&p, (way){.devices = "npu,cpu", .specs = {specs[i]}, .multiple = 16}, 4, joined);
    assert_true(bucketed_nodes(&p) > 1);
    for (int64_t t = 0; t <= 34; ++t) run(&p, 1, t, t % 2 == 0);
    uint32_t before = compiled(&p);
    for (int64_t t = 34; t >= 0; --t) run(&p, 1, t, t % 2 == 0);
    for (int64_t k = 0; k < 10; ++k) run(&p, 1, 15 + k % 3, false);
    assert_int_equal(compiled(&p), before);
    close_part(&p);
  }
}

static void memory_does_not_grow(void **state) {
  (void)state;
  static const way ways[] = {
      {.devices = "npu,cpu", .specs = {fixed}, .multiple = 8, .session = {.prepared_shapes = 3}},
      {.devices = "npu,cpu", .specs = {in_host_memory}, .multiple = 8, .session = {.prepared_shapes = 3}},
      {.devices = "npu,npu1,cpu",
       .specs = {in_common_memory, any_in_common_memory},
       .multiple = 8,
       .session = {.prepared_shapes = 3}},
  };
  static const clv_capture_policy modes[] = {CLV_CAPTURE_OFF, CLV_CAPTURE_AUTO, CLV_CAPTURE_ON};
  for (size_t w = 0; w < 9; ++w) {
    part p;
    way how = ways[w / 3];
    how.mode = modes[w % 3];
    how.refuse = 2;
    open_part(&p, how, 4 + w, w % 2 == 0 ? rows : NULL);
    for (uint64_t seed = 13; bucketed_nodes(&p) == 0; ++seed) {
      close_part(&p);
      open_part(&p, how, seed, NULL);
    }
    size_t live = 0;
    uint64_t in_use[CLV__MAX_DEVICES + 1] = {0};
    float *data = calloc(25 * 5 * 8, sizeof *data);
    for (int64_t i = 0; i < 1000; ++i) { /* 25 sizes over and over, in several buckets */
      clv_error error = {0};
      clv_tensor inputs[4], outputs[MOST_VALUES] = {{0}};
      for (uint32_t k = 0; k < p.graph->input_count; ++k) {
        inputs[k] = *clv_graph_input_type(p.graph, k);
        for (int32_t d = 0; d < inputs[k].rank; ++d) {
          if (inputs[k].dims[d] < 0) inputs[k].dims[d] = d == 0 ? i % 25 : i % 5;
        }
        inputs[k].data = data;
      }
      assert_ok(
          clv_session_run(p.session, inputs, p.graph->input_count, outputs, p.graph->output_count + p.plan->kept_count, &error),
          error);
      for (uint32_t s = 0; s < p.m.devices->space_count && i % 100 == 99; ++s) {
        clv__memory_pool_counters counters;
        clv__memory_pool_counters_get(p.m.devices, s, &counters);
        if (i == 499) in_use[s] = counters.in_use_bytes;
        assert_true(i < 500 || counters.in_use_bytes <= in_use[s]);
      }
      if (i == 499) live = p.m.counting.live;
      if (i > 500 && i % 100 == 99) assert_true(p.m.counting.live <= live);
    }
    free(data);
    close_part(&p);
  }
}

/* A run with other sizes of the same bucket makes at most one allocation more than shape inference alone. A run with the sizes of
 * the previous run allocates nothing. */
static void a_steady_state_takes_nothing(void **state) {
  (void)state;
  static const char *const specs[] = {fixed, in_host_memory};
  static const clv_capture_policy modes[] = {CLV_CAPTURE_OFF, CLV_CAPTURE_AUTO, CLV_CAPTURE_ON};
  for (int i = 0; i < 6; ++i) {
    part p;
    open_part(&p, (way){.devices = "npu", .specs = {specs[i % 2]}, .mode = modes[i / 2], .multiple = 32}, 4, rows);
    float *data = calloc(32 * 8 * 8, sizeof *data);
    size_t of_inference = 0;
    for (int64_t n = 1; n <= 64; ++n) {
      clv_error error = {0};
      int64_t size = (n + 1) / 2; /* each size twice in a row */
      clv_tensor inputs[2] = {f32(2, DIMS(size, 8), data), f32(3, DIMS(size, 5, 8), data)}, outputs[2] = {{0}};
      clv__shape_given given[2] = {{.name = "a", .rank = 2, .dims = {size, 8}}, {.name = "d", .rank = 3, .dims = {size, 5, 8}}};
      clv__shapes *shapes;
      size_t before = p.m.counting.calls;
      assert_ok(clv__shapes_infer(p.graph, given, 2, 1u << 16, &shapes, &error), error);
      of_inference = p.m.counting.calls - before;
      clv__shapes_destroy(shapes);
      before = p.m.counting.calls;
      assert_ok(clv_session_run(p.session, inputs, 2, outputs, 2, &error), error);
      size_t taken = p.m.counting.calls - before;
      if (n > 6) assert_true(taken <= (n % 2 == 1 ? of_inference + 1 : 0));
    }
    free(data);
    close_part(&p);
  }
}

/* ---- Failures ---- */

/* Makes a run in which the `fail`-th allocation fails. Returns true if the run made fewer allocations. */
static bool fail_once(part *p, size_t fail, int64_t n, int64_t depth) {
  clv_error error = {0};
  values v;
  make_values(p, n, depth, &v);
  clv_tensor outputs[MOST_VALUES] = {{0}};
  p->m.counting.fail_at = p->m.counting.calls + fail;
  clv_status status = clv_session_run(p->session, v.inputs, p->graph->input_count, outputs, v.output_count, &error);
  bool failed = p->m.counting.calls >= p->m.counting.fail_at;
  p->m.counting.fail_at = 0;
  if (status != CLV_OK && (!failed || status != CLV_OUT_OF_MEMORY))
    fail_msg("the run with allocation %zu failing returned %s, expected %s: %s", fail, clv_status_name(status),
             failed ? "CLV_OK or CLV_OUT_OF_MEMORY" : "CLV_OK", error.message);
  if (status == CLV_OK) check_values(p, &v, outputs); /* the run may succeed without that memory */
  free_values(p, &v);
  return !failed;
}

/* Lets each allocation fail in turn, in runs that change the bucket and in runs that stay in it. After each failure, runs succeed
 * again. */
static void fail_all(part *p) {
  run(p, 3, 3, false);
  size_t fail = 1;
  for (bool is_over = false; !is_over && fail < 5000; ++fail) {
    int64_t n = 10 * (int64_t)(fail % 2) + 1, depth = 5 + 60 * (int64_t)(fail % 3);
    is_over = fail_once(p, fail, n, 3);
    run(p, n, 3, false);
    is_over = fail_once(p, fail, 4, depth) && is_over;
    run(p, 4, depth, true);
    run(p, 3, 4, true);
  }
  assert_true(fail > 5 && fail < 5000);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  static const way ways[] = {
      {.devices = "npu,npu1", .specs = {fixed, any_shape}, .multiple = 8, .mode = CLV_CAPTURE_ON, .refuse = 3},
      {.devices = "npu,npu1", .specs = {in_host_memory, any_shape}, .multiple = 8, .mode = CLV_CAPTURE_ON, .refuse = 3},
      {.devices = "npu,npu1", .specs = {in_common_memory, any_in_common_memory}, .multiple = 8, .refuse = 3},
  };
  for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
    part p;
    uint64_t seed = 4;
    for (open_part(&p, ways[w], seed, NULL); p.plan->partition_count < 3 || bucketed_nodes(&p) < 3;) {
      close_part(&p);
      open_part(&p, ways[w], ++seed, NULL);
    }
    fail_all(&p);
    close_part(&p);
  }
}

/* No bucketed partition has values of size T, so such values grow while the bucket stays the same. If memory for this runs out,
 * the next run tries again. */
static void growing_may_fail(void **state) {
  (void)state;
  const way how = {.devices = "npu,npu1", .specs = {fixed, any_shape}, .multiple = 8, .refuse = 2, .products = true};
  part p;
  uint64_t seed = 4;
  for (open_part(&p, how, seed, rows); p.plan->placement.devices[4] == 0 || bucketed_nodes(&p) < 2;) {
    close_part(&p);
    open_part(&p, how, ++seed, rows);
  }
  size_t fail = 1;
  for (bool is_over = false; !is_over && fail < 5000; ++fail) {
    close_part(&p);
    open_part(&p, how, seed, rows);
    run(&p, 3, 3, false);
    is_over = fail_once(&p, fail, 4, 65);
    run(&p, 4, 65, true);
    assert_int_equal(p.session->requests[0]->prepared_count, 1);
  }
  assert_true(fail > 5 && fail < 5000);
  close_part(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs),
      cmocka_unit_test(shared_memory),
      cmocka_unit_test(two_in_flight),
      cmocka_unit_test(compilers_work_once_a_bucket),
      cmocka_unit_test(to_and_fro_over_an_edge),
      cmocka_unit_test(memory_does_not_grow),
      cmocka_unit_test(a_steady_state_takes_nothing),
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(growing_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
