/* See strict_json.h. */
#include "base/strict_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

clv_status clv__json_bad(const clv__strict_json *json, const char *format, ...) {
  char what[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return clv__error_set(json->error, CLV_INVALID_MODEL, "%s%s%s%s%s", json->name != NULL ? json->name : "",
                        json->name != NULL ? ": " : "", json->part != NULL ? json->part : "", json->part != NULL ? ": " : "",
                        what);
}

clv_status clv__json_parse(const clv__strict_json *json, const char *text, size_t size_bytes, size_t most_bytes, const char *kind,
                           json_t **root) {
  json_error_t at;
  *root = NULL;
  if (size_bytes > most_bytes)
    return clv__json_bad(json, "a file of %zu bytes is too large for a %s; expected at most %zu bytes", size_bytes, kind,
                         most_bytes);
  *root = json_loadb(text == NULL ? "" : text, size_bytes, JSON_REJECT_DUPLICATES, &at);
  return *root != NULL ? CLV_OK : clv__json_bad(json, "line %d, column %d: %s", at.line, at.column, at.text);
}

clv_status clv__json_check_keys(const clv__strict_json *json, json_t *object, const char *where, const char *const *known) {
  const char *key, *separator = where != NULL ? ": " : "";
  json_t *value;
  if (!json_is_object(object))
    return clv__json_bad(json, "%s%sis not an object", where != NULL ? where : "", where != NULL ? " " : "");
  json_object_foreach(object, key, value) {
    bool found = false;
    for (const char *const *k = known; *k != NULL && !found; ++k) found = strcmp(*k, key) == 0;
    if (!found) return clv__json_bad(json, "%s%sunknown key '%.60s'", where != NULL ? where : "", separator, key);
  }
  return CLV_OK;
}

clv_status clv__json_size(const clv__strict_json *json, const json_t *object, const char *where, const char *key, uint64_t most,
                          uint64_t *size) {
  const json_t *value = json_object_get(object, key);
  json_int_t got = json_integer_value(value);
  if (!json_is_integer(value)) return clv__json_bad(json, "%s: '%s' must be a whole number", where, key);
  if (got < 0 || (uint64_t)got > most)
    return clv__json_bad(json, "%s: '%s' is %lld; expected 0 to %" PRIu64, where, key, (long long)got, most);
  *size = (uint64_t)got;
  return CLV_OK;
}

clv_status clv__json_number(const clv__strict_json *json, const json_t *object, const char *where, const char *key, double most,
                            double *number) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) return clv__json_bad(json, "%s: '%s' must be a number", where, key);
  *number = json_number_value(value);
  if (isfinite(*number) && *number >= 0 && *number <= most) return CLV_OK;
  return clv__json_bad(json, "%s: '%s' is %g; expected 0 to %g", where, key, *number, most);
}

clv_status clv__json_string(const clv__strict_json *json, const json_t *object, const char *where, const char *key, size_t least,
                            size_t most, const char **text) {
  const json_t *value = json_object_get(object, key);
  size_t length = json_string_length(value);
  *text = json_string_value(value);
  if (*text != NULL && length >= least && length <= most) return CLV_OK;
  return clv__json_bad(json, "%s: '%s' must be a string of %zu to %zu bytes", where, key, least, most);
}

clv_status clv__json_list(const clv__strict_json *json, const json_t *object, const char *where, const char *key, size_t least,
                          size_t most, json_t **list) {
  *list = json_object_get(object, key);
  if (!json_is_array(*list)) return clv__json_bad(json, "%s: '%s' must be a list", where, key);
  size_t count = json_array_size(*list);
  if (count >= least && count <= most) return CLV_OK;
  return clv__json_bad(json, "%s: '%s' has length %zu; expected %zu to %zu", where, key, count, least, most);
}
