/* JSON documents printed by the commands. */
#ifndef CLEAVE_CLI_JSON_H
#define CLEAVE_CLI_JSON_H

#include "cli/command.h"
#include "report/json.h"

static inline json_t *cli_json_text(const char *text) {
  return clv__json_text(text);
}
static inline json_t *cli_json_real(double number) {
  return clv__json_real(number);
}
static inline json_t *cli_json_type(const clv_graph *graph, const clv_tensor *type) {
  return clv__json_type(graph, type);
}
/* Parses a JSON document of the library, as a part of another document, and frees the text. NULL becomes NULL, as does a text
 * for which memory runs out. */
json_t *cli_json_parse(char *document);
/* Prints and releases the document. A NULL document means that memory ran out. */
clv_status cli_json_print(cli_invocation *cli, json_t *root, clv_error *error);

#endif
