/* The rules that decide whether this family's operators are independent along padded axes (common/padding.h). */
#ifndef CLEAVE_OPERATORS_GATHER_RULES_H
#define CLEAVE_OPERATORS_GATHER_RULES_H

#include "operators/common/padding.h"

bool clv__independent_gather(clv__padding *padding);
bool clv__independent_gather_elements(clv__padding *padding);
bool clv__independent_gather_nd(clv__padding *padding);
bool clv__independent_scatter_elements(clv__padding *padding);
bool clv__independent_scatter_nd(clv__padding *padding);

#endif
