/* A plan as a picture: a lane a device, partitions as boxes in the order they run, transfers as arrows between the lanes. */
#ifndef CLEAVE_REPORT_SVG_H
#define CLEAVE_REPORT_SVG_H

#include "base/text.h"
#include "split/plan.h"

/* Appends a whole SVG document. Plans of many steps are drawn with smaller boxes; of very many, the middle is left out and
 * counted. */
void clv__report_svg(const clv_plan *plan, clv__text *text);

#endif
