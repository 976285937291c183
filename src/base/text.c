/* See text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static char empty_text[1] = "";

void clv__text_init(clv__text *text, const clv_allocator *allocator) {
  *text = (clv__text){.allocator = allocator, .data = empty_text};
}

void clv__text_finish(clv__text *text) {
  if (text->capacity > 0) clv__release(text->allocator, text->data);
  clv__text_init(text, text->allocator);
}

static bool reserve(clv__text *text, size_t more) {
  size_t needed;
  if (text->failed || !clv__add(text->size_bytes, more, &needed) || !clv__add(needed, 1, &needed)) return false;
  void *data = text->capacity > 0 ? text->data : NULL;
  if (!clv__array_reserve(text->allocator, &data, &text->capacity, needed, 1, text->size_bytes)) return false;
  text->data = data;
  return true;
}

void clv__text_append_bytes(clv__text *text, const void *data, size_t size_bytes) {
  if (!reserve(text, size_bytes)) {
    text->failed = true;
    return;
  }
  if (size_bytes > 0) memcpy(text->data + text->size_bytes, data, size_bytes);
  text->size_bytes += size_bytes;
  text->data[text->size_bytes] = '\0';
}

void clv__text_append(clv__text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || !reserve(text, (size_t)length)) {
    text->failed = true;
    return;
  }
  va_start(arguments, format);
  vsnprintf(text->data + text->size_bytes, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->size_bytes += (size_t)length;
}

bool clv__pattern_match(const char *pattern, const char *name) {
  const char *star = NULL, *resume = NULL;
  while (*name != '\0') {
    if (*pattern == '*') {
      star = pattern++;
      resume = name;
    } else if (*pattern == '?' || *pattern == *name) {
      ++pattern;
      ++name;
    } else if (star != NULL) {
      pattern = star + 1;
      name = ++resume;
    } else {
      return false;
    }
  }
  while (*pattern == '*') ++pattern;
  return *pattern == '\0';
}

size_t clv__utf8_bytes(const uint8_t *at, size_t available) {
  uint8_t lead = at[0];
  if (lead < 0x80) return lead != 0;
  size_t size_bytes = lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 && lead < 0xe0 ? 2 : 0;
  if (size_bytes == 0 || size_bytes > available) return 0;
  for (size_t i = 1; i < size_bytes; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  bool overlong = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xf0 && at[1] < 0x90);
  bool outside = (lead == 0xed && at[1] >= 0xa0) || (lead == 0xf4 && at[1] >= 0x90);
  return overlong || outside ? 0 : size_bytes;
}
