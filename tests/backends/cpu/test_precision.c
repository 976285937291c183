/* Compares random graphs in f16, in bf16, and in f32 with products in bf16 with the reference evaluator in f32. The graphs
 * contain all steps at which dtypes may change (products, sums, moves, kernels, casts, views), in any order. Also tests that an
 * f32 graph is computed entirely in f32 unless bf16 is requested. */
#include "backends/cpu/run/executable.h"
#include "generator.h"
#include "operators/common/rows.h"

#define SEEDS 60

static const clv_allocator *graph_allocator; /* for graphs that are made later; NULL: the default allocator */

/* Makes random numbers that the dtype `rounds` represents exactly, stored as `dtype`. */
static void *numbers(const clv_allocator *allocator, uint64_t *seed, clv_dtype rounds, clv_dtype dtype, size_t count,
                     float scale) {
  float *wide = clv__allocate(allocator, count * sizeof *wide);
  void *narrow = clv__allocate(allocator, count * sizeof *wide);
  assert_true(wide != NULL && narrow != NULL);
  for (size_t i = 0; i < count; ++i) wide[i] = test_random_float(seed) * scale;
  clv__row_from_f32(rounds, narrow, 0, (int64_t)count, wide);
  if (dtype != rounds) clv__row_to_f32(rounds, narrow, 0, (int64_t)count, wide);
  clv__release(allocator, dtype != rounds ? narrow : (void *)wide);
  return dtype != rounds ? (void *)wide : narrow;
}

static void weight(generator *g, char *name, int32_t rank, const int64_t *dims) {
  clv_tensor type = clv__tensor_make(g->dtype, rank, dims, NULL);
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv_value_id id;
  size_t count, size_bytes;
  assert_true(clv__tensor_count(&type, &count) && clv__tensor_size_bytes(&type, &size_bytes));
  const float scale = 1.0f / sqrtf((float)clv__dims_product(&type, rank > 1 ? 1 : 0, rank));
  void *data = numbers(allocator, &g->seed, g->rounds, g->dtype, count, scale);
  type.data = clv__arena_copy(clv__builder_arena(g->t.builder), data, size_bytes);
  clv__release(allocator, data);
  sprintf(name, "w%d", g->weights++);
  assert_ok(clv__builder_value(g->t.builder, name, &id, &error), error);
  clv__builder_type(g->t.builder, id, &type);
}

/* Returns another value of the shape of `x`, or `x` itself, and marks it as read. */
static made_value *partner(generator *g, made_value *x) {
  for (int i = g->count - 1; i >= 0; --i) {
    made_value *y = &g->values[i];
    if (y != x && memcmp(y->dims, x->dims, sizeof x->dims) == 0 && pick(g, 3) != 0) x = y;
  }
  x->read = true;
  return x;
}

static void make_conv(generator *g, made_value *x) {
  static const int64_t outputs[] = {8, 16, 24, 5};
  const int64_t kernel = pick(g, 2) != 0 ? 3 : 1, channels = pick(g, 2) != 0 ? x->dims[1] : outputs[pick(g, 4)];
  const int64_t pads[4] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2}, dims[4] = {channels, x->dims[1], kernel, kernel};
  const int64_t out[4] = {x->dims[0], channels, x->dims[2], x->dims[3]};
  char w[16], b[16], list[64], sum[64];
  weight(g, w, 4, dims);
  weight(g, b, 1, &channels);
  snprintf(list, sizeof list, "%s,%s,%s", x->name, w, b);
  const clv_attribute attribute = ints(g, "pads", true, 4, pads);
  made_value *made = add(g, out);
  node(g, "Conv", list, made->name, &attribute, 1);
  if (pick(g, 2) != 0) return;
  made_value *other = partner(g, made); /* add another value; the sum may be fused into the convolution */
  made->read = true;
  snprintf(sum, sizeof sum, "%s,%s", made->name, other->name);
  node(g, "Add", sum, add(g, out)->name, NULL, 0);
}

/* Multiplies x by a constant matrix, which may be packed, or by its own transpose. */
static void make_matmul(generator *g, made_value *x) {
  const int64_t depth = x->dims[3], perm[4] = {0, 1, 3, 2};
  char w[16], list[64], turned[24];
  if (pick(g, 2) != 0) {
    const int64_t columns = pick(g, 2) != 0 ? depth : 8 + pick(g, 24), dims[2] = {depth, columns};
    const int64_t out[4] = {x->dims[0], x->dims[1], x->dims[2], columns};
    weight(g, w, 2, dims);
    snprintf(list, sizeof list, "%s,%s", x->name, w);
    node(g, "MatMul", list, add(g, out)->name, NULL, 0);
    return;
  }
  const int64_t out[4] = {x->dims[0], x->dims[1], x->dims[2], x->dims[2]};
  made_value *made = add(g, out);
  snprintf(turned, sizeof turned, "%s_t", made->name);
  const clv_attribute attribute = ints(g, "perm", true, 4, perm);
  node(g, "Transpose", x->name, turned, &attribute, 1);
  snprintf(list, sizeof list, "%s,%s", x->name, turned);
  node(g, "MatMul", list, made->name, NULL, 0);
}

static void make_binary(generator *g, made_value *x) {
  static const char *const ops[] = {"Add", "Mul", "Sub", "Max"};
  const char *op = ops[pick(g, 4)];
  char list[64], w[16];
  if (pick(g, 3) == 0) {
    const int64_t channels[4] = {1, x->dims[1], 1, 1}, last[1] = {x->dims[3]};
    const bool along = pick(g, 2) != 0;
    weight(g, w, along ? 4 : 1, along ? channels : last);
    snprintf(list, sizeof list, "%s,%s", x->name, w);
  } else {
    snprintf(list, sizeof list, "%s,%s", x->name, partner(g, x)->name);
  }
  node(g, op, list, add(g, x->dims)->name, NULL, 0);
}

static void make_unary(generator *g, made_value *x) {
  static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "Erf", "Softmax", "Identity", "Abs"};
  node(g, ops[pick(g, 8)], x->name, add(g, x->dims)->name, NULL, 0);
}

static void make_norm(generator *g, made_value *x) {
  const int64_t extent = x->dims[3];
  char scale[16], shift[16], list[64];
  weight(g, scale, 1, &extent);
  weight(g, shift, 1, &extent);
  snprintf(list, sizeof list, "%s,%s,%s", x->name, scale, shift);
  node(g, "LayerNormalization", list, add(g, x->dims)->name, NULL, 0);
}

/* Adds a node that moves elements: Transpose, Concat, Gather or Reshape. */
static void make_move(generator *g, made_value *x) {
  const int64_t turned[4] = {x->dims[0], x->dims[1], x->dims[3], x->dims[2]}, perm[4] = {0, 1, 3, 2}, axis = 1;
  const int64_t joined[4] = {x->dims[0], 2 * x->dims[1], x->dims[2], x->dims[3]}, rows[2] = {x->dims[1] - 1, 0};
  const int64_t picked[4] = {x->dims[0], 2, x->dims[2], x->dims[3]};
  const clv_attribute on_axis = ints(g, "axis", false, 1, &axis), with_perm = ints(g, "perm", true, 4, perm);
  char name[16], list[64];
  const int64_t what = pick(g, 4);
  if (what == 0) {
    node(g, "Transpose", x->name, add(g, turned)->name, &with_perm, 1);
  } else if (what == 1 && x->dims[1] < 40) {
    snprintf(list, sizeof list, "%s,%s", x->name, partner(g, x)->name);
    node(g, "Concat", list, add(g, joined)->name, &on_axis, 1);
  } else {
    sprintf(name, "w%d", g->weights++);
    test_graph_ints(&g->t, name, what == 2 ? 2 : 4, what == 2 ? rows : turned);
    snprintf(list, sizeof list, "%s,%s", x->name, name);
    node(g, what == 2 ? "Gather" : "Reshape", list, add(g, what == 2 ? picked : turned)->name, &on_axis, what == 2);
  }
}

/* Casts to f32, applies a function and casts back. The last Cast must round. */
static void make_cast(generator *g, made_value *x) {
  const int64_t wide = CLV_F32, own = g->dtype;
  const clv_attribute to_wide = ints(g, "to", false, 1, &wide), to_own = ints(g, "to", false, 1, &own);
  made_value *made = add(g, x->dims);
  char first[24], second[24];
  snprintf(first, sizeof first, "%s_a", made->name);
  snprintf(second, sizeof second, "%s_b", made->name);
  node(g, "Cast", x->name, first, &to_wide, 1);
  node(g, pick(g, 2) != 0 ? "Sigmoid" : "Erf", first, second, NULL, 0);
  node(g, "Cast", second, made->name, &to_own, 1);
}

static clv_graph *make_graph(uint64_t seed, clv_dtype dtype, clv_dtype rounds) {
  static void (*const makers[])(generator *, made_value *) = {make_conv,  make_conv,  make_matmul, make_matmul, make_binary,
                                                              make_unary, make_unary, make_norm,   make_move,   make_cast};
  generator g = {.seed = seed, .dtype = dtype, .rounds = rounds};
  static const int64_t channels[] = {16, 3, 8};
  const int64_t dims[4] = {1 + pick(&g, 2), channels[pick(&g, 3)], 6 + pick(&g, 20), 5 + pick(&g, 30)};
  clv_error error = {0};
  test_graph_begin(&g.t, graph_allocator != NULL ? graph_allocator : clv__allocator_default(), seed);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  test_graph_input(&g.t, add(&g, dims)->name, dtype, 4, dims);
  const int64_t steps = 3 + pick(&g, 9);
  for (int64_t i = 0; i < steps; ++i) {
    made_value *x = &g.values[pick(&g, 4) != 0 ? g.count - 1 : pick(&g, g.count)];
    x->read = true;
    makers[pick(&g, 10)](&g, x);
  }
  char outputs[256] = "";
  for (int i = g.count - 1, listed = 0; i >= 0 && listed < 10; --i) {
    if (g.values[i].read && pick(&g, 8) != 0) continue; /* some outputs are also read inside the graph */
    snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), listed++ > 0 ? ",%s" : "%s", g.values[i].name);
  }
  return test_graph_end(&g.t, outputs);
}

/* ---- Results. ---- */

static double worst_share(const clv_tensor *made, const clv_tensor *wanted) {
  size_t count;
  double largest = 0.05, difference = 0;
  assert_true(clv__tensor_count(wanted, &count));
  for (size_t i = 0; i < count; ++i) {
    const double e = clv__tensor_get(wanted, i), d = fabs(clv__tensor_get(made, i) - e);
    if (fabs(e) > largest) largest = fabs(e);
    if (!(d <= difference)) difference = d;
  }
  return difference / largest;
}

static void evaluate(uint64_t seed, clv_dtype dtype, clv_dtype rounds, clv_tensor *outputs) {
  clv_graph *graph = make_graph(seed, dtype, rounds);
  clv_tensor x = graph->values[graph->inputs[0]].type;
  uint64_t data_seed = seed * 31;
  clv_error error = {0};
  size_t count;
  assert_true(clv__tensor_count(&x, &count));
  x.data = numbers(graph->allocator, &data_seed, rounds, dtype, count, 1.0f);
  assert_ok(clv__graph_evaluate(graph, &x, NULL, outputs, NULL, NULL, graph->allocator, &error), error);
  clv__release(graph->allocator, x.data);
  clv__graph_destroy(graph);
}

/* Runs the graph of `seed` in `dtype`. The outputs must have that dtype. Their error relative to f32 must be at most `tolerance`
 * plus three times the error of the reference evaluator when it rounds every value to `rounds`: a norm of nearly equal values
 * magnifies rounding errors. Returns the largest error of the outputs that rounding affects little. */
static double check(uint64_t seed, clv_dtype dtype, clv_dtype rounds, double tolerance, const char *what) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_graph *graph = make_graph(seed, dtype, rounds);
  clv_tensor made[16] = {{0}}, wanted[16] = {{0}}, narrow[16] = {{0}}, x = graph->values[graph->inputs[0]].type;
  size_t count;
  uint64_t data_seed = seed * 31;
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  double worst = 0;
  assert_true(clv__tensor_count(&x, &count));
  x.data = numbers(allocator, &data_seed, rounds, dtype, count, 1.0f);
  cpu_host_threads = seed % 8 == 0 ? 2 : 1;
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) made[i].rank = CLV_RANK_UNKNOWN;
  assert_ok(cpu_program_run(&program, &x, made, &error), error);
  evaluate(seed, CLV_F32, rounds, wanted);
  evaluate(seed, rounds, rounds, narrow);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    const double share = worst_share(&made[i], &wanted[i]), rounded = worst_share(&narrow[i], &wanted[i]);
    const char *name = graph->values[graph->outputs[i]].name;
    assert_int_equal(made[i].dtype, dtype);
    if (!(share <= tolerance + 3 * rounded)) {
      fail_msg("%s, seed %d: output '%s' is off by %g of its largest magnitude, the rounding reference by %g", what, (int)seed,
               name, share, rounded);
    }
    if (rounded < tolerance && share > worst) worst = share;
    clv__release(allocator, made[i].data);
    clv__release(allocator, wanted[i].data);
    clv__release(allocator, narrow[i].data);
  }
  assert_int_equal(cpu.retreats, 0);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__release(allocator, x.data);
  clv__graph_destroy(graph);
  return worst;
}

static void check_all(clv_dtype dtype, clv_dtype rounds, clv_dtype precision, double tolerance, const char *what) {
  double worst = 0;
  cpu_host_precision = precision;
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    const double share = check(seed, dtype, rounds, tolerance, what);
    if (share > worst) worst = share;
  }
  cpu_host_precision = CLV_DTYPE_NONE;
  print_message("%s: errors of at most %.3g of the largest magnitude\n", what, worst);
}

static void test_f16(void **state) {
  (void)state;
  check_all(CLV_F16, CLV_F16, CLV_DTYPE_NONE, 4e-3, "f16");
}

static void test_bf16(void **state) {
  (void)state;
  check_all(CLV_BF16, CLV_BF16, CLV_DTYPE_NONE, 3e-2, "bf16");
}

static void test_asked(void **state) {
  (void)state;
  check_all(CLV_F32, CLV_BF16, CLV_BF16, 3e-2, "f32 with products in bf16");
}

/* ---- The dtypes of steps. ---- */

static const char *const sensitive[] = {"Softmax", "LayerNormalization"};

/* Counts the operands, over all steps, that are not f32. Fails if a step that is sensitive to rounding reads such an operand.
 * The graph must be f32. */
static int narrow_operands(const clv__cpu_variant *variant, uint64_t seed) {
  int narrow = 0;
  for (size_t s = 0; s < variant->step_count; ++s) {
    const clv__cpu_step *step = &variant->steps[s];
    for (uint32_t i = 0; i < step->operand_count; ++i) {
      const clv__dnn_layout *layout = step->operands[i].layout;
      if (layout == NULL || clv__dnn_layout_dtype(layout) == CLV_F32) continue;
      narrow++;
      for (size_t k = 0; k < sizeof sensitive / sizeof sensitive[0] && i < step->input_count; ++k) {
        if (strcmp(step->what, sensitive[k]) == 0)
          fail_msg("seed %d: %s, which needs f32 inputs, reads a bf16 value", (int)seed, step->what);
      }
    }
  }
  return narrow;
}

/* In an f32 graph, outputs, and values that a post (an operation fused into a node) adds to an f32 result, must be computed in
 * f32. */
static void check_made(const clv__cpu_variant *variant, uint64_t seed) {
  for (uint32_t i = 0; i < variant->program->output_count; ++i) {
    const clv__cpu_variant_value *value = &variant->values[variant->program->outputs[i]];
    if (value->producer == CLV__CPU_NONE || value->made == CLV_F32) continue;
    fail_msg("seed %d: output %d is computed in bf16, but must be computed in f32", (int)seed, (int)i);
  }
  for (uint32_t n = 0; n < variant->node_count; ++n) {
    const clv__cpu_variant_node *node = &variant->nodes[n];
    if (node->dead || node->output_count == 0 || variant->values[node->outputs[0]].made != CLV_F32) continue;
    for (uint32_t i = 0; i < node->post_count; ++i) {
      if (node->posts[i].kind != CLV__CPU_POST_ADD || variant->values[node->posts[i].value].made == CLV_F32) continue;
      fail_msg("seed %d: a value that is added to an f32 result is computed in bf16, but must be computed in f32", (int)seed);
    }
  }
}

static void test_steps(void **state) {
  (void)state;
  int asked = 0;
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    for (int k = 0; k < 2; ++k) {
      clv_graph *graph = make_graph(seed, CLV_F32, CLV_F32);
      clv_error error = {0};
      cpu_host cpu;
      cpu_program program;
      cpu_host_precision = k == 1 ? CLV_BF16 : CLV_DTYPE_NONE;
      assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
      assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
      const int narrow = narrow_operands(program.executable->variant, seed);
      if (k == 0 && narrow > 0) fail_msg("seed %d: %d operands are in bf16, which was not requested", (int)seed, narrow);
      asked += narrow;
      check_made(program.executable->variant, seed);
      cpu_program_close(&program);
      cpu_host_close(&cpu);
      clv__graph_destroy(graph);
    }
  }
  cpu_host_precision = CLV_DTYPE_NONE;
  if (clv__dnn_has_bf16()) assert_true(asked > SEEDS);
}

/* ---- Shapes that are unknown at compile(): constants are packed from other packs, or from kept raw bytes. ---- */

/* A product with a constant matrix that has enough columns for the row step (kernels/row.h) if there is only one row. */
static clv_graph *make_rows(clv_dtype dtype, clv_dtype rounds) {
  generator g = {.seed = 11, .dtype = dtype, .rounds = rounds};
  const int64_t matrix[2] = {20, 150}, columns = 150;
  char w[2][16], list[64];
  clv_error error = {0};
  test_graph_begin(&g.t, clv__allocator_default(), 11);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  const int64_t dims[4] = {test_graph_symbol(&g.t, "n"), 1, test_graph_symbol(&g.t, "h"), 20};
  test_graph_input(&g.t, "x", dtype, 4, dims);
  weight(&g, w[0], 2, matrix);
  weight(&g, w[1], 1, &columns);
  snprintf(list, sizeof list, "x,%s", w[0]);
  node(&g, "MatMul", list, "a", NULL, 0);
  snprintf(list, sizeof list, "a,%s", w[1]);
  node(&g, "Add", list, "b", NULL, 0);
  node(&g, "Tanh", "b", "y", NULL, 0);
  return test_graph_end(&g.t, "y");
}

static clv_graph *make_open(clv_dtype dtype, clv_dtype rounds) {
  generator g = {.seed = 7, .dtype = dtype, .rounds = rounds};
  const int64_t kernel[4] = {16, 16, 3, 3}, matrix[2] = {20, 96}, extent = 96, pads[4] = {1, 1, 1, 1};
  char w[3][16], list[64];
  clv_error error = {0};
  test_graph_begin(&g.t, clv__allocator_default(), 7);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  const int64_t dims[4] = {test_graph_symbol(&g.t, "n"), 16, test_graph_symbol(&g.t, "h"), 20};
  test_graph_input(&g.t, "x", dtype, 4, dims);
  weight(&g, w[0], 4, kernel);
  weight(&g, w[1], 2, matrix);
  weight(&g, w[2], 1, &extent);
  const clv_attribute attribute = ints(&g, "pads", true, 4, pads);
  snprintf(list, sizeof list, "x,%s", w[0]);
  node(&g, "Conv", list, "a", &attribute, 1);
  node(&g, "Relu", "a", "b", NULL, 0);
  snprintf(list, sizeof list, "b,%s", w[1]);
  node(&g, "MatMul", list, "c", NULL, 0);
  snprintf(list, sizeof list, "c,%s", w[2]);
  node(&g, "LayerNormalization", list, "y", NULL, 0);
  return test_graph_end(&g.t, "y,a");
}

typedef clv_graph *(*make_fn)(clv_dtype dtype, clv_dtype rounds);

static void check_shape(make_fn make, clv_dtype dtype, clv_dtype rounds, double tolerance, int64_t n, int64_t h) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_graph *graph = make(dtype, rounds), *wide = make(CLV_F32, rounds);
  const int64_t channels = make == make_open ? 16 : 1, dims[4] = {n, channels, h, 20};
  clv_tensor made[2] = {{.rank = CLV_RANK_UNKNOWN}, {.rank = CLV_RANK_UNKNOWN}}, wanted[2] = {{0}};
  clv_tensor x = clv__tensor_make(dtype, 4, dims, NULL), wide_x = clv__tensor_make(CLV_F32, 4, dims, NULL);
  const size_t count = (size_t)(n * channels * h * 20);
  uint64_t seeds[2] = {3, 3};
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  x.data = numbers(allocator, &seeds[0], rounds, dtype, count, 1.0f);
  wide_x.data = numbers(allocator, &seeds[1], rounds, CLV_F32, count, 1.0f);
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
  assert_ok(cpu_program_run(&program, &x, made, &error), error);
  assert_ok(clv__graph_evaluate(wide, &wide_x, NULL, wanted, NULL, NULL, allocator, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    assert_int_equal(made[i].dtype, dtype);
    assert_true(worst_share(&made[i], &wanted[i]) <= tolerance);
    clv__release(allocator, made[i].data);
    clv__release(allocator, wanted[i].data);
  }
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__release(allocator, x.data);
  clv__release(allocator, wide_x.data);
  clv__graph_destroy(graph);
  clv__graph_destroy(wide);
}

static void test_shapes(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{1, 1}, {1, 7}, {3, 5}, {2, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    for (int k = 0; k < 2; ++k) {
      const make_fn make = k == 0 ? make_open : make_rows;
      check_shape(make, CLV_F16, CLV_F16, 1e-2, sizes[i][0], sizes[i][1]);
      check_shape(make, CLV_BF16, CLV_BF16, 5e-2, sizes[i][0], sizes[i][1]);
      cpu_host_precision = CLV_BF16;
      check_shape(make, CLV_F32, CLV_BF16, 5e-2, sizes[i][0], sizes[i][1]);
      cpu_host_precision = CLV_DTYPE_NONE;
    }
  }
}

/* ---- Casts must round. ---- */

/* Casts f32 to `dtype`, then to `second`, then back to f32. The result must be rounded exactly as by these dtypes. */
static void check_round_trip(clv_dtype dtype, clv_dtype second) {
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t dims[4] = {2, 3, 17, 50}, count = 2 * 3 * 17 * 50, down = dtype, further = second, up = CLV_F32;
  generator g = {.seed = 1, .dtype = CLV_F32, .rounds = CLV_F32};
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  uint64_t seed = 21;
  test_graph_begin(&g.t, allocator, 1);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  test_graph_input(&g.t, "x", CLV_F32, 4, dims);
  const clv_attribute to_down = ints(&g, "to", false, 1, &down), to_up = ints(&g, "to", false, 1, &up);
  const clv_attribute to_further = ints(&g, "to", false, 1, &further);
  node(&g, "Relu", "x", "a", NULL, 0);
  node(&g, "Cast", "a", "b", &to_down, 1);
  node(&g, "Cast", "b", "c", &to_further, 1);
  node(&g, "Cast", "c", "y", &to_up, 1);
  clv_graph *graph = test_graph_end(&g.t, "y");
  clv_tensor x = random_tensor(allocator, &seed, 4, dims), y = clv__tensor_make(CLV_F32, 4, dims, NULL);
  float *made = clv__allocate(allocator, (size_t)count * sizeof *made), *wanted = x.data;
  uint16_t *narrow = clv__allocate(allocator, (size_t)count * sizeof *narrow);
  y.data = made;
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(cpu_program_run(&program, &x, &y, &error), error);
  for (int64_t i = 0; i < count; ++i) wanted[i] = wanted[i] > 0.0f ? wanted[i] : 0.0f;
  clv__row_from_f32(dtype, narrow, 0, count, wanted);
  clv__row_to_f32(dtype, narrow, 0, count, wanted);
  clv__row_from_f32(second, narrow, 0, count, wanted);
  clv__row_to_f32(second, narrow, 0, count, wanted);
  for (int64_t i = 0; i < count; ++i) assert_true(made[i] == wanted[i]);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__release(allocator, x.data);
  clv__release(allocator, made);
  clv__release(allocator, narrow);
  clv__graph_destroy(graph);
}

static void test_round_trip(void **state) {
  (void)state;
  check_round_trip(CLV_F16, CLV_F16);
  check_round_trip(CLV_BF16, CLV_BF16);
  check_round_trip(CLV_F16, CLV_BF16);
  check_round_trip(CLV_BF16, CLV_F16);
}

/* ---- Failing allocations. ---- */

static void check_memory(clv_dtype dtype, clv_dtype rounds, uint64_t seed) {
  test_allocator failing;
  clv_error error = {0};
  cpu_host cpu;
  cpu_program first;
  test_allocator_init(&failing);
  graph_allocator = &failing.allocator; /* cpu_host_open() gives the host the same allocator */
  clv_graph *graph = make_graph(seed, dtype, rounds);
  graph_allocator = NULL;
  bool done = false;
  assert_ok(cpu_host_open(&cpu, &failing.allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&first, &cpu, graph, NULL, &error), error);
  cpu_program_close(&first);
  const size_t live = failing.live; /* the allocations that exist now, including those that the device keeps */
  for (size_t after = 1; !done && after < 5000; ++after) {
    cpu_program program;
    failing.fail_at = failing.calls + after;
    const clv_status status = cpu_program_open(&program, &cpu, graph, NULL, &error);
    done = failing.calls < failing.fail_at;
    failing.fail_at = 0;
    if (status != CLV_OK && status != CLV_OUT_OF_MEMORY)
      fail_msg("seed %d: after allocation %zu failed, unexpected error: %s", (int)seed, after, error.message);
    cpu_program_close(&program);
    assert_int_equal(failing.live, live);
  }
  assert_true(done);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

static void test_failing_memory(void **state) {
  (void)state;
  for (uint64_t seed = 3; seed < 6; ++seed) {
    check_memory(CLV_F16, CLV_F16, seed);
    check_memory(CLV_BF16, CLV_BF16, seed);
    cpu_host_precision = CLV_BF16;
    check_memory(CLV_F32, CLV_F32, seed);
    cpu_host_precision = CLV_DTYPE_NONE;
  }
}

/* ---- The compile option `precision`. ---- */

/* Compiles and runs a product with a large matrix, with compile options of `struct_size` bytes. Returns the bytes that the
 * executable keeps in memory. *first receives the first element of the output. */
static uint64_t compile_product(clv_dtype precision, size_t struct_size, float *first) {
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t matrix[2] = {256, 512}, dims[4] = {1, 1, 32, 256}, made_dims[4] = {1, 1, 32, 512};
  generator g = {.seed = 5, .dtype = CLV_F32, .rounds = CLV_F32};
  char w[16];
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  uint64_t seed = 9;
  test_graph_begin(&g.t, allocator, 7);
  assert_ok(clv__builder_import(g.t.builder, "", 17, &error), error);
  test_graph_input(&g.t, "x", CLV_F32, 4, dims);
  weight(&g, w, 2, matrix);
  node(&g, "MatMul", "x,w0", "y", NULL, 0);
  clv_graph *graph = test_graph_end(&g.t, "y");
  clv_tensor x = random_tensor(allocator, &seed, 4, dims);
  float *made = clv__allocate(allocator, 32 * 512 * sizeof *made);
  clv_tensor y = clv__tensor_make(CLV_F32, 4, made_dims, made);
  clv_executable_info info = {.struct_size = sizeof info};
  cpu_host_precision = precision;
  cpu_host_options_bytes = struct_size;
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  assert_ok(cpu_program_run(&program, &x, &y, &error), error);
  cpu.backend->executable_info(cpu.device, program.executable, &info);
  *first = made[0];
  cpu_host_precision = CLV_DTYPE_NONE;
  cpu_host_options_bytes = sizeof(clv_compile_options);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__release(allocator, x.data);
  clv__release(allocator, made);
  clv__graph_destroy(graph);
  return info.resident_bytes;
}

/* In bf16, weights take half the memory. If the options are of an older version without `precision`, the bytes after them must be
 * ignored. */
static void test_option(void **state) {
  (void)state;
  float plain, asked, before;
  const uint64_t whole = compile_product(CLV_F32, sizeof(clv_compile_options), &plain);
  const uint64_t half = compile_product(CLV_BF16, sizeof(clv_compile_options), &asked);
  const uint64_t older = compile_product(CLV_BF16, offsetof(clv_compile_options, precision), &before);
  assert_int_equal(older, whole);
  assert_memory_equal(&before, &plain, sizeof plain);
  if (!clv__dnn_has_bf16()) return;
  assert_true(half <= whole * 6 / 10);
  assert_memory_not_equal(&asked, &plain, sizeof plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_f16),        cmocka_unit_test(test_bf16),
                                     cmocka_unit_test(test_asked),      cmocka_unit_test(test_steps),
                                     cmocka_unit_test(test_shapes),     cmocka_unit_test(test_option),
                                     cmocka_unit_test(test_round_trip), cmocka_unit_test(test_failing_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
