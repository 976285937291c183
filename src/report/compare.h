/* Prints tables of the alternatives to a plan (plan/compare.h), for --compare and --what-if. */
#ifndef CLEAVE_REPORT_COMPARE_H
#define CLEAVE_REPORT_COMPARE_H

#include <jansson.h>

#include "base/text.h"
#include "plan/compare.h"

struct clv_comparison {
  const clv_plan *plan;
  clv__arena arena;
  clv__comparison *rows;
  uint32_t count;
};

void clv__report_comparison(const clv_plan *plan, const clv__comparison *rows, uint32_t count, clv__text *text);
void clv__report_what_if(const clv_plan *plan, const clv__what_if *rows, uint32_t count, clv__text *text);

/* The same as arrays of objects. */
json_t *clv__report_comparison_json(const clv__comparison *rows, uint32_t count);
json_t *clv__report_what_if_json(const clv_plan *plan, const clv__what_if *rows, uint32_t count);

#endif
