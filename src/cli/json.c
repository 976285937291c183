/* See json.h. */
#include "cli/json.h"

#include "cli/console.h"

json_t *cli_json_parse(char *document) {
  json_t *root = document == NULL ? NULL : json_loads(document, JSON_DECODE_ANY, NULL);
  clv_text_free(document);
  return root;
}

clv_status cli_json_print(cli_invocation *cli, json_t *root, clv_error *error) {
  char *document;
  CLV__TRY(clv__json_give(root, cli->allocator, &document, error));
  clv_status status = cli_print_document(cli, document, error);
  clv_text_free(document);
  return status;
}
