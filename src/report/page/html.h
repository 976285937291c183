/* Writes a plan as a self-contained web page: the picture, the timeline, the comparison, and an explanation of every node. */
#ifndef CLEAVE_REPORT_PAGE_HTML_H
#define CLEAVE_REPORT_PAGE_HTML_H

#include "base/text.h"
#include "plan/compare.h"

/* Appends a complete HTML document. `rows` (may be NULL) are the results of other strategies and of single devices, for the
 * comparison. */
void clv__report_html(const clv_plan *plan, const clv__comparison *rows, uint32_t row_count, clv__text *text);

#endif
