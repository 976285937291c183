/* `cleave devices`: lists the available devices and their capabilities. */
#include "cleave/report.h"
#include "cli/console.h"
#include "cli/job.h"

static clv_status execute(cli_invocation *cli, clv_error *error) {
  clv_devices *devices = NULL;
  char *document = NULL;
  clv_status status = cli_devices_open(cli, "auto", &devices, error);
  if (status == CLV_OK) status = clv_devices_report(devices, cli->verbose, cli_form(cli), &document, error);
  if (status == CLV_OK) status = cli_print_document(cli, document, error);
  clv_text_free(document);
  clv_devices_close(devices);
  return status;
}

const cli_command cli_command_devices = {
    .name = "devices",
    .operands = "",
    .summary = "list the devices, and the operators each supports",
    .description =
        "Opens the devices of --devices, or all that are found, and shows their memory and how many of Cleave's operators they\n"
        "support. Whether a device can run a node of a model also depends on types, shapes and attributes: see 'cleave inspect\n"
        "MODEL'. -v lists the options and operators of each device. Devices that were not found or could not be loaded are\n"
        "listed with the reason.",
    .examples =
        "  cleave devices                                                     # all devices found on this machine\n"
        "  cleave devices --devices npu,cpu -v                                # also their options and operators\n"
        "  cleave devices --plugin ./cleave_template.so --devices template    # the devices of a plugin\n"
        "  cleave devices --devices npu --npu-spec my-npu.json --json         # a virtual NPU described by a file; print JSON\n",
    .execute = execute,
};
