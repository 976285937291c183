/* Tests the product of one row and a constant f16 or bf16 matrix, which is read without conversion and takes half the memory of
 * f32. The numbers are chosen so that every sum is exact; results then equal the reference's whatever the order of summation.
 * Also tests every f16 number in the loop that this CPU runs. */
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/run/executable.h"
#include "base/random.h"
#include "cpu_host.h"
#include "operators/common/rows.h"

static int64_t pick(uint64_t *seed, int64_t limit) {
  return (int64_t)clv__random_below(seed, (uint64_t)limit);
}

/* Adds a constant of random multiples of 1/8 between -1 and 1. Sums of their products with -1, 0 and 1 are exact in f32. */
static void constant(test_graph *t, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims, uint64_t *seed) {
  clv_tensor tensor = clv__tensor_make(dtype, rank, dims, NULL);
  const int64_t count = clv__dims_product(&tensor, 0, rank);
  float *wide = malloc((size_t)count * sizeof *wide);
  uint16_t *narrow = malloc((size_t)count * sizeof *wide);
  assert_true(wide != NULL && narrow != NULL);
  for (int64_t i = 0; i < count; ++i) wide[i] = (float)(pick(seed, 17) - 8) / 8.0f;
  clv__row_from_f32(dtype, narrow, 0, count, wide);
  tensor.data = narrow;
  test_graph_constant(t, name, &tensor);
  free(wide);
  free(narrow);
}

static clv_tensor whole_numbers(int64_t depth, uint64_t *seed) {
  const int64_t dims[2] = {1, depth};
  clv_tensor x = random_tensor(clv__allocator_default(), seed, 2, dims);
  for (int64_t i = 0; i < depth; ++i) ((float *)x.data)[i] = (float)(pick(seed, 3) - 1);
  return x;
}

/* Makes a graph that multiplies x [1, depth] by a matrix. A sum and a Relu may follow. */
static clv_graph *product(clv_dtype dtype, int64_t depth, int64_t columns, bool by_column, uint64_t *seed) {
  const int64_t dims[2] = {1, depth}, matrix[2] = {by_column ? columns : depth, by_column ? depth : columns}, to = dtype,
                real = CLV_F32, yes = 1;
  test_graph t;
  test_graph_begin(&t, clv__allocator_default(), 1);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  test_graph_node_ints(&t, "narrow", "Cast", "x", "n", "to", false, 1, &to);
  constant(&t, "w", dtype, 2, matrix, seed);
  constant(&t, "b", dtype, 1, &columns, seed);
  constant(&t, "o", dtype, 2, (int64_t[2]){1, columns}, seed);
  if (by_column) {
    test_graph_node_ints(&t, "product", "Gemm", "n,w,b", "p", "transB", false, 1, &yes);
  } else {
    test_graph_node(&t, "product", "MatMul", "n,w", "p");
  }
  const bool sum = pick(seed, 2) != 0, relu = pick(seed, 2) != 0;
  if (sum) test_graph_node(&t, "sum", "Add", "p,o", "q");
  if (relu) test_graph_node(&t, "relu", "Relu", sum ? "q" : "p", "r");
  test_graph_node_ints(&t, "wide", "Cast", relu ? "r" : sum ? "q" : "p", "y", "to", false, 1, &real);
  return test_graph_end(&t, "y");
}

static const clv__cpu_row *row_of(const clv_instance *instance) {
  const clv__cpu_variant *variant = instance->run->variant;
  for (size_t s = 0; s < variant->step_count; ++s) {
    if (variant->steps[s].kind == CLV__CPU_STEP_ROW) return variant->steps[s].row;
  }
  return NULL;
}

static void check(clv_dtype dtype, int64_t depth, int64_t columns, bool by_column, uint64_t *seed) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_graph *graph = product(dtype, depth, columns, by_column, seed);
  clv_tensor x = whole_numbers(depth, seed), made = {.rank = CLV_RANK_UNKNOWN}, wanted = {0};
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
  const clv__cpu_row *row = row_of(program.instance);
  assert_true((columns >= CLV__CPU_ROW_PANEL) == (row != NULL));
  if (row != NULL) assert_int_equal(row->dtype, dtype);
  const int64_t padded = (depth + 15) / 16 * 16 * ((columns + 63) / 64 * 64);
  if (row != NULL) assert_true(program.executable->constants.resident_bytes <= (size_t)padded * sizeof(uint16_t) + 32 * 1024);
  assert_ok(cpu_program_run(&program, &x, &made, &error), error);
  assert_ok(clv__graph_evaluate(graph, &x, NULL, &wanted, NULL, NULL, allocator, &error), error);
  for (int64_t i = 0; i < columns; ++i) {
    const float a = ((const float *)made.data)[i], b = ((const float *)wanted.data)[i];
    if (a != b)
      fail_msg("%s, %lld x %lld: column %lld is %g, expected %g", clv_dtype_name(dtype), (long long)depth, (long long)columns,
               (long long)i, (double)a, (double)b);
  }
  clv__release(allocator, made.data);
  clv__release(allocator, wanted.data);
  clv__release(allocator, x.data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

static void test_products(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{16, 64}, {1, 65}, {300, 130}, {33, 257}, {64, 63}, {257, 1000}};
  uint64_t seed = 3;
  for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; ++i) {
    check(i % 2 == 0 ? CLV_F16 : CLV_BF16, shapes[i / 4][0], shapes[i / 4][1], i / 2 % 2 != 0, &seed);
  }
}

/* Multiplies one row and then several rows by one matrix, or the reverse: each variant must be able to use what the earlier one
 * packed. */
static void test_more_rows(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  uint64_t seed = 11;
  for (int i = 0; i < 4; ++i) {
    const clv_dtype dtype = i % 2 == 0 ? CLV_F16 : CLV_BF16;
    const int64_t f16 = dtype, real = CLV_F32, matrix[2] = {200, 300}; /* so large that compile() does not keep its raw bytes */
    clv_error error = {0};
    test_graph t;
    test_graph_begin(&t, allocator, 1);
    const int64_t dims[2] = {test_graph_symbol(&t, "n"), matrix[0]};
    test_graph_input(&t, "x", CLV_F32, 2, dims);
    test_graph_node_ints(&t, "narrow", "Cast", "x", "n", "to", false, 1, &f16);
    constant(&t, "w", dtype, 2, matrix, &seed);
    test_graph_node(&t, "product", "MatMul", "n,w", "p");
    test_graph_node_ints(&t, "wide", "Cast", "p", "y", "to", false, 1, &real);
    clv_graph *graph = test_graph_end(&t, "y");
    cpu_host cpu;
    cpu_program program;
    assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
    for (int turn = 0; turn < 3; ++turn) {
      const int64_t rows = (turn + i / 2) % 2 == 0 ? 1 : 5, given[2] = {rows, matrix[0]};
      clv_tensor x = random_tensor(allocator, &seed, 2, given), made = {.rank = CLV_RANK_UNKNOWN}, wanted = {0};
      for (int64_t k = 0; k < rows * matrix[0]; ++k) ((float *)x.data)[k] = (float)(pick(&seed, 3) - 1);
      if (turn == 0) {
        assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
      } else {
        assert_ok(cpu.backend->instance_resize(cpu.device, program.instance, &x, 1, &error), error);
      }
      assert_ok(cpu_program_run(&program, &x, &made, &error), error);
      assert_ok(clv__graph_evaluate(graph, &x, NULL, &wanted, NULL, NULL, allocator, &error), error);
      assert_tensor(&made, &wanted, "rows");
      clv__release(allocator, made.data);
      clv__release(allocator, wanted.data);
      clv__release(allocator, x.data);
    }
    assert_int_equal(cpu.retreats, 0);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__graph_destroy(graph);
  }
}

static void test_all_numbers(void **state) {
  (void)state;
  const float row[2] = {1.0f, -2.0f};
  for (uint32_t first = 0; first < 65536; first += CLV__CPU_ROW_PANEL) {
    uint16_t panel[2 * CLV__CPU_ROW_PANEL];
    float sums[CLV__CPU_ROW_PANEL];
    for (uint32_t j = 0; j < CLV__CPU_ROW_PANEL; ++j) {
      panel[j] = (uint16_t)(first + j);
      panel[CLV__CPU_ROW_PANEL + j] = (uint16_t)(0x3c00u + j); /* the bits of f16 numbers from 1 on */
    }
    clv__cpu_kernels()->panel_f16(row, 2, panel, sums);
    for (uint32_t j = 0; j < CLV__CPU_ROW_PANEL; ++j) {
      const float wanted = clv__f16_widen(panel[j]) - 2.0f * clv__f16_widen(panel[CLV__CPU_ROW_PANEL + j]);
      if (sums[j] != wanted && !(isnan(sums[j]) && isnan(wanted))) {
        fail_msg("f16 with the bits %04x: the result is %g, expected %g", panel[j], (double)sums[j], (double)wanted);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_more_rows),
      cmocka_unit_test(test_all_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
