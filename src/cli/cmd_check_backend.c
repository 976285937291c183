/* `cleave check-backend`: runs the conformance kit on a plugin or a device. */
#include <string.h>

#include "cleave/check.h"
#include "cli/console.h"
#include "cli/options/options.h"

static void show_progress(void *user_data, const char *section, uint32_t done, uint32_t of) {
  cli_invocation *cli = user_data;
  if (of > 0)
    cli_progress(cli, "%s: %u of %u", section, done, of);
  else
    cli_progress(cli, "%s", section);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const cli_options *given = cli->options;
  const char *device = given->operands[0];
  size_t length = strlen(device);
  if (strchr(device, '/') == NULL && length > 3 && strcmp(device + length - 3, ".so") == 0) {
    return cli_usage(cli, error, "'%s': to check a plugin, give its path: ./%s", device, device);
  }
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.npu_spec_count = given->given[OPTION_NPU_SPEC].count;
  devices.npu_specs = given->given[OPTION_NPU_SPEC].values;
  devices.device_option_count = given->given[OPTION_DEVICE_OPTION].count;
  devices.device_options = given->given[OPTION_DEVICE_OPTION].values;
  devices.thread_count = (uint32_t)cli_number(cli, OPTION_THREADS, 0);
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.sections = given->given[OPTION_SECTION].values;
  options.section_count = given->given[OPTION_SECTION].count;
  options.seed = cli_number(cli, OPTION_SEED, 0);
  options.progress = show_progress;
  options.user_data = cli;
  options.every = (uint32_t)cli_number(cli, OPTION_EVERY, 0);
  options.apart = true;
  clv_check_report *report = NULL;
  clv_status status = clv_check_backend(cli->context, device, &devices, &options, &report, error);
  if (status == CLV_INVALID_ARGUMENT || status == CLV_NOT_FOUND) cli->exit_status = CLI_EXIT_USAGE;
  if (status != CLV_OK) return status;
  clv_check_text_options shown = CLV_CHECK_TEXT_OPTIONS_INIT;
  char *document = NULL;
  shown.skips = cli->verbose;
  shown.brief = cli->quiet;
  status = clv_check_report_text(report, &shown, cli_form(cli), &document, error);
  if (status == CLV_OK) status = cli_print_document(cli, document, error);
  clv_text_free(document);
  if (report->failed > 0) cli->exit_status = CLI_EXIT_FAILED;
  clv_check_report_destroy(report);
  return status;
}

const cli_command cli_command_check_backend = {
    .name = "check-backend",
    .operands = "LIB.so|DEVICE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "test whether a plugin conforms to the plugin interface",
    .description =
        "Runs the conformance kit on the device of a plugin (given by its path) or on a known device (cpu, npu, opencl, ...). "
        "It\n"
        "checks what the plugin interface requires, section by section; docs/conformance.md describes the sections. Results are\n"
        "compared with those of the reference evaluator. Each section runs in a separate process. If a backend crashes, or does\n"
        "not answer for two minutes, the section fails and the next one runs. Optional features that a backend lacks are\n"
        "skipped; -v lists the reasons. All random choices depend on --seed. The exit status is 0 if nothing failed.",
    .examples =
        "  cleave check-backend ./libmynpu.so                                      # all sections, for the device of a plugin\n"
        "  cleave check-backend npu --npu-spec all --section operators --seed 7    # one section, for the virtual NPU\n"
        "  cleave check-backend opencl --json                                      # all sections, for an OpenCL device; print "
        "JSON\n",
    .execute = execute,
};
