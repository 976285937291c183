/* Explains the causes that strategies give for the place of a node. The table is shared by the texts, the plan's explanation
 * and the page. */
#ifndef CLEAVE_REPORT_CAUSES_H
#define CLEAVE_REPORT_CAUSES_H

/* NULL for a cause that needs no explanation. */
const char *clv__cause_meaning(const char *cause);

#endif
