/* Tests RNN, GRU and LSTM with constant weights. The weights are packed once for all batch sizes; if the batch size is fixed,
 * the packs replace the model's weights. With f32 weights, results must have the same bits as those of the kernel that packs
 * the weights in each run, on any number of threads; with f16 and bf16, they must be near. */
#include "backends/common/kernels.h"
#include "backends/cpu/run/executable.h"
#include "base/random.h"
#include "cpu_host.h"
#include "fast_evaluate.h"
#include "operators/common/rows.h"

typedef struct sizes {
  const char *op;
  int64_t gates, inputs, hidden;
  clv_dtype dtype; /* dtype of the weights */
} sizes;

static void constant(test_graph *t, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims, uint64_t *seed) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_tensor wide = random_tensor(allocator, seed, rank, dims);
  const int64_t count = clv__dims_product(&wide, 0, rank);
  for (int64_t i = 0; i < count; ++i) ((float *)wide.data)[i] *= 0.2f;
  clv_tensor tensor = clv__tensor_make(dtype, rank, dims, wide.data);
  void *narrow = clv__allocate(allocator, (size_t)count * sizeof(float));
  assert_non_null(narrow);
  clv__row_from_f32(dtype, narrow, 0, count, wide.data);
  if (dtype != CLV_F32) tensor.data = narrow;
  test_graph_constant(t, name, &tensor);
  clv__release(allocator, wide.data);
  clv__release(allocator, narrow);
}

/* Makes a graph with one recurrent node over x [steps, batch, inputs]. If `batch` is 0, the batch size is symbolic. */
static clv_graph *recurrence(const clv_allocator *allocator, const sizes *s, int64_t steps, int64_t batch, uint64_t *seed) {
  const int64_t w[3] = {1, s->gates * s->hidden, s->inputs}, r[3] = {1, s->gates * s->hidden, s->hidden};
  const int64_t b[2] = {1, 2 * s->gates * s->hidden}, narrow = s->dtype, real = CLV_F32;
  test_graph t;
  test_graph_begin(&t, allocator, 1);
  const int64_t dims[3] = {steps, batch > 0 ? batch : test_graph_symbol(&t, "n"), s->inputs};
  const bool casts = s->dtype != CLV_F32;
  test_graph_input(&t, "x", CLV_F32, 3, dims);
  if (casts) test_graph_node_ints(&t, "narrow", "Cast", "x", "z", "to", false, 1, &narrow);
  constant(&t, "w", s->dtype, 3, w, seed);
  constant(&t, "r", s->dtype, 3, r, seed);
  constant(&t, "b", s->dtype, 2, b, seed);
  test_graph_node_ints(&t, "recurrence", s->op, casts ? "z,w,r,b" : "x,w,r,b", casts ? "v,u" : "y,h", "hidden_size", false, 1,
                       &s->hidden);
  if (casts) test_graph_node_ints(&t, "wide", "Cast", "v", "y", "to", false, 1, &real);
  return test_graph_end(&t, "y");
}

static bool is_packed(const clv_instance *instance) {
  const clv__cpu_variant *variant = instance->run->variant;
  for (size_t s = 0; s < variant->step_count; ++s) {
    if (variant->steps[s].kernel == clv__kernels()->recurrent_prepared) return true;
  }
  return false;
}

static void compare(const clv_tensor *made, const clv_tensor *wanted, const sizes *s) {
  size_t size_bytes;
  assert_true(clv__tensor_same_type(made, wanted) && clv__tensor_size_bytes(wanted, &size_bytes));
  if (s->dtype == CLV_F32) { /* the device and the reference run the same kernel, so the bits are equal */
    assert_memory_equal(made->data, wanted->data, size_bytes);
    return;
  }
  /* The results differ slightly, because the variant does not round the values between its steps to the narrow dtype. */
  for (size_t i = 0; i < size_bytes / sizeof(float); ++i) {
    const float a = ((const float *)made->data)[i], b = ((const float *)wanted->data)[i];
    if (!(fabsf(a - b) <= (s->dtype == CLV_F16 ? 2e-3f : 2e-2f))) {
      fail_msg("%s, %s: element %zu is %g, expected %g", s->op, clv_dtype_name(s->dtype), i, (double)a, (double)b);
    }
  }
}

static void check(const sizes *s, const int64_t *batches, size_t count, uint64_t *seed) {
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t steps = 1 + (int64_t)clv__random_below(seed, 9);
  const int64_t units = (s->hidden + CLV__RECURRENT_PANEL - 1) / CLV__RECURRENT_PANEL * CLV__RECURRENT_PANEL;
  const size_t packed = (size_t)(s->gates * units * (s->inputs + s->hidden)) * sizeof(float);
  clv_graph *graph = recurrence(allocator, s, steps, count == 1 ? batches[0] : 0, seed);
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  for (size_t turn = 0; turn < count; ++turn) {
    const int64_t dims[3] = {steps, batches[turn], s->inputs};
    clv_tensor x = random_tensor(allocator, seed, 3, dims), made = {.rank = CLV_RANK_UNKNOWN}, wanted = {0};
    if (turn == 0) {
      assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    } else {
      assert_ok(cpu.backend->instance_resize(cpu.device, program.instance, &x, 1, &error), error);
    }
    assert_true(is_packed(program.instance));
    if (count == 1) { /* otherwise, the raw weights are kept for other batch sizes */
      assert_true(program.executable->constants.resident_bytes <=
                  packed + (size_t)(2 * s->gates * s->hidden) * 3 * sizeof(float));
    }
    assert_ok(cpu_program_run(&program, &x, &made, &error), error);
    assert_ok(evaluate_fast(graph, &x, &wanted, NULL, NULL, allocator, &error), error);
    compare(&made, &wanted, s);
    clv__release(allocator, made.data);
    clv__release(allocator, wanted.data);
    clv__release(allocator, x.data);
  }
  assert_int_equal(cpu.retreats, 0);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

static void test_batches(void **state) {
  static const sizes all[] = {{"LSTM", 4, 70, 90, CLV_F32}, {"GRU", 3, 64, 100, CLV_F32},  {"RNN", 1, 129, 67, CLV_F32},
                              {"LSTM", 4, 3, 5, CLV_F32},   {"LSTM", 4, 60, 40, CLV_BF16}, {"GRU", 3, 60, 40, CLV_F16}};
  static const int64_t batches[] = {1, 9, 2, 33, 1};
  uint64_t seed = 5;
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    cpu_host_threads = (uint32_t)(1 + i % 3);
    check(&all[i], batches + i % 2, 4, &seed);
    check(&all[i], batches + i % 4, 1, &seed);
  }
  cpu_host_threads = 2;
}

static void test_failing_memory(void **state) {
  static const sizes s = {"GRU", 3, 40, 50, CLV_F16};
  static const int64_t dims[3] = {3, 2, 40};
  test_allocator failing;
  uint64_t seed = 3;
  (void)state;
  test_allocator_init(&failing);
  clv_graph *graph = recurrence(&failing.allocator, &s, dims[0], dims[1], &seed);
  clv_tensor x = random_tensor(clv__allocator_default(), &seed, 3, dims);
  check_failing_memory(&failing, graph, &x);
  clv__release(clv__allocator_default(), x.data);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

/* Each product must be summed from the first to the last element of its depth, however many products one call computes. Compares
 * calls for several rows and column panels with calls for one row and one panel. */
static void test_products(void **state) {
  enum { PANEL = CLV__RECURRENT_PANEL, COLUMNS = CLV__RECURRENT_COLUMNS, ROWS = CLV__RECURRENT_ROWS, DEPTH = 37 };
  static float rows[ROWS][DEPTH], columns[COLUMNS][DEPTH * PANEL], sums[ROWS * COLUMNS * PANEL], one[PANEL];
  const clv__recurrent_tile tile = clv__kernels()->recurrent_tile_of(false);
  uint64_t seed = 7;
  (void)state;
  for (int i = 0; i < ROWS * DEPTH; ++i) rows[i / DEPTH][i % DEPTH] = (float)clv__random_below(&seed, 2001) / 1000.0f - 1.0f;
  for (int i = 0; i < COLUMNS * DEPTH * PANEL; ++i) {
    columns[i / (DEPTH * PANEL)][i % (DEPTH * PANEL)] = (float)clv__random_below(&seed, 2001) / 1000.0f - 1.0f;
  }
  assert_in_range(tile.rows, 1, ROWS);
  for (int r = 1; r <= tile.rows; ++r) {
    for (int c = 1; c <= COLUMNS; ++c) {
      clv__recurrent_product product = {
          .row_count = r, .column_count = c, .depth = DEPTH, .sums = sums, .sums_step = COLUMNS * PANEL};
      for (int i = 0; i < r; ++i) product.rows[i] = rows[i];
      for (int j = 0; j < c; ++j) product.columns[j] = columns[j];
      for (int i = 0; i < ROWS * COLUMNS * PANEL; ++i) sums[i] = -99.0f;
      tile.run(&product);
      for (int i = 0; i < ROWS * COLUMNS; ++i) {
        const int row = i / COLUMNS, column = i % COLUMNS;
        const float *made = sums + i * PANEL;
        if (row >= r || column >= c) {
          assert_true(made[0] == -99.0f && made[PANEL - 1] == -99.0f); /* not written by the call */
          continue;
        }
        const clv__recurrent_product single = {.rows = {rows[row]},
                                               .columns = {columns[column]},
                                               .row_count = 1,
                                               .column_count = 1,
                                               .depth = DEPTH,
                                               .sums = one,
                                               .sums_step = PANEL};
        tile.run(&single);
        assert_memory_equal(made, one, sizeof one);
        double wanted = 0;
        for (int k = 0; k < DEPTH; ++k) wanted += (double)rows[row][k] * (double)columns[column][k * PANEL + 3];
        assert_true(fabs((double)made[3] - wanted) < 1e-5);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batches),
      cmocka_unit_test(test_failing_memory),
      cmocka_unit_test(test_products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
