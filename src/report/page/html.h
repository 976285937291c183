/* A plan as one page that needs nothing else: the picture, the timeline, the comparison, and every node explained. */
#ifndef CLEAVE_REPORT_PAGE_HTML_H
#define CLEAVE_REPORT_PAGE_HTML_H

#include "base/text.h"
#include "plan/compare.h"

/* Appends a whole HTML document. `rows` (may be NULL): what other strategies and single devices would come to. */
void clv__report_html(const clv_plan *plan, const clv__comparison *rows, uint32_t row_count, clv__text *text);

#endif
