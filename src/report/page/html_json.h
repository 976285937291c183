/* Strings of JSON that is inside a script element. */
#ifndef CLEAVE_REPORT_PAGE_HTML_JSON_H
#define CLEAVE_REPORT_PAGE_HTML_JSON_H

#include "base/text.h"

/* Appends a quoted string. `<`, `>` and `&` become escapes and invalid UTF-8 becomes U+FFFD, so that no name can end the string
 * or the script element. NULL becomes "". */
void clv__html_json_string(clv__text *text, const char *string);

#endif
