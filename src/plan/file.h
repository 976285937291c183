/* Reading a plan file, shared by the files that do (file_read.c). */
#ifndef CLEAVE_PLAN_FILE_H
#define CLEAVE_PLAN_FILE_H

#include <jansson.h>

#include "plan/plan.h"

/* file_check.c: keys that are read have the kind that they should; which of them may be missing, and what they say, is not looked
 * at. */
clv_status clv__plan_check_keys(const json_t *root, clv_error *error);

/* file_check.c: the partitions that were read keep to their devices' limits, and their devices take streamed weights as inputs.
 * The devices are locked. */
clv_status clv__plan_check_devices(const clv_plan *plan, clv_error *error);

/* file_partitions.c: reads partitions and causes, and sets the plan's cut. */
clv_status clv__plan_read_partitions(clv_plan *plan, const json_t *root, clv_error *error);
/* A text of an object, kept in the plan; NULL when there is none. */
clv_status clv__plan_keep_text(clv_plan *plan, const json_t *object, const char *key, const char **kept, clv_error *error);

#endif
