/* The conformance kit must find every broken promise in exactly the section that checks it, and find nothing if no promise is
 * broken. */
#include "broken_check.h"

static void test_fault(void **state) {
  const broken_fault fault = (broken_fault)(uintptr_t)*state;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.every = strcmp(faults[fault].section, "operators") == 0 ? 8 : 32;
  clv_check_report *report = check_broken(fault, &options);
  expect_only(report, &faults[fault]);
  assert_int_equal(report->failed > 0, faults[fault].section[0] != '\0');
  assert_true(report->passed > 300);
  clv_check_report_destroy(report);
}

int main(void) {
  struct CMUnitTest tests[BROKEN_crashes];
  for (uintptr_t i = 0; i < BROKEN_crashes; ++i) {
    tests[i] = (struct CMUnitTest){.name = faults[i].name, .test_func = test_fault, .initial_state = (void *)i};
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(broken_blob);
  return failed;
}
