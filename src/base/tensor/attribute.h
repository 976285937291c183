/* Reads a node's attributes by name. For an absent attribute, the caller passes the specification's default. */
#ifndef CLEAVE_BASE_TENSOR_ATTRIBUTE_H
#define CLEAVE_BASE_TENSOR_ATTRIBUTE_H

#include "cleave/info.h"

typedef struct clv__attributes {
  const clv_attribute *items;
  uint32_t count;
} clv__attributes;

/* Returns NULL if the attribute is absent. */
const clv_attribute *clv__attribute_find(clv__attributes attributes, const char *name);
/* Returns `fallback` if the attribute is absent, empty or of another kind. */
int64_t clv__attribute_int(clv__attributes attributes, const char *name, int64_t fallback);
float clv__attribute_float(clv__attributes attributes, const char *name, float fallback);
/* Returns whether the attribute is a string equal to `text`; `fallback` if it is absent. */
bool clv__attribute_is(clv__attributes attributes, const char *name, const char *text, bool fallback);
/* Returns the list and sets `count` to its length; NULL and 0 if the attribute is absent. */
const int64_t *clv__attribute_ints(clv__attributes attributes, const char *name, size_t *count);
const float *clv__attribute_floats(clv__attributes attributes, const char *name, size_t *count);

#endif
