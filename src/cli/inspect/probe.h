/* Which operators a device can run at all: every operator of the table is tried as a node of its own, with several kinds of
 * operands. */
#ifndef CLEAVE_CLI_INSPECT_PROBE_H
#define CLEAVE_CLI_INSPECT_PROBE_H

#include "cli/command.h"
#include "device/device.h"
#include "operators/infer.h"

typedef struct cli_probe {
  uint32_t count; /* operators */
  uint32_t device_count;
  const clv__op **ops;
  bool *supported; /* [op * device_count + device] */
} cli_probe;

clv_status cli_probe_run(cli_invocation *cli, const clv_devices *devices, cli_probe *probe, clv_error *error);
void cli_probe_finish(cli_invocation *cli, cli_probe *probe);
/* Operators that a device can run. */
uint32_t cli_probe_count(const cli_probe *probe, uint32_t device);

#endif
