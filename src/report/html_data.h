/* What the page of a plan knows, as JSON that may stand inside a script element. */
#ifndef CLEAVE_REPORT_HTML_DATA_H
#define CLEAVE_REPORT_HTML_DATA_H

#include "base/text.h"
#include "split/plan.h"

/* Quoted; `<`, `>` and `&` as escapes, what is no UTF-8 as U+FFFD: no name can end the element or the string. NULL becomes "". */
void clv__html_json_string(clv__text *text, const char *string);
/* The arrays are described at the head of html_data.c; page/page.js reads them. */
void clv__html_data(const clv_plan *plan, clv__text *text);

#endif
