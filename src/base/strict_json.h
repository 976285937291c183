/* Reads untrusted JSON strictly: only known keys, and values of the right type within limits. Each format defines its keys and
 * limits. Errors start with the file's name. */
#ifndef CLEAVE_BASE_STRICT_JSON_H
#define CLEAVE_BASE_STRICT_JSON_H

#include <jansson.h>

#include "base/error.h"

typedef struct clv__strict_json {
  const char *name; /* file name; NULL: the caller adds it */
  const char *part; /* the part of the file that is being read, for messages; NULL: the whole file */
  clv_error *error;
} clv__strict_json;

/* Sets the error to "file: part: text" and returns CLV_INVALID_MODEL. In the functions below, `where` names a place inside
 * `part`, for messages. */
clv_status clv__json_bad(const clv__strict_json *json, const char *format, ...) CLV_PRINTF(2, 3);
/* Parses a whole text of at most `most_bytes`. Messages call it a `kind`, for example "profile". Keys must not repeat, and
 * strings must not contain zero bytes. The caller releases the root with json_decref(). */
clv_status clv__json_parse(const clv__strict_json *json, const char *text, size_t size_bytes, size_t most_bytes, const char *kind,
                           json_t **root);
/* Checks that an object has only keys from `known` (NULL at the end). `where` may be NULL. */
clv_status clv__json_check_keys(const clv__strict_json *json, json_t *object, const char *where, const char *const *known);
/* Reads an integer from 0 to `most`. */
clv_status clv__json_size(const clv__strict_json *json, const json_t *object, const char *where, const char *key, uint64_t most,
                          uint64_t *size);
/* Reads a finite number from 0 to `most`. */
clv_status clv__json_number(const clv__strict_json *json, const json_t *object, const char *where, const char *key, double most,
                            double *number);
/* Reads a string of `least` to `most` bytes. `*text` points into the object. */
clv_status clv__json_string(const clv__strict_json *json, const json_t *object, const char *where, const char *key, size_t least,
                            size_t most, const char **text);
/* Reads a list of `least` to `most` elements. `*list` belongs to the object; the caller must not release it. */
clv_status clv__json_list(const clv__strict_json *json, const json_t *object, const char *where, const char *key, size_t least,
                          size_t most, json_t **list);

#endif
