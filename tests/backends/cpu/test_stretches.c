/* Steps in lanes: random branching graphs, forced into lanes, against one step after the other bit for bit; lanes walked by
 * threads of the test's own; bytes of what may live at the same time, by brute force; steps that fail; memory that is short. */
#include <pthread.h>

#include "backends/cpu/run/executable.h"
#include "backends/cpu/run/stretch.h"
#include "generator.h"

/* ---- Graphs whose branches begin at one value and end in one. ---- */

static char *weight(generator *g, char *name, int32_t rank, const int64_t *dims) {
  sprintf(name, "w%d", g->weights++);
  test_graph_weight(&g->t, name, rank, dims);
  return name;
}

static made_value *convolve(generator *g, made_value *x, int64_t channels, int64_t kernel, int64_t groups) {
  const int64_t dims[4] = {channels, x->dims[1] / groups, kernel, kernel},
                pads[4] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  const int64_t out[4] = {x->dims[0], channels, x->dims[2], x->dims[3]};
  char w[16], b[16], list[64];
  snprintf(list, sizeof list, "%s,%s,%s", x->name, weight(g, w, 4, dims), weight(g, b, 1, &channels));
  const clv_attribute attributes[2] = {ints(g, "pads", true, 4, pads), ints(g, "group", false, 1, &groups)};
  made_value *made = add(g, out);
  node(g, "Conv", list, made->name, attributes, 2);
  return made;
}

static made_value *pool(generator *g, made_value *x, const char *op) {
  const int64_t kernel[2] = {3, 3}, pads[4] = {1, 1, 1, 1};
  const clv_attribute attributes[2] = {ints(g, "kernel_shape", true, 2, kernel), ints(g, "pads", true, 4, pads)};
  made_value *made = add(g, x->dims);
  node(g, op, x->name, made->name, attributes, 2);
  return made;
}

static made_value *function(generator *g, made_value *x) {
  static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "Neg"};
  made_value *made = add(g, x->dims);
  node(g, ops[pick(g, 5)], x->name, made->name, NULL, 0);
  return made;
}

/* By statistics of its own: its step waits for all threads, and is in no lane. */
static made_value *normalize(generator *g, made_value *x) {
  char scale[16], shift[16], list[64];
  snprintf(list, sizeof list, "%s,%s,%s", x->name, weight(g, scale, 1, &x->dims[1]), weight(g, shift, 1, &x->dims[1]));
  made_value *made = add(g, x->dims);
  node(g, "InstanceNormalization", list, made->name, NULL, 0);
  return made;
}

static made_value *pair(generator *g, const char *op, const made_value *x, const made_value *y) {
  char list[64];
  snprintf(list, sizeof list, "%s,%s", x->name, y->name);
  made_value *made = add(g, x->dims);
  node(g, op, list, made->name, NULL, 0);
  return made;
}

static made_value *branch(generator *g, made_value *x, int64_t channels) {
  for (int64_t left = pick(g, 3); left > 0; --left) {
    switch (pick(g, 6)) {
      case 0:
        x = pool(g, x, pick(g, 2) != 0 ? "MaxPool" : "AveragePool");
        break;
      case 1:
        x = function(g, x);
        break;
      case 2:
        x = convolve(g, x, x->dims[1], 3, x->dims[1]);
        break;
      case 3:
        x = pair(g, "Add", function(g, x), x); /* two readers, one of them writing over it perhaps */
        break;
      case 4:
        x = normalize(g, x);
        break;
      default:
        x = convolve(g, x, 8 + 8 * pick(g, 3), 1, 1);
        break;
    }
  }
  return convolve(g, x, channels, pick(g, 2) != 0 ? 3 : 1, 1);
}

static clv_graph *make_graph(const clv_allocator *allocator, uint64_t seed) {
  generator g = {.seed = seed};
  const int64_t dims[4] = {1, 16, 7 + pick(&g, 8), 9};
  clv_error error = {0};
  test_graph_begin(&g.t, allocator, seed);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  made_value *x = add(&g, dims);
  test_graph_input(&g.t, "v0", CLV_F32, 4, dims);
  char outputs[128] = "";
  for (int64_t modules = 1 + pick(&g, 2); modules > 0; --modules) {
    const int64_t branches = 2 + pick(&g, 2), axis = 1;
    const bool joins = pick(&g, 2) != 0;
    made_value *last = NULL;
    for (int64_t b = 0; b < branches; ++b) {
      made_value *end = branch(&g, x, 16);
      if (last != NULL && joins) {
        int64_t out[4];
        char list[64];
        memcpy(out, last->dims, sizeof out);
        out[1] += 16;
        snprintf(list, sizeof list, "%s,%s", last->name, end->name);
        const clv_attribute attribute = ints(&g, "axis", false, 1, &axis);
        last = add(&g, out);
        node(&g, "Concat", list, last->name, &attribute, 1);
      } else {
        last = last != NULL ? pair(&g, "Add", last, end) : end;
      }
    }
    x = last;
    if (pick(&g, 3) == 0) { /* seen from outside, too */
      snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s,", function(&g, x)->name);
    }
  }
  snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s", x->name);
  return test_graph_end(&g.t, outputs);
}

/* ---- One graph, compiled with lanes or without. ---- */

typedef struct compiled {
  cpu_host cpu;
  cpu_program program;
  clv_tensor made[16];
} compiled;

static void compile(compiled *c, clv_graph *graph, const char *lanes) {
  clv_error error = {0};
  *c = (compiled){0};
  assert_ok(cpu_host_open(&c->cpu, graph->allocator, "lanes", lanes, &error), error);
  assert_ok(cpu_program_open(&c->program, &c->cpu, graph, NULL, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) c->made[i].rank = CLV_RANK_UNKNOWN;
}

static void drop(compiled *c) {
  for (uint32_t i = 0; i < c->program.graph->output_count; ++i) clv__release(c->program.graph->allocator, c->made[i].data);
  cpu_program_close(&c->program);
  cpu_host_close(&c->cpu);
}

static void assert_equal(const compiled *a, const compiled *b, const char *what) {
  for (uint32_t i = 0; i < a->program.graph->output_count; ++i) {
    size_t size_bytes;
    assert_true(clv__tensor_same_type(&a->made[i], &b->made[i]) && clv__tensor_size_bytes(&a->made[i], &size_bytes));
    if (memcmp(a->made[i].data, b->made[i].data, size_bytes) != 0) fail_msg("%s: output %u differs", what, i);
  }
}

/* ---- What may live at the same time. ---- */

/* over[a * count + b]: step a is over when step b begins, by the order of the list, of the lanes, and by waits. */
static bool *find_over(const clv__cpu_plan *plan) {
  const size_t count = plan->step_count;
  bool *over = calloc(count * count, sizeof *over);
  assert_non_null(over);
  for (size_t b = 0; b < count; ++b) {
    const clv__cpu_step *step = &plan->steps[b];
    for (size_t a = 0; a < b; ++a) {
      const clv__cpu_step *other = &plan->steps[a];
      const bool beside = step->lane != CLV__CPU_NO_LANE && other->lane != CLV__CPU_NO_LANE && step->stretch == other->stretch;
      over[a * count + b] = !beside || step->lane == other->lane;
    }
    for (uint32_t i = 0; i < step->wait_count; ++i) {
      uint32_t done = 0;
      for (size_t a = plan->stretches[step->stretch].first; a < b; ++a) {
        if (plan->steps[a].lane == step->waits[i].lane && ++done <= step->waits[i].done) over[a * count + b] = true;
      }
    }
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t a = 0; a < k; ++a) {
      for (size_t b = k; b < count && over[a * count + k]; ++b) over[a * count + b] = over[a * count + b] || over[k * count + b];
    }
  }
  return over;
}

/* Whether step s uses the memory `m`: a slot's, or, after those, a step's scratch. */
static bool uses(const clv__cpu_plan *plan, size_t s, size_t m) {
  if (m >= plan->slot_count) return m - plan->slot_count == s;
  for (uint32_t i = 0; i < plan->steps[s].operand_count; ++i) {
    const uint32_t slot = plan->steps[s].operands[i].slot;
    if (slot != CLV__CPU_NONE && plan->slots[slot].root == m) return true;
  }
  return false;
}

static bool is_before(const clv__cpu_plan *plan, const bool *over, size_t m, size_t n) {
  for (size_t a = 0; a < plan->step_count; ++a) {
    if (!uses(plan, a, m)) continue;
    for (size_t b = 0; b < plan->step_count; ++b) {
      if (uses(plan, b, n) && !over[a * plan->step_count + b]) return false;
    }
  }
  return true;
}

static size_t extent(const clv__cpu_plan *plan, size_t m, size_t *offset) {
  if (m >= plan->slot_count) {
    *offset = plan->steps[m - plan->slot_count].scratch_offset_bytes;
    return plan->steps[m - plan->slot_count].scratch_bytes;
  }
  const clv__cpu_slot *slot = &plan->slots[m];
  *offset = slot->offset_bytes;
  return slot->kind == CLV__CPU_SLOT_ARENA && slot->root == m && slot->first != UINT32_MAX ? slot->size_bytes : 0;
}

static void check_memory(const clv__cpu_plan *plan, const char *what) {
  bool *over = find_over(plan);
  assert_true(plan->memory_bytes >= plan->least_memory_bytes);
  for (size_t m = 0; m < plan->slot_count + plan->step_count; ++m) {
    size_t at, other_at;
    const size_t size_bytes = extent(plan, m, &at);
    assert_true(at + size_bytes <= plan->memory_bytes || size_bytes == 0);
    for (size_t n = 0; n < m && size_bytes > 0; ++n) {
      const size_t other = extent(plan, n, &other_at);
      if (other == 0 || at + size_bytes <= other_at || other_at + other <= at) continue;
      if (is_before(plan, over, m, n) || is_before(plan, over, n, m)) continue;
      fail_msg("%s: memory %zu and %zu of %zu slots share bytes and may live at the same time", what, m, n, plan->slot_count);
    }
  }
  free(over);
}

/* ---- Lanes walked by threads of the test's own: with or without OpenMP, and where a tool follows threads. ---- */

typedef struct walker {
  clv__cpu_lanes *lanes;
  uint32_t lane;
} walker;

static void *walk(void *cookie) {
  const walker *w = cookie;
  const int threads = clv__cpu_threads_enter_one();
  clv__cpu_lane_walk(w->lanes, w->lane);
  clv__cpu_threads_leave_one(threads);
  return NULL;
}

static void run_by_threads(const clv__cpu_list *list) {
  clv_error error = {0};
  for (size_t at = 0; at < list->size_bytes;) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)(list->block + at), *failed;
    at += call->size_bytes;
    if (!call->is_stretch) {
      assert_ok(clv__cpu_calls_run(call, call->size_bytes, &failed, &error), error);
      continue;
    }
    clv__cpu_lanes lanes;
    pthread_t threads[CLV__CPU_MAX_LANES];
    walker walkers[CLV__CPU_MAX_LANES];
    clv__cpu_lanes_init(&lanes, call, NULL, &error);
    for (uint32_t l = 0; l < clv__cpu_stretch_lanes(call); ++l) {
      walkers[l] = (walker){&lanes, l};
      assert_int_equal(pthread_create(&threads[l], NULL, walk, &walkers[l]), 0);
    }
    for (uint32_t l = 0; l < clv__cpu_stretch_lanes(call); ++l) pthread_join(threads[l], NULL);
    assert_int_equal(lanes.status, CLV_OK);
  }
}

typedef struct sums {
  uint32_t stretches, waits;
} sums;

static void compare(clv_graph *graph, const char *lane_count, uint64_t seed, sums *sum) {
  clv_error error = {0};
  char what[32];
  compiled plain, lanes;
  clv_tensor inputs[16];
  snprintf(what, sizeof what, "seed %d", (int)seed);
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = &graph->values[graph->inputs[i]].type;
    inputs[i] = random_tensor(graph->allocator, &seed, type->rank, type->dims);
  }
  cpu_host_threads = 2;
  compile(&plain, graph, "off");
  compile(&lanes, graph, lane_count);
  assert_int_equal(plain.program.executable->plan->stretch_count, 0);
  const clv__cpu_plan *plan = lanes.program.executable->plan;
  sum->stretches += (uint32_t)plan->stretch_count;
  for (size_t s = 0; s < plan->step_count; ++s) sum->waits += plan->steps[s].wait_count;
  check_memory(plan, what);
  assert_ok(cpu_program_run(&plain.program, inputs, plain.made, &error), error);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < graph->output_count && round > 0; ++i) memset(lanes.made[i].data, 0x5a, 16);
    assert_ok(cpu_program_run(&lanes.program, inputs, lanes.made, &error), error);
    assert_equal(&plain, &lanes, what);
  }
  for (uint32_t i = 0; i < graph->output_count; ++i) memset(lanes.made[i].data, 0x5a, 16);
  run_by_threads(lanes.program.instance->run->list);
  assert_equal(&plain, &lanes, what);
  drop(&lanes);
  drop(&plain);
  for (uint32_t i = 0; i < graph->input_count; ++i) clv__release(graph->allocator, inputs[i].data);
}

static void test_random_branches(void **state) {
  (void)state;
  sums sum = {0};
  for (uint64_t seed = 1; seed <= 62; ++seed) {
    clv_graph *graph = make_graph(clv__allocator_default(), seed);
    compare(graph, seed % 3 == 0 ? "2" : seed % 3 == 1 ? "3" : "5", seed, &sum);
    clv__graph_destroy(graph);
  }
  if (sum.stretches < 50 || sum.waits < 30) fail_msg("%u stretches, %u waits", sum.stretches, sum.waits);
}

/* Small steps with many orders among them. */
static void test_random_orders(void **state) {
  (void)state;
  sums sum = {0};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    clv_graph *graph = test_random_graph(clv__allocator_default(), seed, 10 + (uint32_t)(seed % 3) * 25);
    compare(graph, seed % 3 == 0 ? "2" : seed % 3 == 1 ? "3" : "16", seed, &sum);
    clv__graph_destroy(graph);
  }
  if (sum.stretches < 50 || sum.waits < 300) fail_msg("%u stretches, %u waits", sum.stretches, sum.waits);
}

/* ---- As the model of costs has it. ---- */

/* Many small steps side by side, after a large one that needs the most memory; or all of them in one chain. */
static clv_graph *small_steps(const clv_allocator *allocator, bool is_chain) {
  static const char *const ops[] = {"Sin", "Cos", "Tan", "Atan"};
  test_graph t;
  const int64_t dims[2] = {64, 1000}, weights[2] = {1000, 40}, axis = 1;
  char list[128] = "", from[16] = "c";
  test_graph_begin(&t, allocator, 3);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_weight(&t, "w", 2, weights);
  test_graph_node(&t, "large", "Tanh", "x", "b");
  test_graph_node(&t, "product", "MatMul", "b,w", "c");
  for (int b = 0; b < 8; ++b) {
    if (!is_chain) snprintf(from, sizeof from, "c");
    for (int i = 0; i < 4; ++i) {
      char to[16];
      snprintf(to, sizeof to, "v%d%d", b, i);
      test_graph_node(&t, to, ops[(b + i) % 4], from, to);
      snprintf(from, sizeof from, "%s", to);
    }
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", b > 0 ? "," : "", from);
  }
  test_graph_node_ints(&t, "join", "Concat", is_chain ? "v73" : list, "y", "axis", false, 1, &axis);
  return test_graph_end(&t, "y");
}

static void test_by_model(void **state) {
  (void)state;
#ifdef _OPENMP
  const bool threads = true;
#else
  const bool threads = false; /* no lanes but forced ones */
#endif
  const int64_t dims[2] = {64, 1000};
  for (int is_chain = 0; is_chain < 2; ++is_chain) {
    clv_graph *graph = small_steps(clv__allocator_default(), is_chain);
    clv_error error = {0};
    uint64_t seed = 9;
    compiled plain, lanes;
    clv_tensor x = random_tensor(graph->allocator, &seed, 2, dims);
    cpu_host_threads = 4;
    compile(&plain, graph, "off");
    compile(&lanes, graph, "on");
    const clv__cpu_plan *plan = lanes.program.executable->plan;
    assert_int_equal(plan->stretch_count, threads && !is_chain);
    if (plan->stretch_count > 0) assert_true(plan->stretches[0].lane_count == 4 && plan->stretches[0].count == 32);
    assert_true((double)plan->memory_bytes <= 1.03 * (double)plain.program.executable->plan->memory_bytes);
    check_memory(plan, "by model");
    assert_ok(cpu_program_run(&plain.program, &x, plain.made, &error), error);
    assert_ok(cpu_program_run(&lanes.program, &x, lanes.made, &error), error);
    assert_equal(&plain, &lanes, "by model");
    drop(&lanes);
    drop(&plain);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
}

/* ---- Times, and when there are none. ---- */

static clv_status add_time(void *cookie, const clv_step_info *info) {
  *(uint64_t *)cookie += info->time_ns;
  return CLV_OK;
}

/* Every step of a stretch has a time, and all together have no more than the run took. */
static void test_times(void **state) {
  (void)state;
  clv_graph *graph = make_graph(clv__allocator_default(), 5);
  clv_error error = {0};
  uint64_t numbers = 5, total = 0;
  compiled lanes;
  clv_tensor x = random_tensor(graph->allocator, &numbers, 4, graph->values[graph->inputs[0]].type.dims);
  cpu_host_threads = 2;
  compile(&lanes, graph, "2");
  const clv_backend *backend = lanes.cpu.backend;
  assert_true(lanes.program.executable->plan->stretch_count > 0);
  assert_ok(backend->timing->enable(lanes.cpu.device, lanes.program.instance, true, &error), error);
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < 5; ++i) assert_ok(cpu_program_run(&lanes.program, &x, lanes.made, &error), error);
  clock_gettime(CLOCK_MONOTONIC, &to);
  const double took = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
  assert_ok(backend->timing->steps(lanes.cpu.device, lanes.program.instance, add_time, &total, &error), error);
  assert_true((double)total <= took);
  for (size_t s = 0; s < lanes.program.executable->plan->step_count; ++s) {
    if (lanes.program.executable->plan->steps[s].lane != CLV__CPU_NO_LANE) {
      assert_true(lanes.program.instance->run->step_ns[s] > 0);
    }
  }
  drop(&lanes);
  clv__release(graph->allocator, x.data);
  clv__graph_destroy(graph);
}

static void test_without(void **state) {
  (void)state;
  clv_graph *graph = make_graph(clv__allocator_default(), 5);
  compiled c;
  cpu_host_threads = 2;
  cpu_host_deterministic = true;
  compile(&c, graph, "2");
  assert_int_equal(c.program.executable->plan->stretch_count, 0);
  drop(&c);
  cpu_host_deterministic = false;
  cpu_host_threads = 1;
  compile(&c, graph, "on");
  assert_int_equal(c.program.executable->plan->stretch_count, 0);
  drop(&c);
  clv__graph_destroy(graph);
  static const char *const wrong[] = {"17", "1.5", "-1", "many", "2x", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    cpu_host cpu;
    clv_error error = {0};
    assert_int_equal(cpu_host_open(&cpu, clv__allocator_default(), "lanes", wrong[i], &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "2 to 16"));
    cpu_host_close(&cpu);
  }
}

/* ---- A step that fails beside others. ---- */

static clv_graph *gathers(const clv_allocator *allocator) {
  test_graph t;
  const int64_t dims[2] = {64, 40}, places[1] = {9};
  test_graph_begin(&t, allocator, 3);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_input(&t, "i", CLV_I64, 1, places);
  test_graph_node(&t, "left", "Sin", "x", "a");
  test_graph_node(&t, "right", "Cos", "x", "b");
  test_graph_node(&t, "rows of a", "Gather", "a,i", "c");
  test_graph_node(&t, "on", "Tan", "b", "d");
  test_graph_node(&t, "rows of b", "Gather", "d,i", "e");
  test_graph_node(&t, "more", "Atan", "c", "f");
  test_graph_node(&t, "end", "Add", "e,f", "g");
  return test_graph_end(&t, "g");
}

static void test_failure(void **state) {
  (void)state;
  clv_graph *graph = gathers(clv__allocator_default());
  const int64_t dims[2] = {64, 40}, places[1] = {9};
  clv_error error = {0};
  uint64_t seed = 1;
  int64_t right[9] = {0, 63, 5, 5, -64, 1, 2, 3, 4}, wrong[9] = {0, 1, 2, 3, 4, 5, 64, 7, 8};
  compiled plain, lanes;
  cpu_host_threads = 2;
  compile(&plain, graph, "off");
  compile(&lanes, graph, "2");
  assert_true(lanes.program.executable->plan->stretch_count > 0);
  clv_tensor inputs[2] = {random_tensor(graph->allocator, &seed, 2, dims), clv__tensor_make(CLV_I64, 1, places, right)};
  assert_ok(cpu_program_run(&plain.program, inputs, plain.made, &error), error);
  for (int round = 0; round < 20; ++round) {
    inputs[1].data = wrong;
    memset(&error, 0, sizeof error);
    assert_int_equal(cpu_program_run(&lanes.program, inputs, lanes.made, &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "rows of "));
    assert_non_null(strstr(error.message, "64"));
    inputs[1].data = right;
    assert_ok(cpu_program_run(&lanes.program, inputs, lanes.made, &error), error);
    assert_equal(&plain, &lanes, "after a failure");
  }
  drop(&lanes);
  drop(&plain);
  clv__release(graph->allocator, inputs[0].data);
  clv__graph_destroy(graph);
}

/* ---- Memory. ---- */

static void test_allocation_failures(void **state) {
  (void)state;
  test_allocator failing;
  test_allocator_init(&failing);
  clv_graph *graph = make_graph(&failing.allocator, 5);
  const size_t live = failing.live;
  clv_error error = {0};
  bool done = false;
  cpu_host_threads = 2;
  for (size_t fail_after = 1; !done && fail_after < 20000; fail_after += fail_after < 400 ? 1 : 7) {
    cpu_host cpu;
    cpu_program program = {0};
    failing.fail_at = failing.calls + fail_after;
    clv_status status = cpu_host_open(&cpu, &failing.allocator, "lanes", "2", &error);
    if (status == CLV_OK) status = cpu_program_open(&program, &cpu, graph, NULL, &error);
    done = status == CLV_OK && failing.calls < failing.fail_at;
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    if (done) assert_true(program.executable->plan->stretch_count > 0);
    if (program.graph != NULL) cpu_program_close(&program);
    cpu_host_close(&cpu);
    assert_int_equal(failing.live, live);
  }
  assert_true(done);
  failing.fail_at = 0;
  clv__graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_branches),
                                     cmocka_unit_test(test_random_orders),
                                     cmocka_unit_test(test_by_model),
                                     cmocka_unit_test(test_times),
                                     cmocka_unit_test(test_without),
                                     cmocka_unit_test(test_failure),
                                     cmocka_unit_test(test_allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
