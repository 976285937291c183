/* See html_json.h. */
#include "report/page/html_json.h"

#include "report/label.h"

void clv__html_json_string(clv__text *text, const char *string) {
  if (string == NULL) string = "";
  uint32_t c;
  clv__text_append(text, "\"");
  for (size_t length; (length = clv__label_decode(string, &c)) > 0; string += length) {
    if (length == 1 && c == 0xfffd)
      clv__text_append(text, "\\ufffd");
    else if (c == '"' || c == '\\')
      clv__text_append(text, "\\%c", (int)c);
    else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f || (c >= 0x2028 && c <= 0x202e) ||
             (c >= 0x2066 && c <= 0x2069))
      clv__text_append(text, "\\u%04x", (unsigned)c);
    else
      clv__text_append_bytes(text, string, length);
  }
  clv__text_append(text, "\"");
}
