/* Shows a run's output tensors as a table or as JSON, and writes them as .npy files. */
#ifndef CLEAVE_CLI_VALUES_H
#define CLEAVE_CLI_VALUES_H

#include "base/text.h"
#include "cli/json.h"

typedef struct cli_value {
  const char *name;
  clv_tensor tensor;
  const char *file; /* the file it was written to, or NULL */
} cli_value;

/* Writes one line per value: type, minimum, maximum, mean, the first elements. */
void cli_values_table(const cli_invocation *cli, const clv_graph *graph, const cli_value *values, uint32_t count,
                      clv__text *text);
json_t *cli_values_json(const clv_graph *graph, const cli_value *values, uint32_t count);
/* Creates `folder` if necessary and writes every value as NAME.npy. `/`, `\\`, control characters and a leading dot in a name
 * become `_`; names that then coincide get a number. Sets `file`. */
clv_status cli_values_write(cli_invocation *cli, const char *folder, cli_value *values, uint32_t count, clv_error *error);

#endif
