/* Reads untrusted JSON strictly: only known keys, and numbers within bounds. Errors start with the file's name. */
#ifndef CLEAVE_BASE_STRICT_JSON_H
#define CLEAVE_BASE_STRICT_JSON_H

#include <jansson.h>

#include "base/error.h"

typedef struct clv__strict_json {
  const char *name; /* file name */
  clv_error *error;
} clv__strict_json;

/* Returns CLV_INVALID_MODEL. In all these functions, `where` describes the position in the file for readers. */
clv_status clv__json_bad(const clv__strict_json *json, const char *format, ...) CLV_PRINTF(2, 3);
/* Checks that an object has only keys from `known` (NULL at the end). */
clv_status clv__json_check_keys(const clv__strict_json *json, json_t *object, const char *where, const char *const *known);
/* Reads an integer from 0 to `most`. */
clv_status clv__json_size(const clv__strict_json *json, const json_t *object, const char *where, const char *key, uint64_t most,
                          uint64_t *size);

#endif
