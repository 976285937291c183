/* Reads the tensors of an IR JSON file: their names, shapes and dtypes, and the numbers that the file contains. See file.h. */
#include <math.h>
#include <stdio.h>

#include "formats/irjson/file.h"

const char *clv__irjson_kind(const json_t *value) {
  if (value == NULL) return "missing";
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      return "an object";
    case JSON_ARRAY:
      return "a list";
    case JSON_STRING:
      return "a string";
    case JSON_INTEGER:
      return "an integer";
    case JSON_REAL:
      return "a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
      return "a bool";
    case JSON_NULL:
      break;
  }
  return "null";
}

bool clv__irjson_read_scalar(const json_t *json, clv__aten_scalar *value) {
  *value = (clv__aten_scalar){CLV_F32, 0, json_number_value(json)};
  if (json_is_boolean(json)) *value = (clv__aten_scalar){CLV_BOOL, json_is_true(json), json_is_true(json)};
  if (json_is_integer(json)) *value = (clv__aten_scalar){CLV_I64, json_integer_value(json), json_number_value(json)};
  const char *text = json_string_value(json);
  if (text != NULL) {
    bool negative = text[0] == '-';
    if (strcmp(text, "nan") == 0) {
      value->real = NAN;
      return true;
    }
    if (strcmp(text + negative, "inf") != 0 && strcmp(text + negative, "Infinity") != 0) return false;
    value->real = negative ? -INFINITY : INFINITY;
  } else if (!json_is_number(json) && !json_is_boolean(json)) {
    return false;
  }
  if (value->dtype == CLV_F32) { /* the integer saturates */
    value->integer = value->real >= 9.2e18 ? INT64_MAX : value->real <= -9.2e18 ? INT64_MIN : (int64_t)value->real;
  }
  return true;
}

clv_dtype clv__irjson_dtype(const char *text) {
  static const struct {
    const char *name;
    clv_dtype dtype;
  } known[] = {{"float32", CLV_F32}, {"float", CLV_F32},     {"float64", CLV_F64}, {"double", CLV_F64}, {"float16", CLV_F16},
               {"half", CLV_F16},    {"bfloat16", CLV_BF16}, {"int64", CLV_I64},   {"long", CLV_I64},   {"int32", CLV_I32},
               {"int", CLV_I32},     {"int16", CLV_I16},     {"short", CLV_I16},   {"int8", CLV_I8},    {"uint8", CLV_U8},
               {"uint16", CLV_U16},  {"uint32", CLV_U32},    {"uint64", CLV_U64},  {"bool", CLV_BOOL}};
  if (strncmp(text, "torch.", 6) == 0) text += 6;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (strcmp(known[i].name, text) == 0) return known[i].dtype;
  }
  return CLV_DTYPE_NONE;
}

clv_status clv__irjson_member(const clv__irjson *file, const json_t *json, const char *where, const char *key, bool is_list,
                              const json_t **member) {
  *member = json_object_get(json, key);
  if (*member == NULL || json_is_null(*member)) {
    *member = NULL;
    return CLV_OK;
  }
  if (is_list ? json_is_array(*member) : json_is_object(*member)) return CLV_OK;
  const char *kind = clv__irjson_kind(*member);
  *member = NULL;
  return clv__error_set(file->error, CLV_INVALID_MODEL, "%s%s%s is %s; expected %s", where, where[0] != '\0' ? "." : "", key,
                        kind, is_list ? "a list" : "an object");
}

static clv_status read_shape(const clv__irjson *file, const json_t *shape, const char *where, clv_tensor *type) {
  if (!json_is_array(shape)) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.shape is %s; expected a list", where, clv__irjson_kind(shape));
  }
  if (json_array_size(shape) > CLV_MAX_RANK) {
    return clv__error_set(file->error, CLV_NOT_SUPPORTED, "%s.shape has %zu entries; the maximum rank is %d", where,
                          json_array_size(shape), CLV_MAX_RANK);
  }
  type->rank = (int32_t)json_array_size(shape);
  for (int32_t i = 0; i < type->rank; ++i) {
    const json_t *dim = json_array_get(shape, (size_t)i);
    if (!json_is_integer(dim)) {
      return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.shape[%d] is %s; expected an integer", where, (int)i,
                            clv__irjson_kind(dim));
    }
    type->dims[i] = json_integer_value(dim);
    if (type->dims[i] < 0) {
      return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.shape[%d] is %lld, but must not be negative", where, (int)i,
                            (long long)type->dims[i]);
    }
  }
  return CLV_OK;
}

static clv_status read_dtype(const clv__irjson *file, const json_t *json, const char *where, clv_dtype *dtype) {
  const char *text = json_string_value(json_object_get(json, "dtype"));
  if (text == NULL) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.dtype is %s; expected a string", where,
                          clv__irjson_kind(json_object_get(json, "dtype")));
  }
  *dtype = clv__irjson_dtype(text);
  if (*dtype != CLV_DTYPE_NONE) return CLV_OK;
  return clv__error_set(file->error, CLV_NOT_SUPPORTED, "%s.dtype is '%.60s', which is not supported", where, text);
}

clv_status clv__irjson_read_tensor(const clv__irjson *file, const json_t *json, const char *where, const char **name,
                                   clv_tensor *type) {
  *type = (clv_tensor){0};
  if (!json_is_object(json)) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s is %s; expected an object", where, clv__irjson_kind(json));
  }
  *name = json_string_value(json_object_get(json, "name"));
  if (*name == NULL || (*name)[0] == '\0') {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.name is %s; expected a name", where,
                          *name != NULL ? "empty" : clv__irjson_kind(json_object_get(json, "name")));
  }
  CLV__TRY(read_dtype(file, json, where, &type->dtype));
  CLV__TRY(read_shape(file, json_object_get(json, "shape"), where, type));
  size_t size_bytes;
  if (clv__tensor_size_bytes(type, &size_bytes)) return CLV_OK;
  char text[200];
  clv__tensor_text(type, text, sizeof text);
  return clv__error_set(file->error, CLV_INVALID_MODEL, "%s ('%.80s') is %s, too large for any memory", where, *name, text);
}

/* ---- Numbers ---- */

clv_status clv__irjson_measure(const clv__irjson *file, const json_t *json, const char *where, clv_tensor *type) {
  type->rank = 0;
  for (const json_t *at = json; json_is_array(at); at = json_array_get(at, 0)) {
    if (type->rank == CLV_MAX_RANK) {
      return clv__error_set(file->error, CLV_NOT_SUPPORTED, "%s is nested more than %d levels deep", where, CLV_MAX_RANK);
    }
    type->dims[type->rank++] = (int64_t)json_array_size(at);
  }
  return CLV_OK;
}

typedef struct numbers {
  const clv__irjson *file;
  const char *where;
  const clv_tensor *type;
  size_t at; /* number of elements written */
} numbers;

void clv__irjson_put(clv_dtype dtype, void *data, size_t index, clv__aten_scalar value) {
  switch (dtype) {
    case CLV_F32:
      ((float *)data)[index] = (float)value.real;
      break;
    case CLV_F64:
      ((double *)data)[index] = value.real;
      break;
    case CLV_F16:
      ((uint16_t *)data)[index] = clv__f64_to_f16(value.real);
      break;
    case CLV_BF16:
      ((uint16_t *)data)[index] = clv__f64_to_bf16(value.real);
      break;
    case CLV_I64:
    case CLV_U64:
      ((uint64_t *)data)[index] = (uint64_t)value.integer;
      break;
    case CLV_I32:
    case CLV_U32:
      ((uint32_t *)data)[index] = (uint32_t)value.integer;
      break;
    case CLV_I16:
    case CLV_U16:
      ((uint16_t *)data)[index] = (uint16_t)value.integer;
      break;
    case CLV_I8:
    case CLV_U8:
      ((uint8_t *)data)[index] = (uint8_t)value.integer;
      break;
    case CLV_BOOL:
      ((uint8_t *)data)[index] = value.real != 0;
      break;
    default: /* clv__irjson_dtype() returns no other dtype */
      break;
  }
}

static clv_status refuse_number(const numbers *n, const json_t *json, const char *what) {
  return clv__error_set(n->file->error, CLV_INVALID_MODEL, "%s: element %zu is %s%s", n->where, n->at, clv__irjson_kind(json),
                        what);
}

static clv_status put_number(numbers *n, const json_t *json) {
  clv_dtype dtype = n->type->dtype;
  clv__aten_scalar value = {CLV_F32, 0, 0};
  if (!clv__irjson_read_scalar(json, &value)) return refuse_number(n, json, "; expected a number");
  if (!clv__aten_is_float(dtype) && value.dtype == CLV_F32) {
    char what[40];
    snprintf(what, sizeof what, ", but its dtype is %s", clv_dtype_name(dtype));
    return refuse_number(n, json, what);
  }
  clv__irjson_put(dtype, n->type->data, n->at, value);
  if (!clv__aten_is_float(dtype) && clv__tensor_get_int(n->type, n->at) != value.integer) {
    return clv__error_set(n->file->error, CLV_INVALID_MODEL, "%s: element %zu is %lld, which does not fit its dtype %s", n->where,
                          n->at, (long long)value.integer, clv_dtype_name(dtype));
  }
  ++n->at;
  return CLV_OK;
}

/* Recurses at most CLV_MAX_RANK deep, because lists nested deeper than the rank of the type are rejected. */
static clv_status put_numbers(numbers *n, const json_t *json, int32_t depth) {
  if (depth == n->type->rank) return put_number(n, json);
  if (!json_is_array(json) || (int64_t)json_array_size(json) != n->type->dims[depth]) {
    char text[128];
    clv__tensor_text(n->type, text, sizeof text);
    return clv__error_set(n->file->error, CLV_INVALID_MODEL, "%s: element %zu: expected a list of %lld, because the type is %s",
                          n->where, n->at, (long long)n->type->dims[depth], text);
  }
  for (size_t i = 0; i < json_array_size(json); ++i) CLV__TRY(put_numbers(n, json_array_get(json, i), depth + 1));
  return CLV_OK;
}

/* Counts the numbers in nested lists. Memory is allocated only if there are as many numbers as the shape claims. */
static size_t count_numbers(const json_t *json, int32_t depth) {
  if (!json_is_array(json)) return 1;
  size_t count = 0;
  for (size_t i = 0; depth > 0 && i < json_array_size(json); ++i) count += count_numbers(json_array_get(json, i), depth - 1);
  return count;
}

clv_status clv__irjson_read_numbers(const clv__irjson *file, const json_t *json, const char *where, clv_tensor *type) {
  size_t count, size_bytes, held = count_numbers(json, CLV_MAX_RANK);
  if (!clv__tensor_count(type, &count) || !clv__tensor_size_bytes(type, &size_bytes) || held != count) {
    char text[128];
    clv__tensor_text(type, text, sizeof text);
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s contains %zu numbers, but its tensor is %s", where, held, text);
  }
  type->data = clv__arena_allocate_data(clv__builder_arena(file->builder), size_bytes);
  if (type->data == NULL) return clv__error_memory(file->error, size_bytes);
  numbers n = {file, where, type, 0};
  /* a flat list fits any shape */
  if (type->rank > 1 && json_is_array(json) && !json_is_array(json_array_get(json, 0))) {
    for (size_t i = 0; i < json_array_size(json); ++i) CLV__TRY(put_number(&n, json_array_get(json, i)));
    return CLV_OK;
  }
  return put_numbers(&n, json, 0);
}
