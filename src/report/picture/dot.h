/* A plan as a graphviz graph: nodes grouped by partition, values as edges. Copied values are marked with their bytes. */
#ifndef CLEAVE_REPORT_PICTURE_DOT_H
#define CLEAVE_REPORT_PICTURE_DOT_H

#include "base/text.h"
#include "plan/plan.h"

void clv__report_dot(const clv_plan *plan, clv__text *text);

#endif
