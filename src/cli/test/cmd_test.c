/* `cleave test`: runs ONNX test directories and prints one line per directory. */
#include <stdio.h>
#include <string.h>

#include "cleave/label.h"
#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "cli/test/case.h"
#include "cli/test/data.h"

static clv_status print_case(cli_invocation *cli, const char *path, const cli_test_result *result, clv_error *error) {
  static const cli_style styles[CLI_TEST_STATUS_COUNT] = {CLI_GREEN, CLI_RED, CLI_YELLOW, CLI_RED};
  bool is_bad = result->status == CLI_TEST_FAIL || result->status == CLI_TEST_ERROR;
  if (cli->json || (cli->quiet && !is_bad)) return CLV_OK;
  char reason[4 * sizeof result->reason], name[4096];
  (void)clv_label_name(path, 0, name, sizeof name);
  (void)clv_label_name(result->reason, 0, reason, sizeof reason);
  cli_progress_end(cli);
  printf("%s%-11s%s %s%s%s\n", cli_begin(cli, styles[result->status]), cli_test_status_names[result->status], cli_reset(cli),
         name, reason[0] != '\0' ? ": " : "", reason);
  return is_bad ? cli_flush(error) : CLV_OK;
}

static json_t *case_json(const char *path, const cli_test_result *result, double time_ms) {
  json_t *object = json_object();
  json_object_set_new(object, "name", cli_json_text(path));
  json_object_set_new(object, "status", json_string(cli_test_status_names[result->status]));
  json_object_set_new(object, "reason", result->reason[0] != '\0' ? cli_json_text(result->reason) : json_null());
  json_object_set_new(object, "placements", json_integer(result->placements));
  json_object_set_new(object, "placements_refused", json_integer(result->refused));
  json_object_set_new(object, "time_ms", cli_json_real(time_ms));
  return object;
}

/* A number with separators: "1,234,567". */
static const char *grouped(uint64_t number, char text[32]) {
  char digits[24];
  const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  size_t used = 0;
  for (int i = 0; i < length; ++i) {
    if (i > 0 && (length - i) % 3 == 0) text[used++] = ',';
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}

static clv_status print_totals(cli_invocation *cli, const uint32_t totals[CLI_TEST_STATUS_COUNT], uint64_t placements,
                               json_t *cases, clv_error *error) {
  if (cli->json) {
    json_t *root = json_object(), *sums = json_object();
    for (int s = 0; s < CLI_TEST_STATUS_COUNT; ++s) {
      json_object_set_new(sums, cli_test_status_names[s], json_integer(totals[s]));
    }
    json_object_set_new(root, "cases", json_incref(cases));
    json_object_set_new(root, "totals", sums);
    json_object_set_new(root, "placements", json_integer((json_int_t)placements));
    return cli_json_print(cli, root, error);
  }
  cli_progress_end(cli);
  for (int s = 0; s < CLI_TEST_STATUS_COUNT; ++s) printf("%s%u %s", s > 0 ? ", " : "", totals[s], cli_test_status_names[s]);
  if (placements > 0) {
    char number[32];
    printf("; %s random placement%s", grouped(placements, number), placements == 1 ? "" : "s");
  }
  printf("\n");
  return CLV_OK;
}

static clv_status test_all(const cli_tester *tester, const cli_test_paths *paths, clv_error *error) {
  cli_invocation *cli = tester->cli;
  uint32_t totals[CLI_TEST_STATUS_COUNT] = {0};
  uint64_t placements = 0;
  json_t *cases = json_array();
  clv_status status = CLV_OK;
  for (size_t i = 0; status == CLV_OK && i < paths->count; ++i) {
    cli_test_result result;
    cli_progress(cli, "%zu of %zu: %s", i + 1, paths->count, paths->items[i]);
    uint64_t start = cli_now_ns();
    cli_test_run(tester, paths->items[i], &result);
    ++totals[result.status];
    placements += result.placements;
    if (cli->json) json_array_append_new(cases, case_json(paths->items[i], &result, cli_ms(start, cli_now_ns())));
    status = print_case(cli, paths->items[i], &result, error);
  }
  if (status == CLV_OK) status = print_totals(cli, totals, placements, cases, error);
  if (totals[CLI_TEST_FAIL] > 0 || totals[CLI_TEST_ERROR] > 0) cli->exit_status = CLI_EXIT_FAILED;
  json_decref(cases);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_tester tester = {.cli = cli, .plan = CLV_PLAN_OPTIONS_INIT};
  tester.tolerance =
      (cli_tolerance){cli_real(cli, OPTION_RTOL, 1e-3), cli_real(cli, OPTION_ATOL, 1e-7), !cli_is_given(cli, OPTION_RTOL)};
  tester.placements = (uint32_t)cli_number(cli, OPTION_PLACEMENTS, 0);
  tester.seed = cli_number(cli, OPTION_SEED, 0);
  cli_test_paths paths = {0};
  clv_status status;
  CLI_TRY_GOTO(cli_plan_options(cli, &tester.plan, error));
  CLI_TRY_GOTO(cli_devices_open(cli, NULL, &tester.devices, error));
  for (uint32_t i = 0; i < cli->options->operand_count; ++i) {
    CLI_TRY_GOTO(cli_test_find(&cli->arena, cli->options->operands[i], &paths, error));
  }
  CLI_TRY_GOTO(test_all(&tester, &paths, error));
cleanup:
  free((void *)paths.items);
  clv_devices_close(tester.devices);
  return status;
}

const cli_command cli_command_test = {
    .name = "test",
    .operands = "DIR...",
    .min_operands = 1,
    .max_operands = UINT32_MAX,
    .summary = "run ONNX test directories and compare the results",
    .description =
        "A test directory contains model.onnx and folders test_data_set_N with input_K.pb and output_K.pb. A directory without\n"
        "a model.onnx is searched for test directories. Each test gets one line: PASS, FAIL (a result differs), UNSUPPORTED\n"
        "(the model cannot be loaded or planned) or ERROR, with the reason. The totals follow. Floats must agree within\n"
        "atol + rtol * |expected|, and a NaN must match a NaN; everything else must be equal. The exit status is 0 if no test\n"
        "ends with FAIL or ERROR.\n"
        "--placements N also tests N random placements of every directory, each node on a random device that supports it. A\n"
        "failure names its seed; '--placements 1 --seed SEED' repeats it.",
    .examples =
        "  cleave test tests/data/node --devices npu,cpu                             # run every test below the directory\n"
        "  cleave test models/* --devices npu,cpu --placements 20 --seed 1 --json    # also 20 random placements of each model; "
        "print JSON\n",
    .execute = execute,
};
