/* Buckets, the sizes to which inputs of open size are padded for devices with fixed shapes: copies between a tensor and the
 * corner of a larger one, the rule that pads sizes, and the descriptions of padded partitions. A partition that runs on padded
 * inputs gives the same results, bit for bit, as with exact sizes. */
#include "compile/bucket.h"
#include "machine.h"

/* A virtual NPU that supports all operators, but only with fixed shapes. */
static const char *const fixed_shapes[] = {"{\"static_shapes\": true, \"operators\": \"all\"}"};
static const char *const slow[] = {
    "{\"static_shapes\": true, \"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 1, \"flops_per_second\": 1e6}}"};

/* ---- Copies ---- */

/* Converts a flat index of tensor `of` to the flat index of the same position in `in`; -1 if `in` does not have this position. */
static int64_t place_in(const clv_tensor *of, const clv_tensor *in, size_t index) {
  int64_t place[CLV_MAX_RANK], at = 0;
  for (int32_t d = of->rank; d-- > 0;) {
    place[d] = (int64_t)(index % (size_t)of->dims[d]);
    index /= (size_t)of->dims[d];
  }
  for (int32_t d = 0; d < of->rank; ++d) {
    if (place[d] >= in->dims[d]) return -1;
    at = at * in->dims[d] + place[d];
  }
  return at;
}

static void copies_match_brute_force(void **state) {
  (void)state;
  static const clv_dtype dtypes[] = {CLV_F32, CLV_U8, CLV_I64, CLV_F16};
  uint64_t seed = 4;
  uint32_t prefixes = 0;
  for (int round = 0; round < 4000; ++round) {
    clv_tensor exact = {.dtype = dtypes[test_random(&seed) % 4], .rank = (int32_t)(test_random(&seed) % 6)};
    clv_tensor padded = exact;
    for (int32_t d = 0; d < exact.rank; ++d) {
      exact.dims[d] = (int64_t)(test_random(&seed) % 5);
      if (test_random(&seed) % 3 == 0) exact.dims[d] = 1;
      padded.dims[d] = exact.dims[d] + (test_random(&seed) % 3 == 0 ? (int64_t)(test_random(&seed) % 4) : 0);
    }
    size_t bytes = clv_dtype_size_bytes(exact.dtype), count, longer;
    assert_true(clv__tensor_count(&exact, &count) && clv__tensor_count(&padded, &longer));
    uint8_t *from = malloc(count * bytes + 1), *to = malloc(longer * bytes + 1), *back = malloc(count * bytes + 1);
    for (size_t i = 0; i < count * bytes; ++i) from[i] = (uint8_t)(1 + test_random(&seed) % 255);
    memset(to, 0xee, longer * bytes + 1);
    memset(back, 0xee, count * bytes + 1);
    exact.data = from, padded.data = to;
    clv__bucket_pad(&exact, &padded);
    bool is_prefix = true;
    for (size_t i = 0; i < longer; ++i) {
      int64_t at = place_in(&padded, &exact, i);
      is_prefix = is_prefix && (at < 0 || (size_t)at == i);
      for (size_t k = 0; k < bytes; ++k) assert_int_equal(to[i * bytes + k], at < 0 ? 0 : from[(size_t)at * bytes + k]);
    }
    assert_int_equal(to[longer * bytes], 0xee);
    if (clv__bucket_is_prefix(&exact, &padded)) {
      assert_true(is_prefix);
      ++prefixes;
    } else { /* clv__bucket_is_prefix() judges by shapes alone, but it must accept every tensor of rank 1 */
      assert_false(is_prefix && count > 0 && exact.rank == 1);
    }
    exact.data = back;
    clv__bucket_cut(&padded, &exact);
    assert_memory_equal(back, from, count * bytes);
    assert_int_equal(back[count * bytes], 0xee);
    free(from), free(to), free(back);
  }
  assert_true(prefixes > 500);
}

/* ---- The rule ---- */

static clv_graph *rows_graph(const clv_allocator *allocator) { /* [N,64] passes through two layers and a Reshape to [64 N] */
  test_graph g;
  test_graph_begin(&g, allocator, 3);
  int64_t rows = test_graph_symbol(&g, "N");
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(rows, 64));
  test_graph_weight(&g, "w", 2, DIMS(64, 64));
  test_graph_ints(&g, "line", 1, DIMS(-1));
  test_graph_node(&g, "first", "MatMul", "x,w", "h");
  test_graph_node(&g, "relu", "Relu", "h", "r");
  test_graph_node(&g, "second", "MatMul", "r,w", "s");
  test_graph_node(&g, "flat", "Reshape", "s,line", "f");
  test_graph_node(&g, "tanh", "Tanh", "f", "y");
  return test_graph_end(&g, "y,s");
}

static uint32_t symbol_of(const clv_plan *plan, const char *value, int32_t axis) {
  return (uint32_t)(-2 - plan->shapes->types[clv__graph_find_value(plan->graph, value)].dims[axis]);
}

static void check_sizes(const char *const *specs, uint32_t multiple, bool is_slow) {
  machine m;
  clv_error error = {0};
  machine_open(&m, "npu,cpu", 1, specs);
  clv_graph *graph = rows_graph(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, "*=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv__bucket_rule *rule;
  assert_int_equal(plan->partition_count, 1);
  assert_true(plan->partitions[0].is_bucketed);
  assert_ok(clv__bucket_rule_create(plan, multiple, &rule, &error), error);
  uint32_t rows = symbol_of(plan, "x", 0), line = symbol_of(plan, "f", 0), distinct = 0;
  int64_t step = multiple == 0 ? 64 : multiple, last = 0;
  for (int64_t n = 0; n <= 1000; ++n) {
    int64_t padded = clv__bucket_size(rule, rows, n);
    assert_true(padded >= n && padded >= 1 && padded >= last);
    assert_true(padded <= (n < 1 ? 1 : n) + step);
    if (is_slow) assert_true((double)padded <= 1.26 * (double)(n < 1 ? 1 : n) + 0.1);
    if (!is_slow && step > 1) assert_int_equal(padded, ((n < 1 ? 1 : n) + step - 1) / step * step);
    assert_int_equal(clv__bucket_size(rule, line, 64 * n),
                     64 * padded); /* a size that is 64 times another is padded to 64 times as much */
    assert_int_equal(clv__bucket_size(rule, line, 64 * n + 1),
                     64 * n + 1); /* not a multiple of 64, so it cannot occur in this plan: not padded */
    distinct += padded != last;
    last = padded;
  }
  if (multiple == 1) assert_int_equal(distinct, 1000);
  if (is_slow) assert_true(distinct < 70); /* each distinct size needs a compilation */
  clv__bucket_rule_destroy(rule);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void the_rule(void **state) {
  (void)state;
  check_sizes(fixed_shapes, 0, false); /* at nominal peak rates, the work at these sizes takes much less time than a launch */
  check_sizes(fixed_shapes, 32, false);
  check_sizes(fixed_shapes, 1, false);
  check_sizes(slow, 0, true); /* every padded row takes noticeable time */
}

/* ---- Partitions ---- */

typedef struct trace {
  clv_tensor *values; /* by value id: a copy of the value in the run with exact sizes */
} trace;

static clv_status keep_value(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error) {
  trace *t = cookie;
  size_t size_bytes;
  (void)error;
  t->values[value] = *tensor;
  assert_true(clv__tensor_size_bytes(tensor, &size_bytes));
  t->values[value].data = malloc(size_bytes + 1);
  if (size_bytes > 0) memcpy(t->values[value].data, tensor->data, size_bytes);
  return CLV_OK;
}

static clv_tensor make_room(const clv_tensor *type) {
  size_t size_bytes;
  clv_tensor made = *type;
  assert_true(clv__tensor_size_bytes(type, &size_bytes));
  made.data = malloc(size_bytes + 1);
  return made;
}

/* Matrix products choose their algorithm by the number of rows, so with `products` the results may differ by rounding. */
static void assert_equal_bits(const clv_tensor *is, const clv_tensor *should, bool products, const char *name) {
  size_t count, bytes = clv_dtype_size_bytes(should->dtype);
  assert_true(clv__tensor_count(should, &count));
  for (size_t i = 0; i < count; ++i) {
    if (memcmp((char *)is->data + i * bytes, (char *)should->data + i * bytes, bytes) == 0) continue;
    double a = clv__tensor_get(is, i), b = clv__tensor_get(should, i);
    if (products && (fabs(a - b) <= 1e-4 * fmax(1, fabs(b)) || !(fabs(b) < 1e4))) continue;
    fail_msg("%s: element %zu is %.9g with padding, %.9g without", name, i, a, b);
  }
}

/* Runs the partition node by node with its bucket's types, on padded copies of the inputs of the run with exact sizes, and
 * compares the outputs of the two runs. */
static void check_partition(const clv__bucket_rule *rule, const clv_plan *plan, uint32_t index, const trace *t, bool products) {
  clv_error error = {0};
  const clv_graph *graph = plan->graph;
  const clv_allocator *allocator = clv__allocator_default();
  clv__arena arena;
  clv__bucket bucket;
  clv__arena_init(&arena, allocator);
  assert_ok(clv__bucket_describe(rule, index, t->values, &arena, &bucket, &error), error);
  const clv_graph_view *view = bucket.view;
  clv_tensor *values = calloc(graph->value_count, sizeof *values);
  assert_int_equal(view->input_count, plan->partitions[index].view->input_count);
  for (uint32_t v = 0; v < view->value_count; ++v) {
    clv_tensor type = *clv__view_type(view, v);
    if (type.data != NULL) values[view->values[v]] = type;
    assert_true(clv__tensor_is_static(&type));
  }
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id id = view->values[view->inputs[i]];
    clv_tensor padded = clv__bucket_type(rule, id, &t->values[id]);
    assert_true(clv__tensor_same_type(&padded, &bucket.inputs[i]));
    values[id] = make_room(&bucket.inputs[i]);
    clv__bucket_pad(&t->values[id], &values[id]);
  }
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const clv__node *node = clv__view_node(view, n);
    clv_tensor inputs[8] = {{0}}, outputs[8] = {{0}};
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != CLV__NO_ID) inputs[i] = values[node->inputs[i]];
    }
    assert_ok(clv__node_evaluate(graph, view->nodes[n], inputs, outputs, allocator, &error), error);
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] == CLV__NO_ID) continue;
      for (uint32_t v = 0; v < view->value_count; ++v) { /* the value has the type that the compiler saw in the view */
        if (view->values[v] == node->outputs[i]) assert_true(clv__tensor_same_type(clv__view_type(view, v), &outputs[i]));
      }
      values[node->outputs[i]] = make_room(&outputs[i]);
      size_t size_bytes;
      assert_true(clv__tensor_size_bytes(&outputs[i], &size_bytes));
      memcpy(values[node->outputs[i]].data, outputs[i].data, size_bytes);
      clv__release(allocator, outputs[i].data);
    }
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv_value_id id = view->values[view->outputs[i]];
    assert_true(clv__tensor_same_type(&values[id], &bucket.outputs[i]));
    assert_int_equal(bucket.output_is_padded[i], !clv__tensor_same_type(&t->values[id], &bucket.outputs[i]));
    clv_tensor cut = make_room(&t->values[id]);
    clv__bucket_cut(&values[id], &cut);
    assert_equal_bits(&cut, &t->values[id], products, graph->values[id].name);
    free(cut.data);
  }
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    bool is_constant = clv__value_is_constant(graph, plan->shapes->types, v);
    if (!is_constant) free(values[v].data);
  }
  free(values);
  clv__arena_finish(&arena);
}

static void run_graph(uint64_t seed, bool products, uint32_t *bucketed) {
  static const int64_t sizes[][2] = {{3, 2}, {1, 1}, {64, 7}, {5, 65}, {0, 3}};
  static const uint32_t multiples[] = {0, 4, 6, 1};
  machine m;
  clv_error error = {0};
  machine_open(&m, "npu,cpu", 1, fixed_shapes);
  clv_graph *graph = test_random_open_graph(&m.counting.allocator, seed, 4 + seed % 20, products);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = seed % 3 == 0 ? "contiguous" : seed % 3 == 1 ? "propagate" : "ready";
  clv_plan *plan = machine_plan(&m, graph, NULL, options);
  clv__bucket_rule *rule;
  assert_ok(clv__bucket_rule_create(plan, multiples[seed % 4], &rule, &error), error);
  for (size_t s = 0; rule != NULL && s < sizeof sizes / sizeof *sizes; ++s) {
    int64_t n = sizes[s][0], depth = sizes[s][1];
    uint64_t state = seed + s;
    clv_tensor inputs[4] = {f32(2, DIMS(n, 8), NULL), f32(2, DIMS(n, 8), NULL), f32(3, DIMS(n, depth, 8), NULL),
                            clv__tensor_make(CLV_I64, 1, DIMS(n), NULL)};
    clv_tensor outputs[4];
    for (int i = 0; i < 4; ++i) {
      inputs[i] = make_room(&inputs[i]);
      size_t count;
      assert_true(clv__tensor_count(&inputs[i], &count));
      for (size_t k = 0; k < count; ++k)
        clv__tensor_put(&inputs[i], k, test_random_float(&state), (int64_t)(test_random(&state) % 16), false);
    }
    trace t = {calloc(graph->value_count, sizeof *t.values)};
    assert_ok(clv__graph_evaluate(graph, inputs, NULL, outputs, keep_value, &t, graph->allocator, &error), error);
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      if (!plan->partitions[p].is_bucketed) continue;
      check_partition(rule, plan, p, &t, products);
      *bucketed += plan->partitions[p].node_count;
    }
    for (uint32_t o = 0; o < graph->output_count; ++o) clv__release(graph->allocator, outputs[o].data);
    for (uint32_t v = 0; v < graph->value_count; ++v) free(t.values[v].data);
    for (int i = 0; i < 4; ++i) free(inputs[i].data);
    free(t.values);
  }
  clv__bucket_rule_destroy(rule);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void partitions_hold_what_exact_ones_do(void **state) {
  (void)state;
  uint32_t bucketed = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) run_graph(seed, seed % 2 == 0, &bucketed);
  assert_true(bucketed > 2000);
}

/* Plans the graph and describes its partitions while the `fail`th allocation fails. Returns whether everything succeeded. */
static bool describe_all(machine *m, const clv_graph *graph, size_t fail) {
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_plan *plan = NULL;
  clv__bucket_rule *rule = NULL;
  clv__arena arena;
  clv__arena_init(&arena, &m->counting.allocator);
  m->counting.fail_at = m->counting.calls + fail;
  clv_status status = clv_plan_make(graph, m->devices, &options, &plan, &error);
  if (status == CLV_OK) status = clv__bucket_rule_create(plan, 0, &rule, &error);
  for (uint32_t p = 0; status == CLV_OK && rule != NULL && p < plan->partition_count; ++p) {
    clv__bucket bucket;
    clv_tensor *exact = clv__arena_copy(&arena, clv__plan_sized_types(plan), graph->value_count * sizeof *exact);
    if (exact == NULL) status = CLV_OUT_OF_MEMORY;
    if (exact != NULL && plan->partitions[p].is_bucketed) status = clv__bucket_describe(rule, p, exact, &arena, &bucket, &error);
  }
  bool failed = m->counting.calls >= m->counting.fail_at;
  if (!failed) assert_ok(status, error);
  if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
  m->counting.fail_at = 0;
  clv__arena_finish(&arena);
  clv__bucket_rule_destroy(rule);
  clv_plan_destroy(plan);
  return !failed;
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, fixed_shapes);
  clv_graph *graph = test_random_open_graph(&m.counting.allocator, 8, 12, true);
  assert_true(describe_all(&m, graph, 1u << 30));
  size_t live = m.counting.live, fail = 1;
  for (; !describe_all(&m, graph, fail); ++fail) assert_int_equal(m.counting.live, live);
  assert_true(fail > 50);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_match_brute_force),
      cmocka_unit_test(the_rule),
      cmocka_unit_test(partitions_hold_what_exact_ones_do),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
