/* JSON documents as the commands print them. */
#ifndef CLEAVE_CLI_JSON_H
#define CLEAVE_CLI_JSON_H

#include <jansson.h>

#include "cli/command.h"
#include "plan/plan.h"

/* A string; bytes that are no UTF-8 become U+FFFD. NULL becomes null. */
json_t *cli_json_text(const char *text);
/* A number; null where it is none that JSON can hold. */
json_t *cli_json_real(double number);
/* {"dtype": "f32", "shape": [1, "N", null]}, the symbols by name; shape is null where the rank is unknown. */
json_t *cli_json_type(const clv_graph *graph, const clv_tensor *type);
/* Prints the document and gives it up. A NULL in it means that memory was out. */
clv_status cli_json_print(cli_invocation *cli, json_t *root, clv_error *error);

#endif
