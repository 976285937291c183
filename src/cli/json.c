/* See json.h. */
#include "cli/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/console.h"

/* Creates a string in which U+FFFD replaces bytes that are not valid UTF-8. */
static json_t *repaired(const char *text) {
  cli_buffer fixed;
  cli_buffer_init(&fixed);
  for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
    json_t *character = NULL;
    for (length = 1; length <= 4 && length <= left && character == NULL; ++length) character = json_stringn(text, length);
    length = character != NULL ? length - 1 : 1;
    cli_buffer_append(&fixed, "%.*s", character != NULL ? (int)length : 3, character != NULL ? text : "\xef\xbf\xbd");
    json_decref(character);
  }
  json_t *string = json_string(fixed.data);
  cli_buffer_finish(&fixed);
  return string;
}

json_t *cli_json_text(const char *text) {
  if (text == NULL) return json_null();
  json_t *string = json_string(text);
  return string != NULL ? string : repaired(text);
}

json_t *cli_json_real(double number) {
  return isfinite(number) ? json_real(number) : json_null();
}

json_t *cli_json_parse(char *document) {
  json_t *root = document == NULL ? NULL : json_loads(document, JSON_DECODE_ANY, NULL);
  clv_text_free(document);
  return root;
}

clv_status cli_json_print(cli_invocation *cli, json_t *root, clv_error *error) {
  char *dumped = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
  json_decref(root);
  if (dumped == NULL) return cli_error_set(error, CLV_OUT_OF_MEMORY, "out of memory for JSON");
  clv_status status = cli_print_document(cli, dumped, error);
  free(dumped);
  if (status == CLV_OK) status = cli_print_document(cli, "\n", error);
  return status;
}
