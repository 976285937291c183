/* The rules that decide whether this family's operators are independent along padded axes (common/padding.h). */
#ifndef CLEAVE_OPERATORS_VIEW_RULES_H
#define CLEAVE_OPERATORS_VIEW_RULES_H

#include "operators/common/padding.h"

bool clv__independent_reshape(clv__padding *padding);

#endif
