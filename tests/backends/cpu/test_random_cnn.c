/* Compares seeded random convolutional graphs with the reference evaluator. The graphs contain everything that fusion, layouts
 * and in-place sums can get wrong: values read twice, outputs that are also read inside the graph, sums of a value with itself,
 * views of views, channels that do not fill a block. */
#include "backends/cpu/run/executable.h"
#include "generator.h"

static void weight(generator *g, char *name, int32_t rank, const int64_t *dims) {
  sprintf(name, "w%d", g->weights++);
  test_graph_weight(&g->t, name, rank, dims);
}

static void make_conv(generator *g, made_value *x) {
  static const int64_t outputs[] = {8, 16, 24, 32, 5, 48};
  const int64_t kernel = pick(g, 2) != 0 ? 3 : 1, stride = x->dims[2] > 8 && pick(g, 4) == 0 ? 2 : 1;
  int64_t groups = 1, channels = outputs[pick(g, 6)];
  if (pick(g, 3) == 0) {
    groups = pick(g, 2) != 0 ? x->dims[1] : x->dims[1] % 4 == 0 ? 4 : 1;
    channels = groups == x->dims[1] ? groups : channels / 4 * 4 == channels ? channels : 8;
  }
  const int64_t dims[4] = {channels, x->dims[1] / groups, kernel, kernel},
                pads[4] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  const int64_t strides[2] = {stride, stride};
  const int64_t out[4] = {x->dims[0], channels, (x->dims[2] - 1) / stride + 1, (x->dims[3] - 1) / stride + 1};
  char w[16], b[16], list[64];
  weight(g, w, 4, dims);
  weight(g, b, 1, &channels);
  snprintf(list, sizeof list, pick(g, 2) != 0 ? "%s,%s,%s" : "%s,%s", x->name, w, b);
  const clv_attribute attributes[3] = {ints(g, "pads", true, 4, pads), ints(g, "strides", true, 2, strides),
                                       ints(g, "group", false, 1, &groups)};
  node(g, "Conv", list, add(g, out)->name, attributes, 3);
}

static void make_pool(generator *g, made_value *x) {
  const int64_t kernel[2] = {3, 3}, strides[2] = {2, 2}, pads[4] = {1, 1, 1, 1}, padded = pick(g, 2);
  const int64_t out[4] = {x->dims[0], x->dims[1], (x->dims[2] - 1) / 2 + 1, (x->dims[3] - 1) / 2 + 1};
  const clv_attribute attributes[4] = {ints(g, "kernel_shape", true, 2, kernel), ints(g, "strides", true, 2, strides),
                                       ints(g, "pads", true, 4, pads), ints(g, "count_include_pad", false, 1, &padded)};
  const bool max = pick(g, 2) != 0;
  node(g, max ? "MaxPool" : "AveragePool", x->name, add(g, out)->name, attributes, max ? 3 : 4);
}

/* A random value of the same shape as `x`, most likely one that was added late; `x` itself if there is none. */
static made_value *partner(generator *g, made_value *x) {
  for (int i = g->count - 1; i >= 0; --i) {
    if (&g->values[i] != x && memcmp(g->values[i].dims, x->dims, sizeof x->dims) == 0 && pick(g, 3) != 0) return &g->values[i];
  }
  return x;
}

static void make_binary(generator *g, made_value *x) {
  static const char *const ops[] = {"Add", "Add", "Add", "Mul", "Sub", "Max"};
  char list[64], w[16];
  const char *op = ops[pick(g, 6)];
  if (pick(g, 3) == 0) { /* one constant per channel, as either operand */
    const int64_t dims[4] = {1, x->dims[1], 1, 1};
    weight(g, w, 4, dims);
    snprintf(list, sizeof list, pick(g, 2) != 0 ? "%s,%s" : "%2$s,%1$s", x->name, w);
  } else {
    made_value *y = partner(g, x);
    y->read = true;
    snprintf(list, sizeof list, "%s,%s", x->name, y->name);
  }
  node(g, op, list, add(g, x->dims)->name, NULL, 0);
}

static void make_concat(generator *g, made_value *x) {
  made_value *y = partner(g, x);
  int64_t out[4];
  const int64_t axis = pick(g, 3) != 0 ? 1 : 2;
  char list[64];
  memcpy(out, x->dims, sizeof out);
  out[axis] *= 2;
  y->read = true;
  snprintf(list, sizeof list, "%s,%s", x->name, y->name);
  const clv_attribute attribute = ints(g, "axis", false, 1, &axis);
  node(g, "Concat", list, add(g, out)->name, &attribute, 1);
}

/* Adds a convolution that keeps the shape, and the sum of its result and an earlier value, which other nodes may read later. */
static void make_residual(generator *g, made_value *x) {
  const int64_t dims[4] = {x->dims[1], x->dims[1], 3, 3}, pads[4] = {1, 1, 1, 1};
  char w[16], list[64];
  weight(g, w, 4, dims);
  snprintf(list, sizeof list, "%s,%s", x->name, w);
  const clv_attribute attribute = ints(g, "pads", true, 4, pads);
  made_value *made = add(g, x->dims), *other = partner(g, x), *sum = add(g, x->dims);
  if (other == made) other = x;
  other->read = made->read = true;
  node(g, "Conv", list, made->name, &attribute, 1);
  snprintf(list, sizeof list, pick(g, 2) != 0 ? "%s,%s" : "%2$s,%1$s", made->name, other->name);
  node(g, "Add", list, sum->name, NULL, 0);
  if (pick(g, 2) != 0) return;
  sum->read = true; /* the Sub below reads the other value after the sum */
  snprintf(list, sizeof list, "%s,%s", sum->name, other->name);
  node(g, "Sub", list, add(g, x->dims)->name, NULL, 0);
}

/* Adds a channel shuffle: reshapes to [n, g, c/g, h, w], swaps axes 1 and 2, and reshapes back. */
static void make_shuffle(generator *g, made_value *x) {
  const int64_t perm[5] = {0, 2, 1, 3, 4}, groups = x->dims[1] % 4 == 0 ? 4 : x->dims[1] % 2 == 0 ? 2 : 1;
  const int64_t apart[5] = {x->dims[0], groups, x->dims[1] / groups, x->dims[2], x->dims[3]};
  char to[16], back[16], first[24], second[24], list[64];
  sprintf(to, "w%d", g->weights++);
  sprintf(back, "w%d", g->weights++);
  test_graph_ints(&g->t, to, 5, apart);
  test_graph_ints(&g->t, back, 4, x->dims);
  made_value *made = add(g, x->dims);
  snprintf(first, sizeof first, "%s_a", made->name);
  snprintf(second, sizeof second, "%s_b", made->name);
  const clv_attribute attribute = ints(g, "perm", true, 5, perm);
  snprintf(list, sizeof list, "%s,%s", x->name, to);
  node(g, "Reshape", list, first, NULL, 0);
  node(g, "Transpose", first, second, &attribute, 1);
  snprintf(list, sizeof list, "%s,%s", second, back);
  node(g, "Reshape", list, made->name, NULL, 0);
}

static void make_unary(generator *g, made_value *x) {
  static const char *const ops[] = {"Relu",    "Relu", "LeakyRelu", "Sigmoid", "HardSwish",   "Identity",
                                    "Softmax", "Tanh", "Clip",      "Erf",     "HardSigmoid", "Neg"};
  node(g, ops[pick(g, 12)], x->name, add(g, x->dims)->name, NULL, 0);
}

static clv_graph *make_graph(uint64_t seed) {
  generator g = {.seed = seed};
  static const int64_t channels[] = {16, 3, 32, 20};
  const int64_t dims[4] = {1 + pick(&g, 2), channels[pick(&g, 4)], 9 + pick(&g, 6), 8 + pick(&g, 7)};
  test_graph_begin(&g.t, clv__allocator_default(), seed);
  clv_error error = {0};
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  add(&g, dims);
  test_graph_input(&g.t, "v0", CLV_F32, 4, dims);
  const int64_t steps = 4 + pick(&g, 16);
  for (int64_t i = 0; i < steps; ++i) {
    made_value *x = &g.values[pick(&g, 3) != 0 ? g.count - 1 : pick(&g, g.count)];
    x->read = true;
    switch (pick(&g, 12)) {
      case 0:
      case 1:
      case 2:
        make_conv(&g, x);
        break;
      case 10:
      case 11:
        make_residual(&g, x);
        break;
      case 3:
        if (x->dims[2] > 3) {
          make_pool(&g, x);
          break;
        } /* fall through */
      case 4:
      case 5:
        make_binary(&g, x);
        break;
      case 6:
        if (x->dims[1] < 100 && x->dims[2] < 40) {
          make_concat(&g, x);
          break;
        } /* fall through */
      case 7:
        make_shuffle(&g, x);
        break;
      default:
        make_unary(&g, x);
        break;
    }
  }
  char outputs[256] = "";
  int listed = 0;
  for (int i = g.count - 1; i >= 0 && listed < 12; --i) {
    if (g.values[i].read && pick(&g, 8) != 0) continue; /* some outputs are also read inside the graph */
    snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), listed++ > 0 ? ",%s" : "%s", g.values[i].name);
  }
  return test_graph_end(&g.t, outputs);
}

static void test_random_graphs(void **state) {
  (void)state;
  int retreats = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    clv_graph *graph = make_graph(seed);
    uint64_t data_seed = seed * 31;
    clv_tensor x = random_tensor(graph->allocator, &data_seed, 4, graph->values[graph->inputs[0]].type.dims);
    cpu_host_threads = seed % 8 == 0 ? 2 : 1; /* seldom 2: threads that busy-wait are slow on a busy machine */
    char what[32];
    snprintf(what, sizeof what, "seed %d", (int)seed);
    retreats += compare_with_reference(graph, &x, NULL, NULL, what);
    if (seed % 3 == 0) compare_with_reference(graph, &x, "fuse", "0", what);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
  assert_int_equal(retreats, 0); /* lowering must support everything that was fused */
}

/* The memory for values between steps and for scratch must stay near its lower bound, the most bytes alive at one step. Not every
 * set of lifetimes can reach that bound. */
static void test_memory(void **state) {
  (void)state;
  const int graphs = 300;
  double sum = 0;
  for (int seed = 1; seed <= graphs; ++seed) {
    clv_graph *graph = make_graph((uint64_t)seed);
    clv_error error = {0};
    cpu_host cpu;
    cpu_program program;
    assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
    assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
    const clv__cpu_variant *variant = program.executable->variant;
    assert_true(variant->memory_bytes >= variant->least_memory_bytes);
    const double over = variant->least_memory_bytes > 0 ? (double)variant->memory_bytes / (double)variant->least_memory_bytes : 1;
    if (over > 1.1)
      fail_msg("seed %d: the values take %zu bytes of memory, but at most %zu bytes are live in any step", seed,
               variant->memory_bytes, variant->least_memory_bytes);
    sum += over;
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__graph_destroy(graph);
  }
  assert_true(sum / graphs <= 1.005);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
