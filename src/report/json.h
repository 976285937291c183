/* JSON documents made for callers: values that JSON cannot represent, and the finished text. */
#ifndef CLEAVE_REPORT_JSON_H
#define CLEAVE_REPORT_JSON_H

#include <jansson.h>

#include "graph/graph.h"

/* Creates a string. Bytes that are not valid UTF-8 become U+FFFD. NULL becomes null. */
json_t *clv__json_text(const char *text);
/* Creates a number; null if JSON cannot represent it. */
json_t *clv__json_real(double number);
/* Creates an object such as {"dtype": "f32", "shape": [1, "N", null]}. Symbols appear by name, and unknown sizes are null. The
 * shape is null if the rank is unknown. */
json_t *clv__json_type(const clv_graph *graph, const clv_tensor *type);
/* Writes the document as an indented text that ends with a newline, which the caller frees with clv_text_free(). Releases the
 * document. A NULL document means that memory ran out. */
clv_status clv__json_give(json_t *root, const clv_allocator *allocator, char **out, clv_error *error);

#endif
