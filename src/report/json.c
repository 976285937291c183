/* See json.h. */
#include "report/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/document.h"
#include "base/error.h"
#include "base/memory.h"
#include "report/label.h"

json_t *clv__json_text(const char *text) {
  if (text == NULL) return json_null();
  json_t *string = json_string(text);
  if (string != NULL) return string;
  clv__text fixed;
  clv__text_init(&fixed, clv__allocator_default());
  uint32_t character;
  for (size_t length; (length = clv__label_decode(text, &character)) > 0; text += length) {
    if (length == 1 && character == 0xfffd)
      clv__text_append(&fixed, "\xef\xbf\xbd");
    else
      clv__text_append_bytes(&fixed, text, length);
  }
  string = json_string(fixed.data);
  clv__text_finish(&fixed);
  return string;
}

json_t *clv__json_real(double number) {
  return isfinite(number) ? json_real(number) : json_null();
}

json_t *clv__json_type(const clv_graph *graph, const clv_tensor *type) {
  json_t *object = json_object(), *shape = type->rank < 0 ? json_null() : json_array();
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t dim = type->dims[i];
    if (dim >= 0)
      json_array_append_new(shape, json_integer(dim));
    else if (dim != CLV_DIM_UNKNOWN && (uint64_t)(-2 - dim) < graph->symbol_count) {
      json_array_append_new(shape, clv__json_text(graph->symbols[-2 - dim]));
    } else {
      json_array_append_new(shape, json_null());
    }
  }
  json_object_set_new(object, "dtype", json_string(clv_dtype_name(type->dtype)));
  json_object_set_new(object, "shape", shape);
  return object;
}

clv_status clv__json_give(json_t *root, const clv_allocator *allocator, char **out, clv_error *error) {
  char *dumped = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
  json_decref(root);
  if (dumped == NULL) return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for JSON");
  clv__text text;
  clv__text_init(&text, allocator);
  clv__text_append_bytes(&text, dumped, strlen(dumped));
  clv__text_append(&text, "\n");
  free(dumped);
  return clv__document_give(&text, out, error);
}
