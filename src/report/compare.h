/* Prints tables of the alternatives to a plan (plan/compare.h), for --compare and --what-if. */
#ifndef CLEAVE_REPORT_COMPARE_H
#define CLEAVE_REPORT_COMPARE_H

#include "base/text.h"
#include "plan/compare.h"

void clv__report_comparison(const clv_plan *plan, const clv__comparison *rows, uint32_t count, clv__text *text);
void clv__report_what_if(const clv_plan *plan, const clv__what_if *rows, uint32_t count, clv__text *text);

#endif
