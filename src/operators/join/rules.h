/* The rules that decide whether this family's operators are independent along padded axes (common/padding.h). */
#ifndef CLEAVE_OPERATORS_JOIN_RULES_H
#define CLEAVE_OPERATORS_JOIN_RULES_H

#include "operators/common/padding.h"

bool clv__independent_concat(clv__padding *padding);
bool clv__independent_split(clv__padding *padding);
bool clv__independent_slice(clv__padding *padding);
bool clv__independent_pad(clv__padding *padding);
bool clv__independent_expand(clv__padding *padding);
bool clv__independent_tile(clv__padding *padding);

#endif
