/* JSON documents printed by the commands. */
#ifndef CLEAVE_CLI_JSON_H
#define CLEAVE_CLI_JSON_H

#include <jansson.h>

#include "cli/command.h"
#include "plan/plan.h"

/* Creates a string. Bytes that are not valid UTF-8 become U+FFFD. NULL becomes null. */
json_t *cli_json_text(const char *text);
/* Creates a number; null if JSON cannot represent it. */
json_t *cli_json_real(double number);
/* Creates an object such as {"dtype": "f32", "shape": [1, "N", null]}. Symbols appear by name, and unknown sizes are null. The
 * shape is null if the rank is unknown. */
json_t *cli_json_type(const clv_graph *graph, const clv_tensor *type);
/* Prints and releases the document. A NULL document means that memory ran out. */
clv_status cli_json_print(cli_invocation *cli, json_t *root, clv_error *error);

#endif
