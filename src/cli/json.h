/* JSON documents printed by the commands. */
#ifndef CLEAVE_CLI_JSON_H
#define CLEAVE_CLI_JSON_H

#include <jansson.h>

#include "cli/command.h"

/* Creates a string. Bytes that are not valid UTF-8 become U+FFFD. NULL becomes null. */
json_t *cli_json_text(const char *text);
/* Creates a number; null if JSON cannot represent it. */
json_t *cli_json_real(double number);
/* Parses a JSON document of the library, as a part of another document, and frees the text. NULL becomes NULL, as does a text
 * for which memory runs out. */
json_t *cli_json_parse(char *document);
/* Prints and releases the document. A NULL document means that memory ran out. */
clv_status cli_json_print(cli_invocation *cli, json_t *root, clv_error *error);

#endif
