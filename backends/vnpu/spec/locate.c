/* Finds the line of a key in JSON text that a parser has already accepted. The parser keeps no positions, but error messages need
 * them. */
#include <string.h>

#include "json.h"

/* `text[at]` is the opening quote; returns the index of the closing one (or `size_bytes`). */
static size_t string_end(const char *text, size_t size_bytes, size_t at) {
  for (++at; at < size_bytes && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at < size_bytes ? at : size_bytes;
}

int clv__vnpu_locate(const char *text, size_t size_bytes, const char *const *path, int depth) {
  int line = 1, level = 0, matched = 0;
  for (size_t at = 0; at < size_bytes && matched < depth; ++at) {
    char c = text[at];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') ++level;
    if (c == '}' || c == ']') --level;
    if (c != '"') continue;
    size_t end = string_end(text, size_bytes, at);
    size_t next = end + 1;
    while (next < size_bytes && strchr(" \t\r\n", text[next]) != NULL) ++next;
    bool is_key = next < size_bytes && text[next] == ':';
    size_t length = end - at - 1;
    if (is_key && level == matched + 1 && end < size_bytes && strlen(path[matched]) == length &&
        memcmp(path[matched], text + at + 1, length) == 0) {
      if (++matched == depth) return line;
    }
    at = end;
  }
  return 0;
}
