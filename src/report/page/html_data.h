/* Functions shared by the web pages, and the data of a plan's page, as JSON that is safe inside a script element. */
#ifndef CLEAVE_REPORT_PAGE_HTML_DATA_H
#define CLEAVE_REPORT_PAGE_HTML_DATA_H

#include "base/text.h"
#include "plan/plan.h"

/* Appends the start of a page up to <body>. `style` follows the common style. */
void clv__html_head(const char *title, const char *style, clv__text *text);
/* Appends a value with its description, for a <dl class="tiles">. */
void clv__html_tile(clv__text *text, const char *what, const char *value);
/* Appends the data of a plan, which page/page.js reads. The top of html_data.c describes its arrays. */
void clv__html_data(const clv_plan *plan, clv__text *text);

#endif
