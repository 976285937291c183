/* See attribute.h. */
#include "base/tensor/attribute.h"

#include <string.h>

const clv_attribute *clv__attribute_find(clv__attributes attributes, const char *name) {
  for (uint32_t i = 0; i < attributes.count; ++i) {
    if (strcmp(attributes.items[i].name, name) == 0) return &attributes.items[i];
  }
  return NULL;
}

static const clv_attribute *find_kind(clv__attributes attributes, const char *name, clv_attribute_kind kind) {
  const clv_attribute *attribute = clv__attribute_find(attributes, name);
  return attribute != NULL && attribute->kind == kind ? attribute : NULL;
}

int64_t clv__attribute_int(clv__attributes attributes, const char *name, int64_t fallback) {
  const clv_attribute *attribute = find_kind(attributes, name, CLV_ATTRIBUTE_INTS);
  return attribute != NULL && attribute->count > 0 ? attribute->ints[0] : fallback;
}

float clv__attribute_float(clv__attributes attributes, const char *name, float fallback) {
  const clv_attribute *attribute = find_kind(attributes, name, CLV_ATTRIBUTE_FLOATS);
  return attribute != NULL && attribute->count > 0 ? attribute->floats[0] : fallback;
}

bool clv__attribute_is(clv__attributes attributes, const char *name, const char *text, bool fallback) {
  const clv_attribute *attribute = find_kind(attributes, name, CLV_ATTRIBUTE_STRINGS);
  if (attribute == NULL || attribute->count == 0) return fallback;
  const clv_string *value = &attribute->strings[0];
  return value->size_bytes == strlen(text) && memcmp(value->data, text, value->size_bytes) == 0;
}

const int64_t *clv__attribute_ints(clv__attributes attributes, const char *name, size_t *count) {
  const clv_attribute *attribute = find_kind(attributes, name, CLV_ATTRIBUTE_INTS);
  *count = attribute != NULL ? attribute->count : 0;
  return attribute != NULL ? attribute->ints : NULL;
}

const float *clv__attribute_floats(clv__attributes attributes, const char *name, size_t *count) {
  const clv_attribute *attribute = find_kind(attributes, name, CLV_ATTRIBUTE_FLOATS);
  *count = attribute != NULL ? attribute->count : 0;
  return attribute != NULL ? attribute->floats : NULL;
}
