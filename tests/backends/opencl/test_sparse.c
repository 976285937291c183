/* Tests SparseAggregate and SparseAttention on the OpenCL device, with the kernels for CPUs and with those for GPUs. Results are
 * compared with sums in double. Those of SparseAggregate must also be bit-identical to those of the kernel for host memory.
 * Covers empty rows, loops, repeated edges, hubs (rows that are split into parts), padding after the last offset, all dtypes,
 * widths around the numbers of lanes and vector widths, fused elementwise nodes, captured runs, and invalid offsets and
 * sources. */
#include "../../operators/kernel_case.h"
#include "device.h"
#include "graph/graph.h"

#include <stdio.h>

/* ---- Graphs and their data ---- */

typedef struct scene {
  bool attends;
  const char *reduce;
  int64_t rows, data_rows, edges, columns, heads;
  clv_tensor data, from, to, offsets, sources, out;
} scene;

/* Distributes `edges` edges over the rows at random, and adds `hub` edges to row 1, or to row 0 if it is the only row. */
static scene make_scene(bool attends, int64_t rows, int64_t data_rows, int64_t edges, int64_t hub, int64_t columns, int64_t heads,
                        clv_dtype dtype, clv_dtype index, uint64_t *seed) {
  int64_t spare = (int64_t)(test_random(seed) % 3);
  scene s = {.attends = attends, .rows = rows, .data_rows = data_rows, .edges = edges + hub, .columns = columns, .heads = heads};
  s.data = case_tensor(dtype, 2, (const int64_t[]){data_rows, columns});
  s.from = case_tensor(dtype, 2, (const int64_t[]){data_rows, heads});
  s.to = case_tensor(dtype, 2, (const int64_t[]){rows, heads});
  s.out = case_tensor(dtype, 2, (const int64_t[]){rows, columns});
  s.offsets = case_tensor(CLV_I64, 1, (const int64_t[]){rows + 1});
  s.sources = case_tensor(index, 1, (const int64_t[]){s.edges + spare});
  int64_t *offsets = s.offsets.data;
  for (int64_t v = 0; v <= rows; ++v) offsets[v] = 0;
  for (int64_t e = 0; e < edges; ++e) ++offsets[1 + (int64_t)(test_random(seed) % (uint64_t)rows)];
  offsets[rows > 1 ? 2 : 1] += hub;
  for (int64_t v = 0; v < rows; ++v) offsets[v + 1] += offsets[v];
  for (int64_t e = 0; e < s.edges; ++e) case_set(&s.sources, (size_t)e, (double)(test_random(seed) % (uint64_t)data_rows));
  for (int64_t e = s.edges; e < s.edges + spare; ++e) case_set(&s.sources, (size_t)e, (double)(data_rows + 5));
  case_fill(&s.data, -1, 1, seed);
  case_fill(&s.from, -20, 20, seed);
  case_fill(&s.to, -20, 20, seed);
  return s;
}

static void free_scene(scene *s) {
  free(s->data.data), free(s->from.data), free(s->to.data), free(s->out.data), free(s->offsets.data), free(s->sources.data);
}

static uint32_t inputs_of(const scene *s, clv_tensor inputs[5]) {
  const clv_tensor attention[] = {s->data, s->from, s->to, s->offsets, s->sources}, sums[] = {s->data, s->offsets, s->sources};
  memcpy(inputs, s->attends ? attention : sums, s->attends ? sizeof attention : sizeof sums);
  return s->attends ? 5 : 3;
}

/* The text of the attribute is static, because a graph refers to it. */
static clv_attribute reduce_of(const scene *s) {
  static const clv_string texts[] = {{"sum", 3}, {"mean", 4}, {"max", 3}};
  uint32_t which = 0;
  for (uint32_t i = 0; i < 3 && s->reduce != NULL; ++i) which = strcmp(texts[i].data, s->reduce) == 0 ? i : which;
  return (clv_attribute){.name = "reduce", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &texts[which]};
}

/* The result for column `c` of row `v`, computed in double. Sets *scale to the sum (or weighted mean) of the terms'
 * magnitudes. */
static double defined(const scene *s, int64_t v, int64_t c, double *scale) {
  const int64_t *offsets = s->offsets.data, width = s->columns / s->heads, head = c / width;
  double largest = -INFINITY, sum = 0, weight = 0, most = 0;
  *scale = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
      int64_t u = clv__tensor_get_int(&s->sources, (size_t)e);
      double x = clv__tensor_get(&s->data, (size_t)(u * s->columns + c));
      double score =
          clv__tensor_get(&s->to, (size_t)(v * s->heads + head)) + clv__tensor_get(&s->from, (size_t)(u * s->heads + head));
      score = score >= 0 ? score : 0.2 * score;
      if (!s->attends) score = 0;
      if (pass == 0) {
        largest = fmax(largest, score);
        most = e == offsets[v] ? x : fmax(most, x);
        continue;
      }
      sum += exp(score - largest) * x;
      weight += exp(score - largest);
      *scale += exp(score - largest) * fabs(x);
    }
  }
  if (weight > 0 && (s->attends || strcmp(s->reduce, "mean") == 0)) sum /= weight, *scale /= weight;
  return !s->attends && strcmp(s->reduce, "max") == 0 ? most : sum;
}

/* ---- Runs ---- */

/* Inputs of the elementwise nodes after the operator, which compute (made + more) * by. `more` is [rows, columns], and `by` is
 * [rows, 1]. */
typedef struct chain {
  clv_tensor more, by;
} chain;

static clv_value_id add_value(clv__builder *builder, const char *name, const clv_tensor *type) {
  clv_error error = {0};
  clv_value_id id;
  assert_ok(clv__builder_value(builder, name, &id, &error), error);
  if (type == NULL) return id;
  clv_tensor plain = *type;
  plain.data = NULL;
  clv__builder_type(builder, id, &plain);
  assert_ok(clv__builder_input(builder, id, &error), error);
  return id;
}

static clv_graph *graph_of(const scene *s, const chain *behind) {
  clv_error error = {0};
  clv__builder *builder;
  clv_tensor inputs[5];
  clv_value_id in[5], made;
  uint32_t count = inputs_of(s, inputs);
  assert_ok(clv__builder_create(clv__allocator_default(), &builder, &error), error);
  clv__builder_info(builder, "case", "", 10);
  assert_ok(clv__builder_import(builder, "", 18, &error), error);
  assert_ok(clv__builder_import(builder, "ai.cleave", 1, &error), error);
  for (uint32_t i = 0; i < count; ++i) in[i] = add_value(builder, (const char[]){'x', (char)('0' + i), 0}, &inputs[i]);
  const clv_attribute reduce = reduce_of(s);
  made = add_value(builder, "made", NULL);
  assert_ok(clv__builder_node(builder, "node", "ai.cleave", s->attends ? "SparseAttention" : "SparseAggregate", in, count, &made,
                              1, s->reduce != NULL ? &reduce : NULL, s->reduce != NULL, &error),
            error);
  if (behind != NULL) {
    clv_value_id sum = add_value(builder, "sum", NULL), product = add_value(builder, "product", NULL);
    const clv_value_id sums[] = {made, add_value(builder, "more", &behind->more)};
    const clv_value_id factors[] = {sum, add_value(builder, "by", &behind->by)};
    assert_ok(clv__builder_node(builder, "add", "", "Add", sums, 2, &sum, 1, NULL, 0, &error), error);
    assert_ok(clv__builder_node(builder, "mul", "", "Mul", factors, 2, &product, 1, NULL, 0, &error), error);
    made = product;
  }
  assert_ok(clv__builder_output(builder, made, &error), error);
  clv_graph *graph;
  assert_ok(clv__builder_finish(builder, &graph, &error), error);
  return graph;
}

typedef struct runner {
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} runner;

static runner open_runner(const scene *s, const chain *behind) {
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  runner r = {.graph = graph_of(s, behind)};
  options.strategy = "contiguous";
  assert_ok(clv_plan_make(r.graph, devices, &options, &r.plan, &error), error);
  assert_ok(clv_session_create(r.plan, NULL, &r.session, &error), error);
  return r;
}

static void close_runner(runner *r) {
  clv_session_destroy(r->session);
  clv_plan_destroy(r->plan);
  clv__graph_destroy(r->graph);
}

static clv_status run_once(const runner *r, const scene *s, const chain *behind, clv_tensor *made, clv_error *error) {
  clv_tensor inputs[7];
  uint32_t count = inputs_of(s, inputs);
  if (behind != NULL) inputs[count++] = behind->more, inputs[count++] = behind->by;
  *made = (clv_tensor){0};
  return clv_session_run(r->session, inputs, count, made, 1, error);
}

/* Runs the scene `rounds` times, checks that all results are bit-identical, and fills s->out. */
static void run(scene *s, const chain *behind, uint32_t rounds) {
  clv_error error = {0};
  runner r = open_runner(s, behind);
  size_t size_bytes = case_count(&s->out) * clv_dtype_size_bytes(s->out.dtype);
  for (uint32_t round = 0; round < rounds; ++round) {
    clv_tensor made;
    assert_ok(run_once(&r, s, behind, &made, &error), error);
    assert_true(clv__tensor_same_type(&made, &s->out));
    if (round > 0) assert_memory_equal(s->out.data, made.data, size_bytes);
    memcpy(s->out.data, made.data, size_bytes);
  }
  close_runner(&r);
}

/* Compares s->out with defined(), for every row whose number is a multiple of `step`. */
static void expect_defined(const scene *s, int64_t step) {
  for (int64_t v = 0; v < s->rows; v += step) {
    for (int64_t c = 0; c < s->columns; ++c) {
      double scale, wanted = defined(s, v, c, &scale), got = clv__tensor_get(&s->out, (size_t)(v * s->columns + c));
      if (!(fabs(got - wanted) <= case_tolerance(s->out.dtype) * 8 * (scale + 1e-3)))
        fail_msg("%s %s %s [%lld, %lld], %lld edges: row %lld, column %lld is %.9g, expected %.9g",
                 s->attends ? "attention" : s->reduce, clv_dtype_name(s->out.dtype), clv_dtype_name(s->sources.dtype),
                 (long long)s->rows, (long long)s->columns, (long long)s->edges, (long long)v, (long long)c, got, wanted);
    }
  }
}

/* Checks that the kernel for host memory computes the same bits, because it adds the same numbers in the same order. */
static void expect_bits(const scene *s) {
  clv_tensor inputs[5], out = case_tensor(s->out.dtype, 2, s->out.dims);
  const clv_attribute reduce = reduce_of(s);
  clv_error error = {0};
  clv__kernel_call call = {.op = "SparseAggregate", .opset = 1, .attributes = {&reduce, 1}, .inputs = inputs};
  call.input_count = inputs_of(s, inputs);
  call.outputs = &out;
  call.output_count = 1;
  call.error = &error;
  assert_ok(clv__kernel_run(clv__fast_kernel_find("ai.cleave", "SparseAggregate"), &call, clv__allocator_default()), error);
  assert_memory_equal(out.data, s->out.data, case_count(&out) * clv_dtype_size_bytes(out.dtype));
  free(out.data);
}

/* ---- Tests ---- */

/* Each combination of dtypes, reduction and lanes needs a separate program, which takes time to compile. So only a few
 * combinations are tested. */
static void aggregates(void **state) {
  (void)state;
  static const struct {
    clv_dtype dtype, index;
    const char *reduce;
    int64_t columns;
  } kinds[] = {{CLV_F32, CLV_I32, "sum", 1},  {CLV_F32, CLV_I64, "mean", 31},   {CLV_F16, CLV_I32, "max", 16},
               {CLV_F32, CLV_I32, "sum", 3},  {CLV_BF16, CLV_I32, "mean", 300}, {CLV_F32, CLV_I64, "mean", 64},
               {CLV_F16, CLV_I32, "max", 20}, {CLV_BF16, CLV_I32, "mean", 127}, {CLV_F32, CLV_I32, "sum", 129}};
  uint64_t seed = 7;
  for (uint32_t round = 0; round < 27; ++round) {
    const uint32_t k = round % 9;
    int64_t rows = round == 0 ? 1 : 1 + (int64_t)(test_random(&seed) % 90);
    scene s = make_scene(false, rows, 1 + (int64_t)(test_random(&seed) % 50), (int64_t)(test_random(&seed) % 300),
                         round % 2 == 0 ? 0 : 170, kinds[k].columns, 1, kinds[k].dtype, kinds[k].index, &seed);
    s.reduce = kinds[k].reduce;
    run(&s, NULL, 1);
    expect_defined(&s, 1);
    expect_bits(&s);
    free_scene(&s);
  }
}

static void attention(void **state) {
  (void)state;
  static const struct {
    clv_dtype dtype, index;
    int64_t heads, width;
  } kinds[] = {{CLV_F32, CLV_I32, 8, 8},   {CLV_BF16, CLV_I32, 3, 5}, {CLV_F32, CLV_I32, 4, 16}, {CLV_F32, CLV_I32, 2, 33},
               {CLV_F16, CLV_I64, 1, 150}, {CLV_F32, CLV_I32, 16, 1}, {CLV_F32, CLV_I32, 5, 7},  {CLV_F16, CLV_I64, 2, 68}};
  uint64_t seed = 8;
  for (uint32_t round = 0; round < 24; ++round) {
    const uint32_t k = round % 8;
    scene s = make_scene(true, 1 + (int64_t)(test_random(&seed) % 60), 1 + (int64_t)(test_random(&seed) % 40),
                         (int64_t)(test_random(&seed) % 400), round % 3 == 0 ? 70 : 0, kinds[k].heads * kinds[k].width,
                         kinds[k].heads, kinds[k].dtype, kinds[k].index, &seed);
    run(&s, NULL, 1);
    expect_defined(&s, 1);
    free_scene(&s);
  }
}

/* Row 1 has thousands of edges, and in some rounds row 2 as well. The result of row 1 must be the same if it is the only
 * row. */
static void hubs(void **state) {
  (void)state;
  static const int64_t edges[] = {4096, 4097, 8192, 12289, 513, 1024, 30000};
  uint64_t seed = 9;
  for (size_t i = 0; i < sizeof edges / sizeof *edges; ++i) {
    const bool attends = i % 2 == 1;
    const int64_t heads = attends ? 2 : 1,
                  columns = i % 4 == 3 ? 10 : 48; /* with 10 columns, two heads share a vector or lanes */
    scene s = make_scene(attends, 40, 500, 3000, edges[i], columns, heads, CLV_F32, CLV_I32, &seed), alone = s;
    int64_t *offsets = s.offsets.data, ends[2];
    offsets[3] += (s.edges - offsets[3]) * (int64_t)(i % 4) / 4; /* row 2 gets a part of the edges of the rows after it */
    for (int64_t v = 4; v <= 40; ++v) offsets[v] = offsets[v] < offsets[v - 1] ? offsets[v - 1] : offsets[v];
    s.reduce = attends ? NULL : i == 4 ? "max" : "sum";
    run(&s, NULL, 1);
    expect_defined(&s, 1);
    /* Row 1 as the only row, with the same sources. */
    ends[0] = 0, ends[1] = offsets[2] - offsets[1];
    alone.reduce = s.reduce;
    alone.rows = alone.offsets.dims[0] - 40;
    alone.offsets.dims[0] = 2, alone.offsets.data = ends;
    alone.out = case_tensor(CLV_F32, 2, (const int64_t[]){1, columns});
    alone.to.dims[0] = 1, alone.to.data = (float *)s.to.data + heads;
    alone.sources.dims[0] = ends[1], alone.sources.data = (int32_t *)s.sources.data + offsets[1];
    run(&alone, NULL, 1);
    assert_memory_equal(alone.out.data, (float *)s.out.data + columns, (size_t)columns * sizeof(float));
    free(alone.out.data);
    free_scene(&s);
  }
}

/* The elementwise nodes after the operator are fused into its kernels, including the kernel for hubs. Captured runs compute the
 * same bits. */
static void with_what_follows(void **state) {
  (void)state;
  uint64_t seed = 10;
  for (int i = 0; i < 2; ++i) {
    const bool attends = i % 2 == 1;
    const int64_t columns = 40, heads = attends ? 2 : 1;
    scene s = make_scene(attends, 30, 60, 400, 9000, columns, heads, CLV_F32, CLV_I32, &seed);
    chain behind = {case_tensor(CLV_F32, 2, (const int64_t[]){30, columns}), case_tensor(CLV_F32, 2, (const int64_t[]){30, 1})};
    case_fill(&behind.more, -1, 1, &seed), case_fill(&behind.by, 1, 2, &seed);
    s.reduce = attends ? NULL : "mean";
    run(&s, &behind, 4);
    for (int64_t at = 0; at < 30 * columns; ++at) {
      const float more = ((float *)behind.more.data)[at], by = ((float *)behind.by.data)[at / columns];
      double scale, wanted = (defined(&s, at / columns, at % columns, &scale) + (double)more) * (double)by;
      double got = (double)((float *)s.out.data)[at];
      if (!(fabs(got - wanted) <= 2e-5)) fail_msg("element %lld is %.9g, expected %.9g", (long long)at, got, wanted);
    }
    free(behind.more.data), free(behind.by.data);
    free_scene(&s);
  }
}

/* Checks that a run in which `*at` is changed to `lie` fails with a message that contains `says`, and that the next run,
 * without the change, has the right results. */
static void expect_refused(const runner *r, scene *s, int64_t *at, int64_t lie, const char *says) {
  clv_error error = {0};
  clv_tensor made;
  const int64_t truth = *at;
  *at = lie;
  assert_int_equal(run_once(r, s, NULL, &made, &error), CLV_INVALID_ARGUMENT);
  if (strstr(error.message, says) == NULL || strstr(error.message, "node 'node' (Sparse") == NULL)
    fail_msg("the error message '%s' does not contain '%s' and the node's name", error.message, says);
  *at = truth;
  assert_ok(run_once(r, s, NULL, &made, &error), error);
  memcpy(s->out.data, made.data, case_count(&s->out) * sizeof(float));
  expect_defined(s, 1);
}

/* Each invalid number is reported with its position and value, also in captured runs. The message is the same as from the kernel
 * for host memory. Sources after the last offset are not checked. If many numbers are invalid, nothing out of bounds is read or
 * written. */
static void lies(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int i = 0; i < 4; ++i) {
    const bool attends = i % 2 == 1;
    clv_error error = {0};
    clv_tensor made;
    scene s = make_scene(attends, 20, 30, 6000, 6000, i < 2 ? 64 : 4, attends ? 2 : 1, CLV_F32, CLV_I64, &seed);
    int64_t *sources = s.sources.data, *offsets = s.offsets.data, total = s.sources.dims[0];
    char says[4][128];
    s.reduce = attends ? NULL : i == 0 ? "mean" : "max";
    snprintf(says[0], sizeof says[0], "sources[%lld] is 30: data has 30 rows", (long long)s.edges - 1);
    snprintf(says[1], sizeof says[1],
             "offsets[20] is %lld: offsets must not decrease and must be at most %lld, the number of edges", (long long)total + 1,
             (long long)total);
    snprintf(says[2], sizeof says[2], "offsets[7] is -1: offsets must not decrease and must be at most %lld, the number of edges",
             (long long)total);
    runner r = open_runner(&s, NULL);
    expect_refused(&r, &s, &sources[s.edges - 1], 30, says[0]);
    expect_refused(&r, &s, &sources[0], INT64_MIN, "sources[0] is -9223372036854775808: data has 30 rows");
    expect_refused(&r, &s, &sources[4711], -1, "sources[4711] is -1: data has 30 rows");
    expect_refused(&r, &s, &offsets[20], total + 1, says[1]);
    expect_refused(&r, &s, &offsets[7], -1, says[2]);
    expect_refused(&r, &s, &offsets[0], -2, "offsets begin with -2, not 0");
    for (int64_t e = 0; e < s.edges; e += 7) sources[e] = e % 2 == 0 ? INT64_MIN + e : INT64_MAX - e;
    for (int64_t v = 0; v <= 20; ++v) {
      const int64_t odd[] = {INT64_MIN, INT64_MAX, -1, s.edges + 9, 5, s.edges};
      if (test_random(&seed) % 2 == 0) offsets[v] = odd[test_random(&seed) % 6];
    }
    offsets[20] = INT64_MAX;
    for (int round = 0; round < 3; ++round) assert_int_equal(run_once(&r, &s, NULL, &made, &error), CLV_INVALID_ARGUMENT);
    close_runner(&r);
    free_scene(&s);
  }
}

/* Graphs without rows, edges or columns: every element of the result is 0. `sizes` lists the rows of the result, the rows of
 * the data, edges and columns. */
static void nothing(void **state) {
  (void)state;
  static const int64_t sizes[][4] = {{0, 3, 0, 5}, {4, 3, 0, 20}, {4, 3, 9, 0}, {0, 1, 0, 0}};
  uint64_t seed = 12;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const int64_t *n = sizes[i];
    scene s = make_scene(false, n[0] > 0 ? n[0] : 1, n[1], n[2], 0, n[3], 1, CLV_F32, CLV_I32, &seed);
    s.rows = s.out.dims[0] = n[0];
    s.offsets.dims[0] = n[0] + 1;
    s.reduce = "max";
    run(&s, NULL, 1);
    for (int64_t at = 0; at < n[0] * n[3]; ++at) assert_true(((float *)s.out.data)[at] == 0);
    free_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(aggregates),        cmocka_unit_test(attention), cmocka_unit_test(hubs),
                                     cmocka_unit_test(with_what_follows), cmocka_unit_test(lies),      cmocka_unit_test(nothing)};
  const struct CMUnitTest apart[] = {cmocka_unit_test(with_what_follows), cmocka_unit_test(lies)};
  int failed;
  if (!device_open_with(NULL, CLV_CAPTURE_ON)) return 0;
  failed = cmocka_run_group_tests(tests, NULL, NULL);
  device_close();
  if (!device_open_with("opencl:memory=own", CLV_CAPTURE_OFF)) return failed + 1;
  failed += cmocka_run_group_tests(apart, NULL, NULL);
  device_close();
  if (!device_open_with("opencl:kernels=gpu", CLV_CAPTURE_ON)) return failed + 1;
  failed += cmocka_run_group_tests(tests, NULL, NULL);
  device_close();
  return failed;
}
