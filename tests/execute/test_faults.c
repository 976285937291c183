/* Devices that fail in each call, at random, by hanging, or by being slow. Whatever happens, runs end in time with the right
 * outputs (or, without fallback, with an error), each failure is reported with its device, partition and call, nothing leaks, no
 * freed object of a device is used, and the session remains usable.
 *
 * Every schedule of faults is drawn from its seed (support/faults.h). CLEAVE_TEST_PERCENT=100 runs 5,000; CLEAVE_TEST_SEED=N runs
 * only the schedule of seed N. */
#include "faults.h"

enum { SCHEDULES = 5000, FIRST_SEED = 100000 };

/* Every fourth schedule is without fallback. */
static bool play(uint64_t seed) {
  schedule s;
  schedule_draw(&s, seed, seed % 4 == 0);
  return schedule_play(&s);
}

/* Each slot in `fault_slots` must have failed often enough, and on both of the first two devices. */
static void check_coverage(uint64_t count) {
  uint64_t wanted = count < 500 ? 0 : count / 50, wanted_each = wanted / 10;
  for (size_t i = 0; i < FAULT_SLOTS; ++i) {
    const char *name = interposer_slot_name(fault_slots[i]);
    uint64_t first = schedules_struck(0, fault_slots[i]), second = schedules_struck(1, fault_slots[i]);
    uint64_t all = first + second + schedules_struck(2, fault_slots[i]);
    print_message("%s: %llu failures\n", name, (unsigned long long)all);
    if (all < wanted || first < wanted_each || second < wanted_each)
      fail_msg("%s failed %llu times, on two devices %llu and %llu times; expected %llu, and %llu on each", name,
               (unsigned long long)all, (unsigned long long)first, (unsigned long long)second, (unsigned long long)wanted,
               (unsigned long long)wanted_each);
  }
}

/* Runs schedules until `count` of them had a fault. Some end before their fault occurs. */
static void random_schedules(void **state) {
  (void)state;
  uint64_t count = test_some(SCHEDULES), done = 0;
  for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 4 * count && done < count; ++seed) done += play(seed);
  schedule_unwatch();
  assert_true(done == count);
  check_coverage(count);
}

static void one_schedule(void **state) {
  (void)state;
  (void)play(strtoull(getenv("CLEAVE_TEST_SEED"), NULL, 10));
  schedule_unwatch();
}

int main(void) {
  const struct CMUnitTest one[] = {cmocka_unit_test(one_schedule)}, all[] = {cmocka_unit_test(random_schedules)};
  return getenv("CLEAVE_TEST_SEED") != NULL ? cmocka_run_group_tests(one, NULL, NULL) : cmocka_run_group_tests(all, NULL, NULL);
}
