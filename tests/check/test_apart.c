/* Tests sections of the conformance kit that run in their own processes: if a backend crashes, hangs or exits, only one section
 * must fail. The process of this test itself executes nothing, because threads that kernels start here would not exist in its
 * children. */
#include "broken_check.h"

/* The report must state that the section crashed, hung or exited. The next section must run. */
static void test_end(void **state) {
  static const char *const sections[] = {"capture", "errors"};
  static const char *const texts[] = {[BROKEN_crashes] = "signal 11", [BROKEN_hangs] = "for 1 s", [BROKEN_exits] = "status 3"};
  const broken_fault fault = (broken_fault)(uintptr_t)*state;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.sections = sections;
  options.section_count = 2;
  options.apart = true;
  options.time_limit_s = fault == BROKEN_hangs ? 1 : 100;
  clv_check_report *report = check_broken(fault, &options);
  expect_only(report, &faults[fault]);
  const clv_check_section *capture = &report->sections[0], *errors = &report->sections[1];
  assert_string_equal(capture->name, "capture");
  assert_non_null(strstr(capture->failures[0].text, texts[fault]));
  assert_non_null(strstr(capture->failures[0].what, "launched")); /* the item that was being checked */
  assert_true(errors->passed > 5);
  clv_check_report_destroy(report);
}

static void test_like_here(void **state) {
  static const char *const sections[] = {"life", "errors"};
  (void)state;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.sections = sections;
  options.section_count = 2;
  options.apart = true;
  clv_check_report *report = check_broken(BROKEN_nothing, &options);
  assert_int_equal(report->section_count, 2);
  assert_int_equal(report->failed, 0);
  assert_true(report->passed > 30);
  assert_true(report->sections[0].seconds > 0);
  assert_string_equal(report->device, "broken");
  assert_non_null(strstr(report->description, "thread"));
  clv_check_report_destroy(report);
}

static void test_refused(void **state) {
  static const char *const wrong[] = {"life", "nonsense"};
  (void)state;
  clv_error error = {0};
  clv_context *context = NULL;
  clv_check_report *report = NULL;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.apart = true;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  assert_int_equal(clv_check_backend(context, "nobody", NULL, &options, &report, &error), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "nobody"));
  assert_null(report);
  assert_int_equal(clv_check_backend(context, "npu,cpu", NULL, &options, &report, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_check_backend(context, "./none.so", NULL, &options, &report, &error), CLV_NOT_FOUND);
  options.sections = wrong;
  options.section_count = 2;
  assert_int_equal(clv_check_backend(context, "cpu", NULL, &options, &report, &error), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "nonsense"));
  assert_non_null(strstr(error.message, "boundaries"));
  assert_null(report);
  clv_check_report_destroy(NULL);
  assert_null(clv_check_section_name(1000));
  clv_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      {.name = "crashes", .test_func = test_end, .initial_state = (void *)(uintptr_t)BROKEN_crashes},
      {.name = "hangs", .test_func = test_end, .initial_state = (void *)(uintptr_t)BROKEN_hangs},
      {.name = "exits", .test_func = test_end, .initial_state = (void *)(uintptr_t)BROKEN_exits},
      cmocka_unit_test(test_like_here),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
