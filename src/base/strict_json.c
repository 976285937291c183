/* See strict_json.h. */
#include "base/strict_json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

clv_status clv__json_bad(const clv__strict_json *json, const char *format, ...) {
  char what[384];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return clv__error_set(json->error, CLV_INVALID_MODEL, "%s: %s", json->name, what);
}

clv_status clv__json_check_keys(const clv__strict_json *json, json_t *object, const char *where, const char *const *known) {
  const char *key;
  json_t *value;
  if (!json_is_object(object)) return clv__json_bad(json, "%s is not an object", where);
  json_object_foreach(object, key, value) {
    bool found = false;
    for (const char *const *k = known; *k != NULL && !found; ++k) found = strcmp(*k, key) == 0;
    if (!found) return clv__json_bad(json, "%s: unknown key '%.60s'", where, key);
  }
  return CLV_OK;
}

clv_status clv__json_size(const clv__strict_json *json, const json_t *object, const char *where, const char *key, uint64_t most,
                          uint64_t *size) {
  const json_t *value = json_object_get(object, key);
  json_int_t got = json_integer_value(value);
  if (!json_is_integer(value) || got < 0 || (uint64_t)got > most)
    return clv__json_bad(json, "%s: '%s' must be a whole number of 0 to %" PRIu64, where, key, most);
  *size = (uint64_t)got;
  return CLV_OK;
}
