/* Writes a plan as a graph for Graphviz: nodes are grouped by partition, and values are edges. Copied values show their size. */
#ifndef CLEAVE_REPORT_PICTURE_DOT_H
#define CLEAVE_REPORT_PICTURE_DOT_H

#include "base/text.h"
#include "plan/plan.h"

void clv__report_dot(const clv_plan *plan, clv__text *text);

#endif
