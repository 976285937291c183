/* Determines which operators a device supports at all. Tries every operator of the table as a single-node graph with several
 * kinds of operands. */
#ifndef CLEAVE_CLI_INSPECT_PROBE_H
#define CLEAVE_CLI_INSPECT_PROBE_H

#include "cli/command.h"
#include "device/device.h"
#include "operators/infer.h"

typedef struct cli_probe {
  uint32_t count; /* number of operators */
  uint32_t device_count;
  const clv__op **ops;
  bool *supported; /* [op * device_count + device] */
} cli_probe;

clv_status cli_probe_run(cli_invocation *cli, const clv_devices *devices, cli_probe *probe, clv_error *error);
void cli_probe_finish(cli_invocation *cli, cli_probe *probe);
/* Returns how many operators a device supports. */
uint32_t cli_probe_count(const cli_probe *probe, uint32_t device);

#endif
