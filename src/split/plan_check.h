/* What a plan file must keep to beside naming what there is: the kinds of its keys, and what its devices take. */
#ifndef CLEAVE_SPLIT_PLAN_CHECK_H
#define CLEAVE_SPLIT_PLAN_CHECK_H

#include <jansson.h>

#include "split/plan.h"

/* Keys that are read have the kind that they should; which of them may be missing, and what they say, is not looked at. */
clv_status clv__plan_check_keys(const json_t *root, clv_error *error);

/* The partitions that were read keep to their devices' limits, and their devices take streamed weights as inputs. The devices are
 * locked. */
clv_status clv__plan_check_devices(const clv_plan *plan, clv_error *error);

#endif
