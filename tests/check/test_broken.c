/* The conformance kit finds every promise that is broken, in the section that it belongs to and in no other; and finds nothing
 * where none is. */
#include "support.h"

#include "broken.h"
#include "cleave/check.h"

typedef struct fault_info {
  const char *name, *section;
  bool is_npu;
} fault_info;

static const fault_info faults[] = {
#define FAULT_ENTRY(name, section, npu) {#name, section, npu},
    BROKEN_FAULTS(FAULT_ENTRY)
#undef FAULT_ENTRY
};

static clv_check_report *check_broken(broken_fault fault, const clv_check_options *options) {
  clv_error error = {0};
  clv_context *context = NULL;
  clv_check_report *report = NULL;
  bool is_npu = faults[fault].is_npu;
  broken_now = fault;
  memset(broken_things, 0, sizeof broken_things);
  assert_ok(clv_context_create(NULL, &context, &error), error);
  assert_ok(clv_context_add_backend(context, broken_query, &is_npu, &error), error);
  assert_ok(clv_check_backend(context, "broken", NULL, options, &report, &error), error);
  clv_context_destroy(context);
  assert_string_equal(report->backend, "broken");
  return report;
}

/* Every section but the one named passes, and that one fails. */
static void expect_only(const clv_check_report *report, const fault_info *fault) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < report->section_count; ++i) {
    const clv_check_section *section = &report->sections[i];
    bool expected = strcmp(section->name, fault->section) == 0;
    found += expected && section->failed > 0;
    assert_int_equal(section->failure_count > 0, section->failed > 0);
    if (expected || section->failed == 0) continue;
    fail_msg("%s: section '%s' fails too: %s: %s", fault->name, section->name, section->failures[0].what,
             section->failures[0].text);
  }
  if (fault->section[0] != '\0' && found == 0) fail_msg("%s: section '%s' does not see it", fault->name, fault->section);
}

static void test_fault(void **state) {
  const broken_fault fault = (broken_fault)(uintptr_t)*state;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.every = 8;
  clv_check_report *report = check_broken(fault, &options);
  expect_only(report, &faults[fault]);
  assert_int_equal(report->failed > 0, faults[fault].section[0] != '\0');
  assert_true(report->passed > 500);
  clv_check_report_destroy(report);
}

/* What ends the process, or never comes back, is told; the next section goes on. */
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
  assert_non_null(strstr(capture->failures[0].what, "launched")); /* what was looked at */
  assert_true(errors->passed > 5);
  clv_check_report_destroy(report);
}

int main(void) {
  struct CMUnitTest tests[BROKEN_COUNT];
  for (uintptr_t i = 0; i < BROKEN_COUNT; ++i) {
    bool ends = i == BROKEN_crashes || i == BROKEN_hangs || i == BROKEN_exits;
    tests[i] = (struct CMUnitTest){.name = faults[i].name, .test_func = ends ? test_end : test_fault, .initial_state = (void *)i};
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(broken_blob);
  return failed;
}
