/* What the causes that strategies give for a node's place mean: one table for the texts, the plan's explanation and the page. */
#ifndef CLEAVE_REPORT_CAUSES_H
#define CLEAVE_REPORT_CAUSES_H

/* NULL for a cause that speaks for itself. */
const char *clv__cause_meaning(const char *cause);

#endif
