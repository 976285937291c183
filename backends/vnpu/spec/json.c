/* Reads the members of a JSON description: see json.h. */
#include "json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/tensor/tensor.h"

/* Formats an error such as "npu.json: line 4: operators.Conv.attributes: …". */
clv_status clv__spec_fail(clv__spec_reader *r, const char *format, ...) {
  char what[600], place[200] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  size_t used = 0;
  for (int i = 0; i < r->depth && used < sizeof place; ++i) {
    int written = snprintf(place + used, sizeof place - used, "%s%.60s", i > 0 ? "." : "", r->path[i]);
    if (written < 0) break;
    used += (size_t)written;
  }
  int line = clv__vnpu_locate(r->text, r->size_bytes, r->path, r->depth);
  return clv__error_set(r->error, CLV_INVALID_ARGUMENT, "%s: line %d: %s%s%s", r->file, line > 0 ? line : 1, place,
                        r->depth > 0 ? ": " : "", what);
}

clv_status clv__spec_no_memory(clv__spec_reader *r) {
  return clv__error_memory(r->error, r->size_bytes);
}

/* Appends `key` to the path that error messages name. After a success the caller must pop the key again; after an error it need
 * not. */
void clv__spec_push(clv__spec_reader *r, const char *key) {
  r->path[r->depth++] = key;
}
void clv__spec_pop(clv__spec_reader *r) {
  --r->depth;
}

/* Checks that every key of `object` is one of `allowed`, which ends with NULL. */
clv_status clv__spec_check_keys(clv__spec_reader *r, json_t *object, const char *const *allowed) {
  if (!json_is_object(object)) return clv__spec_fail(r, "must be an object");
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    bool known = false;
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; allowed[i] != NULL; ++i) {
      known = known || strcmp(key, allowed[i]) == 0;
      int written = snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", allowed[i]);
      if (written > 0 && used + (size_t)written < sizeof names) used += (size_t)written;
    }
    if (known) continue;
    clv__spec_push(r, key);
    return clv__spec_fail(r, "unknown key (known: %s)", names);
  }
  return CLV_OK;
}

clv_status clv__spec_string(clv__spec_reader *r, json_t *object, const char *key, const char **text) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  clv__spec_push(r, key);
  if (!json_is_string(value)) return clv__spec_fail(r, "must be a string");
  *text = clv__arena_string(r->arena, json_string_value(value), json_string_length(value));
  if (*text == NULL) return clv__spec_no_memory(r);
  clv__spec_pop(r);
  return CLV_OK;
}

clv_status clv__spec_bool(clv__spec_reader *r, json_t *object, const char *key, bool *flag) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  clv__spec_push(r, key);
  if (!json_is_boolean(value)) return clv__spec_fail(r, "must be true or false");
  *flag = json_is_true(value);
  clv__spec_pop(r);
  return CLV_OK;
}

clv_status clv__spec_int(clv__spec_reader *r, json_t *object, const char *key, int64_t least, int64_t most, int64_t *number) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  clv__spec_push(r, key);
  if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most) {
    return clv__spec_fail(r, "must be a whole number from %lld to %lld", (long long)least, (long long)most);
  }
  *number = json_integer_value(value);
  clv__spec_pop(r);
  return CLV_OK;
}

clv_status clv__spec_u32(clv__spec_reader *r, json_t *object, const char *key, uint32_t *number) {
  int64_t wide = *number;
  CLV__TRY(clv__spec_int(r, object, key, 0, UINT32_MAX, &wide));
  *number = (uint32_t)wide;
  return CLV_OK;
}

/* Reads a number that is zero or more. */
clv_status clv__spec_figure(clv__spec_reader *r, json_t *object, const char *key, double *number) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  clv__spec_push(r, key);
  if (!json_is_number(value) || !(json_number_value(value) >= 0)) return clv__spec_fail(r, "must be a number, 0 or more");
  *number = json_number_value(value);
  clv__spec_pop(r);
  return CLV_OK;
}

/* Parses "1073741824", "64M" or "1 GiB". Returns false if the text is not a size, or is above 2^62. */
bool clv__spec_parse_bytes(const char *text, uint64_t *size_bytes) {
  if (*text < '0' || *text > '9') return false;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0) return false;
  while (*end == ' ') ++end;
  static const char units[] = "KMGT";
  unsigned shift = 0;
  const char *unit = *end == '\0' ? NULL : strchr(units, *end & ~0x20);
  if (unit != NULL && *unit != '\0') {
    shift = 10 * (unsigned)(unit - units + 1);
    ++end;
    if (*end == 'i') ++end;
  }
  if (*end == 'B') ++end;
  if (*end != '\0' || number > (UINT64_C(1) << 62) >> shift) return false;
  *size_bytes = (uint64_t)number << shift;
  return true;
}

clv_status clv__spec_bytes(clv__spec_reader *r, json_t *object, const char *key, uint64_t *size_bytes) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  clv__spec_push(r, key);
  bool good = json_is_string(value) && clv__spec_parse_bytes(json_string_value(value), size_bytes);
  if (json_is_integer(value) && json_integer_value(value) >= 0) {
    *size_bytes = (uint64_t)json_integer_value(value);
    good = true;
  }
  if (!good) return clv__spec_fail(r, "must be a size in bytes: a whole number, or a string such as \"64M\" or \"1G\"");
  clv__spec_pop(r);
  return CLV_OK;
}

clv_dtype clv__spec_dtype(const char *name) {
  for (unsigned d = CLV_F32; d <= CLV_BF16; ++d) {
    if (clv_dtype_size_bytes((clv_dtype)d) > 0 && d != CLV_STRING && strcmp(clv_dtype_name((clv_dtype)d), name) == 0) {
      return (clv_dtype)d;
    }
  }
  return CLV_DTYPE_NONE;
}

/* Reads a list of dtype names into a mask. If `value` is NULL, the mask is unchanged. */
clv_status clv__spec_dtypes(clv__spec_reader *r, json_t *value, uint32_t *mask) {
  if (value == NULL) return CLV_OK;
  if (!json_is_array(value)) return clv__spec_fail(r, "must be a list of dtypes, such as [\"f32\", \"f16\"]");
  uint32_t read = 0;
  size_t i;
  json_t *item;
  json_array_foreach(value, i, item) {
    const char *name = json_is_string(item) ? json_string_value(item) : "";
    clv_dtype dtype = clv__spec_dtype(name);
    if (dtype == CLV_DTYPE_NONE) {
      return clv__spec_fail(r, "'%.40s' is not a dtype (f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool)", name);
    }
    read |= CLV__DTYPE_BIT(dtype);
  }
  *mask = read;
  return CLV_OK;
}
