/* Checks the broken backend with the conformance kit, and tests the report. */
#ifndef CLEAVE_TESTS_CHECK_BROKEN_CHECK_H
#define CLEAVE_TESTS_CHECK_BROKEN_CHECK_H

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

/* Expects the section that must find the fault to fail, and all others to pass. */
static void expect_only(const clv_check_report *report, const fault_info *fault) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < report->section_count; ++i) {
    const clv_check_section *section = &report->sections[i];
    bool expected = strcmp(section->name, fault->section) == 0;
    found += expected && section->failed > 0;
    assert_int_equal(section->failure_count > 0, section->failed > 0);
    if (expected || section->failed == 0) continue;
    fail_msg("the fault '%s' must not let section '%s' fail, but it does: %s: %s", fault->name, section->name,
             section->failures[0].what, section->failures[0].text);
  }
  if (fault->section[0] != '\0' && found == 0)
    fail_msg("the fault '%s' must let section '%s' fail, but it does not", fault->name, fault->section);
}

#endif
