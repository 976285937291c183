/* Writes a run's output tensors as .npy files. */
#ifndef CLEAVE_CLI_VALUES_H
#define CLEAVE_CLI_VALUES_H

#include "cleave/tensors.h"
#include "cli/command.h"

/* Creates `folder` if necessary and writes every value as NAME.npy. `/`, `\\`, control characters and a leading dot in a name
 * become `_`; names that then coincide get a number. Sets `file`. */
clv_status cli_values_write(cli_invocation *cli, const char *folder, clv_named_tensor *values, uint32_t count, clv_error *error);

#endif
