/* A growing text buffer, and name patterns written by users. */
#ifndef CLEAVE_BASE_TEXT_H
#define CLEAVE_BASE_TEXT_H

#include "cleave/types.h"

/* A growing, terminated text. After a failed append `failed` is true and further appends do nothing. Check it once, at the
 * end. */
typedef struct clv__text {
  const clv_allocator *allocator;
  char *data; /* never NULL after init */
  size_t size_bytes;
  size_t capacity;
  bool failed;
} clv__text;

void clv__text_init(clv__text *text, const clv_allocator *allocator);
void clv__text_finish(clv__text *text);
void clv__text_append(clv__text *text, const char *format, ...) CLV_PRINTF(2, 3);
void clv__text_append_bytes(clv__text *text, const void *data, size_t size_bytes);

/* Whether `name` matches `pattern`: `*` matches any text, `?` any one character, and any other character only itself. */
bool clv__pattern_match(const char *pattern, const char *name);

/* Returns the number of bytes of the UTF-8 character at `at`, or 0 if it is invalid, not complete within `available` bytes, or a
 * zero byte. `available` is at least 1. */
size_t clv__utf8_bytes(const uint8_t *at, size_t available);

#endif
