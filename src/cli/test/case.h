/* Runs one ONNX test directory: as planned, and under random placements. */
#ifndef CLEAVE_CLI_TEST_CASE_H
#define CLEAVE_CLI_TEST_CASE_H

#include "cleave/plan.h"
#include "cli/command.h"
#include "cli/test/compare.h"

typedef enum cli_test_status { CLI_TEST_PASS, CLI_TEST_FAIL, CLI_TEST_UNSUPPORTED, CLI_TEST_ERROR } cli_test_status;
enum { CLI_TEST_STATUS_COUNT = 4 };
static const char *const cli_test_status_names[CLI_TEST_STATUS_COUNT] = {"PASS", "FAIL", "UNSUPPORTED", "ERROR"};

/* State shared by all cases. */
typedef struct cli_tester {
  cli_invocation *cli;
  clv_devices *devices;
  clv_plan_options plan; /* without sizes */
  cli_tolerance tolerance;
  uint32_t placements;
  uint64_t seed;
} cli_tester;

typedef struct cli_test_result {
  cli_test_status status;
  uint32_t placements, refused; /* number tried; number rejected for lack of memory */
  char reason[1400];            /* "" for a plain PASS */
} cli_test_result;

void cli_test_run(const cli_tester *tester, const char *path, cli_test_result *result);

#endif
