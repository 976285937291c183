/* Compares matrices packed into panels with oneDNN's own reorder to the same layout, bit for bit: with contiguous rows or
 * columns, unaligned addresses and scales, whole and slice by slice, with padding of rows and columns. */
#include "backends/cpu/constants/panels.h"
#include "base/random.h"
#include "cpu_host.h"

static void check(clv__dnn *dnn, int64_t rows, int64_t columns, bool by_column, bool scaled, int64_t slice, size_t shift_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t dims[2] = {rows, columns}, strides[2] = {by_column ? 1 : columns, by_column ? rows : 1}, count = rows * columns;
  const int64_t given[2] = {columns, count};
  clv_error error = {0};
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  const clv__dnn_layout *from = clv__dnn_layout_strided(&arena, CLV_F32, 2, dims, strides);
  const clv__dnn_layout *panels = clv__dnn_layout_panels(&arena, CLV_F32, dims);
  assert_true(from != NULL && panels != NULL && clv__dnn_layout_is_panels(panels) && !clv__dnn_layout_is_panels(from));
  uint64_t seed = (uint64_t)(rows * 7 + columns);
  float *scale = random_tensor(allocator, &seed, 1, &given[0]).data, *values = random_tensor(allocator, &seed, 1, &given[1]).data;
  uint8_t *shifted = clv__allocate(allocator, (size_t)count * sizeof(float) + shift_bytes);
  memcpy(shifted + shift_bytes, values, (size_t)count * sizeof(float));
  const size_t size_bytes = clv__dnn_layout_size_bytes(panels);
  float *wanted = clv__allocate_zero(allocator, size_bytes), *made = clv__allocate(allocator, size_bytes);
  memset(made, 0xff, size_bytes);
  const clv__cpu_matrix matrix = {shifted + shift_bytes, rows, columns, by_column, scaled ? scale : NULL};
  const int64_t extent = by_column ? columns : rows;
  for (int64_t at = 0; at < extent; at += slice) {
    const int64_t part = extent - at < slice ? extent - at : slice;
    clv__cpu_panels_pack(&matrix, by_column ? 0 : at, by_column ? rows : part, by_column ? at : 0, by_column ? part : columns,
                         made);
  }
  for (int64_t i = 0; i < count && scaled; ++i) values[i] *= scale[by_column ? i / rows : i % columns];
  assert_ok(clv__dnn_reorder_now(dnn, from, values, panels, wanted, &error), error);
  for (size_t i = 0; i < size_bytes / sizeof(float); ++i) {
    if (memcmp(&made[i], &wanted[i], sizeof *made) == 0) continue;
    fail_msg("%lld rows, %lld columns, columns contiguous: %d, slices of %lld: element %zu is %g, oneDNN has %g", (long long)rows,
             (long long)columns, by_column, (long long)slice, i, (double)made[i], (double)wanted[i]);
  }
  clv__release(allocator, made);
  clv__release(allocator, wanted);
  clv__release(allocator, shifted);
  clv__release(allocator, values);
  clv__release(allocator, scale);
  clv__arena_finish(&arena);
}

static void test_orders(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{1, 64}, {16, 64}, {3, 65}, {70, 130}, {512, 1000}, {130, 67}, {257, 257}};
  clv_error error = {0};
  clv__dnn *dnn;
  assert_ok(clv__dnn_open(clv__allocator_default(), &dnn, &error), error);
  for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; ++i) {
    check(dnn, shapes[i / 4][0], shapes[i / 4][1], i % 2 == 0, i / 2 % 2 == 0, i % 3 == 0 ? 64 : 100000 / 64 * 64, i % 5);
  }
  uint64_t seed = 5;
  for (int i = 0; i < 60; ++i) {
    const int64_t rows = 1 + (int64_t)clv__random_below(&seed, 300), columns = 1 + (int64_t)clv__random_below(&seed, 300);
    const int64_t slice = 64 * (1 + (int64_t)clv__random_below(&seed, 5));
    if (rows > 1 && columns > 1) check(dnn, rows, columns, i % 2 == 0, i / 2 % 2 == 0, slice, clv__random_below(&seed, 8));
  }
  clv__dnn_close(dnn);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
