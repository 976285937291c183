/* What pages share, and what the page of a plan knows, as JSON that may stand inside a script element. */
#ifndef CLEAVE_REPORT_PAGE_HTML_DATA_H
#define CLEAVE_REPORT_PAGE_HTML_DATA_H

#include "base/text.h"
#include "plan/plan.h"

/* Quoted; `<`, `>` and `&` as escapes, what is no UTF-8 as U+FFFD: no name can end the element or the string. NULL becomes "". */
void clv__html_json_string(clv__text *text, const char *string);
/* What pages begin with: up to <body>. `style` comes behind the common one. */
void clv__html_head(const char *title, const char *style, clv__text *text);
/* A number with what it is, in a <dl class="tiles">. */
void clv__html_tile(clv__text *text, const char *what, const char *value);
/* The arrays are described at the head of html_data.c; page/page.js reads them. */
void clv__html_data(const clv_plan *plan, clv__text *text);

#endif
