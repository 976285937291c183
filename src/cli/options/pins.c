/* See pins.h. */
#include "cli/options/pins.h"

#include <string.h>

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool cli_pin_read(const char *text, size_t length, cli_pin *pin) {
  if (length < 3 || memchr(text, '\0', length) != NULL) return false;
  const char *equals = text + length - 1, *end = text + length;
  while (equals > text && *equals != '=') --equals;
  if (equals == text || equals + 1 == end) return false;
  const char *pattern_end = equals, *device = equals + 1;
  while (pattern_end > text + 1 && is_space(pattern_end[-1])) --pattern_end;
  while (device + 1 < end && is_space(*device)) ++device;
  *pin = (cli_pin){text, device, (size_t)(pattern_end - text), (size_t)(end - device)};
  return true;
}

clv_status cli_pins_each(const char *name, const char *text, size_t size_bytes,
                         clv_status (*found)(void *self, const char *line, size_t length, clv_error *error), void *self,
                         clv_error *error) {
  if (size_bytes == 0) return CLV_OK; /* `text` may be NULL for an empty file */
  const char *at = text, *end = text + size_bytes;
  for (uint32_t number = 1; at < end; ++number) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (line_end == NULL) line_end = end;
    const char *first = at, *last = line_end;
    while (first < last && is_space(*first)) ++first;
    for (const char *hash = first; hash < last; ++hash) { /* # may occur in a name, so it starts a comment only after a blank */
      if (*hash == '#' && (hash == first || is_space(hash[-1]))) last = hash;
    }
    while (last > first && is_space(last[-1])) --last;
    if (first < last) {
      clv_status status = found(self, first, (size_t)(last - first), error);
      if (status != CLV_OK) return cli_error_prefix(error, status, "%s, line %u", name, number);
    }
    at = line_end < end ? line_end + 1 : end;
  }
  return CLV_OK;
}
