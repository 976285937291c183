/* Tests SparseAggregate and SparseAttention against sums in double: random graphs with empty rows, loops, repeated edges and
 * rows of many edges; every dtype; numbers of columns near the block sizes. Invalid offsets and sources must be rejected. */
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernel_case.h"
#include "operators/infer.h"

typedef struct graph {
  int64_t rows, data_rows, edges;
  clv_tensor offsets, sources;
} graph;

static graph make_graph(int64_t rows, int64_t data_rows, int64_t edges, int64_t spare, clv_dtype dtype, uint64_t *seed) {
  graph g = {.rows = rows, .data_rows = data_rows, .edges = edges};
  g.offsets = case_tensor(CLV_I64, 1, (const int64_t[]){rows + 1});
  g.sources = case_tensor(dtype, 1, (const int64_t[]){edges + spare});
  int64_t *offsets = g.offsets.data;
  for (int64_t v = 0; v <= rows; ++v) offsets[v] = 0;
  for (int64_t e = 0; e < edges; ++e) { /* half of the edges are in row 1, a hub */
    int64_t row = test_random(seed) % 2 == 0 && rows > 1 ? 1 : (int64_t)(test_random(seed) % (uint64_t)rows);
    ++offsets[row + 1];
  }
  for (int64_t v = 0; v < rows; ++v) offsets[v + 1] += offsets[v];
  for (int64_t e = 0; e < edges; ++e) case_set(&g.sources, (size_t)e, (double)(test_random(seed) % (uint64_t)data_rows));
  for (int64_t e = edges; e < edges + spare; ++e)
    case_set(&g.sources, (size_t)e, (double)(data_rows + 5)); /* padding, which is not read */
  return g;
}

static int64_t source_of(const graph *g, int64_t e) {
  return (int64_t)clv__tensor_get(&g->sources, (size_t)e);
}

static clv_status run(const char *op, const clv_attribute *attribute, const clv_tensor *inputs, uint32_t count,
                      clv_tensor *output, clv_error *error) {
  const clv__kernel *kernel = find_kernel("ai.cleave", op);
  assert_non_null(kernel);
  assert_non_null(clv__op_find("ai.cleave", op));
  clv__kernel_call call = {.op = op,
                           .opset = 1,
                           .attributes = {attribute, attribute != NULL},
                           .inputs = inputs,
                           .input_count = count,
                           .outputs = output,
                           .output_count = 1,
                           .error = error};
  char reason[160];
  if (!clv__kernel_accepts(kernel, &call, reason)) fail_msg("%s: the kernel rejects the call: %s", op, reason);
  return clv__kernel_run(kernel, &call, clv__allocator_default());
}

static void expect_close(const clv_tensor *out, size_t at, double expected, double scale, const char *what) {
  double actual = clv__tensor_get(out, at), allowed = case_tolerance(out->dtype) * 8 * (scale + 1e-3);
  if (!(fabs(actual - expected) <= allowed)) fail_msg("%s: element %zu is %.9g; expected %.9g", what, at, actual, expected);
}

static void check_aggregate(const graph *g, const clv_tensor *data, const char *how) {
  int64_t columns = data->dims[1];
  clv_error error = {0};
  clv_tensor out = case_tensor(data->dtype, 2, (const int64_t[]){g->rows, columns}), inputs[] = {*data, g->offsets, g->sources};
  clv_string text = {how, strlen(how)};
  clv_attribute attribute = {.name = "reduce", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &text};
  assert_ok(run("SparseAggregate", &attribute, inputs, 3, &out, &error), error);
  const int64_t *offsets = g->offsets.data;
  for (int64_t v = 0; v < g->rows; ++v) {
    int64_t degree = offsets[v + 1] - offsets[v];
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0, largest = degree > 0 ? -INFINITY : 0, scale = 0;
      for (int64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
        double x = clv__tensor_get(data, (size_t)(source_of(g, e) * columns + c));
        sum += x;
        scale += fabs(x);
        largest = fmax(largest, x);
      }
      double expected = strcmp(how, "max") == 0 ? largest : strcmp(how, "sum") == 0 || degree == 0 ? sum : sum / (double)degree;
      expect_close(&out, (size_t)(v * columns + c), expected, scale, how);
    }
  }
  free(out.data);
}

static void aggregates(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 3, 16, 127, 128, 129, 300};
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_BF16};
  uint64_t seed = 5;
  for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w) {
    for (size_t d = 0; d < 3; ++d) {
      graph g = make_graph(1 + (int64_t)(test_random(&seed) % 40), 1 + (int64_t)(test_random(&seed) % 50),
                           (int64_t)(test_random(&seed) % 200), (int64_t)(w % 3), w % 2 == 0 ? CLV_I32 : CLV_I64, &seed);
      clv_tensor data = case_tensor(dtypes[d], 2, (const int64_t[]){g.data_rows, widths[w]});
      case_fill(&data, -1, 1, &seed);
      check_aggregate(&g, &data, "sum");
      check_aggregate(&g, &data, "mean");
      check_aggregate(&g, &data, "max");
      free(data.data), free(g.offsets.data), free(g.sources.data);
    }
  }
}

/* Tests a graph that is large enough for several threads. The result must have the same bits as if rows were computed one at a
 * time. */
static void threads_do_not_matter(void **state) {
  (void)state;
  if (find_kernel != clv__fast_kernel_find) skip(); /* the reference kernel uses one thread and adds in double */
  uint64_t seed = 9;
  clv_error error = {0};
  graph g = make_graph(3000, 2000, 40000, 0, CLV_I32, &seed);
  clv_tensor data = case_tensor(CLV_F32, 2, (const int64_t[]){2000, 70}),
             out = case_tensor(CLV_F32, 2, (const int64_t[]){3000, 70});
  case_fill(&data, -1, 1, &seed);
#ifdef _OPENMP
  omp_set_num_threads(3);
#endif
  assert_ok(run("SparseAggregate", NULL, (const clv_tensor[]){data, g.offsets, g.sources}, 3, &out, &error), error);
  const int64_t *offsets = g.offsets.data;
  float *row = malloc(70 * sizeof *row);
  for (int64_t v = 0; v < g.rows; ++v) {
    for (int c = 0; c < 70; ++c) row[c] = 0;
    for (int64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
      for (int c = 0; c < 70; ++c) row[c] += ((const float *)data.data)[source_of(&g, e) * 70 + c];
    }
    assert_memory_equal(row, (const float *)out.data + v * 70, 70 * sizeof *row);
  }
  free(row), free(data.data), free(out.data), free(g.offsets.data), free(g.sources.data);
}

/* SparseAttention divides the heads of a hub row among threads. The result must have the same bits as on one thread. */
static void attention_on_threads(void **state) {
  (void)state;
  uint64_t seed = 10;
  clv_error error = {0};
  graph g = make_graph(3000, 2000, 40000, 0, CLV_I32, &seed);
  clv_tensor data = case_tensor(CLV_F32, 2, (const int64_t[]){2000, 48}),
             from = case_tensor(CLV_F32, 2, (const int64_t[]){2000, 3}), to = case_tensor(CLV_F32, 2, (const int64_t[]){3000, 3}),
             outs[2];
  case_fill(&data, -1, 1, &seed), case_fill(&from, -3, 3, &seed), case_fill(&to, -3, 3, &seed);
  for (int i = 0; i < 2; ++i) {
    outs[i] = case_tensor(CLV_F32, 2, (const int64_t[]){3000, 48});
#ifdef _OPENMP
    omp_set_num_threads(i == 0 ? 5 : 1);
#endif
    const clv_tensor inputs[] = {data, from, to, g.offsets, g.sources};
    assert_ok(run("SparseAttention", NULL, inputs, 5, &outs[i], &error), error);
  }
  assert_memory_equal(outs[0].data, outs[1].data, (size_t)3000 * 48 * sizeof(float));
  for (int i = 0; i < 2; ++i) free(outs[i].data);
  free(data.data), free(from.data), free(to.data), free(g.offsets.data), free(g.sources.data);
}

static void attention(void **state) {
  (void)state;
  uint64_t seed = 3;
  static const float slope = 0.1f;
  for (uint32_t round = 0; round < 40; ++round) {
    int64_t heads = 1 + (int64_t)(round % 4), width = 1 + (int64_t)(test_random(&seed) % 40);
    if (round % 3 == 1) width = 16 * (1 + (int64_t)(test_random(&seed) % 9)); /* heads that fill whole vector registers */
    int64_t columns = heads * width;
    clv_dtype dtype = round % 3 == 2 ? CLV_BF16 : CLV_F32;
    graph g = make_graph(1 + (int64_t)(test_random(&seed) % 30), 1 + (int64_t)(test_random(&seed) % 30),
                         (int64_t)(test_random(&seed) % 150), 2, round % 2 == 0 ? CLV_I32 : CLV_I64, &seed);
    clv_tensor data = case_tensor(dtype, 2, (const int64_t[]){g.data_rows, columns});
    clv_tensor from = case_tensor(dtype, 2, (const int64_t[]){g.data_rows, heads}),
               to = case_tensor(dtype, 2, (const int64_t[]){g.rows, heads});
    clv_tensor out = case_tensor(dtype, 2, (const int64_t[]){g.rows, columns});
    case_fill(&data, -1, 1, &seed), case_fill(&from, -30, 30, &seed), case_fill(&to, -30, 30, &seed);
    clv_error error = {0};
    clv_attribute attribute = case_float("negative_slope", &slope);
    assert_ok(run("SparseAttention", &attribute, (const clv_tensor[]){data, from, to, g.offsets, g.sources}, 5, &out, &error),
              error);
    const int64_t *offsets = g.offsets.data;
    for (int64_t v = 0; v < g.rows; ++v) {
      for (int64_t c = 0; c < columns; ++c) {
        double largest = -INFINITY, sum = 0, weight = 0;
        for (int pass = 0; pass < 2; ++pass) {
          for (int64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
            int64_t u = source_of(&g, e), h = c / width;
            double s = clv__tensor_get(&from, (size_t)(u * heads + h)) + clv__tensor_get(&to, (size_t)(v * heads + h));
            s = s >= 0 ? s : s * (double)slope;
            if (pass == 0) {
              largest = fmax(largest, s);
            } else {
              weight += exp(s - largest);
              sum += exp(s - largest) * clv__tensor_get(&data, (size_t)(u * columns + c));
            }
          }
        }
        expect_close(&out, (size_t)(v * columns + c), weight > 0 ? sum / weight : 0, 4, "attention");
      }
    }
    free(data.data), free(from.data), free(to.data), free(out.data), free(g.offsets.data), free(g.sources.data);
  }
}

static void lies(void **state) {
  (void)state;
  static const struct {
    int64_t offsets[4], sources[3];
    const char *text;
  } cases[] = {
      {{0, 1, 2, 4}, {0, 1, 2}, "offsets[3] is 4: offsets must not decrease and must be at most 3, the number of edges"},
      {{0, 2, 1, 3}, {0, 1, 2}, "offsets[2] is 1"},
      {{1, 1, 2, 3}, {0, 1, 2}, "offsets begin with 1, not 0"},
      {{0, -1, 2, 3}, {0, 1, 2}, "offsets[1] is -1"},
      {{0, 1, 2, 3}, {0, 5, 2}, "sources[1] is 5: data has 5 rows"},
      {{0, 1, 2, 3}, {0, 1, -1}, "sources[2] is -1"},
      {{0, 1, 2, 3}, {INT64_MAX, 1, 2}, "sources[0] is 9223372036854775807"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_error error = {0};
    float rows[5 * 2] = {0}, out[3 * 2];
    clv_tensor output = clv__tensor_make(CLV_F32, 2, (const int64_t[]){3, 2}, out);
    clv_tensor inputs[] = {clv__tensor_make(CLV_F32, 2, (const int64_t[]){5, 2}, rows),
                           clv__tensor_make(CLV_I64, 1, (const int64_t[]){4}, (void *)cases[i].offsets),
                           clv__tensor_make(CLV_I64, 1, (const int64_t[]){3}, (void *)cases[i].sources)};
    assert_int_equal(run("SparseAggregate", NULL, inputs, 3, &output, &error), CLV_INVALID_ARGUMENT);
    if (strstr(error.message, cases[i].text) == NULL)
      fail_msg("'%s' is not in the error message: %s", cases[i].text, error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(aggregates), cmocka_unit_test(threads_do_not_matter),
                                     cmocka_unit_test(attention), cmocka_unit_test(attention_on_threads), cmocka_unit_test(lies)};
  return RUN_BOTH_KERNELS(tests);
}
