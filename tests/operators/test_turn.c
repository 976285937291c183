/* Tests clv__turn_f32(), which transposes matrices, against its definition, with sides near multiples of the block size.
 * Nothing next to the result may be written. */
#include <stdlib.h>
#include <string.h>

#include "operators/common/turn.h"
#include "support.h"

static int64_t side(uint64_t *seed) {
  static const int64_t sides[] = {0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 50};
  return sides[test_random(seed) % (sizeof sides / sizeof *sides)];
}

static void test_turn_f32(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int round = 0; round < 400; ++round) {
    const int64_t rows = side(&seed), columns = side(&seed), from_step = columns + round % 3, to_step = rows + round % 5;
    const size_t from_count = (size_t)(rows * from_step + 1), to_count = (size_t)(columns * to_step + 1);
    uint32_t *from = malloc(from_count * sizeof *from), *to = malloc(to_count * sizeof *to);
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < from_count; ++i) from[i] = (uint32_t)test_random(&seed); /* random bits, including NaNs */
    memset(to, 0x5a, to_count * sizeof *to);
    clv__turn_f32((const float *)(const void *)from, from_step, (float *)(void *)to, to_step, rows, columns);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < to_step; ++r) {
        assert_int_equal(to[c * to_step + r], r < rows ? from[r * from_step + c] : 0x5a5a5a5au);
      }
    }
    assert_int_equal(to[to_count - 1], 0x5a5a5a5au);
    free(from);
    free(to);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_turn_f32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
