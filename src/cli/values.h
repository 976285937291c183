/* Tensors that a run gives: shown as a table or as JSON, written as .npy files. */
#ifndef CLEAVE_CLI_VALUES_H
#define CLEAVE_CLI_VALUES_H

#include "base/text.h"
#include "cli/json.h"

typedef struct cli_value {
  const char *name;
  clv_tensor tensor;
  const char *file; /* where it was written, or NULL */
} cli_value;

/* A line a value: type, smallest, largest, mean, the first elements. */
void cli_values_table(const cli_invocation *cli, const clv_graph *graph, const cli_value *values, uint32_t count,
                      clv__text *text);
json_t *cli_values_json(const clv_graph *graph, const cli_value *values, uint32_t count);
/* Makes `folder` where it is not there, and writes every value as NAME.npy; `/`, `\\` and control characters in a name become
 * `_`, and names that then meet get a number. Fills `file`. */
clv_status cli_values_write(cli_invocation *cli, const char *folder, cli_value *values, uint32_t count, clv_error *error);
/* One element, as people read it. */
void cli_value_element(const clv_tensor *tensor, size_t index, clv__text *text);

#endif
