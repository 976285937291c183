/* Slots of values that are alive at the same time never share a byte of the arena, whether there are few (greedy algorithm) or
 * many (linear-time algorithm). The arena is at most 1.5 times as large as the most bytes alive at once. */
#include "machine.h"

#include "execute/session_own.h"

/* Makes random slots: lifetimes of up to `longest` steps, some until the end of the run; sizes in multiples of 64 bytes. */
static void make_slots(clv__slot *slots, size_t count, uint32_t steps, uint32_t longest, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t first = (uint32_t)(test_random(&seed) % steps), length = (uint32_t)(test_random(&seed) % longest);
    slots[i] = (clv__slot){.value = (clv_value_id)i,
                           .first = first,
                           .last = test_random(&seed) % 50 == 0 ? UINT32_MAX : first + length,
                           .size_known = true,
                           .size_bytes = 64 * (1 + test_random(&seed) % (test_random(&seed) % 4 == 0 ? 64 : 4))};
  }
}

static int by_offset(const void *a, const void *b) {
  const clv__slot *x = *(clv__slot *const *)a, *y = *(clv__slot *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Checks for each step that the slots alive in it do not overlap. Returns the most bytes that are alive in a step. */
static size_t check_steps(const clv__slot *slots, size_t count, uint32_t steps, size_t total) {
  const clv__slot **alive = malloc(count * sizeof *alive);
  size_t most = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    size_t alive_count = 0, bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      if (slots[i].first > s || slots[i].last < s) continue;
      alive[alive_count++] = &slots[i];
      bytes += slots[i].size_bytes;
      assert_true(slots[i].offset + slots[i].size_bytes <= total);
    }
    qsort(alive, alive_count, sizeof *alive, by_offset);
    for (size_t i = 1; i < alive_count; ++i) assert_true(alive[i - 1]->offset + alive[i - 1]->size_bytes <= alive[i]->offset);
    if (bytes > most) most = bytes;
  }
  free(alive);
  return most;
}

static void nothing_that_lives_together_is_shared(void **state) {
  (void)state;
  static const struct {
    size_t count;
    uint32_t steps, longest;
  } cases[] = {{0, 1, 1}, {1, 1, 1}, {40, 20, 5}, {500, 100, 30}, {4096, 300, 3}, {4097, 300, 3}, {6000, 200, 40}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      size_t count = cases[c].count, total;
      clv__slot *slots = calloc(count + 1, sizeof *slots);
      clv__slot **order = calloc(count + 1, sizeof *order);
      make_slots(slots, count, cases[c].steps, cases[c].longest, seed);
      for (size_t i = 0; i < count; ++i) order[i] = &slots[i];
      clv_error error = {0};
      assert_ok(clv__slots_arrange(order, count, NULL, clv__allocator_default(), &total, &error), error);
      size_t most = check_steps(slots, count, cases[c].steps, total);
      assert_true(total >= most);
      if (total > most + most / 2)
        fail_msg("%zu slots: the arena has %zu bytes, but at most %zu are live at the same time", count, total, most);
      free(order);
      free(slots);
    }
  }
}

static void sizes_that_no_machine_has(void **state) {
  (void)state;
  clv__slot slots[8];
  clv__slot *order[8];
  for (int i = 0; i < 8; ++i) {
    slots[i] = (clv__slot){.value = (clv_value_id)i, .last = UINT32_MAX, .size_bytes = (size_t)1 << 61};
    order[i] = &slots[i];
  }
  size_t total;
  clv_error error = {0};
  assert_int_equal(clv__slots_arrange(order, 8, NULL, clv__allocator_default(), &total, &error), CLV_OUT_OF_MEMORY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_that_lives_together_is_shared),
      cmocka_unit_test(sizes_that_no_machine_has),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
