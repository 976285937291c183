/* Reading JSON that may come from anywhere: known keys alone, numbers within bounds; errors begin with the file's name. */
#ifndef CLEAVE_GNN_STRICT_JSON_H
#define CLEAVE_GNN_STRICT_JSON_H

#include <jansson.h>

#include "base/error.h"

typedef struct clv__strict_json {
  const char *name; /* of the file */
  clv_error *error;
} clv__strict_json;

/* CLV_INVALID_MODEL. `where` in all of them is the place in the file, for people. */
clv_status clv__json_bad(const clv__strict_json *json, const char *format, ...) CLV_PRINTF(2, 3);
/* An object without keys other than `known` (NULL at the end). */
clv_status clv__json_check_keys(const clv__strict_json *json, json_t *object, const char *where, const char *const *known);
/* A whole number from 0 to `most`. */
clv_status clv__json_size(const clv__strict_json *json, const json_t *object, const char *where, const char *key, uint64_t most,
                          uint64_t *size);

#endif
