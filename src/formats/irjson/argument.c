/* Reads the arguments of an ATen node from its `attrs`, whose keys are ATen's argument names. See lower.h. */
#include <stdarg.h>
#include <stdio.h>

#include "formats/irjson/file.h"

void clv__aten_fail(clv__aten_node *node, const char *format, ...) {
  if (node->status != CLV_OK) return;
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  node->status = clv__error_set(node->error, CLV_INVALID_MODEL, "%s", text);
}

void clv__aten_keep(clv__aten_node *node) {
  if (node->status == CLV_OK) node->status = CLV_NOT_SUPPORTED;
}

static const json_t *find(const clv__aten_node *node, const char *name) {
  const json_t *value = json_object_get(node->attrs, name);
  return json_is_null(value) ? NULL : value;
}

bool clv__aten_has(const clv__aten_node *node, const char *name) {
  return find(node, name) != NULL;
}

static void fail_kind(clv__aten_node *node, const char *name, const json_t *value, const char *wanted) {
  clv__aten_fail(node, "attrs.%s is %s; expected %s", name, clv__irjson_kind(value), wanted);
}

static bool read_int(const json_t *value, int64_t *number) {
  if (json_is_boolean(value)) *number = json_is_true(value);
  if (json_is_integer(value)) *number = json_integer_value(value);
  return json_is_boolean(value) || json_is_integer(value);
}

int64_t clv__aten_int(clv__aten_node *node, const char *name, int64_t fallback) {
  const json_t *value = find(node, name);
  int64_t number = fallback;
  if (value != NULL && !read_int(value, &number)) fail_kind(node, name, value, "an integer");
  return number;
}

bool clv__aten_bool(clv__aten_node *node, const char *name, bool fallback) {
  return clv__aten_int(node, name, fallback) != 0;
}

clv__aten_scalar clv__aten_scalar_of(clv__aten_node *node, const char *name) {
  const json_t *value = find(node, name);
  clv__aten_scalar scalar = {CLV_DTYPE_NONE, 0, 0};
  if (value == NULL) return scalar;
  if (clv__irjson_read_scalar(value, &scalar)) return scalar;
  fail_kind(node, name, value, "a number");
  return (clv__aten_scalar){CLV_DTYPE_NONE, 0, 0};
}

double clv__aten_real(clv__aten_node *node, const char *name, double fallback) {
  clv__aten_scalar scalar = clv__aten_scalar_of(node, name);
  return scalar.dtype == CLV_DTYPE_NONE ? fallback : scalar.real;
}

const char *clv__aten_text(clv__aten_node *node, const char *name, const char *fallback) {
  const json_t *value = find(node, name);
  if (value == NULL) return fallback;
  if (!json_is_string(value)) fail_kind(node, name, value, "a text");
  return json_is_string(value) ? json_string_value(value) : fallback;
}

clv_dtype clv__aten_dtype(clv__aten_node *node, const char *name, clv_dtype fallback) {
  const char *text = clv__aten_text(node, name, NULL);
  if (text == NULL) return fallback;
  clv_dtype dtype = clv__irjson_dtype(text);
  if (dtype == CLV_DTYPE_NONE) clv__aten_fail(node, "attrs.%s is '%.60s', which is not a known dtype", name, text);
  return dtype;
}

/* Finds the list `name`; NULL if it is absent. The result may also be a single number, which counts as a list of one. */
static const json_t *find_list(clv__aten_node *node, const char *name, uint32_t *count) {
  const json_t *value = find(node, name);
  *count = 0;
  if (value == NULL) return NULL;
  size_t size = json_is_array(value) ? json_array_size(value) : 1;
  if (size > CLV__ATEN_MAX_LIST) {
    clv__aten_fail(node, "attrs.%s has %zu entries, more than %d", name, size, CLV__ATEN_MAX_LIST);
    return NULL;
  }
  *count = (uint32_t)size;
  return value;
}

uint32_t clv__aten_ints(clv__aten_node *node, const char *name, int64_t *values) {
  uint32_t count;
  const json_t *list = find_list(node, name, &count);
  for (uint32_t i = 0; i < count; ++i) {
    const json_t *item = json_is_array(list) ? json_array_get(list, i) : list;
    values[i] = 0;
    if (!read_int(item, &values[i])) {
      clv__aten_fail(node, "attrs.%s[%u] is %s; expected an integer", name, i, clv__irjson_kind(item));
    }
  }
  return count;
}

uint32_t clv__aten_reals(clv__aten_node *node, const char *name, double *values) {
  uint32_t count;
  const json_t *list = find_list(node, name, &count);
  for (uint32_t i = 0; i < count; ++i) {
    const json_t *item = json_is_array(list) ? json_array_get(list, i) : list;
    clv__aten_scalar scalar;
    if (!clv__irjson_read_scalar(item, &scalar)) {
      clv__aten_fail(node, "attrs.%s[%u] is %s; expected a number", name, i, clv__irjson_kind(item));
    }
    values[i] = scalar.real;
  }
  return count;
}

void clv__aten_per_axis(clv__aten_node *node, const char *name, int64_t fallback, uint32_t count, int64_t *values) {
  int64_t given[CLV__ATEN_MAX_LIST];
  uint32_t given_count = clv__aten_ints(node, name, given);
  if (given_count > 1 && given_count != count) {
    clv__aten_fail(node, "attrs.%s has %u entries; expected %u", name, given_count, count);
    given_count = 0;
  }
  for (uint32_t i = 0; i < count; ++i) values[i] = given_count == 0 ? fallback : given[given_count == 1 ? 0 : i];
}

static int64_t wrap_axis(clv__aten_node *node, const char *name, int64_t axis, int32_t rank) {
  int32_t room = rank > 0 ? rank : 1; /* a tensor of rank 0 also accepts axis 0 */
  if (axis < -room || axis >= room) {
    clv__aten_fail(node, "attrs.%s is %lld, out of range for rank %d", name, (long long)axis, (int)rank);
    return 0;
  }
  return axis < 0 ? axis + room : axis;
}

int64_t clv__aten_axis(clv__aten_node *node, const char *name, int64_t fallback, int32_t rank) {
  return wrap_axis(node, name, clv__aten_int(node, name, fallback), rank);
}

uint32_t clv__aten_axes(clv__aten_node *node, const char *name, int32_t rank, int64_t *axes) {
  uint32_t count = clv__aten_ints(node, name, axes);
  for (uint32_t i = 0; i < count; ++i) {
    axes[i] = wrap_axis(node, name, axes[i], rank);
    for (uint32_t k = 0; k < i; ++k) {
      if (axes[k] == axes[i]) clv__aten_fail(node, "attrs.%s names axis %lld twice", name, (long long)axes[i]);
    }
  }
  if (count > 0) return count;
  for (int32_t i = 0; i < rank; ++i) axes[i] = i;
  return (uint32_t)(rank > 0 ? rank : 0);
}

bool clv__aten_none_mask(clv__aten_node *node, bool *none, uint32_t *count) {
  const json_t *masks = find(node, "_tensor_list_none_masks");
  const json_t *mask = json_is_array(json_array_get(masks, 0)) ? json_array_get(masks, 0) : masks;
  *count = 0;
  if (masks == NULL) return false;
  if (!json_is_array(mask) || json_array_size(mask) > CLV_MAX_RANK) {
    clv__aten_fail(node, "attrs._tensor_list_none_masks is not a list of at most %d bools", CLV_MAX_RANK);
    return false;
  }
  for (; *count < json_array_size(mask); ++*count) {
    const json_t *item = json_array_get(mask, *count);
    if (!json_is_boolean(item)) {
      clv__aten_fail(node, "attrs._tensor_list_none_masks[%u] is %s; expected a bool", *count, clv__irjson_kind(item));
      return false;
    }
    none[*count] = json_is_true(item);
  }
  return true;
}
